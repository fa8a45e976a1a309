"""Checks of readers (no row lost, unknown is no failure, no file breaks it) and of exporters."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from groundfault import exports, readers
from groundfault.auditing.flow import audit
from groundfault.core.plan import Plan
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.exports import Exporter, ReportSlices
from groundfault.readers import Reader
from groundfault.readers.log import COLUMNS, stack
from groundfault_lab.testing.checks import fail_in, require
from groundfault_lab.testing.worlds import PlantedEffect, World

_STRANGERS = {
    "empty.json": b"",
    "words.txt": b"no log",
    "bytes.eval": bytes(range(256)),
    "list.jsonl": b"[1]\n",
}
_EFFECT = PlantedEffect(0, lift=0.6, prevalence=0.4)
_WORLDS = (
    World(units=120, candidates=6, effects=(_EFFECT,)),
    World(units=80, candidates=4),
    World(units=120, candidates=6, effects=(_EFFECT,), gaps=0.1),
    World(units=120, candidates=6, effects=(_EFFECT,), outcomes=3, icc=0.3),
)


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
    before = _list_contents(place)
    require(reader.sniff(place), f"reader {name} does not know {place}")
    table = _read(reader, place)
    again = _read(reader, place)
    require(table.equals(again), f"reader {name} reads {place} differently the second time")
    require(_list_contents(place) == before, f"reader {name} changed {place}")
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


def _list_contents(place: Path) -> list[tuple[str, bytes]]:
    """Return names and contents of all files of a place, which may be one."""
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    return [(str(p.relative_to(place)), p.read_bytes()) for p in files]


def _check_rows(name: str, table: pl.DataFrame) -> None:
    lacking = [column for column in COLUMNS if column not in table.columns]
    require(not lacking, f"reader {name} gave no column {', '.join(lacking)}")
    strange = set(table["status"].unique()) - {str(status) for status in Status}
    require(not strange, f"reader {name} gave the status {', '.join(map(repr, strange))}")
    has_id, is_scored = pl.col("example_id").fill_null("") != "", pl.col("status") == Status.SCORED
    wrongs = {
        "rows without an example_id, or an epoch below 1": ~has_id | (pl.col("epoch") < 1),
        "scored rows without a finite value": is_scored
        & ~pl.col("value").is_finite().fill_null(False),
        "rows a value that were not scored": ~is_scored & pl.col("value").is_not_null(),
    }
    for words, is_wrong in wrongs.items():
        count = table.filter(is_wrong).height
        require(not count, f"reader {name} gave {count} {words}")


def _check_strangers(name: str, reader: Reader) -> None:
    with tempfile.TemporaryDirectory() as folder:
        strangers = {Path(folder, other): content for other, content in _STRANGERS.items()}
        for place, content in strangers.items():
            place.write_bytes(content)
        words = {
            place: f"{content[:10]!r}, which is no log" for place, content in strangers.items()
        }
        no_file = "a folder, or no file, as a log"
        words |= {Path(folder): no_file, Path(folder, "nowhere.json"): no_file}
        for place, what in words.items():
            require(not reader.sniff(place), f"reader {name} accepts {what} of its format")


def _check_damaged(name: str, reader: Reader, path: Path) -> None:
    """Check the log with each of its files in turn cut short at a few places."""
    for i, (_, content) in enumerate(_list_contents(path)):
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
                    is_line = "\n" not in str(error)
                    require(is_line, f"reader {name} says more than one line of a log cut short")
                except Exception as error:
                    what = f"{type(error).__name__}: {error}"
                    raise AssertionError(
                        f"reader {name} fails on a log cut short to {length} bytes: {what}"
                    ) from error


def check_exporter(
    exporter: str | Exporter, out: str = "export.json", slices: ReportSlices | None = None
) -> None:
    """Check that an exporter writes what it is asked for, where it is asked to, and nothing else.

    It is given reports with and without confirmed findings, with observations that were not scored,
    and of several models. It has to write the same bytes each time, only at the place named, and to
    say in one line what it wrote. Where the place cannot be written it has to raise `InputError`
    and leave nothing behind.

    Parameters
    ----------
    exporter : str or Exporter
    out : str
        Name of the file or directory to write; give it the suffix that the exporter expects.
    slices : ReportSlices, optional
        A report to export in place of the simulated ones, for exporters that need evidence of a
        certain kind.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what, and for which report.
    """
    exporter = exports.get(exporter)
    require(
        isinstance(exporter.name, str) and exporter.name,
        f"{exporter!r} has no name to be called by",
    )
    # an absolute path would be written to in earnest
    require(Path(out).name == out, f"out={out!r} must be a bare file name: the check has a folder")
    for where, sample in _samples(slices):
        with fail_in(where):
            _check_one(exporter, sample, out)


def _samples(slices: ReportSlices | None) -> Iterator[tuple[str, ReportSlices]]:
    if slices is not None:
        yield "for the report that was passed", slices
        return
    for world in _WORLDS:
        evidence, library = world.evidence(np.random.default_rng(0))
        report = audit(evidence, Plan(judge="holm"), library, finders=(), ledger=None)
        yield f"for a report of the world {world.name!r}", ReportSlices.of(report, evidence)


def _check_one(exporter: Exporter, slices: ReportSlices, out: str) -> None:
    name, before = exporter.name, slices.evidence.hash
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        # twice, in two places: times, paths and random ids would differ
        for home in (first, second):
            home.mkdir()
            message = exporter.export(slices, home / out)
            require(
                isinstance(message, str) and message and "\n" not in message,
                f"exporter {name!r} does not say in one line what it wrote: {message!r}",
            )
            entries = [p.name for p in home.iterdir()]
            require(entries == [out], f"exporter {name!r} wrote {entries}, not {out} alone")
        require(
            _list_contents(first) == _list_contents(second),
            f"exporter {name!r} writes something else the second time",
        )
        blocked = Path(folder, "file")
        blocked.write_bytes(b"")
        _check_refusal(exporter, slices, blocked / out)
        remains = sorted(p.name for p in Path(folder).iterdir())
        require(
            remains == ["file", "first", "second"],
            f"exporter {name!r} leaves files where it cannot write: {remains}",
        )
    require(slices.evidence.hash == before, f"exporter {name!r} changed the evidence")


def _check_refusal(exporter: Exporter, slices: ReportSlices, out: Path) -> None:
    """Check that a place below a file, which cannot be written, is refused."""
    try:
        exporter.export(slices, out)
    except InputError:
        return
    except Exception as error:
        raise AssertionError(
            f"exporter {exporter.name!r} raises {type(error).__name__}, not InputError, where it "
            f"cannot write: {error}"
        ) from error
    raise AssertionError(f"exporter {exporter.name!r} does not fail where it cannot write")
