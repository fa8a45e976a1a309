"""Cards of a report: what it is worth, how often its outcomes were opened, what was checked."""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.auditing.report import Report
from groundfault.auditing.report_versions import read_report
from groundfault.auditing.verification import check_record
from groundfault.auditing.verification_result import VerificationCheck
from groundfault.core.candidate import Library
from groundfault.exports import ReportSlices
from groundfault.render import audit_tables, words
from groundfault.render.audit_words import Outline
from groundfault.render.page import Block, Columns, Entry, Paragraph, make_table

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
    """Cards of a report and of the file that it is exported to.

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
    looks = [
        (
            str(place),
            look.rule or words.NONE,
            words.NONE if look.level is None else f"{look.level:g}",
        )
        for place, look in enumerate(opening.looks, 1)
    ]
    if looks:
        yield make_table("Looks at these outcomes", "ntn", ("Look", "Rule", "Level"), looks)
    yield Paragraph(("Recorded as ", opening.head, "."), "small")


def _list_checks(slices: ReportSlices) -> Iterator[Block]:
    detail = "its content is what was audited"
    checks = [VerificationCheck("evidence", "passed", detail)]
    if slices.folder is not None:
        stored = read_report(slices.folder)
        library = Library.load(slices.folder / "library.json")
        checks += check_record(slices.folder, stored, library, True)
    # where a ledger lies is nobody's business but its owner's
    rows = [
        (
            check.name,
            check.status,
            _LEDGER.get(check.status, check.detail) if check.name == "ledger" else check.detail,
        )
        for check in checks
    ]
    yield make_table("Checks", "ttt", ("What", "Status", "Detail"), rows)
    yield Paragraph((_UNCHECKED,))


def _list_holdings(slices: ReportSlices, rows: int, texts: bool) -> Iterator[Block]:
    report = slices.report
    size = words.plural(rows, "row")
    if audit_tables.holds_out(report):
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
