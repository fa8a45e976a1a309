"""``slices``: what a finder proposes, before anything is judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.options import (
    SEARCHES,
    evidence_options,
    holdout_options,
    json_option,
    settings_option,
)
from groundfault.cli.output import echo_warnings, require_writable, show_progress, write_json
from groundfault.cli.reading import read_evidence, read_settings, read_value

if TYPE_CHECKING:
    from groundfault.auditing.proposals import Proposals
    from groundfault.render.page import Table

# of a finder that repeats its search itself, which is fast
_PERMUTATIONS = 200


@click.command(
    cls=GroupedCommand,
    first="outcome id positive_is_good finder max_slices settings library json_path",
)
@evidence_options
@option(
    "--finder",
    default="sliceline",
    show_default=True,
    metavar="NAME",
    group="Search",
    help="Finder that searches for slices.",
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
@option(
    "--max-level",
    type=click.IntRange(1),
    group="Search",
    help="Largest number of predicates in a slice; default 3.",
)
@option(
    "--permutations",
    type=click.IntRange(0),
    group="Search",
    help=f"Number of times the search is repeated on permuted errors, for p; default "
    f"{_PERMUTATIONS} for sliceline, {SEARCHES} for other finders.",
)
@settings_option
@holdout_options
@option(
    "--library",
    metavar="FILE",
    help="Freeze the slices in this library, for audit --library.",
)
@json_option("the slices")
def slices(**options: Any) -> None:
    """Propose slices of SOURCE with high error rates; nothing is confirmed by this.

    Only the discovery units are searched, so that an audit with the same seed can judge the slices
    on the held-out units. Finders of slices: sliceline, tree, pysubgroup; edisa, domino, spotlight
    (with embeddings); and the baselines confidence and random.

    \b
    groundfault slices results.parquet --id item_id --outcome error -k 10 --max-level 3
    groundfault slices results.parquet --id item_id --outcome error --finder edisa \\
        --set n_slices=64 --library l.json
    groundfault audit results.parquet --id item_id --outcome error --library l.json
    """
    from groundfault.auditing.proposals import propose
    from groundfault.core.columns import share_words
    from groundfault.core.plan import Plan

    for name in ("library", "json_path"):
        require_writable(options[name])
    quiet = options["json_path"] == "-"
    finder, plan = _finder(options), Plan(holdout=options["holdout"], seed=options["seed"])
    with echo_warnings(), show_progress(quiet) as progress:
        evidence = share_words(read_evidence(options))
        progress(f"searching with {options['finder']}")
        times = options["permutations"]
        searches = SEARCHES if times is None else times
        proposals = propose(evidence, finder, plan, options["max_slices"], searches)
    if options["library"]:
        proposals.library.freeze(options["library"])
    text = json.dumps(proposals.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, options["json_path"]):
        return
    _show(proposals, Console(), options["library"])


def _finder(options: dict[str, Any]) -> Any:
    """The finder with its settings, and with permutations where it has them."""
    from dataclasses import fields, is_dataclass

    from groundfault.auditing.proposals import configure_finder
    from groundfault.finders import get

    maker = get(options["finder"])
    types: dict[str, str] = (
        {f.name: str(f.type) for f in fields(maker)} if is_dataclass(maker) else {}
    )
    settings = {name: options[name] for name in ("max_level",) if options[name] is not None}
    if options["permutations"] is not None and "permutations" in types:
        settings["permutations"] = options["permutations"]
    usual = {"k": options["max_slices"], "permutations": _PERMUTATIONS}
    settings = {name: value for name, value in usual.items() if name in types} | settings
    for name, value in read_settings(options["settings"]).items():
        many = "tuple" in types.get(name, "")
        settings[name] = tuple(map(read_value, value.split(","))) if many else read_value(value)
    return configure_finder(options["finder"], settings)


def _show(proposals: Proposals, console: Console, library: str | None) -> None:
    from groundfault.render import words
    from groundfault.render.terminal import fit_table

    summary, star = proposals.summary, "*" if proposals.summary.selected else ""
    console.print(
        f"{words.plural(len(proposals.rows), 'slice')} proposed by {words.clean(summary.finder)}",
        style="bold",
    )
    n_searched, n_units = words.count(summary.n_discovery), words.count(summary.n)
    console.print(
        f"{n_searched} of {n_units} units were searched, with error rate "
        f"{words.rate(summary.discovery_error_rate)}; the others are held out.",
        highlight=False,
    )
    if proposals.rows:
        # beside the numbers, not below them: who stops reading early has read it
        console.print(f"{words.capital(proposals.chance)}.", highlight=False)
        console.print()
        console.print(fit_table(_table(proposals, star), console.width))
    for line in _footing(proposals, library):
        console.print(words.clean(line), style="dim", markup=False, highlight=False)


def _table(proposals: Proposals, star: str) -> Table:
    """One row a slice; what no slice has is no column."""
    from groundfault.render import words
    from groundfault.render.page import Table, TableColumn

    heads = ("units", f"on{star}", f"off{star}", f"lift{star}", f"score{star}", "group", "p")
    columns = (TableColumn("Slice"), *(TableColumn(head, "number") for head in heads))
    rows = tuple(
        (
            row.name,
            words.count(row.on),
            words.rate(row.on_rate),
            words.rate(row.off_rate),
            words.signed(row.lift),
            words.NONE if row.score is None else f"{row.score:.2f}",
            words.NONE if row.group is None else str(row.group),
            _set_p(row.p),
        )
        for row in proposals.rows
    )
    return Table("Slices", columns, rows).drop_empty_columns()


def _set_p(p: float | None) -> str:
    """A p-value, with what it means where it is no small one."""
    from groundfault.render import words
    from groundfault.slicing.replays import LEVEL

    return words.p_value(p) + (" chance" if p is not None and p > LEVEL else "")


def _footing(proposals: Proposals, library: str | None) -> list[str]:
    """What the numbers mean, and the next step."""
    from groundfault.render import words
    from groundfault.slicing.replays import LEVEL

    notes = []
    if proposals.summary.left_out:
        notes = [
            "Left out, because they predict the outcome almost perfectly: "
            f"{words.listing(proposals.summary.left_out, 6)} (--allow-leakage uses them)."
        ]
    if not proposals.rows:
        return [*notes, "Nothing to propose: no slice of these units stands out to this finder."]
    if not proposals.summary.selected:
        notes += ["Nothing is confirmed: these are proposals."]
    else:
        notes += [
            "* selected: computed on the units that were searched, so too large on average. "
            "Nothing is confirmed."
        ]
    if any(row.p is not None for row in proposals.rows):
        notes.append(
            "p: how often the same search finds as good a slice on permuted errors; "
            f"chance: p above {LEVEL:g}."
        )
    where = library or "a library (--library FILE)"
    notes.append(
        "To judge them on the held-out units: groundfault audit --library, "
        f"with {where} and the same seed."
    )
    return notes
