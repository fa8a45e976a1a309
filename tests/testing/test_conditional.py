"""Rules given several or numeric columns: no confounder is confirmed, a cause is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli
from groundfault_lab.stats.conditional import describe_columns, judge_given


def draw_world(seed: int, effect: float = 0.0, n: int = 300, rules: int = 4) -> pl.DataFrame:
    """Rules that go with a number and a topic, on which failures depend; the first may matter."""
    rng = np.random.default_rng(seed)
    number, topic = rng.normal(size=n), rng.integers(0, 3, n)
    chance = 1 / (1 + np.exp(-(number - 0.7 * (topic == 2))))
    on = rng.random((rules, n)) < chance
    fails = 1 / (1 + np.exp(0.6 - 1.2 * number - 0.8 * (topic == 1)))
    failed = rng.random(n) < (fails + effect * on[0]).clip(0, 1)
    flags = {f"rule_{i}": row for i, row in enumerate(on)}
    texts = np.array(["a", "b", "c"])[topic]
    return pl.DataFrame({"id": range(n), "number": number, "topic": texts, **flags}).with_columns(
        failed=failed.astype(int)
    )


def test_what_columns_explain_is_not_confirmed() -> None:
    """80 rules that go with the columns alone; without them, most have a p below .01."""
    ps, plain = [], []
    for seed in range(20):
        table = draw_world(seed)
        given = describe_columns(table, ["number", "topic"])
        for i in range(4):
            on, failed = table[f"rule_{i}"].to_numpy(), table["failed"].to_numpy().astype(float)
            rng = np.random.default_rng([seed, i])
            ps.append(judge_given(on, failed, given, 199, rng))
            rate = abs(failed[on].mean() - failed[~on].mean())
            plain.append(rate / np.sqrt(failed.var() / on.sum() + failed.var() / (~on).sum()))
    assert np.mean(np.array(plain) > 2.6) > 0.7
    # three Monte Carlo errors of 80 rules that share their tables
    assert np.mean(np.array(ps) <= 0.1) <= 0.2


def test_the_command_finds_the_cause(tmp_path: Path) -> None:
    place, out = tmp_path / "t.parquet", tmp_path / "out.json"
    draw_world(3, effect=0.35, n=600).write_parquet(place)
    call = ["lab", "condition", str(place), "--id", "id", "--outcome", "failed"]
    call += ["--declare", "rule_*", "--given", "number", "--given", "topic", "--json", str(out)]
    result = CliRunner().invoke(cli, call)
    assert result.exit_code == 0, result.output
    tests = json.loads(out.read_text())["tests"]
    assert [row["confirmed"] for row in tests] == [True, False, False, False]
    # the same seed gives the same answer
    CliRunner().invoke(cli, call)
    assert json.loads(out.read_text())["tests"] == tests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--given", "nowhere"], "there is no column 'nowhere'"),
        (["--given", "number", "--alpha", "2"], "alpha must be strictly between 0 and 1"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, options: list[str], message: str) -> None:
    place = tmp_path / "t.parquet"
    draw_world(0).write_parquet(place)
    call = ["lab", "condition", str(place), "--id", "id", "--outcome", "failed"]
    result = CliRunner().invoke(cli, [*call, "--declare", "rule_*", *options])
    assert message in str(result.exception)


def test_copies_and_several_models_are_named(tmp_path: Path) -> None:
    place, world = tmp_path / "t.parquet", draw_world(0)
    world = world.with_columns(prompt=pl.format("What is {} plus one?", "id"))
    call = ["lab", "condition", str(place), "--id", "id", "--outcome", "failed"]
    call += ["--declare", "rule_*", "--given", "number"]
    pl.concat([world, world[:9].with_columns(pl.col("id") + 1000)]).write_parquet(place)
    assert "309 rows are 300 examples" in str(CliRunner().invoke(cli, call).exception)
    both = [world.with_columns(model=pl.lit(name)) for name in ("old", "new")]
    pl.concat(both).write_parquet(place)
    result = CliRunner().invoke(cli, [*call, "--model-column", "model"])
    assert "there are 2 models; choose one with --model" in str(result.exception)


def test_missing_values_are_marked_and_constant_columns_left_out() -> None:
    table = pl.DataFrame(
        {"a": [1.0, None, 3.0, 4.0], "b": ["x", None, "x", "y"], "c": [1, 1, 1, 1]}
    )
    given = describe_columns(table, ["a", "b", "c"])
    assert np.isfinite(given).all()
    assert (given.std(axis=0) > 0).all()
