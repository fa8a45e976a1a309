"""Single conditions are tested together: the discount on their number, and the level it keeps."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from groundfault.modes.language import RuleLanguage
from groundfault.modes.layout import Layout
from groundfault.modes.literals import list_literals
from groundfault.modes.selection import Selection
from groundfault.modes.single_conditions import _tabulate, compute_discount
from groundfault.modes.strata import Losses

Floats = NDArray[np.float64]
LEVEL = 0.10


def make(table: pl.DataFrame, losses: Floats, strata: int = 1) -> tuple[RuleLanguage, Losses]:
    layout = Layout(np.arange(table.height) % strata)
    return RuleLanguage(list_literals(table), layout, 1), Losses.of(losses, layout)


def draw_flags(rng: np.random.Generator, n: int, columns: int) -> pl.DataFrame:
    return pl.DataFrame({f"c{i}": rng.random(n) < 0.4 for i in range(columns)})


def test_tails_are_those_of_the_hypergeometric_distribution() -> None:
    support, units, errors = np.array([8, 20, 110, 112]), 115, 41
    tails = _tabulate(support, units, errors)
    expected = hypergeom.logsf(np.arange(errors + 1) - 1, units, errors, support[:, None])
    possible = np.isfinite(expected)
    np.testing.assert_allclose(tails[possible], expected[possible], atol=1e-9)
    assert (tails[~possible] == -np.inf).all()


def test_cuts_of_one_column_cost_far_less_than_their_number() -> None:
    rng = np.random.default_rng(1)
    losses = (rng.random(400) < 0.3).astype(float)
    cuts, rows = make(pl.DataFrame({"length": rng.normal(size=400)}), losses)
    flags, _ = make(draw_flags(rng, 400, 20), losses)
    assert compute_discount(cuts, rows, LEVEL) > math.log(2)
    assert 0 <= compute_discount(flags, rows, LEVEL) < compute_discount(cuts, rows, LEVEL)


@pytest.mark.parametrize(("strata", "losses"), [(2, [0.0, 1.0]), (1, [0.0, 0.5, 1.0])])
def test_strata_and_graded_losses_pay_for_every_condition(strata: int, losses: list[float]) -> None:
    rng = np.random.default_rng(2)
    values = rng.choice(losses, 200)
    assert compute_discount(*make(draw_flags(rng, 200, 5), values, strata), LEVEL) == 0


@pytest.mark.parametrize("kind", ["flags", "cuts"])
def test_the_level_is_kept_and_used(kind: str) -> None:
    worlds, named = 200, 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        table = (
            draw_flags(rng, 120, 15) if kind == "flags" else pl.DataFrame({"x": rng.random(120)})
        )
        language, losses = make(table, (rng.random(120) < 0.35).astype(float))
        named += bool(Selection(language, losses, LEVEL).select())
    assert binom.cdf(named - 1, worlds, LEVEL) < 0.999
    # far below the level, a third of it at most, power would be thrown away
    assert binom.sf(named, worlds, LEVEL / 3) < 0.5
