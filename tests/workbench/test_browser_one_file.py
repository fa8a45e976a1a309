"""The one file in a real browser: its lists, its keys, its addresses; and nothing of data runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from browser_watch import Watch
from explorer_files import HOSTILE, ExplorerFile, make_hostile, make_results, write_report

from groundfault.core.rules import Rule
from groundfault.exports import export

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of two models."""
    home = tmp_path_factory.mktemp("file")
    export(write_report(home, make_results(), id="id", model="model"), "html-explorer", home / "f")
    return (home / "f").rename(home / "report.html")


@pytest.fixture
def page(browser: Browser, path: Path) -> Iterator[Page]:
    with Watch(browser, path.as_uri()) as page:
        go(page, path)
        yield page


def go(page: Page, path: Path, state: str = "") -> None:
    """Open a file anew and wait until it shows a state."""
    from playwright.sync_api import expect

    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#{state}")
    expect(page.locator("main")).not_to_have_attribute("aria-busy", "true")


def find_rule(file: ExplorerFile, name: str) -> int:
    return next(i for i, rule in enumerate(file.report["rules"]) if rule["name"] == name)


def read_ids(page: Page, side: str) -> list[str]:
    section = page.locator(f"section[aria-labelledby=side-{side}]")
    return section.locator(".excerpt > p code").all_text_contents()


def test_modes_lead_to_their_examples_and_back(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    file = ExplorerFile(path)
    expect(page.locator("h1")).to_have_text("answers.parquet")
    modes = [rule for rule in file.report["rules"] if rule["kind"] == "mode"]
    assert modes
    # of several models, one table has the rules
    links = page.locator("table a")
    rules = {mode["sql"]: mode["name"].partition(". ")[2] for mode in reversed(modes)}
    assert len(rules) > 1
    expect(links).to_have_count(len(rules))
    for name in rules.values():
        expect(links.filter(has_text=name)).to_have_count(1)
    links.first.click()
    expect(page.locator("h2.head")).to_have_text(modes[0]["name"])
    expect(page.locator("main")).to_contain_text(modes[0]["sentence"])
    page.go_back()
    expect(page.locator("#answer-head")).to_be_visible()
    page.go_forward()
    expect(page.locator("h2.head")).to_have_text(modes[0]["name"])


def test_lists_are_what_the_rule_holds_for(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    file = ExplorerFile(path)
    place = find_rule(file, "labelled · alpha")
    table = pl.read_parquet(path.parent / "answers.parquet").filter(model="alpha").sort("id")
    inside = Rule.parse(file.report["rules"][place]["sql"]).holds(table)
    wrong = table["error"] == 1
    sides = {"failing": inside & wrong, "passing": inside & ~wrong, "near": ~inside}
    for side, mask in sides.items():
        go(page, path, f"rule={place}&side={side}")
        rows = table["id"].filter(mask).to_list()
        expect(page.locator(f"#side-{side} .count")).to_have_text(f" {len(rows)}")
        shown = read_ids(page, side)
        if len(rows) > 50:
            page.keyboard.press("n")
            expect(page.locator(".pages")).to_contain_text(f"51–{len(rows)} of {len(rows)}")
            shown += read_ids(page, side)
        assert sorted(shown) == rows


def test_search_filters_and_their_addresses(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    file = ExplorerFile(path)
    every = len(file.report["rules"]) - 1
    go(page, path, f"rule={every}&side=failing")
    page.keyboard.press("/")
    page.keyboard.type("NOT EVEN")
    expect(page).to_have_url(re.compile(r"words=NOT\+EVEN"))
    table = pl.read_parquet(path.parent / "answers.parquet").filter(error=1)
    found = table.filter(pl.col("prompt").str.contains("not even"))
    expect(page.locator("#side-failing .count")).to_have_text(f" {found.height}")
    expect(page.locator("#words")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_text("Filter by a column").click()
    page.get_by_label("Column").select_option(label="size")
    page.get_by_label("At least").fill("3")
    page.get_by_role("button", name="Filter").click()
    found = found.filter(pl.col("size") >= 3)
    expect(page.locator("#side-failing .count")).to_have_text(f" {found.height}")
    page.get_by_text("Filter by a column").click()
    page.get_by_label("Column").select_option(label="lang")
    page.locator(".values .chip", has_text="de").click()
    found = found.filter(lang="de")
    expect(page.locator("#side-failing .count")).to_have_text(f" {found.height}")
    # the address has all of it
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#side-failing .count")).to_have_text(f" {found.height}")
    page.get_by_label("Drop the filter lang de").click()
    expect(page.locator(".filters > .chip")).to_have_count(1)
    # an address that somebody broke shows what it can
    go(page, path, f"rule={every}&filter=[nonsense&filter=[%22none%22,1]&row=99999&side=x")
    expect(page.locator(".sides > section")).to_have_count(3)


def test_keys_walk_the_lists(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    file = ExplorerFile(path)
    page.keyboard.press("j")
    expect(page.locator("tr[data-item]").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h2.head")).to_have_text(file.report["rules"][0]["name"])
    page.keyboard.press("]")
    expect(page.locator("h2.head")).to_have_text(file.report["rules"][1]["name"])
    page.keyboard.press("[")
    expect(page.locator("h2.head")).to_have_text(file.report["rules"][0]["name"])
    for side in ("failing", "passing", "near"):
        page.keyboard.press("f")
        expect(page.locator(f"#side-{side}")).to_be_visible()
        expect(page.locator(".sides > section")).to_have_count(1)
    page.keyboard.press("f")
    expect(page.locator(".sides > section")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = read_ids(page, "failing")[1]
    expect(page.locator(".excerpt").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h2.head")).to_have_text(second)
    page.keyboard.press("k")
    expect(page.locator("h2.head")).to_have_text(read_first(file))
    page.keyboard.press("u")
    expect(page.locator(".sides > section")).to_have_count(3)
    page.keyboard.press("?")
    expect(page.locator("h2.head")).to_have_text("Keys")
    page.keyboard.press("m")
    expect(page.locator("#answer-head")).to_be_visible()


def test_a_key_before_the_next_screen_is_there_is_for_that_screen(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    file = ExplorerFile(path)
    go(page, path, "rule=1")
    # the second key comes before the page could act on the first
    press = "for (const key of '[ff') document.body.dispatchEvent("
    page.evaluate(f"() => {{ {press} new KeyboardEvent('keydown', {{key, bubbles: true}})) }}")
    expect(page.locator("#side-passing")).to_be_visible()
    expect(page.locator(".sides > section")).to_have_count(1)
    expect(page.locator("h2.head")).to_have_text(file.report["rules"][0]["name"])


def read_first(file: ExplorerFile) -> str:
    rule = file.report["rules"][0]
    failing = set(file.sides(0)["failing"])
    return str(file.columns["id"][next(row for row in rule["first"] if row in failing)])


def test_two_models_are_compared(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    page.keyboard.press("c")
    table = pl.read_parquet(path.parent / "answers.parquet")
    wide = table.pivot("model", index=["id", "lang"], values="error")
    a, b = wide["alpha"] == 1, wide["beta"] == 1
    cells = [a & b, ~a & b, a & ~b, ~a & ~b]
    for place, cell in enumerate(cells):
        expect(page.locator(f"[data-cell='{place}'] strong")).to_have_text(str(cell.sum()))
    german = wide["lang"] == "de"
    only = int((cells[1] & german).sum())
    row = page.locator("tr", has=page.locator("a", has_text="labelled"))
    expect(row.first).to_contain_text(f"{only} of {german.sum()}")
    page.locator("[data-cell='2']").click()
    expect(page.locator(".pair")).to_have_count(min(50, int(cells[2].sum())))
    ids = page.locator(".pair .excerpt:first-child > p code").all_text_contents()
    assert sorted(ids) == wide["id"].filter(cells[2]).sort().to_list()[: len(ids)]
    page.get_by_label("first").select_option(label="beta")
    page.get_by_label("second").select_option(label="alpha")
    expect(page.locator("[data-cell='1'] strong")).to_have_text(str(cells[2].sum()))


def test_marks_landmarks_and_names(page: Page, path: Path) -> None:
    from playwright.sync_api import expect

    file = ExplorerFile(path)
    # the page is told the places of what each rule marks
    for name, words in (("negated · beta", "not"), ("not even · beta", "not even")):
        place = find_rule(file, name)
        assert f"spans-{place}" in file.blocks
        go(page, path, f"rule={place}&side=failing")
        marks = page.locator(".excerpt dd mark").all_text_contents()
        assert marks == [words] * page.locator(".excerpt").count()
        assert len(marks) > 5
    for role in ("banner", "main", "contentinfo"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    bare = page.evaluate(
        "[...document.querySelectorAll('a, button, input, select')]"
        ".filter((e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).length"
    )
    assert bare == 0
    for width in (400, 1300, 3840):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_no_hostile_text_runs_or_loads(browser: Browser, tmp_path: Path) -> None:

    table = make_hostile()
    out = tmp_path / "hostile.html"
    export(write_report(tmp_path, table, id=table.columns[0]), "html-explorer", out)
    file = ExplorerFile(out)
    assert len(HOSTILE) >= 30
    # whatever asks anybody for anything, complains or opens a dialog fails on exit
    with Watch(browser, out.as_uri()) as page:
        screens = ["", "record=1", "keys=1"]
        for place in range(len(file.report["rules"])):
            screens += [f"rule={place}&side={side}" for side in ("failing", "passing", "near")]
        screens += [f"rule=0&row={row}" for row in range(len(HOSTILE))]
        screens += [f"rule=0&words={HOSTILE[0]}", f'rule=0&filter=["size",1]&words={HOSTILE[3]}']
        for screen in screens:
            go(page, out, screen)
            assert page.evaluate("window.HIT") is None
            planted = page.locator("main :is(script, img, svg, iframe, object, link, meta, base)")
            assert planted.count() == 0
        assert "HIT" in page.locator("main").inner_text()


def test_the_policy_would_stop_a_mistake_of_ours(browser: Browser, path: Path) -> None:
    from playwright.sync_api import Error

    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    with pytest.raises(Error, match="requires 'TrustedHTML'"):
        page.evaluate("document.body.innerHTML = '<b>x</b>'")
    violated = page.evaluate(
        "new Promise((done) => {"
        " addEventListener('securitypolicyviolation', (event) => done(event.violatedDirective));"
        " fetch('http://example.invalid/').catch(() => {}); })"
    )
    assert violated == "connect-src"
    context.close()


def test_a_frame_in_a_notebook_shows_the_report_and_runs_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    from groundfault import Report

    table = make_hostile()
    report = Report.load(write_report(tmp_path, table, id=table.columns[0]))
    with Watch(browser, "about:") as page:
        page.set_content(f"<p>a cell</p>{report._repr_html_()}")
        frame = page.frame_locator("iframe")
        expect(frame.locator(".verdict").first).to_be_visible()
        expect(frame.locator("h3").first).to_contain_text(HOSTILE[2])
        assert page.evaluate("window.HIT") is None
        # neither could a script, were there one
        assert page.frames[1].evaluate("window.origin") == "null"
