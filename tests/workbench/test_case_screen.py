"""A case in the workbench: sealed before its audit, and after it where it stands, with examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench_reports import make_answers, serve_in_thread, visit
from browser_watch import Watch
from commands import run_program
from explorer_files import Explorer
from markupsafe import escape

from groundfault import Case, Evidence
from groundfault.base.holdout_events import TRIED
from groundfault.base.ledger import Ledger
from groundfault.case.folder import LEDGER
from groundfault.case.verification import verify_case
from groundfault.workbench.opened_report import open_case, open_place

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A case before its audit."""
    evidence = Evidence.from_table(make_answers(), id="id", outcome="error")
    return Case.create(tmp_path_factory.mktemp("bench") / "case", evidence)


@pytest.fixture(scope="module")
def audited(case: Case) -> Case:
    """The same after it."""
    case.audit()
    return case


def test_before_the_audit_it_is_sealed_and_no_outcome_is_there(case: Case) -> None:
    bench = open_place(str(case.folder), {}, {}, ledger=True)
    client = visit(bench)
    assert client.get("/", follow_redirects=False).headers["location"] == "/case"
    html = client.get("/case").text
    assert "<strong>Sealed</strong>" in html
    assert f"plan {case.settings.seal[:8]}" in html
    assert "no outcome was looked at" in html
    assert f"<code>groundfault audit --case {case.folder}</code> costs no label" in html
    assert f"{case.settings.fresh_units} fresh examples kept apart" in html
    assert ">lang, n_words, prompt, target<" in html
    # an option of a command is named with its command
    assert "groundfault case new takes options" in html
    for path in ("/data/report", "/rule", "/examples?mode=1", "/holdout", "/ledger"):
        assert client.get(path).status_code == 404, path
    # looking leaves no trace: the ledger begins with the first step
    assert not (case.folder / LEDGER).exists()


def test_an_audit_made_meanwhile_is_pointed_to_and_no_longer_sealed(case: Case) -> None:
    client = visit(open_case(case.folder))
    case.audit()
    html = client.get("/case").text
    assert f"groundfault open {case.folder}" in html
    assert "<strong>Opened 1×</strong>" in html


def test_after_the_audit_it_has_the_screens_of_its_report(audited: Case) -> None:
    report = audited.report
    assert report is not None
    bench = replace(open_case(audited.folder), apart=False)
    client = visit(bench)
    html = client.get("/case").text
    assert "Sealed" not in html
    assert "<strong>Audited</strong>" in html
    assert f"{audited.settings.fresh_units} fresh examples kept apart" in html
    assert html.count(str(escape(report.modes[0].rule))) == 1
    # simulated once while nothing new is known
    assert bench.forecast(audited) is bench.forecast(Case(audited.folder)) is not None
    assert "none confirmed on fresh labels yet" in html
    assert "<p>In the audit " in html
    assert report.modes[0].meaning in client.get("/").text
    client.get("/examples", params={"mode": 1})
    fresh = set(audited.fresh_evidence.frame["id"])
    assert not fresh & set(bench.rows.frame["id"])
    # a search is no rule that was tried
    assert Explorer(client).mask(words=f"Question {int(min(fresh)[1:])}:") == []


def test_a_rule_tried_goes_into_its_ledger_which_still_adds_up(audited: Case) -> None:
    client = visit(replace(open_case(audited.folder), apart=False))
    assert client.get("/rule", params={"rule": "n_words >= 15"}).status_code == 200
    (event,) = Ledger(audited.folder / LEDGER).events(TRIED)
    assert event.body["rule"] == '"n_words" >= 15'
    assert verify_case(audited.folder).reproduces
    silent = visit(replace(open_case(audited.folder, record=False), apart=False))
    silent.get("/rule", params={"rule": "n_words >= 16"})
    assert len(Ledger(audited.folder / LEDGER).events(TRIED)) == 1


def test_what_a_case_has_itself_is_not_named_again(case: Case) -> None:
    ending = run_program("open", str(case.folder), "--ledger", "x.db", "--no-browser")
    assert (ending.status, "name its folder alone" in ending.errors) == (2, True)


@pytest.mark.browser
def test_a_case_is_looked_at_before_and_after_its_audit(browser: Browser, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    evidence = Evidence.from_table(make_answers(), id="id", outcome="error")
    case = Case.create(tmp_path / "case", evidence)
    with serve_in_thread(open_case(case.folder)) as home, Watch(browser, home) as page:
        page.goto(home)
        expect(page.locator("#state strong")).to_have_text("Sealed")
        expect(page.locator("h1")).to_have_text("No audit yet")
        expect(page.get_by_role("link", name="Examples", exact=True)).to_have_count(0)
    case.audit()
    bench = replace(open_case(case.folder), apart=False)
    with serve_in_thread(bench) as home, Watch(browser, home) as page:
        page.goto(home)
        page.get_by_role("link", name="Case").click()
        expect(page.locator("main")).to_contain_text("groundfault label confirm --case")
        page.get_by_role("link", name="Examples", exact=True).click()
        rows = len(case.audit_evidence)
        expect(page.locator("main")).to_contain_text(f"all {rows} examples")
