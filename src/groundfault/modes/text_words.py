"""Words, phrases and topics of a column of texts, as conditions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.modes.lexicon import list_function_words
from groundfault.modes.text_conditions import MIN_TEXTS, Draft, match, match_words

_MOST_FREQUENT = 0.7
_MAX_PHRASES = 40
_LONGEST_PHRASE = 4
# words of a text that phrases are looked for in
_READ = 150
# of a phrase's texts: what has more of them says the same
_NEARLY = 0.8
_TOPIC_WORDS = 150
_TOPIC_SHARES = (0.01, 0.2)
_TOPIC_SIZES = (3, 15)
_DIMENSIONS = 20
# mean information of two words of a topic, in nats
_COHERENCE = 0.5
_ROUNDS = 20

Floats = NDArray[np.float64]


def draft_words(sample: pl.Series, most: int) -> Iterator[Draft]:
    """The most frequent words.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls.
    most : int
    """
    words = sample.str.to_lowercase().str.extract_all(r"\w+").list.unique().explode().drop_nulls()
    counts = sorted(words.value_counts().rows(), key=lambda row: (-row[1], row[0]))
    enough, many = MIN_TEXTS, _MOST_FREQUENT * sample.len()
    for word in [word for word, count in counts if enough <= count <= many][:most]:
        yield Draft("words", match_words([word]), f'has the word "{word}"', 2.0)


def draft_phrases(sample: pl.Series) -> Iterator[Draft]:
    """Frequent phrases of two to four words that go together.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls.

    Notes
    -----
    A phrase counts if it is more frequent than its parts make it (of all ways to part it in two,
    the least surprising), if it is not just the rarest of its words, and if no longer phrase has
    nearly all of its texts.
    """
    counts = _count_phrases(sample)
    n = sample.len()
    enough = max(MIN_TEXTS, math.ceil(0.01 * n))
    phrases = {one: k for one, k in counts.items() if len(one) > 1 and k >= enough}
    covered = {
        part
        for phrase, count in phrases.items()
        for part in (phrase[1:], phrase[:-1])
        if count >= _NEARLY * counts[part]
    }
    scores = {
        phrase: count * _measure_surprise(phrase, counts, n)
        for phrase, count in phrases.items()
        if count <= _MOST_FREQUENT * n
        and phrase not in covered
        and count < _NEARLY * min(counts[word,] for word in phrase)
    }
    for phrase in sorted(scores, key=lambda one: (-scores[one], one))[:_MAX_PHRASES]:
        if scores[phrase] > 0:
            inner = r"\s+".join(map(re.escape, phrase))
            words = f'has "{" ".join(phrase)}"'
            yield Draft("words", match(rf"\b{inner}\b", any_case=True), words, 2.5)


def _count_phrases(sample: pl.Series) -> Counter[tuple[str, ...]]:
    """Texts that have each word, and each phrase of frequent words."""
    # a mark ends a phrase; a space alone does not
    tokens = sample.str.to_lowercase().str.extract_all(r"\w+|[^\w\s]").to_list()
    counts: Counter[tuple[str, ...]] = Counter((word,) for some in tokens for word in set(some))
    enough = max(MIN_TEXTS, 0.01 * len(tokens))
    frequent = {word for (word, *_), k in counts.items() if k >= enough and word[0].isalpha()}
    for some in tokens:
        phrases: set[tuple[str, ...]] = set()
        run: tuple[str, ...] = ()
        for word in some[:_READ]:
            run = (*run[1 - _LONGEST_PHRASE :], word) if word in frequent else ()
            phrases.update(run[i:] for i in range(len(run) - 1))
        counts.update(phrases)
    return counts


def _measure_surprise(phrase: tuple[str, ...], counts: Counter[tuple[str, ...]], n: int) -> float:
    """Log of the texts that have a phrase over those expected of its parts, less log 2."""
    parts = (counts[phrase[:i]] * counts[phrase[i:]] for i in range(1, len(phrase)))
    return math.log(counts[phrase] * n / max(parts)) - math.log(2)


def draft_topics(sample: pl.Series) -> Iterator[Draft]:
    """Groups of words that stand in the same texts, named by the most frequent of them.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls.

    Notes
    -----
    Words are embedded by the leading eigenvectors of their positive pointwise mutual information
    (Levy and Goldberg 2014, https://papers.nips.cc/paper/5477) and grouped by spherical k-means
    from a fixed start.
    """
    words, holds = _list_content_words(sample)
    if len(words) < 3 * _TOPIC_SIZES[0]:
        return
    together = holds.T @ holds
    single = np.diag(together)
    with np.errstate(divide="ignore"):
        information = np.maximum(np.log(together * len(holds) / np.outer(single, single)), 0)
    np.fill_diagonal(information, 0)
    groups = _cluster(_embed(information), max(2, len(words) // 10))
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        if not _TOPIC_SIZES[0] <= len(members) <= _TOPIC_SIZES[1]:
            continue
        inner = information[np.ix_(members, members)]
        if inner.sum() >= _COHERENCE * len(members) * (len(members) - 1):
            names = [words[i] for i in members]
            meaning = f"is about {', '.join(names[:3])} and the like"
            yield Draft("topic", match_words(sorted(names)), meaning, 1.5)


def _list_content_words(sample: pl.Series) -> tuple[list[str], Floats]:
    """Words that are not function words, the most frequent first, and which texts have them."""
    lists = sample.str.to_lowercase().str.extract_all(r"\p{L}{3,}").list.unique().to_list()
    counts = Counter(word for some in lists for word in some)
    few, many = max(MIN_TEXTS, _TOPIC_SHARES[0] * len(lists)), _TOPIC_SHARES[1] * len(lists)
    grammar = list_function_words()
    content = [w for w, k in counts.items() if few <= k <= many and w not in grammar]
    words = sorted(content, key=lambda word: (-counts[word], word))[:_TOPIC_WORDS]
    places = {word: i for i, word in enumerate(words)}
    holds = np.zeros((len(lists), len(words)))
    for row, some in zip(holds, lists, strict=True):
        row[[places[word] for word in some if word in places]] = 1
    return words, holds


def _embed(information: Floats) -> Floats:
    values, vectors = np.linalg.eigh(information)
    first = np.argsort(-np.abs(values))[:_DIMENSIONS]
    points = vectors[:, first] * np.sqrt(np.abs(values[first]))
    return _normalise(points)


def _cluster(points: Floats, count: int) -> NDArray[np.intp]:
    """Spherical k-means; each start is the point least like those before it."""
    centers = points[:1]
    while len(centers) < count:
        far = np.argmin((points @ centers.T).max(axis=1))
        centers = np.vstack([centers, points[far]])
    groups = np.zeros(len(points), np.intp)
    for _ in range(_ROUNDS):
        groups = np.argmax(points @ centers.T, axis=1)
        sums = np.array([points[groups == i].sum(axis=0) for i in range(count)])
        centers = _normalise(sums)
    return groups


def _normalise(points: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.maximum(lengths, 1e-12)
