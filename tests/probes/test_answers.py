"""Answers: what is read from a response, whether it says the same as the key, and that a mismatch
only routes.
"""

from __future__ import annotations

import dataclasses
import time
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from groundfault.core.equivalence import RULES, compare, natural_rule
from groundfault.errors import InputError
from groundfault.models import Response
from groundfault.probes import Task, extract, route
from groundfault.probes.running.answers import Routing


def task(answer: str, rule: str, **more: object) -> Task:
    return Task(id="t", question="q?", answer=answer, rule=rule, **more)


@pytest.mark.parametrize(
    ("response", "rule", "text", "how"),
    [
        ("Ten is tempting.\nAnswer: 5 cents", "integer", "5 cents", "answer line"),
        ("Answer: 10\nNo, wait.\nanswer : 5", "integer", "5", "answer line"),
        ("**Answer:** 5", "integer", "5", "answer line"),
        ("> *Final answer*: yes, it is", "yes_no", "yes, it is", "answer line"),
        ("The answer: 5", "integer", "5", "answer line"),
        ("Answer:\n\n42", "integer", "42", "answer line"),
        ("Answer: 42\nAnswer:", "integer", None, "none"),
        ("So the answer is 5 cents. Not 10!", "integer", "5 cents", "search"),
        ("The answer is 10? No: the answer is 5\nas shown", "integer", "5", "search"),
        ("The answer is not 10", "integer", None, "none"),
        ("It costs 5 cents.", "integer", "5", "search"),
        ("It costs 5 cents, so 5.", "integer", "5", "search"),
        (
            "It is either 5 or 10, which nobody who was there could have told.",
            "integer",
            None,
            "none",
        ),
        ("No, since the drawer stayed.", "yes_no", "no", "search"),
        (
            "There is no doubt that it does, and this is all there is to say of it.",
            "yes_no",
            None,
            "none",
        ),
        ("Yes.\nNo.", "yes_no", None, "none"),
        ("They stand in a row.\nMara", "exact", "Mara", "search"),
        (
            "They stand in a row, and whoever looks from the left to the right finds Mara",
            "exact",
            None,
            "none",
        ),
        ("50% of it", "numeric", None, "none"),
        ("x" * ((1 << 20) + 1), "exact", None, "none"),
    ],
)
def test_what_is_extracted(response: str, rule: str, text: str | None, how: str) -> None:
    result = extract(response, rule)
    assert (result.text, result.how) == (text, how)
    assert result.reason


@pytest.mark.parametrize(
    ("answer", "key", "rule", "same"),
    [
        ("The Red  Box.", "red box", "exact", True),
        ("“Mara”", "mara", "exact", True),
        ("A", "a", "exact", True),
        ("Mara or Tom", "Mara", "exact", False),
        ("  ", "Mara", "exact", None),
        ("Yes, because it moved", "yes", "yes_no", True),
        ("**No**", "yes", "yes_no", False),
        ("It is in the cellar: yes", "yes", "yes_no", True),
        ("there is no doubt", "no", "yes_no", None),
        ("yes and no", "yes", "yes_no", None),
        ("No, yes", "no", "yes_no", None),
        ("not sure", "no", "yes_no", None),
        ("It costs 5 cents", "5", "integer", True),
        ("$1,200.", "1200", "integer", True),
        (r"\boxed{12}", "12", "integer", True),
        ("$12$", "12", "integer", True),
        ("24km", "24", "integer", True),
        ("−4", "-4", "integer", True),
        ("seven", "7", "integer", True),
        ("5.0", "5", "integer", True),
        ("12.5", "12", "integer", False),
        ("5 or 10", "5", "integer", None),
        ("not 5", "5", "integer", None),
        ("it isn't 5", "5", "integer", None),
        ("3*4", "34", "integer", None),
        ("5²", "52", "integer", None),
        ("2^10", "2", "integer", None),
        ("x1", "1", "integer", None),
        ("3,4", "34", "integer", None),
        ("1e999999999", "1", "numeric", None),
        ("9" * 1000, "9", "numeric", None),
        ("1/0", "1", "numeric", None),
        (".5", "1/2", "numeric", True),
        ("0.5 metres", "1/2", "numeric", True),
        ("50%", "0.5", "numeric", None),
        ("50 %", "50%", "numeric", True),
        ("c, A and b", "a, b, c", "set", True),
        ("{a; b}", "b, a", "set", True),
        ("a, b", "a, b, c", "set", False),
        ("a, b, c, d", "a, b, c", "set", False),
        (", ", "a", "set", None),
        ("y" * 3000, "y", "exact", None),
    ],
)
def test_equivalence(answer: str, key: str, rule: str, same: bool | None) -> None:
    verdict = compare(answer, key, rule)
    assert verdict.same is same
    assert verdict.reason


def test_tolerance_is_inclusive_and_exact() -> None:
    assert compare("0.31", "0.3", "numeric", Fraction("0.01")).same is True
    assert compare("0.3100001", "0.3", "numeric", Fraction("0.01")).same is False


@pytest.mark.parametrize(
    ("key", "rule"),
    [("yes", "yes_no"), ("No", "yes_no"), ("12", "integer"), ("1.5", "numeric"), ("Mara", "exact")],
)
def test_the_form_of_a_key_names_its_rule(key: str, rule: str) -> None:
    assert natural_rule(key) == rule


@given(
    st.integers(-(10**9), 10**9),
    st.sampled_from(["It is {} in all.", "**{}**", "{}", "= {} cents", "`{}`,"]),
)
def test_an_integer_in_a_sentence_is_that_integer_and_no_other(number: int, sentence: str) -> None:
    assert compare(sentence.format(number), str(number), "integer").same is True
    assert compare(sentence.format(number), str(number + 1), "integer").same is False


@given(
    st.text(max_size=80),
    st.sampled_from([("7", "integer"), ("yes", "yes_no"), ("a, b", "set"), ("x", "exact")]),
)
def test_any_text_is_routed_with_a_reason(response: str, key: tuple[str, str]) -> None:
    result = route(task(*key), response)
    assert result.reason
    assert result.review == (result.signal in ("mismatch", "unreadable"))
    assert route(task(*key), f"{response}\nAnswer: {key[0]}").signal == "match"


def test_a_key_is_equivalent_to_itself_under_every_rule() -> None:
    for key, rule in [
        ("x", "exact"),
        ("no", "yes_no"),
        ("5", "integer"),
        ("1/3", "numeric"),
        ("a, b", "set"),
    ]:
        assert compare(key, key, rule).same is True
    assert len(RULES) == 5


@pytest.mark.parametrize(
    ("response", "signal"),
    [
        ("Answer: 5", "match"),
        ("Answer: 10", "mismatch"),
        ("Answer: 5 or 10", "unreadable"),
        ("", "unreadable"),
        ("It is hard to say what they could have meant by that.", "unreadable"),
        (Response("Answer: 5"), "match"),
        (Response("I cannot help with that.", refused=True), "unanswered"),
        (Response.failed("503: busy"), "unanswered"),
    ],
)
def test_where_a_response_is_sent(response: str | Response, signal: str) -> None:
    result = route(task("5", "integer"), response)
    assert result.signal == signal
    assert result.review == (signal in ("mismatch", "unreadable"))


def test_a_routing_says_nothing_of_errors() -> None:
    names = {field.name for field in dataclasses.fields(Routing)}
    assert not {name for name in names if "error" in name or "fail" in name}


def test_bytes_are_refused() -> None:
    with pytest.raises(InputError, match="bytes; decode it first, as UTF-8"):
        route(task("5", "integer"), b"Answer: \xff")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "response",
    [
        "answer is" + " " * 900_000,
        "answer is x " * 70_000,
        "*" * 900_000,
        "1," * 400_000,
        "no " * 300_000 + "x",
    ],
)
def test_long_responses_take_no_longer_than_they_are(response: str) -> None:
    start = time.perf_counter()
    for rule in RULES:
        extract(response, rule)
    assert time.perf_counter() - start < 5
