"""lm-evaluation-harness: the samples file of one task, as ``--log_samples`` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, islice
from math import exp, isfinite
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.lm_eval_columns import (
    find_question,
    name_target,
    read_argument,
    read_columns,
    read_first,
)
from groundfault.readers.log import Log, Observation, make_table, pause_collection
from groundfault.readers.safely import decode, head, json_file, json_lines, read_lines
from groundfault.readers.values import dig, drop_empty, listing, mapping, settle, text

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+))?\.jsonl?")
# since 2024 a row lists its metrics under `metrics`; before, every key but these is a metric
_NOT_METRICS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip
_GREEDY = ("False", "True", "false", "true")
_REQUESTS = tuple(f"gen_args_{i}" for i in range(100))
# rows, and bytes of them, that are decoded at a time
_CHUNK = 25_000
_CHUNK_BYTES = 16 << 20  # bounds memory at some 100 MB of parsed lines
_NO_ANSWER = "[invalid]"
"""The answer that the harness's regex filters return where nothing matches."""


class _Results(msgspec.Struct):
    """The results file of a run; other keys are skipped."""

    results: dict[str, Any] = {}
    configs: dict[str, Any] = {}
    config: dict[str, Any] = {}
    higher_is_better: dict[str, Any] = {}
    samples: dict[str, Any] = msgspec.field(name="n-samples", default={})
    shots: dict[str, Any] = msgspec.field(name="n-shot", default={})
    system_instruction: Any = None
    chat_template_sha: Any = None
    model_name: Any = None
    lm_eval_version: Any = None

    def settings(self, task: str) -> dict[str, Any]:
        """Return arguments of the model and of its answers, apart from its name."""
        arguments = _read_arguments(self.config.get("model_args"))
        own = {k: v for k, v in arguments.items() if k not in ("pretrained", "model")}
        more = {
            "num_fewshot": self.shots.get(task),
            "system_instruction": self.system_instruction,
            "chat_template": self.chat_template_sha,
        }
        return own | _read_arguments(self.config.get("gen_kwargs")) | drop_empty(more)

    def model(self) -> str | None:
        """Return the model's name, else the model among its arguments."""
        arguments = _read_arguments(self.config.get("model_args"))
        own = arguments.get("pretrained") or arguments.get("model")
        return text(self.model_name or own or self.config.get("model"))


def _read_arguments(arguments: Any) -> dict[str, Any]:
    """Read arguments, which older files hold as they were typed: ``name=value,name=value``."""
    if isinstance(arguments, str):
        return dict(pair.partition("=")[::2] for pair in arguments.split(",") if pair)
    return mapping(arguments)


class LmEval:
    """Reads ``samples_<task>_<time>.jsonl``; model and filters from the results file beside it.

    One observation a document, filter and metric: a task with two filters writes every document
    twice, and the scorer of each is ``metric,filter`` (``metric`` alone for the filter ``none``).
    Metrics of a whole task, such as F1, leave no number a document and are named in the notes.
    Multiple choice gives the softmax of the choices' log-likelihoods as confidence. An answer in
    which a regex filter found nothing is ``unparsed``, though the harness scores it 0.
    """

    companions = ("*results*.json",)

    def sniff(self, path: Path) -> bool:
        """Return whether the first row has a document, its id and the responses."""
        # a first row longer than what was read may have its responses after that
        start = head(path) if path.suffix in (".jsonl", ".json") else b""
        first = start if start.startswith(b"[") else start.partition(b"\n")[0]
        return b'"doc_id"' in first and (
            b'"doc"' in first and (b"resps" in first or len(first) >= 1 << 16)
        )

    def read(self, path: Path) -> Log:
        """Read the samples of one task."""
        name_match = _NAME.fullmatch(path.name)
        names = name_match.groupdict() if name_match else {}
        task, results, notes = _find_run(path, names.get("task"), names.get("date"))
        model = results.model()
        if model is None:
            model = path.parent.resolve().name.replace("__", "/")
            notes.append(
                f"no results file beside it names the model; taken from its folder: {model}"
            )
        run = _Run(path, task, model, results, notes)
        harness = f"lm_eval {results.lm_eval_version or ''}".strip()
        settings = results.settings(task)
        return _ChunkedLog(
            run.observations(), harness, notes, first_leads=True, settings=settings, samples=run
        )


@dataclass
class _ChunkedLog(Log):
    """A log whose rows are read many at a time, where they are alike."""

    samples: _Run | None = None

    def tables(self) -> Iterator[tuple[pl.DataFrame, frozenset[str]]]:
        """Return tables of up to 25,000 rows, each with its measured columns."""
        return super().tables() if self.samples is None else self.samples.tables()


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Return the rows of a samples file, which was one JSON list until the summer of 2024."""
    if head(path).startswith(b"["):
        return iter(json_file(path, list[dict[str, Any]]))
    return json_lines(path, dict[str, Any])


def _take_chunk(lines: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the next lines, as many as are decoded at a time."""
    chunk, size = [], 0
    for line in islice(lines, _CHUNK):
        chunk.append(line)
        size += len(line[1])
        if size >= _CHUNK_BYTES:
            break
    return chunk


def _find_run(path: Path, task: str | None, date: str | None) -> tuple[str, _Results, list[str]]:
    """Return the task, the results of the same run, and notes.

    Of several results files the one of the same time is taken, else the latest with the task.
    """
    beside = sorted(p for p in path.parent.glob("*.json") if "results" in p.name and p != path)
    if date:
        beside.sort(key=lambda p: date in p.name)
    for place in reversed(beside):
        try:
            results = json_file(place, _Results)
        except InputError as error:
            note = f"the results file beside it is not read: {error}"
            return task or path.stem, _Results(), [note]
        # until June 2024 samples were named <arguments of the model>_<task>.jsonl, in which nothing
        # marks the start of the task
        names = {**results.results, **results.configs}
        if tasks := [n for n in names if n == task or path.stem.endswith(f"_{n}")]:
            return task or max(tasks, key=len), results, []
    return task or path.stem, _Results(), []


@dataclass
class _Run:
    path: Path
    task: str
    model: str
    results: _Results
    notes: list[str]
    ids: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)

    def observations(self) -> Iterator[Observation]:
        for position, row in enumerate(_rows(self.path), 1):
            yield from self._read_row(row, position)
        self._note_end()

    def tables(self) -> Iterator[tuple[pl.DataFrame, frozenset[str]]]:
        """Return the observations as tables, by columns where that is possible."""
        if head(self.path).startswith(b"["):
            yield from Log(self.observations()).tables()
            return
        decoder, position = msgspec.json.Decoder(dict[str, Any]), 1
        lines = read_lines(self.path)
        while chunk := _take_chunk(lines):
            with pause_collection():
                table = read_columns([line for _, line in chunk], position, self)
                if table is None:
                    rows = (
                        decode(line, dict[str, Any], f"{self.path}, line {number}", decoder)
                        for number, line in chunk
                    )
                    numbered = enumerate(rows, position)
                    read = [o for i, row in numbered for o in self._read_row(row, i)]
                    table = make_table(read)
            position += len(chunk)
            yield table
        self._note_end()

    def _note_end(self) -> None:
        self._note_size(len(self.documents))
        for metric, better in mapping(self.results.higher_is_better.get(self.task)).items():
            if better is False:
                self.notes.append(f"{metric}: lower is better (--scale 1 0 reads it so)")

    def _read_row(self, row: dict[str, Any], position: int) -> Iterator[Observation]:
        if "doc_id" not in row:
            raise InputError(
                f"{self.path}, line {position} has no doc_id; is it a samples file of lm_eval?"
            )
        filter_name = self._filter(row)
        names = row.get("metrics") or [key for key in row if key not in _NOT_METRICS]
        metrics = {
            name: row.get(name)
            for name in (names if isinstance(names, list) else ())
            if isinstance(name, str) and self.is_per_document(name, row.get(name))
        }
        if not metrics:
            metrics = {"": None}
        doc = mapping(row.get("doc"))
        choices = _Choices.of(row)
        prompt = read_argument(row.get("arguments"), 0, 0)
        question = find_question(doc, prompt)
        response = None if choices else read_first(row.get("resps"))
        target = choices.label(row.get("target")) if choices else text(row.get("target"))
        example_id = self.name_example(doc, row["doc_id"])
        for metric, value in metrics.items():
            scorer = metric if filter_name == "none" or not metric else f"{metric},{filter_name}"
            observation = Observation(
                example_id,
                *settle(value),
                scorer=scorer,
                model=self.model,
                task=self.task,
                prompt=question,
                response=response,
                target=target,
                attributes=doc,
                measured={"position": position},
            )
            if choices:
                choices.answer(observation)
            else:
                self._answer(observation, row)
            yield observation

    def _answer(self, observation: Observation, row: dict[str, Any]) -> None:
        """Add the answer that a filter made of the response, unless it is what it returns for none.

        A task may say 0 there, which may be an answer, too.
        """
        answer = observation.answer = read_first(row.get("filtered_resps"))
        is_fallback = self.is_fallback(answer, observation.response)
        if row.get("filter", "none") != "none":
            observation.measured = {**observation.measured, "parsed": not is_fallback}
        if is_fallback:
            observation.value, observation.status = None, Status.UNPARSED

    def is_fallback(self, answer: str | None, response: str | None) -> bool:
        """Return whether a filter found no answer in a response."""
        return answer in self.fallbacks and (
            answer == _NO_ANSWER or str(answer) not in (response or "")
        )

    @cached_property
    def fallbacks(self) -> frozenset[str]:
        """Return the answers that the task's filters return where they match nothing."""
        filters = listing(dig(self.results.configs, self.task, "filter_list"))
        steps = [step for each in filters for step in listing(dig(each, "filter"))]
        own = (text(dig(step, "fallback")) for step in steps)
        return frozenset(word for word in (_NO_ANSWER, *own) if word is not None)

    def _filter(self, row: dict[str, Any]) -> str:
        """Return the filter of a row.

        Files of early 2024 do not name it: they write all rows once for each filter.
        """
        if "filter" in row:
            return str(row["filter"])
        repeat = self.rows[str(row["doc_id"])] = self.rows.get(str(row["doc_id"]), -1) + 1
        filters = listing(dig(self.results.configs, self.task, "filter_list"))
        if repeat < len(filters):
            return str(dig(filters[repeat], "name"))
        return "none" if repeat == 0 else f"filter {repeat + 1}"

    def is_per_document(self, metric: str, value: Any) -> bool:
        """Return whether a metric is a number of each document; what is none is noted."""
        if metric != "bypass" and (value is None or isinstance(value, bool | int | float)):
            return True
        # metrics such as F1 leave a pair or list a row, from which the task's number is computed
        note = (
            "predicted only (--predict_only): nothing is scored"
            if metric == "bypass"
            else f"{metric} is computed over the whole task, not for each document: it is left out"
        )
        if note not in self.notes:
            self.notes.append(note)
        return False

    def name_example(self, doc: dict[str, Any], doc_id: Any) -> str:
        """Return the document's own id, else its number in the task.

        Where two documents share an id, the second gets its number behind the id.
        """
        self.documents.add(str(doc_id))
        own = doc.get("id")
        if not isinstance(own, (str, int)) or isinstance(own, bool) or own == "":
            return str(doc_id)
        first = self.ids.setdefault(str(own), doc_id)
        return str(own) if first == doc_id else f"{own}#{doc_id}"

    def _note_size(self, documents: int) -> None:
        size = mapping(self.results.samples.get(self.task))
        original, effective = size.get("original"), size.get("effective")
        if isinstance(original, int) and isinstance(effective, int) and effective < original:
            self.notes.append(f"limited: {effective:,} of {original:,} documents were evaluated")
        if isinstance(effective, int) and documents < effective:
            self.notes.append(
                f"holds {documents:,} of the {effective:,} documents that were evaluated"
            )
        if documents == 0:
            self.notes.append("no samples")


@dataclass
class _Choices:
    """The choices of one question and their log-likelihoods."""

    labels: list[str]
    words: list[str]
    logs: list[float]
    weights: list[float] | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> _Choices | None:
        """Return the choices of a row; None where it is no multiple choice."""
        responses = row.get("filtered_resps")
        if not isinstance(responses, list) or len(responses) < 2:
            return None
        requests = _read_requests(row.get("arguments"), len(responses))
        # acc_mutual_info requests every choice again without the question, to normalise by: a
        # request with an empty context is no choice
        asks = [context != "" for context, _ in requests]
        if any(asks) and not all(asks):
            requests, responses = list(compress(requests, asks)), list(compress(responses, asks))
        logs = [log for pair in responses if (log := _log(pair)) is not None]
        if len(logs) < max(2, len(responses)):
            return None
        words = [word or "" for _, word in requests]
        labels = [word.strip() for word in words]
        # with one continuation after several contexts, as in Winogrande, only numbers are distinct
        distinct = len(set(labels)) == len(labels)
        top = max(logs)
        # the largest is subtracted: exp(-800), a usual sum over an answer, is 0 in floating point
        weights = [exp(log - top) for log in logs] if isfinite(top) else None
        numbers = [str(i) for i in range(len(labels))]
        return cls(labels if distinct else numbers, words, logs, weights)

    def answer(self, observation: Observation) -> None:
        """Add the model's choice by one metric, its log-likelihood, and its share by softmax."""
        scores = self.logs
        # acc_norm divides by the characters of a choice
        if observation.scorer.startswith("acc_norm"):
            lengths = [len(word.removeprefix(" ")) or 1 for word in self.words]
            scores = [log / n for log, n in zip(scores, lengths, strict=True)]
        choice = scores.index(max(scores))
        observation.answer, observation.logprob = self.labels[choice], self.logs[choice]
        if self.weights is not None:
            observation.confidence = self.weights[choice] / sum(self.weights)

    def label(self, target: Any) -> str | None:
        """Return the target; where it is the number of a choice, the choice's text."""
        return name_target(text(target), self.labels, 0, len(self.labels))


def _log(pair: Any) -> float | None:
    """Return the log-likelihood of a pair ``[log-likelihood, is_greedy]``."""
    if not isinstance(pair, list) or len(pair) != 2:
        return None
    # since 2024 both are in quotes: ["-3.37", "False"]
    log, is_greedy = pair
    if is_greedy not in _GREEDY and str(is_greedy).lower() not in _GREEDY:
        return None
    try:
        logprob = float(log)
    except (TypeError, ValueError):
        return None
    return logprob if logprob == logprob else None


def _read_requests(arguments: Any, count: int) -> list[tuple[str | None, str | None]]:
    """Read context and continuation of each request."""
    try:
        # as all files since 2024 have them, where both are texts
        pairs = [(arguments[name]["arg_0"], arguments[name]["arg_1"]) for name in _REQUESTS[:count]]
        if len(pairs) == count and {type(part) for pair in pairs for part in pair} == {str}:
            return pairs
    except (TypeError, KeyError):
        pass
    return [(read_argument(arguments, i, 0), read_argument(arguments, i, 1)) for i in range(count)]
