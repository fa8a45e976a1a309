"""Notes on runs and their codes; samples of runs to read, and counts that are fair to all runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from groundfault.base.arrays import Bools, Places
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule
from groundfault.errors import InputError, PlanError, require_name
from groundfault.modes.examples import find_near
from groundfault.review.decision import Opinion
from groundfault.review.queue import Item, normalize
from groundfault.stats.intervals import Unseen, estimate_unseen
from groundfault.stats.prediction_powered import find_interval

Floats = NDArray[np.float64]

MAX_CODE = 80
"""Characters of a code, which heads a column."""
CODING_GUIDANCE = (
    "Note what goes wrong first, and its consequences only if they matter.",
    "A code names one mistake in a few words. Give several where several mistakes are made, and "
    "none where nothing goes wrong.",
)
"""What makes a good note, a sentence or two each."""
_MAX_QUOTE = 2_000
"""Characters of a quote, which is a part of one step."""
_DIGITS = 9
"""Digits of a number that somebody types: no run has more steps."""
Side = Literal["failing", "passing"]
KINDS = "mode:RULE, near:RULE, outliers or unsure:COL"
_SHARE = 0.1
"""Share of the runs that are outliers, or of which a judge is least sure: enough to draw from."""
_HALF = 0.5
"""Share of a sample that is of the kind, and where a judge's probability says neither."""
_MISS = 0.05
"""Chance that an interval misses: the usual one."""
_HORIZON = 50
"""Labels at which limits are narrowest: fixed, or they would not hold at every look."""


def read_place(text: str) -> int:
    """Return a place in a list that somebody typed; 0 where it is no number, or beyond any list."""
    return int(text) if text.isdecimal() and len(text) < _DIGITS else 0


class CodeCount(Struct, frozen=True, kw_only=True):
    """Say how frequent a code is among the failing or the passing runs.

    Attributes
    ----------
    code, side : str
    runs, coded, population : int
        Coded runs that most of their coders give the code, coded runs, and all of this side.
    share, low, high : float
        The share among the coded runs, and limits for all runs, 95 %, which hold at every look.
    """

    code: str
    side: Side
    runs: int
    coded: int
    population: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Note(Opinion):
    """A person's note on a run, and its codes.

    Attributes
    ----------
    codes : tuple of str
        Names of the faults in the run; empty if it has none.
    step : int, optional
        The step at which it first goes wrong, from 0.
    quote : str
        The span of the run that shows it, word for word.
    """

    stored = ("reviewer", "item", "note", "role", "codes", "step", "quote")

    codes: tuple[str, ...] = ()
    step: int | None = None
    quote: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.codes, str):
            raise InputError("codes are a list of names, such as ['pays early']")
        object.__setattr__(self, "codes", tuple(dict.fromkeys(map(check_code, self.codes))))
        is_step = isinstance(self.step, int) and not isinstance(self.step, bool) and self.step >= 0
        if self.step is not None and not is_step:
            raise InputError(f"step is {self.step!r}; it is a whole number from 0")
        if not isinstance(self.quote, str) or len(self.quote) > _MAX_QUOTE:
            raise InputError(f"a quote is text of at most {_MAX_QUOTE:,} characters: mark less")

    @classmethod
    def from_dict(cls, data: Mapping[str, object], **stored: object) -> Self:
        """Make a note of the dict that `to_dict` made; earlier versions kept no quotes."""
        return super().from_dict({"quote": "", **data}, **stored)

    @classmethod
    def read_answers(cls, answers: Mapping[str, str], known: Sequence[str]) -> dict[str, Any]:
        """Return codes, given by name or by their numbers among the known ones, and the step."""
        step, codes = answers.get("step", "").strip(), []
        if step and not step.isdecimal():
            raise InputError(
                f"step is {step[:40]!r}; type the number of a step, or leave the field empty"
            )
        for word in filter(None, map(str.strip, answers.get("codes", "").split(","))):
            place = read_place(word)
            codes.append(known[place - 1] if 0 < place <= len(known) else word)
        quote = normalize(answers.get("quote", "")).strip()
        return {"codes": codes, "step": int(step[:_DIGITS]) if step else None, "quote": quote}

    @property
    def verdict(self) -> str:
        """Return the codes, sorted: coders who give other codes disagree."""
        return ", ".join(sorted(self.codes)) or "no code"


def check_code(name: object) -> str:
    """Return the name of a code without needless spaces, or raise `InputError`.

    Examples
    --------
    >>> check_code("  pays   early ")
    'pays early'
    """
    code = " ".join(name.split()) if isinstance(name, str) else ""
    if not code or len(code) > MAX_CODE or not code.isprintable() or "," in code:
        raise InputError(
            f"the code {str(name)[:100]!r} cannot be used: a code is a name of at most "
            f"{MAX_CODE} characters without commas"
        )
    return code


@dataclass(frozen=True)
class RunItem(Item):
    """A run to code.

    Attributes
    ----------
    run : str
        A hash that names the run, without a clue to its outcome.
    row : int
        In the evidence.
    read : callable
        Reads heads and texts, when they are shown.
    """

    run: str = ""
    row: int = 0
    read: Callable[[int], tuple[tuple[str, str], ...]] = lambda _: ()

    @cached_property
    def id(self) -> str:
        """Return the hash that names the run."""
        return self.run

    @cached_property
    def headed_texts(self) -> tuple[tuple[str, str], ...]:
        """Return heads and texts: a pair for each step, or for each column that is shown."""
        return tuple((head, normalize(text)) for head, text in self.read(self.row))


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
        If the kind or column does not exist, or the rule cannot be read or matches no run.
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
    """Draw rows at random; with a kind, half of them of that kind, as far as it has enough."""
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
    """Return a number for each run; runs of one number were drawn with equal chances.

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
        The judge's grades; NaN if it gave none.
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
