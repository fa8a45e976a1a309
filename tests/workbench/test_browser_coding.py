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
    desk = ReviewDesk(lambda: coding.session("ana"), lambda: coding.codes)
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
