"""Worlds of one ability a model, with a rule in which two models fail more."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault_lab.taxonomy import Matrix, Settings

QUICK = Settings(worlds=19, refits=2, bootstraps=0, permutations=19)


def draw(
    seed: int, *, models: int = 12, examples: int = 400, hole: float = 0.0, holes: float = 0.0
) -> Matrix:
    """Answers of one ability a model, and attributes that go with the difficulty.

    Models 0 and 1 fail a share ``hole`` of what they would pass where ``form`` is story; a share
    ``holes`` of the cells was not asked, and half of the models lack the first third.
    """
    rng = np.random.default_rng([seed, 5])
    slope, easy = np.exp(rng.normal(0.3, 0.3, examples)), rng.normal(0.3, 1.2, examples)
    chance = 1 / (1 + np.exp(-(slope[:, None] * rng.normal(size=models) + easy[:, None])))
    asked = rng.random((examples, models)) >= holes
    asked[: examples // 3, : models // 2 if holes else 0] = False
    story = rng.random(examples) < 0.15
    chance[np.ix_(story, [0, 1])] *= 1 - hole
    passes = asked & (rng.random((examples, models)) < chance)
    rank = np.argsort(np.argsort(easy + rng.normal(0, 0.7, examples)))
    table = pl.DataFrame(
        {
            "form": np.where(story, "story", "plain"),
            "topic": [f"topic {place * 6 // examples}" for place in rank],
            "length": np.round(30 - 8 * easy + rng.normal(0, 6, examples)),
            "steep": slope > np.median(slope),
            "noise": rng.integers(0, 5, examples),
        }
    )
    names = tuple(f"e{i:04d}" for i in range(examples)), tuple(f"m{j:02d}" for j in range(models))
    return Matrix(*names, passes.astype(int), asked.astype(int), attributes=table)
