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
    show_progress,
    echo_warnings,
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
def slices(**options: Any) -> None:
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
        require_writable(options[name])
    quiet = options["json_path"] == "-"
    finder, plan = _finder(options), Plan(holdout=options["holdout"], seed=options["seed"])
    with echo_warnings(), show_progress(quiet) as progress:
        evidence = read_evidence(options)
        progress(f"searching with {options['finder']}")
        proposals = propose(evidence, finder, plan, options["most"])
    if options["library"]:
        proposals.library.freeze(options["library"])
    text = json.dumps(proposals.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
    if write_json(text, options["json_path"]):
        return
    _show(proposals, Console(), options["library"])


def _finder(options: dict[str, Any]) -> Any:
    """The finder, with the settings that were named and, where it can, replays."""
    from dataclasses import fields, is_dataclass

    from groundfault.auditing.proposals import configured
    from groundfault.finders import get

    maker = get(options["finder"])
    types: dict[str, str] = (
        {f.name: str(f.type) for f in fields(maker)} if is_dataclass(maker) else {}
    )
    settings = {
        name: options[name] for name in ("max_level", "permutations") if options[name] is not None
    }
    usual = {"k": options["most"], "permutations": _PERMUTATIONS}
    settings = {name: value for name, value in usual.items() if name in types} | settings
    for name, value in read_settings(options["settings"]):
        many = "tuple" in types.get(name, "")
        settings[name] = tuple(map(read_value, value.split(","))) if many else read_value(value)
    return configured(options["finder"], settings)


def _show(proposals: Proposals, console: Console, library: str | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from groundfault.render import words

    summary, star = proposals.summary, "*" if proposals.summary["selected"] else ""
    console.print(
        f"{words.plural(len(proposals.rows), 'slice')} proposed by {words.clean(summary['finder'])}",
        style="bold",
    )
    console.print(
        f"{words.count(summary['n_discovery'])} of {words.count(summary['n'])} units were looked at, of error rate "
        f"{words.rate(summary['discovery_error_rate'])}; the others are held out.",
        highlight=False,
    )
    if proposals.rows:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("Slice", overflow="fold", min_width=16, ratio=1)
        heads = ["units", f"on{star}", f"off{star}", f"lift{star}"]
        extra = [
            name
            for name in ("score", "group", "p")
            if any(getattr(r, name) is not None for r in proposals.rows)
        ]
        for head in [*heads, *(f"{name}{star if name == 'score' else ''}" for name in extra)]:
            table.add_column(head, justify="right", no_wrap=True)
        for row in proposals.rows:
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
    for line in _footing(proposals, library):
        console.print(words.clean(line), style="dim", markup=False, highlight=False)


def _footing(proposals: Proposals, library: str | None) -> list[str]:
    """What the numbers are, and what may be done with them."""
    from groundfault.render import words

    notes = []
    if proposals.summary["left_out"]:
        notes = [
            f"Left out, since they tell the outcome: {words.listing(proposals.summary['left_out'], 6)} (--allow-leak)."
        ]
    if not proposals.rows:
        return [*notes, "Nothing to propose: no slice of these units stands out to this finder."]
    if not proposals.summary["selected"]:
        notes += ["Nothing is confirmed: these are proposals."]
    else:
        notes += [
            "* selected: found by looking at these very units, so too large on average. Nothing is confirmed."
        ]
    if any(row.p is not None for row in proposals.rows):
        times = proposals.summary["settings"].get("permutations")
        notes.append(
            f"p: how often the same search among errors dealt at random scores as well ({times} replays)."
        )
    where = library or "a library (--library FILE)"
    notes.append(
        f"To judge them on the held-out units: groundfault audit --library, with {where} and the same seed."
    )
    return notes
