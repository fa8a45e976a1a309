"""What the commands of sequential audits print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.asking import clean

if TYPE_CHECKING:
    from groundfault.sequential import SequentialAudit


def format_progress(audit: SequentialAudit, cost: float | None) -> str:
    """One line: labels, their cost, both e-values, and what would stop the audit."""
    from groundfault.sequential.stopping_time import count_to_stop

    wealth, bar = audit.wealth, 1 / audit.plan.alpha
    cost_note = "" if cost is None else f", cost {cost * count_labels(audit):.2f}"
    line = (
        f"{audit.labelled} labelled{cost_note}; e-value against the model {wealth.model:.3g}, "
        f"against the auditor {wealth.auditor:.3g} (rejected at {bar:g})"
    )
    distance = count_to_stop(audit)
    ways = [
        f"{count} {what} in a row"
        for count, what in ((distance.failures, "failures"), (distance.passes, "passes"))
        if count
    ]
    return f"{line}; in {clean(distance.group)} {' or '.join(ways)} would stop it" if ways else line


def count_labels(audit: SequentialAudit) -> int:
    """Number of labels: one for each case, or one for each person who scored it."""
    reviewed = {review["step"] for review in audit.reviews}
    return len(audit.reviews) + sum(r.closed and r.query.step not in reviewed for r in audit.rounds)


def echo_state(audit: SequentialAudit, cost: float | None) -> None:
    """Print the verdict, the groups and the next case."""
    click.echo(f"{audit.verdict}: {clean(audit.reason)}")
    if audit.verdict == "failure mode found":
        click.echo(f"refuted: {clean(audit.null)}")
    elif audit.verdict == "inconclusive":
        click.echo(format_progress(audit, cost))
    if not audit.claim.guaranteed:
        click.echo("sampling as in the paper: on a finite pool it does not keep the error rate")
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "group", "cases", "labelled", "unscored", "mean score", box=None, header_style="bold"
    )
    for row in audit.groups:
        counts = (str(count) for count in (row.size, row.labelled, row.unscored))
        mean = "-" if row.mean is None else f"{row.mean:.3f}"
        table.add_row(_markup(row.group), *counts, mean)
    Console().print(table)
    if audit.open is not None:
        query = audit.open.query
        click.echo(
            f"next: case {clean(query.id)} (query {query.step}), "
            f"drawn from {clean(query.group or 'a set')}"
        )
    elif not audit.finished:
        click.echo("next: not drawn yet; run the audit again to go on")


def prospects_table(prospect_rows: list[Any], cost: float | None) -> Any:
    """Simulated verdicts and stopping times as a table for the terminal."""
    from rich.table import Table

    columns = ["pass rate", "m", "found", "passed", "neither", "10 %", "median", "90 %"]
    table = Table(*columns, *([] if cost is None else ["cost"]), box=None, header_style="bold")
    for p in prospect_rows:
        shares = (f"{share:.2f}" for share in (p.failure_rate, p.pass_rate, p.inconclusive_rate))
        cost_cell = [] if cost is None else [f"{cost * p.labels[1]:.2f}"]
        table.add_row(
            _markup(p.world),
            str(p.budget),
            *shares,
            *(str(count) for count in p.labels),
            *cost_cell,
        )
    return table


def _markup(value: object) -> str:
    from rich.markup import escape

    return escape(clean(value))
