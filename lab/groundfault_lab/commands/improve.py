"""``improve``: which examples to leave out, relabel or label next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl

from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.reading import read_values
from groundfault.cli.settings import Count, Flag, OutTable, Whole, own_options
from groundfault.errors import PlanError
from groundfault.render import words
from groundfault.render.page import Block, Paragraph, make_table
from groundfault.render.words import plural
from groundfault_lab.commands.columns import read_columns

if TYPE_CHECKING:
    from groundfault_lab.improve.suggestions import LabelledTable, Suggestions


@command(first="label act text finder max_rows out json_path")
@own_options
@shared.settings_option
@shared.json_option("list and check")
def improve(
    source: str,
    *,
    label: str,
    id: str | None = None,
    text: str | None = None,
    embedding: str = "embedding*",
    probability: str = "probability*",
    act: Literal["leave-out", "relabel", "label-next"] = "leave-out",
    seed: Whole = 0,
    finder: str = "edisa",
    max_rows: Annotated[Count, Flag("-k")] = 20,
    out: OutTable | None = None,
    settings: tuple[str, ...],
    progress: Progress,
) -> Result:
    """Rank examples to leave out, relabel or label next.

    SOURCE is a table with one row an example that a classifier was not trained on, and its
    probabilities. A slicer learns from the labelled rows where the classifier errs, and ranks the
    rows whose label is empty. First it learns from half of the labelled rows, and the other half
    shows if it ranks better than the classifier's own confidence.

    \b
    groundfault lab improve predictions.parquet --label label --id item_id
    groundfault lab improve predictions.csv --label label --text question --act label-next \\
        --out next.csv

    Columns
    -------
    label : COL
        Column of the true classes; empty where a class is not known.
    id : COL
        Column that names the examples.
    text : COL
        Column of texts, to embed (TF-IDF) where the table has no embedding.
    embedding : GLOB
        Columns of the embedding: numbers, or one of lists.
    probability : GLOB
        Columns of the model's probabilities, one for each class and named after it.

    Rule
    ----
    act
        Action to rank for: leave examples out, relabel them, or label them next.
    seed : N
        Seed that draws the half of the labelled examples that is measured.

    Search
    ------
    finder : NAME
        Finder of slices that can be applied to examples without a label, or fusion, which joins
        Edisa and Domino.

    Output
    ------
    max_rows : N
        Largest number of examples to print; files have all.
    out : FILE
        Write the list to this table: .csv, .parquet or .jsonl.
    """
    from groundfault.base.sheets import write_table
    from groundfault_lab.improve.suggestions import LabelledTable, suggest

    slicer = _make_slicer(finder, settings)
    table = LabelledTable.of(
        read_columns(source, label, id, text),
        label=label,
        embedding=embedding,
        probability=probability,
        text=text,
    )
    progress(f"fitting {finder}")
    suggestions = suggest(act, slicer, table.labelled, table.label, table.fresh, seed=seed)
    rows = _tabulate(suggestions, table, id)
    if out:
        write_table(rows, out)
    content = suggestions.to_dict() | {"left_out": table.incomplete, "rows": rows.to_dicts()}
    return Result(_outline(suggestions, table, rows, max_rows, out), content)


def _make_slicer(finder: str, settings: tuple[str, ...]) -> Any:
    from groundfault_lab.slicing.fusion import Fusion
    from groundfault_lab.slicing.proposals import configure_finder

    slicer = configure_finder(finder, read_values(settings), {"fusion": Fusion})
    if not hasattr(slicer, "error_probability"):
        raise PlanError(
            f"the finder {finder!r} cannot be applied to examples without a label; "
            "edisa, domino, spotlight and fusion can"
        )
    return slicer


def _tabulate(suggestions: Suggestions, table: LabelledTable, key: str | None) -> pl.DataFrame:
    """Return the list as a table: rank, example, what the model says of it, and what to do."""

    ones = suggestions.rows
    numbers = [table.fresh_rows[one.row] for one in ones]
    head = table.frame[key].gather(numbers).alias("id") if key else pl.Series("row", numbers)
    relabels = suggestions.act == "relabel"
    names = table.classes
    return pl.DataFrame(
        [
            pl.Series("rank", range(1, len(ones) + 1), dtype=pl.Int64),
            head,
            pl.Series("predicted", [names[one.predicted] for one in ones], dtype=pl.String),
            *(
                [pl.Series("suggested", [names[one.suggested] for one in ones], dtype=pl.String)]
                if relabels
                else []
            ),
            pl.Series("confidence", [one.confidence for one in ones], dtype=pl.Float64),
            pl.Series("suspicion", [one.suspicion for one in ones], dtype=pl.Float64),
        ]
    )


def _outline(
    suggestions: Suggestions, table: LabelledTable, rows: pl.DataFrame, most: int, out: str | None
) -> Iterator[Block]:

    # before the list, which convinces by itself
    yield Paragraph((suggestions.explain_worth(),))
    yield Paragraph((_count(suggestions, table),))
    texts = ("id", "predicted", "suggested")
    lines = [
        tuple(f"{v:.2f}" if isinstance(v, float) else words.clean(str(v)) for v in row)
        for row in rows.head(most).iter_rows()
    ]
    kinds = "".join("t" if name in texts else "n" for name in rows.columns)
    yield make_table("Examples", kinds, rows.columns, lines)
    if out:
        yield Paragraph((f"Wrote {rows.height:,} rows to {out}.",))
    elif rows.height > most:
        yield Paragraph(("The whole list: --out FILE.",), "small")


def _count(suggestions: Suggestions, table: LabelledTable) -> str:
    """Say how many of the examples without a label are on the list."""

    if not suggestions.fresh:
        text = f"Every example has a label in {table.label_column!r}, so there is none to rank."
    else:
        act = {"leave-out": "to leave out", "relabel": "to relabel", "label-next": "to label"}
        text = (
            f"{len(suggestions.rows):,} of {plural(suggestions.fresh, 'example')} without a label "
            f"{act[suggestions.act]}, the most suspected first."
        )
    if table.incomplete:
        verb = "was" if table.incomplete == 1 else "were"
        text += f" {plural(table.incomplete, 'row')} without all numbers {verb} not used."
    return text
