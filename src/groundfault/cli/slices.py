"""``slices``: what a finder proposes, before anything is judged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import click

from groundfault.cli.command import GroupedCommand
from groundfault.cli.options import (
    SEARCHES,
    evidence_options,
    holdout_options,
    json_option,
    settings_option,
)
from groundfault.cli.output import (
    echo_warnings,
    print_lines,
    require_writable,
    show_progress,
    show_table,
    write_result,
)
from groundfault.cli.reading import read_evidence, read_settings, read_value
from groundfault.cli.settings import Count, Flag, Whole, own_options

if TYPE_CHECKING:
    from groundfault.auditing.proposals import Proposals
    from groundfault.render.page import Table

_PERMUTATIONS = 200
"""Repeats of a search that sliceline does itself, which is fast: the smallest p is then 1/201."""


@click.command(
    cls=GroupedCommand,
    first="outcome id positive_is_good finder max_slices settings library json_path",
)
@evidence_options
@own_options
@settings_option
@holdout_options
@json_option("the slices")
def slices(
    *,
    finder: str = "sliceline",
    max_slices: Annotated[Count, Flag("-k")] = 10,
    max_level: Count | None = None,
    permutations: Whole | None = None,
    library: str | None = None,
    json_path: str | None,
    **options: Any,
) -> None:
    """Propose slices with high error rates; confirm nothing.

    Only the discovery units are searched, so that an audit with the same seed can judge the slices
    on the held-out units. Finders of slices: sliceline, tree, pysubgroup; edisa, domino, spotlight
    (with embeddings); and the baselines confidence and random.

    \b
    groundfault slices results.parquet --id item_id --outcome error -k 10 --max-level 3
    groundfault slices results.parquet --id item_id --outcome error --finder edisa \\
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
    from groundfault.core.plan import Plan

    for path in (library, json_path):
        require_writable(path)
    settings: dict[str, Any] = {"k": max_slices, "permutations": permutations}
    maker = _make_finder(finder, settings | {"max_level": max_level}, options["settings"])
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    with echo_warnings(), show_progress(json_path == "-") as progress:
        evidence = share_words(read_evidence(options))
        progress(f"searching with {finder}")
        searches = SEARCHES if permutations is None else permutations
        proposals = propose(evidence, maker, plan, max_slices, searches)
    if library:
        proposals.library.freeze(library)
    if not write_result(proposals.to_dict(), json_path):
        _show(proposals, library)


def _make_finder(name: str, flags: dict[str, Any], more: tuple[str, ...]) -> Any:
    """Return the finder with its settings, and with permutations where it has them."""
    from dataclasses import fields, is_dataclass

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


def _show(proposals: Proposals, library: str | None) -> None:
    from groundfault.render import words

    summary, star = proposals.summary, "*" if proposals.summary.selected else ""
    print_lines(
        f"{words.plural(len(proposals.rows), 'slice')} proposed by {summary.finder}", style="bold"
    )
    print_lines(
        f"{words.count(summary.n_discovery)} of {words.count(summary.n)} units were searched, with "
        f"error rate {words.rate(summary.discovery_error_rate)}; the others are held out."
    )
    if proposals.rows:
        # beside the numbers, not below them: who stops reading early has read it
        print_lines(f"{words.capital(proposals.chance)}.", "")
        show_table(_tabulate(proposals, star))
    print_lines(*_list_notes(proposals, library), style="dim")


def _tabulate(proposals: Proposals, star: str) -> Table:
    """Return one row a slice; what no slice has is no column."""
    from groundfault.render import words
    from groundfault.render.page import make_table
    from groundfault.slicing.replays import LEVEL

    heads = ("Slice", "units", f"on{star}", f"off{star}", f"lift{star}", f"score{star}", "group")
    rows = [
        (
            row.name,
            words.count(row.on),
            words.rate(row.on_rate),
            words.rate(row.off_rate),
            words.signed(row.lift),
            words.NONE if row.score is None else f"{row.score:.2f}",
            words.NONE if row.group is None else str(row.group),
            words.p_value(row.p) + (" chance" if row.p is not None and row.p > LEVEL else ""),
        )
        for row in proposals.rows
    ]
    return make_table("Slices", "tnnnnnnn", (*heads, "p"), rows).drop_empty_columns()


def _list_notes(proposals: Proposals, library: str | None) -> Iterator[str]:
    """Say what the numbers mean, and the next step."""
    from groundfault.render import words
    from groundfault.slicing.replays import LEVEL

    if proposals.summary.left_out:
        yield (
            "Left out, because they predict the outcome almost perfectly: "
            f"{words.listing(proposals.summary.left_out, 6)} (--allow-leakage uses them)."
        )
    if not proposals.rows:
        yield "Nothing to propose: no slice of these units stands out to this finder."
        return
    if not proposals.summary.selected:
        yield "Nothing is confirmed: these are proposals."
    else:
        yield (
            "* selected: computed on the units that were searched, so too large on average. "
            "Nothing is confirmed."
        )
    if any(row.p is not None for row in proposals.rows):
        yield (
            "p: how often the same search finds as good a slice on permuted errors; "
            f"chance: p above {LEVEL:g}."
        )
    yield (
        "To judge them on the held-out units: groundfault audit --library, with "
        f"{library or 'a library (--library FILE)'} and the same seed."
    )
