"""The base wording: what answers are compared with where tasks have no key.

It is the first option of every group, and is asked once of each task, before all else. So what an
answer is compared with is on record before it comes, and no later row changes where it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from groundfault.core import equivalence
from groundfault.models import Response
from groundfault.probes.bank.bank import Task
from groundfault.probes.policies.history import Keys, PromptHistory
from groundfault.probes.running.answers import Routing, route
from groundfault.probes.running.config import Config
from groundfault.probes.running.runs import BASE, ProbeRow


class BaseWording:
    """Asks each task in its base wording, all of them in one iteration."""

    name = BASE

    def ask(
        self,
        history: PromptHistory,
        size: int,
        tasks: np.random.Generator,  # noqa: ARG002  (nothing is drawn)
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Keys:
        """The first assignment of every task, unless it must not be asked."""
        keys = np.arange(history.tasks, dtype=np.intp) * history.assignments
        return keys[history.fresh[keys]][:size]

    def chances(self, history: PromptHistory) -> None:  # noqa: ARG002
        """None: the rows estimate no rate of other wordings."""
        return


def make_base_config(config: Config, tasks: int) -> Config:
    """A config with which the base wordings of so many tasks are one iteration."""
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
