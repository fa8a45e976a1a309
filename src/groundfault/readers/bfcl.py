"""Berkeley Function-Calling Leaderboard: score files, which hold the failures only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.account import OfficialFigure
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, json_lines
from groundfault.readers.values import (
    dig,
    drop_empty,
    listing,
    mapping,
    number,
    settle,
    text,
    texts_by,
)

_NAME = re.compile(r"(?P<version>BFCL_v\d+)_(?P<category>.+)_score")
# the tool counts these as wrong; there was no function call to compare with the right one
_NO_CALL = ("ast_decoder:decoder_failed", "ast_decoder:decoder_wrong_output_format")


class Bfcl(JsonFormat):
    """Reads ``BFCL_v*_<category>_score.json``, and passes from the result file of the same run.

    The result file is looked for beside the score file, and under ``result/`` where that is under
    ``score/``. Without it the passes have no names and the denominator is unknown; a note says so.
    An answer that is no call at all is ``unparsed``; an error in calling the model is ``error``.
    """

    tool = "bfcl"
    # the score file has them of failures alone
    undated = ("prompt", "target")
    suffixes = (".json", ".jsonl")
    opening = re.compile(rb'\s*\{\s*"accuracy"\s*:[^{}]*"correct_count"\s*:[^{}]*"total_count"\s*:')
    is_lines = True

    def read(self, path: Path) -> Log:
        """Read one file, and beside it the answers of its run."""
        log, results = super().read(path), _find_results(path)
        header: JsonObject = next(json_lines(path, dict[str, Any]), {})
        counts = [number(header.get(name)) for name in ("correct_count", "total_count")]
        if counts[0] is not None and counts[1] is not None:
            log.official = OfficialFigure("BFCL", _name_model(path), int(counts[0]), int(counts[1]))
        log.beside = [results] if results else []
        return log

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation an entry."""
        name_match = _NAME.fullmatch(path.stem)
        category = name_match["category"] if name_match else path.stem
        own = {"category": category}
        lines = json_lines(path, dict[str, Any])
        header = next(lines, {})
        if "total_count" not in header:
            lack = "the first line does not give accuracy and counts, as score files of BFCL do"
            raise InputError(f"{path}: {lack}")
        # the score file lists failures only: passes are the entries of the result file it lacks
        results = {
            str(row.get("id", position)): row
            for place in log.beside
            for position, row in enumerate(json_lines(place, dict[str, Any]), 1)
        }
        failures = {_name_entry(row, results): row for row in lines}
        if not results:
            log.notes.append(
                f"only failures are in this file, {len(failures):,} of {header['total_count']} "
                "entries: the denominator is unknown without the result file"
            )
        for position, name in enumerate(dict.fromkeys([*results, *failures]), 1):
            one = _read_entry(name, failures.get(name), results.get(name, {}), position)
            one.model, one.task, one.attributes = _name_model(path), category, own
            yield one


def _name_model(path: Path) -> str:
    parents = path.resolve().parents
    name = next((p.name for p in parents if p.parent.name == "score"), parents[0].name)
    # folders are named org_model, since a name with a slash would be two folders
    return name.replace("_", "/", 1)


def _read_entry(
    name: str, failure: JsonObject | None, result: JsonObject, position: int
) -> Observation:
    """Read an entry from its row in the score file, which only failures have, and its result."""
    row = failure or {}
    prompt = mapping(row.get("prompt")).get("question", row.get("prompt"))
    user_turns = [words for turn in [prompt, *listing(prompt)] for words in texts_by(turn, "user")]
    error_type = row.get("error_type") or dig(row, "error", "error_type")
    answer = result.get("result", row.get("model_result_raw", row.get("model_result")))
    # a failed request is written as the answer's text, and scored as a wrong call
    is_error = str(result.get("result")).startswith("Error during inference")
    reason = Status.UNPARSED if error_type in _NO_CALL else None
    reason = Status.ERROR if is_error or str(error_type).endswith(":inference_error") else reason
    measurements = {
        "position": position,
        "error_type": text(error_type),
        "seconds": result.get("latency"),
        "output_tokens": result.get("output_token_count"),
    }
    return Observation(
        name,
        *settle(failure is None, reason),
        scorer="valid",
        prompt=user_turns[-1] if user_turns else None,
        response=text(answer),
        target=text(row.get("possible_answer")),
        measured=drop_empty(measurements),
    )


def _find_results(path: Path) -> Path | None:
    """Return the file of all answers of the run, where it is in its place."""
    name = path.name.replace("_score.", "_result.")
    parts = path.resolve().parts
    score = max((i for i, part in enumerate(parts[:-1]) if part == "score"), default=None)
    beside = [path.parent / name] if name != path.name else []
    if score is not None and beside:
        beside.append(Path(*parts[:score], "result", *parts[score + 1 : -1], name))
    return next((place for place in beside if place.is_file()), None)


def _name_entry(row: JsonObject, results: dict[str, JsonObject]) -> str:
    """Return the entry's own id; categories of (ir)relevance give the number of the row, from 1."""
    own, number_ = dig(row, "prompt", "id"), row.get("id")
    if isinstance(own, str):
        return own
    if isinstance(number_, int) and str(number_) not in results and 1 <= number_ <= len(results):
        return list(results)[number_ - 1]
    return str(number_)
