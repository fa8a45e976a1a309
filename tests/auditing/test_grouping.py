"""Grouping: proxies go under the finding that explains them, separate failure modes do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import groundfault
from groundfault import Evidence
from groundfault.stats import contingency


def table(seed: int, latent: float, own: float, n: int = 800) -> pl.DataFrame:
    """Errors that go with ``cause``, and by ``own`` with a slice that overlaps it."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    cause, other = z < -0.5, latent * z + np.sqrt(1 - latent**2) * rng.normal(size=n) < -0.5
    rate = 0.15 + (0.5 if own == 0 else 0.3) * cause + own * other
    return pl.DataFrame(
        {"cause": cause, "other": other, "error": (rng.random(n) < rate).astype(int)}
    )


def run_audit(frame: pl.DataFrame) -> dict[str, str | None]:
    """The confirmed findings and the lead of each."""
    return {
        f.name: f.representative
        for f in groundfault.audit(
            Evidence.from_table(frame, outcome="error"), modes=False
        ).confirmed
    }


def test_a_proxy_goes_under_what_explains_it() -> None:
    leads = [run_audit(table(seed, 0.6, 0.0)) for seed in range(12)]
    both = [result for result in leads if len(result) == 2]
    assert len(both) >= 9
    assert all(result["cause"] is None for result in both)
    assert sum(result["other"] == "cause" for result in both) >= 0.8 * len(both)


@pytest.mark.parametrize("latent", [0.0, 0.6])
def test_separate_failure_modes_stay_apart(latent: float) -> None:
    leads = [run_audit(table(seed, latent, 0.3)) for seed in range(12)]
    both = [result for result in leads if len(result) == 2]
    assert len(both) >= 9
    assert sum(any(result.values()) for result in both) <= 1


def test_slices_that_overlap_are_grouped_whatever_explains_them() -> None:
    leads = [run_audit(table(seed, 0.95, 0.3)) for seed in range(5)]
    assert all(sorted(map(bool, result.values())) == [False, True] for result in leads)


def test_units_that_lack_a_value_of_the_lead_are_alike() -> None:
    rng = np.random.default_rng(0)
    missing = rng.random(900) < 1 / 3
    cause = rng.random(900) < 0.4
    other = np.where(missing, rng.random(900) < 0.4, cause ^ (rng.random(900) < 0.3))
    # as many errors where it is missing as elsewhere: else it would be missing by outcome
    rate = np.where(missing, 0.38, 0.1 + 0.7 * cause)
    frame = pl.DataFrame(
        {"cause": cause.astype(int), "other": other, "error": (rng.random(900) < rate).astype(int)}
    )
    frame = frame.with_columns(
        pl.when(pl.Series(missing)).then(None).otherwise("cause").alias("cause")
    )
    candidate = groundfault.Candidate("cause", "cause = 1", missing="drop")
    other = groundfault.Candidate("other", "other")
    result = groundfault.audit(
        Evidence.from_table(frame, outcome="error"), candidates=[candidate, other]
    ).confirmed
    assert {f.name: f.representative for f in result} == {"cause": None, "other": "cause"}


def test_a_lift_within_strata_is_that_of_mantel_and_haenszel() -> None:
    stratified_table = pytest.importorskip("statsmodels.stats.contingency_tables").StratifiedTable
    rng = np.random.default_rng(1)
    strata = rng.integers(0, 3, 300)
    on = rng.random(300) < 0.2 + 0.2 * strata
    losses = (rng.random(300) < 0.1 + 0.2 * strata + 0.1 * on).astype(int)
    cells = [
        [[np.sum((strata == s) & (on == a) & (losses == b)) for b in (1, 0)] for a in (True, False)]
        for s in range(3)
    ]
    (lift,), (z,) = contingency.lift(on[None], losses, strata)
    expected = stratified_table([np.array(c) for c in cells]).test_null_odds(correction=False)
    assert z**2 == pytest.approx(expected.statistic)
    weights = [(a + b) * (c + d) / (a + b + c + d) for (a, b), (c, d) in cells]
    differences = [a / (a + b) - c / (c + d) for (a, b), (c, d) in cells]
    assert lift == pytest.approx(np.average(differences, weights=weights))


@given(st.integers(0, 10_000), st.integers(2, 30))
def test_one_stratum_gives_the_plain_lift(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    on, losses = rng.random((3, n)) < 0.5, rng.random(n)
    defined = rng.random((3, n)) < 0.8
    effects, z = contingency.lift(on & defined, losses, np.zeros(n, dtype=np.int64), defined)
    for row, there, lift in zip(on, defined, effects, strict=True):
        sides = losses[row & there], losses[~row & there]
        assert lift == pytest.approx(
            sides[0].mean() - sides[1].mean() if all(map(len, sides)) else 0.0
        )
    alone, _ = contingency.lift(on, losses, np.arange(n))
    assert (alone == 0).all()
    assert np.isfinite(z).all()
