"""Surface features: length, frequency of the words, foreign words."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING

from groundfault_lab.language.annotated import is_word
from groundfault_lab.language.words import find_words

if TYPE_CHECKING:
    from spacy.tokens import Doc


def length(doc: Doc) -> float:
    """Count words, clitics such as *n't* apart; punctuation is not counted."""
    return float(sum(is_word(token) for token in doc))


def zipf(counts: Mapping[str, int]) -> dict[str, float]:
    """Return Zipf frequencies, log10 of occurrences per billion words; "" stands for a new word.

    Each word counts as if seen once more than it was.
    """
    total = sum(counts.values()) + len(counts) + 1
    frequencies = {word: math.log10((count + 1) / total * 1e9) for word, count in counts.items()}
    return frequencies | {"": math.log10(1 / total * 1e9)}


def word_frequency(doc: Doc, frequencies: Mapping[str, float]) -> float:
    """Return mean Zipf frequency of the words in a corpus; NaN for a text without words.

    The paper averages raw counts, which *the* and *of* settle alone, and which grow with the
    corpus."""
    values = find_words(doc.text)
    total = sum(frequencies.get(word, frequencies[""]) for word in values)
    return total / len(values) if values else math.nan


def foreign_word(doc: Doc) -> float:
    """Count words tagged foreign (FW), or with letters of another script than Latin."""
    return float(sum(token.tag_ == "FW" or _is_of_another_script(token.text) for token in doc))


def _is_of_another_script(text: str) -> bool:
    # Greek letters one at a time are symbols of a formula
    letters = [c for c in text if c.isalpha()]
    return len(letters) > 1 and any(not _is_latin(c) for c in letters)


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "LATIN").startswith(
        ("LATIN", "FEMININE", "MASCULINE")
    )
