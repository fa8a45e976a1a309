"""Held-out estimates, and what an audit could have detected, under attack."""

from __future__ import annotations

from groundfault_studies.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
