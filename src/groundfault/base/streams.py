"""Streams of random numbers: one of its own for each purpose, from one seed."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(seed: int, purpose: str, counter: int = 0) -> np.random.Generator:
    """Return a generator that depends on seed, purpose and counter alone, not on what was drawn
    before it.

    Parameters
    ----------
    seed : int
        At least 0; the seed of the plan.
    purpose : str
        What the numbers are drawn for. Two purposes never share a stream.
    counter : int
        The number of the draw, at least 0, where one purpose needs several streams.
    """
    # sha256, since Python's hash of a text differs from process to process
    word = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, word, counter])
