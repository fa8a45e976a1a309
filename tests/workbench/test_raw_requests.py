"""Requests that no browser sends, written to the socket: none shows or records anything."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from bench_reports import serve_in_thread

from groundfault.workbench.opened_report import OpenedReport

HOST = b"Host: 127.0.0.1\r\n"
LONG = b"x" * 70_000


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    with serve_in_thread(request.getfixturevalue("bench")) as address:
        yield address


def send(place: str, data: bytes, seconds: float = 20) -> bytes:
    """What comes back until the end, or in so many seconds where the server waits for more."""
    port = int(place.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        parts = []
        try:
            connection.sendall(data)
            while part := connection.recv(1 << 16):
                parts.append(part)
        except (ConnectionError, TimeoutError):
            pass
        return b"".join(parts)


REQUESTS: dict[str, bytes] = {
    "no host": b"GET /keys HTTP/1.1\r\n\r\n",
    "HTTP/1.0": b"GET /keys HTTP/1.0\r\n\r\n",
    "two hosts": b"GET /keys HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n",
    "another address": b"GET http://evil.example/keys HTTP/1.1\r\n" + HOST + b"\r\n",
    "host with a user": b"GET /keys HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\n\r\n",
    "host with a path": b"GET /keys HTTP/1.1\r\nHost: evil.example/127.0.0.1\r\n\r\n",
    "folded header": b"GET /keys HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "space before a colon": b"GET /keys HTTP/1.1\r\n" + HOST + b"X-Groundfault-Secret : a\r\n\r\n",
    "a secret that is empty": b"GET /keys HTTP/1.1\r\n" + HOST + b"X-Groundfault-Secret:\r\n\r\n",
    "two secrets": b"GET /keys HTTP/1.1\r\n" + HOST + b"X-Groundfault-Secret: a\r\n" * 2 + b"\r\n",
    "a secret in the address": b"GET /keys?x-groundfault-secret=a HTTP/1.1\r\n" + HOST + b"\r\n",
    "a secret of other letters": "GET /keys HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    "X-Groundfault-Secret: \u00e9\r\n\r\n".encode("latin-1"),
    "an upgrade": b"GET /keys HTTP/1.1\r\n"
    + HOST
    + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    "two lengths": b"POST /rule HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 4\r\nContent-Length: 9\r\n\r\nrule=a>1",
    "a length and parts": b"POST /rule HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /keys HTTP/1.1\r\n\r\n",
    "an endless part": b"POST /rule HTTP/1.1\r\n"
    + HOST
    + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"
    + LONG,
    "a negative length": b"POST /rule HTTP/1.1\r\n" + HOST + b"Content-Length: -5\r\n\r\n",
    "a long address": b"GET /" + LONG + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "a long header": b"GET /keys HTTP/1.1\r\n" + HOST + b"X: " + LONG + b"\r\n\r\n",
    "many headers": b"GET /keys HTTP/1.1\r\n" + HOST + b"X: a\r\n" * 20_000 + b"\r\n",
    "a method of its own": b"STEAL /keys HTTP/1.1\r\n" + HOST + b"\r\n",
    "TRACE": b"TRACE /keys HTTP/1.1\r\n" + HOST + b"\r\n",
    "CONNECT": b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + HOST + b"\r\n",
    "a question before": b"OPTIONS /rule HTTP/1.1\r\n"
    + HOST
    + b"Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\r\n",
    "only a head": b"HEAD /keys HTTP/1.1\r\n" + HOST + b"\r\n",
    "an end of line alone": b"GET /keys HTTP/1.1\nHost: 127.0.0.1\n\n",
    "a zero": b"GET /keys\0 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + LONG,
    "a way out": b"GET /static/../../auth.py HTTP/1.1\r\n" + HOST + b"\r\n",
    "a coded way out": b"GET /static/..%2f..%2fauth.py HTTP/1.1\r\n" + HOST + b"\r\n",
    "a twice coded way out": b"GET /static/%252e%252e/auth.py HTTP/1.1\r\n" + HOST + b"\r\n",
    "an absolute way out": b"GET /static//etc/passwd HTTP/1.1\r\n" + HOST + b"\r\n",
    "a zero in a name": b"GET /static/a%00.js HTTP/1.1\r\n" + HOST + b"\r\n",
    "a folder": b"GET /static/ HTTP/1.1\r\n" + HOST + b"\r\n",
    "an entry by GET": b"GET /enter HTTP/1.1\r\n" + HOST + b"X-Groundfault-Secret: a\r\n\r\n",
    "an entry from elsewhere": b"POST /enter HTTP/1.1\r\n"
    + HOST
    + b"Origin: http://127.0.0.1:1\r\nContent-Length: 0\r\n\r\n",
}


@pytest.fixture(scope="module")
def head(bench: OpenedReport) -> str | None:
    """The head of the ledger before any request."""
    assert bench.ledger is not None
    return bench.ledger.head


@pytest.fixture(scope="module")
def answers(place: str, head: str | None) -> dict[str, bytes]:
    """What came back to each request: all at once, since the server waits for more of some."""
    with ThreadPoolExecutor(len(REQUESTS)) as pool:
        sent = pool.map(lambda data: send(place, data, 2), REQUESTS.values())
        return dict(zip(REQUESTS, sent, strict=True))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_no_browser_sends(
    name: str, answers: dict[str, bytes], place: str, bench: OpenedReport
) -> None:
    assert bench.report is not None
    answer = answers[name]
    statuses = {int(line.split()[1]) for line in answer.split(b"\r\n") if line[:5] == b"HTTP/"}
    assert all(400 <= status < 500 or status == 501 for status in statuses), answer[:300]
    text = answer.decode(errors="replace")
    for secret in (bench.report.modes[0].meaning, place.split("=")[-1], "root:", "hmac"):
        assert secret not in text
    assert "access-control-allow" not in text.lower()


def test_after_all_of_them_nothing_is_recorded_and_the_server_answers(
    place: str, bench: OpenedReport, answers: dict[str, bytes], head: str | None
) -> None:
    assert len(answers) == len(REQUESTS)
    fine = b"GET /static/icon.svg HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    assert send(place, fine).startswith(b"HTTP/1.1 200")
    assert bench.ledger is not None
    assert bench.ledger.head == head


def test_of_many_at_once_the_token_lets_one_in(bench: OpenedReport) -> None:
    with serve_in_thread(bench) as address:
        token = address.split("=")[-1].encode()
        port = address.split(":")[2].split("/")[0].encode()
        enter = (
            b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1:" + port + b"\r\nOrigin: http://127.0.0.1:"
            + port + b"\r\nConnection: close\r\nContent-Length: 0\r\nX-Groundfault-Secret: "
            + token + b"\r\n\r\n"
        )  # fmt: skip
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: send(address, enter), range(20)))
    assert sum(b"HTTP/1.1 200" in answer for answer in answers) == 1
