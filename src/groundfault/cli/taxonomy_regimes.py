"""``taxonomy depth`` and ``taxonomy gaps``: failures by depth, and graders against execution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundfault.cli.command import COLUMNS, RULE, GroupedCommand, option
from groundfault.cli.options import evidence_options
from groundfault.cli.output import require_writable, show_progress
from groundfault.cli.reading import read_evidence
from groundfault.cli.settings import own_options

_OUT = option(
    "--out", metavar="FILE", help="Write all numbers to this file: .parquet, .csv or .jsonl."
)
_LEVEL = option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    group=RULE,
    help="Confidence level of the intervals.",
)


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    for command in (depth, gaps):
        group.add_command(command)


@click.command(cls=GroupedCommand, first="outcome id model repeat column score rate out")
@evidence_options
@option(
    "--depth",
    "column",
    required=True,
    metavar="COL",
    group=COLUMNS,
    help="Column of the depth: turns, budget, or another order.",
)
@own_options
@_LEVEL
@_OUT
def depth(
    *,
    column: str,
    out: str | None,
    score: float = 0.7,
    rate: float = 0.5,
    level: float,
    **options: Any,
) -> None:
    """Show the failure rate of each model by depth of the conversation.

    Rates have Wilson intervals. Where an example occurs at several depths, name the depth column in
    --repeat too.

    \b
    groundfault taxonomy depth mint.parquet --id id --model-column model --outcome error \\
        --repeat turns --depth turns

    Rule
    ----
    score
        Score from which a try is a pass.
    rate
        Share of passed tries from which an example is passed.
    """
    from groundfault.render.regimes_page import make_depth_page
    from groundfault.taxonomy.use.regimes import depth_profile

    require_writable(out)
    with show_progress(False) as progress:
        profile = depth_profile(
            read_evidence(options, progress), column, score=score, rate=rate, level=level
        )
    title = ", ".join(Path(source).name for source in options["sources"])
    _say(make_depth_page(profile, column, title, level), profile, out)


@click.command(cls=GroupedCommand)
@click.argument("traces", type=click.Path(), metavar="TRACES")
@option(
    "--grader",
    "grader",
    required=True,
    metavar="COL",
    old_name="--judge",
    help="Column of the grader's verdicts, 1 for success and 0 for none.",
)
@option(
    "--execution",
    required=True,
    metavar="COL",
    help="Column of execution results, 1 for success and 0 for none.",
)
@option(
    "--by",
    multiple=True,
    metavar="COL",
    help="Column that splits the table into cells, such as attack or model; repeatable.",
)
@_LEVEL
@_OUT
def gaps(
    traces: str, grader: str, execution: str, by: tuple[str, ...], level: float, out: str | None
) -> None:
    """Compare an LLM grader's verdicts with execution results.

    TRACES is a table with one row for each trace.

    \b
    groundfault taxonomy gaps traces.csv --grader graded --execution ran --by attack --by model
    """
    from groundfault.readers.table import read_table
    from groundfault.render.regimes_page import make_gap_page, make_gap_table
    from groundfault.taxonomy.use.regimes import grader_gaps

    require_writable(out)
    gap_rows = grader_gaps(
        read_table(traces, text=by)[0], grader=grader, execution=execution, by=by, level=level
    )
    content = make_gap_page(gap_rows, by, Path(traces).name, level)
    _say(content, make_gap_table(gap_rows, by), out)


def _say(content: Any, table: Any, out: str | None) -> None:
    from rich.console import Console

    from groundfault.base.sheets import write_table
    from groundfault.render.terminal import show

    if out:
        write_table(table, out)
    show(content, Console(highlight=False))
    if out:
        click.echo(f"written to {out}")
