"""``explain``: which linguistic features mark each error slice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from groundfault.cli.options import (
    evidence_options,
    read_evidence,
    read_settings,
    read_value,
    require_writable,
    show_progress,
    echo_warnings,
    write_json,
)

if TYPE_CHECKING:
    from groundfault.core.evidence import Evidence
    from groundfault.language.explain import Explained, Mark, Slice

_SHOWN = 5
_PAPER = {"embedding_weight": 0.15, "error_weight": 1.0, "confidence_weight": 0.1}
"""The weights of Edisa with which the paper explains."""


@click.command()
@evidence_options
@click.option("--text", required=True, metavar="COL", help="The column of texts.")
@click.option(
    "--finder",
    default="edisa",
    show_default=True,
    metavar="NAME",
    help="Whose slices are explained.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the finder; repeatable.",
)
@click.option(
    "-k",
    "most",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="At most so many slices.",
)
@click.option(
    "--features",
    "names",
    default="surface,syntax,pragmatic",
    show_default=True,
    metavar="NAMES",
    help="Sets or names.",
)
@click.option(
    "--pipeline",
    default="en_core_web_sm",
    show_default=True,
    metavar="NAME",
    help="Or a directory, or blank.",
)
@click.option(
    "--permutations",
    type=click.IntRange(99),
    default=9_999,
    show_default=True,
    help="Of each test.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, True, True),
    default=0.05,
    show_default=True,
    help="Of the tests.",
)
@click.option(
    "--holdout",
    default="0.5",
    show_default=True,
    help="Share of units held out, and not looked at.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Which ones; audit with the same seed."
)
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write everything as JSON; - is standard output, alone.",
)
def explain(**options: Any) -> None:
    """Say what the texts on each error slice of SOURCE have in common, in the terms of a linguist.

    The finder proposes slices of the discovery units; each feature is compared on and off each
    slice by a permutation test, beside it corrected for all tests made. Where the finder wants an
    embedding and there is none, it is given one of the texts (TF-IDF). Nothing is confirmed by
    this: the finder language makes candidates of the same features.

    \b
    groundfault explain results.parquet --id item_id --outcome error --text question --finder edisa
    groundfault audit results.parquet --id item_id --outcome error --finders language
    """
    from groundfault.auditing.proposals import configured, propose
    from groundfault.core.plan import Plan
    from groundfault.language.explain import explain as run

    require_writable(options["json_path"])
    quiet = options["json_path"] == "-"
    plan, finder = (
        Plan(holdout=options["holdout"], seed=options["seed"]),
        configured(options["finder"], _settings(options)),
    )
    with echo_warnings(), show_progress(quiet) as progress:
        evidence = _embedded(read_evidence(options), finder, options["text"])
        progress(f"searching with {options['finder']}")
        slices = propose(evidence, finder, plan, options["most"]).library.candidates
        names = [name.strip() for name in options["names"].split(",") if name.strip()]
        explanation = run(
            evidence,
            slices,
            options["text"],
            sets=names,
            pipeline=options["pipeline"],
            plan=plan,
            permutations=options["permutations"],
            level=options["level"],
            progress=progress,
        )
    text = json.dumps(explanation.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, options["json_path"]):
        return
    _show(explanation, options["finder"], options["pipeline"])


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    usual = _PAPER if options["finder"] == "edisa" else {}
    return usual | {name: read_value(value) for name, value in read_settings(options["settings"])}


def _embedded(evidence: Evidence, finder: Any, text: str) -> Evidence:
    """The evidence with an embedding of the texts, where the finder reads one and there is none."""
    import polars as pl

    from groundfault.core.columns import matching
    from groundfault.slicing.embedding import embed
    from groundfault.slicing.predictions import EMBEDDING

    if getattr(finder, "embedding", None) != EMBEDDING or _has(evidence, EMBEDDING):
        return evidence
    matching(evidence, [text])
    points = embed(evidence.frame[text].fill_null("").to_list())
    column = pl.Series("embedding", points, dtype=pl.Array(pl.Float64, points.shape[1]))
    return replace(evidence, frame=evidence.frame.with_columns(column))


def _has(evidence: Evidence, pattern: str) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for name in evidence.attributes)


def _show(explanation: Explained, finder: str, pipeline: str) -> None:
    from groundfault.language import DEFAULT
    from groundfault.language.explain import LEAST
    from groundfault.render.words import clean, listing, plural

    click.echo(
        f"{plural(len(explanation.slices), 'slice')} of {explanation.n:,} discovery examples, {explanation.wrong / explanation.n:.0%} of them "
        f"errors; {explanation.features} features, {explanation.permutations:,} permutations"
    )
    if not explanation.slices:
        click.echo(f"{finder} found no slice of {LEAST} examples or more; {_instead(finder)}")
        return
    for one in explanation.slices:
        click.echo(
            f"\n{clean(one.name)}: {one.size:,} examples, {one.wrong / one.size:.0%} of them errors"
        )
        for line in lines(one, explanation.level):
            click.echo(f"  {line}")
    click.echo("")
    for label, corrected in (("as in the paper", False), ("corrected", True)):
        click.echo(f"{label}: {_measures(explanation.summary(corrected=corrected))}")
    for reason in dict.fromkeys(explanation.lacking.values()):
        click.echo(
            f"{listing([name for name, why in explanation.lacking.items() if why == reason])} {reason}"
        )
    click.echo(
        "Nothing is confirmed: a slice cut by what its texts are like has features of its own. "
        f"To judge features: groundfault audit --finders language{'' if pipeline == DEFAULT else f':{pipeline}'}."
    )


def _instead(finder: str) -> str:
    """What may find slices where a finder found none."""
    if finder in {"edisa", "domino"}:
        return (
            "it may with other settings (--set embedding_weight=1 --set n_slices=20), or another finder "
            "(--finder sliceline)"
        )
    return "it may with other settings (--set), or another finder (--finder domino)"


def lines(part: Slice, level: float) -> Iterator[str]:
    """What marks a slice, in a few lines: first what is left after correction, then what only the
    paper would count.
    """
    from groundfault.render.words import plural

    sure, marks = part.marked(level), part.marked(level, corrected=False)
    unsure = [mark for mark in marks if mark not in sure]
    if not marks:
        yield "no feature marks it"
    for mark in sure[:_SHOWN]:
        yield sentence(mark)
    if len(sure) > _SHOWN:
        yield f"and {plural(len(sure) - _SHOWN, 'more feature')} after correction"
    if unsure:
        yield "before correction only, so perhaps by chance:"
    for mark in unsure[:_SHOWN]:
        yield f"  {sentence(mark)}"
    if len(unsure) > _SHOWN:
        yield f"  and {plural(len(unsure) - _SHOWN, 'more feature')}"


def sentence(mark: Mark) -> str:
    """A mark as a line: how much of the feature is on the slice and off it, and what the tests
    say.
    """
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
