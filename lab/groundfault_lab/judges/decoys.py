"""Janus with other decoys: hash controls, and knockoffs, then the exact holdout of `Janus`.

The paper names these constructions (arXiv:2606.09046, sections 2.1 and 6). Whatever the screen
does, the holdout bounds the family-wise error: P(any false confirmation) <= alpha when units are
independent and held-out outcomes are exchangeable given the candidates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.core.judge import Screening
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.janus import Janus
from groundfault.judges.rule import compute_p_values
from groundfault.stats import bits, decoys
from groundfault.stats.contingency import ContingencyTables

_CONTROLS = 10_000  # hash controls in all: a floor at q = .1 of 200 candidates rests on 500 of them
_RIDGE = 1e-3  # added to the variance of a candidate, so that near copies have an inverse
_NEIGHBOURS = 20  # features of a feature model: the most correlated ones; more overfit 100 units
_SWEEPS = 2  # over the gaps of knockoffs: eight sweeps found no more (.81 and .82 of 200 causes)
_STEPS = 8  # Newton steps of a logistic regression, which has converged by then
_PENALTY = 1.0  # of its coefficients: one unit of evidence against each


@dataclass(frozen=True)
class JanusHash(Janus):
    """Janus with hash controls: candidates that hold where a hash of the unit's number says so.

    They hold for as large a share of the units as the candidates in turn, but not for exactly as
    many, as permuted decoys do."""

    name: str = "janus-hash"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Keep what clears the floor of Procedure A over hash controls."""
        tables = units.tables[hypotheses]
        scores = tables.score(plan.effect)
        levels = np.unique(scores)
        controls = _score_controls(units, hypotheses, plan.effect, int(rng.integers(1 << 62)))
        counts = decoys.scale_counts(controls, levels, len(hypotheses), "inside")
        floor = decoys.procedure_a(scores, counts, float(to_fraction(plan.q)))
        above = counts[np.searchsorted(levels, scores)]
        p = compute_p_values(units, hypotheses, plan, rng)
        return Screening(floor.survives(scores), p=p, floor=floor, decoys=above)

    def find_bar(self, *_: object) -> None:  # type: ignore[override]
        """Return None: the floor of controls is not known in advance."""


def _score_controls(units: Units, hypotheses: Places, effect: str, key: int) -> Floats:
    """Return sizes of effect of hash controls, as many of each hypothesis."""
    each = -(-_CONTROLS // len(hypotheses))
    # the same numbers for all hypotheses: their order must not matter
    numbers = np.array([_hash_units(f"{key}/{control}", len(units)) for control in range(each)])
    scores = []
    for hypothesis in hypotheses:
        inside = np.flatnonzero(units.population(int(hypothesis)))
        losses = units.losses[hypothesis % len(units.losses)][inside]
        table = units.tables[np.array([hypothesis])]
        # a candidate and its complement have the same controls
        share = float(min(table.on[0], table.n[0] - table.on[0]) / table.n[0])
        on = numbers[:, inside] < share
        # what is on one side of no unit has no lift
        on = on[(on.sum(axis=1) > 0) & (on.sum(axis=1) < len(inside))]
        n, total = np.full(len(on), len(inside)), np.full(len(on), losses.sum())
        made = ContingencyTables(n, on.sum(axis=1), total, on @ losses, table.denominator)
        scores.append(made.score(effect))
    return np.concatenate(scores)


def _hash_units(control: str, size: int) -> Floats:
    """Return a number in [0, 1) for each unit, by the hash of a control's name."""
    stream = hashlib.shake_256(control.encode()).digest(8 * size)
    return np.frombuffer(stream, dtype=np.uint64) / 2.0**64


@dataclass(frozen=True)
class JanusKnockoffs(Janus):
    """Janus whose floor is the knockoff filter: decoys that are correlated as the candidates are.

    Each candidate competes with its knockoff in a ridge regression of the outcome on all of them,
    so a candidate that only goes with another one loses. Second-order knockoffs have the means and
    covariances of the candidates (Candès et al. 2018), and are as far from them as the determinant
    of the joint covariance allows (maximum entropy; Spector and Janson 2022)."""

    name: str = "janus-knockoffs"

    def screen(self, units: Units, hypotheses: Places, plan: Plan, rng: Generator) -> Screening:
        """Keep what the knockoff filter selects at level q."""
        survives = np.zeros(len(hypotheses), dtype=np.bool_)
        for outcome, at in _list_outcomes(units, hypotheses):
            inside = np.flatnonzero(_find_scored(units, outcome))
            features, order = _arrange(units, hypotheses[at], inside)
            values = units.losses[outcome][inside].astype(np.float64)
            statistics = _compare(features, self._imitate(features, rng), values)
            survives[at[order]] = _select(statistics, float(to_fraction(plan.q)))
        return Screening(survives, p=compute_p_values(units, hypotheses, plan, rng))

    def _imitate(self, features: Floats, rng: Generator) -> Floats:
        return draw_second_order(features, rng)

    def find_bar(self, *_: object) -> None:  # type: ignore[override]
        """Return None: what the filter asks for depends on all candidates."""


@dataclass(frozen=True)
class JanusModelKnockoffs(JanusKnockoffs):
    """The same with knockoffs by a feature model: each candidate drawn given the others.

    A logistic regression on its 20 most correlated features, the knockoffs drawn before it among
    them, gives the chance that the candidate holds; its knockoff is a draw."""

    name: str = "janus-model-knockoffs"

    def _imitate(self, features: Floats, rng: Generator) -> Floats:
        return draw_by_model(features, rng)


def draw_second_order(features: Floats, rng: Generator) -> Floats:
    """Draw knockoffs with the means and covariances of features: shape (n, L).

    Parameters
    ----------
    features : float64 array, shape (n, L)
        Standardised.
    rng : numpy.random.Generator
    """
    count = features.shape[1]
    covariance = np.atleast_2d(features.T @ features / len(features)) + _RIDGE * np.eye(count)
    gaps = np.diag(_widen_gaps(covariance))
    solved = np.linalg.solve(covariance, gaps)
    spread = 2 * gaps - gaps @ solved
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0))
    noise = rng.standard_normal(features.shape) @ root.T
    return np.asarray(features - features @ solved + noise)


def _widen_gaps(covariance: Floats) -> Floats:
    """Return by how much each feature's covariance with its knockoff is below its variance.

    Equal gaps are as narrow as near copies ask for. The largest determinant lets each feature have
    its own: of one gap, given the others, it is largest halfway to where it would be 0.
    """
    gaps = np.full(len(covariance), min(0.5, float(np.linalg.eigvalsh(covariance)[0])))
    inverse = np.linalg.inv(2 * covariance - np.diag(gaps))
    for j in list(range(len(gaps))) * _SWEEPS:
        change = (1 / inverse[j, j] - gaps[j]) / 2
        gaps[j] += change
        # of the matrix without the change, by its column (Sherman and Morrison)
        column = inverse[:, j].copy()
        inverse += np.outer(column, column) * (change / (1 - change * column[j]))
    return gaps


def draw_by_model(features: Floats, rng: Generator) -> Floats:
    """Draw knockoffs of two-valued features, each given the others and the knockoffs before it."""
    n, count = features.shape
    joint = np.hstack([features, np.zeros((n, count))])
    for j in range(count):
        others = np.r_[0:j, j + 1 : count + j]
        relation = np.abs(joint[:, others].T @ features[:, j])
        chosen = others[np.argsort(-relation, kind="stable")[:_NEIGHBOURS]]
        low, high = features[:, j].min(), features[:, j].max()
        on = features[:, j] > (low + high) / 2
        chance = _fit_chances(joint[:, chosen], on)
        joint[:, count + j] = np.where(rng.random(n) < chance, high, low)
    return joint[:, count:]


def _fit_chances(features: Floats, on: Bools) -> Floats:
    """Return the chance of each unit by a logistic regression with a penalty."""
    design = np.column_stack([np.ones(len(features)), features])
    penalty = _PENALTY * np.diag([1e-6, *np.ones(features.shape[1])])
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (on - chance) - penalty @ weights
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + penalty
        weights = weights + np.linalg.solve(curve, slope)
    return np.asarray(1 / (1 + np.exp(-np.clip(design @ weights, -30, 30))))


def _compare(features: Floats, knockoffs: Floats, values: Floats) -> Floats:
    """Return how much more each feature weighs than its knockoff in a ridge regression."""
    both = np.hstack([features, knockoffs])
    both = both - both.mean(axis=0)
    ridge = both.T @ both + np.sqrt(len(both)) * np.eye(both.shape[1])
    weights = np.abs(np.linalg.solve(ridge, both.T @ (values - values.mean())))
    return np.asarray(weights[: features.shape[1]] - weights[features.shape[1] :])


def _select(statistics: Floats, q: float) -> Bools:
    """Return which statistics the knockoff filter selects at level q."""
    for threshold in np.unique(np.abs(statistics[statistics != 0])):
        selected = statistics >= threshold
        # without the offset of 1 that bounds the rate, which needs 1 / q true candidates: as
        # Procedure A does without, since the holdout bounds the error
        if (statistics <= -threshold).sum() <= q * selected.sum():
            return np.asarray(selected)
    return np.zeros(len(statistics), dtype=np.bool_)


def _list_outcomes(units: Units, hypotheses: Places) -> Iterator[tuple[int, Places]]:
    outcomes = hypotheses % len(units.losses)
    for outcome in np.unique(outcomes):
        yield int(outcome), np.flatnonzero(outcomes == outcome)


def _find_scored(units: Units, outcome: int) -> Bools:
    return np.ones(len(units), dtype=np.bool_) if units.scored is None else units.scored[outcome]


def _arrange(units: Units, hypotheses: Places, inside: Places) -> tuple[Floats, Places]:
    """Return standardised features in an order of their own, and which hypothesis each one is.

    The order, and on which side of zero a feature is, depend on neither the order of the candidates
    nor on which of two complements is named: otherwise draws would."""
    rows = hypotheses // len(units.losses)
    on = bits.unpack(units.marks.on[rows], len(units))[:, inside].astype(np.float64)
    if units.marks.valid is not None:
        # a candidate without a value takes its mean
        defined = bits.unpack(units.marks.valid[rows], len(units))[:, inside]
        means = (on * defined).sum(axis=1) / np.maximum(1, defined.sum(axis=1))
        on = np.where(defined, on, means[:, None])
    centred = on - on.mean(axis=1, keepdims=True)
    scaled = centred / np.maximum(centred.std(axis=1, keepdims=True), 1e-12)
    first = np.array([row[np.flatnonzero(row)[:1]].sum() for row in scaled])
    scaled = np.round(scaled * np.where(first < 0, -1.0, 1.0)[:, None], 9)
    order = np.array(sorted(range(len(scaled)), key=lambda i: scaled[i].tobytes()), dtype=np.intp)
    return np.ascontiguousarray(scaled[order].T), order
