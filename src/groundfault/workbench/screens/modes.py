"""The first screen: what fails, how much of it, and what could not be said; and all findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from groundfault.core.finding import Finding, Verdict
from groundfault.render import words
from groundfault.render.audit_groups import main_cell
from groundfault.render.audit_words import Outline
from groundfault.render.mode_words import ModeOutline
from groundfault.workbench.instrument import concerns_instrument
from groundfault.workbench.pages import bench_of, show_page
from groundfault.workbench.screen import Screen

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_ORDERS: dict[str, tuple[str, Callable[[Finding], Any]]] = {
    "lift": ("lift", lambda finding: -abs(main_cell(finding).lift or 0.0)),
    "p": ("p-value", lambda f: 2.0 if main_cell(f).p is None else main_cell(f).p),
    "n": ("size", lambda finding: -main_cell(finding).on),
    "name": ("name", lambda finding: finding.key),
}
_PLACES = {"": "mixed in", "first": "first", "only": "only", "out": "left out"}
"""Where findings about the instrument stand."""
_MAX_FINDINGS = 300


def show_modes(request: Request) -> Response:
    """The failure modes of the report, its findings, and its limits."""
    report = bench_of(request).report
    assert report is not None
    return show_page(
        request,
        "modes.html.j2",
        report=report,
        outline=Outline(report),
        modes=ModeOutline(report) if report.mode_search is not None else None,
        tally={str(verdict): number for verdict, number in report.counts().items()},
        instrument=[one for one in report.findings if concerns_instrument(report, one)],
    )


def list_findings(request: Request) -> Response:
    """All findings, with any verdict."""
    report, params = bench_of(request).report, request.query_params
    assert report is not None
    text, verdict = params.get("q", "").lower(), params.get("verdict", "")
    order, place = params.get("sort", "lift"), params.get("instrument", "")
    findings = [
        (finding, main_cell(finding), concerns_instrument(report, finding))
        for finding in map(Outline(report).face, report.findings)
        if verdict in ("", str(finding.verdict))
        and text in f"{finding.key} {finding.rule} {finding.source}".lower()
    ]
    if place in ("only", "out"):
        findings = [one for one in findings if one[2] == (place == "only")]
    _, rank = _ORDERS.get(order, _ORDERS["lift"])
    findings.sort(key=lambda one: (place == "first" and not one[2], rank(one[0])))
    return show_page(
        request,
        "findings.html.j2",
        findings=findings[:_MAX_FINDINGS],
        size=len(findings),
        total=len(report.findings),
        verdicts={str(one): words.VERDICTS[one] for one in Verdict},
        query={"q": params.get("q", ""), "verdict": verdict, "sort": order, "instrument": place},
        orders={name: label for name, (label, _) in _ORDERS.items()},
        places=_PLACES,
    )


SCREEN = Screen(
    "Modes",
    "/",
    (Route("/", show_modes), Route("/findings", list_findings)),
    key="M",
    shown=lambda bench: bench.report is not None,
)
