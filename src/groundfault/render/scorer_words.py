"""How answers were scored, in sentences: by whom, what counts as failed, who counts otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from groundfault.auditing.report_schema import ReportData
from groundfault.readers.account import compare_official
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


def describe_counting(report: ReportData) -> Iterator[str]:
    """What counts as failed because the caller said so, and where the tool's own count differs."""
    yield from describe_counted(report.counted_as_failed)
    account = report.manifest.account
    if account is not None:
        counted = report.manifest.roles.count_as_failed
        figures = [log.official for log in account.logs if log.official]
        # of some models alone where others were left out; configurations have other names
        mine = [each for each in figures if each.model in (report.manifest.models or ())]
        for line in compare_official(mine or figures, counted):
            yield f"{words.clean(line)}."


def describe_counted(counts: Mapping[str, int]) -> Iterator[str]:
    """Which rows count as failed because the caller said so; nothing where none does."""
    if counts:
        rows = " and ".join(f"{words.count(n)} {status}" for status, n in counts.items())
        noun = "row counts" if sum(counts.values()) == 1 else "rows count"
        yield f"{rows} {noun} as failed here, as asked (--count-as-failed)."
