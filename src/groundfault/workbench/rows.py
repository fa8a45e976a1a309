"""The rows that may be looked at, of discovery units alone, and the rows that match a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.evidence_again import Places
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import read_matching
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Cell
from groundfault.core.rules import Rule, quote_character
from groundfault.core.status import Status
from groundfault.core.units import Marks, Units, average_losses
from groundfault.errors import InputError, require_name
from groundfault.modes.examples import find_failures, find_text_columns
from groundfault.modes.near_misses import NearMiss, find_near_misses
from groundfault.stats import bits

Value = TypeVar("Value")

# files in which another process leaves the rows: the table, and what evidence has beside it
_TABLE, _BESIDE = "table.arrow", "beside.arrow"


@dataclass(frozen=True)
class Rows:
    """The discovery rows of a report's evidence.

    Attributes
    ----------
    evidence : Evidence
        Of the discovery units alone: no held-out row is in it.
    total : int
        Units of the whole evidence.
    """

    evidence: Evidence
    total: int

    @classmethod
    def of(cls, case: PreparedAudit) -> Rows:
        """Keep the discovery rows of evidence as a report's audit judged it."""
        evidence = case.evidence
        return cls(evidence.take(case.discovery_mask[evidence.unit_index]), evidence.unit_count)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return all columns of the table."""
        return tuple(self.evidence.frame.columns)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Return columns with texts to read: prompts, answers, targets."""
        return find_text_columns(self.evidence)

    @property
    def frame(self) -> pl.DataFrame:
        """Return the table."""
        return self.evidence.frame

    @property
    def ids(self) -> pl.Series:
        """Return the id of each row, as text."""
        return self.frame[self.evidence.roles.id or ""].cast(pl.String)

    def select_model(self, name: str) -> NDArray[np.bool_]:
        """Return the rows of a model as a mask; without a name, all rows."""
        column = self.evidence.roles.model
        if not name or not column:
            return np.ones(len(self), dtype=np.bool_)
        matches = self.frame[column].cast(pl.String) == name
        return np.asarray(matches.fill_null(False).to_numpy())

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """Return the loss of each row, NaN for unscored rows: shape (rows,)."""
        return np.asarray(self.evidence.loss.to_numpy(), dtype=np.float64)

    @cached_property
    def outcomes(self) -> tuple[str, ...]:
        """Return the names of the models; one empty name where there is one alone."""
        return self.evidence.models if len(self.evidence.models) > 1 else ("",)

    @cached_property
    def units(self) -> Units:
        """Return the units and their losses, for counting; without marks."""
        return Units.of(Marks.of(self.evidence, Library(())), self.unit_losses)

    @cached_property
    def unit_losses(self) -> NDArray[np.float64]:
        """Return each unit's mean loss by model, NaN where not scored: (models, units)."""
        return average_losses(self.evidence)

    def select_pair(self, pair: tuple[str, str]) -> NDArray[np.float64]:
        """Return the losses of two models, unit by unit: shape (2, units), NaN where not scored."""
        return self.unit_losses[[self.outcomes.index(name) for name in pair]]

    @cached_property
    def fails(self) -> NDArray[np.bool_]:
        """Mark rows that failed: at least half wrong or, if no row is, worse than the mean."""
        return find_failures(self.loss, ~np.isnan(self.loss))

    def __len__(self) -> int:
        return len(self.evidence)


def load_rows(report: Report, folder: Path, place: Places | None = None) -> Rows:
    """Read the evidence of a report, and keep its discovery rows.

    The file has all rows, and its hash is taken over all to see that it is what was audited. The
    rest is let go here, before anything is shown: no screen can reach a held-out row.

    Parameters
    ----------
    report : Report
    folder : Path
        Where the report is.
    place : path, or sequence of path, optional
        Where the evidence is now, if it has moved.

    Raises
    ------
    InputError
        If the evidence is missing, or differs from the audited evidence.
    """
    return Rows.of(read_matching(report, folder, place))


def load_apart(report: Report, folder: Path, place: Places | None = None) -> Rows:
    """Load rows in a process of its own, which ends with `load_rows`.

    This process then never holds a held-out outcome, nor the memory that all rows take.
    """
    with TemporaryDirectory(prefix="groundfault-") as home:
        rest = run_apart("read the evidence", _write_rows, Path(home), report, folder, place)
        # in a file, since a pipe would need the memory three times
        frame, parts = (_read_columns(Path(home) / name) for name in (_TABLE, _BESIDE))
    beside: dict[str, Any] = {part.name: part.rename("") for part in parts}
    return replace(rest, evidence=replace(rest.evidence, frame=frame, **beside))


def run_apart(deed: str, function: Callable[..., Value], *arguments: object) -> Value:
    """Run a function in a process of its own and return the result.

    Parameters
    ----------
    deed : str
        Such as "read the evidence", for the message where the process was ended.
    function : callable
    *arguments

    Raises
    ------
    InputError
        If the process was ended.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            raise InputError(
                f"the process that {deed} was ended, perhaps for lack of memory"
            ) from None


def _read_columns(path: Path) -> pl.DataFrame:
    """Read a file one column at a time: all at once would need the memory twice."""
    columns = [pl.read_ipc(path, columns=[name]) for name in pl.read_ipc_schema(path)]
    return pl.concat(columns, how="horizontal") if columns else pl.DataFrame()


def _write_rows(home: Path, report: Report, folder: Path, place: Places | None) -> Rows:
    """Write the discovery rows to files, and return their description."""
    rows = load_rows(report, folder, place)
    evidence = rows.evidence
    series = {name: getattr(evidence, name) for name in ("loss", "status", "clusters")}
    # a byte each: of a million rows the words take sixteen times as much
    series["status"] = evidence.status.cast(pl.Enum(list(map(str, Status))))
    beside = pl.DataFrame({name: part for name, part in series.items() if part is not None})
    evidence.frame.write_ipc(home / _TABLE)
    beside.write_ipc(home / _BESIDE)
    empty: dict[str, Any] = {name: beside[name].clear() for name in beside.columns}
    return replace(
        rows, evidence=replace(evidence, frame=evidence.frame.clear(), log_rows=None, **empty)
    )


@dataclass
class RowIndex:
    """Finds rows of a table.

    Attributes
    ----------
    rows : Rows
    library : Library
        Candidates of the report; their rules have the same meaning here.
    """

    rows: Rows
    library: Library

    def __post_init__(self) -> None:
        # the last few answers of each kind: of a million rows, some take eight megabytes
        self._marks = lru_cache(24)(self._apply)
        self._misses = lru_cache(2)(lambda rule: find_near_misses(rule, self.rows.frame))

    def mark(self, rule: str) -> NDArray[np.bool_]:
        """Return the units that a rule is true for, as the audit marks them: shape (units,).

        Raises
        ------
        RuleError
            If it cannot be read, or evaluated on these rows.
        """
        marks = self._marks(rule)
        return np.asarray(bits.unpack(marks.on, marks.size)[0])

    def count(self, rule: str) -> dict[str, Cell]:
        """Count units and failures inside and outside a rule, by outcome, as the audit does.

        Raises
        ------
        RuleError
            If it cannot be read, or evaluated on these rows.
        """
        tables = replace(self.rows.units, marks=self._marks(rule)).tables
        sums = zip(tables.on, tables.off, tables.on_sum, tables.total, tables.lift, strict=True)
        cells = [
            Cell(
                on=int(on),
                off=int(off),
                on_errors=float(inside) / tables.unit,
                off_errors=float(total - inside) / tables.unit,
                lift=float(lift) if on and off else None,
            )
            for on, off, inside, total, lift in sums
        ]
        return dict(zip(self.rows.outcomes, cells, strict=True))

    def measure_change(
        self, rule: str, pair: tuple[str, str]
    ) -> tuple[float | None, float | None] | None:
        """Return the mean change from one model to another inside a rule, and elsewhere.

        Parameters
        ----------
        rule : str
            In SQL.
        pair : two of str
            Models.

        Returns
        -------
        two of float or None, or None
            In [-1, 1], over units that both were scored on; None where there is none. One None if
            no unit is of both: then only like units can be compared, as the report does.
        """
        first, second = self.rows.select_pair(pair)
        changes, inside = second - first, self.mark(rule)
        if np.isnan(changes).all():
            return None
        sides = (changes[~np.isnan(changes) & side] for side in (inside, ~inside))
        on, off = (side.mean() if len(side) else None for side in sides)
        return on, off

    def _apply(self, rule: str) -> Marks:
        return Marks.of(self.rows.evidence, Library((self.find_candidate(rule),)))

    def find_candidate(self, rule: str) -> Candidate:
        """Return the report's candidate of this rule, or a new one without missing values."""
        parsed = Rule.parse(rule).sql
        for candidate in self.library:
            if candidate.parsed.sql == parsed:
                return candidate
        return Candidate("rule", rule, missing="off")

    def holds(self, rule: str) -> NDArray[np.bool_]:
        """Return the rows of these units: shape (rows,)."""
        return self.mark(rule)[self.rows.evidence.unit_index]

    def find_near_misses(self, rule: str) -> tuple[NearMiss, ...]:
        """Return the rows that one condition alone keeps outside a rule.

        None for a rule that reads a fitted column, which has values for the audited units alone.
        """
        is_fitted = self.find_candidate(rule).fitted_column is not None
        return () if is_fitted else self._misses(rule)

    def filter(self, where: Sequence[str]) -> NDArray[np.bool_]:
        """Return the rows for which all conditions hold: shape (rows,).

        Raises
        ------
        RuleError, InputError
            If a condition cannot be read or evaluated, or names another column.
        """
        mask = np.ones(len(self.rows), dtype=np.bool_)
        for condition in where:
            rule = Rule.parse(condition)
            for name in rule.columns:
                require_name("column", name, self.rows.columns, InputError)
            mask = mask & rule.holds(self.rows.frame).to_numpy()
        return mask

    def search(self, text: str) -> NDArray[np.bool_]:
        """Return the rows in which some column has a text, in capitals or not."""
        pattern = "(?i)" + "".join(map(quote_character, text))
        names = [name for name, kind in self.rows.frame.schema.items() if kind == pl.String]
        if not names:
            return np.zeros(len(self.rows), dtype=np.bool_)
        matches = pl.any_horizontal(pl.col(name).str.contains(pattern) for name in names)
        holds = self.rows.frame.select(matches.fill_null(False)).to_series()
        return np.asarray(holds.to_numpy())
