"""Every Eval Ever: instance-level records as JSONL, read and written."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from groundfault.base.files import write_bytes
from groundfault.core.status import UNSCORED, Status
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import COLUMNS, Log, Observation
from groundfault.readers.safely import JsonObject, json_lines
from groundfault.readers.values import (
    dig,
    drop_empty,
    last_by,
    listing,
    mapping,
    number,
    settle,
    text,
)

SCHEMA = "0.2.2"
"""The version of the instance-level schema that is written."""

_REFUSED = re.compile(r"refus|content.?filter|safety", re.IGNORECASE)
_WORDS = {"true": True, "false": False}
# stricter than int() and float(): "007", "1_000" and "nan" are names more often than numbers; 18
# digits fit into 64 bits
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
# fields that a record has its own place for, or that `write` notes so that it can be read again
_PLACED = ("input_tokens", "output_tokens", "seconds", "turns", "tool_calls")
_NOTED = ("epoch", "group", "confidence", "logprob")
_MEASURED = "measured_"


class _Record(msgspec.Struct):
    sample_id: str | int
    model_id: str
    evaluation_name: str
    evaluation: object
    evaluation_result_id: object = None
    schema_version: object = None
    interaction_type: object = None
    input: object = None
    output: object = None
    messages: object = None
    answer_attribution: object = None
    token_usage: object = None
    performance: object = None
    error: object = None
    metadata: object = None


class EveryEvalEver(JsonFormat):
    """Reads instance-level records: one observation a line.

    The scorer is the record's ``evaluation_result_id``, else the method that extracted the answer.
    A record with an error has status ``error``, or ``refused`` if the error says so, and its score
    is not used. Metadata is all text in this format: texts that spell a number or a truth value
    become one.
    """

    tool = "every_eval_ever"
    opening = re.compile(rb"\{")
    keys = ("sample_id", "evaluation_id", "model_id", "evaluation_name", "evaluation")
    # metadata may be anything that a converter found beside the answer
    undated = None

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation a record."""
        position = 0
        for position, record in enumerate(json_lines(path, _Record), 1):
            log.harness = f"every_eval_ever {text(record.schema_version) or ''}".strip()
            yield _read_record(record, position)
        if position == 0:
            log.notes.append("no samples")


def _read_record(record: _Record, position: int) -> Observation:
    evaluation = record.evaluation
    # how the final answer was taken from the output
    each = [mapping(a) for a in listing(record.answer_attribution)] or [{}]
    attribution = next((a for a in reversed(each) if a.get("is_terminal")), each[-1])
    noted = {key: _parse_value(value) for key, value in mapping(record.metadata).items()}
    score = number(dig(evaluation, "score"))
    right = dig(evaluation, "is_correct") if score is None else score
    names = ("epoch", "group", "logprob", "confidence")
    epoch, group, logprob, confidence = (noted.pop(name, None) for name in names)
    own = [key for key in noted if key.startswith(_MEASURED)]
    measurements = {key.removeprefix(_MEASURED): noted.pop(key) for key in own}
    choices = listing(dig(record.input, "choices"))
    scorer = record.evaluation_result_id or attribution.get("extraction_method") or "score"
    return Observation(
        str(record.sample_id),
        *settle(right, _read_status(record.error) if record.error else None),
        scorer=str(scorer),
        model=record.model_id,
        task=record.evaluation_name,
        epoch=epoch if type(epoch) is int and epoch > 0 else 1,
        group=None if group is None else text(dig(record.metadata, "group")),
        prompt=text(dig(record.input, "raw")),
        response=_read_response(record),
        answer=text(attribution.get("extracted_value")),
        target=text(dig(record.input, "reference")) or None,
        confidence=number(confidence),
        logprob=number(logprob),
        attributes={**noted, "choices": len(choices)} if choices else noted,
        measured={**_read_measurements(record, position), **measurements},
    )


def _read_measurements(record: _Record, position: int) -> JsonObject:
    performance = mapping(record.performance)
    latency, whole = (number(performance.get(k)) for k in ("latency_ms", "generation_time_ms"))
    milliseconds = whole if latency is None else latency
    measurements = {
        "position": position,
        "input_tokens": dig(record.token_usage, "input_tokens"),
        "output_tokens": dig(record.token_usage, "output_tokens"),
        "seconds": None if milliseconds is None else milliseconds / 1000,
        "turns": dig(record.evaluation, "num_turns"),
        "tool_calls": dig(record.evaluation, "tool_calls_count"),
        "interaction_type": record.interaction_type,
        "error": text(record.error),
    }
    return drop_empty(measurements)


def _read_status(error: object) -> str:
    """Return the status that an error stands for."""
    # `write` puts our own status in front of the message
    word = str(error).partition(":")[0]
    if word in UNSCORED:
        return word
    return Status.REFUSED if _REFUSED.search(str(error)) else Status.ERROR


def _read_response(record: _Record) -> str | None:
    output = mapping(record.output).get("raw")
    if isinstance(output, list):
        return "\n".join(map(str, output)) if output else None
    if output is not None:
        return text(output)
    return last_by(record.messages, "assistant")


def _parse_value(value: object) -> object:
    """Return the number or truth value that a text spells; other text unchanged."""
    if not isinstance(value, str):
        return value
    if _INTEGER.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else _WORDS.get(value.lower(), value)


def write(frame: pl.DataFrame, path: str | Path, *, measured: Collection[str] = ()) -> int:
    """Write observations as Every Eval Ever instance records, whole or not at all.

    Parameters
    ----------
    frame : polars.DataFrame
        Columns of `readers.log.COLUMNS`; ``example_id``, ``model``, ``value`` and ``status`` are
        required. Other columns become metadata, as text, except tokens and seconds, for which the
        format has its own fields.
    path : path
        The JSONL file, by convention with an ending ``_samples.jsonl``.
    measured : collection of str
        Columns that describe the answer or its measurement, not the example: their names in the
        metadata begin with ``measured_``.

    Returns
    -------
    int
        Number of records.

    Notes
    -----
    The format has no unscored records. An unscored row is written with its status as ``error`` and
    a score of 0, which readers must not count. `EveryEvalEver` reads its status back.
    """
    lines = [
        json.dumps(_to_record(row, measured), ensure_ascii=False, allow_nan=False)
        for row in frame.iter_rows(named=True)
    ]
    write_bytes(Path(path), "".join(f"{line}\n" for line in lines).encode())
    return len(lines)


def _to_record(row: dict[str, Any], measured: Collection[str]) -> JsonObject:
    status, value, target = str(row["status"]), row["value"], row.get("target")
    prompt, references = row.get("prompt") or "", [] if target is None else [target]
    scorer, task = row.get("scorer") or "score", row.get("task") or "evaluation"
    model = row.get("model") or ""
    keys = [key for key in row if (key not in COLUMNS or key in _NOTED) and key not in _PLACED]
    names = {key: f"{_MEASURED}{key}" if key in measured else key for key in keys}
    metadata = {names[key]: _as_text(row[key]) for key in keys if row[key] is not None}
    # 1 is the default on reading: files of runs without repeats stay as other tools write them
    if row.get("epoch") in (None, 1):
        metadata.pop("epoch", None)
    # sample_hash is of the question alone, so that files of several models can be joined by it
    question = {"raw": prompt, "reference": references}
    hashed = json.dumps(question, sort_keys=True, separators=(",", ":"))
    answer = row.get("answer")
    source = {"source": "output.raw", "extracted_value": answer, "extraction_method": scorer}
    source = {"turn_idx": 0, **source, "is_terminal": True}
    record: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": f"{task}/{model}",
        "model_id": model,
        "evaluation_name": task,
        "evaluation_result_id": scorer,
        "sample_id": row["example_id"],
        "sample_hash": hashlib.sha256(hashed.encode()).hexdigest(),
        # multi_turn records need every message, which a table of observations does not hold
        "interaction_type": "single_turn",
        "input": question,
        "output": {"raw": [] if row.get("response") is None else [row["response"]]},
        "answer_attribution": [source] if answer is not None else [],
        "evaluation": {
            "score": value if status == Status.SCORED else 0.0,
            "is_correct": value == 1.0,
        },
        **_token_usage(row),
    }
    for name, place in (("turns", "num_turns"), ("tool_calls", "tool_calls_count")):
        if row.get(name):
            record["evaluation"][place] = int(row[name])
    if status != Status.SCORED:
        record["error"] = f"{status}: {row['error']}" if row.get("error") else status
    return record | ({"metadata": metadata} if metadata else {})


def _token_usage(row: dict[str, Any]) -> JsonObject:
    """Return time and, if all of them are known, as the format requires, tokens."""
    usage: dict[str, Any] = {}
    if row.get("input_tokens") is not None and row.get("output_tokens") is not None:
        input_tokens, output_tokens = int(row["input_tokens"]), int(row["output_tokens"])
        usage["token_usage"] = {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        }
    if row.get("seconds") is not None:
        usage["performance"] = {"latency_ms": 1000 * row["seconds"]}
    return usage


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
