"""Trees, sentences and children of annotated documents, from tags, labels and heads alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_ENDS = {".", "!", "?", "…", "?!", "!?", "??", "!!"}
_CLOSING = {'"', "'", "”", "’", ")", "]", "»"}


def is_word(token: Token) -> bool:
    """Return whether a token has a letter or a digit."""
    return any(map(str.isalnum, token.text))


def lower(token: Token) -> str:
    """Return the token in lower case, with a straight apostrophe."""
    return str(token.text).lower().replace("’", "'")


def sentences(doc: Doc) -> Iterator[list[Token]]:
    """Return sentences by their final marks and blank lines, without white space.

    No parser is asked.
    """
    sentence: list[Token] = []
    is_end = False
    for token in doc:
        if token.text.isspace():
            # a blank line ends a sentence that has no mark, such as a heading
            is_end = is_end or "\n" in token.text
            continue
        if is_end and sentence and token.text not in _ENDS | _CLOSING:
            yield sentence
            sentence = []
            is_end = False
        sentence.append(token)
        is_end = is_end or token.text in _ENDS
    if sentence:
        yield sentence


def questions(doc: Doc) -> Iterator[list[Token]]:
    """Return the sentences that end in a question mark."""
    for sentence in sentences(doc):
        if any("?" in token.text for token in sentence[-3:]):
            yield sentence


def opening(sentence: list[Token]) -> str:
    """Return the first word of a sentence, in lower case."""
    return next((lower(token) for token in sentence if is_word(token)), "")


def children(doc: Doc) -> list[list[Token]]:
    """Return the dependents of each token, in order."""
    children_of: list[list[Token]] = [[] for _ in doc]
    for token in doc:
        # spaCy marks a root by making it its own head
        if token.head.i != token.i:
            children_of[token.head.i].append(token)
    return children_of


def depths(doc: Doc) -> tuple[list[int], list[int]]:
    """Return how many heads are above each token, and the root of its tree."""
    depth, root = [-1] * len(doc), [0] * len(doc)
    for token in doc:
        path = []
        # without recursion: a chain of thousands of heads would exceed its limit
        while depth[token.i] < 0 and token.head.i != token.i:
            path.append(token.i)
            token = token.head
        if depth[token.i] < 0:
            depth[token.i], root[token.i] = 0, token.i
        above, top = depth[token.i], root[token.i]
        for step, i in enumerate(reversed(path), start=1):
            depth[i], root[i] = above + step, top
    return depth, root
