"""HELM: the folder of one run, with ``run_spec.json`` and the results of each instance."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, json_file
from groundfault.readers.values import (
    dig,
    drop_empty,
    last_by,
    list_names,
    listing,
    mapping,
    number,
    settle,
    text,
)

_STATS, _STATES = "per_instance_stats.json", "scenario_state.json"
_SHOWN, _INSTANCES = "display_predictions.json", "instances.json"

# statistics of the request, of the answer's length and of the harness: they are no measure of how
# good the answer is, and become columns or are left out
_NO_SCORE = re.compile(
    r"(num|training|inference|finish_reason|logprob|perplexity|bits_per_byte|denoised|estimated)(_.*)?"
    r"|batch_size|max_prob|predicted_index|prompt_truncated"
)
_FILTERED = re.compile(r"content.?(filter|block|polic|moderat)|safety|blocked", re.IGNORECASE)

# a run does not say which of its metrics counts: `main_name` of each group in HELM's schema files
# (schema_classic, schema_lite, schema_capabilities) does
_MAIN_METRICS = {
    group: metric
    for metric, groups in list_names("helm")["main_metrics"].items()
    for group in groups
}

Key = tuple[str, str, int]
"""Instance, perturbation and trial, which identify a row in HELM's files."""
Scores = dict[str, float | None]


class _Spec(msgspec.Struct):
    name: str
    adapter_spec: JsonObject = {}
    scenario_spec: object = None
    groups: list[object] = []


class _Instance(msgspec.Struct):
    id: str | int | None = None
    input: object = None
    references: list[object] = []
    split: Any = None
    sub_split: object = None
    perturbation: object = None
    extra_data: object = None


class _State(msgspec.Struct):
    instance: _Instance
    train_trial_index: int = 0
    result: object = None
    output_mapping: object = None
    reference_index: int | None = None
    request_mode: object = None
    prompt_truncated: object = None
    num_train_instances: object = None
    annotations: object = None


class _States(msgspec.Struct):
    request_states: list[_State]


class _Stat(msgspec.Struct):
    name: Any
    count: object = None
    mean: object = None


class _Entry(msgspec.Struct):
    instance_id: str | int
    stats: list[_Stat] | JsonObject = []
    perturbation: object = None
    train_trial_index: int = 0
    predicted_text: object = None
    mapped_output: object = None
    annotations: object = None


class Helm:
    """Reads a HELM run: one observation an instance, perturbation, trial and metric.

    A perturbed instance is an example of its own, in the group of the instance it comes from;
    trials with other in-context examples are epochs. The task is the run's name without the model.
    A failed request is an error, a blocked one is refused, and an instance without statistics is
    missing. If a grading model was asked and gave no verdict, the metrics that may depend on it are
    errors; annotations show this, the statistics do not. If ``scenario_state.json`` is absent, as
    in published runs, ``instances.json`` and ``display_predictions.json`` are read instead.
    """

    companions = (
        "run_specs.json",
        "runs.json",
        "runs_to_run_suites.json",
        "groups*.json",
        "summary.json",
        "costs.json",
    )
    undated = ()

    def sniff(self, path: Path) -> bool:
        """Return whether it is a folder with a run's specification and its statistics."""
        return (path / "run_spec.json").is_file() and any(
            (path / name).is_file() for name in (_STATS, _SHOWN)
        )

    def read(self, path: Path) -> Log:
        """Read the instances of one run."""
        if not self.sniff(path):
            raise InputError(f"{path} is no run of HELM: a folder with run_spec.json and {_STATS}")
        run = _Run(path, json_file(path / "run_spec.json", _Spec))
        return Log(run.observations(), "helm", run.notes, run.main_metric)


@dataclass
class _Run:
    path: Path
    spec: _Spec
    notes: list[str] = field(default_factory=list)

    @property
    def main_metric(self) -> str:
        """Return the metric that HELM's tables show for the benchmark.

        "" if it is unknown.
        """
        metrics = (_MAIN_METRICS.get(str(group)) for group in self.spec.groups)
        return next(filter(None, metrics), "")

    def observations(self) -> Iterator[Observation]:
        displays = self._entries(_SHOWN) if (self.path / _SHOWN).is_file() else {}
        entries = self._entries(_STATS) if (self.path / _STATS).is_file() else displays
        states = self._states()
        if not states:
            self.notes.append(f"no {_STATES} or {_INSTANCES}: the questions are unknown")
        if not entries and not states:
            self.notes.append("no samples")
        # instances that also occur perturbed: the variants of one are a group
        varied = {key[0] for key in (*states, *entries) if key[1]}
        notes = {key: entry.annotations for key, entry in displays.items()}
        notes |= {k: each[0].annotations for k, each in states.items() if each[0].annotations}
        ungraded = find_ungraded(notes)
        if self.main_metric in GRADED_METRICS and not any(notes.values()):
            self.notes.append(
                "graded by language models, whose verdicts are not in the run: answers that they "
                "did not reach cannot be told from failures"
            )
        for position, key in enumerate(dict.fromkeys([*states, *entries]), 1):
            scores = _means(entries[key]) if key in entries else {}
            state = _choose_state(states.get(key, []), scores)
            display = displays.get(key, _Entry(key[0]))
            base = self._read_row(key, state, display, scores, position)
            base.group = key[0] if varied else None
            yield from _score_row(base, scores, key in ungraded)

    def _entries(self, name: str) -> dict[Key, _Entry]:
        entries: dict[Key, _Entry] = {}
        for entry in json_file(self.path / name, list[_Entry]):
            key = (str(entry.instance_id), _variant(entry.perturbation), entry.train_trial_index)
            if key in entries and isinstance(entry.stats, list):
                # each metric writes its own list of the same instance: together they are the row
                entry.stats = [*listing(entries[key].stats), *entry.stats]
            entries[key] = entry
        return entries

    def _states(self) -> dict[Key, list[_State]]:
        """Return requests of each key; several where each choice is a request of its own."""
        if (self.path / _STATES).is_file():
            states_list = json_file(self.path / _STATES, _States).request_states
        elif (self.path / _INSTANCES).is_file():
            states_list = list(map(_State, json_file(self.path / _INSTANCES, list[_Instance])))
        else:
            states_list = []
        states: dict[Key, list[_State]] = {}
        for state in states_list:
            instance = state.instance
            key = (str(instance.id), _variant(instance.perturbation), state.train_trial_index)
            # a calibration request asks a choice without its question, to normalise by
            if state.request_mode != "calibration":
                states.setdefault(key, []).append(state)
        return states

    def _read_row(
        self, key: Key, state: _State, display: _Entry, scores: Scores, position: int
    ) -> Observation:
        """Read the part that all scores of a row share."""
        model, instance, result = self.spec.adapter_spec, state.instance, mapping(state.result)
        completion = mapping(next(iter(listing(result.get("completions"))), None))
        response = text(completion.get("text") if completion else display.predicted_text)
        logprob = number(completion.get("logprob"))
        # HELM writes a log-probability of 0 where the model gives none
        certain = scores.get("max_prob") if logprob else None
        base = Observation(
            example_id=f"{key[0]}/{key[1]}" if key[1] else key[0],
            model=str(model.get("model") or model.get("model_deployment") or ""),
            task=self._name_task(),
            epoch=key[2] + 1,
            prompt=_read_question(instance.input),
            response=response,
            target=_read_target(instance),
            logprob=logprob or None,
            confidence=certain if certain is not None and 0 <= certain <= 1 else None,
            attributes=self._describe(instance, key[1]),
        )
        answer, choices = display.mapped_output, mapping(state.output_mapping)
        # multiple choice in one request: the output is a letter, which output_mapping translates
        if choices and response is not None:
            answer = choices.get(response.strip())
        if state.reference_index is not None and "predicted_index" in drop_empty(scores):
            answer = _read_output(dict(enumerate(instance.references)).get(state.reference_index))
        is_whole = answer is None and not choices
        base.answer = response and response.strip() if is_whole else text(answer)
        measured = _measure(state, completion, scores, position)
        if choices and response is not None:
            measured["parsed"] = answer is not None
        if result.get("success") is False:
            error = str(result.get("error") or "")
            base.status = Status.REFUSED if _FILTERED.search(error) else Status.ERROR
            measured["error"] = error.splitlines()[0] if error.strip() else None
        base.measured = measured
        return base

    def _name_task(self) -> str:
        """Return the run's name without the model.

        Its other arguments stay, such as the subject: instances of two subjects share their ids.
        """
        name, _, arguments = self.spec.name.partition(":")
        skipped = ("", "model", "model_deployment")
        parts = [p for p in arguments.split(",") if p.partition("=")[0] not in skipped]
        return f"{name}:{','.join(parts)}" if parts else name

    def _describe(self, instance: _Instance, variant: str) -> JsonObject:
        attributes = drop_empty(mapping(dig(self.spec.scenario_spec, "args")))
        splits = {"split": instance.split, "sub_split": instance.sub_split}
        attributes |= drop_empty({**splits, **mapping(instance.extra_data)})
        more = {
            "references": len(instance.references) or None,
            "perturbation": variant or None,
            "groups": text(self.spec.groups) if self.spec.groups else None,
        }
        return attributes | drop_empty(more)


def _choose_state(states: list[_State], scores: Scores) -> _State:
    """Return the request of the answer; with several choices, the one that the metric took."""
    index = scores.get("predicted_index")
    best = (s for s in states if index is not None and s.reference_index == index)
    return next(best, next(iter(states), _State(_Instance())))


def _score_row(base: Observation, scores: Scores, is_ungraded: bool) -> Iterator[Observation]:
    """Return a row a metric, or one row with the reason that there are no metrics."""
    names = [name for name in scores if not _NO_SCORE.fullmatch(name)]
    reason = None if base.status == Status.SCORED else base.status
    if not names:
        yield base.rescore("", None, reason or Status.MISSING)
    for name in names:
        # a score that is there rests on a verdict that is not
        is_empty = is_ungraded and scores[name] is not None and needs_grader(name)
        status = reason or (Status.ERROR if is_empty else None)
        yield base.rescore(name, *settle(scores[name], status))


def _measure(state: _State, completion: JsonObject, scores: Scores, position: int) -> JsonObject:
    prefix = "finish_reason_"
    reasons = (n.removeprefix(prefix) for n, v in scores.items() if n.startswith(prefix) and v)
    reason = dig(completion, "finish_reason", "reason") or next(reasons, None)
    measurements = {
        "position": position,
        "finish_reason": reason,
        "truncated": None if reason in (None, "unknown") else reason == "length",
        "input_tokens": scores.get("num_prompt_tokens"),
        "output_tokens": scores.get("num_output_tokens", scores.get("num_completion_tokens")),
        "seconds": scores.get("inference_runtime"),
    }
    if state.instance.id is not None:
        measurements["prompt_truncated"] = state.prompt_truncated
        measurements["num_train_instances"] = state.num_train_instances
    return measurements


def _means(entry: _Entry) -> Scores:
    """Return the statistics of one instance by name.

    Of several with one name, the first with a value is taken.
    """
    if isinstance(entry.stats, dict):
        return {name: number(value) for name, value in entry.stats.items()}
    means: Scores = {}
    for stat in entry.stats:
        name = str(mapping(stat.name).get("name", stat.name))
        if means.get(name) is None:
            # a count of 0 has a mean of 0, which was never measured
            means[name] = number(stat.mean) if stat.count != 0 else None
    return means


def _read_question(question: object) -> str | None:
    """Return the text of an input; of a conversation, the user's last message."""
    if isinstance(question, str):
        return question
    return text(dig(question, "text")) or last_by(dig(question, "messages"), "user")


def _read_target(instance: _Instance) -> str | None:
    """Return the outputs of the references that are tagged correct."""
    correct = [
        _read_output(reference)
        for reference in instance.references
        if "correct" in (text(dig(reference, "tags")) or "").split(" | ")
    ]
    words = [each for each in correct if each is not None]
    return text(words) if words else None


def _read_output(reference: object) -> str | None:
    output = dig(reference, "output")
    return output if isinstance(output, str) else text(dig(output, "text"))


def _variant(perturbation: object) -> str:
    """Return the name of a perturbation with its settings, which make the name unique."""
    details = mapping(perturbation)
    name = str(details.pop("name", ""))
    # computed_on and prefix are no settings: they differ between the files of one run
    arguments = ",".join(
        f"{key}={value}"
        for key, value in sorted(details.items())
        if type(value) in (str, int, float) and key not in ("computed_on", "prefix")
    )
    return f"{name}({arguments})" if name and arguments else name


K = TypeVar("K", bound=Hashable)

# <grader>_score and <grader>_equivalence_judgement hold verdicts; other entries, such as a
# justification, may be empty
_VERDICT = re.compile(r".+_(score|judgement|judgment|label|verdict)")
# a metric that compares texts needs no grader
_BY_RULE = re.compile(
    r"(quasi_|prefix_|quasi_prefix_|final_number_)*exact_match(_.*)?|(.*_)?f1(_score)?"
    r"|rouge(_.*)?|bleu(_.*)?|edit_.*|chrf.*"
)

GRADED_METRICS = ("omni_math_accuracy", "wildbench_score_rescaled")
"""Main metrics of benchmarks that HELM has graded by language models."""


def needs_grader(metric: str) -> bool:
    """Return whether a metric may rest on the verdict of a grading model."""
    return _BY_RULE.fullmatch(metric) is None


def find_ungraded(annotations: Mapping[K, object]) -> set[K]:
    """Return the rows on which some grader was asked and gave no verdict.

    Parameters
    ----------
    annotations : mapping
        For each row the annotations by name of the annotator, as HELM writes them.
    """
    graders: dict[str, set[str]] = {}
    for row in annotations.values():
        for name, notes in mapping(row).items():
            # a jury has an entry of its own for each of its members
            members = {key for key, value in mapping(notes).items() if isinstance(value, dict)}
            graders.setdefault(name, set()).update(members)
    return {
        key
        for key, row in annotations.items()
        if any(_lacks_verdict(mapping(x), graders[name]) for name, x in mapping(row).items())
    }


def _lacks_verdict(notes: Mapping[str, object], graders: set[str]) -> bool:
    # HELM asks no grader about an empty answer, and says so by an entry of this name
    if any(key.startswith("empty_output") for key in notes):
        return False
    if any(value is None and _VERDICT.fullmatch(key) for key, value in notes.items()):
        return True
    return bool(graders - notes.keys()) or set(notes) == {"prompt_text"}
