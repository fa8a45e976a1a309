"""Importing: logs of any tool as one table, with an account of every row that was read."""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec
import polars as pl

from groundfault import readers
from groundfault.base.files import (
    explain_failure,
    is_unfinished,
    replace_folder,
    spell_path,
    write_text,
)
from groundfault.base.long_work import Progress, listener
from groundfault.base.reading import read_json_object, readable
from groundfault.core.column_meaning import OUTCOMES, means_pass, names_a_thing, names_outcome
from groundfault.core.roles import Roles, read_roles
from groundfault.errors import InputError, describe_missing, first_line
from groundfault.readers.account import Account, LogRead
from groundfault.readers.configurations import Setup, name_configurations, split_source
from groundfault.readers.log import ORIGIN, RUN, PackedRows
from groundfault.readers.log_rows import LogRows
from groundfault.readers.mapped import Mapped
from groundfault.readers.safely import POINTER, JsonObject, escape_pattern, is_pointer
from groundfault.readers.scans import is_scan, join_scans
from groundfault.readers.scorers import list_scorers
from groundfault.readers.table import read_table
from groundfault.readers.table_size import measure_table

LogFile = tuple[Path, str, readers.Reader]
NamedLog = tuple[str, LogFile]
"""The caller's name for a log, and the log."""

CONFLICTS = ("error", "keep")
_TABLE, _CARD, _SCORES = "observations.parquet", "evidence.json", "scores.parquet"
# fields of a card about the rows of all scorers
_TOLD = ("measured", "headlines", "conflicts", "notes", "known")
# a pattern that matches a whole disk should end in a message, not in hours of reading
_MAX_LOGS = 100_000
# rows that are written at a time
_ROW_GROUP = 50_000


@dataclass(frozen=True, eq=False)
class ImportedLogs:
    """The content of logs, or of a directory of evidence; `Evidence.from_logs` uses it.

    Attributes
    ----------
    frame : polars.DataFrame
    roles : Roles
        The roles of the columns that the logs determine.
    account : Account, optional
    provenance : tuple of str
    reading : dict
        The settings of `read_logs`, so that the logs can be read again.
    hash : str
        For a directory: the hash of the evidence that was written there.
    rows : LogRows, optional
        For several scorers: the rows of all scorers.
    """

    frame: pl.DataFrame
    roles: Roles
    account: Account | None
    provenance: tuple[str, ...]
    reading: dict[str, Any]
    hash: str = ""
    rows: LogRows | None = None

    def check_hash(self, actual: str) -> None:
        """Raise `InputError` unless the table has the hash on the card."""
        if actual != self.hash:
            table = Path(self.provenance[0]) / _TABLE
            raise InputError(f"{table} is not the table that was imported; import it again")


def read_logs(
    sources: Sequence[str | Path],
    *,
    reader: str | readers.Reader | None = None,
    map: str | Path | Mapped | JsonObject | None = None,
    scorer: str | Sequence[str] | None = None,
    disagreement: tuple[str, str] | None = None,
    scale: tuple[float, float] | None = None,
    conflicts: str = "error",
    progress: Progress | None = None,
) -> ImportedLogs:
    """Read logs of evaluation tools; `Evidence.from_logs` describes the parameters.

    Raises
    ------
    InputError
        If a log cannot be read, or the logs contradict each other.
    """
    report = listener(progress)
    scorers, scale = (scorer,) if isinstance(scorer, str) else tuple(scorer or ()), _range(scale)
    if scorers and disagreement:
        raise InputError("choose a scorer, or the disagreement of two, not both")
    if conflicts not in CONFLICTS:
        raise InputError(f"conflicts={conflicts!r} must be error or keep")
    _require_places(sources)
    if len(sources) == 1 and (Path(sources[0]) / _CARD).is_file():
        return _read_directory(Path(sources[0]), scorers, disagreement, scale)
    mapped = Mapped.of(map)
    if mapped is not None and scale is None:
        _require_direction(mapped)
    logs, unread, scans = _find(sources, _readers(reader, mapped), reader, report)
    rows = replace(_read_all(logs, tuple(unread), report), conflicts=conflicts)
    report("putting the logs together")
    frame, roles, account = rows.choose(scorers, disagreement=disagreement, scale=scale)
    if scans:
        report("joining scans")
        frame, roles, account = join_scans(frame, roles, account, scans)
    reading: JsonObject = {"reader": readers.name_of(reader) if reader else None}
    reading |= {"map": msgspec.to_builtins(mapped), "scorer": list(scorers) or None}
    reading |= {"scale": scale, "conflicts": conflicts, "disagreement": disagreement}
    provenance = tuple(spell_path(source) for source in sources)
    rows_of_all = rows if len(rows.scorers) > 1 else None
    return ImportedLogs(frame, roles, account, provenance, reading, rows=rows_of_all)


def _require_places(sources: Sequence[object]) -> None:
    """Raise unless there are sources, and each is a path."""
    if not sources:
        raise InputError("no source was named: name a log, a folder of logs, or a pattern")
    for source in sources:
        if not isinstance(source, str | Path):
            raise InputError(
                f"from_logs reads files and folders, and this is a {type(source).__name__}: a "
                "table in memory is read by Evidence.from_table(table, id=..., outcome=...)"
            )


def _require_direction(mapped: Mapped) -> None:
    """Raise if a column of failures would be read as a value in which 1 is a pass."""
    column = mapped.columns.get("value", "")
    # a mapping that gives the values of words has also given the direction
    if means_pass(column) is False and not mapped.values:
        raise InputError(
            f"the value column {column!r} is named as if 1 were a failure; add --scale 1 0 "
            "(scale=(1, 0)) if it is, --scale 0 1 (scale=(0, 1)) if 1 is a pass"
        )


def _readers(
    reader: str | readers.Reader | None, mapped: Mapped | None
) -> dict[str, readers.Reader]:
    """Return the readers to try, by name and in order."""
    if mapped:
        return {"map": mapped}
    if reader is not None:
        return {readers.name_of(reader): readers.get(reader)}
    return {name: readers.get(name) for name in readers.known()}


def _read_all(logs: Sequence[NamedLog], unread: tuple[str, ...], report: Progress) -> LogRows:
    """Read the rows of all logs, and the account and headline of each log."""
    packed, measured_columns = PackedRows(), dict[str, None]()
    known, undated = dict[str, None](), set[str]()
    log_accounts, headlines = [], []
    setups, beside = [], set[Path]()
    for i, (alias, (path, name, reader)) in enumerate(logs):
        report(f"reading log {i + 1:,} of {len(logs):,}: {path.name}")
        log = reader.read(path)
        rows, scorers, figure = 0, dict[str, None](), log.official
        # the log that rows are from, its run, and an origin where they have one
        marks = {"log": pl.lit(i, pl.Int32), RUN: pl.lit(log.run or None, pl.String)}
        for frame, columns in log.tables():
            origin = {} if ORIGIN in frame.columns else {ORIGIN: pl.lit(None, pl.String)}
            packed.add(frame.with_columns(**marks, **origin))
            measured_columns |= dict.fromkeys(sorted(columns))
            later = getattr(reader, "undated", None)
            known |= dict.fromkeys(() if later is None else frame.columns)
            undated |= {*(frame.columns if later is None else later)}
            rows += frame.height
            figure = figure and figure.add_rows(frame)
            scorers |= dict.fromkeys(list_scorers(frame))
        place, notes = spell_path(path), tuple(log.notes)
        log_accounts.append(
            LogRead(place, digest_log(path), name, log.harness, rows, notes, figure)
        )
        headlines.append(log.find_headline(tuple(scorers)))
        setups.append(Setup.of(log, alias))
        beside |= {place.resolve() for place in log.beside}
    if not packed:
        where = log_accounts[0].path if len(log_accounts) == 1 else f"{len(log_accounts)} logs"
        reasons = "; ".join(note for each in log_accounts for note in each.notes)
        raise InputError(f"{where}: no observations; {reasons or 'empty'}")
    table, notes = name_configurations(packed.stack(), setups)
    rest = tuple(p for p in unread if Path(p).resolve() not in beside)
    logs_read, leaders = tuple(log_accounts), tuple(headlines)
    dated = tuple(name for name in known if name not in undated)
    return LogRows(
        table, tuple(measured_columns), logs_read, rest, leaders, notes=notes, known=dated
    )


def write_directory(
    directory: str | Path,
    frame: pl.DataFrame,
    roles: Roles,
    account: Account | None,
    digest: str,
    rows: LogRows | None = None,
) -> None:
    """Write evidence into a directory, which `read_logs` reads again; see `Evidence.save`.

    Parameters
    ----------
    directory : path
        Its present files are replaced together; see `replace_folder`.
    frame, roles, account
        Parts of the evidence.
    digest : str
        Hash of the evidence.
    rows : LogRows, optional
        Rows of all scorers, so that another scorer can be chosen later.
    """
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise InputError(f"cannot write {place}: it is a file; name a directory")
    occupied = place.is_dir() and any(place.iterdir())
    if occupied and not (place / _CARD).is_file() and not is_unfinished(place):
        raise InputError(f"{place} has other files in it; name a directory of its own")
    card = {"groundfault_evidence": 1, "hash": digest, "roles": asdict(roles)}
    card["account"] = account.to_dict() if account else None
    with replace_folder(place, names=[_SCORES]) as new, explain_failure(place):
        _write_table(frame, new / _TABLE)
        if rows is not None and account is not None:
            _write_table(rows.frame, new / _SCORES)
            told = {name: getattr(rows, name) for name in _TOLD}
            card["scores"] = told | {"sha256": digest_log(new / _SCORES)}
        write_text(new / _CARD, json.dumps(card, indent=1, ensure_ascii=False))


def _write_table(frame: pl.DataFrame | pl.LazyFrame, place: Path) -> None:
    # opened here: polars takes only paths that are UTF-8
    with place.open("wb") as stream:
        try:
            # part by part: the rows of all scorers may not fit into memory as they stand
            frame.lazy().sink_parquet(stream, row_group_size=_ROW_GROUP)
        except pl.exceptions.ComputeError as error:
            # of a disk that is full
            raise OSError(first_line(error)) from None


def _read_directory(
    place: Path,
    scorers: tuple[str, ...],
    disagreement: tuple[str, str] | None,
    scale: tuple[float, float] | None,
) -> ImportedLogs:
    try:
        card = read_json_object(place / _CARD)
        roles = msgspec.convert(read_roles(card["roles"]), Roles)
        account = msgspec.convert(card["account"], Account | None)
        rows = _read_rows(place, card["scores"], account) if "scores" in card else None
        digest = str(card["hash"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place / _CARD} is no card of evidence: {error}") from None
    if not scorers and not disagreement:
        frame, _ = read_table(place / _TABLE)
        return ImportedLogs(frame, roles, account, (str(place),), {}, digest, rows)
    if rows is None:
        raise InputError(
            f"{place} holds the scores of one scorer: leave --scorer out, or import the logs again"
        )
    frame, roles, account = rows.choose(scorers, disagreement=disagreement, scale=scale)
    reading = {"scorer": list(scorers) or None, "disagreement": disagreement, "scale": scale}
    return ImportedLogs(frame, roles, account, (str(place),), reading, rows=rows)


def _read_rows(place: Path, card: dict[str, Any], account: Account | None) -> LogRows | None:
    """Read the rows of all scorers, which are needed to choose another scorer."""
    path = place / _SCORES
    if account is None:
        return None
    if not path.is_file() or digest_log(path) != card["sha256"]:
        raise InputError(f"{path} is not the table that was imported; import it again")
    measure_table(path)
    measured, headlines, notes = (tuple(card[name]) for name in ("measured", "headlines", "notes"))
    known = tuple(card.get("known", ()))
    frame, own = pl.scan_parquet(escape_pattern(path)), (account.logs, account.unread)
    return LogRows(frame, measured, *own, headlines, card["conflicts"], notes, known)


def _range(scale: tuple[float, float] | None) -> tuple[float, float] | None:
    if scale is None:
        return None
    worst, best = (float(x) for x in scale)
    if worst == best or not abs(worst) + abs(best) < float("inf"):
        raise InputError(
            f"scale={worst:g} {best:g} must be the worst and the best value, two different numbers"
        )
    return worst, best


def _find(
    sources: Sequence[str | Path],
    candidates: dict[str, readers.Reader],
    reader: str | readers.Reader | None,
    report: Progress,
) -> tuple[list[NamedLog], list[str], list[Path]]:
    """Find every log of the sources with its name and reader, files no reader knows, and scans."""
    logs: dict[tuple[str, Path], NamedLog] = {}
    unread, scans = list[Path](), list[Path]()
    for alias, place in map(split_source, sources):
        for path in _expand(place):
            before = len(logs) + len(scans)
            for log in _recognise(path, candidates, unread, scans, top=True):
                logs[alias, log[0]] = (alias, log)
                report(f"looking for logs: {len(logs):,} so far")
                if len(logs) > _MAX_LOGS:
                    raise InputError(f"over {_MAX_LOGS:,} logs; name fewer at a time")
            if len(logs) + len(scans) == before and (alias, path) not in logs and not path.is_dir():
                name = readers.name_of(reader) if reader else None
                raise InputError(_explain([path], candidates) or _unknown(path, name))
    if scans and not logs:
        raise InputError(f"{scans[0]}: these are scans of runs: also name the logs of the runs")
    if not logs:
        others = f", but {len(unread):,} other files, such as {_name(unread[0])}" if unread else ""
        names = ", ".join(str(s) for s in sources)
        advice = f"; {_advise_table(sources[0])}" if others else ""
        told = _explain(unread, candidates)
        raise InputError(told or f"{names}: no log of a known tool{others}{advice}")
    used = {name: candidates[name] for _, (_, name, _) in logs.values()}
    companions = [pattern for one in used.values() for pattern in getattr(one, "companions", ())]
    rest = [p for p in unread if not any(p.match(pattern) for pattern in companions)]
    return list(logs.values()), list(map(_name, rest)), scans


def _explain(paths: Sequence[Path], candidates: dict[str, readers.Reader]) -> str:
    """Return a reader's hint about a file of its tool without answers; empty without a hint."""
    able = [one for one in candidates.values() if isinstance(one, readers.Explains)]
    return next(filter(None, (one.explain(path) for path in paths for one in able)), "")


def _name(path: Path) -> str:
    return f"{path} ({POINTER})" if is_pointer(path) else str(path)


def _expand(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.exists():
        return [path]
    if glob.has_magic(str(source)):
        names = sorted(glob.glob(str(source), recursive=True))  # noqa: PTH207 - patterns may be absolute
        if names:
            return [Path(name) for name in names]
        raise InputError(f"no file matches {source}")
    raise InputError(describe_missing(path))


def _recognise(
    path: Path,
    candidates: dict[str, readers.Reader],
    unread: list[Path],
    scans: list[Path],
    *,
    top: bool = False,
) -> Iterator[LogFile]:
    # a mapping was written for these files, so those that are named are read by it without a sniff
    if top and path.is_file() and "map" in candidates:
        yield path, "map", candidates["map"]
        return
    if is_scan(path):
        scans.append(path)
        return
    for name, reader in candidates.items():
        if reader.sniff(path):
            yield path, name, reader
            return
    if path.is_dir():
        with readable(path):
            children = sorted(path.iterdir())
        if (path / _CARD).is_file():
            # in a folder of evidence, only the rows of its outcome, not the rows of all scorers
            children = [child for child in children if child.name not in (_CARD, _SCORES)]
        for child in children:
            # symbolic links to folders may form circles
            if not child.name.startswith(".") and not (child.is_dir() and child.is_symlink()):
                yield from _recognise(child, candidates, unread, scans)
    elif not top:
        unread.append(path)


def _unknown(path: Path, reader: str | None) -> str:
    with readable(path), path.open("rb") as stream:
        start = stream.read(2)
    if not start:
        return f"{path} is empty"
    if is_pointer(path):
        return f"{path} is {POINTER}"
    if start in (b"\xff\xfe", b"\xfe\xff"):
        return f"{path} is UTF-16 text, not UTF-8; convert it first (iconv -f UTF-16 -t UTF-8)"
    if reader:
        return f"{path} is no log of {reader}"
    return (
        f"{path} is not a log of a known tool; {_advise_table(path)}, or describe its columns in a "
        "file (--map FILE)"
    )


def _advise_table(source: str | Path) -> str:
    try:
        table = read_table(source)[0]
    except InputError:
        table = pl.DataFrame()
    columns = table.columns
    ids = [c for c in columns if names_a_thing(c)] or ["COL"] * (not columns)
    told = [c for c in columns if means_pass(c) is not None]
    told.sort(key=lambda name: table[name].n_unique() > 2)  # before a column that is named f1
    told = told or [c for c in columns if names_outcome(c) or c.lower() in OUTCOMES]
    flags = "".join(f" --id {quote(name)}" for name in ids[:1])
    asked = "" if told or not columns else f", where COL is one of {', '.join(columns[:12])}"
    return (
        "if it is a table, name its outcome column in audit or compare:"
        f"{flags} --outcome {quote(told[0]) if told else 'COL'}{asked}"
    )


def digest_log(path: Path) -> str:
    """Return the SHA-256 of a log's content, wherever it is."""
    # of a run in a folder: every file's digest in the order of the paths; names do not count, so
    # that a copy elsewhere has the same hash
    digest = hashlib.sha256()
    for part in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        with part.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
