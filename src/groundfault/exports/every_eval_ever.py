"""Every Eval Ever: the evidence as instance records, each with the slices it is on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from groundfault.core.column_meaning import TRANSCRIPT
from groundfault.exports.slices import ReportSlices
from groundfault.readers.every_eval_ever import write as write_records
from groundfault.readers.log import COLUMNS, OURS

# bookkeeping of an import, and what is written under another name
_LEFT_OUT = ("log", "question_hash", TRANSCRIPT)


@dataclass(frozen=True)
class EveryEvalEverRecords:
    """Write one record an observation, with the names of its slices as metadata."""

    name: str = "eee"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the records as JSONL, each with its slices in the metadata ``groundfault``."""
        measured = slices.evidence.roles.instrument
        return f"{write_records(observations(slices), out, measured=measured):,} records"


def observations(slices: ReportSlices) -> pl.DataFrame:
    """Return the evidence in the vocabulary of logs, `readers.log.COLUMNS`, others, and slices."""
    evidence, roles = slices.evidence, slices.evidence.roles
    frame, height = evidence.frame, len(evidence)
    source = Path(evidence.provenance[0]).stem if evidence.provenance else "evidence"
    values = {name: frame[name] for name in COLUMNS if name in frame.columns}
    # records hold scores, of which more is better
    values |= {"value": 1 - evidence.loss, "status": evidence.status}
    own = {"example_id": roles.id or "", "model": roles.model, "group": roles.group}
    values |= {name: frame[column] for name, column in own.items() if column is not None}
    if roles.repeat and roles.repeat != "epoch":
        values["epoch"] = frame[roles.repeat].rank("dense")
    if evidence.reading is None:
        words = {"task": source, "scorer": roles.outcome}
        values |= {name: pl.repeat(word, height, eager=True) for name, word in words.items()}
    columns = [
        values[name].cast(dtype, strict=False).alias(name)
        for name, dtype in COLUMNS.items()
        if name in values
    ]
    names = {*COLUMNS, *roles.columns, *_LEFT_OUT}
    on = [", ".join(slices.on(row)) for row in range(height)]
    return pl.DataFrame(
        [*columns, *(frame[c] for c in frame.columns if c not in names), pl.Series(OURS, on)]
    )
