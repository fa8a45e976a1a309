"""Roles: the parts that columns of a table play, such as outcome or model, and their checks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import polars as pl

from groundfault.core.column_meaning import (
    DirectionError,
    holds_conversations,
    means_pass,
    tell_rows_apart,
)
from groundfault.core.status import COUNTABLE, UNSCORED, Status
from groundfault.errors import InputError, RuleError

# beyond this a table is most likely turned on its side
_MOST_COLUMNS = 20_000

_COLUMNS = ("outcome", "id", "model", "repeat", "group", "split", "status")
"""Roles that one column may hold, in a fixed order."""

LISTS = ("ignore", "post_outcome", "during", "allow_leakage")
"""Roles that hold any number of columns, and that a user may name for tables and for logs."""

_OLD_KEYS = {"empty": "null_outcome", "allow_leak": "allow_leakage"}
"""Names of version 0.1.0 in reports and cards, and the present names."""


@dataclass(frozen=True)
class Roles:
    """The roles of columns; every other column of the table is an attribute or is ignored.

    Attributes
    ----------
    outcome : str
        Column of the outcome: 0/1 (1 is a failure), true/false, or a loss from 0 to 1. It may also
        hold Inspect's letters C, P, I and N.
    id : str, optional
        Column of example ids; by default each row is an example.
    model : str, optional
        Column that names the model of each row.
    repeat : str, optional
        Column that numbers repeats (epochs) of the same example and model.
    group : str, optional
        Column of groups of dependent examples; each group then counts as one unit.
    split : str, optional
        Column that says discovery or holdout for each row.
    status : str, optional
        Column that says scored, error, refused, unparsed, artefact or missing.
    positive_is_good : bool
        Whether 1 is a pass or a failure in the outcome; by default a failure, or a pass in a
        column named like correct; one named like score has no default. The loss of
        a pass is one minus the outcome.
    null_outcome : str, optional
        Status of rows without an outcome: missing, error, refused, unparsed or artefact. Without
        it, and without a status column that says so, empty outcomes are an error: an observation
        must not leave the denominator silently.
    ignore : tuple of str
        Column that no finder may use.
    instrument : tuple of str
        Column that describes the measurement, not the example. Examples are length, finish reason
        and judge.
    post_outcome : tuple of str
        Column that is a consequence of failing, so no candidate may use it.
    during : tuple of str
        Column made from the whole run, such as the verdict of a scanner or of a judge. It says how
        runs fail, so no rule may use it.
    allow_leakage : tuple of str
        Skip the leakage check for this column, although it predicts the outcome almost perfectly.
        Other columns that predict it this well are treated as consequences of the outcome.
    known : tuple of str
        Column that was known before the answer by the format of the log, such as an input. Set by
        readers, not by you.
    numbered : bool
        Whether ids are row numbers, because the table has no ids.
    count_as_failed : tuple of str
        Count answers of this status as failures, as some leaderboards do: unparsed, refused, error
        or missing. BFCL counts answers without a call, SWE-bench runs without a patch.
    scale : pair of float, optional
        Worst and best value of the outcome of a table, where it is not in [0, 1].
    passes : tuple of str
        Take this value of the outcome for a pass, such as A; all other values are failures.
    """

    outcome: str
    id: str | None = None
    model: str | None = None
    repeat: str | None = None
    group: str | None = None
    split: str | None = None
    status: str | None = None
    positive_is_good: bool = False
    null_outcome: str | None = None
    ignore: tuple[str, ...] = ()
    instrument: tuple[str, ...] = ()
    post_outcome: tuple[str, ...] = ()
    allow_leakage: tuple[str, ...] = ()
    numbered: bool = False
    count_as_failed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None
    passes: tuple[str, ...] = ()
    during: tuple[str, ...] = ()

    @property
    def unit(self) -> Literal["example", "group"]:
        """Return what is counted: an example, or a group of them."""
        return "group" if self.group else "example"

    @property
    def trusted(self) -> frozenset[str]:
        """Return the columns that no leak rule asks about: known by the format, or allowed."""
        return frozenset((*self.known, *self.allow_leakage))

    @property
    def apart(self) -> frozenset[str]:
        """Return the columns that describe an answer or follow from it, or that are ignored."""
        return frozenset((*self.ignore, *self.instrument, *self.post_outcome, *self.during))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that play a part, in a fixed order."""
        columns = (getattr(self, role) for role in _COLUMNS)
        return tuple(dict.fromkeys(column for column in columns if column is not None))

    def join(self, group: str | None, split: str | None, lists: Mapping[str, Any]) -> Roles:
        """Return the roles with another group or split, and with columns added to the lists.

        Parameters
        ----------
        group, split : str, optional
        lists : mapping of str to sequence of str
            Under the names in `LISTS`, or ``count_as_failed``.
        """
        columns: dict[str, Any] = {
            name: tuple(dict.fromkeys([*getattr(self, name), *lists.get(name, ())]))
            for name in (*LISTS, "count_as_failed")
        }
        return replace(self, group=group or self.group, split=split or self.split, **columns)

    def require_selectable(self, columns: Iterable[str], names: Sequence[str]) -> None:
        """Raise unless rows may be selected by these columns.

        Raises
        ------
        InputError
            If a column is missing.
        RuleError
            If a column says how an answer was scored, or is a consequence of the outcome.
        """
        for column in columns:
            if column not in names:
                raise InputError(
                    f"there is no column {column!r} to select rows by; columns are "
                    f"{', '.join(names[:20])}"
                )
            if column in (self.outcome, self.status, *self.post_outcome):
                raise RuleError(
                    f"rows cannot be selected by {column!r}: it says how an answer was scored, "
                    "and the rest would explain failures by failing"
                )


# stored reports and cards keep the keys of the version that wrote them
def read_roles(record: Mapping[str, object]) -> dict[str, Any]:
    """Return the roles of a report or of an evidence card, also of version 0.1.0, under today's
    names."""
    return {
        _OLD_KEYS.get(name, name): tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
    }


def check_shape(frame: pl.DataFrame, roles: Roles, where: str) -> None:
    """Raise `InputError` unless there are rows, and every column that plays a part."""
    if frame.width > _MOST_COLUMNS:
        raise InputError(
            f"{where} has {frame.width} columns; at most {_MOST_COLUMNS} are read: select the "
            "ones you need"
        )
    if frame.height == 0:
        raise InputError(f"{where} has no rows")
    for role in _COLUMNS:
        column = getattr(roles, role)
        if column is not None and column not in frame.columns:
            names = ", ".join(frame.columns[:20]) + (", ..." if frame.width > 20 else "")
            near = difflib.get_close_matches(column, frame.columns, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(
                f"{where} has no column {column!r} (named as {role}){guess}; its columns are "
                f"{names}"
            )
    patterns = [c for c in frame.columns if c == "*" or (c.startswith("^") and c.endswith("$"))]
    if patterns:
        raise InputError(
            f"{where}: column {patterns[0]!r} is named like a pattern, which rules cannot tell "
            "from one; rename it"
        )
    for part in (*LISTS, "instrument"):
        unknown = [c for c in getattr(roles, part) if c not in frame.columns]
        if unknown:
            raise InputError(f"{where} has no column {unknown[0]!r} (named as {part})")


def add_id(frame: pl.DataFrame, roles: Roles) -> Roles:
    """Add row numbers as an id column, in place, unless the roles name an id column."""
    if roles.id is not None:
        return roles
    name = "row"
    while name in frame.columns:
        name = "_" + name
    frame.insert_column(0, pl.int_range(frame.height, dtype=pl.UInt32, eager=True).alias(name))
    return replace(roles, id=name, numbered=True)


def check_keys(frame: pl.DataFrame, roles: Roles, where: str) -> None:
    """Raise `InputError` unless every row has a key of its own."""
    key = [column for column in (roles.id, roles.model, roles.repeat) if column]
    if len({roles.outcome, *key}) <= len(key):
        raise InputError(
            f"{where}: outcome, id, model and repeat need a column each, and one is named twice: "
            f"{', '.join([roles.outcome, *key])}"
        )
    for column in (*key, roles.group, roles.split):
        empty = frame[column].null_count() if column else 0
        if empty:
            raise InputError(
                f"{where}: column {column!r} is empty in {empty} rows; every observation needs one"
            )
    # where no id is there twice, no key is: the common case, in a third of the memory
    if frame[roles.id or ""].n_unique() == frame.height:
        return
    duplicates = frame.select(pl.struct(key).is_duplicated()).to_series()
    if duplicates.any():
        row = frame.filter(duplicates).select(key).row(0)
        example = ", ".join(f"{c}={v!r}" for c, v in zip(key, row, strict=True))
        add = "" if roles.repeat else f"; {tell_rows_apart(frame, key)}"
        raise InputError(
            f"{where}: {int(duplicates.sum())} rows share their key, for example {example}{add}"
        )


def read_rows(frame: pl.DataFrame, roles: Roles, where: str) -> tuple[Roles, pl.Series, pl.Series]:
    """Sort a table in place by `sort_rows`; return its roles, and each row's loss and status."""
    roles = sort_rows(frame, roles, where)
    return roles, *read_outcomes(frame, roles, where)


def sort_rows(frame: pl.DataFrame, roles: Roles, where: str) -> Roles:
    """Check a table, give it an id, and sort its rows by their keys, all in place.

    Masks, splits and hashes then do not depend on the order of rows in a file. If other code still
    uses the table, pass its `polars.DataFrame.clone`, which copies no values. Otherwise sorting
    copies only one column at a time.
    """
    check_shape(frame, roles, where)
    roles = add_id(frame, roles)
    check_keys(frame, roles, where)
    key = [column for column in (roles.id, roles.model, roles.repeat) if column]
    # names are text, so that a table sorts and splits alike whether its file kept 1 as a number or
    # as a word
    order = frame.select(pl.arg_sort_by(pl.col(c).cast(pl.String) for c in key)).to_series()
    in_order = order.is_sorted()
    for i in range(frame.width):
        column = frame.to_series(i)
        # of a column in one piece, texts stay where they are, and only their places are sorted
        values = column if in_order else column.rechunk().gather(order)
        # NaN and NULL both mean "missing" in data, but compare differently in rules: only NULL is
        # kept
        if column.dtype.is_float() and column.name != roles.outcome:
            values = values.fill_nan(None)
        frame.replace_column(i, values)
    return roles


_PARTS = 200
"""Columns that are made of others, at most: a list may have any number of elements."""
_ELEMENTS = 20
"""Elements of a list that become a column each, the most frequent ones."""


def list_parts(frame: pl.DataFrame) -> list[str]:
    """Return the columns that `add_parts` makes: the name of a date, list or struct, and a dot."""
    names = set(frame.columns)
    wholes = tuple(
        f"{c}."
        for c, dtype in frame.schema.items()
        if dtype.is_temporal() or dtype.is_nested()
        or names >= {f"{c}.{part}" for part in _DAY} or f"{c}.level 1" in names
    )  # fmt: skip
    return [name for name in frame.columns if name.startswith(wholes)] if wholes else []


def add_parts(frame: pl.DataFrame, roles: Roles) -> None:
    """Add columns in place for the parts of dates, times, lists, structs and hierarchies.

    Rules may use these columns. A date gives its day, as in 20240501, its weekday and month, and a
    time the hour. A list gives its length and whether it has each of its most frequent elements, a
    struct its fields. A path such as law/contract/sale gives its beginning at each level.
    """
    others = {*roles.columns, *roles.apart}
    wholes = [frame[name] for name in frame.columns if name not in others]
    for whole in wholes:
        parts = {f"{whole.name}.{name}": part for name, part in _split(whole)}
        new = [part.alias(name) for name, part in parts.items() if name not in frame.columns]
        if new and len(list_parts(frame)) + len(new) <= _PARTS:
            frame.hstack(new, in_place=True)
            wholes += new


def find_part(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """Return a column, or one that `add_parts` may make from another; None if neither exists."""
    if name in frame.columns:
        return frame[name]
    for whole in frame:
        rest = name.removeprefix(f"{whole.name}.")
        if rest.startswith("has ") and isinstance(whole.dtype, pl.List):
            return whole.cast(pl.List(pl.String)).list.contains(rest.removeprefix("has "))
        if rest != name:
            # also levels of few rows
            parts = [part.alias(f"{whole.name}.{one}") for one, part in _split(whole, 0)]
            found = find_part(pl.DataFrame(parts), name)
            if found is not None:
                return found
    return None


_DAY = ("day", "weekday", "month")
_PATH = r"^[^/\s][^/\n]{0,60}(/[^/\n]{1,60})+$"
"""A path of names: no address, which has two slashes in a row, and no file from the root."""
_LOOKED_AT, _LEVELS, _PER_GROUP = 20, 4, 10
"""Values that are tried before all are; levels of a path; examples a group has at least, about."""
_DATE = r"^(\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)|\d\d?[./]\d\d?[./]\d{4}\b)"
_LOCAL_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
"""Dates as countries write them: the one is taken by which all values of a column are dates."""


def _read_dates(values: pl.Series) -> pl.Series:
    """Read dates and times that are texts, as in CSV and JSON; return other values as they are."""
    if values.dtype != pl.String or not values.drop_nulls().head(1).str.contains(_DATE).any():
        return values
    if "-" not in values.drop_nulls()[0][:5]:
        days = values.str.extract(r"^(\S+)")
        forms = [days.str.strptime(pl.Date, form, strict=False) for form in _LOCAL_DATES]
        read = [dates for dates in forms if dates.null_count() == values.null_count()]
        return read[0] if len(read) == 1 else values
    is_day = values.str.len_chars().max() == len("2026-05-01")
    form, dtype = ("%Y-%m-%d", pl.Date) if is_day else ("%Y-%m-%d %H:%M", pl.Datetime)
    minutes = values.str.slice(0, len("2026-05-01 10:00")).str.replace("T", " ")
    dates = minutes.str.strptime(dtype, form, strict=False)
    return values if dates.null_count() > values.null_count() else dates


def _split(values: pl.Series, per_group: int = _PER_GROUP) -> Iterator[tuple[str, pl.Series]]:
    values = _read_dates(values)
    dtype = values.dtype
    if holds_conversations(values):
        return
    if dtype in (pl.Date, pl.Datetime):
        # a float: as whole numbers that all differ, days would be taken for ids
        yield "day", values.dt.strftime("%Y%m%d").cast(pl.Float64, strict=False)
        yield "weekday", values.dt.strftime("%A")
        yield "month", values.dt.month()
    if dtype in (pl.Time, pl.Datetime):
        yield "hour", values.dt.hour()
    elif dtype == pl.String:
        yield from _split_levels(values, per_group)
    elif isinstance(dtype, pl.Struct):
        yield from ((field.name, values.struct.field(field.name)) for field in dtype.fields)
    # a list of fractions is a vector, such as an embedding
    elif isinstance(dtype, pl.List) and not dtype.inner.is_float():
        yield "length", values.list.len()
        if dtype.inner == pl.String or dtype.inner.is_integer():
            elements = values.list.unique().explode().drop_nulls().alias("element")
            counts = elements.value_counts().filter(pl.col("count") > 1)
            counts = counts.sort("count", "element", descending=[True, False])
            for element in counts["element"][:_ELEMENTS]:
                yield f"has {element}", values.list.contains(element)


def _split_levels(values: pl.Series, per_group: int) -> Iterator[tuple[str, pl.Series]]:
    """Yield the beginnings of paths such as law/contract/sale, where they form few groups."""
    paths = values.drop_nulls()
    # the first ones tell most columns, and a beginning is not cut again
    if ".level " in values.name or not len(paths):
        return
    if not all(some.str.contains(_PATH).all() for some in (paths.head(_LOOKED_AT), paths)):
        return
    depths = paths.str.count_matches("/", literal=True)
    for level in range(1, min(int(depths.max()), _LEVELS) + 1):  # type: ignore[arg-type]
        start = values.str.extract(rf"^((?:[^/]+/){{{level - 1}}}[^/]+)")
        if start.n_unique() * per_group <= len(values):
            yield f"level {level}", start


def read_outcomes(frame: pl.DataFrame, roles: Roles, where: str) -> tuple[pl.Series, pl.Series]:
    """Return loss and status of every row; raise `InputError` for a row without a clear status."""
    raw = frame[roles.outcome]
    words = raw.drop_nulls()
    if len(words) and not (raw.dtype.is_numeric() or raw.dtype == pl.Boolean):
        numbers = (
            words.cast(pl.Float64, strict=False)
            if words.dtype == pl.String
            else words.is_null().cast(pl.Float64)
        )
        strange = words.filter(~numbers.is_finite().fill_null(False))
        example = strange.first() if len(strange) else words.first()
        told = [c for c in frame.columns if c != roles.outcome and means_pass(c) is not None]
        raise InputError(
            f"{where}: outcome column {roles.outcome!r} holds {raw.dtype} such as {example!r}; "
            "it must be 0/1, true/false, pass/fail, correct/incorrect, yes/no, or a loss in "
            f"[0, 1]{f'; did you mean --outcome {told[0]}?' if told else ''}"
        )
    loss = raw.cast(pl.Float64).fill_nan(None).alias("loss")
    bad = frame.filter(~loss.is_between(0, 1))
    if bad.height:
        low, high = (f"{float(end):g}" for end in (loss.min(), loss.max()))  # type: ignore[arg-type]
        raise InputError(
            f"{where}: outcome {bad[roles.outcome][0]!r} of {roles.id}={bad[roles.id or ''][0]!r} "
            f"({bad.height} in all) is not in [0, 1]; name the worst and the best value of its "
            f"scale: --scale {low} {high} (scale=({low}, {high}))"
        )
    if roles.positive_is_good:
        loss = 1.0 - loss
    status = _read_statuses(frame, roles, loss, where)
    if roles.count_as_failed:
        fails = status.is_in(_check_countable(roles, where))
        loss = pl.select(pl.when(fails).then(1.0).otherwise(loss).alias("loss")).to_series()
        scored = pl.when(fails).then(pl.lit(str(Status.SCORED))).otherwise(status)
        status = pl.select(scored.alias("status")).to_series()
    return pl.select(pl.when(status == Status.SCORED).then(loss).alias("loss")).to_series(), status


def count_failed_statuses(frame: pl.DataFrame, roles: Roles) -> dict[str, int]:
    """Return how many rows of each status count as failures because the roles say so."""
    if not roles.count_as_failed:
        return {}
    loss = frame[roles.outcome].cast(pl.Float64).alias("loss")
    counts = dict(_read_statuses(frame, roles, loss, "the table").value_counts().iter_rows())
    return {name: int(counts[name]) for name in roles.count_as_failed if name in counts}


def _check_countable(roles: Roles, where: str) -> list[str]:
    """Return the statuses that count as failures; raise if a status is one that no row can have."""
    for name in roles.count_as_failed:
        if name not in COUNTABLE:
            raise InputError(
                f"count_as_failed={name!r} is not one of {', '.join(COUNTABLE)}, which are the "
                "statuses that can be counted as failures (--count-as-failed)"
            )
        if roles.status is None and roles.null_outcome != name:
            raise InputError(
                f"{where} has no status column, so no row is {name}: name the column (--status), "
                f"or say that rows without an outcome are {name} (--null-outcome)"
            )
    return list(roles.count_as_failed)


def _read_statuses(frame: pl.DataFrame, roles: Roles, loss: pl.Series, where: str) -> pl.Series:
    if roles.status is not None:
        status = frame[roles.status].cast(pl.String).str.to_lowercase().alias("status")
        unknown = frame.filter(~status.is_in([str(s) for s in Status]) | status.is_null())
        if unknown.height:
            words = ", ".join(Status)
            raise InputError(
                f"{where}: status {unknown[roles.status][0]!r} of "
                f"{roles.id}={unknown[roles.id or ''][0]!r} "
                f"({unknown.height} in all) is not one of {words}"
            )
    else:
        status = pl.repeat(str(Status.SCORED), frame.height, eager=True).alias("status")
    empty = loss.is_null() & (status == Status.SCORED)
    if not empty.any():
        return status
    if roles.null_outcome is None:
        why = (
            f"{where}: outcome {roles.outcome!r} is empty in {int(empty.sum())} of "
            f"{frame.height} rows, for example "
            f"{roles.id}={frame.filter(empty)[roles.id or ''][0]!r}; give their status"
        )
        others = ", ".join(one for one in UNSCORED if one != Status.MISSING)
        when = f"if they are missing, else {others} in its place; or name a status column"
        choices = {"--null-outcome missing": ("null_outcome='missing'", when)}
        raise DirectionError(why, f"outcome={roles.outcome!r}", choices)
    if roles.null_outcome not in UNSCORED:
        raise InputError(f"null_outcome={roles.null_outcome!r} is not one of {', '.join(UNSCORED)}")
    return pl.select(
        pl.when(empty).then(pl.lit(roles.null_outcome)).otherwise(status).alias("status")
    ).to_series()
