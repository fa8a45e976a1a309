"""Accuracy while suspected examples are rejected or relabelled one by one (DEIM's Improve)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from groundfault.stats.paired import more_errors
from groundfault_lab.stats.paired import sign_test

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# curves are means over orders of equals, so equal ones may differ in the last digits
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Improvement:
    """Accuracy after each of m steps, beside that of as many steps by least confidence.

    Attributes
    ----------
    act : {"rejected", "relabelled"}
        What is done to the examples.
    original : float
        Accuracy before the first step.
    accuracy, confidence : float64 arrays, shape (m,)
        After 1, ..., m steps; NaN where no example is left. Of equally suspected examples any may
        come first: it is the mean over their orders.
    p : float
        One-sided exact p-value of the last step: that rejection of as many random examples
        (Fisher's test), or no relabelling at all (sign test), would do as well.
    c_p : float
        The same against confidence, on the examples where the two differ.
    """

    act: Literal["rejected", "relabelled"]
    original: float
    accuracy: Floats
    confidence: Floats
    p: float
    c_p: float

    @property
    def steps(self) -> int:
        """Return how many examples are error-prone, m."""
        return len(self.accuracy)

    @property
    def proportion(self) -> float:
        """Return share of steps after which accuracy is above the original; NaN where there is no
        step."""
        return _share(self.accuracy > self.original + _SAME)

    @property
    def improvement(self) -> float:
        """Return accuracy after the last step minus the original one."""
        return float(self.accuracy[-1]) - self.original if self.steps else 0.0

    @property
    def c_proportion(self) -> float:
        """Return share of steps with an accuracy above that of confidence; NaN without steps."""
        return _share(self.accuracy > self.confidence + _SAME)

    @property
    def c_improvement(self) -> float:
        """Return accuracy after the last step minus that of confidence."""
        return float(self.accuracy[-1] - self.confidence[-1]) if self.steps else 0.0

    def summary(self, level: float = 0.05) -> str:
        """Return what was gained, and what of it is shown at that level."""
        if not self.steps:
            return f"no example is error-prone, so none was {self.act}"
        if np.isnan(self.accuracy[-1]):
            return f"every example is error-prone, and with all {self.act} none is left"
        chance = "chance" if self.act == "rejected" else "relabelling none"
        comparisons = [
            f"{'better' if p <= level else 'not shown to be better'} than {other} (p = {p:.2g})"
            for other, p in ((chance, self.p), ("confidence", self.c_p))
        ]
        return (
            f"{self.steps} examples {self.act}: accuracy {self.original:.1%} before, "
            f"{self.accuracy[-1]:.1%} after, {self.confidence[-1]:.1%} by confidence; "
            f"{', '.join(comparisons)}"
        )


def reject(suspicion: Floats, error_prone: Bools, probability: Floats, wrong: Bools) -> Improvement:
    """Reject error-prone examples, the most suspected first: accuracy of those that are left.

    Parameters
    ----------
    suspicion : float array, shape (n,)
        Such as Eq. 10 of the paper, the responsibility of all error slices; computed without
        labels.
    error_prone : bool array, shape (n,)
        The m examples that are rejected; by confidence as many are.
    probability : float array, shape (n, c)
        Predicted.
    wrong : bool array, shape (n,)
        Whether the prediction is.

    References
    ----------
    Hua et al., "Discover, Explain, Improve", TACL 2023, sections 4.3.1 and 5.3.1.
    https://doi.org/10.1162/tacl_a_00617"""
    m = int(error_prone.sum())
    right = (~wrong).astype(np.float64)
    sizes = len(wrong) - np.arange(1.0, m + 1)

    def accuracy(removed: Floats) -> Floats:
        return np.asarray(
            np.divide(right.sum() - removed, sizes, out=np.full(m, np.nan), where=sizes > 0)
        )

    others = find_least_confident(probability, m)
    alone, others_alone = wrong[error_prone & ~others], wrong[others & ~error_prone]
    both = int(alone.sum() + others_alone.sum())
    return Improvement(
        "rejected",
        float(right.mean()),
        accuracy(sum_in_order(suspicion[error_prone], right[error_prone])),
        accuracy(sum_in_order(-probability.max(axis=1), right)[:m]),
        more_errors(int(wrong[error_prone].sum()), m, int(wrong.sum()), len(wrong)),
        more_errors(int(alone.sum()), len(alone), both, 2 * len(alone)),
    )


def relabel(
    suspicion: Floats, error_prone: Bools, probability: Floats, label: Ints, new: Ints
) -> Improvement:
    """Relabel error-prone examples, the most suspected first: accuracy of all.

    The baseline gives as many examples, of least confidence, their second likeliest class: the
    paper's "next confident label in the corresponding error slice", though examples of least
    confidence need be in none.

    Parameters
    ----------
    suspicion, error_prone, probability
        As for `reject`.
    label : int array, shape (n,)
        True classes.
    new : int array, shape (n,)
        What error-prone examples are relabelled to; an entry that is the prediction is a step that
        changes nothing.

    References
    ----------
    Hua et al., "Discover, Explain, Improve", TACL 2023, sections 4.3.2 and 5.3.2.
    https://doi.org/10.1162/tacl_a_00617"""
    n, m = len(label), int(error_prone.sum())
    right = probability.argmax(axis=1) == label
    # the class of second-highest probability: what confidence alone would relabel to
    second = np.argsort(-probability, axis=1, kind="stable")[:, 1]
    gain, other = (np.subtract(to == label, right, dtype=np.float64) for to in (new, second))
    ours = np.where(error_prone, gain, 0.0)
    difference = ours - np.where(find_least_confident(probability, m), other, 0.0)
    return Improvement(
        "relabelled",
        float(right.mean()),
        (right.sum() + sum_in_order(suspicion[error_prone], gain[error_prone])) / n,
        (right.sum() + sum_in_order(-probability.max(axis=1), other)[:m]) / n,
        sign_test(int((ours > 0).sum()), int((ours < 0).sum())),
        sign_test(int((difference > 0).sum()), int((difference < 0).sum())),
    )


def sum_in_order(score: Floats, value: Floats) -> Floats:
    """Return sums of the values of the 1, ..., n highest scores: shape (n,); equals count on
    average.

    Examples
    --------
    >>> sum_in_order(np.array([0.5, 0.9, 0.5]), np.array([1.0, 1.0, 0.0]))
    array([1. , 1.5, 2. ])
    """
    # equal scores have no order: their values are averaged over all of them
    _, home = np.unique(-score, return_inverse=True)
    ends = np.concatenate([[0], np.cumsum(np.bincount(home))])
    sums = np.concatenate([[0.0], np.cumsum(np.bincount(home, weights=value))])
    return np.asarray(np.interp(np.arange(1, len(score) + 1), ends, sums))


def find_best_threshold(confidence: Floats, gain: Floats) -> float:
    """Return the confidence below which relabelling gains most; of equally good ones the lowest.

    Parameters
    ----------
    confidence : float array, shape (n,)
    gain : float array, shape (n,)
        1 where relabelling mends an example, -1 where it breaks one, else 0.

    Returns
    -------
    float
        Half-way between two confidences; 0 where relabelling none is best, infinity where
        relabelling all is.

    Examples
    --------
    >>> find_best_threshold(np.array([0.4, 0.6, 0.8]), np.array([1.0, 0.0, -1.0]))
    0.5
    """
    levels, home = np.unique(confidence, return_inverse=True)
    sums = np.concatenate(
        [[0.0], np.cumsum(np.bincount(home, weights=gain, minlength=len(levels)))]
    )
    best = int(sums.argmax())
    if best in (0, len(levels)):
        return 0.0 if best == 0 else float("inf")
    return float(levels[best - 1] + levels[best]) / 2


def _share(true: Bools) -> float:
    return float(true.mean()) if len(true) else float("nan")


def find_least_confident(probability: NDArray[np.float64], count: int) -> NDArray[np.bool_]:
    """Return the ``count`` examples of lowest largest class probability; of equals, the first."""
    uncertain = np.zeros(len(probability), dtype=np.bool_)
    # stable: which of equal confidences comes first must not depend on the sorting algorithm
    uncertain[np.argsort(probability.max(axis=1), kind="stable")[:count]] = True
    return uncertain
