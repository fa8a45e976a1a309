"""Parts of a row of lm-evaluation-harness, however its version nests them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from groundfault.readers.values import text

QUESTIONS = (
    "question", "Question", "problem", "query", "prompt", "instruction", "input", "question_stem",
    "goal", "sentence", "text", "premise",
)  # fmt: skip
"""Keys of a document that hold its question, the likeliest first."""

_ARGUMENTS = ("arg_0", "arg_1")


def read_argument(arguments: Any, request: int, which: int) -> str | None:
    """An argument of a request."""
    # {"gen_args_0": {"arg_0": ...}}, and lists of lists in files before 2024
    if isinstance(arguments, dict):
        own = arguments.get(f"gen_args_{request}")
        argument = own.get(_ARGUMENTS[which]) if isinstance(own, dict) else None
    else:
        try:
            argument = arguments[request][which]
        except (TypeError, IndexError, KeyError):
            return None
    if isinstance(argument, str):
        return argument
    # of a chat model the argument is a list with the whole conversation as one text of JSON
    return read_first(argument) if isinstance(argument, list) else None


def find_question(
    doc: dict[str, Any], prompt: str | None, keys: Sequence[str] = QUESTIONS
) -> str | None:
    """The question of the document where the prompt holds it, else the whole prompt.

    The prompt has few-shot examples and a template, which may differ between models that were asked
    the same question.
    """
    whole = prompt or ""
    for key in keys:
        question = doc.get(key)
        if (
            isinstance(question, str)
            and question.strip()
            and (question in whole or json.dumps(question)[1:-1] in whole)
        ):
            return question
    return prompt


def read_first(responses: Any) -> str | None:
    """The first response of the first request, however it is nested."""
    while isinstance(responses, list):
        if not responses:
            return None
        responses = responses[0]
    return text(responses)
