"""The comparison in a real browser: pick two models, walk the cells, open a rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench_reports import serve_in_thread
from browser_watch import Watch
from explorer_files import make_results, write_report

from groundfault.workbench.opened_report import OpenedReport
from groundfault.workbench.screens.rows import compare_models

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


def test_two_models_are_picked_and_their_cells_walked(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    bench = OpenedReport.of_report(write_report(tmp_path, make_results(), id="id", model="model"))
    bench.apart = False
    assert bench.report is not None
    found = compare_models(bench.index, bench.report, "beta", "alpha")
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        page.keyboard.press("C")
        expect(page.locator("h1")).to_have_text("beta against alpha")
        page.get_by_label("First").select_option("beta")
        page.get_by_label("Second").select_option("alpha")
        expect(page.locator("h1")).to_have_text("alpha against beta")
        for place, cell in enumerate(found.cells):
            page.keyboard.press(str(place + 1))
            expect(page.locator(".cells [aria-current] strong")).to_have_text(str(len(cell)))
            expect(page.locator(".pair")).to_have_count(min(20, len(cell)))
        page.wait_for_load_state()
        page.keyboard.press("n")
        expect(page.locator(".pager")).to_contain_text("21–40")
        page.wait_for_load_state()
        page.keyboard.press("j")
        expect(page.locator("tr[data-item]").first).to_be_focused()
        page.keyboard.press("Enter")
        rules = compare_models(bench.index, bench.report, "beta", "alpha", 3).rules
        expect(page.locator("h1")).to_contain_text(rules[0].name)
        page.go_back()
        expect(page.locator(".pager")).to_contain_text("21–40")
        for width in (400, 1300):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
