"""``sequential report``, and the state of a sequential audit in the shell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.labelling import clean
from groundfault.cli.output import claim_folder
from groundfault.cli.settings import own_options
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.render.page import Table
    from groundfault.sequential import Certificate, Confirmation, SequentialAudit
    from groundfault.sequential.stopping_time import StoppingForecast


def format_progress(audit: SequentialAudit, cost: float | None) -> str:
    """Return one line: labels, their cost, both e-values, and what would stop the audit."""
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
    """Return the number of labels: one for each case, or one for each person who scored it."""
    reviewed = {review["step"] for review in audit.reviews}
    return len(audit.reviews) + sum(r.closed and r.query.step not in reviewed for r in audit.rounds)


def echo_state(audit: SequentialAudit, certificate: Certificate, cost: float | None) -> None:
    """Print the verdict, the groups and the next case."""
    from rich.console import Console

    from groundfault.render.sequential_page import describe_left_out, tabulate_groups
    from groundfault.render.terminal import fit_table

    click.echo(clean(certificate.sentence))
    if audit.verdict == "failure mode found":
        click.echo(f"refuted: {clean(audit.null)}")
    elif audit.verdict == "inconclusive":
        click.echo(format_progress(audit, cost))
    if not audit.claim.guaranteed:
        click.echo("sampling as in the paper: on a finite pool it does not keep the error rate")
    if certificate.caution:
        click.echo(certificate.caution)
    if certificate.left_out:
        click.echo(clean(describe_left_out(certificate)))
    console = Console()
    console.print(fit_table(tabulate_groups(certificate), console.width))
    if audit.open is not None:
        query = audit.open.query
        click.echo(
            f"next: case {clean(query.id)} (query {query.step}), "
            f"drawn from {clean(query.group or 'a set')}"
        )
    elif not audit.finished:
        click.echo("next: not drawn yet; run the audit again to go on")


def tabulate_prospects(prospects: Sequence[StoppingForecast], cost: float | None) -> Table:
    """Return simulated verdicts and stopping times."""
    from groundfault.render.page import Table, TableColumn

    heads = ["Burn-in", "Found", "Passed", "Neither", "10%", "Median", "90%"]
    heads += [] if cost is None else ["Cost"]
    columns = (TableColumn("Pass rate", "code"), *(TableColumn(head, "number") for head in heads))
    rows = tuple(_prospect_row(prospect, cost) for prospect in prospects)
    note = "10%, median, 90%: cases labelled until the audit stops; cost: of the median"
    return Table("Simulated audits", columns, rows, note)


def _prospect_row(prospect: StoppingForecast, cost: float | None) -> tuple[str, ...]:
    rates = (prospect.failure_rate, prospect.pass_rate, prospect.inconclusive_rate)
    return (
        prospect.world,
        str(prospect.burn_in),
        *(f"{rate:.2f}" for rate in rates),
        *(str(count) for count in prospect.labels),
        *(() if cost is None else (f"{cost * prospect.labels[1]:.2f}",)),
    )


@click.command()
@own_options
def report(source: str, *, out: str | None = None, seal: str = "") -> None:
    """Print and write the page of a sequential audit.

    SOURCE is a certificate, the JSON of a confirmation, or the ledger of an audit, whose present
    state is then shown. With --out the folder gets report.html, report.md, and certificate.json
    or confirmation.json.

    \b
    groundfault sequential report certificate.json --out report/
    groundfault sequential report groundfault-ledger.db --out report/

    Output
    ------
    out : DIR
        Write the pages and the JSON to this folder.
    seal : HEX
        Seal of the audit, where a ledger holds several; by default the last.
    """
    from rich.console import Console

    from groundfault.render import make_outline
    from groundfault.render.terminal import show

    with claim_folder(out) as folder:
        result = _load(source, seal)
        if folder:
            result.to_json(folder / f"{type(result).__name__.lower()}.json")
            result.to_markdown(folder / "report.md")
            result.to_html(folder / "report.html")
    show(make_outline(result), Console(), Path(out) / "report.html" if out else None)


def _load(source: str, seal: str) -> Certificate | Confirmation:
    """Return the result that a file of JSON holds, or the state of the audit in a ledger."""
    from groundfault.readers.safely import json_file
    from groundfault.sequential import Certificate, Confirmation, SequentialAudit

    path = Path(source)
    if path.suffix != ".json":
        return SequentialAudit.from_ledger(source, seal).certificate()
    if seal:
        raise PlanError("--seal chooses one audit of a ledger, and SOURCE is a JSON file")
    data = json_file(path, dict[str, Any])
    # confirmations of 0.1.0 have no version field, certificates always had one
    kind = Certificate if "groundfault_certificate" in data else Confirmation
    return kind.from_dict(data, source)
