"""``features``: what is read off texts, as columns."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from groundfault.cli.output import echo_warnings, require_writable
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    import polars as pl

    from groundfault.language import FeatureTable


_KINDS = (".parquet", ".pq", ".csv", ".jsonl", ".ndjson")
_OF_PIPELINE = {
    "names": "--set",
    "pipeline": "--pipeline",
    "norms": "--norms",
    "cache": "--cache",
    "jobs": "--jobs",
}


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
    "--text-attributes",
    is_flag=True,
    help="Instead: what the texts alone show (language, numbers, templates); needs no pipeline.",
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

    With --text-attributes the columns are what an audit reads off texts when it looks for failure
    modes: the language, how numbers are written, how a text is laid out, the template it was made
    from, and sentences that come and go.

    \b
    groundfault features texts.parquet --text question -o features.parquet
    groundfault features texts.parquet --text question --set surface,negation \\
        --pipeline blank -o features.parquet
    groundfault features texts.parquet --text question --text-attributes -o features.parquet
    groundfault audit features.parquet --outcome error --finders declared,thresholds
    """
    from groundfault.base.sheets import write_table
    from groundfault.readers.table import read_table

    for path in (options["out"], options["cache"]):
        require_writable(path)
    if not str(options["out"]).lower().endswith(_KINDS):
        raise InputError(
            f"cannot tell from {options['out']!r} how to write a table; "
            "name it .parquet, .csv or .jsonl"
        )
    table, _ = read_table(options["source"])
    for column in options["columns"]:
        _require_column(table, column)
    if options["text_attributes"]:
        _require_no_pipeline()
        table = _add_attributes(table, options["columns"])
    else:
        table = _add_features(table, options)
    write_table(table, options["out"])
    click.echo(f"wrote {table.height:,} rows to {options['out']}")


def _add_features(table: pl.DataFrame, options: dict[str, Any]) -> pl.DataFrame:
    """The table with linguistic features, which are listed if they cannot be computed."""
    from groundfault.language import (
        feature_table,
        load_memory,
        load_pipeline,
        read_norms,
        save_memory,
        select_features,
    )

    names = select_features([name.strip() for name in options["names"].split(",") if name.strip()])
    if not names:
        raise PlanError("--set names no feature")
    norms = read_norms(options["norms"]) if options["norms"] else None
    pipeline = load_pipeline(options["pipeline"])
    # annotation takes nearly all of the time, and depends on the text and the pipeline alone
    n_cached = load_memory(pipeline, options["cache"]) if options["cache"] else 0
    for column in options["columns"]:
        start = time.perf_counter()
        with echo_warnings(), _bar(f"reading {column}", table[column].n_unique()) as progress:
            features = feature_table(
                table[column], names, pipeline, norms=norms, jobs=options["jobs"], progress=progress
            )
        table = _join(table, features.frame)
        _tell(column, features, time.perf_counter() - start)
    if options["cache"]:
        save_memory(pipeline, options["cache"])
        click.echo(
            f"cache: {n_cached:,} texts known, {len(pipeline.memory):,} kept in {options['cache']}"
        )
    return table


def _add_attributes(table: pl.DataFrame, columns: tuple[str, ...]) -> pl.DataFrame:
    """The table with what its texts alone show, which is listed."""
    import polars as pl

    from groundfault.modes.attribute_table import tabulate_attributes

    for column in columns:
        attributes = tabulate_attributes(table[column])
        table = _join(table, pl.DataFrame([one.values for one in attributes]))
        click.echo(f"{column}: {len(attributes)} attributes")
        for one in attributes:
            click.echo(f"  {one.values.name}: {one.meaning}")
    return table


def _join(table: pl.DataFrame, columns: pl.DataFrame) -> pl.DataFrame:
    clashes = [name for name in columns.columns if name in table.columns]
    if clashes:
        raise InputError(f"the table has a column {clashes[0]!r} already; rename it")
    return table.hstack(columns)


def _require_no_pipeline() -> None:
    source_of = click.get_current_context().get_parameter_source
    for name, flag in _OF_PIPELINE.items():
        if source_of(name) is not ParameterSource.DEFAULT:
            raise PlanError(f"{flag} is about linguistic features; --text-attributes has none")


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
