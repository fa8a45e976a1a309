"""The live audit over HTTP: what changes is sent, a wrong label is refused in its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench_reports import visit
from starlette.testclient import TestClient

from groundfault.sequential import Certificate, Pool, SequentialAudit
from groundfault.workbench.desks import LiveDesk
from groundfault.workbench.opened_report import OpenedReport, open_record

PART = {"x-groundfault-part": "1"}
HOSTILE = "<script>alert(1)</script>\u202e\x1b[31m"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def client(ledger: Path) -> TestClient:
    groups = {"lang": [f"{HOSTILE}{n % 2}" for n in range(20)]}
    pool = Pool.from_arrays([f"{HOSTILE}{n}" for n in range(20)], groups)
    audit = SequentialAudit(pool, threshold=0.8, policy="stratified", seed=1, ledger=ledger)
    client = visit(OpenedReport(ledger, live=LiveDesk(audit, audit)))
    assert "not drawn yet" in client.get("/live").text
    assert audit.open is None
    client.post("/live/stage")
    return client


def test_a_page_asks_for_what_changed_alone(client: TestClient) -> None:
    version = re.search(r"version=([\d.]+)", client.get("/live").text)
    assert version
    same = client.post("/live/stage", params={"version": version[1]})
    assert (same.status_code, same.text) == (204, "")
    after = client.post("/live/label", data={"step": "1", "score": "fail"}, headers=PART).text
    assert '<dd id="labelled">1</dd>' in after
    assert client.post("/live/stage", params={"version": version[1]}).text == after


def test_a_figure_is_drawn_once_a_label(client: TestClient) -> None:
    desk = client.app.state.bench.live  # type: ignore[attr-defined]
    first = desk.look()
    assert desk.look().figure is first.figure
    client.post("/live/label", data={"step": "1", "score": "fail"}, headers=PART)
    then = desk.look()
    assert then.figure is not first.figure
    assert "1 label" in then.figure.alt


def test_a_label_that_is_none_or_late_is_said_above_the_case(client: TestClient) -> None:
    for data, words in (
        ({"step": "1"}, "Not recorded: no answer is chosen"),
        ({"step": "1", "number": "2"}, "the share that passed"),
        ({"step": "no"}, "had its score already"),
    ):
        answer = client.post("/live/label", data=data, headers=PART)
        assert words in answer.text
        assert '<dd id="labelled">0</dd>' in answer.text
        assert 'name="step" value="1"' in answer.text


def test_the_certificate_is_that_of_the_record(client: TestClient, ledger: Path) -> None:
    client.post("/live/label", data={"step": "1", "score": "pass"})
    there = Certificate.from_dict(client.get("/live/certificate.json").json())
    assert there == SequentialAudit.from_ledger(ledger).certificate()


def test_who_watches_cannot_label(client: TestClient, ledger: Path) -> None:
    client.get("/live")
    watching = visit(open_record(str(ledger)))
    html = watching.get("/live").text
    assert "Next: case" in html
    assert "<form" not in html
    answer = watching.post("/live/label", data={"step": "1", "score": "pass"}, headers=PART)
    assert "watches the audit" in answer.text
    assert SequentialAudit.from_ledger(ledger).labelled == 0


def test_hostile_names_are_text(client: TestClient, ledger: Path) -> None:
    client.get("/live")
    for html in (client.get("/live").text, visit(open_record(str(ledger))).get("/live").text):
        assert "&lt;script&gt;alert(1)" in html
        for raw in ("<script>alert", "\u202e", "\x1b"):
            assert raw not in html
