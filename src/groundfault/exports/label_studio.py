"""Label Studio: the examples on confirmed slices as tasks for people to look at."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundfault.base.files import write_text
from groundfault.exports.slices import ReportSlices, plain
from groundfault.readers.log import OURS

# what is shown of an answer; what is said of it, such as its score or judge, would tell the
# reviewer what to find
_SHOWN = ("prompt", "response", "answer", "target")


@dataclass(frozen=True)
class LabelStudioTasks:
    """Write tasks for the examples on the slices, without their scores."""

    name: str = "label-studio"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the tasks as Label Studio's JSON, whole or not at all."""
        rows = list_tasks(slices)
        write_text(out, json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False))
        return f"{len(rows):,} tasks"


def list_tasks(slices: ReportSlices) -> list[dict[str, Any]]:
    """Make a task for each observation that is on a slice.

    ``data`` has what describes the example and the answer, and says nothing of how it was scored,
    so that a reviewer is blind to it; slices, loss and status are in ``meta``.
    """
    evidence, roles = slices.evidence, slices.evidence.roles
    columns = [
        c
        for c in (*_SHOWN, *evidence.attributes)
        if c in evidence.frame.columns and c != roles.outcome
    ]
    keys = {roles.id: "example_id", roles.model: "model", roles.repeat: "epoch"}
    rows = []
    for row, values in enumerate(evidence.frame.iter_rows(named=True)):
        on = slices.on(row)
        if on:
            data = {name: str(values[column]) for column, name in keys.items() if column}
            data |= plain({c: values[c] for c in dict.fromkeys(columns) if c not in keys})
            result = {"slices": on, "loss": evidence.loss[row], "status": evidence.status[row]}
            rows.append({"data": data, "meta": {OURS: result}})
    return rows
