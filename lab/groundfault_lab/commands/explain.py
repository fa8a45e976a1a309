"""``lab explain``: the linguistic features of slices of errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import click

from groundfault.auditing.messages import equal_p
from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.reading import read_evidence, read_values, split_names
from groundfault.cli.settings import Count, Flag, Whole, own_options
from groundfault.core.plan import Plan
from groundfault.render.words import capital, listing, plural
from groundfault_lab.language import DEFAULT
from groundfault_lab.language.explain import (
    MIN_TEXTS,
    Explanation,
    Mark,
    SliceProfile,
    explain as run,
)
from groundfault_lab.language.pipeline import load_pipeline

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
    options: Options,
) -> Result:
    """Name the linguistic features of each slice of errors.

    The finder proposes slices of the discovery units. It always finds some, also in noise, so the
    search is repeated on shuffled outcomes: p is the share of shuffled searches that find an
    equally bad slice. A permutation test compares each feature on and off each slice, without a
    correction and with one for all slices, features and the search. A finder that needs an
    embedding gets one of the texts (TF-IDF) where the table has none. To confirm
    them, audit: the finder `language` makes candidates of the same features, for an audit.

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
    from groundfault_lab.slicing.proposals import configure_finder, propose

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

    return f" ({equal_p(p)}{': what chance gives' if p > level else ''})"


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
