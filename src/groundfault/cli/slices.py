"""``slices``: what a finder proposes, before anything is judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from groundfault.cli.options import (
    evidence_options,
    read_evidence,
    read_settings,
    read_value,
    require_writable,
    shown_progress,
    warnings_told,
    write_json,
)

if TYPE_CHECKING:
    from groundfault.auditing.proposals import Proposals

_PERMUTATIONS = 200


@click.command()
@evidence_options
@click.option(
    "--finder", default="sliceline", show_default=True, metavar="NAME", help="Who proposes."
)
@click.option(
    "-k",
    "most",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="At most so many slices.",
)
@click.option("--max-level", type=click.IntRange(1), help="Most predicates of a slice [3].")
@click.option(
    "--permutations",
    type=click.IntRange(0),
    help=f"Replays of the whole search, for p [{_PERMUTATIONS}].",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any other setting of the finder.",
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
    "--library", metavar="FILE", help="Freeze the slices into this library, for audit --library."
)
@click.option(
    "--json",
    "json_path",
    metavar="FILE|-",
    help="Write the slices as JSON; - is standard output, alone.",
)
def slices(**given: Any) -> None:
    """Propose slices on which SOURCE fails more often; nothing is confirmed by this.

    Only the discovery units are searched, so that an audit with the same seed can judge what was
    found on the others. The finders that look for slices: sliceline, tree, pysubgroup; edisa,
    domino, spotlight (embeddings); and the baselines confidence and random.

    \b
    groundfault slices results.parquet --id item_id --outcome error --finder sliceline -k 10 --max-level 3
    groundfault slices results.parquet --id item_id --outcome error --finder edisa --set n_slices=64 --library l.json
    groundfault audit results.parquet --id item_id --outcome error --library l.json
    """
    from groundfault.auditing.proposals import propose
    from groundfault.core.plan import Plan

    for name in ("library", "json_path"):
        require_writable(given[name])
    quiet = given["json_path"] == "-"
    finder, plan = _finder(given), Plan(holdout=given["holdout"], seed=given["seed"])
    with warnings_told(), shown_progress(quiet) as progress:
        evidence = read_evidence(given)
        progress(f"searching with {given['finder']}")
        found = propose(evidence, finder, plan, given["most"])
    if given["library"]:
        found.library.freeze(given["library"])
    text = json.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, given["json_path"]):
        return
    _show(found, Console(), given["library"])


def _finder(given: dict[str, Any]) -> Any:
    """The finder, with the settings that were named and, where it can, replays."""
    from dataclasses import fields, is_dataclass

    from groundfault.auditing.proposals import configured
    from groundfault.finders import get

    maker = get(given["finder"])
    types: dict[str, str] = (
        {f.name: str(f.type) for f in fields(maker)} if is_dataclass(maker) else {}
    )
    settings = {
        name: given[name] for name in ("max_level", "permutations") if given[name] is not None
    }
    usual = {"k": given["most"], "permutations": _PERMUTATIONS}
    settings = {name: value for name, value in usual.items() if name in types} | settings
    for name, value in read_settings(given["settings"]):
        many = "tuple" in types.get(name, "")
        settings[name] = tuple(map(read_value, value.split(","))) if many else read_value(value)
    return configured(given["finder"], settings)


def _show(found: Proposals, console: Console, library: str | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from groundfault.render import words

    told, star = found.summary, "*" if found.summary["selected"] else ""
    console.print(
        f"{words.plural(len(found.rows), 'slice')} proposed by {words.clean(told['finder'])}",
        style="bold",
    )
    console.print(
        f"{words.count(told['n_discovery'])} of {words.count(told['n'])} units were looked at, of error rate "
        f"{words.rate(told['discovery_error_rate'])}; the others are held out.",
        highlight=False,
    )
    if found.rows:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("Slice", overflow="fold", min_width=16, ratio=1)
        heads = ["units", f"on{star}", f"off{star}", f"lift{star}"]
        extra = [
            name
            for name in ("score", "group", "p")
            if any(getattr(r, name) is not None for r in found.rows)
        ]
        for head in [*heads, *(f"{name}{star if name == 'score' else ''}" for name in extra)]:
            table.add_column(head, justify="right", no_wrap=True)
        for row in found.rows:
            cells = [
                words.count(row.on),
                words.rate(row.on_rate),
                words.rate(row.off_rate),
                words.signed(row.lift),
            ]
            own = {
                "score": f"{row.score or 0:.2f}",
                "group": str(row.group),
                "p": words.p_value(row.p),
            }
            table.add_row(Text(words.clean(row.name)), *cells, *(own[name] for name in extra))
        console.print()
        console.print(table)
    for line in _footing(found, library):
        console.print(words.clean(line), style="dim", markup=False, highlight=False)


def _footing(found: Proposals, library: str | None) -> list[str]:
    """What the numbers are, and what may be done with them."""
    from groundfault.render import words

    said = []
    if found.summary["left_out"]:
        said = [
            f"Left out, since they tell the outcome: {words.listing(found.summary['left_out'], 6)} (--allow-leak)."
        ]
    if not found.rows:
        return [*said, "Nothing to propose: no slice of these units stands out to this finder."]
    if not found.summary["selected"]:
        said += ["Nothing is confirmed: these are proposals."]
    else:
        said += [
            "* selected: found by looking at these very units, so too large on average. Nothing is confirmed."
        ]
    if any(row.p is not None for row in found.rows):
        times = found.summary["settings"].get("permutations")
        said.append(
            f"p: how often the same search among errors dealt at random scores as well ({times} replays)."
        )
    where = library or "a library (--library FILE)"
    said.append(
        f"To judge them on the held-out units: groundfault audit --library, with {where} and the same seed."
    )
    return said
