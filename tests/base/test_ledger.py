"""The ledger: the chain, who may open a holdout, several processes at once, and what can go wrong
with the file.

The tests marked by `place` run on SQLite, and on PostgreSQL too where there is one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec import structs

from groundfault.base.holdout_events import OPENED, REPLAYED, Look, Opening
from groundfault.base.ledger import Ledger
from groundfault.base.row_sketch import RowSample, sample_rows
from groundfault.errors import InputError, LedgerError, MissingExtraError

SPAWN = multiprocessing.get_context("spawn" if os.name == "nt" else "fork")


def _open(
    place: str | Path,
    reopen: str | None = None,
    *,
    holdout: bool = True,
    all_outcomes: bool = False,
    spent: Look | None = None,
    compare: tuple[str, str] | None = None,
    sample: Callable[[str], RowSample] | None = None,
    **changes: str,
) -> Opening:
    hashes = {"evidence": "e", "outcome": "o", "split": "s", "library": "l", "plan": "p"} | changes
    return Ledger(place).open_holdout(
        **{f"{k}_hash": v for k, v in hashes.items()},
        reopen=reopen,
        holdout=holdout,
        all_outcomes=all_outcomes,
        compare=compare,
        sample=sample,
        **({} if spent is None else {"rule": spent.rule, "level": spent.level}),
    )


# --------------------------------------------------------------------------------------- the layout


def execute(place: str, statement: str) -> None:
    """Run a statement on the database of a ledger, as whoever owns it can."""
    if not place.startswith("postgresql"):
        with sqlite3.connect(place) as connection:
            connection.executescript(statement)
        return
    import psycopg

    with psycopg.connect(place.replace("+psycopg", "")) as connection:
        connection.execute(statement)


COPY = (
    "CREATE TABLE copy AS SELECT * FROM groundfault_ledger; DROP TABLE groundfault_ledger; "
    "ALTER TABLE copy RENAME TO groundfault_ledger"
)
LAYOUTS = {
    "ALTER TABLE groundfault_ledger ADD COLUMN weight TEXT": "written by a newer groundfault",
    "ALTER TABLE groundfault_ledger RENAME COLUMN actor TO who": "written by a newer groundfault",
    # without the index two histories may begin at one event
    COPY: "two of its rows may have the same previous",
}


@pytest.mark.parametrize(("statement", "message"), LAYOUTS.items())
def test_a_ledger_of_another_layout_is_refused_before_it_is_read_or_written(
    place: str, statement: str, message: str
) -> None:
    Ledger(place).append("note", {})
    execute(place, statement)
    for use in (lambda: Ledger(place).append("note", {}), Ledger(place).events):
        with pytest.raises(LedgerError, match=message):
            use()


def test_a_ledger_says_which_layout_it_has(place: str) -> None:
    Ledger(place).append("note", {})
    newer = (
        "COMMENT ON TABLE groundfault_ledger IS '2'"
        if place.startswith("postgresql")
        else "PRAGMA user_version = 2"
    )
    execute(place, newer)
    with pytest.raises(LedgerError, match="written by a newer groundfault"):
        Ledger(place).check()


def test_an_index_that_misses_a_row_is_damage(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    ledger = Ledger(place)
    for number in range(3):
        ledger.append("note", {"number": number})
    with sqlite3.connect(place) as connection:
        # a row that its index does not know could be followed twice
        connection.executescript(
            "PRAGMA writable_schema = ON; CREATE TABLE other (previous TEXT UNIQUE); "
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE "
            "tbl_name = 'other' AND type = 'index') "
            "WHERE tbl_name = 'groundfault_ledger' AND type = 'index'"
        )
    with pytest.raises(LedgerError, match="is damaged"):
        Ledger(place).append("note", {})


TRIGGERS = (
    "BEFORE INSERT ON groundfault_ledger BEGIN SELECT RAISE(IGNORE); END",
    "AFTER INSERT ON groundfault_ledger BEGIN DELETE FROM groundfault_ledger WHERE seq = 1; END",
)


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_ledger_that_would_drop_what_is_written_is_refused(tmp_path: Path, trigger: str) -> None:
    place = tmp_path / "ledger.db"
    Ledger(place).append("note", {})
    with sqlite3.connect(place) as base:
        base.execute(f"CREATE TRIGGER quiet {trigger}")
    for act in (lambda: Ledger(place).append("note", {}), lambda: Ledger(place).check()):
        with pytest.raises(LedgerError, match="has the trigger 'quiet', which may drop"):
            act()


@pytest.mark.slow
def test_so_is_one_in_postgresql(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres.replace("+psycopg", ""), autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS groundfault_ledger")
        Ledger(postgres).append("note", {})
        base.execute("CREATE RULE quiet AS ON INSERT TO groundfault_ledger DO INSTEAD NOTHING")
        with pytest.raises(LedgerError, match="has the trigger 'quiet', which may drop"):
            Ledger(postgres).append("note", {})
        base.execute("DROP TABLE groundfault_ledger")


def test_a_clock_that_goes_back_is_recorded_and_reorders_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.append("note", {"number": 1})

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(hours=1)

    monkeypatch.setattr("groundfault.base.ledger.datetime", Earlier)
    ledger.append("note", {"number": 2})
    ledger.append("note", {"number": 3})
    events = ledger.events()
    assert [event.kind for event in events] == ["note", "clock_went_back", "note", "note"]
    assert events[1].body["last"] == events[0].time
    assert 3590 <= events[1].body["seconds"] <= 3600
    ledger.check()


# ---------------------------------------------------------------------------------------- the chain


def test_events_are_chained_and_kept(place: str) -> None:
    ledger = Ledger(place)
    first = ledger.append("query", {"b": 1, "a": [1.5, None, "ü\ud800"]})
    second = ledger.append("review", {})
    assert [first.seq, second.seq] == [1, 2]
    assert second.previous == first.hash
    assert ledger.head == second.hash
    assert ledger.events() == [first, second]
    assert ledger.events("review") == [second]
    assert first.time.endswith("+00:00")
    assert first.actor.count("@") == 1
    ledger.check()
    ledger.check(head=first.hash)


@given(
    st.dictionaries(
        st.text(),
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    )
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_json_comes_back(tmp_path: Path, body: dict[str, Any]) -> None:
    if any(isinstance(v, float) and v in (float("inf"), -float("inf")) for v in body.values()):
        with pytest.raises(InputError, match="JSON"):
            Ledger(tmp_path / "l.db").append("note", body)
    else:
        event = Ledger(tmp_path / "l.db").append("note", body)
        assert event.body == body
        assert Ledger(tmp_path / "l.db").events()[-1] == event


def test_what_is_not_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="JSON"):
        Ledger(tmp_path / "l.db").append("note", {"when": object()})
    assert list(tmp_path.iterdir()) == []


TAMPERING = {
    (
        "UPDATE groundfault_ledger SET body = replace(body, '2', '7') WHERE seq = 2"
    ): "event 2 .*was edited",
    (
        "UPDATE groundfault_ledger SET time = '2020-01-01T00:00:00' WHERE seq = 3"
    ): "event 3 .*was edited",
    "UPDATE groundfault_ledger SET actor = 'someone@else' WHERE seq = 1": "event 1 .*was edited",
    "UPDATE groundfault_ledger SET body = x'00ff' WHERE seq = 2": "event 2 .*was edited",
    "UPDATE groundfault_ledger SET hash = 'f00' WHERE seq = 2": "event 2 .*was edited",
    "DELETE FROM groundfault_ledger WHERE seq = 3": "event 3 is missing",
    "DELETE FROM groundfault_ledger WHERE seq = 1": "event 1 is missing",
    "DELETE FROM groundfault_ledger WHERE seq = 2; "
    "UPDATE groundfault_ledger SET seq = seq - 1 WHERE seq > 2": "event 2 does not follow event 1",
    "UPDATE groundfault_ledger SET seq = 9 WHERE seq = 2; UPDATE groundfault_ledger SET seq = 2 "
    "WHERE seq = 3; "
    "UPDATE groundfault_ledger SET seq = 3 WHERE seq = 9": "event 2 does not follow event 1",
    "INSERT INTO groundfault_ledger SELECT 6, time, actor, kind, body, 'x', hash FROM "
    "groundfault_ledger "
    "WHERE seq = 5": "event 6 does not follow event 5",
}


@pytest.mark.parametrize(("statement", "message"), TAMPERING.items())
def test_tampering_is_found_and_named(tmp_path: Path, statement: str, message: str) -> None:
    ledger = Ledger(tmp_path / "l.db")
    for n in range(1, 6):
        ledger.append("note", {"n": n})
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.executescript(statement)
    with pytest.raises(LedgerError, match=message):
        ledger.check()
    with pytest.raises(LedgerError, match=message):
        _open(tmp_path / "l.db")  # a damaged ledger opens nothing


def test_a_tail_cut_off_or_a_ledger_written_anew_is_found_by_a_known_head(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.append("note", {"n": 1})
    head = _open(tmp_path / "l.db").head
    ledger.append("note", {"n": 3})
    ledger.check(head=head)
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute("DELETE FROM groundfault_ledger WHERE seq > 1")
    ledger.check()
    with pytest.raises(LedgerError, match="cut off"):
        ledger.check(head=head)
    _open(tmp_path / "l.db")
    with pytest.raises(LedgerError, match=head[:12]):
        ledger.check(head=head)


def test_nothing_is_added_to_an_edited_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.append("note", {"n": 1})
    with sqlite3.connect(tmp_path / "l.db") as raw:
        raw.execute("UPDATE groundfault_ledger SET kind = 'other'")
    with pytest.raises(LedgerError, match="last event, 1"):
        ledger.append("note", {"n": 2})


# --------------------------------------------------------------------------------- opening holdouts


def test_a_first_opening_is_recorded(place: str) -> None:
    opening = _open(place)
    assert (opening.times, opening.libraries, opening.replay, opening.reasons) == (1, 1, False, ())
    assert opening.sentence == "holdout opened 1 time"
    [event] = Ledger(place).events()
    assert event.kind == OPENED
    assert event.hash == opening.head == Ledger(place).head
    assert event.body == {
        "evidence": "e",
        "outcome": "o",
        "split": "s",
        "library": "l",
        "plan": "p",
        "reason": None,
        "holdout": True,
        "rule": "",
        "level": None,
    }
    assert structs.asdict(opening)["path"] == Ledger(place).place


def test_the_same_audit_again_is_a_replay_and_not_counted(place: str) -> None:
    _open(place)
    again = _open(place)
    assert again.replay
    assert again.sentence == "holdout opened 1 time"
    assert [e.kind for e in Ledger(place).events()] == [OPENED, REPLAYED]
    Ledger(place).check(head=again.head)


def test_other_candidates_are_refused_without_a_reason(place: str) -> None:
    _open(place, library="a" * 64)
    with pytest.raises(
        LedgerError, match=r"library aaaaaaaaaaaa, now bbbbbbbbbbbb.*--reopen"
    ) as refused:
        _open(place, library="b" * 64)
    assert Ledger(place).events()[0].actor in str(refused.value)
    assert len(Ledger(place).events()) == 1


CHANGES = {
    "evidence": ("versions of the evidence", "with another version of the evidence"),
    "split": ("splits", "with another split"),
    "plan": ("plans", "with another plan"),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_nothing_else_that_changes_makes_the_holdout_fresh(tmp_path: Path, changed: str) -> None:
    _open(tmp_path / "l.db")
    what, change = CHANGES[changed]
    with pytest.raises(LedgerError, match=f"{change}, so.*--reopen.*--no-ledger"):
        _open(tmp_path / "l.db", **{changed: "other"})
    opening = _open(tmp_path / "l.db", reopen="why not", **{changed: "other"})
    assert (opening.times, opening.libraries, opening.replay) == (2, 1, False)
    assert opening.sentence == f"holdout opened 2 times, with 2 {what}; reason given: why not"
    assert _open(tmp_path / "l.db").times == 2  # the first audit, replayed, says so too


def test_a_reason_opens_it_again_and_stays_for_ever(place: str) -> None:
    _open(place)
    again = _open(place, library="m", reopen=" a label \n was wrong ")
    assert (
        again.sentence
        == "holdout opened 2 times, with 2 candidate libraries; reason given: a label was wrong"
    )
    back = _open(place, plan="q", reopen="a level was")
    assert back.sentence == (
        "holdout opened 3 times, with 2 candidate libraries and 2 plans; reasons given: a label "
        "was wrong; a level was"
    )
    third = _open(place, library="n", reopen="once more")
    assert third.reasons == ("a label was wrong", "a level was", "once more")
    assert third.sentence.endswith("; reasons given: a label was wrong; a level was; once more")
    assert _open(place).reasons == third.reasons  # also in a replay of the very first


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_reason_is_none(tmp_path: Path, blank: str) -> None:
    with pytest.raises(LedgerError, match="blank"):
        _open(tmp_path / "l.db", reopen=blank)
    assert not (tmp_path / "l.db").exists()


def test_other_outcomes_are_another_holdout(tmp_path: Path) -> None:
    _open(tmp_path / "l.db")
    assert _open(tmp_path / "l.db", outcome="other", library="other").times == 1


def test_a_look_at_all_outcomes_is_recorded_as_one(place: str) -> None:
    look = _open(place, holdout=False)
    assert look.sentence == "all outcomes were looked at 1 time"
    assert (look.holdout, look.all_outcomes, look.all_before) == (False, True, False)
    [event] = Ledger(place).events()
    assert event.body["looked_at"] == "all outcomes"
    assert _open(place, holdout=False).sentence == look.sentence, "a replay is no second look"


def test_after_a_look_at_all_outcomes_no_holdout_is_fresh(place: str) -> None:
    _open(place, holdout=False)
    with pytest.raises(LedgerError, match="these outcomes were audited before"):
        _open(place, library="mined", split="half")
    reason = _open(place, library="mined", split="half", reopen="to see")
    assert "all outcomes had been looked at before, so it was not fresh" in reason.sentence
    same = _open(place, split="half", plan="other", reopen="to see again")
    assert same.all_before
    assert "not fresh" in same.sentence


def test_a_search_for_modes_looks_beyond_the_judge(place: str) -> None:
    opening = _open(place, all_outcomes=True)
    assert opening.sentence == (
        "holdout opened 1 time; the search for failure modes looked at all outcomes"
    )
    assert (opening.holdout, opening.all_outcomes) == (True, True)
    assert not _open(place, all_outcomes=True).all_before, "it is the same audit"
    assert _open(place, plan="q", reopen="another level").all_before


def test_each_look_and_its_level_are_counted_once(tmp_path: Path) -> None:
    place, first, second = tmp_path / "l.db", Look("janus", 0.1), Look("bh", 0.05)
    assert _open(place, spent=first).looks == (first,)
    assert _open(place, plan="q", reopen="x", spent=second).looks == (first, second)
    assert _open(place, spent=first).looks == (first, second)
    unknown = _open(place, plan="r", reopen="y")
    assert unknown.looks == (first, second, Look("", None))
    assert unknown.times == 3


def test_an_audit_that_crashed_has_looked_at_nothing(place: str) -> None:
    ledger = Ledger(place)
    first = _open(place)
    with pytest.raises(KeyboardInterrupt), ledger.forgive_crash(first):
        raise KeyboardInterrupt
    assert ledger.events()[-1].body == {"opening": first.head, "error": "KeyboardInterrupt"}
    # another plan needs no reason, and is the first look
    second = _open(place, plan="other")
    assert (second.times, second.plans, second.replay) == (1, 1, False)
    assert ledger.describe_opening(second.head, {"plan": "other"}) == second
    with pytest.raises(LedgerError, match="of a crashed audit"):
        ledger.describe_opening(first.head, {"plan": "p"})
    # the crash of a replay takes nothing away from what was seen before
    again = _open(place, plan="other")
    with pytest.raises(ValueError, match="broken"), ledger.forgive_crash(again):
        raise ValueError("broken")
    with pytest.raises(LedgerError, match="with another plan"):
        _open(place)


def test_another_comparison_is_another_look(tmp_path: Path) -> None:
    _open(tmp_path / "l.db")
    with pytest.raises(LedgerError, match="with another comparison"):
        _open(tmp_path / "l.db", compare=("a", "b"))
    _open(tmp_path / "l.db", compare=("a", "b"), reopen="both")
    assert _open(tmp_path / "l.db", compare=("a", "b")).replay
    with pytest.raises(LedgerError, match="with another comparison"):
        _open(tmp_path / "l.db", compare=("b", "a"))


def test_an_opening_is_counted_again_from_the_events_up_to_it(tmp_path: Path) -> None:
    ledger, look = Ledger(tmp_path / "l.db"), Look("janus", 0.1)
    first = _open(tmp_path / "l.db", spent=look)
    second = _open(tmp_path / "l.db", plan="q", reopen="why", all_outcomes=True, spent=look)
    _open(tmp_path / "l.db", outcome="other")
    back = _open(tmp_path / "l.db", spent=look)
    hashes = {"evidence": "e", "outcome": "o", "split": "s", "library": "l"}
    for opening, plan in ((first, "p"), (second, "q"), (back, "p")):
        assert ledger.describe_opening(opening.head, {**hashes, "plan": plan}) == opening
        with pytest.raises(LedgerError, match="is of another plan"):
            ledger.describe_opening(opening.head, {**hashes, "plan": "r"})
    assert (first.times, back.times, back.replay) == (1, 2, True)
    note = ledger.append("note", {})
    with pytest.raises(LedgerError, match="is no opening"):
        ledger.describe_opening(note.hash, {})
    with pytest.raises(LedgerError, match="lacks event"):
        ledger.describe_opening("0" * 64, {})


def test_what_an_earlier_ledger_holds_is_not_begun_anew(tmp_path: Path) -> None:
    _open(tmp_path / "old.db")
    ledger = Ledger(tmp_path / "new.db", earlier=[tmp_path / "old.db"])
    hashes = {f"{k}_hash": k for k in ("evidence", "split", "library", "plan")}
    with pytest.raises(LedgerError, match=r"record of these outcomes: go on with it by --ledger"):
        ledger.open_holdout(outcome_hash="o", reopen="anyway", **hashes)
    assert ledger.open_holdout(outcome_hash="another", **hashes).times == 1


# ------------------------------------------------------------------------ several processes at once


def _write(place: str, who: int, start: Any) -> None:
    start.wait()
    for n in range(15):
        Ledger(place).append("note", {"who": who, "n": n})


def _race(place: str, library: str, start: Any, answers: Any) -> None:
    start.wait()
    try:
        answers.put(_open(place, library=library).times)
    except LedgerError as error:
        answers.put(str(error))


def test_writers_at_once_make_one_chain(place: str) -> None:
    start = SPAWN.Barrier(4)
    workers = [SPAWN.Process(target=_write, args=(place, who, start)) for who in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 4
    ledger = Ledger(place)
    ledger.check()
    events = ledger.events()
    assert [e.seq for e in events] == list(range(1, 61))
    for who in range(4):
        assert [e.body["n"] for e in events if e.body["who"] == who] == list(range(15))


@pytest.mark.parametrize("repeat", range(3))
def test_of_two_libraries_at_once_exactly_one_gets_the_holdout(place: str, repeat: int) -> None:
    start, answers = SPAWN.Barrier(2), SPAWN.Queue()
    workers = [
        SPAWN.Process(target=_race, args=(place, library, start, answers)) for library in "ab"
    ]
    for worker in workers:
        worker.start()
    results = [answers.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
    assert results.count(1) == 1
    assert any("--reopen" in str(answer) for answer in results)
    assert len(Ledger(place).events(OPENED)) == 1


def _write_until_killed(place: str) -> None:
    n = 0
    while True:
        Ledger(place).append("note", {"n": (n := n + 1)})


@pytest.mark.skipif(os.name == "nt", reason="needs kill -9")
@pytest.mark.slow
def test_a_killed_writer_leaves_a_whole_chain(tmp_path: Path) -> None:
    place = str(tmp_path / "l.db")
    for wait in (0.25, 0.31, 0.2):
        worker = SPAWN.Process(target=_write_until_killed, args=(place,))
        worker.start()
        while not Path(place).exists():
            time.sleep(0.01)
        time.sleep(wait)
        os.kill(worker.pid or 0, signal.SIGKILL)
        worker.join(60)
        Ledger(place).append("note", {"after": wait})
        Ledger(place).check()
    assert len(Ledger(place).events()) > 10


def test_a_waiting_writer_waits_and_a_reader_does_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.append("note", {"n": 1})
    holder = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert len(ledger.events()) == 1
    with ThreadPoolExecutor() as pool:
        writing = pool.submit(ledger.append, "note", {"n": 2})
        time.sleep(0.3)
        assert not writing.done()
        assert len(ledger.events()) == 1
        holder.execute("COMMIT")
        assert writing.result(60).seq == 2


# -------------------------------------------------------------------------------- what can go wrong


def test_reading_a_ledger_that_is_not_there_says_so_and_makes_none(tmp_path: Path) -> None:
    for read in (Ledger.check, Ledger.events, lambda ledger: ledger.head):
        with pytest.raises(InputError, match="there is no ledger at"):
            read(Ledger(tmp_path / "sub" / "l.db"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_a_table_is_an_empty_ledger(tmp_path: Path) -> None:
    """Whoever made the file was killed before anything was in it."""
    for name, create in (
        ("nothing.db", Path.touch),
        ("other.db", lambda p: sqlite3.connect(p).execute("CREATE TABLE t(x)")),
    ):
        create(tmp_path / name)
        ledger = Ledger(tmp_path / name)
        before = (tmp_path / name).read_bytes()
        assert ledger.events() == []
        assert ledger.head == "0" * 64
        ledger.check()
        with pytest.raises(LedgerError, match="lacks event"):
            ledger.check(head="a" * 64)
        assert (tmp_path / name).read_bytes() == before  # to read is not to write
        assert ledger.append("note", {}).seq == 1
        assert len(ledger.events()) == 1


def test_folders_are_made_and_paths_are_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("sub/l #%?.db")
    ledger.append("note", {})
    assert ledger.place == str(tmp_path / "sub" / "l #%?.db")
    assert (tmp_path / "sub" / "l #%?.db").is_file()
    assert Ledger(f"sqlite:///{tmp_path}/other.db").append("note", {}).seq == 1


@pytest.mark.parametrize("content", [b"not a database " * 300, None])
def test_a_damaged_file_is_one_clear_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "l.db"
    for n in range(20):
        Ledger(path).append("note", {"n": n, "text": "x" * 2000})
    if content is None:  # torn in the middle
        whole = path.read_bytes()
        content = whole[:8192] + b"\xff" * 20_000 + whole[28_192:]
    path.write_bytes(content)
    for use in (lambda: Ledger(path).check(), lambda: _open(path)):
        with pytest.raises(LedgerError, match=r"l\.db is damaged|was altered"):
            use()


def test_a_place_that_cannot_be_written_to_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot make the ledger"):
        Ledger(tmp_path / "file" / "l.db").append("note", {})
    with pytest.raises(InputError, match="cannot be written to"):
        Ledger(tmp_path).append("note", {})
    with pytest.raises(InputError, match="cannot be read"):
        Ledger(tmp_path).check()


def _as_nobody(path: Path, answers: Any) -> None:
    os.setgid(65534)
    os.setuid(65534)
    ledger = Ledger(path)
    try:
        ledger.check()
        ledger.append("note", {})
    except InputError as error:
        answers.put(str(error))


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="needs root, to become a user without rights"
)
def test_a_ledger_that_may_not_be_written_to_can_be_read(tmp_path: Path) -> None:
    Ledger(tmp_path / "l.db").append("note", {})
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        if folder != Path("/tmp"):
            folder.chmod(0o755)
    (tmp_path / "l.db").chmod(0o644)
    Ledger(tmp_path / "l.db").check()  # imports what it needs, while that may be read
    answers = SPAWN.Queue()
    worker = SPAWN.Process(target=_as_nobody, args=(tmp_path / "l.db", answers))
    worker.start()
    assert "cannot be written to" in answers.get(timeout=60)
    worker.join(60)


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("mysql://user:secret@host/name", InputError),
        ("sqlite://", InputError),
        ("nonsense://", InputError),
        ("postgresql+psycopg://user:secret@host:port/name", InputError),
        ("postgresql+nosuchdriver://user:secret@host/name?password=secret", InputError),
        (
            "postgresql+psycopg://user:secret@127.0.0.1:1/name?password=secret",
            (InputError, MissingExtraError),
        ),
    ],
)
def test_a_url_that_cannot_be_used_is_one_clear_error_without_the_password(
    url: str, error: Any
) -> None:
    with pytest.raises(error) as refusal:
        Ledger(url).append("note", {})
    assert "secret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


# ---------------------------------------------------------------------------------- other evidence


def _take(salt: str, rows: slice = slice(None), start: int = 0) -> RowSample:
    names = [f"q{i}".encode() for i in range(start, start + 200)]
    outcomes = np.array([float(i * i % 5 == 1) for i in range(start, start + 200)])
    return sample_rows(names[rows], outcomes[rows], salt)


def test_evidence_that_shares_outcomes_is_counted_and_said(place: str) -> None:
    first = _open(place, sample=_take, spent=Look("holm", 0.1))
    assert (first.times, first.overlapping) == (1, 0)
    # one row less: other outcomes, and no refusal
    part = partial(_take, rows=slice(1, None))
    second = _open(place, outcome="o2", evidence="e2", sample=part, spent=Look("by", 0.05))
    assert (second.times, second.overlapping, second.overlap) == (2, 1, 1.0)
    assert second.looks == (Look("holm", 0.1), Look("by", 0.05))
    assert second.sentence == (
        "holdout opened 2 times, with 2 versions of the evidence; 1 of them with other evidence, "
        "which has about 100% of these outcomes"
    )
    # half of it new; and wholly new
    mixed = _open(place, outcome="o3", sample=partial(_take, start=100))
    assert (mixed.times, mixed.overlapping) == (3, 2)
    assert "2 of them with other evidence, which has up to about 50% of" in mixed.sentence
    assert _open(place, outcome="o4", sample=partial(_take, start=1000)).times == 1
    # what was said is in the ledger, and counted again from it
    for opening, outcome in ((second, "o2"), (mixed, "o3")):
        assert Ledger(place).describe_opening(opening.head, {"outcome": outcome}) == opening
    # the same audit again sees those that came since
    replay = _open(place, outcome="o2", evidence="e2", sample=part, spent=Look("by", 0.05))
    assert replay.replay
    assert (replay.times, replay.overlapping) == (3, 2)
    bodies = [event.body for event in Ledger(place).events()]
    assert ["sample" in body for body in bodies] == [True, True, True, True, False]
    assert len({body["sample"]["salt"] for body in bodies if "sample" in body}) == 1


def test_openings_without_samples_are_read_and_counted_as_before(place: str) -> None:
    _open(place)
    assert _open(place, outcome="o2", sample=_take).times == 1
    assert _open(place, reopen="again", plan="p2", sample=_take).times == 3


def test_a_sample_in_the_order_of_before_says_nothing_of_later_ones(place: str) -> None:
    old = {"salt": "0a" * 16, "limit": 2**32 - 1, "rows": ""}
    Ledger(place).append(OPENED, {"outcome": "o1", "sample": old})
    opening = _open(place, outcome="o2", sample=_take)
    assert (opening.times, opening.overlapping) == (1, 0)
    assert _open(place, outcome="o3", sample=_take).overlapping == 1


def test_a_sample_that_cannot_be_read_is_an_altered_ledger(place: str) -> None:
    Ledger(place).append(OPENED, {"outcome": "x", "sample": {"salt": "zz"}})
    with pytest.raises(LedgerError, match="sample of an opening in the ledger cannot be read"):
        _open(place, sample=_take)
