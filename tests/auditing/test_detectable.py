"""Detectable lifts: larger samples find smaller lifts, and rarer slices larger ones."""

from __future__ import annotations

import numpy as np
import pytest
from audit_tables import make_planted_results

from groundfault import Plan
from groundfault.auditing.detectable import ChangeDesign, make_designs, minimum_detectable_lifts
from groundfault.core.pairs import Pairs
from groundfault.core.units import Marks
from groundfault.judges import get
from groundfault.judges.rule import rule
from groundfault.stats import bits


def detectable(n: int, judge: str = "split-holm") -> dict[float, float | None]:
    results = make_planted_results(Plan(judge=judge), n)
    holdout = len(results.holdout) if results.holdout else 0
    audit = results.audit
    designs = make_designs(audit.judge, audit.plan, results.discovery, holdout, results.bar)
    return minimum_detectable_lifts(designs, n)


def test_more_units_find_smaller_lifts() -> None:
    few, many = detectable(200), detectable(2000)
    assert few[0.3] is not None
    assert many[0.3] is not None
    assert many[0.3] < few[0.3]


def test_rare_slices_need_larger_lifts() -> None:
    lifts = detectable(1000, "holm")
    sizes = [np.inf if lift is None else lift for lift in lifts.values()]
    assert list(lifts) == [0.1, 0.3, 0.5]
    assert sizes[0] > sizes[1] >= sizes[2]


def draw_pairs(rng: np.random.Generator, n: int, change: float, candidates: int) -> Pairs:
    """A first slice of 30 % that got worse, and others that did not."""
    on = np.vstack([np.arange(n) < 0.3 * n, rng.random((candidates - 1, n)) < 0.3])
    first, second = rng.random((2, n)) < 0.2
    # what is added shows where the second model would have passed
    second |= on[0] & (rng.random(n) < change / 0.8)
    marks = Marks(n, bits.pack(on), None, ("",) * candidates)
    return Pairs.of_models(marks, np.vstack([first, second]).astype(float))


@pytest.mark.parametrize(("judge", "n"), [("max-t", 600), ("holm", 600), ("split-holm", 2000)])
def test_the_stated_change_is_found_four_times_in_five(judge: str, n: int) -> None:
    plan = Plan(judge=judge, permutations=199)
    one = get(judge)
    plan = plan.resolve(lift_ranked=one.lift_ranked, gated=one.confirmation != "none")
    rng = np.random.default_rng(0)
    held = one.confirmation != "none"
    half = np.arange(n) % 2 == 0
    hits, worlds, least = 0, 120, []
    for _ in range(worlds):
        calm = draw_pairs(rng, n, 0.0, 8)
        discovery = calm.take(np.flatnonzero(half)) if held else calm
        stated = ChangeDesign.of(plan, discovery, n // 2 if held else 0, 8).least_change(0.3 * n)
        assert stated is not None
        least.append(stated)
        world = draw_pairs(rng, n, stated, 8)
        parts = [world.take(np.flatnonzero(x)) for x in (half, ~half)] if held else [world, None]
        ruling = rule(one, plan, parts[0], parts[1], world.marks)
        hits += ruling.verdicts[0] == "confirmed"
    assert 0.7 <= hits / worlds <= 0.93, (hits / worlds, np.mean(least))


@pytest.mark.parametrize("units", [150, 400])
def test_the_stated_change_of_graded_losses_is_found(units: int) -> None:
    """Losses of five repeats: changes of several sizes, on which bets are made."""
    rng = np.random.default_rng(1)
    n, worlds = 5 * units, 100
    marks = Marks(n, bits.pack(np.arange(n)[None] < units), None, ("",))
    plan = Plan(judge="holm").resolve(lift_ranked=False, gated=False)
    hits = 0
    for _ in range(worlds):
        rate = rng.beta(1, 3, n)
        first, calm = (rng.binomial(5, rate) / 5 for _ in range(2))
        pairs = Pairs.of_models(marks, np.vstack([first, calm]))
        stated = ChangeDesign.of(plan, pairs, 0, 1).least_change(units)
        assert stated is not None
        worse = np.where(np.arange(n) < units, np.clip(rate + stated, 0, 1), rate)
        second = rng.binomial(5, worse) / 5
        changed = Pairs.of_models(marks, np.vstack([first, second]))
        hits += rule(get("holm"), plan, changed, None, marks).verdicts[0] == "confirmed"
    assert 0.7 <= hits / worlds <= 0.97, hits / worlds


def test_more_units_find_less() -> None:
    design = ChangeDesign(churn=0.2, level=0.01, least=0.0, holdout=0.0)
    changes = [design.least_change(units) for units in (50, 200, 1000, 10_000)]
    assert None not in changes
    assert changes == sorted(changes, reverse=True)
    assert design.least_change(2) is None
    assert ChangeDesign(0.0, 0.01, 0.1, 0.0).least_change(10_000) == pytest.approx(0.1, abs=0.02)
    assert design.power(0.0, 0.5) == 0.0
    assert list(design.by_prevalence(1000)) == [0.1, 0.3, 0.5]
