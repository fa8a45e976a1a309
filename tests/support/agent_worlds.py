"""Runs of agents: simulated ones, in which nothing or one thing causes failure, and real ones."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundfault import Evidence

Chat = list[dict[str, Any]]


def call(name: str, arguments: str = "{}", result: str | None = "some words of a result") -> Chat:
    """A call and its result."""
    function = {"function": {"name": name, "arguments": arguments}, "id": "x"}
    told = [] if result is None else [{"role": "tool", "tool_call_id": "x", "content": result}]
    return [{"role": "assistant", "content": None, "tool_calls": [function]}, *told]


def make_chats(
    seed: int, *, tasks: int, trials: int, cause: float = 0.0, models: int = 1
) -> pl.DataFrame:
    """Runs whose tools and errors hang on the task; runs that fail take longer.

    Of several models each has a level of its own, in failures and in errors of tools.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(tasks):
        hard, errs = rng.random(), rng.uniform(0.05, 0.4)
        for trial, model in product(range(trials), range(models)):
            shift = 0.3 * (model / (models - 1) - 0.5) if models > 1 else 0.0
            failed, strays = rng.random() < hard + shift, bool(cause) and rng.random() < 0.3
            failed = failed or (strays and rng.random() < cause)
            chat: Chat = [{"role": "user", "content": f"task {task}"}]
            for turn in range(1, (3 if failed else 2) + rng.poisson(4 if failed else 2)):
                tool = "stray" if strays and turn == 2 else rng.choice(["read", "write", "look"])
                result = (
                    "Error: no such thing"
                    if rng.random() < errs + shift
                    else f"found {rng.random()}"
                )
                chat += call(tool, json.dumps({"q": int(rng.integers(3))}), result)
            chat.append({"role": "assistant", "content": rng.choice(["Sorry.", "Here it is."])})
            rows.append((f"t{task}", trial, f"m{model}", int(failed), json.dumps(chat)))
    names = ["id", "trial", "model", "error", "messages"]
    return pl.DataFrame(rows, schema=names, orient="row")


def read(table: pl.DataFrame) -> Evidence:
    """The runs as evidence."""
    return Evidence.from_table(table, id="id", repeat="trial", model="model", outcome="error")


def mark_runs(
    seed: int, layout: tuple[int, int, int], effect: float = 0.0, *, steps: bool = True
) -> Evidence:
    """Runs with a scanner that flags longer ones more often, and failing ones by its effect.

    A layout is tasks, trials and models; without steps the runs are answers.
    """
    tasks, trials, models = layout
    table = make_chats(seed, tasks=tasks, trials=trials, models=models)
    rng = np.random.default_rng(seed + 1000)
    turns = np.array([text.count('"role"') for text in table["messages"]])
    chance = (1 - 0.95**turns if steps else 0.3) + effect * table["error"].to_numpy()
    scan = pl.Series(rng.random(len(table)) < chance)
    words = pl.Series(rng.choice(["warm", "cold"], len(table)))
    table = table.with_columns(scan=scan, tone=words).drop([] if steps else ["messages"])
    columns = {"id": "id", "repeat": "trial", "model": "model", "outcome": "error"}
    return Evidence.from_table(table, **columns, during=["scan", "tone"])


def read_mint(shared: Path) -> Evidence:
    """The runs of MINT that one can look at, five turns at most."""
    place = shared / "real" / "mint"
    tasks = pl.read_parquet(place / "examples.parquet").select("example_id", "benchmark")
    table = pl.read_parquet(place / "traces_max5.parquet").join(tasks, on="example_id")
    names = {"id": "example_id", "model": "model", "outcome": "correct"}
    return Evidence.from_table(table, **names, positive_is_good=True)


def read_tau_bench(shared: Path) -> Evidence:
    """Fifty tasks of an airline, four trials each."""
    table = shared / "real" / "taubench_airline" / "traces.parquet"
    names = {"id": "example_id", "repeat": "trial", "outcome": "correct"}
    return Evidence.from_table(table, **names, positive_is_good=True)
