"""Verification: recompute a report from its manifest and evidence, and compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from groundfault import judges
from groundfault.auditing.assemble import assemble
from groundfault.auditing.copies import take_each_for_a_unit
from groundfault.auditing.flow import judge_audit
from groundfault.auditing.prepared import prepare
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import (
    SCHEMA_VERSION,
    Manifest,
    RecordedOpening,
    ReportData,
    ReportHashes,
    to_plain,
)
from groundfault.auditing.report_versions import read_report
from groundfault.auditing.verification_result import (
    CheckStatus,
    Verification,
    VerificationCheck,
    judge_differences,
)
from groundfault.base.json_diff import differences_of
from groundfault.base.ledgers import LedgerChoice, find_witness, is_waived
from groundfault.base.openings import Look, Opening
from groundfault.base.registry import load_object
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Verdict
from groundfault.core.roles import LISTS
from groundfault.errors import InputError, LedgerError, PlanError

if TYPE_CHECKING:
    from groundfault.core.judge import Judge
    from groundfault.readers import Reader

# fields that may differ between two machines that agree on every finding; the judge is repeated
# by its name, which leaves no reason to choose it
_VOLATILE = ("schema_version", "groundfault_version", "judge_reason")
_VOLATILE_MANIFEST = ("python", "numpy", "polars", "sources")
# sentences are made from the numbers that are compared anyway: a later version may phrase them
# better, and must not fail the reports of an older one
_TEXTS = ("guarantee", "conclusion", "hints", "ledger", "parts")
_TEXTS_OF_FINDINGS = ("reason", "sentence", "opposite")
_TEXTS_OF_MODES = ("meaning", "conditions")
# what openings of 0.1 do not record
_LATER = ("holdout", "all_outcomes", "all_before", "looks")
# what an audit could have found was computed by a coarser rule, and estimates were not corrected
_LATER_NUMBERS = ("minimum_detectable_lift", "power")

Rerun = Callable[[Evidence], Report]
DERIVATIONS = {"taxonomy": "groundfault.taxonomy.use.claims:repeat_claims"}
"""Kinds of `Derivation`, and who audits such evidence again.

Each is called with the evidence as its sources have it, the manifest, the folder of the report and
a function that repeats the audit of some evidence; it returns the report.
"""


def verify(
    directory: str | Path,
    *,
    evidence: str | Path | None = None,
    ledger: LedgerChoice = True,
    judge: Judge | None = None,
    reader: Reader | None = None,
) -> Verification:
    """Recompute a report and compare every number, verdict and hash.

    Sentences are compared, too, where this version of groundfault wrote them; another version may
    phrase them differently.

    Parameters
    ----------
    directory : path
        Where ``Report.write`` wrote report.json and library.json. Of claims about a taxonomy's
        clusters, below the directory of the taxonomy.
    evidence : path, optional
        Where the evidence is now, if it has moved.
    ledger : Ledger, path, URL or bool, optional
        The ledger to check the report's opening against. True is the one that $GROUNDFAULT_LEDGER
        names, else groundfault-ledger.db in the current folder if the report names that one. What
        a report names is never opened for that alone: it may be a server of anybody's.
    judge : Judge, optional
        The judge of the report, where it was passed as an object and no installed package
        registers one under its name.
    reader : Reader, optional
        The reader of its logs, likewise.

    Raises
    ------
    InputError
        If the directory holds no report, or its evidence is not there.
    PlanError
        If the judge or the reader is not known by the name in the report, and was not passed.
    """
    place = Path(directory)
    report_file = read_report(place)
    data, library = report_file.data, Library.load(place / "library.json")
    repeat = partial(_repeat_audit, data, library, judge)
    sources = read_evidence_again(data, place, evidence, reader)
    if data.manifest.derivation is None:
        report = repeat(select_audited(sources, data.manifest))
    else:
        report = _rerun_of(data.manifest)(sources, data.manifest, place, repeat)
    texts = report_file.schema_version == SCHEMA_VERSION and data.groundfault_version == version(
        "groundfault"
    )
    again = report.data
    if data.grader is None:
        # nor did they look for evidence about the grader
        again = msgspec.structs.replace(again, grader=None)
    if data.units is None:
        # reports of before keep no record of units
        again = msgspec.structs.replace(again, units=None)
    before, after = (_comparable(each, texts=texts) for each in (data, again))
    if not texts and _is_graded(data):
        # their p-values are of another statistic now, and sampled
        before, after = map(_leave_out_p_values, (before, after))
    differences = list(differences_of(before, after))
    what = "every number, verdict and sentence follows from the evidence and the plan"
    return Verification(
        (judge_differences(differences, what), _check_ledger(data.ledger, data.hashes, ledger))
    )


def _repeat_audit(
    data: ReportData, library: Library, judge: Judge | None, evidence: Evidence
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
    if data.units is None:
        # reports of before took copies for examples of their own
        evidence = take_each_for_a_unit(evidence)
    prepared = prepare(evidence, plan, library, finders=(), compare=data.manifest.compare)
    results = judge_audit(
        # which candidates were asked for, the library does not tell
        replace(prepared, own_rules=data.manifest.own_rules),
        robustness=data.robustness.splits if data.robustness else 0,
        # reports of 0.1.0 name none
        modes=data.mode_search is not None,
        texts=any(example.texts for mode in data.modes for example in mode.sample),
        # to verify is no further look: what was recorded is taken as it is stated, and checked
        ledger=None,
    )
    opening = None if data.ledger is None else _read_opening(data.ledger)
    return assemble(replace(results, opening=opening))


def _rerun_of(manifest: Manifest) -> Callable[[Evidence, Manifest, Path, Rerun], Report]:
    assert manifest.derivation is not None
    kind = manifest.derivation.kind
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
    evidence: str | Path | None = None,
    reader: Reader | None = None,
) -> Evidence:
    """Read the evidence of a report again, with the settings it was read with.

    It holds all models, also those that the report is not about.

    Parameters
    ----------
    data : ReportData
    directory : path
        Where the report is.
    evidence : path, optional
        Where the evidence is now, if it has moved.
    reader : Reader, optional
        As in `verify`.

    Raises
    ------
    InputError
        If the evidence is not there.
    """
    manifest = data.manifest
    roles = to_plain(manifest.roles)
    if manifest.reading is not None:
        columns = {role: roles[role] for role in ("group", "split", *LISTS)}
        reading = msgspec.structs.asdict(manifest.reading)
        if reader is not None:
            reading["reader"] = reader
        sources = [evidence] if evidence else manifest.sources
        return Evidence.from_logs(*sources, **reading, **columns)
    if roles.pop("numbered"):
        roles["id"] = None
    return Evidence.from_table(_find_table(evidence, manifest.sources, Path(directory)), **roles)


def select_audited(evidence: Evidence, manifest: Manifest) -> Evidence:
    """Of all models and rows of a report's sources, those that it is about."""
    models, where = manifest.models, manifest.where
    if models is not None and set(models) != set(evidence.models):
        evidence = evidence.select_model(*models)
    return evidence if where in (None, evidence.selection) else evidence.where(where)


def _find_table(evidence: str | Path | None, sources: tuple[str, ...], directory: Path) -> Path:
    if evidence is not None:
        return Path(evidence)
    if not sources:
        raise InputError(
            "the report is of a table in memory; say where the evidence is with --evidence"
        )
    first = Path(sources[0])
    if first.is_absolute() and not first.exists() and (directory / first.name).exists():
        return directory / first.name
    if not first.exists():
        raise InputError(f"the evidence {first} is not there; say where it is with --evidence")
    return first if len(sources) == 1 else first.parent


def _comparable(data: ReportData, *, texts: bool) -> dict[str, Any]:
    """The fields that have to be equal in a report and its recomputation."""
    report = to_plain(data)
    top = _VOLATILE if texts else (*_VOLATILE, *_TEXTS, *_LATER_NUMBERS)
    findings = report["findings"]
    if not texts:
        findings = sorted(map(_make_older, findings), key=_rank_older)
    return _leave_out(report, top) | {
        "manifest": _leave_out(report["manifest"], _VOLATILE_MANIFEST),
        "findings": findings,
        "modes": [_comparable_mode(mode, texts=texts) for mode in report["modes"]],
        "mode_search": report["mode_search"]
        and _leave_out(report["mode_search"], () if texts else ("remarks",)),
    }


def _make_older(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding as version 0.1 would have told it, without its texts."""
    small = "below_floor" if finding["holdout"] is None else "not_replicated"

    def name_verdict(verdict: str) -> str:
        return small if verdict == "too_small" else verdict

    return _leave_out(finding, (*_TEXTS_OF_FINDINGS, "estimate")) | {
        "verdict": name_verdict(finding["verdict"]),
        "sensitivity": {key: name_verdict(v) for key, v in finding["sensitivity"].items()},
    }


def _is_graded(data: ReportData) -> bool:
    """Whether some losses are neither 0 nor 1, as sums of them show."""
    cells = [cell for f in data.findings for cell in (f.discovery, f.full)]
    return any(not float(x).is_integer() for c in cells for x in (c.on_errors, c.off_errors))


def _leave_out_p_values(report: dict[str, Any]) -> dict[str, Any]:
    parts = ("discovery", "holdout", "full")
    findings = [
        finding
        | {part: finding[part] and _leave_out(finding[part], ("p", "p_adjusted")) for part in parts}
        for finding in report["findings"]
    ]
    return report | {"findings": findings}


def _rank_older(finding: dict[str, Any]) -> tuple[int, float]:
    """The order of findings: by verdict, of which there were fewer, then by discovery lift."""
    return list(Verdict).index(finding["verdict"]), -abs(finding["discovery"]["lift"] or 0.0)


def _comparable_mode(mode: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    """A mode without the texts of its examples, which a report may leave out."""
    omitted = () if texts else _TEXTS_OF_MODES
    return _leave_out(mode, omitted) | {
        "sample": [_leave_out(example, ("texts",)) for example in mode["sample"]],
        "alternatives": [_leave_out(other, omitted) for other in mode["alternatives"]],
    }


def _leave_out(section: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in keys}


def _read_opening(entry: RecordedOpening) -> Opening:
    content = msgspec.structs.asdict(entry)
    del content["sentence"]
    looks = tuple(Look(look.rule, look.level) for look in entry.looks)
    return Opening(**{**content, "looks": looks})


def _check_ledger(
    entry: RecordedOpening | None, hashes: ReportHashes, ledger: LedgerChoice
) -> VerificationCheck:
    """Whether the ledger holds the opening as the report states it."""
    state = partial(VerificationCheck, "ledger")
    # a caller who does without a ledger says so; that there is none to ask is no success
    absent: CheckStatus = "waived" if is_waived(ledger) else "unchecked"
    if entry is None:
        return state(absent, "the opening of the holdout was not recorded")
    book = find_witness(ledger, entry.path)
    if book is None:
        return state(
            absent,
            f"the opening was not checked: the report names the ledger {entry.path}, and no "
            "ledger is opened because a report names it; name it with --ledger",
        )
    try:
        opening = book.describe_opening(entry.head, msgspec.structs.asdict(hashes))
    except (LedgerError, InputError) as error:
        return state("failed", f"the ledger contradicts the report: {error}")
    stated = _read_opening(entry)
    # events and reports of 0.1 say less
    names = [f.name for f in fields(Opening) if f.name not in ("path", *_LATER)]
    for name in (*names, *(_LATER if entry.looks else ())):
        if getattr(stated, name) != getattr(opening, name):
            return state(
                "failed",
                f"the ledger contradicts the report: ledger.{name} is stated as "
                f"{getattr(stated, name)!r}, and recorded as {getattr(opening, name)!r}",
            )
    return state("passed", f"the ledger {book.place} is unbroken and holds this opening")
