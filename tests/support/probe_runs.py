"""Folders of probe runs to review, written without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groundfault.probes import Bank, Grammar, render, route
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.running.runs import ProbeRow

BANK, GRAMMAR = Bank.shipped(), Grammar.shipped()


def row(
    model: str, policy: str, query: int, task: str, response: str | None, distractor: str = "none"
) -> ProbeRow:
    probe = render(BANK, GRAMMAR, task, {"distractor": distractor})
    routing = route(probe.task, response) if response is not None else None
    return ProbeRow(
        model=model,
        policy=policy,
        seed=4711,
        iteration=1 + query // 4,
        query=query,
        key=f"{task}|{'|'.join(probe.assignment)}",
        task=task,
        family=probe.task.family,
        assignment=probe.assignment,
        prompt=probe.prompt,
        answer=probe.task.answer,
        rule=probe.task.rule,
        errors=probe.errors,
        status="answered" if response is not None else "refused",
        response=response,
        extracted=routing.answer.text if routing else None,
        how=routing.answer.how if routing else "none",
        reason=routing.reason if routing else "the model refused",
        signal=routing.signal if routing else "unanswered",
        score={"mismatch": 1.0, "match": 0.0}.get(routing.signal) if routing else None,
        chance=0.25,
    )


def write_runs(folder: Path, rows: list[ProbeRow], **review: Any) -> Path:
    """A folder as ``probe run`` writes it; one that went on has the manifest that it had."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {
        "seeds": [4711],
        "budget": 20,
        "prompts": 80,
        "valid": 80,
        "bank": {"name": "shipped", "tasks": len(BANK)},
        "review": {"reviewers": 1, "unit": "key", "controls": 0.25, **review},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for name in ("bank.toml", "grammar.toml"):
        (folder / name).write_bytes((SHIPPED / name).read_bytes())
    for each in {(r.model, r.policy) for r in rows}:
        place = folder / each[0].replace("/", "-") / each[1] / "seed-4711"
        place.mkdir(parents=True, exist_ok=True)
        batch = [r.to_dict() for r in rows if (r.model, r.policy) == each]
        (place / "trajectory.jsonl").write_text(json.dumps({"batch": batch}) + "\n")
    return folder


def make_wrong_rows(count: int, model: str = "vendor/secret-model-7b") -> list[ProbeRow]:
    """Answers that no rule accepts, no two alike: each is an item to review."""
    tasks = [task.id for task in BANK]
    return [
        row(model, "gp", n, tasks[n % len(tasks)], f"Hm, {n}.\nAnswer: {90_000 + n}")
        for n in range(1, count + 1)
    ]
