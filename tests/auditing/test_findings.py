"""Estimates of confirmed effects: they cover what is true although they had to pass a bar."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from audit_tables import audit_planted_table, make_planted_results, make_planted_table

import groundfault
from groundfault import Candidate, Evidence, Plan, judges
from groundfault.auditing.assemble import assemble
from groundfault.auditing.findings import make_cells, make_estimates
from groundfault.auditing.flow import judge_audit
from groundfault.auditing.report import Report
from groundfault.core.finding import Cell, Estimate
from groundfault.stats import bits

LIFT = 0.06


def repeat_audit(judge: str, n: int, replicates: int) -> list[tuple[Cell, Estimate]]:
    """Confirmed numbers of one slice whose true lift is `LIFT`, beside null candidates."""
    audit = audit_planted_table(Plan(judge=judge, min_lift="0.02"), n)
    on = bits.unpack(audit.marks.on[:1], n)[0]
    rate = 0.3 + LIFT * (on - on.mean())
    base = judge_audit(audit, ledger=None, modes=False)
    confirmed = []
    for seed in range(replicates):
        losses = (np.random.default_rng([1, seed]).random((1, n)) < rate).astype(float)
        parts = zip(("ruling", "discovery", "holdout"), audit.judge_losses(losses), strict=True)
        results = replace(base, losses=losses, **dict(parts))
        cells = make_cells(results)
        deciding = cells["holdout"] or cells["full"] or []
        estimate = make_estimates(results, deciding).get(0)
        if estimate is not None and (deciding[0].lift or 0) > 0:
            confirmed.append((deciding[0], estimate))
    return confirmed


@pytest.mark.parametrize("judge", [pytest.param("split-holm", marks=pytest.mark.slow), "holm"])
def test_confirmed_effects_are_covered_where_ordinary_intervals_are_not(judge: str) -> None:
    confirmed = repeat_audit(judge, 300, 400)
    assert len(confirmed) >= 30
    covered = [e.interval[0] <= LIFT <= e.interval[1] for _, e in confirmed]
    assert np.mean(covered) >= 0.9 - 2 * (0.09 / len(covered)) ** 0.5
    ordinary = [c.interval[0] <= LIFT <= c.interval[1] for c, _ in confirmed if c.interval]
    assert np.mean(ordinary) < 0.8
    # what is printed is nearer to the truth than what was observed
    observed = np.array([c.lift for c, _ in confirmed], dtype=float)
    corrected = np.array([e.effect for _, e in confirmed])
    assert np.abs(corrected.mean() - LIFT) < np.abs(observed.mean() - LIFT) / 2


@pytest.mark.parametrize("judge", judges.NAMES)
def test_every_judge_that_ships_says_what_it_asks_for(judge: str) -> None:
    results = make_planted_results(Plan(judge=judge, permutations=199, splits=10))
    report = assemble(results)
    assert report.confirmed
    for finding in report.confirmed:
        cell = finding.holdout or finding.full
        assert finding.estimate is not None
        low, high = finding.estimate.interval
        assert low <= finding.estimate.effect <= high
        assert abs(finding.estimate.effect) <= abs(cell.lift or 0) + 1e-9
        # the direction is what was confirmed; janus-a and janus-lite ask for no p-value
        if judge not in ("janus-a", "janus-lite"):
            assert low >= 0 or high <= 0
        # a large effect far above its bar is hardly corrected
        assert abs(finding.estimate.effect) > 0.8 * abs(cell.lift or 0)


def estimates_of(table: pl.DataFrame, rule: str, effect: str = "risk_difference") -> Report:
    evidence = Evidence.from_table(table, id="id", outcome="error")
    plan = Plan(judge="split-holm", effect=effect, min_lift="0.05")
    return groundfault.audit(evidence, plan, [Candidate("a", rule)], modes=False, ledger=None)


def test_the_other_side_has_the_mirrored_estimate() -> None:
    table = make_planted_table()
    column = next(name for name in table.columns if table[name].dtype == pl.Boolean)
    on, off = (estimates_of(table, rule).findings[0].estimate for rule in (column, f"NOT {column}"))
    assert on is not None
    assert off is not None
    assert off.effect == pytest.approx(-on.effect)
    assert off.interval == pytest.approx((-on.interval[1], -on.interval[0]))


def test_ratios_are_corrected_on_the_scale_of_logarithms() -> None:
    table = make_planted_table()
    column = next(name for name in table.columns if table[name].dtype == pl.Boolean)
    finding = estimates_of(table, column, "risk_ratio").findings[0]
    assert finding.estimate is not None
    assert finding.holdout is not None
    assert finding.holdout.interval is not None
    low, high = finding.estimate.interval
    assert 1.0 <= low <= finding.estimate.effect <= high
    assert high == pytest.approx(finding.holdout.interval[1])
    assert low <= finding.holdout.interval[0]


@dataclass(frozen=True)
class Silent:
    """Holm, but it does not say what it asks for."""

    name: str = "silent"
    confirmation: str = "none"
    lift_ranked: bool = False
    distinct: bool = True

    def screen(self, *args):  # type: ignore[no-untyped-def]
        return judges.get("holm").screen(*args)


def test_of_a_judge_that_does_not_say_what_it_asks_for_nothing_is_corrected_or_promised() -> None:
    results = make_planted_results(Plan(judge=Silent()))
    assert results.bar is None
    assert make_estimates(results, make_cells(results)["full"] or []) == {}
    report = assemble(results)
    assert report.minimum_detectable_lift is None
    assert report.power.minimum_detectable_lift == {}
    assert "does not state its bar" in report.conclusion
    assert "not corrected for selection" in report.confirmed[0].sentence


def test_nothing_is_estimated_of_what_is_not_confirmed() -> None:
    results = make_planted_results(Plan(judge="holm"))
    verdicts = tuple(groundfault.Verdict.BELOW_FLOOR for _ in results.ruling.verdicts)
    results = replace(results, ruling=replace(results.ruling, verdicts=verdicts))
    assert make_estimates(results, make_cells(results)["full"] or []) == {}


def test_the_parts_add_up() -> None:
    cells = make_cells(make_planted_results())
    rows = zip(cells["discovery"] or (), cells["holdout"] or (), cells["full"] or (), strict=True)
    for discovery, holdout, full in rows:
        for key in ("on", "off", "on_errors", "off_errors"):
            parts = getattr(discovery, key) + getattr(holdout, key)
            assert parts == getattr(full, key)
        assert full.lift == pytest.approx(full.on_rate - full.off_rate)
        assert full.p is None, "no test was made on both parts together"


@pytest.mark.parametrize("effect", ["risk_difference", "risk_ratio", "odds_ratio"])
def test_an_interval_holds_its_estimate(effect: str) -> None:
    cells = make_cells(make_planted_results(Plan(effect=effect)))  # type: ignore[arg-type]
    for cell in cells["full"] or ():
        on, off = cell.on_rate, cell.off_rate
        assert cell.interval is not None
        assert on is not None
        assert off is not None
        odds = (on / (1 - on)) / (off / (1 - off))
        estimate = {"risk_difference": on - off, "risk_ratio": on / off, "odds_ratio": odds}
        assert cell.interval[0] < estimate[effect] < cell.interval[1]


def test_nothing_held_out_has_no_holdout() -> None:
    cells = make_cells(make_planted_results(Plan(judge="max-t", permutations=99)))
    assert cells["holdout"] is None
    assert cells["full"] is cells["discovery"]
