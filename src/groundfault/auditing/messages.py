"""Sentences about findings: association, never cause; what was selected is called selected."""

from __future__ import annotations

from groundfault.core.finding import Cell, Estimate, Opposite, Verdict
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan
from groundfault.modes.mode import Mode

NOTHING = "No reportable finding"
"""The headline of a report that confirms nothing, and how its conclusion begins."""
REASONS = {
    "min_on": "too few units with the property",
    "min_off": "too few units without the property",
    "prevalence": "outside the prevalence window",
    "min_on_total": "too few units with the property in both parts together",
    "missing": "has no value for some examples (declare missing=off or missing=drop to use it)",
    "leak": (
        "predicts the outcome almost perfectly, so it is likely to follow from it "
        "(--allow-leakage for each of its columns judges it all the same)"
    ),
    "engine": (
        "means something else to the engine that counts than to groundfault, as rows of the sample "
        "show (write the rule another way, or count by polars)"
    ),
    "missing_by_outcome": (
        "whether it has a value goes with the outcome, so that the gaps may be all there is to it "
        "(fill them in, or test them by a rule of their own: COLUMN IS NULL)"
    ),
    "varies_within_group": (
        "is true for some rows of a group and false for others (--within COL in place of --group "
        "COL compares the rows of each group)"
    ),
    "holdout_support": "too few held-out units on one side",
    "sign": "the direction reversed on the holdout",
    "p": "the held-out effect is within what chance gives",
    "min_effect": "the effect is smaller than the least worth confirming",
}


def write_reason(verdict: Verdict, codes: tuple[str, ...], judge: Judge) -> str:
    """Return the reason of a verdict, with the codes in front where there are some."""
    # codes in front, so that scripts can match them although sentences change
    if codes:
        message = "; ".join(REASONS.get(code, code) for code in codes)
        return f"{', '.join(codes)}: {message}"
    if verdict is Verdict.BELOW_FLOOR:
        if judge.confirmation == "none":
            return "not beyond what chance gives after the correction for many candidates"
        return (
            "its discovery lift does not clear the floor that decoys of the same frequency set"
            if judge.lift_ranked
            else "its discovery effect is smaller than the least worth confirming"
        )
    if judge.confirmation == "none":
        return "stands after the correction for many candidates, on all units"
    return "cleared the screen on discovery and repeated on the holdout"


def write_sentence(
    verdict: Verdict,
    meaning: str,
    what: str,
    discovery: Cell,
    holdout: Cell | None,
    plan: Plan,
    guarantee: str,
    opposite: Opposite | None = None,
    estimate: Estimate | None = None,
) -> str:
    """Return the full sentence about one finding.

    ``what`` names what is counted: errors, errors of a model, or a kind of change. Errors that are
    less frequent are told as more frequent on the other side, where ``opposite`` has words for it.
    """
    cell = holdout or discovery
    of = "" if what == "errors" else f" ({what})"
    if verdict is Verdict.UNTESTABLE:
        return f"Not tested{of}: {meaning}."
    if verdict is Verdict.CONFIRMED:
        if opposite is not None and (cell.lift or 0) < 0:
            cell, meaning = cell.swap(plan.effect), opposite.meaning
            estimate = None if estimate is None else estimate.swap(plan.effect)
        numbers = _numbers(
            cell, plan, is_holdout=holdout is not None, is_confirmed=True, estimate=estimate
        )
        return (
            f"Confirmed association: {what} are {_more(cell)} frequent when {meaning} "
            f"({numbers}; {guarantee})."
        )
    if verdict is Verdict.TOO_SMALL:
        numbers = _numbers(cell, plan, is_holdout=holdout is not None, is_confirmed=False)
        return (
            f"Real, and smaller than was asked for: {what} are {_more(cell)} frequent when "
            f"{meaning} ({numbers}; {_describe_least(plan)})."
        )
    if verdict is Verdict.NOT_REPLICATED:
        return (
            f"Screened, not confirmed{of}: {meaning}. The discovery lift "
            f"{format_lift(discovery.lift)} was selected as "
            f"one of the largest; held out it is {format_lift(cell.lift)}."
        )
    below = "Not beyond chance" if holdout is None else "Below the screen"
    return f"{below}{of}: {meaning} (discovery lift {format_lift(discovery.lift)})."


def _more(cell: Cell) -> str:
    return "more" if (cell.lift or 0) > 0 else "less"


def _numbers(
    cell: Cell,
    plan: Plan,
    *,
    is_holdout: bool,
    is_confirmed: bool,
    estimate: Estimate | None = None,
) -> str:
    """Errors on and off the slice, the effect with its interval, and the p-value."""
    where = "held-out " if is_holdout else ""
    # what passed a bar, and is corrected for it where it is known how high that is
    selected = " (selected)" if is_confirmed else ""
    effect = f"{where}lift {format_lift(cell.lift)}"
    if estimate is not None:
        value = (
            format_lift(estimate.effect)
            if plan.effect == "risk_difference"
            else f"{plan.effect.replace('_', ' ')} {estimate.effect:.2f}"
        )
        interval = _interval(estimate.interval, plan)
        effect += f"{selected}; corrected for that {value}, {interval}"
    elif cell.interval:
        effect += f"{selected}, {_interval(cell.interval, plan)}"
    p = cell.p_adjusted if cell.p_adjusted is not None else cell.p
    chance = f"; adjusted p = {format_p_value(p)}" if p is not None else ""
    return f"on {_share(cell, 'on')}, off {_share(cell, 'off')}; {effect}{chance}"


def _describe_least(plan: Plan) -> str:
    if plan.effect == "risk_difference":
        return f"the least lift asked for is {float(plan.min_lift or 0):g}"
    return f"the least {plan.effect.replace('_', ' ')} asked for is {float(plan.min_ratio):g}"


def write_mode_sentence(mode: Mode) -> str:
    """Return the sentence about one failure mode: association, never cause."""
    of = f" ({mode.outcome})" if mode.outcome else ""
    p = max(mode.p_marginal, mode.p_conditional)
    return (
        f"Failure mode{of}: errors are more frequent when {mode.meaning} (inside "
        f"{mode.errors:g}/{mode.n}, outside {mode.errors_outside:g}/{mode.n_outside}; adjusted "
        f"p = {format_p_value(p)})."
    )


def write_conclusion(
    mdl: float | None, prevalence: float, reportable: int, unknown: str = ""
) -> str:
    """Return the sentence about the audit's power: never that there are no failure modes.

    ``reportable`` counts confirmed findings and failure modes; ``unknown`` says why the power is
    not known, if so.
    """
    head = f"{NOTHING}. " if not reportable else ""
    if unknown:
        return f"{head}How large a lift could have been detected cannot be said: {unknown}."
    if mdl is None and reportable:
        return (
            f"A lone explanation, at prevalence {prevalence:.0%}, could not have been found "
            "with 80% power at any "
            "lift; beside others, as here, the bar may be lower."
        )
    if mdl is None:
        return (
            f"{head}This audit is too small to detect any lift at prevalence "
            f"{prevalence:.0%} with 80% power."
        )
    return (
        f"{head}This audit could have detected a lift of at least {mdl:.3g} at prevalence "
        f"{prevalence:.0%} "
        "with 80% power; smaller effects are not excluded."
    )


def format_lift(value: float | None) -> str:
    """Return a lift with its sign; zero has none."""
    if value is None:
        return "undefined"
    text = f"{value:+.2f}"
    return text if float(text) else "0.00"


def format_p_value(p: float) -> str:
    """Return a p-value at a readable length."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def format_percent(level: float) -> str:
    """Return a level as a percentage."""
    return f"{100 * level:g}%"


def _interval(interval: tuple[float, float], plan: Plan) -> str:
    level = format_percent(1 - float(plan.alpha))
    if plan.effect == "risk_difference":
        return f"{level} interval {format_lift(interval[0])} to {format_lift(interval[1])}"
    return (
        f"{plan.effect.replace('_', ' ')} {level} interval {interval[0]:.2f} to {interval[1]:.2f}"
    )


def _share(cell: Cell, side: str) -> str:
    return f"{getattr(cell, side + '_errors'):g}/{getattr(cell, side)}"
