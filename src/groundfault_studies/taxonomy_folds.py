"""One fold of leave-one-model-out: how well a model is diagnosed, and predicted, by a taxonomy that
never met it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.one_ability import OneAbility
from groundfault.stats.ranks import area, tau_b
from groundfault.taxonomy.fitting.matrix import Matrix
from groundfault.taxonomy.fitting.nulls import prepared, signal
from groundfault.taxonomy.fitting.partition import partition
from groundfault.taxonomy.fitting.settings import Settings
from groundfault.taxonomy.use import strategies
from groundfault.taxonomy.use.basis import Basis
from groundfault.taxonomy.use.diagnosis import Profile, Wanted, profile
from groundfault.taxonomy.use.prediction import METHODS, Peers
from groundfault.taxonomy.use.strategies import STRATEGIES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64]

BUDGETS = (10, 25, 50, 100, 250, 500)
PROBE = 50
UNIFORM = "taxonomy, uniform"
THRESHOLD = 0.5

_COVERED = 3
_WORLDS = 19
_ROUGH = 3e-5  # gain of the mean log-likelihood: what is left of it is far below what one null world draws


@dataclass(frozen=True, eq=False)
class Fold:
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
        basis, kept = self._basis(name)
        row: dict[str, Any] = {"model": name, "clusters": basis.clusters, "examples": len(basis)}
        if basis.clusters < 2:
            return row
        own = self.matrix.select([name]).take(_rows(self.matrix, kept.examples))
        answered = own.trials[:, 0] > 0
        failed = answered & (own.values[:, 0] == 0)
        rng = self.settings.rng("halves and draws", number)
        priority = rng.random((self.trials, len(basis)))
        first = _halves(basis.labels, answered, rng, self.trials)
        everything = np.repeat(answered[None], self.trials, axis=0)
        modes = {"paper": (everything, everything), "held out": (first, everything & ~first)}
        for mode, (open_, wanted) in modes.items():
            if self.labels is None or mode == "paper":
                row[mode] = self._diagnosed(basis, failed, open_, wanted, priority)
        if self.predict:
            row["prediction"] = _predicted(
                basis, kept, failed, first, everything & ~first, priority
            )
        return row

    def _basis(self, name: str) -> tuple[Basis, Matrix]:
        others = self.matrix.without(name)
        if self.labels is not None:
            kept = self.matrix.take(_rows(self.matrix, tuple(self.labels))).without(name)
            labels = np.array([self.labels[example] - 1 for example in kept.examples])
            return Basis.of(kept, labels, self.benchmark), kept
        frontier = tuple(m for m in self.settings.frontier if m != name)
        settings = replace(self.settings, frontier=frontier, worlds=_WORLDS)
        kept = prepared(others, settings)
        dimensions = None
        if settings.reducer == "signal":
            population = OneAbility.fit(others.passed, others.trials, tolerance=_ROUGH)
            dimensions, _ = signal(others, settings, None, population)
        return Basis.of(kept, partition(kept, settings, dimensions).labels, self.benchmark), kept

    def _diagnosed(
        self, basis: Basis, failed: Bools, open_: Bools, rows: Bools, priority: Floats
    ) -> dict[str, Any]:
        wanted = Wanted.of(basis, rows)
        truth = _shares(basis, failed, rows)
        none = np.zeros_like(open_)
        prior = profile(basis, failed, none, wanted)
        whole = profile(basis, failed, open_, wanted)
        out: dict[str, Any] = {
            "prior": _scores(prior.prior, truth),
            "ceiling": _scores(whole.direct, truth),
            "accuracy": float((rows & ~failed).sum() / max(rows.sum(), 1)),
            "clusters": int(basis.clusters),
        }
        budgets = [b for b in self.budgets if b <= int(open_.sum(axis=1).min())]
        for strategy in (*STRATEGIES, UNIFORM):
            if strategy == "benchmark" and basis.benchmark is None:
                continue
            asked = chosen(strategy, basis, failed, open_, priority, budgets)
            out[strategy] = {
                str(b): _measured(profile(basis, failed, a, wanted), truth)
                for b, a in asked.items()
            }
        return out


def chosen(
    strategy: str,
    basis: Basis,
    failed: Bools,
    open_: Bools,
    priority: Floats,
    budgets: Sequence[int],
) -> dict[int, Bools]:
    """What a strategy asks with each budget: bool arrays, shape (trials, n)."""
    out = {budget: np.zeros_like(open_) for budget in budgets}
    if not budgets:
        return out
    if strategy in ("irt", "uncertainty"):
        worth = strategies.merit(strategy, basis)  # type: ignore[arg-type]
        order = strategies.adaptive(worth, basis.curve, failed, open_, max(budgets))
        for budget, asked in out.items():
            np.put_along_axis(asked, order[:, :budget], True, axis=1)
        return out
    kind: Any = "taxonomy" if strategy == UNIFORM else strategy
    groups = strategies.groups_of(kind, basis)
    least = strategies.LEAST if kind == "taxonomy" else 0
    how: Any = "uniform" if strategy == UNIFORM else "proportional"
    for budget, asked in out.items():
        for trial, (free, draw) in enumerate(zip(open_, priority, strict=True)):
            asked[
                trial, strategies.stratified(groups, free, draw, budget, least=least, how=how)
            ] = True
    return out


def _rows(matrix: Matrix, names: Sequence[str]) -> NDArray[np.intp]:
    at = {name: i for i, name in enumerate(matrix.examples)}
    return np.array(sorted(at[name] for name in names), dtype=np.intp)


def _halves(labels: Labels, answered: Bools, rng: np.random.Generator, trials: int) -> Bools:
    """Half of each cluster, at random, in each trial: the half that may be asked."""
    first = np.zeros((trials, len(labels)), dtype=bool)
    for trial in range(trials):
        for cluster in range(-1, int(labels.max(initial=-1)) + 1):
            at = rng.permutation(np.flatnonzero((labels == cluster) & answered))
            odd = int(rng.integers(2)) * (len(at) % 2)
            first[trial, at[: len(at) // 2 + odd]] = True
    return first


def _shares(basis: Basis, failed: Bools, rows: Bools) -> Floats:
    """Share of failures of each cluster: shape (trials, clusters); NaN where nothing counts."""
    size = rows.astype(np.float64) @ basis.inside
    miss = (rows & failed).astype(np.float64) @ basis.inside
    return np.where(size > 0, miss / np.maximum(size, 1), np.nan)


def _tau(estimate: Floats, truth: Floats) -> float | None:
    """Mean tau-b over trials; an estimate that ranks nothing recovers nothing, a truth without
    order is left out.
    """
    same = np.nanmax(truth, axis=1) - np.nanmin(truth, axis=1) < 1e-12
    found = np.nan_to_num(tau_b(estimate, truth))[~same]
    return float(found.mean()) if len(found) else None


def _scores(estimate: Floats, truth: Floats) -> dict[str, float | None]:
    return {"tau": _tau(estimate, truth), "mae": float(np.nanmean(np.abs(estimate - truth)))}


def _measured(found: Profile, truth: Floats) -> dict[str, Any]:
    covered = found.asked >= _COVERED
    low, high = found.intervals()
    inside = (truth >= low) & (truth <= high)
    return {
        "direct": _scores(found.direct, truth),
        "shrunk": _scores(found.shrunk, truth),
        "ability": _scores(found.ability, truth),
        "legacy": _tau(np.where(covered, found.direct, np.nan), truth),
        "covered": float(covered.mean()),
        "inside": float(inside[~np.isnan(truth)].mean()),
        "accuracy": found.accuracy.tolist(),
    }


def _predicted(
    basis: Basis, kept: Matrix, failed: Bools, open_: Bools, rows: Bools, priority: Floats
) -> dict[str, Any]:
    """Each method from a random probe of the half that may be asked, judged on the other half."""
    budget = min(PROBE, int(open_.sum(axis=1).min()))
    probe = chosen("random", basis, failed, open_, priority, [budget])[budget]
    peers = Peers.of(kept, basis.items)
    trials = probe.T.astype(np.int64)
    passed = (probe & ~failed).T.astype(np.int64)
    half = open_.T.astype(np.int64)
    _, settled = peers.chances("ability", (open_ & ~failed).T.astype(np.int64), half)
    truth, wanted = _shares(basis, failed, rows), rows.astype(np.float64)
    size = np.maximum(wanted @ basis.inside, 1)
    # what is left of the truth once ability, from all that may be asked, is known
    beyond = truth - (wanted * (1 - settled.T)) @ basis.inside / size
    out: dict[str, Any] = {"probe": budget, "methods": {}, "rank": peers.factors.rank}
    for method in METHODS:
        p, one = peers.chances(method, passed, trials)
        share = (wanted * (1 - p.T)) @ basis.inside / size
        excess = (wanted * (one.T - p.T)) @ basis.inside / size
        out["methods"][method] = _judged(share, excess, truth, beyond) | {
            "loss": _log_loss(p.T, failed, rows)
        }
    own = profile(basis, failed, probe, Wanted.of(basis, rows))
    out["methods"]["clusters"] = _judged(own.shrunk, own.shrunk - own.ability, truth, beyond)
    out["nothing"] = float(np.nanmean(np.abs(beyond)))
    return out


def _judged(
    share: Floats, excess: Floats, truth: Floats, beyond: Floats
) -> dict[str, float | None]:
    areas, scores = [], []
    for guess, real in zip(share, truth, strict=True):
        known = ~np.isnan(real)
        bad, said = real[known] > THRESHOLD, guess[known] > THRESHOLD
        areas.append(area(guess[known], bad))
        # as a fold with one class is skipped for the area, so it is here
        hits = 2 * (bad & said).sum() / max(bad.sum() + said.sum(), 1)
        scores.append(float(hits) if 0 < bad.sum() < len(bad) else np.nan)
    return {
        "auc": _mean(np.array(areas)),
        "f1": _mean(np.array(scores)),
        "excess_mae": float(np.nanmean(np.abs(excess - beyond))),
        "product": float(np.nansum(excess * beyond)),
        "power": float(np.nansum(excess**2)),
        "variance": float(np.nansum(beyond**2)),
    }


def _log_loss(p: Floats, failed: Bools, rows: Bools) -> float:
    q = np.clip(p, 0.01, 0.99)
    loss = np.where(failed, -np.log1p(-q), -np.log(q))
    return float((loss * rows).sum() / max(rows.sum(), 1))


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
