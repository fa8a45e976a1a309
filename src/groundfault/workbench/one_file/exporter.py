"""The exporter of one file: a page, its style and script, and the report in compressed blocks.

The page itself is the same for every report. What came from data stands in it in base64 alone, as
text that no browser reads as markup, and the page's policy lets no other script run than the one
whose hash it names."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from groundfault.auditing.report import Report, read_report
from groundfault.auditing.verification import check_record
from groundfault.auditing.verification_checks import VerificationCheck
from groundfault.base.files import write_text
from groundfault.core.candidate import Library
from groundfault.exports import ReportSlices
from groundfault.render import audit_tables, words
from groundfault.render.audit_words import Outline
from groundfault.render.html import make_environment
from groundfault.render.page import Block, Columns, Entry, Number, Paragraph, Words, tabulate
from groundfault.workbench.one_file.content import FileContent, list_blocks
from groundfault.workbench.one_file.packing import RowValues, pack_json, pack_spans

if TYPE_CHECKING:
    from jinja2 import Template

_SCRIPTS = ("reading.js", "elements.js", "one_file.js")


@dataclass(frozen=True)
class HtmlExplorer:
    """Write a report with its examples as one HTML file, to be opened without a server.

    Attributes
    ----------
    texts : bool
        Whether columns of texts are written; ids and labels are in any case.
    """

    texts: bool = True
    name: str = "html-explorer"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the file."""
        content = FileContent(slices, self.texts)
        page = set_page(content)
        write_text(out, page)
        texts = "" if self.texts else ", without texts"
        return f"{words.plural(len(content.rows), 'row')}{texts} ({len(page) / 1e6:.1f} MB)"


def set_page(content: FileContent) -> str:
    """Return the whole file.

    Parameters
    ----------
    content : FileContent
    """
    from markupsafe import Markup

    template, style, script = _load()
    return template.render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        blocks=tuple(_pack(content)),
    )


def _pack(content: FileContent) -> Iterator[tuple[str, str]]:
    """Return blocks of the file by their names."""
    record = list_record(content.slices, len(content.rows), texts=content.texts)
    yield "report", pack_json(content.describe() | {"record": list_blocks(record)})
    evidence = content.rows.evidence
    yield "losses", RowValues.of(evidence.loss.round(6)).pack()
    # after the report, which puts them there
    yield "masks", content.masks.pack()
    for place, column in enumerate(content.columns):
        yield f"column-{place}", column.rows.pack()
    for place, marks in enumerate(content.marks):
        if spans := {name: some for name, some in marks.items() if some}:
            yield f"spans-{place}", pack_spans(spans)
    if len(content.models) > 1:
        yield "units", RowValues.of(pl.Series(evidence.unit_index)).pack()


@cache
def _load() -> tuple[Template, str, str]:
    """Return the page, its style and its script."""
    environment = make_environment("groundfault.workbench.one_file")
    # the looks of a report, and what only this page has
    style = "\n".join(environment.get_template(n).render() for n in ("report.css", "one_file.css"))
    # the keys of the workbench, and what only this page has
    home = resources.files("groundfault.workbench")
    own = (home / "one_file" / "templates" / name for name in _SCRIPTS)
    scripts = (home / "static" / "workbench.js", *own)
    script = "\n".join(path.read_text("utf-8") for path in scripts)
    return environment.get_template("one_file.html.j2"), style, script


def _hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


_UNCHECKED = (
    "The numbers were not computed again for this file; groundfault verify does that, with the "
    "report and its evidence."
)

_LEDGER = {
    "passed": "it is unbroken and holds this opening",
    "failed": "it contradicts the report",
    "unchecked": "it was not at hand",
    "waived": "it was not asked",
}


def list_record(slices: ReportSlices, rows: int, *, texts: bool) -> list[Block]:
    """Return cards of a report and of the file that it is exported to.

    Parameters
    ----------
    slices : ReportSlices
    rows : int
        How many are in the file.
    texts : bool
        Whether it has columns of texts.
    """
    report = slices.report
    outline = Outline(report)
    return [
        Entry("What a confirmation is worth", (Paragraph((outline.guarantee,)),)),
        Entry("Openings", tuple(_list_openings(report, outline))),
        Entry("Verification when this file was written", tuple(_list_checks(slices))),
        Entry("What this file holds", tuple(_list_holdings(slices, rows, texts))),
        Entry("Manifest", (Columns(audit_tables.manifest(report)),)),
    ]


def _list_openings(report: Report, outline: Outline) -> Iterator[Block]:
    yield Paragraph((f"{words.capital(outline.ledger)}.",))
    opening = report.ledger
    if opening is None:
        return
    if opening.looks:
        yield tabulate(
            "Looks at these outcomes",
            list(enumerate(opening.looks, 1)),
            Number("Look", lambda pair: pair[0]),
            Words("Rule", lambda pair: pair[1].rule or None),
            Number("Level", lambda p: None if p[1].level is None else f"{p[1].level:g}"),
        )
    yield Paragraph(("Recorded as ", opening.head, "."), "small")


def _list_checks(slices: ReportSlices) -> Iterator[Block]:
    detail = "its content is what was audited"
    checks = [VerificationCheck("evidence", "passed", detail)]
    if slices.folder is not None:
        stored = read_report(slices.folder)
        library = Library.load(slices.folder / "library.json")
        checks += check_record(slices.folder, stored, library, True)
    yield tabulate(
        "Checks",
        checks,
        Words("What", lambda check: check.name),
        Words("Status", lambda check: check.status),
        # where a ledger lies is nobody's business but its owner's
        Words("Detail", lambda c: _LEDGER.get(c.status) if c.name == "ledger" else c.detail),
    )
    yield Paragraph((_UNCHECKED,))


def _list_holdings(slices: ReportSlices, rows: int, texts: bool) -> Iterator[Block]:
    report = slices.report
    size = words.plural(rows, "row")
    if report.n_holdout:
        units = words.plural(report.n_discovery, f"discovery {report.unit}")
        yield Paragraph(
            (
                f"{size} of {units}, with their outcomes. No row of the {report.n_holdout:,} held "
                "out is in it: what the report says of those, in numbers, is all there is.",
            )
        )
    else:
        yield Paragraph((f"All {size}, with their outcomes; nothing was held out.",))
    if not texts:
        yield Paragraph(("Texts were left out; rules about texts name some of their words.",))
