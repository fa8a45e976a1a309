"""The judge of a plan that names none: what finders see decides."""

from __future__ import annotations

from dataclasses import replace

from groundfault.core.plan import AUTO, Plan
from groundfault.core.roles import Roles

# 9,999 decide no more than 999 where the level is 0.1, and take ten times as long
_PERMUTATIONS = 999


def choose_judge(plan: Plan, roles: Roles, *, mined: bool) -> tuple[Plan, str]:
    """The plan with a judge in place of ``auto``, and why it is that one.

    Parameters
    ----------
    plan : Plan
        One that names its judge is returned as it is, without a reason.
    roles : Roles
        Of the evidence.
    mined : bool
        Whether a candidate was, or a finder of the audit will be, led by outcomes of the evidence.

    Notes
    -----
    Rules that were fixed by attributes and texts alone owe nothing to the outcomes, so all of these
    may test them. What was selected by outcomes needs others, which are held out. ``max-t`` draws
    999 permutations here, unless the plan asks for another number than 9,999.
    """
    if plan.judge != AUTO:
        return plan, ""
    if mined:
        reason = "a candidate was found by looking at outcomes, so others are held out to test it"
    elif roles.split is not None:
        reason = f"the column {roles.split!r} says what is held out"
    elif plan.asks_for_holdout:
        reason = "the plan asks for a holdout"
    else:
        usual = plan.permutations == Plan.permutations
        count = _PERMUTATIONS if usual else plan.permutations
        return replace(plan, judge="max-t", permutations=count), (
            "no candidate was chosen by looking at outcomes, so all units may test all of them and "
            "nothing is held out: judged by max-t"
        )
    return replace(plan, judge="split-holm"), f"{reason}: judged by split-holm"
