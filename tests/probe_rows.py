"""Hand-made rows of probe runs, for tests."""

from __future__ import annotations

from typing import Any

from groundfault.probes.running.runs import Row

OPTIONS = (("plain", "reversed"), ("none", "shortcut"))


def row(query: int, key: str = "t1|plain|none", signal: str = "match", **changes: Any) -> Row:
    """A row that matched, of model m, policy uniform and seed 0, but for what is said."""
    task, *assignment = key.split("|")
    score = {"match": 0.0, "mismatch": 1.0}.get(signal)
    told: dict[str, Any] = {
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
    return Row(**(told | changes))
