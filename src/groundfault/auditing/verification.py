"""Verification: check everything that a report states against its evidence and its ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from groundfault import judges
from groundfault.auditing.assemble import COUNTS, assemble
from groundfault.auditing.copies import take_each_for_a_unit
from groundfault.auditing.evidence_places import Places, name_places
from groundfault.auditing.flow import judge_audit
from groundfault.auditing.grouped_evidence import open_units
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.preparation import prepare
from groundfault.auditing.report import Report, StoredReport, read_report
from groundfault.auditing.report_diff import compare_reports
from groundfault.auditing.report_schema import SCHEMA_VERSION, Manifest, ReportData, to_plain
from groundfault.auditing.verification_checks import (
    CheckStatus,
    Verification,
    VerificationCheck,
    check_anchor,
    check_files,
    check_foreign_pages,
    check_opening,
    check_pages,
    find_records,
    judge_differences,
    make_pages,
    read_opening,
)
from groundfault.base.ledgers import LedgerChoice, find_witness, is_waived
from groundfault.base.reading import is_inside
from groundfault.base.registry import load_object
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.roles import LISTS
from groundfault.errors import InputError, PlanError
from groundfault.readers.configurations import split_source

if TYPE_CHECKING:
    from groundfault.base.anchors import AnchorFiles
    from groundfault.base.ledger import Ledger
    from groundfault.core.judge import Judge
    from groundfault.readers import Reader

Rerun = Callable[[Evidence], Report]
DERIVATIONS = {"taxonomy": "groundfault.taxonomy.use.claims:repeat_claims"}
"""Kinds of `Derivation`, and who audits such evidence again.

Each is called with the evidence as its sources have it, the manifest, the folder of the report and
a function that repeats the audit of some evidence; it returns the report.
"""


def verify(
    directory: str | Path,
    *,
    evidence: Places | None = None,
    ledger: LedgerChoice = True,
    judge: Judge | None = None,
    reader: Reader | None = None,
    anchor: AnchorFiles | None = None,
) -> Verification:
    """Check a report: its files, its pages, its numbers and what it says of its opening.

    Every number, verdict and hash is computed again from the evidence; numbers agree to a relative
    1e-9. Sentences and pages are made again, too, where this version of groundfault wrote them;
    those of another version are held against the digests in the ledger alone.

    Parameters
    ----------
    directory : path
        Where ``Report.write`` wrote report.json and library.json. Of claims about a taxonomy's
        clusters, below the directory of the taxonomy.
    evidence : path, or sequence of path, optional
        Where the evidence is now, if it has moved: one place, or one for each source of the report.
    ledger : Ledger, path, URL or bool, optional
        The ledger to check the report's opening against. True is the one that $GROUNDFAULT_LEDGER
        names, else groundfault-ledger.db in the current folder if the report names that one, else
        a file of the name that the report states in its own folder. What else a report names is
        never opened: it may be a server of anybody's. False and None do without: what only a ledger
        shows is waived, instead of leaving the verdict open.
    judge : Judge, optional
        The judge of the report, where it was passed as an object and no installed package
        registers one under its name.
    reader : Reader, optional
        The reader of its logs, likewise.
    anchor : AnchorFiles, optional
        A signed head of the ledger, which the ledger has to hold still.

    Returns
    -------
    Verification
        With the checks ``recomputation``, ``files``, ``pages`` and ``ledger``, and ``anchor`` where
        there is one.

    Raises
    ------
    InputError
        If the directory holds no report, or its evidence is not there.
    PlanError
        If the judge or the reader is not known by the name in the report, and was not passed.
    """
    place = Path(directory)
    stored, library = read_report(place), Library.load(place / "library.json")
    data = stored.data
    again = _recompute(data, library, place, evidence, judge, reader)
    differences = compare_reports(data, again.data, same_version=_is_of_this_version(stored))
    what = "every number, verdict and sentence follows from the evidence and the plan"
    check = judge_differences(differences, what)
    if data.hashes.evidence != again.data.hashes.evidence:
        detail = f"the evidence is not what the report was computed from, and {check.detail}"
        check = replace(check, detail=detail)
    record = check_record(place, stored, library, ledger, anchor)
    return Verification((check, *record))


def check_record(
    place: Path,
    stored: StoredReport,
    library: Library,
    ledger: LedgerChoice,
    anchor: AnchorFiles | None = None,
) -> tuple[VerificationCheck, ...]:
    """All checks of a report that take no evidence: of its files, its pages and its opening.

    Parameters
    ----------
    place : Path
        The folder of the report.
    stored : StoredReport
    library : Library
        Both as they are in the folder.
    ledger, anchor
        As in `verify`.
    """
    data = stored.data
    files, opening = check_writing(place, stored, ledger)
    # files pass where the ledger holds their digests, and only there
    attested = files.status == "passed"
    if _is_of_this_version(stored):
        pages = check_pages(place, make_pages(Report.of(data, library)), attested=attested)
    else:
        absent = _name_absence(ledger)
        pages = check_foreign_pages(data.groundfault_version, absent, attested=attested)
    if anchor is None:
        return files, pages, opening
    head = data.ledger.head if data.ledger else None
    return files, pages, opening, check_anchor(anchor, _find_book(place, data, ledger), head)


def check_writing(
    place: Path, stored: StoredReport, ledger: LedgerChoice
) -> tuple[VerificationCheck, VerificationCheck]:
    """What a ledger says of a report's files, and of its opening.

    Parameters
    ----------
    place : Path
        The folder of the report.
    stored : StoredReport
        As it is there.
    ledger
        As in `verify`.
    """
    data, absent = stored.data, _name_absence(ledger)
    book, records = _find_book(place, data, ledger), None
    opening = check_opening(data, book, absent)
    if opening.status == "passed" and book is not None and data.ledger is not None:
        records = find_records(book, data.ledger.head)
    return check_files(place, records, absent, expected=_is_of_this_version(stored)), opening


def _find_book(place: Path, data: ReportData, ledger: LedgerChoice) -> Ledger | None:
    return find_witness(ledger, data.ledger.path if data.ledger else "", place)


def _name_absence(ledger: LedgerChoice) -> CheckStatus:
    """Return the status of what only a ledger shows, where there is none to ask."""
    return "waived" if is_waived(ledger) else "unchecked"


def _is_of_this_version(stored: StoredReport) -> bool:
    ours = stored.schema_version == SCHEMA_VERSION
    return ours and stored.data.groundfault_version == version("groundfault")


def _recompute(
    data: ReportData,
    library: Library,
    place: Path,
    evidence: Places | None,
    judge: Judge | None,
    reader: Reader | None,
) -> Report:
    repeat, derivation = partial(_repeat_audit, data, library, judge), data.manifest.derivation
    if derivation is not None and derivation.kind == COUNTS:
        return repeat(_scan_again(data, place, evidence))
    sources = read_evidence_again(data, place, evidence, reader)
    if derivation is None:
        return repeat(select_audited(sources, data.manifest))
    return _rerun_of(derivation.kind)(sources, data.manifest, place, repeat)


def _repeat_audit(
    data: ReportData, library: Library, judge: Judge | None, evidence: Evidence | LazyEvidence
) -> Report:
    plan = data.plan.to_plan()
    if judge is not None:
        plan = replace(plan, judge=judge, judge_settings=None)
    if data.manifest.compare and data.change is None:
        raise InputError(
            "this comparison was made by an earlier version, which counted each direction by "
            "itself; audit again, as its rule is not valid for two runs of one model"
        )
    try:
        judges.get(plan.judge, plan.judge_settings)
    except PlanError as error:
        raise PlanError(
            f"{error}; a report by a judge of no installed package is verified in Python: "
            "groundfault.verify(directory, judge=...)"
        ) from None
    if data.units is None and isinstance(evidence, Evidence):
        # reports of before took copies for examples of their own
        evidence = take_each_for_a_unit(evidence)
    with open_units(evidence) as units:
        prepared = prepare(units, plan, library, finders=(), compare=data.manifest.compare)
        results = judge_audit(
            # why it was that judge, and which candidates were asked for, the library does not tell
            replace(prepared, judge_reason=data.judge_reason, own_rules=data.manifest.own_rules),
            robustness=data.robustness.splits if data.robustness else 0,
            # reports of 0.1.0 name none
            modes=data.mode_search is not None,
            texts=any(example.texts for mode in data.modes for example in mode.sample),
            # to verify is no further look: what was recorded is taken as it is stated, and checked
            ledger=None,
        )
        opening = None if data.ledger is None else read_opening(data.ledger)
        return assemble(replace(results, opening=opening))


def _scan_again(data: ReportData, place: Path, evidence: Places | None) -> LazyEvidence:
    """Name the table of a report by counts, for the engine that the report names."""
    assert data.manifest.derivation is not None
    roles = to_plain(data.manifest.roles)
    names = ("model", "repeat", "numbered", "count_as_failed")
    source = _find_table(evidence, data.manifest.sources, place)
    if isinstance(source, tuple):
        raise InputError("a report by counts names files, and this one something else")
    settings = data.manifest.derivation.settings
    return LazyEvidence.scan(
        source,
        engine=settings.get("engine", ""),
        table=settings.get("table", ""),
        **{role: column for role, column in roles.items() if role not in names},
    )


def _rerun_of(kind: str) -> Callable[[Evidence, Manifest, Path, Rerun], Report]:
    if kind not in DERIVATIONS:
        raise InputError(
            f"the evidence of this report is derived as {kind!r}, which this groundfault does not"
            " know; verify it with the groundfault that wrote it"
        )
    rerun: Callable[[Evidence, Manifest, Path, Rerun], Report] = load_object(DERIVATIONS[kind])
    return rerun


def read_evidence_again(
    data: ReportData,
    directory: str | Path,
    evidence: Places | None = None,
    reader: Reader | None = None,
) -> Evidence:
    """Read the evidence of a report again, with the settings it was read with.

    It holds all models, also those that the report is not about.

    Parameters
    ----------
    data : ReportData
    directory : path
        Where the report is.
    evidence : path, or sequence of path, optional
        As in `verify`.
    reader : Reader, optional
        Likewise.

    Raises
    ------
    InputError
        If the evidence is not there; or if only the report names it, and it is neither in the
        current folder nor in the one that the report's folder is in.
    """
    manifest = data.manifest
    roles = to_plain(manifest.roles)
    if manifest.reading is not None:
        columns = {role: roles[role] for role in ("group", "split", "count_as_failed", *LISTS)}
        reading = msgspec.structs.asdict(manifest.reading)
        if reader is not None:
            reading["reader"] = reader
        sources = (
            name_places(evidence, manifest.sources)
            if evidence
            else _require_near(manifest.sources, Path(directory))
        )
        return Evidence.from_logs(*sources, **reading, **columns)
    if roles.pop("numbered"):
        roles["id"] = None
    return Evidence.from_table(_find_table(evidence, manifest.sources, Path(directory)), **roles)


def _require_near(sources: Sequence[str], directory: Path) -> Sequence[str]:
    """Return the sources that a report names, if all are where its reader stands, or it was put."""
    for source in sources:
        if not _is_near(source, directory):
            raise InputError(
                f"the report names {source} as its evidence, which is neither in this folder nor "
                "where the report lies; what only a report names is not opened: if it is right, "
                "name it with --evidence"
            )
    return sources


def _is_near(source: str, directory: Path) -> bool:
    # reports are written beside their evidence, or where the command was called; of base=logs the
    # place is what is opened
    _, place = split_source(source)
    return is_inside(place, (Path.cwd(), directory.resolve().parent))


def select_audited(evidence: Evidence, manifest: Manifest) -> Evidence:
    """Of all models and rows of a report's sources, those that it is about."""
    models, where = manifest.models, manifest.where
    if models is not None and set(models) != set(evidence.models):
        evidence = evidence.select_model(*models)
    return evidence if where in (None, evidence.selection) else evidence.where(where)


def _find_table(
    evidence: Places | None, sources: tuple[str, ...], directory: Path
) -> Path | tuple[str | Path, ...]:
    if evidence:
        places = name_places(evidence, sources)
        return Path(places[0]) if len(places) == 1 and not split_source(places[0])[0] else places
    if not sources:
        raise InputError(
            "the report is of a table in memory; say where the evidence is with --evidence"
        )
    if all(split_source(source)[0] for source in sources):
        return tuple(_require_near(sources, directory))
    first = Path(sources[0])
    near = _is_near(sources[0], directory)
    if first.is_absolute() and not (near and first.exists()):
        beside = directory / first.name
        if is_inside(beside, [directory]) and beside.exists():
            return beside
    first = Path(_require_near(sources, directory)[0])
    if not first.exists():
        raise InputError(f"the evidence {first} is not there; say where it is with --evidence")
    return first if len(sources) == 1 else first.parent
