"""Labels where a model writes cases for the group that a sequential audit doubts.

The writer here draws unseen cases from the group itself: no model can write truer ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from groundfault.base.long_work import stream
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan
from groundfault.sequential.policies import Policy, Query

BEFORE = 20
"""Labels before cases are written: the median audit of known_holes needs some ten more."""

CASES = 40
"""Cases written: twice the default of ``lab cases``, and as many as a group of the pools has."""


def label_written(
    pool: Pool,
    plan: SequentialPlan,
    policy: Policy,
    scores: NDArray[np.float64],
    whole: Pool,
    all_scores: NDArray[np.float64],
    asked: NDArray[np.int64],
) -> tuple[str, int, str | None]:
    """Audit a pool until 20 labels, then the cases written for its doubted group, then the pool on.

    The written cases are a population of their own: their labels count for no claim about the pool.

    Parameters
    ----------
    pool : Pool
    plan : SequentialPlan
        Of the audit of the pool; the other one has its threshold and seed.
    policy : Policy
        Of the audit of the pool.
    scores : float64 array, shape (len(pool),)
    whole : Pool
        All cases of which the pool is a sample, and the writer's are another one.
    all_scores : float64 array, shape (len(whole),)
    asked : int64 array
        Places of the pool's cases among all.

    Returns
    -------
    (verdict, labels, right)
        Of the audit that came to a verdict; right is None where it is about the pool.
    """
    audit, doubted = SequentialAudit.of(pool, plan, policy=policy), None
    while audit.labelled < BEFORE and (query := audit.ask()) is not None:
        audit.tell(query, float(scores[pool.position[query.id]]))
        doubted = query.group if query.claim else doubted
    spent = 0
    if doubted is not None and not audit.finished:
        members = whole.members[whole.groups.index(doubted)]
        fresh = np.setdiff1d(np.flatnonzero(members), asked)
        rows = stream(plan.seed or 0, "written cases").permutation(fresh)[:CASES]
        ids = [f"w{n:02d}" for n in range(len(rows))]
        own = Pool.from_arrays(ids, {"group": [doubted] * len(rows)}, generated=True)
        written = SequentialAudit(own, threshold=plan.threshold, seed=plan.seed)
        verdict = written.run(_look_up(own, all_scores[rows]))
        spent = written.labelled
        if verdict == "failure mode found":
            sound = all_scores[members].mean() >= plan.threshold
            return verdict, audit.labelled + spent, "audit passed" if sound else verdict
    verdict = audit.run(_look_up(pool, scores))
    return verdict, audit.labelled + spent, None


def _look_up(pool: Pool, scores: NDArray[np.float64]) -> Callable[[Query], float]:
    return lambda query: float(scores[pool.position[query.id]])
