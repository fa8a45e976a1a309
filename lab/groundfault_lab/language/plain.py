"""English words and marks of a text, without a library: for the features that need no more.

It splits as spaCy's English tokeniser does in nearly all words: clitics apart (*do* *n't*), marks
one by one, numbers and abbreviations whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

VERSION = "1"
"""Of the rules below: features that were kept under another one are measured again."""

_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<whole>\w+://\S*[\w/]|www\.\S*[\w/]|[\w.+-]+@[\w-]+(?:\.\w+)+"  # addresses
    r"|(?:[^\W\d_]\.){2,}"  # U.S., e.g.
    r"|(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Inc|Ltd|Co|Corp|vs|No|Ave)\.(?=\s)"
    r"|\d+(?:[.,:]\d+)+|\.\d+"  # 1,000.5 and 12:30
    r"|\.{2,}|-{2,}|—{2,}|[?!]{2,}(?=\Z)|:-?\))"
    r"|(?P<measured>\d+(?=(?:km|m|cm|mm|kg|g|mg|lb|lbs|oz|ml|l|kb|mb|gb|am|pm)\b))"
    r"|(?P<word>\w+(?:['’]\w+)*['’]?)"
    r"|\S",
    re.IGNORECASE,
)
_CLITIC = re.compile(r"(?i)(n['’]t|['’](?:s|re|ve|ll|d|m))$")
_JOINED = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3}


@dataclass(frozen=True)
class PlainToken:
    """A word, a mark, or white space that is more than one space."""

    text: str
    i: int


@dataclass(frozen=True)
class PlainDoc:
    """The tokens of a text."""

    text: str
    tokens: tuple[PlainToken, ...]

    def __iter__(self) -> Iterator[PlainToken]:
        return iter(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)


@dataclass(frozen=True)
class PlainLanguage:
    """What a pipeline asks of a spaCy language, with a tokeniser and nothing behind it."""

    meta: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType(
            {"lang": "en", "name": "plain", "version": VERSION}
        )
    )
    pipe_names: tuple[str, ...] = ()

    def make_doc(self, text: str) -> PlainDoc:
        """Split a text.

        Examples
        --------
        >>> [token.text for token in PlainLanguage().make_doc("I don't owe $3.50, do I?")]
        ['I', 'do', "n't", 'owe', '$', '3.50', ',', 'do', 'I', '?']
        """
        parts = (part for match in _TOKEN.finditer(text) for part in _split(match))
        return PlainDoc(text, tuple(PlainToken(part, i) for i, part in enumerate(parts)))

    def pipe(self, texts: Iterable[str], **_: Any) -> Iterator[PlainDoc]:
        """Split texts, one after the other."""
        return map(self.make_doc, texts)


def _split(match: re.Match[str]) -> Iterator[str]:
    token = match[0]
    if match["space"]:
        # one space is no token, as between words
        rest = token[1:] if token.startswith(" ") else token
        if rest:
            yield rest
    elif match["word"]:
        yield from _split_word(token)
    else:
        yield token


def _split_word(word: str) -> Iterator[str]:
    if word[-1] in "'’":
        yield from _split_word(word[:-1])
        yield word[-1]
    elif word.lower() in _JOINED:
        cut = _JOINED[word.lower()]
        yield from (word[:cut], word[cut:])
    elif (clitic := _CLITIC.search(word)) and clitic.start():
        yield from _split_word(word[: clitic.start()])
        yield clitic[0]
    else:
        yield word
