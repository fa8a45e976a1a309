"""What a check says, and how much work it does, does not depend on outcomes that are held out: by
neither can they be guessed before they are looked at.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault import Evidence


def make_evidence(held_out: np.ndarray[Any, Any]) -> Evidence:
    rng = np.random.default_rng(3)
    size, half = 400, 200
    error = np.concatenate([(rng.random(half) < 0.3).astype(int), held_out])
    columns = {
        "id": [f"q{i:03d}" for i in range(size)],
        "lang": rng.choice(["de", "en", "fr"], size),
        "words": rng.integers(5, 60, size),
        "part": ["discovery"] * half + ["holdout"] * half,
        "error": error,
    }
    return Evidence.from_table(pl.DataFrame(columns), outcome="error", id="id", split="part")


def watch(held_out: np.ndarray[Any, Any]) -> tuple[dict[str, Any], Counter[str]]:
    """What a check says, and how often it called each function of groundfault."""
    evidence, calls = make_evidence(held_out), Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        place = frame.f_code.co_filename
        if event == "call" and "groundfault" in place:
            calls[f"{place}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        summary = groundfault.check(evidence)
    finally:
        sys.setprofile(None)
    return summary.to_dict(), calls


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.95, 1.0])
def test_a_check_tells_nothing_of_outcomes_that_are_held_out(rate: float) -> None:
    rng = np.random.default_rng(4)
    watch((rng.random(200) < 0.3).astype(int))  # what is cached is cached now
    usual, calls = watch((rng.random(200) < 0.3).astype(int))
    other, more = watch((rng.random(200) < rate).astype(int))
    assert other == usual
    assert more == calls
