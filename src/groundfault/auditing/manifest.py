"""The files of a report's folder: their digests, beside them and in the ledger.

SHA256SUMS is in the form that ``sha256sum --check`` reads. Alone it shows damage; an editor would
write it anew. That nobody did is what the ledger shows, which records the same digests when the
folder is written.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.verification_result import CheckStatus, VerificationCheck
from groundfault.base.files import write_text

if TYPE_CHECKING:
    from groundfault.base.ledger import Ledger

SUMS = "SHA256SUMS"
WRITTEN = "report_written"
"""Kind of the event that records the digests of a folder."""

_LINE = re.compile(r"([0-9a-f]{64})  ([^/\\\0]+)")
_MAX_BYTES = 1 << 16


def write_sums(folder: Path) -> dict[str, str]:
    """Write SHA256SUMS of all other files of a folder into it, and return their digests by name."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != SUMS]
    digests = {path.name: _digest(path) for path in files}
    write_text(folder / SUMS, "".join(f"{digests[name]}  {name}\n" for name in digests))
    return digests


def record_files(book: Ledger, head: str, digests: Mapping[str, str]) -> None:
    """Record what was written of the audit whose opening is the event ``head``."""
    book.append(WRITTEN, {"opening": head, "files": dict(digests)})


def find_records(book: Ledger, head: str) -> list[Mapping[str, str]]:
    """The digests that a ledger holds of the audit whose opening is the event ``head``."""
    bodies = [event.body for event in book.events(WRITTEN)]
    records = [b.get("files") for b in bodies if isinstance(b, dict) and b.get("opening") == head]
    # a ledger that came with a report may hold anything
    return [
        record
        for record in records
        if isinstance(record, dict) and all(isinstance(digest, str) for digest in record.values())
    ]


def check_files(
    folder: Path, records: list[Mapping[str, str]] | None, absent: CheckStatus, *, expected: bool
) -> VerificationCheck:
    """Whether the files of a report are those that were written.

    Parameters
    ----------
    folder : Path
    records : list of mapping, or None
        Digests that the ledger holds of this report; None where there is no ledger to ask.
    absent : {"unchecked", "waived"}
        The status where the ledger cannot say it.
    expected : bool
        Whether the version that wrote the report writes SHA256SUMS.
    """
    sums = _read_sums(folder / SUMS)
    if sums is None and (expected or records):
        what = "is missing" if not (folder / SUMS).exists() else "is not a list of digests"
        return VerificationCheck("files", "failed", f"{SUMS} {what}", (f"{SUMS}: {what}",))
    differences = list(_compare(folder, sums or {}))
    if records:
        # written twice, as by a second rendering, is recorded twice
        nearest = min(
            records, key=lambda record: len(set(record.items()) ^ set((sums or {}).items()))
        )
        differences += [
            f"{name}: {(sums or {}).get(name, 'absent'):.12}, {nearest.get(name, 'absent'):.12} in"
            " the ledger"
            for name in sorted({*nearest, *(sums or {})})
            if nearest.get(name) != (sums or {}).get(name)
        ]
    if differences:
        detail = "the folder is not as it was written"
        return VerificationCheck("files", "failed", detail, tuple(differences))
    if records:
        detail = f"all {len(sums or {})} are those whose digests the ledger recorded"
        return VerificationCheck("files", "passed", detail)
    if records is None:
        why = "whether they are what was written, only the ledger could say"
    else:
        why = "the ledger holds no digests of them, as earlier versions recorded none"
    fit = f"they fit {SUMS}; " if sums else ""
    return VerificationCheck("files", absent, fit + why)


def _compare(folder: Path, sums: Mapping[str, str]) -> Iterator[str]:
    for name, digest in sums.items():
        path = folder / name
        # not a pipe, which would wait for a writer
        now = _digest(path) if path.is_file() else "absent"
        if now != digest:
            yield f"{name}: {now:.12}, {digest:.12} in {SUMS}"


def _read_sums(path: Path) -> dict[str, str] | None:
    """Digests by name; None where there are none, or what is there is something else."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        text = stream.read(_MAX_BYTES).decode("utf-8", errors="replace")
    lines = [_LINE.fullmatch(line) for line in text.splitlines()]
    if not lines or None in lines:
        return None
    return {match[2]: match[1] for match in lines if match}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
