"""lm-evaluation-harness: the samples file of one task, as ``--log_samples`` writes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file, json_lines
from groundfault.readers.values import drop_empty, listing, mapping, number, text

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_(?P<date>\d{4}-\d\d-\d\dT[\d:.-]+))?\.jsonl?")
# since 2024 a row lists its metrics under `metrics`; before, every key but these is a metric
_NOT_METRICS = {
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
}  # fmt: skip
_QUESTIONS = (
    "question", "Question", "problem", "query", "prompt", "instruction", "input", "question_stem",
    "goal", "sentence", "text", "premise",
)  # fmt: skip
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
        """Arguments of the model and of its answers, apart from its name."""
        arguments = _read_arguments(self.config.get("model_args"))
        own = {k: v for k, v in arguments.items() if k not in ("pretrained", "model")}
        more = {
            "num_fewshot": self.shots.get(task),
            "system_instruction": self.system_instruction,
            "chat_template": self.chat_template_sha,
        }
        return own | _read_arguments(self.config.get("gen_kwargs")) | drop_empty(more)

    def model(self) -> str | None:
        """The model's name, else the model among its arguments."""
        arguments = _read_arguments(self.config.get("model_args"))
        name = (
            self.model_name
            or arguments.get("pretrained")
            or arguments.get("model")
            or self.config.get("model")
        )
        return text(name)


def _read_arguments(arguments: Any) -> dict[str, Any]:
    """Arguments, which older files hold as they were typed: ``name=value,name=value``."""
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
        """Whether the first row has a document, its id and the responses."""
        # a first row longer than what was read may have its responses after that
        start = head(path) if path.suffix in (".jsonl", ".json") else b""
        first = start if start.startswith(b"[") else start.partition(b"\n")[0]
        return b'"doc_id"' in first and (
            b'"doc"' in first and (b"resps" in first or len(first) >= 1 << 16)
        )

    def read(self, path: Path) -> Log:
        """The samples of one task."""
        name_match = _NAME.fullmatch(path.name)
        task, results, notes = _companion(
            path,
            name_match["task"] if name_match else None,
            name_match["date"] if name_match else None,
        )
        model = results.model()
        if model is None:
            model = path.parent.resolve().name.replace("__", "/")
            notes.append(
                f"no results file beside it names the model; taken from its folder: {model}"
            )
        run = _Run(path, task, model, results, notes)
        harness = f"lm_eval {results.lm_eval_version or ''}".strip()
        return Log(
            run.observations(), harness, notes, first_leads=True, settings=results.settings(task)
        )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a samples file, which was one JSON list until the summer of 2024."""
    if head(path).startswith(b"["):
        return iter(json_file(path, list[dict[str, Any]]))
    return json_lines(path, dict[str, Any])


def _companion(path: Path, task: str | None, date: str | None) -> tuple[str, _Results, list[str]]:
    """The task, the results of the same run, and notes.

    Of several results files the one of the same time is taken, else the latest with the task.
    """
    beside = sorted(p for p in path.parent.glob("*.json") if "results" in p.name and p != path)
    if date:
        beside.sort(key=lambda p: date in p.name)
    for place in reversed(beside):
        try:
            results = json_file(place, _Results)
        except InputError as error:
            return (
                task or path.stem,
                _Results(),
                [f"the results file beside it is not read: {error}"],
            )
        # until June 2024 samples were named <arguments of the model>_<task>.jsonl, in which nothing
        # marks the start of the task
        tasks = [
            name
            for name in {**results.results, **results.configs}
            if name == task or path.stem.endswith(f"_{name}")
        ]
        if tasks:
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

    def observations(self) -> Iterator[Observation]:
        documents: set[str] = set()
        for position, row in enumerate(_rows(self.path), 1):
            if "doc_id" not in row:
                raise InputError(
                    f"{self.path}, line {position} has no doc_id; is it a samples file of lm_eval?"
                )
            documents.add(str(row["doc_id"]))
            yield from self._scores(row, position)
        self._note_size(len(documents))
        for metric, better in mapping(self.results.higher_is_better.get(self.task)).items():
            if better is False:
                self.notes.append(f"{metric}: lower is better (--scale 1 0 reads it so)")

    def _scores(self, row: dict[str, Any], position: int) -> Iterator[Observation]:
        filter_name = self._filter(row)
        names = row.get("metrics") or [key for key in row if key not in _NOT_METRICS]
        names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        metrics = {
            name: row.get(name) for name in names if self._is_per_document(name, row.get(name))
        }
        if not metrics:
            metrics = {"": None}
        doc = mapping(row.get("doc"))
        choices = _Choices.of(row)
        prompt = _argument(row, 0, 0)
        common = {
            "example_id": self._id(doc, row["doc_id"]),
            "model": self.model,
            "task": self.task,
            "prompt": _question(doc, prompt),
            "response": None if choices else _first(row.get("resps")),
            "target": choices.label(row.get("target")) if choices else text(row.get("target")),
            "attributes": doc,
        }
        for metric, value in metrics.items():
            scorer = metric if filter_name == "none" or not metric else f"{metric},{filter_name}"
            yield _observation(common, scorer, value, choices, row, position, self.fallbacks)

    @cached_property
    def fallbacks(self) -> frozenset[str]:
        """The answers that the task's filters return where they match nothing."""
        filters = listing(mapping(self.results.configs.get(self.task)).get("filter_list"))
        steps = [step for each in filters for step in listing(mapping(each).get("filter"))]
        own = {text(mapping(step).get("fallback")) for step in steps} - {None}
        return frozenset(word for word in (_NO_ANSWER, *own) if word is not None)

    def _filter(self, row: dict[str, Any]) -> str:
        """The filter of a row.

        Files of early 2024 do not name it: they write all rows once for each filter.
        """
        if "filter" in row:
            return str(row["filter"])
        repeat = self.rows[str(row["doc_id"])] = self.rows.get(str(row["doc_id"]), -1) + 1
        filters = mapping(self.results.configs.get(self.task)).get("filter_list")
        names = [mapping(each).get("name") for each in filters] if isinstance(filters, list) else []
        return (
            str(names[repeat])
            if repeat < len(names)
            else ("none" if repeat == 0 else f"filter {repeat + 1}")
        )

    def _is_per_document(self, metric: str, value: Any) -> bool:
        # metrics such as F1 leave a pair or list a row, from which the task's number is computed
        note = f"{metric} is computed over the whole task, not for each document: it is left out"
        if metric == "bypass":
            note = "predicted only (--predict_only): nothing is scored"
        elif value is None or isinstance(value, bool | int | float):
            return True
        if note not in self.notes:
            self.notes.append(note)
        return False

    def _id(self, doc: dict[str, Any], doc_id: Any) -> str:
        """The document's own id, else its number in the task.

        Where two documents share an id, the second gets its number behind the id.
        """
        own = doc.get("id")
        if not isinstance(own, str | int) or isinstance(own, bool) or own == "":
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


def _observation(
    common: dict[str, Any],
    scorer: str,
    value: Any,
    choices: _Choices | None,
    row: dict[str, Any],
    position: int,
    fallbacks: frozenset[str],
) -> Observation:
    observation = Observation(
        **common, scorer=scorer, value=number(value), measured={"position": position}
    )
    if choices:
        choice = choices.best(scorer.startswith("acc_norm"))
        observation.answer, observation.logprob, observation.confidence = (
            choices.labels[choice],
            choices.logs[choice],
            choices.share(choice),
        )
    else:
        observation.answer = _first(row.get("filtered_resps"))
        if row.get("filter", "none") != "none":
            observation.measured = {
                **observation.measured,
                "parsed": not _is_fallback(observation, fallbacks),
            }
    if _is_fallback(observation, fallbacks):
        observation.value, observation.status = None, Status.UNPARSED
    elif observation.value is None:
        observation.status = Status.MISSING
    return observation


def _is_fallback(observation: Observation, fallbacks: frozenset[str]) -> bool:
    """Whether the answer is what a filter returns for none; a task may say 0, which may be one."""
    answer = observation.answer
    if answer not in fallbacks:
        return False
    return answer == _NO_ANSWER or str(answer) not in (observation.response or "")


@dataclass(frozen=True)
class _Choices:
    """The choices of one question and their log-likelihoods."""

    labels: list[str]
    lengths: list[int]
    logs: list[float]

    @classmethod
    def of(cls, row: dict[str, Any]) -> _Choices | None:
        """Those of a row; None where it is no multiple choice."""
        responses = row.get("filtered_resps")
        logs = [_log(pair) for pair in responses] if isinstance(responses, list) else []
        # acc_mutual_info requests every choice again without the question, to normalise by: a
        # request with an empty context is no choice
        positions = [i for i in range(len(logs)) if _argument(row, i, 0) != ""] or list(
            range(len(logs))
        )
        likely = [log for i in positions if (log := logs[i]) is not None]
        if len(positions) < 2 or len(likely) < len(positions):
            return None
        words = [_argument(row, i, 1) or "" for i in positions]
        labels = [word.strip() for word in words]
        # with one continuation after several contexts, as in Winogrande, only numbers are distinct
        distinct = len(set(labels)) == len(labels)
        return cls(
            labels if distinct else [str(i) for i in range(len(labels))],
            [max(len(word.removeprefix(" ")), 1) for word in words],
            likely,
        )

    def best(self, by_length: bool) -> int:
        """The index of the model's choice; ``by_length`` divides by its characters, as acc_norm."""
        scores = (
            [log / n for log, n in zip(self.logs, self.lengths, strict=True)]
            if by_length
            else self.logs
        )
        return scores.index(max(scores))

    def share(self, which: int) -> float | None:
        """The softmax of the log-likelihoods, at one of them."""
        # the largest is subtracted: exp(-800), a usual sum over an answer, is 0 in floating point
        top = max(self.logs)
        if not math.isfinite(top):
            return None
        return math.exp(self.logs[which] - top) / sum(math.exp(log - top) for log in self.logs)

    def label(self, target: Any) -> str | None:
        """The target; where it is the number of a choice, the choice's text."""
        label = text(target)
        if (
            label is not None
            and label.isdecimal()
            and len(label) < 6
            and int(label) < len(self.labels)
        ):
            return self.labels[int(label)]
        return label


def _log(pair: Any) -> float | None:
    """The log-likelihood of a pair ``[log-likelihood, is_greedy]``."""
    # since 2024 both are in quotes: ["-3.37", "False"]
    if (
        not isinstance(pair, list)
        or len(pair) != 2
        or str(pair[1]).lower() not in ("true", "false")
    ):
        return None
    try:
        logprob = float(pair[0])
    except (TypeError, ValueError):
        return None
    return None if math.isnan(logprob) else logprob


def _argument(row: dict[str, Any], request: int, which: int) -> str | None:
    """An argument of a request."""
    # {"gen_args_0": {"arg_0": ...}}, and lists of lists in files before 2024
    arguments = row.get("arguments")
    if isinstance(arguments, dict):
        argument = mapping(arguments.get(f"gen_args_{request}")).get(f"arg_{which}")
    else:
        try:
            argument = arguments[request][which]  # type: ignore[index]
        except (TypeError, IndexError, KeyError):
            return None
    # of a chat model the argument is a list with the whole conversation as one text of JSON
    return (
        argument
        if isinstance(argument, str)
        else _first(argument)
        if isinstance(argument, list)
        else None
    )


def _question(doc: dict[str, Any], prompt: str | None) -> str | None:
    """The question of the document where the prompt holds it, else the whole prompt.

    The prompt has few-shot examples and a template, which may differ between models that were asked
    the same question.
    """
    whole = prompt or ""
    for key in _QUESTIONS:
        question = doc.get(key)
        if (
            isinstance(question, str)
            and question.strip()
            and (question in whole or json.dumps(question)[1:-1] in whole)
        ):
            return question
    return prompt


def _first(responses: Any) -> str | None:
    """The first response of the first request, however it is nested."""
    while isinstance(responses, list):
        if not responses:
            return None
        responses = responses[0]
    return text(responses)
