"""Leaks in texts: a word that stands where the model failed, such as a grader's "incorrect"."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import polars as pl
from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
# texts that are read, and characters of each
_TEXTS = 4000
_READ = 5000


def count_word_mistakes(texts: pl.Series, failures: NDArray[np.bool_]) -> int:
    """Fewest observations that a prediction from one word's presence gets wrong.

    Parameters
    ----------
    texts : polars.Series
        Strings; a missing one has no word.
    failures : bool array, shape (len(texts),)

    Returns
    -------
    int
        Of all texts; where only a sample of 4,000 was read, scaled up to all.

    Examples
    --------
    >>> remarks = pl.Series(["is incorrect", "all fine", "incorrect again", "fine, no error"])
    >>> count_word_mistakes(remarks, np.array([True, False, True, False]))
    0
    """
    step = -(-len(texts) // _TEXTS)
    sample, fails = texts.gather_every(step), failures[::step]
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text, failed in zip(sample.str.slice(0, _READ).fill_null("").to_list(), fails, strict=True):
        counts[bool(failed)].update(set(_WORD.findall(text.lower())))
    totals = len(fails) - int(fails.sum()), int(fails.sum())
    best = min(totals)
    for word in counts[0].keys() | counts[1].keys():
        inside = counts[0][word], counts[1][word]
        outside = totals[0] - inside[0], totals[1] - inside[1]
        best = min(best, min(inside) + min(outside))
    return round(best * len(texts) / max(len(fails), 1))
