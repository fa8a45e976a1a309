"""Equivalence: whether two answers are the same by a task's rule, with a reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

_MOST = 2_000  # characters of an answer; a longer text is an essay
_WRAPPED = re.compile(r"\\(?:boxed|text|textbf|mathrm)\{([^{}]*)\}|\\[()\[\]]|\$(?!\d)|\*\*|__|`+")
_ARTICLE = re.compile(r"^(?:the|an?) (?=\S)")
_QUOTES = " \"'“”‘’*_`"
# not joined to a word or another number, and not part of a power; the digits are bounded because
# 1e999999999 fills a memory
_NUMBER = re.compile(
    r"(?<![\w.,/^])([-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d{1,60})(?:\.\d{1,60})?|\.\d{1,60})(?:e[-+]?\d{1,2})?(?:/\d{1,60})?)"
    r"(?![\d/^²³]|[.,]\d|e[-+]?\d)\s?(%?)"
)
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
NUMBER_WORDS = (
    *_ONES,
    *(f"{ten}-{one}" if i else ten for ten in _TENS for i, one in enumerate(_ONES[:10])),
)
"""Zero to ninety-nine."""
_NONE = Fraction(0)
_YES_NO = re.compile(r"^(yes|no)\b|\b(yes|no)$")
_BOTH = re.compile(r"^(?:yes\W+(?:(?:and|or)\W+)?no|no\W+(?:(?:and|or)\W+)?yes)\b")


@dataclass(frozen=True)
class EquivalenceVerdict:
    """Whether an answer is equivalent to the key, and why.

    Attributes
    ----------
    same : bool or None
        None if the rule cannot read the answer; this is not a mismatch.
    reason : str
    """

    same: bool | None
    reason: str


def compare(
    answer: str, key: str, rule: str, tolerance: Fraction = Fraction(0)
) -> EquivalenceVerdict:
    """Return whether ``answer`` equals ``key`` by one of `RULES`; ``tolerance`` is for
    ``numeric``."""
    if len(answer) > _MOST:
        return EquivalenceVerdict(None, f"the answer has more than {_MOST:,} characters")
    return RULES[rule](normal(answer), normal(key), tolerance)


def read(answer: str, rule: str) -> str | None:
    """Return an answer in the form of a key, to compare other answers with; None if the rule
    cannot read it.

    Examples
    --------
    >>> read("It costs 5 cents.", "integer"), read("Yes, it is", "yes_no")
    ('5', 'yes')
    >>> read("5 or 10", "integer")
    """
    text = normal(answer)
    if not text or len(answer) > _MOST:
        return None
    if rule == "yes_no":
        return next((word for word in ("yes", "no") if _yes_no(text, word, _NONE).same), None)
    if rule in ("integer", "numeric"):
        values = _numbers(text)
        key = f"{values[0][0]}{'%' * values[0][1]}" if values else ""
        return key if key and _number(text, key, _NONE).same else None
    return text if rule != "set" or _items(text) else None


def form(key: str, rule: str) -> str:
    """Return the fault of a key under a rule; empty for a valid key."""
    if not normal(key):
        return "is empty"
    if rule == "yes_no" and normal(key) not in ("yes", "no"):
        return "must be yes or no under the rule yes_no"
    if rule in ("integer", "numeric") and not (
        _NUMBER.fullmatch(normal(key)) and _numbers(normal(key))
    ):
        return f"must be a number under the rule {rule}"
    if rule == "integer" and _numbers(normal(key))[0][0].denominator != 1:
        return "must be a whole number under the rule integer"
    return ""


def natural_rule(key: str) -> str:
    """Return the rule that the form of a key asks for: yes_no, integer, numeric or exact."""
    return next((rule for rule in ("yes_no", "integer", "numeric") if not form(key, rule)), "exact")


def normal(text: str) -> str:
    """Return text without case, extra spaces, mark-up, quotes and final punctuation."""
    # not NFKC, which makes 52 of 5²
    plain = unicodedata.normalize("NFC", text).replace("−", "-")
    plain = _WRAPPED.sub(lambda match: match[1] or "", plain)
    return " ".join(plain.casefold().split()).lstrip(_QUOTES + ",;:!").rstrip(_QUOTES + ",;:!.")


def numbers(text: str) -> list[Fraction]:
    """Return the different numbers in a text, in the order in which they come."""
    return list(dict.fromkeys(value for value, _ in _numbers(normal(text))))


def _numbers(text: str) -> list[tuple[Fraction, bool]]:
    """Return numbers of a normalised text, and whether each is a percentage.

    A number word counts only as the whole text.
    """
    if (word := text.replace(" ", "-")) in NUMBER_WORDS:
        return [(Fraction(NUMBER_WORDS.index(word)), False)]
    values = []
    for match in _NUMBER.finditer(text):
        try:
            values.append((_fraction(match[1].replace(",", "")), match[2] == "%"))
        except ZeroDivisionError:
            continue
    return list(dict.fromkeys(values))


def _fraction(digits: str) -> Fraction:
    above, slash, below = digits.partition("/")
    return Fraction(above) / Fraction(below) if slash else Fraction(above)


def _exact(answer: str, key: str, _: Fraction) -> EquivalenceVerdict:
    if not answer:
        return EquivalenceVerdict(None, "the answer is empty")
    same = _ARTICLE.sub("", answer) == _ARTICLE.sub("", key)
    return EquivalenceVerdict(same, "the same text" if same else "another text")


def _yes_no(answer: str, key: str, _: Fraction) -> EquivalenceVerdict:
    words = {first or last for first, last in _YES_NO.findall(answer)}
    if not words:
        return EquivalenceVerdict(None, "neither begins nor ends with yes or no")
    if len(words) > 1 or _BOTH.match(answer):
        return EquivalenceVerdict(None, "both yes and no")
    word = words.pop()
    return EquivalenceVerdict(word == key, f"says {word}")


def _number(answer: str, key: str, tolerance: Fraction) -> EquivalenceVerdict:
    values, target = _numbers(answer), _numbers(key)[0]
    if len(values) != 1:
        return EquivalenceVerdict(
            None, "no number" if not values else f"{len(values)} different numbers"
        )
    # "it is not 5" holds the number 5
    if re.search(r"\bnot\b|n't\b", answer):
        return EquivalenceVerdict(None, "says what it is not")
    if values[0][1] != target[1]:
        return EquivalenceVerdict(None, "one is a percentage and the other is not")
    same = abs(values[0][0] - target[0]) <= tolerance
    return EquivalenceVerdict(same, f"the one number is {'' if same else 'not '}the key's")


def _set(answer: str, key: str, _: Fraction) -> EquivalenceVerdict:
    items, targets = _items(answer), _items(key)
    if not items:
        return EquivalenceVerdict(None, "the answer names nothing")
    if items == targets:
        return EquivalenceVerdict(True, "the same items")
    few, many = len(targets - items), len(items - targets)
    return EquivalenceVerdict(False, f"{few} of {len(targets)} items lacking, {many} too many")


def _items(text: str) -> frozenset[str]:
    # order and repeats do not matter in a set
    parts = re.split(r"[,;\n]|\band\b|&", text.strip("{}[]()"))
    return frozenset(filter(None, (_ARTICLE.sub("", part.strip(_QUOTES + ".-")) for part in parts)))


RULES: dict[str, Callable[[str, str, Fraction], EquivalenceVerdict]] = {
    "exact": _exact,
    "yes_no": _yes_no,
    "integer": lambda answer, key, _: _number(answer, key, Fraction(0)),
    "numeric": _number,
    "set": _set,
}
"""Equivalence rules by name, on normalised text: the same text but for case, spaces and articles;
yes or no with an explanation behind it; a sentence with a single number in it; the same within the
tolerance; a list in any order."""
