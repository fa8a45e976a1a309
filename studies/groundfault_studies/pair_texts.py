"""Texts that need no download: made reviews, of which a bag of words misreads some, and sentences
of documentation.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from groundfault.base.long_work import stream

TextsAndLabels = tuple[pl.Series, pl.Series]

_GOOD = tuple(
    "good friendly fresh lovely quick clean warm cheerful generous tidy crisp bright helpful calm "
    "juicy cosy tasty polite charming spotless tender honest gentle pleasant".split()
)
_BAD = tuple(
    "bad rude stale awful slow dirty cold gloomy stingy messy soggy dull careless noisy greasy "
    "cramped bland grumpy ugly filthy tough dishonest harsh dreadful".split()
)
_SUBJECTS = tuple(
    "The soup|Our waiter|The room|Their bread|The terrace|The cook|Our table|The coffee|The "
    "landlady|The music|The breakfast|The garden".split("|")
)
_VERBS = (
    ("is", "is not"),
    ("was", "was not"),
    ("seems", "never seems"),
    ("looked", "never looked"),
)
_WHO = tuple("my sister|an old friend|our neighbour|my boss|the guide".split("|"))
_NEGATED = 0.25

_LIBRARIES = ("numpy", "polars", "sqlalchemy")
_PROSE = re.compile(r"[A-Z](?:[A-Za-z ,;'()]|(?<!-)-(?!-)){30,}[.?!]")
_ENDS = re.compile(r"(?<=[.?!]) (?=[A-Z])")
_EACH = 1200


def reviews(count: int = 1800, seed: int = 0) -> TextsAndLabels:
    """Sentences of praise and complaint, one in four turned round by a negation, and which of the
    two they are.

    A model that adds up words cannot tell "not good" from "good": its errors have a negation.
    Tense, relative clauses, comparisons, passives and quantifiers come by chance, and mean nothing.
    """
    rng = stream(seed, "made reviews")
    label_of = dict(_review(rng) for _ in range(2 * count))
    texts = list(label_of)[:count]
    return pl.Series("text", texts), pl.Series("label", [label_of[text] for text in texts])


def _review(rng: np.random.Generator) -> tuple[str, str]:
    def one(among: tuple[str, ...], common: float = 1.0) -> str:
        """One of them; the first ones more often, where few are common."""
        return among[int(len(among) * rng.random() ** common)]

    praise, negated = rng.random() < 0.5, rng.random() < _NEGATED
    verb = _VERBS[rng.integers(len(_VERBS))][int(negated)]
    subject, word = one(_SUBJECTS), one(_GOOD if praise else _BAD, 2.0)
    clause = f", which {one(_WHO)} found," if rng.random() < 0.25 else ""
    word = f"more {word} than we expected" if rng.random() < 0.2 else word
    ends = (
        "",
        f" It was recommended by {one(_WHO)}.",
        " All of us agreed.",
        " Two of us stayed on.",
        " We had a walk.",
    )
    text = f"{subject}{clause} {verb} {word}.{one(ends)}"
    return text, "praise" if praise != negated else "complaint"


@cache
def documentation() -> TextsAndLabels:
    """Sentences from the documentation of three libraries that groundfault needs anyway, and which
    it describes.

    They are read from the source files of what is installed, without running any of it; another
    version gives other sentences."""
    rows = [(text, library) for library in _LIBRARIES for text in _sentences(library)]
    library_of = dict(reversed(rows))  # a sentence of two libraries counts for the first
    return pl.Series("text", list(library_of)), pl.Series("label", list(library_of.values()))


def _sentences(library: str) -> list[str]:
    """Prose sentences of a library's docstrings; of many, always the same ones, by their hash."""
    sentences = {
        s
        for doc in _docstrings(library)
        for part in doc.split("\n\n")
        for s in _ENDS.split(_join_lines(part))
    }
    prose = [s for s in sentences if _PROSE.fullmatch(s)]
    return sorted(prose, key=lambda s: hashlib.sha256(s.encode()).digest())[:_EACH]


def _docstrings(library: str) -> Iterator[str]:
    spec = find_spec(library)
    root = Path(spec.origin).parent if spec and spec.origin else None
    for path in sorted(root.rglob("*.py")) if root else ():
        if "tests" in path.relative_to(root).parts:  # type: ignore[arg-type]
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def _join_lines(paragraph: str) -> str:
    return " ".join(paragraph.split())
