"""Servers that send without end, tell keys, or answer as another model than was asked."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundfault import models
from groundfault.errors import InputError
from groundfault.models import Record
from groundfault.models.openai_server import MAX_REPLY
from groundfault.models.question import Response, is_same_model
from groundfault.models.secrets import hide, spell

pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
KEY = "sk-right-0123456789abcdef"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of ``model_server.py``, a process of its own."""
    place = Path(__file__).parents[1] / "support" / "model_server.py"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, place], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.stdin.close()


def count_sent(url: str) -> int:
    with urllib.request.urlopen(url) as reply:
        return int(json.loads(reply.read())["megabytes"])


# -------------------------------------------------------------------------------------------- size


def test_a_reply_is_cut_while_it_arrives(url: str, tmp_path: Path) -> None:
    target = models.get("openai/tiny", base_url=url, api_key=KEY)
    prompts = [*(f"large 60 {i}" for i in range(5)), "large 60 error"]
    answers = models.ask(target, prompts, retries=0, record=tmp_path / "calls.db", concurrency=3)
    assert {one.error for one in answers} == {"the reply has more than 4 MB, the most that is read"}
    assert not any(one.again for one in answers), "asking again would cost the same for the same"
    # what lies in buffers of sockets was sent, too
    assert count_sent(url) < len(prompts) * 30
    assert (tmp_path / "calls.db").stat().st_size < 1 << 20
    fits = (MAX_REPLY >> 20) - 1
    (answer,) = models.ask(target, [f"large {fits} fits"])
    assert answer.text is not None
    assert len(answer.text) == fits << 20


def test_a_compressed_reply_has_no_size(url: str) -> None:
    target = models.get("openai/tiny", base_url=url, api_key=KEY)
    (answer,) = models.ask(target, ["zipped"], retries=0)
    assert "is compressed (gzip) without being asked for" in answer.error


# ------------------------------------------------------------------------------------ redirects


@pytest.mark.parametrize("status", [307, 308])
def test_questions_go_to_no_other_server(url: str, status: int) -> None:
    """Also not to another port of the host; within the server a redirect is followed."""
    target = models.get("openai/tiny", base_url=url, api_key=KEY)
    elsewhere = ("http://localhost:9/v1", "//127.0.0.1:9/v1", "https://127.0.0.1/v1", "http://[")
    for place in elsewhere:
        with pytest.raises(InputError, match=r"redirects to .* name it"):
            models.ask(target, [f"redirect {status} {place}"], retries=0)
    # the place that it is sent to answers with the same redirect, until the client gives up
    (answer,) = models.ask(target, [f"redirect {status} {url}/chat/completions"], retries=0)
    assert "no connection" in answer.error
    seen = json.loads(urllib.request.urlopen(url).read())["seen"]
    bodies = [each["body"]["messages"][-1]["content"] for each in seen]
    assert bodies.count(f"redirect {status} {url}/chat/completions") > 1


# -------------------------------------------------------------------------------- another model


def test_another_model_is_noted_recorded_and_said(url: str, tmp_path: Path) -> None:
    target = models.get("openai/large-70b", base_url=url, api_key=KEY)
    for _ in ("asked", "from the record"):
        with pytest.warns(UserWarning, match="'large-70b' was asked, and the server answered as"):
            answers = models.ask(target, ["other 1", "same"], record=tmp_path / "calls.db")
        assert [(one.model, one.asked) for one in answers] == [
            ("tiny-1", "large-70b"),
            ("large-70b", ""),
        ]
    (other,) = [c.response for c in Record(tmp_path / "calls.db").calls() if c.response.asked]
    assert other.asked == "large-70b"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models.ask(target, ["same"])


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4", "gpt-4-0613", True),
        ("openai/gpt-4o", "GPT-4o", True),
        ("llama3", "llama3:latest", True),
        ("claude-3-haiku", "claude-3-haiku@20240307", True),
        ("models/gemini-1.5-pro", "gemini-1.5-pro-002", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4", "gpt-4.1", False),
        ("llama-3", "llama-3-8b", False),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13", False),
        ("gpt-4o-mini", "gpt-4o", False),
    ],
)
def test_versions_of_a_model_are_that_model(asked: str, answered: str, same: bool) -> None:
    assert is_same_model(asked, answered) is same


# ----------------------------------------------------------------------------------------- secrets


def test_a_key_in_an_answer_is_cut_out_wherever_it_is_written(url: str, tmp_path: Path) -> None:
    address = url.replace("//", "//me:hunter2-hunter2@")
    target = models.get("openai/tiny", base_url=address, api_key=KEY)
    (answer,) = models.ask(target, ["echo-key"], record=tmp_path / "calls.db")
    assert answer.status == "answered"
    assert answer.text is not None
    assert answer.text.endswith("Basic [hidden]")
    Record(tmp_path / "calls.db").to_jsonl(tmp_path / "calls.jsonl")
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    basic = base64.b64encode(b"me:hunter2-hunter2").decode()
    for secret in (KEY, basic, "hunter2"):
        assert secret not in repr(answer) + answer.raw
        assert secret.encode() not in stored


@pytest.mark.parametrize(
    "raw",
    [
        f"it is {KEY}",
        json.dumps({"a": KEY}),
        json.dumps({"a": KEY}).replace("s", "\\u0073"),
        json.dumps({"a": base64.b64encode(KEY.encode()).decode()}),
    ],
)
def test_every_spelling_is_cut(raw: str) -> None:
    response = Response("fine", raw=raw).without([KEY])
    assert "[hidden]" in response.raw
    assert "right" not in response.raw
    assert base64.b64encode(KEY.encode()).decode()[:12] not in response.raw


def test_tokens_that_spell_a_key_are_cut_with_it() -> None:
    tokens: tuple[dict[str, Any], ...] = ({"token": "sk-right-"}, {"token": "0123456789abcdef"})
    response = Response(f"it is {KEY}", logprobs=tokens, raw=json.dumps(tokens)).without([KEY])
    assert (response.text, response.logprobs, response.raw) == ("it is [hidden]", (), "")


def test_a_short_key_of_a_server_at_home_spoils_no_answer() -> None:
    answer = Response("the word is EMPTY", raw='{"x": "EMPTY"}')
    assert answer.without(["EMPTY"]) == answer
    assert Response.failed("bad key EMPTY").without(["EMPTY"]).error == "bad key [hidden]"


def test_a_secret_inside_another_leaves_no_rest() -> None:
    secrets = ["hunter2", "me:hunter2-hunter2"]
    assert hide("as me:hunter2-hunter2, hunter2", spell(secrets)) == "as [hidden], [hidden]"
