"""OpenAI evals: the events of one run, one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_lines
from groundfault.readers.values import drop_empty, number, text, texts_by


class _Spec(msgspec.Struct):
    completion_fns: list[str] = []
    eval_name: str = ""
    split: str = ""


class _Line(msgspec.Struct):
    """The first line, an event, or the last line."""

    spec: _Spec | None = None
    final_report: Any = None
    sample_id: str | int | None = None
    type: str | None = None
    data: Any = None


class OpenAIEvals:
    """Reads ``match`` events, and the numbers of ``metrics`` events as one scorer each.

    Prompt and response are those of the first ``sampling`` event of a sample: later ones may be a
    grader's. Where a grader's choice is ``__invalid__`` the status is ``unparsed``; a sample with
    an ``error`` event and no score is ``error``, and one with samplings alone is ``missing``. A log
    without a final report was cut short, and a note says so.
    """

    def sniff(self, path: Path) -> bool:
        """Whether the first line is the specification of a run."""
        first = head(path).partition(b"\n")[0]
        return first.startswith((b'{"spec":', b'{"spec" :')) and b'"completion_fns"' in first

    def read(self, path: Path) -> Log:
        """One observation a sample and scorer."""
        notes: list[str] = []
        return Log(_Run(path, notes).observations(), "evals", notes)


@dataclass
class _Run:
    path: Path
    notes: list[str]
    spec: _Spec = field(default_factory=_Spec)
    samplings: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    epochs: dict[tuple[str, str], int] = field(default_factory=dict)

    def observations(self) -> Iterator[Observation]:
        finished = False
        names_with_score: set[str] = set()
        for line in json_lines(self.path, _Line):
            self.spec = line.spec or self.spec
            finished = finished or line.final_report is not None
            if line.sample_id is None or not isinstance(line.data, dict):
                continue
            name = str(line.sample_id)
            if line.type == "sampling":
                # the first: a model-graded eval writes the grader's sampling under the same sample
                self.samplings.setdefault(name, _exchange(line.data))
            elif line.type == "error":
                self.errors[name] = text(line.data.get("message")) or "error"
            elif line.type in ("match", "metrics"):
                names_with_score.add(name)
                yield from self._scores(name, line.type, line.data)
        for name in [*self.samplings, *(n for n in self.errors if n not in self.samplings)]:
            if name not in names_with_score:
                status = Status.ERROR if name in self.errors else Status.MISSING
                yield self._observation(name, "", None, status, {"error": self.errors.get(name)})
        if not finished:
            self.notes.append("no final report: the run was cut short")

    def _scores(self, name: str, kind: str, data: dict[str, Any]) -> Iterator[Observation]:
        if kind == "match":
            names = ("correct", "score", "expected", "picked", "sampled", "prompt")
            measurements = {key: value for key, value in data.items() if key not in names}
            observation = self._observation(
                name,
                "match",
                number(data.get("correct", data.get("score"))),
                Status.MISSING,
                measurements,
            )
            observation.answer, observation.target = (
                text(data.get("picked")),
                text(data.get("expected")),
            )
            yield observation
            return
        choice = text(data.get("choice"))
        unscored = Status.UNPARSED if choice == "__invalid__" else Status.MISSING
        for metric, raw in data.items():
            if raw is None or isinstance(raw, bool | int | float):
                value = None if unscored == Status.UNPARSED else number(raw)
                yield self._observation(name, metric, value, unscored, {"label": choice})

    def _observation(
        self,
        name: str,
        scorer: str,
        value: float | None,
        unscored: Status,
        measurements: dict[str, Any],
    ) -> Observation:
        prompt, response = self.samplings.get(name, (None, None))
        epoch = self.epochs[name, scorer] = self.epochs.get((name, scorer), 0) + 1
        # the last completion function of a model-graded eval is its grader
        models = self.spec.completion_fns
        grader = models[-1] if len(models) > 1 else None
        return Observation(
            name,
            value,
            unscored if value is None else Status.SCORED,
            scorer=scorer,
            model=models[0] if models else "",
            task=self.spec.eval_name,
            epoch=epoch,
            prompt=prompt,
            response=response,
            measured=drop_empty({**measurements, "judge": grader}),
        )


def _exchange(data: dict[str, Any]) -> tuple[str | None, str | None]:
    """The last user message and what was sampled."""
    prompt, sampled = data.get("prompt"), data.get("sampled")
    user_turns = texts_by(prompt, "user")
    one = sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled
    return (user_turns[-1] if user_turns else text(prompt)), text(one)
