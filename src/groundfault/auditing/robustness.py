"""Robustness: how much a verdict owes to its split, by repeating the rule over random splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from groundfault.core.finding import Verdict
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Units
from groundfault.judges.rule import rule


@dataclass(frozen=True)
class Frequency:
    """Outcome of the repeats.

    Attributes
    ----------
    splits : int
    nonempty : float
        Share of splits in which anything was confirmed.
    confirmed : float64 array, shape (L * M,)
        Share of splits in which each hypothesis was. All splits reuse one sample: this is no
        probability of being true.
    """

    splits: int
    nonempty: float
    confirmed: NDArray[np.float64]


def confirmation_frequency(
    judge: Judge, plan: Plan, units: Units, splits: int, jobs: int = 1
) -> Frequency:
    """Repeat the rule over random splits (Janus, appendix C).

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Resolved.
    units : Units
        All units.
    splits : int
    jobs : int
        Processes; the answer is the same for every number. Another backend is chosen with
        ``joblib.parallel_config``.
    """
    from joblib import Parallel, delayed

    # several blocks a process: splits take unequal time, and each task copies the units
    blocks = np.array_split(np.arange(splits), min(splits, max(1, 4 * jobs)))
    parts = Parallel(n_jobs=jobs)(delayed(_block)(judge, plan, units, block) for block in blocks)
    hits = np.concatenate(parts)
    return Frequency(splits, float(hits.any(axis=1).mean()), hits.mean(axis=0))


def _block(judge: Judge, plan: Plan, units: Units, block: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.stack([_one(judge, plan, units, int(b)) for b in block])


def _one(judge: Judge, plan: Plan, units: Units, number: int) -> NDArray[np.bool_]:
    # a random stream of its own for each split, so that the number of processes changes nothing
    purpose = f"robustness/{number}"
    if judge.confirmation == "none":
        ruling = rule(judge, plan, units, None, units.marks, purpose)
    else:
        holdout = np.zeros(len(units), dtype=np.bool_)
        holdout[
            plan.rng(purpose).permutation(len(units))[: int(to_fraction(plan.holdout) * len(units))]
        ] = True
        ruling = rule(
            judge,
            plan,
            units.select_units(~holdout),
            units.select_units(holdout),
            units.marks,
            purpose,
        )
    return np.array([v is Verdict.CONFIRMED for v in ruling.verdicts])
