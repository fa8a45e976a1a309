"""Tests of plug-ins that their authors can call: worlds whose truth is known, checks, calibration
cards.
"""

from groundfault.testing.calibration import calibrate
from groundfault.testing.card import Card
from groundfault.testing.checks import check_finder, check_judge
from groundfault.testing.policies import check_policy
from groundfault.testing.probe_policies import check_probe_policy
from groundfault.testing.reading import check_reader
from groundfault.testing.worlds import PlantedEffect, World

__all__ = [
    "Card",
    "PlantedEffect",
    "World",
    "calibrate",
    "check_finder",
    "check_judge",
    "check_policy",
    "check_probe_policy",
    "check_reader",
]
