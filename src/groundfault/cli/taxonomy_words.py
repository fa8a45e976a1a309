"""``taxonomy label`` and ``taxonomy generate``: what a language model calls clusters, and new tasks
like theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from groundfault.cli.options import require_writable, show_progress

_ASKING = (
    click.option(
        "--record",
        metavar="FILE",
        help="Where calls are kept, to resume and replay [calls.db beside what is written].",
    ),
    click.option(
        "--concurrency", type=int, default=8, show_default=True, help="Most calls at a time."
    ),
    click.option(
        "--timeout", type=float, default=120.0, show_default=True, help="Seconds for one attempt."
    ),
    click.option("--temperature", type=float, help="Left to the model's server, where left out."),
    click.option(
        "--max-tokens", type=int, help="Most tokens of a reply; left to the server, where left out."
    ),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Of every random act; the model gets it too.",
    ),
)


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    for command in (label, generate):
        group.add_command(command)


def _asking(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_ASKING):
        command = option(command)
    return command


def _options(options: dict[str, Any], home: str) -> dict[str, Any]:
    """For `groundfault.models.ask`."""
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


@click.command()
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option(
    "--model", required=True, metavar="TARGET", help="Who labels, such as openai/gpt-4o-mini."
)
@click.option(
    "--second",
    metavar="TARGET",
    help="Who checks the labels; the same model is asked at another seed.",
)
@click.option("--text", metavar="COL", help="What an example says [the only column of prose].")
@click.option(
    "--shown",
    type=int,
    default=5,
    show_default=True,
    help="Members, and others, in a check of membership.",
)
@_asking
def label(
    directory: str, model: str, second: str | None, text: str | None, shown: int, **options: Any
) -> None:
    """Have a model name each cluster of DIR from the tasks nearest to its centre, and a second one
    check the names.

    DIR is what `groundfault taxonomy fit` wrote. The labels go into labels.json and the report
    there, beside the words that set a cluster apart. Run again after an interruption, and only what
    is missing is asked.

    \b
    groundfault taxonomy label taxonomy/ --model openai/gpt-4o-mini --second openai/gpt-4o
    """
    from groundfault.render import words
    from groundfault.render.taxonomy import write_labels
    from groundfault.render.taxonomy_labels import sentences
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.words.labeller import label as run

    require_writable(options["record"])
    taxonomy = Taxonomy.load(directory)
    with show_progress(False) as progress:
        asking = _options(options, directory)
        labelling = run(
            taxonomy, model, second=second, text=text, shown=shown, progress=progress, **asking
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
    for sentence in sentences(labelling):
        click.echo(words.clean(sentence))
    click.echo(f"written to {Path(directory) / 'labels.json'} and the report")


@click.command()
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option(
    "--cluster",
    "clusters",
    type=int,
    metavar="N",
    multiple=True,
    help="Repeatable [all that are published].",
)
@click.option(
    "--model",
    metavar="TARGET",
    help="Who writes new tasks; left out, variants are made by rule alone.",
)
@click.option(
    "--solver", metavar="TARGET", help="Who solves what the model wrote [the model itself]."
)
@click.option(
    "--kind",
    "kinds",
    metavar="NAME",
    multiple=True,
    help="Only this kind, of those above; repeatable [all].",
)
@click.option("--text", metavar="COL", help="What an example says [the only column of prose].")
@click.option(
    "--answer",
    metavar="COL",
    help="The key of an example, or its worked solution down to '#### key'.",
)
@click.option(
    "--solution", metavar="COL", help="Its worked solution, with calculations such as <<2*3=6>>."
)
@click.option(
    "--count",
    type=int,
    default=10,
    show_default=True,
    help="New tasks of each level and cluster [paper 50].",
)
@click.option(
    "--variants",
    type=int,
    default=20,
    show_default=True,
    help="Examples of each cluster that are varied.",
)
@click.option(
    "--solves",
    type=int,
    default=3,
    show_default=True,
    help="Times that a model's task is solved to be keyed.",
)
@click.option(
    "--against",
    metavar="FILE",
    multiple=True,
    help="More texts that must not be copied: a table with --text.",
)
@_asking
@click.option(
    "--out",
    required=True,
    type=click.Path(),
    metavar="TASKS",
    help="Write tasks and their account here.",
)
def generate(directory: str, against: tuple[str, ...], out: str, **options: Any) -> None:
    """Make new tasks from clusters of DIR: variants by rule, and with a model also new tasks of
    three levels.

    \b
    by rule   numbers, names, options, sentences, distractor, step
    by model  easy, medium, hard; rephrase, swap, reorder, complexity

    TASKS gets tasks.jsonl and tasks.py, which Inspect runs; candidates.jsonl holds every candidate
    with what became of it, those that were turned down or whose answer needs a check among them.

    \b
    groundfault taxonomy generate taxonomy/ --cluster 3 --answer answer --out tasks/
    groundfault taxonomy generate taxonomy/ --cluster 3 --answer answer --model openai/gpt-4o --out tasks/
    """
    from groundfault.exports.inspect_task import write
    from groundfault.render import words
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.words.generation import generate as run
    from groundfault.taxonomy.words.texts import text_column

    require_writable(options["record"])
    require_writable(out, directory=True)
    taxonomy = Taxonomy.load(directory)
    names = "clusters model solver kinds text answer solution count variants solves".split()
    with show_progress(False) as progress:
        column = text_column(taxonomy.matrix, options["text"], (options["answer"], options["solution"]))
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
    shaky = sorted({task.cluster for task in generation.tasks} & set(generation.settings["unstable"]))
    if shaky:
        click.echo(
            f"note: not published, so perhaps no failure mode: cluster {', '.join(map(str, shaky))}"
        )
    if not (options["answer"] or options["solution"]):
        click.echo(
            "note: no column of answers is named (--answer), so few variants by rule can be keyed"
        )
    click.echo(
        f"{len(generation.keyed):,} of {words.plural(len(generation.tasks), 'candidate')} are keyed: written to {out}"
    )


def _texts(file: str, column: str) -> list[tuple[str, str]]:
    """Texts of a table, each under a name that says where it is from."""
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
