"""Judges: `get` finds a judge by name, also in packages; `choose_judge` picks one for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from groundfault.base.registry import open_registry
from groundfault.core.judge import Judge
from groundfault.core.plan import AUTO, NamedJudge, Plan
from groundfault.core.roles import Roles
from groundfault.errors import PlanError

_REGISTRY = open_registry("judge", "groundfault.judges")

NAMES = tuple(_REGISTRY.built_in)
# 9,999 decide no more than 999 where the level is 0.1, and take ten times as long
_PERMUTATIONS = 999


def get(judge: str | NamedJudge, settings: Mapping[str, object] | None = None) -> Judge:
    """Return the judge with a name; a judge object is returned unchanged.

    Parameters
    ----------
    judge : str or Judge
        Name of a built-in judge, or of one registered under the entry-point group
        ``groundfault.judges``.
    settings : mapping, optional
        Settings for a judge given by name.

    Raises
    ------
    PlanError
        If the name or a setting is unknown, or the judge's package cannot be imported.
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
    """Return the plan with a judge in place of ``auto``, and the reason for the choice.

    Parameters
    ----------
    plan : Plan
        A plan that names its judge is returned unchanged, without a reason.
    roles : Roles
        Roles of the evidence.
    mined : bool
        Whether outcomes of the evidence led to a candidate, or will lead a finder of the audit.

    Notes
    -----
    Rules made from attributes and texts alone do not depend on the outcomes, so all outcomes may
    test them. Rules selected by outcomes are tested on other, held-out outcomes. ``max-t`` draws
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
