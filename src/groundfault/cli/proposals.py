"""``slices`` and ``describe``: what failing examples share, before it is judged."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

from groundfault.base.progress import Progress
from groundfault.cli import shared
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.reading import (
    read_evidence,
    read_settings,
    read_value,
    split_names,
)
from groundfault.cli.settings import Count, Flag, OutFile, OutFolder, Whole, call, own_options
from groundfault.core.plan import Plan
from groundfault.errors import PlanError
from groundfault.render import words

_PERMUTATIONS = 200
"""Repeats of a search that sliceline does itself, which is fast: the smallest p is then 1/201."""


@command(first="outcome id positive_is_good finder max_slices settings library json_path")
@shared.evidence_options
@own_options
@shared.settings_option
@shared.holdout_options
@shared.json_option("the slices")
def slices(
    *,
    finder: str = "sliceline",
    max_slices: Annotated[Count, Flag("-k")] = 10,
    max_level: Count | None = None,
    permutations: Whole | None = None,
    library: OutFile | None = None,
    progress: Progress,
    **options: Any,
) -> Result:
    """Propose slices with high failure rates; confirm nothing.

    Only the discovery units are searched, so that an audit with the same seed can judge the slices
    on the held-out units. Finders of slices: sliceline, tree, pysubgroup; edisa, domino, spotlight
    (with embeddings); and the baselines confidence and random.

    \b
    groundfault lab slices results.parquet --id item_id --outcome error -k 10 --max-level 3
    groundfault lab slices results.parquet --id item_id --outcome error --finder edisa \\
        --set n_slices=64 --library l.json
    groundfault audit results.parquet --id item_id --outcome error --library l.json

    Search
    ------
    finder : NAME
        Finder that searches for slices.
    max_slices : N
        Largest number of slices.
    max_level : N
        Largest number of predicates in a slice; default 3.
    permutations : N
        Number of times the search is repeated on permuted errors, for p; default 200 for sliceline,
        39 for other finders.

    Output
    ------
    library : FILE
        Freeze the slices in this library, for audit --library.
    """
    from groundfault.auditing.proposals import propose
    from groundfault.core.columns import share_words
    from groundfault.render.preview_pages import make_slice_page

    settings: dict[str, Any] = {"k": max_slices, "permutations": permutations}
    maker = _make_finder(finder, settings | {"max_level": max_level}, options["settings"])
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    evidence = share_words(read_evidence(options))
    progress(f"searching with {finder}")
    searches = shared.SEARCHES if permutations is None else permutations
    proposals = propose(evidence, maker, plan, max_slices, searches)
    if library:
        proposals.library.freeze(library)
    return Result([make_slice_page(proposals, library)], proposals.to_dict())


def _make_finder(name: str, flags: dict[str, Any], more: tuple[str, ...]) -> Any:
    """Return the finder with its settings, and with permutations where it has them."""

    from groundfault.auditing.proposals import configure_finder
    from groundfault.finders import get

    maker = get(name)
    types: dict[str, str] = (
        {f.name: str(f.type) for f in fields(maker)} if is_dataclass(maker) else {}
    )
    settings = {key: value for key, value in flags.items() if key in types and value is not None}
    if "permutations" in types:
        settings.setdefault("permutations", _PERMUTATIONS)
    if flags["max_level"] is not None:
        # a finder without levels says so
        settings["max_level"] = flags["max_level"]
    for key, text in read_settings(more).items():
        many = "tuple" in types.get(key, "")
        settings[key] = tuple(map(read_value, text.split(","))) if many else read_value(text)
    return configure_finder(name, settings)


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
    **options: Any,
) -> Result:
    """Let a language model describe failing examples.

    The model sees failing and passing examples of the discovery half and writes down what they have
    in common. An annotator, which sees neither outcomes nor answers, then decides for every example
    whether each description holds. Nothing is confirmed by this: an audit with the same seed judges
    the descriptions like any candidate, those from shuffled outcomes among them as controls. Before
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
        every model, so name those of the dearest.

    Output
    ------
    out : DIR
        Write library.json, the descriptions as candidates, and the record to this folder; with
        --runs a folder evidence, to audit, in place of library.json.
    """
    from groundfault.auditing.describing import bound_describing_cost, describe as run
    from groundfault.descriptions.proposing import ProposingSettings
    from groundfault.render.description_tables import make_page

    names: Any = () if arms.strip() == "none" else tuple(split_names(arms))
    if not names and not descriptions:
        raise PlanError("--arms none asks for no proposals: name descriptions (--description)")
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
        cost = bound_describing_cost(evidence, plan, second=second is not None, **material)
        return Result([cost.describe(prices)])
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
