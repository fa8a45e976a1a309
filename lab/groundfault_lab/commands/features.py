"""``features``: what is read off texts, as columns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import polars as pl

from groundfault.base.long_work import Progress
from groundfault.cli.command import Options, command, list_typed
from groundfault.cli.output import Result
from groundfault.cli.reading import split_names
from groundfault.cli.settings import (
    Count,
    Flag,
    OutFile,
    OutTable,
    call,
    derive_options,
    own_options,
)
from groundfault.errors import InputError, PlanError
from groundfault_lab.commands.columns import read_columns

Columns = tuple[list[pl.DataFrame], list[str]]
"""New columns for each column of texts, and what is said of them."""


def _add_features(
    table: pl.DataFrame,
    columns: tuple[str, ...],
    progress: Progress,
    *,
    names: Annotated[str, Flag("--set")] = "surface,syntax,pragmatic",
    pipeline: str = "en_core_web_sm",
    norms: str | None = None,
    cache: OutFile | None = None,
    jobs: Count = 1,
) -> Columns:
    """Return linguistic features of texts; those that cannot be computed are listed.

    Output
    ------
    names : NAMES
        Names of features, or of sets of features, such as surface,negation.
    pipeline : NAME
        Name or directory of the spaCy pipeline, or blank for none.
    norms : FILE
        CSV file of word norms: word, arousal, dominance.
    cache : FILE
        Store annotations in this file by hash of the text, and reuse them next time.
    jobs : N
        Number of processes that annotate.
    """
    from groundfault_lab.language import (
        feature_table,
        load_memory,
        load_pipeline,
        read_norms,
        save_memory,
        select_features,
    )

    chosen = select_features(split_names(names))
    if not chosen:
        raise PlanError("--set names no feature")
    word_norms = read_norms(norms) if norms else None
    annotator = load_pipeline(pipeline)
    # annotation takes nearly all of the time, and depends on the text and the pipeline alone
    n_cached = load_memory(annotator, cache) if cache else 0
    frames, lines = [], list[str]()
    for column in columns:
        start, report = time.perf_counter(), _count_texts(progress, table[column])
        features = feature_table(
            table[column], chosen, annotator, norms=word_norms, jobs=jobs, progress=report
        )
        frames.append(features.frame)
        seconds = time.perf_counter() - start
        rate = features.sentences / seconds if seconds else 0.0
        lines.append(
            f"{column}: {features.frame.width} features of {features.texts:,} different texts, "
            f"about {features.sentences:,} sentences in {seconds:.1f} s ({rate:,.0f} a second)"
        )
        lines += [f"  {name} {reason}" for name, reason in features.lacking.items()]
    if cache:
        save_memory(annotator, cache)
        lines.append(f"cache: {n_cached:,} texts known, {len(annotator.memory):,} kept in {cache}")
    return frames, lines


def _count_texts(progress: Progress, texts: pl.Series) -> Callable[[int], None]:
    done, total = 0, texts.n_unique()

    def report(count: int) -> None:
        nonlocal done
        done += count
        progress(f"reading {texts.name}: {done:,} of {total:,} texts")

    return report


@command()
@own_options
@derive_options(_add_features)
def features(
    source: str,
    *,
    columns: Annotated[tuple[str, ...], Flag("--text")],
    text_attributes: bool = False,
    out: Annotated[OutTable, Flag("-o --out")],
    progress: Progress,
    options: Options,
) -> Result:
    """Add linguistic features of texts to a table as columns.

    They are the 38 of the benchmark DEIM. SOURCE is a table; it is written again with one column
    for each feature, such as question_negation: 1 or 0 for what a text has or lacks, a number for
    what has a degree. Features that the pipeline cannot compute are listed, with what they need.

    With --text-attributes the columns are those that an audit reads off texts: the language, how
    numbers are written, the layout, the template, and stock sentences.

    \b
    groundfault lab features texts.parquet --text question -o features.parquet
    groundfault lab features texts.parquet --text question --set surface,negation \\
        --pipeline blank -o features.parquet
    groundfault lab features texts.parquet --text question --text-attributes -o features.parquet
    groundfault audit features.parquet --outcome error --finders declared,thresholds

    Output
    ------
    columns : COL
        Column of texts; repeatable.
    text_attributes
        Write what the texts alone show instead: language, numbers, templates; needs no pipeline.
    out : FILE
        Write the table to this file: .parquet, .csv or .jsonl.
    """
    from groundfault.base.sheets import write_table

    table = read_columns(source, *columns)
    if text_attributes:
        typed = [flag for name, flag in list_typed().items() if name in options]
        if typed:
            raise PlanError(f"{typed[0]} is about linguistic features; --text-attributes has none")
        frames, lines = _add_attributes(table, columns)
    else:
        frames, lines = call(_add_features, options, table, columns, progress)
    for frame in frames:
        clashes = [name for name in frame.columns if name in table.columns]
        if clashes:
            raise InputError(f"the table has a column {clashes[0]!r} already; rename it")
        table = table.hstack(frame)
    write_table(table, out)
    return Result([*lines, f"wrote {table.height:,} rows to {out}"])


def _add_attributes(table: pl.DataFrame, columns: tuple[str, ...]) -> Columns:
    """Return what texts alone show, which is listed."""
    from groundfault_lab.language.attribute_table import tabulate_attributes

    frames, lines = [], list[str]()
    for column in columns:
        attributes = tabulate_attributes(table[column])
        frames.append(pl.DataFrame([one.values for one in attributes]))
        lines.append(f"{column}: {len(attributes)} attributes")
        lines += [f"  {one.values.name}: {one.meaning}" for one in attributes]
    return frames, lines
