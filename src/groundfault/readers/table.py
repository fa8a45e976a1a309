"""Tables: CSV, JSONL, Parquet and Arrow files, folders of them, and frames in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.base.files import spell_path
from groundfault.base.reading import readable
from groundfault.errors import InputError, first_line
from groundfault.readers.configurations import CONFIGURATION, split_source
from groundfault.readers.hugging_face import (
    is_dataset,
    is_saved,
    read_arrow,
    read_dataset,
    read_saved,
)
from groundfault.readers.safely import (
    POINTER,
    check_lines,
    escape_pattern,
    is_pointer,
    json_lines,
)
from groundfault.readers.table_size import warn_of_size

Read = Callable[[Path, Sequence[str]], pl.DataFrame]


def _read_csv(path: Path, text: Sequence[str]) -> pl.DataFrame:
    separator = "\t" if path.suffix == ".tsv" else ","
    header = pl.read_csv(escape_pattern(path), separator=separator, n_rows=0).columns
    # polars renames the second column of a name instead of refusing it
    doubled = [
        c
        for c in header
        if re.fullmatch(r".*_duplicated_\d+", c) and c.rpartition("_duplicated_")[0] in header
    ]
    if doubled:
        raise InputError(
            f"{path} has two columns named {doubled[0].rpartition('_duplicated_')[0]!r}; rename one"
        )
    schema = {column: pl.String for column in text if column in header}
    return pl.read_csv(
        escape_pattern(path),
        separator=separator,
        infer_schema_length=10_000,
        schema_overrides=schema,
    )


def _read_jsonl(path: Path, text: Sequence[str]) -> pl.DataFrame:  # noqa: ARG001
    try:
        return pl.read_ndjson(escape_pattern(path), infer_schema_length=10_000)
    except pl.exceptions.PolarsError:
        # slower, but it reads NaN as Python writes it, and names the line that is wrong
        return pl.DataFrame(list(json_lines(path, dict[str, Any])), infer_schema_length=None)


def _read_parquet(path: Path, text: Sequence[str]) -> pl.DataFrame:  # noqa: ARG001
    return pl.read_parquet(escape_pattern(path))


def _read_arrow(path: Path, text: Sequence[str]) -> pl.DataFrame:  # noqa: ARG001
    return read_arrow(path)


_READERS: dict[str, Read] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".ipc": _read_arrow,
}
# a damaged Parquet file may fail an assertion in the library, which is no Exception
_DAMAGED = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    ValueError,
    OverflowError,
    TypeError,
)
_KINDS = "CSV, TSV, JSONL, Parquet or Arrow"


def read_table(
    source: Any, *, text: Sequence[str] = (), numbers: Sequence[str] = ()
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read a table and say where it came from.

    Parameters
    ----------
    source : path, or a table in memory
        A file, or a directory whose files are all of one kind and share their columns, or that
        ``save_to_disk`` of Hugging Face wrote; a tuple of several, each ``NAME=PATH``, whose names
        become a column; a polars, pandas, Arrow or DuckDB table, a data set
        of Hugging Face, a mapping of columns or a list of mappings.
    text : sequence of str
        Columns of names: read as text from a CSV file, so that 01 is not 1.
    numbers : sequence of str
        Columns of numbers: class labels of Hugging Face stay numbers there.

    Returns
    -------
    polars.DataFrame, tuple of str
        The rows, and the files they came from (or the kind of table in memory).

    Raises
    ------
    InputError
        If there is nothing to read, or what is there cannot be read as a table.
    """
    if isinstance(source, str | Path):
        place = Path(source)
        return read_saved(place, numbers) if is_saved(place) else _read_path(place, text)
    if isinstance(source, tuple):
        return _read_named(source, text, numbers)
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return source, ("a polars table",)
    if is_dataset(source):
        return read_dataset(source, numbers), ("a datasets table",)
    if isinstance(source, dict | list):
        return _from_python(source), (f"a {type(source).__name__} of Python",)
    return _from_other(source), (f"a {type(source).__module__.split('.')[0]} table",)


def _from_python(source: dict[str, Any] | list[Any]) -> pl.DataFrame:
    """A mapping of columns, or a list of mappings, one a row."""
    if isinstance(source, list) and not all(isinstance(row, dict) for row in source):
        raise InputError("a list is read as a table where every item is a dict, one for each row")
    try:
        return pl.DataFrame(source, infer_schema_length=None, strict=False)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        kind = type(source).__name__
        raise InputError(f"cannot read the {kind} as a table: {first_line(error)}") from None


def _read_named(
    sources: tuple[str, ...], text: Sequence[str], numbers: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Tables of several configurations of one model, one under the other."""
    frames = []
    for source in sources:
        name, place = split_source(source)
        if not name:
            raise InputError(
                f"{source} has no name; several tables are configurations of one model, each under "
                "a name, such as base=old.csv new=new.csv"
            )
        frame, _ = read_table(place, text=text, numbers=numbers)
        if CONFIGURATION in frame.columns:
            raise InputError(f"{place} has a column {CONFIGURATION!r} already; rename it")
        frames.append(frame.with_columns(pl.lit(name).alias(CONFIGURATION)))
    try:
        return pl.concat(frames, how="diagonal_relaxed"), tuple(sources)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{sources[0]} and the others differ: {first_line(error)}") from None


def _from_other(source: Any) -> pl.DataFrame:
    try:
        if hasattr(
            source, "__arrow_c_stream__"
        ):  # pandas, Arrow, DuckDB and others speak this protocol
            return pl.DataFrame(_spell_out(source))
        if hasattr(source, "pl"):
            return pl.DataFrame(source.pl())
    except Exception as error:
        raise InputError(f"cannot read the {type(source).__name__} as a table: {error}") from None
    raise InputError(
        f"cannot read a {type(source).__name__} as a table; give a path, a polars, pandas or "
        "Arrow table, a data set of Hugging Face, a dict of columns or a list of dicts"
    )


def _spell_out(source: Any) -> Any:
    """A pandas table whose intervals and periods, as of ``pd.cut``, are their names: ``(0, 25]``.

    Rules compare values, and no rule can name an interval of two numbers.
    """
    if not type(source).__module__.startswith("pandas"):
        return source
    table = source.copy(deep=False)
    for name, dtype in source.dtypes.items():
        values = getattr(getattr(dtype, "categories", None), "dtype", dtype)
        if str(values).startswith(("interval", "period")):
            words = source[name].astype(object).map(str, na_action="ignore").astype(object)
            # a missing interval is no interval called nan
            table[name] = words.where(source[name].notna(), None)
    return table


def _read_path(path: Path, text: Sequence[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if not path.exists():
        raise InputError(f"{path} does not exist")
    if not path.is_dir():
        warn_of_size([path])
        return _read_file(path, text), (spell_path(path),)
    files = sorted(p for p in path.iterdir() if p.suffix.lower() in _READERS and p.is_file())
    if not files:
        raise InputError(f"the directory {path} has no {_KINDS} file")
    kinds = sorted({p.suffix.lower() for p in files})
    if len(kinds) > 1:
        raise InputError(
            f"the directory {path} mixes {' and '.join(kinds)} files; keep one kind, or name a file"
        )
    warn_of_size(files)
    frames = [_read_file(p, text) for p in files]
    try:
        return pl.concat(frames, how="vertical_relaxed"), tuple(map(spell_path, files))
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"the files in {path} do not share their columns: {first_line(error)}"
        ) from None


def _read_file(path: Path, text: Sequence[str]) -> pl.DataFrame:
    read_kind = _READERS.get(path.suffix.lower())
    if read_kind is None:
        raise InputError(
            f"{path}: cannot tell the kind of file from {path.suffix!r}; {_KINDS} files are read"
        )
    with readable(path):
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty")
    if is_pointer(path):
        raise InputError(f"{path} is {POINTER}")
    if read_kind in (_read_csv, _read_jsonl):
        check_lines(path)
    try:
        return read_kind(path, text)
    except InputError:
        raise
    except pl.exceptions.NoDataError:
        raise InputError(f"{path} is empty") from None
    # a damaged Parquet file may fail an assertion in the library, which is no Exception
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        ValueError,
        OverflowError,
        TypeError,
    ) as error:
        message = first_line(error)
        if "utf-8" in message.lower() or "utf8" in message.lower():
            raise InputError(
                f"{path} is not UTF-8 text; convert it first (iconv -f LATIN1 -t UTF-8)"
            ) from None
        raise InputError(
            f"{path} cannot be read as a table of kind {path.suffix[1:]}: {message}"
        ) from None
