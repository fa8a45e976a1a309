"""The tables of a report, as text: each rendering only sets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from msgspec import to_builtins

from groundfault.auditing import messages
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import ReportData
from groundfault.core.finding import Cell, Estimate, Finding, Verdict
from groundfault.render import words
from groundfault.render.change_words import name_sides
from groundfault.render.page import Table, TableColumn

MAX_NAMES = 12


def holds_out(report: Report) -> bool:
    """Whether the judge held anything out."""
    return bool(report.n_holdout)


def interval_words(report: ReportData) -> tuple[str, Callable[[Cell | None], str]]:
    """What the intervals of this report are of, and how one is written."""
    plan = report.plan
    head = f"{words.level(1 - words.decimal(plan.alpha))} interval"
    if plan.effect == "risk_difference":
        return head, words.interval
    return f"{head} ({plan.effect.replace('_', ' ')})", words.ratio_interval


def numbers(report: Report, finding: Finding) -> Table:
    """Errors on and off the slice of a finding: on discovery, on the holdout and on all units."""
    head, interval = interval_words(report)
    selected = " (selected)" if finding.confirmed else ""
    parts: list[tuple[str, Cell | None]] = [(f"All units{selected}", finding.full)]
    if holds_out(report):
        holdout = (f"Holdout{selected}", finding.holdout)
        parts = [("Discovery (selected)", finding.discovery), holdout, *parts]
    rows = [
        (
            part,
            words.share(cell, "on"),
            words.share(cell, "off"),
            words.signed(cell.lift),
            # what had to pass a bar has no interval of its own that holds
            words.NONE if finding.estimate is not None else interval(cell),
            words.p_value(cell.p),
            words.p_value(cell.p_adjusted),
        )
        for part, cell in parts
        if cell is not None
    ]
    if finding.estimate is not None:
        effect, ends = write_estimate(report, finding.estimate)
        none = words.NONE
        rows.append(("Corrected for selection", none, none, effect, ends, none, none))
    sides, lift = ("Errors on the slice", "Errors off it"), "Lift"
    if report.change is not None:
        second, first = name_sides(report)
        sides, lift = (f"Errors of {second}", f"Errors of {first}"), "Change"
    heads = (*sides, lift, head, "p", "Adjusted p")
    columns = (TableColumn("Units"), *(TableColumn(h, "number") for h in heads))
    return Table(
        f"{words.label(finding)}: errors {_name_place(report)}", columns, tuple(rows)
    ).drop_empty_columns()


def _name_place(report: Report) -> str:
    return "on and off the slice" if report.change is None else "on the slice"


def write_estimate(report: ReportData, estimate: Estimate) -> tuple[str, str]:
    """A corrected lift and its interval; of a ratio, the interval with the ratio in front."""
    low, high = estimate.interval
    if report.plan.effect == "risk_difference":
        return words.signed(estimate.effect), f"{words.signed(low)} to {words.signed(high)}"
    return words.NONE, f"{estimate.effect:.2f}: {low:.2f} to {high:.2f}"


def screened(report: Report) -> Table:
    """What cleared the screen and failed on the holdout, and why."""
    caption = "Screened, not confirmed"
    return _list_unconfirmed(report, Verdict.NOT_REPLICATED, caption)


def too_small(report: Report) -> Table:
    """What is beyond chance and smaller than the plan asks for."""
    return _list_unconfirmed(report, Verdict.TOO_SMALL, "Real, and smaller than was asked for")


def _list_unconfirmed(report: Report, verdict: Verdict, caption: str) -> Table:
    head, interval = interval_words(report)
    rows = tuple(
        (
            words.label(f),
            words.signed(f.discovery.lift, 3),
            words.signed(f.holdout.lift if f.holdout else None, 3),
            interval(f.holdout or f.full),
            words.p_value((f.holdout or f.full).p),
            words.p_value((f.holdout or f.full).p_adjusted),
            f.reason,
        )
        for f in report.findings
        if f.verdict is verdict
    )
    discovery = "Discovery lift (selected)" if holds_out(report) else "Lift"
    heads = (discovery, "Holdout lift", head, "p", "Adjusted p")
    columns = (
        TableColumn("Candidate", "code"),
        *(TableColumn(h, "number") for h in heads),
        TableColumn("Reason"),
    )
    return Table(caption, columns, rows).drop_empty_columns()


def everything(report: Report, max_rows: int) -> Table:
    """All candidates, at most so many of them: counts, lifts, verdict and reason."""
    rows = tuple(_row(f) for f in report.findings[:max_rows])
    side, other = name_sides(report)
    of = "" if report.change is None else "of "
    heads = (
        f"Errors {of}{side}",
        f"Errors {of}{other}",
        "Discovery lift (selected)",
        "Holdout lift",
        "Screen p",
        "Adjusted p",
    )
    columns = (
        TableColumn("Candidate", "code"),
        TableColumn("Rule", "under"),
        TableColumn("Verdict"),
        *(TableColumn(h, "number") for h in heads),
        TableColumn("Reason"),
        TableColumn("If all unscored"),
    )
    note = "Errors and rates are those of all units. The p-value of the screen is two-sided."
    if holds_out(report):
        note += " The adjusted one is of the holdout, one-sided in the discovery direction."
    else:
        columns = tuple(
            replace(c, head="Lift" if report.change is None else "Change")
            if c.head.startswith("Discovery")
            else c
            for c in columns
        )
        columns = tuple(replace(c, head="p") if c.head == "Screen p" else c for c in columns)
        rows = tuple((*row[:6], words.NONE, *row[7:]) for row in rows)
    return Table(
        "All candidates, the untestable ones too", columns, rows, note
    ).drop_empty_columns()


def _row(finding: Finding) -> tuple[str, ...]:
    holdout = finding.holdout
    p_adjusted = (holdout or finding.discovery).p_adjusted
    return (
        words.label(finding),
        "" if is_named_by_rule(finding) else finding.rule,
        words.VERDICTS[finding.verdict],
        words.share(finding.full, "on"),
        words.share(finding.full, "off"),
        words.signed(finding.discovery.lift),
        words.signed(holdout.lift if holdout else None),
        words.p_value(finding.discovery.p),
        words.p_value(p_adjusted),
        _codes(finding),
        describe_changes(finding),
    )


def is_named_by_rule(finding: Finding) -> bool:
    """Whether the rule is the name over again, a column as it stands."""
    return finding.rule.strip('"') == finding.name


def _codes(finding: Finding) -> str:
    """The codes that a reason starts with, where it does."""
    coded = finding.verdict in (Verdict.UNTESTABLE, Verdict.TOO_SMALL, Verdict.NOT_REPLICATED)
    return finding.reason.partition(": ")[0] if coded else ""


def key(report: Report) -> Table:
    """What the verdicts and codes of `everything` mean."""
    meanings: dict[str, str] = {}
    for f in report.findings:
        codes = [code for code in _codes(f).split(", ") if code]
        meanings |= {code: messages.REASONS.get(code, code) for code in codes}
        if not codes:
            meanings[words.VERDICTS[f.verdict]] = f.reason
    return Table(
        "What verdicts and codes mean",
        (TableColumn("Word"), TableColumn("Meaning")),
        tuple(meanings.items()),
    )


def describe_changes(finding: Finding) -> str:
    """How the verdict would turn had all unscored observations failed, or passed; empty where it
    would not.
    """
    changes = []
    for assumed, verdict in (finding.sensitivity or {}).items():
        if verdict != finding.verdict:
            changes.append(f"{assumed.removeprefix('all_')}: {words.VERDICTS[Verdict(verdict)]}")
    return "; ".join(changes)


def detectable(report: Report) -> Table:
    """The least lift that would have been found four times in five, by how common the slice is."""
    power = report.power
    rows = tuple(
        (
            words.level(words.decimal(share)),
            "none, however large" if lift is None else words.bare(lift),
        )
        for share, lift in power.minimum_detectable_lift.items()
    )
    columns = (
        TableColumn("Slice holds this share of units", "number"),
        TableColumn("Minimum detectable lift", "number"),
    )
    return Table(f"What would have been found with {words.level(power.power)} power", columns, rows)


def ineligible(report: Report) -> Table:
    """Why candidates could not be tested, and how many."""
    rows = tuple(
        (code, messages.REASONS.get(code, ""), words.count(number))
        for code, number in sorted(report.ineligible.items(), key=lambda item: -item[1])
    )
    columns = (
        TableColumn("Code", "code"),
        TableColumn("Meaning"),
        TableColumn("Candidates", "number"),
    )
    note = "One candidate may have several reasons."
    return Table(
        "Candidates that could not be tested", columns, rows, note if len(rows) > 1 else ""
    )


def unscored(report: Report) -> Table:
    """Observations that have no loss, by status."""
    rows = tuple(
        (status, words.count(n)) for status, n in report.statuses.items() if n or status == "scored"
    )
    columns = (TableColumn("Status"), TableColumn("Observations", "number"))
    note = "Only scored observations enter an error rate."
    return Table("Observations by status", columns, rows, note)


def baselines(report: Report) -> Table | None:
    """What weaker rules would have reported of the same evidence."""
    weaker = report.baselines
    if weaker is None:
        return None
    min_lift = words.decimal(report.plan.min_lift)
    lifted = report.plan.effect == "risk_difference"
    at_lift = [c.decoy for c in report.floor.curve if lifted and c.threshold >= min_lift]
    at_top = [c.decoy for c in report.floor.curve if c.real >= len(weaker.top_k)]
    fdp, survivors = report.floor.fdp, len(weaker.decoy_only)
    rules = (
        (
            weaker.fixed_lift,
            f"A fixed lift of {min_lift:g} on discovery, no decoys, no holdout",
            _say_chance(at_lift[-1:]),
        ),
        (
            weaker.top_k,
            "The largest lifts on discovery, no decoys, no holdout",
            _say_chance(at_top[:1]),
        ),
        (
            weaker.decoy_only,
            "The screen alone, no holdout",
            _say_chance([] if fdp is None else [fdp * survivors]),
        ),
        (weaker.full, "The whole rule", report.guarantee),
    )
    rows = tuple(
        (rule, words.count(len(names)), chance, words.listing(_clean(names), MAX_NAMES))
        for names, rule, chance in rules
    )
    columns = (
        TableColumn("Rule"),
        TableColumn("Reports", "number"),
        TableColumn("By chance alone"),
        TableColumn("Candidates"),
    )
    return Table("What weaker rules would have reported", columns, rows)


def _say_chance(decoys: Sequence[float]) -> str:
    """How many candidates pass a rule where nothing is there, as decoys estimate it."""
    if not decoys:
        return "chance alone gives some too; this judge does not estimate how many"
    return f"chance alone gives about {decoys[0]:.2g} of them"


def _clean(names: Sequence[str]) -> list[str]:
    return [words.clean(name) for name in names]


def manifest(report: Report) -> tuple[Table, ...]:
    """Everything needed to recompute the report."""
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
    rows = tuple((key, _plain(value)) for key, value in pairs.items() if value is not None)
    return Table(caption, (TableColumn(head), TableColumn("Value", "code")), rows)


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return words.listing([str(v) for v in value], MAX_NAMES)
    return (
        words.count(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)
    )
