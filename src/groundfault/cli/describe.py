"""``describe``: the common traits of failing examples, in the words of a language model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.reading import (
    read_evidence,
    split_names,
)
from groundfault.cli.settings import Count, Flag, OutFile, OutFolder, Whole, call, own_options
from groundfault.core.plan import Plan
from groundfault.errors import PlanError
from groundfault.render import words


@command(first="outcome id describer annotator second max_calls prices out")
@shared.evidence_options
@own_options
@shared.holdout_option
@shared.call_options
def describe(
    *,
    describer: str,
    descriptions: Annotated[tuple[str, ...], Flag("--description")] = (),
    arms: str = "outcomes,blind,shuffled",
    rounds: Annotated[int, click.IntRange(1, 100)] = 3,
    examples: Count = 10,
    count: Annotated[int, click.IntRange(1, 50)] = 5,
    runs: bool = False,
    annotator: str | None = None,
    second: str | None = None,
    sheet: OutFile | None = None,
    check: Count = 100,
    sample: Count | None = None,
    text: tuple[str, ...] = (),
    max_calls: Whole = 5000,
    prices: Annotated[tuple[float, float] | None, Flag("--price")] = None,
    out: OutFolder,
    progress: Progress,
    options: Options,
) -> Result:
    """Let a language model describe failing examples.

    The model sees failing and passing examples of the discovery half and writes down what they have
    in common. An annotator, which sees neither outcomes nor answers, then decides for every example
    whether each description fits. An audit with the same seed then tests the descriptions like
    any candidate, with descriptions from shuffled outcomes as controls. Before
    each batch its cost is estimated and printed. After an interruption, run it again: no question
    is paid for twice.

    \b
    groundfault lab describe results.parquet --id id --outcome error --describer openai/gpt-4o \\
        --annotator openai/gpt-4o-mini --second openai/gpt-4o --price 2.5 10 --out described/
    groundfault audit results.parquet --id id --outcome error \\
        --candidates described/library.json

    Descriptions
    ------------
    describer : TARGET
        Model that proposes descriptions, such as openai/gpt-4o.
    descriptions : TEXT
        Description of your own, annotated beside the others; repeatable.
    arms : NAMES
        Ways to propose: outcomes shows which examples failed, blind does not, shuffled lies about
        it (a control); none asks for no proposals.
    rounds : N
        Number of questions in each arm, each with other examples.
    examples : N
        Number of failing examples in a question, and of passing ones.
    count : N
        Largest number of descriptions in one reply.
    runs
        Describe what happens in runs, from their steps or answers, and not the examples.

    Annotation
    ----------
    annotator : TARGET
        Model that decides for each example which descriptions hold; by default --describer.
    second : TARGET
        Model that decides again on a random part, so that agreement is reported.
    sheet : FILE
        CSV sheet for a person who decides instead of --second: written where there is none, read
        where there is one.
    check : N
        Number of examples that are decided on again, drawn at random.
    sample : N
        Number of examples to annotate, drawn at random; by default all.
    text : COL
        Column to show of an example, known before its answer; repeatable; by default all prose.

    Model calls
    -----------
    max_calls : N
        Largest number of calls of this run; 0 says what it may cost, and asks nothing.
    prices : IN OUT
        Dollars for a million tokens of questions and of replies, for the estimates; the same for
        every model, so name the highest.

    Output
    ------
    out : DIR
        Write library.json, the descriptions as candidates, and the record to this folder; with
        --runs a folder evidence, to audit, in place of library.json.
    """
    from groundfault.auditing.describing import DescribingTask, describe as run
    from groundfault.descriptions.proposing import ProposingSettings
    from groundfault.render.description_tables import make_page

    names: Any = () if arms.strip() == "none" else tuple(split_names(arms))
    if not names and not descriptions:
        raise PlanError("--arms none asks for no proposals: add --description TEXT")
    settings = ProposingSettings(names, rounds=rounds, examples=examples, count=count, runs=runs)
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    material: dict[str, Any] = {"descriptions": descriptions, "sample": sample, "check": check}
    material |= {"settings": settings, "columns": text or None}
    calling = call(
        shared.list_call_settings, options, record=options["record"] or Path(out) / "calls.db"
    )
    # the seed of the plan is sent to the model
    calling.pop("seed")
    evidence = read_evidence(options)
    if not max_calls:
        task = DescribingTask.of(evidence, plan, **material)
        return Result([task.bound_cost(second=second is not None).describe(prices)])
    result = run(
        evidence,
        describer,
        plan,
        annotator=annotator,
        second=second,
        sheet=sheet,
        max_calls=max_calls,
        prices=prices,
        announce=partial(_announce, progress),
        progress=progress,
        **material,
        **calling,
    )
    library = Path(out) / ("evidence" if runs else "library.json")
    if result.marked is not None:
        result.marked.save(library)
    else:
        result.library.freeze(library)
    return Result([make_page(result, library, sheet)])


def _announce(progress: Progress, sentence: str) -> None:

    progress(sentence)
    click.echo(words.clean(sentence), err=True)
