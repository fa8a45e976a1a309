"""One fold of leave-one-model-out: how well a model is diagnosed, and predicted, by a taxonomy that
never met it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.stats import irt
from groundfault_lab.stats.irt import OneAbility
from groundfault_lab.taxonomy.fitting.leaves import find_leaves
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.nulls import count_directions, prepare
from groundfault_lab.taxonomy.fitting.partition import make_partition
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.use.basis import (
    MIN_OF_EACH_CLUSTER,
    STRATEGIES,
    Basis,
    assign_groups,
    draw_by_group,
    measure_information,
)
from groundfault_lab.taxonomy.use.diagnosis import Profile, TargetExamples, estimate_profile
from groundfault_lab.taxonomy.use.prediction import METHODS, Peers
from groundfault_studies.ranks import area, tau_b

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64]

BUDGETS = (10, 25, 50, 100, 250, 500)
PROBE = 50
UNIFORM = "taxonomy, uniform"
THRESHOLD = 0.5

_COVERED = 3
_WORLDS = 19
# gain of the mean log-likelihood at which a fit ends: what remains to be gained is far below the
# differences between null worlds
_ROUGH = 3e-5


@dataclass(frozen=True, eq=False)
class TaxonomyFold:
    """What is the same for every held-out model.

    Attributes
    ----------
    matrix : Matrix
        All models, all examples.
    settings : Settings
    benchmark : str, optional
    trials : int
        Random splits and draws of each fold.
    budgets : tuple of int
    labels : dict of str to int, optional
        Clusters made with the held-out model, for the oracle; left out, they are made anew without
        it.
    predict : bool
        Also predict.
    """

    matrix: Matrix
    settings: Settings
    benchmark: str | None = None
    trials: int = 20
    budgets: tuple[int, ...] = BUDGETS
    labels: dict[str, int] | None = None
    predict: bool = True

    def run(self, number: int) -> dict[str, Any]:
        """The fold that holds out a model, by its number, as what JSON can hold."""
        name = self.matrix.models[number]
        basis, matrix = self._basis(name)
        row: dict[str, Any] = {"model": name, "clusters": basis.clusters, "examples": len(basis)}
        if basis.clusters < 2:
            return row
        own = self.matrix.select([name]).take(_rows(self.matrix, matrix.examples))
        trials = own.trials[:, 0] > 0
        failures = trials & (own.values[:, 0] == 0)
        rng = self.settings.rng("halves and draws", number)
        priority = rng.random((self.trials, len(basis)))
        first = _halves(basis.labels, trials, rng, self.trials)
        everything = np.repeat(trials[None], self.trials, axis=0)
        modes = {"paper": (everything, everything), "held out": (first, everything & ~first)}
        for mode, (open_, scored_rows) in modes.items():
            if self.labels is None or mode == "paper":
                row[mode] = self._diagnose(basis, failures, open_, scored_rows, priority)
        if self.predict:
            row["prediction"] = _predict(
                basis, matrix, failures, first, everything & ~first, priority
            )
        return row

    def _basis(self, name: str) -> tuple[Basis, Matrix]:
        others = self.matrix.without(name)
        if self.labels is not None:
            matrix = self.matrix.take(_rows(self.matrix, tuple(self.labels))).without(name)
            labels = np.array([self.labels[example] - 1 for example in matrix.examples])
            return Basis.of(matrix, labels, self.benchmark), matrix
        frontier = tuple(m for m in self.settings.frontier if m != name)
        settings = replace(self.settings, frontier=frontier, worlds=_WORLDS)
        matrix = prepare(others, settings)
        dimensions = None
        if settings.reducer == "signal":
            population = OneAbility.fit(others.passed, others.trials, tolerance=_ROUGH)
            dimensions, _ = count_directions(others, settings, None, population)
        labels = make_partition(matrix, settings, dimensions).labels
        inside = labels[:, None] == np.arange(labels.max(initial=-1) + 1)
        if settings.rules:
            leaves = [leaf.holds for leaf in find_leaves(others, matrix, settings)]
            inside = np.column_stack([*leaves, inside])
        return Basis.of(matrix, inside, self.benchmark), matrix

    def _diagnose(
        self, basis: Basis, failures: Bools, open_: Bools, rows: Bools, priority: Floats
    ) -> dict[str, Any]:
        targets = TargetExamples.of(basis, rows)
        truth = _shares(basis, failures, rows)
        none = np.zeros_like(open_)
        prior = estimate_profile(basis, failures, none, targets)
        whole = estimate_profile(basis, failures, open_, targets)
        out: dict[str, Any] = {
            "prior": _scores(prior.prior, truth),
            "ceiling": _scores(whole.direct, truth),
            "accuracy": float((rows & ~failures).sum() / max(rows.sum(), 1)),
            "clusters": int(basis.clusters),
        }
        budgets = [b for b in self.budgets if b <= int(open_.sum(axis=1).min())]
        for strategy in (*STRATEGIES, UNIFORM):
            if strategy == "benchmark" and basis.benchmark is None:
                continue
            queries = choose_examples(strategy, basis, failures, open_, priority, budgets)
            out[strategy] = {
                str(b): _measure(estimate_profile(basis, failures, a, targets), truth)
                for b, a in queries.items()
            }
        return out


def choose_examples(
    strategy: str,
    basis: Basis,
    failures: Bools,
    open_: Bools,
    priority: Floats,
    budgets: Sequence[int],
) -> dict[int, Bools]:
    """What a strategy asks with each budget: bool arrays, shape (trials, n)."""
    out = {budget: np.zeros_like(open_) for budget in budgets}
    if not budgets:
        return out
    if strategy in ("irt", "uncertainty"):
        worth = measure_information(strategy, basis)  # type: ignore[arg-type]
        order = choose_adaptively(worth, basis.curve, failures, open_, max(budgets))
        for budget, queries in out.items():
            np.put_along_axis(queries, order[:, :budget], True, axis=1)
        return out
    kind: Any = "taxonomy" if strategy == UNIFORM else strategy
    groups = assign_groups(kind, basis)
    min_per_group = MIN_OF_EACH_CLUSTER if kind == "taxonomy" else 0
    how: Any = "uniform" if strategy == UNIFORM else "proportional"
    for budget, queries in out.items():
        for trial, (free, draw) in enumerate(zip(open_, priority, strict=True)):
            queries[
                trial,
                draw_by_group(groups, free, draw, budget, min_each=min_per_group, how=how),
            ] = True
    return out


def _rows(matrix: Matrix, names: Sequence[str]) -> NDArray[np.intp]:
    at = {name: i for i, name in enumerate(matrix.examples)}
    return np.array(sorted(at[name] for name in names), dtype=np.intp)


def _halves(labels: Labels, observed_rows: Bools, rng: np.random.Generator, trials: int) -> Bools:
    """Half of each cluster, at random, in each trial: the half that may be asked."""
    first = np.zeros((trials, len(labels)), dtype=bool)
    for trial in range(trials):
        for cluster in range(-1, int(labels.max(initial=-1)) + 1):
            at = rng.permutation(np.flatnonzero((labels == cluster) & observed_rows))
            odd = int(rng.integers(2)) * (len(at) % 2)
            first[trial, at[: len(at) // 2 + odd]] = True
    return first


def _shares(basis: Basis, failures: Bools, rows: Bools) -> Floats:
    """Share of failures of each cluster: shape (trials, clusters); NaN where nothing counts."""
    size = rows.astype(np.float64) @ basis.inside
    miss = (rows & failures).astype(np.float64) @ basis.inside
    return np.where(size > 0, miss / np.maximum(size, 1), np.nan)


def _tau(estimate: Floats, truth: Floats) -> float | None:
    """Mean tau-b over trials; an estimate that ranks nothing recovers nothing, a truth without
    order is left out.
    """
    same = np.nanmax(truth, axis=1) - np.nanmin(truth, axis=1) < 1e-12
    taus = np.nan_to_num(tau_b(estimate, truth))[~same]
    return float(taus.mean()) if len(taus) else None


def _scores(estimate: Floats, truth: Floats) -> dict[str, float | None]:
    return {"tau": _tau(estimate, truth), "mae": float(np.nanmean(np.abs(estimate - truth)))}


def _measure(estimate: Profile, truth: Floats) -> dict[str, Any]:
    enough = estimate.trials >= _COVERED
    low, high = estimate.intervals()
    inside = (truth >= low) & (truth <= high)
    return {
        "direct": _scores(estimate.direct, truth),
        "shrunk": _scores(estimate.shrunk, truth),
        "ability": _scores(estimate.ability, truth),
        "legacy": _tau(np.where(enough, estimate.direct, np.nan), truth),
        "covered": float(enough.mean()),
        "inside": float(inside[~np.isnan(truth)].mean()),
        "accuracy": estimate.accuracy.tolist(),
    }


def _predict(
    basis: Basis, matrix: Matrix, failures: Bools, open_: Bools, rows: Bools, priority: Floats
) -> dict[str, Any]:
    """Each method from a random probe of the half that may be asked, judged on the other half."""
    budget = min(PROBE, int(open_.sum(axis=1).min()))
    probe = choose_examples("random", basis, failures, open_, priority, [budget])[budget]
    peers = Peers.of(matrix, basis.items)
    trials = probe.T.astype(np.int64)
    passes = (probe & ~failures).T.astype(np.int64)
    half = open_.T.astype(np.int64)
    _, by_ability = peers.chances("ability", (open_ & ~failures).T.astype(np.int64), half)
    truth, weights = _shares(basis, failures, rows), rows.astype(np.float64)
    size = np.maximum(weights @ basis.inside, 1)
    # what is left of the truth once ability, from all that may be asked, is known
    beyond = truth - (weights * (1 - by_ability.T)) @ basis.inside / size
    out: dict[str, Any] = {"probe": budget, "methods": {}, "rank": peers.factors.rank}
    for method in METHODS:
        p, one = peers.chances(method, passes, trials)
        share = (weights * (1 - p.T)) @ basis.inside / size
        excess = (weights * (one.T - p.T)) @ basis.inside / size
        out["methods"][method] = _judge(share, excess, truth, beyond) | {
            "loss": _log_loss(p.T, failures, rows)
        }
    own = estimate_profile(basis, failures, probe, TargetExamples.of(basis, rows))
    out["methods"]["clusters"] = _judge(own.shrunk, own.shrunk - own.ability, truth, beyond)
    out["nothing"] = float(np.nanmean(np.abs(beyond)))
    return out


def _judge(share: Floats, excess: Floats, truth: Floats, beyond: Floats) -> dict[str, float | None]:
    areas, scores = [], []
    for guess, real in zip(share, truth, strict=True):
        defined = ~np.isnan(real)
        bad, forecast = real[defined] > THRESHOLD, guess[defined] > THRESHOLD
        areas.append(area(guess[defined], bad))
        # as a fold with one class is skipped for the area, so it is here
        hits = 2 * (bad & forecast).sum() / max(bad.sum() + forecast.sum(), 1)
        scores.append(float(hits) if 0 < bad.sum() < len(bad) else np.nan)
    return {
        "auc": _mean(np.array(areas)),
        "f1": _mean(np.array(scores)),
        "excess_mae": float(np.nanmean(np.abs(excess - beyond))),
        "product": float(np.nansum(excess * beyond)),
        "power": float(np.nansum(excess**2)),
        "variance": float(np.nansum(beyond**2)),
    }


def _log_loss(p: Floats, failures: Bools, rows: Bools) -> float:
    q = np.clip(p, 0.01, 0.99)
    loss = np.where(failures, -np.log1p(-q), -np.log(q))
    return float((loss * rows).sum() / max(rows.sum(), 1))


def _mean(values: Floats) -> float | None:
    numbers = values[~np.isnan(values)]
    return float(numbers.mean()) if len(numbers) else None


def choose_adaptively(
    worth: Floats, curve: Floats, failures: Bools, open_: Bools, budget: int
) -> NDArray[np.intp]:
    """Choose examples one at a time, with a new ability estimate after each answer.

    The result has the shape (trials, budget).

    Parameters
    ----------
    worth : float64 array, shape (len(GRID), n)
        From `merit`.
    curve : float64 array, shape (n, len(GRID))
        Chance of a pass.
    failures : bool array, shape (n,)
        The model's answers; read only of examples that were asked.
    open_ : bool array, shape (trials, n)
        What may be asked; at least as many as the budget.
    budget : int

    Notes
    -----
    Maximum information at the posterior mean, prior standard normal. Lord 1980, *Applications of
    item response theory to practical testing problems*.
    """
    trials = len(open_)
    p = np.clip(curve, 1e-12, 1 - 1e-12)
    # log likelihood of the answer that the model gives, at each ability
    gain = np.where(failures[:, None], np.log1p(-p), np.log(p))
    density = np.repeat(-(irt.GRID**2)[None] / 2, trials, axis=0)
    # an example is asked at most once
    barred = np.where(open_, 0.0, np.inf)
    row, order = np.arange(trials), np.zeros((trials, budget), dtype=np.intp)
    for step in range(budget):
        mean, _ = irt.compute_moments(density)
        at = np.abs(irt.GRID[None] - mean[:, None]).argmin(axis=1)
        pick = (worth[at] - barred).argmax(axis=1)
        order[:, step] = pick
        barred[row, pick] = np.inf
        density += gain[pick]
    return order
