"""Data sets of Hugging Face: in memory, and as ``save_to_disk`` writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.errors import InputError, first_line
from groundfault.readers.safely import escape_pattern, json_file
from groundfault.readers.values import listing, mapping

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
# the file format of Arrow begins so; what `save_to_disk` writes is its stream format
_FILE = b"ARROW1"


def is_dataset(source: Any) -> bool:
    """Whether an object is of the library ``datasets``."""
    return type(source).__module__.partition(".")[0] == "datasets"


def is_saved(path: Path) -> bool:
    """Whether a folder is what ``save_to_disk`` writes: a data set, or one a split."""
    return (path / _SPLITS).is_file() or all((path / name).is_file() for name in (_STATE, _INFO))


def read_dataset(source: Any, numbers: Sequence[str] = ()) -> pl.DataFrame:
    """The rows of a data set in memory, in its order; class labels as their names.

    Parameters
    ----------
    source : datasets.Dataset
    numbers : sequence of str
        Columns whose class labels stay numbers.

    Raises
    ------
    InputError
        If it is several splits, or read as it comes.
    """
    if isinstance(source, Mapping):
        names = ", ".join(repr(str(name)) for name in source)
        raise InputError(f"this data set has the splits {names}: give one of them, as ds[...]")
    if not hasattr(source, "with_format") or not hasattr(source, "num_rows"):
        raise InputError(
            f"a {type(source).__name__} of datasets is read as it comes: make a Dataset of the "
            "rows that you want, such as Dataset.from_list(list(ds.take(1000)))"
        )
    # by its own format: the rows of one that was filtered or shuffled stand in another order
    table = source.with_format("arrow")[:]
    labels = {name: getattr(kind, "names", None) for name, kind in source.features.items()}
    return _name_labels(pl.DataFrame(table), labels, numbers)


def read_saved(path: Path, numbers: Sequence[str] = ()) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows of a data set in a folder, and that folder, or the only split's in it.

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
    if not files or any(place.parent != path or not place.is_file() for place in files):
        raise InputError(f"{path / _STATE} names files that are not in {path}")
    if state.get("_indices_data_files"):
        raise InputError(f"{path} is of an old version of datasets: load it and save it again")
    features = mapping(json_file(path / _INFO, dict[str, Any]).get("features"))
    labels = {name: mapping(kind).get("names") for name, kind in features.items()}
    frames = [read_arrow(place) for place in files]
    table = pl.concat(frames, how="vertical_relaxed")
    return _name_labels(table, labels, numbers), (str(path),)


def read_arrow(path: Path) -> pl.DataFrame:
    """The rows of an Arrow file, in its file format or its stream format.

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
    splits = [
        path / str(name)
        for name in listing(json_file(path / _SPLITS, dict[str, Any]).get("splits"))
    ]
    if len(splits) == 1 and splits[0].parent == path and is_saved(splits[0]):
        return splits[0]
    names = ", ".join(str(place) for place in splits) or "none"
    raise InputError(f"{path} has several splits, and one is audited: name it ({names})")


def _name_labels(
    table: pl.DataFrame, labels: Mapping[str, Any], numbers: Sequence[str]
) -> pl.DataFrame:
    """Class labels, which are stored as numbers from 0, as their names; -1 is no label."""
    columns = []
    for name, names in labels.items():
        words = [str(each) for each in names] if isinstance(names, list | tuple) else []
        if not words or name in numbers or not table.schema.get(name, pl.String()).is_integer():
            continue
        spelling = dict(enumerate(words))
        columns.append(pl.col(name).replace_strict(spelling, default=None, return_dtype=pl.String))
    return table.with_columns(columns)
