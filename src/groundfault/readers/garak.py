"""garak: reports of attempts to break a model, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_lines
from groundfault.readers.values import listing, mapping, name_of, number, text

_DETECTED = 2
"""Status of an attempt that went through the detectors; the report has each attempt before, too."""


class Garak:
    """Reads ``*.report.jsonl``: one observation an output and detector, 1 where the attack failed.

    A detector's score says how surely an output is a hit; the value is one minus it. Outputs of one
    prompt are its epochs. A prompt is named by its probe and a hash of its text, since garak's ids
    are random in every run. An output that is not there is ``error``, one that the detector could
    not score ``missing``; attempts that were sent and never judged are ``missing``, with a note.
    """

    companions = ("*.hitlog.jsonl", "*.report.html")

    def sniff(self, path: Path) -> bool:
        """Whether the first line is an entry of a report."""
        first = head(path).partition(b"\n")[0]
        return first.startswith((b'{"entry_type": "', b'{"entry_type":"'))

    def read(self, path: Path) -> Log:
        """One observation an output and detector."""
        notes: list[str] = []
        log = Log([], "garak", notes)
        log.observations = _observations(path, log)
        return log


def _observations(path: Path, log: Log) -> Iterator[Observation]:
    model, finished = "", False
    epochs: dict[str, int] = {}
    waiting: dict[str, dict[str, Any]] = {}
    for row in json_lines(path, dict[str, Any]):
        kind = row.get("entry_type")
        if kind == "start_run setup":
            # newer versions write target_name, older ones model_name
            model = text(row.get("plugins.target_name") or row.get("plugins.model_name")) or ""
        elif kind == "init":
            log.harness = f"garak {text(row.get('garak_version')) or ''}".strip()
        elif kind == "attempt" and row.get("status") == _DETECTED:
            waiting.pop(str(row.get("uuid")), None)
            yield from _observations_of_attempt(row, model, epochs)
        elif kind == "attempt":
            waiting[str(row.get("uuid"))] = row
        finished = finished or kind == "completion"
    # an interrupted run: leaving these out would make the model look safer than was observed
    for row in waiting.values():
        yield from _observations_of_attempt(row, model, epochs)
    if waiting:
        log.notes.append(f"{len(waiting):,} attempts were sent and never judged")
    if not finished:
        log.notes.append("the run did not end: no completion in the report")


def _observations_of_attempt(
    row: dict[str, Any], model: str, epochs: dict[str, int]
) -> Iterator[Observation]:
    probe, prompt = text(row.get("probe_classname")) or "", _prompt(row.get("prompt"))
    name = f"{probe}:{name_of(prompt or '')}"
    outputs = listing(row.get("outputs"))
    results = mapping(row.get("detector_results")) or {"": []}
    # a probe may send the same prompt in several attempts: their outputs go on counting
    first = epochs.get(name, 0)
    for detector, scores in results.items():
        score_list = listing(scores)
        for i in range(max(len(outputs), len(score_list), 1)):
            score = number(score_list[i]) if i < len(score_list) else None
            output = _text(outputs[i]) if i < len(outputs) else None
            is_lost = i < len(outputs) and outputs[i] is None
            yield Observation(
                name,
                None if score is None or is_lost else 1 - score,
                Status.ERROR if is_lost else Status.MISSING if score is None else Status.SCORED,
                scorer=detector,
                model=model,
                task=probe.partition(".")[0],
                epoch=first + i + 1,
                prompt=prompt,
                response=output,
                attributes={"probe": probe, "goal": row.get("goal"), "intent": row.get("intent")},
                measured={"position": row.get("seq")} if isinstance(row.get("seq"), int) else {},
            )
    epochs[name] = first + max(len(outputs), 1)


def _text(message: Any) -> str | None:
    """An output: text in old reports, a message since."""
    return text(mapping(message).get("text")) if isinstance(message, dict) else text(message)


def _prompt(prompt: Any) -> str | None:
    """The last message of the user."""
    turns = listing(mapping(prompt).get("turns"))
    if not turns:
        return _text(prompt)
    user_turns = [
        _text(mapping(turn).get("content")) for turn in turns if mapping(turn).get("role") == "user"
    ]
    return user_turns[-1] if user_turns else None
