"""``import``: logs of evaluation tools become evidence."""

from __future__ import annotations

from typing import Annotated, Any

import click

from groundfault.cli.options import log_options
from groundfault.cli.output import require_writable, show_page, show_progress, write_result
from groundfault.cli.reading import read_evidence
from groundfault.cli.settings import Flag, own_options


@click.command("import")
@log_options
@own_options
def import_(
    *,
    out: Annotated[str | None, Flag("-o --out")] = None,
    as_json: Annotated[bool, Flag("--json")] = False,
    **options: Any,
) -> None:
    """Read the logs of evaluation tools, merge them, and account for every row.

    SOURCE is a log, a folder of logs, or a pattern in quotes. Logs of Inspect,
    lm-evaluation-harness, HELM, promptfoo, Every Eval Ever and a dozen more are recognised by their
    content. Tables of another layout need --map; other commands read one table with --outcome.
    Without -o nothing is written.

    \b
    groundfault import logs/ -o evidence/
    groundfault import 'runs/**/samples_*.jsonl' --scorer exact_match,strict-match -o evidence/
    groundfault import scores.csv --map map.toml -o evidence/

    Output
    ------
    out : DIR
        Write the evidence to this folder, which other commands take as SOURCE.
    as_json
        Print the account of all rows as JSON.
    """
    from groundfault.render.preview_pages import make_import_page

    require_writable(out, directory=True)
    with show_progress(as_json) as progress:
        evidence = read_evidence({**options, "outcome": None}, progress)
        if out:
            progress("writing the evidence")
            evidence.save(out)
    assert evidence.account is not None
    if as_json:
        more = {"statuses": evidence.status_counts, "hash": evidence.hash}
        write_result(evidence.account.to_dict() | more, "-")
    else:
        show_page(make_import_page(evidence, out))
