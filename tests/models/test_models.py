"""Asking models: answers, refusals and errors; nothing lost or paid twice, no key shown."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault import models
from groundfault.errors import InputError, LedgerError, MissingExtraError, PlanError
from groundfault.models import Question, Record, Response
from groundfault.models.openai_server import read_retry_after

HERE = Path(__file__).parents[1] / "support"
KEY = "sk-right-0123456789abcdef"


class Server:
    """A process that speaks OpenAI's protocol; see model_server.py for what its prompts mean."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "model_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def requests(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url) as reply:
            return json.loads(reply.read())

    def times(self) -> Counter[str]:
        return Counter(
            request["body"]["messages"][-1]["content"] for request in self.requests()["seen"]
        )

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("openai", reason="pip install 'groundfault[openai]'")
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def tiny(server: Server) -> models.Target:
    return models.get("openai/tiny", base_url=server.url, api_key=KEY)


class Scripted:
    """A target of our own: what it is told, as often as it is asked."""

    name = "scripted"

    def __init__(self, *script: Response) -> None:
        self.script = list(script)
        self.questions: list[Question] = []

    async def answer(self, question: Question) -> Response:
        self.questions.append(question)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


# ------------------------------------------------------------------------------ a server that works


def test_answers_come_in_the_order_of_the_prompts(tiny: models.Target, server: Server) -> None:
    prompts = [
        "one",
        "zwei ä 😀 \u202e\x00",
        [{"role": "system", "content": "brief"}, {"role": "user", "content": "3"}],
    ]
    answers = models.ask(tiny, [*prompts, "one"], concurrency=2)
    assert [a.text for a in answers] == [
        "echo one",
        "echo zwei ä 😀 \u202e\x00",
        "echo 3",
        "echo one",
    ]
    assert {a.status for a in answers} == {"answered"}
    assert answers[0].usage == {"input": 1, "output": 2}
    assert answers[0].model == "tiny"
    assert server.times()["one"] == 1, "the same question twice is asked once"


def test_settings_reach_the_server(tiny: models.Target, server: Server) -> None:
    frame: dict[str, Any] = {
        "temperature": 0,
        "max_tokens": 1,
        "seed": 7,
        "stop": "END",
        "top_p": 0.5,
        "logprobs": 1,
    }
    (answer,) = models.ask(tiny, ["settings"], **frame, extra={"reasoning_effort": "low"})
    body = server.requests()["seen"][-1]["body"]
    bodies = {"temperature": 0, "max_tokens": 1, "seed": 7, "stop": ["END"], "top_p": 0.5}
    assert (
        body.items()
        >= {**bodies, "logprobs": True, "top_logprobs": 1, "reasoning_effort": "low"}.items()
    )
    assert answer.finish == "length"
    other = {"token": "no", "logprob": -2.5}
    assert answer.logprobs == ({"token": "echo", "logprob": -0.25, "top_logprobs": [other]},)
    assert server.requests()["seen"][-1]["path"] == "/v1/chat/completions"


def test_what_is_not_set_is_not_sent(tiny: models.Target, server: Server) -> None:
    models.ask(tiny, ["bare"])
    assert set(server.requests()["seen"][-1]["body"]) == {"model", "messages"}


def test_openai_itself_is_asked_for_completion_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    target: Any = models.get("openai/gpt-5", api_key=KEY)
    assert target._request(Question("x", max_tokens=5))["max_completion_tokens"] == 5


def test_no_more_calls_at_a_time_than_allowed(server: Server) -> None:
    own = Server()
    try:
        target = models.get("openai/tiny", base_url=own.url, api_key=KEY)
        models.ask(target, [f"slow 0.05 {i}" for i in range(24)], concurrency=3)
        assert own.requests()["most"] == 3
    finally:
        own.stop()


def test_asking_works_where_a_loop_is_running(tiny: models.Target) -> None:
    async def notebook() -> str | None:
        return models.ask(tiny, ["in a loop"])[0].text

    assert asyncio.run(notebook()) == "echo in a loop"
    assert asyncio.run(models.ask_async(tiny, ["awaited"]))[0].text == "echo awaited"
    assert (
        asyncio.run(models.ask_async(tiny, ["on another loop"]))[0].text == "echo on another loop"
    )


# ------------------------------------------------------------------------------ a server that fails


def test_what_passes_is_asked_again(tiny: models.Target, server: Server) -> None:
    kinds = [
        "500 1 a",
        "503 2",
        "drop 1",
        "half 1",
        "broken",
        "html",
        "empty",
        "nochoice",
        "nulls",
        "deep",
        "error200",
    ]
    answers = models.ask(tiny, kinds, concurrency=11)
    assert [a.text for a in answers] == [f"echo {kind}" for kind in kinds]
    assert [a.attempt for a in answers] == [2, 3, *[2] * 9]


def test_retries_are_bounded_and_an_error_is_no_answer(tiny: models.Target, server: Server) -> None:
    cut_text, server_error = models.ask(tiny, ["drop 99", "broken 99"], retries=2)
    assert (cut_text.status, server_error.status) == ("error", "error")
    assert cut_text.text is None
    assert "no connection" in cut_text.error
    assert "not a chat completion" in server_error.error
    assert server.times()["drop 99"] == 3


@pytest.mark.parametrize(
    ("prompt", "least", "most"), [("429 1 0.9", 0.9, 3), ("429 1 @2", 0.9, 4), ("429 1", 0.2, 2)]
)
def test_the_server_says_how_long_to_wait(
    tiny: models.Target, prompt: str, least: float, most: float
) -> None:
    start = time.monotonic()
    (answer,) = models.ask(tiny, [prompt])
    assert answer.text == f"echo {prompt}"
    assert least <= time.monotonic() - start <= most


def test_one_is_told_to_wait_and_all_wait(tiny: models.Target, server: Server) -> None:
    models.ask(tiny, ["429 1 1.5 held", *(f"slow 0.1 held {i}" for i in range(12))], concurrency=2)
    times = sorted(
        r["time"]
        for r in server.requests()["seen"]
        if "held" in r["body"]["messages"][-1]["content"]
    )
    assert max(later - before for before, later in pairwise(times)) > 1.2


def test_nobody_waits_for_an_hour(tiny: models.Target, server: Server) -> None:
    start = time.monotonic()
    (answer,) = models.ask(tiny, ["429 1 3600"])
    assert "asks to wait 3600 s" in answer.error
    assert time.monotonic() - start < 5
    assert server.times()["429 1 3600"] == 1


def test_headers_that_ask_to_wait() -> None:
    assert read_retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert read_retry_after({"retry-after": "-3"}) == 0
    assert read_retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ("soon", "nan", "inf", ""):
        assert read_retry_after({"retry-after": nonsense}) is None


def test_a_slow_server_is_given_up(tiny: models.Target, server: Server) -> None:
    start = time.monotonic()
    (answer,) = models.ask(tiny, ["slow 5"], timeout=0.3, retries=1)
    assert answer.error == "no answer in 0.3 s"
    assert time.monotonic() - start < 4
    assert server.times()["slow 5"] == 2


@pytest.mark.parametrize(
    ("prompt", "text"), [("filter 9", ""), ("refuse 9", "I cannot."), ("blocked", "")]
)
def test_a_refusal_is_neither_an_answer_nor_an_error(
    tiny: models.Target, server: Server, prompt: str, text: str
) -> None:
    (answer,) = models.ask(tiny, [prompt])
    assert (answer.status, answer.text) == ("refused", text)
    assert server.times()[prompt] == 1


def test_odd_replies_are_read(tiny: models.Target) -> None:
    half, parts, infinite = models.ask(tiny, ["surrogate 9", "parts 9", "infinite 9"])
    assert half.text == "half \ufffd pair"
    assert parts.text == "two parts"
    assert infinite.logprobs[0]["logprob"] == -9999


def test_one_prompt_too_long_does_not_stop_the_others(tiny: models.Target, server: Server) -> None:
    long, fine = models.ask(tiny, ["long 1", "fine"])
    assert "maximum context length" in long.error
    assert fine.text == "echo fine"
    assert server.times()["long 1"] == 1


@pytest.mark.parametrize(
    ("name", "key", "prompt", "message"),
    [
        ("openai/tiny", "sk-wrong-0123456789", "{}", "Incorrect API key provided: [hidden]"),
        ("openai/nobody", KEY, "{}", "does not exist"),
        ("openai/tiny", KEY, "quota {}", "exceeded your current quota"),
    ],
)
def test_what_no_question_can_change_ends_it_at_once(
    server: Server, tmp_path: Path, name: str, key: str, prompt: str, message: str
) -> None:
    target = models.get(name, base_url=server.url, api_key=key)
    before = len(server.requests()["seen"])
    with pytest.raises(InputError) as error:
        models.ask(
            target,
            [prompt.format(f"{name} {i}") for i in range(200)],
            record=tmp_path / "c.db",
            concurrency=4,
        )
    assert message in str(error.value)
    assert "run again to go on" in str(error.value)
    assert len(server.requests()["seen"]) - before <= 4


def test_a_dead_server_is_noticed() -> None:
    pytest.importorskip("openai")
    target = models.get("openai/tiny", base_url="http://127.0.0.1:9/v1")
    start = time.monotonic()
    with pytest.raises(InputError, match="questions in a row failed, the last with: no connection"):
        models.ask(target, [f"{i}" for i in range(500)], retries=0)
    assert time.monotonic() - start < 10


# ------------------------------------------------------------------------------------------ records


def test_every_attempt_is_on_record(tiny: models.Target, tmp_path: Path) -> None:
    (answer,) = models.ask(
        tiny, ["500 2 recorded"], record=tmp_path / "calls.db", temperature=0.5, max_tokens=9
    )
    calls = list(Record(tmp_path / "calls.db").calls())
    assert [call.response.status for call in calls] == ["error", "error", "answered"]
    assert [call.response.attempt for call in calls] == [1, 2, 3]
    assert calls[-1].question == Question("500 2 recorded", temperature=0.5, max_tokens=9)
    assert calls[-1].target == tiny.name
    assert json.loads(calls[-1].response.raw)["choices"][0]["message"]["content"] == answer.text
    assert calls[-1].response.usage == answer.usage
    assert calls[-1].response.seconds > 0
    assert calls[-1].time.startswith("20")


def test_an_answer_on_record_is_not_paid_for_again(
    tiny: models.Target, server: Server, tmp_path: Path
) -> None:
    prompts = [f"paid {i}" for i in range(5)]
    first = models.ask(tiny, prompts[:3], record=tmp_path / "c.db")
    again = models.ask(tiny, prompts, record=tmp_path / "c.db")
    assert [a.recorded for a in again] == [True] * 3 + [False] * 2
    assert [a.text for a in again[:3]] == [a.text for a in first]
    assert all(server.times()[prompt] == 1 for prompt in prompts)
    models.ask(tiny, prompts, record=tmp_path / "c.db", repeat=1)
    models.ask(tiny, prompts, record=tmp_path / "c.db", temperature=1)
    assert all(server.times()[prompt] == 3 for prompt in prompts), (
        "other repeats and settings are other questions"
    )


def test_an_error_on_record_is_asked_again(tmp_path: Path) -> None:
    failures = Scripted(Response.failed("gone"))
    assert models.ask(failures, ["x"], record=tmp_path / "c.db")[0].status == "error"
    result = Scripted(Response("back"))
    assert models.ask(result, ["x"], record=tmp_path / "c.db")[0].text == "back"


def test_nothing_is_asked_where_nothing_can_be_recorded(tmp_path: Path) -> None:
    target = Scripted(Response("x"))
    with pytest.raises(InputError, match="cannot"):
        models.ask(target, ["x"], record=tmp_path)
    assert not target.questions


def test_no_response_is_returned_before_it_is_on_record(tmp_path: Path) -> None:
    """A record that fails in the middle: what was said is not handed out, and asking ends."""

    class Torn(Record):
        added = 0

        def add(self, calls: Any) -> None:
            if self.added >= 2:
                raise InputError("the disk is full")
            self.added += len(calls)
            super().add(calls)

    target = Scripted(Response("x"))
    record = Torn(tmp_path / "c.db")
    with pytest.raises(InputError, match="the disk is full"):
        models.ask(target, [f"{i}" for i in range(100)], record=record, concurrency=1)
    assert len(list(record.calls())) == 2
    assert len(target.questions) == 3


def test_a_record_replays_itself(tiny: models.Target, tmp_path: Path) -> None:
    prompts = ["a", "refuse 9 b", "long c", "ä😀"]
    first = models.ask(tiny, prompts, record=tmp_path / "c.db", seed=1)
    Record(tmp_path / "c.db").to_jsonl(tmp_path / "c.jsonl")
    for source in ("c.db", "c.jsonl"):
        replay = models.get(f"replay:{tmp_path / source}")
        again = models.ask(replay, prompts, seed=1)
        assert [(a.text, a.status, a.error, a.finish, a.usage, a.raw) for a in again] == [
            (a.text, a.status, a.error, a.finish, a.usage, a.raw) for a in first
        ]
        assert all(a.recorded for a in again)
    assert models.get(f"replay:{tmp_path / 'c.db'}").name.startswith("replay:c.db#")
    other = models.ask(replay, ["a"], seed=2)[0]
    assert other.status == "error"
    assert '{"seed": 1}' in other.error
    assert "no recorded answer" in models.ask(replay, ["unheard of"], seed=1)[0].error


def test_lines_of_prompts_and_responses_replay(tmp_path: Path) -> None:
    lines = [
        {"prompt": "coin", "response": "heads"},
        {"prompt": "coin", "response": "tails"},
        {"messages": [{"role": "user", "content": "die"}], "text": "6", "finish": "length"},
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("\ufeff" + "\n\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert [a.text for a in models.ask(f"replay:{file}", ["coin", "die"], temperature=0.7)] == [
        "heads",
        "6",
    ]
    assert models.ask(f"replay:{file}", ["coin"], repeat=1)[0].text == "tails"
    assert models.ask(f"replay:{file}", ["coin"], repeat=2)[0].status == "error"


def test_a_record_of_two_models_is_asked_for_one(tmp_path: Path) -> None:
    one, two = Scripted(Response("1")), Scripted(Response("2"))
    two.name = "other"
    for target in (one, two):
        models.ask(target, ["x"], record=tmp_path / "c.db")
    with pytest.raises(InputError, match="say whose"):
        models.get(f"replay:{tmp_path / 'c.db'}")
    assert (
        models.ask(models.get(f"replay:{tmp_path / 'c.db'}", target="other"), ["x"])[0].text == "2"
    )


RUN = """
import sys
from groundfault import models
target = models.get("openai/tiny", base_url=sys.argv[1], api_key="k" * 10)
prompts = [f"slow 0.02 kill {i}" for i in range(36)]
show = lambda line: print(line, flush=True)
answers = models.ask(target, prompts, record=sys.argv[2], concurrency=4, progress=show)
print("all", sum(a.text == f"echo {p}" for a, p in zip(answers, prompts)))
"""


@pytest.mark.slow
def test_killed_at_any_moment_and_nothing_is_paid_twice(server: Server, tmp_path: Path) -> None:
    record, kills, recorded, output = tmp_path / "calls.db", 0, 0, ""
    while not output.startswith("all") and kills < 12:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, server.url, str(record)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for line in process.stdout:
            output = line
            if int(line.split()[0] if line[0].isdigit() else 0) > recorded + 12 + kills:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
        process.stdout.close()
        process.wait()
        recorded = len(list(Record(record).calls()))
    assert output.split() == ["all", "36"]
    assert kills >= 2
    names = Counter(call.question.messages[0]["content"] for call in Record(record).calls())
    assert set(names.values()) == {1}
    times = Counter({k: v for k, v in server.times().items() if "kill" in k})
    assert len(times) == 36
    assert times.total() - 36 <= 4 * kills, "only calls that were on their way are asked again"


# Polars takes Ctrl-C over once it has been asked for something
POLARS = "import polars\npolars.LazyFrame({'x': [1]}).sum().collect()\n"


@pytest.mark.parametrize("before", ["", POLARS], ids=["alone", "after Polars"])
def test_interrupted_from_the_keyboard(server: Server, tmp_path: Path, before: str) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            before + RUN.replace("0.02 kill", f"0.2 stop {len(before)}"),
            server.url,
            str(tmp_path / "c.db"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=10)
    assert "KeyboardInterrupt" in message
    assert process.returncode != 0
    assert 0 < len(list(Record(tmp_path / "c.db").calls())) < 36, "calls went on"


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
questions = st.builds(
    Question,
    text.filter(bool)
    | st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": text}), min_size=1),
    temperature=st.none() | st.floats(0, 2),
    max_tokens=st.none() | st.integers(1, 99),
    seed=st.none() | st.integers(-5, 5),
    stop=st.lists(text, max_size=2),
    extra=st.dictionaries(text, text, max_size=1),
    repeat=st.integers(0, 3),
)
responses = st.builds(
    Response,
    st.none() | text,
    finish=text,
    refused=st.booleans(),
    error=text,
    usage=st.dictionaries(st.sampled_from(["input", "output"]), st.integers(0, 9)),
    raw=text,
    seconds=st.floats(0, 9),
    attempt=st.integers(1, 5),
    again=st.booleans(),
    after=st.none() | st.floats(0, 9),
)


@settings(max_examples=count_examples(60))
@given(questions, questions, responses)
def test_questions_and_responses_survive_json(
    question: Question, other: Question, response: Response
) -> None:
    again = Question.from_dict(json.loads(json.dumps(question.to_dict())))
    assert again == question
    assert again.hash == question.hash
    assert (question.hash == other.hash) == (question == other)
    read = Response.from_dict(json.loads(json.dumps(response.to_dict())))
    assert read.recorded
    assert {**vars(read), "recorded": False} == vars(response)


# ------------------------------------------------------------------------------------------ secrets


def test_no_secret_is_told(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that repeats its key, a password in the address; all that is stored or shown."""
    other = "hf_secret_in_the_environment"
    monkeypatch.setenv("HF_TOKEN", other)
    caplog.set_level(logging.DEBUG)
    url = server.url.replace("//", "//user:pa55-word@") + "?token=query-secret"
    target = models.get("openai/tiny", base_url=server.url, api_key=KEY)
    texts = [repr(target), target.name, models.get("openai/tiny", base_url=url, api_key=KEY).name]
    answers = models.ask(target, ["leak 1", "leak 9"], record=tmp_path / "c.db", retries=1)
    answers += models.ask(
        Scripted(Response.failed("x", raw=f"sent {other}")), ["x"], record=tmp_path / "c.db"
    )
    assert "Bearer [hidden]" in answers[1].error
    texts += [repr(answers), caplog.text, repr(list(Record(tmp_path / "c.db").calls()))]
    Record(tmp_path / "c.db").to_jsonl(tmp_path / "c.jsonl")
    rows = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with pytest.raises(InputError) as error:
        models.ask(models.get("openai/nobody", base_url=server.url, api_key="sk-wrong-999"), ["x"])
    texts.append(str(error.value))
    for secret in (KEY, other, "pa55-word", "query-secret", "sk-wrong-999"):
        assert secret.encode() not in rows
        assert not [text for text in texts if secret in text]
    assert server.requests()["seen"][-1]["key"] == "Bearer sk-wrong-999"


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ("one string", "give a list"),
        ([7], "prompt 1: a prompt is a string or a list"),
        ([[]], "a prompt is a string or a list"),
        (
            ["fine", [{"role": "user"}]],
            "prompt 2: message 1 of a prompt must have role and content",
        ),
        ([[{"role": "robot", "content": "x"}]], "the role is one of"),
        ([[{"role": "user", "content": None}]], "the content text"),
        (["half \ud83d"], "half of a surrogate pair"),
    ],
)
def test_prompts_that_cannot_be_sent(prompts: Any, message: str) -> None:
    target = Scripted(Response("x"))
    with pytest.raises(InputError, match=message):
        models.ask(target, prompts)
    assert not target.questions


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": "hot"},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"max_tokens": 0},
        {"max_tokens": 2.5},
        {"seed": "x"},
        {"logprobs": -1},
        {"repeat": -1},
        {"extra": {"f": open}},
        {"concurrency": 0},
        {"retries": -1},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"temprature": 0},
    ],
)
def test_impossible_settings(options: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        models.ask(Scripted(Response("x")), ["x"], **options)


def test_names_of_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gpt-4o", "openai", "openai/", "", "/x"):
        with pytest.raises(PlanError, match="names no target"):
            models.get(name)
    with pytest.raises(
        PlanError, match="no target is named 'nonsense'; there are replay, openai, inspect, hf"
    ):
        models.get("nonsense/x")
    with pytest.raises(PlanError, match="does not take these options"):
        models.get("openai/x", colour="red")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(PlanError, match="set OPENAI_API_KEY"):
        models.get("openai/x")
    with pytest.raises(PlanError, match="is malformed"):
        models.get("openai/x", base_url="localhost:8000")
    with pytest.raises(PlanError, match="cannot be sent"):
        models.get("openai/x", api_key="sk-\x07")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1/")
    assert models.get("openai/x/y:z").name == "openai/x/y:z@http://localhost:1/v1"


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module, extra in (
        ("openai/x", "openai", "openai"),
        ("inspect/x/y", "inspect_ai.model", "inspect"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=f"groundfault\\[{extra}\\]"):
            models.get(name)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no answers"),
        (b"{", "line 1"),
        (b"[1]", "line 1"),
        (b'{"response": "x"}', "no prompt"),
        (b'{"prompt": "x"}', "no response"),
        (b'{"prompt": "x", "response": 5}', "no response"),
        (b'{"prompt": "x", "response": {"text": 5}}', "the text of a response is text"),
        (b'{"prompt": 5, "response": "x"}', "a prompt is a string"),
        (b'{"prompt": "x", "response": "y", "repeat": "z"}', "repeat"),
        (b'{"prompt": "x", "settings": {"colour": 1}, "messages": [], "response": "y"}', "call 1"),
        (b"\xff\xfe", "line 1"),
        (b'{"prompt": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_files_that_do_not_replay(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        models.get(f"replay:{file}")


def test_records_that_do_not_replay(tmp_path: Path) -> None:
    import sqlite3

    with pytest.raises(InputError, match="No such file"):
        models.get(f"replay:{tmp_path / 'nowhere.jsonl'}")
    models.ask(Scripted(Response("x")), ["x"], record=tmp_path / "c.db")
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("""UPDATE groundfault_calls SET asked = replace(asked, '"x"', '"y"')""")
    connection.close()
    with pytest.raises(LedgerError, match="call 1 has another question"):
        models.get(f"replay:{tmp_path / 'c.db'}")


def test_nothing_to_ask(tmp_path: Path) -> None:
    assert models.ask(Scripted(Response("x")), [], record=tmp_path / "c.db") == []


def test_a_fault_of_the_target_comes_out_as_itself() -> None:
    class Faulty(Scripted):
        async def answer(self, question: Question) -> Response:
            raise ZeroDivisionError("a bug in a plug-in")

    with pytest.raises(ZeroDivisionError, match="a bug in a plug-in"):
        models.ask(Faulty(Response("x")), ["x", "y"])


# -------------------------------------------------------------------------------- sequential audits


def test_a_sequential_audit_asks_the_model(tmp_path: Path) -> None:
    import polars as pl

    from groundfault import Pool, SequentialAudit
    from groundfault.sequential import answers

    right = [i % 4 > 0 or i < 100 for i in range(200)]
    lines = [
        {"prompt": f"sum {i}", "response": str(i) if ok else "no"} for i, ok in enumerate(right)
    ]
    (tmp_path / "said.jsonl").write_text("\n".join(map(json.dumps, lines)))
    table = pl.DataFrame(
        {"id": [f"{i:03d}" for i in range(200)], "kind": ["easy"] * 100 + ["hard"] * 100}
    )
    table = table.with_columns(
        prompt=pl.Series([f"sum {i}" for i in range(200)]), gold=pl.Series(range(200))
    )

    def score(text: str, case: Any) -> float:
        return float(text == str(case["gold"]))

    message = f"replay:{tmp_path / 'said.jsonl'}"
    audit = SequentialAudit(Pool.from_table(table, id="id", groups=["kind"]), threshold=0.9, seed=1)
    assert (
        audit.run(answers.model(message, score, record=tmp_path / "calls.db"))
        == "failure mode found"
    )
    questions = len(list(Record(tmp_path / "calls.db").calls()))
    assert 0 < questions < 200

    with pytest.raises(InputError, match="no text in the column 'question'"):
        SequentialAudit(Pool.from_table(table, id="id"), threshold=0.9).run(
            answers.model(message, score, prompt="question")
        )
    failures = Scripted(Response.failed("gone"))
    with pytest.raises(InputError, match=r"no answer for case .*: gone; run again to go on"):
        SequentialAudit(Pool.from_table(table, id="id"), threshold=0.9).run(
            answers.model(failures, score)
        )


def test_a_rate_is_asked_anew_each_time() -> None:
    import polars as pl

    from groundfault import Pool, SequentialAudit
    from groundfault.sequential import answers

    coin = Scripted(*(Response(str(i % 2)) for i in range(100)))
    table = pl.DataFrame({"id": ["a", "b"], "prompt": ["flip", "toss"]})
    audit = SequentialAudit(
        Pool.from_table(table, id="id"), threshold=0.9, claim="rates", budget=30, seed=0
    )
    audit.run(answers.model(coin, lambda text, case: float(text), fresh=True))
    assert len({question.hash for question in coin.questions}) == len(coin.questions) > 2


# ------------------------------------------------------------------------------------------ Inspect


def test_inspect_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = pytest.importorskip("inspect_ai.model", reason="pip install 'groundfault[inspect]'")

    def speak(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        text = messages[-1].text
        if text == "break":
            raise ValueError("a fault\nof many lines")
        reason = {"cut": "max_tokens", "filter": "content_filter"}.get(text, "stop")
        output = model.ModelOutput.from_content(
            "mock", f"{text} {config.temperature} {config.seed}", reason
        )
        output.usage = model.ModelUsage(
            input_tokens=3, output_tokens=2
        )  # left out, tiktoken would be downloaded
        return output

    target = models.get("inspect/mockllm/model", custom_outputs=speak)
    prompts = [
        "hello",
        "cut",
        "filter",
        "break",
        [{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}],
    ]
    hello, cut, filtered, server_error, chat = models.ask(
        target, prompts, record=tmp_path / "c.db", temperature=0.5, seed=3
    )
    assert hello.text == "hello 0.5 3"
    assert hello.usage == {"input": 3, "output": 2}
    assert hello.finish == "stop"
    assert cut.finish == "length"
    assert filtered.status == "refused"
    assert server_error.error == "ValueError: a fault"
    assert chat.text == "y 0.5 3"
    assert json.loads(hello.raw)["choices"][0]["message"]["content"] == hello.text
    with pytest.raises(PlanError, match="cannot be opened"):
        models.get("inspect/nonsense/model")
    # Inspect says so by an error of its own, which is no ImportError
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="needs a library: pip install torch transformers"):
        models.get("hf/a-model")


def test_inspect_tries_once_and_we_count(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai.model")
    monkeypatch.setenv("LOCAL_API_KEY", KEY)
    monkeypatch.setenv("LOCAL_BASE_URL", server.url)
    target = models.get("inspect/openai-api/local/tiny")
    start = time.monotonic()
    assert target.name == f'inspect/openai-api/local/tiny{{"base_url": "{server.url}"}}'
    fine, late, failures = models.ask(target, ["fine", "500 1 inspect", "500 9 inspect"], retries=1)
    assert fine.text == "echo fine"
    assert (late.text, late.attempt) == ("echo 500 1 inspect", 2)
    assert failures.status == "error"
    assert server.times()["500 9 inspect"] == 2
    assert time.monotonic() - start < 10
    # another model that answers, and a key in an answer, are seen to here, too
    with pytest.warns(UserWarning, match="'local/tiny' was asked, and the server answered as"):
        other, echo = models.ask(target, ["other 1", "echo-key inspect"], retries=0)
    assert (other.model, other.asked, echo.asked) == ("tiny-1", "local/tiny", "")
    assert echo.text is not None
    assert "the key is [hidden], in JSON" in echo.text
    assert KEY not in echo.raw
    monkeypatch.setenv("LOCAL_API_KEY", "sk-wrong-12345678")
    with pytest.raises(InputError) as error:
        models.ask(
            models.get("inspect/openai-api/local/tiny", base_url=server.url + "/"),
            [f"w {i}" for i in range(50)],
        )
    assert "sk-wrong-12345678" not in str(error.value)


@pytest.mark.slow
def test_a_hugging_face_model_on_this_machine(tmp_path: Path) -> None:
    """GPT-2 of 52,000 parameters with a tokenizer of its own, both made here."""
    for package in ("torch", "transformers", "accelerate", "inspect_ai.model"):
        pytest.importorskip(package, reason="pip install torch transformers accelerate inspect_ai")
    from tiny_gpt import build

    build(tmp_path / "gpt")
    target = models.get(f"hf/{tmp_path / 'gpt'}", device="cpu")
    prompts = [f"question {i}" for i in range(6)]
    first = models.ask(
        target,
        prompts,
        temperature=0,
        max_tokens=8,
        logprobs=0,
        record=tmp_path / "c.db",
        timeout=120,
    )
    assert {a.status for a in first} == {"answered"}
    assert all(token["logprob"] <= 0 for a in first for token in a.logprobs)
    assert all(len(a.logprobs) <= 8 for a in first)
    greedy = models.ask(target, prompts, temperature=0, max_tokens=8, timeout=120)
    assert [a.text for a in greedy] == [a.text for a in first]
    samples = models.ask(target, prompts, temperature=1.5, max_tokens=8, timeout=120)
    assert [a.text for a in samples] != [a.text for a in first]
    again = models.ask(
        f"replay:{tmp_path / 'c.db'}", prompts, temperature=0, max_tokens=8, logprobs=0
    )
    assert [a.text for a in again] == [a.text for a in first]
    with pytest.raises(PlanError, match="no seed"):
        models.ask(target, ["x"], temperature=1, seed=1)
    start = time.monotonic()
    (failures,) = models.ask(target, ["word " * 4000], max_tokens=8, timeout=120)
    assert failures.status == "error"
    assert failures.attempt == 1, "a fault of the model's code does not pass"
    assert time.monotonic() - start < 30
