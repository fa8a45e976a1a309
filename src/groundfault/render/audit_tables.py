"""The tables of a report, as text: each rendering only sets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins

from groundfault.auditing import messages
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import ReportData
from groundfault.core.finding import Cell, Estimate, Finding, Verdict
from groundfault.render import words
from groundfault.render.audit_groups import name_sides
from groundfault.render.page import Name, Number, Table, Under, Words, make_table, tabulate

MAX_NAMES = 12
"""Names in one cell."""


def interval_words(report: ReportData) -> tuple[str, Callable[[Cell | None], str]]:
    """Return the head of a column of intervals, and the function that writes one."""
    plan = report.plan
    head = f"{words.level(1 - words.decimal(plan.alpha))} interval"
    if plan.effect == "risk_difference":
        return head, words.interval
    return f"{head} ({plan.effect.replace('_', ' ')})", words.ratio_interval


def numbers(report: Report, finding: Finding) -> Table:
    """Return errors on and off the slice: on discovery, on the holdout and on all units."""
    head, interval = interval_words(report)
    selected = " (selected)" if finding.confirmed else ""
    parts: list[tuple[str, Cell | None]] = [(f"All {report.unit}s{selected}", finding.full)]
    if report.n_holdout:
        holdout = (f"Holdout{selected}", finding.holdout)
        parts = [("Discovery (selected)", finding.discovery), holdout, *parts]
    rows = [
        (
            part,
            words.share(cell, "on"),
            words.share(cell, "off"),
            words.points(cell.lift),
            # what had to pass a bar has no interval of its own that holds
            words.NONE if finding.estimate is not None else interval(cell),
            words.p_value(cell.p),
            words.p_value(cell.p_adjusted),
        )
        for part, cell in parts
        if cell is not None
    ]
    none = words.NONE
    if finding.estimate is not None:
        effect, ends = write_estimate(report, finding.estimate)
        rows.append(("Corrected for selection", none, none, effect, ends, none, none))
    sides, place = ("Failures on the slice", "Failures off it"), "on and off the slice"
    if report.change is not None:
        second, first = name_sides(report)
        sides, place = (f"Failures of {second}", f"Failures of {first}"), "on the slice"
    heads = ("Units", *sides, _name_lift(report), head, "p", "Adjusted p")
    caption = f"{words.label(finding)}: failures {place}"
    return make_table(caption, "tnnnnnn", heads, rows).drop_empty_columns()


def _name_lift(report: Report) -> str:
    return "Difference (points)" if report.change is None else "Change (points)"


def write_estimate(report: ReportData, estimate: Estimate) -> tuple[str, str]:
    """Write a corrected lift and its interval; of a ratio, the interval with the ratio in front."""
    if report.plan.effect == "risk_difference":
        return words.points(estimate.effect), words.span(estimate.interval, words.points)
    ends = words.span(estimate.interval, words.write_coefficient)
    return words.NONE, f"{estimate.effect:.2f}: {ends}"


def screened(report: Report) -> Table:
    """List candidates that cleared the screen and failed on the holdout, and why."""
    caption = "Screened, not confirmed"
    return _list_unconfirmed(report, Verdict.NOT_REPLICATED, caption)


def too_small(report: Report) -> Table:
    """List candidates that are beyond chance and smaller than the plan asks for."""
    return _list_unconfirmed(report, Verdict.TOO_SMALL, "Real, and smaller than was asked for")


def _list_unconfirmed(report: Report, verdict: Verdict, caption: str) -> Table:
    head, interval = interval_words(report)
    return tabulate(
        caption,
        [f for f in report.findings if f.verdict is verdict],
        Name("Candidate", words.label),
        Number(
            "Discovery, points (selected)" if report.n_holdout else "Difference (points)",
            lambda f: words.points(f.discovery.lift),
        ),
        Number("Holdout, points", lambda f: words.points(f.holdout.lift if f.holdout else None)),
        Number(head, lambda f: interval(f.holdout or f.full)),
        Number("p", lambda f: words.p_value((f.holdout or f.full).p)),
        Number("Adjusted p", lambda f: words.p_value((f.holdout or f.full).p_adjusted)),
        Words("Reason", lambda f: f.reason),
        drop=True,
    )


def everything(report: Report, max_rows: int) -> Table:
    """Return candidates, up to a limit: counts, lifts, verdict and reason."""
    of, (side, other) = "" if report.change is None else "of ", name_sides(report)
    split = report.n_holdout > 0
    note = "Failures and rates are those of all examples. The p-value of the screen is two-sided."
    if split:
        note += " The adjusted one is of the holdout, one-sided in the discovery direction."
    return tabulate(
        "All candidates, the untestable ones too",
        report.findings[:max_rows],
        Name("Candidate", words.label),
        Under("Rule", lambda f: "" if is_named_by_rule(f) else f.rule),
        Words("Verdict", lambda f: words.VERDICTS[f.verdict]),
        Number(f"Failures {of}{side}", lambda f: words.share(f.full, "on")),
        Number(f"Failures {of}{other}", lambda f: words.share(f.full, "off")),
        Number(
            "Discovery, points (selected)" if split else _name_lift(report),
            lambda f: words.points(f.discovery.lift),
        ),
        Number(
            "Holdout, points",
            lambda f: words.points(f.holdout.lift) if split and f.holdout else None,
        ),
        Number("Screen p" if split else "p", lambda f: words.p_value(f.discovery.p)),
        Number("Adjusted p", lambda f: words.p_value((f.holdout or f.discovery).p_adjusted)),
        Words("Reason", _list_codes),
        Words("If all unscored", describe_changes),
        note=note,
        drop=True,
    )


def is_named_by_rule(finding: Finding) -> bool:
    """Return whether the rule only repeats the name, like the rule of a 0/1 column."""
    return finding.rule.strip('"') == finding.name


def _list_codes(finding: Finding) -> str:
    """Return the codes that a reason starts with, where it does."""
    coded = finding.verdict in (Verdict.UNTESTABLE, Verdict.TOO_SMALL, Verdict.NOT_REPLICATED)
    return finding.reason.partition(": ")[0] if coded else ""


def key(report: Report) -> Table:
    """Return the meanings of the verdicts and codes of `everything`."""
    meanings: dict[str, str] = {}
    for f in report.findings:
        codes = [code for code in _list_codes(f).split(", ") if code]
        meanings |= {code: messages.explain_code(code, report.unit) for code in codes}
        if not codes:
            meanings[words.VERDICTS[f.verdict]] = f.reason
    return make_table(
        "What verdicts and codes mean", "tt", ("Word", "Meaning"), tuple(meanings.items())
    )


def describe_changes(finding: Finding) -> str:
    """Describe how the verdict changes if all unscored observations fail, or pass.

    Return an empty text where it does not change.
    """
    changes = []
    for assumed, verdict in (finding.sensitivity or {}).items():
        if verdict != finding.verdict:
            changes.append(f"{assumed.removeprefix('all_')}: {words.VERDICTS[Verdict(verdict)]}")
    return "; ".join(changes)


def detectable(report: Report) -> Table:
    """Return the least lift that an audit finds four times in five, by the size of the slice."""
    power = report.power
    return tabulate(
        f"What would have been found with {words.level(power.power)} power",
        power.minimum_detectable_lift.items(),
        Number("Rule matches this share", lambda pair: words.level(words.decimal(pair[0]))),
        Number(
            "Least difference",
            lambda pair: "none, however large" if pair[1] is None else words.bare(pair[1]),
        ),
    )


def ineligible(report: Report) -> Table:
    """Return why candidates could not be tested, and how many."""
    return tabulate(
        "Candidates that could not be tested",
        sorted(report.ineligible.items(), key=lambda item: -item[1]),
        Name("Code", lambda pair: pair[0]),
        Words("Meaning", lambda pair: messages.explain_code(pair[0], report.unit)),
        Number("Candidates", lambda pair: pair[1]),
        note="One candidate may have several reasons." if len(report.ineligible) > 1 else "",
    )


def unscored(report: Report) -> Table:
    """Return counts of observations by status."""
    return tabulate(
        "Observations by status",
        [(status, n) for status, n in report.statuses.items() if n or status == "scored"],
        Words("Status", lambda pair: pair[0]),
        Number("Observations", lambda pair: pair[1]),
        note="Only scored observations enter a failure rate.",
    )


def manifest(report: Report) -> tuple[Table, ...]:
    """Return the tables of everything that is needed to recompute the report."""
    facts, ledger = report.manifest, report.ledger
    roles = {
        key: value
        for key, value in to_builtins(facts.roles).items()
        if value not in (None, "", [], (), False)
    }
    versions = {"groundfault": report.groundfault_version}
    versions |= {"python": facts.python, "numpy": facts.numpy, "polars": facts.polars}
    evidence: dict[str, Any] = {
        "source": facts.sources,
        "models": facts.models,
        "compared": facts.compare,
        **roles,
    }
    evidence |= {"rows": report.rows, "units": report.n}
    return (
        _pairs("Evidence", "Role", evidence),
        _pairs("Plan, decided before looking", "Setting", to_builtins(report.plan)),
        _pairs("Candidates by source", "Source", report.candidates.sources),
        _pairs("Hashes (SHA-256)", "Of", to_builtins(report.hashes)),
        _pairs("Ledger", "Of", {"path": ledger.path, "head": ledger.head} if ledger else {}),
        _pairs("Software", "Package", versions),
    )


def _pairs(caption: str, head: str, pairs: dict[str, Any]) -> Table:
    rows = [(key, _plain(value)) for key, value in pairs.items() if value is not None]
    return make_table(caption, "tc", (head, "Value"), rows)


def _plain(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return words.listing([str(v) for v in value], MAX_NAMES)
    return (
        words.count(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
    )
