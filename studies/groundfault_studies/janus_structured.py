"""Decoys that keep more than a frequency: drawn within strata, and permuted together.

The paper's section 2.1 names both for libraries whose descriptors go together. Here they are what
the plan's ``within`` does to any judge, and what the judge ``max-t`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault import Plan, judges
from groundfault.base.long_work import Progress, stream
from groundfault.core.finding import Verdict
from groundfault.core.units import Marks, Units
from groundfault.judges.rule import rule
from groundfault.stats import bits
from groundfault_lab.stats.paired import student
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Bools = NDArray[np.bool_]

UNITS, CANDIDATES = 400, 20
LARGE, SMALL = 0.25, 0.15
"""What the planted candidate adds to the error rate: where half is held out, and where none is."""

_RATES = (0.2, 0.6)  # errors of easy and of hard units
_SHARES = (0.3, 0.7)  # of easy and of hard units where a confounded candidate holds
_ALIKE = 0.9  # share of the units on which correlated candidates are the same one


@dataclass(frozen=True)
class StructuredWorld:
    """Candidates, errors and strata of one draw; where something is planted, the first matters.

    Attributes
    ----------
    on : bool array, shape (candidates, units)
    errors : float64 array, shape (units,)
    strata : int64 array, shape (units,), optional
        What decoys may be drawn within.
    """

    on: Bools
    errors: NDArray[np.float64]
    strata: NDArray[np.int64] | None = None

    def count(self, judge: str, *, within: bool, holdout: bool) -> tuple[bool, bool]:
        """Whether a judge confirms any candidate without an effect of its own, and the first."""
        marks = Marks(self.errors.size, bits.pack(self.on), None, ("",) * len(self.on))
        whole = Units.of(marks, self.errors[None], self.strata if within else None)
        discovery, held = whole, None
        if holdout:
            rows = np.arange(self.errors.size)
            discovery, held = whole.take(rows[::2]), whole.take(rows[1::2])
        rules = judges.get(judge)
        plan = Plan(permutations=499).resolve(
            lift_ranked=rules.lift_ranked, gated=rules.confirmation == "gate"
        )
        verdicts = rule(rules, plan, discovery, held, marks).verdicts
        confirmed = [verdict is Verdict.CONFIRMED for verdict in verdicts]
        return any(confirmed[1:]), confirmed[0]


def draw_confounded(seed: int, effect: float) -> StructuredWorld:
    """Candidates that hold more often for hard units, among which they do not matter.

    Parameters
    ----------
    seed : int
    effect : float
        What the first candidate adds to the error rate, within hard units and within easy ones.
    """
    rng = stream(seed, "confounded decoys")
    hard = rng.random(UNITS) < 0.5
    on = rng.random((CANDIDATES, UNITS)) < np.where(hard, _SHARES[1], _SHARES[0])
    rates = np.where(hard, _RATES[1], _RATES[0]) + effect * on[0]
    errors = (rng.random(UNITS) < rates).astype(np.float64)
    return StructuredWorld(on, errors, hard.astype(np.int64))


def draw_correlated(seed: int, effect: float) -> StructuredWorld:
    """Candidates that agree on most units, of which the first may matter.

    Parameters
    ----------
    seed : int
    effect : float
        What the first candidate adds to the error rate.
    """
    rng = stream(seed, "correlated decoys")
    first = rng.random(UNITS) < 0.4
    own = rng.random((CANDIDATES, UNITS)) < 0.4
    on = np.where(rng.random((CANDIDATES, UNITS)) < _ALIKE, first, own)
    on[0] = first
    errors = rng.random(UNITS) < 0.3 + effect * first
    return StructuredWorld(on, errors.astype(np.float64))


def compare_decoys(replicates: int, progress: Progress) -> PaperTable:
    """The paper's single decoys beside structured ones, on worlds that are drawn here.

    Parameters
    ----------
    replicates : int
        Worlds of each kind, at least 2.
    progress : callable
    """
    lines = []
    for kind, draw, effect in (
        ("confounded", draw_confounded, LARGE),
        ("correlated", draw_correlated, SMALL),
    ):
        for planted in (0.0, effect):
            progress(f"structured decoys: {kind}, {planted:g} planted")
            lines.append(
                _compare(kind, [draw(seed, planted) for seed in range(replicates)], planted)
            )
    columns: dict[str, tuple[str, Kind]] = {
        "paper": ("paper's rule", "rate"),
        "ours": ("ours", "rate"),
        "difference": ("difference", "text"),
    }
    note = (
        f"{replicates} worlds of {UNITS} units and {CANDIDATES} candidates each; paired "
        "differences with Student's 95 % intervals. The paper's rule is janus-a, whose decoys are "
        "permuted one by one over all units. Ours: for confounded candidates the same rule with "
        "decoys drawn within hard and easy units (--within); for correlated ones max-t, the "
        "default for libraries that nobody fitted to the outcomes, which permutes all candidates "
        "together and holds nothing out. Where one is planted, its copies are no false findings."
    )
    return PaperTable("Structured decoys", note, columns, tuple(lines))


def _compare(kind: str, worlds: Sequence[StructuredWorld], planted: float) -> PaperRow:
    pairs = []
    for world in worlds:
        papers = world.count("janus-a", within=False, holdout=True)
        conditional = world.strata is not None
        ours = world.count(
            "janus-a" if conditional else "max-t", within=conditional, holdout=conditional
        )
        pairs.append([first if planted else first or other for other, first in (papers, ours)])
    paper, mine = np.array(pairs, dtype=np.float64).T
    ends = student(mine - paper)
    difference = f"{mine.mean() - paper.mean():+.2f}"
    difference += f" [{ends[0]:+.2f}, {ends[1]:+.2f}]" if ends else ", alike in all worlds"
    what = (
        f"{planted:g} planted: it is confirmed" if planted else "nothing planted: some is confirmed"
    )
    here: dict[str, Value] = {
        "paper": float(paper.mean()),
        "ours": float(mine.mean()),
        "difference": difference.replace("-", "−"),
    }
    return PaperRow(f"{kind} candidates, {what}", here)
