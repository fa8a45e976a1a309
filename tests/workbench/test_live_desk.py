"""A seat at a live audit: what it shows, that a label counts once, and that the record is all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from groundfault.errors import InputError
from groundfault.review import AnnotatorPanel, PanelSeat
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan
from groundfault.workbench.desks import LiveDesk

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
