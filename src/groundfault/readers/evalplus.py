"""EvalPlus, EvalPerf and BigCodeBench: results of tests run on generated programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from groundfault.errors import InputError
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, json_file
from groundfault.readers.values import drop_empty, listing, mapping, number, settle, text

_NAME = re.compile(
    r"(?P<model>.+?)(--main--bigcodebench.*|(_\w+)?_temp_[\d.]+.*|[._-]?(evalperf_results|eval_results)(\.brief)?)"
)


class _Results(msgspec.Struct):
    eval: JsonObject
    date: object = None


class EvalPlus(JsonFormat):
    """Reads results of ``evalplus.evaluate``, ``evalplus.evalperf``, ``bigcodebench.evaluate``.

    EvalPlus has two scorers: ``base``, and ``plus``, which like its own table requires the base
    tests as well. A time-out of the program is a failure of the program. EvalPerf's brief files
    have no outcome of a single answer: ``pass@1`` is the share of a task's answers that pass,
    ``dps`` and ``dps_norm`` are its scores of speed, both over 100; a task with too few right
    answers to be timed is ``missing`` there.
    """

    tool = "evalplus"
    suffixes = (".json",)
    # names of tasks such as HumanEval/0 under "eval"
    opening = re.compile(rb'(?s:.*?)"eval"\s*:\s*\{\s*(?:"[\w-]+/\d+"\s*:\s*[\[{]|\})')

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation an answer and kind of test."""
        tasks = json_file(path, _Results).eval
        if not tasks:
            log.notes.append("no samples")
        if any("profiled" in mapping(task) for task in tasks.values()):
            log.notes.append(
                "a value is the mean over the answers to a task; outcomes of single answers are "
                "not in this file"
            )
        if any(name.startswith("BigCodeBench") for name in tasks):
            log.harness = "bigcodebench"
        name = _NAME.fullmatch(path.name.removesuffix(".json"))
        model = name["model"].replace("--", "/") if name else path.parent.resolve().name
        for position, (task, content) in enumerate(tasks.items(), 1):
            if not isinstance(content, list | dict):
                what = f"{type(content).__name__}, not a list of answers"
                raise InputError(f"{path}: the results of {task!r} are {what}")
            answers = content if isinstance(content, list) else _list_answers(content)
            for epoch, answer in enumerate(map(mapping, answers or [{}]), 1):
                for scorer, value in _list_values(answer).items():
                    status = text(answer.get(f"{scorer}_status", answer.get("status")))
                    yield Observation(
                        task,
                        *settle(value),
                        scorer=scorer,
                        model=model,
                        task=task.partition("/")[0],
                        epoch=epoch,
                        response=text(answer.get("solution")),
                        measured=drop_empty({"position": position, "test_status": status}),
                    )


def _list_answers(task: dict[str, Any]) -> list[object]:
    """Return the answers to a task, in files of EvalPerf and of EvalPlus 0.1 as well."""
    if listing(task.get("results")):
        return list(task["results"])
    if not isinstance(task.get("base"), list):
        return [task]
    # EvalPlus 0.1: lists of [status, details], one list for each kind of test; plus may be empty
    # or shorter, as where only the base tests were run
    base, plus = (
        [next(iter(listing(each)), None) for each in listing(task.get(kind))]
        for kind in ("base", "plus")
    )
    pairs = zip_longest(base, plus[: len(base)])
    return [{"base_status": b, "plus_status": p} for b, p in pairs]


def _list_values(answer: JsonObject) -> dict[str, float | None]:
    """Return the values of an answer by scorer."""
    if "base_status" in answer:
        base, plus = (_read_status(answer.get(f"{kind}_status")) for kind in ("base", "plus"))
        if plus is None:
            return {"base": base}
        # as in EvalPlus' table: an answer passes plus only if it passes base
        return {"base": base, "plus": None if base is None else base * plus}
    if "status" in answer:
        return {"pass": _read_status(answer["status"])}
    if "pass" in answer:
        return {"pass": number(answer["pass"])}
    names = ("pass@1", "dps", "dps_norm")
    percents = {name: number(answer[name]) for name in names if name in answer}
    return {name: n if n is None else n / 100 for name, n in percents.items()} or {"pass": None}


def _read_status(status: object) -> float | None:
    return float(status == "pass") if isinstance(status, str) else None
