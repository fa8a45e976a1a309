"""What every judge and finder must satisfy, as functions without a test framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault import judges
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.core.candidate import Candidate, Library
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Verdict
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan
from groundfault.core.units import Marks, Units
from groundfault.errors import RuleError
from groundfault.finders import Finder
from groundfault.judges.rule import Ruling
from groundfault.stats import bits
from groundfault_lab.testing.calibration import AnyWorld, calibrate, resolve_plan, run_rule
from groundfault_lab.testing.card import Card
from groundfault_lab.testing.worlds import PlantedEffect, World

FAST = (
    World(units=115),
    World(units=160, dependence="chains"),
    World(units=100, variants=5, icc=0.6),
    World(units=40, candidates=12),
    World(units=160, dependence="tied"),
    World(units=160, dependence="duplicates"),
    World(units=160, candidates=10, losses="grid"),
    World(units=80, candidates=3, losses="real"),
    World(units=160, candidates=10, outcomes=3, icc=0.6),
    World(units=160, gaps=0.1),
    World(units=500, rate=0.36, effects=(PlantedEffect(0, 0.4, 0.4, proxies=5),), min_power=0.8),
)
"""Worlds of `check_judge`: a small one of each kind, and one with a cause that any fit judge
finds.
"""

_MIXED = World(
    units=200,
    candidates=12,
    dependence="chains",
    effects=(PlantedEffect(0, 0.5, 0.4), PlantedEffect(7, -0.35, 0.3, proxies=1)),
)


def check_judge(
    judge: str | Judge,
    *,
    plan: Plan | None = None,
    seed: int = 0,
    replicates: int = 100,
    level: float | None = None,
    worlds: Sequence[AnyWorld] = FAST,
    jobs: int = 1,
) -> Card:
    """Check that a judge keeps its promise in known worlds and answers as a judge must.

    Where nothing is related to the losses, P(any confirmation) has to stay at its level, and
    planted causes have to be found, both to three Monte Carlo standard errors. There has to be a
    verdict for every candidate; it must not depend on the order of rows or candidates, nor change
    when the same question is asked again, when copies and complements join the library (for judges
    of ``distinct`` candidates), or when a candidate is turned into its complement.

    Parameters
    ----------
    judge : str or Judge
    plan : Plan, optional
        `SIMULATED` where left out.
    seed : int
    replicates : int
        Of each world; 1,000 or more tell small excesses.
    level : float, optional
        Family-wise level promised. Where left out, the judge's own if it is built in, else the
        plan's alpha; 1 for a judge that promises nothing, whose rates are then measured and not
        judged.
    worlds : sequence of World, optional
    jobs : int
        Processes.

    Returns
    -------
    Card
        What was measured.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what, where, and by how much.
    """
    judge = judges.get(judge)
    resolved = resolve_plan(judge, plan)
    for number in range(3):
        with fail_in(f"in draw {number} of the world {_MIXED.name!r}"):
            rng = np.random.default_rng([seed, number])
            units = _MIXED.draw(rng)
            _check_answers(judge, resolved, units)
            _check_variants(judge, resolved, units, rng)
    with fail_in(f"in draw 3 of the world {_MIXED.name!r}"):
        _check_row_order(judge, resolved, np.random.default_rng([seed, 3]))
    _check_constant(judge, resolved, np.random.default_rng([seed, 4]))
    card = calibrate(
        judge, plan, worlds=worlds, replicates=replicates, seed=seed, level=level, jobs=jobs
    )
    failures = "; ".join(card.failures)
    require(card.passed, f"judge {judge.name!r} does not keep its promise: {failures}")
    return card


def require(holds: object, message: str) -> None:
    """Raise as an assert statement does, also under ``python -O``."""
    if not holds:
        raise AssertionError(message)


@contextmanager
def fail_in(where: str) -> Iterator[None]:
    """Add to the message of a failed check in which world or sample it failed."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error} ({where})") from error


def _check_answers(judge: Judge, plan: Plan, units: Units) -> None:
    """Check that every hypothesis gets an answer, each candidate a verdict, the same each time."""
    hypotheses = np.arange(len(units.marks.on), dtype=np.intp)
    screening = judge.screen(units, hypotheses, plan, plan.rng("check"))
    gave = f"judge {judge.name!r} gave"
    for name in ("survives", "p", "p_adjusted", "decoys"):
        answers = getattr(screening, name)
        if answers is None:
            continue
        shape = np.shape(answers)
        what = f"{gave} {name} of shape {shape} on {len(hypotheses)} hypotheses"
        require(shape == hypotheses.shape, what)
        is_share = name in ("survives", "decoys") or np.all((answers >= 0) & (answers <= 1))
        require(is_share, f"{gave} {name} outside [0, 1]")
    # two that no rule may judge: one true nowhere, one marked as having missing values
    never = bits.pack(np.zeros((2, len(units)), dtype=np.bool_))
    more = replace(units, marks=_with(units.marks, never, ("", "missing")))
    first, again = run_rule(judge, plan, more, "check"), run_rule(judge, plan, more, "check")
    require(
        first.verdicts[-2:] == (Verdict.UNTESTABLE,) * 2,
        f"judge {judge.name!r} judged a candidate without support, or one with missing values",
    )
    # a judge may draw, but from the plan's seed alone
    places = np.arange(len(first.verdicts))
    _assert_same(judge, "asked twice with the same seed", first, again, places)


def _check_variants(judge: Judge, plan: Plan, units: Units, rng: np.random.Generator) -> None:
    """Check that a library in another order, turned round or doubled gets the same verdicts."""
    before = run_rule(judge, plan, units, "check")
    count = len(units.marks.on)
    order, places = rng.permutation(count), np.arange(count)
    after = run_rule(judge, plan, units.select(order), "check")
    _assert_same(judge, "with candidates in another order", before, after, np.argsort(order))
    # "X" and "not X" make one split of the units, so a judge must treat them alike
    on = bits.unpack(units.marks.on, len(units))
    complement = replace(units, marks=replace(units.marks, on=bits.pack(~on)))
    require(
        np.array_equal(complement.tables.sign, -units.tables.sign),
        "a complement has to have the opposite lift",
    )
    after = run_rule(judge, plan, complement, "check")
    _assert_same(judge, "with every candidate turned into its complement", before, after, places)
    if not judge.distinct:
        return
    marks = _with(units.marks, bits.pack(np.vstack([on, ~on])), ("",) * (2 * count))
    after = run_rule(judge, plan, replace(units, marks=marks), "check")
    # originals, copies and complements are one hypothesis three times
    for copies in range(3):
        how = "with copies and complements in the library"
        _assert_same(judge, how, before, after, places + copies * count)


def _check_row_order(judge: Judge, plan: Plan, rng: np.random.Generator) -> None:
    """Check the judge in an audit of evidence, where the units are named."""
    evidence, library = _MIXED.evidence(rng)
    shuffled = evidence.frame[rng.permutation(len(evidence))]
    other = Evidence.from_frame(shuffled, evidence.roles)
    before, after = (PreparedAudit(table, library, plan, judge) for table in (evidence, other))
    first, again = (case.judge_losses(case.losses())[0] for case in (before, after))
    _assert_same(judge, "with rows in another order", first, again, np.arange(len(library)))


def _check_constant(judge: Judge, plan: Plan, rng: np.random.Generator) -> None:
    # nothing varies, so every p-value is 1 and every interval empty: a common source of NaN
    for rate in (0.0, 1.0):
        units = World(units=60, candidates=8, rate=rate).draw(rng)
        verdicts = run_rule(judge, plan, units, "check").verdicts
        require(
            Verdict.CONFIRMED not in verdicts,
            f"judge {judge.name!r} confirmed a candidate although every outcome was {rate:g}",
        )


def _with(marks: Marks, on: bits.Bits, unusable: tuple[str, ...]) -> Marks:
    """Return the marks with further candidates."""
    valid = marks.valid
    if valid is not None:
        everywhere = bits.pack(np.ones((len(on), marks.size), dtype=np.bool_))
        valid = np.concatenate([valid, everywhere])
    return Marks(marks.size, np.concatenate([marks.on, on]), valid, marks.unusable + unusable)


def _assert_same(
    judge: Judge, how: str, before: Ruling, after: Ruling, index: NDArray[np.intp]
) -> None:
    """Require that verdicts ``before`` equal those ``after`` at ``index``."""
    changes = [
        f"candidate {j} was {was}, is {after.verdicts[i]}"
        for j, (was, i) in enumerate(zip(before.verdicts, index, strict=False))
        if after.verdicts[i] is not was
    ]
    require(
        not changes, f"judge {judge.name!r} answers differently {how}: {'; '.join(changes[:3])}"
    )


def check_finder(
    finder: Finder | Callable[[Evidence], Finder], evidence: Evidence, *, seed: int = 0
) -> Library:
    """Check that a finder proposes from what it may see, and nothing else.

    Held-out rows are overwritten with nonsense, and outcomes with other outcomes: the proposals
    must stay the same. A finder that needs outcomes, such as a search for bad slices, says so with
    an attribute ``uses_outcomes = True``; its candidates can be judged only by judges with a
    holdout. Proposals have to be the same each time, have names of their own, read no outcome,
    survive JSON, and apply to rows that the finder has not seen.

    Parameters
    ----------
    finder : Finder, or function from Evidence to Finder
        A function is for finders made out of evidence: it is given all rows, held-out ones
        overwritten, and must not be misled.
    evidence : Evidence
        Something for the finder to work on.
    seed : int
        Of the split into discovery and holdout.

    Returns
    -------
    Library
        What it proposed.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what.
    """
    source = evidence.provenance[0] if evidence.provenance else f"a table of {len(evidence)} rows"
    with fail_in(f"on {source}, split by seed {seed}"):
        return _check_finder(finder, evidence, seed)


def _check_finder(
    finder: Finder | Callable[[Evidence], Finder], evidence: Evidence, seed: int
) -> Library:
    rows = Plan(seed=seed).discovery_units(evidence)[evidence.unit_index]
    proposals = _propose(finder, evidence, rows)
    name = _instantiate(finder, evidence).name
    nothing = f"finder {name!r} proposed nothing, so nothing can be checked: try other evidence"
    require(proposals, nothing)
    # other evidence in between: a finder that remembers it would now answer differently
    _propose(finder, evidence, ~rows)
    again = _propose(finder, evidence, rows)
    _assert_proposals(name, "asked again, after other evidence", proposals, again)
    # values that would change any quantile, level or model that looked at held-out rows
    poisoned = _propose(finder, _overwrite(evidence, ~rows), rows)
    _assert_proposals(name, "with held-out rows overwritten", proposals, poisoned)
    if not getattr(_instantiate(finder, evidence), "uses_outcomes", False):
        other = _propose(finder, _turn_outcomes(evidence, np.random.default_rng(seed)), rows)
        how = "with other outcomes (set uses_outcomes = True if it needs them)"
        _assert_proposals(name, how, proposals, other)
    library = _check_library(name, proposals, evidence)
    _check_applies(name, library, evidence.take(~rows))
    return library


def _instantiate(finder: Finder | Callable[[Evidence], Finder], evidence: Evidence) -> Finder:
    if hasattr(finder, "propose") and not isinstance(finder, type):
        return cast("Finder", finder)
    return finder(evidence)


def _propose(
    finder: Finder | Callable[[Evidence], Finder], evidence: Evidence, rows: NDArray[np.bool_]
) -> list[Candidate]:
    proposals: Iterable[Candidate] = _instantiate(finder, evidence).propose(evidence.take(rows))
    return list(proposals)


def _overwrite(evidence: Evidence, rows: NDArray[np.bool_]) -> Evidence:
    """Return the evidence with nonsense in some rows' attributes and outcomes, and no source."""
    mask = pl.Series(rows)
    columns = [
        _overlay(evidence.frame[c], mask, _nonsense(evidence.frame[c].dtype))
        for c in evidence.attributes
    ]
    outcome = evidence.frame[evidence.roles.outcome]
    columns.append(_overlay(outcome, mask, pl.lit(1).cast(outcome.dtype)))
    loss = _overlay(evidence.loss, mask, pl.lit(1.0))
    return replace(evidence, frame=evidence.frame.with_columns(columns), loss=loss, provenance=())


def _overlay(values: pl.Series, rows: pl.Series, other: pl.Expr) -> pl.Series:
    return pl.select(pl.when(rows).then(other).otherwise(values).alias(values.name)).to_series()


def _nonsense(dtype: pl.DataType) -> pl.Expr:
    if dtype.is_float():
        # far outside, so that a mean or quantile that reads it moves
        return pl.lit(1e30, dtype=dtype)
    if dtype.is_integer():
        return pl.lit(100, dtype=dtype)
    if dtype == pl.Boolean:
        return pl.lit(True)
    return pl.lit("held out? 7") if dtype == pl.String else pl.lit(None, dtype=dtype)


def _turn_outcomes(evidence: Evidence, rng: np.random.Generator) -> Evidence:
    """Return the evidence with its outcomes dealt out anew and turned round."""
    order = pl.Series(rng.permutation(len(evidence)))
    outcomes = evidence.frame[evidence.roles.outcome].gather(order)
    complements = ~outcomes if outcomes.dtype == pl.Boolean else (1 - outcomes).cast(outcomes.dtype)
    columns = [complements.alias(evidence.roles.outcome)]
    if evidence.roles.status:
        columns.append(evidence.frame[evidence.roles.status].gather(order))
    loss, status = 1 - evidence.loss.gather(order), evidence.status.gather(order)
    frame = evidence.frame.with_columns(columns)
    return replace(evidence, frame=frame, loss=loss, status=status)


def _check_library(name: str, proposals: Sequence[Candidate], evidence: Evidence) -> Library:
    names = [candidate.name for candidate in proposals]
    twice = sorted({n for n in names if names.count(n) > 1})
    require(
        not twice, f"finder {name!r} gave a name to more than one candidate: {', '.join(twice[:3])}"
    )
    library = Library.of(proposals)
    is_same = Library.from_json(library.to_json()) == library
    require(is_same, f"proposals of finder {name!r} do not survive JSON")
    roles = evidence.roles
    telling = {column for column in (roles.outcome, roles.status, *roles.ignore) if column}
    for candidate in library:
        read = ", ".join(sorted(telling & set(candidate.columns)))
        where = f"finder {name!r}: candidate {candidate.name!r}"
        require(not read, f"{where} reads what it must not: {read}")
    return library


def _check_applies(name: str, library: Library, unseen: Evidence) -> None:
    try:
        Marks.of(unseen, library)
    except RuleError as error:
        raise AssertionError(
            f"finder {name!r}: a proposal does not apply to rows it has not seen: {error}"
        ) from error


def _assert_proposals(
    name: str, how: str, before: Sequence[Candidate], after: Sequence[Candidate]
) -> None:
    if list(before) == list(after):
        return
    new = next((c.name for c in [*after, *before] if (c in before) != (c in after)), "their order")
    raise AssertionError(f"finder {name!r} proposes something else {how}: {new}")
