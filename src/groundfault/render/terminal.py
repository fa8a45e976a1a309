"""The report in a terminal: the answer, its numbers, what it could not see, and where the rest
is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.report import Report
from groundfault.core.finding import Finding
from groundfault.render import tables, words
from groundfault.render.outline import Outline, distinct, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from groundfault.auditing.checking import Check, Prospect
    from groundfault.core.evidence import Evidence

MOST_CONFIRMED = 20
MOST_SCREENED = 10
MOST_LOGS = 10


def show(report: Report, console: Console, written: str | Path | None = None) -> None:
    """Print a report.

    Parameters
    ----------
    report : Report
    console : rich.console.Console
        Right from 80 columns on.
    written : path, optional
        Where the whole report was written.
    """
    said = Outline(report)
    style = "bold green" if report.confirmed else "bold"
    console.print(_text(said.headline, style))
    console.print(_text(said.title, "dim"))
    if said.instrument:
        console.print(_text(said.instrument, "bold yellow"))
    if said.reopened:
        console.print(
            _text(
                f"This holdout had been seen before. {words.capital(said.ledger)}.", "bold yellow"
            )
        )
    if report.confirmed or said.screened:
        console.print()
        console.print(_table(said))
        if tables.held_out(report):
            console.print(_text("* selected as among the largest, so too large on average", "dim"))
    console.print()
    console.print(_text(words.tally(report.counts())))
    console.print(_text(said.conclusion))
    console.print(_text(said.footing))
    if said.unscored:
        console.print(_text(said.unscored))
    for hint in report.hints:
        console.print(_text(f"Hint: {hint}.", "yellow"))
    if written is not None:
        console.print(_text(f"Report: {written}", "bold"), soft_wrap=True)


def show_check(check: Check, console: Console) -> None:
    """Print what an audit could find, before its holdout is opened."""
    summary = check.summary
    fit = sorted(
        (p for p in check.prospects if not p.reason), key=lambda p: p.minimum_detectable_lift or 1.0
    )
    unfit = [p for p in check.prospects if p.reason]
    total = words.count(len(check.prospects))
    console.print(
        _text(f"{words.count(len(fit))} of {total} candidates could be confirmed", "bold")
    )
    console.print(
        _text(
            f"{words.count(summary['n'])} units ({words.count(summary['n_discovery'])} discovery, "
            f"{words.count(summary['n_holdout'])} holdout); discovery error rate "
            f"{words.rate(summary['discovery_error_rate'])}; judge {summary['judge']}."
        )
    )
    least = summary["power"]["minimum_detectable_lift"].items()
    said = ", ".join(
        f"{words.bare(lift)} at prevalence {words.level(float(share))}" for share, lift in least
    )
    console.print(
        _text(f"Least lift found with {words.level(summary['power']['power'])} power: {said}.")
    )
    if fit:
        console.print()
        console.print(_prospects(fit))
    if unfit:
        console.print()
        console.print(_unfit(unfit))


def show_import(evidence: Evidence, console: Console, written: str | Path | None = None) -> None:
    """Print what was read from logs, and what became of every row."""
    account = evidence.account
    assert account is not None
    console.print(_text(account.lines()[0], "bold"))
    table = _plain_table("Log", "reader", "rows", "written by")
    for log in account.logs[:MOST_LOGS]:
        table.add_row(
            *map(
                _text,
                (words.tail(log.path), log.reader, words.count(log.observations), log.harness),
            )
        )
    if len(account.logs) > MOST_LOGS:
        table.add_row(_text(f"and {words.count(len(account.logs) - MOST_LOGS)} more", "dim"))
    console.print(table)
    scored = evidence.loss.drop_nulls()
    counts = ", ".join(
        f"{words.count(n)} {status}" for status, n in evidence.status_counts.items() if n
    )
    rate = f"; error rate {words.rate(float(scored.mean()))}" if len(scored) else ""  # type: ignore[arg-type]
    console.print(_text(f"Rows by status: {counts}{rate}."))
    for line in account.lines()[1:]:
        console.print(_text(f"{words.capital(line)}.", "yellow"))
    if written is not None:
        console.print(
            _text(f"Evidence: {written}; audit it with: groundfault audit {written}", "bold"),
            soft_wrap=True,
        )


def _prospects(fit: Sequence[Prospect]) -> Table:
    table = _plain_table("Could be confirmed", "on", "off", "least lift")
    for p in fit[:MOST_CONFIRMED]:
        numbers = (words.count(p.on), words.count(p.off), words.bare(p.minimum_detectable_lift))
        table.add_row(_text(words.named(p.name, p.outcome)), *map(_text, numbers))
    if len(fit) > MOST_CONFIRMED:
        table.add_row(_text(f"and {words.count(len(fit) - MOST_CONFIRMED)} more", "dim"))
    return table


def _unfit(unfit: Sequence[Prospect]) -> Table:
    reasons: dict[str, list[str]] = {}
    for p in unfit:
        reasons.setdefault(p.reason, []).append(words.named(p.name, p.outcome))
    table = _plain_table("Can never be confirmed here", "candidates")
    for why, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        table.add_row(_text(f"{why} ({words.listing(names, 4)})"), _text(words.count(len(names))))
    return table


def _plain_table(first: str, *numbers: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(_text(first), overflow="fold", min_width=16, ratio=1)
    for name in numbers:
        table.add_column(_text(name), justify="right", no_wrap="interval" not in name)
    return table


def _table(said: Outline) -> Table:
    report = said.report
    held = tables.held_out(report)
    head, interval = tables.interval_words(report)
    table = _plain_table(
        "Finding", "on", "off", *(("discovery*", "holdout") if held else ("lift",)), head, "adj. p"
    )

    def add(finding: Finding, style: str, indent: str = "") -> None:
        cell = shown(finding)
        lifts = [finding.discovery.lift, cell.lift] if held else [cell.lift]
        numbers = [words.rate(cell.on_rate), words.rate(cell.off_rate), *map(words.signed, lifts)]
        numbers += [interval(cell), words.p_value(cell.p_adjusted)]
        table.add_row(_text(indent + words.label(finding)), *map(_text, numbers), style=style)

    def left_out(number: int) -> None:
        if number > 0:
            table.add_row(_text(f"and {words.count(number)} more", "dim"))

    confirmed = [
        (f, "  " if f.representative else "") for g in said.groups for f in (g.lead, *g.distinct)
    ]
    for finding, indent in confirmed[:MOST_CONFIRMED]:
        add(finding, "", indent)
    left_out(len(confirmed) - MOST_CONFIRMED)
    screened = distinct(said.screened)
    if screened:
        table.add_section()
        table.add_row(_text("Screened, not confirmed", "bold"))
        for finding in screened[:MOST_SCREENED]:
            add(finding, "dim")
        left_out(len(screened) - MOST_SCREENED)
    return table


def _text(text: object, style: str = "") -> Text:
    from rich.text import Text

    return Text(words.clean(text), style=style)
