"""What a confirmation is worth: the error rate that is guaranteed over all looks at the outcomes.

A judge's level holds for one look at outcomes that nobody had seen. Each further look is another
chance of a false confirmation, whatever was changed in between: the seed, the judge, a threshold or
the candidates. By the union bound the chance of any is at most the sum of the levels, which is what
is said then; from 100 % on nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from groundfault import judges
from groundfault.auditing.messages import format_percent
from groundfault.core.judge import bounded_rate
from groundfault.core.plan import to_fraction
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.base.holdout_events import Look, Opening
    from groundfault.core.judge import Judge
    from groundfault.core.plan import Plan

FAMILY = "family-wise error"
DISCOVERIES = "false discovery rate"

_HOLDOUT = "what reached the holdout"
_ALL = "{candidates}"
_UNCHOSEN = "if none was chosen by what an earlier one showed"


class _Rate(NamedTuple):
    """The error rate that a judge bounds, over what, and on which condition."""

    name: str
    over: str
    condition: str = ""


# rules that are no judges
_OTHERS = {"e-holm": _Rate(FAMILY, _HOLDOUT)}
_NONE = "screened by decoys and repeated on the holdout; no error rate is guaranteed"
_OWN = "see the judge's own documentation for what a confirmation is worth"


def _rate_of(judge: Judge) -> _Rate | None:
    """What a judge says that it bounds; None where it bounds nothing, or does not say."""
    bounds = bounded_rate(judge)
    if bounds is None or bounds == "none":
        return None
    return _Rate(
        FAMILY if bounds == "family-wise" else DISCOVERIES,
        _ALL if judge.confirmation == "none" else _HOLDOUT,
        getattr(judge, "condition", ""),
    )


def _rate_of_rule(name: str) -> _Rate | None:
    """Return the same of a name, such as a ledger has."""
    if name in _OTHERS:
        return _OTHERS[name]
    try:
        return _rate_of(judges.get(name))
    except PlanError:
        # of a package that is not installed here
        return None


def spend_level(judge: Judge, plan: Plan) -> float | None:
    """Return the error level that one look by this judge spends; None where it guarantees none."""
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
        What the ledger says of this look and those before it. Where nothing is recorded, nobody
        knows of any, and the level holds on the condition that there were none.
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
        Their rules and levels, as far as these are known.
    times : int
        How many there were.

    Notes
    -----
    The sum of their levels: a family-wise error if all looks bound one, else a false discovery
    rate, which a family-wise error bounds too. It holds for any report that is picked from the
    looks, as long as what each looked at does not depend on what an earlier one showed; candidates
    or thresholds that were made from it have no level at all.
    """
    rates = [_rate_of_rule(look.rule) for look in looks]
    levels = [look.level for look in looks]
    total = sum((to_fraction(level) for level in levels if level is not None), Fraction(0))
    if len(looks) < times or None in levels or None in rates or total >= 1:
        return f"no error rate is guaranteed any more, after {times} looks at these outcomes"
    # "they" would be the looks
    conditions = list(
        dict.fromkeys(
            rate.condition.replace("they", "candidates")
            for rate in rates
            if rate and rate.condition
        )
    )
    names = {rate.name for rate in rates if rate}
    name = DISCOVERIES if DISCOVERIES in names else FAMILY
    return (
        f"{name} at most {format_percent(float(total))} over the {times} looks at these outcomes, "
        + " and ".join([*conditions, _UNCHOSEN])
    )
