"""Streams: the same for the same purpose, others for others, and in no order."""

from __future__ import annotations

import pytest

from groundfault.base.long_work import stream


def test_a_stream_depends_on_seed_purpose_and_counter_alone() -> None:
    first = stream(3, "split", 1).random(4).tolist()
    stream(3, "other").random(100)
    assert stream(3, "split", 1).random(4).tolist() == first


@pytest.mark.parametrize("other", [(4, "split", 1), (3, "splits", 1), (3, "split", 2)])
def test_another_argument_is_another_stream(other: tuple[int, str, int]) -> None:
    assert stream(*other).random(4).tolist() != stream(3, "split", 1).random(4).tolist()


def test_numbers_of_0_1_0_are_kept() -> None:
    """Sealed plans draw their splits from these."""
    assert stream(0, "split").integers(0, 1000, 3).tolist() == [182, 49, 673]
