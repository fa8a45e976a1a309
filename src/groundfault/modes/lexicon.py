"""Small closed classes of words in seven languages, to describe texts without a model.

Function words identify a language even in a short text. The other classes change the demands of a
task: numbers in words, negation, the direction of time, comparison, units. Spellings without
accents and with ``ae`` for ``ä`` are added, since many data sets use them.
"""

from __future__ import annotations

import math
import tomllib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from groundfault.base.reading import read_beside

_LISTS: dict[str, Any] = tomllib.loads(read_beside(__file__, "lexicon.toml"))
LANGUAGES: dict[str, str] = _LISTS["languages"]
_FUNCTION_WORDS: dict[str, str] = _LISTS["function_words"]
CLASSES: dict[str, dict[str, str]] = _LISTS["classes"]
"""Words of each class by language."""
_MIN_TEXTS = 8  # texts that a language has: one condition's support
_MIN_SHARE = 0.005  # and share of the texts: fewer are strays
_ROUNDS = 2  # naive Bayes changes few labels after the second
_MAX_WORDS = 40  # words of a language's rule: what fits in a line
# log odds at which a text counts as written in a language, about 7 to 1
_MARGIN = 2.0  # log odds of a language over the next: 7 to 1
_PRECISION = 0.97  # share of a word's texts in its language: the rule is a few words
# a class keeps a word of a language if so many of the texts with it are in that language
_OWN_SHARE = 0.8  # below it a word mostly means something else there


@dataclass(frozen=True)
class ColumnLanguages:
    """Languages of a column.

    Attributes
    ----------
    texts : sequence of set of str
        The distinct words of each text.
    labels : list of str
        The code of each text's language; empty if it is unknown.
    present : tuple of str
        Languages of the column, the most frequent first; English if all are unknown.
    words : dict of str to tuple of str
        By language: words that tell its texts from texts in the column's other languages. Empty for
        a column in one language.
    """

    texts: Sequence[Set[str]]
    labels: list[str]
    present: tuple[str, ...]
    words: dict[str, tuple[str, ...]]

    def list_words(self, name: str) -> tuple[str, ...]:
        """Return words of a class (see `lexicon.CLASSES`) in the languages of the column.

        A word with several meanings (*once* is eleven in Spanish) is left out if the texts that
        have it are mostly in another language. Empty if the words are in no text.
        """
        homes: dict[str, set[str]] = {}
        for code in self.present:
            for word in list_class_words(name, code):
                homes.setdefault(word, set()).add(code)
        all_texts: Counter[str] = Counter()
        own_texts: Counter[str] = Counter()
        for words, label in zip(self.texts, self.labels, strict=True):
            for word in words & homes.keys():
                all_texts[word] += 1
                own_texts[word] += label in homes[word] or not label
        if not all_texts:
            return ()
        other = {word for word, n in all_texts.items() if own_texts[word] < _OWN_SHARE * n}
        return tuple(sorted(homes.keys() - (other if len(self.present) > 1 else set())))


def detect_languages(texts: Sequence[Set[str]]) -> ColumnLanguages:
    """Detect the languages of texts, and words that identify each language.

    Parameters
    ----------
    texts : sequence of set of str
        The distinct words of each text, in lower case.

    Notes
    -----
    Function words label the texts with enough function words. All words of these texts then label
    the others (naive Bayes, twice), since a short question may have no function word at all.
    """
    labels = [_label_by_function_words(words) for words in texts]
    frequencies = Counter(label for label in labels if label)
    enough = max(_MIN_TEXTS, _MIN_SHARE * len(texts))
    present = tuple(code for code, count in frequencies.most_common() if count >= enough)
    if len(present) < 2:
        return ColumnLanguages(texts, labels, present or ("en",), {})
    labels = [label if label in present else "" for label in labels]
    for _ in range(_ROUNDS):
        labels = _label_by_all_words(texts, labels, present)
    counts = _count_words(texts, labels)
    words = {code: _choose_words(texts, labels, code, counts) for code in present}
    return ColumnLanguages(texts, labels, present, words)


def _label_by_function_words(words: Set[str]) -> str:
    homes = list_function_words()
    scores: dict[str, float] = {}
    for word in words & homes.keys():
        for code in homes[word]:
            scores[code] = scores.get(code, 0.0) + 1 / len(homes[word])
    ranking = sorted(scores, key=lambda code: -scores[code])
    if not ranking or scores[ranking[0]] < 1:
        return ""
    second = scores[ranking[1]] if len(ranking) > 1 else 0.0
    return ranking[0] if scores[ranking[0]] - second >= 0.5 else ""


def _label_by_all_words(
    texts: Sequence[Set[str]], labels: list[str], present: Sequence[str]
) -> list[str]:
    totals = Counter(label for label in labels if label)
    counts = _count_words(texts, labels)
    log = math.log
    start = [log(totals[code] + 1) for code in present]
    # of each word and language: the log of how many of its texts have the word
    weights = {
        word: [log((row[code] + 0.1) / (totals[code] + 1)) for code in present]
        for word, row in counts.items()
        if sum(row.values()) > row[""]
    }
    result = []
    for words in texts:
        known = map(weights.__getitem__, words & weights.keys())
        scores = list(map(sum, zip(start, *known, strict=True)))
        first, second = sorted(scores, reverse=True)[:2]
        result.append(present[scores.index(first)] if first - second >= _MARGIN else "")
    return result


def _count_words(
    texts: Sequence[Set[str]], labels: Sequence[str]
) -> Mapping[str, Mapping[str, int]]:
    """Return for each word the texts that have it, by their language."""
    counts: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for label in set(labels):
        of_label = (words for words, one in zip(texts, labels, strict=True) if one == label)
        for word, n in Counter(chain.from_iterable(of_label)).items():
            if not word.isdigit():
                counts[word][label] = n
    return counts


def _choose_words(
    texts: Sequence[Set[str]],
    labels: Sequence[str],
    code: str,
    counts: Mapping[str, Mapping[str, int]],
) -> tuple[str, ...]:
    """Return a few words so that nearly every text of a language has one, and few others do."""
    homes = list_function_words()
    exact = {
        word
        for word, row in counts.items()
        if row[code] >= 3 and row[code] >= _PRECISION * sum(row.values())
    }
    rest = [words for words, label in zip(texts, labels, strict=True) if label == code]
    chosen: list[str] = []
    # function words first: they serve texts that are not there yet
    for pool in ({word for word in exact if code in homes.get(word, ())}, exact):
        while rest and len(chosen) < _MAX_WORDS:
            gains = Counter(word for words in rest for word in words & pool)
            best = max(gains, key=lambda word: (gains[word], word), default="")
            if not best or gains[best] < 2:
                break
            chosen.append(best)
            rest = [words for words in rest if best not in words]
    return tuple(chosen)


@cache
def list_function_words() -> dict[str, tuple[str, ...]]:
    """Return function words in lower case, with and without accents: the languages that have
    each."""
    homes: dict[str, tuple[str, ...]] = {}
    for code, words in _FUNCTION_WORDS.items():
        for word in sorted(_spell(words)):
            homes[word] = (*homes.get(word, ()), code)
    return homes


@cache
def list_class_words(name: str, language: str) -> frozenset[str]:
    """Return words of a class in a language, in lower case, with and without accents."""
    return _spell(CLASSES[name][language])


def _spell(words: str) -> frozenset[str]:
    """Return words as written, without accents, and with two letters for an umlaut."""
    plain = words.split()
    umlauts = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
    return frozenset(
        [*plain, *(word.translate(umlauts) for word in plain), *map(_drop_accents, plain)]
    )


def _drop_accents(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.replace("ß", "ss"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
