"""Generated tasks as a task of Inspect, which runs without groundfault, and as lines of JSON."""

# ruff: noqa: E501 - the program below is written to a file as it stands, and its lines are its own

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from groundfault.base.files import write_text
from groundfault.base.folders import replace_folder
from groundfault.core.equivalence import natural_rule, normal
from groundfault.taxonomy.words.new_tasks import GeneratedTasks, NewTask

_LETTER = re.compile(r"\(?([A-Z])\)?[.:]?")
_OPTION = re.compile(r"^\(?A[).:]", re.MULTILINE)

# a constant: nothing that came from data or a model is ever written into it
_PROGRAM = r'''"""Tasks made by groundfault from a failure taxonomy. Run them with

    inspect eval tasks.py --model <provider>/<model>

tasks.jsonl beside this file holds them, candidates.jsonl what was turned down or left to be checked, and why.
"""

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState, generate, prompt_template

HERE = Path(__file__).resolve().parent
FIELDS = FieldSpec(
    input="question",
    target="target",
    id="id",
    metadata=["form", "cluster", "kind", "how", "sources", "by", "reason"],
)
PROMPT = """{prompt}

Think as long as you like. The last line of your reply must be of the form "ANSWER: $ANSWER" (without quotes), where
$ANSWER is the answer alone: a number without its unit, the letter of an option, or as few words as possible."""
SAID = re.compile(r"ANSWER[*_ ]*:(.*)", re.IGNORECASE)
NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


def same(said: str, target: str, form: str) -> bool:
    """Numbers as numbers, letters as letters, anything else as text but for case and marks around it."""
    said, target = (text.strip(" \t*_`$").rstrip(".").casefold() for text in (said, target))
    if form == "letter":
        found = re.match(r"\(?([a-z])(?![\w'])", said)
        return found is not None and found[1] == target
    if form == "number":
        found = NUMBER.findall(said)
        try:
            return len(found) == 1 and Decimal(found[0].replace(",", "")) == Decimal(target)
        except InvalidOperation:
            return False
    return " ".join(said.split()) == " ".join(target.split())


@scorer(metrics=[accuracy(), stderr()])
def last_answer():
    """Compare what the last ANSWER line says; a reply without one is marked as not readable."""

    async def score(state: TaskState, target: Target) -> Score:
        found = SAID.findall(state.output.completion)
        if not found:
            return Score(value=INCORRECT, metadata={"unscored_reason": "invalid_response_format"})
        right = same(found[-1], target.text, state.metadata["form"])
        return Score(value=CORRECT if right else INCORRECT, answer=found[-1].strip())

    return score


@task
def generated() -> Task:
    """All keyed tasks."""
    dataset = json_dataset(str(HERE / "tasks.jsonl"), FIELDS)
    return Task(dataset=dataset, solver=[prompt_template(PROMPT), generate()], scorer=last_answer())
'''


def write(generated: GeneratedTasks, directory: str | Path) -> None:
    """Write generated tasks into a directory.

    Parameters
    ----------
    generated : GeneratedTasks
    directory : path
        Gets ``tasks.jsonl`` with the keyed tasks, ``tasks.py`` that Inspect runs on them,
        ``candidates.jsonl`` with every candidate and what became of it, and ``manifest.json``.
        Without keyed tasks there is no ``tasks.py``.

    Raises
    ------
    InputError
        If the place cannot be written to.
    """
    manifest = json.dumps(generated.to_dict(), indent=1, ensure_ascii=False)
    # a program of an earlier run would have nothing to run on
    with replace_folder(directory, names=["tasks.py"]) as place:
        write_text(place / "tasks.jsonl", _lines([_sample(task) for task in generated.keyed]))
        write_text(place / "candidates.jsonl", _lines([asdict(task) for task in generated.tasks]))
        if generated.keyed:
            write_text(place / "tasks.py", _PROGRAM)
        write_text(place / "manifest.json", manifest)


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _sample(task: NewTask) -> dict[str, Any]:
    form, target = _form(task)
    return {**asdict(task), "form": form, "target": target}


def _form(task: NewTask) -> tuple[str, str]:
    """Return how an answer is scored, and the target without what a scorer trips over."""
    key = task.answer or ""
    # a lone letter is an option only where the question lists options
    letter = _LETTER.fullmatch(key.strip())
    if letter and _OPTION.search(task.question):
        return "letter", letter[1]
    if (
        natural_rule(key.replace("$", "")) in ("integer", "numeric")
        and re.search(r"\d", key)
        and "/" not in key
    ):
        return "number", normal(key.replace("$", "")).replace(",", "").rstrip("% ")
    return "text", key
