"""Tests that authors of plug-ins can call, on worlds whose truth is known.

There is a check for each kind: `check_finder`, `check_judge`, `check_reader`, `check_policy`,
`check_probe_policy`, `check_exporter` and `check_counter`. Each takes an object or a name, or what
makes the object, and raises AssertionError with the world or sample in which something does not
hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault_lab.testing.calibration import calibrate as calibrate
    from groundfault_lab.testing.card import Card as Card
    from groundfault_lab.testing.checks import (
        check_finder as check_finder,
        check_judge as check_judge,
    )
    from groundfault_lab.testing.counting import check_counter as check_counter
    from groundfault_lab.testing.formats import (
        check_exporter as check_exporter,
        check_reader as check_reader,
    )
    from groundfault_lab.testing.policies import (
        check_policy as check_policy,
        check_probe_policy as check_probe_policy,
    )
    from groundfault_lab.testing.worlds import PlantedEffect as PlantedEffect, World as World

__getattr__, __dir__, __all__ = open_front_door(__name__)
