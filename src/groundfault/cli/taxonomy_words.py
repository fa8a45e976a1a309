"""``taxonomy label``: what a language model calls clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from groundfault.cli.options import require_writable, shown_progress

_ASKING = (
    click.option("--record", metavar="FILE", help="Where calls are kept, to resume and replay [calls.db in DIR]."),
    click.option("--concurrency", type=int, default=8, show_default=True, help="Most calls at a time."),
    click.option("--timeout", type=float, default=120.0, show_default=True, help="Seconds for one attempt."),
    click.option("--temperature", type=float, help="Left to the model's server, where left out."),
    click.option("--max-tokens", type=int, help="Most tokens of a reply; left to the server, where left out."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of every random act; the model gets it too."),
)


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    group.add_command(label)


def _asking(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_ASKING):
        command = option(command)
    return command


def _options(given: dict[str, Any], home: str) -> dict[str, Any]:
    """For `groundfault.models.ask`."""
    kept = {name: given[name] for name in ("concurrency", "timeout")}
    settings = {name: given[name] for name in ("temperature", "max_tokens") if given[name] is not None}
    return {**kept, **settings, "record": given["record"] or Path(home) / "calls.db", "seed": given["seed"]}


@click.command()
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option("--model", required=True, metavar="TARGET", help="Who labels, such as openai/gpt-4o-mini.")
@click.option("--second", metavar="TARGET", help="Who checks the labels; the same model is asked at another seed.")
@click.option("--text", metavar="COL", help="What an example says [the only column of prose].")
@click.option("--shown", type=int, default=5, show_default=True, help="Members, and others, in a check of membership.")
@_asking
def label(directory: str, model: str, second: str | None, text: str | None, shown: int, **given: Any) -> None:
    """Have a model name each cluster of DIR from the tasks nearest to its centre, and a second one check the names.

    DIR is what `groundfault taxonomy fit` wrote. The labels go into labels.json and the report there, beside the words
    that set a cluster apart. Run again after an interruption, and only what is missing is asked.

    \b
    groundfault taxonomy label taxonomy/ --model openai/gpt-4o-mini --second openai/gpt-4o
    """
    from groundfault.render import words
    from groundfault.render.taxonomy import write_labels
    from groundfault.render.taxonomy_labels import sentences
    from groundfault.taxonomy.labeller import label as run
    from groundfault.taxonomy.taxonomy import Taxonomy

    require_writable(given["record"])
    taxonomy = Taxonomy.load(directory)
    with shown_progress(False) as progress:
        asking = _options(given, directory)
        found = run(taxonomy, model, second=second, text=text, shown=shown, progress=progress, **asking)
    write_labels(taxonomy, directory, found)
    for each in found.labels:
        said = f"{each.label} ({each.mode}, {each.bloom})" if each.label else f"{each.status}: {each.reason}"
        mark = "" if each.published else "  unstable"
        click.echo(f"  cluster {each.cluster}  {words.clean(said)}{mark}")
    for sentence in sentences(found):
        click.echo(words.clean(sentence))
    click.echo(f"written to {Path(directory) / 'labels.json'} and the report")
