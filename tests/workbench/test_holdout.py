"""Every tried rule is recorded, and the holdout opens by one form, with a seal and a reason."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from shutil import copytree

import pytest
from bench_reports import open_bench, visit
from starlette.testclient import TestClient

from groundfault.auditing.report import Report
from groundfault.auditing.verification import verify
from groundfault.base.holdout_events import OPENED, TRIED
from groundfault.base.ledger import Ledger
from groundfault.core.candidate import Candidate, Library
from groundfault.workbench.opened_report import OpenedReport

RULE = "n_words >= 14 AND lang = 'de'"
SQL = '"n_words" >= 14 AND "lang" = \'de\''


@pytest.fixture
def bench(bench_report: Path, tmp_path: Path) -> OpenedReport:
    """A copy of the report, whose ledger each test may write to."""
    copytree(bench_report.parent, tmp_path, dirs_exist_ok=True)
    return replace(open_bench(tmp_path / "report"), evidence=tmp_path / "answers.csv")


@pytest.fixture
def client(bench: OpenedReport) -> TestClient:
    return visit(bench)


def events(bench: OpenedReport, kind: str) -> list[dict[str, object]]:
    assert bench.ledger is not None
    return [dict(event.body) for event in bench.ledger.events(kind)]


def test_a_rule_is_recorded_once_and_a_rule_of_the_report_never(
    client: TestClient, bench: OpenedReport
) -> None:
    for path in ("/rule", "/examples"):
        client.get(path, params={"rule": "lang='de'"})
        client.get(path, params={"rule": RULE})
        client.get(path, params={"rule": "n_words>=14 and lang='de'"})
    client.get("/rule", params={"rule": "lang = nothing"})
    (event,) = events(bench, TRIED)
    assert event["rule"] == SQL
    assert event["via"] == "web"
    cell = bench.index.count(RULE)[""]
    assert event["counts"] == {"": [cell.on, cell.on_errors, cell.off, cell.off_errors]}
    page = client.get("/rule", params={"rule": RULE}).text
    assert "1 rule tried since needs fresh data" in page
    assert "Needs fresh data" in page
    assert "Needs fresh data" not in client.get("/rule", params={"rule": "lang = 'de'"}).text
    assert "Rule tried" in client.get("/ledger").text


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/rule", {"rule": RULE}),
        ("/examples", {"rule": RULE}),
        ("/examples", {"where": RULE}),
        ("/examples", {"rule": RULE, "row": "0"}),
    ],
)
def test_a_look_records_nothing_and_shows_no_count(
    client: TestClient, bench: OpenedReport, path: str, query: dict[str, str]
) -> None:
    answer = TestClient.get(client, path, params=query)
    assert "Count this rule?" in answer.text
    assert 'class="counts"' not in answer.text
    assert "fails" not in answer.text
    assert events(bench, TRIED) == []
    kind = {"content-type": "application/x-www-form-urlencoded"}
    counted = client.post(path, content=answer.url.query, headers=kind)
    assert str(counted.url) == str(answer.url)
    assert "Count this rule?" not in counted.text
    assert len(events(bench, TRIED)) == 1
    # then it is a page like all others
    assert "Count this rule?" not in TestClient.get(client, path, params=query).text


def test_a_try_that_another_page_sends_is_none(client: TestClient, bench: OpenedReport) -> None:
    for headers in ({"sec-fetch-site": "same-site"}, {"origin": "http://localhost:9999"}):
        assert client.post("/rule", data={"rule": RULE}, headers=headers).status_code == 403
    assert events(bench, TRIED) == []


def test_tried_rules_are_taken_along_as_a_library(client: TestClient, bench: OpenedReport) -> None:
    assert "no rule is selected" in client.get("/rule/tried.json").text
    client.get("/rule", params={"rule": RULE})
    assert "tried.json" in client.get("/rule").text
    (rule,) = Library.from_json(client.get("/rule/tried.json").text)
    assert (rule.rule, rule.source) == (SQL, "tried after an opening")
    # an audit of the same outcomes knows that it was read from them
    assert bench.report is not None
    assert rule.mined.startswith(bench.report.hashes.outcome[:16])


def test_numbers_are_verified_from_the_page(client: TestClient, bench: OpenedReport) -> None:
    assert "Computed again" not in client.get("/ledger").text
    page = client.post("/ledger/verify").text
    assert "Computed again: the report reproduces" in page
    assert "Recomputation passed" in page
    # verifying is no look at the outcomes
    assert len(events(bench, OPENED)) == 1


def test_a_ledger_of_several_reports_says_which_event_is_of_another(
    client: TestClient, bench: OpenedReport
) -> None:
    assert bench.ledger is not None
    assert "another report" not in client.get("/ledger").text
    look = bench.ledger.append(OPENED, {"outcome": "0" * 64, "rule": "janus"})
    bench.ledger.append("report_written", {"files": {"report.json": "0"}, "opening": look.hash})
    page = client.get("/ledger").text
    assert page.count("another report") == 2
    assert f"report.json, after event {look.seq}" in page


def test_the_hash_of_the_chosen_rules_stands_beside_the_form_that_opens(
    client: TestClient, bench: OpenedReport
) -> None:
    other = "n_words = 11"
    for rule in (RULE, other):
        client.get("/rule", params={"rule": rule})
    page = client.get("/holdout").text
    assert "Choose these rules" in page
    assert "Open the holdout" not in page
    # the link below the counts leads to the form for that rule
    path = re.findall(r'href="(/holdout\?[^"]+)"', client.get("/rule", params={"rule": RULE}).text)
    page = client.get(unescape(path[0])).text
    assert "To be tested: 1 rule<" in page
    assert Library.of([make_candidate(SQL)]).hash in page
    both = client.get("/holdout", params={"rule": [RULE, other]}).text
    library = Library.of([make_candidate(SQL), make_candidate('"n_words" = 11')])
    assert library.hash in both
    # what was typed and the rules outlast a seal that is another
    form = {"rule": [SQL, other], "seal": "00000000", "reason": "an idea"}
    page = client.post("/holdout", data=form).text
    assert library.hash in page
    assert 'value="an idea"' in page
    answer = client.get("/holdout", params={"rule": "lang = 'fr'"})
    assert answer.status_code == 400
    assert "was not tried here" in answer.text
    # a rule of the report has been judged
    assert "/holdout?" not in client.get("/rule", params={"rule": "lang = 'de'"}).text


def make_candidate(rule: str) -> Candidate:
    return Candidate(rule, rule, missing="off")


def spend(client: TestClient, bench: OpenedReport, **form: str) -> str:
    assert bench.state is not None
    fields = {"rule": SQL, "seal": bench.state.seal[:8], "reason": "a new idea"} | form
    return client.post("/holdout", data=fields).text


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"seal": "00000000"}, "first 8 characters"),
        ({"seal": ""}, "first 8 characters"),
        ({"reason": " "}, "give the reason"),
        ({"rule": "\"lang\" = 'en'"}, "was not tried here"),
        ({"rule": "lang ="}, "not SQL"),
    ],
)
def test_the_holdout_stays_closed_without_seal_reason_or_rule(
    client: TestClient, bench: OpenedReport, form: dict[str, str], message: str
) -> None:
    client.get("/rule", params={"rule": RULE})
    assert message in spend(client, bench, **form)
    assert len(events(bench, OPENED)) == 1
    assert (
        "no rule is selected"
        in client.post(
            "/holdout",
            data={"seal": bench.state.seal[:8], "reason": "x"},  # type: ignore[union-attr]
        ).text
    )


def test_the_holdout_opens_as_the_command_opens_it(client: TestClient, bench: OpenedReport) -> None:
    client.get("/rule", params={"rule": RULE})
    client.get("/rule", params={"rule": "n_words = 11"})
    page = spend(client, bench)
    assert "Opened for 1 rule" in page
    assert "Opened 2×" in page
    assert "0 rules tried since" not in page
    assert events(bench, OPENED)[-1]["reason"] == "a new idea"
    assert [event.get("via") for event in events(bench, OPENED)] == [None, "web"]
    assert "in the browser, a new idea" in client.get("/ledger").text
    ((folder, _),) = bench.spendings.items()
    report = Report.load(folder)
    (finding,) = report.findings
    assert finding.rule == SQL
    assert finding.source == "tried after an opening"
    assert report.ledger is not None
    assert report.ledger.tried == 2
    assert "2 rules were tried before it; reason given: a new idea" in report.ledger.sentence
    assert str(folder) in page
    assert Library.of([make_candidate(SQL)]).hash == report.hashes.library
    assert report.hashes.library in page
    assert "the same rules were tested before" in spend(client, bench)
    checks = verify(folder, evidence=bench.evidence, ledger=bench.ledger).checks
    assert {check.status for check in checks} == {"passed"}


def test_without_a_ledger_nothing_is_recorded_and_nothing_opens(bench: OpenedReport) -> None:
    client = visit(replace(bench, ledger=None))
    page = client.get("/rule", params={"rule": RULE}).text
    assert "No ledger" in page
    assert "Exploratory" in page
    assert "Not without a ledger" in client.get("/holdout").text
    assert "without a ledger" in client.post("/holdout", data={"rule": SQL}).text


def test_another_ledger_does_not_make_the_outcomes_fresh(
    bench: OpenedReport, tmp_path: Path
) -> None:
    other = Ledger(tmp_path / "other.db")
    client = visit(replace(bench, ledger=other))
    assert "Opened, not in this ledger" in client.get("/").text
    assert not Path(other.place).exists()
    page = client.get("/rule", params={"rule": RULE}).text
    assert "1 rule tried since needs fresh data" in page
    assert "lacks event" in unescape(client.get("/ledger").text)


def test_an_altered_ledger_shows(client: TestClient, bench: OpenedReport) -> None:
    import sqlite3

    client.get("/rule", params={"rule": RULE})
    assert "Chain passed" in client.get("/ledger").text
    with sqlite3.connect(bench.place.parent / "ledger.db") as connection:
        connection.execute("UPDATE groundfault_ledger SET actor = 'nobody' WHERE seq = 2")
    page = client.get("/ledger").text
    assert "Chain failed" in page
    assert "event 2" in page
