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

from groundfault.auditing.messages import format_percent
from groundfault.core.plan import exact

if TYPE_CHECKING:
    from groundfault.base.openings import Look, Opening
    from groundfault.core.judge import Judge
    from groundfault.core.plan import Plan

FAMILY = "family-wise error"
DISCOVERIES = "false discovery rate"

_HOLDOUT = "what reached the holdout"
_ALL = "{size} candidates"
_UNCHOSEN = "if none was chosen by what an earlier one showed"


class _Rate(NamedTuple):
    """The error rate that a judge bounds, over what, and on which condition."""

    name: str
    over: str
    condition: str = ""


_RATES = {
    "janus": _Rate(FAMILY, _HOLDOUT),
    "split-holm": _Rate(FAMILY, _HOLDOUT),
    "e-holm": _Rate(FAMILY, _HOLDOUT),
    "max-t": _Rate(FAMILY, _ALL),
    "holm": _Rate(FAMILY, _ALL),
    "bh": _Rate(DISCOVERIES, _ALL, "if they depend positively"),
    "by": _Rate(DISCOVERIES, _ALL),
    "multisplit-e": _Rate(DISCOVERIES, _ALL),
}
_WITHOUT_RATE = {
    "janus-a": "screened by decoys and repeated on the holdout; no error rate is guaranteed",
    "janus-lite": "screened by decoys and repeated on the holdout; no error rate is guaranteed",
}
_OWN = "see the judge's own documentation for what a confirmation is worth"


def spend_level(judge: Judge, plan: Plan) -> float | None:
    """The error level that one look by this judge spends; None where it guarantees none."""
    rate = _RATES.get(judge.name)
    if rate is None:
        return None
    return float(plan.q if rate.name == DISCOVERIES else plan.alpha)


def describe_level(judge: Judge, plan: Plan, size: int) -> str:
    """The error rate that a confirmation guarantees in a first look at the outcomes.

    Parameters
    ----------
    judge : Judge
    plan : Plan
    size : int
        Candidates that were judged.
    """
    rate = _RATES.get(judge.name)
    if rate is None:
        return _WITHOUT_RATE.get(judge.name, _OWN)
    level = format_percent(spend_level(judge, plan) or 0)
    text = f"{rate.name} at most {level} over {rate.over.format(size=size)}"
    return f"{text}, {rate.condition}" if rate.condition else text


def describe_guarantee(judge: Judge, plan: Plan, size: int, opening: Opening | None) -> str:
    """The error rate that a confirmation guarantees over this look and all before it.

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
    if opening is None and judge.name in _RATES:
        text += ", if this is the first look at these outcomes (not recorded)"
    return text


def describe_looks(looks: Sequence[Look], times: int) -> str:
    """The error rate that is guaranteed over several looks at the same outcomes.

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
    rates = [_RATES.get(look.rule) for look in looks]
    levels = [look.level for look in looks]
    total = sum((exact(level) for level in levels if level is not None), Fraction(0))
    if len(looks) < times or None in levels or None in rates or total >= 1:
        return f"no error rate is guaranteed any more, after {times} looks at these outcomes"
    conditions = list(dict.fromkeys(rate.condition for rate in rates if rate and rate.condition))
    names = {rate.name for rate in rates if rate}
    name = DISCOVERIES if DISCOVERIES in names else FAMILY
    return (
        f"{name} at most {format_percent(float(total))} over the {times} looks at these outcomes, "
        + " and ".join([*conditions, _UNCHOSEN])
    )
