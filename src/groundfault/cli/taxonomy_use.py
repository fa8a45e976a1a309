"""``taxonomy diagnose``, ``predict`` and ``evaluate``: a taxonomy and a model new to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundfault.base.files import write_text
from groundfault.cli.command import INPUT, RULE, GroupedCommand, option
from groundfault.cli.options import evidence_options, jobs_option, json_option, results_options
from groundfault.cli.output import require_writable, show_progress, write_json
from groundfault.cli.reading import read_evidence
from groundfault.cli.settings import list_options
from groundfault.errors import InputError, PlanError


def _list_example_settings(
    *, examples: str | None = None, vectors: str | None = None, benchmark: str | None = None
) -> None:
    """List what describes the examples whose failures are clustered.

    Examples
    --------
    examples : FILE
        Table that describes the examples, joined by --id.
    vectors : COL
        Column of vectors of the examples, used instead of their texts.
    benchmark : COL
        Column of the benchmark of an example.
    """


examples_options = list_options(_list_example_settings)
"""What describes the examples whose failures are clustered."""


def attach(group: click.Group) -> None:
    """Add these commands to the group of taxonomies."""
    for command in (diagnose, predict, evaluate):
        group.add_command(command)


@click.command(cls=GroupedCommand, first="results name outcome id budget strategy out json_path")
@click.argument("directory", type=click.Path(), metavar="DIR")
@option(
    "--model",
    "results",
    metavar="FILE",
    group=INPUT,
    help="File of the model's answers so far; left out for a model without any.",
)
@option(
    "--name",
    metavar="MODEL",
    group=INPUT,
    help="Name of the model, where that file has several.",
)
@option(
    "--budget",
    type=int,
    default=50,
    show_default=True,
    group=RULE,
    help="Number of examples to run next.",
)
@option(
    "--strategy",
    default="taxonomy",
    show_default=True,
    group=RULE,
    help="Strategy that picks them: random, benchmark, difficulty, irt, uncertainty or taxonomy.",
)
@option(
    "--allocation",
    default="proportional",
    show_default=True,
    group=RULE,
    help="Allocation to clusters, for the strategy taxonomy: proportional or uniform.",
)
@option(
    "--benchmark",
    metavar="COL",
    group=RULE,
    help="Column of the taxonomy's examples with their benchmark, for the strategy benchmark.",
)
@option(
    "--level",
    type=float,
    default=0.9,
    show_default=True,
    group=RULE,
    help="Confidence level of the intervals.",
)
@option("--seed", type=int, default=0, show_default=True, group=RULE, help="Seed that draws them.")
@option("--out", metavar="FILE", help="Write the ids to run next to this file, one on a line.")
@json_option("the diagnosis")
@results_options
def diagnose(directory: str, results: str | None, **options: Any) -> None:
    """Say in which clusters of DIR a new model fails, and which examples to run next.

    DIR is what `groundfault taxonomy fit` wrote. A few answers of the model are enough; their
    columns are described by the same flags as for an audit.

    \b
    groundfault taxonomy diagnose taxonomy/ --budget 50 --out first.txt
    groundfault taxonomy diagnose taxonomy/ --model new.parquet --id id --outcome error
    """
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy
    from groundfault.taxonomy.use.diagnosis import diagnose as run

    require_writable(options["out"])
    require_writable(options["json_path"])
    taxonomy = Taxonomy.load(directory)
    names = "budget strategy allocation benchmark level seed".split()
    diagnosis = run(taxonomy, _answers(results, options), **{name: options[name] for name in names})
    if options["out"]:
        write_text(Path(options["out"]), "".join(f"{name}\n" for name in diagnosis.next))
    if write_json(diagnosis.to_json(), options["json_path"]):
        return
    _say(diagnosis, options["out"])


@click.command(cls=GroupedCommand, first="results name outcome id positive_is_good method out")
@click.argument("directory", type=click.Path(), metavar="DIR")
@option(
    "--from",
    "results",
    metavar="FILE",
    required=True,
    group=INPUT,
    help="File of the model's answers so far.",
)
@option(
    "--name",
    metavar="MODEL",
    group=INPUT,
    help="Name of the model, where that file has several.",
)
@option(
    "--method",
    default="ability",
    show_default=True,
    group=RULE,
    help="Method: majority, nearest, neighbours, ability or low_rank.",
)
@option(
    "--out",
    metavar="FILE",
    help="Write each example with its probability of failing: .parquet, .csv or .jsonl.",
)
@results_options
def predict(directory: str, results: str, method: Any, out: str | None, **options: Any) -> None:
    """Predict how a model fails on the examples of DIR that it has not been run on.

    \b
    groundfault taxonomy predict taxonomy/ --from few.parquet --id id --outcome error \\
        --out expected.parquet
    """
    from groundfault.base.sheets import write_table
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
        f"{words.plural(prediction.answers, 'answer')}; "
        f"{words.plural(n_examples, 'example')} not yet run"
    )
    if not n_examples:
        return
    click.echo(f"expected to fail: {words.rate(prediction.expected)}")
    for row in prediction.frame.head(10).iter_rows(named=True):
        click.echo(f"  {words.rate(row['failure']):>6}  {words.clean(row['example'])}")
    click.echo(f"written to {out}" if out else "name a file for all of them (--out)")


@click.command(cls=GroupedCommand, first="outcome id model text trials jobs out json_path")
@evidence_options
@examples_options
@option(
    "--text", metavar="COL", group="Examples", help="Column of texts, for the paper's clusters."
)
@option(
    "--frontier",
    metavar="MODEL",
    multiple=True,
    group=RULE,
    help="Model of the paper's filter; repeatable; by default the four that pass most.",
)
@option(
    "--trials",
    type=int,
    default=20,
    show_default=True,
    group=RULE,
    help="Number of random splits and draws for each model left out.",
)
@option(
    "--worlds",
    type=int,
    default=99,
    show_default=True,
    group=RULE,
    help="Number of null worlds of each kind.",
)
@option(
    "--refits",
    type=int,
    default=20,
    show_default=True,
    group=RULE,
    help="Number of refits on halves of the examples and of the models.",
)
@option(
    "--permutations",
    type=int,
    default=1000,
    show_default=True,
    group=RULE,
    help="Number of permutations of the paper's label-fixed test.",
)
@option(
    "--seed", type=int, default=0, show_default=True, group=RULE, help="Seed of every random draw."
)
@jobs_option()
@option(
    "--out",
    type=click.Path(),
    metavar="DIR",
    help="Write taxonomy.md, taxonomy.json and figures to this folder.",
)
@json_option("the study")
def evaluate(**options: Any) -> None:
    """Test whether clusters help to diagnose models: leave out each model of SOURCE in turn.

    Prints the tables of FailureScope beside the numbers of that paper, the results of the same
    procedure in worlds without failure modes, and conclusions. An interrupted evaluation resumes if
    --out is the same.

    \b
    groundfault taxonomy evaluate answers.parquet --id id --model-column model --outcome error \\
        --out evaluated/
    """
    import shutil

    from groundfault.cli.study import STUDIES, show

    require_writable(options["out"], directory=True)
    require_writable(options["json_path"])
    keep = Path(options["out"]) / ".replicates" if options["out"] else None
    names = (
        "examples text vectors benchmark frontier trials worlds refits permutations seed jobs"
    ).split()
    with show_progress(options["json_path"] == "-") as progress:
        evidence = read_evidence(options, progress)
        result = STUDIES.get("taxonomy")(
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
            {
                **options,
                "sources": (results,),
                "models": (options["name"],) if options["name"] else (),
            },
            progress,
        )


def _say(diagnosis: Any, out: str | None) -> None:
    from groundfault.render import words

    click.echo(diagnosis.verdict)
    for w in diagnosis.weaknesses:
        mark = "" if w.published else "  (unstable)"
        click.echo(
            f"  fails {words.rate(w.rate):>6} [{words.rate(w.low)}, {words.rate(w.high)}]  "
            f"by ability {words.rate(w.expected):>6}  {w.failed} of {w.asked} run, of {w.size:,}  "
            f"{words.clean(w.name)}{mark}"
        )
    if diagnosis.unknown:
        click.echo(
            f"{words.plural(diagnosis.unknown, 'example')} answered that the taxonomy does not "
            "have: not counted"
        )
    if out:
        click.echo(f"{words.plural(len(diagnosis.next), 'example')} to run next: written to {out}")
        return
    click.echo(
        f"{words.plural(len(diagnosis.next), 'example')} to run next, by {diagnosis.strategy}:"
    )
    for name in diagnosis.next:
        click.echo(f"  {words.clean(name)}")
