"""Units, losses and strata: how surprising a rule is, given the earlier modes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Ints, Places, Singles
from groundfault.base.long_work import stream
from groundfault.modes.kernels import Words, split, sum_rows
from groundfault.stats import bits
from groundfault.stats.betting import log_excess
from groundfault.stats.bits import Bits, JoinedRows, Layout
from groundfault.stats.contingency import common_grid, log_tail, log_tail_of_losses

_KEPT = 0.9
"""Share of the units that samples keep: a mode that depends on the other tenth is not stable."""
_SAMPLES = 20
"""Samples to count the stability of a mode: reports show a word, not a number."""
_FEW = 64
"""Most strata to count units as bits: more strata have few units each."""
_ORDINARY = 1.5
"""Deviates below which a rule passes at no level: they are not transformed."""
_ROUNDING = 1e-6
"""Share of the variance of all losses that sums in single precision cannot tell from 0."""
_STRAIGHT = 1e-3
"""Skewness below which a distribution counts as symmetric: smaller cube roots are rounding."""
_AT_ONCE = 1 << 18  # words of bits of rules that are held at a time: 2 MB
RARE = 1 / 3
"""Share of failures up to which these are counted alone: taking them from all rows costs a third of
counting pairs of all units."""
WORTH_TAKING = 1 << 28
"""Words that pairs read from which failures are counted alone: .05 s."""
_PLANES = 7
"""Bits of a loss that rank rules; tests use the loss itself."""


@dataclass(frozen=True)
class Losses:
    """Losses of all units, as numbers and as bit planes.

    Attributes
    ----------
    values : float64 array, shape (units,)
        In [0, 1].
    planes : uint64 array, shape (P, words)
    scale : float64 array, shape (P,)
        Value of each plane.
    step : float
        All losses are whole multiples of this; 0 without a grid.
    """

    values: Floats
    planes: Bits
    scale: Floats
    step: float = 1.0

    @classmethod
    def of(cls, values: Floats, layout: Layout) -> Losses:
        """Cut losses into planes: one for errors, seven for graded losses."""
        if np.isin(values, (0.0, 1.0)).all():
            return cls(values, layout.pack(values[None] == 1), np.ones(1))
        # the largest loss fills all planes, however small losses are
        top = (2**_PLANES - 1) / float(values.max())
        whole = np.rint(values * top).astype(np.int64)
        rows = np.stack([(whole >> b) & 1 == 1 for b in range(_PLANES)])
        scale = 2.0 ** np.arange(_PLANES) / top
        grid = common_grid(values)
        return cls(values, layout.pack(rows), scale, 1 / grid if grid else 0.0)

    @property
    def binary(self) -> bool:
        """Return whether every loss is 0 or 1."""
        return len(self.scale) == 1

    def take_failing(self, rows: Bits) -> Bits:
        """Return rows of bits of the units that fail alone, for losses of 0 and 1."""
        places = np.flatnonzero(bits.unpack(self.planes, 64 * rows.shape[1])[0])
        return bits.take(rows, 64 * rows.shape[1], places)


class Scores:
    """Score rules by normal deviates of their losses from the expectation of their strata.

    Parameters
    ----------
    home : int64 array, shape (units,)
        Stratum of each unit, from 0.
    losses : float64 array, shape (units,)
    graded : bool
        Whether some losses are neither 0 nor 1.

    Notes
    -----
    A score is an excess over its standard deviation among permutations within strata; for graded
    losses, over the robust deviation if that is larger (`discount_spread`). A cube root removes its
    skewness among permutations (Wilson and Hilferty 1931, for a gamma variable), so that rules of
    few units do not hide rules of many.
    """

    def __init__(self, home: Ints, losses: Floats, *, graded: bool) -> None:
        self.graded = graded
        self.order = np.argsort(home, kind="stable")
        self.size = np.bincount(home).astype(np.float64)
        self.runs = np.concatenate([[0], np.cumsum(self.size)]).astype(np.int64)
        mean = np.bincount(home, losses) / np.maximum(self.size, 1)
        self.rest = (losses - mean[home])[self.order]
        self.squares = self._sum_runs(self.rest**2)
        self.cubes = self._sum_runs(self.rest**3)

    def _sum_runs(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.runs[:-1]))

    def permute(self, rng: np.random.Generator, permutations: int) -> Singles:
        """Return losses minus their stratum's mean, in the given and in permuted orders.

        Returns
        -------
        float32 array, shape (units, 1 + permutations)
            Units in the order of their strata.
        """
        home = np.repeat(np.arange(len(self.size)), np.diff(self.runs))
        drawn = np.empty((1 + permutations, len(home)), dtype=np.float32)
        drawn[0] = self.rest
        for row in drawn[1:]:
            row[:] = self.rest[np.argsort(home + rng.random(len(home)))]
        return np.ascontiguousarray(drawn.T)

    def find_largest(self, on: Bools, drawn: Singles, least: Singles) -> Singles:
        """Return the largest deviate of some rules in each draw.

        Parameters
        ----------
        on : bool array, shape (rules, units)
        drawn : float32 array, shape (units, draws)
            Of `permute`.
        least : float32 array, shape (draws,)
            Deviates to return at least.
        """
        rows = on[:, self.order]
        ends = zip(self.runs[:-1], self.runs[1:], strict=True)
        inside = np.stack([np.count_nonzero(rows[:, a:b], axis=1) for a, b in ends], axis=1)
        held, outside = rows.astype(np.float32), self.size - inside
        with np.errstate(divide="ignore", invalid="ignore"):
            both = np.nan_to_num(inside * outside / (self.size * (self.size - 1)))
            third = np.nan_to_num(both * (outside - inside) / (self.size - 2))
        variance = both @ self.squares
        # a rule that strata imply has no excess but rounding
        variance[variance <= _ROUNDING * self.squares.sum()] = np.inf
        bend = third @ self.cubes / variance**1.5
        bend[np.abs(bend) < _STRAIGHT] = _STRAIGHT
        scaled = held / np.sqrt(variance).astype(np.float32)[:, None]
        score = np.asarray(scaled @ drawn, dtype=np.float32)
        some = np.flatnonzero(score > _ORDINARY)
        score.ravel()[some] = _bend(score.ravel()[some], bend[some // score.shape[1]])
        if not self.graded:
            return np.asarray(np.maximum(least, score.max(axis=0)))
        # a robust deviation only lowers a score: compute it for the largest scores first, then for
        # all scores that may be larger
        draw = np.arange(score.shape[1])
        rule = score.argmax(axis=0)
        for _ in range(2):
            z = self._studentise(held, inside, variance, drawn, rule, draw)
            np.maximum.at(least, draw, np.where(z > _ORDINARY, _bend(z, bend[rule]), z))
            rule, draw = np.nonzero(score > least)
        return least

    def _studentise(
        self,
        held: Singles,
        inside: Floats,
        variance: Floats,
        drawn: Singles,
        rule: Places,
        draw: Places,
    ) -> Singles:
        """Return excesses of rules in some draws over the larger of two deviations: among
        permutations, and where losses vary inside and outside as they do."""
        losses = drawn[:, draw].T
        part = held[rule] * losses
        sums = np.add.reduceat(part, self.runs[:-1], axis=1)
        squares = np.add.reduceat(part * losses, self.runs[:-1], axis=1)
        on, robust = inside[rule], np.zeros(len(rule))
        sides = ((on, self.size - on, squares), (self.size - on, on, self.squares - squares))
        for units, others, about in sides:
            # each side around its own mean, a degree of freedom made up for
            own = np.maximum(about - sums**2 / np.maximum(units, 1), 0)
            weight = units / np.maximum(units - 1, 1) * (others / self.size) ** 2
            robust += (weight * own).sum(axis=1)
        z = sums.sum(axis=1) / np.sqrt(np.maximum(variance[rule], robust))
        return np.asarray(z.astype(np.float32))


def _bend(z: Floats | Singles, skewness: Floats) -> Floats:
    """Convert standardised gamma values with this skewness to normal deviates."""
    return np.asarray(6 / skewness * (np.cbrt(1 + skewness / 2 * z) - 1) + skewness / 6)


class Strata:
    """Units in strata of the layout, further divided by the first listed mode that matches.

    Parameters
    ----------
    layout : Layout
    losses : Losses
    masks : sequence of uint64 arrays, shape (words,)
        Units of the modes listed so far, in order.

    Attributes
    ----------
    new : bool array, shape (units,)
        Units that no listed mode matches; ``new_bits`` has the same as bits.
    home, expected : int64 and float64 arrays, shape (units,)
        Stratum of each unit, and the mean loss in it.
    size, total : int64 and float64 arrays, shape (strata,)
        Units of each stratum, and their losses.
    rates : float64 array, shape (runs,)
        Mean loss of the new units of each stratum of the layout.

    Notes
    -----
    A test within strata is exact for modes fixed beforehand, if units of a stratum are exchangeable
    where the rule adds nothing to the modes. The search chose them on the same units.
    """

    def __init__(self, layout: Layout, losses: Losses, masks: Sequence[Bits] = ()) -> None:
        self.layout, self.losses = layout, losses
        self.pair_sums: Floats | None = None  # of the pairs of plain conditions, once asked for
        first = np.zeros(len(layout.strata), dtype=np.int64)
        rows = layout.unpack(np.stack(masks)) if len(masks) else np.zeros((0, 0), dtype=np.bool_)
        for i in range(len(masks) - 1, -1, -1):
            first[rows[i]] = i + 1
        self.new = first == 0
        self._divide(first * (layout.strata.max(initial=0) + 1) + layout.strata)

    def _divide(self, code: Ints) -> None:
        # codes are small: counting takes a tenth of what sorting a million takes
        self.home = (np.cumsum(np.bincount(code) > 0) - 1)[code]
        self.size = np.bincount(self.home)
        self.total = np.bincount(self.home, weights=self.losses.values)
        rate = self.total / self.size
        self.expected = rate[self.home]
        # new units have one expectation for each stratum of the layout
        self.new_bits = self.layout.pack(self.new[None])[0]
        self.rates = np.zeros(len(self.layout.runs) - 1)
        self.rates[self.layout.strata[self.new]] = self.expected[self.new]

    @classmethod
    def of_patterns(cls, layout: Layout, losses: Losses, masks: Sequence[Bits]) -> Strata:
        """Return strata of the whole pattern of modes that hold, not of the first alone."""
        strata = cls(layout, losses)
        rows = layout.unpack(np.stack(masks))
        _, code = np.unique(rows, axis=1, return_inverse=True)
        strata._divide(code.reshape(-1) * (layout.strata.max(initial=0) + 1) + layout.strata)
        return strata

    def log_p(self, mask: Bits, tested: Bools | None = None) -> float:
        """Return log p of a rule: its losses are no more than the strata give, against more.

        Parameters
        ----------
        mask : uint64 array, shape (words,)
        tested : bool array, shape (units,), optional
            Only these units are looked at.
        """
        home, values, size, total = self.home, self.losses.values, self.size, self.total
        if tested is None and self.losses.binary and len(size) <= _FEW:
            on_size = bits.count(self.cells & mask)
            errors = int(bits.count((mask & self.losses.planes[0])[None])[0])
            return self._log_p_of_errors(errors, on_size, total, size)
        on = self.layout.unpack(mask[None])[0]
        if tested is not None:
            on = on & tested
            size = np.bincount(home[tested], minlength=len(size))
            total = np.bincount(home[tested], weights=values[tested], minlength=len(size))
        index = np.flatnonzero(on)
        on_size = np.bincount(home[index], minlength=len(size))
        if self.losses.binary:
            return self._log_p_of_errors(round(values[index].sum()), on_size, total, size)
        part = np.ones(len(values), dtype=np.bool_) if tested is None else tested
        once = np.ones(int(part.sum()))
        total_on = values[index].sum() - discount_spread(on[part], home[part], values[part], once)
        return self._log_p_of_losses(float(total_on), on_size, tested)

    @property
    def words(self) -> Words:
        """Return the new units, their losses and expected losses, as words of bits."""
        losses = self.losses
        return self.new_bits, losses.planes, losses.scale, self.layout.runs, self.rates

    @cached_property
    def cells(self) -> Bits:
        """Return the units of each stratum: shape (strata, words)."""
        return self.layout.pack(self.home == np.arange(len(self.size))[:, None])

    @staticmethod
    def _log_p_of_errors(errors: int, on_size: Ints, total: NDArray[Any], size: Ints) -> float:
        busy = np.flatnonzero(on_size)
        whole = np.rint(total[busy]).astype(np.int64)
        return float(log_tail(errors, on_size[busy], whole, size[busy]))

    @cached_property
    def _scores(self) -> Scores:
        return Scores(self.home, self.losses.values, graded=not self.losses.binary)

    def log_score(self, mask: Bits) -> float:
        """Return log p of a rule as permutations within strata are compared: see `Scores`."""
        from scipy.special import log_ndtr

        scores, on = self._scores, self.layout.unpack(mask[None])
        losses = scores.rest[:, None].astype(np.float32)
        score = scores.find_largest(on, losses, np.zeros(1, dtype=np.float32))
        return float(log_ndtr(-float(score[0])))

    def _log_p_of_losses(self, total: float, on_size: Ints, tested: Bools | None) -> float:
        levels, place = np.unique(self.losses.values, return_inverse=True)
        rows = np.flatnonzero(on_size[self.home] > 0 if tested is None else tested)
        rows = rows[on_size[self.home[rows]] > 0]
        cell, counts = np.unique(self.home[rows] * len(levels) + place[rows], return_counts=True)
        busy, home = np.unique(cell // len(levels), return_inverse=True)
        values = levels[cell % len(levels)]
        step = self.losses.step
        return float(log_tail_of_losses(total, step, on_size[busy], home, values, counts))

    def thin(self, mask: Bits, tested: Bools | None = None) -> Floats | None:
        """Return log p of a rule in samples of the units, each kept with chance `_KEPT`.

        None for graded losses, whose tests would take as long as the search.

        Parameters
        ----------
        mask, tested
            As in `log_p`.
        """
        if not self.losses.binary:
            return None
        on, wide = self.layout.unpack(mask[None])[0], len(self.size)
        part = np.ones(len(on), dtype=np.bool_) if tested is None else tested
        cell = (2 * on + self.losses.values).astype(np.int64) * wide + self.home
        counts = np.bincount(cell[part], minlength=4 * wide)
        drawn = stream(0, "modes: stability").binomial(counts, _KEPT, (_SAMPLES, 4 * wide))
        # by whether the rule holds, and whether the model failed
        kept = drawn.reshape(_SAMPLES, 2, 2, wide)
        inside, failed = kept[:, 1].sum(axis=1), kept[:, :, 1].sum(axis=1)
        sizes = kept.sum(axis=(1, 2))
        errors = kept[:, 1, 1].sum(axis=1)
        tails = zip(errors, inside, failed, sizes, strict=True)
        return np.array([float(log_tail(int(k), *rows)) for k, *rows in tails])

    def compute_new_overlaps(self, mask: Bits, masks: Sequence[Bits]) -> Floats:
        """Return Jaccard of one rule with many, among the units that no listed mode covers."""
        return compute_overlaps(mask & self.new_bits, np.stack(masks) & self.new_bits)

    def assume_worst(self, mask: Bits, tested: Bools) -> Bits:
        """Return a rule's units as if all units against it had lost their values.

        Parameters
        ----------
        mask : uint64 array, shape (words,)
        tested : bool array, shape (units,)
            Units with a value. Other units that failed no more than the mean are put inside.
        """
        losses = self.losses.values
        lost = ~tested & (losses <= losses.mean())
        return np.asarray(mask | self.layout.pack(lost[None])[0])

    def log_excess(self, mask: Bits, tested: Bools | None = None) -> float:
        """Return `groundfault.stats.betting.log_excess` of this rule alone, within strata.

        Infinite for losses of 0 and 1, which can differ only in their mean.
        """
        if self.losses.binary:
            return math.inf
        on, strata = self.layout.unpack(mask[None])[0], self.layout.strata
        kept = np.ones(len(on), dtype=np.bool_) if tested is None else tested
        parts = (kept & (strata == code) for code in np.unique(strata[on]))
        return sum(log_excess(self.losses.values[part], on[part]) for part in parts)

    def count_new(self, masks: Bits | JoinedRows) -> tuple[Floats, Floats, Floats]:
        """Return new units of each rule, their losses, and their expected losses."""
        blocks = split(len(masks), self.new_bits.size, _AT_ONCE)
        sums = [sum_rows(masks[some], self.words) for some in blocks]
        return tuple(np.concatenate([np.zeros((3, 0)), *sums], axis=1))


def discount_spread(on: Bools, home: Places, losses: Floats, units: Floats) -> float:
    """Return the part of the excess of graded losses inside that comes only from a larger spread.

    Equal means with unequal spread are not a failure mode, but a permutation test finds them. The
    excess is therefore scaled by the standard deviation among permutations over the robust one (the
    studentised permutation test; Chung and Romano 2013, doi:10.1214/13-AOS1090), never up.

    Parameters
    ----------
    on : bool array, shape (C,)
        Whether a rule matches, for groups of equal units.
    home : intp array, shape (C,)
        Stratum of each group.
    losses, units : float64 arrays, shape (C,)
        Loss of the group's units, and their number.
    """
    size = np.bincount(home, units)
    total = np.bincount(home, losses * units)
    rest = losses - (total / np.maximum(size, 1))[home]
    on_size = np.bincount(home[on], units[on], minlength=len(size))
    away = on - (on_size / np.maximum(size, 1))[home]
    spread = np.bincount(home, np.square(rest) * units)
    permuted = (on_size * (size - on_size) / np.maximum(size * (size - 1), 1)) @ spread
    # each side around its own mean: a difference of means is no spread
    robust = sum(_sum_squares(rest[side], away[side], units[side]) for side in (on, ~on))
    excess = float((rest * units)[on].sum())
    if excess <= 0 or robust <= permuted:
        return 0.0
    return excess * (1 - math.sqrt(permuted / robust))


def _sum_squares(values: Floats, weights: Floats, units: Floats) -> float:
    """Return weighted squares around the mean, a degree of freedom made up for."""
    n = float(units.sum())
    if n <= 1:
        return 0.0
    mean = (values * units).sum() / n
    around = (np.square(weights * (values - mean)) * units).sum()
    return float(around * n / max(n - 1, 1))


def compute_overlaps(mask: Bits, masks: Bits) -> Floats:
    """Return Jaccard of one rule with many."""
    both = bits.count(masks & mask).astype(np.float64)
    either = bits.count(masks | mask)
    return np.asarray(both / np.maximum(either, 1))
