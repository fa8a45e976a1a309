"""The whole rule of audits, repeats and simulations: eligibility, screen, holdout, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.base.machine import enough_threads
from groundfault.core.counted_units import CountedMarks
from groundfault.core.finding import Verdict
from groundfault.core.judge import Judge, Screening
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Marks, Units
from groundfault.errors import InternalError
from groundfault.judges.confirm import (
    HoldoutResult,
    confirm,
    find_gaps_by_outcome,
    has_support,
    keeps_sign_within_strata,
)


@dataclass(frozen=True)
class Ruling:
    """A verdict on every hypothesis, candidates outermost; sequences of length L * M.

    Attributes
    ----------
    verdicts : tuple of Verdict
    reasons : tuple of tuple of str
        Codes: the reasons that a hypothesis is untestable, or the failed part of the holdout rule.
    hypotheses : intp array, shape (H,)
        The hypotheses that were screened, each once; `screening` and `confirmed` are about these.
    representatives : intp array, shape (L * M,)
        The hypothesis whose answer each hypothesis shares: itself, or an earlier duplicate or
        complement.
    screening : Screening, optional
        None if no hypothesis was eligible.
    holdout_result : HoldoutResult, optional
        None without a holdout, or without survivors to test on it.
    """

    verdicts: tuple[Verdict, ...]
    reasons: tuple[tuple[str, ...], ...]
    hypotheses: Places
    representatives: Places
    screening: Screening | None
    holdout_result: HoldoutResult | None

    def require_numbers(self, judge: str) -> None:
        """Raise unless every answer of the judge is a number.

        Raises
        ------
        InternalError
            If an answer is NaN. It compares as false with every level, so it would read as "not
            beyond chance".
        """
        answers: dict[str, Floats | None] = {}
        if self.screening is not None:
            names = ("p", "p_adjusted", "decoys")
            answers |= {name: getattr(self.screening, name) for name in names}
        if self.holdout_result is not None and self.screening is not None:
            survives = self.screening.survives
            answers |= {
                "held-out p": self.holdout_result.p,
                "held-out p_adjusted": self.holdout_result.p_adjusted[survives],
            }
        for name, values in answers.items():
            wrong = 0 if values is None else int(np.isnan(values).sum())
            if wrong:
                raise InternalError(
                    f"judge {judge!r} gave {wrong} answers that are not numbers (NaN in {name}); "
                    "no candidate was judged; please report this"
                )

    def positions(self) -> dict[int, int]:
        """Return the position of each hypothesis' answer in `screening` and `confirmed`."""
        at = {int(h): i for i, h in enumerate(self.hypotheses)}
        return {h: at[int(lead)] for h, lead in enumerate(self.representatives) if int(lead) in at}


def rule(
    judge: Judge,
    plan: Plan,
    discovery: Units,
    holdout: Units | None,
    whole: Marks,
    purpose: str = "audit",
) -> Ruling:
    """Give every hypothesis a verdict.

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Resolved, see `Plan.resolve`.
    discovery, holdout : Units
        A judge without a holdout gets all units as ``discovery`` and None.
    whole : Marks
        The marks of all units, to decide eligibility in the full scope and to find duplicates.
    purpose : str
        Name of the random streams, so that repeats differ and reruns do not.
    """
    with enough_threads(whole.size * len(whole.on)):
        reasons = find_obstacles(plan, discovery, whole)
        eligible = np.flatnonzero([not r for r in reasons]).astype(np.intp)
        outcomes = len(discovery.losses)
        representatives = np.arange(len(reasons), dtype=np.intp)
        if judge.distinct:
            both = not isinstance(discovery, Pairs)
            representatives = _find_representatives(whole, outcomes, eligible, both)
        hypotheses = np.unique(representatives[eligible])
        if len(hypotheses) == 0:
            nothing = (Verdict.UNTESTABLE,) * len(reasons)
            return Ruling(nothing, tuple(reasons), hypotheses, representatives, None, None)
        screening = judge.screen(discovery, hypotheses, plan, plan.rng(f"{purpose}/screen"))
        if holdout is None and discovery.strata is not None:
            # a two-sided p-value within strata may stand for the other direction than the lift
            same = keeps_sign_within_strata(discovery, hypotheses)
            small = None if screening.too_small is None else screening.too_small & same
            screening = replace(screening, survives=screening.survives & same, too_small=small)
        holdout_result = None
        if holdout is not None:
            direction = discovery.tables[hypotheses].sign
            exact_p, rng = judge.confirmation == "exact", plan.rng(f"{purpose}/confirm")
            holdout_result = confirm(
                holdout, hypotheses, screening.survives, direction, plan, exact_p=exact_p, rng=rng
            )
        ruling = Ruling((), (), hypotheses, representatives, screening, holdout_result)
        ruling.require_numbers(judge.name)
        support = np.ones(len(reasons), dtype=np.bool_)
        if holdout is not None:
            support = has_support(holdout.tables.on, holdout.tables.off, plan)
        parts = [discovery] if holdout is None else [discovery, holdout]
        gaps = find_gaps_by_outcome(parts, plan, plan.rng(f"{purpose}/gaps"))
        verdicts, codes = _give_verdicts(ruling, reasons, support, gaps)
        return Ruling(verdicts, codes, hypotheses, representatives, screening, holdout_result)


def find_obstacles(plan: Plan, discovery: Units, whole: Marks) -> list[tuple[str, ...]]:
    """Return codes for why each hypothesis cannot be tested; losses are not read."""
    outcomes = len(discovery.losses)
    here_n, here_on = discovery.support
    whole_n, whole_on = (np.repeat(a, outcomes) for a in whole.counts())
    n, on = (whole_n, whole_on) if plan.scope == "full" else (here_n, here_on)
    low, high = (to_fraction(x) for x in plan.prevalence or (0, 1))
    unusable = np.repeat(np.array(whole.unusable, dtype=object), outcomes)
    out: list[tuple[str, ...]] = []
    for i in range(len(on)):
        if unusable[i]:
            out.append((str(unusable[i]),))
            continue
        k, m = int(on[i]), int(n[i])
        codes = []
        # in any scope, a hypothesis without units on one side of the discovery part has no lift
        if k < plan.min_on or here_on[i] == 0:
            codes.append("min_on")
        if m - k < plan.min_off or here_on[i] == here_n[i]:
            codes.append("min_off")
        inside = (
            low.numerator * m <= k * low.denominator and k * high.denominator <= high.numerator * m
        )
        if not inside:
            codes.append("prevalence")
        if int(whole_on[i]) < plan.min_on_total:
            codes.append("min_on_total")
        out.append(tuple(codes))
    return out


def find_duplicates(marks: Marks, *, complements: bool = True) -> Places:
    """Return the first candidate on the same units, or on exactly the others: intp, shape (L,).

    Parameters
    ----------
    marks : Marks
    complements : bool
        Whether a candidate that matches exactly the other units counts as the same: its lift is the
        same with the sign reversed. False for changes between two models, because the change on a
        slice does not determine the change elsewhere.
    """
    if isinstance(marks, CountedMarks):
        return marks.first
    everywhere = np.full(marks.on.shape[1:], np.iinfo(np.uint64).max, dtype=np.uint64)
    if marks.size % 64:
        everywhere[-1] = np.uint64((1 << (marks.size % 64)) - 1)
    first: dict[bytes, int] = {}
    out = np.arange(len(marks.on), dtype=np.intp)
    for j, on in enumerate(marks.on):
        if marks.unusable[j]:
            continue
        defined = everywhere if marks.valid is None else marks.valid[j]
        key, mirror = (bits.tobytes() + defined.tobytes() for bits in (on, on ^ defined))
        out[j] = first.setdefault(key, first.get(mirror, j) if complements else j)
    return out


def _find_representatives(
    marks: Marks, outcomes: int, eligible: Places, complements: bool
) -> Places:
    """Return for each hypothesis the first eligible one that is a duplicate or complement."""
    home = np.repeat(
        find_duplicates(marks, complements=complements), outcomes
    ) * outcomes + np.tile(np.arange(outcomes), len(marks.on))
    first: dict[int, int] = {}
    for h in eligible:
        first.setdefault(int(home[h]), int(h))
    fit = set(eligible.tolist())
    return np.array(
        [first[int(home[h])] if h in fit else h for h in range(len(home))], dtype=np.intp
    )


def _give_verdicts(
    ruling: Ruling, reasons: Sequence[tuple[str, ...]], support: Bools, gaps: Bools
) -> tuple[tuple[Verdict, ...], tuple[tuple[str, ...], ...]]:
    position = ruling.positions()
    verdicts, codes = [], []
    for h, why in enumerate(reasons):
        i = position.get(h)
        if why or i is None or ruling.screening is None:
            verdicts.append(Verdict.UNTESTABLE)
            codes.append(why)
        elif not ruling.screening.survives[i]:
            small = ruling.screening.too_small is not None and ruling.screening.too_small[i]
            verdicts.append(Verdict.TOO_SMALL if small else Verdict.BELOW_FLOOR)
            codes.append(("min_effect",) if small else ())
        elif gaps[h]:
            # its copies and complements may be defined everywhere, and keep their answer
            verdicts.append(Verdict.UNTESTABLE)
            codes.append(("missing_by_outcome",))
        else:
            result = ruling.holdout_result
            failure = "" if result is None else result.failure[i]
            failure = failure if support[h] else "holdout_support"
            small = failure == "min_effect" and result is not None and result.too_small[i]
            unconfirmed = Verdict.TOO_SMALL if small else Verdict.NOT_REPLICATED
            verdicts.append(unconfirmed if failure else Verdict.CONFIRMED)
            codes.append((failure,) if failure else ())
    return tuple(verdicts), tuple(codes)
