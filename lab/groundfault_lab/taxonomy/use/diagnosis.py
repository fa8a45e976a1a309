"""Diagnosis of a model from a few answers: its weak clusters, and the examples to run next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.base.reading import read_bytes
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError, first_line, list_some
from groundfault_lab.stats import irt
from groundfault_lab.taxonomy.fitting.stored import Stored, decode_versioned, set_fields
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.use.basis import (
    MIN_OF_EACH_CLUSTER,
    Allocation,
    Basis,
    Strategy,
    assign_groups,
    check_strategy,
    draw_by_group,
    estimate_excesses,
    match_answers,
    measure_information,
    normalise,
)
from groundfault_lab.taxonomy.use.leaf_evidence import choose_for_leaves, weigh_leaves

_LEAST = 1e-9  # variance of chance, kept above 0 for a division
_NOTHING = 1e6  # variance of a share that was not seen


@dataclass(frozen=True, eq=False)
class Profile:
    """Estimated shares of failures by cluster; every array has shape (trials, clusters).

    Attributes
    ----------
    size, trials, failures : float64 array
        Target examples in each cluster, those answered, and failures among these.
    direct : float64 array
        Share that failed of those answered; where there are none, the share over all clusters.
    prior : float64 array
        What the other models do on average; needs no answer.
    ability : float64 array
        What the model's ability and the examples' difficulty lead one to expect: the prior,
        shifted.
    shrunk : float64 array
        ``ability``, moved towards the answers in the cluster as far as other models deviate from
        their ability.
    spread : float64 array
        Standard deviation of ``shrunk`` about the share over all examples wanted.
    accuracy : float64 array, shape (trials, 2)
        Of all target examples: the share passed of those answered, and by ability.
    """

    size: Floats
    trials: Floats
    failures: Floats
    direct: Floats
    prior: Floats
    ability: Floats
    shrunk: Floats
    spread: Floats
    accuracy: Floats

    def intervals(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the ends of intervals of ``shrunk``: two arrays of shape (trials, clusters).

        Quantiles of beta distributions with its mean and spread. Assumes that examples were asked
        without regard to their answers, and that the model deviates from its ability as the other
        models do."""
        from scipy.special import betaincinv

        # a mean at 0 or 1 is an estimate that was cut off there: it is held off by its own error
        margin = np.clip(self.spread, 1e-3, 0.5)
        centre = np.clip(self.shrunk, margin, 1 - margin)
        weight = np.maximum(centre * (1 - centre) / np.maximum(self.spread, 1e-6) ** 2 - 1, 0.1)
        a, b, tail = centre * weight, (1 - centre) * weight, (1 - level) / 2
        low = np.minimum(betaincinv(a, b, tail), self.shrunk)
        high = np.maximum(betaincinv(a, b, 1 - tail), self.shrunk)
        half = 0.5 / np.maximum(self.size, 1)  # a share of a few examples has steps
        return np.maximum(low - half, 0.0), np.minimum(high + half, 1.0)


@dataclass(frozen=True, eq=False)
class TargetExamples:
    """The examples that failures are estimated on, by cluster; computed once for many profiles.

    Attributes
    ----------
    rows : float64 array, shape (trials, n)
        1 where an example counts.
    size : float64 array, shape (trials, clusters)
    failure_share : float64 array, shape (trials, clusters, len(GRID))
        Share of failures at each ability.
    noise : float64 array, shape (trials, clusters, len(GRID))
        Variance of that share, of answers that are coins.
    """

    rows: Floats
    size: Floats
    failure_share: Floats
    noise: Floats

    @classmethod
    def of(cls, basis: Basis, rows: Bools) -> TargetExamples:
        """Make them of rows, shape (trials, n)."""
        weight = rows.astype(np.float64)
        size = weight @ basis.inside
        count = np.maximum(size, 1)[:, :, None]
        failure_share = _sum_by_cluster(weight, basis, 1 - basis.curve) / count
        noise = _sum_by_cluster(weight, basis, basis.curve * (1 - basis.curve)) / count**2
        return cls(weight, size, failure_share, noise)


def estimate_profile(
    basis: Basis, failures: Bools, trials: Bools, target: TargetExamples
) -> Profile:
    """Estimate the share of failures in each cluster.

    Parameters
    ----------
    basis : Basis
        Of other models.
    failures : bool array, shape (n,)
        Failures of the model; read only where it was tried.
    trials : bool array, shape (trials, n)
        Which examples it was asked, in each of several trials.
    target : TargetExamples
        The examples that are estimated.

    Notes
    -----
    The shrunk estimate adds excesses to what ability explains. Excesses are normal with the
    covariance over clusters of the other models, times a scale that is small for most models and
    large for a few: a cluster that is asked little borrows from those that go with it. Ability and
    excesses are estimated one after the other."""
    weights = trials.astype(np.float64)
    wrong = weights * failures
    count, miss = weights @ basis.inside, wrong @ basis.inside
    total = weights.sum(axis=1, keepdims=True)
    # with half a failure and half a pass added, so that no answers give one half
    overall = (wrong.sum(axis=1, keepdims=True) + 0.5) / (total + 1)
    rate = np.where(total > 0, wrong.sum(axis=1, keepdims=True) / np.maximum(total, 1), overall)
    direct = np.where(count > 0, miss / np.maximum(count, 1), rate)
    prior = (target.rows * basis.difficulty) @ basis.inside / np.maximum(target.size, 1)
    weight = _posterior(basis, weights, wrong)
    ability = np.einsum("tcg,tg->tc", target.failure_share, weight)
    # variance of the rate by the uncertain ability
    doubt = np.einsum("tcg,tg->tc", target.failure_share**2, weight) - ability**2
    # variance of answers that are still coins when the ability is known
    luck = np.einsum("tcg,tg->tc", target.noise, weight)
    at = weight @ basis.curve.T  # chance of a pass of each example, by trial
    # failures beyond those expected at the ability, of the examples that were answered
    surprise = miss - (weights * (1 - at)) @ basis.inside
    chance = (weights * at * (1 - at)) @ basis.inside
    excess, variance = _borrow(basis, surprise, chance, count)
    # excesses are normal and may lead out of [0, 1]
    shrunk = np.clip(ability + excess, 0.0, 1.0)
    size = np.maximum(target.rows.sum(axis=1, keepdims=True), 1)
    passes = (target.rows * at).sum(axis=1, keepdims=True) / size
    deviation = np.sqrt(np.maximum(doubt, 0) + variance + luck)
    accuracy = np.hstack([1 - rate, passes])
    shares = (direct, prior, ability, shrunk, deviation)
    return Profile(target.size, count, miss, *shares, accuracy)


def _sum_by_cluster(weight: Floats, basis: Basis, values: Floats) -> Floats:
    """Sum values over the examples of each cluster: shape (trials, clusters, len(GRID))."""
    # by cluster, not one product with all examples: most entries of `inside` are 0
    parts = [np.flatnonzero(column) for column in basis.inside.T]
    if not parts:
        return np.zeros((len(weight), 0, values.shape[1]))
    return np.stack([weight[:, at] @ values[at] for at in parts], axis=1)


def _posterior(basis: Basis, trials: Floats, failures_by_trial: Floats) -> Floats:
    """Return the posterior of the ability on `irt.GRID`: (trials, len(GRID)), rows sum to 1."""
    passes, failures = basis.log_chances
    # log likelihood plus the log of a standard normal prior
    density = (trials - failures_by_trial) @ passes + failures_by_trial @ failures - irt.GRID**2 / 2
    return normalise(density)


def _borrow(basis: Basis, surprise: Floats, chance: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Estimate excess shares and their variances from surprises: two of (trials, clusters)."""
    some = count > 0
    share = np.where(some, surprise / np.maximum(count, 1), 0.0)
    # a cluster without answers gets a variance so large that its share has no weight
    noise = np.where(some, np.maximum(chance, _LEAST) / np.maximum(count, 1) ** 2, _NOTHING)
    estimate, variance, likely = estimate_excesses(basis.covariance, share, noise)
    weight = basis.weights[:, None] * np.exp(likely - likely.max(axis=0, initial=-np.inf))
    weight = (weight / weight.sum(axis=0))[:, :, None]
    mean = (weight * estimate).sum(axis=0)
    return mean, (weight * (variance + estimate**2)).sum(axis=0) - mean**2


@dataclass(frozen=True)
class Weakness:
    """The failures of a model in one cluster, as far as they are known.

    Attributes
    ----------
    cluster : int
        Its number in the taxonomy.
    name : str
    size, asked, failed : int
        Examples of the cluster, those that the model answered, and those it failed.
    rate, low, high : float
        Share of its examples that the model fails: best guess, and ends of an interval.
    expected : float
        What its ability and their difficulty explain.
    published : bool
        Whether the taxonomy publishes the cluster.
    excess : float
        Failures beyond what ability explains.
    decision : {"", "fails", "cleared", "open"}
        Of a leaf: whether the model fails more there than its ability explains.
    e_value : float
        The evidence that it does; 1 is none. Of a leaf alone.
    """

    cluster: int
    name: str
    size: int
    asked: int
    failed: int
    rate: float
    low: float
    high: float
    expected: float
    published: bool
    decision: str = ""
    e_value: float = 1.0
    excess: float = field(init=False)

    def __post_init__(self) -> None:
        set_fields(self, excess=self.rate - self.expected)


@dataclass(frozen=True)
class Diagnosis(Stored):
    """The conclusion from a model's answers so far, and the examples to ask it next.

    Attributes
    ----------
    weaknesses : tuple of Weakness
        Clusters, the one failed most first.
    next : tuple of str
        Examples to run, in order.
    answers : int
        Examples answered so far that the taxonomy knows.
    unknown : int
        Examples answered that it does not know; they count for nothing.
    strategy : str
    level : float
        Of the intervals.
    verdict : str
        The conclusion in a sentence.
    """

    weaknesses: tuple[Weakness, ...]
    next: tuple[str, ...]
    answers: int
    unknown: int
    strategy: str
    level: float
    verdict: str = field(init=False)

    def __post_init__(self) -> None:
        set_fields(self, verdict=self._conclude())

    def _conclude(self) -> str:
        if not self.weaknesses:
            return (
                "The taxonomy has no clusters: nothing was seen in it beyond ability, so there "
                "are none to rank."
            )
        if not self.answers:
            return (
                "No answers of the model yet: what is shown is what other models lead one to "
                "expect."
            )
        if any(w.decision for w in self.weaknesses):
            return self._conclude_leaves()
        # only published clusters: an unstable one is no failure mode to report
        apart = [w for w in self.weaknesses if w.published and not w.low <= w.expected <= w.high]
        names = ", ".join(w.name for w in apart) or "none of the published clusters"
        return (
            f"After {self.answers:,} answers, the model departs from what its ability explains in "
            f"{names} ({self.level:.0%} intervals, one cluster at a time)."
        )

    def _conclude_leaves(self) -> str:
        names = {
            decision: [w.name for w in self.weaknesses if w.decision == decision]
            for decision in ("fails", "cleared", "open")
        }
        fails = list_some(names["fails"]) if names["fails"] else "no leaf yet"
        return (
            f"After {self.answers:,} answers, the model fails more than its ability explains in "
            f"{fails}. {len(names['cleared'])} leaves are cleared, {len(names['open'])} open. With "
            f"{self.level:.0%} confidence no leaf is named wrongly, whenever you stop."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain words and numbers; decisions are of leaves alone."""
        data = super().to_dict()
        for one in data["weaknesses"]:
            if not one.get("decision"):
                one.pop("decision", None)
                one.pop("e_value", None)
        return data

    @classmethod
    def load(cls, path: str | Path) -> Diagnosis:
        """Read a diagnosis that was written as JSON.

        Raises
        ------
        InputError
            If there is none, or it was written by a newer version.
        """
        try:
            # 0.1.0 wrote no version
            return decode_versioned(read_bytes(path), cls, "groundfault_diagnosis", default=1)
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a diagnosis: {first_line(error)}") from None


def diagnose(
    taxonomy: Taxonomy,
    results: Evidence | None = None,
    *,
    budget: int = 50,
    strategy: Strategy = "taxonomy",
    allocation: Allocation = "proportional",
    benchmark: str | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> Diagnosis:
    """Say where a new model fails, as far as its answers tell, and which examples to run next.

    Parameters
    ----------
    taxonomy : Taxonomy
        Fitted without the model.
    results : Evidence, optional
        Answers of one model so far, to examples of the taxonomy; left out, none.
    budget : int
        Number of examples to run next. Fewer where there are not as many left.
    strategy : {"random", "benchmark", "difficulty", "irt", "uncertainty", "taxonomy", "leaves"}
        Strategy that picks them. ``irt``, ``uncertainty`` and ``leaves`` choose at the present
        estimate of ability: run a few and ask again. ``leaves`` asks for the leaves that are
        still open.
    allocation : {"proportional", "uniform"}
        Allocation to clusters, for the strategy taxonomy. It is beyond three of each cluster.
    benchmark : str, optional
        Column of the taxonomy's examples with their benchmark, for the strategy benchmark.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed that draws them.

    Raises
    ------
    InputError
        If the answers are of several models, of a model that the taxonomy was fitted to, or of
        other examples.
    PlanError
        If a word or the budget is impossible.
    """
    check_strategy(strategy, allocation, budget)
    if not 0 < level < 1:
        raise PlanError(f"level must be in (0, 1), not {level:g}")
    matrix = taxonomy.matrix
    if benchmark is not None:
        matrix.attribute(benchmark, "benchmark")
    basis = Basis.of(matrix, taxonomy.inside, benchmark)
    has_answer, failures, unknown = match_answers(results, taxonomy)
    every = np.ones((1, len(basis)), dtype=bool)
    estimates = estimate_profile(basis, failures, has_answer[None], TargetExamples.of(basis, every))
    rng = np.random.default_rng(seed)
    decisions, e_values = _decide_leaves(taxonomy, basis, has_answer, failures, level)
    if strategy == "leaves":
        if not taxonomy.leaves:
            raise InputError("the taxonomy has no leaves: take the strategy taxonomy, or another")
        wanted = [c for c in np.argsort(-e_values, kind="stable") if decisions[c] == "open"]
        asked = (has_answer, has_answer & failures, np.array(wanted, dtype=np.intp))
        count = min(budget, int((~has_answer).sum()))
        rows = choose_for_leaves(basis, *asked, count, rng.random(len(basis)))
    else:
        rows = _choose_next(basis, has_answer, failures, strategy, allocation, budget, rng)
    weaknesses = _list_weaknesses(taxonomy, estimates, level, decisions, e_values)
    examples = matrix.examples
    following = tuple(examples[row] for row in rows)
    return Diagnosis(weaknesses, following, int(has_answer.sum()), unknown, strategy, level)


def _choose_next(
    basis: Basis,
    has_answer: Bools,
    failures: Bools,
    strategy: Strategy,
    allocation: Allocation,
    budget: int,
    rng: np.random.Generator,
) -> Places:
    count = min(budget, int((~has_answer).sum()))
    priority = rng.random(len(basis))
    # both take the best at the present ability; a batch is not adaptive within itself
    if strategy in ("irt", "uncertainty"):
        answers = (flags[None].astype(np.float64) for flags in (has_answer, has_answer & failures))
        weight = _posterior(basis, *answers)
        at = int(np.abs(irt.GRID - weight[0] @ irt.GRID).argmin())
        worth = np.where(has_answer, -np.inf, measure_information(strategy, basis)[at])
        # random among equals, so that repeated diagnoses do not favour early names
        return np.lexsort((priority, -worth))[:count]
    groups = assign_groups(strategy, basis)
    # ``k_min`` of the paper, for its own strategy only
    least = MIN_OF_EACH_CLUSTER if strategy == "taxonomy" else 0
    draws = (groups, ~has_answer, priority, count)
    return draw_by_group(*draws, min_each=least, how=allocation, has_answer=has_answer)


def _decide_leaves(
    taxonomy: Taxonomy, basis: Basis, has_answer: Bools, failures: Bools, level: float
) -> tuple[list[str], Floats]:
    """Decide which leaves the model fails, at any time; other clusters have no decision."""
    fails, passes = weigh_leaves(basis, has_answer, has_answer & failures)
    # Bonferroni over the leaves
    bar, is_leaf = len(taxonomy.leaves) / (1 - level), [bool(c.rule) for c in taxonomy.clusters]
    decisions = np.where(fails >= bar, "fails", np.where(passes >= bar, "cleared", "open"))
    return np.where(is_leaf, decisions, "").tolist(), np.where(is_leaf, fails, 1.0)


def _list_weaknesses(
    taxonomy: Taxonomy,
    estimates: Profile,
    level: float,
    decisions: Sequence[str],
    e_values: Floats,
) -> tuple[Weakness, ...]:
    low, high = estimates.intervals(level)
    rows = [
        Weakness(
            cluster=cluster.number,
            name=cluster.name,
            size=cluster.size,
            asked=int(estimates.trials[0, c]),
            failed=int(estimates.failures[0, c]),
            rate=float(estimates.shrunk[0, c]),
            low=float(low[0, c]),
            high=float(high[0, c]),
            expected=float(estimates.ability[0, c]),
            published=cluster.published,
            decision=decisions[c],
            e_value=float(e_values[c]),
        )
        for c, cluster in enumerate(taxonomy.clusters)
    ]
    return tuple(sorted(rows, key=lambda w: (-w.rate, w.cluster)))
