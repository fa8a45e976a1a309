"""Cells: the cases that belong to the same groups, of which a policy can know no more than that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Cells:
    """The coarsest partition of N cases of which every group is a union.

    Where groups overlap, draws from one use up a part of another, and what is left of that one is
    no sample of it any more. Inside a cell nothing distinguishes the cases that are left from those
    that were drawn. A draw from a group is therefore made from its cells, each as likely as its
    share of the *whole* group.

    Attributes
    ----------
    numbers : intp array, shape (N,)
        The cell of each case: 0, 1, 2, ...
    members : bool array, shape (G, N)
    """

    numbers: NDArray[np.intp]
    members: Bools

    @classmethod
    def of(cls, members: Bools) -> Cells:
        """The cells of groups, bool, shape (G, N)."""
        packed = np.packbits(members, axis=0).T
        numbers = np.unique(packed, axis=0, return_inverse=True)[1].reshape(-1)
        return cls(numbers.astype(np.intp), members)

    def find_open(self, available: Bools) -> Bools:
        """The cases whose cell has a case left, labelled themselves or not: bool, shape (N,)."""
        has_rest = np.zeros(int(self.numbers.max()) + 1, dtype=np.bool_)
        has_rest[self.numbers[available]] = True
        return np.asarray(has_rest[self.numbers])

    def find_rest(self, position: int, available: Bools) -> Bools:
        """What is left of the cell of a case: bool, shape (N,)."""
        return np.asarray(available & (self.numbers == self.numbers[position]))

    def compute_thresholds(
        self, threshold: float, available: Bools
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What a draw from each group is tested against: two float64 arrays, shape (G,).

        If a group's mean is at least ``threshold``, the mean of its cells that have a case left is
        at least the first; if it is at most ``threshold``, it is at most the second. Both are the
        threshold itself as long as no cell is used up; ``-inf`` and ``inf`` where all are.
        """
        sizes = self.members.sum(axis=1).astype(np.float64)
        open_sizes = (self.members & self.find_open(available)).sum(axis=1).astype(np.float64)
        # of a cell that is used up nothing is assumed but that its mean lies in [0, 1]
        lost = sizes - open_sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(lost > 0, (threshold * sizes - lost) / open_sizes, threshold)
            high = np.where(lost > 0, threshold * sizes / open_sizes, threshold)
        return low, high
