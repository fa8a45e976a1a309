"""The ``inspect`` and ``hf`` targets: any model that Inspect's ``get_model`` reaches."""

from __future__ import annotations

import json
import re
from copy import copy
from dataclasses import replace
from typing import Any

from groundfault.errors import MissingExtraError, PlanError, first_line, require_extra
from groundfault.models.openai_server import public
from groundfault.models.question import Question, Response, note_other, whole_text
from groundfault.models.secrets import read_credentials

# connections of the provider's client; `ask` has the bound on concurrency
_MANY = 1000
_CUT = ("max_tokens", "model_length")
# endings of options left out of the name: secrets, and settings that the temperature decides
_SECRET = ("key", "token", "secret", "password")
_HIDDEN = ("do_sample", *_SECRET)


class InspectModel:
    """A model of one of Inspect's providers.

    Parameters
    ----------
    model : str
        ``<provider>/<model>``, as in Inspect: ``anthropic/...``, ``ollama/...``, ``vllm/...``,
        ``hf/...``.
    **options
        Options of Inspect's ``get_model``: ``base_url``, ``api_key``, and the provider's arguments.

    Raises
    ------
    MissingExtraError
        If Inspect, or a library that the provider needs, is not installed.
    PlanError
        If the model is unknown, or its key is missing.

    Notes
    -----
    Inspect would retry forever and cache replies as pickles. Here it tries once without a cache,
    because `groundfault.models.ask` retries and records.
    """

    def __init__(self, model: str, **options: object) -> None:
        with require_extra("this target needs Inspect: pip install 'groundfault[inspect]'"):
            from inspect_ai.model import GenerateConfig, get_model
        self._local = model.startswith("hf/")
        # greedy unless a question sets a temperature: transformers refuses a temperature of 0
        if self._local:
            options = {"do_sample": False, **options}
        config = GenerateConfig(max_retries=0, max_connections=None if self._local else _MANY)
        try:
            self._model = get_model(model, config=config, **options)
        except Exception as error:  # each provider raises its own, Inspect too
            install = re.search(r"pip install [\w .<>=-]+", str(error))
            if install or isinstance(error, ImportError):
                needed = install[0] if install else first_line(error)
                raise MissingExtraError(f"inspect/{model} needs a library: {needed}") from None
            raise PlanError(f"inspect/{model} cannot be opened: {_describe_error(error)}") from None
        client: object = getattr(self._model.api, "client", None)
        # below Inspect's retries, the libraries of most providers have their own
        if hasattr(client, "max_retries"):
            client.max_retries = 0
        url = getattr(self._model.api, "base_url", None)
        self.name = _name(model, {**options, "base_url": url})
        # the provider is not a model: an answer under the provider's name does not show the model
        self._provider, _, self._asked = model.partition("/")
        keys = (v for k, v in options.items() if k.endswith(_SECRET) and isinstance(v, str))
        self._secrets = (*keys, *(read_credentials(url) if url else ()))

    async def answer(self, question: Question) -> Response:
        """Make one attempt."""
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
        from tenacity import RetryError

        kinds = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}
        messages = [
            kinds.get(m["role"], ChatMessageSystem)(content=m["content"]) for m in question.messages
        ]
        model = self._sampling_model() if self._local and question.temperature else self._model
        if self._local:
            _check_local(question)
            # a prompt beyond the context would end all of its batch in an IndexError
            if excess := self._measure_excess(question):
                return Response.failed(f"the context is too short: {excess}", finish="length")
        try:
            output = await model.generate(messages, config=self._config(question), cache=False)
        except RetryError as error:
            response = self._failure(error.last_attempt.exception() or error)
        except Exception as error:  # each provider raises its own
            response = self._failure(error)
        else:
            response = self._read(output, question)
        if not self._local and response.model != self._provider:
            response = note_other(response, self._asked)
        return response.without(self._secrets)

    def _measure_excess(self, question: Question) -> str:
        """Say by how much a prompt exceeds the positions of a local model; empty if it fits."""
        api: Any = self._model.api
        most = getattr(api.model.config, "max_position_embeddings", None)
        text = "".join(message["content"] for message in question.messages)
        size = len(api.tokenizer(text, verbose=False)["input_ids"])
        long = most is not None and size >= most
        return f"the prompt has {size:,} tokens, and the model {most:,} positions" if long else ""

    def _sampling_model(self) -> Any:
        """Return the same weights, with answers drawn at random."""
        # do_sample belongs to the model's object in Inspect and not to a call: shallow copies share
        # the weights
        model = copy(self._model)
        model.api = copy(model.api)
        model.api.do_sample = True
        return model

    def _config(self, question: Question) -> Any:
        from inspect_ai.model import GenerateConfig

        if self._local:
            question = replace(question, temperature=question.temperature or None, seed=None)
        return GenerateConfig(**question.list_options(stop="stop_seqs"))

    def _failure(self, error: BaseException) -> Response:
        status = getattr(error, "status_code", None)
        if not isinstance(error, Exception):
            raise error
        # the provider's own judgement: a bool, or an object with the time that the service asks for
        decision = self._model.api.should_retry(error)
        is_final = status in (401, 403, 404) or self._model.api.is_auth_failure(error)
        return Response.failed(
            _describe_error(error),
            again=bool(decision),
            after=getattr(decision, "retry_after", None),
            fatal=not decision and is_final,
        )

    def _read(self, output: Any, question: Question) -> Response:
        raw = output.model_dump_json(exclude_none=True)
        if not output.choices:
            message = f"no choice in the reply: {output.error or 'and no reason'}"
            return Response.failed(message, raw=raw, again=True)
        choice = output.choices[0]
        finish = "length" if choice.stop_reason in _CUT else choice.stop_reason
        response = Response(
            whole_text(output.completion),
            finish="" if finish == "unknown" else finish,
            refused=finish == "content_filter" or bool(output.error),
            model=output.model,
            usage=_usage(output.usage) if output.usage else {},
            logprobs=tuple(map(_logprob, choice.logprobs.content)) if choice.logprobs else (),
            raw=raw,
        )
        return self._correct_batch(response, question) if self._local else response

    def _correct_batch(self, response: Response, question: Question) -> Response:
        """Remove the padding of a batch from a local model's answer.

        Inspect counts padding to the longest answer of the batch as the answer's tokens, so usage
        and finish are not reliable either.
        """
        end, tokens = self._model.api.tokenizer.eos_token, response.logprobs
        ends = [i for i, token in enumerate(tokens) if token["token"] == end]
        kept = tokens[: ends[0] + 1] if ends else tokens
        most = question.max_tokens
        short = most is not None and response.usage.get("output", 0) < most
        return replace(response, logprobs=kept, usage={}, finish="stop" if ends or short else "")


def hugging_face(path: str, **options: object) -> InspectModel:
    """Return a Hugging Face model on this machine, from a folder or the Hub.

    Options as in Inspect.
    """
    from pathlib import Path

    if Path(path).is_dir():
        return InspectModel("hf/local", model_path=str(Path(path).resolve()), **options)
    return InspectModel(f"hf/{path}", **options)


def _name(model: str, options: dict[str, Any]) -> str:
    """Return the model and the options that decide its answers, without keys and passwords."""
    shown = {name: v for name, v in options.items() if v is not None and not name.endswith(_HIDDEN)}
    if "base_url" in shown:
        shown["base_url"] = public(shown["base_url"])
    settings = json.dumps(shown, sort_keys=True, default=lambda value: type(value).__name__)
    return f"inspect/{model}{settings if shown else ''}"


def _check_local(question: Question) -> None:
    if question.temperature and question.seed is not None:
        raise PlanError(
            "hf takes no seed a question: its draws depend on the batch; leave it out, the record "
            "replays"
        )
    if question.temperature and question.logprobs is not None:
        raise PlanError(
            "hf gives log-probabilities of the likeliest tokens, not of those drawn; use "
            "temperature 0"
        )


def _logprob(token: Any) -> dict[str, object]:
    others = token.top_logprobs or []
    top = [{"token": other.token, "logprob": other.logprob} for other in others]
    return {"token": whole_text(token.token), "logprob": token.logprob, "top_logprobs": top}


def _usage(usage: Any) -> dict[str, int]:
    cache_tokens = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return {"input": usage.input_tokens + cache_tokens, "output": usage.output_tokens}


def _describe_error(error: BaseException) -> str:
    """Return the message of an error without the request that Inspect prints before it."""
    message = getattr(error, "provider_message", None)
    return str(message or f"{type(error).__name__}: {first_line(error)}")
