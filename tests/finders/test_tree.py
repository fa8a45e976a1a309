"""The decision tree and the confidence baseline, as finders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.units import Marks
from groundfault.errors import InputError, PlanError
from groundfault_lab.slicing.confidence import Confidence
from groundfault_lab.slicing.tree import Tree
from groundfault_lab.stats.improvement import find_least_confident
from groundfault_lab.testing import check_finder


def evidence(n: int = 600, **extra: Any) -> Evidence:
    rng = np.random.default_rng(3)
    x, flag, words = rng.normal(size=n), rng.random(n) < 0.5, rng.integers(0, 400, n)
    error = (rng.random(n) < np.where((words >= 300) & flag, 0.9, 0.1)).astype(int)
    columns = {
        "id": [f"{i:04d}" for i in range(n)],
        "error": error,
        "x": x,
        "flag": flag,
        "words": words,
    }
    return Evidence.from_table(pl.DataFrame(columns | extra), id="id", outcome="error")


@pytest.mark.parametrize("dataset", ["pub_a", "pub_b"])
def test_the_tree_is_barlow(shared: Path, dataset: str) -> None:
    """Leaves of the reference, numbered by falling importance, as rules."""
    folder = shared / "edisa_public"
    data, out = (np.load(folder / f"{dataset}_{what}.npz") for what in ("input", "_barlow"))
    z, wrong = data["Z_val"], data["P_val"].argmax(axis=1) != data["y_val"]
    frame = pl.DataFrame({f"z_{i}": z[:, i] for i in range(z.shape[1])}).with_columns(
        error=wrong.astype(int)
    )
    table = Evidence.from_table(frame, outcome="error")
    candidates = Library.of(Tree(min_size=1, columns=("z_*",)).propose(table))
    rates = [wrong[out["leaf_member_val"] == leaf].mean() for leaf in range(int(out["n_leaves"]))]
    bad = [leaf for leaf, rate in enumerate(rates) if rate > wrong.mean()]
    assert len(candidates) == len(bad)
    for candidate, leaf in zip(candidates, bad, strict=True):
        inside = frame.select(candidate.parsed.to_polars()).to_series().to_numpy()
        np.testing.assert_array_equal(inside, out["leaf_member_val"] == leaf)


def test_the_tree_finds_what_is_planted() -> None:
    library = check_finder(Tree(), evidence())
    assert all(c.source == "tree" and c.missing == "drop" for c in library)
    first = next(Tree().propose(evidence()))
    assert {"words", "flag"} <= set(first.columns)
    assert '"flag" AND "words" >= ' in first.rule or "flag" in first.name
    on = Marks.of(evidence(), Library.of([first])).counts()[1][0]
    assert 50 < on < 110


def test_the_tree_leaves_out_what_it_cannot_cut() -> None:
    gaps = evidence(
        gap=[None if i % 7 == 0 else float(i % 2) for i in range(600)], text=["a"] * 600
    )
    assert not any("gap" in c.columns or "text" in c.columns for c in Tree().propose(gaps))
    with pytest.raises(InputError, match="'gap' has 86 missing values"):
        list(Tree(columns=("gap",)).propose(gaps))
    with pytest.raises(InputError, match="'text' holds String"):
        list(Tree(columns=("text",)).propose(gaps))
    with pytest.raises(PlanError, match="must be a whole number from 1"):
        Tree(depth=0)
    flawless = Evidence.from_frame(gaps.frame.with_columns(error=0), gaps.roles)
    assert list(Tree().propose(flawless)) == []


def test_confidence_is_the_least_confident_examples() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=400)
    data = evidence(400, **{f"probability_{i}": p[:, i] for i in range(3)})
    library = check_finder(Confidence(), data)
    assert len(library) == 4
    marks = Marks.of(data, Library.of(Confidence().propose(data)))
    assert np.abs(marks.counts()[1] - [20, 40, 100, 200]).max() <= 1
    on = (
        data.frame.select(next(Confidence((0.1,)).propose(data)).parsed.to_polars())
        .to_series()
        .to_numpy()
    )
    assert (on == find_least_confident(p, int(on.sum()))).all()


def test_confidence_needs_columns_of_numbers() -> None:
    with pytest.raises(InputError, match="no attribute is named, or matches"):
        list(Confidence().propose(evidence()))
    lists = evidence(4, probability=[[0.5, 0.5]] * 4)
    with pytest.raises(InputError, match="a column of numbers for each class"):
        list(Confidence().propose(lists))
    with pytest.raises(InputError, match="between 0 and 1"):
        Confidence((0.0,))
    certain = evidence(4, probability_a=[1.0] * 4, probability_b=[0.0] * 4)
    assert list(Confidence().propose(certain)) == []
