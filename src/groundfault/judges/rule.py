"""The whole rule of audits, repeats and simulations: eligibility, screen, holdout, verdict.

Judges share its p-values, effect sizes and checks of gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.long_work import enough_threads
from groundfault.core.counted_units import CountedMarks, CountedUnits
from groundfault.core.finding import Verdict
from groundfault.core.judge import ConfirmationBar, ErrorRate, Judge, Screening
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Number, Plan, to_fraction
from groundfault.core.units import Marks, Units
from groundfault.errors import InternalError
from groundfault.stats import bits, flips, multiple
from groundfault.stats.contingency import ContingencyTables, centre_losses

GAP_LEVEL = 0.1
"""Lenient: the chance to refuse a true candidate whose gaps are harmless."""
# as many as an audit of usual size has time for: beyond 120 the power that follows from them
# changes by less than 0.02, and 16 are enough for 0.05
_DRAWS = (16, 120)
_WORK = 100_000_000  # units times hypotheses of all worlds together: some seconds


def compute_graded_p_values(
    units: Units,
    hypotheses: Places,
    draws: int,
    rng: np.random.Generator,
    direction: Ints | None = None,
) -> Floats:
    """Return (1 + exceedances) / (1 + draws) of studentised lifts, within strata if there are any.

    A slice whose losses vary more than the rest, or less, has no small p where the means are equal;
    see `groundfault.stats.contingency`.

    Parameters
    ----------
    units : Units
    hypotheses : intp array, shape (H,)
    draws : int
        Random permutations, shared by the hypotheses of one population.
    rng : numpy.random.Generator
    direction : int64 array, shape (H,), optional
        One-sided where given, in these directions; else two-sided.
    """
    exceed = np.zeros(len(hypotheses), dtype=np.int64)
    for at, lifts in _redraw(units, hypotheses, draws, rng):
        side = None if direction is None else np.where(direction[at] > 0, 1.0, -1.0)
        sizes = (np.abs(batch) if side is None else side * batch for batch in lifts)
        observed = next(sizes)[0]
        # sums of reals depend on the order of addition
        bar = observed - 1e-9 * np.maximum(np.abs(observed), 1e-3)
        for batch in sizes:
            exceed[at] += (batch >= bar).sum(axis=0)
    # the data count as one draw: unbiased tests need it (Phipson and Smyth 2010,
    # doi:10.2202/1544-6115.1585)
    return np.asarray((1 + exceed) / (draws + 1))


def _redraw(
    units: Units, hypotheses: Places, draws: int, rng: np.random.Generator
) -> Iterator[tuple[Places, Iterator[Floats]]]:
    """Yield hypotheses of one population, and their lifts: first of the data, then of
    permutations."""
    if isinstance(units, CountedUnits):
        for place, h in enumerate(hypotheses):
            lifts = units.counts.redraw_robust_lifts(int(h), draws, rng)
            yield np.array([place], dtype=np.intp), lifts
        return
    for inside, outcome, at in units.populations(hypotheses):
        members = np.flatnonzero(inside)
        strata = None if units.strata is None else units.strata[members]
        rows = bits.take(units.marks.on[hypotheses[at] // len(units.losses)], len(units), members)
        residuals = centre_losses(units.losses[outcome][members][None], strata=strata)[0]
        yield at, multiple.redraw_robust_lifts(rows, residuals, draws, rng, strata)


@dataclass(frozen=True)
class HoldoutResult:
    """Results on the holdout; arrays have shape (H,), one value a hypothesis.

    Attributes
    ----------
    passes : bool array
        Survivors that are confirmed.
    p : float64 array
        One-sided permutation p-values in the discovery direction.
    p_adjusted : float64 array
        Holm adjustment of ``p`` among the survivors; NaN for other hypotheses.
    failure : tuple of str
        The first part of the rule that each survivor failed: "sign", "p", "min_effect"; else "".
    too_small : bool array
        Survivors with the right sign and an adjusted p-value within the level, but less than the
        least effect.
    """

    passes: Bools
    p: Floats
    p_adjusted: Floats
    failure: tuple[str, ...]
    too_small: Bools


def confirm(
    holdout: Units,
    hypotheses: Places,
    survives: Bools,
    direction: Ints,
    plan: Plan,
    *,
    exact_p: bool,
    rng: np.random.Generator,
) -> HoldoutResult:
    """Test survivors on the holdout: the same sign, enough effect, and a small p where required.

    Each candidate's support is checked by itself, not together with its duplicates and complements:
    see `has_support`.

    Parameters
    ----------
    holdout : Units
    hypotheses : intp array, shape (H,)
    survives : bool array, shape (H,)
    direction : int64 array, shape (H,)
        Sign of each discovery lift.
    plan : Plan
    exact_p : bool
        Whether to require the exact p-value under Holm in addition to the paper's gate.
    rng : numpy.random.Generator
        Used only where p-values are sampled.
    """
    tables = holdout.tables[hypotheses]
    p = compute_p_values(holdout, hypotheses, plan, rng, direction=direction)
    p_adjusted = np.full(len(p), np.nan)
    # Holm over the survivors alone: discovery chose them without looking at these units
    p_adjusted[survives] = multiple.holm(p[survives])
    significant = is_at_most(np.nan_to_num(p_adjusted, nan=1.0), plan.alpha)
    # in this order: the first check that fails is the reason that the report gives
    checks = [("sign", (tables.sign == direction) & (direction != 0))]
    if exact_p:
        checks.append(("p", significant))
    checks.append(("min_effect", is_big_enough(tables, plan)))
    failures = tuple(
        next((name for name, passes in checks if not passes[i]), "") if survives[i] else ""
        for i in range(len(p))
    )
    stands = survives & np.array([not f for f in failures], dtype=np.bool_).reshape(len(p))
    too_small = significant & np.array([f == "min_effect" for f in failures], dtype=np.bool_)
    return HoldoutResult(stands, p, p_adjusted, failures, too_small)


def has_support(on: Ints, off: Ints, plan: Plan) -> Bools:
    """Return which candidates have enough held-out units on both sides, by their numbers."""
    # decided by counts without outcomes, so that it cannot depend on held-out outcomes
    min_on, min_off = plan.hold_min_on or plan.min_on, plan.hold_min_off or plan.min_off
    return np.asarray((on >= min_on) & (off >= min_off))


def is_at_most(p: Floats, level: Number) -> Bools:
    """Return which p-values are at most a level, up to rounding."""
    # 9/90 computed as a sum of probabilities may come out just above 0.1
    return p <= float(to_fraction(level)) * (1 + 1e-12)


def is_big_enough(tables: ContingencyTables, plan: Plan) -> Bools:
    """Return which effects reach the least effect worth confirming."""
    if plan.effect == "risk_difference":
        # as rationals: 0.1 as a float is larger than 1/10
        return tables.reaches(to_fraction(plan.min_lift or 0))
    ratio = tables.ratio(plan.effect)
    min_ratio = float(to_fraction(plan.min_ratio))
    # a slice may have fewer errors too; direction is a check of its own
    return (ratio >= min_ratio) | (ratio <= 1 / min_ratio)


def least_score(plan: Plan) -> float:
    """Return the least effect worth confirming, as `ContingencyTables.score` measures it."""
    if plan.effect == "risk_difference":
        return float(to_fraction(plan.min_lift or 0))
    return log(to_fraction(plan.min_ratio))


def keeps_sign_within_strata(units: Units, hypotheses: Places) -> Bools:
    """Return which lifts have the same direction among units of one stratum as among all units.

    Parameters
    ----------
    units : Units
        With strata.
    hypotheses : intp array, shape (H,)
    """
    tables = units.tables[hypotheses]
    if isinstance(units, CountedUnits):
        expected = units.counts.expect_sums()[hypotheses]
        return np.asarray(np.sign(tables.on_sum - expected) == tables.sign)
    expected = np.zeros(len(hypotheses))
    for inside, outcome, positions in units.populations(hypotheses):
        members = np.flatnonzero(inside)
        strata = None if units.strata is None else units.strata[members]
        means = multiple.compute_stratum_means(units.losses[outcome][members], strata)
        candidates = hypotheses[positions] // len(units.losses)
        rows = bits.take(units.marks.on[candidates], len(units), members)
        expected[positions] = bits.sums(rows, means[None])[:, 0]
    return np.asarray(np.sign(tables.on_sum - expected) == tables.sign)


def compute_p_values(
    units: Units,
    hypotheses: Places,
    plan: Plan,
    rng: np.random.Generator,
    *,
    direction: Ints | None = None,
) -> Floats:
    """Return permutation p-values: exact for 0/1 losses, else (1 + exceedances) / (1 + draws).

    For graded losses, the statistic is the studentised lift: a slice whose losses vary more than
    the rest gets no small p if the means are equal. Groups of unequal size are permuted, also at
    random, only among groups of similar size. Pairs are tested by their changes, see
    `groundfault.stats.flips.p_values`.

    Parameters
    ----------
    direction : int64 array, shape (H,), optional
        One-sided where given, in these directions; else two-sided.
    """
    if isinstance(units, Pairs):
        return flips.p_values(units.marks.on[hypotheses], units.changes, direction)
    # at least ten draws for each Holm level alpha / H, or the smallest p could not reach it
    draws = max(plan.permutations, int(10 * len(hypotheses) / float(to_fraction(plan.alpha))))
    if units.denominator != 1:
        return compute_graded_p_values(units, hypotheses, draws, rng, direction)
    on_sum = np.asarray(units.tables[hypotheses].on_sum, dtype=np.float64)
    if units.strata is None:
        distributions, which, _ = units.null_distributions(hypotheses, pooled=False)
        if direction is None:
            return distributions.two_sided(which, on_sum)
        return distributions.one_sided(which, on_sum, direction)
    exceed = np.zeros(len(hypotheses), dtype=np.int64)
    for at, expected, sums in units.redraw(hypotheses, draws, rng):
        gap, draw_gap = on_sum[at] - expected, sums - expected
        # expected sums are means of strata, which round
        slack = 1e-9 * np.maximum(np.abs(gap), 1e-12)
        if direction is None:
            draw_gap, gap = np.abs(draw_gap), np.abs(gap)
        else:
            side = np.where(direction[at] > 0, 1, -1)
            draw_gap, gap = side * draw_gap, side * gap
        exceed[at] += (draw_gap >= gap - slack).sum(axis=0)
    # the data count as one draw: unbiased tests need it (Phipson and Smyth 2010,
    # doi:10.2202/1544-6115.1585)
    return (1 + exceed) / (draws + 1)


def find_gaps_by_outcome(parts: Sequence[Units], plan: Plan, rng: np.random.Generator) -> Bools:
    """Return hypotheses whose rule is NULL more often, or less often, where losses are high.

    Missing values, not the condition itself, associate such a rule with the outcome. If values are
    lost where a model fails, counting gaps as "off" collects failures. Leaving gaps out does the
    same if values are lost from only one side of the slice.

    Parameters
    ----------
    parts : sequence of Units
        Discovery, and the holdout if there is one. Each part is tested at its share of `GAP_LEVEL`,
        two sided: discovery alone would miss gaps in the holdout.
    plan : Plan
    rng : numpy.random.Generator
        Used only where p-values are sampled.

    Returns
    -------
    bool array, shape (L * M,)

    Notes
    -----
    The check only removes confirmations, so error rates do not grow. It misses values lost equally
    often from failures on the slice and from passes off it, because the rate of gaps stays equal.
    """
    candidates, outcomes = parts[0].shape
    gaps = np.zeros((candidates, outcomes), dtype=np.bool_)
    for units in parts:
        if isinstance(units, CountedUnits):
            if units.gaps is not None:
                everyone = np.arange(candidates, dtype=np.intp)
                p = compute_p_values(units.gaps, everyone, plan, rng)
                gaps |= (p <= GAP_LEVEL / len(parts))[:, None]
            continue
        empty = units.marks.empty
        if empty is None:
            continue
        # all candidates of one column lack the same values
        distinct, which = np.unique(empty, axis=0, return_inverse=True)
        marks = Marks(len(units), distinct, None, ("",) * len(distinct))
        hypotheses = np.arange(len(distinct) * outcomes, dtype=np.intp)
        p = compute_p_values(replace(units, marks=marks), hypotheses, plan, rng)
        gaps |= (p <= GAP_LEVEL / len(parts)).reshape(-1, outcomes)[which.reshape(-1)]
    return gaps.reshape(-1)


def draw_null_worlds(units: Units, hypotheses: Places, rng: np.random.Generator) -> Iterator[Units]:
    """Yield units with their losses in random order; for pairs, with models swapped at random.

    The number of worlds is limited by time: 16 to 120, by units times hypotheses.

    Parameters
    ----------
    units : Units
    hypotheses : intp array, shape (H,)
    rng : numpy.random.Generator

    Notes
    -----
    All losses of a unit move together, within its stratum, so that candidates and outcomes keep
    their dependence.
    """
    least, most = _DRAWS
    draws = int(np.clip(_WORK / max(1, len(units) * len(hypotheses)), least, most))
    for _ in range(draws):
        yield units.shuffle(rng)


def standardise(units: Units, hypotheses: Places) -> Floats:
    """Return |lift| divided by its standard deviation in null worlds; 0 where that is 0."""
    if isinstance(units, Pairs):
        sums, squares = (each[hypotheses] for each in units.change_sums())
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(np.abs(sums) / np.sqrt(squares))
    tables = units.tables[hypotheses]
    if units.denominator == 1:
        squares = np.asarray(tables.total, dtype=np.float64)
    else:
        squares = units.squares()[1][hypotheses]
    n, on = tables.n.astype(np.float64), tables.on.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (squares - (tables.total / tables.unit) ** 2 / n) / (n - 1)
        size = np.abs(tables.lift) / np.sqrt(variance * n / (on * (n - on)))
    return np.asarray(np.nan_to_num(size, nan=0.0, posinf=0.0))


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


def bounded_rate(judge: Judge) -> ErrorRate | None:
    """Return the error rate that a judge claims to bound; None without such a claim."""
    rate: ErrorRate | None = getattr(judge, "bounds", None)
    return rate


def find_bar(
    judge: Judge, units: Units, hypotheses: Places, plan: Plan, rng: np.random.Generator
) -> ConfirmationBar | None:
    """Return a judge's bar for one true hypothesis among null ones; None without a bar."""
    method = getattr(judge, "find_bar", None)
    if method is None or not len(hypotheses):
        return None
    with enough_threads(units.marks.size * len(hypotheses)):
        bar: ConfirmationBar = method(units, hypotheses, plan, rng)
    return bar
