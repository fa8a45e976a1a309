"""``taxonomy depth`` and ``taxonomy gaps``: conversations of growing depth, and attacks judged and
executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundfault.cli.options import (
    evidence_options,
    read_evidence,
    require_writable,
    show_progress,
)

_OUT = click.option(
    "--out", metavar="FILE", help="Write every number here: .parquet, .csv or .jsonl."
)
_LEVEL = click.option(
    "--level", type=float, default=0.95, show_default=True, help="Of each interval."
)


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    for command in (depth, gaps):
        group.add_command(command)


@click.command()
@evidence_options
@click.option(
    "--depth", "column", required=True, metavar="COL", help="Turns, budget, or another order."
)
@click.option(
    "--score", type=float, default=0.7, show_default=True, help="A try passes from this score on."
)
@click.option(
    "--rate",
    type=float,
    default=0.5,
    show_default=True,
    help="An example passes from this share of its tries on.",
)
@_LEVEL
@_OUT
def depth(
    column: str, out: str | None, score: float, rate: float, level: float, **options: Any
) -> None:
    """Failure rates of each model by depth of the conversation.

    Each has Wilson's interval. An example that is met at several depths has --repeat name the
    depth, too.

    \b
    groundfault taxonomy depth mint.parquet --id id --model-column model --repeat turns --depth turns --outcome error
    """
    from groundfault.render.regimes import depths
    from groundfault.taxonomy.use.regimes import depth_profile

    require_writable(out)
    with show_progress(False) as progress:
        profile = depth_profile(
            read_evidence(options, progress), column, score=score, rate=rate, level=level
        )
    title = ", ".join(Path(source).name for source in options["sources"])
    _say(depths(profile, column, title, level), profile, out)


@click.command()
@click.argument("traces", type=click.Path(), metavar="TRACES")
@click.option(
    "--judge", required=True, metavar="COL", help="0/1: the judge says that it succeeded."
)
@click.option(
    "--execution", required=True, metavar="COL", help="0/1: execution shows that it succeeded."
)
@click.option(
    "--by",
    multiple=True,
    metavar="COL",
    help="What makes a cell, such as attack or model; repeatable.",
)
@_LEVEL
@_OUT
def gaps(
    traces: str, judge: str, execution: str, by: tuple[str, ...], level: float, out: str | None
) -> None:
    """Where a judge's word departs from what execution shows.

    TRACES is a table with a row for each trace.

    \b
    groundfault taxonomy gaps traces.csv --judge judged --execution ran --by attack --by model
    """
    from groundfault.readers.table import read_table
    from groundfault.render.regimes import gap_table
    from groundfault.render.regimes import gaps as page
    from groundfault.taxonomy.use.regimes import judge_gaps

    require_writable(out)
    gap_rows = judge_gaps(
        read_table(traces, text=by)[0], judge=judge, execution=execution, by=by, level=level
    )
    _say(page(gap_rows, by, Path(traces).name, level), gap_table(gap_rows, by), out)


def _say(content: Any, table: Any, out: str | None) -> None:
    from rich.console import Console

    from groundfault.exports.slices import write_table
    from groundfault.render.page import show

    if out:
        write_table(table, out)
    show(content, Console(highlight=False))
    if out:
        click.echo(f"written to {out}")
