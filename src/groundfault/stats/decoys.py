"""The decoy floor: find lifts that beat decoys of the same frequency (Janus, arXiv:2606.09046).

Sections 2.1-2.2 of the paper.

A decoy permutes a descriptor's values among the units. The expected number of decoys above a lift
is known exactly (`groundfault.stats.null_distributions`), so decoys need not be drawn. Judges can
still draw them to reproduce the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Correction = Literal["none", "paper", "inside"]

# a ratio that equals q but for rounding counts as at most q
_ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class Floor:
    """A floor under discovery lifts, and the curve it was chosen from.

    Attributes
    ----------
    threshold : float or None
        The floor; None if every threshold has too many false discoveries.
    fdp : float or None
        The estimated false-discovery proportion at the floor.
    inclusive : bool
        Whether a lift equal to the floor survives (Procedure A) or must be above it (Janus-lite).
    levels : float64 array, shape (T,)
        The distinct sizes of real lifts, descending.
    real : int64 array, shape (T,)
        Descriptors at or above each level.
    decoy : float64 array, shape (T,)
        Decoys expected at or above each level, on the scale of the real library.
    """

    threshold: float | None
    fdp: float | None
    inclusive: bool
    levels: Floats
    real: NDArray[np.int64]
    decoy: Floats

    def survives(self, scores: Floats) -> NDArray[np.bool_]:
        """Return which scores clear the floor."""
        if self.threshold is None:
            return np.zeros(len(scores), dtype=np.bool_)
        return scores >= self.threshold if self.inclusive else scores > self.threshold

    @property
    def curve(self) -> list[dict[str, float]]:
        """Return one row a level: threshold, real, decoy and fdp."""
        return [
            {"threshold": float(t), "real": int(r), "decoy": float(d), "fdp": float(d / max(1, r))}
            for t, r, d in zip(self.levels, self.real, self.decoy, strict=True)
        ]


def count_levels(scores: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Return the distinct scores, descending, and how many scores are at or above each."""
    distinct, counts = np.unique(scores, return_counts=True)
    return distinct[::-1].copy(), counts[::-1].cumsum()


def procedure_a(scores: Floats, decoy: Floats, q: float) -> Floor:
    """Return the smallest score whose estimated false-discovery proportion is at most ``q``.

    Parameters
    ----------
    scores : float64 array, shape (L,)
        Sizes of the real lifts.
    decoy : float64 array, shape (T,)
        Decoys expected at or above each of the distinct scores, ascending, on the scale of the real
        library.
    q : float
        Target proportion.

    Notes
    -----
    The proportion is not monotone in the threshold: the smallest threshold at most q is taken even
    where a larger one exceeds q, as the paper's "most permissive". An empirical screen, not a
    guarantee of the false discovery rate."""
    distinct, real = count_levels(scores)
    decoy_counts = decoy[::-1].copy()
    fdp = decoy_counts / np.maximum(1, real)
    low = np.flatnonzero(fdp <= q * _ROUNDING)
    if len(low) == 0:
        return Floor(None, None, True, distinct, real, decoy_counts)
    at = low[-1]
    return Floor(float(distinct[at]), float(fdp[at]), True, distinct, real, decoy_counts)


def scale_counts(
    decoys: Floats, thresholds: Floats, descriptors: int, correction: Correction = "none"
) -> Floats:
    """Return sampled decoys at or above each ascending threshold, scaled to the real library.

    Parameters
    ----------
    decoys : float64 array, shape (K,)
        Sizes of the decoys' lifts.
    thresholds : float64 array, shape (T,)
        Ascending.
    descriptors : int
        Size L of the real library.
    correction : {"none", "paper", "inside"}
        ``L/K * D``; ``1 + L/K * D``, from the paper's footnote; or ``L/(K+1) * (1 + D)``, valid for
        every K.
    """
    count = len(decoys) - np.searchsorted(np.sort(decoys), thresholds, side="left")
    if correction == "inside":
        return np.asarray(descriptors / (len(decoys) + 1) * (1 + count), dtype=np.float64)
    estimate = np.asarray(descriptors / len(decoys) * count, dtype=np.float64)
    return estimate + 1 if correction == "paper" else estimate
