"""The rows that may be looked at, those of the discovery units alone, and how they are shown.

Texts are shortened, and the words and values that a rule names highlighted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.evidence_again import Places, read_evidence_again
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import match_evidence
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule, quote_character
from groundfault.core.status import Status
from groundfault.core.units import Marks, Units, average_losses
from groundfault.errors import InputError
from groundfault.modes.examples import find_failures, find_text_columns
from groundfault.render.highlights import find_patterns, highlight
from groundfault.render.page import Line

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
        """Return the rows of a model as a mask: all of them for no name, or of one model alone."""
        column = self.evidence.roles.model
        if not name or not column:
            return np.ones(len(self), dtype=np.bool_)
        matches = self.frame[column].cast(pl.String) == name
        return np.asarray(matches.fill_null(False).to_numpy())

    @cached_property
    def loss(self) -> NDArray[np.float64]:
        """Return the loss of each row, NaN where it was not scored: shape (rows,)."""
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
        """Mark rows that failed: half wrong at least or, if none is, worse than the mean."""
        return find_failures(self.loss, ~np.isnan(self.loss))

    @cached_property
    def passes(self) -> NDArray[np.bool_]:
        """Mark rows that were scored and did not fail."""
        return np.asarray(~self.fails & ~np.isnan(self.loss))

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
        If it is not there, or is not what was audited.
    """
    if report.manifest.derivation is not None:
        raise InputError(
            f"the evidence of this report was made from others ({report.manifest.derivation.kind}),"
            " so its examples cannot be shown"
        )
    return Rows.of(match_evidence(report, read_evidence_again(report.data, folder, place)))


def load_apart(report: Report, folder: Path, place: Places | None = None) -> Rows:
    """Do what `load_rows` does in a process of its own, which ends with it.

    This process then never holds a held-out outcome, nor the memory that all rows take.
    """
    with TemporaryDirectory(prefix="groundfault-") as home:
        rest = run_apart("read the evidence", _write_rows, Path(home), report, folder, place)
        # in a file, since a pipe would need the memory three times
        frame, parts = (_read_columns(Path(home) / name) for name in (_TABLE, _BESIDE))
    beside: dict[str, Any] = {part.name: part.rename("") for part in parts}
    return replace(rest, evidence=replace(rest.evidence, frame=frame, **beside))


def run_apart(deed: str, function: Callable[..., Value], *arguments: Any) -> Value:
    """Return what a function returns in a process of its own, which ends with it.

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
    """Write the discovery rows to files; the rest of them comes back."""
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


SHORT, LONG, WHOLE = 240, 700, 20_000
"""Characters of a text in a table, on a card, and on a page of its own: lines, a screen, all."""

_MIN_LENGTH = 30
"""Characters from which on a value is a sentence rather than a word."""


@dataclass(frozen=True)
class Field:
    """One value of a row.

    Attributes
    ----------
    name : str
        The column.
    line : tuple of str and Highlight
        Its text, line breaks and all.
    value : object
        As the table has it.
    mark : bool
        Whether the rule reads this column as a whole.
    cut : int
        Characters that are left out.
    """

    name: str
    line: Line
    value: Any
    mark: bool = False
    cut: int = 0

    @property
    def is_number(self) -> bool:
        """Return whether the value is a number."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)

    @property
    def is_long(self) -> bool:
        """Return whether it is a sentence rather than a word."""
        return isinstance(self.value, str) and len(self.value) > _MIN_LENGTH


@dataclass(frozen=True)
class RowView:
    """One row of a page.

    Attributes
    ----------
    place : int
        In the table.
    id, model : str
    fails : bool or None
        None where it was not scored.
    loss : float
        NaN where it was not scored.
    fields : tuple of Field
    """

    place: int
    id: str
    model: str
    fails: bool | None
    loss: float
    fields: tuple[Field, ...]


def show_rows(
    rows: Rows,
    places: NDArray[np.intp],
    columns: Sequence[str],
    *,
    rule: str = "",
    text: str = "",
    length: int = SHORT,
) -> tuple[RowView, ...]:
    """Return some rows with some of their columns.

    Parameters
    ----------
    rows : Rows
    places : intp array, shape (m,)
    columns : sequence of str
    rule : str
        What is highlighted: the words that it looks for, and the columns that it compares.
    text : str
        Highlighted too.
    length : int
        Characters of a text that are shown.
    """
    frame = rows.frame.select(columns)[places] if len(columns) else pl.DataFrame()
    patterns = find_patterns(rule) if rule else {}
    read = set(Rule.parse(rule).columns) - set(patterns) if rule else set()
    search = ("(?i)" + "".join(map(quote_character, text)),) if text else ()
    fields = {
        name: _set_column(frame[name], (*patterns.get(name, ()), *search), length, name in read)
        for name in columns
    }
    roles = rows.evidence.roles
    ids = rows.frame[roles.id or ""][places].cast(pl.String)
    models = rows.frame[roles.model][places].cast(pl.String) if roles.model else [""] * len(places)
    return tuple(
        RowView(
            int(place),
            str(ids[number]),
            str(models[number] or ""),
            None if np.isnan(rows.loss[place]) else bool(rows.fails[place]),
            float(rows.loss[place]),
            tuple(fields[name][number] for name in columns),
        )
        for number, place in enumerate(places)
    )


def _set_column(column: pl.Series, patterns: Sequence[str], length: int, mark: bool) -> list[Field]:
    """Return a field for each value of a column."""
    values = column.to_list()
    texts = [None if value is None else write_value(value) for value in values]
    return [
        Field(
            column.name,
            highlight(text[:length], patterns) if text else (),
            value,
            mark,
            max(len(text) - length, 0),
        )
        for value, text in zip(values, (text or "" for text in texts), strict=True)
    ]


def write_value(value: Any) -> str:
    """Return a value of a table as people write it.

    Examples
    --------
    >>> write_value(True), write_value(0.1 + 0.2), write_value(7)
    ('true', '0.3', '7')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
