"""Prediction of a model's results on all examples from its answers to a few."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Floats, Ints, Places
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, require_word
from groundfault_lab.stats import irt, low_rank
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.use.basis import match_answers, normalise

Integers = NDArray[np.integer[Any]]

Method = Literal["majority", "nearest", "neighbours", "ability", "low_rank"]
METHODS: tuple[Method, ...] = get_args(Method)
# few, for with a dozen models more neighbours are the majority
NEIGHBOURS = 5


@dataclass(frozen=True, eq=False)
class Peers:
    """Models that have answered, and what is fitted to them.

    Attributes
    ----------
    values : float64 array, shape (n, m)
        1 for a pass, 0 for a failure, NaN where not asked.
    items : ItemResponse
        One ability, two parameters an item.
    passes, trials : int64 arrays, shape (n, m)
        As zeros and ones.
    rank : int, optional
        Of the low-rank factors; left out, that of the highest likelihood of hidden answers.
    """

    values: Floats
    items: irt.ItemResponse
    passes: Ints
    trials: Ints
    rank: int | None = None

    @classmethod
    def of(
        cls, matrix: Matrix, items: irt.ItemResponse | None = None, rank: int | None = None
    ) -> Peers:
        """Make peers of the models of a matrix; ``items`` where they have been fitted to it."""
        passes, trials = matrix.binary
        return cls(matrix.values, items or irt.fit(passes, trials), passes, trials, rank)

    @cached_property
    def average(self) -> Floats:
        """Return share of models that pass each example: shape (n,)."""
        trials = self.trials.sum(axis=1)
        return np.where(trials > 0, self.passes.sum(axis=1) / np.maximum(trials, 1), 0.5)

    @cached_property
    def factors(self) -> low_rank.LowRank:
        """Return the low-rank fit."""
        rank = low_rank.choose_rank(self.passes, self.trials) if self.rank is None else self.rank
        return low_rank.fit(self.passes, self.trials, self.items, rank)

    @cached_property
    def _filled(self) -> Floats:
        return np.where(np.isnan(self.values), self.average[:, None], self.values)

    @cached_property
    def _curve(self) -> Floats:
        return irt.compute_curves(self.items)

    def chances(self, method: Method, passes: Integers, trials: Integers) -> tuple[Floats, Floats]:
        """Return chances that new models pass each example, and the same by ability alone.

        Parameters
        ----------
        method : {"majority", "nearest", "neighbours", "ability", "low_rank"}
            The share of all models that pass; the answers of the model that agrees best with the
            new one; the mean of the five that do; item response with one ability; low-rank logistic
            factors beyond it.
        passes, trials : int arrays, shape (n, q)
            What the new models were asked, as zeros and ones.

        Returns
        -------
        float64 arrays, shape (n, q)
            The difference of the two is what the method says of a model beyond ability: of the
            neighbours' own abilities for ``nearest`` and ``neighbours``; nothing for ``majority``
            and ``ability``.
        """
        if method == "majority":
            everyone = np.repeat(self.average[:, None], passes.shape[1], axis=1)
            return everyone, everyone
        if method in ("nearest", "neighbours"):
            near = self.nearest(passes, trials, 1 if method == "nearest" else NEIGHBOURS)
            chances = (self._filled, self.items.probability())
            theirs, by_ability = (chance[:, near].mean(axis=2) for chance in chances)
            return theirs, by_ability
        density = irt.compute_log_posterior(passes, trials, self._curve)
        one = self._curve @ normalise(density).T
        if method == "ability":
            return one, one
        return self.factors.probability(self.factors.place(passes, trials)), one

    def nearest(self, passes: Integers, trials: Integers, count: int) -> Places:
        """Return the models that agree best with each new one: shape (q, count), best first.

        Ties go to the model met first; with nothing in common, all agree by half.
        """
        present = (~np.isnan(self.values)).astype(np.float64)
        own = np.where(present > 0, self.values, 0.0)
        right, wrong = passes.astype(np.float64), (trials - passes).astype(np.float64)
        same = right.T @ own + wrong.T @ (present - own)
        both = trials.astype(np.float64).T @ present
        # a share, so that models with few answers in common are comparable
        agreement = np.where(both > 0, same / np.maximum(both, 1), 0.5)
        return np.argsort(-np.round(agreement, 12), axis=1, kind="stable")[:, :count]


@dataclass(frozen=True, eq=False)
class Prediction:
    """The results expected of a model on examples that it has not answered.

    Attributes
    ----------
    frame : polars.DataFrame
        ``example``, ``cluster`` (0 for none), ``failure`` (its chance) and ``by_ability`` (what one
        ability alone leads one to expect), likeliest failures first.
    answers : int
        Examples it rests on.
    method : str
    """

    frame: pl.DataFrame
    answers: int
    method: str

    @property
    def expected(self) -> float:
        """Return the expected share of failures on examples not yet run; NaN if there are none."""
        return float(np.mean(self.frame["failure"].to_numpy())) if len(self.frame) else float("nan")


def predict(taxonomy: Taxonomy, results: Evidence, *, method: Method = "ability") -> Prediction:
    """Predict failures of a model on the examples of a taxonomy that it has not answered.

    Parameters
    ----------
    taxonomy : Taxonomy
        Fitted without the model.
    results : Evidence
        Answers of one model to some of the examples.
    method : {"majority", "nearest", "neighbours", "ability", "low_rank"}
        Method that predicts. See `Peers.chances`; ``groundfault lab taxonomy evaluate`` says which
        is the best on your models.

    Raises
    ------
    InputError
        If the answers are of several models, of a model that the taxonomy was fitted to, or of
        other examples.
    PlanError
        If the method is unknown.
    """
    require_word("method", method, METHODS)
    has_answer, failures, _ = match_answers(results, taxonomy)
    if not has_answer.any():
        raise InputError(
            "no scored answer to an example of the taxonomy: there is nothing to predict from"
        )
    trials = has_answer[:, None].astype(np.int64)
    passes = trials - failures[:, None]
    chance, one = Peers.of(taxonomy.matrix).chances(method, np.maximum(passes, 0) * trials, trials)
    frame = pl.DataFrame(
        {
            "example": taxonomy.matrix.examples,
            "cluster": list(taxonomy.labels.values()),
            "failure": 1 - chance[:, 0],
            "by_ability": 1 - one[:, 0],
        }
    )
    # names break ties, so that the order does not depend on the platform
    rest = frame.filter(pl.Series(~has_answer)).sort("failure", "example", descending=[True, False])
    return Prediction(rest, int(has_answer.sum()), method)
