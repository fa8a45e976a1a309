"""The record of units in a report: what each came to, so that a later report can be held to it."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.report_schema import UnitRecord
from groundfault.auditing.results import AuditResults
from groundfault.base.arrays import Bools, Floats
from groundfault.core.candidate import add_fitted_columns
from groundfault.core.finding import Finding
from groundfault.errors import InputError
from groundfault.modes.mode import EVERY_MODEL

MAX_LOSSES = 2_000_000
"""Units times outcomes, above which a report keeps no record: it would be of 10 MB and more."""


def make_record(results: AuditResults, findings: Sequence[Finding]) -> UnitRecord | None:
    """Return the record of an audit; None for a comparison, and for more than `MAX_LOSSES`.

    Parameters
    ----------
    results : AuditResults
    findings : sequence of Finding
    """
    audit = results.audit
    if audit.compare or results.losses.size > MAX_LOSSES:
        return None
    sides = {f.key: _encode_mask(_mark_worse_side(results, f)) for f in findings if f.confirmed}
    names = audit.evidence.unit_names.cast(pl.Binary).to_list()
    digests = [hashlib.sha256(name).digest()[:8] for name in names]
    _, first = np.unique(audit.evidence.unit_index, return_index=True)
    # a mode may be a candidate that reads what a finder fitted
    columns = {column for mode in results.named.modes for column in mode.columns}
    fitted = [c for c in audit.library if c.fitted_column and c.fitted_column.name in columns]
    table = add_fitted_columns(audit.evidence.frame, fitted)[first]
    return UnitRecord(
        names=_encode(np.frombuffer(b"".join(digests), dtype="<u8")),
        losses={
            name: _encode(row.astype("<f4"))
            for name, row in zip(audit.outcomes, results.losses, strict=True)
        },
        findings=sides,
        modes=tuple(_encode_mask(mode.holds(table).to_numpy()) for mode in results.named.modes),
    )


def read_names(record: UnitRecord) -> NDArray[np.uint64]:
    """Return hashes of the units' names: uint64, shape (units,).

    Raises
    ------
    InputError
        If the record is damaged.
    """
    return np.frombuffer(_decode(record.names, 8), dtype="<u8").astype(np.uint64)


def read_losses(record: UnitRecord, outcome: str) -> Floats | None:
    """Return losses of the units for an outcome, NaN where not scored; None if there is no such.

    Of every model it is their mean.

    Raises
    ------
    InputError
        If the record is damaged.
    """
    if outcome == EVERY_MODEL and outcome not in record.losses:
        rows = [_read_row(record, text) for text in record.losses.values()]
        return np.asarray(np.mean(rows, axis=0)) if rows else None
    text = record.losses.get(outcome)
    return None if text is None else _read_row(record, text)


def read_slice(record: UnitRecord, place: str | int) -> Bools | None:
    """Return the units of a slice: bool, shape (units,); None where the record has no such.

    Parameters
    ----------
    record : UnitRecord
    place : str or int
        The key of a finding, or the place of a failure mode, from 0.

    Raises
    ------
    InputError
        If the record is damaged.
    """
    if isinstance(place, str):
        text = record.findings.get(place)
    else:
        text = record.modes[place] if place < len(record.modes) else None
    if text is None:
        return None
    size = len(read_names(record))
    content = np.frombuffer(_decode(text, 1), dtype=np.uint8)
    if len(content) != (size + 7) // 8:
        raise _damage()
    return np.unpackbits(content, count=size, bitorder="little").astype(np.bool_)


def _mark_worse_side(results: AuditResults, finding: Finding) -> Bools:
    """Return the units on the slice of a finding, or off it where failures are fewer on it."""
    place = results.audit.library.find(finding.name)
    on, defined = results.audit.marks.select(np.array([place], dtype=np.intp)).unpack()
    return np.asarray((defined & ~on if finding.is_less_frequent else on)[0])


def _read_row(record: UnitRecord, text: str) -> Floats:
    row = np.frombuffer(_decode(text, 4), dtype="<f4").astype(np.float64)
    if len(row) != len(read_names(record)) or ((row < 0) | (row > 1)).any():
        raise _damage()
    return row


def _encode(values: NDArray[np.generic]) -> str:
    return b64encode(values.tobytes()).decode("ascii")


def _encode_mask(mask: Bools) -> str:
    return _encode(np.packbits(mask, bitorder="little"))


def _decode(text: str, size: int) -> bytes:
    try:
        content = b64decode(text, validate=True)
    except ValueError:
        raise _damage() from None
    if len(content) % size:
        raise _damage()
    return content


def _damage() -> InputError:
    return InputError("the record of units in a report is damaged; write the report again")
