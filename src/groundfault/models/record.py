"""Records: every call of a model, stored before its reply is used."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from groundfault.base.database import Database, DatabaseTable
from groundfault.base.files import write_text
from groundfault.errors import InputError, LedgerError, first_line
from groundfault.models.question import Question, Response, whole_text
from groundfault.readers.safely import head, json_lines

# hashes in one query: SQLite's limit of parameters was 999 for long
_MAX_HASHES = 500
_TABLE = DatabaseTable(
    "groundfault_calls",
    ("time", "target", "question", "asked", "response"),
    index="question",
    numbers_itself=True,
)


@dataclass(frozen=True)
class Call:
    """One attempt to get an answer.

    Attributes
    ----------
    target : str
        The name of the target.
    question : Question
    response : Response
    time : str
        Time of the reply: UTC, ISO 8601.
    """

    target: str
    question: Question
    response: Response
    time: str

    def to_dict(self) -> dict[str, Any]:
        """Return the call as plain JSON values."""
        head = {"time": self.time, "target": self.target, "hash": self.question.hash}
        return {**head, **self.question.to_dict(), "response": self.response.to_dict()}


class Record:
    """Calls in an SQLite file or in PostgreSQL, which are added and never changed.

    Parameters
    ----------
    path_or_url : path or str
        A file, made at the first use; or a URL ``postgresql+psycopg://...``. A ledger may be in the
        same place.

    Notes
    -----
    A call is looked up by the target and the hash of messages, settings and repeat. A process
    killed while it records leaves a call whole or absent. Keys and headers are not recorded.
    """

    def __init__(self, path_or_url: str | Path) -> None:
        self._database = Database(path_or_url, "record")

    @property
    def place(self) -> str:
        """Return the place: an absolute path, or a URL without its password."""
        return self._database.place

    def add(self, calls: Sequence[Call]) -> None:
        """Store calls, all or not at all.

        Raises
        ------
        InputError
            If the place cannot be written to.
        """
        rows = [
            {
                "time": call.time,
                "target": call.target,
                "question": call.question.hash,
                "asked": json.dumps(call.question.to_dict()),
                "response": json.dumps(call.response.to_dict()),
            }
            for call in calls
        ]
        with self._database.transaction(_TABLE) as connection:
            for row in rows:
                connection.insert(_TABLE, row)

    def answers(self, target: str, hashes: Sequence[str]) -> dict[str, Response]:
        """Return the first answer or refusal of a target to each question with these hashes.

        Errors are not answers: a question that has only errors is asked again.

        Raises
        ------
        InputError
            If the place cannot be written to; this is checked before any call is paid for.
        LedgerError
            If a call cannot be read.
        """
        responses: dict[str, Response] = {}
        with self._database.transaction(_TABLE) as connection:
            for start in range(0, len(hashes), _MAX_HASHES):
                some = hashes[start : start + _MAX_HASHES]
                asked = f"question IN ({', '.join('?' * len(some))}) AND target = ?"
                query = f"SELECT * FROM {_TABLE.name} WHERE {asked} ORDER BY seq"
                for row in connection.execute(query, [*some, target]):
                    response = self._call(row).response
                    if not response.error:
                        responses.setdefault(row.question, response)
        return responses

    def calls(self) -> Iterator[Call]:
        """Return every call, including failed ones, oldest first.

        Raises
        ------
        InputError
            If there is no record at this place.
        LedgerError
            If a call cannot be read.
        """
        with self._database.reading(_TABLE) as connection:
            for row in connection.execute(f"SELECT * FROM {_TABLE.name} ORDER BY seq"):
                yield self._call(row)

    def to_jsonl(self, path: str | Path) -> None:
        """Write every call as a line of JSON: a source for ``replay:``."""
        write_text(Path(path), "".join(json.dumps(call.to_dict()) + "\n" for call in self.calls()))

    def _call(self, row: Any) -> Call:
        try:
            question = Question.from_dict(json.loads(row.asked))
            response = Response.from_dict(json.loads(row.response))
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise LedgerError(
                f"the record {self.place} was altered: call {row.seq} cannot be read"
            ) from None
        # an edited prompt in the database would replay the answer to another question
        if question.hash != row.question:
            raise LedgerError(
                f"the record {self.place} was altered: call {row.seq} has another question"
            )
        return Call(row.target, question, response, row.time)


_PROMPTS = ("prompt", "messages", "input")
_TEXTS = ("response", "text", "answer", "output", "completion")


class Replay:
    """Returns recorded answers and calls no model.

    Parameters
    ----------
    source : str
        A record (an SQLite file, or a PostgreSQL URL), or a file with a JSON object a line, either
        from `Record.to_jsonl` or with ``prompt`` (or ``messages``) and ``response``.
    target : str, optional
        The target whose answers to return, if the record holds answers of several.

    Raises
    ------
    InputError
        If the file cannot be read or is empty, or the target must be named.

    Notes
    -----
    A record answers the same messages with the same settings and the same repeat. Lines without
    ``settings`` answer under any settings; the second line with the same prompt is repeat 1, and so
    on.
    """

    def __init__(self, source: str, *, target: str | None = None) -> None:
        self._exact: dict[str, Response] = {}
        self._loose: dict[str, Response] = {}
        self._settings: dict[str, dict[str, object]] = {}  # under which a prompt was recorded
        whose = set()
        is_database = "://" in source or head(Path(source), 16) == b"SQLite format 3\0"
        for call, loose in _read_record(source) if is_database else _read_jsonl(Path(source)):
            if target in (None, call.target):
                whose.add(call.target)
                self._keep(call, loose)
        if not whose:
            raise InputError(f"{source} holds no answers" + (f" of {target}" if target else ""))
        if len(whose) > 1:
            raise InputError(
                f"{source} holds answers of {', '.join(sorted(whose))}; say whose (target=)"
            )
        # part of the name, and so of every question's key in a record: answers of another file are
        # not mistaken for these
        both = (self._exact.items(), self._loose.items())
        contents = [sorted((key, r.text or "") for key, r in answers) for answers in both]
        digest = hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:12]
        self.name = f"replay:{Path(source).name}#{digest}"

    async def answer(self, question: Question) -> Response:
        """Return the recorded answer; an error if no answer is recorded."""
        plain = _plain(question)
        response = self._exact.get(question.hash) or self._loose.get(plain)
        if response is not None:
            return response
        if plain in self._settings:
            return Response.failed(
                f"this prompt was recorded with the settings {json.dumps(self._settings[plain])}"
            )
        return Response.failed("there is no recorded answer to this prompt")

    def _keep(self, call: Call, loose: bool) -> None:
        """Keep a call: the first answer counts; an error counts only without an answer."""
        plain = _plain(call.question)
        answers, key = (self._loose, plain) if loose else (self._exact, call.question.hash)
        self._settings.setdefault(plain, call.question.settings)
        if key not in answers or (answers[key].error and not call.response.error):
            answers[key] = replace(call.response, again=False, after=None, fatal=False)


def _plain(question: Question) -> str:
    return Question(question.messages, repeat=question.repeat).hash


def _read_record(source: str) -> Iterator[tuple[Call, bool]]:
    return ((call, False) for call in Record(source).calls())


def _read_jsonl(path: Path) -> Iterator[tuple[Call, bool]]:
    """Read calls of a file, and whether their settings are unknown."""
    times: Counter[str] = Counter()
    for number, data in enumerate(json_lines(path, dict[str, Any]), start=1):
        try:
            question = _question(data, times)
            call = Call(str(data.get("target", "")), question, _response(data), "")
            yield call, "settings" not in data
        except (AttributeError, TypeError, ValueError) as error:  # ours among them
            where = f"{path}, call {number}"
            raise InputError(f"{where} is no recorded call: {first_line(error)}") from None


def _question(data: Mapping[str, Any], times: Counter[str]) -> Question:
    if "settings" in data:
        return Question.from_dict(data)
    prompt = next((data[key] for key in _PROMPTS if key in data), None)
    if prompt is None:
        raise InputError('no prompt; write lines such as {"prompt": "2 + 2?", "response": "4"}')
    question = Question(prompt)
    times[question.hash] += 1
    return replace(question, repeat=data.get("repeat", times[question.hash] - 1))


def _response(data: Mapping[str, object]) -> Response:
    content = next((data[key] for key in _TEXTS if key in data), None)
    if isinstance(content, Mapping):
        return Response.from_dict(content)
    if not isinstance(content, str):
        raise InputError('no response; write its text, as in {"prompt": ..., "response": ...}')
    return Response(whole_text(content), finish=str(data.get("finish", "")), recorded=True)
