"""Detectable lifts: larger samples find smaller lifts, and rarer slices larger ones."""

from __future__ import annotations

import numpy as np
from audit_tables import make_planted_results

from groundfault import Plan
from groundfault.auditing.detectable import make_designs, minimum_detectable_lifts


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
