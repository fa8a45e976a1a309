"""Policies choose the next case. One a file; `get` finds one by name.

A policy says where to look and what it claims to see there. It never draws the case, and sees a
score only once the audit has it. A `History` goes in, a `Query` comes out; nothing else passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.registry import open_registry
from groundfault.errors import PlanError, require_name

_REGISTRY = open_registry("policy", "groundfault.policies")
NAMES = tuple(_REGISTRY.built_in)


@dataclass(frozen=True, eq=False)
class Query:
    """The next observation: a policy fills in the first five fields, the audit the others.

    Attributes
    ----------
    group : str, optional
        The declared group to draw from.
    items : bool array, shape (N,), optional
        The cases to draw from, in place of a group or as a part of it, where the claim allows it.
    claim : bool
        The policy holds that their mean is below the threshold; only such rounds count in the
        auditor's test.
    stake : bool
        Where false the case is labelled and learnt from, without a bet.
    forecast : float, optional
        Expected score, for ``-pred`` bets.
    step : int
        1, 2, 3, ...; 0 before the draw.
    id : str
        The case drawn.
    case : mapping
        What is known of it, for whoever gives the score.
    audit : str
        Seal of the audit that asks.
    """

    group: str | None = None
    items: Bools | None = None
    claim: bool = False
    stake: bool = True
    forecast: float | None = None
    step: int = 0
    id: str = ""
    case: Mapping[str, Any] = field(default_factory=dict)
    audit: str = ""


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

    @cached_property
    def first(self) -> Places:
        """Return the position of the first case of each of the C cells."""
        return np.unique(self.numbers, return_index=True)[1]

    @cached_property
    def sizes(self) -> Ints:
        """Count all cases by group and cell: shape (G, C)."""
        return self.count(np.ones(len(self.numbers), dtype=np.bool_))

    def count(self, cases: Bools) -> Ints:
        """Count some of the cases by group and cell: shape (G, C)."""
        return self._kinds * np.bincount(self.numbers[cases], minlength=len(self.first))

    @cached_property
    def _kinds(self) -> Bools:
        """Return the groups of each cell: shape (G, C)."""
        return self.members[:, self.first]

    def find_open(self, available: Bools) -> Bools:
        """Return the cases whose cell has a case left, labelled themselves or not: bool, shape
        (N,).
        """
        return self._has_rest(available)[self.numbers]

    def _has_rest(self, available: Bools) -> Bools:
        return np.bincount(self.numbers[available], minlength=len(self.first)) > 0

    def find_rest(self, position: int, available: Bools) -> Bools:
        """Return the cases that are left of the cell of a case: bool, shape (N,)."""
        return np.asarray(available & (self.numbers == self.numbers[position]))

    def compute_thresholds(self, threshold: float, available: Bools) -> tuple[Floats, Floats]:
        """Compute the thresholds of a draw from each group: two float64 arrays, shape (G,).

        If a group's mean is at least ``threshold``, the mean of its cells that have a case left is
        at least the first; if it is at most ``threshold``, it is at most the second. Both are the
        threshold itself as long as no cell is used up; ``-inf`` and ``inf`` where all are.
        """
        has_rest = self._has_rest(available)
        if has_rest.all():
            return (np.full(len(self.members), threshold),) * 2
        sizes = self.sizes.sum(axis=1).astype(np.float64)
        open_sizes = (self.sizes @ has_rest).astype(np.float64)
        # of a cell that is used up nothing is assumed but that its mean lies in [0, 1]
        lost = sizes - open_sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(lost > 0, (threshold * sizes - lost) / open_sizes, threshold)
            high = np.where(lost > 0, threshold * sizes / open_sizes, threshold)
        return low, high


@dataclass(frozen=True, eq=False)
class History:
    """All that a policy may know: N cases, G groups, and the scores of T rounds.

    Its arrays cannot be written to.

    Attributes
    ----------
    threshold : float
        The target mean.
    groups : tuple of str
        Names of the declared groups.
    members : bool array, shape (G, N)
    embedding : float64 array, shape (N, D), or None
    available : bool array, shape (N,)
        Cases that may be drawn in this round.
    anywhere : bool
        Whether any set of at least ``min_eligible`` cases may be named, not only a declared group.
    min_eligible : int
        The smallest number of cases that a draw may be made from.
    rest_targets : float64 array, shape (G,)
        Mean that the unlabelled rest of each group must have for the group to reach the threshold;
        at or below 0 the group is known to reach it. The threshold itself where a group has no such
        rest.
    positions : intp array, shape (T,)
        Position of the case of each round.
    scores : float64 array, shape (T,)
        NaN where the case could not be scored.
    group_indices : intp array, shape (T,)
        The group of each round; -1 where cases were named.
    claimed, staked : bool arrays, shape (T,)
    prior : mapping of str to float
        Mean scores of groups that an earlier audit found to fail.
    """

    threshold: float
    groups: tuple[str, ...]
    members: Bools
    embedding: Floats | None
    available: Bools
    anywhere: bool
    min_eligible: int
    rest_targets: Floats
    positions: Places
    scores: Floats
    group_indices: Places
    claimed: Bools
    staked: Bools
    prior: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def open(self) -> Bools:
        """Return which groups a draw can be made from: bool, shape (G,)."""
        return np.asarray((self.members & self.available).sum(axis=1) >= self.min_eligible)

    @cached_property
    def strata(self) -> Bools:
        """Return which groups are less than all cases; all groups if no group is."""
        part = ~self.members.all(axis=1)
        return np.asarray(part if part.any() else ~part)

    @cached_property
    def counts(self) -> Ints:
        """Return the scores seen in each group, however they were drawn: shape (G,)."""
        return np.asarray(self.members[:, self._positions_with_score].sum(axis=1), dtype=np.int64)

    @cached_property
    def means(self) -> Floats:
        """Return the means of these scores; NaN without scores."""
        totals = self.members[:, self._positions_with_score] @ self.scores[~np.isnan(self.scores)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(totals / self.counts)

    @property
    def _positions_with_score(self) -> Places:
        return self.positions[~np.isnan(self.scores)]


@runtime_checkable
class Policy(Protocol):
    """Chooses the next observation.

    Attributes
    ----------
    name : str
        Its name, settings included; the plan's seal covers the name.

    Notes
    -----
    A class attribute ``warm_up`` says how many cases, drawn uniformly and bet on by nobody, it
    wants to have learnt from before its first round; 0 where there is none."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return where to draw the next case, or None to end; a pure function of its arguments."""
        ...


def get(name: str) -> Policy:
    """Return the policy of that name, built in or from the entry points ``groundfault.policies``.

    Text after a colon is the policy's argument: ``oracle:domain=Chemistry``.

    Raises
    ------
    PlanError
        If the policy does not exist, or lacks an argument, or takes none.
    """
    plain, colon, argument = name.partition(":")
    factory = _REGISTRY.get(plain)
    try:
        policy = factory(argument) if colon else factory()
    except TypeError:
        wants = "takes nothing after a colon" if colon else f"needs an argument, as in {plain}:..."
        raise PlanError(f"the policy {plain} {wants}") from None
    assert isinstance(policy, Policy)
    return policy


@dataclass(frozen=True)
class Uniform:
    """Draw uniformly from all cases; the only claim is that they fail as a whole.

    Where the cases are generated a category at a time, there is no whole to draw from: the category
    is drawn first, and nothing is claimed."""

    name: ClassVar[str] = "uniform"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return all cases, or a category drawn uniformly."""
        whole = history.open & history.members.all(axis=1)
        if whole.any():
            return Query(history.groups[int(whole.argmax())], claim=True)
        among = np.flatnonzero(history.open)
        return Query(history.groups[int(rng.choice(among))]) if len(among) else None


@dataclass(frozen=True)
class Stratified:
    """Draw a group uniformly among groups with cases left, then a case uniformly inside it.

    It claims that the group fails when the scores seen in it so far have a mean below the
    threshold. (The paper's stratified auditor counts every round against itself, so that any model
    with one sound group passes it.)"""

    name: ClassVar[str] = "stratified"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return a group drawn uniformly."""
        among = np.flatnonzero(history.open & history.strata)
        if not len(among):
            among = np.flatnonzero(history.open)
        if not len(among):
            return None
        group = int(rng.choice(among))
        return Query(history.groups[group], claim=bool(history.means[group] < history.threshold))


@dataclass(frozen=True)
class Oracle:
    """Claim one group and draw from it alone until it has no case left; then explore.

    Parameters
    ----------
    group : str
        Name of a declared group. It may be a guess: the audit then says whether it was right.
    """

    group: str

    @property
    def name(self) -> str:
        """Return ``oracle:`` and the group."""
        return f"oracle:{self.group}"

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """Return the group, while it lasts.

        Raises
        ------
        PlanError
            If the group does not exist.
        """
        require_name("declared group", self.group, history.groups)
        if history.open[history.groups.index(self.group)]:
            return Query(self.group, claim=True)
        among = np.flatnonzero(history.open)
        return Query(history.groups[int(rng.choice(among))]) if len(among) else None


@dataclass(frozen=True)
class Absent:
    """Stands for a policy if no case is asked for."""

    name: str

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:  # noqa: ARG002
        """Refuse to name a case."""
        raise PlanError(
            f"the audit was read from its record, without its cases and its policy {self.name}: "
            "open it anew"
        )
