"""Proposals: what each arm is shown, what a reply must be, and what a description may hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from describing_models import DescribingModel, read_arm, read_items

from groundfault.descriptions import ExampleDescription, ProposingSettings, propose_descriptions
from groundfault.errors import InputError, PlanError
from groundfault.models.budget import CallBudget

TEXTS = [f"{'hard' if i % 4 == 0 else 'easy'} item {i}" for i in range(80)]
FAILING = np.arange(80) % 4 == 0


def answer_with(*texts: str) -> str:
    return json.dumps({"descriptions": texts})


def propose(reply: str, arms: tuple[str, ...] = ("outcomes",), **settings: int):  # type: ignore[no-untyped-def]
    model = DescribingModel(lambda _: reply, lambda *_: False)
    asked = ProposingSettings(arms, **{"rounds": 1, **settings})  # type: ignore[arg-type]
    result = propose_descriptions(TEXTS, FAILING, model, CallBudget(20), asked)
    return model.prompts, *result


def test_arms_are_shown_what_their_names_say() -> None:
    prompts, _, replies = propose(answer_with("x"), ("outcomes", "blind", "shuffled"), rounds=2)
    true, blind, false = prompts[:2], prompts[2:4], prompts[4:]
    for prompt in true:
        items = read_items(prompt)
        assert all("hard" in item for item in items[:10])
        assert not any("hard" in item for item in items[10:])
        assert "failed on items 1 to 10, and passed items 11 to 20" in prompt
    assert true[0] != true[1]
    for prompt in blind:
        assert read_arm(prompt) == "blind"
        assert "items 1 to" not in prompt
        # a plain draw: with ten of each kind, its share of failures would tell
        assert sum("hard" in item for item in read_items(prompt)) < 10
    for prompt in false:
        hard = [i for i, item in enumerate(read_items(prompt)) if "hard" in item]
        assert 0 < len(hard) < 10
    assert replies == {arm: {"read": 2} for arm in ("outcomes", "blind", "shuffled")}


def test_a_blind_proposal_owes_nothing_to_outcomes() -> None:
    model = DescribingModel(lambda _: answer_with("x"), lambda *_: False)
    asked = ProposingSettings(("blind",))
    for failing in (FAILING, ~FAILING):
        propose_descriptions(TEXTS, failing, model, CallBudget(9), asked)
    assert model.prompts[:3] == model.prompts[3:]
    assert not ExampleDescription("x", ("outcomes", "blind")).owes_outcomes
    assert ExampleDescription("x", ("outcomes", "shuffled")).owes_outcomes


def test_a_description_of_two_arms_is_one() -> None:
    _, descriptions, _ = propose(answer_with("It is long", "it is LONG"), ("outcomes", "blind"))
    assert descriptions == [ExampleDescription("It is long", ("outcomes", "blind"))]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I would rather not.", "not the JSON asked for"),
        (answer_with(*map(str, range(6))), "6 descriptions, and must hold at most 5"),
        (answer_with("x" * 201), "201 characters, and must have 1 to 200"),
        (answer_with(" "), "0 characters"),
        ('{"descriptions": ["x"], "also": 1}', "also"),
    ],
)
def test_a_reply_that_cannot_be_read_is_asked_for_once_more(reply: str, why: str) -> None:
    model = DescribingModel(lambda _: reply, lambda *_: False)
    settings = ProposingSettings(("outcomes",), rounds=1)
    budget = CallBudget(5)
    with pytest.raises(InputError, match=f"no description that can be read: unparsed.*{why}"):
        propose_descriptions(TEXTS, FAILING, model, budget, settings)
    assert budget.calls == 2


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_control_character_is_spelled_and_the_reply_kept(is_raw: bool) -> None:
    """Also where it stands inside a text as it is, which is no JSON."""
    reply = answer_with("two\nlines", "\x1b[31mred", "turned \u202e round")
    if is_raw:
        reply = reply.replace("\\n", "\n").replace("\\u001b", "\x1b")
        assert "\x1b" in reply
    _, descriptions, replies = propose(reply, ("outcomes",))
    texts = ["two\\nlines", "\\x1b[31mred", "turned \\u202e round"]
    assert [one.text for one in descriptions] == texts
    assert set(replies["outcomes"]) == {"read"}
    with pytest.raises(InputError, match="does not print"):
        ExampleDescription("two\nlines", ("named",))


def test_settings_that_cannot_be() -> None:
    with pytest.raises(PlanError, match="no arm 'named'"):
        ProposingSettings(("named",))
    with pytest.raises(PlanError, match="at least 1"):
        ProposingSettings(rounds=0)
    with pytest.raises(InputError, match="is no description"):
        ExampleDescription("x" * 300, ("blind",))
    with pytest.raises(InputError, match="not known here"):
        ExampleDescription("x", ())
