"""Label Studio: annotated tasks, exported as JSON, JSON-MIN or CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.server_exports import keys, parse_cell, plain, rows, verdict
from groundfault.readers.values import drop_empty, listing, mapping, number, text

_WORDS = {
    "model": ("model",),
    "task": ("task",),
    "prompt": ("prompt", "question", "input"),
    "response": ("response", "output", "answer"),
    "target": ("target", "expected"),
}
_OURS = ("example_id", *(name for names in _WORDS.values() for name in names))
_MIN = {"id", "annotator", "annotation_id", "lead_time", "created_at", "updated_at"}


class LabelStudio:
    """Reads annotations: one observation a task, annotation and control, which is the scorer.

    The choices correct, right, pass, incorrect, wrong and fail are values; others are ``missing``
    and stand in the column ``label``. Ratings and numbers are read as they are. A skipped task, and
    one without annotations, is ``missing``. Several annotations of a task are its epochs, and
    ``judge`` names the annotator. ``example_id``, ``model``, ``prompt`` and the like are read from
    the task's data where it has them.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it has tasks with annotations, or the columns of JSON-MIN and CSV."""
        names = keys(path)
        return {"annotations", "data", "was_cancelled"} <= names or names >= _MIN

    def read(self, path: Path) -> Log:
        """One observation a decision."""
        notes: list[str] = []
        return Log(_observations(path, notes), "label_studio", notes)


def _observations(path: Path, notes: list[str]) -> Iterator[Observation]:
    labels: set[str] = set()
    epochs: dict[str, int] = {}
    for position, row in enumerate(rows(path), 1):
        # JSON-MIN and CSV have a row an annotation, the task's data and controls side by side
        short = "annotations" not in row
        data = (
            {name: value for name, value in row.items() if name not in _MIN}
            if short
            else mapping(row.get("data"))
        )
        annotations = [row] if short else [mapping(each) for each in listing(row["annotations"])]
        name = str(data.get("example_id", row.get("id")))
        for annotation in annotations or [{}]:
            epoch = epochs[name] = epochs.get(name, 0) + 1
            decisions = _short(data) if short else list(_decisions(annotation))
            for scorer, decision in decisions or [("", None)]:
                observation = _observation(name, data, annotation, scorer, decision)
                observation.epoch, observation.measured = (
                    epoch,
                    {"position": position, **observation.measured},
                )
                if observation.status == Status.MISSING and "label" in observation.measured:
                    labels.add(f"{scorer}={observation.measured['label']}")
                yield observation
    if labels:
        notes.append(f"labels that are no verdict are missing: {', '.join(sorted(labels)[:5])}")


def _decisions(annotation: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Control and decision of each result that is about the whole answer."""
    # results of other kinds mark a part of a text or image
    if annotation.get("was_cancelled"):
        return
    for each in listing(annotation.get("result")):
        value = mapping(mapping(each).get("value"))
        kind = next((kind for kind in ("choices", "rating", "number") if kind in value), None)
        if kind:
            decision = value[kind]
            single = decision[0] if isinstance(decision, list) and len(decision) == 1 else decision
            yield text(mapping(each).get("from_name")) or "", single


def _short(data: dict[str, Any]) -> list[tuple[str, Any]]:
    """Controls of a row of JSON-MIN or CSV, whose columns do not tell them from the task's data.

    A column counts as a control where it holds a verdict or a rating.
    """
    values = {name: parse_cell(value) for name, value in data.items() if name not in _OURS}
    ratings = [(name, mapping(value).get("rating", value)) for name, value in values.items()]
    return [
        (name, value)
        for name, value in ratings
        if verdict(value) is not None or "rating" in mapping(values[name])
    ]


def _observation(
    name: str, data: dict[str, Any], annotation: dict[str, Any], scorer: str, decision: Any
) -> Observation:
    value = number(decision)
    if value is None:
        value = verdict(decision)
    fields = {
        ours: plain(next((data[n] for n in names if n in data), None))
        for ours, names in _WORDS.items()
    }
    who = annotation.get("completed_by", annotation.get("annotator"))
    measurements = {
        "judge": text(
            mapping(who).get("email")
            or mapping(who).get("id")
            or (None if isinstance(who, dict) else who)
        ),
        "seconds": number(annotation.get("lead_time")),
        "label": None if number(decision) is not None else text(decision),
        "skipped": True if annotation.get("was_cancelled") else None,
    }
    return Observation(
        name,
        value,
        Status.MISSING if value is None else Status.SCORED,
        scorer=scorer,
        model=fields["model"] or "",
        task=fields["task"] or "",
        prompt=fields["prompt"],
        response=fields["response"],
        target=fields["target"],
        attributes={
            key: content for key, content in data.items() if key not in _OURS and key != scorer
        },
        measured=drop_empty(measurements),
    )
