"""Uniform: every case is as likely as any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from groundfault.sequential.policies import History, Query


@dataclass(frozen=True)
class Uniform:
    """Draw uniformly from all cases; the only claim is that they fail as a whole.

    Where the cases are generated a category at a time, there is no whole to draw from: the category
    is drawn first, and nothing is claimed."""

    name: ClassVar[str] = "uniform"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """All cases, or a category drawn uniformly."""
        whole = history.open & history.members.all(axis=1)
        if whole.any():
            return Query(history.groups[int(whole.argmax())], claim=True)
        among = np.flatnonzero(history.open)
        return Query(history.groups[int(rng.choice(among))]) if len(among) else None
