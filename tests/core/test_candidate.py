"""Candidates and libraries: what is refused, what is merged, and what is frozen."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from groundfault.core.candidate import Candidate, Library, unique_names
from groundfault.core.fitted_column import FittedColumn
from groundfault.errors import InputError, RuleError

BALL = FittedColumn("s", "ball", ("x", "y"), {"middle": np.zeros(2), "square": np.ones(1)})


def test_the_meaning_is_the_rule_where_there_is_none() -> None:
    assert Candidate("long", "n > 3").meaning == "n > 3"
    assert Candidate.from_text("long : n > 3").rule == "n > 3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ", "n > 3"), "not blank"),
        (("a", "n > 3", "", "declared", "keep"), "not one of reject, off, drop"),
        (("a", "n >"), "candidate 'a'"),
        (("a", "n > 3", "", "declared", "drop", BALL), "does not read its fitted column"),
    ],
)
def test_what_cannot_be_a_candidate(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(RuleError, match=message):
        Candidate(*arguments)
    with pytest.raises(RuleError, match="not of the form"):
        Candidate.from_text("n > 3")


def test_a_fitted_column_reads_its_sources() -> None:
    candidate = Candidate("ball", f'"{BALL.name}" = 1 AND n > 2', fitted_column=BALL)
    assert candidate.columns == ("n", "x", "y")
    with pytest.warns(DeprecationWarning, match=r"Candidate\.derived"):
        assert candidate.derived is BALL  # type: ignore[attr-defined]


def test_the_stored_key_of_a_fitted_column_stays() -> None:
    library = Library.of([Candidate("ball", f'"{BALL.name}" = 1', fitted_column=BALL)])
    data = json.loads(library.to_json())
    assert data["candidates"][0]["derived"] == BALL.name
    assert list(data["derived"]) == [BALL.name]
    assert Library.from_json(library.to_json()) == library


def test_the_hash_ignores_order_and_meaning() -> None:
    a, b = Candidate("a", "n > 1"), Candidate("b", "n > 2", "more than two")
    assert Library.of([a, b]).hash == Library.of([Candidate("b", "n > 2"), a]).hash
    assert Library.of([a]).hash != Library.of([Candidate("a", "n > 1", missing="off")]).hash
    assert len(Library.of([a, a, b])) == 2


def test_an_edited_library_is_refused() -> None:
    text = Library.of([Candidate("a", "n > 1")]).to_json()
    with pytest.raises(InputError, match="do not match the hash"):
        Library.from_json(text.replace("n > 1", "n > 2"))
    for content in ("", "[]", "{}", text.replace("candidates", "others")):
        with pytest.raises(InputError, match="not a frozen groundfault library"):
            Library.from_json(content)


def test_lacking_columns_are_named_with_their_candidate() -> None:
    library = Library.of([Candidate("a", "n > 1 AND m > 2")])
    with pytest.raises(RuleError, match=r"candidate 'a' reads column 'm', which t does not have"):
        library.require_columns(["n"], where="t")


def test_names_in_use_are_numbered() -> None:
    candidates = unique_names([Candidate("a", "n > 1"), Candidate("a", "n > 2")], reserved=["a"])
    assert [c.name for c in candidates] == ["a (2)", "a (3)"]
