"""A language model as the grader of another's replies, for answers that no rule compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Unpack

from msgspec import Struct

from groundfault import models
from groundfault.errors import InputError
from groundfault.models import Target
from groundfault.models.asking import AskOptions
from groundfault.models.question import Question
from groundfault.models.replies import ModelRequest, Prompts, ask_for, decode, fence

_PROMPTS = Prompts("groundfault_lab.probes")
_TOKENS = 400  # of a judgement: a reasoning model thinks first


class _Judgement(Struct):
    same: Literal["yes", "no"]


def make_judge(
    judge: str | Target,
    *,
    prompt: str = "prompt",
    answer: str = "answer",
    **options: Unpack[AskOptions],
) -> Callable[[str, Mapping[str, Any]], float | None]:
    """Return a function that scores a response to a case by asking another model.

    Parameters
    ----------
    judge : str or Target
    prompt, answer : str
        Columns of the case with the question and the right answer.
    **options
        For `groundfault.models.ask`.

    Notes
    -----
    The score is 1 for the same answer, 0 for another, and None if the judge cannot be read. An
    audit with it is about replies that this judge calls right.
    """
    target = models.get(judge)

    def score(response: str, case: Mapping[str, Any]) -> float | None:
        if case.get(answer) in (None, ""):
            raise InputError(f"a case has no right answer in the column {answer!r}; fill it in")
        parts = fence([str(case.get(prompt, "")), str(case[answer]), response])
        text = _PROMPTS.fill("judge", mark=parts["mark"], tasks=parts["tasks"])
        request = ModelRequest(Question(text, temperature=0, max_tokens=_TOKENS), _read)
        (reply,) = ask_for(target, [request], **options)
        if reply.status == "error":
            raise InputError(f"the judge {target.name} did not answer: {reply.reason}")
        return reply.value

    return score


def _read(text: str) -> float:
    return float(decode(text, _Judgement).same == "yes")
