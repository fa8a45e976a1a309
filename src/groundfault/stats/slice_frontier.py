"""What a slice search holds between levels: the best slices so far, and those to be extended."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from groundfault.stats.slices import Floats, Ids, Ints


@dataclass
class BestSlices:
    """The k best slices so far, with those that rounding cannot tell from the k-th."""

    k: int
    slack: float
    members: Ids
    scores: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def floor(self) -> float:
        """No score below this is among the k best; it has to be above 0 to count at all."""
        # twice: the k-th score and the score beside it may both be off by the slack
        return max(self._kth - 2 * self.slack, -self.slack)

    @property
    def _kth(self) -> float:
        if len(self.scores) < self.k:
            return -np.inf
        # partition, as the list is offered to after every batch and need not be sorted
        return float(np.partition(self.scores, -self.k)[-self.k])

    def offer(self, members: Ids, scores: Floats) -> None:
        """Add slices, and drop those that are no longer among the k best."""
        self.members = np.concatenate([self.members, members])
        self.scores = np.concatenate([self.scores, scores])
        stay = self.scores >= self.floor
        self.members, self.scores = self.members[stay], self.scores[stay]


@dataclass(frozen=True)
class Parents:
    """Slices to be extended, sorted by predicates, with sizes, error sums and largest means."""

    members: Ids
    stats: Ints
    bounds: Floats

    @classmethod
    def of(cls, members: Ids, stats: Ints, bounds: Floats) -> Parents:
        """Sort slices by their predicates."""
        # lexsort takes its last key first; the join looks parents up by binary search in this order
        order = np.lexsort(members.T[::-1])
        return cls(
            np.ascontiguousarray(members[order]),
            np.ascontiguousarray(stats[:, order]),
            bounds[order],
        )

    def ends(self) -> Ints:
        """Where the run of those that share all but the last predicate ends, for each."""
        new = np.any(np.diff(self.members[:, :-1], axis=0) != 0, axis=1)
        stops = np.append(np.flatnonzero(new) + 1, len(self.members))
        return np.repeat(stops, np.diff(stops, prepend=0))


@dataclass
class Extendable:
    """Slices of a level that may be extended; about four times ``max_parents`` are held at most."""

    max_parents: int | None
    parts: list[tuple[Ids, Ints, Floats]] = field(default_factory=list)
    dropped: int = 0
    missed: float = -np.inf

    def add(self, members: Ids, stats: Ints, bounds: Floats) -> None:
        """Add slices with their upper bounds on the score of any part."""
        self.parts.append((members, stats, bounds))
        if (
            self.max_parents is not None
            and sum(len(part[2]) for part in self.parts) > 4 * self.max_parents
        ):
            self._trim(-np.inf)

    def _trim(self, floor: float) -> None:
        members = np.concatenate([part[0] for part in self.parts])
        stats = np.concatenate([part[1] for part in self.parts], axis=1)
        bounds = np.concatenate([part[2] for part in self.parts])
        stay = np.flatnonzero(bounds >= floor)
        if self.max_parents is not None and len(stay) > self.max_parents:
            # ties go to the smaller predicates, so that the choice does not depend on the order of
            # counting
            stay = stay[np.lexsort((*members[stay].T[::-1], -bounds[stay]))]
            self.dropped += len(stay) - self.max_parents
            self.missed = max(self.missed, float(bounds[stay[self.max_parents]]))
            stay = stay[: self.max_parents]
        self.parts = [(members[stay], stats[:, stay], bounds[stay])]

    def parents(self, floor: float) -> Parents | None:
        """What is to be extended, with the floor as it is now; None for nothing."""
        if not self.parts:
            return None
        self._trim(floor)
        # the floor rose above all that was dropped: nothing was lost after all
        if self.missed < floor:
            self.dropped, self.missed = 0, -np.inf
        [(members, stats, bounds)] = self.parts
        return Parents.of(members, stats, bounds) if len(bounds) else None
