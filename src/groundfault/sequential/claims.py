"""Claims: what a sequential audit tests, and how cases may be drawn so that the test means it.

===================  ===========================  ======================  ==========================
claim                the model's null             draws                   a score is tested against
===================  ===========================  ======================  ==========================
``population``       every declared group has     from the unlabelled     q
                     expected score at least q,   rest of a group named
                     for new cases drawn as       before the draw, by
                     these were                   cells (`Cells`)
``declared-groups``  every declared group of      uniform from the        ``conditional_threshold``:
                     these cases has a mean       unlabelled rest of a    the mean that the
                     score of at least q, as      group named before the  unlabelled rest must have
                     they are scored now          draw
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

import numpy as np

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.errors import PlanError
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.policies import Query
from groundfault.sequential.pool import Pool


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

    numbers: Places
    members: Bools

    @classmethod
    def of(cls, members: Bools) -> Cells:
        """Return the cells of groups, bool, shape (G, N)."""
        packed = np.packbits(members, axis=0).T
        numbers = np.unique(packed, axis=0, return_inverse=True)[1].reshape(-1)
        return cls(numbers.astype(np.intp), members)

    def find_open(self, available: Bools) -> Bools:
        """Return the cases whose cell has a case left, labelled themselves or not: bool, shape
        (N,).
        """
        has_rest = np.zeros(int(self.numbers.max()) + 1, dtype=np.bool_)
        has_rest[self.numbers[available]] = True
        return np.asarray(has_rest[self.numbers])

    def find_rest(self, position: int, available: Bools) -> Bools:
        """Return the cases that are left of the cell of a case: bool, shape (N,)."""
        return np.asarray(available & (self.numbers == self.numbers[position]))

    def compute_thresholds(self, threshold: float, available: Bools) -> tuple[Floats, Floats]:
        """Compute the thresholds of a draw from each group: two float64 arrays, shape (G,).

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
        Each round offers one fresh case of each category, and uses all of them up.
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
                "the claim population holds for policies that know no more of a case than its "
                "groups: leave the embedding out, or choose the claim declared-groups, which "
                "speaks of these cases alone"
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
        policy = self.plan.policy
        if (query.group is None) == (query.items is None):
            raise PlanError(
                f"the policy {policy} has to name a group or a set of cases, one of the two"
            )
        if query.items is not None:
            if not self.anywhere:
                raise PlanError(
                    f"the policy {policy} named a set of cases; under the claim "
                    f"{self.plan.claim} a draw is made from a declared group, or "
                    "nothing would be known of any group"
                )
            eligible, what = np.asarray(query.items, dtype=np.bool_), "the set"
            if eligible.shape != available.shape or np.any(eligible & ~available):
                raise PlanError(f"the policy {policy} named cases that are not on offer")
        elif query.group in self.pool.groups:
            eligible = self.pool.members[self.pool.groups.index(query.group)]
            what = f"the group {query.group!r}"
        else:
            raise PlanError(
                f"the policy {policy} named {query.group!r}, which is no declared group"
            )
        # the draw itself is uniform: a policy chooses the set, never the case in it
        eligible = eligible & available
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
