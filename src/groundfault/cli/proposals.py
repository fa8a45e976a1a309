"""``slices``, ``describe`` and ``explain``: what failing examples share, before it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.base.progress import Progress
from groundfault.cli import shared
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.reading import (
    read_evidence,
    read_settings,
    read_value,
    read_values,
    split_names,
)
from groundfault.cli.settings import Count, Flag, OutFile, OutFolder, Whole, call, own_options
from groundfault.core.plan import Plan
from groundfault.errors import PlanError
from groundfault.render import words
from groundfault.render.words import capital, listing, p_value, plural

if TYPE_CHECKING:
    from groundfault.language.explain import Explanation, Mark, SliceProfile

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
    """Propose slices with high error rates; confirm nothing.

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
        Write library.json, the descriptions as candidates, and the record to this folder.
    """
    from groundfault.auditing.describing import bound_describing_cost, describe as run
    from groundfault.descriptions.proposing import ProposingSettings
    from groundfault.render.description_tables import make_page

    names: Any = () if arms.strip() == "none" else tuple(split_names(arms))
    if not names and not descriptions:
        raise PlanError("--arms none asks for no proposals: name descriptions (--description)")
    settings = ProposingSettings(names, rounds=rounds, examples=examples, count=count)
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
    library = Path(out) / "library.json"
    result.library.freeze(library)
    return Result([make_page(result, library, sheet)])


def _announce(progress: Progress, sentence: str) -> None:

    progress(sentence)
    click.echo(words.clean(sentence), err=True)


_SHOWN = 5
"""Features of a slice that are printed; the JSON has all."""

_PAPER = {"embedding_weight": 0.15, "error_weight": 1.0, "confidence_weight": 0.1}
"""The weights of Edisa with which the paper explains."""


@command(first="outcome id positive_is_good text finder max_slices features json_path")
@shared.evidence_options
@own_options
@shared.settings_option
@shared.holdout_options
@shared.json_option("the explanations")
def explain(
    *,
    text: str,
    finder: str = "edisa",
    max_slices: Annotated[Count, Flag("-k")] = 10,
    searches: Whole = shared.SEARCHES,
    features: str = "surface,syntax,pragmatic",
    pipeline: str = "en_core_web_sm",
    permutations: Annotated[int, click.IntRange(99)] = 9_999,
    level: Annotated[float, click.FloatRange(0, 1, True, True)] = 0.05,
    progress: Progress,
    **options: Any,
) -> Result:
    """Name the linguistic features of each slice of errors.

    The finder proposes slices of the discovery units. It always finds some, also in noise, so the
    search is repeated on shuffled outcomes: p is the share of shuffled searches that find an
    equally bad slice. A permutation test compares each feature on and off each slice, without a
    correction and with one for all slices, features and the search. A finder that needs an
    embedding gets one of the texts (TF-IDF) where the table has none. Nothing is confirmed by this:
    the finder `language` makes candidates of the same features, for an audit.

    \b
    groundfault lab explain results.parquet --id item_id --outcome error --text question
    groundfault audit results.parquet --id item_id --outcome error --finders language

    Columns
    -------
    text : COL
        Column of the texts.

    Search
    ------
    finder : NAME
        Finder whose slices are explained.
    max_slices : N
        Largest number of slices.
    searches : N
        Number of times the search is repeated on permuted errors, for p of the slices.

    Features
    --------
    features : NAMES
        Names of linguistic features, or of sets of them.
    pipeline : NAME
        Name or directory of the spaCy pipeline, or blank for none.

    Rule
    ----
    permutations : N
        Number of permutations in each test of a feature.
    level
        Significance level of the tests.
    """
    from groundfault.auditing.proposals import configure_finder, propose
    from groundfault.language.explain import explain as run
    from groundfault.language.pipeline import load_pipeline

    # first, so that a missing library is told before the search
    annotator = load_pipeline(pipeline)
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    # what is explained are slices of these texts
    settings = {"text": text} if hasattr(configure_finder(finder, {}), "text") else {}
    usual = _PAPER if finder == "edisa" else {}
    slicer = configure_finder(finder, {**settings, **usual, **read_values(options["settings"])})
    evidence = read_evidence(options)
    progress(f"searching with {finder}")
    slices = propose(evidence, slicer, plan, max_slices, searches)
    explanation = run(
        evidence,
        slices.library.candidates,
        text,
        sets=split_names(features),
        pipeline=annotator,
        plan=plan,
        permutations=permutations,
        level=level,
        chances={row.name: row.p for row in slices.rows},
        searches=slices.summary.searches,
        progress=progress,
    )
    return Result(_list_slices(explanation, finder, pipeline), explanation.to_dict())


def _list_slices(explanation: Explanation, finder: str, pipeline: str) -> Iterator[str]:
    from groundfault.language import DEFAULT
    from groundfault.language.explain import MIN_TEXTS

    if not explanation.slices:
        yield (
            f"0 slices of {explanation.n:,} discovery examples: {finder} found no slice of "
            f"{MIN_TEXTS} examples or more; {_instead(finder)}"
        )
        return
    # first, because a list of slices convinces by itself
    yield f"{capital(explanation.caveat)}."
    yield (
        f"{plural(len(explanation.slices), 'slice')} of {explanation.n:,} discovery examples, "
        f"{explanation.wrong / explanation.n:.0%} of them "
        f"errors; {explanation.features} features, {explanation.permutations:,} permutations"
    )
    for one in explanation.slices:
        yield ""
        yield (
            f"{one.name}: {one.size:,} examples, {one.wrong / one.size:.0%} of them errors"
            f"{_worth(one.p, explanation.level)}"
        )
        yield from (f"  {line}" for line in lines(one, explanation.level))
    yield ""
    # both are shown: the paper's count of marks is uncorrected, and mostly larger
    for label, corrected in (("as in the paper", False), ("corrected", True)):
        yield f"{label}: {_measures(explanation.summary(corrected=corrected))}"
    for reason in dict.fromkeys(explanation.lacking.values()):
        names = [name for name, why in explanation.lacking.items() if why == reason]
        yield f"{listing(names)} {reason}"
    suffix = "" if pipeline == DEFAULT else f":{pipeline}"
    yield (
        "Nothing is confirmed: a slice defined by its texts always has features of its own. "
        f"To judge features: groundfault audit --finders language{suffix}."
    )


def _worth(p: float | None, level: float) -> str:
    """Say beside the error rate of a slice how often chance gives one as good."""
    if p is None:
        return ""

    return f" (p = {p_value(p)}{': what chance gives' if p > level else ''})"


def _instead(finder: str) -> str:
    """Say what to try where a finder found no slice."""
    if finder in {"edisa", "domino"}:
        return (
            "try other settings (--set embedding_weight=1 --set n_slices=20), or another finder "
            "(--finder sliceline)"
        )
    return "try other settings (--set), or another finder (--finder domino)"


def lines(part: SliceProfile, level: float) -> Iterator[str]:
    """Say the features of a slice: significant ones after correction, then those before it."""

    sure, marks = part.select_marks(level), part.select_marks(level, corrected=False)
    unsure = [mark for mark in marks if mark not in sure]
    if not marks:
        yield "no feature marks it"
    for mark in sure[:_SHOWN]:
        yield sentence(mark)
    if len(sure) > _SHOWN:
        yield f"and {plural(len(sure) - _SHOWN, 'more feature')} after correction"
    if unsure:
        chance = part.p is not None and part.p > level
        yield (
            "of its texts, before correction, which chance gives too:"
            if chance
            else "before correction only, so perhaps by chance:"
        )
    for mark in unsure[:_SHOWN]:
        yield f"  {sentence(mark)}"
    if len(unsure) > _SHOWN:
        yield f"  and {plural(len(unsure) - _SHOWN, 'more feature')}"


def sentence(mark: Mark) -> str:
    """Say one feature in a line: its mean or share on and off the slice, and both p-values."""
    ps = f"p {_p(mark.p)}, corrected {_p(mark.adjusted)}"
    if mark.graded:
        return f"{mark.says}: {mark.inside:.2f} on average, against {mark.outside:.2f} ({ps})"
    return f"{mark.says}: {mark.inside:.0%} of its texts, against {mark.outside:.0%} ({ps})"


def _p(p: float) -> str:
    return f"= {p:.4f}" if p >= 0.0001 else "< 0.0001"


def _measures(summary: dict[str, float]) -> str:

    if not summary["marks"]:
        return "no feature marks a slice"
    shares = ("feature_prop", "homogeneity", "completeness", "v", "weighted_v")
    measures = ", ".join(f"{name.replace('_', '-')} {summary[name]:.1%}" for name in shares)
    return f"{plural(int(summary['marks']), 'mark')}, {measures}"
