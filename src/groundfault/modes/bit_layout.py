"""Layout: where each unit stands in a row of bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

Bools = NDArray[np.bool_]


class Layout:
    """Where each unit stands in a row of bits: every stratum begins a word of its own.

    So that what is expected of a word's units is one number.

    Parameters
    ----------
    strata : int64 array, shape (units,)
        From 0.
    """

    def __init__(self, strata: NDArray[np.int64]) -> None:
        self.strata = strata
        sizes = np.bincount(strata)
        self.words = np.repeat(np.arange(len(sizes)), (sizes + 63) // 64)
        start = np.concatenate([[0], np.cumsum((sizes + 63) // 64 * 64)[:-1]])
        order = np.argsort(strata, kind="stable")
        offset = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.place = np.empty(len(strata), dtype=np.intp)
        within = np.arange(len(strata)) - offset[strata[order]]
        self.place[order] = start[strata[order]] + within
        self.width = 64 * len(self.words)
        # where the words of each stratum begin, and where the last ones end
        self.runs = np.searchsorted(self.words, np.arange(len(sizes) + 1)).astype(np.int64)

    def pack(self, rows: Bools) -> Bits:
        """Pack rows of one value a unit: bool, shape (R, units) to (R, words)."""
        wide = np.zeros((len(rows), self.width), dtype=np.bool_)
        wide[:, self.place] = rows
        return bitset.pack(wide)

    def arrange(self, rows: Sequence[Bits]) -> Bits:
        """Return packed rows in the order of this layout: one stratum has that of the units."""
        out, units = np.empty((len(rows), len(self.words)), dtype=np.uint64), len(self.strata)
        for place, row in enumerate(rows):
            alike = len(self.runs) == 2
            out[place] = row if alike else self.pack(bitset.unpack(row[None], units))[0]
        return out

    def unpack(self, rows: Bits) -> Bools:
        """Return the rows that `pack` packed."""
        return bitset.unpack(rows, self.width)[:, self.place]
