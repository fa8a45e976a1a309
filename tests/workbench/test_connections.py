"""A connection that keeps the server waiting is closed, and no more are taken than it can hold."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import resources

import pytest
from bench_reports import serve_in_thread

from groundfault.workbench import connections
from groundfault.workbench.opened_report import OpenedReport

FILES = resources.files("groundfault.workbench") / "static"
HEAD = b"POST /rule HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"


@pytest.fixture
def place(bench: OpenedReport, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.4)
    monkeypatch.setattr(connections, "READ_SECONDS", 0.4)
    with serve_in_thread(bench) as address:
        yield "127.0.0.1", int(address.split(":")[2].split("/")[0])


def wait_for_end(connection: socket.socket) -> None:
    """Return when the other side closed it; fail where it does not, however slow the machine."""
    connection.settimeout(60)
    with suppress(ConnectionResetError):
        while connection.recv(65536):
            pass


@pytest.mark.parametrize("start", [b"", b"G", HEAD, HEAD + b"\r\n", HEAD + b"\r\nrule"])
def test_half_a_request_is_closed(place: tuple[str, int], start: bytes) -> None:
    with socket.create_connection(place) as connection:
        connection.sendall(start)
        wait_for_end(connection)


def test_a_byte_now_and_then_sets_no_clock_back(place: tuple[str, int]) -> None:
    with socket.create_connection(place) as connection, suppress(ConnectionError):
        connection.sendall(HEAD + b"X: ")
        # as many as take many times as long as a request may
        for _ in range(2_000):
            connection.sendall(b"x")
            time.sleep(0.02)
        pytest.fail("it was never closed")


def test_an_answer_that_nobody_reads_is_given_up(
    place: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up, lose = threading.Event(), connections.BoundedProtocol.connection_lost

    def look(protocol: connections.BoundedProtocol, error: Exception | None) -> None:
        lose(protocol, error)
        given_up.set()

    monkeypatch.setattr(connections.BoundedProtocol, "connection_lost", look)
    count, size = 600, len((FILES / "workbench.css").read_bytes())
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(place)
        connection.sendall(b"GET /static/workbench.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * count)
        assert given_up.wait(60)
        connection.settimeout(60)
        got = 0
        with suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                got += len(part)
        # what the system had taken for it, and no more
        assert got < count * size / 2


def test_no_more_connections_are_taken_than_one_person_needs(
    place: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 600.0)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    some = [socket.create_connection(place) for _ in range(5)]
    try:
        wait_for_end(some[4])
        request = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        some[0].sendall(request)
        some[0].settimeout(60)
        assert some[0].recv(20).startswith(b"HTTP/1.1 200")
    finally:
        for one in some:
            one.close()


def test_a_request_in_parts_comes_through(
    place: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 600.0)
    with socket.create_connection(place) as connection:
        for part in (b"GET /static/icon.svg HT", b"TP/1.1\r\nHost: 127.0.0.1\r\n", b"\r\n"):
            connection.sendall(part)
            time.sleep(0.05)
        connection.settimeout(60)
        assert connection.recv(20).startswith(b"HTTP/1.1 200")
