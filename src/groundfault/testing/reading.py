"""What every reader must satisfy: no row lost, unknown is no failure, no file breaks it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from groundfault import readers
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers import Reader
from groundfault.readers.log import COLUMNS
from groundfault.readers.stacking import stack
from groundfault.testing.checks import fail_in, require

_STRANGERS = {
    "empty.json": b"",
    "words.txt": b"no log",
    "bytes.eval": bytes(range(256)),
    "list.jsonl": b"[1]\n",
}


def check_reader(
    reader: str | Reader, path: str | Path, statuses: Mapping[str, int] | None = None
) -> pl.DataFrame:
    """Check that a reader gives every row of a log, with what is known of it and no more.

    It has to know the log and none of a few strangers; give the same rows each time and leave the
    file as it is; name every example; give a finite value to what was scored and none to what was
    not; and meet a log that is cut short with a log or an `InputError`.

    Parameters
    ----------
    reader : str or Reader
    path : path
        A log of the tool, small: it is read a few times.
    statuses : mapping of str to int, optional
        Rows of each status that the log holds, counted by another way than the reader's.

    Returns
    -------
    polars.DataFrame
        The rows, for further tests.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what.
    """
    reader, place = readers.get(reader), Path(path)
    name = type(reader).__name__
    with fail_in(f"on the log {place}"):
        table = _check_log(name, reader, place, statuses)
        _check_damaged(name, reader, place)
    _check_strangers(name, reader)
    return table


def _check_log(
    name: str, reader: Reader, place: Path, statuses: Mapping[str, int] | None
) -> pl.DataFrame:
    # a reader that repairs or indexes a log in place would change somebody's evidence
    before = _content(place)
    require(reader.sniff(place), f"reader {name} does not know {place}")
    table = _read(reader, place)
    require(
        table.equals(_read(reader, place)),
        f"reader {name} reads {place} differently the second time",
    )
    require(_content(place) == before, f"reader {name} changed {place}")
    _check_rows(name, table)
    if statuses is not None:
        counts = {str(status): int(n) for status, n in table["status"].value_counts().iter_rows()}
        expected = {str(status): n for status, n in statuses.items() if n}
        require(
            counts == expected, f"reader {name} gave rows {counts}, but {place} holds {expected}"
        )
    return table


def _read(reader: Reader, path: Path) -> pl.DataFrame:
    return stack([table for table, _ in reader.read(path).tables()])


def _content(path: Path) -> list[tuple[str, bytes]]:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [(str(p), p.read_bytes()) for p in files]


def _check_rows(name: str, table: pl.DataFrame) -> None:
    lacking = [column for column in COLUMNS if column not in table.columns]
    require(not lacking, f"reader {name} gave no column {', '.join(lacking)}")
    unnamed = table.filter(
        pl.col("example_id").is_null() | (pl.col("example_id") == "") | (pl.col("epoch") < 1)
    )
    require(
        not unnamed.height,
        f"reader {name} gave {unnamed.height} rows without an example_id, or an epoch below 1",
    )
    strange = set(table["status"].unique()) - {str(status) for status in Status}
    require(not strange, f"reader {name} gave the status {', '.join(map(repr, strange))}")
    is_scored = pl.col("status") == Status.SCORED
    wrong = table.filter(is_scored & ~pl.col("value").is_finite().fill_null(False))
    require(
        not wrong.height, f"reader {name} gave {wrong.height} scored rows without a finite value"
    )
    valued = table.filter(~is_scored & pl.col("value").is_not_null())
    require(
        not valued.height, f"reader {name} gave {valued.height} rows a value that were not scored"
    )


def _check_strangers(name: str, reader: Reader) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for other, content in _STRANGERS.items():
            place = Path(folder, other)
            place.write_bytes(content)
            require(
                not reader.sniff(place),
                f"reader {name} accepts {content[:10]!r}, which is no log of its format",
            )
        for place in (Path(folder), Path(folder, "nowhere.json")):
            require(
                not reader.sniff(place),
                f"reader {name} accepts a folder, or no file, as a log of its format",
            )


def _check_damaged(name: str, reader: Reader, path: Path) -> None:
    """Cut short at a few places, each file of the log in turn."""
    for i, (_, content) in enumerate(_content(path)):
        # empty, in the middle, and just before the end, where a JSON parser is nearly done
        for length in (0, len(content) // 3, len(content) - 2):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, path.name)
                shutil.copytree(path, copy) if path.is_dir() else shutil.copyfile(path, copy)
                part = [copy, *sorted(p for p in copy.rglob("*") if p.is_file())][i + path.is_dir()]
                part.chmod(0o644)
                part.write_bytes(content[:length])
                try:
                    reader.sniff(copy)
                    list(reader.read(copy).tables())
                except InputError as error:
                    require(
                        "\n" not in str(error),
                        f"reader {name} says more than one line of a log cut short",
                    )
                except Exception as error:
                    message = (
                        f"reader {name} fails on a log cut short to {length} bytes: "
                        f"{type(error).__name__}: {error}"
                    )
                    raise AssertionError(message) from error
