"""A report and its recomputation: which fields have to be equal, and where they differ."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import msgspec

from groundfault.auditing.report_schema import ReportData, to_plain
from groundfault.base.json_diff import differences_of
from groundfault.core.finding import Verdict

# fields that may differ between two machines that agree on every finding; the judge is repeated
# by its name, which leaves no reason to choose it
_VOLATILE = ("schema_version", "groundfault_version", "judge_reason")
_VOLATILE_MANIFEST = ("python", "numpy", "polars", "sources")
# sentences are made from the numbers that are compared anyway: a later version may phrase them
# better, and must not fail the reports of an older one
_TEXTS = ("guarantee", "conclusion", "hints", "ledger", "parts")
_TEXTS_OF_FINDINGS = ("reason", "sentence", "opposite")
_TEXTS_OF_MODES = ("meaning", "conditions")
# what an audit could have found was computed by a coarser rule, and estimates were not corrected
_LATER_NUMBERS = ("minimum_detectable_lift", "power")


def compare_reports(stated: ReportData, again: ReportData, *, same_version: bool) -> list[str]:
    """Return where a report and its recomputation differ, each as "where: stated, recomputed".

    Parameters
    ----------
    stated, again : ReportData
    same_version : bool
        Whether this version of groundfault wrote the report. Another one phrases sentences in its
        own way, and an earlier one left out what it did not know.
    """
    if not same_version:
        again = _leave_out_later(stated, again)
    before, after = (_select_comparable(each, texts=same_version) for each in (stated, again))
    if not same_version and _is_graded(stated):
        # their p-values are of another statistic now, and sampled
        before, after = map(_leave_out_p_values, (before, after))
    return list(differences_of(before, after))


def _leave_out_later(stated: ReportData, again: ReportData) -> ReportData:
    # a report that keeps no record of units, or did not look for evidence about the grader
    absent = {name: None for name in ("grader", "units") if getattr(stated, name) is None}
    return msgspec.structs.replace(again, **absent)


def _select_comparable(data: ReportData, *, texts: bool) -> dict[str, Any]:
    """Return the fields that have to be equal in a report and its recomputation."""
    report = _forget_places(to_plain(data))
    top = _VOLATILE if texts else (*_VOLATILE, *_TEXTS, *_LATER_NUMBERS)
    findings = report["findings"]
    if not texts:
        findings = sorted(map(_make_older, findings), key=_rank_older)
    return _leave_out(report, top) | {
        "manifest": _select_of_manifest(report["manifest"], texts=texts),
        "findings": findings,
        "modes": [_select_of_mode(mode, texts=texts) for mode in report["modes"]],
        "mode_search": report["mode_search"]
        and _leave_out(report["mode_search"], () if texts else ("remarks",)),
    }


def _forget_places(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report as it would be if its logs had moved: their digests say which they are."""
    account = report["manifest"]["account"]
    if account is None:
        return report
    hints = [*report["hints"]]
    for number, log in enumerate(account["logs"]):
        hints = [hint.replace(log["path"], f"log {number}") for hint in hints]
    places = {
        "logs": [log | {"path": ""} for log in account["logs"]],
        "unread": [PurePath(place).name for place in account["unread"]],
    }
    return report | {
        "hints": hints,
        "manifest": report["manifest"] | {"account": account | places},
    }


def _select_of_manifest(manifest: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    account = manifest["account"]
    if account is not None and not texts:
        # earlier versions did not ask what the tool itself counts
        logs = [_leave_out(log, ("official",)) for log in account["logs"]]
        manifest = manifest | {"account": account | {"logs": logs}}
    return _leave_out(manifest, _VOLATILE_MANIFEST)


def _make_older(finding: dict[str, Any]) -> dict[str, Any]:
    """Return a finding as version 0.1 would have told it, without its texts."""
    small = "below_floor" if finding["holdout"] is None else "not_replicated"

    def name_verdict(verdict: str) -> str:
        return small if verdict == "too_small" else verdict

    return _leave_out(finding, (*_TEXTS_OF_FINDINGS, "estimate")) | {
        "verdict": name_verdict(finding["verdict"]),
        "sensitivity": {key: name_verdict(v) for key, v in finding["sensitivity"].items()},
    }


def _is_graded(data: ReportData) -> bool:
    """Return whether some losses are neither 0 nor 1, as sums of them show."""
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


def _select_of_mode(mode: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    omitted = () if texts else _TEXTS_OF_MODES
    return _leave_out(mode, omitted) | {
        "alternatives": [_leave_out(other, omitted) for other in mode["alternatives"]],
    }


def _leave_out(section: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in keys}
