"""``taxonomy label`` and ``taxonomy generate``: names of clusters, and new tasks like theirs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.options import call_options
from groundfault.cli.output import echo_warnings, require_writable, show_progress

_task = partial(option, group="Tasks")
_call = partial(option, group="Model calls")


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    for command in (label, generate):
        group.add_command(command)


def _options(options: dict[str, Any], home: str) -> dict[str, Any]:
    """The arguments of `groundfault.models.ask`."""
    limits = {name: options[name] for name in ("concurrency", "timeout")}
    settings = {
        name: options[name] for name in ("temperature", "max_tokens") if options[name] is not None
    }
    return {
        **limits,
        **settings,
        "record": options["record"] or Path(home) / "calls.db",
        "seed": options["seed"],
    }


@click.command(cls=GroupedCommand)
@click.argument("directory", type=click.Path(), metavar="DIR")
@option(
    "--model",
    required=True,
    metavar="TARGET",
    help="Model that writes the labels, such as openai/gpt-4o-mini.",
)
@option(
    "--second",
    metavar="TARGET",
    help="Model that checks them; by default the same one with another seed.",
)
@option(
    "--text",
    metavar="COL",
    help="Column of texts; by default the only column of prose.",
)
@option(
    "--check-size",
    "check_size",
    type=int,
    default=5,
    show_default=True,
    old_name="--shown",
    help="Number of members, and of others, that a check of a label shows.",
)
@call_options
def label(
    directory: str,
    model: str,
    second: str | None,
    text: str | None,
    check_size: int,
    **options: Any,
) -> None:
    """Let a model name each cluster of DIR, and a second one check the names.

    DIR is what `groundfault taxonomy fit` wrote. The model sees the tasks nearest to a cluster's
    centre. Labels are written to labels.json and the report there, beside the words that are
    frequent in a cluster. After an interruption, run it again: no question is asked twice.

    \b
    groundfault taxonomy label taxonomy/ --model openai/gpt-4o-mini --second openai/gpt-4o
    """
    from groundfault.render import words
    from groundfault.render.taxonomy_page import describe_labels, write_labels
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.words.labeller import label as run

    require_writable(options["record"])
    taxonomy = Taxonomy.load(directory)
    with echo_warnings(), show_progress(False) as progress:
        asking = _options(options, directory)
        labelling = run(
            taxonomy,
            model,
            second=second,
            text=text,
            members=check_size,
            progress=progress,
            **asking,
        )
    write_labels(taxonomy, directory, labelling)
    for each in labelling.labels:
        title = (
            f"{each.label} ({each.mode}, {each.bloom})"
            if each.label
            else f"{each.status}: {each.reason}"
        )
        mark = "" if each.published else "  unstable"
        click.echo(f"  cluster {each.cluster}  {words.clean(title)}{mark}")
    for sentence in describe_labels(labelling):
        click.echo(words.clean(sentence))
    click.echo(f"written to {Path(directory) / 'labels.json'} and the report")


@click.command(cls=GroupedCommand, first="clusters model kinds text answer count variants out")
@click.argument("directory", type=click.Path(), metavar="DIR")
@_task(
    "--cluster",
    "clusters",
    type=int,
    multiple=True,
    help="Number of a cluster; repeatable; by default all published ones.",
)
@_task(
    "--kind",
    "kinds",
    metavar="NAME",
    multiple=True,
    help="Kind of task, of those above; repeatable; by default all.",
)
@_task("--text", metavar="COL", help="Column of texts; by default the only column of prose.")
@_task(
    "--answer",
    metavar="COL",
    help="Column of expected answers, or of worked solutions that end in '#### answer'.",
)
@_task(
    "--solution",
    metavar="COL",
    help="Column of worked solutions, with calculations such as <<2*3=6>>.",
)
@_task(
    "--count",
    type=int,
    default=10,
    show_default=True,
    help="Number of new tasks of each level and cluster (50 in the paper).",
)
@_task(
    "--variants",
    type=int,
    default=20,
    show_default=True,
    help="Number of examples of each cluster that are varied.",
)
@_task(
    "--against",
    metavar="FILE",
    multiple=True,
    help="Table with more texts that must not be copied, in the column --text; repeatable.",
)
@_call(
    "--model",
    metavar="TARGET",
    help="Model that writes new tasks; without one, variants are made by rule only.",
)
@_call(
    "--solver",
    metavar="TARGET",
    help="Model that solves the new tasks; by default --model.",
)
@_call(
    "--solves",
    type=int,
    default=3,
    show_default=True,
    help="Number of solutions that must agree for an expected answer.",
)
@call_options
@option(
    "--out",
    required=True,
    type=click.Path(),
    metavar="TASKS",
    help="Write the tasks and the account of all candidates to this folder.",
)
def generate(directory: str, against: tuple[str, ...], out: str, **options: Any) -> None:
    """Make new tasks from clusters of DIR: variants by rule and, with a model, new tasks.

    \b
    by rule   numbers, names, options, sentences, distractor, step
    by model  easy, medium, hard; rephrase, swap, reorder, complexity

    TASKS gets tasks.jsonl and tasks.py, which Inspect runs, and candidates.jsonl: every candidate
    and its status, also those that were rejected or whose answer needs a check.

    \b
    groundfault taxonomy generate taxonomy/ --cluster 3 --answer answer --out tasks/
    groundfault taxonomy generate taxonomy/ --cluster 3 --answer answer --out tasks/ \\
        --model openai/gpt-4o
    """
    from groundfault.exports.inspect_task import write
    from groundfault.render import words
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.words.generation import generate as run

    require_writable(options["record"])
    require_writable(out, directory=True)
    taxonomy = Taxonomy.load(directory)
    names = "clusters model solver kinds text answer solution count variants solves".split()
    with echo_warnings(), show_progress(False) as progress:
        column = taxonomy.matrix.find_text_column(
            options["text"], (options["answer"], options["solution"])
        )
        texts = {name: text for file in against for name, text in _texts(file, column)}
        asking = _options(options, out)
        generation = run(
            taxonomy,
            **{name: options[name] for name in names},
            against=texts,
            progress=progress,
            **asking,
        )
    write(generation, out)
    for how, counts in generation.counts().items():
        counts_text = ", ".join(f"{n:,} {status.replace('_', ' ')}" for status, n in counts.items())
        click.echo(f"  {how:<11} {counts_text}")
    for how, reasons in generation.skipped.items():
        for reason, number in reasons.items():
            click.echo(f"  {how:<11} not of {words.plural(number, 'example')}: {reason}")
    # an unpublished cluster did not repeat on other data, and tasks made from it may test nothing
    shaky = sorted(
        {task.cluster for task in generation.tasks} & set(generation.settings["unstable"])
    )
    if shaky:
        click.echo(
            f"note: not published, so perhaps no failure mode: cluster {', '.join(map(str, shaky))}"
        )
    if not (options["answer"] or options["solution"]):
        click.echo(
            "note: no column of answers is named (--answer), so few variants by rule can be keyed"
        )
    click.echo(
        f"{len(generation.keyed):,} of {words.plural(len(generation.tasks), 'candidate')} "
        f"are keyed: written to {out}"
    )


def _texts(file: str, column: str) -> list[tuple[str, str]]:
    """The texts of a table, each under the name of its file and row."""
    import polars as pl

    from groundfault.errors import InputError
    from groundfault.readers.table import read_table

    table = read_table(file, text=(column,))[0]
    if column not in table.columns:
        raise InputError(
            f"{file} has no column {column!r}; its columns are {', '.join(table.columns[:12])}"
        )
    texts = table[column].cast(pl.String).to_list()
    return [(f"{Path(file).name}, row {i}", text) for i, text in enumerate(texts, start=1) if text]
