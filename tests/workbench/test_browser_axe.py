"""Every screen by axe-core in a real browser: nothing serious or critical, in either light."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from bench_reports import make_answers, open_bench, serve_in_thread, write_bench_report
from browser_watch import Watch
from explorer_files import make_results, write_report
from probe_runs import make_wrong_rows, write_runs
from review_desks import make_items, open_review as open_items
from small_taxonomy import taxonomy_of

import groundfault
from groundfault import Case, Evidence
from groundfault.auditing.report import Report
from groundfault.coding import Coding
from groundfault.exports import export
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.review import Decision, Item
from groundfault.sequential import Pool, SequentialAudit
from groundfault.workbench.desks import LiveDesk, ReviewDesk
from groundfault.workbench.opened_report import OpenedReport, open_case, open_review, open_taxonomy

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

WIDTHS = (400, 1280)
RULE = "lang = 'de' AND n_words >= 14"


@pytest.fixture(scope="module")
def axe() -> Any:
    reason = "needs axe-playwright-python: browser-test"
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason).Axe()


def open_report(place: Path) -> OpenedReport:
    return open_bench(write_bench_report(place))


def open_models(place: Path) -> OpenedReport:
    bench = OpenedReport.of_report(write_report(place, make_results(), id="id", model="model"))
    bench.apart = False
    return bench


def open_since(place: Path) -> OpenedReport:
    bench = open_report(place)
    bench.baseline = Report.load(bench.place)
    return bench


def open_desk(place: Path) -> OpenedReport:
    return open_items(place / "reviews.db", "ana", make_items(3))


def decide(item: Item) -> Decision:
    return Decision(
        reviewer="ana",
        item=item.id,
        prompt_valid="yes",
        extraction_valid="yes",
        model_wrong="yes",
    )


def open_blind(place: Path) -> OpenedReport:
    runs = write_runs(place / "runs", make_wrong_rows(3))
    ReviewedRuns(runs).seal()
    return open_review(runs)


def open_runs(place: Path) -> OpenedReport:
    runs = write_runs(place / "runs", make_wrong_rows(8))
    reviewed = ReviewedRuns(runs)
    reviewed.store.add([decide(item) for item in reviewed.seal().items[:3]])
    reviewed.unblind("ana", "it is finished")
    return open_review(runs)


def open_clusters(place: Path) -> OpenedReport:
    taxonomy_of([["one", "two"], ["three", "four"]]).save(place / "taxonomy")
    return open_taxonomy(place / "taxonomy")


def open_sealed_case(place: Path) -> OpenedReport:
    evidence = Evidence.from_table(make_answers(), id="id", outcome="error")
    return open_case(Case.create(place / "case", evidence).folder)


def open_audited_case(place: Path) -> OpenedReport:
    bench = open_sealed_case(place)
    assert bench.case is not None
    bench.case.audit()
    return open_case(bench.case.folder)


def open_live(place: Path) -> OpenedReport:
    pool = Pool.from_arrays([f"case {n}" for n in range(20)], {"lang": ["de", "en"] * 10})
    audit = SequentialAudit(pool, threshold=0.8, policy="stratified", ledger=place / "ledger.db")
    return OpenedReport(place, live=LiveDesk(audit, audit))


def open_codes(place: Path) -> OpenedReport:
    """Open a coding with notes, codes and suggestions."""
    chat = [{"role": "user", "content": "Book it."}, {"role": "assistant", "content": "Sorry."}]
    runs = {"task": range(8), "error": 1, "chat": [json.dumps(chat)] * 8}
    evidence = Evidence.from_table(pl.DataFrame(runs), id="task", outcome="error")
    coding = Coding(evidence, place / "codes.db")
    session = coding.session("ana")
    for number in range(6):
        note = "pays before it looks" if number % 2 else "searches again and again"
        session.decide(note=note, codes=["loops"] if number < 3 else [], quote="Sorry")
    coding.define("loops", "It searches again.")
    coding.suggest(coder="ana")
    desk = ReviewDesk(lambda: coding.session("ana"), coding)
    return OpenedReport(place, review=desk)


SCREENS: dict[str, tuple[Callable[[Path], OpenedReport], tuple[str, ...]]] = {
    "report": (
        open_report,
        (
            "/",
            "/findings",
            "/examples?mode=1",
            f"/examples?rule={RULE}",
            "/examples?finding=german&side=failing",
            "/examples?where=nonsense",
            "/examples?row=0&finding=german",
            f"/rule?rule={RULE}",
            "/rule?rule=lang+=",
            f"/holdout?rule={RULE}",
            "/ledger",
            "/keys",
            "/nowhere",
        ),
    ),
    "two models": (open_models, ("/", "/compare", "/examples?mode=1", "/examples?mode=1&beside=1")),
    "two reports": (open_since, ("/compare?since=1",)),
    "review": (open_desk, ("/review",)),
    "codes": (open_codes, ("/review", "/codes")),
    "progress": (open_blind, ("/review/progress", "/probes")),
    "probes": (open_runs, ("/review/progress", "/probes")),
    "taxonomy": (open_clusters, ("/taxonomy",)),
    "live audit": (open_live, ("/live",)),
    "sealed case": (open_sealed_case, ("/case",)),
    "audited case": (open_audited_case, ("/case",)),
}


def require_none(axe: Any, page: Page) -> None:
    """Nothing serious or critical, narrow and wide, in the light and in the dark."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            # what depends on the colours, and in the light all the rest
            only = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}
            violations = axe.run(page, options=only).response["violations"]
            bad = [
                (one["id"], [node["html"][:200] for node in one["nodes"]])
                for one in violations
                if one["impact"] in ("serious", "critical")
            ]
            assert not bad, (page.url, width, scheme, bad)


@pytest.mark.parametrize("name", SCREENS)
def test_nothing_serious_is_wrong_with_a_screen(
    browser: Browser, axe: Any, tmp_path: Path, name: str
) -> None:
    from playwright.sync_api import expect

    opening, paths = SCREENS[name]
    with ExitStack() as stack:
        address = stack.enter_context(serve_in_thread(opening(tmp_path)))
        # pages of errors are answered with an error, of which a browser complains
        page = browser.new_context().new_page()
        stack.callback(page.context.close)
        page.goto(address)
        for path in paths:
            page.goto(address.split("/#")[0] + path)
            expect(page.locator("main")).not_to_have_attribute("aria-busy", "true", timeout=60_000)
            require_none(axe, page)


@pytest.mark.parametrize("kind", ["one", "many", "change", "nothing", "perfect"])
def test_nothing_serious_is_wrong_with_a_page_and_its_brief(
    browser: Browser, axe: Any, tmp_path: Path, kind: str
) -> None:
    table = make_answers()
    constant = {"nothing": pl.col("error").reverse().shuffle(1), "perfect": pl.lit(0)}
    table = table.with_columns(error=constant.get(kind, pl.col("error")))
    model = "model" if kind in ("many", "change") else None
    (make_results() if model else table).write_parquet(tmp_path / "t.parquet")
    evidence = Evidence.from_table(tmp_path / "t.parquet", id="id", model=model, outcome="error")
    compare = ("alpha", "beta") if kind == "change" else None
    report = groundfault.audit(evidence, compare=compare, ledger=False)
    report.write(tmp_path / "report")
    export(tmp_path / "report", "brief", tmp_path / "brief.html")
    page = browser.new_context().new_page()
    for path in (tmp_path / "report" / "report.html", tmp_path / "brief.html"):
        for tab in ("", "#why", "#verify"):
            page.goto(path.as_uri() + tab)
            require_none(axe, page)
    page.context.close()


@pytest.fixture
def file(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    report = write_report(tmp_path, make_results(), id="id", model="model")
    export(report, "html-explorer", tmp_path / "report.html")
    address = (tmp_path / "report.html").as_uri()
    with Watch(browser, address) as page:
        page.goto(address)
        yield page


def test_nothing_serious_is_wrong_with_the_one_file(file: Page, axe: Any) -> None:
    from playwright.sync_api import expect

    # of two models: modes, examples, their comparison, the record; there once the file is read
    screens = file.locator("header a")
    expect(screens).to_have_count(4)
    for place in range(4):
        screens.nth(place).click()
        # set together with the screen itself; until then the last one is looked at again
        expect(screens.nth(place)).to_have_attribute("aria-current", "page")
        require_none(axe, file)
