"""Judges: `get` finds one by name, also those of packages; `choose_judge` takes one for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from groundfault.base.registry import open_registry
from groundfault.core.judge import Judge
from groundfault.core.plan import AUTO, NamedJudge, Plan
from groundfault.core.roles import Roles
from groundfault.errors import PlanError

_REGISTRY = open_registry("judge", "groundfault.judges")

NAMES = tuple(_REGISTRY.built_in)
# 9,999 decide no more than 999 where the level is 0.1, and take ten times as long
_PERMUTATIONS = 999


def get(judge: str | NamedJudge, settings: Mapping[str, Any] | None = None) -> Judge:
    """Return the judge of a name; a judge is returned as it is.

    Parameters
    ----------
    judge : str or Judge
        Names are of built-in judges, or registered under the entry-point group
        ``groundfault.judges``.
    settings : mapping, optional
        Of a judge that is named.

    Raises
    ------
    PlanError
        If there is none, it has no such setting, or its package cannot be imported.
    """
    if not isinstance(judge, str):
        return cast("Judge", judge)
    maker = _REGISTRY.get(judge)
    try:
        instance: Judge = maker(**settings or {})
    # wrong names of settings, from a plan or the command line
    except TypeError as error:
        raise PlanError(f"the judge {judge!r} cannot be made with its settings: {error}") from None
    return instance


def choose_judge(plan: Plan, roles: Roles, *, mined: bool) -> tuple[Plan, str]:
    """Return the plan with a judge in place of ``auto``, and why it is that one.

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
            "all rows were used, because the rules were fixed before anyone looked at outcomes: "
            "judged by max-t"
        )
    return replace(plan, judge="split-holm"), f"{reason}: judged by split-holm"
