"""The first screen of an audit: data, failure modes, an example, the error level, next steps.

Everything else stands on a second tab of the page, and in a terminal behind ``--why``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from shlex import quote

from groundfault.auditing.hints import NO_COLUMN, NO_LEVEL
from groundfault.auditing.messages import DISCOVERIES, FAMILY, describe_excess
from groundfault.auditing.report_schema import ReportData
from groundfault.core.column_meaning import means_pass
from groundfault.readers.account import compare_official
from groundfault.render import mode_page, words
from groundfault.render.audit_words import Outline
from groundfault.render.highlights import quote_example
from groundfault.render.mode_words import TOO_FEW, ModeOutline
from groundfault.render.page import Content, Statements, notice, small

WHY, VERIFY = "How sure, and why", "Verify"
"""Tabs of a page beside the result."""
_MAX_UNUSED = 6
"""Columns in one line of what was left out."""


def list_first(outline: Outline, *, terminal: bool = False) -> Iterator[Content]:
    """Yield the first screen below the verdict: of a terminal three modes and one example."""
    report, search = outline.report, outline.report.mode_search
    yield small(describe_reading(outline))
    yield outline.selection, outline.overall, describe_counted(report.counted_as_failed)
    yield notice(words.name_failures(report.left_out))
    more = f" {words.plural(report.doubts - 1, 'more doubt')}: --why." * (report.doubts > 1)
    doubts = report.hints[: min(report.doubts, 1) if terminal else report.doubts]
    yield (notice(f"{words.capital(one)}.{more * terminal}") for one in doubts)
    if report.deciding:
        yield Statements(mode_page.list_deciding(report))
    if search is not None:
        yield mode_page.list_lead(ModeOutline(report), terminal=terminal)
    # below the modes, none of which is about answers
    yield notice(outline.instrument)
    # before failures that no rule explains, and after those that one does
    excluded = describe_excluded(outline)
    if excluded and not outline.is_finding:
        excluded += " To find smaller ones, add examples or test a rule you suspect (--candidate)."
    yield None if outline.is_finding else excluded
    sample = next((mode.sample for mode in report.modes if mode.sample), report.sample)
    kind, kinds = ("high loss", "high losses") if report.is_graded else ("failure", "failures")
    if terminal and (search is None or search.matrix or not report.modes):
        shown = sample[:1] if report.modes else sample[: mode_page.MAX_LISTED]
        lead = "For example " if report.modes else f"A {kind}: "
        yield (small(quote_example((example,), lead)) for example in shown)
    elif not report.modes and sample:
        yield mode_page.list_excerpts(sample, "", {"failing": f"Typical {kinds}"})
    # of a terminal one sentence alone: what a list is worth, or what nothing found excludes
    yield excluded if outline.is_finding and not terminal else None
    if own := set(report.manifest.own_rules):
        asked = [finding for finding in report.findings if finding.name in own]
        confirmed = words.count(sum(finding.confirmed for finding in asked))
        yield f"Candidates asked for: {confirmed} of {words.count(len(asked))} confirmed."
    yield small(name_unused(report.unused))
    yield small(describe_trust(outline, "--why" if terminal else WHY))


def describe_reading(outline: Outline) -> str:
    """Describe how outcomes were read, and whose score counts."""
    report, parts = outline.report, []
    roles = report.manifest.roles
    if report.manifest.grading:
        parts.append(f"Read {words.clean(report.manifest.grading)}.")
    elif roles.outcome and not roles.positive_is_good and means_pass(roles.outcome) is None:
        name = words.clean(roles.outcome)
        parts.append(f"Read 1 in {name} as a failure; if it is a pass: --positive-is-good.")
    return " ".join(filter(None, [*parts, describe_scorer(report)]))


def name_unused(unused: Mapping[str, Sequence[str]]) -> str:
    """Describe the columns that no rule names, by reason; empty if there are none."""
    parts = (
        f"{words.listing([words.clean(name) for name in columns], _MAX_UNUSED)} "
        f"({reason.partition(',')[0]})"
        for reason, columns in unused.items()
    )
    return f"Not used in rules: {'; '.join(parts)}." if unused else ""


def describe_excluded(outline: Outline) -> str:
    """Describe in the reader's units a problem that would have been named; empty if unknown."""
    report = outline.report
    unit, search = f"{report.unit}s", report.mode_search
    if report.uniform or any(NO_COLUMN in hint for hint in report.hints):
        return ""
    if search is not None and search.overall is not None:
        return ModeOutline(report).power
    if search is None or not search.detectable:
        lift = report.minimum_detectable_lift
        if lift is None or report.change is not None:
            return TOO_FEW if search is not None and report.unused else ""
        return (
            f"A rule for {words.level(report.power.prevalence)} of the {unit} is found four times "
            f"in five if {describe_excess(lift, is_graded=report.is_graded)}."
        )
    needs = [(float(share), rate) for share, rate in search.detectable.items() if rate is not None]
    if not needs:
        return TOO_FEW
    share, rate = min(needs, key=lambda pair: abs(pair[0] - _USUAL_SHARE))
    return (
        f"A problem in {words.level(share)} of the {unit} is found four times in five if "
        f"{words.rate(rate)} of them fail."
    )


_USUAL_SHARE = 0.1
"""Share of the examples inside a rule that one sentence is about: a tenth is easy to picture."""


def describe_trust(outline: Outline, details: str = "--why") -> str:
    """Describe in a line how often such a list is wrong, if a theorem bounds that; else empty.

    Empty if rows may belong together, or the outcomes were looked at too often.
    """
    report, search = outline.report, outline.report.mode_search
    opening = report.ledger
    times = 1 if opening is None else opening.times
    if not outline.is_finding or any(NO_LEVEL in hint for hint in report.hints):
        return ""
    if opening is not None and opening.holdout and opening.all_before:
        return outline.warning
    if search is not None and report.modes:
        level, noun, is_family = search.level, "change" if report.change else "mode", True
        is_assumed = search.bars == "permutation" and search.searched is None and not report.change
    else:
        is_family = report.guarantee.startswith(FAMILY)
        if not is_family and not report.guarantee.startswith(DISCOVERIES):
            return outline.warning or f"{words.capital(report.guarantee)}."
        level = words.decimal(report.plan.alpha if is_family else report.plan.q)
        noun = "finding"
        is_assumed = ", if" in report.guarantee.replace(", if this is the first look", "")
    if times > 1 and opening is not None:
        levels = [look.level for look in opening.looks]
        total = sum(Fraction(str(one)) for one in levels if one is not None)
        if len(levels) < times or None in levels or total >= 1:
            return f"No error level holds any more after {times} looks at these outcomes."
        level = float(total)
    looks = f" over {times} looks" if times > 1 else ""
    first = ", if this is a first look" if opening is None else ""
    why = f" (one assumption: {details})" if is_assumed and details else ""
    if not is_family:
        return f"On average at most {words.level(level)} of such findings are false{looks}{first}."
    chance = f"The chance of a false {noun} in this list is at most {words.level(level)}"
    return f"{chance}{looks}{first}{why}."


def name_next(path: object) -> str:
    """Name the report, and the commands that go on from here."""
    if not path:
        return "Next: add --out report/ to keep the report, or --why to see how sure it is"
    folder = quote(str(Path(str(path)).parent))
    return f"Report: {path} · next: groundfault open {folder} · groundfault show {folder} --why"


_MAX_SCORERS = 8
"""Scorers named in one sentence."""


def describe_scorer(report: ReportData) -> str:
    """Describe whose score counts, and who else scored; empty where one scorer did alone."""
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
    mine = words.listing([words.clean(name) for name in account.outcome], _MAX_SCORERS)
    if not others:
        return f"Scored by {mine}, each on its own task."
    beside = words.listing([words.clean(name) for name in others], _MAX_SCORERS)
    return f"Scored by {mine}; also in the logs: {beside} (--scorer NAME, or --every-scorer)."


def describe_counting(report: ReportData) -> Iterator[str]:
    """Describe which rows the caller counts as failed, and where the tool's own count differs."""
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
    """Describe which rows count as failed because the caller said so."""
    if counts:
        rows = " and ".join(f"{words.count(n)} {status}" for status, n in counts.items())
        noun = "row counts" if sum(counts.values()) == 1 else "rows count"
        yield f"{rows} {noun} as failed here, as asked (--count-as-failed)."
