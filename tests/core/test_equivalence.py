"""Equivalence: when two answers are the same, different, or not to be read."""

from __future__ import annotations

from fractions import Fraction

import pytest

from groundfault.core.equivalence import RULES, compare, form, natural_rule, normal, numbers


@pytest.mark.parametrize(
    ("rule", "answer", "key", "same"),
    [
        ("exact", " The **Cat**. ", "cat", True),
        ("exact", "dog", "cat", False),
        ("exact", "", "cat", None),
        ("yes_no", "Yes, because it is so", "yes", True),
        ("yes_no", "no", "yes", False),
        ("yes_no", "yes and no", "yes", None),
        ("yes_no", "perhaps", "yes", None),
        ("integer", "It is 1,234 in all", "1234", True),
        ("integer", "twelve", "12", True),
        ("integer", "Forty-three.", "43", True),
        ("integer", "ninety nine", "99", True),
        ("integer", "forty cats", "40", None),
        ("integer", "3 or 4", "3", None),
        ("integer", "it is not 3", "3", None),
        ("numeric", "1/3", "0.3333", True),
        ("numeric", "50%", "50", None),
        ("numeric", "0.5", "0.4", False),
        ("set", "b, and the a", "{a, b}", True),
        ("set", "a", "a, b", False),
        ("set", "", "a", None),
    ],
)
def test_rules(rule: str, answer: str, key: str, same: bool | None) -> None:
    verdict = compare(answer, key, rule, Fraction(1, 1000))
    assert verdict.same is same
    assert verdict.reason


def test_an_essay_is_no_answer() -> None:
    assert compare("yes " * 1000, "yes", "yes_no").same is None


@pytest.mark.parametrize(
    ("key", "rule"), [("yes", "yes_no"), ("12", "integer"), ("0.5", "numeric"), ("a cat", "exact")]
)
def test_the_form_of_a_key_names_its_rule(key: str, rule: str) -> None:
    assert natural_rule(key) == rule
    assert form(key, rule) == ""
    assert compare(key, key, rule).same is True


@pytest.mark.parametrize(
    ("key", "rule"), [("", "exact"), ("maybe", "yes_no"), ("a", "numeric"), ("0.5", "integer")]
)
def test_a_key_that_does_not_fit_its_rule(key: str, rule: str) -> None:
    assert form(key, rule)
    assert rule in RULES


def test_numbers_of_a_text() -> None:
    assert numbers("5² and 1e999999999; 2 and 2") == [Fraction(2)]
    assert normal("\\boxed{$5}") == "$5"
