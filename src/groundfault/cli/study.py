"""``study``: a paper's tables, regenerated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
from rich.console import Console

from groundfault.base.registry import Registry
from groundfault.cli.command import INPUT, OUTPUT, RULE, GroupedCommand, option
from groundfault.cli.options import json_option
from groundfault.cli.output import require_writable, show_progress, write_json
from groundfault.errors import InputError, MissingExtraError, PlanError

if TYPE_CHECKING:
    from rich.console import Group


class _StudyTable(Protocol):
    """What is shown of a table of a study."""

    title: str
    note: str
    columns: Mapping[str, tuple[str, str]]
    rows: tuple[Any, ...]

    def format_row(self, row: Any) -> list[list[str]]:
        """The lines of a row: what was computed, then what the paper prints."""
        ...


class _Study(Protocol):
    """What a study gives back; packages of studies have a type of their own."""

    name: str
    title: str
    source: str
    settings: Mapping[str, Any]
    tables: tuple[_StudyTable, ...]
    lacking: tuple[str, ...]

    def write(self, folder: str) -> object:
        """Write the tables to a folder."""
        ...

    def to_json(self) -> str:
        """The study as JSON."""
        ...


# a study is a function of `progress` and of the options it takes; one that can be resumed takes
# `keep`, the file of what is done, and one of a user's own results takes `evidence`
STUDIES = Registry("study", "groundfault.studies", {})


def split_names(
    context: click.Context,  # noqa: ARG001
    option: click.Parameter,  # noqa: ARG001
    text: str | None,
) -> list[str] | None:
    """Names that commas separate."""
    return None if text is None else [name.strip() for name in text.split(",")]


def split_sizes(
    context: click.Context, option: click.Parameter, text: str | None
) -> list[int] | None:
    """Whole numbers that commas separate."""
    try:
        return None if text is None else [int(name) for name in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not whole numbers separated by commas", context, option
        ) from None


@click.command(
    cls=GroupedCommand, first="shared replicates models methods sizes jobs out json_path"
)
@click.argument("name")
@option(
    "--shared",
    group=INPUT,
    metavar="DIR",
    help="Folder of the data; by default $GROUNDFAULT_SHARED, or ../shared/data.",
)
@option(
    "--splits",
    group=RULE,
    type=click.IntRange(1),
    metavar="N",
    help="Number of random splits for lines on robustness; default 200.",
)
@option(
    "--replicates",
    group=RULE,
    type=click.IntRange(1),
    metavar="N",
    help="Number of simulated audits of each setting, of samples of each size, or of trials.",
)
@option(
    "--seeds",
    group=RULE,
    type=click.IntRange(1),
    metavar="N",
    help="Number of trainings of a model, or of runs of probes.",
)
@option(
    "--judge",
    group=RULE,
    metavar="NAME",
    help="For finders: rank them by what this judge confirms, instead of the tables.",
)
@option(
    "--pairs",
    group=INPUT,
    metavar="FILE",
    help="For deim: TOML file of data sets and trained models; by default those shipped.",
)
@option(
    "--pipeline",
    group=INPUT,
    metavar="NAME",
    help="For deim: name of the spaCy pipeline; default en_core_web_sm.",
)
@option(
    "--quick",
    group=RULE,
    is_flag=True,
    default=None,
    help="For the studies of papers: run a small trial, without conclusions.",
)
@option(
    "--methods",
    group=INPUT,
    callback=split_names,
    metavar="NAMES",
    help="For known-holes and mode-worlds: methods, separated by commas.",
)
@option(
    "--models",
    group=INPUT,
    callback=split_names,
    metavar="NAMES",
    help="For known-holes: models, separated by commas; default all.",
)
@option(
    "--sizes",
    group=RULE,
    callback=split_sizes,
    metavar="N,N,...",
    help="For known-holes: prompts of a sample; default 500,1000,2000,4000.",
)
@option(
    "--only",
    group=RULE,
    callback=split_sizes,
    metavar="N,N,...",
    help="For attacks: numbers of the promises to attack; for sequential: burn-ins, of 10, 40 and "
    "70; default all.",
)
@option(
    "--stored",
    group=OUTPUT,
    is_flag=True,
    default=None,
    help="For known-holes, mode-worlds, attacks and descriptions: run nothing, show what --out "
    "holds so far.",
)
@option(
    "--jobs",
    group=OUTPUT,
    type=int,
    metavar="N",
    help="Number of processes; default 1; results do not depend on it.",
)
@option(
    "--out",
    group=OUTPUT,
    type=click.Path(),
    metavar="DIR",
    help="Write NAME.md, NAME.json and figures to this folder.",
)
@json_option("the study")
def study(name: str, out: str | None, json_path: str | None, **options: Any) -> None:
    """Regenerate the tables of a paper, beside the numbers it prints.

    NAME is the study: janus, finders, discover, improve, failure-scope (clusters of failures, also
    where the true modes are known), taxonomy, deim (discovery, improvement and explanation of
    errors, on your own data and models too), sequential, sequential-pool (policies beside the
    records of the reference), label-cost (of sequential audits, beside the paper's best), validity
    (of sequential audits), probe-policies, probe-networks
    (policies on two real networks), probes (the whole protocol against a scripted model),
    known-holes (who names what a model never saw in training), mode-worlds (failure modes where the
    truth is simulated), grader-labels (what a cheap grader saves), descriptions (by a language
    model, with annotators that err), or attacks (worlds made to break promises). Without its data a
    study shows the tables that need none, and the exit status is 2. It resumes where it stopped if
    --out is the same; failure-scope, discover, sequential, sequential-pool and label-cost show
    their tables so far on standard error.

    \b
    groundfault study janus --out tables/
    """
    require_writable(out, directory=True)
    require_writable(json_path)
    if not STUDIES.names():
        raise MissingExtraError(
            "no study is installed: the studies are a distribution of their own. In a checkout of "
            "groundfault, run: pip install ./studies"
        )
    run = STUDIES.get(name)
    settings = {key: value for key, value in options.items() if value is not None}
    # each study has settings of its own: one that it lacks is an error, not ignored
    takes = signature(run).parameters
    if "evidence" in takes:
        raise PlanError(f"the study {name!r} is of your own results: groundfault {name} evaluate")
    for key in settings.keys() - takes.keys():
        raise PlanError(f"the study {name!r} does not use --{key}; leave it out")
    if out and "keep" in takes:
        settings["keep"] = Path(out) / f"{name}.rows.jsonl"
    if "show" in takes:
        settings["show"] = partial(_show_so_far, out=out)
    with show_progress(json_path == "-", lines=True) as progress:
        result: _Study = run(progress=progress, **settings)
    if out:
        result.write(out)
    if not (json_path and write_json(result.to_json(), json_path)):
        show(result, Console(), out)
    if result.lacking:
        raise InputError(f"not everything was computed: {'; '.join(result.lacking)}")


def _show_so_far(result: _Study, out: str | None) -> None:
    """Print a study that is not done to standard error, and write it where the whole one goes."""
    from groundfault.render.words import plural

    console = Console(stderr=True)
    count = plural(result.settings["replicates"], "replicate")
    console.print(f"So far, after {count}:", highlight=False)
    show(result, console, out)
    if out:
        result.write(out)


def show(result: _Study, console: Console, out: str | None) -> None:
    """Print a study."""
    console.print(f"[bold]{result.title}[/bold]", highlight=False)
    printed = any(row.paper for table in result.tables for row in table.rows)
    marked = " Lines marked [italic]paper[/italic] are what it prints." if printed else ""
    console.print(f"{result.source}.{marked}", highlight=False)
    for table in result.tables:
        console.print()
        console.print(table.title, style="bold", markup=False, highlight=False)
        console.print(_render(table, console.width))
        console.print(table.note, style="dim", markup=False, highlight=False)
    if out:
        console.print(
            f"\nWritten to {Path(out) / f'{result.name}.md'} and .json",
            markup=False,
            highlight=False,
        )


def _render(table: _StudyTable, width: int) -> Group:
    """The table for a terminal of this width; what the paper prints is set apart."""
    from groundfault.render.page import Table, TableColumn
    from groundfault.render.terminal import fit_table

    lines = [
        (line, not row.here or number > 0)
        for row in table.rows
        for number, line in enumerate(table.format_row(row))
    ]
    columns = (
        TableColumn(head, "text" if kind == "text" else "number")
        for head, kind in table.columns.values()
    )
    rows = tuple(tuple(line) for line, _ in lines)
    classes = tuple("printed" if from_paper else "" for _, from_paper in lines)
    page_table = Table(table.title, (TableColumn(""), *columns), rows, classes=classes)
    return fit_table(page_table, width)
