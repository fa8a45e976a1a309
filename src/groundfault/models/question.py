"""Questions to a language model, and its responses."""

from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import msgspec

from groundfault.errors import InputError, PlanError
from groundfault.models.secrets import MIN_IN_ANSWERS, hide, hide_in_json, spell

Prompt = str | Sequence[Mapping[str, str]]


def _is_whole(value: object, low: float = -math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "temperature": ("at least 0", lambda v: 0 <= v < math.inf),
    "top_p": ("in (0, 1]", lambda v: 0 < v <= 1),
    "max_tokens": ("a whole number of at least 1", lambda v: _is_whole(v, 1)),
    "seed": ("a whole number", _is_whole),
    "logprobs": ("a whole number of at least 0", lambda v: _is_whole(v, 0)),
    "repeat": ("a whole number of at least 0", lambda v: _is_whole(v, 0)),
}
_ROLES = ("system", "developer", "user", "assistant")


@dataclass(frozen=True)
class Question:
    """A prompt and its settings; the model's server decides settings of None.

    Attributes
    ----------
    messages : tuple of dict
        ``role`` (system, developer, user, assistant) and ``content`` of each message. A string is
        one user's message.
    temperature : float, optional
        At least 0; 0 is greedy.
    top_p : float, optional
        In (0, 1].
    max_tokens : int, optional
        Largest number of tokens of the answer, at least 1.
    seed : int, optional
        Passed on; few servers promise the same answer for it.
    stop : tuple of str
        The answer ends before the first of these.
    logprobs : int, optional
        Log-probabilities of the answer's tokens, and of this many alternatives to each.
    extra : mapping
        Other options of the server, such as ``{"reasoning_effort": "low"}``.
    repeat : int
        0, 1, 2, ...: the same question under another number is another question, asked anew.

    Raises
    ------
    InputError
        If the prompt is neither a string nor a list of messages, or holds half of a surrogate pair.
    PlanError
        If a setting is out of range.

    Examples
    --------
    >>> Question("2 + 2?", temperature=0).messages
    ({'role': 'user', 'content': '2 + 2?'},)
    """

    messages: Any
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", _messages(self.messages))
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        object.__setattr__(self, "stop", stop)
        for name in ("temperature", "top_p"):  # 0 and 0.0 are one setting, with one hash
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else _number(name, value))
        for name, (words, fits) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise PlanError(f"{name} is {value!r}; it must be {words}")
        try:
            json.dumps(self.to_dict(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise PlanError(f"the settings of a question must be JSON: {error}") from None

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that differ from their defaults, without messages and repeat."""
        names = [f.name for f in fields(self) if f.name not in ("messages", "repeat")]
        values = {name: getattr(self, name) for name in names}
        return {
            name: _plain(value) for name, value in values.items() if value not in (None, (), {})
        }

    @cached_property
    def hash(self) -> str:
        """Return SHA-256 of messages, settings and repeat: the key of the question in a record."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def list_options(self, **names: str) -> dict[str, Any]:
        """Return the options of a chat completion that are set; ``setting="name"`` renames one."""
        options = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "stop": list(self.stop) or None,
            "logprobs": None if self.logprobs is None else True,
            "top_logprobs": self.logprobs or None,
            "extra_body": dict(self.extra) or None,
        }
        return {names.get(key, key): v for key, v in options.items() if v is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain JSON values."""
        messages = [dict(message) for message in self.messages]
        return {"messages": messages, "settings": self.settings, "repeat": self.repeat}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Question:
        """Return the question that `to_dict` stored."""
        return cls(data["messages"], repeat=data.get("repeat", 0), **data.get("settings", {}))


@dataclass(frozen=True)
class Response:
    """An answer, a refusal, or an error, which is a failure of the service and not the model.

    Attributes
    ----------
    text : str or None
        The answer, or the words of a refusal; None after an error.
    finish : str
        Reason that the answer ended: stop, length (the limit of tokens was hit), content_filter, or
        the server's own word.
    refused : bool
        The model, or a filter before or behind it, declined to answer.
    error : str
        The error message; empty for an answer.
    model : str
        The server's name for the model.
    asked : str
        The model that was asked, if the server answered as another one; else empty.
    usage : mapping of str to int
        Tokens: ``input`` and ``output``; empty if the server does not say.
    logprobs : tuple of dict
        ``token``, ``logprob`` and ``top_logprobs`` of each token of the answer; empty unless asked
        for.
    raw : str
        The unchanged reply, for the record.
    seconds : float
        How long the reply took.
    attempt : int
        1, 2, 3, ...
    again : bool
        The error may be temporary, so that another attempt makes sense.
    fatal : bool
        The server will answer no question until you act: a wrong key, an unknown model.
    after : float or None
        Seconds that the service asks to wait.
    recorded : bool
        The response was read from a record, free of charge.
    """

    text: str | None
    finish: str = ""
    refused: bool = False
    error: str = ""
    model: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    logprobs: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    raw: str = field(default="", repr=False)
    seconds: float = 0.0
    attempt: int = 1
    again: bool = False
    fatal: bool = False
    after: float | None = None
    recorded: bool = False
    asked: str = ""

    @classmethod
    def failed(
        cls,
        error: str,
        *,
        raw: str = "",
        finish: str = "",
        again: bool = False,
        fatal: bool = False,
        after: float | None = None,
    ) -> Response:
        """Make a response without an answer, because of a failure outside the model."""
        why = " ".join(error.split())[:500]
        return cls(None, finish, error=why, raw=raw, again=again, fatal=fatal, after=after)

    def without(self, secrets: Iterable[str]) -> Response:
        """Return the response without these secrets, which servers repeat.

        See `spell` for the forms.

        An answer is evidence, so only secrets of at least eight characters are cut from it.
        """
        shortest = 1 if self.error else MIN_IN_ANSWERS
        forms = [form for form in spell(secrets) if len(form) >= shortest]
        error, model, finish = (hide(x, forms) for x in (self.error, self.model, self.finish))
        text = None if self.text is None else hide(self.text, forms)
        # a secret's tokens spell it, here and in the raw reply
        spelled = text != self.text and bool(self.logprobs)
        raw, logprobs = ("", ()) if spelled else (hide_in_json(self.raw, forms), self.logprobs)
        hidden = replace(self, text=text, error=error, model=model, finish=finish)
        return replace(hidden, logprobs=logprobs, raw=raw)

    @property
    def status(self) -> Literal["answered", "refused", "error"]:
        """Return answered, refused or error: only an answer can be scored."""
        return "error" if self.error else "refused" if self.refused else "answered"

    def to_dict(self) -> dict[str, Any]:
        """Return the response as plain JSON values, without fields at their defaults."""
        plain = asdict(Response(None))
        data = {k: v for k, v in asdict(self).items() if v != plain[k] and k != "recorded"}
        return {"text": self.text, **data}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Response:
        """Return the response that `to_dict` stored, marked as recorded."""
        if not isinstance(data.get("text"), str | None):
            raise InputError("the text of a response is text, or null after an error")
        # unknown keys are ignored: a newer version may have written the record
        return replace(msgspec.convert(data, cls), recorded=True)


def whole_text(text: str) -> str:
    """Return text that UTF-8 can hold.

    Halves of surrogate pairs, which JSON can spell, are replaced.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _messages(prompt: object) -> tuple[dict[str, str], ...]:
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if not isinstance(messages, Sequence) or not messages:
        raise InputError(
            f"a prompt is a string or a list of messages, not {type(prompt).__name__} "
            f"{prompt!r:.60}"
        )
    copies = []
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, Mapping) or set(message) != {"role", "content"}:
            raise InputError(f"message {number} of a prompt must have role and content only")
        role, content = message["role"], message["content"]
        if role not in _ROLES or not isinstance(content, str):
            raise InputError(
                f"message {number} of a prompt: the role is one of {', '.join(_ROLES)}, the "
                "content text"
            )
        if not content.isascii() and content != whole_text(content):
            raise InputError(
                f"message {number} of a prompt holds half of a surrogate pair, which no server can "
                "read"
            )
        copies.append({"role": role, "content": content})
    return tuple(copies)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise PlanError(f"{name} is {value!r:.60}; give a number") from None


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


# endings that servers add to a name: a date, a version's number, "latest"; "-8b" and ".1" name
# other models
_VERSION = re.compile(r"[-:@](latest|\d{3,4}|\d{6,8}|\d{4}-\d\d-\d\d|v\d+)")


def is_same_model(asked: str, answered: str) -> bool:
    """Return whether a server's name of a model is the asked name, or a version of that model.

    Capitals, folders and the provider in front are ignored.

    Examples
    --------
    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06")
    True
    >>> is_same_model("gpt-4o", "gpt-4o-mini")
    False
    """
    first, second = (name.casefold().rpartition("/")[2] for name in (asked, answered))
    rest = second.removeprefix(first)
    return first == second or (rest != second and _VERSION.fullmatch(rest) is not None)


def note_other(response: Response, asked: str) -> Response:
    """Return the response, with the model that was asked if another one answered."""
    if not response.model or is_same_model(asked, response.model):
        return response
    return replace(response, asked=asked)


def list_others(responses: Iterable[Response]) -> list[tuple[str, str]]:
    """Return pairs of a model that was asked and the one that answered, each once, in order."""
    return sorted({(one.asked, one.model) for one in responses if one.asked})


def warn_of_others(responses: Iterable[Response]) -> None:
    """Warn once of each model that answered in the place of another."""
    for asked, answered in list_others(responses):
        warnings.warn(
            f"{asked[:200]!r} was asked, and the server answered as {answered[:200]!r}: the "
            "results are of that model, if the server is right",
            stacklevel=3,
        )
