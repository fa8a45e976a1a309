"""Oracle: knows from the start which group fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groundfault.errors import PlanError
from groundfault.sequential.policies import History, Query


@dataclass(frozen=True)
class Oracle:
    """Claim one group and draw from it alone until it has no case left; then explore.

    Parameters
    ----------
    group : str
        Name of a declared group. It may be a guess: the audit then says whether it was right.
    """

    group: str

    @property
    def name(self) -> str:
        """``oracle:`` and the group."""
        return f"oracle:{self.group}"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """The group, while it lasts.

        Raises
        ------
        PlanError
            If there is no such group.
        """
        if self.group not in history.groups:
            raise PlanError(
                f"the policy {self.name} names no declared group; the groups are "
                f"{', '.join(history.groups[:20])}"
            )
        if history.open[history.groups.index(self.group)]:
            return Query(self.group, claim=True)
        among = np.flatnonzero(history.open)
        return Query(history.groups[int(rng.choice(among))]) if len(among) else None
