"""Suspicion: what is left out, how many are suspected, and chances that are chances."""

from __future__ import annotations

import numpy as np
import pytest
from planted_tables import make_clusters

from groundfault_lab.slicing.edisa import Edisa
from groundfault_lab.slicing.suspicion import Suspicion

RNG = np.random.default_rng(5)
SHARES = RNG.dirichlet(np.full(4, 0.3), 120)
WRONG = RNG.random(120) < 0.1 + 0.6 * SHARES[:, 0]
PROBABILITY = np.column_stack([1 - WRONG * 0.2 - 0.3 * RNG.random(120), np.zeros(120)])
PROBABILITY[:, 1] = 1 - PROBABILITY[:, 0]


def fit(shares: np.ndarray, wrong: np.ndarray, error_slices: list[int]) -> Suspicion:
    slices = np.array(error_slices, dtype=np.int64)
    return Suspicion.fit(lambda: np.array_split(shares, 3), PROBABILITY, wrong, slices)


def test_an_example_does_not_count_towards_its_own_rate() -> None:
    from sklearn.linear_model import LogisticRegression

    suspicion = fit(SHARES, WRONG, [0])
    rates = np.empty(120)
    for i in range(120):
        others = np.arange(120) != i
        mass = WRONG[others] @ SHARES[others] + 2 * WRONG.mean()
        rates[i] = SHARES[i] @ (mass / (SHARES[others].sum(axis=0) + 2))
    features = np.column_stack([rates, 1 - PROBABILITY.max(axis=1)])
    regression = LogisticRegression().fit(np.log(features / (1 - features)), WRONG)
    np.testing.assert_allclose(suspicion.slopes, regression.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(suspicion.intercept, regression.intercept_[0], rtol=1e-6)
    chance = suspicion.predict(rates, PROBABILITY)
    assert (chance >= suspicion.threshold - 1e-9).sum() == (SHARES.argmax(axis=1) == 0).sum()


def test_slices_that_say_nothing_leave_confidence() -> None:
    suspicion = fit(np.full((120, 4), 0.25), WRONG, [0])
    _, confidence = suspicion.slopes
    assert confidence > 0.5
    order = suspicion.predict(np.full(120, WRONG.mean()), PROBABILITY)
    assert (np.diff(order[np.argsort(PROBABILITY.max(axis=1))]) <= 0).all()


def test_without_error_slices_nothing_is_suspected() -> None:
    suspicion = fit(SHARES, WRONG, [])
    assert (suspicion.predict(np.full(120, 0.99), PROBABILITY) < suspicion.threshold).all()


@pytest.fixture(scope="module")
def fresh() -> tuple[Edisa, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    z, y, p = make_clusters(1500)
    slicer = Edisa(n_slices=24).fit(z[:1000], y[:1000], p[:1000])
    return slicer, (z[1000:], p[1000:], p[1000:].argmax(axis=1) != y[1000:])


def test_chances_of_errors_are_chances(
    fresh: tuple[Edisa, tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    slicer, (z, p, wrong) = fresh
    prone, chance = slicer.suspect(z, p)
    assert chance.mean() == pytest.approx(wrong.mean(), abs=0.05)
    high = chance > np.median(chance)
    assert chance[high].mean() == pytest.approx(wrong[high].mean(), abs=0.08)
    assert chance[prone].min() >= chance[~prone].max()


def test_as_many_are_suspected_as_lie_in_error_slices(
    fresh: tuple[Edisa, tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> None:
    slicer, (z, p, _) = fresh
    in_error_slices = np.isin(slicer.predict(z, p), slicer.error_slices_)
    prone = slicer.error_prone(z, p)
    assert prone.mean() == pytest.approx(in_error_slices.mean(), abs=0.05)
    assert (prone != in_error_slices).any()
