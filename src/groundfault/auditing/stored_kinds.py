"""Kinds of stored results and their verification: a new kind is an entry of stored_kinds.toml."""

from __future__ import annotations

from collections.abc import Iterable
from glob import escape
from pathlib import Path, PurePath

import msgspec

from groundfault.auditing.evidence_again import Places
from groundfault.auditing.gating import STORED_ONLY, GateInputs, gate
from groundfault.auditing.report import hash_file, report_path
from groundfault.auditing.verification_checks import (
    CheckStatus,
    Verification,
    VerificationCheck,
    check_anchor,
    differences_of,
    judge_differences,
)
from groundfault.base.anchors import AnchorFiles
from groundfault.base.ledger import Ledger
from groundfault.base.long_work import version
from groundfault.base.reading import is_inside, read_beside, read_json_object, readable
from groundfault.errors import InputError, LedgerError, first_line


class StoredKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of stored result; `stored_kinds.toml` describes its fields."""

    file: str
    verify: str
    files: tuple[str, ...]
    takes: tuple[str, ...] = ()
    key: str = ""


KINDS = msgspec.toml.decode(
    read_beside(__file__, "stored_kinds.toml"), type=dict[str, tuple[StoredKind, ...]]
)["kind"]
_SQLITE = b"SQLite format 3"
"""First bytes of its files."""


def find_kind(place: Path) -> StoredKind:
    """Return the kind of a stored result; without a mark, a report or a certificate."""
    usual = "report.json" if place.is_dir() else "certificate.json"
    if place.is_dir():
        kinds = [kind for kind in KINDS if (place / kind.file).exists()]
    elif _begins_with(place, _SQLITE):
        kinds, usual = [], "ledger.db"
    else:
        content = read_json_object(place)
        kinds = [kind for kind in KINDS if kind.key in content]
    return (kinds or [kind for kind in KINDS if kind.file == usual])[0]


def _begins_with(place: Path, sign: bytes) -> bool:
    with readable(place), place.open("rb") as stream:
        return stream.read(len(sign)) == sign


def verify_record(place: Path, *, anchor: AnchorFiles | None = None) -> Verification:
    """Check the chain of a ledger, of reviews or of codes; see `groundfault.verify`."""
    book = Ledger(place / "ledger.db" if place.is_dir() else place)
    try:
        book.check()
    except LedgerError as error:
        return Verification((VerificationCheck("ledger", "failed", str(error)),))
    what = f"its {len(book.events())} events follow from each other"
    chain = VerificationCheck("ledger", "passed", what)
    return Verification((chain, *([check_anchor(anchor, book, None)] if anchor else ())))


def check_contents(folder: Path, kind: StoredKind) -> VerificationCheck:
    """Name foreign files in a folder, hidden files and links included."""
    record = read_json_object(folder / kind.file) if kind.file.endswith(".json") else {}
    stated = record.get("ledger") if "ledger" in kind.takes else None
    ledger = PurePath(str(stated.get("path"))).name if isinstance(stated, dict) else ""
    # the ledger that came with a report may lie beside it, and has the name of a database
    ends = ("", "-wal", "-shm", "-journal") if ledger.endswith(".db") else ()
    beside = [escape(ledger) + end for end in ends]
    # so may its table: no browser runs these formats
    manifest = record.get("manifest") if "evidence" in kind.takes else None
    for source in manifest.get("sources", ()) if isinstance(manifest, dict) else ():
        name = PurePath(str(source)).name
        beside += [escape(name)] * name.endswith((".csv", ".tsv", ".jsonl", ".parquet", ".arrow"))
    strange = list_unlisted(folder, (kind.file, *kind.files, *beside))
    if not strange:
        return VerificationCheck("contents", "passed", "the folder holds nothing else")
    detail = "the folder holds files that are not part of the result; move them away"
    return VerificationCheck("contents", "failed", detail, tuple(f"{n}: added" for n in strange))


def list_unlisted(folder: Path, patterns: Iterable[str]) -> list[str]:
    """List files, and folders as a whole, that no pattern covers."""
    known = {place for each in patterns for place in folder.glob(each) if place.is_file()}
    known |= {above for place in known for above in place.parents}
    strange = {
        place
        for place in folder.rglob("*")
        # files behind a link to a folder are not listed below
        if place not in known or (place.is_symlink() and place.is_dir())
    }
    top = (place for place in strange if place.parent not in strange)
    return sorted(str(place.relative_to(folder)) for place in top)


def verify_gate(place: Path, *, evidence: Places | None = None) -> Verification:
    """Repeat the test in a gate's JSON on the reports that it names.

    Parameters
    ----------
    place : Path
    evidence : path or sequence of path, optional
        The table of the report, as for `gate`.
    """

    def judge(status: CheckStatus, detail: str) -> Verification:
        return Verification((VerificationCheck("recomputation", status, detail),))

    file = place / "gate.json" if place.is_dir() else place
    stated, home = read_json_object(file), file.parent
    if "asked" not in stated:
        return judge("unchecked", "it does not name its reports, as those of earlier versions")
    try:
        rule, asked = str(stated["fail_on"]), msgspec.convert(stated["asked"], GateInputs)
    except (KeyError, msgspec.ValidationError) as error:
        raise InputError(f"{file} is no result of a gate: {first_line(error)}") from None
    for file, digest in ((report_path(name), digest) for name, digest in asked.files):
        if not is_inside(file, (Path.cwd(), home, home.parent)) or not file.is_file():
            return judge("unchecked", f"{file} is not below this folder; verify where it was asked")
        if hash_file(file) != digest:
            return judge("failed", f"{file} is not the report that the gate was asked of")
    report, baseline = (*(name for name, _ in asked.files), None)[:2]
    least, level = asked.must_detect, asked.level
    again = gate(
        report or {}, rule, baseline=baseline, evidence=evidence, must_detect=least, level=level
    )
    # another version words its notes and sentences in its own way
    other = asked.groundfault_version != version("groundfault")
    # trends follow from a history file, to which later builds are added
    texts = ("asked", "trends", *(("notes", "missed") if other else ()))
    before, after = (
        {key: value for key, value in each.items() if key not in texts}
        for each in (stated, msgspec.json.decode(msgspec.json.encode(again)))
    )
    every = differences_of(before, after)
    differences = [one for one in every if not (other and "].sentence: " in one.partition("'")[0])]
    if differences and any(note.startswith(STORED_ONLY) for note in again.notes):
        return judge("unchecked", "it takes the table of the report; name it with --evidence")
    what = "every match and the verdict follow from the reports that it names"
    what += "; trends over builds were not checked" * ("trends" in stated)
    return Verification((judge_differences(differences, what),))
