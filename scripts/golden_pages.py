"""Write the golden pages: a report of each kind as Markdown, and as a terminal shows it.

    python scripts/golden_pages.py           # writes tests/fixtures/golden_pages
    python scripts/golden_pages.py --check

`tests/render/test_golden_pages.py` compares every run with the files. Versions of software are
replaced, so that a page changes only with its words or its numbers.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import structs
from rich.console import Console

import groundfault
from groundfault import Case, Evidence, Plan, Report
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.render import audit_page, case_page
from groundfault.render.markdown import markdown
from groundfault.render.page import Page
from groundfault.render.terminal import show
from groundfault.sequential import Certificate, Confirmation
from groundfault_lab.pages import probe_page, taxonomy_page
from groundfault_lab.taxonomy.words.labelling import read_folder

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "fixtures"
GOLDEN = FIXTURES / "golden_pages"
STORED = FIXTURES / "v0_1_0"
ROWS = 600  # of each drawn table: enough for two modes, and an audit takes a second
WIDTH = 100  # of the terminal, in characters


def main() -> int:
    """Write the files, or compare with them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and exit with 1 on change")
    options = parser.parse_args()
    pages = {name: text for make in PAGES for name, text in make()}
    if options.check:
        changes = [name for name, text in pages.items() if text != (GOLDEN / name).read_text()]
        print("\n".join(f"{name}: the page changed" for name in changes) or "unchanged")
        return int(bool(changes))
    GOLDEN.mkdir(exist_ok=True)
    for name, text in pages.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
    return 0


def draw_table(strength: float) -> pl.DataFrame:
    """Draw answers of two models that fail more often in German and, the second, in long texts."""
    rng = np.random.default_rng(22)
    language = rng.choice(["de", "en", "fr", "it"], ROWS)
    length = rng.integers(5, 60, ROWS)
    weekday = rng.choice(["mon", "tue", "wed"], ROWS)
    words = [" ".join(rng.choice(["add", "two", "numbers", "not", "ever"], 6)) for _ in range(ROWS)]
    shared = {"id": range(ROWS), "lang": language, "words": length, "day": weekday, "prompt": words}
    old = rng.random(ROWS) < 0.1 + strength * (language == "de")
    new = rng.random(ROWS) < 0.1 + strength * (language == "de") + strength * (length > 45)
    status = np.where(np.arange(ROWS) % 50 == 0, "refused", "scored")
    answers = [
        pl.DataFrame({**shared, "model": name, "error": error, "status": status})
        for name, error in (("old", old), ("new", new))
    ]
    unscored = pl.when(pl.col("status") == "scored").then(pl.col("error"))
    return pl.concat(answers).with_columns(error=unscored)


def read_evidence(table: pl.DataFrame) -> Evidence:
    """Give the columns of a drawn table their roles."""
    return Evidence.from_table(table, id="id", model="model", outcome="error", status="status")


def mask_versions(report: Report) -> Report:
    """Replace the versions of software in a report."""
    manifest = structs.replace(report.manifest, python="3", numpy="2", polars="1")
    return structs.replace(report, manifest=manifest, groundfault_version="0")


def print_page(page: Page) -> str:
    """Print a page as a terminal shows it."""
    out = io.StringIO()
    show(page, Console(file=out, width=WIDTH, force_terminal=False))
    return out.getvalue()


def set_audit(name: str, report: Report) -> Iterator[tuple[str, str]]:
    """Set the report of an audit, and its first screen."""
    masked = mask_versions(report)
    yield f"{name}.md", masked.to_markdown()
    yield f"{name}.txt", print_page(audit_page.make_summary(masked))


def make_audits() -> Iterator[tuple[str, str]]:
    """Audit one model, where modes are and where nothing is, and compare two."""
    planted, null = read_evidence(draw_table(0.5)), read_evidence(draw_table(0.0))
    yield from set_audit("audit", groundfault.audit(planted.select_model("new"), ledger=None))
    yield from set_audit("nothing", groundfault.audit(null.select_model("new"), ledger=None))
    split = groundfault.audit(
        planted.select_model("new"), Plan(judge="janus"), ledger=None, modes=False, robustness=5
    )
    yield from set_audit("holdout", split)
    yield from set_audit(
        "comparison", groundfault.audit(planted, compare=("old", "new"), ledger=None)
    )


def make_others() -> Iterator[tuple[str, str]]:
    """Read what version 0.1.0 stored of the other kinds."""
    yield (
        "taxonomy.md",
        markdown(taxonomy_page.make_page(*read_folder(STORED / "taxonomy" / "fit"))),
    )
    certificate = Certificate.load(STORED / "sequential" / "certificate.json")
    yield "sequential.md", certificate.to_markdown()
    confirmation = Confirmation.load(STORED / "sequential" / "confirm.json")
    yield "confirmation.md", confirmation.to_markdown()


def make_probes() -> Iterator[tuple[str, str]]:
    """Read reviewed runs of prompts; reading may write, so this reads a copy."""
    with tempfile.TemporaryDirectory() as folder:
        runs = shutil.copytree(STORED / "probe" / "runs", Path(folder, "runs"))
        reviewed = ReviewedRuns(runs)
        page = probe_page.make_reviewed_page(reviewed, "runs")
    yield "probes.md", markdown(page)


def make_case() -> Iterator[tuple[str, str]]:
    """Audit one half of a table, and confirm on labels of the other."""
    table = draw_table(0.7).filter(pl.col("model") == "old").drop("model", "status", "prompt")
    evidence = Evidence.from_table(table.drop_nulls().head(200), id="id", outcome="error")
    with tempfile.TemporaryDirectory() as folder:
        case = Case.create(Path(folder) / "case", evidence, seed=1)
        case.audit()
        case.confirm().run(case.look_up)
        case.write_confirmation()
        summary = case.summarize()
        status = markdown(case_page.make_status_page(case)).replace(folder, "")
    yield "case.md", summary.to_markdown()
    yield "case_status.md", status


PAGES: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (
    make_audits,
    make_others,
    make_probes,
    make_case,
)


if __name__ == "__main__":
    sys.exit(main())
