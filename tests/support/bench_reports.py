"""Reports to open in a workbench, and a workbench that serves them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import uvicorn
from starlette.testclient import TestClient

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.workbench.app import make_app
from groundfault.workbench.auth import ENTRY, SECRET, Access
from groundfault.workbench.connections import bound_connections
from groundfault.workbench.opened_report import OpenedReport

COUNT = 200


def make_answers(count: int = COUNT) -> pl.DataFrame:
    """Answers that are mostly wrong where the prompt is German and long."""
    rows = range(count)
    hard = [i % 2 == 0 and i % 7 > 2 for i in rows]
    return pl.DataFrame(
        {
            "id": [f"e{i:03}" for i in rows],
            "lang": ["de" if i % 2 == 0 else "en" for i in rows],
            "n_words": [10 + i % 7 for i in rows],
            "prompt": [f"Question {i}: what is {i} times {i + 1}?\nThink first." for i in rows],
            "answer": [f"It is {i}." for i in rows],
            "target": [str(i * (i + 1)) for i in rows],
            "error": [int(hard[i] if i % 11 else not hard[i]) for i in rows],
        }
    )


def write_bench_report(place: Path, table: pl.DataFrame | None = None) -> Path:
    """An audit of a table, its ledger beside it; where the report is."""
    (make_answers() if table is None else table).write_csv(place / "answers.csv")
    evidence = Evidence.from_table(place / "answers.csv", id="id", outcome="error")
    candidates = [Candidate("german", "lang = 'de'"), Candidate("long", "n_words > 12")]
    ledger = place / "ledger.db"
    report = groundfault.audit(evidence, Plan(judge="janus"), candidates, ledger=ledger)
    report.write(place / "report")
    return place / "report"


def open_bench(report: Path) -> OpenedReport:
    """A workbench on a report that `write_bench_report` wrote, all of it in this process."""
    bench = OpenedReport.of_report(report, ledger=report.parent / "ledger.db")
    return replace(bench, apart=False)


class Visitor(TestClient):
    """Who asks as the script of the page does: with the secret, and for a new rule by a POST."""

    def get(self, url: Any, **settings: Any) -> httpx.Response:  # type: ignore[override]
        """Look; where the page asks whether a new rule is to be counted, count it."""
        answer = super().get(url, **settings)
        if "data-try>" not in answer.text:
            return answer
        kind = {"content-type": "application/x-www-form-urlencoded"}
        return self.post(answer.url.path, content=answer.url.query, headers=kind)


def visit(bench: OpenedReport) -> Visitor:
    """A visitor who has shown the token, in this process."""
    app = make_app(bench)
    client = Visitor(app, base_url="http://localhost", headers={"origin": "http://localhost"})
    answer = client.post(ENTRY, headers={SECRET: app.state.access.token})
    assert answer.status_code == 200
    client.headers[SECRET] = answer.text
    return client


@contextmanager
def serve_in_thread(bench: OpenedReport) -> Iterator[str]:
    """Serve a workbench on any free port; the address with its token."""
    access = Access()
    settings = {"port": 0, "log_level": "warning", "lifespan": "off", **bound_connections()}
    config = uvicorn.Config(make_app(bench, access), **settings)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/#token={access.token}"
    finally:
        server.should_exit = True
        thread.join()
