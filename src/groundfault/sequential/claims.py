"""Claims: hypotheses of a sequential audit, the allowed draws of cases, and the count of labels.

===================  ===========================  ======================  ==========================
claim                the model's null             draws                   a score is tested against
===================  ===========================  ======================  ==========================
``population``       every declared group has     from the unlabelled     q
                     expected score at least q,   rest of a group named
                     for new cases drawn as       before the draw, by
                     these were                   cells (`Cells`)
``declared-groups``  every declared group of      uniform from the        ``conditional_threshold``:
                     these cases has a mean       unlabelled rest of a    the mean that the
                     score of at least q, as      group, or of a part of  unlabelled rest must have
                     they are scored now          it, named before the
                                                  draw
the same, generated  every category's generator   a fresh case of a       q
cases                has expected score at least  category named before
                     q
``rates``            every declared group,        uniform from the whole  q
                     answered anew at random,     group, with
                     has expected score at least  replacement
                     q
``literal``          every set of at least        uniform from any set    q
                     epsilon N cases has          of at least epsilon N
                     expected score at least q    unlabelled cases
===================  ===========================  ======================  ==========================

``population`` is the default: who audits wants to know of the questions to come, and noise in the
cases at hand is no failure mode. It holds where the cases of each group are a random sample of
those that it speaks of, answered independently of each other, and where policies know no more of a
case than its groups. An embedding is therefore refused: whoever sees that only hard cases of a
group are left knows that the next score is no draw from its population. Where groups overlap, the
population is one in which they overlap in the shares of the cases at hand. ``declared-groups``
speaks of the cases at hand alone. It is the claim for a pool that is all there is, such as a
benchmark whose every question matters by itself; in a group of three cases, one failure is a
failure mode.

Draws without replacement are unfair against q itself if the claim is about these cases: a lucky
start makes the rest worse than q.

Under ``declared-groups`` a policy may also draw from a part of a group that it names before the
draw, by any knowledge of the cases. Where the part has a share w of the group's unlabelled rest,
the bet is on 1 - w (1 - score): all other cases of the rest count as passes. No case scores more
than 1, so under the null the mean of this is at least the threshold of the rest. Such rounds say
nothing of the auditor's null and do not count there. Of a population only the cases at hand are
known to lie in the part or outside of it, so the claim ``population`` has no such draws.

``literal`` is the null of the paper. It holds if and only if the worst epsilon N cases together
reach q, so the answer to any draw with ``P(X = i) <= 1 / (epsilon N)`` has expectation q or more.
It is a null that almost every real model breaks: with fixed answers, at epsilon .05 and q .85, an
error rate above 0.75 % refutes it. To draw the single case of lowest prediction is therefore no
test of it, and to draw *inside* a declared group by prediction is none of that group; neither can
be said here. Of generated cases, with one of each of C categories on offer, ``literal`` speaks of
the mixture of the categories in equal parts, and the choice is among at least epsilon C of them.

Under ``declared-groups`` of given cases, counting decides too: a group with more failures than it
may have is below the threshold whatever the rest turn out to be, and one with enough passes is not.

``sampling="paper"`` draws and bets as the reference implementation does: any set without
replacement, always against q, every round counted in the auditor's test. On finite pools its error
rate is not alpha (measured: .065 to 1.0 at alpha .05); certificates say so.

References
----------
Waudby-Smith and Ramdas (2020), https://doi.org/10.48550/arXiv.2006.04347 (draws without
replacement); Rockafellar and Uryasev (2000), https://doi.org/10.21314/JOR.2000.038 (the mean of the
worst share, and its dual)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from groundfault.base.arrays import Bools, Floats
from groundfault.errors import PlanError
from groundfault.sequential.certificate import GroupCount
from groundfault.sequential.draws import Draws
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.policies import Cells, History, Query
from groundfault.sequential.pool import ALL, Pool
from groundfault.sequential.two_null_test import EProcessPair
from groundfault.stats.betting import conditional_threshold, is_refuted


@dataclass(frozen=True)
class Claim:
    """The rules of drawing under a plan's claim.

    Attributes
    ----------
    plan : SequentialPlan
    pool : Pool
        The cases, with the groups that are large enough for the plan's epsilon.
    by_cell : bool
        Cases are draws from a population: they are drawn cell by cell, and policies see groups and
        scores alone.
    conditional : bool
        Scores are tested against what the unlabelled rest of the group must have, and counting
        decides.
    replacement : bool
        Cases may be asked again.
    anywhere : bool
        Any set of cases may be named, not only a declared group.
    one_each : bool
        Each round offers one fresh case of each category, and uses up all offered cases.
    guaranteed : bool
        The error rate is at most alpha.
    """

    plan: SequentialPlan
    pool: Pool
    by_cell: bool
    conditional: bool
    replacement: bool
    anywhere: bool
    one_each: bool
    guaranteed: bool

    @classmethod
    def of(cls, plan: SequentialPlan, pool: Pool) -> Claim:
        """Return the rules that a plan sets for a pool.

        Raises
        ------
        PlanError
            If the claim is about a population, and the pool has an embedding.
        """
        guaranteed = plan.sampling == "guaranteed"
        anywhere = plan.claim == "literal" or not guaranteed
        if plan.claim == "population" and pool.embedded:
            raise PlanError(
                "under the claim population a policy may know only the groups of a case: leave the "
                "embedding out, or choose the claim declared-groups"
            )
        # epsilon bounds how small a declared group may be, as in the paper's definition of a
        # failure mode
        if not anywhere and not pool.generated:
            pool = pool.select_groups(pool.sizes >= plan.min_cases(len(pool)))
        return cls(
            plan,
            pool,
            by_cell=guaranteed and plan.claim == "population" and not pool.generated,
            conditional=guaranteed and plan.claim == "declared-groups" and not pool.generated,
            replacement=plan.claim == "rates",
            anywhere=anywhere,
            one_each=anywhere and pool.generated,
            guaranteed=guaranteed,
        )

    @cached_property
    def cells(self) -> Cells:
        """Return the cells of the groups."""
        return Cells.of(self.pool.members)

    def min_eligible(self, available: int) -> int:
        """Return the fewest cases that a draw may be made from, when so many are on offer.

        In the paper's sampling nothing is asked; there it is the size of the set that the paper's
        auditor names, a share epsilon of what is left."""
        if not self.anywhere:
            return 1
        # a draw from k cases gives none a chance above 1/k; the literal null (worst epsilon N
        # cases) bounds the mean of such draws only, by Rockafellar and Uryasev's dual
        if self.guaranteed:
            return self.plan.min_cases(len(self.pool.groups if self.pool.generated else self.pool))
        return int((self.plan.epsilon or 0.0) * max(0, available - 1)) + 1

    def find_eligible(self, query: Query, available: Bools) -> Bools:
        """Return the cases that a query's draw is made from, each as likely: bool, shape (N,).

        Raises
        ------
        PlanError
            If the policy asks for what the claim does not allow, or for nothing that is left.
        """
        policy, eligible, what = self.plan.policy, available, "the set"
        if query.group is not None:
            if query.group not in self.pool.groups:
                raise PlanError(
                    f"the policy {policy} named {query.group!r}, which is no declared group"
                )
            eligible = available & self.pool.members[self.pool.groups.index(query.group)]
            what = f"the group {query.group!r}"
        elif query.items is None:
            raise PlanError(f"the policy {policy} has to name a group or a set of cases")
        # the draw itself is uniform: a policy chooses the set, never the case in it
        if query.items is not None:
            if not (self.anywhere if query.group is None else self.conditional):
                raise PlanError(
                    f"the policy {policy} named a set of cases; under the claim "
                    f"{self.plan.claim} it has to name a declared group"
                )
            items = np.asarray(query.items, dtype=np.bool_)
            if items.shape != available.shape or np.any(items & ~eligible):
                raise PlanError(f"the policy {policy} named cases that are not on offer")
            eligible = items
        count = int(eligible.sum())
        min_eligible = self.min_eligible(int(available.sum())) if self.guaranteed else 1
        if count == 0:
            raise PlanError(f"the policy {policy} asked for {what}, which has no case left")
        if count < min_eligible:
            raise PlanError(
                f"the policy {policy} would draw from {count} cases of {what}; the claim "
                f"{self.plan.claim} needs {min_eligible} or more, so that no case is likelier than "
                f"1/{min_eligible}"
            )
        return eligible

    @property
    def null(self) -> str:
        """Return the model's null, in a sentence.

        Certificates store it, and verification compares it: the words stay as they are.
        """
        q, pool = f"{self.plan.threshold:g}", self.pool
        groups = f"each of {len(pool.groups)} declared groups"
        if not self.guaranteed:
            return (
                "sampling as in the paper, which keeps no error rate on a finite pool: every group "
                f"of at least {self.plan.epsilon:g} of the cases has expected score {q} or more"
            )
        if self.plan.claim == "literal":
            kinds = f"the {len(pool)} cases"
            if pool.generated:
                kinds = f"{len(pool.groups)} categories in equal parts"
            return (
                f"every group that makes up at least {self.plan.epsilon:g} of {kinds} has expected "
                f"score {q} or more"
            )
        if self.by_cell:
            return (
                f"{groups} has expected score {q} or more for new cases, drawn as these "
                f"{len(pool)} were"
            )
        if self.plan.claim == "rates":
            return f"{groups} has expected score {q} or more when its cases are answered anew"
        if pool.generated:
            return (
                f"each of {len(pool.groups)} categories has expected score {q} or more for newly "
                "generated cases"
            )
        return (
            f"{groups} of these {len(pool)} cases has mean score {q} or more, as the cases are "
            "scored now"
        )


# what policies may know of a round, by its names in `History`
_NAMES = ("positions", "scores", "group_indices", "claimed", "staked")
_ROUND = np.dtype({"names": _NAMES, "formats": [np.intp, float, np.intp, bool, bool]})


class LabelCounts:
    """The running count of an audit; it draws, but bets nothing and records nothing.

    A case that could not be scored counts as a pass where the model is accused, and as a failure
    where the auditor is: whatever it would have scored, no null is the worse off.

    Parameters
    ----------
    claim : Claim
    draws : Draws, optional
        Left out if no case is drawn.

    Attributes
    ----------
    rounds : int
        Scores told so far, warm-up included.
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
        self.rounds = 0
        self._told = np.zeros(64, dtype=_ROUND)  # twice as many as soon as it is full
        self._count()

    def _count(self) -> None:
        """Count the groups that no later score can change, and what is left of cells."""
        if self.claim.by_cell:
            q, available = self.claim.plan.threshold, self.find_available()
            self._cell_thresholds = self.claim.cells.compute_thresholds(q, available)
        self.below: Bools = np.asarray(is_refuted(self._rest(self._high)) & self.claim.conditional)
        self.reached: Bools = np.asarray((self._rest(self._low) <= 0.0) & self.claim.conditional)

    @property
    def groups_below(self) -> list[str]:
        """Return the names of groups that are below the threshold for any further scores."""
        return [self.claim.pool.groups[g] for g in np.flatnonzero(self.below)]

    def name_reached(self, claimed: set[str]) -> list[str]:
        """Return the claimed groups that have reached the threshold; all groups, if all have."""
        names = [self.claim.pool.groups[g] for g in np.flatnonzero(self.reached)]
        # all groups at the threshold makes every claim false, named or not
        return names if self.reached.all() else [name for name in names if name in claimed]

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
        group = -1 if query.group is None else self.claim.pool.groups.index(query.group)
        if self.rounds == len(self._told):
            self._told = np.concatenate([self._told, self._told])
        value = np.nan if score is None else score
        self._told[self.rounds] = (position, value, group, query.claim, query.stake)
        self.rounds += 1
        if self.claim.conditional or self.claim.by_cell:
            self._count()

    def find_share(self, query: Query) -> float:
        """Return the share of the unlabelled cases of a query's group that it draws from."""
        if query.group is None or query.items is None:
            return 1.0
        members = self.claim.pool.members[self.claim.pool.groups.index(query.group)]
        return float(query.items.sum() / (members & self.find_available()).sum())

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
            low, high = self._cell_thresholds
            return EProcessPair(float(low[g]), float(high[g]))
        # without replacement the target q moves: the unlabelled rest must have mean (N q - sum so
        # far) / (N - n), or a lucky start looks like evidence (Waudby-Smith and Ramdas, 2020)
        totals = np.array([self._high[g], self._low[g]]) + count * score
        pair = conditional_threshold(plan.threshold, size, label_count, totals)
        return EProcessPair(*pair.tolist())

    def _rest(self, totals: Floats) -> Floats:
        return conditional_threshold(
            self.claim.plan.threshold, self.claim.pool.sizes, self._label_counts, totals
        )

    def summarize(self) -> tuple[GroupCount, ...]:
        """Return the size, labelled cases and their total score of each group."""
        pool = self.claim.pool
        told = self._told[: self.rounds]
        scores, positions = told["scores"], told["positions"]
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
            rest_targets = self._cell_thresholds[0]
        elif claim.conditional:
            rest_targets = self._rest(self._low)
        else:
            rest_targets = np.full(len(pool.groups), claim.plan.threshold)
        told = self._told[: self.rounds]
        arrays: dict[str, Any] = {name: told[name] for name in _NAMES}
        arrays |= {"available": available, "rest_targets": rest_targets.copy()}
        # policies are plug-ins: one that writes into the history would change the audit
        for array in arrays.values():
            array.setflags(write=False)
        return History(
            claim.plan.threshold, pool.groups, pool.members, pool.embedding, **arrays,
            anywhere=claim.anywhere, min_eligible=claim.min_eligible(int(available.sum())),
            prior=MappingProxyType(claim.plan.prior or {}),
        )  # fmt: skip
