"""Thompson sampling of prompt keys, without repeats: by rates, or by a Gaussian process.

The chance that a key's draw is the highest is not known in closed form, so `chances` is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from groundfault.base.threads import one_thread
from groundfault.errors import PlanError
from groundfault.probes.policies.history import Bools, Floats, Keys, NamedPolicy, PromptHistory


@dataclass(frozen=True)
class Hierarchical(NamedPolicy):
    """Thompson sampling of rates of tasks and options, shrunk to the overall rate; no repeats."""

    weight: float = 2.0
    kind: ClassVar[str] = "hierarchical"

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise PlanError("the policy hierarchical needs a weight above 0")

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> Keys:
        """The keys with the largest sum of log-odds, each under a new draw of all rates."""
        # a Beta(0.5, 4.5) prior: a tenth of the prompts mismatch before any is seen
        overall = (history.mismatch.sum() + 0.5) / (len(history.keys) + 5)
        task, option = np.divmod(history.keys, history.assignments)
        columns = [task, *history.options[option].T]
        fresh, keys = history.fresh, list[int]()
        for _ in range(min(size, int(fresh.sum()))):
            odds = [
                # new rates for each place: one draw would send the whole batch to the same task
                self._draw(column, history.mismatch, count, overall, rng)
                for column, count in zip(columns, (history.tasks, *history.sizes), strict=True)
            ]
            within = sum(
                (o[history.options[:, g]] for g, o in enumerate(odds[1:])),
                np.zeros(history.assignments),
            )
            score = np.where(fresh, (odds[0][:, None] + within).ravel(), -np.inf)
            keys.append(int(score.argmax()))
            fresh[keys[-1]] = False
        return np.array(keys, dtype=np.intp)

    def chances(self, history: PromptHistory) -> None:
        """Unknown."""

    def _draw(
        self, column: Keys, mismatch: Bools, count: int, overall: float, rng: np.random.Generator
    ) -> Floats:
        tries = np.bincount(column, minlength=count)
        hits = np.bincount(column, weights=mismatch, minlength=count)
        # Beta posterior; its prior has the overall rate as mean and counts as `weight` queries
        rate = rng.beta(self.weight * overall + hits, self.weight * (1 - overall) + tries - hits)
        rate = np.clip(rate, 1e-9, 1 - 1e-9)
        return np.asarray(np.log(rate / (1 - rate)))


@dataclass(frozen=True)
class GaussianThompson(NamedPolicy):
    """Thompson sampling of a Gaussian process over prompt keys, without repeats: the default.

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

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,  # noqa: ARG002
        rng: np.random.Generator,
    ) -> Keys:
        """For each place in the batch a draw of the whole landscape; its highest unasked key."""
        at, respects = history.keys, _list_respects(history)
        landscape = np.zeros((history.tasks * history.assignments, size))
        for code, weight in respects:
            landscape += (
                np.sqrt(self.scale * weight)
                * rng.standard_normal((int(code.max()) + 1, size))[code]
            )
        # Matheron: posterior draw = prior draw + K(all, at) (K(at, at) + noise)^-1 residual
        covariance = self.noise * np.eye(len(at)) + self.scale * _compute_kernel(respects, at)
        noise = np.sqrt(self.noise) * rng.standard_normal((len(at), size))
        # BLAS on several threads may differ in the last bit, and so in the next prompt
        with one_thread():
            residual = np.linalg.solve(
                covariance, (history.mismatch - self.mean)[:, None] - landscape[at] - noise
            )
        # K(all, at) v term by term: sums of v over equal codes, never the full kernel
        for code, weight in respects:
            update = np.zeros((int(code.max()) + 1, size))
            np.add.at(update, code[at], residual)
            landscape += self.scale * weight * update[code]
        fresh, keys = history.fresh, list[int]()
        for place in range(min(size, int(fresh.sum()))):
            keys.append(int(np.where(fresh, landscape[:, place], -np.inf).argmax()))
            fresh[keys[-1]] = False
        return np.array(keys, dtype=np.intp)

    def chances(self, history: PromptHistory) -> None:
        """Unknown."""


def _list_respects(history: PromptHistory) -> list[tuple[NDArray[np.intp], float]]:
    """In what keys can be the same, as a code for every key, and how much that counts."""
    key = np.arange(history.tasks * history.assignments)
    task, place = np.divmod(key, history.assignments)
    respects = [(task, 0.5), (key, 0.25)]
    for group, size in enumerate(history.sizes):
        option = history.options[place, group]
        respects += [
            (option, 0.25 / len(history.sizes)),
            (task * size + option, 0.5 / len(history.sizes)),
        ]
    return respects


def _compute_kernel(respects: list[tuple[NDArray[np.intp], float]], at: Keys) -> Floats:
    kernel = np.zeros((len(at), len(at)))
    for code, weight in respects:
        kernel += weight * (code[at][:, None] == code[at][None, :])
    return kernel
