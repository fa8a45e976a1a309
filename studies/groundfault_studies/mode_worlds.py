"""Failure modes where the truth is simulated: error rates where nothing is so, and power.

Null worlds have no failure mode at all; worlds of one mode have nothing else to say, but many
columns that follow it; planted ones have up to six modes of several shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import groundfault
from groundfault.base.long_work import Progress, listener, stream
from groundfault.core.evidence import Evidence
from groundfault.errors import PlanError
from groundfault_lab.testing.worlds import PlantedEffect, World
from groundfault_studies import mode_worlds_tables
from groundfault_studies.mode_tables import PlantedTable, plant
from groundfault_studies.resuming import Rows, gather_rows
from groundfault_studies.rule_methods import METHODS
from groundfault_studies.rule_scores import jaccard, score_rules
from groundfault_studies.tables import PaperStudy

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

ALPHA = 0.10
REPLICATES, QUICK_REPLICATES = 1000, 2
ORACLE = "oracle"
USUAL = ("modes", "audit", "max-t", "janus", ORACLE)


SOURCE = "simulations; the cells of power by descriptors are those of decisions on the judges"

DESCRIPTORS = (
    (115, 0.3, 0.3),
    (115, 0.3, 0.5),
    (160, 0.1, 0.5),
    (160, 0.3, 0.2),
    (160, 0.3, 0.3),
    (160, 0.5, 0.3),
    (160, 0.5, 0.5),
    (500, 0.3, 0.2),
    (500, 0.5, 0.2),
    (2000, 0.3, 0.2),
)
"""Units, prevalence and lift: 34 descriptors, one planted, five that follow it, 28 unrelated."""

_BATCH = 10
_POPULATION = 4000
_FEWER = 5
# cells of the methods that are not run in all
_KINDS = {ORACLE: ("one", "planted", "descriptor"), "audit": ("null", "descriptor")}


@dataclass(frozen=True)
class DrawnWorld:
    """What is shown to methods, and the truth behind it.

    Attributes
    ----------
    evidence : Evidence
    population : polars.DataFrame
        Rows to score rules on.
    chance : float64 array, shape (rows,)
        Of failure, of each row of the population.
    planted : tuple of bool array, shape (rows,)
        Where each planted rule holds in the population.
    """

    evidence: Evidence
    population: pl.DataFrame
    chance: Floats
    planted: tuple[Bools, ...]


@dataclass(frozen=True)
class ModeCell:
    """Simulated worlds of one kind.

    Attributes
    ----------
    kind : {"null", "one", "planted", "descriptor"}
        No failure mode; one, with proxies; several; or one descriptor of many.
    draw : callable
        Of a generator, a world.
    gaps : bool
        Whether gaps go with the outcome, so that a rule about gaps alone is no false one.
    """

    kind: str
    draw: Callable[[np.random.Generator], DrawnWorld]
    gaps: bool = False


def of_descriptors(world: World, rng: np.random.Generator) -> DrawnWorld:
    """A world of true/false descriptors; its own rows are the population."""
    evidence, _ = world.evidence(rng)
    frame = evidence.frame
    chance = np.full(frame.height, world.rate)
    planted = []
    for effect in world.effects:
        on = frame[f"c{effect.candidate:04d}"].to_numpy()
        chance += effect.lift * (on - effect.prevalence)
        planted.append(on)
    return DrawnWorld(evidence, frame, np.clip(chance, 0, 1), tuple(planted))


def of_opposites(world: World, rng: np.random.Generator) -> DrawnWorld:
    """A world of descriptors with failures and passes exchanged."""
    drawn = of_descriptors(world, rng)
    frame = drawn.evidence.frame.with_columns(loss=1 - pl.col("loss"))
    evidence = Evidence.from_frame(frame, drawn.evidence.roles)
    return DrawnWorld(evidence, frame, 1 - drawn.chance, drawn.planted)


def of_tables(
    rng: np.random.Generator, rows: int, columns: bool = True, **settings: Any
) -> DrawnWorld:
    """A world of prompts and attributes, whose population is larger than what is shown."""
    table: PlantedTable = plant(rng, max(rows, _POPULATION), **settings)
    if not columns:
        table = PlantedTable(table.frame.select("id", "prompt"), table.chance, table.planted)
    evidence = table.evidence(rows, rng)
    return DrawnWorld(evidence, table.frame, table.chance, tuple(table.planted.values()))


def _cells() -> dict[str, ModeCell]:
    nulls = {
        "independent descriptors": World(units=400, candidates=20, rate=0.25),
        "correlated descriptors": World(units=400, candidates=24, dependence="chains"),
        "copies and complements": World(units=300, candidates=24, dependence="duplicates"),
        "tied: all true for half": World(units=200, candidates=20, dependence="tied"),
        "tied, losses of any size": World(
            units=200, candidates=20, dependence="tied", losses="real"
        ),
        "24 units": World(units=24, candidates=12, rate=0.5),
        "40 units": World(units=40, candidates=20),
        "40 units, losses of any size": World(units=40, candidates=20, losses="real"),
        "failures rare": World(units=500, candidates=20, rate=0.03),
        "losses small": World(units=500, candidates=20, rate=0.03, losses="real"),
        "losses in quarters": World(units=300, candidates=20, losses="grid"),
        "losses of any size": World(units=300, candidates=20, losses="real"),
        "equal means, one group of 0 and 1": World(units=300, candidates=20, losses="spread"),
        "equal means, one group of 0 and 1, 60 units": World(
            units=60, candidates=20, losses="spread"
        ),
        "groups of 4, ICC .5": World(units=120, candidates=20, variants=4, icc=0.5),
        "groups of 1 and of 4": World(units=120, candidates=20, variants=4, icc=0.3, uneven=0.5),
        "three models": World(units=300, candidates=15, outcomes=3, icc=0.3),
        "a tenth missing": World(units=300, candidates=20, gaps=0.1),
    }
    cells = {name: ModeCell("null", partial(of_descriptors, w)) for name, w in nulls.items()}
    failures_lost = World(units=300, candidates=20, rate=0.3, lost=0.3)
    passes_lost = World(units=300, candidates=20, rate=0.7, lost=0.3)
    nothing = partial(of_tables, modes=0, base=0.25)
    cells |= {
        "values missing where it fails": ModeCell(
            "null", partial(of_descriptors, failures_lost), gaps=True
        ),
        "values missing where it passes": ModeCell(
            "null", partial(of_opposites, passes_lost), gaps=True
        ),
        "attributes and text": ModeCell("null", partial(nothing, rows=500)),
        "text alone": ModeCell("null", partial(nothing, rows=500, columns=False)),
        "text alone, 60 prompts": ModeCell("null", partial(nothing, rows=60, columns=False)),
    }
    effect = PlantedEffect(lift=0.5, prevalence=0.3, proxies=8)
    proxies = World(units=600, candidates=20, rate=0.3, effects=(effect,))
    single = partial(of_tables, rows=600, modes=1, base=0.15)
    one = partial(of_tables, rows=1000, modes=1)
    cells |= {
        "a descriptor, 8 proxies": ModeCell("one", partial(of_descriptors, proxies)),
        "one condition": ModeCell("one", partial(single, shapes=("one",))),
        "two conditions": ModeCell("one", partial(single, shapes=("two",))),
        "three conditions": ModeCell("one", partial(single, shapes=("three",))),
        "some values": ModeCell("one", partial(single, shapes=("values",))),
        "some words": ModeCell("one", partial(single, shapes=("words",))),
    }
    cells |= {
        "one mode": ModeCell("planted", one),
        "one, inside a weak task": ModeCell(
            "planted", partial(one, shapes=("one", "two"), place="weak task")
        ),
        "one, inside a strong task": ModeCell(
            "planted", partial(one, shapes=("one", "two"), place="strong task")
        ),
        "three modes": ModeCell("planted", partial(of_tables, rows=2000, modes=3)),
        "six modes": ModeCell("planted", partial(of_tables, rows=2000, modes=6)),
    }
    for units, prevalence, lift in DESCRIPTORS:
        effect = PlantedEffect(lift=lift, prevalence=prevalence, proxies=5)
        world = World(units=units, candidates=34, rate=0.36, effects=(effect,))
        name = f"n = {units:,}, prevalence {prevalence:g}, lift {lift:g}"
        cells[name] = ModeCell("descriptor", partial(of_descriptors, world))
    return cells


CELLS: Mapping[str, ModeCell] = _cells()
"""By name."""


def study(
    *,
    methods: Sequence[str] = USUAL,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    stored: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Measure how often modes are named that are not there, and how often those that are.

    Parameters
    ----------
    methods : sequence of str
        Names of `METHODS`, or ``oracle``, who knows what is planted and tests nothing else.
    replicates : int, optional
        Worlds of each cell in which the error rate of failure modes is measured; left out, 1,000,
        or quickly 2. A fifth as many, at least one, for power and for other methods.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Few worlds: to see that it runs, not for conclusions.
    stored : bool
        Run nothing: show what ``keep`` holds.
    keep : path, optional
        File of what is done; a study that was stopped, or killed, goes on from it.
    progress : callable, optional

    Raises
    ------
    PlanError
        If a method is not there, or there is no file to show from.
    """
    progress = listener(progress)
    replicates = replicates or (QUICK_REPLICATES if quick else REPLICATES)
    known = (*METHODS, ORACLE)
    unknown = [name for name in methods if name not in known]
    if unknown:
        raise PlanError(f"no method {unknown[0]!r}; there are {', '.join(known)}")
    absent = [name for name in methods if name != ORACLE and not METHODS[name].installed]
    parts = _parts([name for name in methods if name not in absent], replicates)
    rows = gather_rows(parts, measure, keep, jobs, progress, stored=stored)
    return PaperStudy(
        "mode-worlds",
        "Failure modes where the truth is simulated",
        SOURCE,
        {"replicates": replicates, "methods": list(methods), "level": ALPHA},
        mode_worlds_tables.make_tables(
            rows, {name: cell.kind for name, cell in CELLS.items()}, {m: label(m) for m in methods}
        ),
        tuple(f"{name}: pip install {METHODS[name].needs}" for name in absent),
    )


def label(method: str) -> str:
    """A method's name in tables."""
    return ORACLE if method == ORACLE else METHODS[method].label


def measure(cell: str, method: str, first: int, count: int) -> Rows:
    """Rows of a method on some worlds of a cell, one a world."""
    return [measure_one(cell, method, number) for number in range(first, first + count)]


def measure_one(cell: str, method: str, number: int) -> dict[str, Any]:
    """What a method says of one world, and how much of it is so."""
    world = CELLS[cell].draw(stream(number, f"mode worlds: {cell}"))
    row: dict[str, Any] = {"cell": cell, "method": method, "number": number}
    beside: list[Bools] = []
    if method == ORACLE:
        holds = confirm_planted(world)
    else:
        descriptions = METHODS[method].describe(world.evidence)
        if CELLS[cell].gaps:
            descriptions = [one for one in descriptions if not _is_about_gaps(one.text)]
        holds = [one.apply(world.population) for one in descriptions]
        beside = [apply(world.population) for one in descriptions for apply in one.alternatives]
    everywhere = np.ones(len(world.chance), dtype=np.bool_)
    row |= score_rules(holds, world.chance, everywhere, None)
    by_mode = [score_rules(holds, world.chance, everywhere, mode) for mode in world.planted]
    row["first"] = [score["first"] for score in by_mode]
    row["all"] = [score["all"] for score in by_mode]
    row["beside"] = [
        max([score["all"], *(jaccard(rule, mode) for rule in beside)])
        for score, mode in zip(by_mode, world.planted, strict=True)
    ]
    return row


def _is_about_gaps(text: str) -> bool:
    """Whether each condition of a rule says that a value is missing."""
    return all(part.endswith(" is missing") for part in re.split(" and | or ", text))


def confirm_planted(world: DrawnWorld, level: float = ALPHA) -> list[Bools]:
    """Planted rules that one exact one-sided test each confirms, at the level over their number."""
    from scipy.stats import hypergeom

    loss = world.evidence.loss.to_numpy()
    rows = len(loss)
    confirmed = []
    for mode in world.planted:
        on = mode[:rows]
        errors = round(loss[on].sum())
        p = hypergeom.sf(errors - 1, rows, round(loss.sum()), int(on.sum()))
        if p <= level / len(world.planted):
            confirmed.append(mode)
    return confirmed


def _parts(methods: Sequence[str], replicates: int) -> dict[str, tuple[Any, ...]]:
    """Arguments of `measure` by name, batches in turn so that all cells fill evenly."""
    parts: dict[str, tuple[Any, ...]] = {}
    for start in range(0, replicates, _BATCH):
        for (name, cell), method in product(CELLS.items(), methods):
            rates = method == "modes" and cell.kind in ("null", "one")
            total = replicates if rates else max(1, replicates // _FEWER)
            count = min(_BATCH, total - start)
            if count > 0 and cell.kind in _KINDS.get(method, (cell.kind,)):
                key = f"{name} / {method} / {start} and {count} / {groundfault.__version__}"
                parts[key] = (name, method, start, count)
    return parts
