"""Baselines and other people's finders: that they keep the contract, find what is planted, and say
what they lack.
"""

from __future__ import annotations

import builtins
from typing import Any

import polars as pl
import pytest
from planted_tables import results

from groundfault import Evidence, InputError, MissingExtraError, PlanError, finders
from groundfault.core.units import Marks
from groundfault_lab.slicing.foreign import Pysubgroup
from groundfault_lab.slicing.random import Random
from groundfault_lab.testing import check_finder


@pytest.mark.parametrize("finder", [Pysubgroup(), Random()], ids=lambda f: f.name)
def test_finders_keep_what_is_promised_of_finders(finder: finders.Finder):
    library = check_finder(finder, results())
    assert finders.get(finder.name) is type(finder)
    counts = Marks.of(results(), library).counts()[1] / len(results())
    assert all(0.08 < share < 0.92 for share in counts)
    assert len(library) <= 10


def test_pysubgroup_finds_what_is_planted_and_the_rest_is_not_better():
    data = results()
    pytest.importorskip("pysubgroup")
    best, *_ = Pysubgroup(bins=2).propose(data)
    assert set(best.columns) == {"lang", "words"}
    rules = [c.rule for c in Pysubgroup(bins=2, k=3, exponent=1).propose(data)]
    assert len(rules) == 3
    passes = Evidence.from_table(
        data.frame.with_columns(error=pl.lit(0)), id="item", outcome="error"
    )
    assert list(Pysubgroup().propose(passes)) == []


def test_pysubgroup_is_named_where_it_is_lacking(monkeypatch: pytest.MonkeyPatch):
    candidates = builtins.__import__

    def lacking(name: str, *arguments: Any) -> Any:
        if name == "pysubgroup":
            raise ImportError(name)
        return candidates(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(MissingExtraError, match=r"pip install 'groundfault-lab\[subgroup\]'"):
        list(Pysubgroup().propose(results()))


def test_random_looks_at_no_outcome_and_follows_its_seed():
    data = results()
    assert list(Random().propose(data)) == list(Random().propose(data.without_outcomes()))
    assert list(Random(seed=1).propose(data)) != list(Random().propose(data))
    assert not getattr(Random(), "uses_outcomes", False)
    bare = Evidence.from_table(data.frame.select("item", "error"), id="item", outcome="error")
    assert list(Random().propose(bare)) == []


def test_settings_out_of_range_and_columns_that_are_not_there():
    for wrong in ({"k": 0}, {"max_level": 0}):
        for kind in (Pysubgroup, Random):
            with pytest.raises(PlanError, match="at least 1"):
                kind(**wrong)
    with pytest.raises(PlanError, match="exponent=2"):
        Pysubgroup(exponent=2)
    for kind in (Pysubgroup, Random):
        with pytest.raises(InputError, match="no attribute is named"):
            list(kind(columns=("langg",)).propose(results()))


@pytest.mark.parametrize("name", ["sliceline", "tree", "pysubgroup", "random"])
def test_evidence_without_a_column_to_search_gives_nothing(name: str):
    frame = (
        results()
        .frame.select("item", "error")
        .with_columns(note=pl.format("this is remark {} of all", "item"))
    )
    assert (
        list(finders.get(name)().propose(Evidence.from_table(frame, id="item", outcome="error")))
        == []
    )
    gaps = frame.with_columns(error=pl.when(pl.col("item") < "i00300").then("error"))
    some = Evidence.from_table(gaps, id="item", outcome="error", null_outcome="missing")
    assert list(finders.get(name)().propose(some)) == []
