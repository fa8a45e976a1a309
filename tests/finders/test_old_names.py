"""Names of the first release still work, with a warning that gives the new one."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from groundfault.finders.categories import Categories
from groundfault.finders.interactions import Interactions
from groundfault_lab.slicing.foreign import Pysubgroup
from groundfault_lab.slicing.proposals import configure_finder
from groundfault_lab.slicing.random import Random
from groundfault_lab.slicing.sliceline import ScoredSlice, SliceLine


@pytest.mark.parametrize(
    ("finder", "old", "new", "value"),
    [
        (Categories, "most_levels", "max_levels", 7),
        (Categories, "least", "min_size", 3),
        (Pysubgroup, "least_share", "min_share", 0.2),
        (Random, "least_share", "min_share", 0.2),
        (SliceLine, "least_share", "min_share", 0.2),
    ],
)
def test_a_setting_keeps_its_old_name(finder: Any, old: str, new: str, value: float) -> None:
    with pytest.warns(DeprecationWarning, match=new):
        instance = finder(**{old: value})
    assert instance == finder(**{new: value})
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(instance, old) == value


def test_interactions_keep_theirs() -> None:
    with pytest.warns(DeprecationWarning, match="max_candidates"):
        finder = Interactions((), most=9)
    assert finder.max_candidates == 9


def test_a_setting_by_name_too() -> None:
    with pytest.warns(DeprecationWarning, match="min_share"):
        assert configure_finder("sliceline", {"least_share": 0.3}).min_share == 0.3


def test_the_slice_of_sliceline() -> None:
    module = importlib.import_module("groundfault_lab.slicing.sliceline")
    with pytest.warns(DeprecationWarning, match="ScoredSlice"):
        assert module.Slice is ScoredSlice
