"""Policies that learn which prompts fail: adaptive sampling, and Thompson sampling of rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Bools, Floats
from groundfault.base.long_work import one_thread
from groundfault.errors import PlanError, require_word
from groundfault.probes.policies import Exhaustive, StratifiedPrompts, UniformPrompts
from groundfault.probes.policies.history import (
    Keys,
    NamedPolicy,
    PromptHistory,
    PromptPolicy,
    weigh_tasks_equally,
)

Prior = Literal["neutral", "stressor"]
Schedule = Literal["linear", "geometric", "constant"]
Respects = list[tuple[Keys, float]]
"""In what keys can be the same: a code for every key, and how much it counts that codes agree."""

STRESSOR = 0.5
"""First score that the prior of that name gives each option but the first of its group; mismatches
alone give at most 1, so it is half of the strongest evidence.
"""
# rates are kept this far from 0 and 1, where log-odds are infinite
_EDGE = 1e-9
# from tasks or options that differ much (a rate counts as one query) to those that hardly do
_WEIGHTS = 2.0 ** np.arange(7)


@dataclass(frozen=True)
class Caps(NamedPolicy):
    """Component-adaptive prompt sampling, the paper's: scores of options, and a softmax that cools.

    Parameters
    ----------
    repeats : bool
        As in the paper, or none.
    prior : {"neutral", "stressor"}
        First scores: 0 for all, or `STRESSOR` for each option but the first of its group.
    schedule : {"linear", "geometric", "constant"}
        How the temperature falls from ``start``: to 0 behind the last batch but never below
        ``floor``, as in the paper; by one factor from batch to batch, reaching ``floor`` in the
        last; or not at all.
    rate : float
        Rate of the exponential moving average of the signal, in (0, 1].
    start, floor : float
        Temperature of the first batch, and the least: above 0.

    Notes
    -----
    The paper's formulas are lost in the text that we have; ours: an option's chance is the softmax
    of score over temperature, the temperature falls linearly, and a chosen option's score moves to
    (1 - rate) score + rate signal."""

    repeats: bool = False
    prior: Prior = "neutral"
    schedule: Schedule = "linear"
    rate: float = 0.3
    start: float = 1.0
    floor: float = 0.2
    kind: ClassVar[str] = "caps"

    def __post_init__(self) -> None:
        require_word("the prior of the policy caps", self.prior, get_args(Prior))
        require_word("the schedule of the policy caps", self.schedule, get_args(Schedule))
        if not (0 < self.rate <= 1 and 0 < self.floor <= self.start < np.inf):
            raise PlanError(
                "CAPS needs a rate in (0, 1], and temperatures above 0 that do not rise"
            )

    def scores(self, history: PromptHistory) -> list[Floats]:
        """Return the score of each option of each group."""
        options = history.options[history.keys % history.assignments]
        first = STRESSOR * (self.prior == "stressor")

        def score(group: int, option: int) -> float:
            # the moving average in closed form: the last signal has weight rate, and so on back
            signals = history.mismatch[options[:, group] == option]
            decay = (1 - self.rate) ** np.arange(len(signals) + 1)
            prior = first * (option > 0)
            return float(prior * decay[-1] + self.rate * signals @ decay[:-1][::-1])

        return [np.array([score(g, o) for o in range(n)]) for g, n in enumerate(history.sizes)]

    # policies are few and frozen, and a batch asks this for each of its draws
    @lru_cache(maxsize=64)  # noqa: B019
    def _odds(
        self, sizes: tuple[int, ...], keys: bytes, mismatch: bytes, batch: int, batches: int
    ) -> Floats:
        """Return the logarithm of each assignment's weight."""
        at, signals = np.frombuffer(keys, dtype=np.intp), np.frombuffer(mismatch, dtype=bool)
        history = PromptHistory(0, sizes, at, signals, batch, batches)
        odds = np.zeros(history.assignments)
        for group, scores in enumerate(self.scores(history)):
            odds += (scores / self.temperature(batch, batches))[history.options[:, group]]
        return odds

    def temperature(self, batch: int, batches: int) -> float:
        """Return the temperature of a batch, counted from 1."""
        if self.schedule == "constant":
            return self.start
        if self.schedule == "geometric":
            share = (batch - 1) / max(1, batches - 1)
            return float(self.start * (self.floor / self.start) ** share)
        return max(self.floor, self.start * (1 - (batch - 1) / batches))

    def chances(self, history: PromptHistory) -> Floats:
        """Return equal chances for tasks with a key left, and within each a softmax by group."""
        keys, mismatch = history.keys.tobytes(), history.mismatch.tobytes()
        odds = self._odds(history.sizes, keys, mismatch, history.batch, history.batches)
        open_keys = (history.open if self.repeats else history.fresh).reshape(history.tasks, -1)
        # from the best that is left, so that no task that has one ends up without weight
        best = np.where(open_keys, odds, -1e300).max(axis=1, keepdims=True)
        return weigh_tasks_equally(np.where(open_keys, np.exp(np.minimum(odds - best, 0)), 0.0))


class _ThompsonSampling(NamedPolicy):
    """A policy that asks the unasked key with the highest score, each under a new random draw.

    The chance that a key's draw is the highest is not known in closed form, so `chances` is None.
    """

    def draw_scores(self, history: PromptHistory, size: int, rng: Generator) -> Iterable[Floats]:
        """Yield the scores of all keys, shape (K,), for one place of the batch after the other."""
        raise NotImplementedError

    def ask(self, history: PromptHistory, size: int, tasks: Generator, rng: Generator) -> Keys:  # noqa: ARG002
        """Return the highest unasked key of each draw of the scores."""
        keys, chosen = list[int](), history
        places = range(min(size, int(history.fresh.sum())))
        # places first: no scores are drawn for a place that has no key left
        for _, scores in zip(places, self.draw_scores(history, size, rng), strict=False):
            values = np.where(chosen.fresh, self.value_keys(scores, chosen), -np.inf)
            keys.append(int(values.argmax()))
            chosen = chosen.after(keys[-1])
        return np.array(keys, dtype=np.intp)

    def value_keys(self, scores: Floats, history: PromptHistory) -> Floats:  # noqa: ARG002
        """Return the values of keys by their scores, given the keys chosen for this batch."""
        return scores


@dataclass(frozen=True)
class Hierarchical(_ThompsonSampling):
    """Thompson sampling of rates of tasks and options, shrunk to the overall rate; no repeats.

    Parameters
    ----------
    weight : float
        Queries that the overall rate counts as, for each task and option.
    new_task : float
        Worth of a task's first failing prompt beyond that of any, which is 1; with 0 the policy
        finds most prompts, in few tasks.
    """

    weight: float = 2.0
    new_task: float = 0.0
    kind: ClassVar[str] = "hierarchical"

    def __post_init__(self) -> None:
        if not (0 < self.weight < np.inf and 0 <= self.new_task < np.inf):
            raise PlanError("the policy hierarchical needs weight > 0 and new_task >= 0")

    def value_keys(self, scores: Floats, history: PromptHistory) -> Floats:
        """Return the logarithm of the expected worth of each key."""
        # each column's log-odds hold the overall ones, which make a chance once
        overall = len(history.sizes) * _compute_log_odds(_estimate_rate(history))
        return _value_new_tasks(scores - overall, history, self.new_task)

    def draw_scores(self, history: PromptHistory, size: int, rng: Generator) -> Iterator[Floats]:  # noqa: ARG002
        """Yield sums of log-odds of task and options, under new draws of all rates."""
        overall, counts = _estimate_rate(history), _count_columns(history)
        while True:
            # new rates for each place: one draw would send the whole batch to the same task
            task, *groups = (_draw_odds(*each, overall, self.weight, rng) for each in counts)
            yield _add_odds(task[:, None], np.concatenate(groups), history)


@dataclass(frozen=True)
class Diverse(_ThompsonSampling):
    """Thompson sampling for failing prompts in many tasks: rates of tasks, options and both; no
    repeats.

    How much tasks differ, options of a group, and options from task to task, is estimated from the
    signals. Draws move to the estimates as the budget is spent.

    Parameters
    ----------
    new_task : float
        Worth of a task's first failing prompt beyond that of any, which is 1.
    """

    # the least of 1, 2, 2.5, 3 and 4 that finds no fewer tasks than `uniform` on networks
    new_task: float = 3.0
    kind: ClassVar[str] = "diverse"

    def __post_init__(self) -> None:
        if not 0 <= self.new_task < np.inf:
            raise PlanError("the policy diverse needs new_task >= 0")

    def value_keys(self, scores: Floats, history: PromptHistory) -> Floats:
        """Return the logarithm of the expected worth of each key."""
        return _value_new_tasks(scores, history, self.new_task)

    def draw_scores(self, history: PromptHistory, size: int, rng: Generator) -> Iterator[Floats]:  # noqa: ARG002
        """Yield log-odds of all keys, under new draws of the rates of tasks and options."""
        overall, counts = _estimate_rate(history), _count_columns(history)
        weights = [_fit_weight(*each, np.full(len(each[0]), overall)) for each in counts]
        means = [
            _compute_log_odds((weight * overall + hits) / (weight + tries))
            for weight, (tries, hits) in zip(weights, counts, strict=True)
        ]
        base, left = _compute_log_odds(overall), 1 - (history.batch - 1) / history.batches
        options = np.concatenate(means[1:]) - base
        own = _estimate_deviations(history, means[0][:, None] + options)
        while True:
            task, *groups = (
                mean + left * (_draw_odds(*each, overall, weight, rng) - mean)
                for mean, each, weight in zip(means, counts, weights, strict=True)
            )
            yield _add_odds(task[:, None], np.concatenate(groups) - base + own, history)


def _value_new_tasks(odds: Floats, history: PromptHistory, new_task: float) -> Floats:
    # a task that failed, or whose answer in this batch is not there yet, is no new one
    known = np.append(history.keys[history.mismatch], history.waiting) // history.assignments
    worth = 1 + new_task * ~np.isin(np.arange(history.tasks), known)
    return np.asarray(np.repeat(np.log(worth), history.assignments) - np.logaddexp(0, -odds))


def _count_columns(history: PromptHistory) -> list[tuple[Floats, Floats]]:
    """Count queries and mismatches of each task, then of each option of every group."""
    task, place = np.divmod(history.keys, history.assignments)
    columns = zip([task, *history.options[place].T], (history.tasks, *history.sizes), strict=True)
    return [_count(column, history.mismatch, size) for column, size in columns]


def _count(codes: Keys, mismatch: Bools, size: int) -> tuple[Floats, Floats]:
    tries, hits = (np.bincount(codes, weights, size) for weights in (None, mismatch))
    return tries.astype(float), hits.astype(float)


def _draw_odds(
    tries: Floats, hits: Floats, overall: float, weight: float, rng: Generator
) -> Floats:
    # Beta posterior; its prior has the overall rate as mean and counts as `weight` queries
    rate = rng.beta(weight * overall + hits, weight * (1 - overall) + tries - hits)
    return np.asarray(_compute_log_odds(np.clip(rate, _EDGE, 1 - _EDGE)))


def _add_odds(tasks: Floats, options: Floats, history: PromptHistory) -> Floats:
    """Add log-odds of tasks and of options (of all groups in a row) for all keys."""
    places = history.options + np.cumsum((0, *history.sizes[:-1]))
    return np.asarray(tasks + options[..., places].sum(axis=-1)).ravel()


def _fit_weight(tries: Floats, hits: Floats, means: Floats) -> float:
    """Estimate how many queries the means of rates count as, over `_WEIGHTS` by likelihood."""
    from scipy.special import betaln

    prior, misses = (means * _WEIGHTS[:, None], (1 - means) * _WEIGHTS[:, None]), tries - hits
    fits = (betaln(prior[0] + hits, prior[1] + misses) - betaln(*prior)).sum(axis=1)
    return float(np.exp(np.average(np.log(_WEIGHTS), weights=np.exp(fits - fits.max()))))


def _estimate_deviations(history: PromptHistory, odds: Floats) -> Floats:
    """Estimate how far each option's log-odds in a task are from those of both together.

    Parameters
    ----------
    odds : float64 array, shape (tasks, options of all groups)
    """
    task, place = np.divmod(history.keys, history.assignments)
    option = history.options[place] + np.cumsum((0, *history.sizes[:-1]))
    codes = (task[:, None] * odds.shape[1] + option).ravel()
    signals = np.repeat(history.mismatch, len(history.sizes))
    tries, hits = _count(codes, signals, odds.size)
    means = 1 / (1 + np.exp(-odds.ravel()))
    weight = _fit_weight(tries, hits, means)
    found = _compute_log_odds((weight * means + hits) / (weight + tries))
    return np.asarray(found.reshape(odds.shape) - odds)


def _estimate_rate(history: PromptHistory) -> float:
    # a Beta(0.5, 4.5) prior: a tenth of the prompts mismatch before any is seen
    return float((history.mismatch.sum() + 0.5) / (len(history.keys) + 5))


def _compute_log_odds(rate: Any) -> Any:
    return np.log(rate / (1 - rate))


@dataclass(frozen=True)
class GaussianThompson(_ThompsonSampling):
    """Thompson sampling of a Gaussian process over prompt keys, without repeats.

    Two keys are alike by 0.5 for the same task, 0.25 times the share of options they have in
    common, 0.5 times that share for the same task again, and 0.25 for the same key.

    Parameters
    ----------
    mean : float
        Prior mean of the signal.
    scale : float
        Scale of the kernel.
    noise : float
        Variance of the signal that is no function of the key.

    Notes
    -----
    Draws from the posterior by Matheron's rule: a draw of the prior, corrected by what it misses at
    the keys asked. The kernel is a sum of terms "the same in this respect", so nothing larger than
    the keys asked is ever inverted."""

    mean: float = 0.1
    scale: float = 0.1
    noise: float = 0.02
    kind: ClassVar[str] = "gp"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and 0 < self.scale < np.inf and 0 < self.noise < np.inf):
            raise PlanError("the policy gp needs a mean, and a scale and noise above 0")

    def draw_scores(self, history: PromptHistory, size: int, rng: Generator) -> Floats:
        """Return a draw of the whole landscape for each place: shape (size, K)."""
        at, respects = history.keys, _list_respects(history)
        landscape = np.zeros((history.tasks * history.assignments, size))
        for code, weight in respects:
            draws = rng.standard_normal((int(code.max()) + 1, size))
            landscape += np.sqrt(self.scale * weight) * draws[code]
        # Matheron: posterior draw = prior draw + K(all, at) (K(at, at) + noise)^-1 residual
        covariance = self.noise * np.eye(len(at)) + self.scale * _compute_kernel(respects, at)
        noise = np.sqrt(self.noise) * rng.standard_normal((len(at), size))
        missing = (history.mismatch - self.mean)[:, None] - landscape[at] - noise
        # BLAS on several threads may differ in the last bit, and so in the next prompt
        with one_thread():
            residual = np.linalg.solve(covariance, missing)
        # K(all, at) v term by term: sums of v over equal codes, never the full kernel
        for code, weight in respects:
            update = np.zeros((int(code.max()) + 1, size))
            np.add.at(update, code[at], residual)
            landscape += self.scale * weight * update[code]
        return landscape.T


def _list_respects(history: PromptHistory) -> Respects:
    key = np.arange(history.tasks * history.assignments)
    task, place = np.divmod(key, history.assignments)
    groups = len(history.sizes)
    respects: Respects = [(task, 0.5), (key, 0.25)]
    for group, size in enumerate(history.sizes):
        option = history.options[place, group]
        respects += [(option, 0.25 / groups), (task * size + option, 0.5 / groups)]
    return respects


def _compute_kernel(respects: Respects, at: Keys) -> Floats:
    kernel = np.zeros((len(at), len(at)))
    for code, weight in respects:
        kernel += weight * (code[at][:, None] == code[at][None, :])
    return kernel


_USUAL: tuple[NamedPolicy, ...] = (
    UniformPrompts(repeats=True),
    UniformPrompts(),
    StratifiedPrompts(),
    Caps(repeats=True),
    Caps(),
    Hierarchical(),
    Hierarchical(new_task=0.2),
    Diverse(),
    GaussianThompson(),
    Exhaustive(),
)

POLICIES: dict[str, PromptPolicy] = {policy.name: policy for policy in _USUAL}
"""Policies by name, with their usual settings; `groundfault.probes.policies.get` knows all others.
"""
