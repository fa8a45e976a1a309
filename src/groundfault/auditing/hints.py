"""Hints: points to check before you believe the verdicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from shlex import quote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.column_timing import (
    LEAK,
    OPTIONS,
    SUSPECT,
    Timing,
    describe_share,
)
from groundfault.auditing.counted_audit import MAX_JOINT, CountedAudit
from groundfault.auditing.grouped_evidence import GroupedEvidence
from groundfault.auditing.messages import equal_p
from groundfault.auditing.prepared_audit import tabulate_units
from groundfault.auditing.results import AuditResults
from groundfault.core.column_meaning import holds_question
from groundfault.core.columns import Kind, profile
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Verdict
from groundfault.core.plan import to_fraction
from groundfault.core.rules import Rule
from groundfault.core.status import Status
from groundfault.errors import attempt, list_some
from groundfault.stats.multiple import RunsTest, count_runs
from groundfault.transcripts.steps import make_template

# columns that say which benchmark an example is of, by the last word of their names
_PART = re.compile(
    r"(^|[_\W])(benchmark|task|dataset|data_set|subset|suite)(_name|_id)?$", re.IGNORECASE
)
_FAR_APART = 0.2
"""Difference of failure rates from which two parts are hardly one benchmark."""
_SIZES_DIFFER = (
    "groups differ in size, so p-values come from random permutations among groups of similar size"
)
_BY_NAME = "by its name"
_KNOWN, _LATER = OPTIONS[Timing.KNOWN][1], OPTIONS[Timing.FOLLOWS][1]
LEVEL = 0.001
"""P-value below which runs are too few to be chance: a hint in one audit of a thousand is noise."""
NO_LEVEL = "no error level holds"
"""Words of a hint if the guarantee of the whole audit is in doubt."""
NO_COLUMN = "no column describes the examples"
_SORTED = 0.5
"""Changes of a sorted column's value from row to row, as a share of those in a random order."""
_MIN_PART = 30
"""Units of a value that tell its failure rate to about 0.1."""


_Topic = Callable[[AuditResults], Iterator[str]]


def write_hints(results: AuditResults) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return doubts about the audit as a whole, and other hints, each without a full stop."""
    if isinstance(results.audit, CountedAudit):
        topics = (_about_counts, _about_unscored_rows, _about_rare_errors)
        return _ask(results, (_about_no_columns,)), _ask(results, topics)
    # explanations of single numbers come last
    others = (
        _about_copies,
        _about_leaks,
        _about_fixed_columns,
        _about_rare_errors,
        _about_unscored_rows,
        _about_prevalence,
        _about_approximations,
    )
    doubts = (_about_no_columns, _about_crashes, _about_logs, _about_order, _about_suspects)
    return _ask(results, doubts), _ask(results, others)


def _ask(results: AuditResults, topics: Iterable[_Topic]) -> tuple[str, ...]:
    hints: list[str] = []
    for topic in topics:
        step = f"the hint {topic.__name__.strip('_').replace('_', ' ')}"
        hints += attempt(results.audit.failures, step, [], lambda: [*topic(results)])  # noqa: B023
    return tuple(hints)


def _about_no_columns(results: AuditResults) -> Iterator[str]:
    if not results.audit.evidence.attributes:
        yield (
            f"{NO_COLUMN}, so no rule could be tested: add columns to the "
            "table, or to that of each version, such as the topic of each question"
        )


def _about_counts(results: AuditResults) -> Iterator[str]:
    """Say how the audit differs from an audit in memory."""
    audit = results.audit
    assert isinstance(audit, CountedAudit)
    engine, groups = audit.named.counter.name, audit.groups
    units = "rows" if groups is None else "groups"
    part = f"discovery {units}" if audit.has_holdout else units
    yield (
        f"{engine} counted all {units} for the numbers of findings; values, cut points, leaks and "
        f"examples come from a sample of {len(audit.evidence):,} {part} drawn by their ids "
        f"({audit.sample_rule})"
    )
    if groups is None:
        yield "each row counts as an example of its own, and copies were not looked for"
    else:
        yield from _about_groups(results, groups)
    if sum(verdict is Verdict.CONFIRMED for verdict in results.ruling.verdicts) > MAX_JOINT:
        yield f"more than {MAX_JOINT} findings are confirmed: those that overlap are not grouped"
    if results.full.denominator != 1 or results.full.strata is not None:
        yield "losses are graded, so findings that overlap are not grouped"
    if audit.disagreements:
        names = ", ".join(f"{name} ({how})" for name, how in audit.disagreements.items())
        yield f"{engine} disagrees with groundfault: {names}"


def _about_groups(results: AuditResults, groups: GroupedEvidence) -> Iterator[str]:
    yield (
        f"{groups.source.counter.name} made one row of each group in temporary files, and polars "
        "counted them; copies were not looked for"
    )
    if groups.differing:
        yield (
            "columns that differ within a group are in no rule, and candidates that read one are "
            f"untestable: {list_some(groups.differing)}"
        )
    if results.full.strata is not None:
        yield _SIZES_DIFFER


def _about_logs(results: AuditResults) -> Iterator[str]:
    """Repeat the notes of readers: a run that broke off, a file that does not mark refusals."""
    account = results.audit.evidence.account
    if account is not None:
        yield from account.list_log_notes()


def _about_copies(results: AuditResults) -> Iterator[str]:
    evidence = results.audit.evidence
    examples, ids = evidence.without_clusters().unit_count, evidence.roles.id
    left = evidence.unit_count
    if examples > left and evidence.clusters is not None:
        # the audit of a case takes no --group: the case fixed its units when it was begun
        overrule = (
            ""
            if evidence.roles.numbered
            else f"; if they are no copies, add --group {ids} (of a case, to case new)"
        )
        yield (
            f"{examples - left:,} of {examples:,} examples repeat another one, exactly or nearly, "
            f"under a new id: copies count once, so {left:,} examples are left{overrule}"
        )


def _about_order(results: AuditResults) -> Iterator[str]:
    test = find_runs(results.audit.evidence, results.losses)
    if test is not None:
        yield (
            f"failures cluster in the order of ids ({equal_p(test.p)}): if neighbouring rows "
            f"belong together, as questions on one text do, {NO_LEVEL}; name the group of each "
            "row: --group COLUMN"
        )


def describe_parts(results: AuditResults) -> str:
    """Describe benchmarks, tasks or data sets in one table that fail very differently, if any."""
    return " ".join(_list_parts(results))


def _list_parts(results: AuditResults) -> Iterator[str]:
    evidence, fixed = results.audit.evidence, results.audit.plan.within
    names = [c for c in evidence.attributes if _PART.search(c) and c not in fixed]
    if not names:
        return
    table, _ = tabulate_units(evidence, names)
    for column in profile(table):
        if column.kind is not Kind.LABEL:
            continue
        rates = _rates_by_value(table[column.name], results.losses)
        if len(rates) > 1 and rates[0][1] - rates[-1][1] >= _FAR_APART:
            ends = [f"{value} {rate:.0%}" for value, rate in (*rates[:2], *rates[2:][-2:])]
            ends[2:2] = ["..."] if len(rates) > 4 else []
            yield (
                f"The values of {column.name!r} fail at very different rates: {', '.join(ends)}. "
                f"To search inside each of them, add --within {column.name}."
            )


def _rates_by_value(values: pl.Series, losses: NDArray[np.float64]) -> list[tuple[str, float]]:
    """Return values of enough units to tell a rate, and their mean losses, the highest first."""
    scored = ~np.isnan(losses)
    table = pl.DataFrame(
        {
            "value": values.cast(pl.String),
            "total": np.where(scored, losses, 0.0).sum(axis=0),
            "count": scored.sum(axis=0),
        }
    ).drop_nulls()
    sums = table.group_by("value").agg(pl.len(), pl.col("total", "count").sum())
    rates = sums.filter((pl.col("len") >= _MIN_PART) & (pl.col("count") > 0)).select(
        "value", rate=pl.col("total") / pl.col("count")
    )
    return list(rates.sort("rate", "value", descending=[True, False]).iter_rows())


def _about_leaks(results: AuditResults) -> Iterator[str]:
    yield from _about_leaving_out(results)
    yield from _about_names(results)
    yield from _about_later_columns(results)


def _about_suspects(results: AuditResults) -> Iterator[str]:
    """Name reported rules that predict much, but not almost all, of the outcome."""
    audit, named = results.audit, results.named
    allowed = audit.evidence.roles.trusted
    rules = [mode.rule for mode in named.modes if mode.source == "modes"]
    shares = {rule: named.shares[rule] for rule in rules}
    meanings = {mode.rule: mode.meaning for mode in named.modes}
    columns_of = {rule: Rule.parse(rule).columns for rule in rules}
    for h, verdict in enumerate(results.ruling.verdicts):
        place = h // len(audit.outcomes)
        if verdict is Verdict.CONFIRMED:
            candidate = audit.library[place]
            # a fitted column is named by a hash: the columns it reads may follow the answer
            is_fitted = candidate.fitted_column is not None
            rule = repr(candidate.name) if is_fitted else candidate.parsed.sql
            meanings.setdefault(rule, candidate.meaning)
            shares[rule], columns_of[rule] = float(audit.rule_shares[place]), candidate.columns
    for rule, share in shares.items():
        doubtful = [name for name in columns_of[rule] if name not in allowed]
        columns = [name for name in doubtful if not holds_question(name)]
        if SUSPECT <= share < LEAK and columns:
            flags = {
                one: " ".join(f"{one} {quote(c)}" for c in columns) for one in (_KNOWN, _LATER)
            }
            yield (
                f"a rule {describe_share(share)}, as a column does that was made from the score: "
                f"{meanings[rule].rstrip('.')}. If {_quote_names(columns)} existed before the "
                f"answer, add {flags[_KNOWN]}; if not, {flags[_LATER]}"
            )


def _about_leaving_out(results: AuditResults) -> Iterator[str]:
    audit = results.audit
    # columns that decide the outcome are the headline
    headline = {one.column for one in results.named.deciding}
    if leaks := [name for name in audit.leaks if name not in headline]:
        yield (
            f"left out, because they predict over {LEAK:.0%} of the rarer outcome, as columns made "
            f"from the score do: {_quote_names(leaks)}; to use one that existed before the answer, "
            f"add {_KNOWN} COLUMN"
        )
    if audit.leaking_rules:
        names = [audit.library[place].name for place in audit.leaking_rules]
        yield (
            f"not tested, because the rule or one of its conditions predicts over {LEAK:.0%} of "
            f"the rarer outcome: {_quote_names(names)}; to test one, add {_KNOWN} for each of its "
            "columns"
        )


def _about_names(results: AuditResults) -> Iterator[str]:
    """Name columns whose timing was decided only by their names."""
    stages = [one for one in results.audit.stages if one.reason == _BY_NAME]
    parts = [
        f"{_quote_names(columns)} ({stage})"
        for stage in (Timing.DURING, Timing.MEASURED, Timing.FOLLOWS)
        if (columns := [one.column for one in stages if one.stage is stage])
    ]
    # where a search names its columns, the report lists each that it leaves out, with the reason
    if parts and not results.named.unused:
        yield (
            f"not in rules, by their names alone: {' and '.join(parts)}; to use one that "
            f"existed before the answer, add {_KNOWN} COLUMN (groundfault check lists all columns)"
        )


def _about_later_columns(results: AuditResults) -> Iterator[str]:
    """Name candidates that read a column about how an answer was scored."""
    audit = results.audit
    later = set(audit.list_columns(Timing.FOLLOWS))
    names = [one.name for one in audit.library if later & set(one.columns)]
    if names:
        columns = sorted(later & {c for one in audit.library for c in one.columns})
        yield (
            f"{_quote_names(names)}: by their names, the columns {_quote_names(columns)} say how "
            "answers were scored, so such a rule may only restate the score"
        )


def _quote_names(names: Iterable[str]) -> str:
    return list_some(map(repr, names))


def _about_fixed_columns(results: AuditResults) -> Iterator[str]:
    if results.audit.plan.within:
        columns = " and ".join(map(repr, results.audit.plan.within))
        yield (
            f"{columns} held fixed: p-values compare only units with the same values, differences "
            "of findings all units"
        )


def _about_rare_errors(results: AuditResults) -> Iterator[str]:
    plan, min_lift = results.audit.plan, float(to_fraction(results.audit.plan.min_lift or 0))
    rate = results.full.describe_losses()[0]
    # a lift of min_lift needs a failure rate of at least that on the slice; with twice as much
    # overall it is ordinary
    if results.audit.compare:
        return
    if plan.effect == "risk_difference" and rate < 2 * min_lift:
        yield (
            f"failures are rare ({rate:.1%}), so a difference of {100 * min_lift:g} points may be "
            "out of reach; to ask for a ratio instead, add --effect risk_ratio"
        )


def _about_unscored_rows(results: AuditResults) -> Iterator[str]:
    audit = results.audit
    unscored = {status: n for status, n in audit.statuses.items() if status != "scored" and n}
    if unscored:
        rows = ", ".join(f"{n} {status}" for status, n in unscored.items())
        where = "" if isinstance(audit, CountedAudit) else _say_where_unscored(audit.evidence)
        yield (
            f"{rows}: not scored, so in no failure rate; each finding says if its verdict depends "
            f"on them{where}"
        )


def _about_crashes(results: AuditResults) -> Iterator[str]:
    """Group the messages of answers that crashed: often one tool is down."""
    evidence = results.audit.evidence
    if "error" not in evidence.roles.instrument:
        return
    crashed = evidence.frame.filter(evidence.status == Status.ERROR)["error"].cast(pl.String)
    kinds = crashed.to_frame().select(make_template(pl.col("error"))).drop_nulls()
    counts = kinds.to_series().value_counts().sort("count", "error", descending=[True, False])
    if told := [f"{count:,} with {error!r}" for error, count in counts.head(_KINDS).iter_rows()]:
        yield f"{len(crashed):,} crashed, and are in no failure rate: {', '.join(told)}"


_KINDS = 3
"""Kinds of errors in one sentence."""


def _say_where_unscored(evidence: Evidence) -> str:
    """Name the column whose values differ most in the share of unscored rows, if one does."""
    table, _ = tabulate_units(evidence, evidence.attributes)
    is_unscored = evidence.loss.is_null().to_numpy().astype(np.float64)
    sizes = np.bincount(evidence.unit_index, minlength=evidence.unit_count)
    shares = np.bincount(evidence.unit_index, is_unscored, evidence.unit_count) / sizes
    names = [column.name for column in profile(table) if column.kind is Kind.LABEL]
    rates = {name: _rates_by_value(table[name], shares[None]) for name in names}
    spread = {name: each[0][1] - each[-1][1] for name, each in rates.items() if len(each) > 1}
    name = max(spread, key=spread.__getitem__, default="")
    if not name or spread[name] < _FAR_APART:
        return ""
    (most, high), (least, low) = rates[name][0], rates[name][-1]
    return (
        f". They are {high:.0%} of the rows where {name} is {most} and {low:.0%} where it is "
        f"{least}: a grader or a server that fails there hides how the model does there"
    )


def _about_prevalence(results: AuditResults) -> Iterator[str]:
    number = _count_at_the_edge(results)
    if number:
        low, high = (float(to_fraction(edge)) for edge in results.audit.plan.prevalence or (0, 1))
        yield (
            f"{number} candidate{'s match' if number > 1 else ' matches'} a share of the examples "
            f"near the edge of the window [{low:g}, {high:g}], so another split may not test them; "
            "--prevalence sets the window"
        )


def _about_approximations(results: AuditResults) -> Iterator[str]:
    if results.audit.compare:
        return
    if results.audit.size_classes is not None:
        yield _SIZES_DIFFER
    elif results.full.denominator != 1:
        why = "losses are graded" if results.is_graded else "repeated examples were averaged"
        yield f"{why}, so p-values come from random permutations"
    if results.full.denominator != 1 and results.audit.judge.name == "multisplit-e":
        yield (
            "multisplit-e assumes that losses vary as much in a slice as elsewhere: a slice that "
            "varies more may be confirmed too often; --judge max-t, holm or split-holm allow for it"
        )


def _count_at_the_edge(results: AuditResults) -> int:
    """Count candidates that another split of the units could move out of the prevalence window."""
    if results.holdout is None:
        return 0
    n, on = results.audit.marks.counts()
    share = on / np.maximum(n, 1)
    # standard deviation of a share in a sample of the discovery's size without replacement
    deviation = np.sqrt(
        share
        * (1 - share)
        / len(results.discovery)
        * len(results.holdout)
        / results.audit.evidence.unit_count
    )
    edges = [float(to_fraction(edge)) for edge in results.audit.plan.prevalence or ()]
    # an edge of 0 or 1 excludes no share
    near = [np.abs(share - edge) < 2 * deviation for edge in edges if 0 < edge < 1]
    return int(np.any(near, axis=0).sum()) if near else 0


def find_runs(evidence: Evidence, losses: NDArray[np.float64]) -> RunsTest | None:
    """Return the runs test of the units in the order of their ids, if the order is not random.

    Parameters
    ----------
    evidence : Evidence
        Evidence; with a group column there is no test.
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.

    Returns
    -------
    RunsTest or None
        Also None if the table is sorted by a column of labels, and failures come in no runs within
        its levels: the column then describes the common property of neighbours.
    """
    if evidence.roles.group is not None:
        return None
    order = sort_names(evidence.unit_names)
    scored = ~np.isnan(losses)
    counts = scored.sum(axis=0)
    means = np.where(scored, losses, 0.0).sum(axis=0) / np.maximum(counts, 1)
    order = order[counts[order] > 0]
    if not len(order):
        return None
    high = means[order] > means[order].mean()
    result = count_runs([high])
    if result.p >= LEVEL:
        return None
    for levels in _list_levels(evidence, order):
        if count_runs(high[levels == level] for level in np.unique(levels)).p >= LEVEL:
            return None
    return result


def sort_names(names: pl.Series) -> NDArray[np.intp]:
    """Return the order of names in which numbers in them sort as numbers."""
    numbers = names.cast(pl.UInt64, strict=False)
    if not numbers.has_nulls():
        return np.argsort(numbers.to_numpy(), kind="stable")
    # one number each, as most names have
    parts = names.str.extract_groups(r"^(\D*)(\d{1,18})(\D*)$").struct.unnest()
    parts = parts.with_columns(pl.col("2").cast(pl.Int64, strict=False))
    if not parts["2"].has_nulls():
        order = parts.select(pl.arg_sort_by("1", "2", "3", maintain_order=True)).to_series()
        return order.to_numpy().astype(np.intp)
    # every second part is digits, so that like is compared with like
    split = (re.split(r"(\d+)", name) for name in names)
    keys = [[int(p) if i % 2 else p for i, p in enumerate(name)] for name in split]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def _list_levels(evidence: Evidence, order: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Return columns of labels and flags that sort the units at least in part, as codes."""
    table, _ = tabulate_units(evidence, list(evidence.attributes))
    for column in profile(table):
        if column.kind in (Kind.LABEL, Kind.FLAG):
            values = table[column.name].cast(pl.String).fill_null("\0").rank("dense").to_numpy()
            levels = values[order].astype(np.intp)
            shares = np.bincount(levels) / len(levels)
            if (levels[1:] != levels[:-1]).mean() <= _SORTED * (1 - (shares**2).sum()):
                yield levels
