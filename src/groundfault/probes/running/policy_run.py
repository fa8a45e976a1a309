"""One policy with one seed on one model, iteration by iteration.

It is a function of the answers alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from groundfault.base.streams import stream
from groundfault.core import equivalence
from groundfault.errors import PlanError
from groundfault.models import Response
from groundfault.probes.bank.bank import Task
from groundfault.probes.bank.rendering import Probe
from groundfault.probes.policies import Capped, Caps, PromptHistory, PromptPolicy, chances_of
from groundfault.probes.policies.history import Keys
from groundfault.probes.running.answers import Routing, route
from groundfault.probes.running.config import Config
from groundfault.probes.running.runs import BASE, ProbeRow


class BaseWording:
    """Asks each task in its base wording, all of them in one iteration."""

    name = BASE

    def ask(self, history: PromptHistory, size: int, tasks: Generator, rng: Generator) -> Keys:  # noqa: ARG002
        """Return the first assignment of every task, unless it must not be asked."""
        keys = np.arange(history.tasks, dtype=np.intp) * history.assignments
        return keys[history.fresh[keys]][:size]

    def chances(self, history: PromptHistory) -> None:  # noqa: ARG002
        """Return None: the rows estimate no rate of other wordings."""
        return


def make_base_config(config: Config, tasks: int) -> Config:
    """Make a config with which the base wordings of so many tasks are one iteration."""
    return replace(config, iterations=1, batch=tasks, budget=None)


def route_by_base(task: Task, response: Response, bases: Mapping[str, ProbeRow] | None) -> Routing:
    """Compare a response with the key, or with the answer to the base wording.

    Parameters
    ----------
    task : Task
    response : Response
    bases : mapping of task id to ProbeRow, or None
        None where tasks have keys, and for the base wordings themselves. A response to a task whose
        base wording has no answer that can be read goes to a person.
    """
    base = None if bases is None else bases.get(task.id)
    if base is not None and base.signal == "match":
        return route(task, response, equivalence.read(base.extracted or "", task.rule))
    routing = route(task, response)
    if bases is None or routing.signal != "match":
        return routing
    reason = "the base wording has no answer that can be read, to compare it with"
    return replace(routing, signal="unreadable", reason=reason)


# failure scores as the paper has them; other signals tell nothing and have none
_SCORES = {"mismatch": 1.0, "match": 0.0}


@dataclass(frozen=True, eq=False)
class RunSpec:
    """What the policy runs of a folder have in common.

    Attributes
    ----------
    config : Config
    model : str
    probes : sequence of Probe, length K
        Every prompt, task by task, those that must not be asked among them.
    groups : mapping of str to list of str
        The options of each group of the grammar.
    bases : mapping of str to ProbeRow, optional
        Where tasks have no key: the row of each task's base wording.
    """

    config: Config
    model: str
    probes: Sequence[Probe]
    groups: dict[str, list[str]]
    bases: Mapping[str, ProbeRow] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return options of each group."""
        return tuple(map(len, self.groups.values()))

    @cached_property
    def blocked(self) -> NDArray[np.bool_]:
        """Tell which prompts must not be asked: bool, shape (K,)."""
        return np.array([bool(probe.errors) for probe in self.probes])


class PolicyRun:
    """One policy with one seed on one model.

    Parameters
    ----------
    spec : RunSpec
    policy : Policy
    seed : int

    Attributes
    ----------
    rows : list of ProbeRow
        What was asked, in order.
    iteration : int
        How many iterations are complete.
    next : tuple of Probe
        What the next one asks; nothing where the budget is spent, or the policy has nothing left.

    Raises
    ------
    PlanError
        If the policy proposes what must not be asked.
    """

    def __init__(self, spec: RunSpec, policy: PromptPolicy, seed: int) -> None:
        self.spec, self.policy, self.seed = spec, policy, seed
        self.rows: list[ProbeRow] = []
        self.iteration = 0
        self._keys: list[int] = []
        self._digest = hashlib.sha256()
        self._draw_next()

    @property
    def name(self) -> str:
        """Return the name for messages."""
        return f"{self.policy.name}, seed {self.seed}"

    @property
    def next(self) -> tuple[Probe, ...]:
        """Return the prompts that the next iteration asks."""
        return tuple(self.spec.probes[key] for key in self._next_keys)

    @property
    def _history(self) -> PromptHistory:
        """Return what the policy may know: refused and unreadable responses are no mismatches."""
        spec = self.spec
        return PromptHistory(
            tasks=len(spec.probes) // int(np.prod(spec.sizes)),
            sizes=spec.sizes,
            keys=np.array(self._keys, dtype=np.intp),
            # a policy learns from routing signals alone: review comes later and must not steer the
            # run
            mismatch=np.array([row.signal == "mismatch" for row in self.rows], dtype=bool),
            batch=self.iteration + 1,
            batches=spec.config.rounds,
            blocked=spec.blocked,
        )

    @property
    def _streams(self) -> list[tuple[str, int]]:
        """Return purpose and counter of the next generators: that of tasks, and the other."""
        names = ("tasks", self.spec.config.stream(self.policy.name))
        return [(name, self.iteration + 1) for name in names]

    def _draw_next(self) -> None:
        # a generator for each iteration, by number: a resumed run draws as an uninterrupted one,
        # and policies with one seed get the same tasks
        size = min(self.spec.config.batch, self.spec.config.queries - len(self.rows))
        tasks, rng = (stream(self.seed, *key) for key in self._streams)
        self._next_keys: Keys = np.empty(0, dtype=np.intp)
        if size:
            self._next_keys = self.policy.ask(self._history, size, tasks, rng)
        if len(self._next_keys) > size or self.spec.blocked[self._next_keys].any():
            raise PlanError(
                f"the policy {self.policy.name} proposes prompts that must not be asked, or too "
                "many"
            )

    def tell(self, responses: Sequence[Response]) -> bytes:
        """Take the responses of an iteration; return its record, a line of the trajectory."""
        before = self._history
        # chances are of the history before the batch: those are what the draw used, and what
        # weights a rate (Horvitz and Thompson, 1952)
        chances = chances_of(self.policy, before, self._next_keys) or [None] * len(self._next_keys)
        batch = list(map(self._make_row, count(len(self.rows) + 1), self.next, responses, chances))
        self.rows += batch
        self._keys += self._next_keys.tolist()
        self.iteration += 1
        record = {
            "model": self.spec.model,
            "policy": self.policy.name,
            "seed": self.seed,
            "iteration": self.iteration,
            "best": best_row(batch).id,
            **self._describe_scores(before),
            "batch": [row.to_dict() for row in batch],
        }
        line = json.dumps(record).encode() + b"\n"
        self._digest.update(line)
        self._draw_next()  # after the record, which is of the batch that was answered
        return line

    def _make_row(
        self, query: int, probe: Probe, response: Response, chance: float | None
    ) -> ProbeRow:
        task, bases = probe.task, self.spec.bases
        routing = route_by_base(task, response, bases)
        return ProbeRow(
            model=self.spec.model,
            policy=self.policy.name,
            seed=self.seed,
            iteration=self.iteration + 1,
            query=query,
            key=probe.key,
            task=task.id,
            family=task.family,
            assignment=probe.assignment,
            prompt=probe.prompt,
            answer=task.answer,
            rule=task.rule,
            errors=probe.errors,
            status=response.status,
            response=response.text,
            extracted=routing.answer.text,
            how=routing.answer.how,
            reason=routing.reason,
            signal=routing.signal,
            score=_SCORES.get(routing.signal),
            chance=chance,
            base=bases[task.id].query if bases and task.id in bases else None,
        )

    def _describe_scores(self, before: PromptHistory) -> dict[str, Any]:
        """Return the temperature of the batch and the new scores, for a policy that has scores."""
        policy = self.policy.policy if isinstance(self.policy, Capped) else self.policy
        if not isinstance(policy, Caps):
            return {"temperature": None, "scores": None}
        scores = zip(self.spec.groups.items(), policy.scores(self._history), strict=True)
        return {
            "temperature": policy.temperature(before.batch, before.batches),
            "scores": {
                group: dict(zip(options, each.tolist(), strict=True))
                for (group, options), each in scores
            },
        }

    def status(self) -> dict[str, Any]:
        """Return the best candidate so far, and what it takes to go on."""
        return {
            "model": self.spec.model,
            "policy": self.policy.name,
            "seed": self.seed,
            "iterations": self.iteration,
            "queries": len(self.rows),
            "finished": not len(self._next_keys),
            "trajectory": self._digest.hexdigest(),
            "streams": [
                {"seed": self.seed, "purpose": purpose, "counter": at}
                for purpose, at in self._streams
            ],
            "best": best_row(self.rows).to_dict(),
        }


def best_row(rows: Sequence[ProbeRow]) -> ProbeRow:
    """Return the first row with the highest failure score: a row without a score ranks last."""
    return max(rows, key=lambda row: -1.0 if row.score is None else row.score)
