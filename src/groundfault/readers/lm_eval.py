"""lm-evaluation-harness: the samples file of one task, as ``--log_samples`` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from math import exp, isfinite
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file, json_lines
from groundfault.readers.values import dig, drop_empty, list_names, listing, mapping, settle, text

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+))?\.jsonl?")
_NAMES = list_names("lm_eval")
_GREEDY = ("False", "True", "false", "true")
_NUMBERS = (bool, int, float, type(None))
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
    undated = ()

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
        return Log(run.observations(), harness, notes, first_leads=True, settings=settings)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Return the rows of a samples file, which was one JSON list until the summer of 2024."""
    if head(path).startswith(b"["):
        return iter(json_file(path, list[dict[str, Any]]))
    return json_lines(path, dict[str, Any])


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
        names = row.get("metrics") or [key for key in row if key not in _NAMES["no_metrics"]]
        metrics = {
            name: row.get(name)
            for name in (names if isinstance(names, list) else ())
            if isinstance(name, str) and self._is_per_document(name, row.get(name))
        }
        doc, choices, measured = mapping(row.get("doc")), _Choices.of(row), {"position": position}
        base = Observation(
            self._name_example(doc, row["doc_id"]),
            model=self.model,
            task=self.task,
            prompt=_find_question(doc, _read_argument(row.get("arguments"), 0, 0)),
            target=choices.label(row.get("target")) if choices else text(row.get("target")),
            attributes=doc,
            measured=measured,
        )
        is_lost = choices is None and self._read_answer(base, row)
        for metric, value in (metrics or {"": None}).items():
            scorer = metric if filter_name == "none" or not metric else f"{metric},{filter_name}"
            score = (None, Status.UNPARSED) if is_lost else settle(value)
            observation = base.rescore(scorer, *score)
            if choices:
                choices.answer(observation)
            yield observation

    def _read_answer(self, base: Observation, row: dict[str, Any]) -> bool:
        """Add response and filtered answer; return whether the filter found no answer.

        A task may say 0 there, which may be an answer, too.
        """
        base.response, base.answer = (
            _read_first(row.get(name)) for name in ("resps", "filtered_resps")
        )
        is_lost = base.answer in self.fallbacks and (
            base.answer == _NO_ANSWER or str(base.answer) not in (base.response or "")
        )
        if row.get("filter", "none") != "none":
            base.measured = {**base.measured, "parsed": not is_lost}
        return is_lost

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

    def _is_per_document(self, metric: str, value: Any) -> bool:
        """Return whether a metric is a number of each document; what is none is noted."""
        if metric != "bypass" and isinstance(value, _NUMBERS):
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

    def _name_example(self, doc: dict[str, Any], doc_id: Any) -> str:
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
        logs = _list_logs(responses)
        if logs is None:
            return None
        requests = _list_requests(row.get("arguments"), len(responses))
        words = [word for _, word in requests]
        # acc_mutual_info requests every choice again without the question, to normalise by: a
        # request with an empty context is no choice
        asks = [context != "" for context, _ in requests]
        if any(asks) and not all(asks):
            words, logs = list(compress(words, asks)), list(compress(logs, asks))
        if len(logs) < 2:
            return None
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
        word = text(target)
        if word is None or not word.isdecimal() or len(word) >= 6 or int(word) >= len(self.labels):
            return word
        return self.labels[int(word)]


def _list_logs(pairs: list[Any]) -> list[float] | None:
    """Return the log-likelihoods of pairs ``[log-likelihood, is_greedy]``; else None."""
    try:
        # since 2024 both are in quotes: ["-3.37", "False"]
        logs = [float(log) for log, greedy in pairs if greedy in _GREEDY or type(greedy) is bool]
    except (TypeError, ValueError):
        return None
    whole = len(logs) == len(pairs) and not any(log != log for log in logs)
    return logs if whole and all(type(pair) is list for pair in pairs) else None


def _list_requests(arguments: Any, count: int) -> list[tuple[str | None, str]]:
    """Return context and continuation of each request."""
    try:
        rows = [arguments[f"gen_args_{i}"] for i in range(count)]
        pairs = [(row["arg_0"], row["arg_1"]) for row in rows]
        if all(type(a) is str and type(b) is str for a, b in pairs):
            return pairs
    except (TypeError, KeyError):
        pass  # an older layout
    both = [[_read_argument(arguments, i, which) for which in (0, 1)] for i in range(count)]
    return [(context, word or "") for context, word in both]


def _read_argument(arguments: Any, request: int, which: int) -> str | None:
    """Read an argument of a request: 0 for its context, 1 for the continuation."""
    try:
        # {"gen_args_0": {"arg_0": ...}}, and lists of lists in files before 2024
        if isinstance(arguments, dict):
            argument = arguments[f"gen_args_{request}"][f"arg_{which}"]
        else:
            argument = arguments[request][which]
    except (TypeError, IndexError, KeyError):
        return None
    if isinstance(argument, str):
        return argument
    # of a chat model the argument is a list with the whole conversation as one text of JSON
    return _read_first(argument) if isinstance(argument, list) else None


def _find_question(doc: dict[str, Any], prompt: str | None) -> str | None:
    """Return the question of the document where the prompt holds it, else the whole prompt.

    The prompt has few-shot examples and a template, which may differ between models that were asked
    the same question.
    """
    whole = prompt or ""
    for question in map(doc.get, _NAMES["questions"]):
        if (
            isinstance(question, str)
            and question.strip()
            and (question in whole or json.dumps(question)[1:-1] in whole)
        ):
            return question
    return prompt


def _read_first(responses: Any) -> str | None:
    """Read the first response of the first request, however it is nested."""
    while isinstance(responses, list):
        if not responses:
            return None
        responses = responses[0]
    return text(responses)
