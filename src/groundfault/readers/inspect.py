"""Inspect AI: a log of one run, as ``.eval`` (deflate or zstd) or as ``.json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groundfault.core.status import Status
from groundfault.errors import first_line
from groundfault.readers.inspect_layout import (
    Attachments,
    Choice,
    Header,
    Output,
    Sample,
    Score,
    open_log,
)
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head
from groundfault.readers.values import mapping, number, text, texts_by

_FIRST_ENTRY = re.compile(
    rb"PK\x03\x04.{26}(_journal/start|header|summaries|reductions|samples/.+_epoch_\d+)", re.DOTALL
)
# all of them stand before the list of sample ids, which may be long
_JSON = (b'"eval"', b'"task_id"', b'"run_id"', b'"created"', b'"dataset"')
_ATTACHMENT = "attachment://"

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_NO_ANSWER = "N"
_REASONS = {
    "refusal": Status.REFUSED,
    "invalid_response_format": Status.UNPARSED,
    "no_response": Status.UNPARSED,
    "grader_failed": Status.ERROR,
    "scoring_failed": Status.ERROR,
}
# before 2026 a grader's reply without a grade was scored "I", and only the explanation said so
_NO_GRADE = "Grade not found in model output"
_GRADED = "model_graded"
_GRADER_KEYS = ("model", "grader_model", "judge_model", "grader", "judge", "models")
_MOST_EPOCHS = 10_000
_LONGEST = 200
"""Characters of a scorer's own remark that still becomes a column."""


class Inspect:
    """Reads an Inspect log: one observation a sample, epoch and scorer; a scorer of several values
    gives one a value.

    ``C`` is 1, ``P`` 0.5, ``I`` 0. ``N`` is refused. A reason that Inspect gives with a score
    (``refusal``, ``invalid_response_format``, ``grader_failed``...) makes it refused, unparsed or
    an error, and so does an answer stopped by a content filter (refused): neither is a failure. A
    score of 1 stands whatever the reason. Of a sample with an error no score is used; one without
    scores is missing. Samples that the run set out to do and that are not in the log are missing
    too. Edited scores are read as last edited. Reductions over epochs are not read."""

    companions = ("logs.json", "eval-set.json")

    def sniff(self, path: Path) -> bool:
        """Whether it is an archive with Inspect's entries, or JSON that begins with the description
        of a run.
        """
        first = head(path)
        if first.startswith(b"PK"):
            return path.suffix == ".eval" or _FIRST_ENTRY.match(first) is not None
        return first.lstrip().startswith(b"{") and all(name in first for name in _JSON)

    def read(self, path: Path) -> Log:
        """The samples of one run."""
        header, samples = open_log(path)
        run = _Run(header)
        harness = f"inspect_ai {mapping(header.eval.packages).get('inspect_ai', '')}".strip()
        return Log(run.observations(samples), harness, run.notes)


@dataclass
class _Run:
    header: Header
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = self.header.eval
        scorers = {
            str(s["name"]): mapping(s.get("options"))
            for s in map(mapping, spec.scorers or [])
            if "name" in s
        }
        self.scorers = scorers
        self.arguments = {
            f"task_{key}": value for key, value in mapping(spec.task_args).items() if _short(value)
        }
        clusters = {
            text(mapping(m.get("options")).get("cluster")) for m in _metrics(spec.scorers or [])
        } - {None}
        # the metadata by which standard errors are clustered says which samples depend on each
        # other
        self.cluster = clusters.pop() if len(clusters) == 1 else None

    def observations(self, samples: Iterator[tuple[Sample, Attachments]]) -> Iterator[Observation]:
        """What each sample came to, then the samples that never came to anything."""
        names: set[str] = set()
        keys: set[tuple[str, int]] = set()
        for position, (sample, attachments) in enumerate(samples, 1):
            keys.add((str(sample.id), sample.epoch))
            base = self._sample(sample, attachments, position)
            scored = list(self._scores(sample, base, attachments))
            names.update(row.scorer for row in scored)
            yield from scored
            if len(scored) < len(names) or not scored:
                # of the scorer that is not there; who reads the log takes it for any
                status = base.status if base.status != Status.SCORED else Status.MISSING
                yield _like(base, status=status)
        if keys and not names:
            self.notes.append("no sample is scored")
        yield from self._absent(keys)

    def _absent(self, keys: set[tuple[str, int]]) -> Iterator[Observation]:
        """The samples that were to be run and are not in the log."""
        header, spec = self.header, self.header.eval
        ids, epochs = mapping(spec.dataset).get("sample_ids"), mapping(spec.config).get("epochs")
        ids = [str(each) for each in ids] if isinstance(ids, list) else []
        times = (
            range(1, epochs + 1) if isinstance(epochs, int) and 0 < epochs <= _MOST_EPOCHS else (1,)
        )
        planned = [(each, epoch) for epoch in times for each in ids]
        missing = [key for key in planned if key not in keys]
        count = (
            f"{len(keys):,} of {len(planned):,} samples" if planned else f"{len(keys):,} samples"
        )
        if not keys:
            self.notes.append("no samples")
        if header.status != "success":
            reason = {"error": "ended in an error", "started": "not finished: read"}.get(
                header.status, header.status
            )
            error = text(mapping(header.error).get("message"))
            self.notes.append(f"{reason} after {count}" + (f": {_first(error)}" if error else ""))
        elif missing and keys:
            self.notes.append(f"holds {count} of the run")
        for each, epoch in missing:
            yield Observation(
                each, None, Status.MISSING, model=spec.model, task=spec.task, epoch=epoch
            )

    def _sample(self, sample: Sample, attachments: Attachments, position: int) -> Observation:
        """What the rows of a sample share."""
        output = sample.output or Output()
        choice = output.choices[0] if output.choices else Choice()
        metadata = _resolved(sample.metadata or {}, attachments)
        base = Observation(
            example_id=str(sample.id),
            model=self.header.eval.model,
            task=self.header.eval.task,
            epoch=sample.epoch,
            prompt=_resolved(_prompt(sample.input), attachments),
            response=_resolved(_response(output), attachments),
            target=_resolved(text(sample.target), attachments),
            logprob=_logprob(choice.logprobs),
            attributes={"choices": len(sample.choices), **metadata} if sample.choices else metadata,
            measured=self._measurements(sample, output, choice, position),
        )
        if self.cluster is not None and metadata.get(self.cluster) is not None:
            base.group = text(metadata[self.cluster])
        if sample.error is not None:
            base.status = Status.ERROR
        elif sample.invalidation is not None:
            base.status = Status.ARTEFACT
        return base

    def _measurements(
        self, sample: Sample, output: Output, choice: Choice, position: int
    ) -> dict[str, Any]:
        messages = sample.messages or []
        turns = sample.turn_count or sum(m.role == "assistant" for m in messages)
        limit = mapping(sample.limit).get("type")
        # with one turn the last call is the answer; with more, all calls of the model count
        all_calls = (
            mapping(mapping(sample.model_usage).get(self.header.eval.model)) if turns > 1 else {}
        )
        usage = all_calls or mapping(output.usage)
        measurements = {
            "position": position,
            "finish_reason": choice.stop_reason,
            "truncated": choice.stop_reason in ("max_tokens", "model_length")
            or limit in ("token", "context"),
            "output_tokens": usage.get("output_tokens"),
            "input_tokens": usage.get("input_tokens"),
            "seconds": sample.total_time,
            "turns": turns,
            "tool_calls": sum(len(m.tool_calls) for m in messages if m.tool_calls),
            "retries": len(sample.error_retries or ()),
            "limit": limit,
            "output_model": output.model or None,
        }
        if sample.error is not None:
            measurements["error"] = _first(
                text(mapping(sample.error).get("message")) or text(sample.error)
            )
        return {**measurements, **self.arguments} if self.arguments else measurements

    def _scores(
        self, sample: Sample, base: Observation, attachments: Attachments
    ) -> Iterator[Observation]:
        scores = sample.scores or {}
        if sample.score is not None:
            scores = {next(iter(self.scorers), "score"): sample.score}
        filtered = base.measured["finish_reason"] == "content_filter"
        for name, score in scores.items():
            reason = _reason(score)
            remarks = self._remarks(name, score, reason)
            answer = _resolved(text(score.answer), attachments)
            for scorer, raw in _single(name, score.value):
                value, status = _value(raw, reason, filtered)
                if base.status != Status.SCORED:
                    value, status = None, base.status
                row = _like(base, status, scorer, answer)
                row.value = value
                own = {
                    "score_given": text(raw),
                    "parsed": status != Status.UNPARSED and remarks.get("parsed"),
                }
                row.measured = {
                    **base.measured,
                    **remarks,
                    **({} if status == Status.SCORED else own),
                }
                yield row

    def _remarks(self, name: str, score: Score, reason: str | None) -> dict[str, Any]:
        """What is known of how this score came about."""
        metadata = mapping(score.metadata)
        remarks = {f"{name}_{key}": value for key, value in metadata.items() if _short(value)}
        if isinstance(score.answer, str):
            remarks["parsed"] = bool(score.answer.strip())
        if reason:
            remarks["reason"] = reason
        if isinstance(score.history, list) and len(score.history) > 1:
            remarks["edited"] = True
        graded = metadata.get("grading")
        graders = [mapping(m).get("model") for m in graded] if isinstance(graded, list) else []
        version = next((model for model in reversed(graders) if model), None)
        if (
            version
            or name.startswith(_GRADED)
            or {*_GRADER_KEYS, "model_role"} & set(self.scorers.get(name, ()))
        ):
            remarks |= {"judge": self._grader(name) or version, "judge_version": version}
        return remarks

    def _grader(self, name: str) -> str | None:
        """The model that graded: the one the scorer names, else the one in its role, else the model
        itself.
        """
        options = self.scorers.get(name, {})
        grader_names = (_model_name(options.get(key)) for key in _GRADER_KEYS)
        role = options.get("model_role", "grader")
        in_role = mapping(self.header.eval.model_roles).get(str(mapping(role).get("name", role)))
        itself = self.header.eval.model if name.startswith(_GRADED) or "model" in options else None
        return next(filter(None, grader_names), None) or _model_name(in_role) or itself


def _like(
    base: Observation, status: str = Status.SCORED, scorer: str = "", answer: str | None = None
) -> Observation:
    """The same sample under another scorer."""
    return Observation(
        base.example_id,
        None,
        status,
        scorer,
        base.model,
        base.task,
        base.epoch,
        base.group,
        base.prompt,
        base.response,
        answer,
        base.target,
        None,
        base.logprob,
        base.attributes,
        base.measured,
    )


def _single(name: str, value: Any) -> list[tuple[str, Any]]:
    """A score of several values as several of one."""
    if isinstance(value, Mapping):
        return [(f"{name}.{key}", each) for key, each in value.items()]
    if isinstance(value, list):
        return [(f"{name}[{i}]", each) for i, each in enumerate(value)]
    return [(name, value)]


def _value(raw: Any, reason: str | None, filtered: bool) -> tuple[float | None, str]:
    """The number that a score stands for, or the status that says why there is none."""
    value = number(raw)
    if isinstance(raw, str):
        value = _LETTERS.get(raw, _WORDS.get(raw.lower()))
        if value is None and raw != _NO_ANSWER:
            try:
                value = number(float(raw))
            except ValueError:
                value = None
    if value == 1:
        return value, Status.SCORED
    if reason in _REASONS:
        return None, _REASONS[reason]
    if filtered or raw == _NO_ANSWER:
        return None, Status.REFUSED
    return value, Status.SCORED if value is not None else Status.MISSING


def _reason(score: Score) -> str | None:
    if isinstance(score.reason, str):
        return score.reason
    noted = mapping(score.metadata).get("unscored_reason")
    if isinstance(noted, str):
        return noted
    if isinstance(score.explanation, str) and score.explanation.startswith(_NO_GRADE):
        return "grader_failed"
    return None


def _prompt(prompt: Any) -> str | None:
    if isinstance(prompt, list):
        users = texts_by(prompt, "user")
        return users[-1] if users else None
    return prompt if isinstance(prompt, str) else None


def _response(output: Output) -> str | None:
    if output.choices:
        message = mapping(output.choices[0].message)
        return (texts_by([message], "assistant") or [""])[0]
    return output.completion if isinstance(output.completion, str) and output.completion else None


def _logprob(logprobs: Any) -> float | None:
    """Of the whole answer: the sum over its tokens."""
    tokens = mapping(logprobs).get("content")
    each = (
        [number(mapping(token).get("logprob")) for token in tokens]
        if isinstance(tokens, list)
        else []
    )
    return sum(x for x in each if x is not None) if each and None not in each else None


def _resolved(value: Any, attachments: Attachments) -> Any:
    """A text in place of the reference to it; in a mapping, of its values."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments().get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, dict) and any(
        isinstance(v, str) and v.startswith(_ATTACHMENT) for v in value.values()
    ):
        return {key: _resolved(each, attachments) for key, each in value.items()}
    return value


def _metrics(scorers: list[Any]) -> Iterator[dict[str, Any]]:
    for scorer in map(mapping, scorers):
        metrics = scorer.get("metrics")
        yield from map(mapping, metrics if isinstance(metrics, list) else [])


def _model_name(model: Any) -> str | None:
    if isinstance(model, list):
        names = [name for each in model if (name := _model_name(each))]
        return ", ".join(names) or None
    return text(model.get("model")) if isinstance(model, Mapping) else text(model)


def _short(value: Any) -> bool:
    return isinstance(value, bool | int | float) or (
        isinstance(value, str) and len(value) <= _LONGEST
    )


def _first(message: str | None) -> str | None:
    return first_line(ValueError(message)) if message else None
