"""Rows shared among threads: each is done once, whatever the number of threads."""

from __future__ import annotations

import numba
import pytest

from groundfault.stats.row_threads import share_rows


@pytest.mark.parametrize("threads", [1, min(2, numba.config.NUMBA_NUM_THREADS)])
@pytest.mark.parametrize("rows", [0, 1, 2, 7])
def test_each_row_is_done_once(rows: int, threads: int) -> None:
    counts = [0] * rows

    def run(first: int, step: int) -> None:
        for row in range(first, rows, step):
            counts[row] += 1

    before = numba.get_num_threads()
    try:
        numba.set_num_threads(threads)
        share_rows(run, rows)
    finally:
        numba.set_num_threads(before)
    assert counts == [1] * rows


def test_errors_are_raised() -> None:
    def run(first: int, step: int) -> None:
        raise ValueError(f"{first} {step}")

    with pytest.raises(ValueError, match="0 "):
        share_rows(run, 3)
