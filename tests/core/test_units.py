"""Units: rows of a group become one unit, and candidates are marks over units."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.units import Marks, Units, average_losses, classify_sizes, count_scored_rows
from groundfault.errors import RuleError
from groundfault.stats import bits

FRAME = pl.DataFrame(
    {
        "id": list("abcdef"),
        "group": ["g", "g", "h", "h", "k", "k"],
        "error": [1.0, 0.0, 1.0, 1.0, None, 0.0],
        "x": [1, 1, 2, 2, None, 3],
        "y": [1, 2, 1, 1, 1, 1],
    }
)


def evidence(group: str | None = "group") -> Evidence:
    return Evidence.from_table(FRAME, id="id", group=group, outcome="error", null_outcome="missing")


def test_losses_are_means_over_scored_rows() -> None:
    np.testing.assert_allclose(average_losses(evidence()), [[0.5, 1.0, 0.0]])
    np.testing.assert_array_equal(count_scored_rows(evidence()), [2, 2, 1])
    assert classify_sizes(np.array([2, 3, 2])) is None
    np.testing.assert_array_equal(classify_sizes(np.array([1, 2, 3, 4])), [1, 2, 2, 3])


@pytest.mark.parametrize(
    ("missing", "reason", "on", "defined"),
    [
        ("reject", "missing", [False, True, False], None),
        ("off", "varies_within_group", [False, True, False], None),
        ("drop", "varies_within_group", [False, True, False], [True, True, False]),
    ],
)
def test_a_missing_value_counts_as_the_candidate_says(
    missing: str, reason: str, on: list[bool], defined: list[bool] | None
) -> None:
    library = Library.of([Candidate("a", "x >= 2", missing=missing)])  # type: ignore[arg-type]
    marks = Marks.of(evidence(), library)
    assert marks.unusable == (reason,)
    assert bits.unpack(marks.on, 3)[0].tolist() == on
    assert (None if marks.valid is None else bits.unpack(marks.valid, 3)[0].tolist()) == defined


def test_a_candidate_that_varies_within_a_group_cannot_be_tested() -> None:
    assert Marks.of(evidence(), Library.of([Candidate("a", "y = 2")])).unusable == (
        "varies_within_group",
    )
    assert Marks.of(evidence(None), Library.of([Candidate("a", "y = 2")])).unusable == ("",)


def test_a_rule_that_is_not_true_or_false_is_refused() -> None:
    with pytest.raises(RuleError, match="is Int64, not true or false; compare it"):
        Marks.of(evidence(), Library.of([Candidate("a", "x + y")]))
    with pytest.raises(RuleError, match="which the evidence does not have"):
        Marks.of(evidence(), Library.of([Candidate("a", "z = 1")]))


def draw(seed: int = 0, *, gaps: bool = False) -> tuple[Units, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    on, losses = rng.random((4, 70)) < 0.4, rng.integers(0, 2, (2, 70)).astype(float)
    if gaps:
        losses[rng.random(losses.shape) < 0.2] = np.nan
    return Units.of(Marks(70, bits.pack(on), None, ("",) * 4), losses), on, losses


@pytest.mark.parametrize("gaps", [False, True])
def test_tables_are_counts_and_sums(gaps: bool) -> None:
    units, on, losses = draw(gaps=gaps)
    assert units.shape == (4, 2)
    for j in range(4):
        for o in range(2):
            h, present = j * 2 + o, ~np.isnan(losses[o])
            tables = units.tables[np.array([h])]
            assert tables.n[0] == present.sum()
            assert tables.on[0] == (on[j] & present).sum()
            assert tables.on_sum[0] == np.nansum(losses[o][on[j]])
            assert tables.total[0] == np.nansum(losses[o])
            np.testing.assert_array_equal(units.population(h), present)


def test_parts_of_units() -> None:
    units, _, _ = draw()
    some = np.array([5, 3, 60])
    part = units.take(some)
    assert len(part) == 3
    np.testing.assert_array_equal(part.losses, units.losses[:, some])
    mask = np.zeros(70, dtype=np.bool_)
    mask[some] = True
    masked, again = units.select_units(mask).tables, units.take(np.sort(some)).tables
    np.testing.assert_array_equal(masked.on_sum, again.on_sum)
    np.testing.assert_array_equal(masked.n, again.n)
    np.testing.assert_array_equal(
        units.select(np.array([2])).tables.on, units.tables[np.array([4, 5])].on
    )


def test_redrawn_sums_have_the_expected_mean() -> None:
    units, _, _ = draw()
    hypotheses = np.arange(8)
    sums = np.zeros(8)
    for positions, expected, part in units.redraw(hypotheses, 4000, np.random.default_rng(1)):
        assert part.shape[1] == len(positions)
        sums[positions] += part.sum(axis=0)
        # three standard errors of a mean of 4,000 sums whose deviation is at most 2.1
        assert (
            np.abs(expected - units.tables.on[positions] * units.tables.total[positions] / 70).max()
            < 1e-9
        )
    means = sums / 4000
    expected = units.tables.on * units.tables.total / 70
    assert np.abs(means - expected).max() < 3 * 2.1 / np.sqrt(4000) + 0.05
