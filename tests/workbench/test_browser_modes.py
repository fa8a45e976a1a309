"""The first screen in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from groundfault.workbench.opened_report import OpenedReport

pytestmark = pytest.mark.browser


def test_every_mode_is_listed_and_keys_walk_the_list(page: Page, bench: OpenedReport) -> None:
    from playwright.sync_api import expect

    assert bench.report is not None
    heads = page.locator("[id^=mode-] h3")
    expect(heads).to_have_count(len(bench.report.modes))
    expect(page.locator("#state")).to_contain_text("Opened 1×")
    page.keyboard.press("j")
    expect(page.locator(".modes li").first).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("h1")).to_have_text("Keys")
    page.go_back()
    expect(page.locator("h1")).to_contain_text("failure mode")
