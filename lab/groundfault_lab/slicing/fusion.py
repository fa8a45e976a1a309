"""Fusion: errors without labels, by the slices of several mixtures together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.base.long_work import stream
from groundfault.errors import InputError, PlanError
from groundfault.slicing.embedding import check_embedding
from groundfault_lab.slicing.domino import Domino
from groundfault_lab.slicing.edisa import Edisa
from groundfault_lab.slicing.estimator import Estimator
from groundfault_lab.slicing.mixture import MixtureSlicer
from groundfault_lab.slicing.predictions import check_labels, check_probability, require_errors

_FOLDS = 5
# averages over folds and starts; on 16 data sets three gained over one
_REPEATS = 3
# share of the largest F1 that is kept for lead: of .8, .9 and .95 the one ahead of Domino in both
# on most of these
_KEPT = 0.9
# examples that the failure rate of all adds to each slice, as in `Suspicion`
_PRIOR = 2.0
# log odds of certain numbers are infinite
_CERTAIN = 1e-3
_MIXTURES: tuple[tuple[type[MixtureSlicer], dict[str, float]], ...] = (
    (Edisa, {}),
    (Edisa, {"error_weight": 1.0, "confidence_weight": 0.1}),
    (Domino, {"confidence_weight": 40.0}),
)
"""Edisa with its weights of Discover and of Explain, and Domino as the DEIM paper tunes it."""

Part = tuple[MixtureSlicer, Floats]
"""A mixture fitted to some folds, and the error rates of its slices."""


@dataclass(kw_only=True, eq=False)
class Fusion(Estimator):
    """Logistic regressions of errors on the error rates of three mixtures' slices.

    Each mixture is fitted five times, each time without a fifth of the examples, whose rates then
    come from slices that never saw their labels. Confidence and the predicted probabilities are the
    other columns of the regression. A new example has the means of the five fits. Chances are means
    of three regressions, with folds and starts of their own.

    Parameters
    ----------
    n_slices : int
        Slices of each mixture, at least 2.
    count : {"lead", "f1", "slices"}
        How many are suspected: as many as make the expected lead largest, at nine tenths of the
        largest expected F1 or more; or F1 alone; or as many as lie in error slices of Edisa or
        Domino, whichever has more. Lead is the share of errors among them, less that among as many
        examples of least confidence.
    random_state : int
        Of folds and starts.

    Attributes
    ----------
    slices_ : Edisa
        Slices of all examples, with the weights of Discover: `predict` gives the slice of an
        example, and `Flipping` its commonest class. They decide nothing about who is suspected, and
        are fitted when they are first asked for.

    Notes
    -----
    By F1 many are suspected where errors can hardly be told: at worst all of them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Z, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    >>> p = np.where((y == 1) ^ (Z[:, 0] > 1), 0.9, 0.1)  # wrong wherever Z_0 > 1
    >>> fusion = Fusion(n_slices=8).fit(Z, y, np.column_stack([1 - p, p]))
    >>> inside = Z[:, 0] > 1
    >>> chance = fusion.error_probability(Z, np.column_stack([1 - p, p]))
    >>> bool(chance[inside].mean() > 3 * chance[~inside].mean())
    True
    """

    n_slices: int = 128
    count: Literal["lead", "f1", "slices"] = "lead"
    random_state: int = 0
    name: str = "fusion"

    fits_: list[tuple[list[list[Part]], Any]] = field(init=False, repr=False)
    threshold_: float = field(init=False, repr=False)
    fit_slices_: Callable[[], MixtureSlicer] = field(init=False, repr=False)

    @cached_property
    def slices_(self) -> MixtureSlicer:
        """Return the slices of all examples."""
        return self._require_fit().fit_slices_()

    @property
    def labels_(self) -> Ints:
        """Return the slice of each example that was fitted."""
        return self.slices_.labels_

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Self:
        """Fit to labelled examples, with the arguments and errors of `MixtureSlicer.fit`.

        Raises
        ------
        InputError
            If the data cannot be used, or a fold lacks errors or classes.
        PlanError
            If a parameter is out of range.
        """
        self._require_whole({"n_slices": 2})
        if self.count not in ("lead", "f1", "slices"):
            raise PlanError(f"{self.name}: count must be lead, f1 or slices, not {self.count!r}")
        embedding = check_embedding(Z)
        probability = check_probability(y_proba, len(embedding))
        label = check_labels(y_true, len(embedding), probability.shape[1])
        require_errors(probability.argmax(axis=1) != label)
        data = (embedding, label, probability)
        self.fits_, chances = [], []
        for repeat in range(_REPEATS):
            # a thousand apart, so that no two fits have the same start
            parts, regression, chance = self._fit_once(data, self.random_state + 1000 * repeat)
            self.fits_.append((parts, regression))
            chances.append(chance)
        slices = self._make(*_MIXTURES[0], self.n_slices, self.random_state)
        self.fit_slices_ = partial(slices.fit, *data)
        vars(self).pop("slices_", None)  # those of an earlier fit
        chance = np.mean(chances, axis=0)
        ranked = np.sort(chance)[::-1]
        if self.count == "slices":
            size = max(self._count_prone(kind, each, data) for kind, each in _MIXTURES[::2])
            self.threshold_ = float(ranked[size - 1]) if size else np.inf
            return self
        sizes, found = np.arange(1, len(ranked) + 1), np.cumsum(ranked)
        worth = 2 * found / (sizes + ranked.sum())
        if self.count == "lead":
            unsure = np.argsort(probability.max(axis=1), kind="stable")
            lead = (found - np.cumsum(chance[unsure])) / sizes
            worth = np.where(worth >= _KEPT * worth.max(), lead, -np.inf)
        self.threshold_ = float(ranked[worth.argmax()])
        return self

    def predict(self, Z: ArrayLike, y_proba: ArrayLike) -> Ints:
        """Return the slice of each example, its label unknown."""
        return self.slices_.predict(Z, y_proba)

    def suspect(self, Z: ArrayLike, y_proba: ArrayLike) -> tuple[Bools, Floats]:
        """Return `error_prone` and `error_probability` of examples, from one pass over the data."""
        self._require_fit()
        embedding = check_embedding(Z)
        probability = check_probability(y_proba, len(embedding))
        chance = np.mean(
            [
                regression.predict_proba(
                    _describe(_average_rates(parts, embedding, probability), probability)
                )[:, 1]
                for parts, regression in self.fits_
            ],
            axis=0,
        )
        return chance >= self.threshold_, chance

    def error_prone(self, Z: ArrayLike, y_proba: ArrayLike) -> Bools:
        """Return which examples are suspected, their labels unknown."""
        return self.suspect(Z, y_proba)[0]

    def error_probability(self, Z: ArrayLike, y_proba: ArrayLike) -> Floats:
        """Return the chance of an error of each example, its label unknown."""
        return self.suspect(Z, y_proba)[1]

    def _fit_once(
        self, data: tuple[Floats, Ints, Floats], seed: int
    ) -> tuple[list[list[Part]], Any, Floats]:
        """Return mixtures, a regression, and the chances of examples by folds without them."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        embedding, label, probability = data
        fold = stream(seed, "folds of fusion").permutation(len(label)) % _FOLDS
        mixtures = [self._fit_folds(kind, each, data, fold, seed) for kind, each in _MIXTURES]
        rates = np.empty((len(label), len(_MIXTURES)))
        for i, parts in enumerate(mixtures):
            for number, part in enumerate(parts):
                out = fold == number
                rates[out, i] = _predict_rates(part, embedding[out], probability[out])
        columns = _describe(rates, probability)
        regression = make_pipeline(StandardScaler(), LogisticRegression())
        regression.fit(columns, probability.argmax(axis=1) != label)
        return mixtures, regression, regression.predict_proba(columns)[:, 1]

    def _fit_folds(
        self,
        kind: type[MixtureSlicer],
        settings: dict[str, float],
        data: tuple[Floats, Ints, Floats],
        fold: Ints,
        seed: int,
    ) -> list[Part]:
        parts = []
        for number in range(_FOLDS):
            embedding, label, probability = (each[fold != number] for each in data)
            try:
                # four fifths of the examples make four fifths of the slices
                n_slices = max(2, self.n_slices * (_FOLDS - 1) // _FOLDS)
                slicer = self._make(kind, settings, n_slices, seed + number)
                slicer.fit(embedding, label, probability)
            except InputError as error:
                raise InputError(f"{self.name} needs more examples: {error}") from None
            share = slicer.share_unlabelled(embedding, probability)
            wrong = (probability.argmax(axis=1) != label).astype(np.float64)
            mass = _PRIOR * wrong.mean() + wrong @ share
            parts.append((slicer, mass / (_PRIOR + share.sum(axis=0))))
        return parts

    def _make(
        self, kind: type[MixtureSlicer], settings: dict[str, Any], n_slices: int, seed: int
    ) -> MixtureSlicer:
        return kind(n_slices=n_slices, suspicion="slices", random_state=seed, **settings)

    def _count_prone(
        self, kind: type[MixtureSlicer], settings: dict[str, Any], data: Sequence[Any]
    ) -> int:
        slicer = self._make(kind, settings, self.n_slices, self.random_state).fit(*data)
        return int(slicer.error_prone(data[0], data[2]).sum())


def _average_rates(mixtures: list[list[Part]], embedding: Floats, probability: Floats) -> Floats:
    """Return the rates of new examples by each mixture: means over its fits."""
    return np.column_stack(
        [
            np.mean([_predict_rates(part, embedding, probability) for part in parts], axis=0)
            for parts in mixtures
        ]
    )


def _predict_rates(part: Part, embedding: Floats, probability: Floats) -> Floats:
    slicer, rates = part
    return np.asarray(slicer.share_unlabelled(embedding, probability) @ rates)


def _describe(rates: Floats, probability: Floats) -> Floats:
    chances = np.column_stack([rates, 1 - probability.max(axis=1)]).clip(_CERTAIN, 1 - _CERTAIN)
    return np.hstack([np.log(chances / (1 - chances)), probability])
