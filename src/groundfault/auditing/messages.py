"""Sentences about findings: association, never cause; selected findings are called selected."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from groundfault import judges
from groundfault.base.reading import read_beside
from groundfault.core.finding import Finding, Verdict
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.status import Status
from groundfault.errors import PlanError, list_some
from groundfault.judges.rule import bounded_rate
from groundfault.modes.mode import EVERY_MODEL, Mode, ModeChange, ModeSearch

if TYPE_CHECKING:
    from groundfault.base.holdout_events import Look, Opening


NOTHING = "No reportable finding"
"""The headline of a report that confirms nothing, and how its conclusion begins."""
REASONS: dict[str, str] = tomllib.loads(read_beside(__file__, "reasons.toml"))


CHANGES = (
    ("fails", "more often", "less often"),
    ("has", "a larger mean loss", "a smaller mean loss"),
)
"""Verb and comparison of a model that is worse, or better: with pass and fail, and with losses."""
UNNAMED = "ids or rare values, with too few examples of each"
NEVER_REPEATS = "numbers that never repeat, taken for ids"
"""Reasons that rules leave out a column with too little information about many examples."""


def was_tested(search: ModeSearch | None, findings: Sequence[Finding]) -> bool:
    """Return whether any rule or candidate could be tested."""
    classes = {one.name for one in search.classes} - {"overall"} if search else ()
    return bool(classes) or any(f.verdict is not Verdict.UNTESTABLE for f in findings)


def describe_unused(unused: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Describe which columns no rule names, a sentence without a full stop for each reason."""
    for reason, names in unused.items():
        yield f"not used in rules: {list_some(names)} ({reason})"


def write_reason(verdict: Verdict, codes: tuple[str, ...], judge: Judge, unit: str) -> str:
    """Return the reason of a verdict, with its codes in front."""
    if codes:
        return explain_codes(codes, unit)
    if verdict is Verdict.BELOW_FLOOR:
        if judge.confirmation == "none":
            return "not beyond what chance gives after the correction for many candidates"
        return (
            "its difference on discovery does not clear the floor that decoys as frequent set"
            if judge.lift_ranked
            else "its discovery effect is smaller than the least worth confirming"
        )
    if judge.confirmation == "none":
        return f"stands after the correction for many candidates, on all {unit}s"
    return "cleared the screen on discovery and repeated on the holdout"


def explain_codes(codes: tuple[str, ...], unit: str) -> str:
    """Return codes and their explanations; empty without codes."""
    # codes in front, so that scripts can match them although sentences change
    message = "; ".join(explain_code(code, unit) for code in codes)
    return f"{', '.join(codes)}: {message}" if codes else ""


def explain_code(code: str, unit: str) -> str:
    """Return what a code means where an example, or a group, is counted."""
    return REASONS.get(code, code).replace("examples", f"{unit}s")


def write_sentence(finding: Finding, plan: Plan, guarantee: str, *, is_graded: bool = False) -> str:
    """Return the full sentence about one finding, on the side with more failures.

    Parameters
    ----------
    finding : Finding
        Its own sentence is not read.
    plan : Plan
    guarantee : str
        Guarantee of a confirmation, see `describe_guarantee`.
    is_graded : bool
        Whether losses are graded: a rate is then a mean loss.
    """
    face = finding.face_failures(plan.effect)
    what = "losses" if is_graded else "failures"
    what += f" of {face.outcome}" if face.outcome else ""
    cell, meaning = face.holdout or face.discovery, face.meaning
    words = ("larger", "smaller") if is_graded else ("more frequent", "less frequent")
    differ = f"{what} are {words[(cell.lift or 0) <= 0]} when {meaning}"
    of = f" ({what})" if face.outcome else ""
    if face.verdict is Verdict.UNTESTABLE:
        return f"Not tested{of}: {meaning}."
    if face.verdict is Verdict.CONFIRMED:
        return f"Confirmed association: {differ} ({_numbers(face, plan, is_graded)}; {guarantee})."
    if face.verdict is Verdict.TOO_SMALL:
        return (
            f"Real, and smaller than was asked for: {differ} "
            f"({_numbers(face, plan, is_graded)}; {_describe_least(plan)})."
        )
    discovery = format_points(face.discovery.lift)
    if face.verdict is Verdict.NOT_REPLICATED:
        return (
            f"Screened, not confirmed{of}: {meaning}. The difference on discovery, {discovery} "
            f"points, was selected as one of the largest; held out it is "
            f"{format_points(cell.lift)} points."
        )
    below = "Not beyond chance" if face.holdout is None else "Below the screen"
    return f"{below}{of}: {meaning} (difference on discovery {discovery} points)."


def _numbers(finding: Finding, plan: Plan, is_graded: bool) -> str:
    """Write errors on and off the slice, the effect with its interval, and the p-value."""
    cell = finding.holdout or finding.discovery
    on, off = (
        f"{errors / n:.2f} of {n:,}" if is_graded else f"{count_errors(errors)} of {n:,}"
        for errors, n in ((cell.on_errors, cell.on), (cell.off_errors, cell.off))
    )
    name = "held-out difference" if finding.holdout else "difference"
    mean = "mean loss " if is_graded else ""
    return f"{mean}{on} that match, {off} others; {describe_effect(finding, plan, name)}"


def describe_effect(finding: Finding, plan: Plan, name: str) -> str:
    """Describe an effect, corrected for having passed a bar if the bar is known, and its p-value.

    Parameters
    ----------
    finding : Finding
    plan : Plan
    name : str
        Such as ``difference``.
    """
    cell, estimate = finding.holdout or finding.discovery, finding.estimate
    effect = f"{name} {format_points(cell.lift)} points"
    if estimate is not None:
        is_ratio = plan.effect != "risk_difference"
        ratio = f"{plan.effect.replace('_', ' ')} {estimate.effect:.2f}"
        value = ratio if is_ratio else format_points(estimate.effect)
        effect += f", or {value} corrected for selection"
    elif finding.confirmed:
        effect += ", not corrected for selection"
    if ends := cell.interval if estimate is None else estimate.interval:
        effect += f" ({_interval(ends, plan)})"
    p = cell.p_adjusted if cell.p_adjusted is not None else cell.p
    return effect if p is None else f"{effect}; adjusted {equal_p(p)}"


def compare_models(first: str, second: str, change: float, *, is_graded: bool) -> str:
    """Say whether the second of two models fails more often, or has a larger mean loss.

    Examples
    --------
    >>> compare_models("old", "new", -0.1, is_graded=False)
    'new fails less often than old'
    """
    verb, more, less = CHANGES[is_graded]
    return f"{second} {verb} {more if change > 0 else less} than {first}"


def _describe_least(plan: Plan) -> str:
    if plan.effect == "risk_difference":
        return f"the least difference asked for is {100 * float(plan.min_lift or 0):g} points"
    return f"the least {plan.effect.replace('_', ' ')} asked for is {float(plan.min_ratio):g}"


def write_mode_sentence(mode: Mode) -> str:
    """Return the sentence about one failure mode: its rule, how often it fails, and a p-value."""
    of = f" ({mode.outcome})" if mode.outcome and mode.change is None else ""
    kind = "Failure mode" if mode.change is None else "Change"
    p = equal_p(max(mode.p_marginal, mode.p_conditional))
    return f"{kind}{of}: {mode.meaning}: {describe_rates(mode)} (adjusted {p})."


def describe_rates(
    mode: Mode, wrong: str = " wrong", unit: str = "example", *, averaged: bool = False
) -> str:
    """Describe how often failures are inside a mode's rule, and elsewhere.

    Examples
    --------
    >>> import msgspec
    >>> mode = msgspec.convert({"rule": "n > 1", "meaning": "n over 1", "conditions": ["n over 1"],
    ...     "outcome": "", "n": 69, "errors": 63, "n_outside": 931, "errors_outside": 205,
    ...     "n_new": 69, "errors_new": 63, "interval": [0.82, 0.96], "p_marginal": 0.001,
    ...     "p_conditional": 0.001}, Mode)
    >>> describe_rates(mode)
    '91% wrong (63 of 69), against 22% elsewhere'
    """
    if mode.change is not None:
        return _describe_change(mode, mode.change, wrong, unit)
    # the mean of copies that pass or fail is a rate, and no loss
    counts = f"{mode.n:,} {unit}{'s' * (mode.n != 1)}"
    elsewhere = f"elsewhere where {mode.context}" if mode.context else "elsewhere"
    graded = mode.errors % 1 or mode.errors_outside % 1
    if mode.outcome == EVERY_MODEL:
        inside = f"{format_rate(mode.rate)}{wrong} on average over the models ({counts})"
    elif graded and averaged:
        inside = f"{format_rate(mode.rate)}{wrong} ({counts})"
    elif graded:
        inside = f"mean loss {mode.rate:.2f} ({counts})"
        return f"{inside}, against {mode.rate_outside:.2f} {elsewhere}"
    else:
        counts = f"{int(mode.errors):,} of {mode.n:,}"
        inside = f"{format_rate(mode.rate)}{wrong} ({counts})"
    if not mode.n_outside:
        return inside
    if not mode.errors_outside:
        return f"{inside}, against none of {mode.n_outside:,} {elsewhere}"
    if mode.rate_outside < _RARE:
        often = f"{format_ratio(mode.rate / mode.rate_outside)} times as often as {elsewhere}"
        return f"{inside}, {often} ({format_rate(mode.rate_outside)})"
    return f"{inside}, against {format_rate(mode.rate_outside)} {elsewhere}"


def _describe_change(mode: Mode, change: ModeChange, wrong: str, unit: str) -> str:
    if mode.errors % 1 or change.before % 1:
        inside = f"mean loss {mode.rate:.2f} ({mode.n:,} {unit}{'s' * (mode.n != 1)})"
        before = f"{mode.rate_before:.2f}"
    else:
        counts = f"{count_errors(mode.errors)} of {mode.n:,}"
        inside = f"{format_rate(mode.rate)}{wrong} ({counts})"
        of = "" if change.n_before is None else f" of {change.n_before:,}"
        before = f"{format_rate(mode.rate_before)} ({count_errors(change.before)}{of})"
    moved = f"{change.worse:,} got worse, {change.better:,} better"
    if mode.is_unpaired:
        moved = f"{format_points(change.difference)} points, like compared with like"
    return f"{inside}, before {before}; {moved}; elsewhere {format_points(change.elsewhere)} points"


def format_ratio(ratio: float) -> str:
    """Write a ratio in two digits, or in whole numbers."""
    return f"{ratio:.1f}" if ratio < 9.95 and f"{ratio:.1f}"[-1] != "0" else f"{ratio:,.0f}"


def count_errors(errors: float) -> str:
    """Write failures, or a sum of losses."""
    return f"{int(errors):,}" if errors % 1 == 0 else f"{errors:,.1f}"


def describe_missed(
    search: ModeSearch, units: str, outcome: str = "", *, is_graded: bool = False
) -> str:
    """Describe how many outcomes changed, and the rise that could have been missed.

    Parameters
    ----------
    search : ModeSearch
        For modes of a change.
    units : str
        Such as ``examples``.
    outcome : str
        The model, where there are several.
    is_graded : bool
    """
    rise = "A rise of the mean loss" if is_graded else "A rise of failures"
    worse, better = (f"{one.errors:,.0f}" for one in search.outcomes)
    changed = f"{worse} {units} got worse and {better} better"
    if search.like_for_like:
        now, then = (f"{one.n:,}" for one in search.outcomes)
        changed = (
            f"The runs are not paired: {better} of {then} {units} failed before, {worse} of {now} "
            "others now"
        )
    changed = f"{outcome + ': ' if outcome else ''}{changed}"
    parts = [
        f"{rise * 100:.0f} points in {format_percent(float(share))}"
        for share, rise in search.detectable.items()
        if rise is not None
    ]
    if not parts:
        return f"{changed}. {rise}, however large, could not be told from chance."
    first, *rest = parts
    missed = ", ".join([f"{first} of the {units}", *rest[:-1]])
    missed += f" or {rest[-1]}" if rest else ""
    return f"{changed}. {rise} below {missed} could have been missed."


def write_deciding(columns: Sequence[str]) -> str:
    """Return the headline about columns that decide the outcome, without a full stop.

    Examples
    --------
    >>> write_deciding(["kind", "topic"]).partition(":")[0]
    "'kind' and 1 more column decide the outcome"
    """
    first, *rest = columns
    head, mode, column = f"{first!r} decides", "your failure mode", quote(first)
    if rest:
        more = f"{len(rest)} more column{'s' * (len(rest) > 1)}"
        head, mode, column = f"{first!r} and {more} decide", "each is your failure mode", "COLUMN"
    return (
        f"{head} the outcome: {mode} if it is known before the answer (--allow-leakage {column}); "
        f"if it follows from it, --post-outcome {column}"
    )


# rates are read as "7 times as often" where they are rarer than this
_RARE = 0.1
_EXCLUDED = 0.05
"""Chance of seeing no failure at the stated rate: Clopper-Pearson's bound at the usual 95 %."""


def write_uniform(losses: Sequence[float], units: int, statuses: Mapping[str, int]) -> str:
    """Return a sentence if all outcomes are equal, without a full stop; else an empty text.

    Parameters
    ----------
    losses : sequence of float
        The smallest and the largest loss; empty if no unit was scored.
    units : int
        Independent units that were scored.
    statuses : mapping of str to int
        Rows of each status.

    Examples
    --------
    >>> write_uniform([0.0, 0.0], 2000, {"scored": 2000})
    '2,000 of 2,000 passed, so at most 0.15% of like examples fail (95% confidence)'
    >>> write_uniform([], 0, {"scored": 0, "refused": 3})
    'Nothing was scored: 3 refused'
    """
    names = {str(Status.ERROR): "crashed"}
    unscored_rows = [(n, names.get(s, s)) for s, n in statuses.items() if n and s != Status.SCORED]
    rest = ", ".join(f"{n:,} {name}" for n, name in unscored_rows)
    if not len(losses):
        return f"Nothing was scored: {rest}"
    low, high = losses
    if low != high:
        return ""
    rows, unscored = statuses[Status.SCORED], f" ({rest})" if rest else ""
    if low not in (0, 1):
        return f"All {rows:,} outcomes are the same loss, {low:g}{unscored}"
    did, other = ("failed", "pass") if low else ("passed", "fail")
    bound = float(f"{1 - _EXCLUDED ** (1 / units):.2g}")
    return (
        f"{rows:,} of {rows:,} {did}{unscored}, so at most {format_percent(bound)} of like "
        f"examples {other} ({format_percent(1 - _EXCLUDED)} confidence)"
    )


def write_conclusion(
    mdl: float | None,
    prevalence: float,
    reportable: int,
    unknown: str = "",
    deciding: Sequence[str] = (),
    uniform: str = "",
    *,
    is_graded: bool = False,
) -> str:
    """Return the sentence about the audit's power: never that there are no failure modes.

    ``reportable`` counts confirmed findings and failure modes; ``unknown`` says why the power is
    not known, if so; ``deciding`` names the columns that decide the outcome; ``uniform`` is the
    sentence from `write_uniform`.
    """
    head = "" if reportable else f"{uniform or NOTHING}. "
    head = f"{write_deciding(deciding)}. " if deciding else head
    if unknown:
        return f"{head}How large a difference this audit could have found is unknown: {unknown}."
    where = f"{prevalence:.0%} of the examples"
    if mdl is None and reportable:
        return (
            f"{head}A single explanation that holds for {where} could not have been found with 80% "
            "power; beside others, as here, the bar may be lower."
        )
    if mdl is None:
        return f"{head}This audit is too small to find a rule that holds for {where}."
    return (
        f"{head}A candidate that matches {where} is found four times in five if "
        f"{describe_excess(mdl, is_graded=is_graded)}. Smaller differences may be missed."
    )


def describe_excess(lift: float, *, is_graded: bool) -> str:
    """Describe a least excess of failures, or of the mean loss, rounded up: less is not promised.

    Examples
    --------
    >>> describe_excess(0.165, is_graded=False), describe_excess(0.165, is_graded=True)
    ('it fails 17 points more often than the rest', 'its mean loss is 0.17 above that of the rest')
    """
    # less the noise of a float: .29 is 28.999999999999996 points
    points = ceil(100 * lift - 1e-9)
    if is_graded:
        return f"its mean loss is {points / 100:.2f} above that of the rest"
    return f"it fails {points} points more often than the rest"


def format_points(value: float | None) -> str:
    """Return a difference of rates in percentage points, with a sign unless it is zero."""
    if value is None:
        return "undefined"
    points = 100 * value
    text = f"{points:+.0f}" if abs(points) >= _WHOLE_POINTS else f"{points:+.1f}"
    return text.replace("-", "−") if float(text) else "0"


_WHOLE_POINTS = 9.95
"""Points from which a tenth of one is left out: as rates are written."""


def equal_p(p: float) -> str:
    """Return "p = 0.031", or "p < 0.0001" where more digits tell a reader no more."""
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.{3 if p >= 0.001 else 4}f}"


def format_rate(value: float) -> str:
    """Return a share as a percentage of two or three digits; never 0% or 100% where it is not."""
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{value:.0%}" if value in (0, 1) or 0.0995 <= value < 0.995 else f"{value:.1%}"


def format_percent(level: float) -> str:
    """Return a level as a percentage."""
    return f"{100 * level:g}%"


def _interval(interval: tuple[float, float], plan: Plan) -> str:
    level = format_percent(1 - float(plan.alpha))
    if plan.effect == "risk_difference":
        return f"{level} interval {format_points(interval[0])} to {format_points(interval[1])}"
    return (
        f"{plan.effect.replace('_', ' ')} {level} interval {interval[0]:.2f} to {interval[1]:.2f}"
    )


FAMILY = "family-wise error"
DISCOVERIES = "false discovery rate"

_HOLDOUT = "the candidates tested on the holdout"
_ALL = "{candidates}"
_UNCHOSEN = "if no look was chosen by the result of an earlier one"


class _Rate(NamedTuple):
    """The error rate that a judge bounds, its hypotheses, and its condition."""

    name: str
    over: str
    condition: str = ""


# rules that are no judges
_OTHERS = {"e-holm": _Rate(FAMILY, _HOLDOUT)}
_NONE = "screened by decoys and repeated on the holdout; no error rate is guaranteed"
_OWN = "this judge states no error rate: see its own documentation"


def _rate_of(judge: Judge) -> _Rate | None:
    """Return the error rate that a judge says it bounds; None if it bounds or states no rate."""
    bounds = bounded_rate(judge)
    if bounds is None or bounds == "none":
        return None
    return _Rate(
        FAMILY if bounds == "family-wise" else DISCOVERIES,
        _ALL if judge.confirmation == "none" else _HOLDOUT,
        getattr(judge, "condition", ""),
    )


def _rate_of_rule(name: str) -> _Rate | None:
    """Return the same for a judge's name, as in a ledger."""
    if name in _OTHERS:
        return _OTHERS[name]
    try:
        return _rate_of(judges.get(name))
    except PlanError:
        # of a package that is not installed here
        return None


def spend_level(judge: Judge, plan: Plan) -> float | None:
    """Return the error level that one look by this judge spends; None without a guarantee."""
    rate = _rate_of(judge)
    if rate is None:
        return None
    return float(plan.q if rate.name == DISCOVERIES else plan.alpha)


def describe_level(judge: Judge, plan: Plan, size: int) -> str:
    """Return the error rate that a confirmation guarantees in a first look at the outcomes.

    Parameters
    ----------
    judge : Judge
    plan : Plan
    size : int
        Candidates that were judged.
    """
    rate = _rate_of(judge)
    if rate is None:
        return _OWN if bounded_rate(judge) is None else _NONE
    level = format_percent(spend_level(judge, plan) or 0)
    over = rate.over.format(candidates=f"{size} candidate{'s' if size != 1 else ''}")
    text = f"{rate.name} at most {level} over {over}"
    return f"{text}, {rate.condition}" if rate.condition else text


def describe_guarantee(judge: Judge, plan: Plan, size: int, opening: Opening | None) -> str:
    """Return the error rate that a confirmation guarantees over this look and all before it.

    Parameters
    ----------
    judge, plan, size
        As for `describe_level`.
    opening : Opening or None
        The ledger's record of this look and earlier looks. Without a record, the level holds on the
        condition that there were no earlier looks.
    """
    if opening is not None and opening.times > 1:
        return describe_looks(opening.looks, opening.times)
    text = describe_level(judge, plan, size)
    if opening is None and _rate_of(judge) is not None:
        text += ", if this is the first look at these outcomes (not recorded)"
    return text


def describe_looks(looks: Sequence[Look], times: int) -> str:
    """Return the error rate that is guaranteed over several looks at the same outcomes.

    Parameters
    ----------
    looks : sequence of Look
        Rules and levels of the looks, if known.
    times : int
        Number of looks.

    Notes
    -----
    The rate is the sum of their levels: a family-wise error rate if all looks bound one, else a
    false discovery rate, which a family-wise error rate also bounds. It holds for any report picked
    from the looks, if each look does not depend on the results of earlier ones. Candidates or
    thresholds made from earlier results have no error level.
    """
    rates = [_rate_of_rule(look.rule) for look in looks]
    levels = [look.level for look in looks]
    total = sum((to_fraction(level) for level in levels if level is not None), Fraction(0))
    if len(looks) < times or None in levels or None in rates or total >= 1:
        return f"no error rate is guaranteed any more, after {times} looks at these outcomes"
    # "they" would be the looks
    known = [rate for rate in rates if rate]
    conditions = dict.fromkeys(
        rate.condition.replace("they", "candidates") for rate in known if rate.condition
    )
    names = {rate.name for rate in known}
    name = DISCOVERIES if DISCOVERIES in names else FAMILY
    return (
        f"{name} at most {format_percent(float(total))} over the {times} looks at these outcomes, "
        + " and ".join([*conditions, _UNCHOSEN])
    )
