"""Directional tests put to a chat model: does a change move its answers as it must?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

import groundfault
from groundfault import Candidate, Evidence, Plan, Report
from groundfault.core import equivalence
from groundfault.core.finding import Verdict
from groundfault.models import Target
from groundfault.probes.running.answers import extract
from groundfault.stats.intervals import wilson
from groundfault_lab.probes.expectations import Expectation, run_expectations
from groundfault_lab.stats.paired import sign_test
from groundfault_studies.resuming import Rows
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

TESTS = Path(__file__).with_name("direction_tests.toml")
PAIRS, QUICK_PAIRS = 24, 8
"""Fillings of each test; those of a quick study are the first."""

_SAID = {
    "rises": "must rise",
    "falls": "must fall",
    "same": "must not change",
    "changes": "must change",
}
_LEVEL, _ALPHA = 0.95, 0.05


def ask_pairs(
    target: Target, test: Expectation, lexicon: Mapping[str, Sequence[str]], count: int
) -> Rows:
    """Ask both prompts of each filling of a test: a row for each pair."""
    table = run_expectations(
        [test], lexicon, target, count=count, temperature=0, concurrency=2 * count, timeout=600
    )
    moves = [
        _move(row["base_response"], row["response"], test.rule)
        for row in table.iter_rows(named=True)
    ]
    return table.with_columns(pl.Series("move", moves, pl.Int64)).to_dicts()


def _move(before: str | None, after: str | None, rule: str) -> int | None:
    """Tell whether a number rose (1), fell (-1) or stayed (0); None where one cannot be read."""
    numbers = []
    for text in (before, after):
        answer = extract(text or "", rule).text
        read = None if answer is None else equivalence.read(answer, rule)
        if read is None:
            return None
        numbers.append(equivalence.numbers(read)[0])
    return int(numbers[1] > numbers[0]) - int(numbers[1] < numbers[0])


def tabulate_directions(rows: Rows) -> PaperTable:
    """Make the table of directional tests, a line a test."""
    columns: dict[str, tuple[str, Kind]] = {
        "must": ("the answer", "text"),
        "pairs": ("pairs", "count"),
        "read": ("judged", "count"),
        "held": ("held", "count"),
        "rate": ("share held", "rate"),
        "interval": ("95 % interval", "rate"),
        "moves": ("rose, fell, same", "text"),
        "direction": ("direction", "text"),
        "verdict": ("audit", "text"),
    }
    tests = list(dict.fromkeys(row["test"] for row in rows))
    verdicts = _judge(rows, tests)
    lines = []
    for test in tests:
        pairs = [row for row in rows if row["test"] == test]
        lines.append(PaperRow(test, {**_summarize(pairs), "verdict": verdicts[test]}))
    note = (
        "A pair is a question and the same question with one change; it is judged where a number "
        "can be read in both answers. The number itself need not be right. Direction: shown where "
        "more answers move as they must than the other way, by a sign test at 5 % for each test. "
        "The audit compares a test with the others: confirmed are those that fail more often, at "
        "an error level of 10 % over all tests."
    )
    return PaperTable("Directional tests", note, columns, tuple(lines))


def _summarize(pairs: Rows) -> dict[str, Value]:
    read = [row for row in pairs if row["failed"] is not None]
    held, moves = sum(not row["failed"] for row in read), [row["move"] for row in read]
    expect = pairs[0]["expect"]
    here: dict[str, Value] = {"must": _SAID[expect], "pairs": len(pairs), "read": len(read)}
    here["held"] = held
    here["moves"] = ", ".join(str(moves.count(move)) for move in (1, -1, 0))
    if read:
        low, high = wilson(held, len(read), _LEVEL)
        here |= {"rate": held / len(read), "interval": (float(low), float(high))}
    if expect in ("rises", "falls"):
        against = moves.count(-1 if expect == "rises" else 1)
        here["direction"] = "shown" if sign_test(held, against) <= _ALPHA else "not shown"
    return here


def _judge(rows: Rows, tests: Sequence[str]) -> dict[str, str]:
    """Say of each test whether an audit confirms that it fails more often than the others."""
    table: list[dict[str, Any]] = [
        {name: row[name] for name in ("id", "test", "failed")}
        for row in rows
        if row["failed"] is not None
    ]
    if len({row["failed"] for row in table}) < 2:
        return dict.fromkeys(tests, "nothing to compare")
    # which test it is was settled before, also where it tells every failure
    evidence = Evidence.from_table(
        pl.DataFrame(table), id="id", outcome="failed", allow_leakage=["test"]
    )
    candidates = [Candidate(test, f"test = '{test}'") for test in tests]
    report = groundfault.audit(evidence, Plan(), candidates, modes=False, ledger=False)
    return say_verdicts(report, tests)


def say_verdicts(report: Report, names: Sequence[str]) -> dict[str, str]:
    """Say of each candidate whether it is confirmed to fail more often; to fail less often is no
    confirmation here.
    """
    said = {Verdict.CONFIRMED: "confirmed", Verdict.UNTESTABLE: "too few"}
    worse = [each for each in report.findings if not each.is_less_frequent]
    verdicts = {each.name: said[each.verdict] for each in worse if each.verdict in said}
    return {name: verdicts.get(name, "not confirmed") for name in names}
