"""OpenAI evals: the events of one run, one JSON object a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from groundfault.core.status import Status
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, json_lines
from groundfault.readers.values import drop_empty, last_by, settle, text


class _Spec(msgspec.Struct):
    completion_fns: list[str] = []
    eval_name: str = ""
    split: str = ""


class _Line(msgspec.Struct):
    """The first line, an event, or the last line."""

    spec: _Spec | None = None
    final_report: object = None
    sample_id: str | int | None = None
    type: str | None = None
    data: object = None


class OpenAIEvals(JsonFormat):
    """Reads ``match`` events, and the numbers of ``metrics`` events as one scorer each.

    Prompt and response come from the first ``sampling`` event of a sample, because later ones may
    be a grader's. If a grader's choice is ``__invalid__``, the status is ``unparsed``. A sample
    with an ``error`` event and no score is ``error``; a sample with only samplings is ``missing``.
    A log without a final report was cut short, and a note says so.
    """

    tool = "evals"
    opening = re.compile(rb'\{"spec" ?:')
    keys = ("completion_fns",)
    is_lines = True

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation a sample and scorer."""
        spec, is_finished = _Spec(), False
        samplings: dict[str, tuple[str | None, str | None]] = {}
        errors: dict[str, str] = {}
        epochs: Counter[tuple[str, str]] = Counter()
        for line in json_lines(path, _Line):
            spec = line.spec or spec
            is_finished = is_finished or line.final_report is not None
            if line.sample_id is None or not isinstance(line.data, dict):
                continue
            name = str(line.sample_id)
            if line.type == "sampling":
                # the first: a model-graded eval writes the grader's sampling under the same sample
                samplings.setdefault(name, _read_exchange(line.data))
            elif line.type == "error":
                errors[name] = text(line.data.get("message")) or "error"
            elif line.type in ("match", "metrics"):
                for observation in _read_scores(name, line.type, line.data):
                    epochs[name, observation.scorer] += 1
                    observation.epoch = epochs[name, observation.scorer]
                    yield _complete(observation, spec, samplings)
        scored = {name for name, _ in epochs}
        for name in dict.fromkeys([*samplings, *errors]):
            if name not in scored:
                reason = Status.ERROR if name in errors else None
                measured = {"error": errors.get(name)}
                lost = Observation(name, *settle(None, reason), measured=measured)
                yield _complete(lost, spec, samplings)
        if not is_finished:
            log.notes.append("no final report: the run was cut short")


def _read_scores(name: str, kind: str, data: JsonObject) -> Iterator[Observation]:
    if kind == "match":
        names = ("correct", "score", "expected", "picked", "sampled", "prompt")
        yield Observation(
            name,
            *settle(data.get("correct", data.get("score"))),
            scorer="match",
            answer=text(data.get("picked")),
            target=text(data.get("expected")),
            measured={key: value for key, value in data.items() if key not in names},
        )
        return
    choice = text(data.get("choice"))
    reason = Status.UNPARSED if choice == "__invalid__" else None
    for metric, raw in data.items():
        if isinstance(raw, bool | int | float | None):
            score = settle(raw, reason)
            yield Observation(name, *score, scorer=metric, measured={"label": choice})


def _complete(
    observation: Observation, spec: _Spec, samplings: Mapping[str, tuple[str | None, str | None]]
) -> Observation:
    """Add the part that all events of a sample share."""
    models = spec.completion_fns
    # the last completion function of a model-graded eval is its grader
    grader = models[-1] if len(models) > 1 else None
    observation.model, observation.task = models[0] if models else "", spec.eval_name
    observation.prompt, observation.response = samplings.get(observation.example_id, (None, None))
    observation.measured = drop_empty({**observation.measured, "judge": grader})
    return observation


def _read_exchange(data: JsonObject) -> tuple[str | None, str | None]:
    """Return the last user message and the sampled answer."""
    prompt, sampled = data.get("prompt"), data.get("sampled")
    one = sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled
    return last_by(prompt, "user") or text(prompt), text(one)
