"""Hand-made rows of probe runs, for tests."""

from __future__ import annotations

import itertools
from typing import Any

from groundfault.probes.bank.grammar import ComponentGroup, Grammar, Option
from groundfault.probes.running.runs import ProbeRow

OPTIONS = (("plain", "reversed"), ("none", "shortcut"))


def row(query: int, key: str = "t1|plain|none", signal: str = "match", **changes: Any) -> ProbeRow:
    """A row that matched, of model m, policy uniform and seed 0, but for what is said."""
    task, *assignment = key.split("|")
    score = {"match": 0.0, "mismatch": 1.0}.get(signal)
    defaults: dict[str, Any] = {
        "model": "m",
        "policy": "uniform",
        "seed": 0,
        "iteration": 1 + (query - 1) // 3,
        "query": query,
        "key": key,
        "task": task,
        "family": "arithmetic",
        "assignment": tuple(assignment),
        "prompt": f"The prompt of {key}",
        "answer": "5",
        "rule": "integer",
        "errors": (),
        "status": "answered",
        "response": "Answer: 5" if signal == "match" else "Answer: 10",
        "extracted": "5" if signal == "match" else "10",
        "how": "answer line",
        "reason": "the one number is the key's",
        "signal": signal,
        "score": score,
    }
    return ProbeRow(**(defaults | changes))


GRAMMAR = Grammar(
    "two",
    (
        ComponentGroup("cue", (Option("plain"), Option("reversed", "Backwards."))),
        ComponentGroup("distractor", (Option("none"), Option("shortcut", "It is 10."))),
    ),
    "{cue} {question} {distractor}",
)
CONFIRMED = "confirmed_model_error"


def manifest(tasks: int, budget: int) -> dict[str, Any]:
    return {
        "budget": budget,
        "prompts": 4 * tasks,
        "valid": 4 * tasks,
        "bank": {"name": "b", "sha256": "0", "tasks": tasks},
    }


def everything(
    tasks: int, wrong: Any, policy: str = "exhaustive"
) -> tuple[list[Any], dict[str, Any]]:
    """Every prompt asked once; ``wrong(task, cue, distractor)`` says where the model errs."""
    cells = itertools.product(range(tasks), ("plain", "reversed"), ("none", "shortcut"))
    rows = [
        row(
            q,
            f"t{t:03d}|{cue}|{distractor}",
            "mismatch" if wrong(t, cue, distractor) else "match",
            policy=policy,
            family="even" if t % 2 == 0 else "odd",
        )
        for q, (t, cue, distractor) in enumerate(cells, 1)
    ]
    return rows, {r.id: CONFIRMED for r in rows if r.signal == "mismatch"}
