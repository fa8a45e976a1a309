"""Replay: recorded answers, from a record or from lines of JSON."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from groundfault.errors import InputError, first_line
from groundfault.models.question import Question, Response, whole_text
from groundfault.models.record import Call, Record
from groundfault.readers.safely import head, json_lines

_PROMPTS = ("prompt", "messages", "input")
_TEXTS = ("response", "text", "answer", "output", "completion")


class Replay:
    """Returns recorded answers and calls no model.

    Parameters
    ----------
    source : str
        A record (an SQLite file, or a PostgreSQL URL), or a file with a JSON object a line: either
        as `Record.to_jsonl` writes them, or with ``prompt`` (or ``messages``) and ``response``.
    target : str, optional
        Whose answers, where the record holds those of several.

    Raises
    ------
    InputError
        If the file cannot be read, holds nothing, or the answers of several targets.

    Notes
    -----
    A record answers the same messages under the same settings and the same repeat. Lines without
    ``settings`` answer whatever the settings; the second line of the same prompt is repeat 1, and
    so on.
    """

    def __init__(self, source: str, *, target: str | None = None) -> None:
        self._exact: dict[str, Response] = {}
        self._loose: dict[str, Response] = {}
        self._settings: dict[str, dict[str, Any]] = {}  # under which a prompt was recorded
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
        """Return the recorded answer; an error where there is none."""
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
        """Keep a call: the first answer counts, and an error only where there is no answer."""
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


def _response(data: Mapping[str, Any]) -> Response:
    content = next((data[key] for key in _TEXTS if key in data), None)
    if isinstance(content, Mapping):
        return Response.from_dict(content)
    if not isinstance(content, str):
        raise InputError('no response; write its text, as in {"prompt": ..., "response": ...}')
    return Response(whole_text(content), finish=str(data.get("finish", "")), recorded=True)
