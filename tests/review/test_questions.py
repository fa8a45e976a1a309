"""The questions of a review: every way through them makes a decision, and no part of one does."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from groundfault.errors import InputError
from groundfault.review import Decision
from groundfault.review.decision import QUESTIONS, find_next, find_open


def list_ways(question: str | None = "prompt_valid") -> Iterator[dict[str, str]]:
    """All complete answers from a question on."""
    if question is None:
        yield {}
        return
    for answer in QUESTIONS[question].words.values():
        for rest in list_ways(find_next(question, answer)):
            yield {question: answer, **rest}


def test_every_way_through_the_questions_is_a_decision_and_no_part_of_it_is() -> None:
    ways = list(list_ways())
    # after a no to the prompt nothing is asked; else two words lead on, and one to a cause
    assert len(ways) == 1 + 2 * (2 * 3 + 2)
    for way in ways:
        Decision(reviewer="ana", item="i", **way)
        assert find_open(way) is None
        parts = [dict(list(way.items())[:size]) for size in range(1, len(way) + 1)]
        for part, whole in pairwise(parts):
            assert find_open(part) == list(whole)[-1]
            with pytest.raises(InputError, match="is missing"):
                Decision(reviewer="ana", item="i", **part)


def test_a_question_is_worded_for_what_was_read() -> None:
    some, none = "5", None
    assert QUESTIONS["extraction_valid"].word(some).startswith("Is what was read")
    assert QUESTIONS["extraction_valid"].word(none).startswith("Nothing was read")
    assert QUESTIONS["prompt_valid"].word(some) == QUESTIONS["prompt_valid"].word(none)
