"""Tests that authors of plug-ins can call, on worlds whose truth is known.

There is a check for each kind: `check_finder`, `check_judge`, `check_reader`, `check_policy`,
`check_probe_policy`, `check_exporter` and `check_counter`. Each takes an object or a name, or what
makes the object, and raises AssertionError with the world or sample in which something does not
hold."""

from groundfault.base.deprecation import rename_attributes
from groundfault.testing.calibration import calibrate
from groundfault.testing.card import Card
from groundfault.testing.checks import check_finder, check_judge
from groundfault.testing.counting import check_counter
from groundfault.testing.formats import check_exporter, check_reader
from groundfault.testing.policies import check_policy, check_probe_policy
from groundfault.testing.worlds import PlantedEffect, World

__all__ = [
    "Card",
    "PlantedEffect",
    "World",
    "calibrate",
    "check_counter",
    "check_exporter",
    "check_finder",
    "check_judge",
    "check_policy",
    "check_probe_policy",
    "check_reader",
]

__getattr__ = rename_attributes(__name__, {"Effect": "groundfault.testing.worlds:PlantedEffect"})
