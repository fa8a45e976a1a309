"""Where there is nothing, probe reports say so as often as they promise: policies, components
within tasks, audits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from probe_rows import GRAMMAR, everything, manifest, row

from groundfault_lab.probes import comparison, evidence as source
from groundfault_lab.probes.endpoints import Results, RunEndpoints
from groundfault_lab.probes.summary import Summary


def hard_tasks(rng: np.random.Generator, tasks: int) -> Any:
    """A third of the tasks fail four times in five, whatever the components; the others one time in
    fifty.
    """
    chance = np.where(rng.random(tasks) < 1 / 3, 0.8, 0.02)
    wrong = rng.random((tasks, 2, 2)) < chance[:, None, None]
    return lambda t, cue, distractor: bool(
        wrong[t, int(cue == "reversed"), int(distractor == "shortcut")]
    )


def within(errors: int, worlds: int, level: float) -> bool:
    return errors / worlds <= level + 3 * (level * (1 - level) / worlds) ** 0.5


def draw_rows(rng: np.random.Generator, more: float, seeds: int) -> Results:
    """Runs of 24 queries in which three policies fail by chance, the last of them with another
    one.
    """
    runs = []
    for policy, chance in (("uniform", 0.15), ("caps", 0.15), ("gp", 0.15 + more)):
        for seed in range(seeds):
            rows = [
                row(
                    q,
                    f"t{q}|plain|none",
                    "mismatch" if rng.random() < chance else "match",
                    policy=policy,
                    seed=seed,
                )
                for q in range(1, 25)
            ]
            statuses: Any = {r.id: "confirmed_model_error" for r in rows if r.signal == "mismatch"}
            runs.append(RunEndpoints.of(rows, statuses, 24))
    return Results(tuple(runs))


def claims(results: Results) -> set[str]:
    result = comparison.compute_differences(results, "uniform")
    return {d.policy for d in result if d.endpoint == comparison.PRIMARY and d.p <= 0.05}


def test_equal_policies_are_told_apart_no_more_often_than_promised() -> None:
    rng = np.random.default_rng(0)
    assert within(sum(bool(claims(draw_rows(rng, 0.0, 8))) for _ in range(120)), 120, 0.05)
    assert sum("gp" in claims(draw_rows(rng, 0.35, 8)) for _ in range(20)) >= 18


@pytest.mark.parametrize("worlds", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_hard_tasks_make_no_component_effect(worlds: int) -> None:
    rng = np.random.default_rng(1)
    errors = 0
    for _ in range(worlds):
        rows, statuses = everything(16, hard_tasks(rng, 16))
        queries = [each for each in rows if rng.random() < 0.6]
        errors += any(e.p <= 0.05 for e in comparison.compute_effects(queries, statuses, GRAMMAR))
    assert within(errors, worlds, 0.05)


@pytest.mark.slow
def test_hard_tasks_make_no_audit_confirm_a_component() -> None:
    """Prompts are the units although those of a task fail together: components are crossed with
    tasks.
    """
    rng = np.random.default_rng(2)
    errors = 0
    for world in range(100):
        rows, statuses = everything(40, hard_tasks(rng, 40))
        queries = [each for each in rows if rng.random() < 0.7] if world % 2 else rows
        summary = Summary(tuple(queries), statuses, GRAMMAR, manifest(40, 160))
        result = source.run_audits(queries, summary, seed=world)
        errors += bool(result["components"].confirmed)
    assert within(errors, 100, 0.10)
