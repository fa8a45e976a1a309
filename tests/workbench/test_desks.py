"""Desks: what they show of a case, and that a press of a key counts once and for its case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from groundfault.errors import InputError
from groundfault.review import AnnotatorPanel, Item, PanelSeat, Queue, Session, Store
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan
from groundfault.workbench.desks import MAX_LENGTH, ItemView, LiveDesk, ReviewDesk

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


PLAN = SequentialPlan(threshold=0.8, policy="stratified", alpha=0.2, seed=3, burn_in=5)


def make_pool(count: int = 60) -> Pool:
    rows = range(count)
    table = pl.DataFrame(
        {
            "id": [f"case-{n}" for n in rows],
            "lang": [("de", "fr", "ja")[n % 3] for n in rows],
            "prompt": [f"Line one of {n}\nline two\x1b[31m" for n in rows],
            "score": [0 if n % 3 == 2 else 1 for n in rows],
        }
    )
    return Pool.from_table(table, id="id", groups=["lang"])


def open_audit(place: Path) -> SequentialAudit:
    return SequentialAudit.of(make_pool(), PLAN, ledger=place / "ledger.db")


def reply_to(fields: tuple[tuple[str, str], ...]) -> str:
    return "fail" if dict(fields)["lang"] == "ja" else "pass"


def run_desk(desk: LiveDesk) -> Any:
    stage = desk.look()
    while not stage.finished:
        counted, stage = desk.label(stage.step, reply_to(stage.fields))
        assert counted
    return stage


def test_labels_given_here_give_the_certificate_of_the_command() -> None:
    here, there = (SequentialAudit.of(make_pool(), PLAN) for _ in range(2))
    stage = run_desk(LiveDesk(here, here, score_column="score"))
    assert (stage.verdict, stage.step) == ("failure mode found", 0)
    there.run(lambda query: 0.0 if query.case["lang"] == "ja" else 1.0)
    assert here.certificate() == there.certificate()


def test_a_case_is_shown_without_its_score_or_its_group(tmp_path: Path) -> None:
    audit = open_audit(tmp_path)
    stage = LiveDesk(audit, audit).look()
    assert [name for name, _ in stage.fields] == ["id", "lang", "prompt"]
    assert dict(stage.fields)["prompt"].endswith("\nline two\ufffd[31m")
    assert (stage.group, stage.may_label) == ("", True)
    one = LiveDesk(audit, audit, columns=("prompt",)).look()
    assert [name for name, _ in one.fields] == ["prompt"]
    assert (one.step, one.case) == (stage.step, stage.case)


def test_a_label_that_comes_twice_late_or_is_none_changes_nothing(tmp_path: Path) -> None:
    audit = open_audit(tmp_path)
    desk = LiveDesk(audit, audit)
    first = desk.look()
    assert desk.label(first.step, "0.5")[0]
    second = desk.look()
    assert desk.label(first.step, "fail") == (False, second)
    with pytest.raises(InputError, match=r"your answer is '1\.5'"):
        desk.label(second.step, "1.5")
    assert desk.look() == second
    assert [r.score for r in open_audit(tmp_path).rounds if r.closed] == [0.5]


def test_labels_are_words_and_a_bare_one_is_refused(tmp_path: Path) -> None:
    audit = open_audit(tmp_path)
    desk = LiveDesk(audit, audit)
    for bare in ("1", "0", "1.0"):
        with pytest.raises(InputError, match="type p for passed, f for failed"):
            desk.label(1, bare)
    for step, word in enumerate(("passed", "failed", "p", "f", "unscored", "0.25"), 1):
        desk.label(step, word)
    scores = [r.score for r in open_audit(tmp_path).rounds if r.closed]
    assert scores == [1.0, 0.0, 1.0, 0.0, None, 0.25]


def test_the_last_label_can_be_taken_back(tmp_path: Path) -> None:
    audit = open_audit(tmp_path)
    desk = LiveDesk(audit, audit)
    first = desk.look()
    assert not first.may_undo
    _, second = desk.label(1, "passed")
    assert second.may_undo
    assert desk.undo(1) == (False, second)
    counted, stage = desk.undo(2)
    assert (counted, stage.step, stage.case) == (True, 1, first.case)
    desk.label(1, "failed")
    assert [r.score for r in open_audit(tmp_path).rounds if r.closed] == [0.0]


def test_two_seats_and_one_who_watches_see_the_same(tmp_path: Path) -> None:
    audits = [open_audit(tmp_path) for _ in range(2)]
    ours, theirs = (LiveDesk(audit, audit) for audit in audits)
    watching = LiveDesk(SequentialAudit.from_ledger(tmp_path / "ledger.db"))
    assert watching.look().step == 0
    stage = ours.look()
    assert watching.look().case == stage.case
    assert watching.look().group
    with pytest.raises(InputError, match="watches the audit"):
        watching.label(stage.step, "pass")
    ours.label(stage.step, "pass")
    assert theirs.look() == ours.look()
    assert watching.look().labelled == 1
    assert watching.look().version == ours.look().version
    assert watching.look().figure == ours.look().figure


def test_a_panel_waits_for_everybody(tmp_path: Path) -> None:
    seats = []
    for name in ("ana", "ben"):
        audit = open_audit(tmp_path)
        panel = AnnotatorPanel(audit, ["ana", "ben"], "cy")
        seats.append(LiveDesk(audit, PanelSeat(panel, name)))
    ana, ben = seats
    step = ana.look().step
    ana.label(step, "pass")
    assert (ana.look().may_label, ana.look().waiting) == (False, ("ben",))
    assert ben.look().may_label
    ben.label(step, "pass")
    assert ana.look().labelled == 1
    assert ana.look().may_label
