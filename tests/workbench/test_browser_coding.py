"""Runs are coded in the browser by keys alone; nothing of a run is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from bench_reports import serve_in_thread, visit
from browser_watch import Watch

from groundfault import Evidence
from groundfault.coding import Coding
from groundfault.workbench.desks import ReviewDesk
from groundfault.workbench.opened_report import OpenedReport

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>alert(1)</script>\x1b[2J"


def open_coding(place: Path) -> tuple[Coding, OpenedReport]:
    """Twelve failing runs, whose second step errs."""
    call = {"id": HOSTILE, "function": {"name": HOSTILE, "arguments": HOSTILE}}
    chat = [
        *({"role": "user", "content": f"{HOSTILE} {n}"} for n in range(4)),
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": HOSTILE, "content": f"Error: {HOSTILE}"},
        {"role": "assistant", "content": HOSTILE},
    ]
    runs = {"task": range(12), "model": "secret-model", "error": 1, "chat": [json.dumps(chat)] * 12}
    evidence = Evidence.from_table(pl.DataFrame(runs), id="task", model="model", outcome="error")
    coding = Coding(evidence, place / "codes.db")
    desk = ReviewDesk(lambda: coding.session("ana"), coding)
    return coding, OpenedReport(place, review=desk)


def test_the_page_is_blind_and_keeps_a_note_once(tmp_path: Path) -> None:
    coding, bench = open_coding(tmp_path)
    client = visit(bench)
    html = client.get("/review").text
    assert "secret-model" not in html
    assert "<script>alert" not in html
    assert "\x1b" not in html
    # of the item, and of the next that is kept ready
    assert html.count("<details data-item open>") == 2
    turn = html.partition('name="turn" value="')[2].partition('"')[0]
    fields = {"turn": turn, "note": "odd", "codes": f"loops, {HOSTILE[:20]}", "step": "5"}
    answer = client.post("/review/decide", data=fields)
    assert "1 of 12 decided" in answer.text
    assert client.post("/review/decide", data=fields).status_code == 200
    (note,) = coding.notes
    assert (note.note, note.step, note.codes) == ("odd", 5, ("loops", HOSTILE[:20]))
    turn = answer.text.partition('name="turn" value="')[2].partition('"')[0]
    wrong = client.post("/review/decide", data={"turn": turn, "step": "x"})
    assert wrong.status_code == 400
    assert "type the number of a step" in wrong.text


@pytest.mark.browser
def test_runs_are_coded_by_keys_alone(tmp_path: Path, browser: Browser) -> None:
    coding, bench = open_coding(tmp_path)
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        page.wait_for_selector(".item")
        for number in range(1, 4):
            page.keyboard.press("o")
            page.keyboard.type(f"note {number}")
            page.keyboard.press("Escape")
            page.keyboard.press("w")
            page.keyboard.type("5")
            page.keyboard.press("Escape")
            page.keyboard.press("c")
            page.keyboard.type("ignores an error" if number == 1 else "1")
            if number == 2:
                page.screenshot(path=str(tmp_path / "coding.png"), full_page=True)
            page.keyboard.press("Control+Enter")
            page.wait_for_selector(f"#decided:has-text('{number} of 12')")
        page.keyboard.press("z")
        page.wait_for_selector("textarea:has-text('note 3')")
    assert [note.note for note in coding.notes] == ["note 1", "note 2", "note 3"]
    assert {(note.step, note.codes) for note in coding.notes} == {(5, ("ignores an error",))}


@pytest.mark.browser
def test_codes_are_suggested_moved_split_joined_and_taken_back_by_keys(
    tmp_path: Path, browser: Browser
) -> None:
    coding, bench = open_coding(tmp_path)
    session = coding.session("ana")
    for number in range(6):
        early = number % 2 == 0
        note = f"pays before it checks {HOSTILE}" if early else f"searches again {number}"
        session.decide(note=note, codes=[] if early else ["loops"])
    coding.session("ben").decide(note="not for ana", codes=["ben's"])
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        page.wait_for_selector(".item")
        page.keyboard.press("C")
        page.wait_for_selector("h1:has-text('Codes')")
        assert "not for ana" not in page.inner_text("main")
        page.keyboard.press("g")
        page.wait_for_selector("h2:has-text('Suggestions')")
        # suggestions are shown, and not counted
        assert set(coding.codes) == {"loops", "ben's"}
        page.fill("input[value='1'] + label input", "pays early")
        page.click("button:has-text('Accept for 3 notes')")
        page.wait_for_selector("h3:has-text('pays early')")
        assert [count.runs for count in coding.counts() if count.code == "pays early"] == [3]
        page.screenshot(path=str(tmp_path / "codes.png"), full_page=True)

        # split: the first note of a code moves to a new one
        for _ in range(4):
            page.keyboard.press("j")
        page.keyboard.press("x")
        page.keyboard.press("m")
        page.keyboard.type("searches")
        page.keyboard.press("Enter")
        page.wait_for_selector("h3:has-text('searches')")
        assert page.locator("[data-code='loops'] li").count() == 2
        page.keyboard.press("z")
        page.wait_for_selector("[data-code='loops'] li:nth-child(3)")

        # a note is dragged, then a whole code onto another
        page.set_viewport_size({"width": 1280, "height": 1400})
        page.drag_and_drop("[data-code='loops'] li >> nth=0", "[data-code='pays early'] h3")
        page.wait_for_selector("[data-code='pays early'] li:nth-child(4)")
        page.drag_and_drop("[data-code='loops'] h3", "[data-code='pays early'] li >> nth=0")
        page.wait_for_selector("[data-code='pays early'] li:nth-child(6)")
        assert "loops" not in coding.codes
        page.keyboard.press("r")
        page.keyboard.type("pays")
        page.keyboard.press("Tab")
        page.keyboard.type("all of it")
        page.keyboard.press("Enter")
        page.wait_for_selector("h3:has-text('all of it')")
    assert coding.codes.keys() == {"all of it", "ben's"}


@pytest.mark.browser
def test_what_is_selected_in_a_run_is_the_evidence(tmp_path: Path, browser: Browser) -> None:
    from playwright.sync_api import expect

    coding, bench = open_coding(tmp_path)
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        page.wait_for_selector(".item")
        page.locator(".item details[open] pre").first.click(click_count=3)
        # not by a function, which the page's policy lets nobody evaluate
        expect(page.locator("[name=quote]")).not_to_have_value("")
        page.keyboard.press("c")
        page.keyboard.type("errs")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#decided:has-text('1 of 12')")
        page.keyboard.press("z")
        page.wait_for_selector(".item pre mark")
        assert page.inner_text(".item pre mark") == coding.notes[0].quote
    (note,) = coding.notes
    assert note.quote.startswith("Error: <script>")
    assert note.step == 5
