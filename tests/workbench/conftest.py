"""A report to look at, and a browser to look with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench_reports import open_bench, serve_in_thread, visit, write_bench_report
from browser_watch import Watch

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from starlette.testclient import TestClient

    from groundfault.workbench.opened_report import OpenedReport

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="session")
def bench_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report that tests share; who records in its ledger takes one of its own."""
    return write_bench_report(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def bench(bench_report: Path) -> OpenedReport:
    """A workbench on it."""
    return open_bench(bench_report)


@pytest.fixture(scope="module")
def client(bench: OpenedReport) -> TestClient:
    """A visitor who has shown the token, without a browser."""
    return visit(bench)


# of a module, though a start takes a second: while Playwright runs, so does its event loop in this
# thread, and no later test could call asyncio.run
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium: Debian's, or where that is not there the one Playwright installed."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: browser-test")
    settings: dict[str, Any] = {"executable_path": CHROMIUM} if CHROMIUM.exists() else {}
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(args=["--no-sandbox"], **settings)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, bench: OpenedReport) -> Iterator[Page]:
    """A page of the workbench, let in; any complaint of the browser or foreign request fails."""
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        yield page
