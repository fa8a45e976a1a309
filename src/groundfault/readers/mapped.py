"""Tables of any layout, by a mapping file that assigns their columns to groundfault's words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from groundfault.base.reading import read_text
from groundfault.core.status import Status
from groundfault.errors import InputError, first_line
from groundfault.readers.log import COLUMNS, TableLog, stack
from groundfault.readers.safely import escape_pattern, json_file
from groundfault.readers.table import read_table

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".arrow")


class Mapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Read CSV, JSONL, JSON, Parquet or Arrow tables whose columns have other names.

    Parameters
    ----------
    columns : mapping of str to str
        From a word of `groundfault.readers.log.COLUMNS`, such as ``example_id``, ``model`` or
        ``value``, to the table's column. A part of a nested column is ``outer_inner``.
    constants : mapping
        From a word of `COLUMNS`, such as ``model``, to its value in all rows.
    values : mapping of str to float
        Numbers for words in the value column, such as ``pass = 1``.
    statuses : mapping of str to str
        Statuses for words in the status column or the value column, such as ``timeout =
        "error"``. An empty value is ``missing`` unless ``"" = ...`` says otherwise.
    wide : sequence of str
        Names or globs of the columns that are models, for tables with one column a model and one
        row an example.
    measured : sequence of str
        Columns that describe the answer or its measurement, not the example.
    ignore : sequence of str
        Columns to leave out.
    """

    columns: Mapping[str, str] = {}
    constants: Mapping[str, str | int | float] = {}
    values: Mapping[str, float] = {}
    statuses: Mapping[str, str] = {}
    wide: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: str | Path | Mapped | dict[str, Any] | None) -> Mapped | None:
        """Return the mapping that a caller gave as a file, a `Mapped` or its parameters.

        Raises
        ------
        InputError
            As `from_file`.
        """
        if source is None or isinstance(source, Mapped):
            return source
        if not isinstance(source, dict):
            return cls.from_file(source)
        try:
            return msgspec.convert(source, cls)
        except msgspec.ValidationError as error:
            raise InputError(f"map is not a mapping: {first_line(error)}") from None

    @classmethod
    def from_file(cls, path: str | Path) -> Mapped:
        """Read a mapping file (TOML).

        Raises
        ------
        InputError
            If the file is not TOML, or has keys or values that a mapping cannot have.
        """
        try:
            data = tomllib.loads(read_text(path))
            wide = msgspec.convert(data.pop("wide", {}), dict[str, tuple[str, ...]])
            mapped = msgspec.convert({**data, "wide": wide.get("models", ())}, cls)
        except OSError as error:
            raise InputError(f"cannot read the mapping {path}: {error.strerror or error}") from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not a mapping: {first_line(error)}") from None
        words = [word for word in (*mapped.columns, *mapped.constants) if word not in COLUMNS]
        if words:
            raise InputError(f"{path}: {words[0]!r} is not one of the words {', '.join(COLUMNS)}")
        statuses = sorted(str(status) for status in Status)
        wrong = [status for status in mapped.statuses.values() if status not in statuses]
        if wrong:
            raise InputError(f"{path}: status {wrong[0]!r} is not one of {', '.join(statuses)}")
        if set(wide) - {"models"}:
            raise InputError(f"{path}: [wide] takes models = [...] alone")
        return mapped

    def sniff(self, path: Path) -> bool:
        """Return whether this is a table."""
        return path.suffix.lower() in _SUFFIXES

    def read(self, path: Path) -> TableLog:
        """Read the table in the columns of a log."""
        frame = _unnest(_read(path, tuple(self.columns.values())))
        where = str(path)
        if not frame.columns:
            raise InputError(f"{where} has no row in it")
        named = (*self.columns.values(), *self.measured, *self.ignore)
        if lacking := [c for c in named if c not in frame.columns]:
            some = ", ".join(frame.columns[:20])
            raise InputError(f"{where} has no column {lacking[0]!r}; its columns are {some}")
        frame = frame.drop(self.ignore)
        if self.wide:
            frame = self._melt(frame, where)
        frame = _rename(frame, self.columns)
        frame = frame.with_columns(pl.lit(v).alias(word) for word, v in self.constants.items())
        frame = self._convert_values(frame, where)
        if "example_id" not in frame.columns:
            raise InputError(f"{where}: the mapping does not say which column is the example_id")
        return TableLog(frame=_cast(frame, where), measured=frozenset(self.measured))

    def _melt(self, frame: pl.DataFrame, where: str) -> pl.DataFrame:
        others = [c for c in frame.columns if c not in self.columns.values()]
        models = [c for c in others if any(fnmatchcase(c, pattern) for pattern in self.wide)]
        if not models:
            raise InputError(f"{where}: no column matches [wide] models = {list(self.wide)}")
        index = [c for c in frame.columns if c not in models]
        if clash := {"model", "value"} & set(index):
            raise InputError(
                f"{where}: column {clash.pop()!r} cannot be there beside one column a model; leave "
                "it out by ignore"
            )
        words = frame.with_columns(pl.col(models).cast(pl.String))
        return words.unpivot(models, index=index, variable_name="model", value_name="value")

    def _convert_values(self, frame: pl.DataFrame, where: str) -> pl.DataFrame:
        """Return the value as a number, and a status for every row."""
        if "value" not in frame.columns:
            raise InputError(f"{where}: the mapping does not say which column is the value")
        raw = frame["value"]
        if raw.dtype == pl.Boolean:
            raw = raw.cast(pl.Float64)
        words = raw.cast(pl.String).fill_null("").str.strip_chars()
        value = words.replace_strict(self.values, default=None, return_dtype=pl.Float64)
        number = (words if raw.dtype == pl.String else raw).cast(pl.Float64, strict=False)
        value = pl.select(pl.coalesce(value, number.fill_nan(None))).to_series()
        status = self._status(frame, words, value, where)
        is_scored = status == Status.SCORED
        bad = words.filter(is_scored & value.is_null())
        if len(bad):
            raise InputError(
                f"{where}: value {bad[0]!r} ({len(bad)} in all) is not a number; give its meaning"
                " under [values] or [statuses] of the mapping"
            )
        value = pl.select(pl.when(is_scored).then(value)).to_series()
        return frame.with_columns(value.alias("value"), status.alias("status"))

    def _status(
        self, frame: pl.DataFrame, words: pl.Series, value: pl.Series, where: str
    ) -> pl.Series:
        meanings = {"": str(Status.MISSING), **self.statuses}
        of_value = words.replace_strict(meanings, default=None, return_dtype=pl.String)
        of_value = pl.select(pl.when(value.is_null()).then(of_value)).to_series()
        if "status" not in frame.columns:
            return of_value.fill_null(str(Status.SCORED))
        raw = frame["status"].cast(pl.String).fill_null("")
        names = {str(status): str(status) for status in Status} | {"": None} | dict(self.statuses)
        if len(unknown := raw.filter(~raw.is_in(list(names)))):
            raise InputError(
                f"{where}: status {unknown[0]!r} is not known; give its meaning under [statuses]"
            )
        statuses = raw.replace_strict(names, return_dtype=pl.String)
        statuses = pl.select(pl.when(statuses != Status.SCORED).then(statuses)).to_series()
        return pl.select(pl.coalesce(statuses, of_value, pl.lit(str(Status.SCORED)))).to_series()


class Canonical:
    """Read tables that already have the columns of a log: at least ``example_id`` and ``value``."""

    def sniff(self, path: Path) -> bool:
        """Return whether it is a Parquet or Arrow file with those columns."""
        try:
            kind = path.suffix.lower()
            if kind not in (".parquet", ".arrow") or not path.is_file():
                return False
            is_parquet = kind == ".parquet"
            schema = pl.read_parquet_schema if is_parquet else pl.read_ipc_schema
            columns = schema(escape_pattern(path) if is_parquet else path)
            return {"example_id", "value"} <= set(columns)
        except (OSError, ValueError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return False

    def read(self, path: Path) -> TableLog:
        """Read the table unchanged, and add the columns that it lacks."""
        return Mapped().read(path)


def _read(path: Path, text: tuple[str, ...]) -> pl.DataFrame:
    if path.suffix.lower() != ".json":
        return read_table(path, text=text)[0]
    rows = json_file(path, list[dict[str, Any]])
    if not rows:
        raise InputError(f"{path} holds an empty list")
    try:
        return pl.DataFrame(rows, infer_schema_length=None, strict=False)
    except (pl.exceptions.PolarsError, OverflowError, TypeError) as error:
        raise InputError(f"{path} is no list of alike records: {first_line(error)}") from None


def _unnest(frame: pl.DataFrame) -> pl.DataFrame:
    """Return structures as columns named ``outer_inner``; lists as JSON."""
    while struct_columns := [name for name, dtype in frame.schema.items() if dtype == pl.Struct]:
        name = struct_columns[0]
        inner = frame[name].struct.unnest()
        inner = inner.rename({c: f"{name}_{c}" for c in inner.columns})
        if clash := set(inner.columns) & set(frame.columns):
            both = f"two columns would be named {clash.pop()!r}"
            raise InputError(f"{both} once {name!r} is taken apart; rename one")
        frame = frame.drop(name).hstack(inner)
    return frame


def _rename(frame: pl.DataFrame, columns: Mapping[str, str]) -> pl.DataFrame:
    """Return the mapped columns under their words.

    Others of these names get ``_given`` at the end.
    """
    taken = [word for word, c in columns.items() if word in frame.columns and word != c]
    frame = frame.rename({w: f"{w}_given" for w in taken if w not in columns.values()})
    word_columns = [pl.col(column).alias(word) for word, column in columns.items()]
    others = [c for c in frame.columns if c not in columns.values()]
    return frame.select(*word_columns, *(c for c in others if c not in columns))


def _cast(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    """Return every column of a log, in its order and type."""
    known = {name: dtype for name, dtype in COLUMNS.items() if name in frame.columns}
    casts = [pl.col(name).cast(dtype, strict=False) for name, dtype in known.items()]
    try:
        cast_frame = frame.with_columns(casts)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{where}: {first_line(error)}") from None
    for name in (c for c, dtype in known.items() if dtype != pl.String):
        unreadable = frame[name].is_not_null() & cast_frame[name].is_null()
        if unreadable.any():
            raise InputError(f"{where}: {name} {frame[name].filter(unreadable)[0]!r} is no number")
    whole = stack([pl.DataFrame(schema=COLUMNS), cast_frame])
    blank = pl.col("task", "model", "scorer").fill_null("")
    return whole.with_columns(blank, pl.col("epoch").fill_null(1))
