"""Layout of Inspect's logs: the fields that are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from groundfault.errors import InputError
from groundfault.readers.safely import Archive, JsonObject, head, json_file

_SAMPLE = re.compile(r"samples/(.+)_epoch_\d+(\.json|/sample\.json)")
# an interrupted run has no header.json yet, only the journal's
_HEADERS = ("header.json", "_journal/start.json")


class Score(msgspec.Struct):
    """One score of a sample."""

    value: object = None
    answer: object = None
    explanation: object = None
    reason: object = None
    metadata: object = None
    history: object = None


class Message(msgspec.Struct):
    """One message; its text is not read."""

    role: object = None
    tool_calls: list[object] | None = None


class Choice(msgspec.Struct):
    """One answer of the model."""

    message: object = None
    stop_reason: object = None
    logprobs: object = None


class Output(msgspec.Struct):
    """The last call of the model."""

    model: object = None
    choices: list[Choice] | None = None
    completion: object = None
    usage: object = None


class Sample(msgspec.Struct):
    """One sample; other keys, above all its events, are skipped while decoding."""

    id: str | int
    epoch: int = 1
    uuid: object = None
    input: object = None
    choices: list[object] | None = None
    target: object = None
    messages: list[Message] | None = None
    output: Output | None = None
    scores: dict[str, Score] | None = None
    score: Score | None = None
    metadata: JsonObject | None = None
    model_usage: object = None
    total_time: object = None
    error: object = None
    error_retries: list[object] | None = None
    limit: object = None
    turn_count: int | None = None
    invalidation: object = None


class NamedSample(msgspec.Struct):
    """A sample by its name alone."""

    uuid: object = None


class LoggedEvent(msgspec.Struct):
    """One event; calls of the model and of tools only say which message they made."""

    event: object = None
    type: object = None
    output: object = None
    message_id: object = None
    action: object = None
    cmd: object = None
    file: object = None
    result: object = None
    approver: object = None
    decision: object = None
    explanation: object = None
    score_name: object = None
    edit: object = None


class ToldSample(msgspec.Struct):
    """A sample for its transcript: texts, and the attachments that they refer to."""

    messages: list[object] | None = None
    events: list[LoggedEvent] | None = None
    scores: dict[str, Score] | None = None
    error: object = None
    error_retries: list[object] | None = None
    limit: object = None
    attachments: dict[str, str] | None = None


# attachments are most of a log's size and rarely referred to: they are decoded in a second pass,
# and only when a text is a reference to one
class _Attached(msgspec.Struct):
    attachments: dict[str, str] | None = None


class Eval(msgspec.Struct):
    """The description of the run."""

    task: str
    model: str
    eval_id: object = None
    run_id: object = None
    task_id: object = None
    dataset: object = None
    config: object = None
    packages: object = None
    scorers: list[object] | None = None
    model_roles: object = None
    task_args: object = None
    model_args: object = None
    model_generate_config: object = None
    solver: object = None


class Header(msgspec.Struct):
    """A log without its samples."""

    eval: Eval
    status: str = "started"
    error: object = None


Told = TypeVar("Told", Sample, ToldSample, NamedSample)


class _Whole(Header, Generic[Told]):
    samples: list[Told] | None = None


class _WholeAttached(msgspec.Struct):
    samples: list[_Attached] | None = None


class _Set(msgspec.Struct):
    """The list of the tasks of an eval set."""

    tasks: list[JsonObject] = []


Attachments = Callable[[], Mapping[str, str]]


def open_log(path: Path, kind: type[Told]) -> tuple[Header, Iterator[tuple[Told, Attachments]]]:
    """Read the header of a log, and its samples, each with a function that gives attachments.

    Parameters
    ----------
    path : path
    kind : type
        `Sample`, or `ToldSample` for messages and events.

    Raises
    ------
    InputError
        If the file is not a log of Inspect, or damaged.
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

    None if all tasks have a log.
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
