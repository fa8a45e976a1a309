"""One file: a page, its style and script, and in compressed blocks a report and its examples.

The page itself is the same for every report. Data stand in it as base64 alone, which no browser
reads as markup, and the page's policy lets only the script run whose hash it names.

The file holds the rows whose outcomes were already used. A report without a holdout has judged all
units, so all rows are in the file. A report with a holdout gives only its discovery rows: the
holdout's outcomes were opened for one question, and a reader who browses them invents rules that
they can no longer confirm. Counts and rates of held-out rows are in the file as in the report; the
few examples that a report keeps are left out, since some of them may be held-out rows."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from msgspec import structs

from groundfault.auditing.report import Report, read_report
from groundfault.auditing.verification import check_record
from groundfault.auditing.verification_checks import VerificationCheck
from groundfault.base.files import write_text
from groundfault.core.candidate import Library
from groundfault.exports import ReportSlices
from groundfault.modes.examples import share_opening
from groundfault.render import audit_page, audit_tables, words
from groundfault.render.audit_words import Outline
from groundfault.render.html import make_environment
from groundfault.render.page import (
    Bar,
    Block,
    Code,
    Columns,
    Entry,
    Figures,
    Fold,
    Highlight,
    Number,
    Page,
    Paragraph,
    Table,
    Words,
    tabulate,
)
from groundfault.workbench.explorer_data import ExplorerData
from groundfault.workbench.packing import (
    MaskPool,
    Spans,
    count_units,
    find_rule_marks,
    pack_json,
    pack_spans,
)
from groundfault.workbench.rows import RowIndex, Rows
from groundfault.workbench.subjects import Subject, list_subjects

if TYPE_CHECKING:
    from jinja2 import Template

VERSION = 1
"""Of the content; the page and its script are always of the same."""

_LONG_OPENING = 80
"""Characters, a line, from which on a beginning that all texts share is left out of cards."""
_ON_MODES = ("confirmed", "strengths", "too-small", "screened", "limits")


@dataclass(frozen=True, eq=False)
class FileContent:
    """A report and its rows, as one file holds them.

    Attributes
    ----------
    slices : ReportSlices
    texts : bool
        Whether columns of texts are in it.
    """

    slices: ReportSlices
    texts: bool = True

    @cached_property
    def data(self) -> ExplorerData:
        """Return the rows that may be looked at."""
        report = self.slices.report
        index = RowIndex(Rows.of(self.slices.case), report.library)
        return ExplorerData(report, index, self.texts)

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """Return the failure modes, then the findings that are given back, then all rows."""
        names = {candidate.name for candidate in self.slices.library}
        return (*list_subjects(self.slices.report, names), Subject.of_rule(""))

    @cached_property
    def masks(self) -> MaskPool:
        """Return the masks of all rules, which `describe` names by their places."""
        return MaskPool(len(self.data.rows))

    @cached_property
    def openings(self) -> dict[str, int]:
        """Return by column of texts the length of its shared beginning, where that is long."""
        openings = {}
        for column in self.data.columns:
            texts = [text for text in column.rows.values if text] if column.kind == "text" else []
            shared = share_opening(texts) if texts else ""
            shared = shared[: max(shared.rfind(" "), shared.rfind("\n")) + 1]
            if len(shared) >= _LONG_OPENING and min(map(len, texts)) > len(shared):
                openings[column.name] = count_units(shared)
        return openings

    @cached_property
    def marks(self) -> list[dict[str, Spans]]:
        """Find by rule and column the places of the words that are marked."""
        texts = {
            c.name: pl.Series(c.name, c.rows.values, pl.String)
            for c in self.data.columns
            if c.kind == "text"
        }
        return [
            find_rule_marks(texts, subject.rule) if subject.rule else {}
            for subject in self.subjects
        ]

    def describe(self) -> dict[str, Any]:
        """Return everything but the rows, as plain values."""
        report = _drop_examples(self.slices.report)
        page = audit_page.make_page(report)
        kept = [section for name, section in page.anchored if name in _ON_MODES]
        return {
            "version": VERSION,
            "groundfault": report.groundfault_version,
            "title": words.clean(page.title),
            "verdict": words.clean(page.verdict),
            "facts": [[words.clean(text) for text in pair] for pair in page.facts],
            "part": "discovery" if report.n_holdout else "all",
            **self.data.outline(),
            "openings": self.openings,
            "rules": list(self._describe_rules(page)),
            "modes": list_blocks(page.lead),
            "sections": [
                {"title": words.clean(section.title), "blocks": list_blocks(section.content)}
                for section in kept
            ],
        }

    def _describe_rules(self, page: Page) -> Iterator[dict[str, object]]:
        entries = {
            str(entry.title): entry
            for section in page.sections
            for entry in find_entries(section.content)
        }
        for subject in self.subjects:
            entry = entries.get(subject.title)
            yield {
                **self.data.describe_rule(subject, self.masks),
                "anchor": entry.anchor if entry else "",
                "blocks": list_blocks(entry.blocks) if entry else [],
            }


def _drop_examples(report: Report) -> Report:
    """Drop the examples of the modes, which may be of held-out rows and have texts.

    The rows have their numbers instead."""
    bare = tuple(structs.replace(mode, sample=()) for mode in report.modes)
    return Report.of(structs.replace(report.data, modes=bare), report.library)


def list_blocks(blocks: Sequence[Block]) -> list[Any]:
    """Return blocks as dicts and lists of text; without figures, which are no text.

    A dict has the kind of its block under ``block``, and beside it the block's fields; code and
    highlighted words are ``{"code": ...}`` and ``{"mark": ...}``.
    """
    return [_plain(block) for block in blocks if not isinstance(block, Figures)]


def find_entries(blocks: Sequence[Block]) -> Iterator[Entry]:
    """Return all entries among some blocks, including entries inside folds and other entries."""
    for block in blocks:
        if isinstance(block, Entry):
            yield block
        if isinstance(block, Entry | Fold):
            yield from find_entries(block.blocks)


def _plain(value: object) -> object:
    if isinstance(value, str):
        return words.clean(value)
    if isinstance(value, Code | Highlight):
        return {"code" if isinstance(value, Code) else "mark": words.clean(value.text)}
    if isinstance(value, Bar):
        return value.widths
    if isinstance(value, Table):
        value = value.drop_empty_columns()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value if not isinstance(one, Figures)]
    if is_dataclass(value):
        # the orders of a table are a style sheet's, and the largest part of it
        names = [field.name for field in fields(value) if field.name != "orders"]
        content = {name: _plain(getattr(value, name)) for name in names}
        kind = getattr(value, "block", None)
        return content if kind is None else {"block": kind, **content}
    return value


_SHARED = ("workbench.js", "reading.js", "elements.js", "explorer.js", "models.js")
"""Scripts that the server's pages have, too: its keys, and its client for rows."""


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
        return f"{words.plural(len(content.data.rows), 'row')}{texts} ({len(page) / 1e6:.1f} MB)"


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
    data = content.data
    record = list_record(content.slices, len(data.rows), texts=content.texts)
    yield "report", pack_json(content.describe() | {"record": list_blocks(record)})
    # after the report, which puts them there
    yield "masks", content.masks.pack()
    columns = [f"column-{place}" for place in range(len(data.columns))]
    for name in ("losses", *columns, *["units"] * bool(data.models)):
        yield name, data.pack(name)
    for place, marks in enumerate(content.marks):
        if spans := {name: some for name, some in marks.items() if some}:
            yield f"spans-{place}", pack_spans(spans)


@cache
def _load() -> tuple[Template, str, str]:
    """Return the page, the style and the script."""
    environment = make_environment("groundfault.workbench.one_file")
    home = resources.files("groundfault.workbench")
    # the looks of a report, of its examples, and what only this page has
    styles = [environment.get_template(n).render() for n in ("report.css", "one_file.css")]
    styles.insert(1, (home / "static" / "explorer.css").read_text("utf-8"))
    style = "\n".join(styles)
    own = home / "one_file" / "templates" / "one_file.js"
    scripts = (*(home / "static" / name for name in _SHARED), own)
    script = "\n".join(path.read_text("utf-8") for path in scripts)
    return environment.get_template("one_file.html.j2"), style, script


def _hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


_UNCHECKED = (
    "The numbers were not computed again for this file; groundfault verify does that, with the "
    "report and its evidence."
)

_LEDGER = {
    "passed": "it is unbroken and records this look",
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
