"""The ``openai`` target: any server that speaks OpenAI's chat protocol, through its SDK."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections.abc import AsyncIterator, Mapping
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from groundfault.errors import PlanError, first_line, require_extra
from groundfault.models.question import Question, Response, note_other, whole_text
from groundfault.models.secrets import read_credentials

if TYPE_CHECKING:
    import openai

MAX_REPLY = 4 << 20
"""Bytes of a reply: a million tokens, or any error."""
MAX_REPLY_WITH_LOGPROBS = 64 << 20
"""Bytes of a reply with log-probabilities, which are some hundred times as long as its text."""

_LIMIT = "groundfault_limit"
_ORIGIN = ("scheme", "host", "port")
_HOME = "api.openai.com"
_FILTERS = set(
    "content_filter content_policy_violation ResponsibleAIPolicyViolation moderation".split()
)
# codes of an account that cannot pay: status 429 like a rate limit, but waiting does not help
_NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")


class OpenAIServer:
    """A model behind an OpenAI-compatible server: OpenAI itself, vLLM, ollama, llama.cpp, gateways.

    Parameters
    ----------
    model : str
        The server's name for the model.
    base_url : str, optional
        Address of the server, such as ``http://localhost:8000/v1``; the default is OPENAI_BASE_URL,
        else OpenAI.
    api_key : str, optional
        The default is OPENAI_API_KEY; your own server may need no key.

    Raises
    ------
    MissingExtraError
        If the ``openai`` library is not installed.
    PlanError
        If the key for OpenAI is missing.
    """

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        with require_extra(
            "the target openai needs its library: pip install 'groundfault[openai]'"
        ):
            import openai  # noqa: F401
        self._model = model
        self._url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not self._key and self._url is None:
            raise PlanError(
                "set OPENAI_API_KEY, or say where a server of your own is: base_url, or "
                "OPENAI_BASE_URL"
            )
        if not (self._key.isascii() and self._key.isprintable()):
            raise PlanError("the API key holds characters that cannot be sent; copy it again")
        self._secrets = tuple(part for part in (self._key, *_credentials(self._url)) if part)
        self._client: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI] | None = None

    @property
    def name(self) -> str:
        """Return the model, and the server where it is not OpenAI's own."""
        return f"openai/{self._model}" + (f"@{public(self._url)}" if self._url else "")

    def __repr__(self) -> str:
        return f"<{self.name}>"

    async def answer(self, question: Question) -> Response:
        """Make one attempt, without the retries and the time-out of the SDK."""
        import openai

        try:
            completions = self._connect().chat.completions.with_raw_response
            reply = await completions.create(**self._request(question))
            return note_other(_read(reply.text), self._model).without(self._secrets)
        except openai.APIStatusError as error:
            reply = error.response
            response = _read_error(error.status_code, reply.headers, reply.text)
            return response.without(self._secrets)
        except (openai.APIConnectionError, ReplyTooLargeError, RedirectError) as error:
            cause = error.__cause__ or error  # some versions of the SDK wrap it
            is_ours = isinstance(cause, ReplyTooLargeError | RedirectError)
            message = str(cause) if is_ours else f"no connection: {first_line(cause)}"
            fatal = isinstance(cause, RedirectError)
            failed = Response.failed(message, again=not is_ours, fatal=fatal)
            return failed.without(self._secrets)

    def _connect(self) -> openai.AsyncOpenAI:
        """Return the client; a new one on another event loop, as connections belong to a loop."""
        import openai

        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            hooks = {"request": [prepare_request], "response": [check_reply]}
            client = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self._url,
                max_retries=0,
                timeout=openai.Timeout(None),
                http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
            )
            self._client = (loop, client)
        return self._client[1]

    def _request(self, question: Question) -> dict[str, object]:
        # OpenAI's newer models refuse max_tokens, and most other servers know only max_tokens
        at_home = self._url is None or urlsplit(self._url).hostname == _HOME
        limit = "max_completion_tokens" if at_home else "max_tokens"
        options = question.list_options(max_tokens=limit)
        return {"model": self._model, "messages": [dict(m) for m in question.messages], **options}


def _read(body: str) -> Response:
    """Return the response of a reply with status 200."""
    # gateways answer 200 with an error inside; it may be temporary, like one with status 500
    try:
        data = json.loads(body)
        if data.get("error"):
            message = f"the server says: {_describe_error(data)}"
            return Response.failed(message, raw=body, again=True)
        choice = data["choices"][0]
        message, finish = choice["message"], str(choice.get("finish_reason") or "")
        refusal = message.get("refusal")
        text = refusal or _text(message.get("content"))
        return Response(
            whole_text(text),
            finish=finish,
            refused=bool(refusal) or finish == "content_filter",
            model=str(data.get("model") or ""),
            usage=_usage(data.get("usage") or {}),
            logprobs=_logprobs(choice.get("logprobs") or {}),
            raw=body,
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        message = f"the reply is not a chat completion: {first_line(error)}"
        return Response.failed(message, raw=body, again=True)


def _read_error(status: int, headers: Mapping[str, str], body: str) -> Response:
    """Read the response of a reply with an error's status.

    The error concerns this question (a filter, a bad request), this moment (retry), or all
    questions (fatal).
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = {}
    code = json.dumps(data)
    message = f"{status}: {_describe_error(data) or body[:200] or 'no message'}"
    if status in (400, 403) and any(f'"{word}"' in code for word in _FILTERS):
        return Response("", finish="content_filter", refused=True, raw=body)
    if status in (401, 403, 404) or any(f'"{word}"' in code for word in _NO_CREDIT):
        return Response.failed(message, raw=body, fatal=True)
    if status in (408, 409, 425, 429) or status >= 500:
        return Response.failed(message, raw=body, again=True, after=read_retry_after(headers))
    return Response.failed(message, raw=body)


def _describe_error(data: Any) -> str:
    """Return the message of an error from any of the forms that servers use."""
    error = data.get("error", data) if isinstance(data, Mapping) else data
    message = error.get("message") or error.get("detail") if isinstance(error, Mapping) else error
    return str(message or "")


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the wait that a server asks for: seconds, milliseconds, or a date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (TypeError, ValueError, OverflowError):
                continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _text(content: Any) -> str:
    """Return text, or the texts of a list of parts.

    The text is empty for content without text, such as a tool call.
    """
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError(f"the content is {type(content).__name__}, not text")
    return content or ""


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    counts = {"input": usage.get("prompt_tokens"), "output": usage.get("completion_tokens")}
    return {name: int(count) for name, count in counts.items() if count is not None}


def _logprobs(logprobs: Mapping[str, Any]) -> tuple[dict[str, object], ...]:
    def token(entry: Mapping[str, Any]) -> dict[str, Any]:
        value = float(entry["logprob"])
        return {
            "token": whole_text(str(entry["token"])),
            # OpenAI's own number for a token that is very unlikely; JSON has no infinity
            "logprob": value if math.isfinite(value) else -9999.0,
        }

    return tuple(
        token(entry) | {"top_logprobs": list(map(token, entry.get("top_logprobs") or []))}
        for entry in logprobs.get("content") or []
    )


def _credentials(url: str | None) -> tuple[str, ...]:
    """Return the secret parts of a valid URL."""
    if url is None:
        return ()
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise PlanError(
            "the address of the server (base_url) is malformed; write http://host:port/v1"
        )
    return read_credentials(url)


def public(url: str) -> str:
    """Return an address without user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


class ReplyTooLargeError(Exception):
    """A reply that is not read to its end."""


class _BoundedStream:
    """The bytes of a reply as they come, up to a bound."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._limit:
                raise ReplyTooLargeError(
                    f"the reply has more than {self._limit >> 20} MB, the most that is read"
                )
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


class RedirectError(Exception):
    """A redirect to another server, which would get the questions."""


async def prepare_request(request: Any) -> None:
    """Ask for an uncompressed reply: a compressed one may unpack to a thousand times its size."""
    request.headers["accept-encoding"] = "identity"
    # a redirect has the extensions of its first request, but perhaps not its body
    if _LIMIT not in request.extensions:
        asked = json.loads(request.content)
        limit = MAX_REPLY_WITH_LOGPROBS if asked.get("logprobs") else MAX_REPLY
        request.extensions[_LIMIT] = limit


async def check_reply(response: Any) -> None:
    """Limit the size of a reply, and refuse redirects to other servers.

    Raises
    ------
    ReplyTooLargeError
        If the reply is compressed without being asked for; during reading, if it is too large.
    RedirectError
        If the reply redirects to another scheme, host or port.
    """
    if response.has_redirect_location:
        _require_same_origin(response.request.url, response.headers["location"])
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ReplyTooLargeError(
            f"the reply is compressed ({encoding[:40]}) without being asked for, so its size is "
            "unknown"
        )
    # httpx, or the copy in newer clients: the stream must be of the same library's class
    library = import_module(type(response).__module__.partition(".")[0])
    kind = type("BoundedStream", (_BoundedStream, library.AsyncByteStream), {})
    response.stream = kind(response.stream, response.request.extensions[_LIMIT])


def _require_same_origin(url: Any, location: str) -> None:
    try:
        # by the client's own parser, which is the one that would follow it
        target = url.join(location)
        is_same = all(getattr(url, part) == getattr(target, part) for part in _ORIGIN)
    except Exception:  # each version of the client raises its own
        is_same = False
    if not is_same:
        raise RedirectError(
            f"the server redirects to {location[:200]}, and questions are sent to no other "
            "server than the one that was named; if it is right, name it (base_url)"
        )
