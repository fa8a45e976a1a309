"""Counted units answer as units do, as far as counts tell."""

from __future__ import annotations

import numpy as np

from groundfault.core.counted_units import CountedMarks, CountedUnits
from groundfault.core.units import Marks, Units
from groundfault.stats import bits
from groundfault.stats.loss_counts import LossCounts


def make_both() -> tuple[Units, CountedUnits]:
    rng = np.random.default_rng(3)
    on = rng.random((4, 200)) < 0.4
    loss = (rng.random((1, 200)) < 0.3).astype(np.float64)
    loss[0, :7] = np.nan
    units = Units.of(Marks(200, bits.pack(on), None, ("",) * 4), loss)
    n, n_on = units.marks.counts()
    marks = CountedMarks(
        200,
        np.zeros((4, 0), dtype=np.uint64),
        None,
        ("",) * 4,
        n=n,
        n_on=n_on,
        first=np.arange(4),
        is_mirrored=np.array([False, True, False, True]),
    )
    scored = ~np.isnan(loss[0])
    of_loss = [scored & (loss[0] == value) for value in (0, 1)]
    rows = np.array([where.sum() for where in of_loss])
    counts = LossCounts(
        np.array([0.0, 1.0]),
        rows,
        np.repeat(rows[:, None], 4, axis=1),
        np.stack([(on & where).sum(axis=1) for where in of_loss]),
    )
    return units, CountedUnits.of_counts(marks, counts)


def test_they_have_the_same_counts() -> None:
    units, counted = make_both()
    assert len(counted) == len(units)
    assert counted.shape == units.shape
    assert counted.describe_losses() == units.describe_losses()
    np.testing.assert_array_equal(counted.tables.lift, units.tables.lift)
    np.testing.assert_array_equal(counted.support, units.support)
    np.testing.assert_array_equal(counted.marks.counts(), units.marks.counts())
    hypotheses = np.arange(4)
    ours, theirs = (each.null_distributions(hypotheses, pooled=True) for each in (counted, units))
    np.testing.assert_array_equal(ours[2], theirs[2])
    assert counted.gaps is None


def test_copies_are_told_from_complements() -> None:
    marks = make_both()[1].marks
    assert marks.are_same(0, 2)
    assert not marks.are_same(0, 1)


def test_a_null_world_keeps_all_margins_and_its_lifts_vary_as_under_permutation() -> None:
    units, counted = make_both()
    rng = np.random.default_rng(0)
    worlds = [counted.shuffle(rng).tables for _ in range(2000)]
    for tables in worlds:
        np.testing.assert_array_equal(tables.n, units.tables.n)
        np.testing.assert_array_equal(tables.total, units.tables.total)
    n, on, rate = units.tables.n, units.tables.on, units.tables.total / units.tables.n
    # of a mean of some of a finite population minus that of the rest
    expected = np.sqrt(rate * (1 - rate) * n * n / (n - 1) / (on * (n - on)))
    lifts = np.array([tables.lift for tables in worlds])
    np.testing.assert_allclose(lifts.std(axis=0), expected, rtol=0.06)
    np.testing.assert_allclose(lifts.mean(axis=0), 0, atol=0.006)
