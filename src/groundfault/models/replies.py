"""Prompts from files, and strict reading of replies.

A reply that cannot be read is requested once more; a value is never made up.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Generic, Literal, TypeVar, Unpack

import msgspec

from groundfault.errors import first_line
from groundfault.models.asking import AskOptions, ask
from groundfault.models.question import Question, Response
from groundfault.models.target import Target

T = TypeVar("T")

Status = Literal["read", "unparsed", "refused", "error"]

_LONGEST = 100_000  # characters of a reply
_SHOWN = 1_000  # of a reply that could not be read, when the request is repeated
_EXCERPT = 4_000  # of a text from data
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL)
_BREAKING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Unreadable(ValueError):
    """A reply is not of the form requested; the message says why."""


@dataclass(frozen=True)
class ModelRequest(Generic[T]):
    """A question, and how its reply is read.

    Attributes
    ----------
    question : Question
    read : callable
        Returns the value of a reply's text, or raises `Unreadable`.
    """

    question: Question
    read: Callable[[str], T]


@dataclass(frozen=True)
class Reply(Generic[T]):
    """The result of a question.

    Attributes
    ----------
    value : object or None
        None unless the status is ``read``.
    status : {"read", "unparsed", "refused", "error"}
    reason : str
        Reason for a missing value.
    attempts : int
        1, or 2 if the first reply could not be read.
    question : str
        Hash of the last question asked, to find the call in a record.
    """

    value: T | None
    status: Status
    reason: str
    attempts: int
    question: str


def ask_for(
    target: str | Target, requests: Sequence[ModelRequest[T]], **options: Unpack[AskOptions]
) -> list[Reply[T]]:
    """Ask and read replies; if a reply cannot be read, ask once more and state the reason.

    Parameters
    ----------
    target : str or Target
    requests : sequence of ModelRequest
    **options
        For `groundfault.models.ask`.
    """
    first = _ask_round(target, requests, 1, options)
    again = [i for i, (reply, _) in enumerate(first) if reply.status == "unparsed"]
    questions = [
        ModelRequest(_once_more(requests[i].question, *first[i]), requests[i].read) for i in again
    ]
    second = dict(zip(again, _ask_round(target, questions, 2, options), strict=True))
    return [second.get(i, pair)[0] for i, pair in enumerate(first)]


def _ask_round(
    target: str | Target, requests: Sequence[ModelRequest[T]], attempt: int, options: AskOptions
) -> list[tuple[Reply[T], str]]:
    """Return replies, and their texts."""
    if not requests:
        return []
    responses = ask(target, [each.question for each in requests], **options)
    return [
        (_make_reply(each, response, attempt), response.text or "")
        for each, response in zip(requests, responses, strict=True)
    ]


def _make_reply(request: ModelRequest[T], response: Response, attempt: int) -> Reply[T]:
    name = request.question.hash
    if response.status != "answered":
        text = response.error or "the model declined, or a filter did"
        return Reply(None, response.status, tidy(text, 300), attempt, name)
    try:
        return Reply(request.read(response.text or ""), "read", "", attempt, name)
    except Unreadable as error:
        remark = "; it was cut off at the limit of tokens" if response.finish == "length" else ""
        return Reply(None, "unparsed", tidy(str(error), 300) + remark, attempt, name)


def _once_more(question: Question, reply: Reply[Any], text: str) -> Question:
    excerpt = text if len(text) <= _SHOWN else text[:_SHOWN] + " [...]"
    again = {"role": "user", "content": OWN_PROMPTS.fill("again", why=reply.reason)}
    return replace(
        question, messages=[*question.messages, {"role": "assistant", "content": excerpt}, again]
    )


def decode(text: str, kind: type[T]) -> T:
    """Return the JSON object in a reply, alone or in one fence, after any ``<think>`` block.

    Raises
    ------
    Unreadable
        If the reply is something else, or too long.
    """
    body = text.strip()
    # reasoning models put this block in front of the answer; it is not part of the reply
    if body.startswith("<think>"):
        body = body.rpartition("</think>")[2].strip()
    # before decoding, for a reply is untrusted input
    if len(body) > _LONGEST:
        raise Unreadable(f"it has {len(body):,} characters, and at most {_LONGEST:,} are read")
    fence_match = _FENCED.fullmatch(body)
    try:
        # a control character inside a text is not JSON, but no reason to drop the whole reply
        content = json.loads(fence_match[1] if fence_match else body, strict=False)
        return msgspec.json.decode(json.dumps(content), type=kind)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not the JSON asked for: {first_line(error)}") from None


def escape_unprintable(text: str) -> str:
    """Return a text in which line breaks and control characters are spelled: ``\\n``, ``\\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def check_line(text: str, max_length: int, what: str) -> str:
    """Return a text of one line with at most this many characters.

    Raises
    ------
    Unreadable
        If it is empty, too long, or not one printable line.
    """
    label = text.strip()
    if not label or len(label) > max_length:
        raise Unreadable(
            f"the {what} has {len(label):,} characters, and must have 1 to {max_length:,}"
        )
    if not label.isprintable():
        raise Unreadable(f"the {what} has a line break, or a character that does not print")
    return label


def tidy(text: str, max_length: int) -> str:
    """Return text from elsewhere, shortened and without control characters."""
    return "".join(c if c.isprintable() else " " for c in text[:max_length]) + (
        "..." if len(text) > max_length else ""
    )


def fence(texts: Sequence[str], keys: Sequence[str | None] = (), name: str = "") -> dict[str, str]:
    """Return texts from data between marks that no text contains.

    The keys are the places ``mark``, ``tasks`` and ``name`` of a prompt; see `Prompts`.

    Parameters
    ----------
    texts : sequence of str
        Texts above 4,000 characters are cut, and marked as cut.
    keys : sequence of str or None
        Answers to the texts.
    name : str
    """
    excerpts = [_BREAKING.sub("\N{REPLACEMENT CHARACTER}", _shorten(text)) for text in texts]
    # a hash of the texts themselves: no text can hold its own mark
    mark = hashlib.sha256("\0".join([*excerpts, name]).encode()).hexdigest()[:12]
    answers = [f"<<<{mark} answer>>>\n{key}\n" if key is not None else "" for key in keys] or [
        ""
    ] * len(excerpts)
    tasks = "\n".join(
        f"<<<{mark} task {i}>>>\n{text}\n{answer}<<<{mark} end>>>"
        for i, (text, answer) in enumerate(zip(excerpts, answers, strict=True), start=1)
    )
    return {"mark": mark, "tasks": tasks, "name": f"<<<{mark} name>>>\n{name}\n<<<{mark} end>>>"}


def _shorten(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "\n[the rest is left out]"


@dataclass(frozen=True)
class Prompts:
    """The text files in the folder ``prompts`` of a package, with places to be filled.

    Attributes
    ----------
    package : str
    """

    package: str

    def fill(self, prompt: str, **values: object) -> str:
        """Return a prompt with its places filled."""
        text = Template(self.read(prompt))
        return text.substitute({name: str(value) for name, value in values.items()}).strip()

    def read(self, prompt: str) -> str:
        """Return the text of a prompt, with its places open."""
        return _read_prompt(self.package, prompt)

    def hash(self, *prompts: str) -> str:
        """Return SHA-256 of prompts' texts, which identifies their wording."""
        # stored with results, for a changed prompt makes them incomparable
        return hashlib.sha256("\0".join(map(self.read, prompts)).encode()).hexdigest()


@cache
def _read_prompt(package: str, prompt: str) -> str:
    return (files(package) / "prompts" / f"{prompt}.txt").read_text(encoding="utf-8")


OWN_PROMPTS = Prompts("groundfault.models")
"""The prompt to repeat a question whose reply cannot be read."""
