"""Importing: logs of any tool become one evidence, with an account of everything that was read."""

from __future__ import annotations

import glob
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import polars as pl

from groundfault import readers
from groundfault.base.files import write_text
from groundfault.core.evidence import Evidence
from groundfault.core.roles import LISTS, Roles
from groundfault.errors import InputError
from groundfault.readers import merge
from groundfault.readers.account import Account, LogRead
from groundfault.readers.log import COLUMNS, joined
from groundfault.readers.mapped import Mapped
from groundfault.readers.safely import readable
from groundfault.readers.table import read_table

Progress = Callable[[str], object]
Found = tuple[Path, str, readers.Reader]

CONFLICTS = ("error", "keep")
_TABLE, _CARD = "observations.parquet", "evidence.json"
_MOST_LOGS = 100_000


def read_logs(
    sources: Sequence[str | Path],
    *,
    reader: str | None = None,
    map: str | Path | Mapped | dict[str, Any] | None = None,
    scorer: str | Sequence[str] | None = None,
    scale: tuple[float, float] | None = None,
    conflicts: str = "error",
    named: Mapping[str, Any] | None = None,
    progress: Progress = bool,
) -> Evidence:
    """Read logs of evaluation tools into one evidence; `Evidence.from_logs` says what the
    parameters are.

    Parameters
    ----------
    named : mapping, optional
        Roles that the caller names beside those the logs give: ``group``, ``split``, and the lists
        ``ignore``, ``post_outcome`` and ``allow_leak``.

    Raises
    ------
    InputError
        If a log cannot be read, or what was read does not fit together.
    """
    scorers, scale = (scorer,) if isinstance(scorer, str) else tuple(scorer or ()), _range(scale)
    if conflicts not in CONFLICTS:
        raise InputError(f"conflicts={conflicts!r} is neither error nor keep")
    if not sources:
        raise InputError("nothing to read: name a log, a folder of logs, or a pattern")
    if len(sources) == 1 and (Path(sources[0]) / _CARD).is_file():
        return _load(Path(sources[0]), named or {})
    mapped = (
        Mapped.from_file(map)
        if isinstance(map, str | Path)
        else Mapped(**map)
        if isinstance(map, dict)
        else map
    )
    logs, unread = _find(sources, reader, mapped, progress)
    table, measured, read, verdicts = _read_all(logs, progress)
    progress("putting the logs together")
    rows_of = {
        str(name): int(rows) for name, rows in table["scorer"].value_counts(sort=True).iter_rows()
    }
    chosen, others, left_out, notes = merge.one_scorer(table, scorers, verdicts)
    counts = {"left_out": left_out, "beside": table.height - chosen.height - left_out}
    table = merge.beside(merge.scaled(chosen, scale), table, others)
    table, changed = merge.reconciled(merge.named_by_task(table), conflicts, read)
    account = merge.account(table, read, unread, rows_of, counts | changed, notes)
    frame, roles = _with_roles(table, measured, named or {})
    settings: dict[str, Any] = {"reader": reader, "map": asdict(mapped) if mapped else None}
    settings |= {"scorer": list(scorers) or None, "scale": scale, "conflicts": conflicts}
    return Evidence.from_frame(
        frame, roles, tuple(str(s) for s in sources), account=account, reading=settings
    )


def _read_all(
    logs: Sequence[Found], progress: Progress
) -> tuple[pl.DataFrame, set[str], list[LogRead], list[str]]:
    """The rows of all logs, the names of their measured columns, what each log was, and its tool's
    own verdict.
    """
    frames, measured, read, verdicts = [], set[str](), [], []
    for i, (path, name, reader) in enumerate(logs):
        progress(f"reading log {i + 1:,} of {len(logs):,}: {path.name}")
        log = reader.read(path)
        rows = 0
        for frame, columns in log.tables():
            frames.append(frame.with_columns(pl.lit(i, pl.Int32).alias("log")))
            measured |= columns
            rows += frame.height
        read.append(LogRead(str(path), _sha256(path), name, log.harness, rows, tuple(log.notes)))
        verdicts.append(log.verdict)
    if not frames:
        where = read[0].path if len(read) == 1 else f"{len(read)} logs"
        raise InputError(
            f"{where}: no observations; {'; '.join(note for r in read for note in r.notes) or 'empty'}"
        )
    return joined(frames), measured, read, verdicts


def save(evidence: Evidence, directory: str | Path) -> None:
    """Write evidence that was read from logs into a directory, which `read_logs` reads again.

    The directory appears whole or not at all. Where it is there already, the table is replaced
    before the card, whose hash tells a table of another import.

    Raises
    ------
    InputError
        If the directory has other files in it, or cannot be written.
    """
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise InputError(f"cannot write {place}: it is a file; name a directory")
    taken = place.is_dir() and any(place.iterdir())
    if taken and not (place / _CARD).is_file():
        raise InputError(f"{place} has other files in it; name a directory of its own")
    account = evidence.account.to_dict() if evidence.account else None
    card = {
        "groundfault_evidence": 1,
        "hash": evidence.hash,
        "roles": asdict(evidence.roles),
        "account": account,
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=place.parent, prefix=f".{place.name}.", suffix=".tmp"
        ) as aside:
            new = Path(aside, place.name)
            new.mkdir()
            evidence.frame.write_parquet(new / _TABLE)
            write_text(new / _CARD, json.dumps(card, indent=1, ensure_ascii=False))
            for name in (_TABLE, _CARD) if taken else ():
                (new / name).replace(place / name)
            if not taken:
                if place.is_dir():
                    place.rmdir()
                new.rename(place)
    except OSError as error:
        why = error.strerror or error
        raise InputError(
            f"cannot write {place}: {why}; choose a place that can be written"
        ) from None


def _load(place: Path, named: Mapping[str, Any]) -> Evidence:
    try:
        card = json.loads((place / _CARD).read_text("utf-8"))
        given: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in card["roles"].items()
        }
        roles = Roles(**given)
        account = Account.from_dict(card["account"]) if card["account"] else None
        saved = card["hash"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{place / _CARD} is no card of evidence: {error}") from None
    frame, _ = read_table(place / _TABLE)
    evidence = Evidence.from_frame(frame, roles, (str(place),), account=account, reading={})
    if evidence.hash != saved:
        raise InputError(f"{place / _TABLE} is not the table that was imported; import it again")
    if not any(named.values()):
        return evidence
    roles = _given(roles, named)
    return Evidence.from_frame(frame, roles, (str(place),), account=account, reading={})


def _given(roles: Roles, named: Mapping[str, Any]) -> Roles:
    """The roles with what was named: a column instead of the logs', lists beside theirs."""
    lists: dict[str, Any] = {
        k: tuple(dict.fromkeys([*getattr(roles, k), *named.get(k, ())])) for k in LISTS
    }
    return replace(
        roles, **lists, **{k: named.get(k) or getattr(roles, k) for k in ("group", "split")}
    )


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
    sources: Sequence[str | Path], reader: str | None, mapped: Mapped | None, progress: Progress
) -> tuple[list[Found], list[str]]:
    """Every log of the sources with its reader, and the files that no reader knows."""
    found: dict[Path, Found] = {}
    unread: list[Path] = []
    known = [reader] if reader else list(readers.known())
    made: dict[str, readers.Reader] = (
        {"map": mapped} if mapped else {name: readers.get(name) for name in known}
    )
    for source in sources:
        for path in _expanded(source):
            before = len(found)
            for unit in _units(path, made, unread, top=True):
                found[unit[0]] = unit
                progress(f"looking for logs: {len(found):,} found")
                if len(found) > _MOST_LOGS:
                    raise InputError(f"over {_MOST_LOGS:,} logs; name fewer at a time")
            if len(found) == before and path not in found and not path.is_dir():
                raise InputError(_unknown(path, reader))
    if not found:
        said = f", but {len(unread):,} other files, such as {unread[0]}" if unread else ""
        raise InputError(f"{', '.join(str(s) for s in sources)}: no log that a reader knows{said}")
    used = {name for _, name, _ in found.values()}
    companions = [pattern for name in used for pattern in getattr(made[name], "companions", ())]
    return list(found.values()), [
        str(p) for p in unread if not any(p.match(pattern) for pattern in companions)
    ]


def _expanded(source: str | Path) -> list[Path]:
    path = Path(source)
    if path.exists():
        return [path]
    if glob.has_magic(str(source)):
        matched = sorted(glob.glob(str(source), recursive=True))  # noqa: PTH207 - patterns may be absolute
        if matched:
            return [Path(name) for name in matched]
        raise InputError(f"no file matches {source}")
    raise InputError(f"{path} does not exist")


def _units(
    path: Path, made: dict[str, readers.Reader], unread: list[Path], *, top: bool = False
) -> Iterator[Found]:
    if top and path.is_file() and "map" in made:
        yield path, "map", made["map"]
        return
    for name, reader in made.items():
        if reader.sniff(path):
            yield path, name, reader
            return
    if path.is_dir():
        with readable(path):
            children = sorted(path.iterdir())
        for child in children:
            if not child.name.startswith(".") and not (child.is_dir() and child.is_symlink()):
                yield from _units(child, made, unread)
    elif not top:
        unread.append(path)


def _unknown(path: Path, reader: str | None) -> str:
    with readable(path), path.open("rb") as stream:
        start = stream.read(2)
    if not start:
        return f"{path} is empty"
    if start in (b"\xff\xfe", b"\xfe\xff"):
        return f"{path} is UTF-16 text, not UTF-8; convert it first (iconv -f UTF-16 -t UTF-8)"
    if reader:
        return f"{path} is no log of {reader}"
    return (
        f"{path}: no reader knows this file ({', '.join(readers.known())}); if it is a table, say which column is the "
        "outcome (--outcome), or what its columns are (--map)"
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for part in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        with part.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _with_roles(
    table: pl.DataFrame, measured: set[str], named: Mapping[str, Any]
) -> tuple[pl.DataFrame, Roles]:
    if table["group"].null_count() < table.height:
        table = table.with_columns(pl.coalesce("group", "example_id").alias("group"))
    bare = [
        c
        for c in table.columns
        if c not in ("value", "status", "example_id") and _says_nothing(table[c])
    ]
    table = table.drop(bare)
    bookkeeping = [c for c in ("scorer", "epoch", "question_hash", "log") if c in table.columns]
    answers = ["response", "answer", "confidence", "logprob"]
    of_answers = [
        c
        for c in table.columns
        if c in {*measured, *answers, merge.DISAGREE} or c.startswith("score_")
    ]
    repeats = "epoch" in table.columns and table["epoch"].n_unique() > 1
    roles = Roles(
        outcome="value",
        id="example_id",
        model="model" if "model" in table.columns else None,
        repeat="epoch" if repeats else None,
        group="group" if "group" in table.columns else None,
        status="status",
        positive_is_good=True,
        ignore=tuple(c for c in bookkeeping if not (repeats and c == "epoch")),
        instrument=tuple(of_answers),
    )
    return table, _given(roles, named)


def _says_nothing(column: pl.Series) -> bool:
    """Whether a column of the vocabulary was left out by every log."""
    if column.name not in COLUMNS:
        return False
    return column.null_count() == len(column) or (
        column.dtype == pl.String and not (column != "").any()
    )
