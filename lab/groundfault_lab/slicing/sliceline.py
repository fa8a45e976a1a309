"""SliceLine: the conjunctions of predicates with the worst errors, found exactly."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np

from groundfault.base.arrays import Floats, Ints
from groundfault.core.candidate import Candidate, unique_names
from groundfault.core.columns import select_example_rows
from groundfault.core.evidence import Evidence
from groundfault.core.plan import to_fraction
from groundfault.errors import InputError, PlanError, require_whole
from groundfault.finders import Parameters
from groundfault.stats.bits import unpack
from groundfault_lab.slicing.levels import Levels, make_conjunction, select_searchable, spell_levels
from groundfault_lab.slicing.predictions import example_losses
from groundfault_lab.stats.slice_search import Level, SearchResult, replay, search
from groundfault_lab.stats.slices import Errors, Objective, Predicates, score_exactly, sum_exactly

# with 100 columns, four predicates and alpha 1 a search then takes 12 s and .9 GB, and ends
_MAX_PARENTS = 1_000_000


@dataclass(frozen=True)
class ScoredSlice:
    """A conjunction of predicates, and the errors of the rows where all of them hold.

    Attributes
    ----------
    predicates : dict
        Value of each column that has one: a level, a `Range` of numbers, or None for "is missing".
    score : float
        ``alpha * (mean_error / mean of all errors - 1) - (1 - alpha) * (n / size - 1)``.
    size : int
        Rows.
    error_sum, max_error : float
        Of the errors of these rows.
    group : int
        Slices of one group are the best of them, and those that have all its predicates, or only
        some of them, or hold for the same rows. Groups are numbered by their best slice.
    p : float or None
        Where errors were permuted: how often a search among errors dealt at random finds a score as
        good.
    """

    predicates: dict[Any, Any]
    score: float
    size: int
    error_sum: float
    max_error: float
    group: int = 0
    p: float | None = None

    @property
    def mean_error(self) -> float:
        """Return mean error of the rows."""
        return self.error_sum / self.size

    @property
    def rule(self) -> str:
        """Return the slice as SQL: true for its rows; false or NULL for the others."""
        return spell_levels(self.predicates)[1]

    def __str__(self) -> str:
        return spell_levels(self.predicates)[0]


@dataclass
class SliceLine(Parameters):
    """Find the k slices of best score, exactly: many errors on not too few rows.

    A slice is a conjunction of predicates "column has this value", at most one a column. Its score
    weighs how much worse its mean error is than that of all rows against how few rows it has.
    Numbers of many values are cut into ranges at quantiles. A predicate that holds for every row
    says nothing and is left out.

    As a finder it searches the discovery examples (their mean loss, where several rows tell of
    one), and its candidates are mined: only the holdout can confirm them.

    Parameters
    ----------
    k : int
        How many slices; as many as have a score above 0, if fewer.
    alpha : float
        Weight of the error against the size, in (0, 1]; slices of a few per cent of the rows need
        0.95 or more.
    max_level : int
        Most predicates of a slice.
    min_support : int or float
        Rows that a slice must have; a fraction in (0, 1) is a share of all rows.
    bins : int
        Numbers of more than ``2 * bins`` different values are cut into at most so many ranges.
    missing : {"value", "unmatched"}
        Whether a missing value is a value of its own ("is missing") or matches no predicate.
    ties : {"keep", "cut"}
        Whether slices that tie with the k-th are all kept. Slices are ordered by score, and tied
        ones by size (the larger first), number of predicates (the fewer first), columns and values
        (in their own order).
    max_parents : int or None
        Bounds memory and time: of the slices of each level at most so many are extended, those that
        promise most. What that may have missed is told in a warning and in ``missed_``. The default
        holds about a gigabyte, and is reached only by deep searches of many columns with little
        weight on the size; None never cuts, however long it takes.
    permutations : int
        The whole search is repeated so often with errors dealt at random, which gives slices their
        ``p``: a p-value of the best slice that takes the search into account, and a conservative
        one of the others. It assumes rows (or groups of as many rows) that are exchangeable if
        errors have nothing to do with columns. `propose` does without it.
    seed : int
        Of the permutations.
    min_share : float
        For `propose`, in [0, 1): slices of a smaller share of the examples are not proposed. Judges
        that rank by lift (janus) look at none below a tenth; with others take 0.
    columns : tuple of str, optional
        For `propose`, names or globs; without them, flags, numbers and labels, but no ids, no
        prose, and nothing that differs within a group.

    Attributes
    ----------
    slices_ : tuple of ScoredSlice
        Best first.
    levels_ : tuple of groundfault_lab.stats.slice_search.Level
        What was done with slices of one, two, ... predicates.
    missed_ : float
        Slices of a score above this are all in ``slices_``, as far as k goes; -inf where
        ``max_parents`` cut nothing, and the search was exact.
    null_ : float64 array, shape (permutations,)
        The best score of each search among permuted errors, 0 where nothing scored above 0.

    Raises
    ------
    PlanError
        If a parameter cannot be.
    InputError
        If the table or the errors cannot be used: a column of dates or lists, an error that is
        missing or negative, no errors at all, or the same one everywhere.

    Notes
    -----
    S. Sagadeeva and M. Boehm, SliceLine: fast, linear-algebra-based slice finding for ML model
    debugging, SIGMOD 2021, doi:10.1145/3448016.3457323. Unlike published programs this is exact on
    wide tables: the bound has the number of rows in it, not of columns, and slices are never told
    apart by rounded numbers. Scores are compared as fractions, with alpha as the decimal that was
    written.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10)
    >>> errors = X[:, 0] & X[:, 1]
    >>> [worst] = SliceLine(k=1).fit(X, errors).slices_
    >>> worst.predicates, worst.size, worst.error_sum
    ({0: 1, 1: 1}, 10, 10.0)
    """

    k: int = 10
    alpha: float = 0.95
    max_level: int = 3
    min_support: int | float = 10
    bins: int = 5
    missing: Literal["value", "unmatched"] = "value"
    ties: Literal["keep", "cut"] = "keep"
    max_parents: int | None = _MAX_PARENTS
    permutations: int = 0
    seed: int = 0
    min_share: float = 0.1
    columns: tuple[str, ...] | None = None
    name: str = "sliceline"

    slices_: tuple[ScoredSlice, ...] = field(init=False, repr=False, compare=False)
    levels_: tuple[Level, ...] = field(init=False, repr=False, compare=False)
    missed_: float = field(init=False, repr=False, compare=False)
    null_: Floats = field(init=False, repr=False, compare=False)

    uses_outcomes: ClassVar[bool] = True

    def fit(self, X: Any, errors: Any, groups: Any = None) -> SliceLine:
        """Search a table.

        Parameters
        ----------
        X : frame (polars, pandas, Arrow), or array, shape (n, m)
            Whole numbers in an array are levels as they stand, however many; columns of an array
            are named 0, 1, ...
        errors : array, shape (n,)
            0/1 errors, or any finite numbers from 0.
        groups : array, shape (n,), optional
            Which rows depend on each other. For the permutations alone: the errors of a group are
            dealt together.

        Returns
        -------
        SliceLine
            Itself, with ``slices_``.
        """
        self._check()
        table = Levels.of(X, self.bins, self.missing)
        loss = _check_errors(errors, table.codes.shape[1])
        together = None if groups is None else _number_groups(groups, len(loss))
        # errors as whole numbers, since sums that differ by order of addition would break ties at
        # random
        quanta = Errors.of(loss)
        objective = quanta.objective(
            float(to_fraction(self.alpha)), self._count_min_support(len(loss))
        )
        predicates = Predicates.of(table.codes, table.counts, objective)
        data = predicates, quanta, objective
        levels, most = min(self.max_level, len(table.names)), self.max_parents
        result = search(*data, k=self.k, levels=levels, max_parents=most)
        rng, n = np.random.default_rng(self.seed), self.permutations
        self.null_ = replay(*data, rng, n, levels=levels, max_parents=most, groups=together)
        self.levels_ = result.levels
        # with max_parents the search may miss slices; this bounds how good they can be
        self.missed_ = max(level.missed for level in result.levels)
        ranked = _assign_groups(self._rank(result, predicates, loss, table))
        self.slices_ = self._calibrate(ranked, objective)
        self._warn_of_bounds()
        return self

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose at most k candidates such as ``lang = de AND words >= 400``, worst first.

        Raises
        ------
        PlanError
            If the outcomes are hidden, as they are under judges that hold nothing out.
        """
        # the p-values of `find` cost many searches, and candidates carry none
        yield from self.to_candidates(replace(self, permutations=0).find(discovery))

    def to_candidates(self, slices: Iterable[ScoredSlice]) -> tuple[Candidate, ...]:
        """Return the candidates that `propose` makes of slices, in the same order."""
        return tuple(
            unique_names(make_conjunction(entry.predicates, self.name) for entry in slices)
        )

    def find(self, discovery: Evidence) -> tuple[ScoredSlice, ...]:
        """Return the slices that become candidates, with scores and, after permutations, p-values.

        Raises
        ------
        PlanError
            As `propose`.
        """
        self._check()
        if discovery.loss.null_count() == len(discovery):
            # a silent empty answer would look like "no slices found"
            raise PlanError(
                "sliceline searches the outcomes, and this judge hides them: choose a judge that "
                "holds examples out (such as janus), so that slices are tested on fresh ones"
            )
        table, loss = select_searchable(discovery, self.columns), example_losses(discovery)
        has_loss = loss.is_not_null()
        if table.width == 0 or loss.drop_nulls().n_unique() == 1:
            return ()
        table, loss = table.filter(has_loss), loss.filter(has_loss)
        group = discovery.roles.group
        together = select_example_rows(discovery)[group].filter(has_loss) if group else None
        # a slice below min_share could not pass the audit's own limits, so it is not worth a place
        # among k
        least = ceil(to_fraction(self.min_share) * len(loss))
        bounded = replace(self, min_support=max(self._count_min_support(len(loss)), least))
        return bounded.fit(table, loss.to_numpy(), together).slices_[: self.k]

    def _check(self) -> None:
        least_of = {"k": 1, "max_level": 1, "bins": 2, "permutations": 0}
        least_of |= {} if self.max_parents is None else {"max_parents": 1}
        for name, least in least_of.items():
            require_whole(name, getattr(self, name), least)
        if not 0 < to_fraction(self.alpha, "alpha") <= 1:
            raise PlanError(f"alpha must be above 0 and at most 1, not {self.alpha!r}")
        support = to_fraction(self.min_support, "min_support")
        if support <= 0 or (support > 1 and support.denominator != 1):
            raise PlanError(
                f"min_support must be a number of rows from 1, or a share in (0, 1), not {support}"
            )
        if not 0 <= to_fraction(self.min_share, "min_share") < 1:
            raise PlanError(f"min_share must be a share in [0, 1), not {self.min_share!r}")
        for name, words in {"missing": ("value", "unmatched"), "ties": ("keep", "cut")}.items():
            if getattr(self, name) not in words:
                raise PlanError(f"{name} must be {' or '.join(words)}, not {getattr(self, name)!r}")

    def _count_min_support(self, n: int) -> int:
        support = to_fraction(self.min_support)
        least = ceil(support * n) if support < 1 else int(support)
        if least > n:
            raise InputError(
                f"min_support={self.min_support} asks for {least} rows, and there are {n}"
            )
        return least

    def _rank(
        self, result: SearchResult, predicates: Predicates, loss: Floats, table: Levels
    ) -> list[tuple[ScoredSlice, bytes]]:
        """Return the best slices with their rows, best first, in exact order."""
        n, total, alpha = len(loss), sum_exactly(loss), to_fraction(self.alpha)
        entries: list[tuple[tuple[Any, ...], ScoredSlice, bytes]] = []
        for row in result.members:
            members = row[row >= 0]
            # the search rounds where errors are no whole numbers: the few survivors are scored
            # exactly
            rows = np.bitwise_and.reduce(predicates.bits[members], axis=0)
            inside = loss[np.flatnonzero(unpack(rows[None], n)[0])]
            error = sum_exactly(inside)
            score = score_exactly(len(inside), error, n, total, alpha)
            if score > 0:
                values = table.name_values(predicates.column[members], predicates.level[members])
                worst = float(inside.max())
                entry = ScoredSlice(values, float(score), len(inside), error, worst)
                key = (-score, -entry.size, len(members), *members.tolist())
                entries.append((key, entry, rows.tobytes()))
        entries.sort(key=lambda entry: entry[0])
        has_ties = self.ties == "keep" and len(entries) > self.k
        last: Fraction | None = entries[self.k - 1][0][0] if has_ties else None
        return [
            (entry, rows)
            for i, (key, entry, rows) in enumerate(entries)
            if i < self.k or key[0] == last
        ]

    def _calibrate(
        self, slices: Sequence[ScoredSlice], objective: Objective
    ) -> tuple[ScoredSlice, ...]:
        if not self.permutations:
            return tuple(slices)
        # twice the slack: the scores on both sides are rounded
        as_good = [int(np.sum(self.null_ >= entry.score - 2 * objective.slack)) for entry in slices]
        return tuple(
            replace(entry, p=(1 + count) / (1 + self.permutations))
            for entry, count in zip(slices, as_good, strict=True)
        )

    def _warn_of_bounds(self) -> None:
        for level in self.levels_:
            if level.dropped:
                warnings.warn(
                    f"max_parents={self.max_parents}: {level.dropped} slices of "
                    f"{level.predicates} predicates were not extended; "
                    f"a slice missed for it scores at most {level.missed:.4g}; to miss none "
                    "raise max_parents or min_support, or lower alpha or max_level",
                    stacklevel=3,
                )


def _number_groups(groups: Any, n: int) -> Ints:
    names = np.asarray(groups)
    if names.shape != (n,):
        raise InputError(f"there are {n} rows, so groups must have shape ({n},), not {names.shape}")
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _check_errors(errors: Any, n: int) -> Floats:
    try:
        loss = np.asarray(errors, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(f"the errors are not numbers: {problem}") from None
    if loss.shape != (n,):
        raise InputError(f"there are {n} rows, so errors must have shape ({n},), not {loss.shape}")
    bad = np.flatnonzero(~(np.isfinite(loss) & (loss >= 0)))
    if len(bad):
        raise InputError(
            f"the error of row {bad[0]} is {loss[bad[0]]} ({len(bad)} such rows); "
            "errors must be finite and not negative: leave out rows that were not scored"
        )
    if loss.min() == loss.max():
        same = f"every row has the same error, {loss[0]:g}" if loss[0] else "there are no errors"
        raise InputError(f"{same}, so no slice is worse than another")
    if loss.max() > 1e300 or loss.max() < 1e-300:
        raise InputError(
            f"the largest error is {loss.max():g}: scale the errors to between 1e-300 and 1e300"
        )
    return loss


def _assign_groups(entries: Sequence[tuple[ScoredSlice, bytes]]) -> list[ScoredSlice]:
    """Put each slice with the first better one that is its part, its whole, or its equal."""
    leaders: list[tuple[set[Any], bytes]] = []
    out = []
    for entry, rows in entries:
        terms = set(entry.predicates.items())
        # a part of a slice, and one of the same rows, tell the same story
        near = [terms <= other or terms >= other or rows == same for other, same in leaders]
        group = near.index(True) if any(near) else len(leaders)
        if group == len(leaders):
            leaders.append((terms, rows))
        out.append(replace(entry, group=group))
    return out
