"""The saddlepoint approximation against random draws."""

from __future__ import annotations

import numpy as np
import pytest

from groundfault.stats.null_kernels import saddlepoint


@pytest.mark.parametrize("shape", ["lognormal", "beta", "mostly zero"])
def test_saddlepoint_tails_are_those_of_draws(shape: str) -> None:
    rng = np.random.default_rng(3)
    values = {
        "lognormal": rng.lognormal(size=200) / 20,
        "beta": rng.beta(0.4, 1.2, 200),
        "mostly zero": np.where(rng.random(200) < 0.7, 0, rng.random(200)),
    }[shape]
    k = 40
    sums = np.sort([values[rng.permutation(200)[:k]].sum() for _ in range(40_000)])
    start, step, pmf = saddlepoint(values, k)
    atoms = start + step * np.arange(len(pmf))
    assert pmf.sum() == pytest.approx(1, abs=1e-9)
    for share in (0.2, 0.05, 0.01):
        for tail, edge in (
            (lambda x: pmf[atoms >= x].sum(), 1 - share),
            (lambda x: pmf[atoms <= x].sum(), share),
        ):
            bar = sums[int(edge * len(sums))]
            assert tail(bar) == pytest.approx(share, rel=0.12)


@pytest.mark.parametrize("k", [0, 5])
def test_a_sum_without_spread_is_one_atom(k: int) -> None:
    start, _, pmf = saddlepoint(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), k)
    assert start == pytest.approx(1.5 * k / 5)
    assert pmf.tolist() == [1.0]


def test_mean_and_variance_are_those_of_sampling_without_replacement() -> None:
    values, k = np.random.default_rng(0).random(60), 20
    start, step, pmf = saddlepoint(values, k)
    sums = start + step * np.arange(len(pmf))
    mean = pmf @ sums
    assert mean == pytest.approx(k * values.mean(), rel=1e-3)
    variance = k * (60 - k) / 59 * values.var()
    assert pmf @ (sums - mean) ** 2 == pytest.approx(variance, rel=0.03)
