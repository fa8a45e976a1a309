"""``features``: linguistic features of texts, as columns."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.output import echo_warnings, require_writable
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
    help="Column of texts; repeatable.",
)
@click.option(
    "--set",
    "names",
    default="surface,syntax,pragmatic",
    show_default=True,
    metavar="NAMES",
    help="Names of features, or of sets of features, such as surface,negation.",
)
@click.option(
    "--pipeline",
    default="en_core_web_sm",
    show_default=True,
    metavar="NAME",
    help="Name or directory of the spaCy pipeline, or blank for none.",
)
@click.option("--norms", metavar="FILE", help="CSV file of word norms: word, arousal, dominance.")
@click.option(
    "--cache",
    metavar="FILE",
    help="Store annotations in this file by hash of the text, and reuse them next time.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes that annotate.",
)
@click.option(
    "-o",
    "--out",
    required=True,
    metavar="FILE",
    help="Write the table to this file: .parquet, .csv or .jsonl.",
)
def features(**options: Any) -> None:
    """Add the 38 linguistic features of the benchmark DEIM to a table of texts.

    SOURCE is a table; it is written again with one column for each feature, such as
    question_negation: 1 or 0 for what a text has or lacks, a number for what has a degree.
    Features that the pipeline cannot compute are listed, with what they need.

    \b
    groundfault features texts.parquet --text question -o features.parquet
    groundfault features texts.parquet --text question --set surface,negation \\
        --pipeline blank -o features.parquet
    groundfault audit features.parquet --outcome error --finders declared,thresholds
    """
    from groundfault.exports.slices import write_table
    from groundfault.language import (
        feature_table,
        load_memory,
        load_pipeline,
        read_norms,
        save_memory,
        select_features,
    )
    from groundfault.readers.table import read_table

    for path in (options["out"], options["cache"]):
        require_writable(path)
    if not str(options["out"]).lower().endswith(_KINDS):
        raise InputError(
            f"cannot tell from {options['out']!r} how to write a table; "
            "name it .parquet, .csv or .jsonl"
        )
    names = select_features([name.strip() for name in options["names"].split(",") if name.strip()])
    if not names:
        raise PlanError("--set names no feature")
    norms = read_norms(options["norms"]) if options["norms"] else None
    table, _ = read_table(options["source"])
    for column in options["columns"]:
        _require_column(table, column)
    pipeline = load_pipeline(options["pipeline"])
    # annotation takes nearly all of the time, and depends on the text and the pipeline alone
    n_cached = load_memory(pipeline, options["cache"]) if options["cache"] else 0
    for column in options["columns"]:
        start = time.perf_counter()
        with echo_warnings(), _bar(f"reading {column}", table[column].n_unique()) as progress:
            features = feature_table(
                table[column], names, pipeline, norms=norms, jobs=options["jobs"], progress=progress
            )
        clashes = [name for name in features.frame.columns if name in table.columns]
        if clashes:
            raise InputError(f"the table has a column {clashes[0]!r} already; rename it")
        table = table.hstack(features.frame)
        _tell(column, features, time.perf_counter() - start)
    write_table(table, options["out"])
    if options["cache"]:
        save_memory(pipeline, options["cache"])
        click.echo(
            f"cache: {n_cached:,} texts known, {len(pipeline.memory):,} kept in {options['cache']}"
        )
    click.echo(f"wrote {table.height:,} rows to {options['out']}")


def _require_column(table: Any, column: str) -> None:
    if column not in table.columns:
        raise InputError(f"there is no column {column!r}; the table has {', '.join(table.columns)}")


@contextmanager
def _bar(title: str, texts: int) -> Any:
    """A progress bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield bool
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(title, total=texts)
        yield lambda n: bar.advance(task, n)


def _tell(column: str, features: FeatureTable, seconds: float) -> None:
    rate = features.sentences / seconds if seconds else 0.0
    click.echo(
        f"{column}: {features.frame.width} features of {features.texts:,} different texts, "
        f"about {features.sentences:,} "
        f"sentences in {seconds:.1f} s ({rate:,.0f} a second)"
    )
    for name, reason in features.lacking.items():
        click.echo(f"  {name} {reason}")
