"""Descriptions by a language model on a page: who decided, how steadily, and how controls fare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, cast

from groundfault.auditing.report import Report
from groundfault.core.candidate import DESCRIBED
from groundfault.core.finding import Finding, Verdict
from groundfault.render import words
from groundfault.render.audit_groups import main_cell
from groundfault.render.page import Content, Number, Page, Section, Table, Words, small, tabulate

if TYPE_CHECKING:
    from groundfault.auditing.describing import Descriptions
    from groundfault.descriptions.annotating import DescriptionColumn

_READING = (
    "A description is in words, and what was tested is what the annotator marked, without seeing "
    "an outcome. Its errors make effects smaller where they have nothing to do with failing; where "
    "it errs on what fails, it has marked another property than the words say.",
    "A control that is confirmed is no false finding; but where descriptions from shuffled "
    "outcomes, or from none, fare as well as those from outcomes, the look at outcomes added "
    "nothing.",
)


def list_columns(report: Report) -> dict[str, DescriptionColumn]:
    """Return the columns of described candidates by their rules; empty in other reports."""
    return {
        c.rule: cast("DescriptionColumn", c.fitted_column)
        for c in report.library
        if c.fitted_column is not None and c.fitted_column.function == "description"
    }


def describe_annotation(report: Report, rule: str, source: str) -> str:
    """Describe who decided where a description holds, on how many examples, and who agrees.

    Parameters
    ----------
    report : Report
    rule, source : str
        Of a finding or a mode; empty unless it is a description.
    """
    # by the source first: most reports have many rules and none of these
    column = list_columns(report).get(rule) if source.startswith(DESCRIBED) else None
    if column is None:
        return ""
    share = words.rate(column.holds.mean() if len(column.holds) else None)
    size = words.plural(len(column.holds), "example")
    text = f"decided by {column.annotator} on {size}, and holds for {share} of them"
    return f"{text}; {_write_agreement(column)}"


def describe_arms(report: Report) -> str:
    """Describe how the descriptions of each arm fared; empty without descriptions."""
    if not (columns := list_columns(report)):
        return ""
    parts = [
        f"{words.count(confirmed)} of {words.count(size)} {arm}"
        for arm, size, _, confirmed, _ in _count_arms(report, columns)
    ]
    return f"Descriptions confirmed: {'; '.join(parts)}."


def make_section(report: Report) -> Section | None:
    """Make the section on the descriptions of a report; None if it has no descriptions."""
    if not (columns := list_columns(report)):
        return None
    arms = tabulate(
        "How the descriptions of each arm fared",
        _count_arms(report, columns),
        Words("Proposed", lambda row: row[0]),
        Number("Descriptions", lambda row: row[1]),
        Number("Tested", lambda row: row[2]),
        Number("Confirmed", lambda row: row[3]),
        Number(
            "Median difference (points)",
            lambda row: None if row[4] is None else f"{100 * row[4]:.3g}",
        ),
        note="A description of several arms counts in each; one that was proposed blindly too, or "
        "named by you, owes nothing to outcomes, and all examples may test it."
        + " Differences are those of held-out examples."
        * bool(report.n_holdout),
    )
    return Section(
        "Descriptions",
        _READING,
        arms,
        list_descriptions(tuple(columns.values())),
        anchor="descriptions",
    )


def make_page(descriptions: Descriptions, library: Path, sheet: str | None = None) -> Page:
    """Make the page of new descriptions: how often each holds, who agrees, and the next step."""
    verdict = (
        f"{words.plural(len(descriptions.rows), 'description')} of "
        f"{words.plural(descriptions.examples, 'example')}, shown by "
        f"{words.listing(list(descriptions.columns), 6)}"
    )
    table = replace(list_descriptions(descriptions.rows), caption=verdict)
    kinds = {
        **{f"proposals ({arm})": counts for arm, counts in descriptions.proposals.items()},
        "annotations": descriptions.annotations,
        "annotations by the second model": descriptions.checks,
    }
    lead: list[Content] = [table]
    for kind, counts in kinds.items():
        troubles = [f"{n:,} {status}" for status, n in counts.items() if status != "read"]
        if troubles:
            lead.append(
                f"note: {kind}: {', '.join(troubles)} of {sum(counts.values()):,} replies; what "
                "they were about is left out"
            )
    command = f"groundfault audit --candidates {library}, with the same source and seed"
    if descriptions.marked is not None:
        command = f"groundfault audit {library}, whose section How it fails lists them"
    step = f"Nothing is confirmed. To judge them: {command}."
    lead.append(small(step))
    if sheet and not any(column.agreement for column in descriptions.rows):
        lead.append(f"To check them: fill in yes or no in {sheet}, and run the same command again.")
    return Page("descriptions", "", verdict, lead=lead)


def list_descriptions(columns: Sequence[DescriptionColumn]) -> Table:
    """List descriptions: how each came about, where it holds, and who decided."""
    from groundfault.descriptions.proposing import ARMS

    return tabulate(
        "Descriptions, and who decided",
        columns,
        Words("Description", lambda c: c.description.text),
        Words("Proposed", lambda c: "; ".join(ARMS[arm] for arm in c.description.arms)),
        Number("Decided on", lambda c: len(c.holds)),
        Number("Holds for", lambda c: words.rate(c.holds.mean() if len(c.holds) else None)),
        Words("Second annotator", _write_agreement),
    )


def _write_agreement(column: DescriptionColumn) -> str:
    check = column.agreement
    if check is None or check.interval is None:
        return "nobody checked it"
    again = check.annotator == column.annotator
    who = f"{check.annotator}{' asked again' * again}"
    text = (
        f"{who} agrees on {words.count(check.agreed)} of {words.count(check.checked)} "
        f"(95% interval {words.span(check.interval)})"
    )
    if check.kappa is None:
        return text
    ends = words.bracket(check.kappa_interval, words.write_coefficient)
    return f"{text}, kappa {check.kappa:.2f}{ends}"


def _count_arms(
    report: Report, columns: Mapping[str, DescriptionColumn]
) -> list[tuple[str, int, int, int, float | None]]:
    """Count by arm: descriptions, those tested, those confirmed, median size of their lifts."""
    from groundfault.descriptions.proposing import ARMS

    findings: dict[str, list[Finding]] = {rule: [] for rule in columns}
    for finding in report.findings:
        if finding.rule in findings:
            findings[finding.rule].append(finding)
    rows = []
    for arm in ARMS:
        rules = [rule for rule, column in columns.items() if arm in column.description.arms]
        if not rules:
            continue
        tested = [[f for f in findings[r] if f.verdict is not Verdict.UNTESTABLE] for r in rules]
        confirmed = sum(any(f.confirmed for f in each) for each in tested)
        lifts = _list_lifts([f for each in tested for f in each])
        middle = median(lifts) if lifts else None
        rows.append((ARMS[arm], len(rules), sum(map(bool, tested)), confirmed, middle))
    return rows


def _list_lifts(findings: Sequence[Finding]) -> list[float]:
    lifts = (main_cell(finding).lift for finding in findings)
    return [abs(lift) for lift in lifts if lift is not None]
