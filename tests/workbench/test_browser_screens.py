"""Looking, filtering, editing a rule and spending a holdout, in a real browser and by key."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from bench_reports import open_bench, serve_in_thread
from browser_watch import Watch

from groundfault.auditing.report import Report
from groundfault.base.holdout_events import TRIED
from groundfault.core.rules import Rule
from groundfault.render import words

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from groundfault.workbench.opened_report import OpenedReport

pytestmark = pytest.mark.browser

RULE = "lang = 'de' AND n_words >= 14"


@pytest.fixture
def bench(bench_report: Path, tmp_path: Path) -> OpenedReport:
    """A copy of the report, whose ledger each test may write to."""
    copytree(bench_report.parent, tmp_path, dirs_exist_ok=True)
    return replace(open_bench(tmp_path / "report"), evidence=tmp_path / "answers.csv")


@pytest.fixture
def home(bench: OpenedReport) -> Iterator[str]:
    with serve_in_thread(bench) as address:
        yield address


@pytest.fixture
def page(browser: Browser, home: str) -> Iterator[Page]:
    with Watch(browser, home) as page:
        page.goto(home)
        yield page


def test_from_a_mode_to_an_example_and_back_by_key(page: Page, bench: OpenedReport) -> None:
    from playwright.sync_api import expect

    assert bench.report is not None
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(bench.report.modes[0].meaning)
    for side in ("failing", "passing", "near"):
        expect(page.locator(f"#side-{side}")).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.keyboard.press("f")
    expect(page.locator(".tabs a[aria-current]")).to_contain_text("Fails inside")
    expect(page.locator(".sides > section")).to_have_count(1)
    first, second = page.locator(".excerpt > p code").all_inner_texts()[:2]
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(first)
    expect(page.locator(".steps")).to_contain_text("1 of")
    page.keyboard.press("j")
    expect(page.locator("h1")).to_contain_text(second)
    expect(page.locator(".steps")).to_contain_text("2 of")
    page.go_back()
    expect(page.locator("h1")).to_contain_text(first)
    page.go_back()
    page.go_back()
    expect(page.locator("h1")).to_contain_text(bench.report.modes[0].meaning)
    page.go_forward()
    expect(page.locator(".tabs a[aria-current]")).to_contain_text("Fails inside")


def test_lists_are_those_that_the_rule_holds_for(page: Page, bench: OpenedReport) -> None:
    from playwright.sync_api import expect

    page.goto(page.url.split("/#")[0].rstrip("/") + f"/examples?rule={RULE}&side=failing")
    page.get_by_role("button", name="Count").click()
    expect(page.locator(".tabs a[aria-current]")).to_contain_text("Fails inside")
    frame = bench.rows.frame
    inside = frame.filter(Rule.parse(f"({RULE}) AND error = 1").holds(frame))
    ids = page.locator(".excerpt > p code")
    assert sorted(ids.all_text_contents()) == inside["id"].to_list()
    expect(page.locator(".excerpt dd mark").first).to_be_visible()
    page.get_by_text("Filter by a column").click()
    page.get_by_label("Column").select_option(label="n_words")
    page.get_by_label("At least").fill("15")
    page.get_by_label("At most").fill("15")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".filters > .chip")).to_have_text('"n_words" = 15 ×')
    held = inside.filter(n_words=15)["id"].to_list()
    expect(page.locator("#side-failing .count")).to_have_text(f" {len(held)}")
    assert sorted(ids.all_text_contents()) == held
    page.keyboard.press("w")
    page.keyboard.type("n_words < 0")
    page.keyboard.press("Enter")
    expect(page.locator("#side-failing .count")).to_have_text(" 0")
    page.get_by_label("Drop the filter n_words < 0").click()
    page.get_by_label('Drop the filter "n_words" = 15').click()
    expect(page.locator("#side-failing .count")).to_have_text(f" {inside.height}")
    page.keyboard.press("/")
    page.keyboard.type("IT IS 1")
    page.keyboard.press("Enter")
    few = inside.filter(inside["answer"].str.contains("It is 1"))["id"].to_list()
    expect(page.locator("#side-failing .count")).to_have_text(f" {len(few)}")
    expect(page.locator(".excerpt mark", has_text="It is 1").first).to_be_visible()
    page.get_by_label("Order").select_option(label="n_words ↓")
    expect(page).to_have_url(re.compile("sort=-n_words"))
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
    order = dict(frame.select("id", "n_words").iter_rows())
    numbers = [order[id] for id in ids.all_text_contents()]
    assert numbers == sorted(numbers, reverse=True)
    assert sorted(ids.all_text_contents()) == few
    page.locator(".excerpt a").first.click()
    expect(page.locator(".text pre mark").first).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#side-failing .count")).to_have_text(f" {len(few)}")


def test_an_edited_rule_counts_what_the_audit_counts_and_is_recorded(
    page: Page, bench: OpenedReport
) -> None:
    from playwright.sync_api import expect

    assert bench.report is not None
    assert bench.ledger is not None
    finding = next(one for one in bench.report.findings if one.name == "german")
    page.keyboard.press("T")
    box = page.locator("textarea")
    for rule in ("lang =", RULE, finding.rule):
        page.keyboard.press("g")
        box.fill(rule)
        page.keyboard.press("Control+Enter")
        if rule == "lang =":
            expect(page.get_by_role("alert")).to_contain_text("not SQL")
        elif rule == RULE:
            expect(page.locator("#counts-head")).to_have_text("Exploratory: not a finding")
            expect(page.locator("#state")).to_contain_text("1 rule tried since needs fresh data")
    expect(page.locator(".counts")).to_contain_text(words.share(finding.discovery, "on"))
    expect(page.locator(".counts")).to_contain_text(words.share(finding.discovery, "off"))
    (event,) = bench.ledger.events(TRIED)
    assert event.body["rule"] == Rule.parse(RULE).sql


def test_a_holdout_is_spent_with_a_seal_and_a_reason(page: Page, bench: OpenedReport) -> None:
    from playwright.sync_api import expect

    assert bench.state is not None
    page.goto(f"{page.url.rstrip('/')}/rule")
    page.locator("textarea").fill(RULE)
    page.get_by_role("button", name="Count").click()
    page.get_by_role("link", name="Test it on the holdout").click()
    expect(page.get_by_role("checkbox")).to_be_checked()
    expect(page.locator("#chosen-head")).to_have_text("To be tested: 1 rule")
    page.get_by_role("checkbox").uncheck()
    page.get_by_role("button", name="Choose these rules").click()
    expect(page.locator("#chosen-head")).to_have_count(0)
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Choose these rules").click()
    expect(page.locator("section", has=page.locator("#chosen-head"))).to_contain_text(
        re.compile("[0-9a-f]{64}")
    )
    page.get_by_label("Reason to look again").fill("the rule is a new idea")
    seal = page.get_by_label(re.compile("plan's seal"))
    seal.fill(bench.state.seal[:8])
    page.get_by_role("button", name="Open the holdout").click()
    expect(page.locator("h2").first).to_have_text("Opened for 1 rule")
    expect(page.locator("#state")).to_contain_text("Opened 2×")
    ((folder, _),) = bench.spendings.items()
    report = Report.load(folder)
    assert report.ledger is not None
    assert report.ledger.reasons == ("the rule is a new idea",)
    page.get_by_role("link", name="Ledger").click()
    expect(page.locator(".checks")).to_contain_text("Chain passed")


def test_a_page_of_another_port_gets_no_secret_and_records_nothing(
    page: Page, home: str, bench: OpenedReport, tmp_path: Path
) -> None:
    """Another user of the machine serves a page at another port; cookies would go there, too."""
    from playwright.sync_api import expect

    seen: list[dict[str, str]] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(dict(self.headers))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<main>a page of somebody else</main>")

        def log_message(self, *_: object) -> None: ...

    assert bench.ledger is not None
    before = bench.ledger.head
    inside = home.split("/#")[0]
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        other = page.context.new_page()
        other.goto(f"http://127.0.0.1:{server.server_port}/")
        for path in ("/rule?rule=n_words=12", "/examples?where=n_words=13", "/static/client.js"):
            other.evaluate(
                "(url) => fetch(url, { mode: 'no-cors', credentials: 'include' }).catch(() => 0)",
                inside + path,
            )
            other.evaluate(
                "(url) => fetch(url, { method: 'POST', mode: 'no-cors' }).catch(() => 0)",
                inside + path,
            )
        # nor is a page of ours opened from there
        popup = other.evaluate_handle("(url) => window.open(url)", f"{inside}/rule?rule=n_words=12")
        popup.dispose()
        server.shutdown()
    secret = page.evaluate("secret")
    assert len(secret) > 20
    assert secret not in str(seen)
    assert not [head for head in seen if "Cookie" in head]
    assert page.context.cookies() == []
    assert bench.ledger.head == before
    # an address that somebody made asks first, and a further tab of ours knows the secret
    tab = page.context.new_page()
    tab.goto(f"{inside}/rule?rule=n_words=12")
    expect(tab.locator("h1")).to_have_text("Count this rule?")
    assert bench.ledger.head == before
    tab.get_by_role("button", name="Count").click()
    expect(tab.locator("#counts-head")).to_be_visible()
    (event,) = bench.ledger.events(TRIED)
    assert event.body["rule"] == '"n_words" = 12'


PATHS = (
    "/",
    "/findings",
    "/examples?mode=1",
    "/examples?rule=n_words>12&side=failing",
    "/examples?row=0",
)


@pytest.mark.parametrize("width", [400, 1280, 3840])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(
    browser: Browser, home: str, width: int, scheme: str
) -> None:
    from playwright.sync_api import expect

    size = {"width": width, "height": 900}
    with Watch(browser, home, viewport=size, color_scheme=scheme) as page:
        page.goto(home)
        for path in (*PATHS, "/rule", "/holdout", "/ledger", "/keys"):
            page.goto(home.split("/#")[0] + path)
            expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_what_a_screen_reader_needs_is_there(page: Page, home: str) -> None:
    """Names of all boxes and links, one main landmark, a language, headings in order."""
    from playwright.sync_api import expect

    check = """() => {
      const trouble = [];
      const name = (e) => (e.getAttribute('aria-label') || e.textContent || e.title || '').trim();
      for (const e of document.querySelectorAll('a, button, summary'))
        if (!name(e)) trouble.push(e.outerHTML);
      for (const e of document.querySelectorAll('input:not([type=hidden]), select, textarea'))
        if (!e.labels.length && !e.ariaLabel) trouble.push(e.outerHTML);
      if (document.querySelectorAll('main').length !== 1) trouble.push('main');
      if (document.querySelectorAll('h1').length !== 1) trouble.push('h1');
      if (!document.documentElement.lang) trouble.push('lang');
      const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
      if (new Set(ids).size !== ids.length) trouble.push('ids ' + ids);
      return trouble;
    }"""
    for path in (*PATHS, "/rule?rule=n_words>12", "/holdout", "/ledger", "/keys"):
        page.goto(home.split("/#")[0] + path)
        expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")
        assert page.evaluate(check) == [], path


def test_a_page_waits_for_the_scripts_that_fill_it(page: Page, home: str) -> None:
    from playwright.sync_api import expect

    page.route("**/static/served.js", lambda route: (time.sleep(0.7), route.continue_()))
    page.goto(home.split("/#")[0] + "/examples?row=0")
    expect(page.locator("#explorer")).not_to_be_empty()
