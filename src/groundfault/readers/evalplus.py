"""EvalPlus, EvalPerf and BigCodeBench: results of tests run on generated programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file
from groundfault.readers.values import drop_empty, mapping, number, text

_TASK = re.compile(rb'"eval"\s*:\s*\{\s*("[\w-]+/\d+"\s*:\s*[\[{]|\})')
_NAME = re.compile(
    r"(?P<model>.+?)(--main--bigcodebench.*|(_\w+)?_temp_[\d.]+.*|[._-]?(evalperf_results|eval_results)(\.brief)?)"
)


class _Results(msgspec.Struct):
    eval: dict[str, Any]
    date: Any = None


class EvalPlus:
    """Reads results of ``evalplus.evaluate``, ``evalplus.evalperf``, ``bigcodebench.evaluate``.

    EvalPlus has two scorers: ``base``, and ``plus``, which like its own table requires the base
    tests as well. A time-out of the program is a failure of the program. EvalPerf's brief files
    have no outcome of a single answer: ``pass@1`` is the share of a task's answers that pass,
    ``dps`` and ``dps_norm`` are its scores of speed, both over 100; a task with too few right
    answers to be timed is ``missing`` there.
    """

    def sniff(self, path: Path) -> bool:
        """Whether ``eval`` maps names of tasks such as HumanEval/0 to results."""
        return path.suffix == ".json" and bool(_TASK.search(head(path)))

    def read(self, path: Path) -> Log:
        """One observation an answer and kind of test."""
        results = json_file(path, _Results)
        name_match = _NAME.fullmatch(path.name.removesuffix(".json"))
        model = name_match["model"].replace("--", "/") if name_match else path.parent.resolve().name
        notes = [] if results.eval else ["no samples"]
        if any("profiled" in mapping(task) for task in results.eval.values()):
            notes.append(
                "a value is the mean over the answers to a task; outcomes of single answers are "
                "not in this file"
            )
        tool = (
            "bigcodebench"
            if any(name.startswith("BigCodeBench") for name in results.eval)
            else "evalplus"
        )
        return Log(list(_observations(path, results.eval, model)), tool, notes)


def _observations(path: Path, tasks: dict[str, Any], model: str) -> Iterator[Observation]:
    for position, (task, answers_data) in enumerate(tasks.items(), 1):
        if not isinstance(answers_data, list | dict):
            raise InputError(
                f"{path}: the results of {task!r} are {type(answers_data).__name__}, not a list of "
                "answers"
            )
        answers = answers_data if isinstance(answers_data, list) else _answers(answers_data)
        shared: dict[str, Any] = {
            "example_id": task,
            "model": model,
            "task": task.partition("/")[0],
        }
        for epoch, answer in enumerate(answers or [{}], 1):
            for scorer, value in _values(mapping(answer)).items():
                measurements = {
                    "position": position,
                    "test_status": _test_status(mapping(answer), scorer),
                }
                yield Observation(
                    **shared,
                    value=value,
                    status=Status.MISSING if value is None else Status.SCORED,
                    scorer=scorer,
                    epoch=epoch,
                    response=text(mapping(answer).get("solution")),
                    measured=drop_empty(measurements),
                )


def _answers(task_data: dict[str, Any]) -> list[Any]:
    """The answers to a task, in files of EvalPerf and of EvalPlus 0.1 too."""
    if isinstance(task_data.get("results"), list) and task_data["results"]:
        return list(task_data["results"])
    # EvalPlus 0.1: lists of [status, details], one list for each kind of test
    if isinstance(base := task_data.get("base"), list):
        plus = task_data["plus"] if isinstance(task_data.get("plus"), list) else []
        first = [
            [each[0] if isinstance(each, list) and each else None for each in kind]
            for kind in (base, plus)
        ]
        # plus may be empty or shorter, as where only the base tests were run
        plus_statuses = first[1] + [None] * (len(first[0]) - len(first[1]))
        return [
            {"base_status": b, "plus_status": p}
            for b, p in zip(first[0], plus_statuses, strict=False)
        ]
    return [task_data]


def _values(answer: dict[str, Any]) -> dict[str, float | None]:
    if "base_status" in answer:
        base = _as_value(answer["base_status"])
        if (plus := _as_value(answer.get("plus_status"))) is None:
            return {"base": base}
        # as in EvalPlus' table: an answer passes plus only if it passes base
        return {"base": base, "plus": None if base is None else base * plus}
    if "status" in answer:
        return {"pass": _as_value(answer["status"])}
    if "pass" in answer:
        return {"pass": number(answer["pass"])}
    percent = {
        name: number(answer.get(name)) for name in ("pass@1", "dps", "dps_norm") if name in answer
    }
    return {name: None if n is None else n / 100 for name, n in percent.items()} or {"pass": None}


def _as_value(status: Any) -> float | None:
    return float(status == "pass") if isinstance(status, str) else None


def _test_status(answer: dict[str, Any], scorer: str) -> str | None:
    """The status of the tests: pass, fail or timeout."""
    return text(answer.get(f"{scorer}_status", answer.get("status")))
