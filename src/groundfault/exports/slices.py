"""Membership of examples in failure modes and slices of a report, and its table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.evidence_again import Places, read_evidence_again
from groundfault.auditing.messages import write_mode_sentence
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report, report_path
from groundfault.auditing.report_examples import mark_rule, match_evidence
from groundfault.base.sheets import write_table
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.judge import Judge
from groundfault.core.units import Marks
from groundfault.stats import bits

_PREFIX = "slice: "


@dataclass(frozen=True)
class ReportSlices:
    """A report together with the evidence it is of, and the slices that are given back.

    These are its failure modes, in their order, and after them candidates.

    Make one with `of` or `load`.

    Attributes
    ----------
    report : Report
    case : PreparedAudit
        The judged evidence, and its split.
    library : Library
        The candidates that are given back, in the order of the report: the confirmed ones, or all.
    folder : Path or None
        Where the report was read; None for one in memory.
    """

    report: Report
    case: PreparedAudit
    library: Library
    folder: Path | None = None

    @classmethod
    def of(
        cls, report: Report, evidence: Evidence, *, every: bool = False, judge: Judge | None = None
    ) -> ReportSlices:
        """Put a report and its evidence together.

        Parameters
        ----------
        report : Report
        evidence : Evidence
            The audited evidence; of more models than the report's, its models are picked.
        every : bool
            Give back all candidates, not the confirmed ones alone.
        judge : Judge, optional
            The report's judge, where no installed package has one of its name.

        Raises
        ------
        InputError
            If the report is not of this evidence.
        """
        case = match_evidence(report, evidence, judge=judge)
        names = dict.fromkeys(f.name for f in report.findings if every or f.confirmed)
        by_name = {c.name: c for c in report.library}
        return cls(report, case, Library(tuple(by_name[name] for name in names)))

    @classmethod
    def load(
        cls,
        directory: str | Path,
        evidence: Places | None = None,
        *,
        every: bool = False,
        judge: Judge | None = None,
    ) -> ReportSlices:
        """Read a report that ``Report.write`` wrote, and its evidence.

        Parameters
        ----------
        directory : path
            With report.json and library.json.
        evidence : path, or sequence of path, optional
            Where the evidence is now, if it has moved, as in `groundfault.verify`.
        every, judge
            As in `of`.

        Raises
        ------
        InputError
            If the directory holds no report, its evidence is not there, or it has changed.
        """
        report = Report.load(directory)
        sources = read_evidence_again(report, directory, evidence)
        slices = cls.of(report, sources, every=every, judge=judge)
        return replace(slices, folder=report_path(directory).parent)

    @property
    def evidence(self) -> Evidence:
        """Return the judged evidence."""
        return self.case.evidence

    @property
    def names(self) -> tuple[str, ...]:
        """Return names of the columns: ``mode 1: MEANING``, ..., then names of candidates."""
        modes = (
            f"mode {number}{f' of {mode.outcome}' if mode.outcome else ''}: {mode.meaning}"
            for number, mode in enumerate(self.report.modes, start=1)
        )
        return (*modes, *(c.name for c in self.library))

    @cached_property
    def _members(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        marks = Marks.of(self.evidence, self.library)
        on = bits.unpack(marks.on, marks.size)
        defined = np.ones_like(on) if marks.valid is None else bits.unpack(marks.valid, marks.size)
        # what could not be tested is given back as unknown, not as "off the slice"
        defined[[bool(reason) for reason in marks.unusable]] = False
        modes = [mark_rule(self.report, self.case, mode)[0] for mode in self.report.modes]
        # an example whose values are missing is outside a failure mode: those are defined for all
        inside = np.array(modes, dtype=np.bool_).reshape(-1, marks.size)
        return np.vstack([inside, on]), np.vstack([np.ones_like(inside), defined])

    def of_unit(self, unit: int) -> dict[str, bool | None]:
        """Return whether a unit is on each slice; None where that is not defined for it."""
        on, defined = self._members
        return {
            name: bool(on[i, unit]) if defined[i, unit] else None
            for i, name in enumerate(self.names)
        }

    def on(self, row: int) -> list[str]:
        """Return names of the slices that a row of the evidence is on."""
        on, defined = self._members
        unit = self.evidence.unit_index[row]
        return [self.names[i] for i in np.flatnonzero(on[:, unit] & defined[:, unit])]

    def members(self) -> pl.DataFrame:
        """Return a table of which row of the evidence is on which slice.

        Returns
        -------
        polars.DataFrame
            A row an observation: the columns that name it, its ``status`` and ``loss``, the
            ``part`` it was in (discovery, holdout), and a column ``slice: NAME`` a failure mode or
            candidate, empty where that is not defined.
        """
        evidence, roles = self.evidence, self.evidence.roles
        units = evidence.unit_index
        on, defined = self._members
        part = pl.Series("part", np.where(self.case.discovery_mask, "discovery", "holdout")[units])
        keys_of_rows = [c for c in (roles.id, roles.model, roles.repeat, roles.group) if c]
        none = pl.Series([None], dtype=pl.Boolean)
        slices = [
            pl.Series(_PREFIX + name, on[i, units]).zip_with(pl.Series(defined[i, units]), none)
            for i, name in enumerate(self.names)
        ]
        results = [evidence.status.rename("status"), evidence.loss.rename("loss"), part]
        keys = evidence.frame.select(list(dict.fromkeys(keys_of_rows)))
        return keys.hstack([s for s in [*results, *slices] if s.name not in keys.columns])

    def summary(self) -> dict[str, Any]:
        """Return the report in a few words and numbers, for a tool that shows it beside its own."""
        modes = map(write_mode_sentence, self.report.modes)
        return {
            "modes": dict(zip(self.names, modes, strict=False)),
            "confirmed": {f.key: f.sentence for f in self.report.confirmed},
            "verdicts": self.report.counts(),
            "judge": self.report.judge,
            "groundfault": self.report.groundfault_version,
            "evidence": self.report.hashes.evidence,
            "plan": self.report.hashes.plan,
        }


def plain(row: dict[str, object]) -> dict[str, Any]:
    """Return a row without empty values, in values that JSON has."""

    def as_json(value: object) -> Any:
        is_number = isinstance(value, float) and math.isfinite(value)
        return value if is_number or isinstance(value, str | bool | int) else str(value)

    return {name: as_json(value) for name, value in row.items() if value is not None}


@dataclass(frozen=True)
class Memberships:
    """Write which row of the evidence is on which slice, as CSV, Parquet or JSONL."""

    name: str = "memberships"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the table in the format that the suffix of ``out`` names."""
        members = slices.members()
        write_table(members, out)
        return f"{members.height:,} rows"
