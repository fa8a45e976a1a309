"""Generated tasks as a task of Inspect, which runs without groundfault, and as lines of JSON."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from groundfault.base.files import replace_folder, write_text
from groundfault.base.reading import read_beside
from groundfault.core.equivalence import natural_rule, normal
from groundfault_lab.taxonomy.words.new_tasks import GeneratedTasks, NewTask

_LETTER = re.compile(r"\(?([A-Z])\)?[.:]?")
_OPTION = re.compile(r"^\(?A[).:]", re.MULTILINE)


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
            # as it stands: nothing that came from data or a model is ever written into it
            write_text(place / "tasks.py", read_beside(__file__, "tasks.py.txt"))
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
