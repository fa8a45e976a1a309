"""Stand-ins for language models that describe examples, and the answers written for them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundfault.models import Question, Response

HERE = Path(__file__).parents[1] / "fixtures" / "descriptions"
QUESTIONS = HERE / "questions.csv"
ANSWERS: dict[str, Any] = json.loads((HERE / "answers.json").read_text())
_HOLDS = {each["question"]: each["holds"] for each in ANSWERS["decisions"]}

Decide = Callable[[str, str], bool]


def read_arm(prompt: str) -> str:
    """Which arm a prompt is of: ``outcomes`` stands for ``shuffled`` too; empty for annotations."""
    if "It is not said on which the model failed" in prompt:
        return "blind"
    return "outcomes" if "The model failed on items" in prompt else ""


def read_items(prompt: str) -> list[str]:
    """The items that a prompt shows."""
    form = r"^<<<(\w+) task \d+>>>\n(.*?)\n<<<\1 end>>>$"
    return [item for _, item in re.findall(form, prompt, re.S | re.M)]


def decide_all(prompt: str, decide: Decide) -> str:
    """A reply to a prompt of an annotation."""
    [item] = read_items(prompt)
    statements = re.findall(r"^(\d+)\. (.*)$", prompt.split("name>>>\n")[-1], re.M)
    return json.dumps({n: "yes" if decide(item, text) else "no" for n, text in statements})


class DescribingModel:
    """A target that proposes by a function of the prompt, and decides by one of item and statement.

    Parameters
    ----------
    propose : callable
    decide : callable
    name : str
    """

    def __init__(
        self, propose: Callable[[Question], str], decide: Decide, name: str = "stand-in"
    ) -> None:
        self._propose, self._decide, self.name = propose, decide, name
        self.prompts: list[str] = []

    async def answer(self, question: Question) -> Response:
        prompt = question.messages[0]["content"]
        self.prompts.append(prompt)
        text = self._propose(question) if read_arm(prompt) else decide_all(prompt, self._decide)
        return Response(text)


def make_written_model(name: str = "written") -> DescribingModel:
    """The answers of the fixture; the first rounds with outcomes are the true ones."""
    asked = {"outcomes": 0, "blind": 0}

    def propose(question: Question) -> str:
        arm = read_arm(question.messages[0]["content"])
        asked[arm] += 1
        replies = ANSWERS["proposals"]
        if arm == "blind":
            return str(replies["blind"][asked[arm] - 1])
        return str([*replies["outcomes"], *replies["shuffled"]][asked[arm] - 1])

    return DescribingModel(propose, lambda item, text: text in _HOLDS[item], name)
