"""Conjunctions: two or three candidates that hold together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from groundfault.core.candidate import Candidate, Library, Missing
from groundfault.core.evidence import Evidence
from groundfault.core.units import Marks
from groundfault.errors import PlanError
from groundfault.finders import Parameters
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

# a conjunction is as strict about missing values as its strictest part
_STRICTEST: tuple[Missing, ...] = ("reject", "drop", "off")


@dataclass(frozen=True)
class Interactions(Parameters):
    """Propose conjunctions of candidates from other finders or from people.

    The finder leaves out conjunctions with fewer than ``min_size`` discovery units (two levels of
    one category share no units), or with the same units as a base or an earlier conjunction. It
    also leaves out conjunctions of slices that were fitted apart, since a candidate has at most one
    fitted column. If a base is NULL, the strictest treatment of the parts applies: reject, else
    drop, else off.

    Parameters
    ----------
    bases : tuple of Candidate
        Candidates to combine.
    order : tuple of int
        Number of bases in a conjunction: pairs, triples, ...
    min_size : int
        A conjunction needs at least this many discovery units.
    max_candidates : int
        Refuse to propose more than this many: each costs power, and a silent cut would hide some.

    Raises
    ------
    PlanError
        If an order is not at least 2, or there are more than ``max_candidates`` conjunctions.
    RuleError
        If a base cannot be applied to the discovery rows.
    """

    bases: tuple[Candidate, ...]
    order: tuple[int, ...] = (2, 3)
    min_size: int = 5
    max_candidates: int = 5000
    name: str = "interactions"

    def __post_init__(self) -> None:
        if not self.order or min(self.order) < 2:
            raise PlanError(f"order={self.order} must name 2 (pairs), 3 (triples) or more")

    def propose(self, discovery: Evidence) -> list[Candidate]:
        """Propose conjunctions such as ``long AND lang = de``, pairs first."""
        library = Library.of(self.bases)
        on = Marks.of(discovery, library).on
        # a conjunction with the same units as its part is redundant
        digests = {_digest(row) for row in on}
        combinations: list[list[Candidate]] = []
        parts: list[tuple[int, ...]] = [(i,) for i in range(len(library))]
        for size in range(2, max(self.order) + 1):
            longer_parts = []
            for part in parts:
                for longer in self._extend(on, part, digests):
                    longer_parts.append(longer)
                    bases = [library[i] for i in longer]
                    # a candidate carries one fitted column at most
                    fits = {base.fitted_column for base in bases} - {None}
                    if size in self.order and len(fits) <= 1:
                        combinations.append(bases)
                # refused, not cut: the cut would depend on the order of candidates
                if len(combinations) > self.max_candidates:
                    raise PlanError(
                        f"{len(library)} candidates make more than {self.max_candidates} "
                        "conjunctions (max_candidates): combine fewer, ask for pairs only "
                        "(interactions:2, order=(2,)), or raise min_size or max_candidates"
                    )
            parts = longer_parts
        # each rule is parsed, which takes far longer than counting: not before all are counted
        return [self._conjunction(bases) for bases in combinations]

    def _extend(
        self, on: Bits, part: tuple[int, ...], digests: set[bytes]
    ) -> Iterator[tuple[int, ...]]:
        """Return each later base's part that has enough units and differs from earlier ones."""
        later = np.arange(part[-1] + 1, len(on))
        joint = on[later] & np.bitwise_and.reduce(on[list(part)])
        for k in np.flatnonzero(bitset.count(joint) >= self.min_size):
            digest = _digest(joint[k])
            if digest not in digests:
                digests.add(digest)
                yield (*part, int(later[k]))

    def _conjunction(self, bases: list[Candidate]) -> Candidate:
        return Candidate(
            " AND ".join(base.name for base in bases),
            " AND ".join(f"({base.rule})" for base in bases),
            " and ".join(base.meaning for base in bases),
            self.name,
            min((base.missing for base in bases), key=_STRICTEST.index),
            next((base.fitted_column for base in bases if base.fitted_column), None),
            next((base.mined for base in bases if base.mined), ""),
        )


def _digest(row: Bits) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()
