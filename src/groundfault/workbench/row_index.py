"""Finding rows: masks of rules and places of selections, the last few of each remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from groundfault.core.candidate import Candidate, Library
from groundfault.core.finding import Cell
from groundfault.core.patterns import quote_character
from groundfault.core.rules import Rule
from groundfault.core.units import Marks
from groundfault.errors import InputError, first_line
from groundfault.modes.near_misses import NearMiss, find_near_misses
from groundfault.stats import bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groundfault.workbench.row_query import RowQuery
    from groundfault.workbench.rows import Rows

Value = TypeVar("Value")

_MAX_MEMORY = {"marks": 24, "near": 2, "rest": 6, "places": 8}
"""Answers of each kind that are remembered: of a million rows, some take eight megabytes."""


@dataclass
class RowIndex:
    """Finds rows of a table.

    Attributes
    ----------
    rows : Rows
    library : Library
        Candidates of the report: a rule of theirs means here what it meant there.
    """

    rows: Rows
    library: Library
    _memory: dict[str, OrderedDict[Any, Any]] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def mark(self, rule: str) -> NDArray[np.bool_]:
        """The units that a rule is true for, as the audit marks them: shape (units,).

        Raises
        ------
        RuleError
            If it cannot be read, or evaluated on these rows.
        """
        marks = self._apply(rule)
        return np.asarray(bits.unpack(marks.on, marks.size)[0])

    def count(self, rule: str) -> dict[str, Cell]:
        """Units and failures inside and outside a rule, by outcome: as the audit counts them.

        Raises
        ------
        RuleError
            If it cannot be read, or evaluated on these rows.
        """
        tables = replace(self.rows.units, marks=self._apply(rule)).tables
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

    def _apply(self, rule: str) -> Marks:
        library = Library((self.find_candidate(rule),))
        return self._remember("marks", rule, lambda: Marks.of(self.rows.evidence, library))

    def find_candidate(self, rule: str) -> Candidate:
        """The report's candidate of this rule, or a new one; a missing value is outside it."""
        parsed = Rule.parse(rule).sql
        for candidate in self.library:
            if candidate.parsed.sql == parsed:
                return candidate
        return Candidate("rule", rule, missing="off")

    def holds(self, rule: str) -> NDArray[np.bool_]:
        """The rows of these units: shape (rows,)."""
        return self.mark(rule)[self.rows.evidence.unit_index]

    def find_near_misses(self, rule: str) -> tuple[NearMiss, ...]:
        """What one condition alone keeps outside a rule, among the rows.

        None for a rule that reads a fitted column, which is known of nothing but its units.
        """
        candidate = self.find_candidate(rule)
        if candidate.fitted_column is not None:
            return ()
        return self._remember("near", rule, lambda: find_near_misses(rule, self.rows.frame))

    def select(self, query: RowQuery) -> NDArray[np.intp]:
        """Places of all rows of a selection, in its order.

        Raises
        ------
        RuleError, InputError
            If a rule, a filter or the column of the order cannot be used.
        """
        return self._remember("places", replace(query, start=0), lambda: self._select(query))

    def count_views(self, query: RowQuery) -> dict[str, int]:
        """How many rows each view of a selection has."""
        rest = self._remember("rest", _rest(query), lambda: self._filter(query))
        every = {"all": int(rest.sum())}
        inside = rest & self.holds(query.rule) if query.rule else rest
        every["failing"] = int((inside & self.rows.fails).sum())
        every["passing"] = int((inside & self.rows.passes).sum())
        every["inside"] = int(inside.sum())
        near = self.find_near_misses(query.rule) if query.rule else ()
        every["near"] = sum(int((rest & miss.mask).sum()) for miss in near)
        return every

    def _select(self, query: RowQuery) -> NDArray[np.intp]:
        rest = self._remember("rest", _rest(query), lambda: self._filter(query))
        if query.view == "near":
            misses = self.find_near_misses(query.rule) if query.rule else ()
            parts = [miss.places[rest[miss.places]] for miss in misses]
            places = np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)
        else:
            mask = rest
            if query.rule and query.view != "all":
                mask = mask & self.holds(query.rule)
            if query.view in ("failing", "passing"):
                mask = mask & (self.rows.fails if query.view == "failing" else self.rows.passes)
            places = np.flatnonzero(mask)
        places = self._sort(places, query.sort) if query.sort else places
        # half the memory; no table has so many rows
        return places.astype(np.int32)

    def _filter(self, query: RowQuery) -> NDArray[np.bool_]:
        """Where the filters, the text and the model of a selection hold."""
        frame, roles = self.rows.frame, self.rows.evidence.roles
        mask = np.ones(frame.height, dtype=np.bool_)
        for condition in query.where:
            rule = Rule.parse(condition)
            self.require_columns(rule.columns)
            mask &= rule.holds(frame).to_numpy()
        if query.model and roles.model:
            models = frame[roles.model].cast(pl.String)
            mask &= (models == query.model).fill_null(False).to_numpy()
        if query.text:
            mask &= self._search(query.text)
        return mask

    def _search(self, text: str) -> NDArray[np.bool_]:
        """Rows in which some column has a text, in capitals or not."""
        pattern = "(?i)" + "".join(map(quote_character, text))
        names = [name for name, kind in self.rows.frame.schema.items() if kind == pl.String]
        if not names:
            return np.zeros(len(self.rows), dtype=np.bool_)
        matches = pl.any_horizontal(pl.col(name).str.contains(pattern) for name in names)
        holds = self.rows.frame.select(matches.fill_null(False)).to_series()
        return np.asarray(holds.to_numpy())

    def _sort(self, places: NDArray[np.intp], sort: str) -> NDArray[np.intp]:
        name = sort.removeprefix("-")
        self.require_columns((name,))
        column = self.rows.frame[name]
        if len(places) < len(column):
            column = column[places]
        try:
            order = column.arg_sort(descending=sort.startswith("-"), nulls_last=True)
        except pl.exceptions.PolarsError as error:
            raise InputError(f"{name!r} cannot be sorted by: {first_line(error)}") from None
        return np.asarray(places[order.to_numpy()])

    def require_columns(self, names: tuple[str, ...]) -> None:
        """Raise `InputError` for a name that the table does not have."""
        for name in names:
            if name not in self.rows.columns:
                raise InputError(
                    f"the table has no column {name!r}; it has "
                    f"{', '.join(map(repr, self.rows.columns[:20]))}"
                )

    def _remember(self, kind: str, key: Any, compute: Callable[[], Value]) -> Value:
        with self._lock:
            memory = self._memory.setdefault(kind, OrderedDict())
            if key in memory:
                memory.move_to_end(key)
                value: Value = memory[key]
                return value
        value = compute()
        with self._lock:
            memory[key] = value
            while len(memory) > _MAX_MEMORY[kind]:
                memory.popitem(last=False)
        return value


def _rest(query: RowQuery) -> tuple[Any, ...]:
    return query.where, query.text, query.model
