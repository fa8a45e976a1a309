"""The review room: what is shown, what is decided, what it comes to, who sees what in which
order.
"""

from __future__ import annotations

import random
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault.base.ledger import Ledger
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.review import Decision, Item, Queue, Session, Store, agreement, open_items, resolve
from groundfault.review.decision import VERDICTS, select_latest

ITEMS = tuple(Item("t", f"prompt {n}", "1", "2", "Answer: 2") for n in range(13))
SAYS: dict[str, dict[str, Any]] = {
    "invalid_prompt": {"prompt_valid": "no"},
    "extraction_artifact": {
        "prompt_valid": "yes",
        "extraction_valid": "no",
        "artefact": "extraction",
    },
    "format_artifact": {"prompt_valid": "yes", "extraction_valid": "no", "artefact": "format"},
    "model_error": {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "yes"},
    "no_error": {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "no"},
    "unsure": {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "unsure"},
}


def says(reviewer: str, verdict: str, item: int = 0, **more: Any) -> Decision:
    return Decision(reviewer=reviewer, item=ITEMS[item].id, **{**SAYS[verdict], **more})


decisions = st.lists(
    st.builds(
        lambda who, verdict, item, role: says(who, verdict, item, role=role),
        st.sampled_from(["ana", "ben", "cy"]),
        st.sampled_from(VERDICTS),
        st.integers(0, 3),
        st.sampled_from(["reviewer", "reviewer", "adjudicator"]),
    ),
    max_size=14,
).map(lambda decisions: [replace(d, seq=n) for n, d in enumerate(decisions, start=1)])


# --------------------------------------------------------------------------------- items, decisions


def test_the_id_is_the_hash_of_what_is_shown_and_nothing_else() -> None:
    item = Item("t", "p", "a", None, "r")
    assert {f.name for f in fields(item)} == {
        "task",
        "prompt",
        "answer",
        "extracted",
        "response",
        "copy",
        "question",
    }
    for name, other in (
        ("task", "x"),
        ("prompt", "x"),
        ("answer", "x"),
        ("extracted", ""),
        ("response", "x"),
    ):
        assert replace(item, **{name: other}).id != item.id
    assert replace(item, copy=2).id != item.id
    assert replace(item, question="which the task names").id == item.id
    assert Item("tp", "", "a", None, "r").id != Item("t", "p", "a", None, "r").id


@given(st.text(alphabet=st.characters(), max_size=20))
def test_a_text_is_kept_as_utf8_can_hold_it(text: str) -> None:
    item = Item("t", text, "a", None, text + "\ud800\r\n\r")
    item.prompt.encode()
    assert "\r" not in item.response
    assert item.response.endswith("\ufffd\n\n")
    assert Item("t", item.prompt, "a", None, item.response).id == item.id


def test_the_first_question_that_is_not_answered_in_its_favour_decides() -> None:
    for verdict in VERDICTS:
        assert says("ana", verdict).verdict == verdict
    assert (
        Decision(reviewer="a", item="i", prompt_valid="no", extraction_valid="unsure").verdict
        == "invalid_prompt"
    )
    assert says("ana", "format_artifact", model_wrong="yes").verdict == "format_artifact"
    assert says("ana", "model_error", prompt_valid="unsure").verdict == "unsure"
    assert says("ana", "model_error", extraction_valid="unsure").verdict == "unsure"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"prompt_valid": "maybe"}, "prompt_valid is 'maybe'; it is yes, no or unsure"),
        ({"prompt_valid": None}, "prompt_valid is missing"),
        ({"prompt_valid": "yes"}, "extraction_valid is missing"),
        ({"prompt_valid": "unsure", "extraction_valid": "yes"}, "model_wrong is missing"),
        ({"prompt_valid": "yes", "extraction_valid": "no"}, "whether extraction or format"),
        ({**SAYS["no_error"], "artefact": "format"}, "extraction_valid is not no"),
        ({**SAYS["no_error"], "note": "x" * 4001}, "at most 4,000"),
        ({**SAYS["no_error"], "role": "chief"}, "role is 'chief'"),
        ({**SAYS["no_error"], "reviewer": " "}, "a reviewer has a name"),
        ({**SAYS["no_error"], "reviewer": "ana\x1b[2J"}, "printable"),
    ],
)
def test_what_is_no_decision_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Decision(**{"reviewer": "ana", "item": "i", **words})


# ---------------------------------------------------------------------------------------- resolving


@pytest.mark.parametrize(
    ("verdicts", "quorum", "how", "verdict"),
    [
        (["model_error"], 1, "settled", "model_error"),
        (["model_error"], 2, "waiting", None),
        (["unsure"], 1, "disputed", None),
        (["model_error", "model_error"], 2, "settled", "model_error"),
        (["model_error", "no_error"], 2, "disputed", None),
        (["model_error", "no_error"], 1, "disputed", None),
        (["model_error", "no_error", "no_error"], 2, "settled", "no_error"),
        (["model_error", "unsure", "no_error"], 2, "disputed", None),
        (["model_error", "unsure"], 2, "disputed", None),
        (["unsure", "unsure"], 2, "disputed", None),
        (["extraction_artifact", "format_artifact"], 2, "disputed", None),
    ],
)
def test_most_of_enough_reviewers_settle_an_item(
    verdicts: list[str], quorum: int, how: str, verdict: str | None
) -> None:
    (resolution,) = resolve(
        [says(f"r{n}", each) for n, each in enumerate(verdicts)], quorum
    ).values()
    assert (resolution.how, resolution.verdict, resolution.reviewers) == (
        how,
        verdict,
        len(verdicts),
    )


def test_an_adjudicator_stands_before_reviewers_and_is_marked() -> None:
    two = [says("ana", "model_error"), says("ben", "no_error")]
    (resolution,) = resolve([*two, says("cy", "no_error", role="adjudicator")], 2).values()
    assert (resolution.how, resolution.verdict, resolution.reviewers) == (
        "adjudicated",
        "no_error",
        2,
    )
    (resolution,) = resolve([*two, says("cy", "unsure", role="adjudicator")], 2).values()
    assert (resolution.how, resolution.verdict) == ("disputed", None)


def test_who_reviewed_an_item_cannot_adjudicate_it() -> None:
    two = [says("ana", "model_error"), says("ben", "no_error")]
    assert resolve([*two, says("ana", "model_error", role="adjudicator")], 2) == resolve(two, 2)


def test_the_last_decision_counts_and_the_others_are_history() -> None:
    decisions = [says("ana", "model_error", seq=1), says("ana", "no_error", seq=2)]
    for order in (decisions, decisions[::-1]):
        (resolution,) = resolve(order).values()
        assert resolution.verdict == "no_error"
    timed = [
        says("ana", "model_error", time="2026-01-02T00:00"),
        says("ana", "no_error", time="2026-01-01T00:00"),
    ]
    assert next(iter(resolve(timed).values())).verdict == "model_error"


@given(decisions, st.integers(1, 3), st.randoms(use_true_random=False))
@settings(max_examples=count_examples(150, fast=60))
def test_the_order_of_decisions_does_not_matter(
    decisions: list[Decision], quorum: int, order: random.Random
) -> None:
    permutation = decisions[:]
    order.shuffle(permutation)
    assert resolve(permutation, quorum) == resolve(decisions, quorum)
    assert resolve(select_latest(decisions).values(), quorum) == resolve(decisions, quorum)


@given(decisions, st.integers(1, 3))
@settings(max_examples=count_examples(150, fast=60))
def test_names_do_not_matter_and_items_do_not_meet(decisions: list[Decision], quorum: int) -> None:
    names = {"ana": "zoe", "ben": "ana", "cy": "ben"}
    assert resolve([replace(d, reviewer=names[d.reviewer]) for d in decisions], quorum) == resolve(
        decisions, quorum
    )
    resolutions = resolve(decisions, quorum)
    for item in {d.item for d in decisions}:
        assert resolve([d for d in decisions if d.item == item], quorum) == {
            item: resolutions[item]
        }


@given(decisions, st.integers(1, 3))
@settings(max_examples=count_examples(150, fast=60))
def test_an_error_needs_most_of_enough_people(decisions: list[Decision], quorum: int) -> None:
    for item, resolution in resolve(decisions, quorum).items():
        last = [d for d in select_latest(decisions).values() if d.item == item]
        reviewers = [d for d in last if d.role == "reviewer"]
        assert resolution.verdict != "unsure"
        if resolution.how == "settled":
            assert len(reviewers) >= quorum
            assert 2 * sum(d.verdict == resolution.verdict for d in reviewers) > len(reviewers)
        if resolution.how == "adjudicated":
            others = {d.reviewer for d in reviewers}
            assert any(
                d.verdict == resolution.verdict
                for d in last
                if d.role != "reviewer" and d.reviewer not in others
            )
        assert (resolution.verdict is None) == (resolution.how in ("waiting", "disputed"))


def test_an_item_needs_somebody() -> None:
    with pytest.raises(PlanError, match="at least 1 reviewer"):
        resolve([], 0)


# ------------------------------------------------------------------------------------------- queues


def test_every_reviewer_has_an_order_of_their_own() -> None:
    queue = Queue(ITEMS, seed=3)
    ana, ben = queue.of("ana"), queue.of("ben")
    assert ana != ben
    assert set(ana) == set(ben) == set(ITEMS)
    assert Queue(ITEMS[::-1], seed=3).of("ana") == ana
    assert Queue(ITEMS, seed=4).of("ana") != ana
    assert [item for item in ana if item in ITEMS[:5]] == Queue(ITEMS[:5], seed=3).of("ana")


def test_orders_are_uniform() -> None:
    first = [Queue(ITEMS[:4], seed=seed).of("ana")[0] for seed in range(400)]
    counts = np.array([first.count(item) for item in ITEMS[:4]])
    assert ((counts - 100) ** 2 / 100).sum() < 16.3  # chi-squared, 3 degrees of freedom: 1 in 1,000


def test_items_can_be_split_as_in_the_paper() -> None:
    """Of 13 keys, seven to one reviewer and six to the other."""
    queue = Queue(ITEMS, split=("ana", "ben"))
    ana, ben = queue.of("ana"), queue.of("ben")
    assert (len(ana), len(ben)) == (7, 6)
    assert {*ana, *ben} == set(ITEMS)
    with pytest.raises(InputError, match="cy is not one of the"):
        queue.of("cy")
    assert open_items(queue, [], "cy", adjudicate=True) == []


def test_the_hash_tells_items_and_settings() -> None:
    queue = Queue(ITEMS, about={"controls": 0.1})
    others = [
        Queue(ITEMS[1:], about={"controls": 0.1}),
        Queue(ITEMS, about={"controls": 0.2}),
        Queue(ITEMS, seed=1, about={"controls": 0.1}),
        Queue(ITEMS, reviewers=2, about={"controls": 0.1}),
        Queue(ITEMS, split=("ana",), about={"controls": 0.1}),
    ]
    assert Queue(ITEMS[::-1], about={"controls": 0.1}).hash == queue.hash
    assert len({queue.hash, *(other.hash for other in others)}) == 6


@pytest.mark.parametrize(
    "settings",
    [
        {"reviewers": 0},
        {"seed": -1},
        {"split": ("ana", "ana")},
        {"split": ("ana", "ben"), "reviewers": 2},
    ],
)
def test_impossible_queues_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        Queue(ITEMS, **settings)


def test_open_items_are_those_one_may_still_decide() -> None:
    queue = Queue(ITEMS[:3], reviewers=2)
    decisions = [
        says("ana", "model_error", 0),
        says("ben", "no_error", 0),
        says("ana", "no_error", 1),
    ]
    assert [item.id for item in open_items(queue, decisions, "ana")] == [ITEMS[2].id]
    assert {item.id for item in open_items(queue, decisions, "ben")} == {ITEMS[1].id, ITEMS[2].id}
    assert [item.id for item in open_items(queue, decisions, "cy", adjudicate=True)] == [
        ITEMS[0].id
    ]
    assert open_items(queue, decisions, "ana", adjudicate=True) == []
    with_adjudicator = [*decisions, says("cy", "no_error", 0, role="adjudicator")]
    assert open_items(queue, with_adjudicator, "dee", adjudicate=True) == []
    assert {item.id for item in open_items(queue, with_adjudicator, "cy")} == {
        ITEMS[1].id,
        ITEMS[2].id,
    }


# ------------------------------------------------------------------------------------------- stores


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store_ = Store(tmp_path / "reviews.db", "audit")
    store_.seal(Queue(ITEMS))
    return store_


def test_decisions_come_back_with_time_and_place(store: Store) -> None:
    decisions = store.add(
        [says("ana", "model_error", note="why\x00\ud800?"), says("ben", "no_error", 1)]
    )
    assert store.decisions() == decisions
    assert [d.seq for d in decisions] == [2, 3]
    assert decisions[0].time.endswith("+00:00")
    assert decisions[0].note == "why\x00\ud800?"


def test_nothing_is_decided_before_the_queue_is_sealed(tmp_path: Path) -> None:
    store = Store(tmp_path / "r.db", "audit")
    assert store.decisions() == []
    with pytest.raises(LedgerError, match="no queue is sealed"):
        store.add([says("ana", "no_error")])
    with pytest.raises(InputError, match="the review is empty"):
        store.seal(Queue(()))
    assert not (tmp_path / "r.db").exists()


def test_of_several_decisions_all_are_kept_or_none(store: Store) -> None:
    with pytest.raises(InputError, match="not in the queue"):
        store.add(
            [says("ana", "no_error"), Decision(reviewer="ana", item="f" * 64, prompt_valid="no")]
        )
    assert store.decisions() == []


def test_a_ledger_takes_several_events_or_none(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    events = ledger.extend("note", [{"n": 1}, {"n": 2}, {"n": 3}])
    assert [event.seq for event in events] == [1, 2, 3]
    assert ledger.events() == events
    with pytest.raises(InputError, match="JSON"):
        ledger.extend("note", [{"n": 4}, {"n": object()}])
    assert ledger.extend("note", []) == []
    ledger.check(head=events[-1].hash)
    assert ledger.head == events[-1].hash


def test_settings_stay_once_there_is_a_decision(store: Store) -> None:
    assert not store.seal(Queue(ITEMS))
    assert store.seal(Queue(ITEMS, seed=1))  # nothing is decided yet
    store.add([says("ana", "no_error")])
    with pytest.raises(LedgerError, match=r"sealed with seed = 1 .* cannot become 2"):
        store.seal(Queue(ITEMS, seed=2))
    more = (*ITEMS, Item("t", "another", "1", "2", "2"))
    assert store.seal(Queue(more, seed=1))  # the run went on
    store.add([Decision(reviewer="ana", item=more[-1].id, prompt_valid="no")])
    assert [event.kind for event in Ledger(store.place).events()].count("queue_sealed") == 3


def test_decisions_after_unblinding_are_marked(store: Store) -> None:
    store.add([says("ana", "model_error"), says("ben", "model_error")])
    store.unblind({"actor": "ana", "reason": "done"})
    store.add([says("ben", "no_error"), says("ben", "no_error", 1)])
    decisions = store.decisions()
    assert [d.unblinded for d in decisions] == [False, False, True, True]
    resolutions = resolve(decisions)
    assert resolutions[ITEMS[0].id].unblinded
    assert resolutions[ITEMS[1].id].unblinded
    assert not resolve(decisions[:2])[ITEMS[0].id].unblinded
    assert agreement(decisions)["verdict"]["raw"].value == 1  # what was decided blind


# ----------------------------------------------------------------------------------------- sessions


def test_a_session_goes_on_where_the_last_one_stopped(store: Store) -> None:
    queue = Queue(ITEMS)
    first = Session(queue, store, "ana")
    order = queue.of("ana")
    for item in order[:4]:
        assert first.item == item
        following = first.following
        first.decide(**SAYS["model_error"])
        assert first.item == following
    again = Session(queue, store, "ana")
    assert (again.item, again.remaining, again.total) == (order[4], 9, 13)
    again.skip()
    assert again.item == order[5]
    while again.following is not None:
        again.skip()
    assert again.item == order[-1]
    assert Session(queue, store, "ben").remaining == 13


def test_one_may_go_back_and_revise_and_nothing_is_overwritten(store: Store) -> None:
    session = Session(Queue(ITEMS), store, "ana")
    assert not session.back()
    item = session.item
    session.decide(**SAYS["model_error"])
    session.back()
    assert session.item == item
    assert session.previous is not None
    session.decide(**SAYS["no_error"], note="on second thoughts")
    assert [d.verdict for d in store.decisions()] == ["model_error", "no_error"]
    later = Session(Queue(ITEMS), store, "ana")
    later.back()
    assert later.item == item
    assert later.previous is not None
    assert later.previous.note == "on second thoughts"


def test_a_decision_that_is_none_leaves_the_item_where_it_is(store: Store) -> None:
    session = Session(Queue(ITEMS), store, "ana")
    with pytest.raises(InputError, match="model_wrong is missing"):
        session.decide(prompt_valid="yes", extraction_valid="yes")
    assert session.item == Queue(ITEMS).of("ana")[0]
    assert store.decisions() == []


def test_an_adjudicator_sees_what_is_disputed(tmp_path: Path) -> None:
    queue, store = Queue(ITEMS, reviewers=2), Store(tmp_path / "r.db", "audit")
    store.seal(queue)
    store.add([says("ana", "model_error"), says("ben", "no_error"), says("ana", "no_error", 1)])
    session = Session(queue, store, "cy", adjudicate=True)
    assert (session.item, session.total) == (ITEMS[0], 1)
    session.decide(**SAYS["no_error"])
    assert session.item is None
    assert resolve(store.decisions(), 2)[ITEMS[0].id].how == "adjudicated"


# ---------------------------------------------------------------------------------------- agreement


def test_agreement_is_measured_for_each_question() -> None:
    decisions = [says("ana", "model_error", n) for n in range(8)]
    decisions += [says("ben", "model_error" if n < 6 else "invalid_prompt", n) for n in range(8)]
    measures = agreement(decisions, seed=1)
    assert measures["prompt_valid"]["raw"].value == 0.75
    assert measures["verdict"]["raw"].value == 0.75
    assert measures["extraction_valid"]["raw"].items == 6  # moot for two, and so is model_wrong
    assert measures["verdict"]["kappa"].value == 0
    assert measures["verdict"]["ac1"].value > 0.7
    assert agreement(decisions, seed=1) == measures
    assert agreement(random.Random(0).sample(decisions, len(decisions)), seed=1) == measures


def test_agreement_of_one_or_three_has_no_kappa() -> None:
    three = [says(who, "no_error", n) for who in ("ana", "ben", "cy") for n in range(5)]
    assert "not 3" in agreement(three)["verdict"]["kappa"].reason
    assert agreement(three)["verdict"]["ac1"].value == 1
    assert agreement([])["verdict"]["alpha"].reason == "no item was rated by two raters"
    adjudicated = [*three[:5], *(replace(d, role="adjudicator") for d in three[5:10])]
    assert agreement(adjudicated)["verdict"]["raw"].items == 0
