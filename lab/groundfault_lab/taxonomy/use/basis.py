"""Basis: what other models' answers say of examples, and so which of them to ask a new model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.evidence import Evidence
from groundfault.core.status import Status
from groundfault.errors import InputError, PlanError, require_word
from groundfault_lab.stats import irt
from groundfault_lab.taxonomy.fitting.matrix import SLACK, Matrix
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy

# a spread of a third of a point in failure rates: less cannot be distinguished from none
_LEAST = 1e-5
# of expectation-maximisation: a fixed number, so that no tolerance decides when it ends
_ROUNDS = 50
SCALES: Floats = np.array([0.3, 0.6, 1.0, 2.0])
"""Of a model's excesses: most models differ little from their ability, and a few much."""

Strategy = Literal["random", "benchmark", "difficulty", "irt", "uncertainty", "taxonomy", "leaves"]
Allocation = Literal["proportional", "uniform"]

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)[:-1]
"""Those that estimate failure rates; ``leaves`` decides which leaves a model fails."""
MIN_OF_EACH_CLUSTER = 3
"""Examples of each cluster that the taxonomy strategy asks first: ``k_min`` of the paper."""

_DIFFICULTIES = 5  # strata of the strategy by difficulty: fifths


@dataclass(frozen=True, eq=False)
class Basis:
    """Clusters, difficulties and item curves of examples, and how models deviate from one ability.

    Attributes
    ----------
    labels : int64 array, shape (n,)
        First cluster of each example from 0; -1 is none.
    difficulty : float64 array, shape (n,)
        Share of the other models that failed it.
    items : ItemResponse
        Two parameters an item, fitted to the other models.
    covariance : float64 array, shape (clusters, clusters)
        Of the failures of a model beyond what its ability explains, over the other models.
    weights : float64 array, shape (len(SCALES),)
        Shares of models whose excesses are so many times as large as that.
    benchmark : int64 array, shape (n,), optional
        Where each example comes from.
    members : float64 array, shape (n, clusters), optional
        1 where an example is in a cluster; left out, by ``labels``. Leaves overlap.
    """

    labels: Ints
    difficulty: Floats
    items: irt.ItemResponse
    covariance: Floats
    weights: Floats
    benchmark: Ints | None = None
    members: Floats | None = None

    @classmethod
    def of(cls, matrix: Matrix, groups: Ints | Bools, benchmark: str | None = None) -> Basis:
        """Read a basis off the answers of other models.

        Parameters
        ----------
        matrix : Matrix
            Only informative examples, without the model to be diagnosed.
        groups : int64 array, shape (n,), or bool array, shape (n, clusters)
            The cluster of each example, -1 for none; or which clusters it is in.
        benchmark : str, optional
            Column of the matrix's attributes.
        """
        passes, trials = matrix.binary
        # two parameters an item, whatever the taxonomy's settings: diagnosis needs slopes
        items = irt.fit(passes, trials)
        difficulty = 1 - passes.sum(axis=1) / np.maximum(trials.sum(axis=1), 1)
        source = None
        if benchmark is not None:
            ranks = matrix.attributes[benchmark].fill_null("unknown").rank("dense").to_numpy()
            source = (ranks - 1).astype(np.int64)
        members = _members(groups) if groups.ndim == 1 else groups.astype(np.float64)
        labels = _find_first(members)
        excess, chance = _measure_excess(trials - passes, trials, items, members)
        covariance = _estimate_covariance(excess, chance)
        weights = _estimate_weights(excess, chance, covariance)
        return cls(labels, difficulty, items, covariance, weights, source, members)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def clusters(self) -> int:
        """Return the number of clusters."""
        return len(self.covariance)

    @cached_property
    def inside(self) -> Floats:
        """Return 1 where an example is in a cluster: shape (n, clusters)."""
        return _members(self.labels) if self.members is None else self.members

    @cached_property
    def curve(self) -> Floats:
        """Return chances of a pass at each ability of `irt.GRID`: shape (n, len(GRID))."""
        return irt.compute_curves(self.items)

    @cached_property
    def log_chances(self) -> tuple[Floats, Floats]:
        """Return logs of the chances of a pass and of a failure, as `curve`."""
        # logs of 0 would make one answer decide everything
        p = np.clip(self.curve, 1e-12, 1 - 1e-12)
        return np.log(p), np.log1p(-p)


def _find_first(members: Floats) -> Ints:
    first = members.argmax(axis=1) if members.shape[1] else np.zeros(len(members))
    return np.where(members.any(axis=1), first, -1).astype(np.int64)


def _members(labels: Ints | Bools) -> Floats:
    return np.asarray(labels[:, None] == np.arange(labels.max(initial=-1) + 1), dtype=np.float64)


def _measure_excess(
    failures: Ints, trials: Ints, items: irt.ItemResponse, inside: Floats
) -> tuple[Floats, Floats]:
    """Measure excess failures by model and cluster, and their chance variance: (m, clusters)."""
    p = items.probability()
    # a model without answers in a cluster has excess 0 and variance 0
    count = np.maximum(inside.T @ trials, 1)
    excess = inside.T @ (failures - trials * (1 - p)) / count
    return excess.T, (inside.T @ (trials * p * (1 - p)) / count**2).T


def _estimate_covariance(excess: Floats, chance: Floats) -> Floats:
    """Estimate the covariance over models of excess failures, less chance; positive definite."""
    # observed covariance minus mean sampling variance: a method-of-moments estimate
    value, vector = np.linalg.eigh(excess.T @ excess / len(excess) - np.diag(chance.mean(axis=0)))
    # chance may exceed what was seen, so eigenvalues are cut at a small positive one
    return np.asarray((vector * np.maximum(value, _LEAST)) @ vector.T)


def _estimate_weights(excess: Floats, chance: Floats, covariance: Floats) -> Floats:
    """Estimate shares of models with each of `SCALES`, by expectation-maximisation."""
    likely = estimate_excesses(covariance, excess, chance)[2]
    weight = np.full(len(SCALES), 1 / len(SCALES))
    for _ in range(_ROUNDS if likely.shape[1] else 0):
        # the maximum is subtracted first, for exp would underflow to 0 / 0
        share = weight[:, None] * np.exp(likely - likely.max(axis=0))
        # one model more of each
        total = likely.shape[1] + len(SCALES)
        weight = ((share / share.sum(axis=0)).sum(axis=1) + 1) / total
    return weight


def estimate_excesses(
    covariance: Floats, share: Floats, noise: Floats
) -> tuple[Floats, Floats, Floats]:
    """Estimate excesses for each of `SCALES`, by the best linear predictor.

    Parameters
    ----------
    covariance : float64 array, shape (clusters, clusters)
    share, noise : float64 arrays, shape (q, clusters)
        Excesses seen and their variances by chance.

    Returns
    -------
    float64 arrays, shapes (scales, q, clusters) twice and (scales, q)
        Estimates, their variances, and log likelihoods of what was seen, up to a constant.
    """
    # best linear prediction (kriging) with covariance prior + noise, for all scales at once
    k = len(covariance)
    prior = SCALES[:, None, None, None] ** 2 * covariance
    total_variance = prior + noise[:, :, None] * np.eye(k)
    priors = np.broadcast_to(prior, total_variance.shape)
    gain = np.linalg.solve(total_variance, priors).swapaxes(-1, -2)
    estimate = np.einsum("sqcd,qd->sqc", gain, share)
    variance = np.einsum("sqcc->sqc", prior - gain @ prior)
    shares = np.broadcast_to(share, total_variance.shape[:-1])[..., None]
    whitened = np.linalg.solve(total_variance, shares)[..., 0]
    likely = -(np.linalg.slogdet(total_variance)[1] + np.einsum("sqc,qc->sq", whitened, share)) / 2
    return estimate, np.maximum(variance, 0.0), likely


def normalise(log_density: Floats) -> Floats:
    """Return the chances, a row a model, whose logs these are but for a constant."""
    # the largest first taken off: log densities of many answers underflow
    weight = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def match_answers(results: Evidence | None, taxonomy: Taxonomy) -> tuple[Bools, Bools, int]:
    """Find which of the taxonomy's examples a model answered and failed; how many others.

    Repeats are reduced by the taxonomy's rule of what a pass is.

    Raises
    ------
    InputError
        As `diagnose` does.
    """
    matrix, n = taxonomy.matrix, len(taxonomy.matrix)
    passes, tries = np.zeros((2, n), dtype=np.int64)
    if results is None:
        return tries > 0, tries > 0, 0
    _check_one_model(results.models, taxonomy.matrix.models)
    if results.roles.id is None:
        raise InputError(
            "the answers have no ids, so it is not known which examples they are of: name the "
            "column (id=)"
        )
    rows = matrix.find_rows(results)
    answered = (results.status == Status.SCORED).to_numpy() & (rows >= 0)
    passed = 1 - results.loss.fill_null(1.0).to_numpy() >= taxonomy.settings.score - SLACK
    np.add.at(tries, rows[answered], 1)
    np.add.at(passes, rows[answered], passed[answered])
    # examples that were set apart are the taxonomy's too, and no sign of other ids
    names = results.frame[results.roles.id].cast(str).to_list()
    unknown = len({name for name in names if name not in matrix.places})
    apart = matrix.apart
    known = {*apart.all_failed, *apart.all_passed, *apart.unanswered, *apart.easy}
    if names and unknown == len(set(names)) and known.isdisjoint(names):
        raise InputError(
            f"none of the {unknown:,} examples answered is one of the taxonomy's: the ids do not "
            f"match; they look like {names[0]!r}, the taxonomy's like {matrix.examples[0]!r}"
        )
    return tries > 0, passes < matrix.rate * tries - SLACK, unknown


def _check_one_model(models: Sequence[str], fit_models: Sequence[str]) -> None:
    if len(models) > 1:
        some = ", ".join(models[:6]) + (", ..." if len(models) > 6 else "")
        raise InputError(
            f"the answers are of {len(models)} models ({some}): choose one (select_model, or "
            "--name)"
        )
    overlap = [name for name in models if name in fit_models]
    if overlap:
        raise InputError(
            f"model {overlap[0]!r} is one that the taxonomy was fitted to, so its diagnosis would "
            "be circular; fit the taxonomy without it"
        )


def check_strategy(strategy: str, allocation: str = "proportional", budget: int = 1) -> None:
    """Refuse unknown words and a budget below 1.

    Raises
    ------
    PlanError
        Always, where there is anything to refuse.
    """
    require_word("strategy", strategy, get_args(Strategy))
    require_word("allocation", allocation, get_args(Allocation))
    if budget < 1:
        raise PlanError(f"a budget is at least 1 example, not {budget}")


def divide_budget(
    size: Ints, budget: int, *, min_each: int = 0, how: Allocation = "proportional"
) -> Ints:
    """Divide a budget: how many examples of each group to ask.

    Parameters
    ----------
    size : int64 array, shape (k,)
        Examples there are of each group.
    budget : int
    min_each : int
        Asked of each group first, the largest group first; with too small a budget the smallest
        groups get none.
    how : {"proportional", "uniform"}
        What is left of the budget goes by size, largest remainders first; or one example of each
        group in turn, in which case ``min_each`` plays no part.

    Returns
    -------
    int64 array, shape (k,)
        At most ``size``; sums to the budget, or to all there is.

    Examples
    --------
    >>> quotas(np.array([60, 30, 10]), 19, least=3).tolist()
    [9, 6, 4]
    >>> quotas(np.array([60, 30, 2]), 11, how="uniform").tolist()
    [5, 4, 2]
    """
    counts = np.zeros(len(size), dtype=np.int64)
    remainder = min(budget, int(size.sum()))
    # the largest first, so that a small budget is not spent on tiny groups
    order = np.argsort(-size, kind="stable")
    if how == "uniform":
        while remainder:
            for group in order[counts[order] < size[order]][:remainder]:
                counts[group] += 1
                remainder -= 1
        return counts
    for group in order:
        counts[group] = min(min_each, int(size[group]), remainder)
        remainder -= int(counts[group])
    while remainder:
        room = counts < size
        share = np.where(room, size, 0) / size[room].sum() * remainder
        # largest remainders; a full group gives its part back, hence the loop
        more = np.minimum(np.floor(share).astype(np.int64), size - counts)
        by_rest = np.lexsort((-size, -(share - more) * room))
        for group in by_rest[: remainder - int(more.sum())]:
            more[group] += int(counts[group] + more[group] < size[group] and room[group])
        counts += more
        remainder -= int(more.sum())
    return counts


def assign_groups(strategy: Strategy, basis: Basis) -> Ints:
    """Assign each example to a group, by strategy; -1 is asked last.

    Raises
    ------
    InputError
        If benchmarks are asked for and not known.
    """
    if strategy == "taxonomy":
        return basis.labels
    if strategy == "difficulty":
        # ranks, not values: many examples have the same difficulty, and fifths must be even
        rank = np.argsort(np.argsort(basis.difficulty, kind="stable"), kind="stable")
        return (rank * _DIFFICULTIES // max(len(rank), 1)).astype(np.int64)
    if strategy == "benchmark":
        if basis.benchmark is None:
            raise InputError(
                "stratifying by benchmark needs to know where each example comes from: name its "
                "column (benchmark=, or --benchmark)"
            )
        return basis.benchmark
    return np.zeros(len(basis), dtype=np.int64)


def draw_by_group(
    groups: Ints,
    open_: Bools,
    priority: Floats,
    budget: int,
    *,
    min_each: int = 0,
    how: Allocation = "proportional",
    has_answer: Bools | None = None,
) -> Places:
    """Draw examples to ask, at random within groups, in the order of the draw.

    Parameters
    ----------
    groups : int64 array, shape (n,)
        Negative is asked only when nothing else is left.
    open_ : bool array, shape (n,)
        What may be asked.
    priority : float64 array, shape (n,)
        Uniform draws; the smallest of a group go first, so that strategies with the same draws are
        comparable.
    budget, min_each, how : optional
        As for `quotas`.
    has_answer : bool array, shape (n,), optional
        What was answered before and counts towards the quotas of its group.
    """
    # what was answered already counts towards a group's quota
    before = np.zeros(len(groups), dtype=bool) if has_answer is None else has_answer & ~open_
    count = int(groups.max(initial=-1)) + 1
    inside = groups >= 0
    free = np.bincount(groups[open_ & inside], minlength=count)
    counts = np.bincount(groups[before & inside], minlength=count)
    targets = divide_budget(
        free + counts, min(budget, int(free.sum())) + int(counts.sum()), min_each=min_each, how=how
    )
    # groups asked too often before have taken from the others what cannot be given back
    short = np.clip(targets - counts, 0, free)
    if short.sum() > budget:
        short = divide_budget(short, budget)
    at = np.flatnonzero(open_ & inside)
    # by group, and within it by the draws
    at = at[np.lexsort((priority[at], groups[at]))]
    rows = at
    if len(at):
        start = np.r_[0, np.cumsum(np.bincount(groups[at], minlength=count))[:-1]]
        rows = at[np.arange(len(at)) - start[groups[at]] < short[groups[at]]]
    rows = rows[np.argsort(priority[rows], kind="stable")]
    # groups are exhausted: fill up from anything that is open, noise last
    if len(rows) < budget:
        rest = np.setdiff1d(np.flatnonzero(open_), rows)
        rest = rest[np.lexsort((priority[rest], ~inside[rest]))]
        rows = np.r_[rows, rest[: budget - len(rows)]]
    return rows


def measure_information(strategy: Strategy, basis: Basis) -> Floats:
    """Measure the worth of an answer at each ability of `irt.GRID`: shape (len(GRID), n).

    Fisher's information for ``irt``; nearness of the chance of a pass to one half for
    ``uncertainty``."""
    if strategy == "uncertainty":
        return np.ascontiguousarray(-np.abs(basis.curve - 0.5).T)
    return np.ascontiguousarray(basis.items.information(irt.GRID).T)
