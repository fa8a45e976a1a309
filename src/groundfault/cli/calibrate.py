"""``calibrate``: a judge's error rate, measured."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from groundfault.base.files import write_text
from groundfault.cli.options import (
    candidate_options,
    plan_options,
    read_candidates,
    read_evidence,
    read_plan,
)
from groundfault.core.plan import Plan
from groundfault.errors import PlanError


@click.command()
@click.option(
    "--like",
    "source",
    type=click.Path(),
    metavar="FILE",
    help="Your own evidence, its losses permuted.",
)
@click.option(
    "--outcome", metavar="COL", help="With --like: 0/1 error, true/false, or a loss in [0, 1]."
)
@click.option("--id", metavar="COL", help="With --like: example id.")
@click.option("--group", metavar="COL", help="With --like: clusters of dependent examples.")
@click.option("--model-column", metavar="COL", help="With --like: which model a row is about.")
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="With --like: only this model; repeatable.",
)
@click.option("--repeat", metavar="COL", help="With --like: repeat or epoch.")
@click.option(
    "--status",
    metavar="COL",
    help="With --like: scored, error, refused, unparsed, artefact or missing.",
)
@click.option("--empty", metavar="STATUS", help="With --like: what an empty outcome means.")
@click.option("--ignore", metavar="COL", multiple=True, help="With --like: no attribute.")
@click.option(
    "--positive-is-good", is_flag=True, help="With --like: the outcome says correct, not error."
)
@candidate_options
@plan_options
@click.option(
    "--replicates",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Simulations of each world.",
)
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes (-1: all cores).")
@click.option(
    "--out",
    type=click.Path(),
    metavar="FILE",
    help="Card as JSON, and beside it as .md; resumed if there.",
)
def calibrate(**options: Any) -> None:
    """Measure how often a judge confirms what is not so, and how often it finds what is.

    Without --like, on the worlds of the full contract: independent, correlated, clustered, tiny,
    tied. With it, on your own candidates, with your losses dealt out anew. Exit status 1 if the
    judge breaks its promise.

    \b
    groundfault calibrate --judge janus
    groundfault calibrate --judge max-t --like results.parquet --id item_id --outcome error
    """
    from groundfault.testing import Card
    from groundfault.testing import calibrate as run

    like = _units(options) if options["source"] else None
    place = Path(options["out"]) if options["out"] else None
    earlier = (
        Card.from_json(place.read_text(encoding="utf-8"), where=str(place))
        if place and place.exists()
        else None
    )

    def keep(card: Card) -> None:
        if place:
            write_text(place, card.to_json())
        click.echo(
            f"\r{sum(row.replicates for row in card.rows):>9} simulations", nl=False, err=True
        )

    card = run(
        options["judge"],
        _simulated(options),
        like=like,
        replicates=options["replicates"],
        seed=options["seed"],
        jobs=options["jobs"],
        resume=earlier,
        progress=keep,
    )
    click.echo("", err=True)
    if place:
        write_text(place.with_suffix(".md"), card.to_markdown())
    click.echo(card.to_markdown())
    sys.exit(0 if card.passed else 1)


def _simulated(options: dict[str, Any]) -> Plan:
    """The plan as given, with the fewer permutations and splits of a simulation where none were
    named.
    """
    from groundfault.testing.calibration import SIMULATED

    source_of = click.get_current_context().get_parameter_source
    names = [n for n in ("permutations", "splits") if source_of(n) is ParameterSource.DEFAULT]
    return replace(read_plan(options), **{name: getattr(SIMULATED, name) for name in names})


def _units(options: dict[str, Any]) -> Any:
    """The evidence as the judge sees it: all units, all eligible and other candidates."""
    from groundfault.auditing.prepared import prepare

    if not options["outcome"]:
        raise PlanError("--like needs --outcome, the column that says which examples failed")
    evidence = read_evidence({**options, "sources": (options["source"],), "split": None})
    candidates, finders = read_candidates(options)
    case = prepare(evidence, read_plan(options), candidates, finders=finders)
    return case.units(case.losses())
