"""Kinds of stored results, and who verifies each: a new kind is one entry of `KINDS`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

import msgspec

from groundfault.auditing.evidence_again import Places
from groundfault.auditing.gating import STORED_ONLY, GateInputs, gate
from groundfault.auditing.report import hash_file, report_path
from groundfault.auditing.verification_checks import (
    CheckStatus,
    Verification,
    VerificationCheck,
    differences_of,
    judge_differences,
)
from groundfault.base.machine import version
from groundfault.base.reading import is_inside, read_json_object
from groundfault.errors import InputError, first_line

_PAGES = ("report.html", "report.md")
_REPORT = ("report.json", "library.json", "SHA256SUMS", *_PAGES)
_EVIDENCE = ("evidence.json", "observations.parquet", "scores.parquet")
_DATABASES = ("", "-wal", "-shm", "-journal")
"""Ends of the files of an SQLite database."""


def _list_databases(*names: str) -> tuple[str, ...]:
    return tuple(name + end for name in names for end in _DATABASES)


_RUNS = (
    *("bank.toml", "grammar.toml", "manifest.json"),
    *("*/*/*/status.json", "*/*/*/trajectory.jsonl"),
    *_list_databases("calls.db", "ledger.db", "reviews.db", ".lock"),
)


@dataclass(frozen=True)
class StoredKind:
    """A kind of stored result.

    Attributes
    ----------
    file : str
        The file that its folder is known by.
    verify : str
        "module:function" that makes its checks. It is called with the folder, or with the file.
    files : tuple of str
        Patterns of all other files that its folder may hold.
    takes : tuple of str
        Options of `groundfault.verify` that the function takes.
    key : str
        A key of its JSON that no other kind has, where a file alone can be verified.
    """

    file: str
    verify: str
    files: tuple[str, ...]
    takes: tuple[str, ...] = ()
    key: str = ""


_SEQUENTIAL = "groundfault.sequential.verification:"
REPORT = StoredKind(
    "report.json",
    "groundfault.auditing.verification:verify_report",
    _REPORT,
    ("evidence", "ledger", "anchor", "judge", "reader"),
)
CERTIFICATE = StoredKind(
    "certificate.json",
    _SEQUENTIAL + "verify_certificate",
    _PAGES,
    ("ledger", "anchor"),
    "groundfault_certificate",
)
KINDS = (
    StoredKind(
        "case.json",
        "groundfault.case.verification:verify_case",
        (
            *("confirm.json", "probe.json", *_list_databases("ledger.db")),
            *(f"audit/{name}" for name in _REPORT),
            *(f"evidence/*/{name}" for name in _EVIDENCE),
            *(f"{place}/{name}" for place in ("confirm", "report") for name in _PAGES),
            *("confirm/confirmation.json", "report/case-report.json"),
            *("probe/bank.toml", "probe/grammar.toml", "probe/config.toml"),
            *(f"probe/runs/{name}" for name in _RUNS),
        ),
    ),
    REPORT,
    CERTIFICATE,
    StoredKind(
        "confirmation.json",
        _SEQUENTIAL + "verify_confirmation",
        _PAGES,
        ("ledger",),
        # 0.1 wrote no version
        "survivors",
    ),
    StoredKind(
        "MANIFEST.json",
        "groundfault.probes.use.release:verify_package",
        (
            *("README.md", "bank.toml", "grammar.toml", "config.json", "prompts.jsonl"),
            *("rows.jsonl", "decisions.jsonl", "tables.json", "tables.md"),
        ),
    ),
    StoredKind(
        "taxonomy.json",
        "groundfault.taxonomy.words.labelling:verify_taxonomy",
        (
            *("arrays.npz", "examples.parquet", "labels.json", *_PAGES),
            *(f"*/{name}" for name in _REPORT),
        ),
        ("evidence", "ledger"),
    ),
    StoredKind(
        "evidence.json",
        "groundfault.auditing.verification:verify_evidence",
        _EVIDENCE,
        ("evidence",),
    ),
    StoredKind(
        "gate.json", "groundfault.auditing.stored_kinds:verify_gate", (), ("evidence",), "fail_on"
    ),
)
"""In the order in which a folder is asked for their files."""


def find_kind(place: Path) -> StoredKind:
    """Return the kind of what lies at a place: without a sign, a report or a certificate."""
    if place.is_dir():
        return next((kind for kind in KINDS if (place / kind.file).exists()), REPORT)
    content = read_json_object(place)
    return next((kind for kind in KINDS if kind.key and kind.key in content), CERTIFICATE)


def check_contents(folder: Path, kind: StoredKind) -> VerificationCheck:
    """Name what is in a folder beside the files of its kind, hidden files and links included."""
    stated = read_json_object(folder / kind.file).get("ledger")
    ledger = PurePath(str(stated.get("path"))).name if isinstance(stated, dict) else ""
    # the ledger that came with a report may lie beside it, and has the name of a database
    beside = _list_databases(ledger) if "ledger" in kind.takes and ledger.endswith(".db") else ()
    strange = list_unlisted(folder, (kind.file, *kind.files, *beside))
    if not strange:
        return VerificationCheck("contents", "passed", "the folder holds nothing else")
    detail = "the folder holds what is no part of the result; move it away"
    return VerificationCheck("contents", "failed", detail, tuple(f"{n}: added" for n in strange))


def list_unlisted(folder: Path, patterns: Iterable[str]) -> list[str]:
    """List files, and folders as a whole, that no pattern covers."""
    known = {place for each in patterns for place in folder.glob(each) if place.is_file()}
    known |= {above for place in known for above in place.parents}
    strange = {
        place
        for place in folder.rglob("*")
        # what lies behind a link to a folder is not listed below
        if place not in known or (place.is_symlink() and place.is_dir())
    }
    top = (place for place in strange if place.parent not in strange)
    return sorted(str(place.relative_to(folder)) for place in top)


def verify_gate(place: Path, *, evidence: Places | None = None) -> Verification:
    """Ask the question of a gate's JSON again, of the reports that it names.

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
    # another version words its notes in its own way
    other = asked.groundfault_version != version("groundfault")
    texts = ("asked", "notes", "missed") if other else ("asked",)
    before, after = (
        {key: value for key, value in each.items() if key not in texts}
        for each in (stated, msgspec.json.decode(msgspec.json.encode(again)))
    )
    differences = list(differences_of(before, after))
    if differences and any(note.startswith(STORED_ONLY) for note in again.notes):
        return judge("unchecked", "it takes the table of the report; name it with --evidence")
    what = "every match and the verdict follow from the reports that it names"
    return Verification((judge_differences(differences, what),))
