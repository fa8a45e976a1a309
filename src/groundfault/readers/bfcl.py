"""Berkeley Function-Calling Leaderboard: score files, which hold the failures only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.official import OfficialFigure
from groundfault.readers.safely import head, json_lines
from groundfault.readers.values import drop_empty, listing, mapping, number, text, texts_by

_NAME = re.compile(r"(?P<version>BFCL_v\d+)_(?P<category>.+)_score")
_FIRST = re.compile(rb'\s*\{\s*"accuracy"\s*:[^{}]*"correct_count"\s*:[^{}]*"total_count"\s*:')
# the tool counts these as wrong; there was no function call to compare with the right one
_NO_CALL = ("ast_decoder:decoder_failed", "ast_decoder:decoder_wrong_output_format")


class Bfcl:
    """Reads ``BFCL_v*_<category>_score.json``, and passes from the result file of the same run.

    The result file is looked for beside the score file, and under ``result/`` where that is under
    ``score/``. Without it the passes have no names and the denominator is unknown; a note says so.
    An answer that is no call at all is ``unparsed``; an error in calling the model is ``error``.
    """

    def sniff(self, path: Path) -> bool:
        """Whether the first line gives accuracy and counts."""
        return path.suffix in (".json", ".jsonl") and bool(
            _FIRST.match(head(path).partition(b"\n")[0])
        )

    def read(self, path: Path) -> Log:
        """One observation an entry."""
        result_file = _find_results(path)
        notes: list[str] = []
        observations = _observations(path, result_file, notes)
        beside = [result_file] if result_file else []
        return Log(observations, "bfcl", notes, beside=beside, official=_read_figure(path))


def _observations(path: Path, result_file: Path | None, notes: list[str]) -> Iterator[Observation]:
    name_match = _NAME.fullmatch(path.stem)
    category = name_match["category"] if name_match else path.stem
    model = _name_model(path)
    lines = json_lines(path, dict[str, Any])
    header = next(lines, None)
    if header is None or "total_count" not in header:
        raise InputError(
            f"{path}: the first line does not give accuracy and counts, as score files of BFCL do"
        )
    # the score file lists failures only: passes are the entries of the result file that it lacks
    results = _read_results(result_file)
    failures = {_id(row, results): row for row in lines}
    if not results:
        notes.append(
            f"only failures are in this file, {len(failures):,} of {header['total_count']} "
            "entries: the denominator is unknown without the result file"
        )
    names = [*results, *(name for name in failures if name not in results)]
    for position, name in enumerate(names, 1):
        observation = _observation(name, failures.get(name), results.get(name, {}), position)
        observation.model, observation.task = model, category
        observation.attributes = {"category": category}
        yield observation


def _name_model(path: Path) -> str:
    name = next(
        (p.name for p in path.resolve().parents if p.parent.name == "score"),
        path.resolve().parent.name,
    )
    # folders are named org_model, since a name with a slash would be two folders
    return name.replace("_", "/", 1)


def _read_figure(path: Path) -> OfficialFigure | None:
    """What the first line counts."""
    header = next(json_lines(path, dict[str, Any]), {})
    counts = [number(header.get(name)) for name in ("correct_count", "total_count")]
    if counts[0] is None or counts[1] is None:
        return None
    return OfficialFigure("BFCL", _name_model(path), int(counts[0]), int(counts[1]))


def _observation(
    name: str, failure: dict[str, Any] | None, result: dict[str, Any], position: int
) -> Observation:
    """An entry, from its row in the score file, which only failures have, and its result."""
    status, value = _outcome(failure, result)
    row = failure or {}
    prompt = mapping(row.get("prompt")).get("question", row.get("prompt"))
    user_turns = [words for turn in [prompt, *listing(prompt)] for words in texts_by(turn, "user")]
    answer = result.get("result", row.get("model_result_raw", row.get("model_result")))
    error_type = row.get("error_type") or mapping(row.get("error")).get("error_type")
    measurements = {
        "position": position,
        "error_type": text(error_type),
        "seconds": result.get("latency"),
        "output_tokens": result.get("output_token_count"),
    }
    return Observation(
        name,
        value,
        status,
        scorer="valid",
        prompt=user_turns[-1] if user_turns else None,
        response=text(answer),
        target=text(row.get("possible_answer")),
        measured=drop_empty(measurements),
    )


def _outcome(row: dict[str, Any] | None, result: dict[str, Any]) -> tuple[Status, float | None]:
    kind = str(row.get("error_type") or mapping(row.get("error")).get("error_type")) if row else ""
    # a failed request is written as the answer's text, and scored as a wrong call
    if kind.endswith(":inference_error") or str(result.get("result")).startswith(
        "Error during inference"
    ):
        return Status.ERROR, None
    if kind in _NO_CALL:
        return Status.UNPARSED, None
    return Status.SCORED, 0.0 if row else 1.0


def _find_results(path: Path) -> Path | None:
    """The file of all answers of the run, where it is in its place."""
    name = path.name.replace("_score.", "_result.")
    parts = path.resolve().parts
    score = max((i for i, part in enumerate(parts[:-1]) if part == "score"), default=None)
    beside = [path.parent / name] if name != path.name else []
    if score is not None and beside:
        beside.append(Path(*parts[:score], "result", *parts[score + 1 : -1], name))
    return next((place for place in beside if place.is_file()), None)


def _read_results(result_file: Path | None) -> dict[str, dict[str, Any]]:
    """The answers of the run, by id."""
    if result_file is None:
        return {}
    return {
        str(row.get("id", position)): row
        for position, row in enumerate(json_lines(result_file, dict[str, Any]), 1)
    }


def _id(row: dict[str, Any], results: dict[str, dict[str, Any]]) -> str:
    """The entry's own id; categories of (ir)relevance give the number of the row, from 1."""
    own = mapping(row.get("prompt")).get("id")
    if isinstance(own, str):
        return own
    id_value = row.get("id")
    if isinstance(id_value, int) and str(id_value) not in results and 1 <= id_value <= len(results):
        return list(results)[id_value - 1]
    return str(id_value)
