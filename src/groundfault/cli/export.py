"""``export``: give what was found back to the tools that people work in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from groundfault.cli.options import require_writable
from groundfault.errors import InputError

if TYPE_CHECKING:
    from groundfault.exports import Slices

TOOLS = ("inspect", "eee", "label-studio", "memberships")


@click.command()
@click.argument("report", type=click.Path())
@click.option(
    "--to", "tool", type=click.Choice(TOOLS), required=True, help="Which tool to write for."
)
@click.option(
    "-o", "--out", type=click.Path(), required=True, metavar="OUT", help="Where to write."
)
@click.option("--evidence", metavar="SRC", help="Where the evidence is now, if it has moved.")
@click.option(
    "--log", "logs", metavar="FILE", multiple=True, help="For inspect: a log to copy; repeatable."
)
@click.option(
    "--every", is_flag=True, help="All candidates that were judged, not the confirmed ones alone."
)
def export(
    report: str, tool: str, out: str, evidence: str | None, logs: tuple[str, ...], every: bool
) -> None:
    """Write which examples are on the confirmed slices of REPORT, for another tool to show.

    REPORT is the directory that audit --out wrote; the evidence is read again and must be
    unchanged.

    \b
    inspect       copies of the Inspect logs, with slices as sample metadata and findings as log metadata; OUT is a
                  directory
    eee           Every Eval Ever instance records, with slices as metadata; OUT is a .jsonl file
    label-studio  tasks for the examples on the slices, blind to their scores; OUT is a .json file
    memberships   a table with a column a slice; OUT is a .csv, .parquet or .jsonl file

    \b
    groundfault export report/ --to inspect -o annotated/
    groundfault export report/ --to memberships -o slices.csv
    """
    from groundfault.exports import Slices

    if logs and tool != "inspect":
        raise InputError("--log goes with --to inspect")
    require_writable(out, directory=tool == "inspect" and not Path(out).suffix)
    slices = Slices.load(report, evidence, every=every)
    outcome = _write(slices, tool, out, logs)
    count = len(slices.names)
    click.echo(f"{count} slice{'' if count == 1 else 's'}: {outcome}")


def _write(slices: Slices, tool: str, out: str, logs: tuple[str, ...]) -> str:
    from groundfault.exports import every_eval_ever, inspect, label_studio
    from groundfault.exports.slices import write_table

    if tool == "inspect":
        copies = inspect.annotate(slices, out, logs)
        return f"wrote {len(copies)} annotated log{'' if len(copies) == 1 else 's'} to {out}"
    if tool == "memberships":
        members = slices.members()
        write_table(members, out)
        return f"wrote {members.height:,} rows to {out}"
    if tool == "eee":
        return f"wrote {every_eval_ever.write(slices, out):,} records to {out}"
    return f"wrote {label_studio.write(slices, out):,} tasks to {out}"
