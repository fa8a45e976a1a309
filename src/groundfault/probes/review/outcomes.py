"""Outcomes: the loss of an audited row, or why it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.core.status import Status as Outcome
from groundfault.probes.running.runs import ProbeRow

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import Status

_UNSCORED: dict[str, Outcome] = {
    "extraction_artifact": Outcome.ARTEFACT,
    "format_artifact": Outcome.ARTEFACT,
    "invalid_prompt": Outcome.ARTEFACT,
    "disputed": Outcome.MISSING,
}
_UNANSWERED = {"refused": Outcome.REFUSED, "error": Outcome.ERROR}
_UNAUDITED = {"mismatch": Outcome.MISSING, "unreadable": Outcome.UNPARSED, "match": Outcome.SCORED}


def outcome(row: ProbeRow, status: Status) -> tuple[float | None, Outcome]:
    """The loss of an audited row, if it has one, and why it has none."""
    if status in ("confirmed_model_error", "no_error"):
        return float(status == "confirmed_model_error"), Outcome.SCORED
    reason = _UNSCORED.get(status) or _UNANSWERED.get(row.status) or _UNAUDITED[row.signal]
    return (0.0 if reason is Outcome.SCORED else None), reason
