"""Near misses: one condition does not hold, and those next across a threshold come first."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from groundfault.errors import RuleError
from groundfault.modes.examples import find_near
from groundfault.modes.near_misses import find_near_misses

TABLE = pl.DataFrame(
    {
        "n": [1, 5, 9, 4, None, 7],
        "x": [-2.5, 0.0, 1.0, 7.0, 2.0, 2.0],
        "lang": ["de", "de", "en", "de", "de", None],
        "text": ["not a", "why not", "nothing", "so", "", "not"],
    }
)


@pytest.mark.parametrize(
    ("rule", "places"),
    [
        ("n > 6 AND lang = 'de'", [[1, 3, 0, 4], [2, 5]]),
        ("n BETWEEN 4 AND 5", [[5, 0, 2, 4]]),
        ("x < -1", [[1, 2, 4, 5, 3]]),
        ("-1 > x", [[1, 2, 4, 5, 3]]),
        ("abs(x - 3) >= 4", [[1, 2, 4, 5]]),
        ("lang = 'de' AND (n > 4 OR x > 6) AND text ~ 'not'", [[2, 5], [0], [3]]),
        ("NOT (lang = 'de')", [[0, 1, 3, 4, 5]]),
    ],
)
def test_rows_by_the_condition_that_keeps_them_out(rule: str, places: list[list[int]]) -> None:
    misses = find_near_misses(rule, TABLE)
    assert [miss.places.tolist() for miss in misses] == places
    together = np.sum([miss.mask for miss in misses], axis=0)
    assert (together == find_near(rule, TABLE)).all()


def test_a_plain_condition_is_measured_as_the_parser_measures_it() -> None:
    for plain in (
        "n > 4",
        "n <= -1.5",
        "x BETWEEN -1 AND 4",
        "NOT n > 4",
        "n = 4",
        "LENGTH(text) > 3",
    ):
        # a sum of one column is not plain, and means the same
        other = re.sub(r"\b([nx])\b", r"(\1 + 0)", plain).replace("text", "LOWER(text)")
        for one, two in zip(
            find_near_misses(plain, TABLE), find_near_misses(other, TABLE), strict=True
        ):
            assert one.places.tolist() == two.places.tolist()
            assert (one.distance is None) == (two.distance is None)


def test_what_cannot_be_read_is_a_rule_error() -> None:
    with pytest.raises(RuleError):
        find_near_misses("nothing_there > 1", TABLE)
