"""Simulated answers of many models, with failure modes planted or with none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault_lab.taxonomy.fitting.matrix import Matrix


@dataclass(frozen=True, kw_only=True)
class AbilityWorld:
    """A law by which models pass examples; null unless there are at least two modes.

    Attributes
    ----------
    examples, models : int
    modes : int
        Kinds of example, each with skills of its own: 0 or 1 leaves one ability alone.
    strength : float
        Standard deviation of a model's skill in a mode, its general ability having 1.
    independent : bool
        No ability and no difficulty either: each model passes every example at a rate of its own.
    guessing : float
        Chance that a model passes an example that it cannot solve; above 0 the fitted curves are
        wrong.
    holes : float
        Share of cells that were not asked, and half of the models was not asked the first third of
        the examples.
    """

    examples: int = 600
    models: int = 24
    modes: int = 0
    strength: float = 1.0
    independent: bool = False
    guessing: float = 0.0
    holes: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Matrix, NDArray[np.int64]]:
        """Return a matrix, and the mode of each of its examples."""
        n, m = self.examples, self.models
        mode = rng.integers(0, max(self.modes, 1), n)
        skill = rng.normal(size=(max(self.modes, 1), m)) * (
            self.strength if self.modes > 1 else 0.0
        )
        # two-parameter logistic items, as `irt` fits them
        slope, easy = np.exp(rng.normal(0.3, 0.3, (n, 1))), rng.normal(0.3, 1.2, (n, 1))
        chance = 1 / (1 + np.exp(-(slope * (rng.normal(size=m) + skill[mode]) + easy)))
        if self.independent:
            chance = np.broadcast_to(rng.uniform(0.1, 0.9, m), (n, m))
        has_answer = rng.random((n, m)) >= self.holes
        if self.holes:
            # holes as real matrices have them: older models lack the newer examples
            has_answer[: n // 3, : m // 2] = False
        passes = has_answer & (rng.random((n, m)) < self.guessing + (1 - self.guessing) * chance)
        names = tuple(f"e{i:06d}" for i in range(n)), tuple(f"m{j:04d}" for j in range(m))
        return Matrix(*names, passes.astype(np.int64), has_answer.astype(np.int64)), mode
