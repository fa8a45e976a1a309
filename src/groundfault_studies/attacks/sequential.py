"""Verdicts of sequential audits, under attack."""

from __future__ import annotations

from groundfault_studies.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = ()
