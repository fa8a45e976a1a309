"""Worlds: simulated truths, null or planted, against which judges are tested.

A world draws what a judge works on, `Units`, without a table or a rule in between, so that
thousands of replicates are cheap; the same draw as a table is `World.evidence`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.candidate import Candidate, Library, Missing
from groundfault.core.evidence import Evidence
from groundfault.core.roles import Roles
from groundfault.core.units import Marks, Units, classify_sizes
from groundfault.errors import InputError, require_name
from groundfault.stats import bits

Dependence = Literal["independent", "chains", "tied", "duplicates"]
Losses = Literal["errors", "grid", "real", "spread"]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# of candidates in turn: rare and frequent ones
_PREVALENCES = (0.2, 0.4, 0.6, 0.8)
# correlation of a proxy's latent variable with that of its cause
_PROXY = 0.8
# share of variance that the latent variables of all chains have in common
_SHARED = 0.5
# steps of graded losses
_QUARTERS = 4
# weight of the beta distribution of real losses: wide, but not all at 0 and 1
_SPREAD = 2.0
# weight of the narrow one, of losses that vary little
_NARROW = 60.0


@dataclass(frozen=True)
class PlantedEffect:
    """A planted cause of losses.

    Attributes
    ----------
    candidate : int
        Which candidate it is.
    lift : float
        Mean loss on minus off the slice.
    prevalence : float
        Share of units on the slice, in (0, 1).
    proxies : int
        So many of the next candidates are shadows of it: cut from latents that correlate with its
        own by 0.8.
    """

    candidate: int = 0
    lift: float = 0.4
    prevalence: float = 0.4
    proxies: int = 0


@dataclass(frozen=True, kw_only=True)
class World:
    """A simulated truth: how candidates and losses come about. Null unless effects are planted.

    Attributes
    ----------
    units : int
        Independent units n: examples, or the items of which there are several ``variants``.
    candidates : int
        Size L of the library. Unless the dependence says otherwise their prevalences are 0.2, 0.4,
        0.6, 0.8 in turn.
    dependence : {"independent", "chains", "tied", "duplicates"}
        Candidates independent of each other; chains of four thresholds of one number each, the
        numbers correlated by one half; every candidate true for exactly half of the units, so that
        many lifts are equal; or every first candidate followed by a copy and by its complement.
    rate : float
        Mean loss in [0, 1].
    effects : tuple of Effect
        What is planted.
    losses : {"errors", "grid", "real", "spread"}
        0/1 errors; grades in quarters; real numbers, beta distributed; or "spread", 0/1 errors
        where the first candidate holds and real numbers near the rate elsewhere: equal means,
        unequal variances.
    outcomes : int
        Models that answer the same units.
    variants : int
        Rows of each unit: dependent through the unit's own error rate, and judged as one unit.
    icc : float
        Correlation in [0, 1) of the losses of one unit's rows and outcomes (beta-distributed unit
        rates).
    uneven : float
        Share of units that have ``fewest`` rows only, the others having all ``variants``;
        candidates go with them, being true of 85 % of these and of 15 % of the others. Unit means
        are then not exchangeable.
    fewest : int
        Rows of the uneven units.
    rowwise : bool
        Analyse rows as if they were independent units, which they are not: the mistake that groups
        exist to prevent.
    gaps : float
        Share of losses that could not be scored, and of units for which a candidate is not defined.
    lost : float
        Share of failures for which a candidate has no value, which counts as off: its gaps, and
        nothing else, go with the outcome.
    min_power : float
        Share of replicates in which any fit judge confirms the planted effects.

    Raises
    ------
    InputError
        If the world cannot be: a word unknown, a planted candidate that is not there, or one that
        would be overwritten by copies.
    """

    units: int = 160
    candidates: int = 34
    dependence: Dependence = "independent"
    rate: float = 0.4
    effects: tuple[PlantedEffect, ...] = ()
    losses: Losses = "errors"
    outcomes: int = 1
    variants: int = 1
    icc: float = 0.0
    uneven: float = 0.0
    fewest: int = 1
    rowwise: bool = False
    gaps: float = 0.0
    lost: float = 0.0
    min_power: float = 0.0

    def __post_init__(self) -> None:
        require_name("dependence", self.dependence, get_args(Dependence), InputError)
        require_name("kind of losses", self.losses, get_args(Losses), InputError)
        copied = self.dependence == "duplicates"
        misplaced = any(
            not 0 <= e.candidate <= e.candidate + e.proxies < self.candidates
            or (copied and (e.candidate % 3 or e.proxies))
            for e in self.effects
        )
        misplaced |= bool(self.lost and self.gaps)
        if misplaced or min(self.units, self.candidates, self.outcomes, self.variants) < 1:
            raise InputError(f"there can be no such world: {self}")

    @property
    def name(self) -> str:
        """Return the world in a few words, different for different worlds."""
        rows = f"{f' of {self.variants} rows' if self.variants > 1 else ''}, ICC {self.icc:g}"
        planted = (
            f"lift {e.lift:g} at prevalence {e.prevalence:g}"
            + (f" in candidate {e.candidate}" if e.candidate else "")
            + (f" with {e.proxies} proxies" if e.proxies else "")
            for e in self.effects
        )
        few = "one row" if self.fewest == 1 else f"{self.fewest} rows"
        parts = [
            f"{self.dependence}{rows if self.icc or self.variants > 1 else ''}",
            f"{self.uneven:g} of units with {few}" if self.uneven else "",
            "rows taken for units" if self.rowwise else "",
            f"{self.losses} losses" if self.losses != "errors" else "",
            f"{self.outcomes} outcomes" if self.outcomes > 1 else "",
            f"gaps {self.gaps:g}" if self.gaps else "",
            f"{self.lost:g} of failures without values" if self.lost else "",
            f"rate {self.rate:g}" if self.rate != World.rate else "",
            *planted,
        ]
        return ", ".join(part for part in parts if part)

    @property
    def size(self) -> tuple[int, int]:
        """Return units that are judged, and candidates."""
        return self.units * (self.variants if self.rowwise else 1), self.candidates

    @property
    def unrelated(self) -> Bools:
        """Return candidates independent of all losses, shape (L,)."""
        related = np.zeros(self.candidates, dtype=np.bool_)
        for effect in self.effects:
            related[effect.candidate : effect.candidate + effect.proxies + 1] = True
        return ~related[self._origin] if self.dependence == "duplicates" else ~related

    @property
    def planted(self) -> NDArray[np.intp]:
        """Return the candidates of the effects."""
        return np.array([effect.candidate for effect in self.effects], dtype=np.intp)

    def draw(self, rng: np.random.Generator) -> Units:
        """Return one data set, as a judge gets it."""
        on, defined, empty, losses = self._sample(rng)
        strata = None
        if self.rowwise:
            losses = losses.reshape(self.outcomes, -1)
            on = np.repeat(on, self.variants, axis=1)
            defined, empty = (
                None if rows is None else np.repeat(rows, self.variants, axis=1)
                for rows in (defined, empty)
            )
        else:
            strata = classify_sizes((~np.isnan(losses)).sum(axis=2).max(axis=0))
            losses = _means(losses)
        valid, gaps = (None if rows is None else bits.pack(rows) for rows in (defined, empty))
        marks = Marks(on.shape[1], bits.pack(on), valid, ("",) * self.candidates, gaps)
        return Units.of(marks, losses, strata)

    def evidence(self, rng: np.random.Generator) -> tuple[Evidence, Library]:
        """Return the same data set as evidence: a row per example and outcome, a column per
        candidate."""
        on, _, empty, losses = self._sample(rng)
        outcome, unit, variant = (a.reshape(-1) for a in np.indices(losses.shape))
        columns = {}
        for j in range(self.candidates):
            values = pl.Series(on[j])
            if empty is not None:
                values = pl.select(pl.when(~pl.Series(empty[j])).then(values)).to_series()
            columns[f"c{j:04d}"] = values.gather(unit)
        frame = pl.DataFrame(
            {
                "example": [f"e{i:08d}" for i in unit * self.variants + variant],
                "item": [f"i{i:08d}" for i in unit],
                "model": [f"m{o:03d}" for o in outcome],
                "loss": pl.Series(losses.reshape(-1)).fill_nan(None),
                **columns,
            }
        )
        grouped = self.variants > 1 and not self.rowwise
        roles = Roles(
            outcome="loss",
            id="example",
            model="model" if self.outcomes > 1 else None,
            group="item" if grouped else None,
            null_outcome="missing" if self.gaps or self.uneven else None,
            ignore=() if grouped else ("item",),
        )
        missing: Missing = "off" if self.lost else "drop"
        library = Library.of(Candidate(name, name, missing=missing) for name in columns)
        return Evidence.from_frame(frame, roles), library

    def _sample(self, rng: np.random.Generator) -> tuple[Bools, Bools | None, Bools | None, Floats]:
        """Return properties of units, where defined, where empty; losses (outcomes, units,
        variants)."""
        single = np.zeros(self.units, dtype=np.bool_)
        if self.uneven:
            single = rng.random(self.units) < self.uneven
        on = self._candidates(single, rng)
        mean = np.full(self.units, self.rate)
        for effect in self.effects:
            # centred, so that the error rate stays the world's
            mean += effect.lift * (on[effect.candidate] - effect.prevalence)
        losses = self._losses(np.clip(mean, 0.0, 1.0), on[0], rng)
        losses[:, single, self.fewest :] = np.nan
        if self.lost:
            empty = rng.random(on.shape) < self.lost * losses[0, :, 0]
            return on & ~empty, None, empty, losses
        if not self.gaps:
            return on, None, None, losses
        defined = rng.random(on.shape) >= self.gaps
        losses[rng.random(losses.shape) < self.gaps] = np.nan
        return on & defined, defined, ~defined, losses

    def _candidates(self, single: Bools, rng: np.random.Generator) -> Bools:
        on = self._background(single, rng)
        for effect in self.effects:
            source = rng.standard_normal(self.units)
            noise = rng.standard_normal((effect.proxies, self.units))
            latents = np.vstack([source, _PROXY * source + np.sqrt(1 - _PROXY**2) * noise])
            cut = _normal_quantile([effect.prevalence])
            on[effect.candidate : effect.candidate + len(latents)] = latents < cut
        if self.dependence == "duplicates":
            on = on[self._origin]
            on[2::3] ^= True
        return on

    @cached_property
    def _origin(self) -> NDArray[np.intp]:
        """Return whom each candidate of a library of duplicates repeats."""
        return np.arange(self.candidates) // 3 * 3

    def _background(self, single: Bools, rng: np.random.Generator) -> Bools:
        count, n = self.candidates, self.units
        if self.uneven:
            # the trap for rules that ignore size: single rows vary more, and candidates follow them
            return np.asarray(rng.random((count, n)) < np.where(single, 0.85, 0.15))
        if self.dependence == "tied":
            return rng.permuted(np.tile(np.arange(n) < n // 2, (count, 1)), axis=1)
        prevalences = np.resize(_PREVALENCES, count)[:, None]
        if self.dependence != "chains":
            return np.asarray(rng.random((count, n)) < prevalences)
        chains = -(-count // len(_PREVALENCES))
        own, common = rng.standard_normal((chains, n)), rng.standard_normal(n)
        latents = np.sqrt(_SHARED) * common + np.sqrt(1 - _SHARED) * own
        cuts = _normal_quantile(prevalences)
        return np.asarray(np.repeat(latents, len(_PREVALENCES), axis=0)[:count] < cuts)

    def _losses(self, mean: Floats, first: Bools, rng: np.random.Generator) -> Floats:
        shape = (self.outcomes, self.units, self.variants)
        # a beta-binomial of this intraclass correlation
        rate = mean if self.icc == 0 else _beta(mean, 1 / self.icc - 1, mean.shape, rng)
        rates = np.broadcast_to(rate[:, None], shape)
        if self.losses == "errors":
            return (rng.random(shape) < rates).astype(np.float64)
        if self.losses == "grid":
            return rng.binomial(_QUARTERS, rates, shape) / _QUARTERS
        if self.losses == "spread":
            errors = (rng.random(shape) < rates).astype(np.float64)
            return np.where(first[:, None], errors, _beta(rates, _NARROW, shape, rng))
        return _beta(rates, _SPREAD, shape, rng)


def _beta(mean: Floats, weight: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return Beta variates of a mean; the mean itself where it is 0 or 1."""
    # beta needs both parameters above 0
    inside = np.clip(mean, 1e-9, 1 - 1e-9)
    return np.where(
        (mean > 0) & (mean < 1), rng.beta(inside * weight, (1 - inside) * weight, shape), mean
    )


def _means(losses: Floats) -> Floats:
    """Return mean over each unit's scored rows, NaN where there is none."""
    if losses.shape[2] == 1:
        return losses[:, :, 0]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nansum(losses, axis=2) / (~np.isnan(losses)).sum(axis=2))


def _normal_quantile(share: object) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri(share))


@dataclass(frozen=True)
class Permuted:
    """A null world from real evidence: its candidates, its losses permuted among units.

    Attributes
    ----------
    units : Units
        Outcomes of one unit stay together.
    """

    units: Units

    @cached_property
    def name(self) -> str:
        """Say whose evidence it is by a digest of it."""
        import hashlib

        content = self.units.marks.on.tobytes() + self.units.losses.tobytes()
        return f"evidence {hashlib.sha256(content).hexdigest()[:12]} with its losses permuted"

    @property
    def size(self) -> tuple[int, int]:
        """Return units and candidates."""
        return len(self.units), len(self.units.marks.on)

    @property
    def unrelated(self) -> Bools:
        """Return all candidates."""
        return np.ones(self.size[1], dtype=np.bool_)

    @property
    def planted(self) -> NDArray[np.intp]:
        """Return no candidate, as nothing is planted."""
        return np.zeros(0, dtype=np.intp)

    @property
    def min_power(self) -> float:
        """Return 0, as nothing is planted."""
        return 0.0

    def draw(self, rng: np.random.Generator) -> Units:
        """Return the evidence with its losses permuted jointly."""
        # one order for all outcomes, which keeps their dependence
        order = rng.permutation(len(self.units))
        scored = None if self.units.scored is None else self.units.scored[:, order]
        return replace(self.units, losses=self.units.losses[:, order], scored=scored)
