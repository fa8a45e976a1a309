"""Pragmatic features: who and what a text mentions, and its sentiment.

A mention is a word or phrase of a list, or of a pattern below. It says that the text speaks of an
age, a religion and so on; never that a person has it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from groundfault.language import words
from groundfault.language.annotated import lower
from groundfault.language.words import read_words

if TYPE_CHECKING:
    from spacy.tokens import Doc

TOXIC = ("toxicity", "toxic", "TOXIC")

# words after a negation that it turns: VADER (Hutto and Gilbert 2014) also looks at three
_REACH = 3
_COUNT = (
    r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|"
    r"seven|eigh|nine)teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-[a-z]+)?|hundred|thousand|million|billion)"
)
_NUMBER = r"\d[\d,.]*"
_UNIT = (
    r"(?:dollars?|cents?|euros?|pence|yen|yuan|rupees?|roubles?|rubles?|pesos?|francs?"
    r"|USD|EUR|GBP|bucks?)"
)
_MONEY = re.compile(
    rf"[$€£¥₹]\s?{_NUMBER}|(?<!\w){_NUMBER}\s?(?:(?:hundred|thousand|million|"
    rf"billion)\s)?(?:[€£¥₹]|{_UNIT}(?!\w))"
    rf"|(?<!\w){_COUNT}(?:\s{_COUNT})?\s{_UNIT}(?!\w)",
    re.IGNORECASE,
)
_MONTH = r"(?:January|February|April|June|July|August|September|October|November|December)"
# also verbs: they count as months only beside a day, a year or a preposition
_VERB_TOO = r"(?:March|May)"
_DAY = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)s?"
_OF_MONTH = r"(?:[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:1[5-9]|20)\d\d"
_DATED = rf"(?:{_MONTH}|{_VERB_TOO})"
_DATE = re.compile(
    rf"(?<!\w)(?:\d{{4}}-\d\d-\d\d|\d\d?/\d\d?/(?:\d\d){{1,2}}"
    rf"|{_OF_MONTH}\s(?:of\s)?{_DATED}(?:,?\s{_YEAR})?|"
    rf"{_DATED}\s{_OF_MONTH}(?!\d)(?:\s?,?\s{_YEAR})?|{_DATED}\s{_YEAR}"
    rf"|(?i:in|of|last|next|this|early|late|since|until|by|every|mid)\s{_VERB_TOO}|{_MONTH}|{_DAY}"
    rf"|(?i:in|since|by|until|before|after|during|from|of)\s{_YEAR}(?:s)?"
    r"|(?i:today|tomorrow|yesterday)|(?i:last|next)\s(?i:year|month|week))(?!\w)"
)
_UNITS = "first|third|fourth|fifth|sixth|seventh|eighth|ninth"
_ORDINAL = re.compile(
    rf"(?<!\w)(?:\d+(?:st|nd|rd|th)|(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    rf"ninety)-)?(?:{_UNITS})"
    r"|(?<!per\s)(?<!each\s)(?<!every\s)(?<!split\s)(?<!half\sa\s)second"
    r"|tenth|eleventh|twelfth|(?:thir|four|fif|six|seven|eigh|nine)teenth"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)tieth|hundredth|thousandth)(?!\w)",
    re.IGNORECASE,
)
# "a third of", "one fifth of": shares, and "a second later": a time
_SHARE = re.compile(
    rf"(?<!\w)(?:a|an|one|1)\s(?:(?:{_UNITS}|tenth|hundredth|thousandth)(?=\sof\s)"
    r"|second(?=\s(?:later|ago|before|after|to|longer|or)\b|\s*[.,;!?]|\s*$))",
    re.IGNORECASE,
)


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
