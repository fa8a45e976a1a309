"""A scripted brittle model: it errs on planted prompts, and some right answers are misread.

Its behaviour on every prompt is known, so the results of a review can be compared with the truth.
Scripted reviewers see what a reviewer sees, and err at a fixed rate.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from groundfault.base.long_work import stream
from groundfault.models import Question, Response
from groundfault.probes import Bank, Grammar, Probe, Task, probes, route
from groundfault.review import Decision, Item

Kind = Literal["right", "wrong", "misread", "format", "invalid"]
"""What a prompt was planted as: answered right; answered wrong; answered right, and read wrong;
answered right, in a form that the rule does not know; or one that, as reviewers have it, no longer
asks the task."""

_FILLERS = ("", "Let me go through it step by step.\n", "I read the question twice.\n")


@dataclass(frozen=True)
class Planted:
    """What a model does with every structurally valid prompt.

    Attributes
    ----------
    kinds : mapping of str to str
        By prompt key.
    keys : mapping of str to str
        The prompt key of each prompt.
    responses : mapping of str to str
        The response to each prompt.
    """

    kinds: Mapping[str, Kind]
    keys: Mapping[str, str]
    responses: Mapping[str, str]

    @property
    def model(self) -> str:
        """A name by the responses."""
        content = json.dumps(sorted(self.responses.items())).encode()
        return f"scripted/brittle-{hashlib.sha256(content).hexdigest()[:8]}"

    def of(self, kind: Kind) -> frozenset[str]:
        """The prompt keys of a kind."""
        return frozenset(key for key, planted in self.kinds.items() if planted == kind)


def plant(bank: Bank, grammar: Grammar, seed: int = 0, *, model: int = 0) -> Planted:
    """Plant errors and artefacts.

    A third of the tasks are brittle: with the option ``shortcut`` they fail four times in five.
    Other prompts fail one time in fifty. 3% of the remaining ones are misread, and 3% have a form
    that the rule does not know. Whatever the model, 1% of the prompts no longer ask their task.
    What a machine would not notice is not planted.

    Parameters
    ----------
    bank : Bank
    grammar : Grammar
    seed : int
    model : int
        Another number is another model.
    """
    # two streams: whether a prompt is invalid is the same for all models
    rng, shared = stream(seed, "planted", model), stream(seed, "planted in prompts")
    brittle = {task.id for task in bank if rng.random() < 1 / 3}
    kinds: dict[str, Kind] = {}
    keys: dict[str, str] = {}
    responses: dict[str, str] = {}
    for probe in probes(bank, grammar):
        chance = 0.8 if probe.task.id in brittle and "shortcut" in probe.assignment else 0.02
        wrong, what, filler = (
            rng.random() < chance,
            rng.random(),
            _FILLERS[int(rng.integers(len(_FILLERS)))],
        )
        invalid = shared.random() < 0.01
        if probe.errors:
            continue
        kind_of_prompt: Kind = (
            "invalid" if invalid else "wrong" if wrong else _choose_artefact(what)
        )
        kind, response = _write_response(probe, kind_of_prompt)
        kinds[probe.key], keys[probe.prompt], responses[probe.prompt] = (
            kind,
            probe.key,
            filler + response,
        )
    return Planted(kinds, keys, responses)


def _choose_artefact(what: float) -> Kind:
    kinds: tuple[tuple[float, Kind], ...] = ((0.03, "misread"), (0.06, "format"))
    return next((kind for end, kind in kinds if what < end), "right")


def _write_response(probe: Probe, kind: Kind) -> tuple[Kind, str]:
    """A response of that kind that is routed as it should be; a right one if there is none."""
    for response in _list_responses(probe.task, kind):
        if (route(probe.task, response).signal == "match") == (kind == "right"):
            return kind, response
    return "right", f"Answer: {probe.task.answer}"


def _list_responses(task: Task, kind: Kind) -> Iterator[str]:
    tempting = task.slots.get("shortcut") or f"not {task.answer}"
    if kind in ("wrong", "invalid"):
        yield f"Answer: {tempting}"
    elif kind == "misread":
        last = f"A reader in a hurry would have written:\nAnswer: {tempting}"
        yield f"Answer: {task.answer}\n\n{last}"
    elif kind == "format":
        yield f"Answer: it has to be {task.answer}, and by no means {tempting}"
        yield f"Answer: not {tempting} but {task.answer}"
    else:
        yield f"Answer: {task.answer}"


@dataclass
class Brittle:
    """A target that answers as planted; some questions fail the first time, as services do.

    Parameters
    ----------
    planted : Planted
    failing : float
        Share of the questions whose first attempt is an error of the service.
    """

    planted: Planted
    failing: float = 0.01
    _attempts: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        """By the responses it would give."""
        return self.planted.model

    async def answer(self, question: Question) -> Response:
        """What was planted for the prompt."""
        await asyncio.sleep(0)
        prompt = question.messages[-1]["content"]
        self._attempts[question.hash] += 1
        if self._attempts[question.hash] == 1 and int(question.hash[:8], 16) / 2**32 < self.failing:
            return Response.failed("the service is overloaded", again=True)
        if prompt not in self.planted.responses:
            return Response.failed("nothing was planted for this prompt", fatal=True)
        return Response(self.planted.responses[prompt], finish="stop", model="brittle")


@dataclass(frozen=True)
class Reviewer:
    """Decides on what an item shows, and now and then is wrong.

    Parameters
    ----------
    name : str
    planted : Planted or sequence of Planted
        The truth, of each model; it is looked up by prompt and response, which are shown.
    slips : float
        Share of the items on which the reviewer errs.
    adjudicates : bool
    """

    name: str
    planted: Planted | Sequence[Planted]
    slips: float = 0.0
    adjudicates: bool = False

    def decide(self, item: Item) -> Decision:
        """The decision on an item."""
        truths = (self.planted,) if isinstance(self.planted, Planted) else self.planted
        matches = (each for each in truths if each.responses[item.prompt] == item.response)
        truth = next(matches, truths[0])
        kind = truth.kinds[truth.keys[item.prompt]]
        rng = np.random.default_rng(
            list(hashlib.sha256(f"{self.name} {item.id}".encode()).digest())
        )
        who: dict[str, Any] = {"reviewer": self.name, "item": item.id}
        role: Literal["adjudicator", "reviewer"] = "adjudicator" if self.adjudicates else "reviewer"
        if kind == "invalid":
            return Decision(**who, prompt_valid="no", role=role)
        slip = rng.random() < self.slips
        if kind in ("misread", "format") and not slip:
            artefact: Literal["extraction", "format"] = (
                "extraction" if kind == "misread" else "format"
            )
            return Decision(
                **who, prompt_valid="yes", extraction_valid="no", artefact=artefact, role=role
            )
        wrong = (kind == "wrong") != (slip and kind in ("right", "wrong"))
        return Decision(
            **who,
            prompt_valid="yes",
            extraction_valid="yes",
            model_wrong="yes" if wrong else "no",
            role=role,
        )
