"""Other people's searches for subgroups, as finders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

import numpy as np

from groundfault.core.candidate import Candidate
from groundfault.core.evidence import Evidence
from groundfault.errors import PlanError, require_extra
from groundfault.finders import Parameters
from groundfault_lab.slicing.levels import Levels, make_conjunction, select_searchable
from groundfault_lab.slicing.predictions import example_losses


@dataclass(frozen=True)
class Pysubgroup(Parameters):
    """Propose what pysubgroup finds: conjunctions of highest quality.

    Quality is (share of the examples)^exponent * (error rate - overall).

    Columns are cut into levels as for SliceLine, an example of a loss above one half counts as an
    error, and slices with no more errors than overall are left out.

    Parameters
    ----------
    k : int
        Most slices.
    max_level : int
        Most predicates of one.
    exponent : float
        In [0, 1]: 1 is weighted relative accuracy, 0.5 orders as a binomial test does, 0 looks at
        error rates alone.
    min_share : float
        In [0, 1): slices of a smaller share of the examples are not proposed.
    bins : int
        Numbers of more than ``2 * bins`` different values are cut into at most so many ranges.
    columns : tuple of str, optional
        Names or globs; without them flags, numbers and labels.

    Raises
    ------
    MissingExtraError
        If pysubgroup is not installed.
    InputError
        If a named column is not there, or has no levels.
    PlanError
        If a setting is out of range.

    References
    ----------
    Lemmerich and Becker, "pysubgroup: Easy-to-use subgroup discovery in Python", ECML PKDD 2018.
    https://doi.org/10.1007/978-3-030-10997-4_46
    """

    k: int = 10
    max_level: int = 2
    exponent: float = 0.5
    min_share: float = 0.1
    bins: int = 5
    columns: tuple[str, ...] | None = None
    name: str = "pysubgroup"

    uses_outcomes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.k < 1 or self.max_level < 1 or not 0 <= self.exponent <= 1:
            raise PlanError(
                f"k={self.k} and max_level={self.max_level} must be at least 1, and "
                f"exponent={self.exponent} in [0, 1]"
            )

    def propose(self, discovery: Evidence) -> Iterator[Candidate]:
        """Propose slices, that of the best quality first."""
        loss = example_losses(discovery)
        has_loss = loss.is_not_null()
        # pysubgroup's targets are true or false, and losses may be graded
        wrong = (loss.filter(has_loss) > 0.5).to_numpy()
        table = select_searchable(discovery, self.columns)
        with require_extra(
            "the finder pysubgroup needs the library of that name: "
            "pip install 'groundfault-lab[subgroup]'"
        ):
            import pysubgroup as search
        if table.width == 0 or not 0 < wrong.sum() < len(wrong):
            return
        levels = Levels.of(table.filter(has_loss), self.bins, "value")
        for pairs in self._search(search, levels, wrong):
            yield make_conjunction(levels.name_values(*np.array(pairs).T), self.name)

    def _search(self, search: Any, levels: Levels, wrong: Any) -> Iterator[list[tuple[int, int]]]:
        """Return conjunctions, as pairs of column and level."""
        import pandas as pd

        data = pd.DataFrame(
            {str(f): codes for f, codes in enumerate(levels.codes)} | {"wrong": wrong}
        )
        pairs = [(str(f), level) for f, n in enumerate(levels.counts) for level in range(n)]
        selectors = [search.EqualitySelector(*pair) for pair in pairs]
        task = search.SubgroupDiscoveryTask(
            data,
            search.BinaryTarget("wrong", True),
            selectors,
            search.StandardQF(self.exponent),
            result_set_size=self.k,
            depth=self.max_level,
            min_quality=0,
            # at least one row: a share of few rows rounds to none
            constraints=[search.MinSupportConstraint(max(1, ceil(self.min_share * len(wrong))))],
        )
        with np.errstate(invalid="ignore"):  # of empty subgroups it divides nothing by nothing
            result = search.DFS(search.BitSetRepresentation).execute(task)
        for quality, subgroup in result.to_descriptions():
            if quality > 0:
                yield sorted(
                    (int(s.attribute_name), int(s.attribute_value)) for s in subgroup.selectors
                )
