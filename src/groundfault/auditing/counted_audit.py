"""An audit whose evidence stays in an engine: prepared on a sample of rows, judged by counts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.counting import (
    Scan,
    count_jointly,
    is_graded,
    mark_candidates,
    scan_candidates,
)
from groundfault.auditing.grouped_evidence import GroupedEvidence
from groundfault.auditing.lazy_evidence import SAMPLE, LazyEvidence, sum_statuses
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.base.row_sketch import RowSample
from groundfault.core.candidate import Candidate
from groundfault.core.counted_units import CountedMarks, CountedUnits, JointCells
from groundfault.core.evidence import Evidence
from groundfault.core.roles import Roles
from groundfault.core.rules import Rule
from groundfault.core.status import Status
from groundfault.core.units import Units
from groundfault.engines.agreement import find_disagreements

JOINT_JUDGE = "max-t"
"""The judge that reads the cells of all combinations of candidates."""

MAX_JOINT = 30
"""Candidates that are counted jointly: their combinations are the cells of one scan."""

DISAGREES = "engine"
"""Why a candidate is untestable that means something else to the engine."""


@dataclass(frozen=True)
class CountedAudit(PreparedAudit):
    """A prepared audit whose ``evidence`` is a sample of the discovery rows.

    Cells of rows stand in place of units: `losses` are those of cells, and what is made of them are
    `CountedUnits`. All that is read of outcomes beyond the sample is read once `scan` is asked for.

    Attributes
    ----------
    lazy : LazyEvidence
        All rows, each a unit.
    rows : int
        How many these are.
    disagreements : mapping of str to str
        Candidates that mean something else to the engine, and in how many rows of the sample.
    """

    lazy: LazyEvidence = field(kw_only=True)
    rows: int = field(kw_only=True)
    disagreements: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def source(self) -> LazyEvidence:
        """Return all rows, uncounted."""
        return self.lazy

    @property
    def named(self) -> LazyEvidence:
        """Return the table that was named, with its own roles."""
        return self.lazy if self.groups is None else self.groups.source

    @property
    def groups(self) -> GroupedEvidence | None:
        """Return the rows, where each is a group; None where each is an example."""
        return self.lazy if isinstance(self.lazy, GroupedEvidence) else None

    @property
    def roles(self) -> Roles:
        """Return the roles of the columns as they were named."""
        return self.named.roles

    @cached_property
    def scan(self) -> Scan:
        """Count all candidates in all rows."""
        return scan_candidates(self)

    @cached_property
    def marks(self) -> CountedMarks:
        """Return the support of each candidate in all rows."""
        return mark_candidates(self, self.scan)

    @cached_property
    def joint(self) -> JointCells | None:
        """Return the cells of all combinations; None where the judge does not read them."""
        if self.judge.name != JOINT_JUDGE:
            return None
        return count_jointly(self, range(len(self.library)), holdout=False)

    @property
    def statuses(self) -> dict[str, int]:
        """Return how many rows have each status."""
        counts = (
            sum_statuses(self.scan.status, self.scan.cells.rows)
            if self.groups is None
            else self.groups.statuses
        )
        return {str(status): counts.get(str(status), 0) for status in Status}

    def sample_outcomes(self) -> Callable[[str], RowSample]:
        """Return what samples the outcomes for a ledger, given its salt: the rows memory takes."""
        return self.lazy.sample_outcomes(self.rows)

    def try_rules(self, *, modes: bool) -> None:
        """Read the rows that are searched for failure modes, before anything is recorded."""
        if modes:
            self.searched  # noqa: B018

    @cached_property
    def discovery_mask(self) -> NDArray[np.bool_]:
        """Return all rows of the sample: none of the holdout is in it."""
        return np.ones(self.evidence.unit_count, dtype=np.bool_)

    @cached_property
    def split_hash(self) -> str:
        """Return the SHA-256 of the expression that splits."""
        part = self.lazy.find_part(self.plan) if self.has_holdout else ""
        return hashlib.sha256(part.encode()).hexdigest()

    def losses(self, unscored: int | None = None) -> NDArray[np.float64]:
        """Return the losses of all cells, NaN where not scored: shape (1, cells)."""
        return (self.scan.loss if unscored is None else self.scan.fill(unscored))[None]

    def units(self, losses: NDArray[np.float64]) -> CountedUnits:
        """Return all rows, with these losses of cells."""
        joint, is_unscored = self.joint, np.isnan(self.scan.loss)
        if joint is not None and is_unscored.any() and not np.isnan(losses).any():
            joint = joint.with_unscored_as(int(losses[0][is_unscored][0]))
        units = self.scan.make_units(self.library, self.marks, losses[0])
        return replace(units, joint=joint)

    def parts(self, losses: NDArray[np.float64]) -> tuple[CountedUnits, CountedUnits | None]:
        """Return the rows of discovery and of the holdout; all and None where none are held out."""
        if not self.has_holdout:
            return self.units(losses), None
        is_discovery = self.scan.is_discovery
        discovery, holdout = (
            self.scan.make_units(self.library, self.marks, losses[0], part)
            for part in (is_discovery, ~is_discovery)
        )
        return discovery, holdout

    def join(self, units: Units, candidates: Sequence[int]) -> CountedUnits:
        """Count some candidates jointly, which tells those that are seen twice.

        Parameters
        ----------
        units : CountedUnits
            Those that verdicts rest on.
        candidates : sequence of int
            Their places in the library.

        Returns
        -------
        CountedUnits
            Without joint cells of one candidate, for more than `MAX_JOINT`, and for graded
            losses, since cells tell how many failed and not by how much.
        """
        assert isinstance(units, CountedUnits)
        is_binary = self.scan.strata is None and not is_graded(self.scan.loss)
        if units.joint is not None or not 2 <= len(candidates) <= MAX_JOINT or not is_binary:
            return units
        return replace(units, joint=count_jointly(self, candidates, holdout=self.has_holdout))

    def find_disagreements(self, rules: Mapping[str, Rule]) -> dict[str, str]:
        """Find rules that mean something else to the engine, and in how many rows of the sample."""
        # polars is the engine that rules are defined by
        if self.lazy.counter.name == "polars":
            return {}
        return find_disagreements(self.lazy.counter, rules, self.sample_rule)

    def varies(self, candidate: Candidate) -> bool:
        """Return whether a candidate reads a column that differs within a group."""
        return self.groups is not None and not set(candidate.columns).isdisjoint(
            self.groups.varying
        )

    def is_uncounted(self, candidate: Candidate) -> bool:
        """Return whether an engine need not be able to evaluate it, since it is not tested."""
        return candidate.name in self.disagreements or self.varies(candidate)

    @property
    def unusable(self) -> tuple[str, ...]:
        """Return why each candidate cannot be tested, as far as the sample tells; else empty."""
        return tuple(
            "varies_within_group"
            if self.varies(candidate)
            else DISAGREES
            if candidate.name in self.disagreements
            else "leak"
            if place in self.leaking_rules
            else ""
            for place, candidate in enumerate(self.library)
        )

    @property
    def sample_losses(self) -> NDArray[np.float64]:
        """Return the losses of the sample, NaN where not scored."""
        return self.evidence.loss.cast(pl.Float64).fill_null(np.nan).to_numpy()

    @property
    def sample_rule(self) -> str:
        """Return the rule that drew the sample."""
        return self.lazy.find_sample(self.plan, self.rows, holdout=self.has_holdout)

    @property
    def searches_all(self) -> bool:
        """Return whether failure modes are looked for in all rows: these are few enough to read."""
        return self.rows <= 2 * SAMPLE

    @cached_property
    def searched(self) -> Evidence:
        """Return the rows that failure modes are looked for in: all of them, or the sample."""
        return self.lazy.take("TRUE") if self.searches_all else self.evidence
