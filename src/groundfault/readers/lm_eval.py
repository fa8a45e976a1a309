"""lm-evaluation-harness: the samples file of one task, as ``--log_samples`` writes it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate, chain, compress, islice
from math import exp, isfinite, isnan, nan
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation, make_series, make_table
from groundfault.readers.safely import JsonObject, head, json_file, json_lines, pause_collection
from groundfault.readers.values import dig, drop_empty, list_names, listing, mapping, settle, text

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+))?\.jsonl?")
_NAMES = list_names("lm_eval")
_NO_METRICS = frozenset(_NAMES["no_metrics"])
_ANSWERS = ("resps", "filtered_resps")
_GREEDY = frozenset(("False", "True", "false", "true"))
_NUMBERS = frozenset((bool, int, float, type(None)))
_Array = NDArray[Any]
_Rows = list[dict[str, Any]]
_Table = tuple[pl.DataFrame, frozenset[str]]
_Columns = defaultdict[str, list[Any]]
"""Values of samples, scores and choices; ``scores`` and ``choices`` count those of a sample."""
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
        return b'"doc_id"' in first and (
            b'"doc"' in first and (b"resps" in first or len(first) >= 1 << 16)
        )

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
            notes.append(
                f"no results file beside it names the model; taken from its folder: {model}"
            )
        about: dict[str, Any] = {"settings": results.settings(task), "first_leads": True}
        about["harness"] = f"lm_eval {results.lm_eval_version or ''}".strip()
        return _Samples(path=path, task=task, model=model, results=results, notes=notes, **about)


class _Request(msgspec.Struct, gc=False):
    arg_0: Annotated[str, msgspec.Meta(min_length=1)]  # without a context it is no choice
    arg_1: str


# log-likelihood and is_greedy; NaN is not at most 0
_Pair = tuple[Annotated[float, msgspec.Meta(le=0)], Literal["False", "True", "false", "true"]]


def _rows(path: Path) -> Iterator[JsonObject]:
    """Return the rows of a samples file, which was one JSON list until the summer of 2024."""
    if head(path).startswith(b"["):
        return iter(json_file(path, list[dict[str, Any]]))
    first = next(json_lines(path, dict[str, Any]), {})
    metrics = listing(first.get("metrics"))
    if set(map(type, metrics)) != {str} or not _read_choices([first]):
        return json_lines(path, dict[str, Any])
    # multiple choice under the metrics of the first row, without the responses before the filter
    fields: Any = dict.fromkeys(("doc_id", "doc", "target", "filter", *metrics), Any)
    fields |= {"metrics": list[Literal[tuple(metrics)]], "arguments": dict[str, _Request]}  # type: ignore[misc]
    fields["filtered_resps"] = Annotated[list[_Pair], msgspec.Meta(min_length=2)]
    return json_lines(path, dict[str, Any], TypedDict("_Row", fields))  # type: ignore[operator]


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
    documents: set[str] = field(default_factory=set)
    position: int = 0

    def tables(self) -> Iterator[_Table]:
        """Yield tables of some 5,000 scores, with their measured columns."""
        rows = _rows(self.path)
        while table := self._read_table(rows):
            yield table
        self._note_size(len(self.documents))
        for metric, better in mapping(self.results.higher_is_better.get(self.task)).items():
            if better is False:
                self.notes.append(f"{metric}: lower is better (--scale 1 0 reads it so)")

    def _read_table(self, rows: Iterator[dict[str, Any]]) -> _Table | None:
        """Read the next rows as a table; None after the last."""
        columns: _Columns = defaultdict(list)
        with pause_collection():
            while len(columns["value"]) < _TABLE and (batch := list(islice(rows, _BATCH))):
                self._read_batch(batch, columns)
            about = self.model, self.task, self.position
            table = _make_table(columns, *about) if columns["value"] else None
            columns.clear()
        return table

    def _read_batch(self, rows: _Rows, columns: _Columns, filters: Sequence[str] = ()) -> None:
        """Add rows to the columns; rows of several layouts are added one by one."""
        for position, row in enumerate(rows, self.position + 1):
            if "doc_id" not in row:
                raise InputError(
                    f"{self.path}, line {position} has no doc_id; is it a samples file of lm_eval?"
                )
        filters = filters or [
            str(row["filter"]) if "filter" in row else self._name_filter(row) for row in rows
        ]
        scores, choices = self._read_scores(rows, filters), _read_choices(rows)
        if scores is None or choices is None:
            for row, filter_name in zip(rows, filters, strict=True):
                self._read_batch([row], columns, [filter_name])
            return
        new = choices or self._read_answers(rows)
        docs = [mapping(row.get("doc")) for row in rows]
        self.position += len(rows)
        columns["doc"] += docs
        columns["example_id"] += self._name_examples(docs, [row["doc_id"] for row in rows])
        columns["prompt"] += map(_find_question, docs, new.pop("prompt"))
        columns["scorer"] += [*scores] * len(rows)
        columns["value"] += chain.from_iterable(zip(*scores.values(), strict=True))
        columns["scores"] += [len(scores)] * len(rows)
        for name, values in new.items():
            columns[name] += values

    def _read_scores(self, rows: _Rows, filters: Sequence[str]) -> dict[str, list[object]] | None:
        """Return values by scorer; None where rows differ in their filter or metrics."""
        named = [row.get("metrics") or [k for k in row if k not in _NO_METRICS] for row in rows]
        if min(each.count(each[0]) for each in (named, filters)) < len(rows):
            return None
        scores = {}
        for name in [each for each in listing(named[0]) if isinstance(each, str)]:
            values = [row.get(name) for row in rows]
            kinds = set(map(type, values))
            if kinds & _NUMBERS and kinds - _NUMBERS:
                return None
            if self._is_per_document(name, kinds <= _NUMBERS):
                scores[name] = values
        end = "" if filters[0] == "none" else f",{filters[0]}"
        return {name + end: values for name, values in scores.items()} or {"": [None] * len(rows)}

    def _read_answers(self, rows: _Rows) -> dict[str, list[Any]]:
        """Return columns of rows that are no multiple choice: the answer is the only choice."""
        responses, answers = ([_read_first(row.get(n)) for row in rows] for n in _ANSWERS)
        # a task may say 0 where its filter found no answer, which may be an answer, too
        lost = [
            answer in self.fallbacks
            and (answer == _NO_ANSWER or str(answer) not in (response or ""))
            for answer, response in zip(answers, responses, strict=True)
        ]
        return {
            "prompt": [_read_argument(row.get("arguments"), 0, 0) for row in rows],
            "response": responses,
            "target": [text(row.get("target")) for row in rows],
            "is_lost": lost,
            "parsed": [
                None if row.get("filter", "none") == "none" else not is_lost
                for row, is_lost in zip(rows, lost, strict=True)
            ],
            "label": answers,
            "word": [""] * len(rows),
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
        note = (
            "predicted only (--predict_only): nothing is scored"
            if metric == "bypass"
            else f"{metric} is computed over the whole task, not for each document: it is left out"
        )
        if note not in self.notes:
            self.notes.append(note)
        return False

    def _name_examples(self, docs: list[JsonObject], numbers: list[object]) -> Iterator[str]:
        """Yield each document's own id, else its number in the task.

        Where two documents share an id, the second gets its number behind the id.
        """
        self.documents.update(map(str, numbers))
        for doc, number in zip(docs, numbers, strict=True):
            own = doc.get("id")
            if type(own) not in (str, int) or own == "":
                yield str(number)
            elif self.ids.setdefault(str(own), number) == number:
                yield str(own)
            else:
                yield f"{own}#{number}"

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


def _make_table(columns: _Columns, model: str, task: str, position: int) -> _Table:
    """Return a row for each score, and the names of the measured columns."""
    docs = columns["doc"]
    rows = np.repeat(np.arange(len(docs)), columns["scores"])
    values, statuses = _settle_scores(columns["value"], np.array(columns["is_lost"])[rows].tolist())
    own = {"scorer": columns["scorer"], "value": values, "status": statuses}
    same = {"model": model, "task": task, "epoch": 1}
    cells = {name: [value] * len(docs) for name, value in same.items()}
    cells |= {name: columns[name] for name in ("example_id", "prompt", "response", "target")}
    places = range(position - len(docs) + 1, position + 1)
    measured: dict[str, list[object]] = {"position": list(places)}
    if any(each is not None for each in columns["parsed"]):
        measured["parsed"] = columns["parsed"]
    return make_table(cells, docs, measured, rows, own | _choose(columns, rows))


def _settle_scores(
    values: list[Any], is_lost: list[bool]
) -> tuple[Sequence[object], Sequence[str]]:
    """Return the outcome and the status of each score."""
    if not any(is_lost) and set(map(type, values)) == {float} and isfinite(sum(values)):
        return values, [Status.SCORED] * len(values)
    scores = [
        (None, Status.UNPARSED) if no_answer else settle(value)
        for value, no_answer in zip(values, is_lost, strict=True)
    ]
    outcomes, statuses = zip(*scores, strict=True)
    return outcomes, statuses


def _choose(columns: _Columns, rows: _Array) -> JsonObject:
    """Return the choice by each score, with log-likelihood and share."""
    sizes, logs = np.array(columns["choices"]), np.array(columns["log"], dtype=float)
    starts = np.cumsum(sizes) - sizes
    picks = _find_tops(logs, starts, sizes)[rows]
    is_norm = np.array([name.startswith("acc_norm") for name in columns["scorer"]])
    if is_norm.any():  # acc_norm divides by the characters of a choice
        lengths = [len(word) - (word[:1] == " ") or 1 for word in columns["word"]]
        picks = np.where(is_norm, _find_tops(logs / lengths, starts, sizes)[rows], picks)
    shares = _compute_shares(logs, starts, sizes)
    return {
        "answer": make_series("answer", columns["label"], pl.String)[picks],
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
    samples = map(slice, starts.tolist(), (starts + sizes).tolist())
    sums = [sum(weights[own]) for own in samples]
    return np.asarray(np.array(weights) / np.repeat(sums, sizes))


def _find_tops(scores: _Array, starts: _Array, sizes: _Array) -> _Array:
    """Return the place of the first largest score of each sample."""
    tops = np.repeat(np.maximum.reduceat(scores, starts), sizes)
    places = np.flatnonzero(~(scores < tops))
    return places[np.searchsorted(places, starts)]


def _read_choices(rows: _Rows) -> dict[str, list[object]] | None:
    """Return columns of multiple choice; empty for other rows, None where rows differ in kind."""
    responses = [listing(row.get("filtered_resps")) for row in rows]
    several = [len(each) > 1 for each in responses]
    if not any(several):
        return {}
    # rows of several kinds are read again one by one
    mixed: dict[str, list[Any]] | None = None if len(rows) > 1 else {}
    logs = _list_logs(list(chain.from_iterable(responses))) if all(several) else None
    if logs is None:
        return mixed
    sizes = list(map(len, responses))
    contexts, words = _list_requests(rows, sizes)
    ends = list(accumulate(sizes))
    prompts = [contexts[end - size] for end, size in zip(ends, sizes, strict=True)]
    # acc_mutual_info requests every choice again without the question, to normalise by: a request
    # with an empty context is no choice
    if "" in contexts and (asks := [context != "" for context in contexts]).count(True):
        words, logs = list(compress(words, asks)), list(compress(logs, asks))
        sizes = [len(logs)]
        if len(rows) > 1 or len(logs) < 2:
            return mixed
    own = _name_choices(words, sizes)
    targets = [_find_target(row, each) for row, each in zip(rows, own, strict=True)]
    blank: list[Any] = [None] * len(rows)
    about = {"prompt": prompts, "target": targets, "response": blank, "parsed": blank}
    about |= {"is_lost": [False] * len(rows), "label": list(chain.from_iterable(own))}
    return {**about, "choices": sizes, "word": words, "log": logs}


def _name_choices(words: list[str], sizes: list[int]) -> list[list[str]]:
    """Return the choices of each row by their words, or by numbers where two words are the same.

    Winogrande has one continuation after several contexts.
    """
    stripped = map(str.strip, words)
    choices = [list(islice(stripped, size)) for size in sizes]
    return [
        each if len(set(each)) == len(each) else list(map(str, range(len(each))))
        for each in choices
    ]


def _find_target(row: JsonObject, choices: list[str]) -> str | None:
    """Return the target of a row; where it is the number of a choice, the choice."""
    target = text(row.get("target"))
    # no task has 100,000 choices: longer digits are an answer, and may be too long for int
    if target and target.isdecimal() and len(target) < 6 and int(target) < len(choices):
        return choices[int(target)]
    return target


def _list_logs(pairs: list[object]) -> list[float] | None:
    """Return the log-likelihoods of pairs ``[log-likelihood, is_greedy]``; else None."""
    kinds = set(map(type, pairs))
    try:
        # since 2024 both are in quotes: ["-3.37", "False"]
        firsts, greedy = zip(*pairs, strict=True)
        if kinds == {tuple}:  # decoded as `_Pair`
            return list(firsts)
        logs = list(map(float, firsts))
        is_told = _GREEDY.issuperset(greedy) or all(g in _GREEDY or type(g) is bool for g in greedy)
    except (TypeError, ValueError, OverflowError):
        return None
    is_number = not isnan(sum(logs)) or not any(map(isnan, logs))
    return logs if is_told and is_number and kinds <= {list, tuple} else None


def _list_requests(rows: _Rows, sizes: list[int]) -> tuple[list[str | None], list[str]]:
    """Return the contexts and the continuations of so many requests of each row."""
    arguments: list[tuple[Any, int]] = [
        (row.get("arguments"), n) for row, n in zip(rows, sizes, strict=True)
    ]
    with suppress(TypeError, KeyError, AttributeError):  # not decoded as `_Request`
        requests = [request for own, n in arguments for request in _take(n)(own)]
        contexts, words = (list(map(attrgetter(name), requests)) for name in ("arg_0", "arg_1"))
        if set(map(type, contexts)) == set(map(type, words)) == {str}:
            return contexts, words
    places = [(own, i) for own, n in arguments for i in range(n)]
    contexts, words = ([_read_argument(own, i, k) for own, i in places] for k in (0, 1))
    return contexts, [word or "" for word in words]


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
