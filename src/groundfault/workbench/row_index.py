"""Finding rows: masks of rules and places of selections, the last few of each remembered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
import polars as pl

from groundfault.core.candidate import Candidate, Library
from groundfault.core.finding import Cell
from groundfault.core.rules import Rule, literal, quote, quote_character
from groundfault.core.units import Marks
from groundfault.errors import InputError, first_line, require_name
from groundfault.modes.near_misses import NearMiss, find_near_misses
from groundfault.stats import bits
from groundfault.workbench.rows import write_value

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.datastructures import QueryParams

    from groundfault.workbench.rows import Rows


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

    def __post_init__(self) -> None:
        # the last few answers of each kind: of a million rows, some take eight megabytes
        self._marks = lru_cache(24)(self._apply)
        self._misses = lru_cache(2)(lambda rule: find_near_misses(rule, self.rows.frame))
        self._matches = lru_cache(6)(self._filter)
        self._places = lru_cache(8)(self._select)

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

    def measure_change(self, rule: str, pair: tuple[str, str]) -> tuple[float | None, float | None]:
        """Return the mean change from one model to another inside a rule, and elsewhere.

        Parameters
        ----------
        rule : str
            In SQL.
        pair : two of str
            Models.

        Returns
        -------
        two of float or None
            In [-1, 1], over units that both were scored on; None where there is none.
        """
        first, second = self.rows.select_pair(pair)
        changes, inside = second - first, self.mark(rule)
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

        None for a rule that reads a fitted column, which is known of nothing but its units.
        """
        is_fitted = self.find_candidate(rule).fitted_column is not None
        return () if is_fitted else self._misses(rule)

    def select(self, query: RowQuery) -> NDArray[np.intp]:
        """Return the places of all rows of a selection, in its order.

        Raises
        ------
        RuleError, InputError
            If a rule, a filter or the column of the order cannot be used.
        """
        return self._places(replace(query, start=0))

    def count_views(self, query: RowQuery) -> dict[str, int]:
        """Return the number of rows of each view of a selection."""
        return {view: len(self._find_view(replace(query, view=view))) for view in get_args(View)}

    def _find_view(self, query: RowQuery) -> NDArray[np.intp]:
        """Return the places of a view: in the table's order, of near misses in that of distance."""
        mask = self._matches(query.where, query.text, query.model)
        if query.view == "near":
            misses = self.find_near_misses(query.rule) if query.rule else ()
            parts = [miss.places[mask[miss.places]] for miss in misses]
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)
        if query.rule and query.view != "all":
            mask = mask & self.holds(query.rule)
        if query.view in ("failing", "passing"):
            mask = mask & (self.rows.fails if query.view == "failing" else self.rows.passes)
        return np.flatnonzero(mask)

    def _select(self, query: RowQuery) -> NDArray[np.intp]:
        places = self._find_view(query)
        places = self._sort(places, query.sort) if query.sort else places
        # half the memory; no table has so many rows
        return places.astype(np.int32)

    def _filter(self, where: tuple[str, ...], text: str, model: str) -> NDArray[np.bool_]:
        """Return the rows that match the filters, the text and the model of a selection."""
        frame, mask = self.rows.frame, self.rows.select_model(model)
        for condition in where:
            rule = Rule.parse(condition)
            self.require_columns(rule.columns)
            mask = mask & rule.holds(frame).to_numpy()
        if text:
            mask = mask & self._search(text)
        return mask

    def _search(self, text: str) -> NDArray[np.bool_]:
        """Return the rows in which some column has a text, in capitals or not."""
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
            require_name("column", name, self.rows.columns, InputError)


View = Literal["failing", "passing", "near", "inside", "all"]
"""Rows inside a rule that failed or passed, that it nearly holds for, all inside it, all rows."""

PAGE = 60
"""Rows of a page: 40 kB of it, which a browser sets at once."""

_MAX_FILTERS = 20
"""At once: each is a clause of one rule, and an address has its limit."""


@dataclass(frozen=True)
class RowQuery:
    """A selection of rows and an order.

    Attributes
    ----------
    rule : str
        In SQL; empty for none.
    view : str
        See `View`; without a rule every row is inside it, and none is near.
    where : tuple of str
        Further conditions in SQL, all of which have to hold.
    text : str
        What some text of a row has to contain, in capitals or not.
    model : str
        Whose rows; empty for all.
    sort : str
        A column, behind a minus for the largest first; empty for the order of the ids, of near
        misses for those next across a threshold first.
    start : int
        Place of the first row that is shown, from 0.
    """

    rule: str = ""
    view: View = "all"
    where: tuple[str, ...] = ()
    text: str = ""
    model: str = ""
    sort: str = ""
    start: int = 0

    @classmethod
    def of(cls, params: QueryParams) -> RowQuery:
        """Read an address.

        Raises
        ------
        InputError
            If a part of it cannot be read.
        """
        rule = params.get("rule", "").strip()
        view = params.get("view") or ("failing" if rule else "all")
        start = params.get("start", "0") or "0"
        require_name("view", view, get_args(View), InputError)
        if not start.isascii() or not start.isdecimal() or len(start) > 12:
            raise InputError(f"start is the place of a row, from 0, not {start!r}")
        where = tuple(dict.fromkeys(filter(None, map(str.strip, params.getlist("where")))))
        if len(where) > _MAX_FILTERS:
            raise InputError(f"at most {_MAX_FILTERS} filters at once")
        text = params.get("q", "")
        model, sort = params.get("model", ""), params.get("sort", "")
        return cls(rule, cast(View, view), where, text, model, sort, int(start))

    def to_params(self, **changes: Any) -> dict[str, Any]:
        """Return the address of this selection, or of one that differs in some fields.

        Another selection begins at its first row.
        """
        params = vars(replace(self, **({"start": 0} | changes)))
        changed = {"q": params["text"], "where": tuple(dict.fromkeys(params["where"]))}
        return params | changed | {"text": None, "start": params["start"] or None}


_MAX_VALUES, _BINS, _LONGEST = 20, 12, 80
"""Values listed of a column, ranges of its numbers, characters of a value: one screen of them."""


@dataclass(frozen=True)
class ValueCount:
    """A value or a range of values.

    Attributes
    ----------
    text : str
    count : int
        Rows of the selection that have it.
    where : str
        The filter, in SQL; empty where a rule cannot say it.
    """

    text: str
    count: int
    where: str


@dataclass(frozen=True)
class ColumnSummary:
    """A column among some rows.

    Attributes
    ----------
    name : str
    values : tuple of ValueCount
    distinct : int
        Different values.
    missing : int
        Rows without a value.
    """

    name: str
    values: tuple[ValueCount, ...]
    distinct: int
    missing: int


def summarise_column(index: RowIndex, query: RowQuery, name: str) -> ColumnSummary:
    """Count the values of a column: ranges of many numbers, else the most frequent ones.

    Raises
    ------
    InputError
        If there is no such column.
    """
    index.require_columns((name,))
    column = index.rows.frame[name][index.select(query)]
    missing, distinct = column.null_count(), 0
    values: tuple[ValueCount, ...] = ()
    if not column.dtype.is_nested() and column.dtype != pl.Object:
        distinct = column.drop_nulls().n_unique()
        is_range = column.dtype.is_numeric() and distinct > _MAX_VALUES
        values = _count_ranges(name, column) if is_range else _count_values(name, column)
    return ColumnSummary(name, values, distinct, missing)


def describe_type(kind: pl.DataType) -> str:
    """Return the kind of a column in plain words.

    Examples
    --------
    >>> describe_type(pl.Int64()), describe_type(pl.List(pl.String()))
    ('whole numbers', 'lists or records')
    """
    if kind.is_integer():
        return "whole numbers"
    if kind.is_numeric():
        return "numbers"
    if kind.is_nested():
        return "lists or records"
    names = {
        pl.String: "text",
        pl.Boolean: "true or false",
        pl.Date: "dates",
        pl.Datetime: "dates and times",
    }
    return names.get(type(kind), str(kind).lower())


def _count_values(name: str, column: pl.Series) -> tuple[ValueCount, ...]:
    table = column.drop_nulls().value_counts(sort=True, name="_count").head(_MAX_VALUES)
    if column.dtype.is_numeric():
        table = table.sort(name)
    return tuple(
        ValueCount(_shorten(value), count, _equals(name, value))
        for value, count in table.iter_rows()
    )


def _count_ranges(name: str, column: pl.Series) -> tuple[ValueCount, ...]:
    """Return equally wide ranges from the least to the largest value."""
    values: NDArray[np.float64] = column.drop_nulls().cast(pl.Float64).to_numpy()
    values = values[np.isfinite(values)]
    counts, edges = np.histogram(values, bins=_BINS)
    out, is_whole = [], column.dtype.is_integer()
    for place, count in enumerate(counts.tolist()):
        low, high = float(edges[place]), float(edges[place + 1])
        is_last = place == _BINS - 1
        if is_whole:
            # whole numbers of a bin, both ends in it
            first, last = int(np.ceil(low)), int(np.floor(high)) - (high % 1 == 0 and not is_last)
            where, text = f"{quote(name)} BETWEEN {first} AND {last}", f"{first:,} to {last:,}"
        else:
            end = "<=" if is_last else "<"
            where = f"{quote(name)} >= {low!r} AND {quote(name)} {end} {high!r}"
            text = f"{low:.4g} to {high:.4g}"
        out.append(ValueCount(text, count, where))
    return tuple(out)


def _equals(name: str, value: object) -> str:
    if isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value)):
        return f"{quote(name)} = {literal(value)}"
    return ""


def _shorten(value: object) -> str:
    text = write_value(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
