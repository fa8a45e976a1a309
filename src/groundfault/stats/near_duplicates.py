"""Near-duplicates among texts, by shared word 3-grams, containment and fingerprints."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_WORD = re.compile(r"\w+")
_BREAK = re.compile(r"[\W_]+")
_SPACED = {code: " " for code in range(128) if not chr(code).isalnum()}
_SPACED_WORDS = {code: " " for code in _SPACED if chr(code) != "_"}
_FEWEST = 8  # 3-grams of the shorter text: fewer are contained in much by chance
# of a fingerprint, counted in a byte; of hashed 3-grams, few of which collide
_BITS, _FEATURES = 128, 1 << 14
_WORD_32 = (1 << 32) - 1  # MurmurHash3 computes with words of 32 bits
# error of a fingerprint's angle as a share of its bits: three standard deviations
_WIDER = 0.08
# 3-grams in this share of at least this many texts are their form: "Answer yes or no."
_COMMON, _MANY = 0.25, 40
# texts compared with all others at a time, which bounds memory
_ROWS = 128
_LETTERS = 1 << 14  # of short texts that are hashed together, in the processor's cache


@dataclass(frozen=True)
class DuplicatePair:
    """Two texts that are too similar.

    Attributes
    ----------
    text : int
        Number of the text.
    other : int
        Number of the reference text; from ``len(references)`` on, of an earlier text.
    how : str
        ``jaccard``, ``containment`` or ``letters``.
    value : float
        Similarity by that measure, in [0, 1].
    """

    text: int
    other: int
    how: str
    value: float


def find_near_duplicates(
    texts: Sequence[str],
    references: Sequence[str],
    *,
    jaccard: float = 0.92,
    containment: float = 0.92,
    letters: float = 0.95,
    normalised: bool = False,
) -> list[DuplicatePair]:
    """Return pairs of a text with a reference text, or with an earlier text, that reach a
    similarity.

    Parameters
    ----------
    texts, references : sequence of str
    jaccard : float
        Shared over all distinct word 3-grams, lower case. FailureScope (arXiv:2606.09878) takes
        0.92.
    containment : float
        Shared 3-grams over the 3-grams of the text with fewer, for texts with at least 8 of these.
        3-grams in more than a quarter of all texts are the texts' form and do not count. A value
        above 1 turns this search off.
    letters : float
        Cosine of the counts of 4-grams of letters and digits, without case, punctuation and form.
    normalised : bool
        The texts come from `normalise_text`, which leaves ASCII as it is the second time.

    Notes
    -----
    The first two are exact. For the third, fingerprints of 128 bits (random hyperplanes; Charikar
    2002, doi:10.1145/509907.509965) select the pairs to compare: about 1 pair in 500 is missed at
    the threshold itself, and fewer above. The third finds texts that differ by a typing error, and
    copies in scripts without spaces between words.

    Examples
    --------
    >>> find_near_duplicates(["How many eggs are left?"], ["how many eggs are left", "Who?"])[0]
    DuplicatePair(text=0, other=0, how='jaccard', value=1.0)
    """
    if not texts:
        return []
    everything = [*references, *texts]
    return [
        *_compare_words(everything, len(references), jaccard, containment),
        *_compare_letters(everything, len(references), letters, normalised=normalised),
    ]


def _compare_words(
    everything: list[str], first: int, jaccard: float, containment: float
) -> Iterator[DuplicatePair]:
    grams = _tabulate_trigrams(everything, jaccard if containment > 1 else 0.0)
    if not grams.shape[1]:  # no text has a word
        return
    tables = [("jaccard", jaccard, grams)]
    if containment <= 1:
        # it alone ignores common 3-grams: a short text may consist of little else
        tables.append(("containment", containment, grams[:, _find_rare_columns(grams)]))
    for how, threshold, table in tables:
        size = np.asarray(table.sum(axis=1)).ravel()
        common = table[:, np.asarray(table.sum(axis=0)).ravel() > 1]
        turned = common.T.tocsr()
        for start in range(first, len(everything), _ROWS):
            # a sparse product meets only pairs that share a 3-gram, of which there are few
            both = (common[start : start + _ROWS] @ turned).tocoo()
            row, column, shared = both.row + start, both.col, both.data
            fewer = np.minimum(size[row], size[column])
            if how == "jaccard":
                value = shared / (size[row] + size[column] - shared)
            else:
                value = np.where(fewer >= _FEWEST, shared / np.maximum(fewer, 1), 0.0)
            at = np.flatnonzero((column < row) & (value >= threshold))
            yield from _pairs(how, row[at] - first, column[at], value[at])


def _compare_letters(
    everything: list[str], first: int, min_cosine: float, *, normalised: bool
) -> Iterator[DuplicatePair]:
    # hashing needs no vocabulary of all character 4-grams; counts of colliding ones add up
    ready = [t if normalised and t.isascii() else normalise_text(t) for t in everything]
    columns, times = zip(*_count_columns(ready), strict=True)
    vectors = _tabulate(columns)
    vectors.data = np.concatenate(times).astype(np.float32)
    rare = _find_rare_columns(vectors)
    if not rare.any():
        return
    vectors = vectors[:, rare]
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1, dtype=np.float64)).ravel())
    vectors.data = (vectors.data / np.repeat(lengths, np.diff(vectors.indptr))).astype(np.float32)
    prints = np.ascontiguousarray(_fingerprints(vectors).T)
    # the angle between two vectors is the share of random planes that separate them, times pi
    # (Charikar 2002, doi:10.1145/509907.509965); fingerprints only preselect pairs
    reach = _BITS * (np.arccos(np.clip(min_cosine, -1, 1)) / np.pi + _WIDER)
    for start in range(first, len(everything), _ROWS):
        some, end = slice(start, start + _ROWS), start + _ROWS
        differ = reduce(np.add, (np.bitwise_count(p[some, None] ^ p[:end]) for p in prints))
        row, column = np.nonzero(differ <= reach)
        row, column = (row + start)[column < row + start], column[column < row + start]
        cosine = np.asarray(vectors[row].multiply(vectors[column]).sum(axis=1)).ravel()
        # float32 cosines of equal texts are not quite 1
        at = np.flatnonzero(cosine >= min_cosine - 1e-6)
        yield from _pairs("letters", row[at] - first, column[at], np.minimum(cosine[at], 1.0))


def _count_columns(texts: Sequence[str]) -> Iterator[tuple[NDArray[np.int32], Ints]]:
    """Yield the columns of each text's 4-grams of letters, and how often each is there."""
    ends = np.cumsum([len(text) for text in texts])
    batches = np.flatnonzero(np.diff(ends // _LETTERS)) + 1
    for first, last in pairwise([0, *batches.tolist(), len(texts)]):
        columns = _hash_to_columns("".join(texts[first:last]))
        start = 0
        for text in texts[first:last]:  # grams across the end of a text are left out
            yield np.unique(columns[start : start + max(len(text) - 3, 0)], return_counts=True)
            start += len(text)


def _tabulate_trigrams(texts: Iterable[str], least: float) -> Any:
    """Return a sparse matrix of texts and their word 3-grams; see `_tabulate`.

    A text that shares less than this part of its 3-grams with others may have an empty row.
    """
    codes: defaultdict[str, int] = defaultdict(count().__next__)
    rows = []
    for text in texts:
        words = _list_words(text.lower())
        row = np.fromiter(map(codes.__getitem__, words), np.int64, len(words))
        # fewer than three words make one 3-gram, in which a missing word counts as a word
        rows.append(np.append(row, [-1] * (3 - len(row))) if 0 < len(row) < 3 else row)
    triples = [np.column_stack([row[:-2], row[1:-1], row[2:]]) for row in rows]
    at = np.concatenate(triples) + 1
    base = len(codes) + 1
    pairs = at[:, 0] * base + at[:, 1]
    if base**3 >= 1 << 63:  # three words are more than a number holds
        pairs = np.unique(pairs, return_inverse=True)[1]
    ends = np.cumsum([len(row) for row in triples])[:-1]
    # text by text: short arrays are sorted in the processor's cache
    whole = map(np.sort, np.split(pairs * base + at[:, 2], ends))
    grams = [row[np.diff(row, prepend=-1) > 0] for row in whole]
    grams = list(_keep_shared(grams, least))
    ends = np.cumsum([len(row) for row in grams])[:-1]
    return _tabulate(np.split(np.unique(np.concatenate(grams), return_inverse=True)[1], ends))


def _list_words(text: str) -> list[str]:
    """Return runs of letters, digits and underscores."""
    return text.translate(_SPACED_WORDS).split() if text.isascii() else _WORD.findall(text)


def _keep_shared(rows: Sequence[Ints], least: float) -> Iterator[Ints]:
    """Yield rows of distinct numbers; rows that share too few numbers with others are empty."""
    # numbers that meet in a place count as shared, so that no row is emptied in error
    bits = max(1, sum(map(len, rows)).bit_length())
    odd, shift = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - bits)
    places = [(row.view(np.uint64) * odd >> shift).astype(np.intp) for row in rows]
    shared = np.bincount(np.concatenate(places)) > 1
    for row, at in zip(rows, places, strict=True):
        yield row if shared[at].sum() >= least * (1 - 1e-9) * len(row) else row[:0]


def _tabulate(columns: Sequence[NDArray[Any]]) -> Any:
    """Return a sparse matrix with a 1 in some columns of each row, given in order.

    scikit-learn's vectorizers do the same, but their import takes longer than this.
    """
    from scipy.sparse import csr_matrix

    at = np.concatenate(columns)
    ends = np.cumsum([0, *map(len, columns)])
    shape = (len(columns), int(at.max(initial=-1)) + 1)
    return csr_matrix((np.ones(len(at), dtype=np.int32), at, ends), shape=shape)


def _hash_to_columns(text: str) -> NDArray[np.int32]:
    """Return the column of each of a text's 4-grams of letters: shape (max(0, letters - 3),).

    Letters of one byte, the most common ones, are hashed together; others gram by gram.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    if len(codes) < 4:
        return np.zeros(0, dtype=np.int32)
    columns = _hash_words(codes[:-3] + (codes[1:-2] << 8) + (codes[2:-1] << 16) + (codes[3:] << 24))
    if not text.isascii():
        windows = np.lib.stride_tricks.sliding_window_view(codes >= 128, 4)
        for i in np.flatnonzero(windows.any(axis=1)).tolist():
            columns[i] = _hash_to_column(text[i : i + 4])
    return columns


def _hash_words(words: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return `_hash_to_column` of four bytes each, as little-endian words."""
    value: Any = words * np.uint32(0xCC9E2D51)
    value = (value << 15 | value >> 17) * np.uint32(0x1B873593)
    value = (value << 13 | value >> 19) * np.uint32(5) + np.uint32(0xE6546B64) ^ np.uint32(4)
    value = (value ^ value >> 16) * np.uint32(0x85EBCA6B)
    value = (value ^ value >> 13) * np.uint32(0xC2B2AE35)
    value ^= value >> 16
    return np.asarray(np.abs(value.view(np.int32)) & (_FEATURES - 1))


@lru_cache(maxsize=1 << 17)
def _hash_to_column(gram: str) -> int:
    """Return MurmurHash3 (Appleby 2011, 32 bits, seed 0), which scikit-learn's vectorizer takes
    too.

    Some letters and digits collide. Another hash would have other collisions, and change pairs near
    the threshold.
    """
    data = gram.encode("utf-8", "surrogatepass")
    value = 0
    for start in range(0, len(data), 4):
        block = data[start : start + 4]
        word = int.from_bytes(block, "little") * 0xCC9E2D51 & _WORD_32
        value ^= _rotate(word, 15) * 0x1B873593 & _WORD_32
        if len(block) == 4:
            value = (_rotate(value, 13) * 5 + 0xE6546B64) & _WORD_32
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & _WORD_32
    value = (value ^ value >> 13) * 0xC2B2AE35 & _WORD_32
    value ^= value >> 16
    return abs(value - (value >> 31 << 32)) % _FEATURES


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (32 - bits)) & _WORD_32


def _fingerprints(vectors: Any) -> NDArray[np.uint64]:
    """Return the side of random planes through the origin for each vector: shape (n, bits / 64)."""
    sides = np.array([-1, 1], dtype=np.float32)
    planes = np.random.default_rng(0).choice(sides, (vectors.shape[1], _BITS))
    return np.packbits(np.asarray(vectors @ planes) > 0, axis=1).view(np.uint64)


def _find_rare_columns(table: Any) -> NDArray[np.bool_]:
    """Return columns that are not common to many texts."""
    texts = table.shape[0]
    have = np.asarray((table > 0).sum(axis=0)).ravel()
    return np.asarray((have > 0) & ((texts < _MANY) | (have <= _COMMON * texts)))


def normalise_text(text: str) -> str:
    """Return letters and digits with single spaces, to ignore case, punctuation and spacing.

    Examples
    --------
    >>> normalise_text("How  many eggs?")
    'how many eggs'
    """
    if text.isascii():
        return " ".join(text.lower().translate(_SPACED).split())
    # NFKC: full-width letters and ligatures are no difference either
    return _BREAK.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def _pairs(how: str, row: Any, column: Any, value: Any) -> Iterator[DuplicatePair]:
    for i, j, v in zip(row.tolist(), column.tolist(), value.tolist(), strict=True):
        yield DuplicatePair(i, j, how, round(v, 4))
