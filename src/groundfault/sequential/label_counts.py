"""Counts of labels: which cases were scored, and what the rest of each group has to reach."""

from __future__ import annotations

import numpy as np

from groundfault.base.arrays import Bools, Floats
from groundfault.sequential.certificate import GroupCount
from groundfault.sequential.claims import Claim
from groundfault.sequential.draws import Draws
from groundfault.sequential.policies import History, Query
from groundfault.sequential.pool import ALL
from groundfault.sequential.two_null_test import EProcessPair
from groundfault.stats.betting import conditional_threshold, is_refuted


class LabelCounts:
    """The running count of an audit; it draws, but bets nothing and records nothing.

    A case that could not be scored counts as a pass where the model is accused, and as a failure
    where the auditor is: whatever it would have scored, no null is the worse off.

    Parameters
    ----------
    claim : Claim
    draws : Draws, optional
        Left out where nothing is drawn.

    Attributes
    ----------
    below, reached : bool array, shape (G,)
        Groups that are below the threshold, or have reached it, whatever is scored next; none where
        counts do not decide.
    """

    def __init__(self, claim: Claim, draws: Draws | None = None) -> None:
        self.claim, self.draws = claim, draws or Draws.begin(None)
        groups = len(claim.pool.groups)
        self._unavailable = np.zeros(len(claim.pool), dtype=np.bool_)
        self._label_counts = np.zeros(groups, dtype=np.int64)
        self._high, self._low = np.zeros(groups), np.zeros(groups)
        self._positions: list[int] = []
        self._scores: list[float] = []
        self._queries: list[Query] = []
        self._count()

    def _count(self) -> None:
        """Count which groups are decided, whatever is scored next."""
        self.below: Bools = np.asarray(is_refuted(self._rest(self._high)) & self.claim.conditional)
        self.reached: Bools = np.asarray((self._rest(self._low) <= 0.0) & self.claim.conditional)

    @property
    def rounds(self) -> int:
        """Return the scores told so far, warm-up included."""
        return len(self._positions)

    def find_available(self) -> Bools:
        """Return the cases that the next round may draw: bool, shape (N,)."""
        pool = self.claim.pool
        if self.claim.replacement:
            return np.ones(len(pool), dtype=np.bool_)
        if not self.claim.one_each:
            return ~self._unavailable
        available = np.zeros(len(pool), dtype=np.bool_)
        for name, members in zip(pool.groups, pool.members, strict=True):
            fresh = members & ~self._unavailable
            if fresh.any():
                available[self._pick(f"offer {name}", fresh)] = True
        return available

    def draw(self, query: Query, eligible: Bools) -> int:
        """Return the position of the next case, drawn from the eligible ones.

        The draw is uniform, but for a claim about a population: there any case of the group is
        drawn, and where it has a label, another one of its cell takes its place.
        """
        if not self.claim.by_cell:
            return self._pick("draw", eligible)
        available = self.find_available()
        members = self.claim.pool.members[self.claim.pool.groups.index(query.group or ALL)]
        position = self._pick("draw", members & self.claim.cells.find_open(available))
        if available[position]:
            return position
        return self._pick("instead", self.claim.cells.find_rest(position, available))

    def _pick(self, purpose: str, eligible: Bools) -> int:
        among = np.flatnonzero(eligible)
        return int(among[self.draws.pick(purpose, self.rounds + 1, len(among))])

    def add(self, query: Query, position: int, score: float | None) -> None:
        """Count the score of the case that was drawn; None where it could not be scored."""
        # cases on offer that were passed over are gone too: offering them again would let the
        # policy choose among draws it has seen
        if self.claim.one_each:
            self._unavailable |= self.find_available()
        self._unavailable[position] = True
        if not self.claim.replacement:
            inside = self.claim.pool.members[:, position]
            self._label_counts += inside
            # an unscored case is a pass for the model's test and a failure for the auditor's
            self._high += inside * (1.0 if score is None else score)
            self._low += inside * (0.0 if score is None else score)
        self._positions.append(position)
        self._scores.append(np.nan if score is None else score)
        self._queries.append(query)
        if self.claim.conditional:
            self._count()

    def find_thresholds(
        self, group: str | None, count: int = 0, score: float = 0.0
    ) -> EProcessPair:
        """Return the thresholds of a group's next score, under each of the two nulls.

        They are those after ``count`` more cases of it, each of a score.
        """
        plan, g = self.claim.plan, -1 if group is None else self.claim.pool.groups.index(group)
        if g < 0 or not (self.claim.conditional or self.claim.by_cell):
            return EProcessPair(plan.threshold, plan.threshold)
        size, label_count = self.claim.pool.sizes[g], self._label_counts[g] + count
        # only a forecast of stopping times asks for more cases than the group has
        if label_count > size:
            return EProcessPair(np.inf, np.inf)
        if self.claim.by_cell:
            low, high = self._cell_thresholds()
            return EProcessPair(float(low[g]), float(high[g]))
        # without replacement the target q moves: the unlabelled rest must have mean (N q - sum so
        # far) / (N - n), or a lucky start looks like evidence (Waudby-Smith and Ramdas, 2020)
        totals = np.array([self._high[g], self._low[g]]) + count * score
        pair = conditional_threshold(plan.threshold, size, label_count, totals)
        return EProcessPair(*pair.tolist())

    def _cell_thresholds(self) -> tuple[Floats, Floats]:
        return self.claim.cells.compute_thresholds(self.claim.plan.threshold, self.find_available())

    def _rest(self, totals: Floats) -> Floats:
        return conditional_threshold(
            self.claim.plan.threshold, self.claim.pool.sizes, self._label_counts, totals
        )

    def summarize(self) -> tuple[GroupCount, ...]:
        """Return the size, labelled cases and their total score of each group."""
        pool = self.claim.pool
        scores, positions = np.array(self._scores), np.array(self._positions, dtype=np.intp)
        has_score = ~np.isnan(scores)
        inside = pool.members[:, positions]
        return tuple(
            GroupCount(
                group=name,
                size=int(pool.sizes[g]),
                labelled=int(inside[g].sum()),
                unscored=int((inside[g] & ~has_score).sum()),
                total=float(scores[inside[g] & has_score].sum()),
            )
            for g, name in enumerate(pool.groups)
        )

    def make_history(self) -> History:
        """Return all that a policy may know before the next round."""
        claim, pool = self.claim, self.claim.pool
        available = self.find_available()
        if claim.by_cell:
            rest_targets = self._cell_thresholds()[0]
        elif claim.conditional:
            rest_targets = self._rest(self._low)
        else:
            rest_targets = np.full(len(pool.groups), claim.plan.threshold)
        places = {name: g for g, name in enumerate(pool.groups)}
        group_indices = [-1 if q.group is None else places[q.group] for q in self._queries]
        arrays = (
            available,
            rest_targets,
            np.array(self._positions, dtype=np.intp),
            np.array(self._scores, dtype=np.float64),
            np.array(group_indices, dtype=np.intp),
            np.array([query.claim for query in self._queries], dtype=np.bool_),
            np.array([query.stake for query in self._queries], dtype=np.bool_),
        )
        # policies are plug-ins: one that writes into the history would change the audit
        for array in arrays:
            array.setflags(write=False)
        return History(
            claim.plan.threshold, pool.groups, pool.members, pool.embedding, arrays[0],
            claim.anywhere, claim.min_eligible(int(available.sum())), *arrays[1:],
        )  # fmt: skip
