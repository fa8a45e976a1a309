"""Failures in runs: seen in the order of ids, unless a column of labels says why."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault import Evidence, Plan, audit
from groundfault.auditing.ordering import find_runs
from groundfault.core.units import average_losses


def make_evidence(rates: np.ndarray, seed: int = 0, **columns: object) -> Evidence:
    rng = np.random.default_rng(seed)
    n = len(rates)
    table = pl.DataFrame(
        {
            # without zeros in front: text would sort q10 before q9
            "id": [f"q{i}" for i in range(n)],
            "error": (rng.random(n) < rates).astype(int),
            "flag": rng.random(n) < 0.5,
            **columns,
        }
    )
    group = "block" if "block" in columns else None
    return Evidence.from_table(table, id="id", outcome="error", group=group)


def has_runs(evidence: Evidence) -> bool:
    return find_runs(evidence, average_losses(evidence)) is not None


BLOCKS = np.repeat(np.random.default_rng(1).choice([0.1, 0.8], 40), 12)


def test_blocks_of_neighbours_are_seen() -> None:
    assert has_runs(make_evidence(BLOCKS))
    assert not has_runs(make_evidence(BLOCKS, block=np.arange(480) // 12))


def test_a_random_order_has_no_runs() -> None:
    assert sum(has_runs(make_evidence(np.full(300, 0.3), seed)) for seed in range(60)) <= 1


def test_a_table_sorted_by_a_label_that_explains_it_is_no_news() -> None:
    task = np.repeat(["easy", "medium", "hard"], 160)
    rates = np.repeat([0.1, 0.4, 0.8], 160)
    assert not has_runs(make_evidence(rates, task=task))
    assert has_runs(make_evidence(rates))
    # sorted by the label, and dependent inside of its levels all the same
    assert has_runs(make_evidence(BLOCKS, task=task))


def test_the_report_names_the_option() -> None:
    report = audit(make_evidence(BLOCKS), Plan(judge="holm"), modes=False, ledger=False)
    assert any("failures come in runs" in hint and "--group" in hint for hint in report.hints)
