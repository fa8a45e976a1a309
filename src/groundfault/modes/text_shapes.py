"""Rules on the form of a text: its numbers, sentences, letters and marks."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from groundfault.base.reading import read_beside
from groundfault.modes.lexicon import CLASSES, LANGUAGES, ColumnLanguages
from groundfault.modes.text_conditions import (
    MIN_TEXTS,
    TEXT,
    Draft,
    compare,
    find_lasts,
    match,
    match_words,
)


def draft_shapes(sample: pl.Series, languages: ColumnLanguages) -> Iterator[Draft]:
    """Yield conditions on the shape of texts.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls, from which cuts and frequent openings are taken.
    languages : ColumnLanguages
        Languages of the sample.
    """
    yield from _draft_languages(languages)
    yield from _draft_case()
    yield from _draft_numbers()
    yield from _draft_marks()
    yield from _draft_classes(languages)
    yield from _draft_sentences()
    yield from _draft_openings(sample)
    yield from _draft_lengths(sample)


def _draft_languages(languages: ColumnLanguages) -> Iterator[Draft]:
    for code, words in languages.words.items():
        if words:
            name = LANGUAGES[code]
            yield Draft("language", match_words(words), f"is in {name}", 1.0, name)
    first = languages.present[0]
    if len(languages.present) > 2 and languages.words.get(first):
        rule = ~match_words(languages.words[first])
        yield Draft("language", rule, f"is not in {LANGUAGES[first]}")


_SCRIPTS = "Cyrillic Greek Arabic Hebrew Devanagari Han Hiragana Katakana Hangul Thai".split()


def _draft_case() -> Iterator[Draft]:
    upper = compare("{} = UPPER({})", TEXT.str.to_uppercase() == TEXT)
    lower = compare("{} = LOWER({})", TEXT.str.to_lowercase() == TEXT)
    has_letters = compare("{} <> LOWER({})", TEXT.str.to_lowercase() != TEXT)
    yield Draft("case", upper & has_letters, "is all in capitals")
    yield Draft("case", lower, "has no capitals")
    yield Draft("case", match(r"^\W*\p{Ll}"), "begins with a small letter")
    yield Draft("case", match(r"\b\p{Lu}{3,}\b"), "has a word in capitals")
    for name in _SCRIPTS:
        letters = match(rf"\p{{{name}}}", needs=r"[^\x00-\x7F]")
        yield Draft("script", letters, f"has {name} letters")
    yield Draft("script", match(r"[^\x00-\x7F]"), "has a character beyond ASCII")


# a run of digits with inner commas and points, and the characters before the next
_NEXT_NUMBER = r"(\d[\d.,]*[^\d.,]\D*)"
_SIGNS: dict[str, dict[str, Any]] = tomllib.loads(read_beside(__file__, "text_signs.toml"))
_NEEDS = _SIGNS["needs"]


def _draft_numbers() -> Iterator[Draft]:
    yield Draft("number count", match(r"\d"), "has a number in digits")
    yield Draft("number count", ~match(_digits(1)), "has no digits")
    for count in (2, 3, 4, 5, 6, 8, 10, 15):
        pattern = rf"{_NEXT_NUMBER}{{{count - 1}}}\d"
        yield Draft("number count", match(pattern), f"has {count} or more numbers")
        if count <= 4:
            few = match(_digits(1)) & ~match(pattern)
            words = "a single number" if count == 2 else f"1 to {count - 1} numbers"
            yield Draft("number count", few, f"has {words}")
    for digits in (2, 3, 4, 5, 7):
        words = f"has a number of {digits} or more digits"
        yield Draft("number size", match(_digits(digits)), words)
        short = match(_digits(1)) & ~match(_digits(digits))
        most = f"{digits - 1} digit{'s' * (digits > 2)}"
        yield Draft("number size", short, f"has numbers of at most {most}")
    yield Draft("shortest number", match(r"\b\d\b"), "has a number of 1 digit")
    yield Draft("shortest number", match(r"\b\d\d\b"), "has a number of 2 digits")
    yield Draft("shortest number", match(r"\b\d{3}\b"), "has a number of 3 digits")
    yield Draft("number form", match(r"\d\.\d"), "has a decimal point")
    yield Draft("number form", match(r"\d,\d{3}\b"), "has a number with a thousands comma")
    yield Draft("number form", match(r"(^|[\s(=,])-\d"), "has a negative number")
    yield Draft("number form", match(r"\d\s?%"), "has a percentage")
    yield Draft("number form", match(r"[$€£¥]"), "has a currency sign")
    yield Draft("number form", match(r"\b\d{1,2}:\d\d\b"), "has a time of day")
    yield Draft("number form", match(r"\b(1[5-9]|20)\d\d\b"), "has a year")
    yield Draft("number form", match(r"\b\d+(st|nd|rd|th)\b", any_case=True), "has an ordinal")
    yield Draft("number form", match(r"\p{L}\d|\d\p{L}"), "has letters and digits in one word")
    yield Draft("number form", match(r"^\s*\d"), "begins with a number")
    yield Draft("number form", match(r"\d\W*$"), "ends with a number")
    yield Draft("number form", match(r"[,;]\s*\d"), "has a number after a comma")
    yield Draft("number form", ~match(r"[,;]\s*\d"), "has no number after a comma", 1.25)
    for name, pattern in _SIGNS["operators"].items():
        yield Draft("operator", match(pattern, needs=_NEEDS.get(name, "")), f"has {name}")


def _digits(count: int) -> str:
    return r"\d" if count == 1 else rf"\d{{{count}}}"


def _draft_marks() -> Iterator[Draft]:
    for family, (pattern, meaning) in _SIGNS["marks"].items():
        test = match(pattern, needs=_NEEDS.get(family, ""))
        yield Draft(family, test, meaning)
        yield Draft(family, ~test, _negate(meaning), 1.25)
    for count in (1, 2, 3, 4, 6):
        words = "a comma" if count == 1 else f"{count} or more commas"
        yield Draft("commas", match(rf"(,[^,]*){{{count}}}"), f"has {words}")
        fewer = "no comma" if count == 1 else f"fewer than {count} commas"
        yield Draft("commas", ~match(rf"(,[^,]*){{{count}}}"), f"has {fewer}", 1.25)


def _negate(meaning: str) -> str:
    verb, _, rest = meaning.partition(" ")
    return f"does not {'have' if verb == 'has' else verb.removesuffix('s')} {rest}"


def _draft_classes(languages: ColumnLanguages) -> Iterator[Draft]:
    for name in CLASSES:
        words = languages.list_words(name)
        if words:
            yield Draft(name, match_words(words), f"has a {name}")
            yield Draft(name, ~match_words(words), f"has no {name}", 1.25)


def _draft_sentences() -> Iterator[Draft]:
    stop = r"([.!?][\"')]*\s+\S[^.!?]*)"
    for count in (2, 3, 4, 5, 7, 10):
        pattern = rf"[^.!?]{stop}{{{count - 1}}}"
        test = match(pattern, needs="[.!?]")
        yield Draft("sentences", test, f"has {count} or more sentences")
        words = "one sentence" if count == 2 else f"at most {count - 1} sentences"
        yield Draft("sentences", ~test, f"has {words}")


def _draft_openings(sample: pl.Series) -> Iterator[Draft]:
    lower = sample.str.to_lowercase()
    first = lower.str.extract(r"^\W*(\w+)")
    begins = r"^(?:[.!?]\s+)?"
    in_last = find_lasts(lower).str.extract(begins + r"(\w+)")
    end = r"\b[^.!?]*[.!?]*\s*$"
    places = {
        "last sentence": (in_last, r"(^|[.!?]\s+)", end, "opens its last sentence", begins),
        "first sentence": (first, r"^\W*", r"\b", "opens", ""),
    }
    for family, (openings, before, after, words, start) in places.items():
        for word, count in _list_frequent(openings.drop_nulls(), sample.len()):
            if count < 0.9 * sample.len() and not word.isdigit():
                name = re.escape(word)
                last = start and rf"{start}{name}\b"
                test = match(rf"{before}{name}{after}", any_case=True, last=last)
                yield Draft(family, test, f'{words} with "{word}"', 1.5, word)


def _list_frequent(values: pl.Series, n: int, most: int = 40) -> list[tuple[str, int]]:
    enough = max(MIN_TEXTS, 0.01 * n)
    counts = Counter(values.to_list())
    ranking = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(word, count) for word, count in ranking if count >= enough][:most]


_MAX_WORD_COUNT = 30  # words up to which a count is one a reader sees: a long sentence


def _draft_lengths(sample: pl.Series) -> Iterator[Draft]:
    lengths = sample.str.len_chars()
    shares = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
    for cut in sorted({int(lengths.quantile(share) or 0) for share in shares}):
        above = compare(f"LENGTH({{}}) > {cut}", TEXT.str.len_chars() > cut)
        below = compare(f"LENGTH({{}}) <= {cut}", TEXT.str.len_chars() <= cut)
        longer, shorter = _name_lengths(cut, "character")
        yield Draft("length", above, longer)
        yield Draft("length", below, shorter)
    # beyond that a repeat is slow to match, and the length says the same
    words = sample.str.count_matches(r"\S+")
    for cut in sorted({int(words.quantile(share) or 0) for share in (0.1, 0.3, 0.5, 0.7, 0.9)}):
        if 1 <= cut <= _MAX_WORD_COUNT:
            pattern = rf"(\S+\s+){{{cut}}}\S"
            longer, shorter = _name_lengths(cut, "word")
            yield Draft("word count", match(pattern), longer)
            yield Draft("word count", ~match(pattern), shorter)


def _name_lengths(cut: int, noun: str) -> tuple[str, str]:
    """Return words for a text above a cut, and for a text below it."""
    if not cut:
        return "is not empty", "is empty"
    nouns = noun + "s" * (cut > 1)
    return f"has more than {cut} {nouns}", f"has at most {cut} {nouns}"
