"""``improve``: which examples to leave out, relabel or label next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from groundfault.cli.command import COLUMNS, RULE, GroupedCommand, option
from groundfault.cli.options import json_option, settings_option
from groundfault.cli.output import echo_warnings, require_writable, show_progress, write_json
from groundfault.cli.reading import read_values
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    import polars as pl

    from groundfault.improve.suggestions import Suggestions
    from groundfault.slicing.labelled_table import LabelledTable

_ACTS = ("leave-out", "relabel", "label-next")


@click.command(cls=GroupedCommand, first="label act text finder max_rows out json_path")
@click.argument("source", type=click.Path(), metavar="SOURCE")
@option(
    "--label",
    required=True,
    metavar="COL",
    group=COLUMNS,
    help="Column of the true classes; empty where a class is not known.",
)
@option("--id", metavar="COL", group=COLUMNS, help="Column that names the examples.")
@option(
    "--text",
    metavar="COL",
    group=COLUMNS,
    help="Column of texts, to embed (TF-IDF) where the table has no embedding.",
)
@option(
    "--embedding",
    default="embedding*",
    show_default=True,
    metavar="GLOB",
    group=COLUMNS,
    help="Columns of the embedding: numbers, or one of lists.",
)
@option(
    "--probability",
    default="probability*",
    show_default=True,
    metavar="GLOB",
    group=COLUMNS,
    help="Columns of the model's probabilities, one for each class and named after it.",
)
@option(
    "--act",
    type=click.Choice(_ACTS),
    default="leave-out",
    show_default=True,
    group=RULE,
    help="What the list is for.",
)
@option(
    "--finder",
    default="edisa",
    show_default=True,
    metavar="NAME",
    group="Search",
    help="Finder of slices that can be applied to examples without a label.",
)
@settings_option
@option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    group=RULE,
    help="Seed that draws the half of the labelled examples that is measured.",
)
@option(
    "-k",
    "max_rows",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Largest number of examples to print; files have all.",
)
@option("--out", metavar="FILE", help="Write the list to this table: .csv, .parquet or .jsonl.")
@json_option("list and check")
def improve(**options: Any) -> None:
    """Rank the examples of SOURCE without a label: leave out, relabel, or label next.

    SOURCE is a table of one row an example: what a classifier was not trained on, with its
    probabilities. A slicer learns from the labelled rows where the classifier errs, and ranks the
    rows whose label is empty. Before that the same is done with half of the labelled rows and
    measured on the other half, beside the classifier's own confidence, which is the bar to clear.

    \b
    groundfault improve predictions.parquet --label label --id item_id
    groundfault improve predictions.csv --label label --text question --act label-next \\
        --out next.csv
    """
    from groundfault.improve.suggestions import suggest
    from groundfault.slicing.labelled_table import LabelledTable

    for name in ("out", "json_path"):
        require_writable(options[name])
    slicer = _make_slicer(options)
    with echo_warnings(), show_progress(options["json_path"] == "-") as progress:
        table = LabelledTable.of(
            _read(options),
            label=options["label"],
            embedding=options["embedding"],
            probability=options["probability"],
            text=options["text"],
        )
        progress(f"fitting {options['finder']}")
        known, fresh = table.labelled, table.fresh
        suggestions = suggest(
            options["act"], slicer, known, table.label, fresh, seed=options["seed"]
        )
    rows = _tabulate(suggestions, table, options["id"])
    if options["out"]:
        from groundfault.base.sheets import write_table

        write_table(rows, options["out"])
    content = suggestions.to_dict() | {"left_out": table.incomplete, "rows": rows.to_dicts()}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=str)
    if not write_json(text, options["json_path"]):
        _show(suggestions, table, rows, options)


def _make_slicer(options: dict[str, Any]) -> Any:
    from groundfault.auditing.proposals import configure_finder

    slicer = configure_finder(options["finder"], read_values(options["settings"]))
    if not hasattr(slicer, "error_probability"):
        raise PlanError(
            f"the finder {options['finder']!r} cannot be applied to examples without a label; "
            "edisa, domino and spotlight can"
        )
    return slicer


def _read(options: dict[str, Any]) -> pl.DataFrame:
    from groundfault.readers.table import read_table

    table, _ = read_table(options["source"])
    for name in ("label", "id", "text"):
        if options[name] is not None and options[name] not in table.columns:
            raise InputError(
                f"there is no column {options[name]!r} (--{name}); the table has "
                f"{', '.join(table.columns[:12])}"
            )
    return table


def _tabulate(suggestions: Suggestions, table: LabelledTable, key: str | None) -> pl.DataFrame:
    """The list as a table: rank, example, what the model says of it, and what to do."""
    import polars as pl

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


def _show(
    suggestions: Suggestions, table: LabelledTable, rows: pl.DataFrame, options: dict[str, Any]
) -> None:
    from groundfault.render import words
    from groundfault.render.page import Table, TableColumn
    from groundfault.render.terminal import fit_table

    console = Console()
    # before the list, which convinces by itself
    for line in (suggestions.explain_worth(), _count(suggestions, table)):
        console.print(words.clean(line), markup=False, highlight=False)
    if rows.height:
        texts = ("id", "predicted", "suggested")
        columns = (TableColumn(n, "text" if n in texts else "number") for n in rows.columns)
        lines = tuple(
            tuple(f"{v:.2f}" if isinstance(v, float) else words.clean(str(v)) for v in row)
            for row in rows.head(options["max_rows"]).iter_rows()
        )
        console.print(fit_table(Table("Examples", tuple(columns), lines), console.width))
    if rows.height > options["max_rows"] and not options["out"]:
        console.print("The whole list: --out FILE.", style="dim", highlight=False)
    if options["out"]:
        console.print(
            f"Wrote {rows.height:,} rows to {options['out']}.", markup=False, highlight=False
        )


def _count(suggestions: Suggestions, table: LabelledTable) -> str:
    """How many of the examples without a label are on the list."""
    from groundfault.render.words import plural

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
