"""The study of descriptions: annotators that err cost power, and confirm nothing that is not so."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault_studies import descriptions
from groundfault_studies.descriptions import LEVEL, run_audit, study
from groundfault_studies.resuming import Rows


def make_row(lift: float, error: float, *, false: bool = False, confirmed: bool = True):  # type: ignore[no-untyped-def]
    arms = {f"false_{arm}": false for arm in ("outcomes", "blind", "shuffled")}
    proposed = bool(lift)
    return {
        "lift": lift,
        "error": error,
        "proposed": proposed,
        "confirmed": proposed and confirmed,
        "size": lift * (1 - 2 * error) if lift else None,
        "false": false,
        "agreement": 1 - 2 * error * (1 - error),
        **arms,
    }


def test_tables_count_audits_by_error_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[float, float]] = []

    def pretend(lift: float, error: float, start: int, count: int) -> Rows:
        calls.append((lift, error))
        return [
            make_row(lift, error, false=not i, confirmed=i % 2 == 0)
            for i in range(start, start + count)
        ]

    monkeypatch.setattr(descriptions, "measure", pretend)
    keep = tmp_path / "rows.jsonl"
    result = study(quick=True, keep=keep)
    power, null = result.tables
    assert [row.label for row in power.rows] == ["0% wrong", "10% wrong", "20% wrong", "30% wrong"]
    assert {row.here["confirmed"] for row in power.rows} == {0.5}
    assert power.rows[0].here["audits"] == 10
    assert null.rows[0].here["false"] == 1 / 20
    # what is done is not done again, and can be shown alone
    done = len(calls)
    assert (
        study(quick=True, keep=keep).tables
        == result.tables
        == study(quick=True, keep=keep, stored=True).tables
    )
    assert len(calls) == done


def test_a_true_description_is_proposed_annotated_with_errors_and_confirmed() -> None:
    row = run_audit(0.6, 0.1, 0)
    assert row["proposed"]
    assert row["confirmed"]
    assert 0.2 < row["size"] < 0.65
    # two that err independently one time in ten agree on 1 - 2 * .1 * .9
    assert 0.75 < row["agreement"] < 0.9


@pytest.mark.slow
def test_shuffled_outcomes_are_confirmed_at_most_at_the_level() -> None:
    rows = [run_audit(0.0, 0.1, seed) for seed in range(1000, 1200)]
    # 30 of 200 is what a level of 10 % exceeds once in a hundred
    assert sum(row["false_shuffled"] for row in rows) <= 30
    assert sum(row["false"] for row in rows) <= 30
    assert LEVEL == 0.1
