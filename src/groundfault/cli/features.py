"""``features``: linguistic features of texts, as columns."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.options import require_writable, warnings_told
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from groundfault.language import FeatureTable


_KINDS = (".parquet", ".pq", ".csv", ".jsonl", ".ndjson")


@click.command()
@click.argument("source", type=click.Path(), metavar="SOURCE")
@click.option(
    "--text",
    "columns",
    metavar="COL",
    multiple=True,
    required=True,
    help="A column of texts; repeatable.",
)
@click.option(
    "--set",
    "names",
    default="surface,syntax,pragmatic",
    show_default=True,
    metavar="NAMES",
    help="Sets of features, or features, such as surface,negation.",
)
@click.option(
    "--pipeline",
    default="en_core_web_sm",
    show_default=True,
    metavar="NAME",
    help="A spaCy pipeline, its directory, or blank: no parser.",
)
@click.option("--norms", metavar="FILE", help="CSV of word norms: word, arousal, dominance.")
@click.option(
    "--cache",
    metavar="FILE",
    help="Keep what was annotated here, by hash of the text, for the next time.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes that annotate."
)
@click.option(
    "-o", "--out", required=True, metavar="FILE", help="Where to write: .parquet, .csv or .jsonl."
)
def features(**given: Any) -> None:
    """Add linguistic features of texts to a table, the 38 of the benchmark DEIM.

    SOURCE is a table; it is written again with a column a feature, such as question_negation: 1 or
    0 of what a text has or has not, and a number of what has a degree. What the pipeline cannot
    tell is listed, with what it would need.

    \b
    groundfault features texts.parquet --text question -o features.parquet
    groundfault features texts.parquet --text question --set surface,negation --pipeline blank -o features.parquet
    groundfault audit features.parquet --outcome error --finders declared,thresholds
    """
    from groundfault.exports.slices import write_table
    from groundfault.language import (
        chosen,
        feature_table,
        load_memory,
        load_pipeline,
        read_norms,
        save_memory,
    )
    from groundfault.readers.table import read_table

    for path in (given["out"], given["cache"]):
        require_writable(path)
    if not str(given["out"]).lower().endswith(_KINDS):
        raise InputError(
            f"cannot tell from {given['out']!r} how to write a table; name it .parquet, .csv or .jsonl"
        )
    wanted = chosen([name.strip() for name in given["names"].split(",") if name.strip()])
    if not wanted:
        raise PlanError("--set names no feature")
    norms = read_norms(given["norms"]) if given["norms"] else None
    table, _ = read_table(given["source"])
    for column in given["columns"]:
        _require_column(table, column)
    pipeline = load_pipeline(given["pipeline"])
    known = load_memory(pipeline, given["cache"]) if given["cache"] else 0
    for column in given["columns"]:
        started = time.perf_counter()
        with warnings_told(), _bar(f"reading {column}", table[column].n_unique()) as progress:
            found = feature_table(
                table[column], wanted, pipeline, norms=norms, jobs=given["jobs"], progress=progress
            )
        taken = [name for name in found.frame.columns if name in table.columns]
        if taken:
            raise InputError(f"the table has a column {taken[0]!r} already; rename it")
        table = table.hstack(found.frame)
        _tell(column, found, time.perf_counter() - started)
    write_table(table, given["out"])
    if given["cache"]:
        save_memory(pipeline, given["cache"])
        click.echo(
            f"cache: {known:,} texts known, {len(pipeline.memory):,} kept in {given['cache']}"
        )
    click.echo(f"wrote {table.height:,} rows to {given['out']}")


def _require_column(table: Any, column: str) -> None:
    if column not in table.columns:
        raise InputError(f"there is no column {column!r}; the table has {', '.join(table.columns)}")


@contextmanager
def _bar(title: str, texts: int) -> Any:
    """A bar on standard error where a person looks at it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield bool
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(title, total=texts)
        yield lambda done: bar.advance(task, done)


def _tell(column: str, found: FeatureTable, seconds: float) -> None:
    rate = found.sentences / seconds if seconds else 0.0
    click.echo(
        f"{column}: {found.frame.width} features of {found.texts:,} different texts, about {found.sentences:,} "
        f"sentences in {seconds:.1f} s ({rate:,.0f} a second)"
    )
    for name, reason in found.lacking.items():
        click.echo(f"  {name} {reason}")
