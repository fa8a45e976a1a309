"""garak: reports of attempts to break a model, one JSON object a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, json_lines
from groundfault.readers.values import dig, listing, mapping, name_of, number, settle, text

_DETECTED = 2
"""Status of an attempt after the detectors; the report also has each attempt before them."""


class Garak(JsonFormat):
    """Reads ``*.report.jsonl``: one observation an output and detector, 1 where the attack failed.

    A detector's score says how surely an output is a hit; the value is one minus it. Outputs of one
    prompt are its epochs. A prompt is named by its probe and a hash of its text, since garak's ids
    are random in every run. A missing output is ``error``; an output that the detector could not
    score is ``missing``; attempts that were sent and never judged are ``missing``, with a note.
    """

    tool = "garak"
    opening = re.compile(rb'\{"entry_type": ?"')
    companions = ("*.hitlog.jsonl", "*.report.html")

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation an output and detector."""
        model, is_finished = "", False
        epochs: dict[str, int] = {}
        waiting: dict[str, JsonObject] = {}
        for row in json_lines(path, dict[str, Any]):
            kind = row.get("entry_type")
            if kind == "start_run setup":
                # newer versions write target_name, older ones model_name
                model = text(row.get("plugins.target_name") or row.get("plugins.model_name")) or ""
            elif kind == "init":
                log.harness = f"garak {text(row.get('garak_version')) or ''}".strip()
            elif kind == "attempt" and row.get("status") == _DETECTED:
                waiting.pop(str(row.get("uuid")), None)
                yield from _read_attempt(row, model, epochs)
            elif kind == "attempt":
                waiting[str(row.get("uuid"))] = row
            is_finished = is_finished or kind == "completion"
        # an interrupted run: leaving these out would make the model look safer than was observed
        for row in waiting.values():
            yield from _read_attempt(row, model, epochs)
        if waiting:
            log.notes.append(f"{len(waiting):,} attempts were sent and never judged")
        if not is_finished:
            log.notes.append("the run did not end: no completion in the report")


def _read_attempt(row: JsonObject, model: str, epochs: dict[str, int]) -> Iterator[Observation]:
    probe, prompt = text(row.get("probe_classname")) or "", _read_prompt(row.get("prompt"))
    name = f"{probe}:{name_of(prompt or '')}"
    outputs = listing(row.get("outputs"))
    # a probe may send the same prompt in several attempts: their outputs go on counting
    first = epochs.get(name, 0)
    for detector, scores in (mapping(row.get("detector_results")) or {"": []}).items():
        score_list = listing(scores)
        for i in range(max(len(outputs), len(score_list), 1)):
            score = number(score_list[i]) if i < len(score_list) else None
            is_lost = i < len(outputs) and outputs[i] is None
            yield Observation(
                name,
                *settle(None if score is None else 1 - score, Status.ERROR if is_lost else None),
                scorer=detector,
                model=model,
                task=probe.partition(".")[0],
                epoch=first + i + 1,
                prompt=prompt,
                response=_read_message(outputs[i]) if i < len(outputs) else None,
                attributes={"probe": probe, "goal": row.get("goal"), "intent": row.get("intent")},
                measured={"position": row.get("seq")} if isinstance(row.get("seq"), int) else {},
            )
    epochs[name] = first + max(len(outputs), 1)


def _read_message(message: object) -> str | None:
    """Return the text of an output: text in old reports, a message since."""
    return text(dig(message, "text") if isinstance(message, dict) else message)


def _read_prompt(prompt: object) -> str | None:
    """Return the last message of the user."""
    turns = listing(dig(prompt, "turns"))
    contents = [dig(turn, "content") for turn in turns if dig(turn, "role") == "user"]
    if not turns:
        return _read_message(prompt)
    return _read_message(contents[-1]) if contents else None
