"""Calibration: a judge in worlds whose truth is known, over and over."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from msgspec import structs

from groundfault import judges
from groundfault.base.long_work import run_in_order
from groundfault.core.finding import Verdict
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.errors import InputError, PlanError
from groundfault.judges.rule import Ruling, rule
from groundfault_lab.testing.card import MILLION, Card, CardRow, Promise
from groundfault_lab.testing.worlds import Permuted, PlantedEffect, World

AnyWorld = World | Permuted

# replicates between two reports of progress, and between two points to resume from
_BLOCK = 25

SIMULATED = Plan(permutations=499, splits=20)
"""The plan of a simulation that names none: fewer permutations and splits than an audit takes, for
speed.
"""

SPECIAL = (
    World(units=32, variants=5, icc=0.6),
    World(units=100, variants=5, icc=0.6),
    World(units=400, variants=5, icc=0.6),
    World(units=40, candidates=12),
    World(units=160, dependence="tied"),
    World(units=160, dependence="duplicates"),
    World(units=160, losses="grid"),
    World(units=160, candidates=10, losses="real"),
    World(units=160, candidates=10, outcomes=3, icc=0.6),
    World(units=160, gaps=0.1),
    World(units=500, rate=0.03),
)
"""Null worlds beyond the grid: dependent rows, tiny, tied, doubled, other losses, several models,
gaps, rare errors.
"""

PLANTED = (
    World(units=160, rate=0.36, effects=(PlantedEffect(0, 0.3, 0.3, proxies=5),)),
    World(units=500, rate=0.36, effects=(PlantedEffect(0, 0.2, 0.3, proxies=5),)),
    World(units=500, rate=0.36, effects=(PlantedEffect(0, 0.4, 0.4, proxies=5),), min_power=0.8),
)
"""Worlds with a cause to be found; the last asks it of every judge."""


def list_contract_worlds(
    units: Sequence[int] = (115, 160, 500, 2000), candidates: Sequence[int] = (10, 34, 200)
) -> tuple[World, ...]:
    """Return worlds of a full card: independent and chained candidates, `SPECIAL`, `PLANTED`."""
    grid = (
        World(units=n, candidates=count, dependence=dependence)
        for dependence in ("independent", "chains")
        for n in units
        for count in candidates
    )
    return (*grid, *SPECIAL, *PLANTED)


def calibrate(
    judge: str | Judge,
    plan: Plan | None = None,
    *,
    worlds: Sequence[AnyWorld] | None = None,
    like: Units | None = None,
    replicates: int = 1000,
    seed: int = 0,
    level: float | None = None,
    jobs: int = 1,
    resume: Card | None = None,
    progress: Callable[[Card], object] | None = None,
) -> Card:
    """Measure how often a judge confirms what is not so, and how often it finds what is.

    Parameters
    ----------
    judge : str or Judge
    plan : Plan, optional
        Its thresholds, permutations and splits are used as they are; `SIMULATED` where left out.
    worlds : sequence of World, optional
        Where left out, only ``like``; without that too, `list_contract_worlds`.
    like : Units, optional
        Somebody's own candidates and losses: the losses are permuted, all outcomes of a unit
        together, so that nothing is related to them. It tells how the judge fares with this library
        and these losses if units are exchangeable; it cannot tell whether they are.
    replicates : int
        Of each world.
    seed : int
        Replicate i of a world has random streams of its own, whatever was run before it.
    level : float, optional
        Family-wise level that is promised; the judge's own promise where left out, and 1 promises
        nothing.
    jobs : int
        Processes; the card is the same for every number. Another backend is chosen with
        ``joblib.parallel_config``.
    resume : Card, optional
        An earlier card of the same judge, plan and seed: only the replicates it lacks are run.
    progress : callable, optional
        Given the card so far, again and again: write it down to be able to resume.

    Returns
    -------
    Card

    Raises
    ------
    PlanError
        If the judge is unknown, or the card to resume is of another judge, plan, promise or seed.
    InputError
        If there is nothing to run.

    Examples
    --------
    >>> card = calibrate("holm", worlds=[World(units=60, candidates=5)], replicates=20)
    >>> card.passed
    True
    """
    from joblib import delayed

    judge = judges.get(judge) if isinstance(judge, str) else judge
    worlds = (list_contract_worlds() if like is None else ()) if worlds is None else worlds
    worlds = (*worlds, *(() if like is None else (Permuted(like),)))
    if not worlds or replicates < 1:
        raise InputError(f"nothing to run: {len(worlds)} worlds, {replicates} replicates")
    plan = resolve_plan(judge, plan)
    empty = Card(judge.name, Promise.of(judge, plan, level), plan.settings, seed)
    rows = {row.key: row for row in map(_empty, worlds)} | _earlier(resume, empty)
    card = structs.replace(empty, rows=tuple(rows.values()))
    tasks = (
        (world, start, min(start + _BLOCK, replicates))
        for world in worlds
        for start in range(rows[_empty(world).key].replicates, replicates, _BLOCK)
    )
    calls = (delayed(_repeat)(judge, plan, seed, *task) for task in tasks)
    for row in run_in_order(calls, jobs):
        rows[row.key] += row
        card = structs.replace(empty, rows=tuple(row for row in rows.values() if row.replicates))
        if progress is not None:
            progress(card)
    return card


def resolve_plan(judge: Judge, plan: Plan | None) -> Plan:
    """Return the plan of a simulation, with what is left to the judge filled in."""
    plan = replace(plan or SIMULATED, judge=judge, judge_settings=None)
    return plan.resolve(lift_ranked=judge.lift_ranked, gated=judge.confirmation != "none")


def run_rule(judge: Judge, plan: Plan, units: Units, purpose: str) -> Ruling:
    """Return the whole rule on one data set: split where there is a holdout, screen, confirm."""
    if judge.confirmation == "none":
        return rule(judge, plan, units, None, units.marks, purpose)
    order = plan.rng(f"{purpose}/split").permutation(len(units))
    holdout_size = int(to_fraction(plan.holdout) * len(units))
    discovery, holdout = np.sort(order[holdout_size:]), np.sort(order[:holdout_size])
    return rule(judge, plan, units.take(discovery), units.take(holdout), units.marks, purpose)


def replicate(judge: Judge, plan: Plan, world: AnyWorld, seed: int, number: int) -> CardRow:
    """Return one draw of a world, and what the judge made of it."""
    # seeded by the world itself: adding worlds, or running in parallel, changes no replicate
    digest = hashlib.sha256(repr((world.name, world.size)).encode()).digest()
    stream = int.from_bytes(digest[:8], "big")
    units = world.draw(np.random.default_rng([seed, stream, number]))
    ruling = run_rule(judge, plan, units, f"{world.name}/{seed}/{number}")
    outcomes = len(units.losses)
    confirmed = np.array([v is Verdict.CONFIRMED for v in ruling.verdicts]).reshape(-1, outcomes)
    false = int(confirmed[world.unrelated].sum())
    return structs.replace(
        _empty(world),
        replicates=1,
        survived=int(ruling.screening is not None and ruling.screening.survives.any()),
        erred=int(false > 0),
        # in millionths: whole numbers add up the same in any order
        false_share=round(MILLION * false / max(1, int(confirmed.sum()))),
        found=int(confirmed[world.planted].sum()),
        planted=len(world.planted) * outcomes,
    )


def _empty(world: AnyWorld) -> CardRow:
    return CardRow(
        world.name, *world.size, null=len(world.planted) == 0, least_power=world.min_power
    )


def _earlier(resume: Card | None, empty: Card) -> dict[tuple[str, int, int], CardRow]:
    if resume is None:
        return {}
    # counts of two plans must not be added up
    if structs.replace(resume, rows=()) != empty:
        raise PlanError(
            f"the card to resume is of judge {resume.judge!r} with seed {resume.seed}, or of "
            f"another plan or promise than this run of {empty.judge!r} with seed {empty.seed}; "
            "start a new card"
        )
    return {row.key: row for row in resume.rows}


def _repeat(judge: Judge, plan: Plan, seed: int, world: AnyWorld, start: int, stop: int) -> CardRow:
    total = _empty(world)
    for number in range(start, stop):
        total += replicate(judge, plan, world, seed, number)
    return total
