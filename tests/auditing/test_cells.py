"""Cells: counts, lifts, p-values and intervals of each part."""

from __future__ import annotations

import pytest
from audit_tables import make_planted_results

from groundfault import Plan
from groundfault.auditing.cells import make_cells


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
