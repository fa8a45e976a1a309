"""The result of verifying: a list of checks, each with its name, its status and a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from groundfault.auditing.report import SUMS, WRITTEN, Report, hash_file
from groundfault.auditing.report_schema import RecordedOpening, ReportData
from groundfault.base.anchors import AnchorFiles, name_key, read_anchor, read_time_stamp
from groundfault.base.holdout_events import Opening, select_looks
from groundfault.base.ledger import Ledger
from groundfault.base.long_work import version
from groundfault.base.reading import read_bytes
from groundfault.errors import InputError, LedgerError, PlanError

_MAX_DIFFERENCES = 100  # more would not help, and a report may hold any number
_TOLERANCE = 1e-9
"""Relative tolerance, above differences in the last digits between platforms."""
_ROUNDING = 1e-10
"""Absolute tolerance for rates that cancel or are roots; not used for p-values."""

CheckStatus = Literal["passed", "failed", "unchecked", "waived"]
VerificationVerdict = Literal["reproduces", "does NOT reproduce", "cannot be verified"]


@dataclass(frozen=True)
class VerificationCheck:
    """One check of a stored result.

    Attributes
    ----------
    name : str
        The subject of the check, in a word, such as ``ledger``.
    status : {"passed", "failed", "unchecked", "waived"}
        ``unchecked`` if its inputs are missing; ``waived`` if the caller turned it off.
    detail : str
        The result, in a sentence.
    differences : tuple of str
        Differences, each as "where: stated, recomputed".
    """

    name: str
    status: CheckStatus
    detail: str
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """The trust in a stored result, and the checks behind it.

    Attributes
    ----------
    checks : tuple of VerificationCheck
        In the order in which they were made.
    """

    checks: tuple[VerificationCheck, ...]

    @property
    def verdict(self) -> VerificationVerdict:
        """Return the verdict: a failed check contradicts the result, an unchecked one leaves it
        open."""
        statuses = {check.status for check in self.checks}
        if "failed" in statuses:
            return "does NOT reproduce"
        return "cannot be verified" if "unchecked" in statuses else "reproduces"

    @property
    def reproduces(self) -> bool:
        """Return whether every check passed, apart from waived ones."""
        return self.verdict == "reproduces"

    @property
    def differences(self) -> tuple[str, ...]:
        """Return the differences over all checks."""
        return tuple(line for check in self.checks for line in check.differences)

    @property
    def ledger(self) -> str:
        """Return the sentence of the ledger's check; empty without one."""
        return next((check.detail for check in self.checks if check.name == "ledger"), "")


def judge_differences(differences: Sequence[str], what: str) -> VerificationCheck:
    """Return the check of a recomputation.

    Parameters
    ----------
    differences : sequence of str
        Each as "where: stated, recomputed"; the first hundred are kept.
    what : str
        The sentence for an empty list.
    """
    if not differences:
        return VerificationCheck("recomputation", "passed", what)
    count = f"{len(differences)} value{' differs' if len(differences) == 1 else 's differ'}"
    return VerificationCheck(
        "recomputation",
        "failed",
        f"{count} from the recomputed one{'s' * (len(differences) != 1)}",
        tuple(differences[:_MAX_DIFFERENCES]),
    )


def differences_of(a: object, b: object, where: str = "") -> Iterator[str]:
    """Yield where two pieces of JSON differ, and how; numbers beyond rounding in the last
    digits."""
    if isinstance(a, dict) and isinstance(b, dict):
        # hashes first: that the evidence is another one explains all the rest
        for key in sorted(set(a) | set(b), key=lambda key: (key != "hashes", key)):
            yield from differences_of(a.get(key), b.get(key), f"{where}.{key}" if where else key)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences_of(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and isinstance(b, float | int):
        name = where.rpartition(".")[2]
        floor = 0.0 if name == "p" or name.startswith("p_") else _ROUNDING
        # NaN is close to nothing
        if not math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=floor):
            yield f"{where}: {a!r}, {b!r}"
    elif a != b:
        yield f"{where}: {a!r:.120}, {b!r:.120}"


def check_anchor(files: AnchorFiles, book: Ledger | None, head: str | None) -> VerificationCheck:
    """Compare a ledger with its anchor.

    Parameters
    ----------
    files : AnchorFiles
    book : Ledger or None
        None if no ledger may be opened.
    head : str or None
        Hash of the event that the verified result states as recorded.

    Raises
    ------
    InputError, MissingExtraError
        If a file, or a program that checks it, is missing or has another format.
    PlanError
        If there is a time stamp, but no trusted authority for it.
    """
    state = partial(VerificationCheck, "anchor")
    if files.time_stamp and not files.authority:
        raise PlanError("a time stamp is checked against its authority's certificates: --authority")
    try:
        anchor = read_anchor(files)
        time = f"on {anchor.time:%Y-%m-%d %H:%M} UTC by the signer's clock"
        if files.time_stamp and files.authority:
            stamp = read_time_stamp(files.time_stamp, files.authority, files.read())
            time += f", and not after {stamp:%Y-%m-%d %H:%M} UTC by the time stamp"
    except LedgerError as error:
        return state("failed", str(error))
    what = f"event {anchor.events} of the ledger was signed with {name_key(files.signer)} {time}"
    if book is None:
        return state("unchecked", f"{what}; to check it, name the ledger: --ledger FILE")
    try:
        events = book.events()
        book.check()
    except (LedgerError, InputError) as error:
        return state("failed", f"{what}; now {error}")
    hashes = [event.hash for event in events]
    if hashes[anchor.events - 1 : anchor.events] != [anchor.head]:
        return state(
            "failed",
            f"{what}; {book.place} lacks it: events were erased, the ledger was written anew, or "
            "it is another one",
        )
    result = f"{what}; {book.place} has it, and no earlier event has changed since"
    if head in hashes[anchor.events :]:
        result += (
            f". This result was recorded later, as event {hashes.index(head) + 1}, which the "
            "signature does not cover"
        )
    return state("passed", result)


# fields that openings of 0.1 do not record
_LATER = ("holdout", "all_outcomes", "all_before", "looks")


def check_opening(data: ReportData, book: Ledger | None, absent: CheckStatus) -> VerificationCheck:
    """Compare the opening that a report states with the ledger's events.

    Parameters
    ----------
    data : ReportData
    book : Ledger or None
        The ledger to ask; None without one.
    absent : {"unchecked", "waived"}
        The status without a ledger, or if the report has no record.
    """
    state = partial(VerificationCheck, "ledger")
    if data.ledger is None:
        looks = _say_looks(data, book) or "; to skip this check, add --no-ledger"
        return state(absent, f"the audit recorded no look{looks}")
    if book is None:
        return state(
            absent,
            f"not checked: the report names the ledger {data.ledger.path}, which may be anybody's; "
            "if it is yours, add --ledger and its path",
        )
    try:
        opening = book.describe_opening(data.ledger.head, msgspec.structs.asdict(data.hashes))
    except InputError as error:
        # the caller named it, so it is not waived
        return state("unchecked", f"not checked: {error}")
    except LedgerError as error:
        return state("failed", f"the ledger contradicts the report: {error}")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        # one that came with a report may be anybody's, and hold anything in an unbroken chain
        return state("failed", f"the ledger {book.place} has no looks of groundfault: {error}")
    stated = read_opening(data.ledger)
    # events of 0.1 say less; whether one is of 0.1, the ledger says and not the report
    names = [name for name in Opening.__struct_fields__ if name not in ("path", *_LATER)]
    is_later = bool(data.ledger.looks) or any(look.rule for look in opening.looks)
    for name in (*names, *(_LATER if is_later else ())):
        if getattr(stated, name) != getattr(opening, name):
            return state(
                "failed",
                f"the ledger contradicts the report: ledger.{name} is stated as "
                f"{getattr(stated, name)!r}, and recorded as {getattr(opening, name)!r}",
            )
    return state("passed", f"the ledger {book.place} is unbroken and records this look")


def read_opening(entry: RecordedOpening) -> Opening:
    """Return the opening that a report states."""
    return msgspec.convert(entry, Opening, from_attributes=True)


def _say_looks(data: ReportData, book: Ledger | None) -> str:
    """Describe a ledger's record on the outcomes of a report without a record of its own."""
    if book is None:
        return ""
    try:
        looks = select_looks(book.events(), {data.hashes.outcome})
    except (LedgerError, InputError):
        return ""
    if not looks:
        return ""
    count = f"{len(looks)} look{'s' if len(looks) > 1 else ''}"
    return f"; the ledger {book.place} records {count} at these outcomes"


_LINE = re.compile(r"([0-9a-f]{64})  ([^/\\\0]+)")
_MAX_BYTES = 1 << 16
"""Most bytes of SHA256SUMS to read: it lists a handful of files."""
_DRAWING = re.compile(r"<svg .*?</svg>", re.DOTALL)
# where a letter stands depends on the fonts of a machine
_COORDINATE = re.compile(
    r"\b(d|transform|x|y|x1|x2|y1|y2|dx|dy|cx|cy|r|width|height|viewBox|points)"
    r'="[-+0-9.,eA-Za-z() ]*"'
)


class _Result(Protocol):
    """A result with a JSON file and two pages."""

    def to_json(self) -> str: ...
    def to_markdown(self) -> str: ...
    def to_html(self) -> str: ...


def make_pages(report: Report) -> dict[str, str]:
    """Return every file of a report's folder, by name, as this version writes it."""
    library = {"library.json": report.library.to_json()}
    return library | make_result_pages("report.json", report)


def make_result_pages(name: str, result: _Result) -> dict[str, str]:
    """Return every file of a result's folder; ``name`` is the name of its JSON."""
    return {
        name: result.to_json(),
        "report.md": result.to_markdown(),
        "report.html": result.to_html(),
    }


def check_pages(
    folder: Path, pages: Mapping[str, str], *, attested: bool, source: str = "report.json"
) -> VerificationCheck:
    """Compare the files of a report with files made again from its content.

    Parameters
    ----------
    folder : Path
    pages : mapping of str to str
        As `make_pages` makes them of report.json and library.json in the folder.
    attested : bool
        Whether the ledger holds the digests of the files as they are.
    source : str
        Their source: a file, or words like "the audit and the ledger".
    """
    state, differences, moved = partial(VerificationCheck, "pages"), [], []
    for name, again in pages.items():
        path = folder / name
        text = read_bytes(path).decode("utf-8", "surrogateescape") if path.is_file() else None
        if text == again:
            continue
        if text is not None and _still(text) == _still(again):
            moved.append(name)
        else:
            differences.append(f"{name}: {_tell(text, again)}")
    if differences:
        detail = f"a page differs from its {source}"
        return state("failed", detail, tuple(differences))
    if moved and not attested:
        return state(
            "unchecked",
            f"the words of {', '.join(moved)} follow from {source}; its figures are drawn "
            "differently here, by other fonts or by an editor",
        )
    return state("passed", f"made again from {source}, every page says the same")


def check_foreign_pages(
    writer: str,
    absent: CheckStatus,
    *,
    attested: bool = False,
    check: VerificationCheck | None = None,
) -> VerificationCheck:
    """Return the check of pages that another version wrote in its own words.

    Parameters
    ----------
    writer : str
        The version that wrote them.
    absent : {"unchecked", "waived"}
        The status if the ledger does not hold their digests.
    attested : bool
        Whether the ledger holds their digests.
    check : VerificationCheck, optional
        Result of `check_pages`, used if it did not fail, or if this version wrote the pages.
    """
    state = partial(VerificationCheck, "pages")
    if check is not None and (check.status != "failed" or writer == version("groundfault")):
        return check
    if attested:
        return state("passed", "written by another version, and unchanged since, by the ledger")
    return state(absent, f"only groundfault {writer}, which wrote them, can make them again")


def _still(page: str) -> str:
    """Return a page without the coordinates of its drawings."""
    return _DRAWING.sub(lambda drawing: _COORDINATE.sub(r'\1=""', drawing[0]), page)


def _tell(stated: str | None, again: str) -> str:
    """Return the place at which two texts differ."""
    if stated is None:
        return "missing"
    pairs = zip(stated.splitlines(), again.splitlines(), strict=False)
    for number, (a, b) in enumerate(pairs, start=1):
        if a != b:
            return f"line {number}: {a.strip()!r:.120}, {b.strip()!r:.120}"
    return f"{len(stated)} characters, {len(again)}"


def find_records(book: Ledger, head: str) -> list[Mapping[str, str]]:
    """Return the digests that a ledger holds for the audit whose opening is the event ``head``."""
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
    """Return whether the files of a report are the written ones.

    Parameters
    ----------
    folder : Path
    records : list of mapping, or None
        Digests that the ledger holds for this report; None without a ledger.
    absent : {"unchecked", "waived"}
        The status if the ledger cannot show it.
    expected : bool
        Whether the version that wrote the report writes SHA256SUMS.
    """
    state, listed = partial(VerificationCheck, "files"), _read_sums(folder / SUMS)
    if listed is None and (expected or records):
        what = "is missing" if not (folder / SUMS).exists() else "is not a list of digests"
        return state("failed", f"{SUMS} {what}", (f"{SUMS}: {what}",))
    sums = listed or {}
    differences = list(_compare_files(folder, sums))
    if records:
        # written twice, as by a second rendering, is recorded twice
        nearest = min(records, key=lambda record: len(record.items() ^ sums.items()))
        differences += [
            f"{name}: {now:.12}, {then:.12} in the ledger"
            for name in sorted({*nearest, *sums})
            if (now := sums.get(name, "absent")) != (then := nearest.get(name, "absent"))
        ]
    if differences:
        return state("failed", "the folder is not as it was written", tuple(differences))
    if records:
        return state("passed", f"all {len(sums)} have the digests that the ledger recorded")
    if records is None:
        why = "without a ledger, an edit of both would go unseen"
    else:
        why = "the ledger has no digests of them, as earlier versions recorded none"
    fit = f"they fit {SUMS}; " if sums else ""
    return state(absent, fit + why)


def _compare_files(folder: Path, sums: Mapping[str, str]) -> Iterator[str]:
    for name, digest in sums.items():
        path = folder / name
        # not a pipe, which would wait for a writer
        now = hash_file(path) if path.is_file() else "absent"
        if now != digest:
            yield f"{name}: {now:.12}, {digest:.12} in {SUMS}"


def _read_sums(path: Path) -> dict[str, str] | None:
    """Read digests by name; None without a valid file of digests."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        text = stream.read(_MAX_BYTES).decode("utf-8", errors="replace")
    lines = [_LINE.fullmatch(line) for line in text.splitlines()]
    if not lines or None in lines:
        return None
    return {match[2]: match[1] for match in lines if match}
