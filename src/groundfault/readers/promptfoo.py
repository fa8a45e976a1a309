"""promptfoo: the results of an evaluation as JSON, as JSONL, or as its wide CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec
import polars as pl

from groundfault.base.reading import read_bytes, readable
from groundfault.core.status import Status
from groundfault.errors import InputError, first_line, require_extra
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import check_lines, escape_pattern, head, json_file, json_lines
from groundfault.readers.values import (
    add_numbers,
    dig,
    drop_empty,
    last_by,
    listing,
    mapping,
    name_of,
    number,
    parse_number,
    settle,
    text,
)

PASS = "pass"
"""The scorer of whether all assertions held; named metrics are scorers of their own."""

# ResultFailureReason in promptfoo: 0 none, 1 an assertion failed, 2 the evaluation failed
_FAILED, _ERROR = 1, 2
_BLIND = (
    "a CSV of promptfoo counts refusals and answers that its grader did not reach as failures, and "
    "does not say which they are: -o results.json does"
)
_JSON = re.compile(rb'"results"\s*:\s*\{.*"(prompts|results)"\s*:', re.DOTALL)
_YAML_SUFFIXES = (".yaml", ".yml")
_YAML = re.compile(rb"^results:\s.*^ +(prompts|results):", re.DOTALL | re.MULTILINE)
_LINE = (b'"success"', b'"prompt"', b'"vars"', b'"namedScores"')
_EXPECTED = re.compile(r"i?equals|i?contains(-all|-any)?|starts-with|similar|factuality")
_METRIC = "Metric: "
_NAME = re.compile(r"[\w .:-]{1,40}")


class _Row(msgspec.Struct, rename="camel"):
    """One result: one test, prompt and provider."""

    success: object = None
    score: object = None
    failure_reason: object = None
    error: object = None
    test_idx: object = None
    prompt: object = None
    provider: object = None
    vars: object = None
    response: object = None
    test_case: object = None
    named_scores: object = None
    grading_result: object = None
    token_usage: object = None
    latency_ms: object = None
    cost: object = None

    @property
    def label(self) -> str:
        """Return the name of the prompt, else its template."""
        names = map(mapping(self.prompt).get, ("label", "display", "raw"))
        return str(next(filter(None, names), self.prompt or ""))


@dataclass
class _Lines:
    """The results of a JSONL file, read anew each time."""

    path: Path

    def __iter__(self) -> Iterator[_Row]:
        return json_lines(self.path, _Row)


class _Results(msgspec.Struct):
    results: list[_Row]


class _File(msgspec.Struct, rename="camel"):
    results: _Results
    eval_id: object = None
    metadata: object = None


class Promptfoo:
    """Reads results: one observation a test, prompt and provider, and one a named metric.

    Results with ``failureReason`` 2 are errors of the evaluation, not failures, and so are those
    that only a grading model's error failed. Where there are several prompts, each is a model of
    its own that was asked the same tests: a configuration. Tests that ``--repeat`` ran again are
    epochs of one example. The weighted score is the column ``score``: a test passes or fails by its
    assertions and threshold.
    """

    undated = ()

    def sniff(self, path: Path) -> bool:
        """Return whether the file has the fields of a result, or the columns of the CSV."""
        first = head(path).lstrip()
        if path.suffix == ".csv":
            return b",Status,Score," in first and (
                b",Named Scores," in first or b",Grader Reason," in first
            )
        if path.suffix in _YAML_SUFFIXES:
            return _YAML.search(first) is not None
        if not first.startswith(b"{"):
            return False
        line = first.partition(b"\n")[0]
        if all(name in line for name in _LINE) and b'"results"' not in line[:200]:
            return True
        return _JSON.search(first) is not None and (
            b'"evalId"' in first or b'"namedScores"' in first
        )

    def read(self, path: Path) -> Log:
        """Read the results of one evaluation."""
        notes: list[str] = []
        rows: Iterable[_Row]
        harness, eval_id = "promptfoo", ""
        if path.suffix == ".csv":
            rows = list(_read_csv(path))
            if any(row.failure_reason == _FAILED for row in rows):
                notes.append(_BLIND)
        elif path.suffix in _YAML_SUFFIXES or b'"results"' in head(path).lstrip()[:200]:
            decode_file = yaml_file if path.suffix in _YAML_SUFFIXES else json_file
            file = decode_file(path, _File)
            rows = file.results.results
            harness = f"promptfoo {mapping(file.metadata).get('promptfooVersion', '')}".strip()
            eval_id = text(file.eval_id) or ""
        else:
            # decoded twice rather than kept: models are named by what all rows say
            rows = _Lines(path)
        run = _Run(rows, eval_id, notes)
        log = Log(run.observations(), harness, run.notes, PASS, run=eval_id, rewords=True)
        log.settings = run.settings
        return log


@dataclass
class _Run:
    rows: Iterable[_Row]
    eval_id: str
    notes: list[str]
    settings: dict[str, object] = field(default_factory=dict)
    firsts: dict[str, str] = field(default_factory=dict)
    repeats: dict[tuple[str, ...], int] = field(default_factory=dict)

    def observations(self) -> Iterator[Observation]:
        pairs = dict.fromkeys((row.label, _name_provider(row.provider)) for row in self.rows)
        models = self._name_models(list(pairs))
        position = 0
        for position, row in enumerate(self.rows, 1):
            model = models[row.label, _name_provider(row.provider)]
            yield from _score_row(row, self._base(row, model, position))
        if position == 0:
            self.notes.append("no samples")

    def _name_models(self, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return a model for each prompt and provider: a prompt of its own is a configuration."""
        prompts = list(dict.fromkeys(label for label, _ in pairs))
        providers = {provider for _, provider in pairs}
        if len(prompts) < 2:
            self.settings |= dict.fromkeys(["prompt"], prompts[0]) if prompts else {}
            return {pair: pair[1] for pair in pairs}
        short = {label: label for label in prompts}
        for place, label in enumerate(prompts, 1):
            if not _NAME.fullmatch(label):
                short[label] = f"prompt {place}"
                self.notes.append(f"{short[label]} is {first_line(ValueError(label))!r}")
        form = "{1}" if len(providers) < 2 else "{0} ({1})"
        return {(label, name): form.format(name, short[label]) for label, name in pairs}

    def _base(self, row: _Row, model: str, position: int) -> Observation:
        test, response = mapping(row.test_case), _read_response(row)
        variables = {k: v for k, v in mapping(row.vars).items() if k != "sessionId"}
        # --repeat gives a test another number each time, so its content identifies it
        parts = [variables, test.get("description"), test.get("assert")]
        content = json.dumps(parts, sort_keys=True, default=str)
        number_ = str(row.test_idx) if row.test_idx is not None else name_of(content)
        test_id = self.firsts.setdefault(content, number_)
        key = (content, row.label, model)
        self.repeats[key] = self.repeats.get(key, 0) + 1
        metadata = mapping(test.get("metadata")).items()
        attributes = {k: v for k, v in metadata if not k.startswith("_promptfoo")}
        attributes["vars"] = variables
        attributes |= {k: v for k, v in test.items() if k == "description" and v}
        return Observation(
            example_id=test_id,
            model=model,
            epoch=self.repeats[key],
            prompt=_read_prompt(row.prompt),
            response=text(response.get("output")),
            target=_read_target(test),
            logprob=add_numbers(listing(response.get("logProbs"))),
            attributes=attributes,
            measured=_measurements(row, response, test, position),
            origin=self.eval_id or None,
        )


def _score_row(row: _Row, base: Observation) -> Iterator[Observation]:
    response, grading = _read_response(row), mapping(row.grading_result)
    is_pass = row.success if isinstance(row.success, bool) else grading.get("pass")
    is_filtered = response.get("finishReason") == "content_filter"
    is_refused = is_filtered or response.get("isRefusal") is True
    if row.failure_reason == _ERROR or (row.failure_reason is None and row.error and not grading):
        base.status = Status.ERROR
        error = first_line(ValueError(text(row.error) or "error"))
        base.measured = {**base.measured, "error": error}
    elif is_refused and not is_pass:
        base.status = Status.REFUSED
    elif is_pass is None:
        base.status = Status.MISSING
    if base.status != Status.SCORED:
        yield base
        return
    metrics = mapping(row.named_scores) or mapping(grading.get("namedScores"))
    unreached = _find_unreached(row)
    parts = listing(grading.get("componentResults"))
    reasons = {str(dig(part, "assertion", "metric")): text(dig(part, "reason")) for part in parts}
    reasons[PASS] = text(grading.get("reason"))
    for name, raw in {PASS: is_pass, **metrics}.items():
        scored = base.rescore(name, *settle(raw, Status.ERROR if name in unreached else None))
        if reason := reasons.get(name):
            scored.measured = {**base.measured, "reason": reason}
        yield scored


def _find_unreached(row: _Row) -> set[str]:
    """Return the scorers whose score says that no grader could be reached.

    promptfoo counts an assertion whose grading model answered with an error as failed. The test as
    a whole has no outcome then, whatever its other assertions say: where only failures counted in
    spite of it, the examples that a grader did not reach would be all failures.
    """
    parts = listing(dig(row.grading_result, "componentResults"))
    down = [part for part in parts if dig(part, "metadata", "graderError") is True]
    metrics = {str(dig(part, "assertion", "metric")) for part in down}
    return {PASS, *metrics} if down else set()


def _measurements(
    row: _Row, response: dict[str, object], test: dict[str, object], position: int
) -> dict[str, object]:
    usage = mapping(response.get("tokenUsage")) or mapping(row.token_usage)
    latency = number(row.latency_ms)
    reason = response.get("finishReason")
    parts = listing(dig(row.grading_result, "componentResults"))
    asserted = [mapping(dig(part, "assertion")) for part in parts]
    graders = [each["provider"] for each in asserted if each.get("provider")]
    graders = graders or list(filter(None, [dig(test, "options", "provider")]))
    measurements = {
        "position": position,
        "score": number(row.score),
        "finish_reason": reason,
        "truncated": reason == "length" if reason else None,
        "input_tokens": usage.get("prompt"),
        "output_tokens": usage.get("completion"),
        "seconds": latency / 1000 if latency is not None else None,
        "cached": response.get("cached"),
        "cost": number(row.cost),
        "judge": ", ".join(dict.fromkeys(map(_name_provider, graders))) or None,
        "edited": any(each.get("type") == "human" for each in asserted) or None,
    }
    return drop_empty(measurements)


def _read_response(row: _Row) -> dict[str, object]:
    return mapping(row.response) if not isinstance(row.response, str) else {"output": row.response}


def _name_provider(provider: object) -> str:
    """Return the provider's label, which a user gives, else its id."""
    details = mapping(provider)
    own = provider if isinstance(provider, str) else ""
    return str(details.get("label") or details.get("id") or own)


def _read_prompt(prompt: object) -> str | None:
    """Read the prompt that was sent; of a conversation, the user's last message."""
    raw = mapping(prompt).get("raw") if not isinstance(prompt, str) else prompt
    if isinstance(raw, str) and raw.lstrip().startswith("["):
        with suppress(ValueError, RecursionError):
            return last_by(json.loads(raw), "user") or raw
    return text(raw)


def _read_target(test: dict[str, object]) -> str | None:
    asserted = listing(test.get("assert"))
    values = [dig(one, "value") for one in asserted if _EXPECTED.fullmatch(str(dig(one, "type")))]
    texts = dict.fromkeys(words for words in map(text, values) if words is not None)
    return text(list(texts)) if texts else None


def _read_csv(path: Path) -> Iterator[_Row]:
    """Read the rows of the wide table, which has a row a test and columns a prompt and provider.

    The variables come first; then, for each prompt and provider, the output and its columns.
    """
    check_lines(path)
    try:
        table = pl.read_csv(escape_pattern(path), has_header=False, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"{path} cannot be read as CSV: {first_line(error)}") from None
    header = [str(name) for name in next(table.iter_rows(), ())]
    # the column before Status holds the output; its heading is "[provider] prompt"
    starts = [i - 1 for i, name in enumerate(header) if name == "Status" and i]
    if not starts:
        raise InputError(f"{path} has no column Status; is it a table of promptfoo?")
    for index, cells in enumerate(table.slice(1).iter_rows()):
        variables = dict(zip(header[: starts[0]], cells, strict=False))
        description = variables.pop("Description", None)
        for begin, end in zip(starts, [*starts[1:], len(header)], strict=True):
            columns = dict(zip(header[begin + 1 : end], cells[begin + 1 : end], strict=False))
            provider, _, label = header[begin].removeprefix("[").partition("] ")
            status = str(columns.get("Status"))
            metrics = [(name, v) for name, v in columns.items() if v and name.startswith(_METRIC)]
            scores = {name.removeprefix(_METRIC): parse_number(v) for name, v in metrics}
            yield _Row(
                success=status == "PASS",
                score=parse_number(columns.get("Score")),
                failure_reason={"PASS": 0, "FAIL": 1}.get(status, _ERROR),
                error="ERROR" if status == "ERROR" else None,
                test_idx=index,
                prompt={"label": label},
                provider=provider,
                vars=variables,
                response=cells[begin] or "",
                test_case={"description": description},
                named_scores=scores,
                grading_result={},
            )


T = TypeVar("T")

MAX_YAML = 256 << 20
"""Bytes of one document: its parser is slower than that of JSON, and takes more memory."""
MAX_PARTS = 20_000_000
"""Values in a document, each counted as often as an alias repeats it."""


def yaml_file(path: Path, type: type[T]) -> T:
    """Return a whole YAML document, decoded into a type.

    Raises
    ------
    InputError
        If it is too large, no YAML, nested too deeply, or not of the type.
    MissingExtraError
        If PyYAML is not installed.
    """
    with require_extra(
        f"{path} is YAML, which needs PyYAML: pip install 'groundfault[yaml]', or write JSON"
    ):
        import yaml
    # the safe loader makes no objects of any class; the one in C is some ten times faster
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with readable(path):
        data = read_bytes(path, MAX_YAML)
    try:
        content = yaml.load(data, loader)
        if _count_parts(content, {}) > MAX_PARTS:
            raise InputError(f"{path} has over {MAX_PARTS:,} values, most of them by aliases")
        return msgspec.convert(content, type)
    except msgspec.ValidationError as error:
        raise InputError(f"{path} is not laid out as expected: {first_line(error)}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # libyaml counts by itself since PyYAML 6.0.4
        if isinstance(error, RecursionError) or "nesting depth" in str(error):
            raise InputError(f"{path} is YAML nested too deeply") from None
        raise InputError(f"{path} is not YAML, or is cut short: {first_line(error)}") from None


def _count_parts(value: object, known: dict[int, int]) -> int:
    """Return how many values there are once every alias is written out.

    Each object is visited once.
    """
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        # while it is counted, a list that holds itself has no end
        known[id(value)] = MAX_PARTS + 1
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count_parts(part, known) for part in parts)
    return known[id(value)]
