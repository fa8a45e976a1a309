"""``taxonomy diagnose``, ``predict`` and ``evaluate``: what a taxonomy says of a model it never
met, and how well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundfault.base.files import write_text
from groundfault.cli.options import (
    evidence_options,
    read_evidence,
    require_writable,
    results_options,
    show_progress,
    write_json,
)
from groundfault.errors import InputError, PlanError


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    for command in (diagnose, predict, evaluate):
        group.add_command(command)


@click.command()
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option(
    "--model", "results", metavar="FILE", help="The model's answers so far; left out, it has none."
)
@click.option("--name", metavar="MODEL", help="Which model of that file, where it holds several.")
@click.option("--budget", type=int, default=50, show_default=True, help="Examples to run next.")
@click.option(
    "--strategy",
    default="taxonomy",
    show_default=True,
    help="random, benchmark, difficulty, irt, uncertainty or taxonomy.",
)
@click.option(
    "--allocation",
    default="proportional",
    show_default=True,
    help="Of taxonomy: proportional or uniform.",
)
@click.option(
    "--benchmark",
    metavar="COL",
    help="Of benchmark: which attribute of the taxonomy's examples says it.",
)
@click.option("--level", type=float, default=0.9, show_default=True, help="Of each interval.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draw.")
@click.option("--out", metavar="FILE", help="Write the ids to run next here, one a line.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the diagnosis as JSON; - is standard output, alone.",
)
@results_options
def diagnose(directory: str, results: str | None, **options: Any) -> None:
    """Say in which clusters of DIR a new model fails, from the few answers it has given, and what
    to run next.

    DIR is what `groundfault taxonomy fit` wrote. The flags that say what the columns are are those
    of an audit.

    \b
    groundfault taxonomy diagnose taxonomy/ --budget 50 --out first.txt
    groundfault taxonomy diagnose taxonomy/ --model new.parquet --id id --outcome error --budget 50
    """
    import json

    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.use.diagnosis import diagnose as run

    require_writable(options["out"])
    require_writable(options["json_path"])
    taxonomy = Taxonomy.load(directory)
    names = "budget strategy allocation benchmark level seed".split()
    diagnosis = run(taxonomy, _answers(results, options), **{name: options[name] for name in names})
    if options["out"]:
        write_text(Path(options["out"]), "".join(f"{name}\n" for name in diagnosis.next))
    text = json.dumps(diagnosis.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, options["json_path"]):
        return
    _say(diagnosis, options["out"])


@click.command()
@click.argument("directory", type=click.Path(), metavar="DIR")
@click.option(
    "--from", "results", metavar="FILE", required=True, help="The model's answers so far."
)
@click.option("--name", metavar="MODEL", help="Which model of that file, where it holds several.")
@click.option(
    "--method",
    default="ability",
    show_default=True,
    help="majority, nearest, neighbours, ability or low_rank.",
)
@click.option(
    "--out",
    metavar="FILE",
    help="Write every example and its chance of failing here: .parquet, .csv or .jsonl.",
)
@results_options
def predict(directory: str, results: str, method: Any, out: str | None, **options: Any) -> None:
    """Expected failures of a model on the examples of DIR that it has not been run on.

    \b
    groundfault taxonomy predict taxonomy/ --from few.parquet --id id --outcome error --out expected.parquet
    """
    from groundfault.exports.slices import write_table
    from groundfault.render import words
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.use.prediction import predict as run

    if out and Path(out).suffix.lower() not in (".csv", ".parquet", ".pq", ".jsonl", ".ndjson"):
        raise PlanError(
            f"cannot tell from {out!r} how to write a table; name it .csv, .parquet or .jsonl"
        )
    require_writable(out)
    taxonomy = Taxonomy.load(directory)
    evidence = _answers(results, options)
    assert evidence is not None
    prediction = run(taxonomy, evidence, method=method)
    if out:
        write_table(prediction.frame, out)
    n_examples = len(prediction.frame)
    click.echo(
        f"{words.plural(prediction.answers, 'answer')}; {words.plural(n_examples, 'example')} not yet run"
    )
    if not n_examples:
        return
    click.echo(f"expected to fail: {words.rate(prediction.expected)}")
    for row in prediction.frame.head(10).iter_rows(named=True):
        click.echo(f"  {words.rate(row['failure']):>6}  {words.clean(row['example'])}")
    click.echo(f"written to {out}" if out else "name a file for all of them (--out)")


@click.command()
@evidence_options
@click.option(
    "--examples", metavar="FILE", help="A table that describes the examples, joined by --id."
)
@click.option("--text", metavar="COL", help="What an example says: for the paper's clusters.")
@click.option("--vectors", metavar="COL", help="Vectors of the examples, in place of their texts.")
@click.option("--benchmark", metavar="COL", help="Which benchmark an example comes from.")
@click.option(
    "--frontier",
    metavar="MODEL",
    multiple=True,
    help="The paper's filter [the four that pass most].",
)
@click.option(
    "--trials",
    type=int,
    default=20,
    show_default=True,
    help="Random splits and draws of each fold.",
)
@click.option("--worlds", type=int, default=99, show_default=True, help="Null worlds of each kind.")
@click.option(
    "--refits", type=int, default=20, show_default=True, help="On halves of examples and of models."
)
@click.option(
    "--permutations", type=int, default=1000, show_default=True, help="Of the label-fixed test."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of every random act.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes (-1: all cores).")
@click.option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Write taxonomy.md, taxonomy.json and figures here.",
)
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the study as JSON; - is standard output, alone.",
)
def evaluate(**options: Any) -> None:
    """Leave out one model of SOURCE at a time: do clusters of the others' failures help to diagnose
    it?

    Prints the tables of FailureScope in form, beside the numbers that paper gives for its models
    and data, what the same procedure finds in worlds without failure modes, and in plain sentences
    what holds. Given the same --out, an evaluation that was interrupted goes on where it stopped.

    \b
    groundfault taxonomy evaluate answers.parquet --id id --model-column model --outcome error --out evaluated/
    """
    import shutil

    from groundfault.cli.study import show
    from groundfault_studies.taxonomy import study

    require_writable(options["out"], directory=True)
    require_writable(options["json_path"])
    keep = Path(options["out"]) / ".replicates" if options["out"] else None
    names = "examples text vectors benchmark frontier trials worlds refits permutations seed jobs".split()
    with show_progress(options["json_path"] == "-") as progress:
        evidence = read_evidence(options, progress)
        result = study(
            evidence, keep=keep, progress=progress, **{name: options[name] for name in names}
        )
    if options["out"]:
        result.write(options["out"])
        shutil.rmtree(str(keep), ignore_errors=True)
    if options["json_path"] and write_json(result.to_json(), options["json_path"]):
        return
    from rich.console import Console

    show(result, Console(), options["out"])


def _answers(results: str | None, options: dict[str, Any]) -> Any:
    """Evidence of one model, from the file named."""
    if results is None:
        if options["name"]:
            raise PlanError("--name chooses a model of a file: name the file too")
        return None
    if options["outcome"] and not options["id"]:
        raise InputError("say which column holds the ids of the examples (--id)")
    with show_progress(False) as progress:
        return read_evidence(
            {**options, "sources": (results,), "models": (options["name"],) if options["name"] else ()},
            progress,
        )


def _say(diagnosis: Any, out: str | None) -> None:
    from groundfault.render import words

    click.echo(diagnosis.verdict)
    for w in diagnosis.weaknesses:
        mark = "" if w.published else "  (unstable)"
        click.echo(
            f"  fails {words.rate(w.rate):>6} [{words.rate(w.low)}, {words.rate(w.high)}]  by ability "
            f"{words.rate(w.expected):>6}  {w.failed} of {w.asked} asked, {w.size:,} there are  "
            f"{words.clean(w.name)}{mark}"
        )
    if diagnosis.unknown:
        click.echo(
            f"{words.plural(diagnosis.unknown, 'example')} answered that no cluster is made of: not counted"
        )
    if out:
        click.echo(f"{words.plural(len(diagnosis.next), 'example')} to run next: written to {out}")
        return
    click.echo(f"{words.plural(len(diagnosis.next), 'example')} to run next, by {diagnosis.strategy}:")
    for name in diagnosis.next:
        click.echo(f"  {words.clean(name)}")
