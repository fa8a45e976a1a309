"""Random: conjunctions of predicates drawn blindly, the baseline that any search has to beat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from groundfault.core.candidate import Candidate
from groundfault.core.evidence import Evidence
from groundfault.errors import PlanError
from groundfault.finders import Parameters
from groundfault_lab.slicing.levels import Levels, make_conjunction, select_searchable

# draws for each candidate that is wanted; with narrow tables fewer different ones may exist
_TRIES = 100


@dataclass(frozen=True)
class Random(Parameters):
    """Propose conjunctions of predicates at random, of which no outcome is looked at.

    Parameters
    ----------
    k : int
        How many, if there are as many.
    max_level : int
        Most predicates of one.
    min_share : float
        In [0, 1): smaller slices, and complements of smaller ones, are not proposed.
    bins : int
        Numbers of more than ``2 * bins`` different values are cut into at most so many ranges.
    seed : int
    columns : tuple of str, optional
        Names or globs; without them flags, numbers and labels.

    Raises
    ------
    InputError
        If a named column is not there, or has no levels.
    PlanError
        If k or max_level is below 1.
    """

    k: int = 10
    max_level: int = 2
    min_share: float = 0.1
    bins: int = 5
    seed: int = 0
    columns: tuple[str, ...] | None = None
    name: str = "random"

    def __post_init__(self) -> None:
        if self.k < 1 or self.max_level < 1:
            raise PlanError(f"k={self.k} and max_level={self.max_level} must be at least 1")

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose at most k candidates such as ``lang = de AND words >= 400``, no two alike."""
        table = select_searchable(discovery, self.columns)
        if table.width == 0:
            return
        levels, rng = Levels.of(table, self.bins, "value"), np.random.default_rng(self.seed)
        rules: set[str] = set()
        for _ in range(_TRIES * self.k):
            size = rng.integers(1, min(self.max_level, table.width) + 1)
            columns = np.sort(rng.choice(table.width, size, replace=False))
            values = rng.integers(0, levels.counts[columns])
            candidate = make_conjunction(levels.name_values(columns, values), self.name)
            share = float((levels.codes[columns] == values[:, None]).all(axis=0).mean())
            # on both sides, as a slice of nearly everything cannot be tested either
            is_testable = 0 < share < 1 and self.min_share <= share <= 1 - self.min_share
            if candidate.rule in rules or not is_testable:
                continue
            rules.add(candidate.rule)
            yield candidate
            if len(rules) == self.k:
                return
