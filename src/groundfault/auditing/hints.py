"""Hints: what to check before believing the verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from shlex import quote

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.leak_hints import write_leak_hints
from groundfault.auditing.ordering import find_runs
from groundfault.auditing.results import AuditResults
from groundfault.auditing.unit_table import tabulate_units
from groundfault.core.columns import Kind, profile
from groundfault.core.evidence import Evidence
from groundfault.core.plan import to_fraction

# columns that say which benchmark an example is of, by the last word of their names
_PART = re.compile(
    r"(^|[_\W])(benchmark|task|dataset|data_set|subset|suite)(_name|_id)?$",
    re.IGNORECASE,
)
_FAR_APART = 0.2
_MIN_PART = 30
"""Units of a value that tell its failure rate to about 0.1."""


def write_hints(results: AuditResults) -> tuple[str, ...]:
    """Every hint that applies, each without a full stop."""
    # what may make the whole audit useless comes first, what explains single numbers last
    return (
        *_about_logs(results),
        *_about_copies(results),
        *_about_order(results),
        *_about_comparison(results),
        *write_leak_hints(results),
        *_about_fixed_columns(results),
        *_about_rare_errors(results),
        *_about_unscored_rows(results),
        *_about_prevalence(results),
        *_about_approximations(results),
    )


def _about_logs(results: AuditResults) -> Iterator[str]:
    """What readers noted: a run that broke off, a file that does not tell refusals apart."""
    account = results.audit.evidence.account
    if account is not None:
        yield from account.list_log_notes()


def _about_copies(results: AuditResults) -> Iterator[str]:
    evidence = results.audit.evidence
    examples, ids = evidence.without_clusters().unit_count, evidence.roles.id
    if examples > evidence.unit_count and evidence.clusters is not None:
        # the audit of a case takes no --group: what a unit is, was decided when the case was begun
        overrule = (
            ""
            if evidence.roles.numbered
            else f"; --group {ids} takes each for a unit (in a case, where it is begun: case new)"
        )
        yield (
            f"{examples - evidence.unit_count} of {examples} examples repeat another under a new "
            f"id, exactly or nearly: copies count as one unit, {evidence.unit_count} in all"
            f"{overrule}"
        )


def _about_order(results: AuditResults) -> Iterator[str]:
    test = find_runs(results.audit.evidence, results.losses)
    if test is not None:
        yield (
            f"in the order of ids failures come in runs, {test.runs:g} where a random order has "
            f"{test.expected:.0f} (runs test, p = {test.p:.1g}): where neighbours belong together, "
            "as questions on one text do, no level holds; --group COLUMN says which do"
        )


def _about_comparison(results: AuditResults) -> Iterator[str]:
    compare = results.audit.compare
    if compare:
        yield (
            "failure modes are not looked for in a comparison, since their test takes the losses of"
            f" one model; --model {quote(compare[1])} names its own, --finders interactions:2 joins"
            " conditions"
        )


def describe_parts(results: AuditResults) -> str:
    """Benchmarks, tasks or data sets in one table that fail very differently; empty for none."""
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
                f"The parts that {column.name!r} names fail very differently: {', '.join(ends)}. "
                f"--within {column.name} asks what fails inside each of them."
            )


def _rates_by_value(values: pl.Series, losses: NDArray[np.float64]) -> list[tuple[str, float]]:
    """Values of enough units to tell a rate, and their mean losses, the highest first."""
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


def _about_fixed_columns(results: AuditResults) -> Iterator[str]:
    if results.audit.plan.within:
        columns = " and ".join(map(repr, results.audit.plan.within))
        yield (
            f"{columns} held fixed: p-values compare units of the same values only, the lifts of "
            "findings all units"
        )


def _about_rare_errors(results: AuditResults) -> Iterator[str]:
    plan, min_lift = results.audit.plan, float(to_fraction(results.audit.plan.min_lift or 0))
    full = results.full
    # losses of what was not scored stand as 0, and are in no rate
    n_scored = full.losses.size if full.scored is None else int(full.scored.sum())
    rate = float(full.losses.sum() / (full.denominator or 1) / max(n_scored, 1))
    # a lift of min_lift needs an error rate of at least that on the slice; with twice as much
    # overall it is ordinary
    if results.audit.compare:
        return
    if plan.effect == "risk_difference" and rate < 2 * min_lift:
        yield (
            f"errors are rare ({rate:.1%}): a lift of {min_lift:g} may be out of reach; "
            "effect='risk_ratio' (--effect risk_ratio) asks for a ratio instead"
        )


def _about_unscored_rows(results: AuditResults) -> Iterator[str]:
    counts = results.audit.evidence.status_counts
    unscored = {status: n for status, n in counts.items() if status != "scored" and n}
    if unscored:
        rows = ", ".join(f"{n} {status}" for status, n in unscored.items())
        yield (
            f"{rows}: not scored, in no error rate; the findings say whether their verdict depends "
            f"on it{_say_where_unscored(results.audit.evidence)}"
        )


def _say_where_unscored(evidence: Evidence) -> str:
    """The column whose values differ most in the share of rows without a score; else nothing."""
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
            f"{number} candidate{'s lie' if number > 1 else ' lies'} within chance of the edge of "
            f"the prevalence window [{low:g}, {high:g}], and may be tested in one split and not in "
            "another; --prevalence sets the window"
        )


def _about_approximations(results: AuditResults) -> Iterator[str]:
    if results.audit.compare:
        return
    if results.audit.size_classes is not None:
        yield (
            "groups differ in size: only those of like size are permuted, at random, and p-values "
            "are sampled"
        )
    elif results.full.denominator != 1:
        # 0 and 1 in every row, and the hint would be a riddle without its reason
        is_mean = results.audit.evidence.loss.drop_nulls().is_in([0.0, 1.0]).all()
        why = ", since copies, repeats or groups have their mean" if is_mean else ""
        yield (
            f"losses are graded{why}: p-values are sampled, of lifts over standard errors that let "
            "a slice vary more than the rest"
        )
    if results.full.denominator != 1 and results.audit.judge.name == "multisplit-e":
        yield (
            "multisplit-e takes the losses of a slice to vary as much as the rest: one of the same "
            "mean that varies more may be confirmed too often; max-t, holm and split-holm allow "
            "for it (--judge)"
        )


def _count_at_the_edge(results: AuditResults) -> int:
    """Candidates that another split of the same units could move out of the prevalence window."""
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
    # an edge of 0 or 1 excludes nothing
    near = [np.abs(share - edge) < 2 * deviation for edge in edges if 0 < edge < 1]
    return int(np.any(near, axis=0).sum()) if near else 0
