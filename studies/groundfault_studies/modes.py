"""Modes: which methods name why real models and programs fail.

Three collections of real failures whose cause is known: small networks that never saw a region of
their training world, models and programs that were broken on purpose, and pipelines of a pretrained
chat model with a bug. A method sees a sample of a world's rows; its rules are scored on all."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import groundfault
from groundfault.base.long_work import Progress, listener
from groundfault.core.roles import Roles, add_parts
from groundfault.errors import InputError
from groundfault.modes.condition import list_conditions
from groundfault_studies import cause_tables as tables
from groundfault_studies.known_holes import HoleData, check_names, read_holes
from groundfault_studies.resuming import Rows, gather_rows
from groundfault_studies.rule_methods import METHODS
from groundfault_studies.rule_scores import FIRST, jaccard, score_rules
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import PaperStudy

Bools = NDArray[np.bool_]

USUAL = ("modes", "sliceline", "cart", "pysubgroup", "max-t")
SIZES, QUICK_SIZES = (500, 2000, 8000), (500,)
DRAWS, QUICK_DRAWS = 10, 1
SOURCE = "groundfault's own collections of failures whose cause is known"
COLLECTIONS = {
    "known_holes": "networks with a hole",
    "known_causes": "models and programs with a cause",
    "smollm2": "pipelines of a chat model with a bug",
}

_DRAWN: Mapping[str, Sequence[str]] = {
    "known_causes": "lab store day_of_sale client channel source hour day version".split(),
    "smollm2": "hour weekday client app_version user_type shard theme".split(),
}
"""Columns that are drawn by chance, and go with failures only where they are part of the cause."""
_MOST_SEEN = 0.82
"""Share of a table's rows that a sample has at most: the others are fresh."""
_NEAR = 120
"""Conditions around a cause that are paired, to learn whether the language can say it."""


@cache
def read_worlds(folder: Path) -> Mapping[str, HoleData]:
    """Read a collection: its tables by name.

    Raises
    ------
    InputError
        If it is not what it should be.
    """
    try:
        if (folder / "holes.json").is_file():
            return {"holes": read_holes(folder)}
        if (folder / "worlds.json").is_file():
            worlds = json.loads((folder / "worlds.json").read_text(encoding="utf-8"))
            alone = [one for one in worlds if "old" not in one]
            files = (folder / f"{name}.parquet" for name in ("prompts", "outcomes", "inside"))
            return {"prompts": _read_table(folder, alone, *files)}
        causes = json.loads((folder / "causes.json").read_text(encoding="utf-8"))
        return {
            base: _read_table(
                folder,
                [one for one in causes if one["base"] == base],
                *(folder / part / f"{base}.parquet" for part in ("tables", "outcomes", "inside")),
            )
            for base in dict.fromkeys(one["base"] for one in causes)
        }
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"{folder} does not hold what this study reads ({error})") from None


def _read_table(
    folder: Path, worlds: Sequence[Mapping[str, Any]], table: Path, outcomes: Path, inside: Path
) -> HoleData:
    failures, where = pl.read_parquet(outcomes), pl.read_parquet(inside)
    errors = {one["id"]: failures[one["id"]].cast(pl.Float64).to_numpy() for one in worlds}
    causes: dict[str, tuple[str, Bools | None]] = {}
    for one in worlds:
        name, cause = one["id"], str(one.get("rule", one["cause"]))
        region = where[name].cast(pl.Boolean).to_numpy() if name in where.columns else None
        causes[name] = (cause, region if region is not None and region.any() else None)
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in (table, outcomes, inside)))
    return HoleData(folder, pl.read_parquet(table), errors, causes, digest.hexdigest()[:12])


def study(
    shared: str | Path | None = None,
    *,
    methods: Sequence[str] = USUAL,
    models: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    stored: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Score methods by the causes they name first, by what else they say, and why one is missed.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real/known_holes``, ``real/known_causes`` and ``real/smollm2``.
    methods : sequence of str
        Names of `METHODS`.
    models : sequence of str, optional
        Collections; all where left out.
    sizes : sequence of int, optional
        Rows of a sample; left out, 500, 2,000 and 8,000, or quickly 500.
    replicates : int, optional
        Samples drawn of each size; left out, 10, or quickly 1.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        One small sample: to see that it runs, not for conclusions.
    stored : bool
        Run nothing: show what ``keep`` holds.
    keep : path, optional
        File of what is done; a study that was stopped, or killed, goes on from it.
    progress : callable, optional

    Raises
    ------
    InputError
        If a collection is not there.
    PlanError
        If a method or collection is not known, or there is no file to show from.
    """
    progress = listener(progress)
    methods = check_names(methods, tuple(METHODS), "method")
    names = check_names(models, tuple(COLLECTIONS), "collection")
    sizes = sizes or (QUICK_SIZES if quick else SIZES)
    replicates = replicates or (QUICK_DRAWS if quick else DRAWS)
    folders = {name: find_shared(shared) / "real" / name for name in names}
    worlds = {name: read_worlds(folder) for name, folder in folders.items()}
    absent = [name for name in methods if not METHODS[name].installed]
    able = [name for name in methods if name not in absent]
    parts = {
        f"{method} / {name} / {table} / {world} / n={size} / draw {draw} / data {data.digest} / "
        f"groundfault {groundfault.__version__}": (method, folders[name], table, world, size, draw)
        for draw, size, name, method in product(range(replicates), sizes, names, able)
        for table, data in worlds[name].items()
        for world in data.models
        if size <= _MOST_SEEN * data.examples.height
    }
    rows = gather_rows(parts, measure, keep, jobs, progress, stored=stored)
    labels = {method: METHODS[method].label for method in able}
    return PaperStudy(
        "modes",
        "Modes: which methods name why real models and programs fail",
        SOURCE,
        {"replicates": replicates, "sizes": list(sizes), "methods": able, "models": list(names)},
        tuple(tables.make_tables(rows, list(_list_parts(worlds, sizes)), labels, COLLECTIONS)),
        tuple(f"{METHODS[name].label}: pip install {METHODS[name].needs}" for name in absent),
    )


def measure(method: str, folder: Path, table: str, world: str, size: int, draw: int) -> Rows:
    """One row: what a method says of one world after one sample, and how good that is."""
    data, way = read_worlds(folder)[table], METHODS[method]
    known = ~np.isnan(data.errors[world])
    sample = data.sample(size, draw) & known
    begin = time.process_time()
    descriptions = way.describe(data.evidence(world, sample, way.columns))
    seconds = time.process_time() - begin
    holds = [one.apply(_read_parts(folder, table)) for one in descriptions]
    cause, region = data.holes[world]
    losses, fresh = np.nan_to_num(data.errors[world]), known & ~sample
    scores = score_rules(holds, losses, fresh, region)
    row = {"method": method, "model": world, "n": size, "draw": draw, "seconds": seconds}
    row |= scores | {"rules": [one.text[:200] for one in descriptions[:FIRST]]}
    drawn = _DRAWN.get(folder.name, ())
    row["chance"] = sum(_names_one(one.text, drawn, cause) for one in descriptions)
    row["rates"] = [
        [*one.rates, int((on & fresh).sum()), float(losses[on & fresh].sum())]
        for one, on in zip(descriptions, holds, strict=True)
        if one.rates
    ]
    if region is not None and method == "modes" and scores["first"] < tables.WELL:
        row["why"] = explain_miss(data, region, scores)
    return [row]


@cache
def _read_parts(folder: Path, table: str) -> pl.DataFrame:
    """A collection's examples with parts of their columns, such as levels of paths, which rules
    may read."""
    frame = read_worlds(folder)[table].examples.clone()
    add_parts(frame, Roles(outcome="error"))
    return frame


def _names_one(rule: str, columns: Sequence[str], cause: str) -> bool:
    """Whether a rule names one of these columns that is no part of the cause."""
    return any(
        re.search(rf"\b{name}\b", rule) and not re.search(rf"\b{name}\b", cause) for name in columns
    )


def explain_miss(data: HoleData, region: Bools, scores: Mapping[str, Any]) -> str:
    """Why no rule among the first five is the cause.

    Parameters
    ----------
    data : HoleData
    region : bool array, shape (rows,)
        Where the cause is.
    scores : mapping
        Of `score_rules`.

    Returns
    -------
    str
        ``place``: it comes later; ``language``: no condition and no two say it; ``choice``: a
        rule is near it; ``bar``: none is.
    """
    if scores["all"] >= tables.WELL:
        return "place"
    rows = np.array([one.on for one in list_conditions(data.examples.drop("example_id"))])
    inside, sizes = rows @ region.astype(np.int64), rows.sum(axis=1)
    most = float((inside / (sizes + region.sum() - inside)).max(initial=0.0))
    near = np.flatnonzero(inside >= tables.WELL * region.sum())
    near = near[np.argsort(sizes[near], kind="stable")][:_NEAR]
    pairs = (jaccard(rows[i] & rows[j], region) for i in near for j in near if i < j)
    if max(most, *pairs, 0.0) < tables.WELL:
        return "language"
    return "choice" if scores["all"] >= 0.2 else "bar"


def _list_parts(
    worlds: Mapping[str, Mapping[str, HoleData]], sizes: Sequence[int]
) -> Iterator[tables.Part]:
    """Worlds that have rows left beside a sample, by size and collection."""
    for size, (name, data) in product(sizes, worlds.items()):
        fits = [one for one in data.values() if size <= _MOST_SEEN * one.examples.height]
        causes = {
            world: cause if region is not None else None
            for one in fits
            for world, (cause, region) in one.holes.items()
        }
        if causes:
            yield tables.Part(name, size, causes)
