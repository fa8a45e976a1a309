"""Every Eval Ever: the evidence as instance records, each with the slices it is on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from groundfault.exports.slices import ReportSlices
from groundfault.readers.every_eval_ever import write as write_records
from groundfault.readers.log import COLUMNS, OURS

# bookkeeping of an import, and what is written under another name
_LEFT_OUT = ("log", "question_hash")


@dataclass(frozen=True)
class EveryEvalEverRecords:
    """Write one record an observation, with the names of its slices as metadata."""

    name: str = "eee"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the records as JSONL."""
        return f"{write(slices, out):,} records"


def write(slices: ReportSlices, path: str | Path) -> int:
    """Write one record per observation, its slices in the metadata ``groundfault``.

    Returns
    -------
    int
        How many records.
    """
    return write_records(observations(slices), path, measured=slices.evidence.roles.instrument)


def observations(slices: ReportSlices) -> pl.DataFrame:
    """Return the evidence in the vocabulary of logs, `readers.log.COLUMNS`, others, and slices."""
    evidence, roles = slices.evidence, slices.evidence.roles
    frame, height = evidence.frame, len(evidence)
    source = Path(evidence.provenance[0]).stem if evidence.provenance else "evidence"
    values = {
        "example_id": frame[roles.id or ""],
        "task": pl.repeat(source, height, eager=True) if evidence.reading is None else None,
        "model": frame[roles.model] if roles.model else None,
        "epoch": frame[roles.repeat].rank("dense")
        if roles.repeat and roles.repeat != "epoch"
        else None,
        "scorer": pl.repeat(roles.outcome, height, eager=True)
        if evidence.reading is None
        else None,
        # records hold scores, of which more is better
        "value": 1 - evidence.loss,
        "status": evidence.status,
        "group": frame[roles.group] if roles.group else None,
    }
    columns = []
    for name, dtype in COLUMNS.items():
        series = values.get(name)
        if series is None and name in frame.columns:
            series = frame[name]
        if series is not None:
            columns.append(series.cast(dtype, strict=False).alias(name))
    names = {*COLUMNS, *roles.columns, *_LEFT_OUT}
    on = [", ".join(slices.on(row)) for row in range(height)]
    return pl.DataFrame(
        [*columns, *(frame[c] for c in frame.columns if c not in names), pl.Series(OURS, on)]
    )
