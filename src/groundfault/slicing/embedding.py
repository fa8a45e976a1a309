"""Embeddings of texts: fitted once, applied to any texts, saved as plain numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from groundfault.base.arrays import Floats
from groundfault.core.candidate import decode_array, encode_array
from groundfault.errors import InputError, first_line, require_extra, require_whole

TFIDF = "tfidf"
SENTENCE = "sentence"
# texts below which a word that occurs once is kept: there are too few words otherwise
_FEW = 200
_HUB_NAME = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?")
_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True, eq=False)
class Embedding:
    """A fitted embedding. Make one with `fit`.

    Attributes
    ----------
    how : str
        ``tfidf``, or ``sentence:`` and the name of a model.
    words : tuple of str, length V
        Empty for a model, as are the arrays.
    weights : float64 array, shape (V,)
        Inverse document frequencies.
    axes : float64 array, shape (V, d)
        Leading directions of the weighted words.
    """

    how: str
    words: tuple[str, ...] = ()
    weights: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    axes: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    def apply(self, texts: Iterable[str | None]) -> Floats:
        """Embed texts: float64, shape (n, d). A text without a known word is at the origin.

        Raises
        ------
        InputError
            If a text is missing, or not a text.
        MissingExtraError
            If a model is asked for and its library is not installed.

        Notes
        -----
        A model has to be on this machine: a model named in a file is not downloaded.
        """
        rows = _check_texts(texts)
        if self.how != TFIDF:
            # only `fit`, whose caller names the model, fetches one
            model = _load_model(self.how, local=True)
            return _check_points(model.encode(rows, show_progress_bar=False), len(rows))
        if not rows:
            return np.empty((0, self.axes.shape[1]))
        return _check_points(_weigh_words(rows, self.words, self.weights) @ self.axes, len(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted embedding as plain words and numbers.

        `from_dict` gives an equal one back.
        """
        arrays = {name: encode_array(getattr(self, name)) for name in ("weights", "axes")}
        return {"how": self.how, "words": list(self.words), **arrays}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Embedding:
        """Read an embedding that `to_dict` wrote.

        Raises
        ------
        InputError
            If ``data`` has another content.
        """
        try:
            words = tuple(str(word) for word in data["words"])
            embedding = cls(
                str(data["how"]), words, decode_array(data["weights"]), decode_array(data["axes"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a fitted embedding ({error})") from None
        if (
            embedding.weights.shape != (len(words),)
            or embedding.axes.ndim != 2
            or len(embedding.axes) != len(words)
        ):
            raise InputError("not a fitted embedding: its words and its arrays differ in length")
        kind, _, model = embedding.how.partition(":")
        # a name of a hub; files in a folder may run as code when they are loaded
        if kind == SENTENCE and (not _HUB_NAME.fullmatch(model) or Path(model).exists()):
            raise InputError(
                f"the file names an embedding model on a disk, {model!r}, which is not loaded; fit "
                "the slices again with it"
            )
        if kind not in (TFIDF, SENTENCE):
            raise InputError(f"not a fitted embedding: there is no {kind!r}")
        return embedding


def fit(
    texts: Iterable[str | None], how: str = TFIDF, *, dimensions: int = 64, seed: int = 0
) -> Embedding:
    """Learn an embedding from texts.

    Parameters
    ----------
    texts : iterable of str, length n
    how : str
        ``tfidf``: words weighted by inverse document frequency (Sparck Jones), projected on their
        leading directions (truncated SVD). It needs only the texts, and gives the same numbers each
        time. ``sentence``, or ``sentence:MODEL``: a model of the library sentence-transformers,
        which may have to be downloaded.
    dimensions : int
        Most directions of ``tfidf``, at most the number of words or texts. A model has its own.
    seed : int
        Seed of the search for the directions.

    Raises
    ------
    InputError
        If a text is missing, no text has a word, or ``how`` or ``dimensions`` is invalid.
    MissingExtraError
        If a model is asked for and its library is not installed.

    Notes
    -----
    Words are runs of two or more letters or digits, in lower case, and pairs of neighbours. With
    200 texts or more, words in a single text are left out.

    References
    ----------
    Deerwester et al. (1990), Indexing by latent semantic analysis,
    https://doi.org/10.1002/(SICI)1097-4571(199009)41:6%3C391::AID-ASI1%3E3.0.CO;2-9.

    Examples
    --------
    >>> fitted = fit(["two plus two", "two minus one", "the capital of France"], dimensions=2)
    >>> fitted.apply(["one plus one"]).shape
    (1, 2)
    """
    require_whole("dimensions", dimensions, error=InputError)
    kind, colon, model = how.partition(":")
    if kind == SENTENCE:
        embedding = Embedding(f"{SENTENCE}:{model or _MODEL}")
        _load_model(embedding.how, local=False)
        return embedding
    if kind != TFIDF or colon:
        raise InputError(f"how={how!r} is no embedding; it is tfidf, sentence or sentence:MODEL")
    return _fit_words(_check_texts(texts), int(dimensions), seed)


def embed(
    texts: Iterable[str | None], how: str = TFIDF, *, dimensions: int = 64, seed: int = 0
) -> Floats:
    """Fit and apply an embedding to the same texts: float64, shape (n, d). See `fit`.

    Examples
    --------
    >>> embed(["two plus two", "two minus one", "the capital of France"], dimensions=2).shape
    (3, 2)
    """
    rows = _check_texts(texts)
    return fit(rows, how, dimensions=dimensions, seed=seed).apply(rows)


def _fit_words(texts: list[str], dimensions: int, seed: int) -> Embedding:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.utils.extmath import randomized_svd

    words = TfidfVectorizer(
        ngram_range=(1, 2), min_df=1 if len(texts) < _FEW else 2, sublinear_tf=True
    )
    try:
        weighted_words = words.fit_transform(texts)
    except ValueError:
        raise InputError(
            f"no word to learn from in {len(texts)} texts; name a column of texts"
        ) from None
    rank = min(dimensions, *weighted_words.shape)
    # signs fixed, or the same texts would give mirrored axes on another machine
    _, _, axes = randomized_svd(weighted_words, rank, random_state=seed, flip_sign=True)
    return Embedding(
        TFIDF,
        tuple(words.get_feature_names_out().tolist()),
        words.idf_,
        np.ascontiguousarray(axes.T),
    )


def _weigh_words(texts: list[str], words: tuple[str, ...], weights: Floats) -> Any:
    """Return weighted words of each text, of length 1: a sparse matrix of shape (n, V)."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    same = TfidfVectorizer(ngram_range=(1, 2), vocabulary=words, sublinear_tf=True)
    # the weights of the fit, not of these texts: a text has one place wherever it is embedded
    same.idf_ = weights
    return same.transform(texts)


def _load_model(how: str, *, local: bool) -> Any:
    with require_extra(
        f"the embedding {how} needs sentence-transformers: pip install 'groundfault[embed]'"
    ):
        from sentence_transformers import SentenceTransformer
    name = how.partition(":")[2]
    try:
        return SentenceTransformer(name, local_files_only=local)
    except (OSError, ValueError) as error:
        hint = "; if you trust it, download it with sentence-transformers first" if local else ""
        raise InputError(
            f"the embedding model {name!r} cannot be loaded: {first_line(error)}{hint}"
        ) from None


def _check_texts(texts: Iterable[str | None]) -> list[str]:
    # a text is iterable too, and its letters would be embedded one by one
    if isinstance(texts, str):
        raise InputError("one text was given where several are embedded; put it in a list")
    rows = list(texts)
    for row, text in enumerate(rows):
        if not isinstance(text, str):
            what = "missing" if text is None else f"{type(text).__name__}, not text"
            raise InputError(f"the text of row {row} is {what}; fill it in or leave the row out")
    return [str(text) for text in rows]


def _check_points(points: object, rows: int) -> Floats:
    matrix = np.asarray(points, dtype=np.float64).reshape(rows, -1)
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise InputError(
            f"the embedding of {len(bad)} texts has NaN or infinite entries, "
            f"the first in row {bad[0]}"
        )
    return matrix


def check_embedding(values: ArrayLike, what: str = "the embedding Z") -> Floats:
    """Return embeddings as an array of shape (n, d).

    Raises
    ------
    InputError
        If they are not numbers in two dimensions, or one is not finite.
    """
    array = to_numbers(values, what)
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"{what} has shape {array.shape}; it must have a row for each example "
            "and at least one column"
        )
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(
            f"{what} holds {array[row, column]} in row {row}, column {column}; "
            "leave out examples without an embedding"
        )
    largest = float(np.abs(array).max())
    # distances are sums of squares, which would be infinite
    if largest > 1e100:
        raise InputError(
            f"{what} holds numbers of size {largest:g}, whose squares overflow; scale it down"
        )
    return array


def to_numbers(values: ArrayLike, what: str) -> Floats:
    """Return values as an array of numbers, or raise an error about ``what``."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} must be an array of numbers: {error}") from None
