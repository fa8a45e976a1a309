"""Stratified: every group is as likely as any other, whatever its size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from groundfault.sequential.policies import History, Query


@dataclass(frozen=True)
class Stratified:
    """Draw a group uniformly among those with cases left, then a case uniformly inside it.

    It claims that the group fails when the scores seen in it so far have a mean below the
    threshold. (The paper's stratified auditor counts every round against itself, so that any model
    with one sound group passes it.)"""

    name: ClassVar[str] = "stratified"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """A group drawn uniformly."""
        among = np.flatnonzero(history.open & history.strata)
        if not len(among):
            among = np.flatnonzero(history.open)
        if not len(among):
            return None
        group = int(rng.choice(among))
        return Query(history.groups[group], claim=bool(history.means[group] < history.threshold))
