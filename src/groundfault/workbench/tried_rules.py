"""Tried rules: what is counted on the discovery rows is recorded, since who tries many finds some.

A rule of the report itself is no try, and the same rule again is none either: it tells nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from groundfault.base.openings import TRIED
from groundfault.core.candidate import Candidate, Library
from groundfault.core.rules import Rule
from groundfault.errors import InputError

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.core.finding import Cell
    from groundfault.workbench.bench import Bench
    from groundfault.workbench.row_query import RowQuery


def try_rule(bench: Bench, rule: str) -> dict[str, Cell]:
    """Count a rule on the discovery rows, and record that it was tried.

    Parameters
    ----------
    bench : Bench
        With a report.
    rule : str
        In SQL.

    Returns
    -------
    dict of str to Cell
        Units and failures on and off the rule, by outcome.

    Raises
    ------
    RuleError
        If the rule cannot be read or evaluated; nothing is recorded then.
    InputError
        If the ledger cannot be written to.
    """
    cells = bench.index.count(rule)
    counts = {
        outcome: [cell.on, cell.on_errors, cell.off, cell.off_errors]
        for outcome, cell in cells.items()
    }
    _record(bench, rule, counts)
    return cells


def try_filters(bench: Bench, query: RowQuery, views: Mapping[str, int]) -> str:
    """Record what a selection counts: filters show how many rows fail, as a rule does.

    Parameters
    ----------
    bench : Bench
        With a report.
    query : RowQuery
    views : mapping of str to int
        Rows of each view, by `RowIndex.count_views`.

    Returns
    -------
    str
        Its rule and filters as one rule, in SQL; empty where it has neither.
    """
    if not query.where:
        return query.rule
    conditions = (*([query.rule] if query.rule else []), *query.where)
    rule = " AND ".join(f"({condition})" for condition in conditions)
    rows, (on, failing) = bench.index.rows, (views["inside"], views["failing"])
    counts = [on, failing, len(rows) - on, int(rows.fails.sum()) - failing]
    _record(bench, rule, {query.model: counts})
    return rule


def _record(bench: Bench, rule: str, counts: Mapping[str, Sequence[float]]) -> None:
    report, state = bench.report, bench.state
    assert report is not None
    assert state is not None
    sql = Rule.parse(rule).sql
    is_new = sql not in {event.body.get("rule") for event in state.tried}
    if bench.ledger is None or not is_new or sql in list_rules(report):
        return
    hashes = report.hashes
    body = {
        "evidence": hashes.evidence,
        "outcome": hashes.outcome,
        "split": hashes.split,
        "plan": hashes.plan,
        "rule": sql,
        "counts": counts,
        "via": "web",
    }
    bench.ledger.append(TRIED, body)


def needs_fresh_data(bench: Bench, rule: str) -> bool:
    """Whether a rule was first tried after the outcomes had been looked at."""
    sql, state = Rule.parse(rule).sql, bench.state
    return state is not None and sql in {event.body.get("rule") for event in state.late}


@dataclass(frozen=True)
class TriedRule:
    """A rule that was tried.

    Attributes
    ----------
    rule : str
        In its normal form.
    counts : mapping of str to list of float
        By outcome: units and failures on the rule, and off it.
    late : bool
        Whether the outcomes had been looked at before.
    """

    rule: str
    counts: Mapping[str, Sequence[float]]
    late: bool


def list_tried(bench: Bench) -> tuple[TriedRule, ...]:
    """The rules that were tried, the last first, each once."""
    state = bench.state
    assert state is not None
    late = {str(event.body.get("rule")) for event in state.late}
    rules: dict[str, TriedRule] = {}
    for event in state.tried:
        rule = str(event.body.get("rule"))
        rules.setdefault(rule, TriedRule(rule, event.body.get("counts", {}), rule in late))
    return tuple(rules.values())[::-1]


def freeze_rules(bench: Bench, rules: Sequence[str]) -> Library:
    """Rules that were tried here, as candidates that were mined from the discovery outcomes.

    Parameters
    ----------
    bench : Bench
        With a report.
    rules : sequence of str
        In SQL.

    Raises
    ------
    InputError
        If none is named, or one was not tried.
    """
    state, report = bench.state, bench.report
    assert state is not None
    assert report is not None
    tried = {event.body.get("rule") for event in state.tried}
    parsed = [Rule.parse(rule).sql for rule in rules]
    if not parsed:
        raise InputError("choose the rules to test: none is")
    for rule in parsed:
        if rule not in tried:
            raise InputError(f"the rule {rule} was not tried here; count it first")
    origin = f"{report.hashes.outcome[:16]}/{report.hashes.split[:16]}"
    late = {event.body.get("rule") for event in state.late}
    return Library.of(
        Candidate(
            name=rule,
            rule=rule,
            missing="off",
            source="tried after an opening" if rule in late else "tried by hand",
            mined=origin,
        )
        for rule in parsed
    )


def list_rules(report: Report) -> frozenset[str]:
    """The rules that a report is about, in their normal form."""
    alternatives = (other.rule for mode in report.modes for other in mode.alternatives)
    modes = (mode.rule for mode in report.modes)
    rules = (candidate.rule for candidate in report.library)
    return _normalise((*modes, *alternatives, *rules))


@cache
def _normalise(rules: tuple[str, ...]) -> frozenset[str]:
    return frozenset(Rule.parse(rule).sql for rule in rules)
