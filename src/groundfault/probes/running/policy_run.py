"""One policy with one seed on one model, iteration by iteration.

It is a function of the answers alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from groundfault.base.arrays import Bools
from groundfault.base.files import make_file, make_folder, write_bytes
from groundfault.base.holdout_events import Event
from groundfault.base.long_work import stream
from groundfault.base.reading import MAX_ROWS, read_bytes
from groundfault.core import equivalence
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.models import Response
from groundfault.probes.bank.bank import Task
from groundfault.probes.bank.rendering import Probe
from groundfault.probes.policies import Capped, PromptHistory, PromptPolicy, chances_of
from groundfault.probes.policies.history import Keys
from groundfault.probes.running.answers import Routing, route
from groundfault.probes.running.config import Config, slug
from groundfault.probes.running.runs import (
    BASE,
    CALLS,
    ITERATION,
    LEDGER,
    STATUS,
    TRAJECTORY,
    ProbeRow,
)


class BaseWording:
    """Asks each task in its base wording, all tasks in one iteration."""

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
    """The settings and prompts that the policy runs of a folder have in common.

    Attributes
    ----------
    config : Config
    model : str
    probes : sequence of Probe, length K
        Every prompt, task by task, including prompts that must not be asked.
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
    def blocked(self) -> Bools:
        """Tell which prompts must not be asked: bool, shape (K,)."""
        return np.array([bool(probe.errors) for probe in self.probes])


class PolicyRun:
    """One policy with one seed on one model, and its record.

    Each iteration is written once: ledger entry, line of the trajectory, status.

    Parameters
    ----------
    spec : RunSpec
    policy : Policy
    seed : int
    folder : Path
        The folder of the runs.
    events : sequence of Event
        Events of the ledger.

    Attributes
    ----------
    rows : list of ProbeRow
        The prompts asked so far, in order.
    iteration : int
        How many iterations are complete.
    next : tuple of Probe
        Prompts of the next iteration; empty if the budget is spent, or the policy has no key left.
    sealed : dict of int to str
        The hash of each iteration in the ledger.

    Raises
    ------
    PlanError
        If the policy proposes a prompt that must not be asked.
    LedgerError
        If the trajectory holds more than the ledger.
    """

    def __init__(
        self, spec: RunSpec, policy: PromptPolicy, seed: int, folder: Path, events: Sequence[Event]
    ) -> None:
        self.spec, self.policy, self.seed = spec, policy, seed
        self.names: dict[str, Any] = {"model": spec.model, "policy": policy.name, "seed": seed}
        self.rows: list[ProbeRow] = []
        self.iteration = 0
        bodies = [event.body for event in events if event.kind == ITERATION]
        self.sealed = {
            body["iteration"]: body["record"]
            for body in bodies
            if self.names.items() <= body.items()
        }
        home = folder / slug(spec.model) / slug(policy.name) / f"seed-{seed}"
        self.trajectory, self.status_file = home / TRAJECTORY, home / STATUS
        self._keys: list[int] = []
        self._digest, self._line = hashlib.sha256(), b""
        self._lines = self._read_whole_lines()
        if len(self._lines) > len(self.sealed):  # the ledger is written first
            raise LedgerError(
                f"{self.trajectory} holds more iterations than {LEDGER}; one of them was changed"
            )
        self._draw_next()

    def _read_whole_lines(self) -> list[bytes]:
        """Read the whole lines of the trajectory; drop a line that a kill cut short."""
        if not self.trajectory.exists():
            return []
        with _writing(self.trajectory):
            data = read_bytes(self.trajectory, MAX_ROWS)
            whole = data.rfind(b"\n") + 1
            if whole < len(data):
                os.truncate(self.trajectory, whole)
        return data[:whole].splitlines(keepends=True)

    @property
    def next(self) -> tuple[Probe, ...]:
        """Return the prompts that the next iteration asks."""
        return tuple(self.spec.probes[key] for key in self._next_keys)

    @property
    def _history(self) -> PromptHistory:
        """Return the history for the policy; refused and unreadable responses are no mismatches."""
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
        """Return purpose and counter of the next two generators, the one of tasks first."""
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

    def tell(self, responses: Sequence[Response]) -> dict[str, Any] | None:
        """Take the responses of the next iteration; return its part that the ledger lacks.

        Raises
        ------
        LedgerError
            If the ledger holds something else.
        """
        before = self._history
        # chances are of the history before the batch: those are what the draw used, and what
        # weights a rate (Horvitz and Thompson, 1952)
        chances = chances_of(self.policy, before, self._next_keys) or [None] * len(self._next_keys)
        batch = list(map(self._make_row, count(len(self.rows) + 1), self.next, responses, chances))
        self.rows += batch
        self._keys += self._next_keys.tolist()
        self.iteration += 1
        record = {
            **self.names,
            "iteration": self.iteration,
            "best": best_row(batch).id,
            **self._describe_scores(before),
            "batch": [row.to_dict() for row in batch],
        }
        self._line = json.dumps(record).encode() + b"\n"
        self._digest.update(self._line)
        self._draw_next()  # after the record, which is of the batch that was answered
        sha = hashlib.sha256(self._line).hexdigest()
        if self.iteration not in self.sealed:
            return {**self.names, "iteration": self.iteration, "record": sha}
        if self.sealed[self.iteration] != sha:
            raise LedgerError(
                f"iteration {self.iteration} of {self.policy.name}, seed {self.seed} differs from "
                f"the ledger: answers in {CALLS} changed, or another version or machine asked; "
                "go on with that one, or choose another folder"
            )
        return None

    def write(self) -> None:
        """Write the last iteration, if it is not written yet.

        Raises
        ------
        LedgerError
            If something else is written there.
        InputError
            If it cannot be written.
        """
        number, before = self.iteration, len(self._lines)
        if number <= before and self._lines[number - 1] != self._line:
            raise LedgerError(
                f"{self.trajectory}, line {number} was changed; take the file away, and it is made "
                "again"
            )
        if number > before:
            self._append(self._line)
        if number >= before:
            text = json.dumps(self._describe_status(), indent=1) + "\n"
            write_bytes(self.status_file, text.encode())

    def _append(self, line: bytes) -> None:
        with _writing(self.trajectory):
            make_folder(self.trajectory.parent)
            make_file(self.trajectory)
            with self.trajectory.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _make_row(
        self, query: int, probe: Probe, response: Response, chance: float | None
    ) -> ProbeRow:
        task, bases = probe.task, self.spec.bases
        routing = route_by_base(task, response, bases)
        return ProbeRow(
            **self.names,
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

    def _describe_scores(self, before: PromptHistory) -> dict[str, object]:
        """Return the temperature of the batch and the new scores, for a policy that has scores."""
        policy: Any = self.policy.policy if isinstance(self.policy, Capped) else self.policy
        if not hasattr(policy, "temperature"):
            return {"temperature": None, "scores": None}
        scores = zip(self.spec.groups.items(), policy.scores(self._history), strict=True)
        return {
            "temperature": policy.temperature(before.batch, before.batches),
            "scores": {
                group: dict(zip(options, each.tolist(), strict=True))
                for (group, options), each in scores
            },
        }

    def _describe_status(self) -> dict[str, object]:
        """Return the best candidate so far, and the state to go on from."""
        return {
            **self.names,
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


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; make room, and run again to go on"
        ) from None
