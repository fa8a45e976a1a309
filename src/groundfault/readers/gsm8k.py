"""Model solutions of OpenAI's GSM8K repository: one question a line, one column a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_lines
from groundfault.readers.values import mapping, name_of, number, text


class Gsm8k:
    """Reads ``example_model_solutions.jsonl``; a question is named by a hash of its text."""

    def sniff(self, path: Path) -> bool:
        """Whether the first line has a question, the ground truth and graded solutions."""
        first = head(path).partition(b"\n")[0]
        return (
            first.startswith(b'{"question"')
            and b'"ground_truth"' in first
            and b'"is_correct"' in first
        )

    def read(self, path: Path) -> Log:
        """One observation a question and model."""
        return Log(_observations(path), "grade-school-math")


def _observations(path: Path) -> Iterator[Observation]:
    for position, row in enumerate(json_lines(path, dict[str, Any]), 1):
        question = row.get("question")
        if not isinstance(question, str):
            raise InputError(f"{path}, line {position} has no question")
        target = text(row.get("ground_truth"))
        for model, answer in row.items():
            # every key that is no model lacks it: question, ground_truth
            if "is_correct" not in mapping(answer):
                continue
            value = number(mapping(answer)["is_correct"])
            yield Observation(
                name_of(question),
                value,
                Status.MISSING if value is None else Status.SCORED,
                scorer="is_correct",
                model=model,
                task="GSM8K",
                prompt=question,
                response=text(mapping(answer).get("solution")),
                # the ground truth is a worked solution that ends in "A: <number>"
                target=target.rpartition("\nA: ")[2] if target else None,
                measured={"position": position},
            )
