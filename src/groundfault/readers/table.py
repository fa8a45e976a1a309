"""Tables: CSV, JSONL, Parquet and Arrow files, folders of them, and frames in memory."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from groundfault.base.files import spell_path
from groundfault.base.reading import readable
from groundfault.core.column_meaning import spells_answer
from groundfault.errors import InputError, describe_missing, first_line
from groundfault.readers.configurations import CONFIGURATION, split_source
from groundfault.readers.safely import (
    POINTER,
    JsonObject,
    check_lines,
    escape_pattern,
    is_pointer,
    json_file,
    json_lines,
)
from groundfault.readers.table_size import PARQUET, check_texts, warn_of_size
from groundfault.readers.values import NO_VALUE, listing, mapping

# a damaged Parquet file may fail an assertion in the library, which is no Exception
DAMAGED = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    ValueError,
    OverflowError,
    TypeError,
)
_TEXT_FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson")
_SUFFIXES = (*_TEXT_FORMATS, *PARQUET, ".arrow", ".feather", ".ipc")
_KINDS = "CSV, TSV, JSON, JSONL, Parquet or Arrow"
_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
# a column holds dates that no calendar names: days from 1970 of the years 1 to 9999 are kept
_DAYS = (-719_162, 2_932_896)
_DAY_UNITS = {"day": 1, "ms": 86_400_000, "us": 86_400_000_000}
# first bytes of Arrow's file format; `save_to_disk` writes its stream format
_FILE = b"ARROW1"
# rows from which the types of columns are told
_ROWS = 10_000
# name that polars gives to a column without one, beside another
_UNNAMED = r"(_duplicated_\d+)?"
_FIRST = 100  # values that tell words from numbers, so that a long column is not looked through
# all numbers of a column have the same sign, or none
_SIGN = r"([$€£]|%$)"


def _find_separator(path: Path) -> str:
    """Return what separates columns: of a CSV file, the mark that its header has most often."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    with path.open(encoding="utf-8") as stream:
        header = re.sub('"[^"]*"', "", stream.readline())
    return max(",;\t|", key=header.count)


def _read_csv(path: Path, text: Sequence[str]) -> pl.DataFrame:
    separator = _find_separator(path)
    header = pl.read_csv(escape_pattern(path), separator=separator, n_rows=0).columns
    # polars renames the second column of a name instead of refusing it
    origins = [c.rpartition("_duplicated_")[0] for c in header if re.fullmatch(r".*_\d+", c)]
    if doubled := [name for name in origins if name and name in header]:
        raise InputError(f"{path} has two columns named {doubled[0]!r}; rename one")
    schema = {column: pl.String for column in text if column in header}
    options: dict[str, Any] = {"separator": separator, "schema_overrides": schema}
    try:
        table = pl.read_csv(escape_pattern(path), infer_schema_length=_ROWS, **options)
    except pl.exceptions.ComputeError:
        # a later row has another type
        table = pl.read_csv(escape_pattern(path), infer_schema_length=None, **options)
    # without an id, a row of nothing may be an example whose outcome is missing
    if schema:
        table = table.filter(~pl.all_horizontal(pl.all().is_null()))
    return _read_numbers(_name_columns(table), text, separator)


def _name_columns(table: pl.DataFrame) -> pl.DataFrame:
    """Name the index of pandas by its place, and drop the empty columns of a spreadsheet."""
    names = {c: f"column {i}" for i, c in enumerate(table.columns, 1) if re.fullmatch(_UNNAMED, c)}
    empty = [c for c in names if table[c].null_count() == table.height]
    return table.drop(empty).rename(names, strict=False)


def _read_numbers(table: pl.DataFrame, text: Sequence[str], separator: str = ",") -> pl.DataFrame:
    """Return a table with numbers for words such as 85% and N/A, in columns of these alone.

    Answers and answer keys stay words: "1." and "1" are two answers.
    """
    strings = (c for c in table if c.dtype == pl.String and c.name not in text)
    words = [c for c in strings if not spells_answer(c.name)]
    heads = (_parse_numbers(c.drop_nulls().head(_FIRST), separator) for c in words)
    likely = [c for c, numbers in zip(words, heads, strict=True) if numbers is not None]
    # where fewer than half are numbers, the words say more; digits in quotes are names
    return table.with_columns(
        numbers
        for c in likely
        if c.cast(float, strict=False).count() < c.count()
        and (numbers := _parse_numbers(c, separator)) is not None
        and 2 * numbers.count() > c.count()
    )


def _parse_numbers(words: pl.Series, separator: str) -> pl.Series | None:
    """Return the numbers that words spell, null for N/A and the like; None if one spells none."""
    plain = words.str.strip_chars().str.to_lowercase()
    plain = plain.set(plain.is_in(NO_VALUE).fill_null(value=False), None)
    # the spreadsheets that write semicolons write 1,5 for a number, others 1,500
    comma, instead = (",", ".") if separator == ";" else (r",(\d{3})\b", "${1}")
    bare = plain.str.replace(_SIGN, "").str.replace_all(comma, instead)
    numbers, signs = bare.cast(float, strict=False), plain.drop_nulls().str.extract(_SIGN)
    is_one = numbers.null_count() == plain.null_count() and signs.n_unique() <= 1
    return numbers if is_one else None


def _parse_file(path: Path, text: Sequence[str]) -> pl.DataFrame:
    kind = path.suffix.lower()
    if kind == ".json":
        return _from_python(_find_rows(path))
    if kind in (".csv", ".tsv"):
        return _read_csv(path, text)
    if kind not in _TEXT_FORMATS:
        is_parquet = kind in PARQUET
        return pl.read_parquet(escape_pattern(path)) if is_parquet else read_arrow(path)
    try:
        return pl.read_ndjson(escape_pattern(path), infer_schema_length=_ROWS)
    except pl.exceptions.PolarsError:
        # slower, but it reads NaN as Python writes it, and names the line that is wrong
        return pl.DataFrame(list(json_lines(path, dict[str, Any])), infer_schema_length=None)


def _find_rows(path: Path) -> list[object]:
    """Return the objects of a JSON file, which may stand under a name: {"results": [...]}."""
    content = json_file(path, object)
    if isinstance(content, list):
        return content
    lists = [each for each in map(listing, mapping(content).values()) if each and mapping(each[0])]
    if len(lists) != 1:
        raise InputError(
            f"{path} has {len(lists)} lists of objects; a table is one list, an object for each row"
        )
    return lists[0]


class ArrowTable(Protocol):
    """A table of pandas, Arrow, DuckDB or another library that speaks Arrow's C stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class NamedColumns(Protocol):
    """A data set of Hugging Face."""

    @property
    def column_names(self) -> Sequence[str]: ...  # noqa: D102


_InMemory = pl.DataFrame | pl.LazyFrame | ArrowTable | NamedColumns
_Python = Mapping[str, object] | Sequence[Mapping[str, object]]
TableSource = str | Path | tuple[str | Path, ...] | _InMemory | _Python
"""A table that `read_table` reads."""


def read_table(
    source: object, *, text: Sequence[str] = (), numbers: Sequence[str] = ()
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
        Columns of numbers: class labels of Hugging Face stay numbers.

    Returns
    -------
    polars.DataFrame, tuple of str
        The rows, and the files they came from (or the kind of table in memory).

    Raises
    ------
    InputError
        If the source is missing or empty, or cannot be read as a table.
    """
    frame, places = _read_source(source, text, numbers)
    return settle_types(_read_numbers(frame, text)), places


def _read_source(
    source: object, text: Sequence[str], numbers: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
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


def settle_types(frame: pl.DataFrame) -> pl.DataFrame:
    """Convert columns of rare types to types that hashes, rules and NumPy can take.

    Durations become seconds, integers of 128 bits numbers, bytes hexadecimal text. Dates outside
    the years 1 to 9999 become missing. A column of Python objects is left out with a warning.
    """
    settled = []
    for name, dtype in frame.schema.items():
        column = pl.col(name)
        if dtype == pl.Duration:
            settled.append(column.dt.total_microseconds() / 1e6)
        elif dtype in (pl.Int128, pl.UInt128):
            settled.append(column.cast(pl.Float64))
        elif dtype == pl.Binary:
            settled.append(column.bin.encode("hex"))
        elif dtype == pl.Date or getattr(dtype, "time_unit", "ns") != "ns":
            units = _DAY_UNITS[getattr(dtype, "time_unit", "day")]
            first, last = (day * units for day in _DAYS)
            settled.append(pl.when(column.to_physical().is_between(first, last)).then(column))
        elif dtype == pl.Object:
            frame = frame.drop(name)
            warnings.warn(
                f"column {name!r} holds objects of Python and is left out; to use it, turn its "
                "values into numbers or text",
                stacklevel=4,
            )
    return frame.with_columns(settled) if settled else frame


def settle_ids(ids: pl.Series) -> pl.Series:
    """Return ids without .0, which pandas adds to whole numbers where a joined row had none."""
    words = ids if ids.dtype.is_integer() else ids.cast(pl.String)
    is_plain = words.dtype == pl.String and words.str.contains(r"^\d+(\.0)?$").all()
    return words.str.strip_suffix(".0") if is_plain else ids


def _from_python(source: JsonObject | list[object]) -> pl.DataFrame:
    """Return a mapping of columns, or a list of mappings, one a row."""
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
    """Read tables of several configurations of one model, one under the other."""
    frames = []
    for source in sources:
        name, place = split_source(source)
        if not name:
            raise InputError(
                f"{source} has no name; several tables are configurations of one model, each under "
                "a name, such as base=old.csv new=new.csv"
            )
        frame, _ = read_table(place, text=text, numbers=numbers)
        for column in {*text, *numbers} - {CONFIGURATION, *frame.columns}:
            names = ", ".join(frame.columns[:20])
            raise InputError(f"{place} has no column {column!r}; its columns are {names}")
        if CONFIGURATION in frame.columns:
            raise InputError(f"{place} has a column {CONFIGURATION!r} already; rename it")
        frames.append(frame.with_columns(pl.lit(name).alias(CONFIGURATION)))
    try:
        return pl.concat(frames, how="diagonal_relaxed"), tuple(sources)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{sources[0]} and the others differ: {first_line(error)}") from None


def _from_other(source: object) -> pl.DataFrame:
    try:
        # pandas, Arrow, DuckDB and others speak this protocol
        if hasattr(source, "__arrow_c_stream__"):
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
    """Return a pandas table with names such as ``(0, 25]`` for intervals and periods.

    ``pd.cut`` makes intervals. Rules compare values, and no rule can name an interval. An index
    with a name is a column, and words among numbers make a column of words.
    """
    if not type(source).__module__.startswith("pandas"):
        return source
    has_index = None not in source.index.names and not {*source.index.names} & {*source.columns}
    source = source.reset_index() if has_index else source
    table = source.copy(deep=False)
    for name, dtype in source.dtypes.items():
        values = getattr(getattr(dtype, "categories", None), "dtype", dtype)
        kinds = set(map(type, source[name].dropna())) if str(values) == "object" else set()
        is_mixed = str in kinds and len(kinds) > 1
        if is_mixed or str(values).startswith(("interval", "period")):
            words = source[name].astype(object).map(str, na_action="ignore").astype(object)
            # a missing interval is no interval called nan
            table[name] = words.where(source[name].notna(), None)
    return table


def _read_path(path: Path, text: Sequence[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if not path.exists():
        raise InputError(describe_missing(path))
    if not path.is_dir():
        _check_files([path])
        return _read_file(path, text), (spell_path(path),)
    files = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES and p.is_file())
    if not files:
        raise InputError(f"the directory {path} has no {_KINDS} file")
    kinds = sorted({p.suffix.lower() for p in files})
    if len(kinds) > 1:
        mix = " and ".join(kinds)
        raise InputError(f"the directory {path} mixes {mix} files; keep one kind, or name a file")
    _check_files(files)
    frames = [_read_file(p, text) for p in files]
    try:
        return pl.concat(frames, how="vertical_relaxed"), tuple(map(spell_path, files))
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"the files in {path} do not share their columns: {first_line(error)}"
        ) from None


def _check_files(files: Sequence[Path]) -> None:
    """Refuse files that are not tables, or that misstate their size, before reading them."""
    for path in files:
        if path.suffix.lower() not in (*_SUFFIXES, ".json"):
            raise InputError(
                f"{path}: cannot tell the kind of file from {path.suffix!r}; {_KINDS} files are "
                "read"
            )
        with readable(path):
            if path.stat().st_size == 0:
                raise InputError(f"{path} is empty")
        if is_pointer(path):
            raise InputError(f"{path} is {POINTER}")
        if path.suffix.lower() in _TEXT_FORMATS:
            check_lines(path)
    warn_of_size(files)


def _read_file(path: Path, text: Sequence[str]) -> pl.DataFrame:
    try:
        return check_texts(_parse_file(path, text), path)
    except InputError:
        raise
    except pl.exceptions.NoDataError:
        raise InputError(f"{path} is empty") from None
    except DAMAGED as error:
        what = f"cannot be read as a table of kind {path.suffix[1:]}: {first_line(error)}"
        if "more fields than" in what:
            what = (
                "cannot be read as a table: a line has more columns than its first; delete the "
                "lines above the header, or put texts with commas into quotes"
            )
        if re.search("utf-?8", first_line(error), re.IGNORECASE):
            what = (
                "is not UTF-8 text; save it as CSV UTF-8 in a spreadsheet, or convert it first "
                "(iconv -f LATIN1 -t UTF-8)"
            )
        raise InputError(f"{path} {what}") from None


def is_dataset(source: object) -> bool:
    """Return whether an object is of the library ``datasets``."""
    return type(source).__module__.partition(".")[0] == "datasets"


def is_saved(path: Path) -> bool:
    """Return whether ``save_to_disk`` wrote a folder: a data set, or one for each split."""
    return (path / _SPLITS).is_file() or all((path / name).is_file() for name in (_STATE, _INFO))


def read_dataset(source: Any, numbers: Sequence[str] = ()) -> pl.DataFrame:
    """Read the rows of a data set in memory, in its order; class labels become their names.

    Parameters
    ----------
    source : datasets.Dataset
    numbers : sequence of str
        Columns whose class labels stay numbers.

    Raises
    ------
    InputError
        If the data set has several splits, or is streamed.
    """
    if isinstance(source, Mapping):
        names = ", ".join(repr(str(name)) for name in source)
        raise InputError(f"this data set has the splits {names}: give one of them, as ds[...]")
    if not hasattr(source, "with_format") or not hasattr(source, "num_rows"):
        raise InputError(
            f"a {type(source).__name__} of datasets is streamed; make a Dataset of the rows that "
            "you want, such as Dataset.from_list(list(ds.take(1000)))"
        )
    # by its own format: the rows of one that was filtered or shuffled stand in another order
    table = source.with_format("arrow")[:]
    labels = {name: getattr(kind, "names", None) for name, kind in source.features.items()}
    return _name_labels(pl.DataFrame(table), labels, numbers)


def read_saved(path: Path, numbers: Sequence[str] = ()) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read the rows of a data set in a folder, and that folder, or the only split's in it.

    Parameters
    ----------
    path : path
    numbers : sequence of str
        Columns whose class labels stay numbers.

    Raises
    ------
    InputError
        If there are several splits to choose from, or a file is missing or damaged.
    """
    if (path / _SPLITS).is_file():
        return read_saved(_choose_split(path), numbers)
    state = json_file(path / _STATE, dict[str, Any])
    names = [mapping(each).get("filename") for each in listing(state.get("_data_files"))]
    files = [path / str(name) for name in names]
    if not files or any(
        place.parent != path or place.suffix != ".arrow" or not place.is_file() for place in files
    ):
        raise InputError(f"{path / _STATE} names files that are not in {path}, or no .arrow")
    if state.get("_indices_data_files"):
        raise InputError(f"{path} is of an old version of datasets: load it and save it again")
    features = mapping(json_file(path / _INFO, dict[str, Any]).get("features"))
    labels = {name: mapping(kind).get("names") for name, kind in features.items()}
    warn_of_size(files)
    frames = [read_arrow(place) for place in files]
    table = pl.concat(frames, how="vertical_relaxed")
    return _name_labels(table, labels, numbers), (str(path),)


def read_arrow(path: Path) -> pl.DataFrame:
    """Read the rows of an Arrow file, in its file format or its stream format.

    Raises
    ------
    InputError
        If it is damaged.
    """
    try:
        with path.open("rb") as stream:
            is_file = stream.read(len(_FILE)) == _FILE
        return pl.read_ipc(escape_pattern(path)) if is_file else pl.read_ipc_stream(str(path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"{path} cannot be read as Arrow: {first_line(error)}") from None


def _choose_split(path: Path) -> Path:
    names = listing(json_file(path / _SPLITS, dict[str, Any]).get("splits"))
    splits = [path / str(name) for name in names]
    if len(splits) == 1 and splits[0].parent == path and is_saved(splits[0]):
        return splits[0]
    some = ", ".join(map(str, splits)) or "none"
    raise InputError(f"{path} has several splits, and one is audited: name it ({some})")


def _name_labels(
    table: pl.DataFrame, labels: Mapping[str, object], numbers: Sequence[str]
) -> pl.DataFrame:
    """Return the names of class labels, which are stored as numbers from 0; -1 is no label."""
    columns = []
    for name, names in labels.items():
        words = [str(each) for each in names] if isinstance(names, list | tuple) else []
        if not words or name in numbers or not table.schema.get(name, pl.String()).is_integer():
            continue
        spelling = dict(enumerate(words))
        columns.append(pl.col(name).replace_strict(spelling, default=None, return_dtype=pl.String))
    return table.with_columns(columns)
