"""Replies that no honest server sends, byte by byte: each is an answer or an error of one line."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundfault import models
from groundfault.errors import GroundfaultError

pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
KEY = "sk-right-0123456789abcdef"
TYPE = "Content-Type: application/json\r\n"


class RawServer:
    """Answers every connection with the same bytes, and keeps what it was sent."""

    def __init__(self) -> None:
        self.reply, self.seen = b"", [b""]
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.seen.append(connection.recv(1 << 16))
                try:
                    connection.sendall(self.reply)
                except OSError:
                    continue

    def stop(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    running = RawServer()
    yield running
    running.stop()


def reply(body: Any, head: str = TYPE, status: str = "200 OK") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    length = "" if "chunked" in head else f"Content-Length: {len(data)}\r\n"
    return f"HTTP/1.1 {status}\r\n{head}{length}Connection: close\r\n\r\n".encode() + data


def say(content: Any, **more: Any) -> bytes:
    return reply({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], **more})


REPLIES: dict[str, bytes] = {
    "a number": say(5),
    "an object": say({"a": 1}),
    "a list of numbers": say([1, 2]),
    "parts without a type": say([{"text": "a"}]),
    "parts of other types": say([{"type": "text", "text": 5}]),
    "control characters": say("a\x00b\x1b[2J\u202e"),
    "half a pair": reply(b'{"choices": [{"message": {"content": "\\udc00"}}]}'),
    "a million choices": reply({"choices": [{}] * 100_000}),
    "choices that are no list": reply({"choices": {"0": {}}}),
    "a reason that is a list": reply(
        {"choices": [{"message": {"content": "x"}, "finish_reason": [1]}]}
    ),
    "usage of words": say("x", usage={"prompt_tokens": "many"}),
    "usage that is a list": say("x", usage=[1]),
    "usage without bound": say("x", usage={"prompt_tokens": 10**400}),
    "usage below 0": say("x", usage={"prompt_tokens": -5}),
    "a model that is an object": say("x", model={"a": "\x1b]0;x\x07"}),
    "an error that is a list": reply({"error": ["a", {"b": 1}]}),
    "an error of control characters": reply({"error": {"message": "\x1b[2J\r\nfake: line"}}),
    "an error that tells the key": reply({"error": {"message": KEY}}),
    "NaN": reply(b'{"choices": [{"message": {"content": NaN}}]}'),
    "a key twice": reply(b'{"choices": [], "choices": [{"message": {"content": "x"}}]}'),
    "digits": reply(b'{"choices": ' + b"1" * 10_000 + b"}"),
    "two documents": reply(b'{"choices": []}{"choices": []}'),
    "UTF-16": reply('{"choices": []}'.encode("utf-16")),
    "Latin-1": reply('{"choices": [{"message": {"content": "é"}}]}'.encode("latin-1")),
    "another alphabet": reply(
        b'{"choices": []}', "Content-Type: application/json; charset=x-none\r\n"
    ),
    "a page": reply(b"<html><script>alert(1)</script>", "Content-Type: text/html\r\n"),
    "status 999": reply(b"{}", status="999 Odd"),
    "status 100": b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    "status 204": reply(b"", status="204 No Content"),
    "status 304": reply(b"", status="304 Not Modified"),
    "status 401 in other words": reply(b'{"error": "no"}', status="401 \x1b[31m"),
    "a wait of centuries": reply(b"{}", TYPE + "Retry-After: 1e99\r\n", "429 Slow"),
    "a wait below 0": reply(b"{}", TYPE + "Retry-After: -1e99\r\n", "503 Busy"),
    "a wait that is no number": reply(b"{}", TYPE + "Retry-After: nan\r\n", "503 Busy"),
    "a date that is none": reply(
        b"{}", TYPE + "Retry-After: Mon, 99 Foo 99999 00:00:00 GMT\r\n", "503 Busy"
    ),
    "a redirect to a file": reply(b"", "Location: file:///etc/passwd\r\n", "307 There"),
    "a redirect to data": reply(b"", "Location: data:application/json,{}\r\n", "308 There"),
    "a redirect nowhere": reply(b"", "Location: \r\n", "307 There"),
    "a redirect of bytes": reply(b"", "Location: http://\\127.0.0.1:9\r\n", "307 There"),
    "a redirect with a user": reply(
        b"", "Location: http://127.0.0.1@evil.example/v1\r\n", "302 There"
    ),
    "many headers": reply(b"{}", "X: y\r\n" * 5_000),
    "a long header": reply(b"{}", "X: " + "y" * 500_000 + "\r\n"),
    "a header without a colon": reply(b"{}", "nonsense\r\n"),
    "no HTTP": b"SSH-2.0-OpenSSH_9.0\r\n",
    "nothing": b"",
    "a length too long": b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n{}",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 9\r\n\r\n{}",
    "parts that lie": reply(b"fffffffffffffff\r\n{}", "Transfer-Encoding: chunked\r\n"),
    "parts that end early": reply(b"5\r\n{}", "Transfer-Encoding: chunked\r\n"),
    "packed by two": reply(b"{}", "Content-Encoding: gzip, br\r\n"),
    "packed by nobody knows": reply(b"{}", "Content-Encoding: x-none\r\n"),
    "a cookie": say("x")[:17] + b"Set-Cookie: a=b; Domain=.example\r\n" + say("x")[17:],
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_an_answer_or_one_line(name: str, server: RawServer, tmp_path: Path) -> None:
    server.reply, server.seen = REPLIES[name], []
    target = models.get("openai/tiny", base_url=server.url, api_key=KEY)
    try:
        (answer,) = models.ask(target, ["x"], retries=0, timeout=10, record=tmp_path / "calls.db")
    except GroundfaultError as error:
        told = str(error)
    else:
        told = answer.error or ""
        assert answer.status in ("answered", "refused", "error")
        assert KEY not in repr(answer)
    assert "\n" not in told
    assert KEY not in told
    assert server.seen, "it was asked"
    assert not any(b"ookie: a=b" in request for request in server.seen)
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
