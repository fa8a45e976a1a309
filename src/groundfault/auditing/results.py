"""A judged audit: everything that a report is assembled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.core.finding import Verdict
from groundfault.core.judge import ConfirmationBar, Judge, find_bar
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import Ruling, find_duplicates, rule

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Frequency:
    """Outcome of the repeats.

    Attributes
    ----------
    splits : int
    nonempty : float
        Share of splits in which anything was confirmed.
    confirmed : float64 array, shape (L * M,)
        Share of splits in which each hypothesis was. All splits reuse one sample: this is no
        probability of being true.
    """

    splits: int
    nonempty: float
    confirmed: NDArray[np.float64]


def confirmation_frequency(
    judge: Judge, plan: Plan, units: Units, splits: int, jobs: int = 1
) -> Frequency:
    """Repeat the rule over random splits (Janus, appendix C).

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Resolved.
    units : Units
        All units.
    splits : int
    jobs : int
        Processes; the answer is the same for every number. Another backend is chosen with
        ``joblib.parallel_config``.
    """
    from joblib import Parallel, delayed

    # several blocks a process: splits take unequal time, and each task copies the units
    blocks = np.array_split(np.arange(splits), min(splits, max(1, 4 * jobs)))
    parts = Parallel(n_jobs=jobs)(delayed(_block)(judge, plan, units, block) for block in blocks)
    hits = np.concatenate(parts)
    return Frequency(splits, float(hits.any(axis=1).mean()), hits.mean(axis=0))


def _block(judge: Judge, plan: Plan, units: Units, block: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.stack([_one(judge, plan, units, int(b)) for b in block])


def _one(judge: Judge, plan: Plan, units: Units, number: int) -> NDArray[np.bool_]:
    # a random stream of its own for each split, so that the number of processes changes nothing
    purpose = f"robustness/{number}"
    if judge.confirmation == "none":
        ruling = rule(judge, plan, units, None, units.marks, purpose)
    else:
        holdout = np.zeros(len(units), dtype=np.bool_)
        holdout[
            plan.rng(purpose).permutation(len(units))[: int(to_fraction(plan.holdout) * len(units))]
        ] = True
        ruling = rule(
            judge,
            plan,
            units.select_units(~holdout),
            units.select_units(holdout),
            units.marks,
            purpose,
        )
    return np.array([v is Verdict.CONFIRMED for v in ruling.verdicts])
