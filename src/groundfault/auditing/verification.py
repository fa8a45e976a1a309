"""Verification: check everything that a report states against its evidence and its ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from groundfault import judges
from groundfault.auditing.assemble import COUNTS, assemble
from groundfault.auditing.evidence_again import (
    Places,
    read_evidence_again,
    scan_evidence_again,
    select_audited,
)
from groundfault.auditing.flow import judge_audit
from groundfault.auditing.grouped_evidence import open_units
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.preparation import prepare, take_each_for_a_unit
from groundfault.auditing.report import Report, StoredReport, read_report
from groundfault.auditing.report_schema import SCHEMA_VERSION, Manifest, ReportData, to_plain
from groundfault.auditing.stored_kinds import check_contents, find_kind
from groundfault.auditing.verification_checks import (
    CheckStatus,
    Verification,
    VerificationCheck,
    check_anchor,
    check_files,
    check_foreign_pages,
    check_opening,
    check_pages,
    differences_of,
    find_records,
    judge_differences,
    make_pages,
    read_opening,
)
from groundfault.base.ledgers import LedgerChoice, find_witness, is_waived
from groundfault.base.long_work import version
from groundfault.base.reading import is_inside, read_json_object
from groundfault.base.registry import load_object
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Verdict
from groundfault.errors import InputError, PlanError

if TYPE_CHECKING:
    from groundfault.base.anchors import AnchorFiles
    from groundfault.base.ledger import Ledger
    from groundfault.core.judge import Judge
    from groundfault.readers import Reader


Rerun = Callable[[Evidence], Report]
DERIVATIONS = {"taxonomy": "groundfault_lab.taxonomy.use.claims:repeat_claims"}
"""Kinds of `Derivation`, and functions that audit derived evidence again.

Each function takes the evidence from its sources, the manifest, the folder of the report, and a
function that repeats the audit of some evidence. It returns the report.
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
    """Check a stored result: its files, its pages, its numbers and its record in a ledger.

    Results are reports, cases, certificates, confirmations, gate results, taxonomies, packages of
    probes and folders of evidence. Every number, verdict and hash that follows from others is
    computed again; numbers must agree to a relative 1e-9. Sentences and pages are also made again
    if this version of groundfault wrote them; pages of another version are only compared with the
    digests in the ledger. A folder must hold exactly the files of the result.

    Parameters
    ----------
    directory : path
        The folder of the result, or the JSON of a certificate, a confirmation or a gate. For claims
        about a taxonomy's clusters, a folder below the directory of the taxonomy.
    evidence : path, or sequence of path, optional
        The evidence's new place if it has moved: one place, or one for each source of the report.
    ledger : Ledger, path, URL or bool, optional
        The ledger to check the result against. True is the one that $GROUNDFAULT_LEDGER names, else
        groundfault-ledger.db in the current folder if the report names it, else a file in the
        report's folder with the name that the report states. Other places in a report are never
        opened, because they may be a stranger's server. With False and None, checks that need a
        ledger are waived and do not leave the verdict open.
    judge : Judge, optional
        The judge of the report, if it was passed as an object and no installed package registers
        one under its name.
    reader : Reader, optional
        The reader of its logs, in the same case.
    anchor : AnchorFiles, optional
        A signed head of the ledger, which the ledger must still hold.

    Returns
    -------
    Verification
        For a report with the checks ``recomputation``, ``files``, ``pages``, ``ledger`` and
        ``contents``, and ``anchor`` if one is given.

    Raises
    ------
    InputError
        If there is no stored result, or its evidence is missing.
    PlanError
        If the judge or the reader is unknown by the name in the report, and was not passed; or
        results of this kind do not take an option.
    """
    place = Path(directory)
    kind = find_kind(place)
    given = {"evidence": evidence or None, "judge": judge, "reader": reader, "anchor": anchor}
    options: dict[str, object] = {n: value for n, value in given.items() if value is not None}
    if ledger is not True:
        options["ledger"] = ledger
    if odd := [name for name in options if name not in kind.takes]:
        flags = " and ".join(f"--{name}" for name in odd)
        raise PlanError(f"{place} ({kind.file}) is verified from its own files: leave out {flags}")
    result: Verification = load_object(kind.verify)(place, **options)
    if not place.is_dir():
        return result
    return replace(result, checks=(*result.checks, check_contents(place, kind)))


def verify_report(
    place: Path,
    *,
    evidence: Places | None = None,
    ledger: LedgerChoice = True,
    judge: Judge | None = None,
    reader: Reader | None = None,
    anchor: AnchorFiles | None = None,
) -> Verification:
    """Check a report by its evidence and its ledger; see `verify`."""
    stored, library = read_report(place), Library.load(place / "library.json")
    data = stored.data
    repeat, derivation = partial(_repeat_audit, data, library, judge), data.manifest.derivation
    if derivation is not None and derivation.kind == COUNTS:
        again = repeat(scan_evidence_again(data, place, evidence))
    else:
        sources = read_evidence_again(data, place, evidence, reader)
        if derivation is None:
            again = repeat(select_audited(sources, data.manifest))
        else:
            again = _rerun_of(derivation.kind)(sources, data.manifest, place, repeat)
    same = _is_of_this_version(stored)
    differences = compare_reports(data, again.data, same_version=same)
    what = "every number, verdict and sentence follows from the evidence and the plan"
    check = judge_differences(differences, what)
    if differences and not same and all(each.startswith(_SEARCHED) for each in differences):
        writer = data.groundfault_version
        detail = f"the search changed or the modes were edited; verify with groundfault {writer}"
        check = replace(check, status="unchecked", detail=detail)
    if data.hashes.evidence != again.data.hashes.evidence:
        detail = f"the evidence is not what the report was computed from, and {check.detail}"
        check = replace(check, detail=detail)
    record = check_record(place, stored, library, ledger, anchor)
    return Verification((check, *record))


def verify_evidence(place: Path, *, evidence: Places | None = None) -> Verification:
    """Check that the rows in a folder of evidence are the rows imported from its logs.

    Parameters
    ----------
    place : Path
    evidence : path or sequence of path, optional
        The logs' new place if they have moved.
    """
    stored, hash_now = Evidence.from_logs(place), read_json_object(place / "evidence.json")["hash"]
    changed = [] if hash_now == stored.hash else [f"hash: {hash_now}, {stored.hash}"]
    rows = judge_differences(changed, "the rows have the hash that evidence.json states")
    return Verification((rows, _check_logs(stored, place, evidence)))


def _check_logs(stored: Evidence, place: Path, evidence: Places | None) -> VerificationCheck:
    state = partial(VerificationCheck, "logs")
    if stored.account is None:
        return state("passed", "it was written from a table, and has no logs")
    stated, near = [log.path for log in stored.account.logs], (Path.cwd(), place.parent)
    if evidence is None and not all(is_inside(x, near) and Path(x).exists() for x in stated):
        return state("unchecked", "its logs are not here; name their places with --evidence")
    places = [evidence] if isinstance(evidence, str | Path) else evidence
    again = Evidence.from_logs(*(stated if places is None else places))
    before, after = (_forget_places(msgspec.to_builtins(each.account)) for each in (stored, again))
    differences = list(differences_of(before["logs"], after["logs"], "logs"))
    if not differences and stored.hash != again.hash:
        why = "its logs give other rows without its --scorer, --scale or --map"
        return state("unchecked", f"{why}: import them again as they were")
    differences = differences or list(differences_of(before, after))
    return replace(judge_differences(differences, "its logs hold these rows"), name="logs")


def check_record(
    place: Path,
    stored: StoredReport,
    library: Library,
    ledger: LedgerChoice,
    anchor: AnchorFiles | None = None,
) -> tuple[VerificationCheck, ...]:
    """Check a report's files, pages and opening, which needs no evidence.

    Parameters
    ----------
    place : Path
        The folder of the report.
    stored : StoredReport
    library : Library
        The report and the library in the folder.
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
    """Check a report's files and its opening by a ledger.

    Parameters
    ----------
    place : Path
        The folder of the report.
    stored : StoredReport
        The report in this folder.
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
    """Return the status of a check that needs a ledger, without one."""
    return "waived" if is_waived(ledger) else "unchecked"


def _is_of_this_version(stored: StoredReport) -> bool:
    ours = stored.schema_version == SCHEMA_VERSION
    return ours and stored.data.groundfault_version == version("groundfault")


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
    # reports of before, which have no record of the grader, took copies for examples of their own
    if data.units is None and data.grader is None and isinstance(evidence, Evidence):
        evidence = take_each_for_a_unit(evidence)
    with open_units(evidence) as units:
        prepared = prepare(units, plan, library, finders=(), compare=data.manifest.compare)
        results = judge_audit(
            # the library does not hold the reason for the judge, or the named candidates
            replace(prepared, judge_reason=data.judge_reason, own_rules=data.manifest.own_rules),
            robustness=data.robustness.splits if data.robustness else 0,
            # reports of 0.1.0 name none
            modes=data.mode_search is not None,
            texts=bool(data.sample or data.excerpts)
            or any(example.texts for mode in data.modes for example in mode.sample),
            # verifying is not a further look: the stated record is used, and checked
            ledger=None,
        )
        opening = None if data.ledger is None else read_opening(data.ledger)
        return assemble(replace(results, opening=opening))


def _rerun_of(kind: str) -> Callable[[Evidence, Manifest, Path, Rerun], Report]:
    if kind not in DERIVATIONS:
        raise InputError(
            f"the evidence of this report is derived as {kind!r}, which this groundfault does not"
            " know; verify it with the groundfault that wrote it"
        )
    rerun: Callable[[Evidence, Manifest, Path, Rerun], Report] = load_object(DERIVATIONS[kind])
    return rerun


# fields that may differ between two machines that agree on every finding; the judge is repeated
# by its name, which leaves no reason to choose it
_VOLATILE = ("schema_version", "groundfault_version", "judge_reason")
_VOLATILE_MANIFEST = ("python", "numpy", "polars", "sources", "grading", "settings_file")
# sentences are made from the numbers that are compared anyway: a later version may phrase them
# better, and must not fail the reports of an older one
_TEXTS = (
    "guarantee",
    "conclusion",
    "hints",
    "doubts",
    "unused",
    "sample",
    "excerpts",
    "averaged",
    "ledger",
    "parts",
    "uniform",
)
_TEXTS_OF_FINDINGS = ("reason", "sentence", "opposite")
_TEXTS_OF_MODES = ("meaning", "conditions")
# fields that follow from a search, which may change between versions
_SEARCHED = ("modes", "mode_search", "behaviours", "announcements", "transcripts")
# detectable lifts were computed by a coarser rule, and estimates were not corrected
_LATER_NUMBERS = ("minimum_detectable_lift", "power")


def compare_reports(stated: ReportData, again: ReportData, *, same_version: bool) -> list[str]:
    """Return where a report and its recomputation differ, each as "where: stated, recomputed".

    Parameters
    ----------
    stated, again : ReportData
    same_version : bool
        Whether this version of groundfault wrote the report. Another version has other sentences,
        and an earlier one lacks newer fields.
    """
    if not same_version:
        # a report that keeps no record of units, or did not look for evidence about the grader
        names = ("grader", "units", "deciding")
        absent = {name: None for name in names if getattr(stated, name) is None}
        again = msgspec.structs.replace(again, **absent)
    before, after = (_select_comparable(each, texts=same_version) for each in (stated, again))
    if not same_version and (stated.is_graded or stated.averaged):
        # their p-values are of another statistic now, and sampled
        before, after = map(_leave_out_p_values, (before, after))
    return list(differences_of(before, after))


def _select_comparable(data: ReportData, *, texts: bool) -> dict[str, Any]:
    """Return the fields that have to be equal in a report and its recomputation."""
    report = _forget_places_of_report(to_plain(data))
    top = _VOLATILE if texts else (*_VOLATILE, *_TEXTS, *_LATER_NUMBERS)
    findings = report["findings"]
    if not texts:
        findings = sorted(map(_make_older, findings), key=_rank_older)
    return _leave_out(report, top) | {
        "manifest": _select_of_manifest(report["manifest"], texts=texts),
        "grader": [_leave_out(one, () if texts else ("basis",)) for one in report["grader"] or ()],
        "findings": findings,
        "modes": [_select_of_mode(mode, texts=texts) for mode in report["modes"]],
        "mode_search": report["mode_search"]
        and _leave_out(report["mode_search"], () if texts else ("remarks",)),
    }


def _forget_places(account: dict[str, Any]) -> dict[str, object]:
    """Return an account without the places of its logs, which digests identify."""
    return account | {
        "logs": [log | {"path": ""} for log in account["logs"]],
        "unread": [PurePath(place).name for place in account["unread"]],
    }


def _forget_places_of_report(report: dict[str, Any]) -> dict[str, Any]:
    account = report["manifest"]["account"]
    if account is None:
        return report
    hints = [*report["hints"]]
    for number, log in enumerate(account["logs"]):
        hints = [hint.replace(log["path"], f"log {number}") for hint in hints]
    manifest = report["manifest"] | {"account": _forget_places(account)}
    return report | {"hints": hints, "manifest": manifest}


def _select_of_manifest(manifest: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    account = manifest["account"]
    if account is not None and not texts:
        # earlier versions did not read the tool's own count
        logs = [_leave_out(log, ("official",)) for log in account["logs"]]
        manifest = manifest | {"account": account | {"logs": logs}}
    return _leave_out(manifest, _VOLATILE_MANIFEST)


def _make_older(finding: dict[str, Any]) -> dict[str, Any]:
    """Return a finding in the form of version 0.1, without its texts."""
    small = "below_floor" if finding["holdout"] is None else "not_replicated"

    def name_verdict(verdict: str) -> str:
        return small if verdict == "too_small" else verdict

    rest = finding.get("elsewhere")
    return _leave_out(finding, (*_TEXTS_OF_FINDINGS, "estimate")) | {
        # the contrast is of another statistic now
        "elsewhere": rest and _leave_out(rest, ("p_adjusted", "differs")),
        "verdict": name_verdict(finding["verdict"]),
        "sensitivity": {key: name_verdict(v) for key, v in finding["sensitivity"].items()},
    }


def _leave_out_p_values(report: dict[str, Any]) -> dict[str, Any]:
    parts = ("discovery", "holdout", "full")
    findings = [
        finding
        | {part: finding[part] and _leave_out(finding[part], ("p", "p_adjusted")) for part in parts}
        for finding in report["findings"]
    ]
    return report | {"findings": findings}


def _rank_older(finding: dict[str, Any]) -> tuple[int, float]:
    """Order findings by verdict, of which there were fewer, then by discovery lift."""
    return list(Verdict).index(finding["verdict"]), -abs(finding["discovery"]["lift"] or 0.0)


def _select_of_mode(mode: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    omitted = () if texts else _TEXTS_OF_MODES
    return _leave_out(mode, omitted) | {
        "alternatives": [_leave_out(other, omitted) for other in mode["alternatives"]]
    }


def _leave_out(section: dict[str, object], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in keys}
