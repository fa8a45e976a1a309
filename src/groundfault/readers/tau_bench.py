"""tau-bench and tau2-bench: episodes of an agent, a simulated user and a database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import head, json_file
from groundfault.readers.values import mapping, number, text, texts_by

_FIRST = re.compile(rb'\s*\[\s*\{\s*"task_id"\s*:')
_NAME = re.compile(
    r"(?:(?:tool-calling|act|react|few-shot)-(?P<model>.+?)-[\d.]+_range_.*|(?P<short>.+)-(?:airline|retail).*)"
)
_POLICY = re.compile(r"#\s*(\w+) agent policy", re.IGNORECASE)
# termination reasons that tau2-bench leaves out of its metrics: the agent did not end the episode
_NOT_EVALUABLE = {
    "infrastructure_error",
    "context_window_exceeded",
    "unexpected_error",
    "user_error",
}


class _Episode(msgspec.Struct):
    task_id: int | str
    reward: Any
    info: dict[str, Any] = {}
    traj: list[dict[str, Any]] = []
    trial: int = 0


class _Simulation(msgspec.Struct):
    task_id: int | str
    reward_info: dict[str, Any] | None = None
    messages: list[dict[str, Any]] | None = None
    trial: int | None = None
    termination_reason: str | None = None
    duration: Any = None


class _Results(msgspec.Struct):
    """A results file of tau2-bench."""

    simulations: list[_Simulation]
    tasks: list[dict[str, Any]] = []
    info: dict[str, Any] = {}


class TauBench:
    """Reads the list of episodes that tau-bench checkpoints, and the results of tau2-bench.

    Trials of a task are its epochs. An episode that ended in an exception of the harness has reward
    0 in the file; it is ``error`` here, as are those that tau2-bench itself excludes as not
    evaluable.
    """

    def sniff(self, path: Path) -> bool:
        """Whether it is a list of episodes with task and reward, or of simulations."""
        start = head(path)
        if path.suffix != ".json":
            return False
        second = (
            start.lstrip().startswith(b"{") and b'"agent_info"' in start and b'"user_info"' in start
        )
        return bool(_FIRST.match(start) and b'"reward"' in start) or second

    def read(self, path: Path) -> Log:
        """One observation an episode."""
        if head(path).lstrip().startswith(b"["):
            return Log(list(_episodes(path, json_file(path, list[_Episode]))), "tau_bench")
        return Log(list(_simulations(json_file(path, _Results))), "tau2_bench")


def _episodes(path: Path, episodes: list[_Episode]) -> Iterator[Observation]:
    name_match = _NAME.fullmatch(path.stem)
    model = (name_match["model"] or name_match["short"]) if name_match else path.stem
    # the file names no domain: the system prompt begins with "# Retail agent policy"
    policies = (
        _POLICY.match(words) for each in episodes for words in texts_by(each.traj[:1], "system")
    )
    domain = next((policy[1].lower() for policy in policies if policy), "")
    for position, one in enumerate(episodes, 1):
        task = mapping(one.info.get("task"))
        is_error = "error" in one.info
        value = None if is_error else number(one.reward)
        actions = task.get("actions")
        yield Observation(
            str(one.task_id),
            value,
            Status.ERROR if is_error else Status.MISSING if value is None else Status.SCORED,
            scorer="reward",
            model=model,
            task=f"tau-bench {domain}".strip(),
            epoch=one.trial + 1,
            prompt=text(task.get("instruction")),
            response=next(reversed(texts_by(one.traj, "assistant")), None),
            target=text(actions),
            attributes={"user_id": task.get("user_id"), "gold_actions": len(actions)}
            if isinstance(actions, list)
            else {},
            measured={
                "position": position,
                **_counts(one.traj),
                "user_cost": number(one.info.get("user_cost")),
            },
        )


def _simulations(results: _Results) -> Iterator[Observation]:
    tasks = {str(task.get("id")): task for task in results.tasks}
    model = text(mapping(results.info.get("agent_info")).get("llm")) or ""
    domain = text(mapping(results.info.get("environment_info")).get("domain_name")) or ""
    for position, one in enumerate(results.simulations, 1):
        is_error = one.termination_reason in _NOT_EVALUABLE
        value = None if is_error else number(mapping(one.reward_info).get("reward"))
        task, messages = tasks.get(str(one.task_id), {}), one.messages or []
        measurements = {"position": position, **_counts(messages), "seconds": number(one.duration)}
        yield Observation(
            str(one.task_id),
            value,
            Status.ERROR if is_error else Status.MISSING if value is None else Status.SCORED,
            scorer="reward",
            model=model,
            task=f"tau2-bench {domain}".strip(),
            epoch=(one.trial or 0) + 1,
            prompt=text(mapping(task.get("user_scenario")).get("instructions")),
            response=next(reversed(texts_by(messages, "assistant")), None),
            target=text(mapping(task.get("evaluation_criteria")).get("actions")),
            attributes={"description": mapping(task.get("description")).get("purpose")},
            measured={**measurements, "termination_reason": one.termination_reason},
        )


def _counts(messages: list[dict[str, Any]]) -> dict[str, int]:
    return {
        "turns": sum(message.get("role") == "user" for message in messages),
        "tool_calls": sum(message.get("role") == "tool" for message in messages),
    }
