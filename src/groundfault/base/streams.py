"""Streams of random numbers: a separate stream for each purpose, from one seed."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, purpose: str, counter: int = 0) -> np.random.Generator:
    """Return a generator that depends only on seed, purpose and counter, not on earlier draws.

    Parameters
    ----------
    seed : int
        At least 0; the seed of the plan.
    purpose : str
        Purpose of the numbers. Two purposes never share a stream.
    counter : int
        The number of the stream, at least 0, if one purpose needs several.
    """
    # sha256, since Python's hash of a text differs from process to process
    word = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, word, counter])
