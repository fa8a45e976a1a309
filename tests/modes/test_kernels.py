"""Counting passes over bits, each against plain NumPy on the unpacked rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from groundfault.modes import compiled, kernels
from groundfault.modes.kernels import (
    count_triples,
    guarantee,
    search_triples,
    sum_pairs,
    sum_rows,
)
from groundfault.modes.search import score_counts
from groundfault.stats import bit_kernels, bits as bitset
from groundfault.stats.intervals import wilson

Bools = NDArray[np.bool_]


@dataclass
class World:
    """Random rows of bits with losses in planes and rates in runs, and the same unpacked."""

    words: int
    a: Bools
    b: Bools
    inside: Bools
    planes: Bools
    scale: NDArray[np.float64]
    runs: NDArray[np.int64]
    rates: NDArray[np.float64]

    @property
    def arguments(self) -> tuple[NDArray[np.generic], ...]:
        """What the kernels take after the rows."""
        planes, inside = bitset.pack(self.planes), bitset.pack(self.inside[None])[0]
        return inside, planes, self.scale, self.runs, self.rates

    def sum(self, on: Bools) -> tuple[int, float, float]:
        """Units, losses and expected losses of some bits among those inside."""
        on = on & self.inside
        losses = self.scale @ self.planes
        rate = np.repeat(self.rates, 64 * np.diff(self.runs))
        return int(on.sum()), float(losses[on].sum()), float(rate[on].sum())


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Worlds of one to four words."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    words, planes = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    a, b = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    cuts = sorted(draw(st.sets(st.integers(1, words - 1)))) if words > 1 else []
    runs = np.array([0, *cuts, words])
    density = draw(st.sampled_from([0.05, 0.5, 0.95]))
    return World(
        words,
        rng.random((a, 64 * words)) < density,
        rng.random((b, 64 * words)) < density,
        rng.random(64 * words) < 0.8,
        rng.random((planes, 64 * words)) < 0.4,
        2.0 ** np.arange(planes) / (2.0**planes - 1),
        runs,
        rng.random(len(runs) - 1),
    )


few = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["NumPy", "compiled"], autouse=True)
def _size(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both ways to count, whatever the size."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            patch.setattr(kernels, "_WORTH_COMPILING", 0)
        yield


@few
@given(worlds())
def test_sums_of_pairs_are_of_units_losses_and_rates(world: World) -> None:
    got = sum_pairs(bitset.pack(world.a), bitset.pack(world.b), world.arguments)
    for (i, a), (j, b) in itertools.product(enumerate(world.a), enumerate(world.b)):
        assert got[:, i, j] == pytest.approx(world.sum(a & b), abs=1e-9)
    # where units are known, losses alone are counted, without rates
    *words, rates = world.arguments
    rows = bitset.pack(world.a), bitset.pack(world.b)
    assert np.array_equal(sum_pairs(*rows, (*words, rates[:0]))[1], got[1])


@few
@given(worlds())
def test_sums_of_rows_are_of_units_losses_and_rates(world: World) -> None:
    got = sum_rows(bitset.pack(world.a), world.arguments)
    assert pytest.approx(np.array([world.sum(a) for a in world.a]), abs=1e-9) == got.T


@few
@given(st.integers(1, 500), st.floats(0, 1), st.floats(0, 1), st.floats(0.5, 5))
def test_the_guarantee_is_wilsons_lower_end_less_what_is_expected(
    units: int, share: float, base: float, z: float
) -> None:
    losses, expected = round(share * units), base * units
    level = 2 * norm.cdf(z) - 1
    low = wilson(losses, units, float(level))[0]
    got = guarantee(np.float64(units), np.float64(losses), np.float64(expected), z, 0.15)
    assert got == pytest.approx((low - base) * units**0.15, abs=1e-6)
    arrays = score_counts(np.array([units]), np.array([losses]), np.array([expected]), z)
    assert arrays[0] == pytest.approx(float(got), abs=1e-12)
    assert compiled.guarantee(units, losses, expected, z, 0.15) == pytest.approx(float(got))


def test_nothing_guarantees_nothing() -> None:
    assert guarantee(np.zeros(1), np.zeros(1), np.zeros(1), 2.0, 0.15) < -1
    assert compiled.guarantee(0.0, 0.0, 0.0, 2.0, 0.15) < -1
    assert score_counts(np.zeros(1), np.zeros(1), np.zeros(1), 2.0)[0] < -1


def list_triples(rows: Bools, pairs: Bools, least: int) -> dict[tuple[int, int, int], Bools]:
    """Triples that are rules, by hand."""
    triples = {}
    for i, j, k in itertools.combinations(range(len(rows)), 3):
        couples = ((i, j), (i, k), (j, k))
        on = rows[i] & rows[j] & rows[k]
        smallest = min((rows[a] & rows[b]).sum() for a, b in couples)
        if all(pairs[c] for c in couples) and least <= on.sum() < smallest:
            triples[i, j, k] = on
    return triples


@few
@given(worlds(), st.integers(1, 12), st.integers(0, 2**32))
def test_triples_are_counted_and_the_best_third_is_the_best(
    world: World, least: int, seed: int
) -> None:
    rows = np.concatenate([world.a, world.b])
    pairs = np.random.default_rng(seed).random((len(rows), len(rows))) < 0.8
    pairs = pairs | pairs.T
    support = rows.astype(np.int64) @ rows.T.astype(np.int64)
    triples = list_triples(rows, pairs, least)
    packed = bitset.pack(rows)
    assert count_triples(packed, pairs, support, least) == len(triples)
    best, third = search_triples(packed, pairs, support, least, world.arguments, z=1.5, gamma=0.15)
    scores = {
        t: float(guarantee(*map(np.float64, world.sum(on)), 1.5, 0.15)) for t, on in triples.items()
    }
    for i, j in itertools.combinations(range(len(rows)), 2):
        here = {k: s for (a, b, k), s in scores.items() if (a, b) == (i, j) and s > -9}
        if not here:
            assert third[i, j] == -1
            continue
        assert best[i, j] == pytest.approx(max(here.values()), abs=1e-9)
        assert here[int(third[i, j])] == pytest.approx(best[i, j], abs=1e-9)


def test_sums_of_pairs_that_fill_the_cache_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((3, 64 * 200)) < 0.5, rng.random((700, 64 * 200)) < 0.5
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    assert b.size // 64 / 3 > bit_kernels._CACHED
    everything = np.full(200, ~np.uint64(0))
    one = (everything[None], np.ones(1), np.array([0, 90, 200]), np.array([0.25, 0.5]))
    units, losses, expected = sum_pairs(bitset.pack(a), bitset.pack(b), (everything, *one))
    early = a[:, : 64 * 90].astype(int) @ b[:, : 64 * 90].T
    assert (units == a.astype(int) @ b.T).all()
    assert (losses == units).all()
    assert np.array_equal(expected, 0.25 * early + 0.5 * (units - early))
