"""``taxonomy diagnose``, ``predict``, ``evaluate``, ``depth`` and ``gaps``: clusters in use."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.base.files import write_text
from groundfault.cli.command import RULE, GroupedCommand
from groundfault.cli.options import evidence_options, jobs_option, json_option, results_options
from groundfault.cli.output import require_writable, show_page, show_progress, write_json
from groundfault.cli.reading import read_evidence
from groundfault.cli.settings import Flag, call, derive_options, own_options
from groundfault.errors import InputError, PlanError
from groundfault.taxonomy.fitting.fit import fit
from groundfault.taxonomy.use.diagnosis import diagnose as run_diagnosis

if TYPE_CHECKING:
    from groundfault.core.evidence import Evidence
    from groundfault.render.page import Page
    from groundfault.taxonomy.use.diagnosis import Diagnosis
    from groundfault.taxonomy.use.prediction import Method

_SHOWN = 10
"""Examples most likely to fail that are printed; the file has all."""

examples_options = derive_options(
    fit,
    "examples vectors benchmark",
    group="Examples",
    metavar="COL",
    examples={"metavar": "FILE"},
)
"""What describes the examples whose failures are clustered."""


@click.command(cls=GroupedCommand, first="results name outcome id budget strategy out json_path")
@own_options
@derive_options(
    run_diagnosis,
    "budget strategy allocation benchmark level seed",
    group=RULE,
    benchmark={"metavar": "COL"},
)
@json_option("the diagnosis")
@results_options
def diagnose(
    directory: Annotated[str, Flag("DIR")],
    *,
    results: Annotated[str | None, Flag("--model")] = None,
    name: str | None = None,
    out: str | None = None,
    json_path: str | None,
    **options: Any,
) -> None:
    """Say where a new model fails, and what to run next.

    It names clusters of DIR, and examples of them. DIR is what `groundfault taxonomy fit` wrote. A
    few answers of the model are enough; their columns are described by the same flags as for an
    audit.

    \b
    groundfault taxonomy diagnose taxonomy/ --budget 50 --out first.txt
    groundfault taxonomy diagnose taxonomy/ --model new.parquet --id id --outcome error

    Input
    -----
    results : FILE
        File of the model's answers so far; left out for a model without any.
    name : MODEL
        Name of the model, where that file has several.

    Output
    ------
    out : FILE
        Write the ids to run next to this file, one on a line.
    """
    from groundfault.taxonomy.fitting.taxonomy import Taxonomy

    for path in (out, json_path):
        require_writable(path)
    taxonomy = Taxonomy.load(directory)
    diagnosis = call(run_diagnosis, options, taxonomy, _read_answers(results, name, options))
    if out:
        write_text(Path(out), "".join(f"{name}\n" for name in diagnosis.next))
    if not write_json(diagnosis.to_json(), json_path):
        _print_diagnosis(diagnosis, out)


@click.command(cls=GroupedCommand, first="results name outcome id positive_is_good method out")
@own_options
@results_options
def predict(
    directory: Annotated[str, Flag("DIR")],
    *,
    results: Annotated[str, Flag("--from")],
    name: str | None = None,
    method: Method = "ability",
    out: str | None = None,
    **options: Any,
) -> None:
    """Predict failures on examples that a model has not run.

    They are examples of DIR.

    \b
    groundfault taxonomy predict taxonomy/ --from few.parquet --id id --outcome error \\
        --out expected.parquet

    Input
    -----
    results : FILE
        File of the model's answers so far.
    name : MODEL
        Name of the model, where that file has several.

    Rule
    ----
    method : NAME
        Method: majority, nearest, neighbours, ability or low_rank.

    Output
    ------
    out : FILE
        Write each example with its probability of failing: .parquet, .csv or .jsonl.
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
    evidence = _read_answers(results, name, options)
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
    for row in prediction.frame.head(_SHOWN).iter_rows(named=True):
        click.echo(f"  {words.rate(row['failure']):>6}  {words.clean(row['example'])}")
    click.echo(f"written to {out}" if out else "name a file for all of them (--out)")


@click.command(cls=GroupedCommand, first="outcome id model text trials jobs out json_path")
@evidence_options
@examples_options
@own_options
@jobs_option()
@json_option("the study")
def evaluate(
    *,
    text: str | None = None,
    frontier: tuple[str, ...] = (),
    trials: int = 20,
    worlds: int = 99,
    refits: int = 20,
    permutations: int = 1000,
    seed: int = 0,
    out: str | None = None,
    json_path: str | None,
    **options: Any,
) -> None:
    """Test whether clusters help to diagnose models.

    Each model of SOURCE is left out in turn. Prints the tables of FailureScope beside the numbers
    of that paper, the results of the same procedure in worlds without failure modes, and
    conclusions. An interrupted evaluation resumes if --out is the same.

    \b
    groundfault taxonomy evaluate answers.parquet --id id --model-column model --outcome error \\
        --out evaluated/

    Examples
    --------
    text : COL
        Column of texts, for the paper's clusters.

    Rule
    ----
    frontier : MODEL
        Model of the paper's filter; repeatable; by default the four that pass most.
    trials : N
        Number of random splits and draws for each model left out.
    worlds : N
        Number of null worlds of each kind.
    refits : N
        Number of refits on halves of the examples and of the models.
    permutations : N
        Number of permutations of the paper's label-fixed test.
    seed : N
        Seed of every random draw.

    Output
    ------
    out : DIR
        Write taxonomy.md, taxonomy.json and figures to this folder.
    """
    from rich.console import Console

    from groundfault.cli.study import STUDIES, show

    require_writable(out, directory=True)
    require_writable(json_path)
    keep = Path(out) / ".replicates" if out else None
    names = "examples vectors benchmark jobs".split()
    with show_progress(json_path == "-") as progress:
        result = STUDIES.get("taxonomy")(
            read_evidence(options, progress),
            text=text,
            frontier=frontier,
            trials=trials,
            worlds=worlds,
            refits=refits,
            permutations=permutations,
            seed=seed,
            keep=keep,
            progress=progress,
            **{name: options[name] for name in names},
        )
    if out:
        result.write(out)
        shutil.rmtree(str(keep), ignore_errors=True)
    if not (json_path and write_json(result.to_json(), json_path)):
        show(result, Console(), out)


def _read_answers(
    results: str | None, name: str | None, options: dict[str, Any]
) -> Evidence | None:
    """Read evidence of one model, from the file named."""
    if results is None:
        if name:
            raise PlanError("--name chooses a model of a file: name the file too")
        return None
    if options["outcome"] and not options["id"]:
        raise InputError("say which column holds the ids of the examples (--id)")
    place = {"sources": (results,), "models": (name,) if name else ()}
    with show_progress(False) as progress:
        return read_evidence(options | place, progress)


def _print_diagnosis(diagnosis: Diagnosis, out: str | None) -> None:
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


@click.command(cls=GroupedCommand, first="outcome id model repeat column score rate out")
@evidence_options
@own_options
def depth(
    *,
    column: Annotated[str, Flag("--depth")],
    score: float = 0.7,
    rate: float = 0.5,
    level: float = 0.95,
    out: str | None = None,
    **options: Any,
) -> None:
    """Show each model's failure rate by depth of conversation.

    Rates have Wilson intervals. Where an example occurs at several depths, name the depth column in
    --repeat too.

    \b
    groundfault taxonomy depth mint.parquet --id id --model-column model --outcome error \\
        --repeat turns --depth turns

    Columns
    -------
    column : COL
        Column of the depth: turns, budget, or another order.

    Rule
    ----
    score
        Score from which a try is a pass.
    rate
        Share of passed tries from which an example is passed.
    level
        Confidence level of the intervals.

    Output
    ------
    out : FILE
        Write all numbers to this file: .parquet, .csv or .jsonl.
    """
    from groundfault.render.regimes_page import make_depth_page
    from groundfault.taxonomy.use.regimes import depth_profile

    require_writable(out)
    with show_progress(False) as progress:
        evidence = read_evidence(options, progress)
        profile = depth_profile(evidence, column, score=score, rate=rate, level=level)
    title = ", ".join(Path(source).name for source in options["sources"])
    _print_page(make_depth_page(profile, column, title, level), profile, out)


@click.command(cls=GroupedCommand)
@own_options
def gaps(
    traces: str,
    *,
    grader: Annotated[str, Flag(old="--judge")],
    execution: str,
    by: tuple[str, ...] = (),
    level: float = 0.95,
    out: str | None = None,
) -> None:
    """Compare an LLM grader's verdicts with execution results.

    TRACES is a table with one row for each trace.

    \b
    groundfault taxonomy gaps traces.csv --grader graded --execution ran --by attack --by model

    Columns
    -------
    grader : COL
        Column of the grader's verdicts, 1 for success and 0 for none.
    execution : COL
        Column of execution results, 1 for success and 0 for none.
    by : COL
        Column that splits the table into cells, such as attack or model; repeatable.

    Rule
    ----
    level
        Confidence level of the intervals.

    Output
    ------
    out : FILE
        Write all numbers to this file: .parquet, .csv or .jsonl.
    """
    from groundfault.readers.table import read_table
    from groundfault.render.regimes_page import make_gap_page, make_gap_table
    from groundfault.taxonomy.use.regimes import grader_gaps

    require_writable(out)
    table = read_table(traces, text=by)[0]
    rows = grader_gaps(table, grader=grader, execution=execution, by=by, level=level)
    page = make_gap_page(rows, by, Path(traces).name, level)
    _print_page(page, make_gap_table(rows, by), out)


def _print_page(page: Page, table: Any, out: str | None) -> None:
    from groundfault.base.sheets import write_table

    if out:
        write_table(table, out)
    show_page(page)
    if out:
        click.echo(f"written to {out}")


COMMANDS = (diagnose, predict, evaluate, depth, gaps)
"""Commands of the group ``taxonomy`` that use clusters."""
