"""Asking: many questions at once, each retried within bounds and recorded before it is used."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from groundfault.errors import InputError, PlanError
from groundfault.models.question import Prompt, Question, Response, warn_of_others
from groundfault.models.record import Call, Record
from groundfault.models.secrets import read_environment
from groundfault.models.target import Target, get

T = TypeVar("T")

# seconds before the first retry, each further one waiting twice as long, and at most
_FIRST_WAIT, _MAX_WAIT = 0.5, 30.0
# where a service asks to wait longer than five minutes, as after a daily quota, the question fails
_MAX_REQUESTED_WAIT = 300.0
# questions in a row that fail after all retries: the service is down, and asking on costs hours
_MAX_FAILURES = 10
# characters of a variable's value that is cut out of answers: it was not sent, and may be a word
_MIN_VARIABLE = 16
# seconds in which Ctrl-C is heard
_PATIENCE = 0.2


class _Settings(TypedDict, total=False):
    """Settings of a `Question` except seed and repeat."""

    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    stop: Sequence[str]
    logprobs: int | None
    extra: Mapping[str, Any]


class QuestionSettings(_Settings, total=False):
    """Settings of a `Question`."""

    seed: int | None
    repeat: int


class CallOptions(_Settings, total=False):
    """Options of `ask` except seed, repeat, record and progress; `ask_async` describes them."""

    concurrency: int
    timeout: float
    retries: int


class AskOptions(CallOptions, total=False):
    """Options of `ask` except seed and repeat."""

    record: str | Path | Record | None
    progress: Callable[[str], object] | None


class _AllOptions(AskOptions, QuestionSettings, total=False):
    """Options of `ask`."""


def ask(
    target: str | Target, prompts: Iterable[Prompt | Question], **options: Unpack[_AllOptions]
) -> list[Response]:
    """Ask a model and wait for the responses; `ask_async` describes the options.

    The function also works in a notebook, where an event loop is running already.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> _ = file.write_text(json.dumps({"prompt": "2 + 2?", "response": "4"}))
    >>> ask(f"replay:{file}", ["2 + 2?"])[0].text
    '4'
    """
    return _on_a_loop(ask_async(target, prompts, **options))


async def ask_async(
    target: str | Target,
    prompts: Iterable[Prompt | Question],
    *,
    record: str | Path | Record | None = None,
    concurrency: int = 8,
    timeout: float = 60.0,
    retries: int = 4,
    progress: Callable[[str], object] | None = None,
    **settings: Unpack[QuestionSettings],
) -> list[Response]:
    """Ask a model and return one response a prompt, in the order of the prompts.

    Parameters
    ----------
    target : str or Target
        For example ``openai/gpt-4o-mini`` or ``replay:calls.jsonl``; see `groundfault.models`.
    prompts : iterable of str, list of messages, or Question
        A repeated question is asked once; another ``repeat`` makes it another question.
    record : path, URL or Record, optional
        Record of every attempt, written before its response is returned. A question with an answer
        on record is not asked again: after an interruption, run the same call again and pay only
        for the missing answers.
    concurrency : int
        Largest number of calls at a time.
    timeout : float
        Seconds for one attempt.
    retries : int
        Further attempts after an error that may be temporary; waits double from 0.5 s to 30 s,
        unless the service asks for a longer wait.
    progress : callable, optional
        Called with a line of text after each question.
    **settings
        As in `Question`: temperature, top_p, max_tokens, seed, stop, logprobs, extra, repeat.

    Returns
    -------
    list of Response
        An error of the service is a response whose ``status`` is "error": not scored, and not the
        model's failure.

    Raises
    ------
    InputError
        If a prompt cannot be sent, the record cannot be written to, the service refuses every
        question (a wrong key, an unknown model), or ten questions in a row fail after all
        attempts. The answers until then are in the record.
    PlanError
        If a setting is out of range or the target is unknown.

    Warns
    -----
    UserWarning
        If the server answered as another model than the one asked.

    Notes
    -----
    If the process is killed, up to ``concurrency`` calls in progress may have been paid for and are
    asked again, because their replies never arrived.
    """
    model = get(target)
    if concurrency < 1:
        raise PlanError(f"concurrency={concurrency} (--concurrency) must be at least 1")
    if retries < 0 or not timeout > 0:
        raise PlanError(
            f"retries={retries} must be at least 0, and timeout={timeout} (--timeout) above 0"
        )
    questions = _questions(prompts, settings)
    by_hash = {question.hash: question for question in questions}
    open_record = record if isinstance(record, Record) or record is None else Record(record)
    responses: dict[str, Response] = {}
    if open_record and by_hash:
        names = list(by_hash)
        responses = await asyncio.to_thread(open_record.answers, model.name, names)
    # workers fail at the same time, so a short outage may fail twice as many as there are
    most = max(_MAX_FAILURES, 2 * concurrency)
    writer, size = _Writer(open_record), len(by_hash)
    run = _Run(model, writer, timeout, retries, progress, responses, size, most)
    rest = (question for name, question in by_hash.items() if name not in responses)
    await _together(run.work(rest) for _ in range(min(concurrency, len(by_hash) - len(responses))))
    if run.stop_reason:
        place = open_record.place if open_record else ""
        safe = f"; the answers so far are in {place}: run again to go on" if place else ""
        raise InputError(f"{model.name} cannot be asked: {run.stop_reason}{safe}")
    asked = [run.responses[question.hash] for question in questions]
    warn_of_others(asked)
    return asked


def _questions(prompts: Iterable[Prompt | Question], settings: Mapping[str, Any]) -> list[Question]:
    if isinstance(prompts, str):
        raise InputError("prompts is one string; give a list, as in ask(target, [prompt])")
    questions = []
    for number, prompt in enumerate(prompts, start=1):
        try:
            questions.append(
                replace(prompt, **settings)
                if isinstance(prompt, Question)
                else Question(prompt, **settings)
            )
        except InputError as error:
            raise InputError(f"prompt {number}: {error}") from None
        except TypeError:
            raise PlanError(
                f"one of {', '.join(settings)} is not a setting of a question"
            ) from None
    return questions


async def _together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines at once; the first exception cancels the others and is raised unwrapped."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(each)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


@dataclass
class _Run:
    """The state that the workers of one call of `ask` share."""

    target: Target
    writer: _Writer
    timeout: float
    retries: int
    progress: Callable[[str], object] | None
    responses: dict[str, Response]
    total: int
    max_failures: int
    errors: int = 0
    failures: int = 0  # errors in a row
    hold: float = 0.0  # no call is sent before this time of the loop's clock
    stop_reason: str = ""

    async def work(self, questions: Iterator[Question]) -> None:
        for question in questions:
            response = await self._settle(question)
            self.responses[question.hash] = response
            # refusals and faulty questions are no sign of a failing service: only errors that
            # outlasted all attempts count
            self.failures = self.failures + 1 if response.again else 0
            if response.fatal:
                self.stop_reason = response.error
            elif self.failures >= self.max_failures:
                self.stop_reason = (
                    f"{self.failures} questions in a row failed, the last with: {response.error}"
                )
            self.errors += bool(response.error)
            if self.progress:
                error_count = f", {self.errors:,} errors" if self.errors else ""
                self.progress(f"{len(self.responses):,} of {self.total:,} asked{error_count}")
            # other workers' calls in progress are paid for: each ends after its own
            if self.stop_reason:
                return

    async def _settle(self, question: Question) -> Response:
        """Return the response after at most ``1 + retries`` attempts."""
        for attempt in range(1, self.retries + 2):
            response = replace(await self._attempt(question), attempt=attempt)
            # on disk before any use: a paid answer is never lost
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            await self.writer.keep(Call(self.target.name, question, response, now))
            if not response.again or attempt > self.retries or self.stop_reason:
                break
            if response.after is not None and response.after > _MAX_REQUESTED_WAIT:
                error = f"{response.error}; the service asks to wait {response.after:g} s"
                return replace(response, error=error)
            clock = asyncio.get_running_loop().time()
            # a rate limit is the account's, so every worker waits
            if response.after is not None:
                self.hold = max(self.hold, clock + response.after)
            await asyncio.sleep(max(_wait(question, attempt), self.hold - clock))
            if self.stop_reason:
                break
        return response

    async def _attempt(self, question: Question) -> Response:
        loop = asyncio.get_running_loop()
        while (rest := self.hold - loop.time()) > 0:
            await asyncio.sleep(rest)
        start = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout):
                response = await self.target.answer(question)
        except TimeoutError:
            response = Response.failed(f"no answer in {self.timeout:g} s", again=True)
        response = replace(response, seconds=round(time.perf_counter() - start, 6))
        return response.without(read_environment(8 if response.error else _MIN_VARIABLE))


@dataclass
class _Writer:
    """Records calls; calls that arrive during a transaction go together into the next.

    With one transaction a call, the disk would be the bottleneck at high concurrency.
    """

    record: Record | None
    waiting: list[Call] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_broken: bool = False

    async def keep(self, call: Call) -> None:
        """Return once the call is on disk."""
        if self.record is None:
            return
        self.waiting.append(call)
        async with self.lock:
            # by identity: equal calls are separate attempts. A call that is gone was written by the
            # worker that held the lock before
            if not any(other is call for other in self.waiting):
                if self.is_broken:
                    raise InputError(f"the record {self.record.place} could not be written to")
                return
            batch, self.waiting = self.waiting, []
            try:
                await asyncio.to_thread(self.record.add, batch)
            except BaseException:
                self.is_broken = True
                raise


def _wait(question: Question, attempt: int) -> float:
    """Return seconds before the next attempt: doubled each time, with jitter."""
    # jitter, so that calls that failed together do not return together; from the hash and not from
    # a random generator, so that a run can be repeated
    jitter = 0.5 + int(question.hash[:8], 16) / 2**33
    return min(_MAX_WAIT, _FIRST_WAIT * 2.0 ** (attempt - 1)) * jitter


def _on_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from code that is not async, also inside a running event loop.

    All calls run on one loop: clients keep their connections from call to call, and a connection is
    bound to the loop that made it.
    """
    future = asyncio.run_coroutine_threadsafe(work, _loop(os.getpid()))
    try:
        # with time-outs, for Ctrl-C does not end a wait: Polars takes the signal over, and has
        # system calls start again after it
        while not future.done():
            wait([future], timeout=_PATIENCE)
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of this process: after a fork, the parent's loop has no thread to run it."""
    loop = asyncio.new_event_loop()
    threading.Thread(
        target=loop.run_forever, name=f"groundfault-models-{process}", daemon=True
    ).start()
    return loop
