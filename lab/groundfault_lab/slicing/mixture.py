"""Mixture slicers: what Edisa and Domino share; each defines its own views of an example."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.base.long_work import one_blas_thread
from groundfault.core.candidate import Candidate, FittedColumn
from groundfault.core.columns import match_attributes, select_example_rows
from groundfault.core.evidence import Evidence
from groundfault.core.rules import quote
from groundfault.errors import InputError, PlanError
from groundfault.slicing.embedding import Embedding, check_embedding, fit as fit_embedding
from groundfault_lab.slicing.estimator import Estimator, Projection
from groundfault_lab.slicing.predictions import (
    EMBEDDING,
    EXAMPLES_A_SLICE,
    EmbeddedPredictions,
    check_labels,
    check_probability,
    find_text,
    require_errors,
)
from groundfault_lab.slicing.suspicion import Suspicion
from groundfault_lab.slicing.text_column import EmbeddedTextColumn, embed_column, make_points
from groundfault_lab.stats import mixture, mixture as em
from groundfault_lab.stats.mixture import Mixture
from groundfault_lab.stats.mixture_predict import to_arrays


@dataclass(frozen=True)
class Views:
    """An example as a mixture sees it: Gaussian features, tables, and their exponents."""

    features: Floats
    exponent: tuple[float, ...]
    tables: tuple[Floats, ...] = ()
    table_exponents: tuple[float, ...] = ()


@dataclass(kw_only=True, eq=False)
class MixtureSlicer(Estimator, ABC):
    """Slices as components of a mixture; an error slice is one with low accuracy.

    The constructor only stores; `fit` checks. The parameters that all mixture slicers have:

    Parameters
    ----------
    n_slices : int
        Components of the mixture, at least 2.
    pca : int, optional
        Principal components of the embedding that are kept; all of them where there are fewer. None
        leaves the embedding as it is.
    init : {"kmeans", "confusion", "random"} or array
        How slices start: clusters of the embedding; cells of label x prediction, with noise, which
        needs at least as many slices as cells; chance; or given, as slice numbers of shape (n,) or
        responsibilities of shape (n, k).
    delta : float
        A slice is an error slice if its accuracy on the examples fitted is below this; in (0, 1].
    min_size : int
        And if it has at least so many of them. The reference has no such floor (1).
    max_iter, tol : int, float
        Stop after so many iterations, or when the mean log-likelihood changes by less.
    reg_covar : float
        Added to every variance.
    suspicion : {"calibrated", "slices"}
        What `suspect` goes by: a `Suspicion`, of the error rates of an example's slices and of
        confidence; or the paper's rule, error slices alone.
    random_state : int
        Of k-means, noise and chance.
    dtype : {"float64", "float32"}
        Precision of the fit. Single is about twice as fast; with saturated probabilities, whose
        variances are tiny, it converges elsewhere.
    n_jobs : int
        Threads of the fit; the answer does not depend on them.
    embedding, probability, label : str
        Which columns of the evidence `propose` reads; see
        `groundfault_lab.slicing.predictions.EmbeddedPredictions.of`.
    text : str, optional
        Column of texts that `propose` embeds (TF-IDF, learnt from the discovery examples) where the
        evidence has no column ``embedding*``; left out, the one of the longest texts.
    """

    n_slices: int = 128
    pca: int | None = 128
    init: Literal["kmeans", "confusion", "random"] | ArrayLike = "kmeans"
    delta: float = 0.5
    min_size: int = 5
    max_iter: int = 1000
    tol: float = 1e-3
    reg_covar: float = 1e-6
    suspicion: Literal["calibrated", "slices"] = "slices"
    random_state: int = 0
    dtype: Literal["float64", "float32"] = "float64"
    n_jobs: int = 1
    embedding: str = EMBEDDING
    probability: str | None = None
    label: str = "label"
    text: str | None = None
    name: str = "mixture"

    mixture_: Mixture = field(init=False, repr=False)
    projection_: Projection | None = field(init=False, repr=False)
    n_classes_: int = field(init=False, repr=False)
    labels_: Ints = field(init=False, repr=False)
    log_likelihood_: Floats = field(init=False, repr=False)
    n_iter_: int = field(init=False, repr=False)
    converged_: bool = field(init=False, repr=False)
    slice_sizes_: Ints = field(init=False, repr=False)
    slice_accuracies_: Floats = field(init=False, repr=False)
    error_slices_: Ints = field(init=False, repr=False)
    suspicion_: Suspicion | None = field(init=False, repr=False)

    uses_outcomes = True

    @abstractmethod
    def _views(self, embedding: Floats, label: Ints, probability: Floats) -> Views:
        """Return the views of examples whose label is known."""

    @abstractmethod
    def _joint_without_label(self, embedding: Floats, probability: Floats) -> Floats:
        """Return log joint of examples whose label is not known."""

    def fit(self, Z: ArrayLike, y_true: ArrayLike, y_proba: ArrayLike) -> Self:
        """Fit slices to labelled examples.

        Parameters
        ----------
        Z : array, shape (n, d)
            Embeddings.
        y_true : int array, shape (n,)
            True classes, as numbers of columns of ``y_proba``.
        y_proba : array, shape (n, c)
            Predicted probabilities of the classes.

        Raises
        ------
        InputError
            If the data cannot be used: missing numbers, no probabilities, one class, no errors or
            only errors, fewer examples than slices.
        PlanError
            If a parameter is out of range.
        """
        self._check()
        embedding = check_embedding(Z)
        probability = check_probability(y_proba, len(embedding))
        label = check_labels(y_true, len(embedding), probability.shape[1])
        wrong = probability.argmax(axis=1) != label
        require_errors(wrong)
        # one class leaves label and prediction without variance, and slices by embedding alone
        if (label == label[0]).all():
            reason = "slices of errors need at least two classes"
            raise InputError(f"every example is of class {label[0]}; {reason}")
        if (n := len(embedding)) < self.n_slices:
            raise InputError(f"{n} examples cannot make {self.n_slices} slices; lower n_slices")
        self.n_classes_ = probability.shape[1]
        reduced = self._project(embedding)
        views = self._views(reduced, label, probability)
        start = self._start(reduced, label, probability)
        with one_blas_thread():
            fit = em.em(
                views.features.astype(self.dtype, copy=False),
                views.exponent,
                start,
                tables=views.tables,
                table_exponents=views.table_exponents,
                tolerance=self.tol,
                max_iterations=self.max_iter,
                floor=self.reg_covar,
                jobs=self.n_jobs,
            )
        self.mixture_, self.log_likelihood_ = fit.mixture, fit.history
        self.converged_, self.n_iter_, self.labels_ = fit.converged, fit.iterations, fit.labels
        self._find_error_slices(~wrong)
        self.suspicion_ = None
        if self.suspicion == "calibrated":
            blocks = partial(self._share_out, embedding, probability)
            self.suspicion_ = Suspicion.fit(blocks, probability, wrong, self.error_slices_)
        return self

    def predict(self, Z: ArrayLike, y_proba: ArrayLike, y_true: ArrayLike | None = None) -> Ints:
        """Return the likeliest slice of each example.

        Parameters
        ----------
        Z : array, shape (n, d)
        y_proba : array, shape (n, c)
        y_true : int array, shape (n,), optional
            The true classes, where they are known; left out, they are summed over.

        Returns
        -------
        int64 array, shape (n,)
            Slice numbers from 0.
        """
        return np.concatenate([joint.argmax(axis=1) for joint in self._joints(Z, y_proba, y_true)])

    def predict_proba(
        self, Z: ArrayLike, y_proba: ArrayLike, y_true: ArrayLike | None = None
    ) -> Floats:
        """Return responsibilities of the slices for each example, shape (n, k)."""
        return np.concatenate(list(self._share_out(Z, y_proba, y_true)))

    def score_samples(
        self, Z: ArrayLike, y_proba: ArrayLike, y_true: ArrayLike | None = None
    ) -> Floats:
        """Return log-likelihood of each example, shape (n,): a density, not a probability."""
        joints = self._joints(Z, y_proba, y_true)
        return np.concatenate([em.responsibilities(joint) for joint in joints])

    def error_prone(self, Z: ArrayLike, y_proba: ArrayLike) -> Bools:
        """Return whether the prediction for each example, its label unknown, is suspected.

        By slices: whether the likeliest slice is an error slice. Calibrated: whether
        `error_probability` is as high as that of as many of the examples fitted.
        """
        return self.suspect(Z, y_proba)[0]

    def error_probability(self, Z: ArrayLike, y_proba: ArrayLike) -> Floats:
        """Return how much each example, its label unknown, is suspected.

        Calibrated: the chance of an error. By slices: the share of the error slices in its
        responsibilities, an order rather than a chance, since slices count whole.
        """
        return self.suspect(Z, y_proba)[1]

    def suspect(self, Z: ArrayLike, y_proba: ArrayLike) -> tuple[Bools, Floats]:
        """Return `error_prone` and `error_probability` of examples, from one pass over the data."""
        likeliest, shares = [], []
        for joint in self._joints(Z, y_proba, None):
            likeliest.append(joint.argmax(axis=1))  # before it is normalised, as `predict` does
            em.responsibilities(joint)
            if self.suspicion_ is None:
                shares.append(joint[:, self.error_slices_].sum(axis=1, dtype=np.float64))
            else:
                shares.append(joint @ self.suspicion_.rates)
        share = np.concatenate(shares)
        if self.suspicion_ is None:
            return np.isin(np.concatenate(likeliest), self.error_slices_), share
        chance = self.suspicion_.predict(share, np.asarray(y_proba, dtype=np.float64))
        return chance >= self.suspicion_.threshold, chance

    def propose(self, discovery: Evidence) -> Iterable[Candidate]:
        """Propose error slices of the discovery examples, and all of them together, as candidates.

        At most one slice is fitted for every twenty examples. A slice is what `predict` says
        without labels, so that it means the same for an example whose outcome is not known.

        Raises
        ------
        InputError
            If the columns are not there, or hold something else.
        """
        text, fitted, points = self._embed_texts(discovery)
        examples = EmbeddedPredictions.of(
            discovery, self.embedding, self.probability, self.label, points
        )
        n_slices = min(self.n_slices, len(examples.label) // EXAMPLES_A_SLICE)
        problem = examples.explain_unfit(2 * EXAMPLES_A_SLICE, min_classes=2)
        if problem:
            warnings.warn(f"{self.name} proposes nothing: {problem}", stacklevel=2)
            return []
        # an array of responsibilities is of other rows than discovery's
        init = self.init if isinstance(self.init, str) else "kmeans"
        slicer = dataclasses.replace(self, n_slices=n_slices, init=init, suspicion="slices")
        slicer.fit(examples.embedding, examples.label, examples.probability)
        columns, constant = examples.embedding_columns + examples.probability_columns, None
        if not examples.has_probabilities:
            constant = examples.probability[0]
        column = slicer.to_column(columns, constant)
        if fitted is not None:
            inputs = (text or "", *examples.probability_columns)
            column = EmbeddedTextColumn(column.source, "texts", inputs, column.arrays, fitted)
        return list(slicer._candidates(examples, column))

    def _embed_texts(
        self, discovery: Evidence
    ) -> tuple[str | None, Embedding | None, pl.Series | None]:
        """Return the texts that stand in for an embedding which the evidence lacks.

        Their column, the embedding fitted to them, and their points.
        """
        from fnmatch import fnmatchcase

        names = discovery.attributes
        if self.embedding != EMBEDDING or any(fnmatchcase(name, EMBEDDING) for name in names):
            return None, None, None
        if self.text is not None:
            match_attributes(discovery, [self.text])
        text = self.text or find_text(discovery)
        if text is None:
            return None, None, None
        texts = select_example_rows(discovery)[text]
        fitted = fit_embedding(texts.drop_nulls().to_list())
        return text, fitted, make_points(embed_column(texts, fitted))

    def to_column(
        self, columns: tuple[str, ...], constant: ArrayLike | None = None
    ) -> FittedColumn:
        """Return the slices that `predict` gives without labels, as a column of evidence.

        Parameters
        ----------
        columns : tuple of str
            Where the embedding, then the probabilities, come from.
        constant : float array, shape (c,), optional
            The probabilities of every example, where they are no columns.
        """
        centre, axes = self._require_fit().projection_ or (None, None)
        arrays = to_arrays(self.mixture_, self.n_classes_, centre, axes)
        if constant is not None:
            arrays["constant"] = np.asarray(constant, dtype=np.float64)
        return FittedColumn(self.name, "mixture", columns, arrays)

    def _candidates(
        self, examples: EmbeddedPredictions, column: FittedColumn
    ) -> Iterator[Candidate]:
        make = partial(Candidate, source=self.name, missing="drop", fitted_column=column)
        name = quote(column.name)
        for number in self.error_slices_.tolist():
            inside = self.labels_ == number
            label, prediction = (
                Counter(classes[inside].tolist()).most_common(1)[0][0]
                for classes in (examples.label, examples.probability.argmax(axis=1))
            )
            size, accuracy = inside.sum(), self.slice_accuracies_[number]
            meaning = (
                f"{self.name} puts the example in slice {number} of {self.n_slices}, {size} "
                f"discovery examples of accuracy {accuracy:.2f}"
            )
            if examples.has_probabilities:
                true, taken = examples.classes[label], examples.classes[prediction]
                meaning += f", mostly {true} taken for {taken}"
            yield make(f"{self.name} slice {number}", f"{name} = {number}", meaning)
        if (count := len(self.error_slices_)) > 1:
            # all error slices together: each may be too small to be confirmed alone
            numbers = ", ".join(map(str, self.error_slices_.tolist()))
            meaning = f"{self.name} puts the example in one of its {count} error slices"
            yield make(f"{self.name} error slices", f"{name} IN ({numbers})", meaning)

    def _find_error_slices(self, right: Bools) -> None:
        self.slice_sizes_ = np.bincount(self.labels_, minlength=self.n_slices)
        good = np.bincount(self.labels_, weights=right, minlength=self.n_slices)
        sizes = self.slice_sizes_.astype(np.float64)
        with np.errstate(invalid="ignore"):
            self.slice_accuracies_ = good / sizes
            bad = (self.slice_accuracies_ < self.delta) & (self.slice_sizes_ >= self.min_size)
        self.error_slices_ = np.flatnonzero(bad)

    def _joints(
        self, Z: ArrayLike, y_proba: ArrayLike, y_true: ArrayLike | None
    ) -> Iterator[Floats]:
        self._require_fit()
        embedding = check_embedding(Z)
        width = (self.mixture_.mean if self.projection_ is None else self.projection_[1]).shape[1]
        if self.projection_ is None and not self.mixture_.tables:
            # Edisa's features are embedding, error distance and probabilities side by side
            width -= 2 * self.n_classes_
        if embedding.shape[1] != width:
            raise InputError(
                f"Z has {embedding.shape[1]} columns, but the slices were fitted with {width}"
            )
        probability = check_probability(y_proba, len(embedding), self.n_classes_)
        label = None if y_true is None else check_labels(y_true, len(embedding), self.n_classes_)
        for rows in em.blocks(len(embedding)):
            reduced = self._reduce(embedding[rows])
            if label is None:
                yield self._joint_without_label(reduced, probability[rows])
            else:
                views = self._views(reduced, label[rows], probability[rows])
                yield em.log_joint(self.mixture_, views.features, views.tables)

    def share_unlabelled(self, Z: ArrayLike, y_proba: ArrayLike) -> Floats:
        """Return responsibilities of the slices for examples without labels: shape (n, k)."""
        return np.concatenate(list(self._share_out(Z, y_proba)))

    def _share_out(
        self, Z: ArrayLike, y_proba: ArrayLike, y_true: ArrayLike | None = None
    ) -> Iterator[Floats]:
        """Return responsibilities, block by block."""
        for joint in self._joints(Z, y_proba, y_true):
            responsibility = joint.astype(np.float64, copy=False)
            em.responsibilities(responsibility)  # in place
            yield responsibility

    def _start(self, embedding: Floats, label: Ints, probability: Floats) -> Iterator[Floats]:
        """Return responsibilities to start from, block by block."""
        rows, k, seed = len(embedding), self.n_slices, self.random_state
        if not isinstance(self.init, str):
            return mixture.from_array(self._check_init(rows), k)
        if self.init == "kmeans":
            return mixture.from_array(mixture.find_clusters(embedding, k, seed), k)
        if self.init == "random":
            return mixture.from_noise(rows, k, seed)
        cells = probability.shape[1] ** 2
        if k < cells:
            raise PlanError(
                f"{self.name}: init='confusion' needs a slice for each of {cells} cells, "
                f"n_slices >= {cells}"
            )
        return mixture.from_confusion_cells(label, probability, k, seed)

    def _check_init(self, rows: int) -> NDArray[Any]:
        init, k = np.asarray(self.init), self.n_slices
        if init.shape not in ((rows,), (rows, k)):
            raise InputError(f"init has shape {init.shape}; it must be ({rows},) or ({rows}, {k})")
        if init.ndim == 1 and (init.dtype.kind not in "iu" or init.min() < 0 or init.max() >= k):
            raise InputError(f"init must hold slice numbers from 0 to {k - 1}")
        if init.ndim == 2 and not (np.allclose(init.sum(axis=1), 1.0) and (init >= 0).all()):
            raise InputError("init must hold responsibilities: each row at least 0, with sum 1")
        return init

    def _check(self) -> None:
        self._require_whole({"n_slices": 2, "min_size": 1, "max_iter": 1, "n_jobs": 1, "pca": 1})
        weights = [f.name for f in dataclasses.fields(self) if f.name.endswith("_weight")]
        self._require_numbers([*weights, "tol"], zero=True)
        self._require_numbers(["reg_covar"])
        self._require_numbers(["delta"], maximum=1)
        if isinstance(self.init, str) and self.init not in ("kmeans", "confusion", "random"):
            known = "kmeans, confusion, random or an array"
            raise PlanError(f"{self.name}: init must be {known}, not {self.init!r}")
        if self.suspicion not in ("calibrated", "slices"):
            raise PlanError(
                f"{self.name}: suspicion must be calibrated or slices, not {self.suspicion!r}"
            )
        if self.dtype not in ("float64", "float32"):
            raise PlanError(f"{self.name}: dtype must be float64 or float32, not {self.dtype!r}")
