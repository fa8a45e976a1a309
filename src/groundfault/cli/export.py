"""``export``: give what was found back to the tools that people work in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.output import require_writable
from groundfault.errors import InputError


@click.command(cls=GroupedCommand)
@click.argument("report", type=click.Path())
@option("--to", "tool", metavar="NAME", required=True, help="Tool to write for.")
@option(
    "-o",
    "--out",
    type=click.Path(),
    required=True,
    metavar="OUT",
    help="File to write, or folder for inspect.",
)
@option(
    "--evidence",
    metavar="SRC",
    multiple=True,
    help="Where the evidence is now, if it has moved; repeatable, in the order of the report's "
    "sources.",
)
@option(
    "--log",
    "logs",
    metavar="FILE",
    multiple=True,
    help="Log to copy, for inspect; repeatable; by default every log of the evidence.",
)
@option(
    "--all-candidates",
    "every",
    is_flag=True,
    old_name="--every",
    help="Export all candidates, not only the confirmed ones.",
)
@option("--no-text", is_flag=True, help="Leave columns of texts out, for html-explorer.")
def export(
    report: str,
    tool: str,
    out: str,
    evidence: tuple[str, ...],
    logs: tuple[str, ...],
    every: bool,
    no_text: bool,
) -> None:
    """Write which examples are in the failure modes and confirmed slices of REPORT, for a tool.

    REPORT is the directory that audit --out wrote; the evidence is read again and must be
    unchanged.

    \b
    inspect       copies of the Inspect logs, with slices as sample metadata and
                  findings as log metadata; OUT is a directory
    eee           Every Eval Ever instance records, with slices as metadata;
                  OUT is a .jsonl file
    label-studio  tasks for the examples on the slices, without their scores;
                  OUT is a .json file
    memberships   a table with one column for each slice; OUT is a .csv, .parquet
                  or .jsonl file
    html-explorer one .html file that shows the report and its examples in any
                  browser, without a server; of a report with a holdout, the
                  discovery rows

    Installed packages may add names.

    \b
    groundfault export report/ --to inspect -o annotated/
    groundfault export report/ --to memberships -o slices.csv
    groundfault export report/ --to html-explorer -o report.html
    """
    from groundfault import exports
    from groundfault.render.words import plural

    if logs and tool != "inspect":
        raise InputError("--log goes with --to inspect")
    if no_text and tool != "html-explorer":
        raise InputError("--no-text goes with --to html-explorer")
    settings: dict[str, Any] = {"logs": logs} if logs else {}
    exporter = exports.get(tool, **settings, **({"texts": False} if no_text else {}))
    # OUT of inspect may be one log or a folder of several; its suffix tells
    require_writable(out, directory=tool == "inspect" and not Path(out).suffix)
    slices = exports.ReportSlices.load(report, evidence or None, every=every)
    result = exporter.export(slices, Path(out))
    modes = len(slices.report.modes)
    named = f"{plural(modes, 'failure mode')} and " if modes else ""
    click.echo(f"{named}{plural(len(slices.library), 'slice')}: wrote {result} to {out}")
