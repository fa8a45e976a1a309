"""lm-evaluation-harness: the samples file of one task, as ``--log_samples`` writes it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import accumulate, chain, compress, groupby, islice
from math import exp, isfinite, isnan, nan
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Columns, Log, Observation, add_columns, make_table
from groundfault.readers.safely import JsonObject, head, json_file, json_lines, pause_collection
from groundfault.readers.values import dig, drop_empty, list_names, listing, mapping, settle, text

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+))?\.jsonl?")
_NAMES = list_names("lm_eval")
_NO_METRICS = frozenset(_NAMES["no_metrics"])
_CELLS = ("target", "response", "is_lost", "parsed", "label", "length", "log", "choices")
# a metric that can be a field of a structure
_FIELD = re.compile(rf"(?!(?:bypass|{'|'.join(_NO_METRICS)})$)[A-Za-z]\w*")
_GREEDY = frozenset(("False", "True", "false", "true"))
_NUMBERS = frozenset((bool, int, float, type(None)))
_Array = NDArray[Any]
_Table = tuple[pl.DataFrame, frozenset[str]]
# rows read column by column, and scores of a table: their objects fit into a processor's cache
_BATCH, _TABLE = 100, 5_000
_NO_ANSWER = "[invalid]"
"""The answer that the harness's regex filters return where nothing matches."""


class _Results(msgspec.Struct):
    """The results file of a run; other keys are skipped."""

    results: JsonObject = {}
    configs: JsonObject = {}
    config: JsonObject = {}
    higher_is_better: JsonObject = {}
    samples: JsonObject = msgspec.field(name="n-samples", default={})
    shots: JsonObject = msgspec.field(name="n-shot", default={})
    system_instruction: object = None
    chat_template_sha: object = None
    model_name: object = None
    lm_eval_version: object = None

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


def _read_arguments(arguments: object) -> JsonObject:
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
        is_row = b'"doc_id"' in first and b'"doc"' in first
        return is_row and (b"resps" in first or len(first) >= 1 << 16)

    def explain(self, path: Path) -> str:
        """Return where the answers are that a results file summarises; empty for another file."""
        start = head(path)
        if not (start.startswith(b"{") and b'"results"' in start and b"_stderr" in start):
            return ""
        run_again = "run lm_eval again with --log_samples --output_path DIR, and name DIR"
        samples = any(path.parent.glob("*samples_*.json*"))
        advice = f"name {path.parent}, whose samples_*.jsonl hold them" if samples else run_again
        return f"{path} holds lm_eval's scores of whole tasks, and no answers: {advice}"

    def read(self, path: Path) -> Log:
        """Read the samples of one task."""
        name_match = _NAME.fullmatch(path.name)
        names = name_match.groupdict() if name_match else {}
        task, results, notes = _find_run(path, names.get("task"), names.get("date"))
        model = results.model()
        if model is None:
            model = path.parent.resolve().name.replace("__", "/")
            unnamed = "no results file beside it names the model; taken from its folder"
            notes.append(f"{unnamed}: {model}")
        about: dict[str, Any] = {"settings": results.settings(task), "first_leads": True}
        about["harness"] = f"lm_eval {results.lm_eval_version or ''}".strip()
        return _Samples(path=path, task=task, model=model, results=results, notes=notes, **about)


class _Request(msgspec.Struct, gc=False):
    arg_0: Annotated[str, msgspec.Meta(min_length=1)]  # without a context it is no choice
    arg_1: str


class _Pair(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    log: Annotated[float, msgspec.Meta(le=0)]  # a log-likelihood; NaN is not at most 0
    is_greedy: Literal["False", "True", "false", "true"]


class _Choice(msgspec.Struct, gc=False):
    """A row of multiple choice, without the responses before the filter."""

    doc_id: object
    doc: JsonObject
    target: object
    filter: str
    arguments: dict[str, _Request]
    filtered_resps: Annotated[list[_Pair], msgspec.Meta(min_length=2)]


def _rows(path: Path) -> Iterator[Any]:
    """Return the rows of a samples file, which was one JSON list until the summer of 2024.

    Rows of multiple choice under the metrics of the first row are a `_Choice`.
    """
    if head(path).startswith(b"["):
        return iter(json_file(path, list[dict[str, Any]]))
    first = next(json_lines(path, dict[str, Any]), {})
    metrics = listing(first.get("metrics"))
    if {str} == set(map(type, metrics)) and all(map(_FIELD.fullmatch, metrics)):
        fields: Any = {"metrics": list[Literal[tuple(metrics)]], **dict.fromkeys(metrics, Any)}  # type: ignore[misc]
        usual = msgspec.defstruct("_Usual", fields.items(), bases=(_Choice,), gc=False)
        with suppress(ValueError):
            msgspec.convert(first, usual, strict=False)
            return json_lines(path, dict[str, Any], usual)
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


@dataclass(kw_only=True)
class _Samples(Log):
    """The samples of a task, read by columns: an object for each score would take half the time."""

    observations: Iterable[Observation] = ()
    path: Path
    task: str
    model: str
    results: _Results
    ids: JsonObject = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    position: int = 0
    docs: Columns = field(default_factory=dict)
    columns: Columns = field(default_factory=lambda: defaultdict(list))
    """Values of samples, scores and choices; ``scores`` and ``choices`` count those of a sample."""

    def tables(self) -> Iterator[_Table]:
        """Yield tables of some 5,000 scores, with their measured columns."""
        rows = _rows(self.path)
        while table := self._read_table(rows):
            yield table
        self._note_size(len(self.ids))
        for metric, better in mapping(self.results.higher_is_better.get(self.task)).items():
            if better is False:
                self.notes.append(f"{metric}: lower is better (--scale 1 0 reads it so)")

    def _read_table(self, rows: Iterator[dict[str, Any]]) -> _Table | None:
        """Read the next rows as a table; None after the last."""
        with pause_collection():
            while len(self.columns["value"]) < _TABLE and (batch := list(islice(rows, _BATCH))):
                for name, run in groupby(batch, lambda row: getattr(row, "filter", None)):
                    read = self._read_batch if name is None else self._read_usual
                    read(list(run))
            table = self._make_table() if self.columns["value"] else None
            self.columns.clear()
            self.docs.clear()
        return table

    def _read_usual(self, rows: list[Any]) -> None:
        """Add rows of multiple choice."""
        cells = {n: list(map(attrgetter(n), rows)) for n in rows[0].__struct_fields__}
        metrics, arguments = cells["metrics"], cells["arguments"]
        sizes = list(map(len, cells["filtered_resps"]))
        with suppress(KeyError):  # fewer requests than log-likelihoods
            requests = [r for own, n in zip(arguments, sizes, strict=True) for r in _take(n)(own)]
            scores = {n: cells[n] for n in metrics[0] if set(map(type, cells[n])) <= _NUMBERS}
            if metrics.count([*scores]) == len(rows):
                logs = [pair.log for own in cells["filtered_resps"] for pair in own]
                words = [request.arg_1 for request in requests]
                cells["prompt"] = [own["gen_args_0"].arg_0 for own in arguments]
                cells |= _list_choices(sizes, cells["target"], words, logs)
                return self._add(rows[0].filter, scores, cells)
        return self._read_batch(msgspec.to_builtins(rows))

    def _read_batch(self, rows: list[JsonObject]) -> None:
        """Add rows of any layout."""
        for position, row in enumerate(rows, self.position + 1):
            if "doc_id" not in row:
                place = f"{self.path}, line {position}"
                raise InputError(f"{place} has no doc_id; is it a samples file of lm_eval?")
        read = [(*self._find_layout(row), row) for row in rows]
        for (name, metrics, is_choice), run in groupby(read, itemgetter(0, 1, 2)):
            *_, choices, own = zip(*run, strict=True)
            if is_choice:
                prompts, sizes, targets, *nested = zip(*choices, strict=True)
                words, logs = (list(chain.from_iterable(each)) for each in nested)
                cells = _list_choices(list(sizes), targets, words, logs)
                cells["prompt"] = list(prompts)
            else:
                cells = self._read_answers(own)
            cells |= {n: [row.get(n) for row in own] for n in ("doc", "doc_id")}
            scores = {metric: [row.get(metric) for row in own] for metric in metrics}
            self._add(name, scores, cells)

    def _find_layout(self, row: JsonObject) -> tuple[Any, ...]:
        """Return the filter, the metrics of a document, whether it is a choice, and which."""
        name = str(row["filter"]) if "filter" in row else self._name_filter(row)
        listed: Any = row.get("metrics") or [k for k in row if k not in _NO_METRICS]
        names = [each for each in listing(listed) if isinstance(each, str)]
        metrics = tuple(n for n in names if self._is_per_document(n, type(row.get(n)) in _NUMBERS))
        return name, metrics, (choice := _read_choice(row)) is not None, choice

    def _add(self, name: str, scores: Columns, cells: Columns) -> None:
        """Add rows under a filter; without a score they are missing."""
        columns, docs = self.columns, list(map(mapping, cells["doc"]))
        end = "" if name == "none" else f",{name}"
        values = {n + end: own for n, own in scores.items()} or {"": [None] * len(docs)}
        self.position += len(docs)
        columns["example_id"] += self._name_examples(docs, cells["doc_id"])
        add_columns(self.docs, columns["example_id"], docs)
        columns["prompt"] += map(_find_question, docs, cells["prompt"])
        columns["scorer"] += [*values] * len(docs)
        columns["value"] += chain.from_iterable(zip(*values.values(), strict=True))
        columns["scores"] += [len(values)] * len(docs)
        for column in _CELLS:
            columns[column] += cells[column]

    def _read_answers(self, rows: Sequence[JsonObject]) -> Columns:
        """Return columns of rows that are no multiple choice: the answer is the only choice."""
        names = ("resps", "filtered_resps")
        responses, answers = ([_read_first(row.get(n)) for row in rows] for n in names)
        # a task may say 0 where its filter found no answer, which may be an answer, too
        lost = [
            answer in self.fallbacks
            and (answer == _NO_ANSWER or str(answer) not in (response or ""))
            for answer, response in zip(answers, responses, strict=True)
        ]
        is_plain = rows[0].get("filter", "none") == "none"
        return {
            "prompt": [_read_argument(row.get("arguments"), 0, 0) for row in rows],
            "response": responses,
            "target": [text(row.get("target")) for row in rows],
            "is_lost": lost,
            "parsed": [None if is_plain else not each for each in lost],
            "label": answers,
            "length": [1] * len(rows),
            "log": [nan] * len(rows),
            "choices": [1] * len(rows),
        }

    @cached_property
    def fallbacks(self) -> frozenset[str]:
        """Return the answers that the task's filters return without a match."""
        filters = listing(dig(self.results.configs, self.task, "filter_list"))
        steps = [step for each in filters for step in listing(dig(each, "filter"))]
        own = (text(dig(step, "fallback")) for step in steps)
        return frozenset(word for word in (_NO_ANSWER, *own) if word is not None)

    def _name_filter(self, row: JsonObject) -> str:
        """Return the filter of a row of early 2024: files had all rows once for each filter."""
        repeat = self.rows[str(row["doc_id"])] = self.rows.get(str(row["doc_id"]), -1) + 1
        filters = listing(dig(self.results.configs, self.task, "filter_list"))
        if repeat < len(filters):
            return str(dig(filters[repeat], "name"))
        return "none" if repeat == 0 else f"filter {repeat + 1}"

    def _is_per_document(self, metric: str, is_number: bool) -> bool:
        """Return whether a metric is a number of each document; others are noted."""
        if metric != "bypass" and is_number:
            return True
        # metrics such as F1 leave a pair or list a row, from which the task's number is computed
        note = f"{metric} is computed over the whole task, not for each document: it is left out"
        if metric == "bypass":
            note = "predicted only (--predict_only): nothing is scored"
        if note not in self.notes:
            self.notes.append(note)
        return False

    def _name_examples(self, docs: list[JsonObject], numbers: list[object]) -> list[str]:
        """Return each document's own id, else its number in the task.

        Where two documents share a name, the second gets its number behind the name.
        """
        owns = [doc.get("id") for doc in docs]
        names = [
            str(number if type(own) not in (str, int) or own == "" else own)
            for own, number in zip(owns, numbers, strict=True)
        ]
        for i, first in enumerate(map(self.ids.setdefault, names, numbers)):
            if first != numbers[i]:
                names[i] += f"#{numbers[i]}"
                self.ids[names[i]] = numbers[i]
        return names

    def _make_table(self) -> _Table:
        """Return a row for each score, and the names of the measured columns."""
        columns, count = self.columns, len(self.columns["scores"])
        rows = np.repeat(np.arange(count), columns["scores"])
        is_lost = np.array(columns["is_lost"])[rows].tolist()
        values, statuses = _settle_scores(columns["value"], is_lost)
        own = {"scorer": columns["scorer"], "value": values, "status": statuses}
        cells = {name: columns[name] for name in ("example_id", "prompt", "response", "target")}
        cells |= {"model": [self.model] * count, "task": [self.task] * count, "epoch": [1] * count}
        measured: Columns = {"position": list(range(self.position - count + 1, self.position + 1))}
        if any(each is not None for each in columns["parsed"]):
            measured["parsed"] = columns["parsed"]
        return make_table(cells, self.docs, measured, rows, own | _choose(columns, rows))

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


def _settle_scores(values: list[Any], is_lost: list[bool]) -> tuple[list[Any], list[str]]:
    """Return the outcome and the status of each score."""
    if not any(is_lost) and set(map(type, values)) == {float} and isfinite(sum(values)):
        return values, [Status.SCORED] * len(values)
    reasons = [Status.UNPARSED if no_answer else None for no_answer in is_lost]
    outcomes, statuses = zip(*map(settle, values, reasons), strict=True)
    return list(outcomes), list(statuses)


def _choose(columns: Columns, rows: _Array) -> JsonObject:
    """Return the choice by each score, with log-likelihood and share."""
    sizes, logs = np.array(columns["choices"]), np.array(columns["log"], dtype=float)
    starts = np.cumsum(sizes) - sizes
    picks = _find_tops(logs, starts, sizes)[rows]
    norms = {name for name in set(columns["scorer"]) if name.startswith("acc_norm")}
    if norms:  # acc_norm divides by the characters of a choice
        is_norm = list(map(norms.__contains__, columns["scorer"]))
        picks = np.where(is_norm, _find_tops(logs / columns["length"], starts, sizes)[rows], picks)
    shares = _compute_shares(logs, starts, sizes)
    return {
        "answer": list(map(columns["label"].__getitem__, picks.tolist())),
        "logprob": pl.Series(logs[picks], nan_to_null=True),
        "confidence": pl.Series(shares[picks], nan_to_null=True),
    }


def _compute_shares(logs: _Array, starts: _Array, sizes: _Array) -> _Array:
    """Return each choice's probability among those of the sample, by softmax."""
    top = np.repeat(np.maximum.reduceat(logs, starts), sizes)
    # the largest is subtracted: exp(-800), a usual sum over an answer, is 0 in floating point
    with np.errstate(invalid="ignore"):
        weights = list(map(exp, np.where(np.isfinite(top), logs - top, nan).tolist()))
    # Python's exponential and sum: the last digit of NumPy's depends on the processor
    left = iter(weights)
    sums = [sum(islice(left, size)) for size in sizes.tolist()]
    return np.asarray(np.array(weights) / np.repeat(sums, sizes))


def _find_tops(scores: _Array, starts: _Array, sizes: _Array) -> _Array:
    """Return the place of the first largest score of each sample."""
    tops = np.repeat(np.maximum.reduceat(scores, starts), sizes)
    places = np.flatnonzero(~(scores < tops))
    return places[np.searchsorted(places, starts)]


def _read_choice(row: JsonObject) -> tuple[Any, ...] | None:
    """Return the context, the number of choices, the target, choices and log-likelihoods.

    None if it is no multiple choice.
    """
    pairs = listing(row.get("filtered_resps"))
    if len(pairs) < 2 or set(map(type, pairs)) != {list}:
        return None
    try:
        # since 2024 both are in quotes: ["-3.37", "False"]
        firsts, greedy = zip(*pairs, strict=True)
        logs = list(map(float, firsts))
        told = all(g in _GREEDY or type(g) is bool for g in greedy) and not any(map(isnan, logs))
    except (TypeError, ValueError, OverflowError):
        return None
    places = range(len(pairs))
    contexts, words = ([_read_argument(row.get("arguments"), i, k) for i in places] for k in (0, 1))
    # acc_mutual_info requests every choice again without the question, to normalise by: a request
    # with an empty context is no choice
    asked = [context != "" for context in contexts]
    if True in asked:
        words, logs = list(compress(words, asked)), list(compress(logs, asked))
    about = contexts[0], len(logs), row.get("target"), [word or "" for word in words], logs
    return about if told and len(logs) > 1 else None


def _list_choices(
    sizes: list[int], targets: Iterable[object], words: list[str], logs: list[float]
) -> Columns:
    """Return columns of multiple choice; a target that is the number of a choice is the choice."""
    choices = _name_choices(words, sizes)
    told = [
        own[number] if (number := _read_place(target)) < len(own) else target
        for own, target in zip(choices, map(text, targets), strict=True)
    ]
    blank: list[Any] = [None] * len(sizes)
    about = {"target": told, "response": blank, "parsed": blank, "choices": sizes, "log": logs}
    about |= {"is_lost": [False] * len(sizes), "label": list(chain.from_iterable(choices))}
    return about | {"length": [len(word) - (word[:1] == " ") or 1 for word in words]}


def _name_choices(words: list[str], sizes: list[int]) -> list[list[str]]:
    """Return the choices of each row by their words, or by numbers where two words are the same.

    Winogrande has one continuation after several contexts.
    """
    stripped, ends = list(map(str.strip, words)), accumulate(sizes)
    choices = [stripped[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return [own if len(set(own)) == len(own) else [*map(str, range(len(own)))] for own in choices]


@lru_cache
def _read_place(target: str | None) -> int:
    """Return the number that a target is; one beyond all choices where it is none."""
    # no task has 100,000 choices: longer digits are an answer, and may be too long for int
    return int(target) if target and target.isdecimal() and len(target) < 6 else 100_000


@cache
def _take(count: int) -> itemgetter[object]:
    """Return a function that takes so many requests of a row, two or more."""
    return itemgetter(*(f"gen_args_{i}" for i in range(count)))


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


def _find_question(doc: JsonObject, prompt: str | None) -> str | None:
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


def _read_first(responses: object) -> str | None:
    """Read the first response of the first request, however it is nested."""
    while isinstance(responses, list):
        if not responses:
            return None
        responses = responses[0]
    return text(responses)
