"""A decision tree of the errors: its leaves, as conjunctions of thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from polars import selectors as cs

from groundfault.base.arrays import Bools, Floats
from groundfault.core.candidate import Candidate
from groundfault.core.columns import Kind, list_examples, profile, select_named
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, require_whole
from groundfault.finders import Parameters
from groundfault_lab.slicing.levels import Range, make_conjunction
from groundfault_lab.slicing.predictions import example_losses

Path = dict[str, Range]


_RANGE = (float(np.finfo(np.float32).min), float(np.finfo(np.float32).max))


@dataclass(frozen=True)
class Tree(Parameters):
    """Propose the leaves of a decision tree in which errors are more frequent than overall.

    The tree tells failed examples from passed ones by numbers and flags, both kinds given the same
    weight in all. Columns with missing values are left out. Fitted to an embedding of a robust
    model this is Barlow.

    Parameters
    ----------
    depth : int
        Thresholds of a leaf, at most.
    min_size : int
        Discovery examples of a leaf, at least.
    columns : tuple of str, optional
        Names or globs; without them every attribute that is a number or a flag.

    Raises
    ------
    InputError
        If a named column is not there, holds no numbers, or has missing values.
    PlanError
        If depth or min_size is below 1.

    References
    ----------
    Singla et al., "Understanding Failures of Deep Networks via Robust Feature Extraction", CVPR
    2021. https://doi.org/10.1109/CVPR46437.2021.01266"""

    depth: int = 3
    min_size: int = 10
    columns: tuple[str, ...] | None = None
    name: str = "tree"

    uses_outcomes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("depth", "min_size"):
            require_whole(name, getattr(self, name))

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose leaves, the one with most of the errors at the highest rate first."""
        loss = example_losses(discovery)
        has_loss = loss.is_not_null()
        table, wrong = self._numbers(discovery), (loss.filter(has_loss) > 0.5).to_numpy()
        if table.width == 0 or not 0 < wrong.sum() < len(wrong):
            return
        table = table.filter(has_loss)
        values = table.cast(pl.Float64).to_numpy()
        flags = table.select(cs.boolean()).columns
        for path, inside in self._leaves(table.columns, values, wrong):
            # a leaf of few errors is the complement of what is sought
            if path and wrong[inside].mean() > wrong.mean():
                # a range of true and false is one of them
                levels = {c: r.low is not None if c in flags else r for c, r in path.items()}
                yield make_conjunction(levels, self.name, "drop")

    def _numbers(self, discovery: Evidence) -> pl.DataFrame:
        numbers = cs.numeric() | cs.boolean()
        if self.columns is None:
            table = list_examples(discovery).select(numbers)
            kinds = Kind.NUMBER, Kind.FLAG
            columns = [c for c in profile(table) if c.kind in kinds and not c.missing]
            return table.select(c.name for c in columns)
        reason = ", not numbers: no tree can cut it"
        table = select_named(discovery, self.columns, numbers, reason)
        for column in table:
            if column.null_count():
                raise InputError(
                    f"column {column.name!r} has {column.null_count()} missing values; "
                    "fill or leave it out"
                )
        return table

    def _leaves(self, columns: list[str], values: Floats, wrong: Bools) -> list[tuple[Path, Bools]]:
        """Return conditions and examples of each leaf, largest rate times share of errors first."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(
            # as Barlow (Singla et al. 2021) grows its trees; balanced, or rare errors would leave
            # one leaf
            criterion="entropy",
            max_depth=self.depth,
            min_samples_leaf=min(self.min_size, len(wrong)),
            class_weight="balanced",
            random_state=0,
            # scikit-learn cuts single-precision numbers, and refuses larger ones and infinities
        ).fit(np.clip(values, *_RANGE), wrong)
        everywhere = np.ones(len(wrong), dtype=np.bool_)
        leaves = list(_list_leaves(tree.tree_, 0, {}, everywhere, columns, values))
        return sorted(leaves, key=lambda leaf: -float(wrong[leaf[1]].mean() * wrong[leaf[1]].sum()))


def _list_leaves(
    tree: Any, node: int, path: Path, inside: Bools, columns: list[str], values: Floats
) -> Iterator[tuple[Path, Bools]]:
    if tree.children_left[node] < 0:
        yield path, inside
        return
    feature = int(tree.feature[node])
    column, numbers = columns[feature], values[:, feature]
    right = numbers.astype(np.float32) > tree.threshold[node]  # as the tree compares
    # a value that occurs instead of the tree's float32 midpoint, so that SQL splits alike
    cut = float(numbers[inside & right].min())
    if np.isinf(cut):  # which no rule can name
        cut = float(np.nextafter(numbers[inside & ~right].max(), cut))
    cut = int(cut) if cut.is_integer() and abs(cut) < 2**53 else cut
    old = path.get(column, Range(None, None))
    for child, part, side in (
        (tree.children_left[node], Range(old.low, cut), ~right),
        (tree.children_right[node], Range(cut, old.high), right),
    ):
        longer = path | {column: part}
        yield from _list_leaves(tree, int(child), longer, inside & side, columns, values)
