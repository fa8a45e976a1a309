"""The three questions of a review, as a reviewer reads them, and the key of each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from groundfault.review.item import Item

_WORDS = {"y": "yes", "n": "no", "u": "unsure"}

GUIDANCE = (
    "Prompt: valid if its entities, relations, operations and constraints are the task's, and "
    "the expected answer is right for it. "
    "If it is not, nothing is an error of the model, whatever it answered.",
    "Extraction: valid if the extracted answer is the one on which the response ends, or if none "
    "was extracted from a response that ends on none.",
    "Model: wrong if its final answer is not equivalent to the expected one.",
)
"""What makes an answer right, a sentence or two for each question."""


@dataclass(frozen=True)
class ReviewQuestion:
    """One question about an item.

    Attributes
    ----------
    name : str
        The field of a `Decision` that holds the answer.
    text : str
    words : mapping of str to str
        The answer that each key gives.
    unread : str
        The text where no answer was read; empty where that changes nothing.
    """

    name: str
    text: str
    words: Mapping[str, str]
    unread: str = ""

    def word(self, item: Item) -> str:
        """The question as it is asked about an item."""
        return self.unread if self.unread and item.extracted is None else self.text


QUESTIONS = {
    question.name: question
    for question in (
        ReviewQuestion(
            "prompt_valid",
            "Does the prompt still ask the task, so that the expected answer is right?",
            _WORDS,
        ),
        ReviewQuestion(
            "extraction_valid",
            "Is what was read the response's final answer?",
            _WORDS,
            "Nothing was read. Is that right: does the response give no final answer?",
        ),
        ReviewQuestion(
            "artefact",
            "Why not: did the extraction misread it, or is the form of the answer to blame?",
            {"e": "extraction", "f": "format"},
        ),
        ReviewQuestion(
            "model_wrong",
            "Is the response's final answer wrong?",
            _WORDS,
            "Is that wrong? To give no answer is, where there is one.",
        ),
    )
}
"""All questions by their names, in the order in which they are asked."""


def find_next(question: str, answer: str) -> str | None:
    """The question that follows an answer; None where what is left is moot.

    Examples
    --------
    >>> find_next("prompt_valid", "yes"), find_next("prompt_valid", "no")
    ('extraction_valid', None)
    """
    if question == "prompt_valid":
        return None if answer == "no" else "extraction_valid"
    if question == "extraction_valid":
        return "artefact" if answer == "no" else "model_wrong"
    return None


def find_open(answers: Mapping[str, str]) -> str | None:
    """The first question that is neither answered nor moot."""
    question: str | None = "prompt_valid"
    while question is not None and question in answers:
        question = find_next(question, answers[question])
    return question
