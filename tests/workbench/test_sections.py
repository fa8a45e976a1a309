"""Taxonomies and probe runs in the frame of the workbench: what their reports say, and no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench_reports import visit
from commands import run_program
from probe_runs import make_wrong_rows, write_runs
from small_taxonomy import taxonomy_of
from starlette.testclient import TestClient

from groundfault.errors import InputError
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.workbench.opened_report import (
    open_place,
    open_review,
    require_something,
)
from groundfault_lab.pages import taxonomy_page
from groundfault_lab.probes.summary import Summary
from groundfault_lab.taxonomy.words.labelling import read_folder

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("taxonomy")
    replace(taxonomy_of([["one", "two"], ["three", "four"]]), title=HOSTILE).save(place)
    return place


@pytest.fixture(scope="module")
def taxonomy_client(taxonomy: Path) -> TestClient:
    return visit(open_place(str(taxonomy), {}, {}, ledger=True))


def test_a_taxonomy_is_the_first_screen_and_has_the_sections_of_its_report(
    taxonomy: Path, taxonomy_client: TestClient
) -> None:
    home = taxonomy_client.get("/", follow_redirects=False)
    assert home.headers["location"] == "/taxonomy"
    html = taxonomy_client.get("/taxonomy").text
    page = taxonomy_page.make_page(*read_folder(taxonomy))
    for _, section in page.anchored:
        assert f">{section.title}</h2>" in html
    assert html.count("<svg") == 3
    assert HOSTILE not in html
    assert "&lt;img src=x" in html
    # a style sheet of its own is all that a page may have
    assert "style=" not in html
    assert "<style" not in html
    # there is nothing else to look at
    assert ">Rows<" not in html


def test_claims_about_held_out_models_are_named(
    taxonomy: Path, taxonomy_client: TestClient
) -> None:
    (taxonomy / "claims").mkdir()
    html = taxonomy_client.get("/taxonomy").text
    assert f"groundfault open {taxonomy / 'claims'}" in html


def test_runs_say_what_was_found_unless_a_review_is_blind(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", make_wrong_rows(3))
    reviewed = ReviewedRuns(runs)
    reviewed.seal()
    client = visit(open_review(runs))
    blind = client.get("/probes").text
    assert "The review is blind" in blind
    assert "vendor/secret-model-7b" not in blind
    assert "gp" not in blind.split("<main")[1].replace(str(runs), "")
    reviewed.unblind("ana", "it is finished")
    html = client.get("/probes").text
    assert "What is still open" in html
    assert "vendor/secret-model-7b" in html
    assert Summary.of(reviewed).control in html


def test_what_holds_nothing_to_look_at_says_what_could_be_opened(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "report.json").touch()
    with pytest.raises(InputError, match=r"open one of .*components"):
        require_something(tmp_path)
    (tmp_path / "components" / "report.json").unlink()
    ending = run_program("open", str(tmp_path), "--no-browser")
    assert ending.status == 2
    assert "holds no report, case, taxonomy or probe runs" in ending.errors
    (tmp_path / "answers.csv").touch()
    with pytest.raises(InputError, match="audit it first"):
        require_something(tmp_path / "answers.csv")
