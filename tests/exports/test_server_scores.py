"""Scores for Langfuse and annotations for Phoenix: the lines, and the clients that upload them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import groundfault
from groundfault import Evidence, InputError
from groundfault.exports import export

MODE = "mode 1: lang is de"


def is_wrong(number: int) -> bool:
    return number * 7919 % 100 < (80 if number % 4 == 0 else 10)


def langfuse_score(number: int) -> dict[str, Any]:
    trace = {"id": f"t{number}", "metadata": {"lang": "en" if number % 4 else "de"}}
    return {
        "id": f"s{number}",
        "traceId": f"t{number}",
        # every other score is of one step of the trace
        "observationId": f"o{number}" if number % 2 else None,
        "name": "correctness",
        "value": int(not is_wrong(number)),
        "dataType": "BOOLEAN",
        "source": "EVAL",
        "trace": trace,
    }


def phoenix_span(number: int) -> dict[str, Any]:
    return {
        "span_id": f"{number:016x}",
        "annotation_name": "correctness",
        "annotator_kind": "CODE",
        "result.score": float(not is_wrong(number)),
        "metadata": {"lang": "en" if number % 4 else "de"},
    }


MAKERS = {"langfuse": langfuse_score, "phoenix": phoenix_span}


def write_lines(tool: str, place: Path) -> list[dict[str, Any]]:
    log = place / "export.json"
    log.write_text(json.dumps([MAKERS[tool](number) for number in range(200)]))
    groundfault.audit(Evidence.from_logs(log), ledger=None).write(place / "report")
    assert export(place / "report", tool, place / "lines.jsonl") == "100 lines"
    return [json.loads(line) for line in (place / "lines.jsonl").read_text().splitlines()]


def test_scores_of_langfuse_name_the_traces_of_a_mode(tmp_path: Path) -> None:
    lines = write_lines("langfuse", tmp_path)
    inside = [line for line in lines if line["name"] == MODE]
    assert {line["trace_id"] for line in inside} == {f"t{n}" for n in range(0, 200, 4)}
    assert all("(40 of 50)" in line["comment"] for line in inside)
    assert len({line["score_id"] for line in lines}) == len(lines)
    first = (tmp_path / "lines.jsonl").read_text()
    export(tmp_path / "report", "langfuse", tmp_path / "lines.jsonl")
    assert (tmp_path / "lines.jsonl").read_text() == first


def test_a_score_of_a_step_names_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        MAKERS, "langfuse", lambda n: langfuse_score(n) | {"observationId": f"o{n}"}
    )
    for line in write_lines("langfuse", tmp_path):
        assert line["observation_id"] == line["trace_id"].replace("t", "o")


def test_annotations_of_phoenix_name_the_spans_of_a_mode(tmp_path: Path) -> None:
    lines = write_lines("phoenix", tmp_path)
    inside = {line["span_id"] for line in lines if line["annotation_name"] == MODE}
    assert inside == {f"{n:016x}" for n in range(0, 200, 4)}


def test_ids_of_another_log_name_no_run(tmp_path: Path) -> None:
    write_lines("phoenix", tmp_path)
    with pytest.raises(InputError, match="not made from logs of langfuse"):
        export(tmp_path / "report", "langfuse", tmp_path / "other.jsonl")
    assert not (tmp_path / "other.jsonl").exists()


class Server(ThreadingHTTPServer):
    """Takes whatever is posted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[Any] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"data": []}')

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.clients
def test_the_client_of_langfuse_uploads_the_lines(tmp_path: Path, server: Server) -> None:
    langfuse = pytest.importorskip("langfuse", reason="pip install langfuse")
    lines = write_lines("langfuse", tmp_path)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    client = langfuse.Langfuse(public_key="pk", secret_key="sk", host=url, timeout=10)
    for line in lines:
        client.create_score(**line)
    client.flush()
    scores = [score for body in server.bodies for score in body]
    assert sorted(score["id"] for score in scores) == sorted(line["score_id"] for line in lines)
    assert {score["traceId"] for score in scores} == {f"t{n}" for n in range(0, 200, 4)}


@pytest.mark.clients
def test_the_client_of_phoenix_uploads_the_lines(tmp_path: Path, server: Server) -> None:
    client = pytest.importorskip("phoenix.client", reason="pip install arize-phoenix-client")
    lines = write_lines("phoenix", tmp_path)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    spans = client.Client(base_url=url).spans
    for line in lines:
        spans.add_span_annotation(**line)
    sent = [one for body in server.bodies for one in body["data"]]
    assert [one["span_id"] for one in sent] == [line["span_id"] for line in lines]
    assert sent[0]["result"]["explanation"]
