"""Take pictures of terminal, pages and workbench, to be looked at, and those of the documentation.

    python scripts/take_pictures.py pictures/          # three widths, in the light and in the dark
    python scripts/take_pictures.py docs/_static --docs # the documentation's own

Needs Playwright (extra ``browser-test``) and Chromium; $CHROMIUM names another one. Data are the
demo's, and those of ``first_tasks.py`` and of the tests.
"""

from __future__ import annotations

import argparse
import html
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import first_tasks

import groundfault

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "workbench")]

WIDTHS = (400, 1400, 2560)
KINDS = {
    "one": "demo --out one",
    "many": "audit five.csv --id id --model-column model --outcome error --out many",
    "change": "compare old.csv new.csv --id id --outcome error --out change",
    "null": "audit null.csv --outcome error --out null",
    "perfect": "audit perfect.csv --outcome error --out perfect",
}
"""Folder of each kind of report, and the command that makes it."""


def main() -> int:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("place", type=Path, help="where pictures go")
    parser.add_argument("--docs", action="store_true", help="those of the documentation alone")
    parser.add_argument("--work", type=Path, help="empty folder to work in, whose path is shown")
    parser.add_argument("--only", default="", help="pictures whose name begins with this")
    options = parser.parse_args()
    options.place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        camera = Camera(browser, options.place, options.only)
        place = options.work or Path(folder)
        if options.docs:
            take_documentation(camera, place)
        else:
            take_pages(camera, place)
            take_screens(camera, place)
        browser.close()
    return 0


class Camera:
    """Takes pictures of addresses in one browser."""

    def __init__(self, browser: Any, place: Path, only: str) -> None:
        self.browser, self.place, self.only = browser, place, only

    @contextmanager
    def open(self, address: str) -> Iterator[Any]:
        """Yield a page at an address, once it has its rows: a token opens one tab."""
        context = self.browser.new_context()
        page = context.new_page()
        page.goto(address)
        settle(page)
        yield page
        context.close()

    def take_all(self, name: str, page: Any, address: str) -> None:
        """Take the first two screens of an address at every width, in both schemes."""
        if not name.startswith(self.only):
            return
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 1600 if width > WIDTHS[0] else 2400})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                settle(page)
                path = f"{name}-{width}-{scheme}.png".replace(" ", "-")
                page.screenshot(path=self.place / path)

    def take(self, name: str, page: Any, height: int = 760) -> None:
        """Take one picture of a page as it stands, as the documentation shows it."""
        page.set_viewport_size({"width": 1100, "height": height})
        settle(page)
        page.screenshot(path=self.place / f"{name}.png")


def settle(page: Any) -> None:
    """Wait until a screen has its rows."""
    from playwright.sync_api import expect

    if page.locator("main").count():
        expect(page.locator("main").first).not_to_have_attribute(
            "aria-busy", "true", timeout=60_000
        )
    page.wait_for_load_state("networkidle")


def take_pages(camera: Camera, place: Path) -> None:
    """Take the terminal, the page and the brief of each kind of report."""
    first_tasks.make_files(place)
    for name, command in KINDS.items():
        kinds = [f"{kind}-{name}" for kind in ("terminal", "page", "brief")]
        if not any(kind.startswith(camera.only) for kind in kinds):
            continue
        shown = place / f"{name}-terminal.html"
        shown.write_text(
            "<meta charset=utf-8><body style='background:#111;color:#eee'>"
            "<pre style='font:14px/1.4 monospace'>" + html.escape(run(place, command)) + "</pre>",
            encoding="utf-8",
        )
        run(place, f"export {name} --to brief --out {name}-brief.html")
        paths = (shown, place / name / "report.html", place / f"{name}-brief.html")
        for kind, path in zip(kinds, paths, strict=True):
            with camera.open(path.as_uri()) as page:
                camera.take_all(kind, page, path.as_uri())


def run(place: Path, command: str) -> str:
    """Run a command of groundfault, and return it with all that it prints."""
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "GROUNDFAULT_LEDGER": "off"}
    line = [sys.executable, "-m", "groundfault", *command.split()]
    done = subprocess.run(
        line, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    return f"$ groundfault {command}\n{done.stdout}"


def take_screens(camera: Camera, place: Path) -> None:
    """Take every screen of the workbench that the tests of accessibility open."""
    from test_browser_axe import SCREENS

    for name, (opening, paths) in SCREENS.items():
        with open_screen(camera, opening, place / name) as (page, address):
            for number, path in enumerate(paths):
                camera.take_all(f"screen-{name}-{number}", page, address + path)


@contextmanager
def open_screen(
    camera: Camera, opening: Callable[[Path], Any], place: Path
) -> Iterator[tuple[Any, str]]:
    """Serve what an opening makes in a folder of its own; yield a page, and its address."""
    from bench_reports import serve_in_thread

    place.mkdir(parents=True)
    with serve_in_thread(opening(place)) as address, camera.open(address) as page:
        yield page, address.split("/#")[0]


SHOTS = {
    "report": (
        ("workbench-modes", "/", 760),
        ("workbench-examples", "/examples?mode=1", 760),
        ("workbench-rule", "/rule?rule=digits+>=+2", 620),
        ("workbench-holdout", "/holdout?rule=\"digits\"+>=+2", 800),
    ),
    "review": (("review-in-the-browser", "/review", 640),),
    "live audit": (("label-live", "/live", 760),),
}  # fmt: skip
"""Pictures of the documentation by what is opened: name, path and height."""


def take_documentation(camera: Camera, place: Path) -> None:
    """Take the pictures that pages of the documentation show, of the demo where it has them."""
    from test_browser_axe import SCREENS

    os.environ["LOGNAME"], platform.node = "ana", lambda: "lab"
    openings = {name: opening for name, (opening, _) in SCREENS.items()} | DEMOS
    for name, shots in SHOTS.items():
        with open_screen(camera, openings[name], place / name) as (page, address):
            for picture, path, height in shots:
                page.goto(address + path)
                settle(page)
                # a rule that is new is counted first
                if (count := page.get_by_role("button", name="Count", exact=True)).count():
                    count.click()
                camera.take(picture, page, height)
    run(place, "demo --out demo")
    run(place, "export demo --to html-explorer --out file.html")
    with camera.open((place / "file.html").as_uri()) as page:
        page.locator("header a").nth(1).click()
        camera.take("one-file", page)


def open_demo(place: Path) -> Any:
    """Open a report on the demo's answers, half of them held out."""
    from bench_reports import open_bench

    evidence, ledger = read_demo(place), place / "ledger.db"
    groundfault.audit(evidence, groundfault.Plan(judge="janus"), ledger=ledger).write(
        place / "report"
    )
    return open_bench(place / "report")


def open_demo_labels(place: Path) -> Any:
    """Open a live audit of the demo's answers after 40 labels."""
    from groundfault.sequential import Pool, SequentialAudit
    from groundfault.workbench.desks import LiveDesk
    from groundfault.workbench.opened_report import OpenedReport

    table = read_demo(place).frame
    columns = ["id", "language", "prompt", "answer", "target"]
    pool = Pool.from_table(table.select(columns), id="id", groups=["language"])
    audit = SequentialAudit(pool, threshold=0.6, policy="stratified", seed=2, ledger=place / "l.db")
    right = dict(table.select("id", "correct").iter_rows())
    while audit.labelled < 40 and (query := audit.ask()) is not None:
        audit.tell(query, float(right[query.id]))
    audit.ask()
    return OpenedReport(place, live=LiveDesk(audit, audit))


def read_demo(place: Path) -> groundfault.Evidence:
    """Return the demo's answers."""
    from groundfault.cli.demo import read_table

    (place / "answers.parquet").write_bytes(read_table())
    return groundfault.Evidence.from_table(
        place / "answers.parquet",
        id="id", outcome="correct", positive_is_good=True, ignore=["answer"],
    )  # fmt: skip


DEMOS = {"report": open_demo, "live audit": open_demo_labels}
"""Screens that show the demo in place of what the tests make."""


if __name__ == "__main__":
    sys.exit(main())
