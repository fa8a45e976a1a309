"""``taxonomy diagnose``, ``predict``, ``evaluate``, ``depth``, ``gaps`` and ``profiles``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import polars as pl

from groundfault.base.files import write_text
from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import RULE, Options, command
from groundfault.cli.output import Result, show_progress
from groundfault.cli.reading import read_evidence
from groundfault.cli.settings import (
    Flag,
    OutFile,
    OutFolder,
    OutTable,
    call,
    derive_options,
    own_options,
)
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault.render import words
from groundfault.render.page import Page
from groundfault_lab.taxonomy.fitting.fit import fit
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.use.diagnosis import Diagnosis, diagnose as run_diagnosis

if TYPE_CHECKING:
    from groundfault_lab.taxonomy.use.prediction import Method, Prediction

_SHOWN = 10
"""Examples most likely to fail that are printed; the file has all."""

examples_options = derive_options(
    fit, "examples vectors benchmark", group="Examples", metavar="COL", examples={"metavar": "FILE"}
)
"""What describes the examples whose failures are clustered."""


@command(first="results name outcome id budget strategy out json_path")
@own_options
@derive_options(
    run_diagnosis,
    "budget strategy allocation benchmark level seed",
    group=RULE,
    benchmark={"metavar": "COL"},
)
@shared.json_option("the diagnosis")
@shared.results_options
def diagnose(
    directory: Annotated[str, Flag("DIR")],
    *,
    results: Annotated[str | None, Flag("--model")] = None,
    name: str | None = None,
    out: OutFile | None = None,
    options: Options,
) -> Result:
    """Say where a new model fails, and what to run next.

    It names clusters of DIR, and examples of them. DIR is a folder that taxonomy fit wrote. A
    few answers of the model are enough; their columns are described by the same flags as for an
    audit.

    \b
    groundfault lab taxonomy diagnose taxonomy/ --budget 50 --out first.txt
    groundfault lab taxonomy diagnose taxonomy/ --model new.parquet --id id --outcome error

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

    taxonomy = Taxonomy.load(directory)
    diagnosis = call(run_diagnosis, options, taxonomy, _read_answers(results, name, options))
    if out:
        write_text(Path(out), "".join(f"{name}\n" for name in diagnosis.next))
    return Result(_outline_diagnosis(diagnosis, out), diagnosis)


@command(first="results name outcome id positive_is_good method out")
@own_options
@shared.results_options
def predict(
    directory: Annotated[str, Flag("DIR")],
    *,
    results: Annotated[str, Flag("--from")],
    name: str | None = None,
    method: Method = "ability",
    out: OutTable | None = None,
    options: Options,
) -> Result:
    """Predict failures on examples that a model has not run.

    They are examples of DIR.

    \b
    groundfault lab taxonomy predict taxonomy/ --from few.parquet --id id --outcome error \\
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
    from groundfault_lab.taxonomy.use.prediction import predict as run

    taxonomy = Taxonomy.load(directory)
    evidence = _read_answers(results, name, options)
    assert evidence is not None
    prediction = run(taxonomy, evidence, method=method)
    if out:
        write_table(prediction.frame, out)
    return Result(_outline_prediction(prediction, out))


def _outline_prediction(prediction: Prediction, out: str | None) -> Iterator[str]:

    n_examples = len(prediction.frame)
    yield (
        f"{words.plural(prediction.answers, 'answer')}; "
        f"{words.plural(n_examples, 'example')} not yet run"
    )
    if not n_examples:
        return
    yield f"expected to fail: {words.rate(prediction.expected)}"
    for row in prediction.frame.head(_SHOWN).iter_rows(named=True):
        yield f"  {words.rate(row['failure']):>6}  {row['example']}"
    yield f"written to {out}" if out else "name a file for all of them (--out)"


@command(first="outcome id model text trials jobs out json_path")
@shared.evidence_options
@examples_options
@own_options
@shared.jobs_option()
@shared.json_option("the study")
def evaluate(
    *,
    text: str | None = None,
    frontier: tuple[str, ...] = (),
    trials: int = 20,
    worlds: int = 99,
    refits: int = 20,
    permutations: int = 1000,
    seed: int = 0,
    out: OutFolder | None = None,
    progress: Progress,
    options: Options,
) -> Result:
    """Test whether clusters help to diagnose models.

    Each model of SOURCE is left out in turn. Prints the tables of FailureScope beside the numbers
    of that paper, the results of the same procedure in worlds without failure modes, and
    conclusions. An interrupted evaluation resumes if --out is the same.

    \b
    groundfault lab taxonomy evaluate answers.parquet --id id --model-column model \\
        --outcome error --out evaluated/

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
    from groundfault_lab.commands.study import STUDIES

    keep = Path(out) / ".replicates" if out else None
    names = "examples vectors benchmark jobs".split()
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
    return Result([result.make_page(out)], result)


def _read_answers(results: str | None, name: str | None, options: Options) -> Evidence | None:
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


def _outline_diagnosis(diagnosis: Diagnosis, out: str | None) -> Iterator[str]:

    yield diagnosis.verdict
    for w in diagnosis.weaknesses:
        yield (
            f"  fails {words.rate(w.rate):>6} [{words.rate(w.low)}, {words.rate(w.high)}]  "
            f"by ability {words.rate(w.expected):>6}  {w.failed} of {w.asked} run, of {w.size:,}  "
            f"{w.name}{'' if w.published else '  (unstable)'}"
            f"{f'  {w.decision}' if w.decision else ''}"
        )
    if diagnosis.unknown:
        yield (
            f"{words.plural(diagnosis.unknown, 'example')} answered that the taxonomy does not "
            "have: not counted"
        )
    size = f"{words.plural(len(diagnosis.next), 'example')} to run next"
    if out:
        yield f"{size}: written to {out}"
        return
    yield f"{size}, by {diagnosis.strategy}:"
    yield from (f"  {name}" for name in diagnosis.next)


@command(first="outcome id model repeat column score rate out")
@shared.evidence_options
@own_options
def depth(
    *,
    column: Annotated[str, Flag("--depth")],
    score: float = 0.7,
    rate: float = 0.5,
    level: float = 0.95,
    out: OutTable | None = None,
    progress: Progress,
    options: Options,
) -> Result:
    """Show each model's failure rate by depth of conversation.

    Rates have Wilson intervals. Where an example occurs at several depths, name the depth column in
    --repeat too.

    \b
    groundfault lab taxonomy depth mint.parquet --id id --model-column model --outcome error \\
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
    from groundfault_lab.pages.regimes_page import make_depth_page
    from groundfault_lab.taxonomy.use.regimes import depth_profile

    evidence = read_evidence(options, progress)
    profile = depth_profile(evidence, column, score=score, rate=rate, level=level)
    title = ", ".join(Path(source).name for source in options["sources"])
    return _write_page(make_depth_page(profile, column, title, level), profile, out)


@command()
@own_options
def gaps(
    traces: str,
    *,
    grader: str,
    execution: str,
    by: tuple[str, ...] = (),
    level: float = 0.95,
    out: OutTable | None = None,
) -> Result:
    """Compare an LLM grader's verdicts with execution results.

    TRACES is a table with one row for each trace.

    \b
    groundfault lab taxonomy gaps traces.csv --grader graded --execution ran --by attack --by model

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
    from groundfault_lab.pages.regimes_page import make_gap_page, make_gap_table
    from groundfault_lab.taxonomy.use.regimes import grader_gaps

    table = read_table(traces, text=by)[0]
    rows = grader_gaps(table, grader=grader, execution=execution, by=by, level=level)
    page = make_gap_page(rows, by, Path(traces).name, level)
    return _write_page(page, make_gap_table(rows, by), out)


def _write_page(page: Page, table: pl.DataFrame, out: str | None) -> Result:
    """Write the numbers of a page to a table, where there is one, and return the page."""
    from groundfault.base.sheets import write_table

    if out:
        write_table(table, out)
    return Result([page, *([f"written to {out}"] if out else [])])


@command(first="models html json_path")
@own_options
@shared.json_option("the profiles")
def profiles(
    directory: Annotated[str, Flag("DIR")],
    *,
    models: Annotated[tuple[str, ...], Flag("--model")] = (),
    unstable: bool = False,
    html: OutFile | None = None,
) -> Result:
    """Show how often each model fails in each leaf and cluster.

    DIR is a folder that taxonomy fit wrote. Models are ranked by the mean of their failure rates
    over the leaves and published clusters.

    \b
    groundfault lab taxonomy profiles taxonomy/ --html profiles.html
    groundfault lab taxonomy profiles taxonomy/ --model gpt-4o --model claude-2

    Rule
    ----
    models : MODEL
        Model to show; repeatable. By default all.
    unstable
        Count clusters that are not published too.

    Output
    ------
    html : FILE
        Write the tables and a bar chart of each model as one self-contained page.
    """
    from groundfault.render.html import html as set_html
    from groundfault_lab.pages.profile_page import make_profile_page
    from groundfault_lab.taxonomy.use.profiles import profile_models

    result = profile_models(Taxonomy.load(directory), models, unstable=unstable)
    page = make_profile_page(result, f"Profiles: {Path(directory).absolute().name}")
    if html:
        write_text(Path(html), set_html(page))
    return Result([page, *([f"written to {html}"] if html else [])], result)


COMMANDS = (diagnose, predict, evaluate, depth, gaps, profiles)
"""Commands of the group ``taxonomy`` that use clusters."""
