"""Extraction and routing: the answer in a response, and whether a person should look at it.

A mismatch routes a response to review; it is no error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from groundfault.core import equivalence
from groundfault.errors import InputError, require_word

if TYPE_CHECKING:
    from groundfault.models import Response
    from groundfault.probes.bank.bank import Task

How = Literal["answer line", "search", "none"]
Signal = Literal["match", "mismatch", "unreadable", "unanswered"]
ROUTED: tuple[Signal, ...] = ("mismatch", "unreadable")
"""Signals that send a response to a person."""

_MAX_CHARACTERS = 1 << 20  # far above any reply of a model; keeps regular expressions bounded
_LINE = re.compile(
    r"^[\s>#*_`-]*(?:(?:the|my)\s+)?(?:final\s+)?answer[*_`\s]*(?::|=)[*_`\s]*(.*)$", re.IGNORECASE
)
_PHRASE = re.compile(
    r"\banswer\s+is\s*:?\s+(?!not\b)(.+?)(?=[.!?](?:\s|$)|$)", re.IGNORECASE | re.MULTILINE
)
_MAX_WORDS = 8  # words of a last line that is taken for an answer of its own


@dataclass(frozen=True)
class Answer:
    """The answer in a response.

    Attributes
    ----------
    text : str or None
        None where there is none that is plain.
    how : {"answer line", "search", "none"}
    reason : str
    """

    text: str | None
    how: How
    reason: str


@dataclass(frozen=True)
class Routing:
    """The way that a machine sends a response, and why: no verdict on the model.

    Attributes
    ----------
    signal : {"match", "mismatch", "unreadable", "unanswered"}
        The answer is equivalent to the key; is not; cannot be told; or there is none, because the
        model refused or the service failed.
    answer : Answer
    reason : str
    """

    signal: Signal
    answer: Answer
    reason: str

    @property
    def review(self) -> bool:
        """Tell whether a person should look at the response."""
        return self.signal in ROUTED


def extract(response: str, rule: str = "exact") -> Answer:
    """Find the answer in a response without looking at the key.

    The last line that begins with "answer:" counts, or the line below it where nothing follows the
    colon. Failing that, a conservative search: the last "the answer is ..."; then the only number
    in the response, or a line that begins with yes or no; then a last line of at most eight words.
    Anything else is left to a person.

    Parameters
    ----------
    response : str
    rule : str
        One of `groundfault.core.equivalence.RULES`.

    Notes
    -----
    The paper searches for the key's own text. We do not: an extractor that knows the key reads
    right answers and wrong ones by different rules, and finds a key that a response names and
    rejects.

    Examples
    --------
    >>> extract("10 is tempting.\\nAnswer: 5 cents").text
    '5 cents'
    >>> extract("It is 10 or 5; I cannot say which of the two they meant.", "integer").text
    """
    # a response is hostile text: regular expressions run on a bounded length
    if len(response) > _MAX_CHARACTERS:
        return Answer(None, "none", f"the response has more than {_MAX_CHARACTERS:,} characters")
    lines = [" ".join(line.split()) for line in response.splitlines() if line.strip()]
    answer = _read_answer_line(lines)
    if answer:
        return answer
    phrases = _PHRASE.findall("\n".join(lines))
    # the last one: models that reason aloud name answers that they then reject
    if phrases:
        return Answer(phrases[-1].strip(), "search", 'the last "answer is"')
    # two candidates are left to a person: picking one would hide errors or make them up
    single = _SEARCH[rule](response) if rule in _SEARCH else None
    if single is not None:
        return Answer(single, "search", "the only one in the response")
    if lines and rule in ("exact", "set") and len(lines[-1].split()) <= _MAX_WORDS:
        return Answer(lines[-1], "search", "the last line, which is short")
    return Answer(None, "none", "no answer line, and no single answer in the text")


GRADERS = (*equivalence.RULES, "choice", "regex")
"""Names of `make_grader`."""


def make_grader(rule: str, key: str = "answer") -> Callable[[str, Mapping[str, Any]], float | None]:
    """Return a function that scores a response to a case: 1 or 0, None where it cannot tell.

    Parameters
    ----------
    rule : str
        One of `GRADERS`: a rule of `groundfault.core.equivalence.RULES`, ``choice`` for a letter
        such as B, or ``regex`` for a pattern that is searched for in the response.
    key : str
        Column of the case with the right answer, or the pattern.
    """
    require_word("grader", rule, GRADERS)

    def score(response: str, case: Mapping[str, object]) -> float | None:
        if case.get(key) in (None, ""):
            raise InputError(f"a case has no right answer in the column {key!r}; fill it in")
        wanted = str(case[key])
        if rule == "regex":
            return float(re.search(wanted, response[:_MAX_CHARACTERS]) is not None)
        answer = extract(response, "exact" if rule == "choice" else rule).text
        if answer is None:
            return None
        if rule == "choice":
            letter = re.match(r"\W*([A-Za-z])\b", answer)
            return None if letter is None else float(letter[1].upper() == wanted.strip().upper())
        same = equivalence.compare(answer, wanted, rule).same
        return None if same is None else float(same)

    return score


def route(task: Task, response: str | Response, base: str | None = None) -> Routing:
    """Compare a response with a task's key, by the task's rule.

    Parameters
    ----------
    task : Task
        Without a key, the answer to the base wording takes the key's place.
    response : str or Response
        A response that is an error of the service, or a refusal, is ``unanswered``: it is no
        mismatch.
    base : str, optional
        The answer to the base wording, as `groundfault.core.equivalence.read` reads it.
        Left out of a task without a key, the response is the one to the base wording: it matches if
        it can be read.

    Raises
    ------
    InputError
        If the response is bytes, which may be text in any encoding.
    """
    if isinstance(response, bytes):
        raise InputError(f"the response to {task.id!r} is bytes; decode it first, as UTF-8")
    if not isinstance(response, str):
        if response.status != "answered" or response.text is None:
            cause = response.error or "the model refused"
            return Routing("unanswered", Answer(None, "none", cause), cause)
        response = response.text
    if not response.strip():
        return Routing("unreadable", Answer(None, "none", "an empty response"), "an empty response")
    answer = extract(response, task.rule)
    if answer.text is None:
        return Routing("unreadable", answer, answer.reason)
    key = task.answer or base or equivalence.read(answer.text, task.rule)
    if key is None:
        return Routing("unreadable", answer, f"the rule {task.rule} cannot read it")
    verdict = equivalence.compare(answer.text, key, task.rule, task.tolerance)
    signal: Signal = (
        "unreadable" if verdict.same is None else "match" if verdict.same else "mismatch"
    )
    if task.answer or verdict.same is None:
        return Routing(signal, answer, verdict.reason)
    if base is None:
        return Routing(signal, answer, "the base wording: other answers are compared with this one")
    same = "the same as" if verdict.same else "not the same as"
    return Routing(signal, answer, f"{same} {base!r}, the answer to the base wording")


def _read_answer_line(lines: list[str]) -> Answer | None:
    matches = [
        (number, match[1]) for number, line in enumerate(lines) if (match := _LINE.match(line))
    ]
    if not matches:
        return None
    number, text = matches[-1]
    below = number + 1
    if not equivalence.normal(text):
        if below == len(lines):
            return Answer(None, "none", "the answer line is empty")
        text = lines[below]
    which = "the answer line" if len(matches) == 1 else f"the last of {len(matches)} answer lines"
    return Answer(text.strip(), "answer line", which)


def _find_number(response: str) -> str | None:
    if re.search(r"%|\bnot\b|n't\b", response):  # a share, or what it is not
        return None
    candidates = equivalence.numbers(response)
    return str(candidates[0]) if len(candidates) == 1 else None


def _find_yes_no(response: str) -> str | None:
    # a line that begins with it; elsewhere "no" is mostly no answer, as in "there is no doubt"
    replies = set(re.findall(r"^\W*(yes|no)\b", response.casefold(), re.MULTILINE))
    return replies.pop() if len(replies) == 1 else None


_SEARCH: dict[str, Callable[[str], str | None]] = {
    "integer": _find_number,
    "numeric": _find_number,
    "yes_no": _find_yes_no,
}
