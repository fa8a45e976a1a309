"""Evidence from a new model's answers on which leaves it fails beyond its ability."""

from __future__ import annotations

import numpy as np

from groundfault.base.arrays import Bools, Floats, Places
from groundfault_lab.stats import irt
from groundfault_lab.taxonomy.use.basis import Basis, normalise

# log odds by which a model that fails a leaf exceeds what its ability explains: e, e^2 and e^3
# times the odds; the middle one is what a leaf is cleared of
_SHIFTS = (1.0, 2.0, 3.0)
_CLEARED = 2.0


def weigh_leaves(basis: Basis, answered: Bools, failures: Bools) -> tuple[Floats, Floats]:
    """Weigh for each cluster whether the model fails more in it, and whether it does not.

    Parameters
    ----------
    basis : Basis
        Of other models.
    answered, failures : bool arrays, shape (n,)

    Returns
    -------
    float64 arrays, shape (clusters,)
        E-values: against what ability explains, and against odds of failing e^2 times as large.

    Notes
    -----
    Each is a ratio of two likelihoods of all answers, averaged over a standard normal ability;
    the first also over shifts of the log odds inside the cluster. Of a model whose ability is drawn
    so, and items as they were fitted, the first is a martingale with mean 1 as answers come in,
    whatever is asked next: it exceeds 1 / level at any time with a probability of at most the level
    (Ville 1939). So does the second where the odds are e^2 times as large.
    """
    rows = np.flatnonzero(answered)
    curve = np.clip(basis.curve[rows], 1e-6, 1 - 1e-6)
    odds, failed = np.log1p(-curve) - np.log(curve), failures[rows][:, None]
    logs = _log_chance(odds, failed)
    prior = logs.sum(axis=0) - irt.GRID**2 / 2
    inside = basis.inside[rows]
    shifted = np.stack(
        [prior + inside.T @ (_log_chance(odds + shift, failed) - logs) for shift in _SHIFTS]
    )
    whole = np.logaddexp.reduce(prior)
    ratios = np.logaddexp.reduce(shifted, axis=2) - whole
    fails = np.exp(np.clip(np.logaddexp.reduce(ratios, axis=0) - np.log(len(_SHIFTS)), -700, 700))
    return fails, np.exp(np.clip(-ratios[_SHIFTS.index(_CLEARED)], -700, 700))


def choose_for_leaves(
    basis: Basis, answered: Bools, failures: Bools, wanted: Places, budget: int, priority: Floats
) -> Places:
    """Choose the examples that tell most whether a model fails the leaves that are wanted.

    Parameters
    ----------
    basis : Basis
    answered, failures : bool arrays, shape (n,)
    wanted : int array
        Leaves in their order; each gets an example in turn.
    budget : int
    priority : float64 array, shape (n,)
        Uniform draws, for equals.
    """
    right, wrong = basis.log_chances
    density = right[answered & ~failures].sum(axis=0) + wrong[answered & failures].sum(axis=0)
    weight = normalise((density - irt.GRID**2 / 2)[None])[0]
    p = np.clip(1 - basis.curve @ weight, 1e-6, 1 - 1e-6)
    q = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + _CLEARED)))
    # by how much the log of the e-value grows where the model fails the leaf
    growth = q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
    order = np.lexsort((priority, -growth))
    order = order[~answered[order]]
    queues = [order[basis.inside[order, leaf] > 0].tolist() for leaf in wanted]
    chosen: dict[int, None] = {}
    while len(chosen) < budget and any(queues):
        for queue in queues:
            while queue and queue[0] in chosen:
                queue.pop(0)
            if queue and len(chosen) < budget:
                chosen[queue.pop(0)] = None
    rest = [i for i in order.tolist() if i not in chosen]
    return np.array([*chosen, *rest][:budget], dtype=np.intp)


def _log_chance(odds: Floats, failed: Bools) -> Floats:
    """Return the log chance of what was seen, from the log odds of failing."""
    return np.asarray(-np.logaddexp(0.0, np.where(failed, -odds, odds)))
