"""Which scorer an audit is about, in a sentence."""

from __future__ import annotations

from groundfault.auditing.report_schema import ReportData
from groundfault.render import words

_MAX_NAMES = 8


def describe_scorer(report: ReportData) -> str:
    """Whose score counts, and who else scored; empty where one scorer did alone."""
    account, reading = report.manifest.account, report.manifest.reading
    if account is None or not account.outcome:
        return ""
    others = [name for name in account.scorers if name and name not in account.outcome]
    if reading is not None and reading.disagreement:
        first, second = (words.clean(name) for name in reading.disagreement)
        return (
            f"Audited here: where the scorers {first} and {second} differ. A failure is an answer "
            "on which they do."
        )
    mine = words.listing([words.clean(name) for name in account.outcome], _MAX_NAMES)
    if not others:
        return f"Scored by {mine}, each on its own task."
    beside = words.listing([words.clean(name) for name in others], _MAX_NAMES)
    return f"Scored by {mine}; also in the logs: {beside} (--scorer NAME, or --every-scorer)."
