"""A reviewer's desk: what it shows, and that a press of a key counts once and for its item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundfault.errors import InputError
from groundfault.review import Item, Queue, Session, Store
from groundfault.workbench.desks import MAX_LENGTH, ItemView, ReviewDesk

ITEMS = tuple(
    Item(f"task-{n}", f"prompt {n}", "5", "10", f"So {n}.", question=f"What is {n}?")
    for n in range(5)
)
WRONG = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "yes"}
RIGHT = WRONG | {"model_wrong": "no"}


def make_desk(place: Path, reviewer: str = "ana", **settings: Any) -> ReviewDesk:
    store = Store(place / "reviews.db", "audit")
    queue = Queue(ITEMS, **settings)
    store.seal(queue)
    return ReviewDesk(lambda: Session(queue, store, reviewer))


def stored(place: Path) -> list[tuple[str, str, str]]:
    prompts = {item.id: item.prompt for item in ITEMS}
    decisions = Store(place / "reviews.db", "audit").decisions()
    return [(prompts[d.item], d.verdict, d.note) for d in decisions]


def prompt_of(view: ItemView | None) -> str:
    assert view is not None
    return dict(view.texts)["Prompt"]


def test_a_decision_brings_what_was_ready(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    stage = desk.look()
    order = []
    while stage.item is not None:
        order.append(prompt_of(stage.item))
        ready = stage.following
        counted, stage = desk.act("decide", stage.turn, WRONG | {"note": "odd"})
        assert counted
        assert stage.item == ready
    assert (stage.decided, stage.total, stage.following) == (5, 5, None)
    assert stored(tmp_path) == [(prompt, "model_error", "odd") for prompt in order]
    # a second desk, as after a kill, begins where the first one stopped
    assert make_desk(tmp_path).look().item is None


def test_a_press_that_comes_twice_or_late_decides_nothing(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    stage = desk.look()
    assert desk.act("decide", stage.turn, WRONG)[0]
    # JSON may hold half of a character
    others = desk.act("back", "ümlaut"), desk.act("skip", "\ud800")
    for late in (desk.act("decide", stage.turn, RIGHT), desk.act("skip", stage.turn), *others):
        assert not late[0]
        assert late[1] == desk.look()
    assert len(stored(tmp_path)) == 1


def test_one_may_go_back_and_see_what_one_said(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    first = desk.look()
    _, second = desk.act("decide", first.turn, WRONG | {"note": "hasty"})
    _, again = desk.act("back", second.turn)
    assert again.item is not None
    assert prompt_of(again.item) == prompt_of(first.item)
    assert again.item.note == "hasty"
    assert {q.name: q.before for q in again.item.questions} == {**WRONG, "artefact": ""}
    desk.act("decide", again.turn, RIGHT)
    assert [verdict for _, verdict, _ in stored(tmp_path)] == ["model_error", "no_error"]


def test_skipped_items_come_again_in_another_session(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    first = desk.look()
    stage = first
    for _ in ITEMS:
        _, stage = desk.act("skip", stage.turn)
    assert (stage.item, stage.decided) == (None, 0)
    assert desk.act("again", "")[1].item == first.item


def test_what_is_no_decision_stays_on_the_desk(tmp_path: Path) -> None:
    desk = make_desk(tmp_path)
    stage = desk.look()
    with pytest.raises(InputError, match="model_wrong is missing"):
        desk.act("decide", stage.turn, {"prompt_valid": "yes", "extraction_valid": "yes"})
    assert desk.look() == stage


def test_a_view_names_neither_item_nor_task_and_steers_nothing() -> None:
    item = Item("secret-task", "a\x1b[31m\nb\u202e", "5", None, "x" * 20_000, 2, question="What?")
    view = ItemView.of(item, None)
    texts = dict(view.texts)
    assert texts["Task"] == "What?"
    assert texts["Prompt"] == "a\ufffd[31m\nb\ufffd"
    assert texts["Answer as read"] == "none was read"
    assert view.is_cut
    assert "12,000 characters are not shown" in texts["Response (copy 2)"]
    assert len(texts["Response (copy 2)"]) < MAX_LENGTH + 100
    assert ItemView.of(item, None, 30_000).is_cut is False
    assert view.questions[1].text.startswith("Nothing was read")
    for name in (item.id, "secret-task"):
        assert name not in repr(view)
