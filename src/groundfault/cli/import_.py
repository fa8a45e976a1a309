"""``import``: logs of evaluation tools become evidence."""

from __future__ import annotations

from typing import Any

import click

from groundfault.cli.options import log_options
from groundfault.cli.output import require_writable, show_progress
from groundfault.cli.reading import read_evidence


@click.command("import")
@log_options
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    help="Write the evidence to this folder, which other commands take as SOURCE.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the account of all rows as JSON.")
def import_(**options: Any) -> None:
    """Read the logs of evaluation tools, merge them, and account for every row.

    SOURCE is a log, a folder of logs, or a pattern in quotes. Logs of Inspect,
    lm-evaluation-harness, HELM, promptfoo, Every Eval Ever and a dozen more are recognised by their
    content. Tables of another layout need --map; other commands read one table with --outcome.
    Without -o nothing is written.

    \b
    groundfault import logs/ -o evidence/
    groundfault import 'runs/**/samples_*.jsonl' --scorer exact_match,strict-match -o evidence/
    groundfault import scores.csv --map map.toml -o evidence/
    """
    require_writable(options["out"], directory=True)
    with show_progress(options["as_json"]) as progress:
        evidence = read_evidence({**options, "outcome": None}, progress)
        if options["out"]:
            progress("writing the evidence")
            evidence.save(options["out"])
    assert evidence.account is not None
    if options["as_json"]:
        import json

        account = evidence.account.to_dict() | {
            "statuses": evidence.status_counts,
            "hash": evidence.hash,
        }
        click.echo(json.dumps(account, indent=1, ensure_ascii=False))
        return
    from rich.console import Console

    from groundfault.render.preview_pages import make_import_page
    from groundfault.render.terminal import show

    show(make_import_page(evidence, options["out"]), Console())
