"""Differences of two pieces of JSON: where, what, and nothing for the last digits."""

from __future__ import annotations

from typing import Any

import pytest

from groundfault.auditing.verification_checks import differences_of


@pytest.mark.parametrize(
    ("a", "b", "differences"),
    [
        ({"x": 1}, {"x": 1}, []),
        ({"x": 1.0}, {"x": 1.0 + 1e-12}, []),
        ({"x": 1.0}, {"x": 1.1}, ["x: 1.0, 1.1"]),
        ({"p": 7.9e-26}, {"p": 9e-10}, ["p: 7.9e-26, 9e-10"]),
        (
            {"f": [{"p_adjusted": 7.9e-26}]},
            {"f": [{"p_adjusted": 8e-26}]},
            ["f[0].p_adjusted: 7.9e-26, 8e-26"],
        ),
        ({"p": 7.9e-26}, {"p": 7.9e-26 * (1 + 1e-12)}, []),
        ({"lift": 0.0}, {"lift": 5e-17}, []),
        ({"lift": 1e-9}, {"lift": 2e-9}, ["lift: 1e-09, 2e-09"]),
        ({"x": {"y": [1, 2]}}, {"x": {"y": [1, 3]}}, ["x.y[1]: 2, 3"]),
        ({"x": [1]}, {"x": [1, 2]}, ["x: [1], [1, 2]"]),
        ({"x": 1}, {}, ["x: 1, None"]),
        ({"a": 1, "hashes": "p"}, {"a": 2, "hashes": "q"}, ["hashes: 'p', 'q'", "a: 1, 2"]),
    ],
)
def test_differences(a: Any, b: Any, differences: list[str]) -> None:
    assert list(differences_of(a, b)) == differences


def test_not_a_number_differs_from_a_number() -> None:
    assert list(differences_of({"x": float("nan")}, {"x": 0.0}))
