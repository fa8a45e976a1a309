"""Single conditions are tested together: the discount on their number, and the level it keeps."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from groundfault.modes.bit_layout import Layout
from groundfault.modes.conditions import list_conditions
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.selection import Selection
from groundfault.modes.single_conditions import JointTest, _find_least
from groundfault.modes.strata import Losses, Strata

Floats = NDArray[np.float64]
LEVEL = 0.10


def make(table: pl.DataFrame, losses: Floats, strata: int = 1) -> tuple[RuleLanguage, Losses]:
    layout = Layout(np.arange(table.height) % strata)
    return RuleLanguage(list_conditions(table), layout, 1), Losses.of(losses, layout)


def draw_flags(rng: np.random.Generator, n: int, columns: int) -> pl.DataFrame:
    return pl.DataFrame({f"c{i}": rng.random(n) < 0.4 for i in range(columns)})


@pytest.mark.parametrize("level", [0.1, 1e-3, 1e-12])
def test_the_least_errors_at_a_bar_are_those_of_the_hypergeometric_distribution(
    level: float,
) -> None:
    units, errors = 115, 41
    for support in (8, 20, 110, 112):
        tails = hypergeom.logsf(np.arange(errors + 1) - 1, units, errors, support)
        # -inf: so many cannot be inside
        reached = np.flatnonzero(tails <= math.log(level))
        expected = reached[0] if len(reached) else errors + 1
        assert _find_least(support, units, errors, math.log(level)) == expected


def test_cuts_of_one_column_cost_far_less_than_their_number() -> None:
    rng = np.random.default_rng(1)
    language, losses = make(
        pl.DataFrame({"length": rng.normal(size=400)}), (rng.random(400) < 0.3).astype(float)
    )
    together, base = JointTest(language, losses, LEVEL), Strata(language.layout, losses)
    ratios = []
    for errors in range(60, 100):
        total, inside = int(losses.values.sum()), 200
        alone = hypergeom.logsf(errors - 1, 400, total, inside) + language.log_cost("single")
        joint = together.log_p_of(inside, errors, total)
        if math.log(0.06) < joint < math.log(0.2):
            ratios.append(alone - joint)
    assert min(ratios) > math.log(1.4)
    mask = language.bits[language.single[0]]
    assert together.log_p(mask) == 0 or base.log_p(mask) < 0


@pytest.mark.parametrize(("strata", "losses"), [(2, [0.0, 1.0]), (1, [0.0, 0.5, 1.0])])
def test_strata_and_graded_losses_pay_for_every_condition(strata: int, losses: list[float]) -> None:
    rng = np.random.default_rng(2)
    values = rng.choice(losses, 200)
    together = JointTest(*make(draw_flags(rng, 200, 5), values, strata), LEVEL)
    assert together.log_p_of(40, 40, 60) == 0


@pytest.mark.parametrize("kind", ["flags", "cuts", "rare"])
def test_the_level_is_kept_and_used(kind: str) -> None:
    worlds, named = 150, 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        table = {
            "flags": draw_flags(rng, 120, 15),
            "cuts": pl.DataFrame({"x": rng.random(120)}),
            "rare": pl.DataFrame({"task": rng.integers(0, 12, 120).astype(str)}),
        }[kind]
        language, losses = make(table, (rng.random(120) < 0.35).astype(float))
        named += bool(Selection(language, losses, LEVEL).select())
    assert binom.sf(named - 1, worlds, LEVEL) > 0.001
    # far below the level, power would be thrown away
    assert binom.cdf(named, worlds, LEVEL / 2) > 0.05


def test_what_is_plain_to_say_pays_less_than_its_negation() -> None:
    rng = np.random.default_rng(3)
    table = draw_flags(rng, 120, 15)
    language, losses = make(table, (rng.random(120) < 0.35).astype(float))
    rules = [ModeRule(((int(i),),), "single") for i in language.single]
    plain, negated = (
        [rule for rule in rules if language.sql(rule).startswith("NOT") is not_so]
        for not_so in (False, True)
    )
    assert len(plain) == len(negated) == 15
    dearer = [
        language.cost_of(b) - language.cost_of(a) for a, b in zip(plain, negated, strict=True)
    ]
    assert min(dearer) == pytest.approx(max(dearer))
    assert min(dearer) > 1
    # at the bar of all, 30 conditions cost those that are plain little more than 15 would
    assert language.log_cost("single") < math.log(1.3 * 15 / language.weights["single"])
    together = JointTest(language, losses, LEVEL)
    handicap = language.handicap_of(negated[0])
    errors = next(k for k in range(48) if together.log_p_of(48, k, 48) <= math.log(LEVEL))
    assert together.log_p_of(48, errors, 48, handicap) > math.log(LEVEL)
