"""ZeroEval: result files, which hold answers and targets but no verdicts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file
from groundfault.readers.values import text

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ANSWER = re.compile(r'"?answer"?\s*:\s*(?:"([^"]*)"|([^,\s}]+))')
_NUMERIC = ("gsm", "math-l5", "numersense-v2")
_EXACT = ("crux",)
_KNOWN = {
    "session_id",
    "chat_history",
    "model_input",
    "output",
    "generator",
    "configs",
    "dataset",
    "id",
    "question",
}


class ZeroEval:
    """Reads answers and grades them by ZeroEval's rule: its result files hold no verdicts.

    The answer is read from the JSON object in the output; without one the status is ``unparsed``.
    In ``crux`` it has to equal the target except for quotes; in ``gsm``, ``math-l5`` and
    ``numersense-v2`` the first number has to be the same. Other data sets are not graded here:
    their answers are ``missing``, with a note. Deviation: fractions are not computed.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it is a list of objects with a session, a chat history and a model input."""
        start = head(path)
        first = start.lstrip()[:400]
        is_chat = first.startswith(b"[") and b'"session_id"' in first and b'"chat_history"' in start
        return path.suffix == ".json" and is_chat and b'"model_input"' in start

    def read(self, path: Path) -> Log:
        """One observation an answer."""
        rows = json_file(path, list[dict[str, Any]])
        graded = {str(row.get("dataset")) for row in rows} <= {*_NUMERIC, *_EXACT}
        note = "graded here by ZeroEval's rule: its result files hold no verdicts"
        other = (
            "not graded: ZeroEval's result files hold no verdicts, and its rule for this data set "
            "is not known here"
        )
        return Log(list(_observations(rows)), "zero_eval", [note if graded else other])


def _observations(rows: list[dict[str, Any]]) -> Iterator[Observation]:
    for position, row in enumerate(rows, 1):
        outputs = row.get("output")
        chat = row.get("chat_history")
        question = text(row.get("question")) or (
            text(chat[0]) if isinstance(chat, list) and chat else None
        )
        for epoch, output in enumerate(outputs if isinstance(outputs, list) else [outputs], 1):
            response = text(output)
            answer = _answer(response) if response is not None else None
            target = text(row.get("answer"))
            value, status = _grade(str(row.get("dataset")), answer, target)
            yield Observation(
                str(row.get("id", row.get("session_id"))),
                value,
                Status.MISSING if response is None else status,
                scorer="accuracy",
                model=text(row.get("generator")) or "",
                task=text(row.get("dataset")) or "",
                epoch=epoch,
                prompt=question,
                response=response,
                answer=answer,
                target=target,
                attributes={key: content for key, content in row.items() if key not in _KNOWN},
                measured={"position": position, "parsed": answer is not None},
            )


def _answer(output: str) -> str | None:
    """The answer in the JSON object of the output, else in text that resembles one."""
    # models break lines inside strings, which JSON forbids
    start, end = output.find("{"), output.rfind("}")
    try:
        data = json.loads(output[start : end + 1].replace("\n", ""))
    except (ValueError, RecursionError):
        match = _ANSWER.search(output)
        return (match[1] if match[1] is not None else match[2]) if match else None
    return str(data["answer"]) if isinstance(data, dict) and "answer" in data else None


def _grade(dataset: str, answer: str | None, target: str | None) -> tuple[float | None, Status]:
    if target is None or dataset not in (*_NUMERIC, *_EXACT):
        return None, Status.MISSING
    if answer is None:
        return None, Status.UNPARSED
    if dataset in _EXACT:
        return float(_bare(answer) == _bare(target)), Status.SCORED
    grade, right = (
        _NUMBER.search(words.replace("$", "").replace(",", "")) for words in (answer, target)
    )
    return float(
        grade is not None and right is not None and float(grade[0]) == float(right[0])
    ), Status.SCORED


def _bare(words: str) -> str:
    """Without outer quotes, and with line breaks as in a Python literal."""
    return words.strip("'\"").replace("\n", "\\n")
