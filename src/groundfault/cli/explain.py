"""``explain``: which linguistic features mark each error slice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.command import COLUMNS, RULE, GroupedCommand, option
from groundfault.cli.options import (
    SEARCHES,
    evidence_options,
    holdout_options,
    json_option,
    settings_option,
)
from groundfault.cli.output import echo_warnings, require_writable, show_progress, write_json
from groundfault.cli.reading import read_evidence, read_values

if TYPE_CHECKING:
    from groundfault.language.explain import Explanation, Mark, SliceProfile

_SHOWN = 5
_PAPER = {"embedding_weight": 0.15, "error_weight": 1.0, "confidence_weight": 0.1}
"""The weights of Edisa with which the paper explains."""


@click.command(
    cls=GroupedCommand, first="outcome id positive_is_good text finder max_slices names json_path"
)
@evidence_options
@option("--text", required=True, metavar="COL", group=COLUMNS, help="Column of the texts.")
@option(
    "--finder",
    default="edisa",
    show_default=True,
    metavar="NAME",
    group="Search",
    help="Finder whose slices are explained.",
)
@option(
    "-k",
    "max_slices",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    group="Search",
    help="Largest number of slices.",
)
@settings_option
@option(
    "--features",
    "names",
    default="surface,syntax,pragmatic",
    show_default=True,
    metavar="NAMES",
    group="Features",
    help="Names of linguistic features, or of sets of them.",
)
@option(
    "--pipeline",
    default="en_core_web_sm",
    show_default=True,
    metavar="NAME",
    group="Features",
    help="Name or directory of the spaCy pipeline, or blank for none.",
)
@option(
    "--permutations",
    type=click.IntRange(99),
    default=9_999,
    show_default=True,
    group=RULE,
    help="Number of permutations in each test of a feature.",
)
@option(
    "--searches",
    type=click.IntRange(0),
    default=SEARCHES,
    show_default=True,
    group="Search",
    help="Number of times the search is repeated on permuted errors, for p of the slices.",
)
@option(
    "--level",
    type=click.FloatRange(0, 1, True, True),
    default=0.05,
    show_default=True,
    group=RULE,
    help="Significance level of the tests.",
)
@holdout_options
@json_option("the explanations")
def explain(**options: Any) -> None:
    """Name the linguistic features that set the texts of each error slice of SOURCE apart.

    The finder proposes slices of the discovery units. It always finds some, also in noise: the
    search is repeated on permuted errors, and a slice has the share of these searches that find one
    as good as its p. A permutation test compares each feature on and off each slice, without a
    correction and with one for all slices, features and the search. A finder that needs an
    embedding gets one of the texts (TF-IDF) where the table has none. Nothing is confirmed by this:
    the finder `language` makes candidates of the same features, for an audit.

    \b
    groundfault explain results.parquet --id item_id --outcome error --text question
    groundfault audit results.parquet --id item_id --outcome error --finders language
    """
    from groundfault.auditing.proposals import configure_finder, propose
    from groundfault.core.plan import Plan
    from groundfault.language.explain import explain as run

    require_writable(options["json_path"])
    quiet = options["json_path"] == "-"
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    finder = configure_finder(options["finder"], {})
    # what is explained are slices of these texts
    texts = {"text": options["text"]} if hasattr(finder, "text") else {}
    finder = configure_finder(options["finder"], texts | _settings(options))
    with echo_warnings(), show_progress(quiet) as progress:
        evidence = read_evidence(options)
        progress(f"searching with {options['finder']}")
        slices = propose(evidence, finder, plan, options["max_slices"], options["searches"])
        names = [name.strip() for name in options["names"].split(",") if name.strip()]
        explanation = run(
            evidence,
            slices.library.candidates,
            options["text"],
            sets=names,
            pipeline=options["pipeline"],
            plan=plan,
            permutations=options["permutations"],
            level=options["level"],
            chances={row.name: row.p for row in slices.rows},
            searches=slices.summary.searches,
            progress=progress,
        )
    text = json.dumps(explanation.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, options["json_path"]):
        return
    _show(explanation, options["finder"], options["pipeline"])


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    usual = _PAPER if options["finder"] == "edisa" else {}
    return usual | read_values(options["settings"])


def _show(explanation: Explanation, finder: str, pipeline: str) -> None:
    from groundfault.language import DEFAULT
    from groundfault.language.explain import MIN_TEXTS
    from groundfault.render.words import capital, clean, listing, plural

    if not explanation.slices:
        click.echo(
            f"0 slices of {explanation.n:,} discovery examples: {finder} found no slice of "
            f"{MIN_TEXTS} examples or more; {_instead(finder)}"
        )
        return
    # first, because a list of slices convinces by itself
    click.echo(f"{capital(explanation.caveat)}.")
    click.echo(
        f"{plural(len(explanation.slices), 'slice')} of {explanation.n:,} discovery examples, "
        f"{explanation.wrong / explanation.n:.0%} of them "
        f"errors; {explanation.features} features, {explanation.permutations:,} permutations"
    )
    for one in explanation.slices:
        click.echo(
            f"\n{clean(one.name)}: {one.size:,} examples, {one.wrong / one.size:.0%} of them errors"
            f"{_worth(one.p, explanation.level)}"
        )
        for line in lines(one, explanation.level):
            click.echo(f"  {line}")
    click.echo("")
    # both are shown: the paper's count of marks is uncorrected, and mostly larger
    for label, corrected in (("as in the paper", False), ("corrected", True)):
        click.echo(f"{label}: {_measures(explanation.summary(corrected=corrected))}")
    for reason in dict.fromkeys(explanation.lacking.values()):
        names = [name for name, why in explanation.lacking.items() if why == reason]
        click.echo(f"{listing(names)} {reason}")
    suffix = "" if pipeline == DEFAULT else f":{pipeline}"
    click.echo(
        "Nothing is confirmed: a slice defined by its texts always has features of its own. "
        f"To judge features: groundfault audit --finders language{suffix}."
    )


def _worth(p: float | None, level: float) -> str:
    """What stands beside the error rate of a slice: how often chance gives one as good."""
    if p is None:
        return ""
    from groundfault.render.words import p_value

    return f" (p = {p_value(p)}{': what chance gives' if p > level else ''})"


def _instead(finder: str) -> str:
    """What to try where a finder found no slice."""
    if finder in {"edisa", "domino"}:
        return (
            "try other settings (--set embedding_weight=1 --set n_slices=20), or another finder "
            "(--finder sliceline)"
        )
    return "try other settings (--set), or another finder (--finder domino)"


def lines(part: SliceProfile, level: float) -> Iterator[str]:
    """The features of a slice: those significant after correction, then those before it only."""
    from groundfault.render.words import plural

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
    """One feature as a line: its mean or share on and off the slice, and both p-values."""
    ps = f"p {_p(mark.p)}, corrected {_p(mark.adjusted)}"
    if mark.graded:
        return f"{mark.says}: {mark.inside:.2f} on average, against {mark.outside:.2f} ({ps})"
    return f"{mark.says}: {mark.inside:.0%} of its texts, against {mark.outside:.0%} ({ps})"


def _p(p: float) -> str:
    return f"= {p:.4f}" if p >= 0.0001 else "< 0.0001"


def _measures(summary: dict[str, float]) -> str:
    from groundfault.render.words import plural

    if not summary["marks"]:
        return "no feature marks a slice"
    shares = ("feature_prop", "homogeneity", "completeness", "v", "weighted_v")
    measures = ", ".join(f"{name.replace('_', '-')} {summary[name]:.1%}" for name in shares)
    return f"{plural(int(summary['marks']), 'mark')}, {measures}"
