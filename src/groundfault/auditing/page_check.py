"""Whether the pages of a report's folder show what its report.json says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from groundfault.auditing.report import Report
from groundfault.auditing.verification_result import CheckStatus, VerificationCheck
from groundfault.base.reading import read_bytes

_FILES: dict[str, Callable[[Report], str]] = {
    "library.json": lambda report: report.library.to_json(),
    "report.json": lambda report: report.to_json(),
    "report.md": lambda report: report.to_markdown(),
    "report.html": lambda report: report.to_html(),
}
_DRAWING = re.compile(r"<svg .*?</svg>", re.DOTALL)
# where a letter stands depends on the fonts of a machine
_COORDINATE = re.compile(
    r"\b(d|transform|x|y|x1|x2|y1|y2|dx|dy|cx|cy|r|width|height|viewBox|points)"
    r'="[-+0-9.,eA-Za-z() ]*"'
)


class _Result(Protocol):
    """What has a JSON, and two pages of it."""

    def to_json(self) -> str: ...
    def to_markdown(self) -> str: ...
    def to_html(self) -> str: ...


def make_pages(report: Report) -> dict[str, str]:
    """Every file of a report's folder, by name, as this version writes it."""
    return {name: make(report) for name, make in _FILES.items()}


def make_result_pages(name: str, result: _Result) -> dict[str, str]:
    """Every file of a result's folder; ``name`` is that of its JSON."""
    return {
        name: result.to_json(),
        "report.md": result.to_markdown(),
        "report.html": result.to_html(),
    }


def check_pages(
    folder: Path, pages: Mapping[str, str], *, attested: bool, source: str = "report.json"
) -> VerificationCheck:
    """Compare the files of a report with what its own content makes of them.

    Parameters
    ----------
    folder : Path
    pages : mapping of str to str
        As `make_pages` makes them of report.json and library.json in the folder.
    attested : bool
        Whether the ledger holds the digests of the files as they are.
    source : str
        What they follow from: a file, or such words as "the audit and the ledger".
    """
    differences, moved = [], []
    for name, again in pages.items():
        stated = _read(folder / name)
        if stated == again:
            continue
        if stated is not None and _still(stated) == _still(again):
            moved.append(name)
        else:
            differences.append(f"{name}: {_tell(stated, again)}")
    if differences:
        detail = f"what the folder shows is not what its {source} says"
        return VerificationCheck("pages", "failed", detail, tuple(differences))
    if moved and not attested:
        detail = (
            f"the words of {', '.join(moved)} follow from {source}; its figures are drawn "
            "differently here, by other fonts or by an editor"
        )
        return VerificationCheck("pages", "unchecked", detail)
    detail = f"made again from {source}, every page says the same"
    return VerificationCheck("pages", "passed", detail)


def check_foreign_pages(writer: str, absent: CheckStatus, *, attested: bool) -> VerificationCheck:
    """The same of pages of another version, which words them in its own way.

    Parameters
    ----------
    writer : str
        The version that wrote them.
    absent : {"unchecked", "waived"}
        The status where the ledger does not hold their digests.
    attested : bool
        Whether it does.
    """
    if attested:
        detail = "written by another version, and as the ledger recorded them"
        return VerificationCheck("pages", "passed", detail)
    detail = f"written by groundfault {writer}, which alone can make them again"
    return VerificationCheck("pages", absent, detail)


def _read(path: Path) -> str | None:
    if not path.is_file():
        return None
    return read_bytes(path).decode("utf-8", errors="surrogateescape")


def _still(page: str) -> str:
    """A page without the places of what is drawn on it."""
    return _DRAWING.sub(lambda drawing: _COORDINATE.sub(r'\1=""', drawing[0]), page)


def _tell(stated: str | None, again: str) -> str:
    """Where two texts part."""
    if stated is None:
        return "missing"
    pairs = zip(stated.splitlines(), again.splitlines(), strict=False)
    for number, (a, b) in enumerate(pairs, start=1):
        if a != b:
            return f"line {number}: {a.strip()!r:.120}, {b.strip()!r:.120}"
    return f"{len(stated)} characters, {len(again)}"
