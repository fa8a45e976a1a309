"""A local model server that speaks OpenAI's protocol, well or badly as prompts say.

A prompt is words such as ``429 2 0.3 hello``: what to do, how often or how long, and the rest,
which is echoed.

Given a file, it follows that script instead, read anew for each request: rules in JSON, each a list
of words that the messages of a request must hold, and replies, of which the last one stays.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOCK = threading.Lock()
SEEN: list[dict[str, Any]] = []  # every request, in the order they came
TIMES: Counter[str] = Counter()
ACTIVE = {"now": 0, "most": 0}
SENT = {"megabytes": 0}
RAW = {
    "broken": b'{"choices": [{"message": {"content": "hal',
    "html": b"<html><body>bad gateway</body></html>",
    "empty": b"",
    "nochoice": b'{"choices": []}',
    "nulls": b'{"choices": [{"message": null}]}',
    "deep": b"[" * 100_000,
    "error200": b'{"error": {"message": "upstream is busy", "code": 502}}',
    "surrogate": b'{"choices": [{"message": {"content": "half \\ud83d pair"}, '
    b'"finish_reason": "stop"}]}',
    "filter": b'{"choices": [{"message": {"content": null}, "finish_reason": "content_filter"}]}',
    "refuse": b'{"choices": [{"message": {"content": null, "refusal": "I cannot."}, '
    b'"finish_reason": "stop"}]}',
    "parts": b'{"choices": [{"message": {"content": [{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]}}]}',  # noqa: E501
    "infinite": b'{"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"token": "x", "logprob": -Infinity}]}}]}',  # noqa: E501
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        with LOCK:
            self.reply(200, json.dumps({"seen": SEEN, "most": ACTIVE["most"], **SENT}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = body["messages"][-1]["content"]
        with LOCK:
            SEEN.append(
                {
                    "time": time.time(),
                    "path": self.path,
                    "body": body,
                    "key": self.headers["authorization"],
                }
            )
            TIMES[prompt] += 1
            times = TIMES[prompt]
            ACTIVE["now"] += 1
            ACTIVE["most"] = max(ACTIVE["most"], ACTIVE["now"])
        try:
            self.act(body, prompt, times)
        finally:
            with LOCK:
                ACTIVE["now"] -= 1

    def act(self, body: dict[str, Any], prompt: str, times: int) -> None:
        kind, first, second, *_ = [*prompt.split(" "), "", ""]
        key = str(self.headers["authorization"]).removeprefix("Bearer ")
        if key.startswith("sk-wrong"):
            self.fail(401, f"Incorrect API key provided: {key}")
        elif body["model"] == "nobody":
            self.fail(404, "The model `nobody` does not exist", code="model_not_found")
        elif kind in ("429", "500", "503") and times <= int(first):
            when = (
                formatdate(time.time() + float(second[1:]), usegmt=True)
                if second.startswith("@")
                else second
            )
            self.fail(
                int(kind), f"try later ({times})", headers={"retry-after": when} if second else {}
            )
        elif kind == "quota":
            self.fail(429, "You exceeded your current quota", code="insufficient_quota")
        elif kind == "long":
            self.fail(
                400,
                "This model's maximum context length is 5 tokens",
                code="context_length_exceeded",
            )
        elif kind == "blocked":
            self.fail(400, "filtered", code="content_filter")
        elif kind == "leak" and times <= int(first):
            self.fail(500, f"upstream got authorization: Bearer {key} from {self.headers['host']}")
        elif kind == "drop" and times <= int(first):
            self.close_connection = True
        elif kind == "half" and times <= int(first):
            self.send_response(200)
            self.send_header("content-length", "500")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif kind == "redirect":  # with this status, to this server and path
            self.reply(int(first), b"", {"location": second})
        elif kind in RAW and times <= int(first or 1):
            self.reply(200, RAW[kind])
        else:
            if kind == "slow":
                time.sleep(float(first))
            if kind == "large":  # megabytes of text, or of an error
                self.flood(int(first), 500 if second == "error" else 200)
                return
            if kind == "zipped":
                body_ = gzip.compress(json.dumps(self.completion(body, prompt)).encode())
                self.reply(200, body_, {"content-encoding": "gzip"})
                return
            if kind == "echo-key":  # as a gateway that shows what it got
                basic = base64.b64encode(b"me:hunter2-hunter2").decode()
                text = f"the key is {key}, in JSON {json.dumps(key)}, and Basic {basic}"
                prompt = f"{prompt} {text}"
            self.reply(200, json.dumps(self.completion(body, prompt), ensure_ascii=False).encode())

    def flood(self, megabytes: int, status: int) -> None:
        """A reply of one text that is sent until it ends, or until nobody listens."""
        start, end = b'{"model": "x", "choices": [{"message": {"content": "', b'"}}]}'
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(start) + (megabytes << 20) + len(end)))
            self.end_headers()
            self.wfile.write(start)
            for _ in range(megabytes):
                self.wfile.write(b"x" * (1 << 20))
                with LOCK:
                    SENT["megabytes"] += 1
            self.wfile.write(end)
        except OSError:
            self.close_connection = True

    def completion(self, body: dict[str, Any], prompt: str) -> dict[str, Any]:
        text, finish = answer_by_script(body) if len(sys.argv) > 1 else f"echo {prompt}", "stop"
        if body.get("max_tokens") == 1:
            text, finish = "echo", "length"
        choice: dict[str, Any] = {
            "message": {"role": "assistant", "content": text},
            "finish_reason": finish,
        }
        if body.get("logprobs"):
            other = [{"token": "no", "logprob": -2.5, "bytes": None}]
            choice["logprobs"] = {
                "content": [{"token": "echo", "logprob": -0.25, "top_logprobs": other}]
            }
        n_prompt, n_reply = len(prompt.split()), len(text.split())
        usage = {
            "prompt_tokens": n_prompt,
            "completion_tokens": n_reply,
            "total_tokens": n_prompt + n_reply,
        }
        return {
            "id": "c",
            "object": "chat.completion",
            "model": "tiny-1" if prompt.startswith("other") else body["model"],
            "choices": [choice],
            "usage": usage,
        }

    def fail(
        self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None
    ) -> None:
        error = {"message": message, "type": "error", "code": code or None}
        self.reply(status, json.dumps({"error": error}).encode(), headers or {})

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        try:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # whoever asked has gone
            self.close_connection = True


def answer_by_script(body: dict[str, Any]) -> str:
    whole = "\n".join([body["model"], *(m["content"] for m in body["messages"])])
    for holds, replies in json.loads(Path(sys.argv[1]).read_text()):
        if all(word in whole for word in holds):
            with LOCK:
                TIMES[json.dumps(holds)] += 1
                return replies[min(TIMES[json.dumps(holds)], len(replies)) - 1]
    return "I do not know."


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
    server.serve_forever()
