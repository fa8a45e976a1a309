"""Hints about leaks: what was left out as a consequence of the outcome, and what is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from groundfault.auditing.leaks import LEAK, SUSPECT, measure_rules
from groundfault.auditing.results import AuditResults
from groundfault.auditing.stages import OPTIONS, Timing, describe_share, list_columns
from groundfault.core.column_names import holds_question
from groundfault.core.finding import Verdict
from groundfault.core.rules import Rule

_BY_NAME = "by its name"
_MAX_NAMES = 12
_KNOWN, _LATER = OPTIONS[Timing.KNOWN][1], OPTIONS[Timing.FOLLOWS][1]


def write_leak_hints(results: AuditResults) -> tuple[str, ...]:
    """Every hint about leaks that applies, each without a full stop."""
    return (
        *_about_suspects(results),
        *_about_leaks(results),
        *_about_names(results),
        *_about_later_columns(results),
    )


def _about_suspects(results: AuditResults) -> Iterator[str]:
    """What is reported and predicts much of the outcome, though not almost all of it."""
    audit = results.audit
    allowed = set(audit.evidence.roles.allow_leakage)
    rules = [mode.rule for mode in results.modes if mode.source == "modes"]
    shares = measure_rules(audit.evidence, rules)
    columns_of = {rule: Rule.parse(rule).columns for rule in rules}
    for h, verdict in enumerate(results.ruling.verdicts):
        place = h // len(audit.outcomes)
        if verdict is Verdict.CONFIRMED:
            candidate = audit.library[place]
            # of a fitted column the name is a hash: what it reads is what may follow the answer
            is_fitted = candidate.fitted_column is not None
            rule = repr(candidate.name) if is_fitted else candidate.parsed.sql
            shares[rule], columns_of[rule] = float(audit.rule_shares[place]), candidate.columns
    for rule, share in shares.items():
        doubtful = [name for name in columns_of[rule] if name not in allowed]
        columns = [name for name in doubtful if not holds_question(name)]
        if SUSPECT <= share < LEAK and columns:
            names = _list(columns)
            yield (
                f"{rule} {describe_share(share)}: was {names} {Timing.KNOWN}? {_KNOWN} says so; "
                f"if not, {_LATER} leaves it out"
            )


def _about_leaks(results: AuditResults) -> Iterator[str]:
    audit = results.audit
    if audit.leaks:
        yield (
            f"left out, because they predict over {LEAK:.0%} of the rarer outcome: "
            f"{_list(audit.leaks)}; {_KNOWN} uses a column all the same, {_LATER} declares that it "
            "follows from the outcome"
        )
    if audit.leaking_rules:
        names = [audit.library[place].name for place in audit.leaking_rules]
        yield (
            f"not tested, because they, or one of their conditions, predict over {LEAK:.0%} of the "
            f"rarer outcome: {_list(names)}; {_KNOWN} for each column that they read judges them "
            "all the same"
        )


def _about_names(results: AuditResults) -> Iterator[str]:
    """Columns that are taken for something by their names alone."""
    stages = [one for one in results.audit.stages if one.reason == _BY_NAME]
    parts = [
        f"{_list(columns)} ({stage})"
        for stage in (Timing.MEASURED, Timing.FOLLOWS)
        if (columns := list_columns(stages, stage))
    ]
    if parts:
        yield (
            f"not taken to describe the examples, by their names alone: {' and '.join(parts)}; "
            f"{_KNOWN} uses one that was known before the answer, and groundfault check lists what "
            "every column is taken for"
        )


def _about_later_columns(results: AuditResults) -> Iterator[str]:
    """Candidates that were named although a column of theirs says how an answer was scored."""
    audit = results.audit
    later = set(list_columns(audit.stages, Timing.FOLLOWS))
    names = [one.name for one in audit.library if later & set(one.columns)]
    if names:
        columns = sorted(later & {c for one in audit.library for c in one.columns})
        yield (
            f"about how answers were scored, by the names of the columns {_list(columns)}: "
            f"{_list(names)}; such a rule may explain failures by failing"
        )


def _list(names: Iterable[str]) -> str:
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - _MAX_NAMES} more" if len(quoted) > _MAX_NAMES else ""
    return ", ".join(quoted[:_MAX_NAMES]) + more
