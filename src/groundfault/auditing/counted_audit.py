"""An audit whose evidence stays in an engine: prepared on a sample of rows, judged by counts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from groundfault.auditing.counting import (
    GRADED_JUDGES,
    MAX_DEALT,
    PART,
    Scan,
    find_copies,
    find_discovery,
    is_graded,
    spell_value,
)
from groundfault.auditing.grouped_evidence import GroupedEvidence
from groundfault.auditing.lazy_evidence import (
    MAX_LOSSES,
    MAX_MEANS,
    SAMPLE,
    LazyEvidence,
    key_outcomes,
    read_keys,
    require_few_outcomes,
    sum_statuses,
)
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.base.arrays import Bools, Floats
from groundfault.base.row_sketch import RowSample
from groundfault.core.candidate import Candidate
from groundfault.core.counted_units import CountedMarks, CountedUnits, JointCells
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule, quote
from groundfault.core.status import Status
from groundfault.core.units import Units
from groundfault.engines import ROWS, SCORED, find_disagreements
from groundfault.errors import InputError

JOINT_JUDGE = "max-t"
"""The judge that reads the cells of all combinations of candidates."""

MAX_JOINT = 30
"""Candidates that are counted jointly: their combinations are the cells of one scan."""

DISAGREES = "engine"
"""Reason code of a candidate whose values in the engine differ."""


@dataclass(frozen=True)
class CountedAudit(PreparedAudit):
    """A prepared audit whose ``evidence`` is a sample of the discovery rows.

    Cells of rows take the place of units: `losses` has one loss a cell, and joined units are
    `CountedUnits`. Outcomes beyond the sample are read when `scan` is first used.

    Attributes
    ----------
    lazy : LazyEvidence
        All rows, each a unit.
    rows : int
        Number of rows.
    disagreements : mapping of str to str
        Candidates whose value in the engine differs, and in how many rows of the sample.
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
        """Return the rows if each is a group; None if each is an example."""
        return self.lazy if isinstance(self.lazy, GroupedEvidence) else None

    def scan_cells(
        self, rules: Sequence[str], by: Mapping[str, str], *, parts: bool = True
    ) -> Scan:
        """Count rules in the cells of part, outcome and status.

        Parameters
        ----------
        rules : sequence of str
        by : mapping of str to str
            Further expressions with equal values in all rows of a cell.
        parts : bool
            Whether to separate discovery from the holdout; else all rows are discovery.

        Raises
        ------
        InputError
            If an outcome is graded and the judge takes no graded ones; if a part has no rows.
        """
        lazy, roles, is_grouped = self.lazy, self.lazy.roles, self.groups is not None
        by = {**key_outcomes(roles), **by}
        if self.has_holdout and parts:
            by[PART] = lazy.find_part(self.plan)
        if is_grouped:
            by |= {name: quote(name) for name in (SCORED, ROWS)}
        require_few_outcomes(self.evidence.frame, roles, MAX_MEANS if is_grouped else MAX_LOSSES)
        cells = lazy.counter.counts(rules, by)
        where = lazy.provenance[0]
        loss, status = read_keys(cells.keys, roles, where)
        self.require_countable(np.unique(loss[~np.isnan(loss)]))
        scored = (~np.isnan(loss)).astype(np.int64)
        rows = np.ones_like(scored)
        if is_grouped:
            scored, rows = (cells.keys[name].to_numpy().astype(np.int64) for name in (SCORED, ROWS))
        return Scan(cells, loss, status, find_discovery(cells, roles.split), scored, rows)

    def require_countable(self, losses: Floats) -> None:
        """Raise if losses are graded and the judge counts failures, or rows are too many."""
        judge, roles = self.judge.name, self.lazy.roles
        # means of groups of several sizes are permuted within these, even if all are 0 or 1
        graded = self.groups is not None or is_graded(losses)
        if graded and not (judge in GRADED_JUDGES and self.rows < MAX_DEALT):
            raise InputError(
                f"{self.lazy.provenance[0]}: outcome {roles.outcome!r} is graded, and {judge} "
                f"counts failures in {self.rows:,} rows: judge by {', '.join(GRADED_JUDGES)}, "
                f"which takes grades of fewer than {MAX_DEALT:,} rows, or name a column of failures"
            )

    @cached_property
    def scan(self) -> Scan:
        """Count all candidates in all rows.

        Raises
        ------
        InputError
            As `scan_cells`; and if a row has no id.
        """
        name = self.lazy.roles.id or ""
        # candidates that cannot be tested are not counted
        rules = ["FALSE" if self.is_uncounted(c) else c.parsed.sql for c in self.library]
        scan = self.scan_cells([*rules, f"{quote(name)} IS NULL"], {})
        nameless = int(scan.cells.on[:, -1].sum())
        if nameless:
            raise InputError(
                f"{self.lazy.provenance[0]}: column {name!r} is empty in {nameless} rows; every "
                "row needs an id"
            )
        return scan

    @cached_property
    def marks(self) -> CountedMarks:
        """Return the support of each candidate in all rows, and which cannot be tested."""
        library, cells = self.library, self.scan.cells
        gaps = cells.rows.sum() - cells.defined[:, : len(library)].sum(axis=0)
        unusable = tuple(
            reason or ("missing" if candidate.missing == "reject" and gap else "")
            for candidate, reason, gap in zip(library, self.unusable, gaps, strict=True)
        )
        n, on = self.scan.sum_rules(library, np.ones(len(cells), dtype=np.bool_))
        first, is_mirrored = find_copies(self.lazy, library, cells, unusable)
        no_bits = np.zeros((len(library), 0), dtype=np.uint64)
        has_gaps = any(gap and c.missing != "reject" for c, gap in zip(library, gaps, strict=True))
        empty = no_bits if has_gaps else None
        return CountedMarks(
            self.rows,
            no_bits,
            None,
            unusable,
            empty,
            n=n,
            n_on=on,
            first=first,
            is_mirrored=is_mirrored,
        )

    @cached_property
    def joint(self) -> JointCells | None:
        """Return the cells of all combinations; None where the judge does not read them."""
        if self.judge.name != JOINT_JUDGE or not self.library.candidates:
            return None
        return self.count_jointly(range(len(self.library)), holdout=False)

    def count_jointly(self, candidates: Sequence[int], *, holdout: bool) -> JointCells:
        """Count the rows of every combination of some candidates.

        Parameters
        ----------
        candidates : sequence of int
            Their places in the library.
        holdout : bool
            Whether to return the holdout's outcomes; else discovery's, or of all rows.
        """
        by = {
            # the engine may be unable to evaluate a candidate whose value differs there
            f"candidate {j}": "FALSE"
            if self.is_uncounted(self.library[j])
            else spell_value(self.library[j])
            for j in candidates
        }
        scan = self.scan_cells([], by)
        part = ~scan.is_discovery if holdout else scan.is_discovery
        scored = part & ~np.isnan(scan.loss)
        rows = scan.cells.rows
        sums = {
            "rows": rows,
            "deciding": np.where(part, rows, 0),
            "scored": np.where(scored, rows, 0),
            "errors": np.where(scored & (scan.loss == 1), rows, 0),
        }
        table = scan.cells.keys.select(*by).with_columns(
            pl.Series(name, values) for name, values in sums.items()
        )
        table = table.group_by(list(by)).agg(pl.col(*sums).sum()).sort(list(by))
        values = table.select(*by)
        return JointCells(
            np.array(candidates, dtype=np.intp),
            values.fill_null(value=False).to_numpy().T.astype(np.bool_),
            values.select(pl.all().is_not_null()).to_numpy().T.astype(np.bool_),
            *(table[name].to_numpy().astype(np.int64) for name in sums),
        )

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
        """Return a function from a ledger's salt to the sample of outcomes that it keeps."""
        return self.lazy.sample_outcomes(self.rows)

    def try_rules(self, *, modes: bool) -> None:
        """Read the rows that are searched for failure modes, before anything is recorded."""
        if modes:
            self.searched  # noqa: B018

    @cached_property
    def discovery_mask(self) -> Bools:
        """Return all rows of the sample, which has no held-out row."""
        return np.ones(self.evidence.unit_count, dtype=np.bool_)

    @cached_property
    def split_hash(self) -> str:
        """Return the SHA-256 of the expression that splits."""
        part = self.lazy.find_part(self.plan) if self.has_holdout else ""
        return hashlib.sha256(part.encode()).hexdigest()

    def losses(self, unscored: int | None = None) -> Floats:
        """Return the losses of all cells, NaN where not scored: shape (1, cells)."""
        return (self.scan.loss if unscored is None else self.scan.fill(unscored))[None]

    def units(self, losses: Floats) -> CountedUnits:
        """Return all rows, with these losses of cells."""
        joint, is_unscored = self.joint, np.isnan(self.scan.loss)
        if joint is not None and is_unscored.any() and not np.isnan(losses).any():
            joint = joint.with_unscored_as(int(losses[0][is_unscored][0]))
        units = self.scan.make_units(self.library, self.marks, losses[0])
        return replace(units, joint=joint)

    def parts(self, losses: Floats) -> tuple[CountedUnits, CountedUnits | None]:
        """Return the rows of discovery and of the holdout; all and None without a holdout."""
        if not self.has_holdout:
            return self.units(losses), None
        is_discovery = self.scan.is_discovery
        discovery, holdout = (
            self.scan.make_units(self.library, self.marks, losses[0], part)
            for part in (is_discovery, ~is_discovery)
        )
        return discovery, holdout

    def join(self, units: Units, candidates: Sequence[int]) -> CountedUnits:
        """Count some candidates jointly, which shows duplicates among them.

        Parameters
        ----------
        units : CountedUnits
            Candidates that verdicts rest on.
        candidates : sequence of int
            Their places in the library.

        Returns
        -------
        CountedUnits
            Without joint cells for one candidate, for more than `MAX_JOINT`, and for graded losses,
            since cells only tell how many units failed.
        """
        assert isinstance(units, CountedUnits)
        is_binary = self.scan.strata is None and not is_graded(self.scan.loss)
        if units.joint is not None or not 2 <= len(candidates) <= MAX_JOINT or not is_binary:
            return units
        return replace(units, joint=self.count_jointly(candidates, holdout=self.has_holdout))

    def find_disagreements(self, rules: Mapping[str, Rule]) -> dict[str, str]:
        """Find rules whose values in the engine differ, and in how many rows of the sample."""
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
        """Return whether a candidate is not counted, because it is not tested."""
        return candidate.name in self.disagreements or self.varies(candidate)

    @property
    def unusable(self) -> tuple[str, ...]:
        """Return why each candidate cannot be tested, according to the sample; else empty."""
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
    def sample_losses(self) -> Floats:
        """Return the losses of the sample, NaN where not scored."""
        return self.evidence.loss.cast(pl.Float64).fill_null(np.nan).to_numpy()

    @property
    def sample_rule(self) -> str:
        """Return the rule that drew the sample."""
        return self.lazy.find_sample(self.plan, self.rows, holdout=self.has_holdout)

    @property
    def searches_all(self) -> bool:
        """Return whether failure modes are searched in all rows, which are few enough to read."""
        return self.rows <= 2 * SAMPLE

    @cached_property
    def searched(self) -> Evidence:
        """Return the rows of the search for failure modes: all rows, or the sample."""
        return self.lazy.take("TRUE") if self.searches_all else self.evidence
