"""A blind review in a real browser: by keys alone, quick, and blind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest
from bench_reports import serve_in_thread
from browser_watch import Watch
from probe_runs import make_wrong_rows, write_runs
from review_desks import open_review as open_items

from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.review import Item
from groundfault.workbench.opened_report import open_review

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

ITEMS = 50
WAYS = ("yyy", "yyn", "n", "yne", "ynf", "yuu", "113")
VERDICTS = ("model_error", "no_error", "invalid_prompt", "extraction_artifact", "format_artifact")
VERDICTS += ("unsure", "unsure")

# how long after a key the texts of the next item are on the screen
STOPWATCH = """() => {
  window.times = [];
  const read = () => document.querySelector("form .texts")?.textContent;
  let [began, before] = [0, read()];
  addEventListener("keydown", () => { began = performance.now(); }, true);
  new MutationObserver(() => {
    const now = read();
    if (now && now !== before) {
      before = now;
      requestAnimationFrame(() => window.times.push(performance.now() - began));
    }
  }).observe(document.getElementById("stage"), { childList: true, subtree: true });
}"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs", make_wrong_rows(ITEMS), unit="row")


@pytest.fixture
def review(browser: Browser, runs: Path) -> Iterator[Page]:
    with (
        serve_in_thread(open_review(runs, "ana")) as address,
        Watch(browser, address) as page,
    ):
        page.goto(address)
        yield page


def response_of(page: Page) -> str:
    """The last line of the response that is shown, which no other item has."""
    return page.locator("form .texts dd").nth(2).inner_text().splitlines()[-1]


def press(page: Page, keys: str) -> None:
    """Press keys, and wait until what they decided is stored."""
    from playwright.sync_api import expect

    for key in keys:
        page.keyboard.press(key)
    expect(page.locator("#stage")).not_to_have_attribute("aria-busy", "true")


def test_fifty_items_by_keyboard(review: Page, runs: Path) -> None:
    from playwright.sync_api import expect

    review.evaluate(STOPWATCH)
    seen = set()
    for number in range(ITEMS):
        seen.add(response_of(review))
        press(review, WAYS[number % len(WAYS)])
        expect(review.locator("#decided")).to_have_text(f"{number + 1} of {ITEMS} decided")
    expect(review.locator("form h2")).to_have_text("All are decided.")
    assert len(seen) == ITEMS
    assert review.url.endswith("/review")
    times = review.evaluate("window.times")
    print(f"next item after {median(times):.0f} ms (median), at most {max(times):.0f} ms")
    assert len(times) == ITEMS - 1
    assert median(times) < 50
    decisions = ReviewedRuns(runs).decisions
    expected = [VERDICTS[number % len(WAYS)] for number in range(ITEMS)]
    assert [d.verdict for d in decisions] == expected
    assert len({d.item for d in decisions}) == ITEMS


def test_undo_notes_and_skips(review: Page, runs: Path) -> None:
    from playwright.sync_api import expect

    keys = review.keyboard
    first = response_of(review)
    keys.press("o")
    keys.type("yes, no: keys are text here")
    keys.press("Escape")
    press(review, "yyzne")  # the second answer is taken back, and given anew
    expect(review.locator("#decided")).to_have_text(f"1 of {ITEMS} decided")
    for key in "szz":
        press(review, key)
    expect(review.locator("form .texts dd").nth(2)).to_contain_text(first)
    expect(review.locator("form textarea")).to_have_value("yes, no: keys are text here\n")
    expect(review.locator("form .before")).to_have_count(3)
    press(review, "yyy")
    expect(review.locator("form .texts dd").nth(2)).not_to_contain_text(first)
    # what was decided stands, and where one was is where one is
    here = response_of(review)
    review.reload()
    assert response_of(review) == here
    decisions = ReviewedRuns(runs).decisions
    assert [d.verdict for d in decisions] == ["extraction_artifact", "model_error"]
    assert {d.note for d in decisions} == {"yes, no: keys are text here"}
    assert len({d.item for d in decisions}) == 1


def test_what_is_not_stored_is_said_and_stays_on_the_page(browser: Browser, runs: Path) -> None:
    from playwright.sync_api import expect

    with serve_in_thread(open_review(runs, "ana")) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        here = response_of(page)
        context.set_offline(True)
        press(page, "yyn")
        expect(page.locator("#alerts")).to_contain_text("Not stored. The server does not answer")
        assert response_of(page) == here
        context.set_offline(False)
        page.keyboard.press("Enter")
        expect(page.locator("#decided")).to_have_text(f"1 of {ITEMS} decided")
        expect(page.locator("#alerts")).to_be_empty()
        context.close()
    assert [d.verdict for d in ReviewedRuns(runs).decisions] == ["no_error"]


@pytest.mark.parametrize("where", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_two_reviewers_at_once_see_nothing_of_each_other(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest, where: str
) -> None:
    from playwright.sync_api import expect

    runs = write_runs(tmp_path / "two", make_wrong_rows(6), unit="row", reviewers=2)
    store = None if where == "sqlite" else request.getfixturevalue("postgres")
    with (
        serve_in_thread(open_review(runs, "ana", store=store)) as one,
        serve_in_thread(open_review(runs, "bernadette", store=store)) as other,
        Watch(browser, one) as ana,
        Watch(browser, other) as ben,
    ):
        ana.goto(one)
        ben.goto(other)
        for number in range(6):
            press(ana, "yyy")
            press(ben, "yyn" if number % 2 else "n")
            assert "bernadette" not in ana.content()
        for page in (ana, ben):
            expect(page.locator("form h2")).to_have_text("All are decided.")
    decisions = ReviewedRuns(runs, store).decisions
    assert sorted(d.reviewer for d in decisions) == ["ana"] * 6 + ["bernadette"] * 6


HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "</textarea><script>alert(1)</script>",
    "</template><script>alert(1)</script>",
    "<a href='javascript:alert(1)'>x</a>",
    '"><input autofocus onfocus=alert(1)>',
    "<style>*{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<base href=https://example.org>",
    "<form action=https://example.org><button>x",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "{{ 7 * 7 }}{% raw %}",
    "<div hx-get=https://example.org hx-trigger=load></div>",
    "<div hx-on:click=alert(1)></div>",
    "\x1b[31mred\x1b]8;;https://example.org\x07link",
    "\u202e\u2066 right to left",
    "=HYPERLINK('https://example.org')",
    "\ud800 half a pair",
)


def test_hostile_texts_are_text_in_every_place(browser: Browser, tmp_path: Path) -> None:
    items = tuple(Item(f"t{n}", text, text, text, text, 1, text) for n, text in enumerate(HOSTILE))
    with (
        serve_in_thread(open_items(tmp_path / "r.db", "<b>ana", items)) as address,
        Watch(browser, address) as page,
    ):
        page.goto(address)
        shown = []
        for _ in items:
            shown.append(page.locator("form .texts dd").first.inner_text())
            page.locator("form textarea").fill(shown[-1])
            page.keyboard.press("Escape")
            press(page, "yyy")
        press(page, "z")
        assert page.locator("form textarea").input_value().rstrip("\n") == shown[-1]
        assert page.locator("b, iframe, img, form form, [onload], [hx-on\\:click]").count() == 0
    visible = {text for text in HOSTILE if text.isprintable()}
    assert visible <= set(shown)
    assert len(set(shown)) == len(HOSTILE)
