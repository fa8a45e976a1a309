"""Scans of all rows by an engine, and the losses of their cells.

A cell holds the rows with equal outcome, status and part. With its number of rows it takes the
place of a single row in memory: there is one loss a cell, and a part consists of some cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.candidate import Candidate, Library
from groundfault.core.counted_units import CountedMarks, CountedUnits
from groundfault.core.units import classify_sizes
from groundfault.engines import CellCounts
from groundfault.errors import InputError
from groundfault.stats.loss_counts import LossCounts

GRADED_JUDGES = ("holm", "bh", "by", "split-holm")
"""Judges that take graded losses by counts."""

MAX_DEALT = 10**9
"""Number of rows from which failures are not dealt to cells: numpy's draws take fewer."""

PART = "part"
"""The key of cells that tells discovery from the holdout."""
_PAIRS = 100
"""Pairs of candidates that one scan compares: three expressions each."""


@dataclass(frozen=True)
class Scan:
    """Cells of part, outcome and status; arrays of shape (C,).

    Attributes
    ----------
    cells : CellCounts
    loss : float64 array
        In [0, 1]; NaN where not scored.
    status : polars.Series of String
    is_discovery : bool array
        Whether the cell is in discovery; all True without a holdout.
    scored, rows : int64 arrays
        Scored rows and all rows of each unit in the cell: several for groups; else 0 or 1, and 1.
    """

    cells: CellCounts
    loss: Floats
    status: pl.Series
    is_discovery: Bools
    scored: Ints
    rows: Ints

    @property
    def strata(self) -> Ints | None:
        """Return the size classes of groups; None if all are means of similar numbers of rows."""
        return classify_sizes(self.scored)

    def fill(self, loss: int) -> Floats:
        """Return the losses with 1 or 0 for all unscored rows."""
        return (
            np.nan_to_num(self.loss) * self.scored + loss * (self.rows - self.scored)
        ) / self.rows

    def sum_rules(self, library: Library, where: Bools) -> tuple[Ints, Ints]:
        """Return the rows of some cells on which each candidate is defined, and true."""
        drops = np.array([candidate.missing == "drop" for candidate in library])
        defined = self.cells.defined[where, : len(library)].sum(axis=0)
        on = self.cells.on[where, : len(library)].sum(axis=0)
        return np.where(drops, defined, int(self.cells.rows[where].sum())), on

    def make_units(
        self, library: Library, marks: CountedMarks, loss: Floats, part: Bools | None = None
    ) -> CountedUnits:
        """Return the rows of some or all cells whose losses are not NaN.

        Parameters
        ----------
        library : Library
        marks : CountedMarks
            Of all rows.
        loss : float64 array, shape (C,)
        part : bool array, shape (C,), optional
        """
        cells, strata = self.cells, self.strata
        part = np.ones(len(cells), dtype=np.bool_) if part is None else part
        scored = part & ~np.isnan(loss)
        home = np.zeros(len(cells), dtype=np.int64) if strata is None else strata
        pairs = list(zip(home[scored], loss[scored], strict=True))
        # 0 and 1 always, so that a part without failures also has their counts
        kinds = sorted({*pairs, (home.min(), 0.0), (home.min(), 1.0)})
        of_kind = [scored & (home == stratum) & (loss == value) for stratum, value in kinds]
        sums = [self.sum_rules(library, where) for where in of_kind]
        defined, on = (np.stack(each) for each in zip(*sums, strict=True))
        rows = np.array([cells.rows[where].sum() for where in of_kind])
        empty = None
        if marks.empty is not None:
            values = [cells.defined[where, : on.shape[1]].sum(axis=0) for where in of_kind]
            empty = rows[:, None] - np.stack(values)
        losses, places = np.array([value for _, value in kinds]), np.array([s for s, _ in kinds])
        return CountedUnits.of_counts(
            replace(marks, size=int(cells.rows[part].sum())),
            LossCounts(losses, rows, defined, on, None if strata is None else places),
            empty,
        )


def is_graded(losses: Floats) -> bool:
    """Return whether a loss that is a number differs from 0 and 1."""
    return not bool(np.isin(losses[~np.isnan(losses)], (0.0, 1.0)).all())


def find_copies(
    lazy: LazyEvidence, library: Library, cells: CellCounts, unusable: Sequence[str]
) -> tuple[Places, Bools]:
    """Find for each candidate the earliest that is true for the same rows, or for the others.

    The engine compares candidates row by row if their counts allow it.

    Returns
    -------
    first : intp array, shape (L,)
    is_mirrored : bool array, shape (L,)
        Whether the earliest is true for exactly the other rows.
    """
    first = np.arange(len(library), dtype=np.intp)
    is_mirrored = np.zeros(len(library), dtype=np.bool_)
    values = [spell_value(candidate) for candidate in library]
    defined = [
        cells.defined[:, j] if candidate.missing == "drop" else cells.rows
        for j, candidate in enumerate(library)
    ]
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for j in range(len(library)):
        on = cells.on[:, j]
        # rules that are true nowhere, or everywhere, cannot be tested
        if not unusable[j] and on.any() and (on < defined[j]).any():
            key = min(on.tobytes(), (defined[j] - on).tobytes()), defined[j].tobytes()
            groups.setdefault(key, []).append(j)
    pairs = [
        (i, j)
        for members in groups.values()
        for place, j in enumerate(members)
        for i in members[:place]
    ]
    for start in range(0, len(pairs), _PAIRS):
        batch = pairs[start : start + _PAIRS]
        rules = [rule for i, j in batch for rule in _compare(values[i], values[j])]
        differences = lazy.counter.counts(rules, {}).on.sum(axis=0).reshape(-1, 3)
        for (i, j), (gaps, same, other) in zip(batch, differences, strict=True):
            if gaps == 0 and (same == 0 or other == 0) and first[j] == j:
                first[j], is_mirrored[j] = first[i], is_mirrored[i] ^ (same != 0)
    return first, is_mirrored


def spell_value(candidate: Candidate) -> str:
    """Write a candidate's rule with its setting for rows without a value."""
    sql = candidate.parsed.sql
    return f"({sql})" if candidate.missing == "drop" else f"COALESCE({sql}, FALSE)"


def _compare(one: str, other: str) -> tuple[str, str, str]:
    """Write three rules, true nowhere if two candidates are defined alike, agree, are opposites."""
    gaps = f"({one} IS NULL) <> ({other} IS NULL)"
    return gaps, f"{one} <> {other}", f"{one} = {other}"


def find_discovery(cells: CellCounts, split: str | None) -> Bools:
    """Return the cells of discovery: all cells without a holdout."""
    if PART not in cells.keys.columns:
        return np.ones(len(cells), dtype=np.bool_)
    parts = cells.keys[PART]
    if split:
        unknown = [part for part in parts.unique() if part not in ("discovery", "holdout")]
        if unknown:
            raise InputError(
                f"split column {split!r} holds {unknown[0]!r}; its words must be "
                "'discovery' and 'holdout'"
            )
        parts = parts == "discovery"
    is_discovery = parts.cast(pl.Boolean).to_numpy().astype(np.bool_)
    if is_discovery.all() or not is_discovery.any():
        raise InputError("one part has no rows; both discovery and holdout are needed")
    return is_discovery
