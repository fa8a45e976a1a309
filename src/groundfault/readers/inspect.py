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
    LoggedEvent,
    NamedSample,
    Output,
    Sample,
    Score,
    ToldSample,
    note_unlogged_tasks,
    open_log,
)
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, head
from groundfault.readers.values import (
    add_numbers,
    dig,
    last_by,
    listing,
    mapping,
    number,
    parse_number,
    settle,
    text,
    texts_by,
)

_FIRST_ENTRY = re.compile(
    rb"PK\x03\x04.{26}(_journal/start|header|summaries|reductions|samples/.+_epoch_\d+)", re.DOTALL
)
# keys that come before the list of sample ids: that may be longer than the part of the file read
_JSON = (b'"eval"', b'"task_id"', b'"run_id"', b'"created"', b'"dataset"')
# the listing of a set of logs: a mapping of their names to their headers, which may be empty yet
_LISTING = re.compile(rb'\s*\{\s*"[^"]+\.(eval|json)"\s*:')
_ATTACHMENT = "attachment://"
_SCORING = ("scorers", "scorer")
"""Types of the span, or in older logs the step, in which a run is scored."""
_SCORED = -1
"""Place of messages about a run that is over."""

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_NO_ANSWER = "N"
# Inspect's reasons for no score; they do not mean a wrong answer of the model
_REASONS = {
    "refusal": Status.REFUSED,
    "invalid_response_format": Status.UNPARSED,
    "no_response": Status.UNPARSED,
    "grader_failed": Status.ERROR,
    "scoring_failed": Status.ERROR,
}
# before 2026 a grader's reply without a grade was scored "I", as if the answer were wrong; only the
# explanation tells the difference
_NO_GRADE = "Grade not found in model output"
_GRADED = "model_graded"
_GRADER_KEYS = ("model", "grader_model", "judge_model", "grader", "judge", "models")
# far above any run: a log that says more would make as many missing rows for each sample
_MAX_EPOCHS = 10_000
_MAX_REMARK = 200
"""Most characters of a scorer's own remark that becomes a column."""


class Inspect:
    """Reads an Inspect log: one observation a sample, epoch, scorer and value of the scorer.

    ``C`` is 1, ``P`` 0.5, ``I`` 0. ``N`` is refused. A reason that Inspect gives with a score
    (``refusal``, ``invalid_response_format``, ``grader_failed``...) makes it refused, unparsed or
    an error; an answer stopped by a content filter is refused. These are not failures. A score of 1
    counts even with a reason. A sample with an error has no score; a sample without scores is
    missing, and so are samples that the run should contain but the log lacks. Edited scores are
    read in their last version. Reductions over epochs are not read.
    """

    companions = ("logs.json", "eval-set.json")
    undated = ()

    def sniff(self, path: Path) -> bool:
        """Return whether it is an archive with Inspect's entries, or JSON that describes a run."""
        first = head(path)
        if first.startswith(b"PK"):
            return path.suffix == ".eval" or _FIRST_ENTRY.match(first) is not None
        if not first.lstrip().startswith(b"{") or _LISTING.match(first):
            return False
        return all(name in first for name in _JSON)

    def read(self, path: Path) -> Log:
        """Read the samples of one run."""
        header, samples = open_log(path, Sample)
        run = _Run(header, note_unlogged_tasks(path.parent))
        harness = f"inspect_ai {mapping(header.eval.packages).get('inspect_ai', '')}".strip()
        # a run that is tried again (eval-retry, eval-set) keeps its task id, not its eval id
        return Log(
            run.observations(samples),
            harness,
            run.notes,
            next(iter(run.scorers), ""),
            first_leads=True,
            settings=run.settings,
            run=text(header.eval.task_id) or "",
        )

    def read_uuids(self, path: Path) -> Iterator[tuple[int, str | None]]:
        """Yield the uuid of each sample, by which other tools name its transcript."""
        for position, (sample, _) in enumerate(open_log(path, NamedSample)[1], 1):
            yield position, text(sample.uuid)

    def read_conversations(self, path: Path) -> Iterator[tuple[int, list[Any]]]:
        """Yield the messages of each sample, with its retries, limit, error and explanations."""
        for position, (sample, attachments) in enumerate(open_log(path, ToldSample)[1], 1):
            texts = sample.attachments

            def look_up(
                texts: Mapping[str, str] | None = texts, later: Attachments = attachments
            ) -> Mapping[str, str]:
                return later() if texts is None else texts

            yield position, list(_tell(sample, look_up))


@dataclass
class _Run:
    header: Header
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = self.header.eval
        declared = [scorer for scorer in map(mapping, spec.scorers or []) if "name" in scorer]
        self.scorers = {str(each["name"]): mapping(each.get("options")) for each in declared}
        arguments = mapping(spec.task_args).items()
        self.arguments = {f"task_{key}": value for key, value in arguments if _is_short(value)}
        metrics = [m for scorer in spec.scorers or [] for m in listing(dig(scorer, "metrics"))]
        clusters = {text(dig(metric, "options", "cluster")) for metric in metrics} - {None}
        # the author of the task says by `cluster` which samples depend on each other; where metrics
        # name several, there is no one grouping
        self.cluster = clusters.pop() if len(clusters) == 1 else None

    @property
    def settings(self) -> dict[str, Any]:
        """Return how the model was set up: generation, arguments of the model, then of the task."""
        spec = self.header.eval
        parts = (spec.model_generate_config, spec.model_args, spec.task_args)
        settings = {key: value for part in map(mapping, parts) for key, value in part.items()}
        return {"solver": spec.solver, **settings}

    def observations(self, samples: Iterator[tuple[Sample, Attachments]]) -> Iterator[Observation]:
        """Return the scores of each sample, then the samples that the log lacks."""
        names: set[str] = set()
        keys: set[tuple[str, int]] = set()
        groups: set[str] = set()
        for position, (sample, attachments) in enumerate(samples, 1):
            keys.add((str(sample.id), sample.epoch))
            base = self._sample(sample, attachments, position)
            rows = list(self._scores(sample, base, attachments))
            names.update(row.scorer for row in rows)
            if base.group is not None:
                groups.add(base.group)
            yield from rows
            if len(rows) < len(names) or not rows:
                # a row without a scorer counts for any scorer that is chosen later
                status = base.status if base.status != Status.SCORED else Status.MISSING
                yield base.rescore("", None, status)
        if keys and not names:
            self.notes.append(
                "no sample is scored: score it (inspect score FILE), then read the new log"
            )
        if groups:
            n_samples = len({sample_id for sample_id, _ in keys})
            self.notes.append(
                f"stderr(cluster={self.cluster!r}) in the task makes groups of its samples: "
                f"{n_samples:,} samples count as {len(groups):,} units (--group example_id takes "
                "each for a unit)"
            )
        yield from self._absent(keys)

    def _absent(self, keys: set[tuple[str, int]]) -> Iterator[Observation]:
        """Return the samples that the run should contain and the log lacks.

        A run that broke off on its hard samples must not look better than a finished run.
        """
        header, spec = self.header, self.header.eval
        ids, epochs = listing(dig(spec.dataset, "sample_ids")), dig(spec.config, "epochs")
        times = epochs if isinstance(epochs, int) and 0 < epochs <= _MAX_EPOCHS else 1
        planned = [(str(each), epoch) for epoch in range(1, times + 1) for each in ids]
        missing = [key for key in planned if key not in keys]
        count = f"{len(keys):,}{f' of {len(planned):,}' if planned else ''} samples"
        if not keys:
            self.notes.append("no samples")
        if header.status != "success":
            words = {"error": "ended in an error", "started": "not finished: read"}
            reason = words.get(header.status, header.status)
            error = text(dig(header.error, "message"))
            self.notes.append(
                f"{reason} after {count}" + (f": {_shorten_error(error)}" if error else "")
            )
        elif missing and keys:
            self.notes.append(f"holds {count} of the run")
        for each, epoch in missing:
            yield Observation(each, *settle(None), model=spec.model, task=spec.task, epoch=epoch)

    def _sample(self, sample: Sample, attachments: Attachments, position: int) -> Observation:
        """Return the observation with the parts that all rows of a sample share."""
        output = sample.output or Output()
        choice = output.choices[0] if output.choices else Choice()
        metadata = _resolve(sample.metadata or {}, attachments)
        tokens = listing(dig(choice.logprobs, "content"))
        base = Observation(
            example_id=str(sample.id),
            model=self.header.eval.model,
            task=self.header.eval.task,
            epoch=sample.epoch,
            prompt=_resolve(_prompt(sample.input), attachments),
            response=_resolve(_response(output), attachments),
            target=_resolve(text(sample.target), attachments),
            # of the whole answer
            logprob=add_numbers([dig(t, "logprob") for t in tokens]),
            attributes={"choices": len(sample.choices), **metadata} if sample.choices else metadata,
            measured=self._measurements(sample, output, choice, position),
            # a retry takes over the samples that were done, with their uuid
            origin=text(sample.uuid) or text(self.header.eval.eval_id),
            transcript=position,
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
        limit = dig(sample.limit, "type")
        # with one turn the last call is the answer; with more, tokens of all calls are summed
        all_calls = dig(sample.model_usage, self.header.eval.model) if turns > 1 else None
        usage = mapping(all_calls) or mapping(output.usage)
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
        error = text(dig(sample.error, "message")) or text(sample.error)
        own = {} if sample.error is None else {"error": _shorten_error(error)}
        return {**measurements, **own, **self.arguments}

    def _scores(
        self, sample: Sample, base: Observation, attachments: Attachments
    ) -> Iterator[Observation]:
        scores = sample.scores or {}
        if sample.score is not None:
            scores = {next(iter(self.scorers), "score"): sample.score}
        is_blocked = base.measured["finish_reason"] == "content_filter"
        for name, score in scores.items():
            reason = _reason(score)
            remarks = self._remarks(name, score, reason)
            answer = _resolve(text(score.answer), attachments)
            for scorer, raw in _split(name, score.value).items():
                value = _read_value(raw, reason, is_blocked)
                if base.status != Status.SCORED:
                    value = settle(None, base.status)
                row = base.rescore(scorer, *value)
                row.answer, row.measured = answer, {**base.measured, **remarks}
                if row.status != Status.SCORED:
                    parsed = row.status != Status.UNPARSED and remarks.get("parsed")
                    row.measured |= {"score_given": text(raw), "parsed": parsed}
                yield row

    def _remarks(self, name: str, score: Score, reason: str | None) -> dict[str, Any]:
        """Return how this score was made: parsed, edited, graded by which model."""
        metadata = mapping(score.metadata)
        remarks = {f"{name}_{key}": value for key, value in metadata.items() if _is_short(value)}
        if isinstance(score.answer, str):
            # an empty answer means that the scorer found no answer
            remarks["parsed"] = bool(score.answer.strip())
        if reason:
            remarks["reason"] = reason
        if isinstance(score.history, list) and len(score.history) > 1:
            remarks["edited"] = True
        # the conversation with the grader; its replies name the exact version that answered
        graders = [dig(message, "model") for message in listing(metadata.get("grading"))]
        version = next((model for model in reversed(graders) if model), None)
        keys = {*_GRADER_KEYS, "model_role"} & set(self.scorers.get(name, ()))
        if version or keys or name.startswith(_GRADED):
            remarks |= {"judge": self._grader(name) or version, "judge_version": version}
        return remarks

    def _grader(self, name: str) -> str | None:
        """Return the grading model: the scorer's, else the one in its role, else the model."""
        options = self.scorers.get(name, {})
        grader_names = (_model_name(options.get(key)) for key in _GRADER_KEYS)
        role = options.get("model_role", "grader")
        in_role = mapping(self.header.eval.model_roles).get(str(mapping(role).get("name", role)))
        itself = self.header.eval.model if name.startswith(_GRADED) or "model" in options else None
        return next(filter(None, grader_names), None) or _model_name(in_role) or itself


def _split(name: str, value: Any) -> dict[str, Any]:
    """Return a score of several values as several scores of one value."""
    if isinstance(value, list):
        return {f"{name}[{i}]": each for i, each in enumerate(value)}
    is_several = isinstance(value, Mapping)
    return {f"{name}.{key}": each for key, each in value.items()} if is_several else {name: value}


def _read_value(raw: object, reason: str | None, is_blocked: bool) -> tuple[float | None, str]:
    """Return the number of a score, or the status that says why there is no number."""
    value = number(raw)
    if isinstance(raw, str):
        value = _LETTERS.get(raw, _WORDS.get(raw.lower()))
        if value is None and raw != _NO_ANSWER:
            value = parse_number(raw)
    # a full score counts: the scorer found a right answer in spite of any trouble before
    if value == 1:
        return settle(value)
    is_refused = is_blocked or raw == _NO_ANSWER
    return settle(value, _REASONS.get(reason or "", Status.REFUSED if is_refused else None))


def _reason(score: Score) -> str | None:
    noted = (score.reason, dig(score.metadata, "unscored_reason"))
    ungraded = str(score.explanation).startswith(_NO_GRADE)
    given = next((reason for reason in noted if isinstance(reason, str)), None)
    return "grader_failed" if given is None and ungraded else given


def _tell(sample: ToldSample, attachments: Attachments) -> Iterator[JsonObject]:
    """Yield the messages of a sample, with its events and the scorers' explanations as messages."""
    for retry in sample.error_retries or ():
        message = text(dig(retry, "message")) or text(retry)
        yield {"role": "environment", "kind": "error", "content": message}
    befell = _place_events(sample)
    for place, one in enumerate(sample.messages or ()):
        yield from befell.pop(place, ())
        content = dig(one, "content")
        parts = [_resolve(part, attachments) for part in listing(content)]
        # where a message comes from, such as generate, is no agent's name
        told = {**mapping(one), "source": None}
        yield {**told, "content": parts or _resolve(content, attachments)}
    edits = befell.pop(_SCORED, [])
    yield from (step for steps in befell.values() for step in steps)
    limit = dig(sample.limit, "type")
    for kind, words in (("limit", limit and f"{limit} limit"), ("error", sample.error)):
        if words:
            message = text(dig(words, "message")) or text(words)
            yield {"role": "environment", "kind": kind, "content": message}
    for name, score in (sample.scores or {}).items():
        if isinstance(score.explanation, str):
            words = _resolve(score.explanation, attachments)
            yield {"role": "judge", "name": name, "content": words}
    yield from edits


def _place_events(sample: ToldSample) -> dict[int, list[JsonObject]]:
    """Return the events of a run other than messages: by the place of the message that follows, or
    by `_SCORED`."""
    messages = sample.messages or []
    places = {name: place for place, one in enumerate(messages) if (name := dig(one, "id"))}
    befell: dict[int, list[JsonObject]] = {}
    here = 0
    for event in sample.events or ():
        if event.event == "model":
            made = next(iter(listing(dig(event.output, "choices"))), None)
            here = places.get(dig(made, "message", "id"), here - 1) + 1
        elif event.event == "tool":
            here = places.get(event.message_id, here)
        elif event.type in _SCORING:
            # a tool that a scorer runs is not an act of the agent
            here = _SCORED
        if told := _read_event(event, here == _SCORED):
            befell.setdefault(here, []).append(told)
    return befell


def _read_event(event: LoggedEvent, is_scored: bool) -> JsonObject | None:
    """Return an event as a message, if it says more than the messages do."""
    if event.event == "score_edit":
        reason = dig(event.edit, "provenance", "reason")
        words = f"edited to {text(dig(event.edit, 'value'))}" + (f": {reason}" if reason else "")
        return {"role": "judge", "name": text(event.score_name), "content": words}
    if event.event == "approval" and event.decision != "approve":
        words = f"{event.decision}: {event.explanation or ''}".rstrip(": ")
        kind = "feedback" if event.decision == "modify" else "error"
        told = {"kind": kind, "name": text(event.approver), "content": words}
        error = {} if kind == "feedback" else {"error": {"type": "approval"}}
        return {"role": "environment", **told, **error}
    if event.event == "sandbox" and event.result and not is_scored:
        words = f"{event.output or ''}\n{event.cmd or event.file or ''}".lstrip()
        name = f"sandbox {event.action}"
        return {"role": "environment", "kind": "error", "name": name, "content": words}
    return None


def _prompt(prompt: object) -> str | None:
    return prompt if isinstance(prompt, str) else last_by(prompt, "user")


def _response(output: Output) -> str | None:
    if output.choices:
        message = mapping(output.choices[0].message)
        return (texts_by([message], "assistant") or [""])[0]
    return output.completion if isinstance(output.completion, str) and output.completion else None


def _resolve(value: object, attachments: Attachments) -> Any:
    """Replace references to attachments by their text, also in the values of a mapping."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments().get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, dict) and any(
        isinstance(v, str) and v.startswith(_ATTACHMENT) for v in value.values()
    ):
        return {key: _resolve(each, attachments) for key, each in value.items()}
    return value


def _model_name(model: object) -> str | None:
    if isinstance(model, list):
        names = [name for each in model if (name := _model_name(each))]
        return ", ".join(names) or None
    return text(model.get("model")) if isinstance(model, Mapping) else text(model)


def _is_short(value: Any) -> bool:
    is_text = isinstance(value, str)
    return len(value) <= _MAX_REMARK if is_text else isinstance(value, bool | int | float)


def _shorten_error(message: str | None) -> str | None:
    return first_line(ValueError(message)) if message else None
