"""Two runs of a task side by side: steps folded, the first that went wrong open; nothing runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from bench_reports import serve_in_thread, visit
from browser_watch import Watch

import groundfault
from groundfault import Evidence
from groundfault.render.transcript_page import list_steps
from groundfault.transcripts.steps import tabulate_steps
from groundfault.workbench.opened_report import OpenedReport

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>alert(1)</script>\x1b[2J<img src=x onerror=alert(2)>"


def open_runs(place: Path, steps: int = 3) -> OpenedReport:
    """A workbench on a report of 40 tasks with four runs each; the first failing one errs."""
    rng = np.random.default_rng(0)
    rows = []
    for task in range(40):
        for trial in range(4):
            failed = bool(rng.random() < 0.5)
            messages: list[dict[str, Any]] = [{"role": "user", "content": HOSTILE}]
            for number in range(steps if task == 0 else 3):
                call = {"id": HOSTILE, "function": {"name": HOSTILE, "arguments": HOSTILE}}
                text = f"Error: {HOSTILE}" if failed and number == 1 else HOSTILE
                messages += [
                    {"role": "assistant", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": HOSTILE, "content": text},
                ]
            rows.append((f"t{task}", trial, int(failed), json.dumps(messages)))
    names = ["task", "trial", "error", "messages"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(place / "runs.parquet")
    evidence = Evidence.from_table(
        place / "runs.parquet", id="task", repeat="trial", outcome="error"
    )
    groundfault.audit(evidence, ledger=False).write(place / "report")
    return replace(OpenedReport.of_report(place / "report", ledger=False), apart=False)


def test_both_runs_are_shown_and_only_the_failing_step_is_open(tmp_path: Path) -> None:
    client = visit(open_runs(tmp_path))
    html = client.get("/runs").text
    assert html.count("<details") == 14
    assert html.count("<details data-item open>") == 1
    assert "error (first)" in html.partition("<details data-item open>")[2][:900]
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "\x1b" not in html
    assert "A passing run" in html
    # the later ones of equal calls are signs of a behaviour
    assert html.count("<mark>repeats a call</mark>") == 4
    assert client.get("/runs", params={"id": "t7"}).status_code == 200
    gone = client.get("/runs", params={"id": "<b>"})
    assert gone.status_code == 400
    assert "no steps of an example" in gone.text
    assert "<b>" not in gone.text


def test_the_words_that_a_sign_was_read_from_are_marked() -> None:
    chat = [
        {"role": "user", "content": "Book it."},
        {"role": "assistant", "content": "I'm SORRY <b>, and my mistake: it is done."},
    ]
    steps = tabulate_steps([(0, chat)], texts=True)
    (_, line) = list_steps(steps)
    assert line.signs == "apologises, claims success"
    assert [part for part, is_sign in line.parts if is_sign] == ["SORRY", "my mistake", "is done"]
    assert "".join(part for part, _ in line.parts) == chat[1]["content"]


def test_ten_thousand_steps_are_one_page(tmp_path: Path) -> None:
    html = visit(open_runs(tmp_path, 5_000)).get("/runs", params={"id": "t0"}).text
    assert html.count("<details data-item") > 10_000


@pytest.mark.browser
def test_steps_are_walked_and_unfolded_by_keys(tmp_path: Path, browser: Browser) -> None:
    with serve_in_thread(open_runs(tmp_path)) as address, Watch(browser, address) as page:
        page.goto(address)
        page.keyboard.press("U")
        page.wait_for_selector(".runs")
        assert page.locator("details[open]").count() == 1
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        assert page.locator("details[open]").count() == 2
        page.keyboard.press("k")
        page.keyboard.press("i")
        page.keyboard.type("t7")
        page.keyboard.press("Control+a")
        page.keyboard.type("t9")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:has-text('t9')")
        page.screenshot(path=str(tmp_path / "runs.png"), full_page=True)
