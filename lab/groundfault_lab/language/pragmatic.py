"""Pragmatic features: who and what a text mentions, and its sentiment.

A mention is a word or phrase of a list, or of a pattern below. It says that the text speaks of an
age, a religion and so on; never that a person has it."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from groundfault.base.reading import read_beside
from groundfault_lab.language import words
from groundfault_lab.language.annotated import lower
from groundfault_lab.language.words import read_words

if TYPE_CHECKING:
    from spacy.tokens import Doc

TOXIC = ("toxicity", "toxic", "TOXIC")

# words after a negation that it turns: VADER (Hutto and Gilbert 2014) also looks at three
_REACH = 3


def _read_patterns() -> dict[str, str]:
    """Return the patterns of ``patterns.toml``, with those in the places of their names."""
    patterns: dict[str, str] = {}
    for name, text in tomllib.loads(read_beside(__file__, "patterns.toml")).items():
        patterns[name] = re.sub(r"<(\w+)>", lambda place: patterns[place[1]], text)
    return patterns


_PATTERNS = _read_patterns()
_MONEY, _ORDINAL, _SHARE = (
    re.compile(_PATTERNS[name], re.IGNORECASE) for name in ("money", "ordinal", "share")
)
_DATE = re.compile(_PATTERNS["date"])


def mentions(name: str) -> Callable[[Doc], float]:
    """Make a function that tests whether a text has an entry of a list."""

    def has(doc: Doc) -> float:
        return float(words.has_mention(name, doc.text))

    return has


def money(doc: Doc) -> float:
    """Count sums of money: a sign or name of a currency, with a number."""
    return float(len(_MONEY.findall(doc.text)))


def date(doc: Doc) -> float:
    """Count dates: days, months, weekdays, years after a preposition, *yesterday* and its like."""
    return float(len(_DATE.findall(doc.text)))


def ordinal(doc: Doc) -> float:
    """Count ordinal numbers: *3rd*, *twenty-first*; not shares, dates or *a second later*."""
    # shares and dates are taken out first, because they hold ordinals
    return float(len(_ORDINAL.findall(_SHARE.sub(" ", _DATE.sub(" ", doc.text)))))


def entities(labels: frozenset[str]) -> Callable[[Doc], float]:
    """Make a function that counts the named entities of some labels."""

    def count_entities(doc: Doc) -> float:
        return float(sum(entity.label_ in labels for entity in doc.ents))

    return count_entities


def valence(doc: Doc) -> float:
    """Return sentiment from -1 to 1: pleasant minus unpleasant words over both.

    A word up to three words after a negation counts as its opposite.
    """
    lists = ("negation", "pleasant", "unpleasant")
    negations, pleasant, unpleasant = map(read_words, lists)
    tokens = [lower(token) for token in doc]
    total, values = 0, 0
    for i, token in enumerate(tokens):
        sign = (token in pleasant) - (token in unpleasant)
        if sign:
            negated = not negations.isdisjoint(tokens[max(0, i - _REACH) : i])
            total, values = total + (-sign if negated else sign), values + 1
    return total / values if values else 0.0


def toxicity(doc: Doc) -> float:
    """Return the score of the pipeline's own text classifier; NaN where it gives none."""
    return float(next((doc.cats[label] for label in TOXIC if label in doc.cats), math.nan))


def norm(doc: Doc, norms: Mapping[str, float]) -> float:
    """Return mean norm of the words that have one; NaN where none has."""
    values = [norms[word] for word in words.find_words(doc.text) if word in norms]
    return sum(values) / len(values) if values else math.nan
