"""Units: the arrays a judge works on, one column per independent unit.

A unit is an example, or a group of dependent ones: rows of one unit are averaged (outcomes) and
must agree (descriptors), and whole units are split, permuted and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.candidate import Candidate, Library, add_fitted_columns
from groundfault.core.evidence import Evidence
from groundfault.core.row_names import find_cluster_leaders
from groundfault.errors import RuleError, first_line
from groundfault.stats import bits as bitset, multiple, null_distributions
from groundfault.stats.bits import Bits
from groundfault.stats.contingency import ContingencyTables, common_grid
from groundfault.stats.null_distributions import NullDistributions

# candidates evaluated in one query, which shares the reading of columns
_BATCH = 64


@dataclass(frozen=True)
class Marks:
    """Which units each candidate is true for. Holds no outcomes, so it may cover the holdout.

    Attributes
    ----------
    size : int
        Number U of units.
    on : uint64 array, shape (L, W)
        Packed: unit ``u`` has the property.
    valid : uint64 array, shape (L, W), or None
        Packed: the candidate is defined for unit ``u``; None if all are defined everywhere.
    unusable : tuple of str, length L
        Reason that a candidate cannot be tested at all ("missing", "varies_within_group"); empty
        if it can be tested.
    empty : uint64 array, shape (L, W), or None
        Packed: the rule is NULL on unit ``u``, which is then off or left out; None if no rule is
        NULL anywhere.
    """

    size: int
    on: Bits
    valid: Bits | None
    unusable: tuple[str, ...]
    empty: Bits | None = None

    @classmethod
    def of(cls, evidence: Evidence, library: Library) -> Marks:
        """Apply every candidate to every unit.

        Raises
        ------
        RuleError
            If a rule reads a column the evidence lacks, or is not true or false.
        """
        library.require_columns(evidence.frame.columns, where="the evidence")
        if evidence.clusters is not None:
            return cls.of(evidence.without_clusters(), library).take(find_cluster_leaders(evidence))
        table = add_fitted_columns(evidence.frame, library)
        rows, valid, empties, unusable = [], [], [], []
        # rows are in the order of keys, units in that of names, so positions are looked up
        alone = len(evidence) == evidence.unit_count
        home = np.argsort(evidence.unit_index) if alone else None
        # packed batch by batch: booleans of all candidates at once would need eight times the
        # memory
        for start in range(0, len(library), _BATCH):
            batch = library.candidates[start : start + _BATCH]
            for candidate, column in zip(batch, _evaluate(table, batch), strict=True):
                on, defined, empty, reason = _unit_values(evidence, candidate, column, home)
                rows.append(bitset.pack(on[None]))
                valid.append(None if defined is None else bitset.pack(defined[None]))
                empties.append(None if empty is None else bitset.pack(empty[None]))
                unusable.append(reason)
        size = evidence.unit_count
        none = np.zeros((0, bitset.words(size)), dtype=np.uint64)
        nowhere = np.zeros((1, bitset.words(size)), dtype=np.uint64)
        everywhere = bitset.pack(np.ones((1, size), dtype=np.bool_))
        # most libraries are defined everywhere, and counting is then twice as fast
        partial = any(v is not None for v in valid)
        return cls(
            size,
            np.concatenate(rows) if rows else none,
            np.concatenate([everywhere if v is None else v for v in valid]) if partial else None,
            tuple(unusable),
            np.concatenate([nowhere if e is None else e for e in empties])
            if any(e is not None for e in empties)
            else None,
        )

    def take(self, units: Places) -> Marks:
        """Return the marks of some units, in that order."""
        on = bitset.take(self.on, self.size, units)
        valid, empty = (
            None if rows is None else bitset.take(rows, self.size, units)
            for rows in (self.valid, self.empty)
        )
        return Marks(len(units), on, valid, self.unusable, empty)

    def select(self, candidates: Places) -> Marks:
        """Return the marks of some candidates."""
        valid = None if self.valid is None else self.valid[candidates]
        empty = None if self.empty is None else self.empty[candidates]
        unusable = tuple(self.unusable[j] for j in candidates)
        return Marks(self.size, self.on[candidates], valid, unusable, empty)

    def counts(self) -> tuple[Ints, Ints]:
        """Return units where each candidate is defined, and where it is true: two arrays of shape
        (L,)."""
        on = bitset.count(self.on)
        return (np.full(len(on), self.size) if self.valid is None else bitset.count(self.valid)), on

    def unpack(self) -> tuple[Bools, Bools]:
        """Return where each candidate is true, and where it is defined: shape (L, U)."""
        on = bitset.unpack(self.on, self.size)
        return on, np.ones_like(on) if self.valid is None else bitset.unpack(self.valid, self.size)

    def sum_values(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return sums of values on each slice, and where it is defined: arrays of shape (L * M,).

        Parameters
        ----------
        values : array, shape (M, m)
        """
        on = bitset.sums(self.on, values)
        if self.valid is None:
            total = np.broadcast_to(values.sum(axis=1), on.shape)
        else:
            total = bitset.sums(self.valid, values)
        return on.reshape(-1), np.ascontiguousarray(total).reshape(-1)

    def are_same(self, one: int, other: int) -> bool:
        """Return whether two candidates are true for the same units."""
        return np.array_equal(self.on[one], self.on[other])


@dataclass(frozen=True)
class Units:
    """Marks together with the losses of the same units.

    Attributes
    ----------
    marks : Marks
        L candidates over m units.
    losses : int64 or float64 array, shape (M, m)
        One row an outcome, in units of 1/``denominator``; 0 where not scored.
    scored : bool array, shape (M, m), or None
        Whether there is a loss; None if all units are scored.
    denominator : int
        Losses are whole multiples of 1/``denominator``; 0 where they share no grid.
    strata : int64 array, shape (m,), or None
        Size classes of groups, if sizes differ: the mean of many rows varies less than a single
        row, so that only units of similar size are exchangeable.
    """

    marks: Marks
    losses: Ints | Floats
    scored: Bools | None
    denominator: int
    strata: Ints | None = None

    @classmethod
    def of(cls, marks: Marks, losses: Floats, strata: Ints | None = None) -> Units:
        """Join marks and losses, NaN where not scored, finding the grid that the losses lie on."""
        # NaN marks "not scored" in arrays: it cannot be mistaken for a loss, as 0 could
        scored = ~np.isnan(losses)
        grid = common_grid(losses)
        filled = np.where(scored, losses, 0.0)
        # on a grid as whole numbers, whose sums are exact and whose ties are ties
        whole = np.rint(filled * grid).astype(np.int64) if grid else filled
        return cls(marks, whole, None if scored.all() else scored, grid, strata)

    def __len__(self) -> int:
        return self.marks.size

    @property
    def shape(self) -> tuple[int, int]:
        """Return candidates and outcomes; hypothesis ``(j, o)`` is number ``j * M + o``."""
        return len(self.marks.on), len(self.losses)

    def take(self, units: Places) -> Self:
        """Return some units, in that order."""
        scored = None if self.scored is None else self.scored[:, units]
        strata = None if self.strata is None else self.strata[units]
        marks, losses = self.marks.take(units), self.losses[:, units]
        return replace(self, marks=marks, losses=losses, scored=scored, strata=strata)

    def select_units(self, units: Bools) -> Self:
        """Return the same units with losses only where a mask is true; marks are not copied."""
        scored = units[None] if self.scored is None else self.scored & units
        scored = np.broadcast_to(scored, self.losses.shape)
        return replace(self, losses=np.where(scored, self.losses, 0), scored=scored)

    def select(self, candidates: Places) -> Self:
        """Return some candidates."""
        return replace(self, marks=self.marks.select(candidates))

    @cached_property
    def tables(self) -> ContingencyTables:
        """Return counts and loss sums of all hypotheses, candidates outermost: shape (L * M,)."""
        marks = self.marks
        on_sum, total = marks.sum_values(self.losses)
        return ContingencyTables(*self.support, total, on_sum, self.denominator)

    @cached_property
    def support(self) -> tuple[Ints, Ints]:
        """Return scored units of each hypothesis, and those on its slice: two arrays of shape (L *
        M,)."""
        if self.scored is None:
            n, on = (np.repeat(counts, self.shape[1]) for counts in self.marks.counts())
            return n, on
        on, n = self.marks.sum_values(self.scored.astype(np.int64))
        return n, on

    def null_distributions(
        self, hypotheses: Places, *, pooled: bool
    ) -> tuple[NullDistributions, Places, Floats]:
        """Return distinct null distributions, the place of each hypothesis' one, and their
        counts."""
        margins = self.tables[hypotheses]
        # zeros and ones: hypergeometric, so that counts alone tell the distribution
        if self.denominator == 1:
            distinct, which, counts = null_distributions.find_distinct(margins)
            return null_distributions.from_errors(distinct, pooled=pooled), which, counts
        parts, weights = [], []
        which = np.empty(len(hypotheses), dtype=np.intp)
        offset = 0
        for inside, outcome, members in self.populations(hypotheses):
            values = self.losses[outcome][inside]
            distinct, local, counts = null_distributions.find_distinct(margins[members])
            parts.append(null_distributions.from_values(values, distinct))
            weights.append(counts)
            which[members] = local + offset
            offset += len(counts)
        return null_distributions.concatenate(parts), which, np.concatenate(weights)

    def population(self, hypothesis: int) -> Bools:
        """Return units that a hypothesis is about: scored, with the candidate defined; shape
        (m,)."""
        candidate, outcome = divmod(hypothesis, len(self.losses))
        inside = np.ones(len(self), dtype=np.bool_) if self.scored is None else self.scored[outcome]
        if self.marks.valid is not None:
            inside = (
                inside & bitset.unpack(self.marks.valid[candidate : candidate + 1], len(self))[0]
            )
        return inside

    def squares(self) -> tuple[Floats, Floats]:
        """Return sums of squared losses on each slice and over all its units: shape (L * M,)."""
        return self.marks.sum_values((self.losses / (self.denominator or 1)) ** 2)

    def describe_losses(self) -> tuple[float, float | None]:
        """Return the mean loss of scored units, and its variance unless losses are 0/1.

        Without scored units the mean is NaN and the variance None.
        """
        values = self.losses / (self.denominator or 1)
        present = values if self.scored is None else values[self.scored]
        if not present.size:
            return float("nan"), None
        variance = None if self.denominator == 1 else float(present.var())
        return float(present.mean()), variance

    def shuffle(self, rng: np.random.Generator) -> Units:
        """Return a null world: all losses of a unit move together to a unit of the same stratum."""
        if self.strata is None:
            order = rng.permutation(len(self))
        else:
            order = np.empty(len(self), dtype=np.intp)
            by_stratum = np.argsort(self.strata, kind="stable")
            order[by_stratum] = np.lexsort((rng.random(len(self)), self.strata))
        scored = None if self.scored is None else self.scored[:, order]
        world = replace(self, losses=self.losses[:, order], scored=scored)
        if scored is None:  # where all have losses, their order changes no count
            vars(world)["support"] = self.support
        return world

    def populations(self, hypotheses: Places) -> Iterator[tuple[Bools, int, Places]]:
        """Yield the distinct populations: their units, their outcome, and their hypotheses."""
        members: dict[tuple[int, bytes], list[int]] = {}
        for position, hypothesis in enumerate(hypotheses):
            candidate, outcome = divmod(int(hypothesis), len(self.losses))
            # keyed by content: candidates that are defined on the same units share their
            # distributions
            defined = b"" if self.marks.valid is None else self.marks.valid[candidate].tobytes()
            members.setdefault((outcome, defined), []).append(position)
        for (outcome, _), positions in members.items():
            yield (
                self.population(int(hypotheses[positions[0]])),
                outcome,
                np.array(positions, dtype=np.intp),
            )

    def redraw(
        self, hypotheses: Places, draws: int, rng: np.random.Generator
    ) -> Iterator[tuple[Places, Floats, Floats]]:
        """Yield on-slice loss sums under random permutations of units, within strata if any.

        Yields
        ------
        positions : intp array, shape (h,)
            The hypotheses of one population, as positions in ``hypotheses``.
        expected : float64 array, shape (h,)
            Their expected sums.
        sums : float64 array, shape (b, h)
            Random sums for these hypotheses. Each population gets ``draws`` of them in all.
        """
        for inside, outcome, positions in self.populations(hypotheses):
            units = np.flatnonzero(inside)
            values = self.losses[outcome][units]
            strata = None if self.strata is None else self.strata[units]
            candidates = hypotheses[positions] // len(self.losses)
            rows = bitset.take(self.marks.on[candidates], len(self), units)
            means = multiple.compute_stratum_means(values, strata)
            expected = bitset.sums(rows, means[None])[:, 0]
            for sums in multiple.redraw_sums(rows, values, draws, rng, strata):
                yield positions, expected, sums


def average_losses(evidence: Evidence) -> Floats:
    """Return mean loss of each unit for each model, NaN where not scored: shape (models, units)."""
    models = evidence.models
    # one row a unit, the common case: no grouping needed
    if len(evidence) == evidence.unit_count and len(models) == 1:
        out = np.full((1, evidence.unit_count), np.nan)
        out[0, evidence.unit_index] = evidence.loss.to_numpy()
        return out
    table = pl.DataFrame(
        {"unit": evidence.unit_index, "model": _model_index(evidence), "loss": evidence.loss}
    ).drop_nulls()
    means = table.group_by("model", "unit").agg(pl.col("loss").sum(), pl.len())
    out = np.full((len(models), evidence.unit_count), np.nan)
    out[means["model"].to_numpy(), means["unit"].to_numpy()] = (
        means["loss"] / means["len"]
    ).to_numpy()
    return out


def count_scored_rows(evidence: Evidence) -> Ints:
    """Return the number of scored rows of each unit, for the model with most: shape (units,).

    Copies of an example do not count: their mean varies as much as a single copy.
    """
    if evidence.clusters is not None:
        return count_scored_rows(evidence.without_clusters())[find_cluster_leaders(evidence)]
    place = _model_index(evidence) * evidence.unit_count + evidence.unit_index
    has_loss = evidence.loss.is_not_null().to_numpy()
    counts = np.bincount(place[has_loss], minlength=len(evidence.models) * evidence.unit_count)
    return np.asarray(counts.reshape(len(evidence.models), -1).max(axis=0), dtype=np.int64)


def classify_sizes(rows: Ints) -> Ints | None:
    """Return classes of units by their number of rows, by factors of two; None if all are alike."""
    classes = number_sizes(rows)
    return classes if len(np.unique(classes)) > 1 else None


def number_sizes(rows: Ints) -> Ints:
    """Return the class of each number of rows; means within a class have similar variances."""
    # the exponent of two
    return np.frexp(np.maximum(rows, 1))[1].astype(np.int64)


def _model_index(evidence: Evidence) -> Ints:
    if evidence.roles.model is None:
        return np.zeros(len(evidence), dtype=np.int64)
    names = evidence.frame[evidence.roles.model].cast(pl.String)
    models = list(evidence.models)
    return names.replace_strict(models, range(len(models)), return_dtype=pl.Int64).to_numpy()


def _evaluate(table: pl.DataFrame, batch: Sequence[Candidate]) -> list[pl.Series]:
    expressions = [c.parsed.to_polars().alias(str(i)) for i, c in enumerate(batch)]
    try:
        frame = table.select(expressions)
    # the batch does not say whose fault it was, so they are tried one by one
    except Exception:
        return [_evaluate_alone(table, c) for c in batch]
    return [_boolean(frame[str(i)], c, table.height) for i, c in enumerate(batch)]


def _evaluate_alone(table: pl.DataFrame, candidate: Candidate) -> pl.Series:
    try:
        column = table.select(candidate.parsed.to_polars().alias("0")).to_series()
    except Exception as error:
        reason = first_line(error)
        raise RuleError(
            f"candidate {candidate.name!r}: cannot evaluate {candidate.rule!r}: {reason}"
        ) from None
    return _boolean(column, candidate, table.height)


def _boolean(column: pl.Series, candidate: Candidate, rows: int) -> pl.Series:
    if column.dtype == pl.Null:
        column = column.cast(pl.Boolean)
    if column.dtype != pl.Boolean:
        hint = "; compare it, as in ... = 1" if column.dtype.is_numeric() else ""
        raise RuleError(
            f"candidate {candidate.name!r}: {candidate.rule!r} is {column.dtype}, not true or "
            f"false{hint}"
        )
    # a rule without columns after simplification gives one value for all rows
    return column if len(column) == rows else column.new_from_index(0, rows)


def _unit_values(
    evidence: Evidence, candidate: Candidate, column: pl.Series, home: Places | None
) -> tuple[Bools, Bools | None, Bools | None, str]:
    """Return a candidate's value on each unit, where it is defined, where it is empty, and the
    reason if it is untestable. ``home`` has the row of each unit, if each has one row."""
    reason = ""
    defined = empty = None
    if column.has_nulls():
        empty = column.is_null().to_numpy()
        if candidate.missing == "reject":
            reason = "missing"
        elif candidate.missing == "drop":
            defined = ~empty
        column = column.fill_null(False)
    on = column.to_numpy()
    if home is not None:
        here, gaps = (None if rows is None else rows[home] for rows in (defined, empty))
        return on[home], here, gaps, reason
    index, count = evidence.unit_index, evidence.unit_count
    size = np.bincount(index, minlength=count)
    votes = np.bincount(index, weights=on, minlength=count)
    whole, gaps = (
        None if rows is None else np.bincount(index, weights=rows, minlength=count)
        for rows in (defined, empty)
    )
    # a property of only some rows of a unit does not describe its mean loss
    if np.any((votes > 0) & (votes < size)):
        reason = reason or "varies_within_group"
    defined, empty = None if whole is None else whole == size, None if gaps is None else gaps > 0
    return votes == size, defined, empty, reason
