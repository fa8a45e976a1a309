"""Comparisons of two runs, and the gate of a build, under attack."""

from __future__ import annotations

from groundfault_studies.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
