"""Sentences about findings: association, never cause; what was selected is called selected."""

from __future__ import annotations

from groundfault.core.finding import Cell, Opposite, Verdict
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan
from groundfault.modes.mode import Mode

REASONS = {
    "min_on": "too few units with the property",
    "min_off": "too few units without the property",
    "prevalence": "outside the prevalence window",
    "min_on_total": "too few units with the property in both parts together",
    "missing": "has no value for some examples (declare missing=off or missing=drop to use it)",
    "varies_within_group": "is true for some rows of a group and false for others",
    "holdout_support": "too few held-out units on one side",
    "sign": "the direction reversed on the holdout",
    "min_effect": "the held-out effect is smaller than the least worth confirming",
    "p": "the held-out effect is within what chance gives",
}

_LEVELS = {
    "janus": "family-wise error at most {alpha} over what reached the holdout",
    "split-holm": "family-wise error at most {alpha} over what reached the holdout",
    "max-t": "family-wise error at most {alpha} over {size} candidates",
    "holm": "family-wise error at most {alpha} over {size} candidates",
    "bh": "false discovery rate at most {q} over {size} candidates, if they depend positively",
    "by": "false discovery rate at most {q} over {size} candidates",
    "multisplit-e": "false discovery rate at most {q} over {size} candidates",
    "janus-a": "screened by decoys and repeated on the holdout; no error rate is guaranteed",
    "janus-lite": "screened by decoys and repeated on the holdout; no error rate is guaranteed",
}


def describe_guarantee(judge: Judge, plan: Plan, size: int) -> str:
    """The error rate that a confirmation by this judge guarantees, as a sentence says it."""
    words = _LEVELS.get(
        judge.name, "see the judge's own documentation for what a confirmation is worth"
    )
    return words.format(
        alpha=format_percent(float(plan.alpha)), q=format_percent(float(plan.q)), size=size
    )


def write_reason(verdict: Verdict, codes: tuple[str, ...], judge: Judge) -> str:
    """The reason of a verdict, with the codes in front where there are some."""
    # codes in front, so that scripts can match them although sentences change
    if codes:
        message = "; ".join(REASONS.get(code, code) for code in codes)
        return f"{', '.join(codes)}: {message}"
    if verdict is Verdict.BELOW_FLOOR:
        return (
            "its discovery lift does not clear the floor that decoys of the same frequency set"
            if judge.confirmation != "none" and judge.lift_ranked
            else (
                "not beyond what chance gives after the correction for many candidates, or "
                "too small to matter"
            )
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
) -> str:
    """The full sentence about one finding.

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
        more = "more" if (cell.lift or 0) > 0 else "less"
        where = "held-out " if holdout else ""
        interval = f", {_interval(cell.interval, plan)}" if cell.interval else ""
        p = cell.p_adjusted if cell.p_adjusted is not None else cell.p
        chance = f"; adjusted p = {format_p_value(p)}" if p is not None else ""
        return (
            f"Confirmed association: {what} are {more} frequent when {meaning} "
            f"(on {_share(cell, 'on')}, off {_share(cell, 'off')}; "
            f"{where}lift {format_lift(cell.lift)}{interval}{chance}; {guarantee})."
        )
    if verdict is Verdict.NOT_REPLICATED:
        return (
            f"Screened, not confirmed{of}: {meaning}. The discovery lift "
            f"{format_lift(discovery.lift)} was selected as "
            f"one of the largest; held out it is {format_lift(cell.lift)}."
        )
    return f"Not beyond chance{of}: {meaning} (discovery lift {format_lift(discovery.lift)})."


def write_mode_sentence(mode: Mode) -> str:
    """The sentence about one failure mode: association, never cause."""
    of = f" ({mode.outcome})" if mode.outcome else ""
    p = max(mode.p_marginal, mode.p_conditional)
    return (
        f"Failure mode{of}: errors are more frequent when {mode.meaning} (inside "
        f"{mode.errors:g}/{mode.n}, outside {mode.errors_outside:g}/{mode.n_outside}; adjusted "
        f"p = {format_p_value(p)})."
    )


def write_conclusion(mdl: float | None, prevalence: float, reportable: int) -> str:
    """The sentence about the audit's power: never that there are no failure modes.

    ``reportable`` counts confirmed findings and failure modes.
    """
    head = "No reportable finding. " if not reportable else ""
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
    """A lift with its sign."""
    return "undefined" if value is None else f"{value:+.2f}"


def format_p_value(p: float) -> str:
    """A p-value at a readable length."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def format_percent(level: float) -> str:
    """A level as a percentage."""
    return f"{100 * level:g}%"


def _interval(interval: tuple[float, float], plan: Plan) -> str:
    level = format_percent(1 - float(plan.alpha))
    if plan.effect == "risk_difference":
        return f"{level} interval {interval[0]:+.2f} to {interval[1]:+.2f}"
    return (
        f"{plan.effect.replace('_', ' ')} {level} interval {interval[0]:.2f} to {interval[1]:.2f}"
    )


def _share(cell: Cell, side: str) -> str:
    return f"{getattr(cell, side + '_errors'):g}/{getattr(cell, side)}"
