"""Samples of runs to read: at random, or half of them of one kind, with counts that stay fair."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from groundfault.base.arrays import Bools, Places
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule
from groundfault.errors import InputError, PlanError, require_name
from groundfault.modes.examples import find_near
from groundfault.stats.intervals import Unseen, estimate_unseen
from groundfault.stats.prediction_powered import find_interval

Floats = NDArray[np.float64]

KINDS = "mode:RULE, near:RULE, outliers or unsure:COL"
_SHARE = 0.1
"""Share of the runs that are outliers, or of which a judge is least sure: enough to draw from."""
_HALF = 0.5
"""Share of a sample that is of the kind, and where a judge's probability says neither."""
_MISS = 0.05
"""Chance that an interval misses: the usual one."""
_HORIZON = 50
"""Labels at which limits are narrowest: fixed, or they would not hold at every look."""


def find_focus(evidence: Evidence, focus: str) -> Bools:
    """Return the runs of a kind: rows of the evidence.

    Parameters
    ----------
    evidence : Evidence
    focus : str
        ``mode:RULE``, where a rule holds; ``near:RULE``, where all of its conditions hold but one;
        ``outliers``, whose attributes and lengths are rarest; ``unsure:COL``, where a judge's
        probability in this column is nearest to a half.

    Raises
    ------
    PlanError, InputError, RuleError
        If there is no such kind or column, or the rule cannot be read, or holds nowhere.
    """
    kind, _, rest = focus.partition(":")
    if kind in ("mode", "near") and rest:
        rule = Rule.parse(rest)
        evidence.roles.require_selectable(rule.columns, evidence.frame.columns)
        held = rule.holds(evidence.frame).to_numpy()
        inside = held if kind == "mode" else find_near(rest, evidence.frame)
    elif focus == "outliers":
        inside = _take_highest(_measure_oddness(evidence))
    elif kind == "unsure" and rest:
        require_name("column", rest, evidence.frame.columns, InputError)
        grades = evidence.frame[rest].cast(pl.Float64, strict=False)
        if not grades.is_between(0, 1).any() or not grades.drop_nulls().is_between(0, 1).all():
            raise InputError(f"column {rest!r} holds no probabilities of a judge, from 0 to 1")
        inside = _take_highest(-(grades - _HALF).abs().fill_null(math.inf).to_numpy())
    else:
        raise PlanError(f"--focus {focus!r} is no kind of runs; write {KINDS}")
    if not inside.any():
        raise InputError(f"no run is of the kind {focus!r}")
    return np.asarray(inside, dtype=np.bool_)


def _take_highest(values: Floats) -> Bools:
    bar = np.quantile(values, 1 - _SHARE, method="higher")
    return np.asarray((values >= bar) & np.isfinite(values))


def _measure_oddness(evidence: Evidence) -> Floats:
    """Return how rare the values of each row are, in nats, over attributes and counts of steps."""
    table = evidence.frame.select(evidence.attributes)
    steps = evidence.transcripts
    if len(steps):
        counts = steps.group_by("run").agg(
            turns=pl.col("turn").max(), errors=(pl.col("status") != "ok").sum()
        )
        runs = pl.DataFrame({"run": pl.Series(range(len(evidence)), dtype=pl.UInt32)})
        table = table.hstack(
            runs.join(counts, on="run", how="left").drop("run").rename("\0{}".format)
        )
    odd = np.zeros(len(evidence))
    for column in table:
        n = len(column)
        if column.dtype.is_numeric():
            rank = column.rank("average").fill_null((n + 1) / 2).to_numpy() / (n + 1)
            odd -= np.log(2 * np.minimum(rank, 1 - rank))
        elif column.n_unique() * 2 <= n:
            odd -= np.log(table.select(pl.len().over(column.name)).to_series().to_numpy() / n)
    return odd


def draw_rows(rows: Places, inside: Bools | None, count: int, rng: np.random.Generator) -> Places:
    """Draw rows at random; with a kind, half of them of it, as far as there are as many."""
    order = rng.permutation(rows)
    if inside is None:
        return order[:count]
    within, beyond = order[inside[order]], order[~inside[order]]
    most = min(len(within), max(math.ceil(count * _HALF), count - len(beyond)))
    return np.concatenate([within[:most], beyond[: count - most]])


def spell_rows(inside: Bools) -> str:
    """Write which rows are of a kind, as a ledger keeps it."""
    return np.packbits(inside).tobytes().hex()


def find_cells(kinds: Sequence[str], size: int) -> NDArray[np.int64]:
    """Return a number for each run: those of one were drawn with equal chances.

    Parameters
    ----------
    kinds : sequence of str
        Of each design, as `spell_rows` writes it.
    size : int
        How many runs there are.
    """
    bits = (np.frombuffer(bytes.fromhex(kind), np.uint8) for kind in kinds)
    masks = [np.zeros(size, np.uint8), *(np.unpackbits(one, count=size) for one in bits)]
    return np.unique(np.stack(masks), axis=1, return_inverse=True)[1].reshape(-1)


def find_inclusion(cells: NDArray[np.int64], failing: Places, coded: Sequence[int]) -> list[float]:
    """Return for each coded run the share of the runs as likely to be drawn that are coded."""
    of = 2 * cells
    of[failing] += 1
    drawn, every = Counter(of[coded].tolist()), Counter(of.tolist())
    return [drawn[cell] / every[cell] for cell in of[coded].tolist()]


def bound_shares(
    shares: ArrayLike,
    cells: NDArray[np.int64],
    every: NDArray[np.int64],
    grades: tuple[Floats, Floats] | None = None,
    fair: Bools | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return shares among all runs, and limits that hold at every look.

    Parameters
    ----------
    shares : array, shape (codes, coded)
        Of the coders of each run, in the order of coding.
    cells, every : int64 arrays, shapes (coded,) and (runs,)
        The cells of the coded runs and of all runs; each cell counts by its runs.
    grades : pair of float64 arrays, shapes (coded,) and (runs,), optional
        What a judge says, NaN where nothing.
    fair : bool array, shape (coded,), optional
        Which coded runs correct the judge.
    """
    labels = np.atleast_2d(np.asarray(shares, dtype=np.float64))
    known, hoped = grades or (np.zeros(len(cells)), np.zeros(len(every)))
    usable = np.ones(len(cells), dtype=np.bool_) if fair is None else fair
    numbers, sizes = np.unique(every, return_counts=True)
    value, low, high = np.zeros((3, len(labels)))
    for number, size in zip(numbers, sizes.tolist(), strict=True):
        mine, weight = cells == number, size / len(every)
        y, g = labels[:, mine], np.nan_to_num(known[mine])
        total, miss = float(np.nansum(hoped[every == number])), _MISS / len(numbers)
        given = np.broadcast_to(g, y.shape)
        ends = find_interval(y, given, size, total, miss, fair=usable[mine], horizon=_HORIZON)
        errors = (y - g)[:, usable[mine]]
        middle = total / size + errors.mean(axis=1) if errors.size else sum(ends) / 2
        for sums, part in zip((value, low, high), (np.clip(middle, *ends), *ends), strict=True):
            sums += weight * part
    return value, low, high


def bound_unseen(
    members: Sequence[set[str]], cells: NDArray[np.int64], every: NDArray[np.int64]
) -> Unseen:
    """Estimate the chance that the next run, of all, shows a code that was not seen yet."""
    numbers, sizes = np.unique(every, return_counts=True)
    level = 1 - _MISS / len(numbers)
    shown = {n: [m for m, c in zip(members, cells, strict=True) if c == n] for n in numbers}
    weights = sizes / len(every)
    parts = [(w, estimate_unseen(shown[n], level)) for n, w in zip(numbers, weights, strict=True)]
    value, high = (sum(w * getattr(one, end) for w, one in parts) for end in ("value", "high"))
    return Unseen(len(members), sum(one.once for _, one in parts), float(value), float(high))


def read_grades(evidence: Evidence, grades: str | ArrayLike) -> Floats:
    """Return grades of a judge, of a column or given: 1, 0 or NaN for each run."""
    if isinstance(grades, str):
        require_name("column", grades, evidence.frame.columns, InputError)
        name, grades = repr(grades), evidence.frame[grades].cast(pl.Float64, strict=False)
    else:
        name = "the judge"
    values = np.asarray(grades, dtype=np.float64)
    is_grade = np.isin(values, (0, 1)) | np.isnan(values)
    if values.shape != (len(evidence),) or not is_grade.all():
        raise InputError(
            f"grades of {name} are 1, 0 or missing, one for each of the {len(evidence):,} rows"
        )
    return values
