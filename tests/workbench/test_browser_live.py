"""A live audit in a real browser, its server killed in the middle: the command's certificate."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench_reports import serve_in_thread
from browser_watch import Watch
from killable_server import MODULES, KillableServer
from nursery import Nursery

from groundfault.sequential import Certificate, verify_certificate
from groundfault.workbench.opened_report import open_record

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(os.name == "nt", reason="needs fork and kill -9"),
]

RULE = ["pool.csv", "--id", "id", "--groups", "lang", "--threshold", "0.8", "--seed", "3"]
RULE += ["--policy", "stratified", "--alpha", "0.1", "--burn-in", "10"]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    nursery = Nursery(MODULES)
    yield nursery
    nursery.stop()


@pytest.fixture
def server(nursery: Nursery, tmp_path: Path) -> Iterator[KillableServer]:
    rows = [f"case-{n},{('de', 'fr', 'ja')[n % 3]},{HOSTILE} {n},{n % 3 < 2:d}" for n in range(90)]
    (tmp_path / "pool.csv").write_text("\n".join(["id,lang,prompt,score", *rows]) + "\n")
    words = ["label", "run", *RULE, "--label", "browser", "--ledger", "ledger.db"]
    server = KillableServer(nursery, words, tmp_path)
    yield server
    server.kill()


def label(page: Page) -> None:
    """Label the case that is shown, as its own language says."""
    from playwright.sync_api import expect

    shown = page.locator(".questions dd").nth(1).inner_text()
    labelled = int(page.locator("#labelled").inner_text())
    page.keyboard.press("n" if shown == "ja" else "y")
    page.keyboard.press("Enter")
    expect(page.locator("#labelled")).to_have_text(str(labelled + 1))


def has_ended(page: Page) -> bool:
    return page.get_by_text("The audit has ended").count() > 0


def test_a_live_audit_to_its_verdict_with_its_server_killed(
    browser: Browser, server: KillableServer, tmp_path: Path
) -> None:
    for _ in range(3):
        address = server.start()
        with Watch(browser, address) as page:
            page.goto(address)
            assert page.locator("figure svg path").count() > 0
            for _ in range(4):
                if not has_ended(page):
                    label(page)
            heads = page.locator(".questions dt").all_inner_texts()
            assert has_ended(page) or heads == ["id", "lang", "prompt"]
        server.kill()
    address = server.start()
    with Watch(browser, address) as page:
        page.goto(address)
        while not has_ended(page):
            label(page)
        assert "Failure mode found" in page.locator(".verdict").inner_text()
        with page.expect_download() as download:
            page.get_by_role("link", name="Certificate").click()
        download.value.save_as(tmp_path / "browser.json")
    there = Certificate.load(tmp_path / "browser.json")
    assert verify_certificate(there, ledger=tmp_path / "ledger.db").reproduces
    assert there.labelled > 12
    compare_with_command(there, tmp_path)


def test_a_label_that_nobody_took_is_said(browser: Browser, server: KillableServer) -> None:
    from playwright.sync_api import expect

    address = server.start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("no answer is chosen")
    server.kill()
    page.keyboard.press("y")
    page.keyboard.press("Enter")
    alert = page.locator("#alerts [role=alert]")
    expect(alert).to_contain_text("The server does not answer")
    expect(alert).to_be_in_viewport()
    context.close()


def compare_with_command(there: Certificate, folder: Path) -> None:
    """The same audit with the same labels on the command line has the same certificate."""
    from click.testing import CliRunner

    from groundfault.cli.main import cli

    words = [*RULE, "--label", "file", "--ledger", str(folder / "other.db")]
    words[0] = str(folder / "pool.csv")
    run = CliRunner().invoke(cli, ["label", "run", *words, "--json", "-"])
    certificates = json.loads(run.stdout), there.to_dict()
    for certificate in certificates:
        certificate["ledger"] = certificate["pool"]["sources"] = None
    assert certificates[0] == certificates[1]


def test_a_page_that_watches_follows_the_ledger(
    browser: Browser, server: KillableServer, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    address = server.start()
    with (
        Watch(browser, address) as page,
        serve_in_thread(open_record(str(tmp_path / "ledger.db"))) as there,
        Watch(browser, there) as watching,
    ):
        page.goto(address)
        watching.goto(there)
        expect(watching.get_by_text("drawn from")).to_be_visible()
        before = watching.locator("figure svg").inner_html()
        label(page)
        expect(watching.locator("#labelled")).to_have_text("1")
        assert watching.locator("figure svg").inner_html() != before
        assert watching.locator("form").count() == 0
