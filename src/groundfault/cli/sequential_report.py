"""``sequential report``: a sequential audit, or a confirmation, as pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.output import claim_folder
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.sequential import Certificate, Confirmation


@click.command()
@click.argument("source", type=click.Path())
@click.option("--out", metavar="DIR", help="Write the pages and the JSON to this folder.")
@click.option(
    "--seal",
    default="",
    metavar="HEX",
    help="Seal of the audit, where a ledger holds several; by default the last.",
)
def report(source: str, out: str | None, seal: str) -> None:
    """Print the page of a sequential audit, and write it as HTML and Markdown.

    SOURCE is a certificate, the JSON of a confirmation, or the ledger of an audit, whose present
    state is then shown. With --out the folder gets report.html, report.md, and certificate.json
    or confirmation.json.

    \b
    groundfault sequential report certificate.json --out report/
    groundfault sequential report groundfault-ledger.db --out report/
    """
    from rich.console import Console

    from groundfault.render.sequential_page import show

    with claim_folder(out) as folder:
        result = _load(source, seal)
        if folder:
            result.to_json(folder / f"{type(result).__name__.lower()}.json")
            result.to_markdown(folder / "report.md")
            result.to_html(folder / "report.html")
    show(result, Console(), Path(out) / "report.html" if out else None)


def _load(source: str, seal: str) -> Certificate | Confirmation:
    """The result that a file of JSON holds, or the state of the audit in a ledger."""
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
