"""The comparison in a real browser: pick two models, walk the cells, open a rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from bench_reports import serve_in_thread
from browser_watch import Watch
from explorer_files import make_results, write_report

from groundfault.workbench.opened_report import OpenedReport

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def test_two_models_are_picked_and_their_cells_walked(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    bench = OpenedReport.of_report(write_report(tmp_path, make_results(), id="id", model="model"))
    bench.apart = False
    assert bench.report is not None
    table = pl.read_parquet(tmp_path / "answers.parquet")
    wide = table.pivot("model", index=["id", "lang"], values="error").sort("id")
    # the first is beta, the second alpha
    a, b, german = wide["beta"] == 1, wide["alpha"] == 1, wide["lang"] == "de"
    cells = [a & b, ~a & b, a & ~b, ~a & ~b]
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        page.keyboard.press("C")
        expect(page.locator("h1")).to_have_text("beta against alpha")
        page.get_by_label("First").select_option("beta")
        page.get_by_label("Second").select_option("alpha")
        expect(page.locator("h1")).to_have_text("alpha against beta")
        for place, cell in enumerate(cells):
            page.keyboard.press(str(place + 1))
            expect(page.locator(".cells [aria-current] strong")).to_have_text(str(cell.sum()))
            expect(page.locator(".pair")).to_have_count(min(50, int(cell.sum())))
            shown = page.locator(".pair .excerpt:first-child > p code").all_text_contents()
            assert sorted(shown) == wide["id"].filter(cell).to_list()[: len(shown)]
            inside = int((cell & german).sum())
            row = page.locator("tr", has=page.get_by_role("link", name="labelled", exact=True))
            expect(row).to_contain_text(f"{inside} of {german.sum()}")
            expect(row).to_contain_text(f"{cell.sum() - inside} of {(~german).sum()}")
        page.keyboard.press("n")
        expect(page.locator("#explorer > .pages")).to_contain_text(f"51–{cells[3].sum()}")
        page.keyboard.press("j")
        expect(page.locator("tr[data-item]").first).to_be_focused()
        name = page.locator("tr[data-item] a").first.inner_text()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text(name)
        page.go_back()
        expect(page.locator("#explorer > .pages")).to_contain_text("51–")
        for width in (400, 1300):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_answers_of_all_models_stand_side_by_side(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    bench = OpenedReport.of_report(write_report(tmp_path, make_results(), id="id", model="model"))
    bench.apart = False
    table = pl.read_parquet(tmp_path / "answers.parquet")
    german = table.filter(pl.col("lang") == "de")
    with serve_in_thread(bench) as address, Watch(browser, address) as page:
        page.goto(address)
        page.keyboard.press("C")
        page.get_by_role("link", name="labelled", exact=True).click()
        page.get_by_role("link", name="Models side by side").click()
        check_side_by_side(page, german)
        page.locator("select[data-key=m]").select_option("alpha")
        expect(page.locator(".chip")).to_contain_text("model = alpha")
        page.get_by_role("link", name="Fails inside").click()
        fails = german.filter((pl.col("model") == "alpha") & (pl.col("error") == 1)).height
        expect(page.locator("#explorer > .pages")).to_contain_text(f"of {fails}")
        page.locator("table.answers .outcome").first.click()
        expect(page.locator("table.answers tbody tr")).to_have_count(1)
        for width in (400, 1300):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def check_side_by_side(page: Page, table: pl.DataFrame) -> None:
    """Compare the answers on the page, a model a column, with those of the table."""
    page.locator("table.answers").wait_for()
    heads = page.locator("table.answers thead th").all_text_contents()[1:]
    rows = page.locator("table.answers tbody tr").all()
    assert len(rows) == min(50, table["id"].n_unique())
    keys = zip(table["id"], table["model"], strict=True)
    wrong = dict(zip(keys, table["error"], strict=True))
    for row in rows[:8]:
        cells = row.locator("td").all_inner_texts()
        number = int(cells[0].rsplit(" ", 1)[1])
        assert f"Is {number} " in row.locator("th").inner_text()
        for model, cell in zip(heads, cells, strict=True):
            outcome, answer = cell.split("\n", 1)
            assert answer.strip() == f"{model} says {number}"
            assert outcome == ("right", "wrong")[int(wrong[f"q{number:03}", model])]
