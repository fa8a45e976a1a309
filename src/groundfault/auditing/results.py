"""A judged audit: everything that a report is assembled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.core.judge import ConfirmationBar, find_bar
from groundfault.core.units import Units
from groundfault.judges.rule import Ruling, find_duplicates

if TYPE_CHECKING:
    from groundfault.auditing.robustness import Frequency
    from groundfault.base.holdout_events import Opening
    from groundfault.base.ledger import Ledger
    from groundfault.modes.mode import Mode, ModeSearch


@dataclass(frozen=True)
class AuditResults:
    """A prepared audit with its losses, and the verdicts on them.

    Attributes
    ----------
    audit : PreparedAudit
    losses : float64 array, shape (outcomes, units)
        Of all units, NaN where none was scored.
    ruling : Ruling
    discovery, holdout : Units
        The parts that the ruling rests on; a judge that holds nothing out has all units in
        discovery and no holdout.
    opening : Opening, optional
        What the ledger says; None where nothing was recorded.
    witness : Ledger, optional
        The ledger that says it.
    sensitivity : mapping of str to Ruling
        Verdicts had all unscored observations failed, or passed.
    frequency : Frequency, optional
        How often random splits confirm each hypothesis; None where the rule was not repeated.
    modes : tuple of Mode
    mode_search : ModeSearch, optional
        None where failure modes were not looked for.
    """

    audit: PreparedAudit
    losses: NDArray[np.float64]
    ruling: Ruling
    discovery: Units
    holdout: Units | None
    opening: Opening | None = None
    witness: Ledger | None = None
    sensitivity: Mapping[str, Ruling] = field(default_factory=dict)
    frequency: Frequency | None = None
    modes: tuple[Mode, ...] = ()
    mode_search: ModeSearch | None = None

    @cached_property
    def full(self) -> Units:
        """Return all units."""
        return self.discovery if self.holdout is None else self.audit.units(self.losses)

    @property
    def deciding(self) -> Units:
        """Return the units that verdicts rest on: held out, or all."""
        return self.discovery if self.holdout is None else self.holdout

    @cached_property
    def positions(self) -> dict[int, int]:
        """For each hypothesis that was judged, its place in the arrays of the ruling."""
        return self.ruling.positions()

    @cached_property
    def bar(self) -> ConfirmationBar | None:
        """What the judge asks of one true hypothesis among those that were judged."""
        plan = self.audit.plan
        hypotheses = self.ruling.hypotheses
        return find_bar(self.audit.judge, self.discovery, hypotheses, plan, plan.rng("detectable"))

    @cached_property
    def aliases(self) -> list[tuple[str, ...]]:
        """For each candidate the names of those true for the same units.

        Those true for exactly the others are listed as "not ...".
        """
        marks, names = self.audit.marks, [c.name for c in self.audit.library]
        first = find_duplicates(marks, complements=not self.audit.compare)
        members: dict[int, list[int]] = {}
        for j, earliest in enumerate(first):
            members.setdefault(int(earliest), []).append(j)
        twins = [[i for i in members[int(first[j])] if i != j] for j in range(len(names))]
        return [
            tuple(names[i] if marks.are_same(i, j) else f"not {names[i]}" for i in others)
            for j, others in enumerate(twins)
        ]
