"""How logs of Inspect are laid out: the fields that are read; and scans of Inspect Scout."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import polars as pl

from groundfault import readers
from groundfault.core.conversations import TRANSCRIPT
from groundfault.core.roles import Roles
from groundfault.errors import InputError, first_line
from groundfault.readers.account import Account
from groundfault.readers.safely import Archive, escape_pattern, head, json_file
from groundfault.readers.table import DAMAGED, read_table
from groundfault.readers.table_size import measure_table
from groundfault.readers.values import number, text

_SAMPLE = re.compile(r"samples/(.+)_epoch_\d+(\.json|/sample\.json)")
# an interrupted run has no header.json yet, only the journal's
_HEADERS = ("header.json", "_journal/start.json")
_KEY = "transcript_id"
_SCAN = "_scan.json"
_RESULTS = ("scanner_key", "value", "value_type", "scan_error", "validation_target")
_LABELS = ("resultset", "array")


class Score(msgspec.Struct):
    """One score of a sample."""

    value: Any = None
    answer: Any = None
    explanation: Any = None
    reason: Any = None
    metadata: Any = None
    history: Any = None


class Message(msgspec.Struct):
    """One message; its text is not read."""

    role: Any = None
    tool_calls: list[Any] | None = None


class Choice(msgspec.Struct):
    """One answer of the model."""

    message: Any = None
    stop_reason: Any = None
    logprobs: Any = None


class Output(msgspec.Struct):
    """The last call of the model."""

    model: Any = None
    choices: list[Choice] | None = None
    completion: Any = None
    usage: Any = None


class Sample(msgspec.Struct):
    """One sample; other keys, above all its events, are skipped while decoding."""

    id: str | int
    epoch: int = 1
    uuid: Any = None
    input: Any = None
    choices: list[Any] | None = None
    target: Any = None
    messages: list[Message] | None = None
    output: Output | None = None
    scores: dict[str, Score] | None = None
    score: Score | None = None
    metadata: dict[str, Any] | None = None
    model_usage: Any = None
    total_time: Any = None
    error: Any = None
    error_retries: list[Any] | None = None
    limit: Any = None
    turn_count: int | None = None
    invalidation: Any = None


class NamedSample(msgspec.Struct):
    """A sample by its name alone."""

    uuid: Any = None


class ToldSample(msgspec.Struct):
    """A sample as its transcript is told: texts, and what references in them stand for."""

    messages: list[Any] | None = None
    scores: dict[str, Score] | None = None
    error: Any = None
    error_retries: list[Any] | None = None
    limit: Any = None
    attachments: dict[str, str] | None = None


# attachments are most of a log's size and rarely referred to: they are decoded in a second pass,
# and only when a text is a reference to one
class _Attached(msgspec.Struct):
    attachments: dict[str, str] | None = None


class Eval(msgspec.Struct):
    """The description of the run."""

    task: str
    model: str
    eval_id: Any = None
    run_id: Any = None
    task_id: Any = None
    dataset: Any = None
    config: Any = None
    packages: Any = None
    scorers: list[Any] | None = None
    model_roles: Any = None
    task_args: Any = None
    model_args: Any = None
    model_generate_config: Any = None
    solver: Any = None


class Header(msgspec.Struct):
    """A log without its samples."""

    eval: Eval
    status: str = "started"
    error: Any = None


Told = TypeVar("Told", Sample, ToldSample, NamedSample)


class _Whole(Header, Generic[Told]):
    samples: list[Told] | None = None


class _WholeAttached(msgspec.Struct):
    samples: list[_Attached] | None = None


class _Set(msgspec.Struct):
    """The list of the tasks of an eval set."""

    tasks: list[dict[str, Any]] = []


Attachments = Callable[[], Mapping[str, str]]


def open_log(path: Path, kind: type[Told]) -> tuple[Header, Iterator[tuple[Told, Attachments]]]:
    """Read the header of a log, and its samples, each with a function that gives attachments.

    Parameters
    ----------
    path : path
    kind : type
        `Sample`, or `ToldSample` for what was said and done.

    Raises
    ------
    InputError
        If it is no log of Inspect, or damaged.
    """
    if not head(path).startswith(b"PK"):
        return _read_json(path, kind)
    archive = Archive(path)
    header_name = next((name for name in _HEADERS if name in archive), None)
    if header_name is None:
        raise InputError(f"{path} has neither {' nor '.join(_HEADERS)}; is it a log of Inspect?")
    return archive.json(header_name, Header), _read_archive(archive, kind)


def note_unlogged_tasks(folder: Path) -> list[str]:
    """Return a note on the tasks of an eval set that have no log in its folder.

    None where all have.
    """
    listing_path = folder / "eval-set.json"
    if not listing_path.is_file():
        return []
    try:
        tasks = json_file(listing_path, _Set).tasks
    except InputError as error:
        return [f"the list of the eval set is not read: {error}"]
    logs = {path.stem.rpartition("_")[2] for path in folder.iterdir()}
    names = [str(task.get("name")) for task in tasks if str(task.get("task_id")) not in logs]
    return [f"the eval set has no log of {', '.join(names)}"] if names else []


def _read_archive(archive: Archive, kind: type[Told]) -> Iterator[tuple[Told, Attachments]]:
    for name in archive.names():
        name_match = _SAMPLE.fullmatch(name)
        if not name_match:
            continue
        sample = archive.json(name, kind)
        if name_match[2] == ".json":
            yield sample, partial(_read_attachments, archive, name)
        else:
            # large samples are written in parts, each an entry of its own
            folder = name.removesuffix("sample.json")
            if isinstance(sample, Sample) and f"{folder}metadata.json" in archive:
                sample.metadata = archive.json(f"{folder}metadata.json", dict[str, Any])
            yield sample, partial(_read_attachment_parts, archive, f"{folder}attachments/")


def _read_attachments(archive: Archive, name: str) -> dict[str, str]:
    return archive.json(name, _Attached).attachments or {}


def _read_attachment_parts(archive: Archive, folder: str) -> dict[str, str]:
    """Read attachments of a sample in parts: lists of texts, referred to by number."""
    ends = (name.removeprefix(folder) for name in archive.names() if name.startswith(folder))
    starts = (end.removesuffix(".json") for end in ends if end.endswith(".json"))
    texts: dict[str, str] = {}
    for start in sorted(int(start) for start in starts if start.isdecimal()):
        parts = archive.json(f"{folder}{start}.json", list[str])
        texts |= {str(start + i): part for i, part in enumerate(parts)}
    return texts


def _read_json(path: Path, kind: type[Told]) -> tuple[Header, Iterator[tuple[Told, Attachments]]]:
    whole: _Whole[Told] = json_file(path, _Whole[kind])  # type: ignore[valid-type,arg-type]
    parts: list[_Attached] = []

    def attachments(i: int) -> Mapping[str, str]:
        if not parts:
            parts.extend(json_file(path, _WholeAttached).samples or [])
        return parts[i].attachments or {}

    samples = whole.samples or []
    return whole, ((sample, partial(attachments, i)) for i, sample in enumerate(samples))


def is_scan(path: Path) -> bool:
    """Return whether it is the folder of a scan, or a table by transcript, a Parquet or CSV file.

    A folder of several scans is read scan by scan.
    """
    if path.is_dir():
        return (path / _SCAN).is_file()
    try:
        if path.suffix == ".parquet" and head(path).startswith(b"PAR1"):
            names = list(pl.read_parquet_schema(escape_pattern(path)))
        elif path.suffix == ".csv":
            line = head(path).partition(b"\n")[0].decode("utf-8", "replace")
            names = next(csv.reader([line.rstrip("\r")]), [])
        else:
            return False
    except (*DAMAGED, csv.Error):
        return False
    return _KEY in names and "example_id" not in names


def join_scans(
    frame: pl.DataFrame, roles: Roles, account: Account, scans: Sequence[Path]
) -> tuple[pl.DataFrame, Roles, Account]:
    """Add a column a scanner to the runs of logs, by the uuid of each sample.

    Of several results of a scanner for one run the largest counts. What a scanner says of no
    transcript, or where it crashed, is missing; a scanner of true and false that returned no value
    says false.

    Returns
    -------
    frame, roles, account
        The columns are known while a run goes on (`Roles.during`). How a scanner does on its
        own validation set is a note of the account.

    Raises
    ------
    InputError
        If a scan cannot be read, or is of no run of the logs.
    """
    runs, notes = _list_runs(frame, account), list(account.notes)
    names: list[str] = []
    for scan in scans:
        table, told = _read_scan(scan)
        matched = runs.join(table, left_on="uuid", right_on=_KEY, how="inner")
        if matched.is_empty():
            raise InputError(
                f"{scan}: none of its {table.height:,} transcripts is a run of these logs: "
                "transcripts are found by the uuid of their sample"
            )
        free = {name: name for name in table.columns[1:]}
        for name in free:
            while free[name] in frame.columns:
                free[name] += "_scan"
        found = matched.drop("uuid").rename(free)
        frame = frame.join(found, on=["log", TRANSCRIPT], how="left", maintain_order="left")
        names += free.values()
        notes += [f"{scan}: {found.height:,} of {len(frame):,} runs are scanned", *told]
    account = msgspec.structs.replace(account, notes=tuple(notes))
    return frame, replace(roles, during=tuple(names)), account


def _list_runs(frame: pl.DataFrame, account: Account) -> pl.DataFrame:
    """Return the uuid of each run, by the number of its log and its own."""
    rows: list[tuple[int, int, str | None]] = []
    for place in frame["log"].drop_nulls().unique().sort() if TRANSCRIPT in frame.columns else ():
        log = account.logs[int(place)]
        reader: Any = readers.get(log.reader)
        if hasattr(reader, "read_uuids"):
            rows += [(place, *pair) for pair in reader.read_uuids(Path(log.path))]
    if not rows:
        raise InputError("a scan is joined to runs by the uuid of their sample: name Inspect logs")
    types = {"log": pl.Int32, TRANSCRIPT: pl.Int64, "uuid": pl.String}
    return pl.DataFrame(rows, schema=types, orient="row").drop_nulls()


def _read_scan(scan: Path) -> tuple[pl.DataFrame, list[str]]:
    """Return a table of transcripts, a column a scanner, and notes on their validation."""
    parts, notes = list[pl.DataFrame](), list[str]()
    for path in sorted(scan.glob("*.parquet")) if scan.is_dir() else [scan]:
        if path.suffix == ".parquet":
            measure_table(path)
        try:
            names = pl.read_parquet_schema(escape_pattern(path)) if path.suffix != ".csv" else ()
            if not {*_RESULTS} <= {*names}:
                parts.append(read_table(path, text=(_KEY,))[0])
                continue
            # not the transcripts beside the results, which are most of the file
            results = pl.read_parquet(escape_pattern(path), columns=[_KEY, *_RESULTS])
            notes += filter(None, map(_note_validation, results.partition_by("scanner_key")))
            parts += map(_read_results, results.partition_by("scanner_key"))
        except DAMAGED as error:
            raise InputError(f"{path} cannot be read as a scan: {first_line(error)}") from None
    if not parts:
        raise InputError(f"{scan} has no results yet: complete the scan, then read it")
    table = parts[0]
    for part in parts[1:]:
        table = table.join(part, on=_KEY, how="full", coalesce=True, suffix="_scan")
    keyed = table.drop_nulls(_KEY).group_by(_KEY, maintain_order=True).max()
    return keyed.select(_KEY, *(c for c in keyed.columns if c != _KEY)), notes


def _read_results(results: pl.DataFrame) -> pl.DataFrame:
    """Return the results of one scanner as a column; of several labels, a column each."""
    name, kinds = results["scanner_key"][0], results["value_type"]
    values = [_parse(value) for value in results["value"]]
    if kinds.is_in(_LABELS).any():
        said = [{_name_label(one) for one in value or ()} - {""} for value in values]
        labels = sorted(set[str]().union(*said))
        data = {f"{name}: {label}": [label in some for some in said] for label in labels}
    else:
        kind = next((k for k in ("boolean", "number") if (kinds == k).any()), "string")
        data = {name: list(map(_KINDS[kind], values))}
    # of a transcript on which it crashed a scanner says nothing
    ran = results["scan_error"].is_null()
    table = pl.DataFrame(data, infer_schema_length=None).select(pl.when(ran).then(pl.all()))
    return table.insert_column(0, results[_KEY])


_KINDS: dict[str, Callable[[Any], Any]] = {"boolean": bool, "number": number, "string": text}


def _parse(value: Any) -> Any:
    """Return a value that Scout writes as JSON, and words as they are."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        return value


def _name_label(result: Any) -> str:
    """Return the label of one result of several, where it says that the label holds."""
    if not isinstance(result, dict):
        return str(result)
    return str(result.get("label") or "") if result.get("value", True) else ""


def _note_validation(results: pl.DataFrame) -> str:
    """Return how a scanner of true and false does on its own validation set; empty without one."""
    words = {"true": "flags {} of {} that have it", "false": "leaves {} of {} alone that have not"}
    parts = [
        words[target].format((part["value"] == target).sum(), part.height)
        for target in words
        if (part := results.filter(pl.col("validation_target") == target)).height
    ]
    name = results["scanner_key"][0]
    return f"the scanner {name} {' and '.join(parts)}, in its validation set" if parts else ""
