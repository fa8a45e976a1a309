"""Known holes: the data are read as they are, scores by hand, methods name what is planted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault import Evidence
from groundfault.errors import InputError
from groundfault_studies import known_holes
from groundfault_studies.rule_methods import METHODS, RowCoding
from groundfault_studies.rule_scores import count_false, score_rules, weigh_excess


def draw_prompts(rows: int, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    task = rng.choice(["add", "sort", "quote"], rows)
    verbs = {"add": "sum up", "sort": "put in order", "quote": "repeat"}
    return pl.DataFrame(
        {
            "example_id": [f"e{i:05d}" for i in range(rows)],
            "prompt": [f"{verbs[t]} {rng.integers(10, 99)}" for t in task],
            "target": ["x"] * rows,
            "task": task,
            "digits": rng.integers(1, 6, rows),
            "upper": rng.random(rows) < 0.3,
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small folder in the form of the real one: one model with a hole, one without."""
    place = tmp_path / "real" / "known_holes"
    place.mkdir(parents=True)
    examples, rng = draw_prompts(400), np.random.default_rng(1)
    hole = examples.select((pl.col("task") == "add") & pl.col("upper")).to_series()
    wrong = {
        "shouts#1": np.where(hole, 1, rng.random(400) < 0.05),
        "none#1": rng.random(400) < 0.2,
    }
    # in another order than the examples: rows are joined, not counted
    outcomes = [
        examples.select("example_id")
        .with_columns(model=pl.lit(name), answer=pl.lit(""), correct=pl.Series(1 - wrong[name]))
        .reverse()
        for name in wrong
    ]
    examples.write_parquet(place / "examples.parquet")
    pl.concat(outcomes).write_parquet(place / "outcomes.parquet")
    examples.select("example_id", shouts=hole).write_parquet(place / "inside.parquet")
    rules = {
        "shouts#1": {"never_saw": "task = 'add' AND upper", "share_of_examples": 0.1},
        "none#1": {"never_saw": "false", "share_of_examples": 0.0},
    }
    (place / "holes.json").write_text(json.dumps(rules))
    return tmp_path


# scores


def test_excess_over_strata_is_the_mantel_haenszel_difference() -> None:
    rng = np.random.default_rng(3)
    rule, stratum = rng.random(500) < 0.3, rng.integers(0, 4, 500)
    loss = rng.random(500)
    total = weight = 0.0
    for h in range(4):
        inside, outside = loss[rule & (stratum == h)], loss[~rule & (stratum == h)]
        w = len(inside) * len(outside) / (len(inside) + len(outside))
        total, weight = total + w * (inside.mean() - outside.mean()), weight + w
    assert weigh_excess(rule, loss, stratum) == pytest.approx(total / weight)
    assert np.isnan(weigh_excess(np.ones(500, dtype=bool), loss, stratum))


def test_a_rule_that_repeats_another_is_redundant_and_not_false() -> None:
    on = np.arange(100) < 20
    loss = np.where(on, 1.0, 0.1)
    part, empty = np.arange(100) < 10, np.zeros(100, dtype=bool)
    wide = np.arange(100) < 40
    assert count_false([on], loss) == (0, 0)
    assert count_false([on, on, part], loss) == (0, 2)
    # the rows of a wide rule beyond the first fail no more than elsewhere
    assert count_false([on, wide], loss) == (0, 1)
    assert count_false([wide, on], loss) == (0, 0)
    assert count_false([~on, empty], loss) == (2, 2)


def test_only_prompts_that_were_not_seen_say_whether_a_rule_is_false() -> None:
    rule, fresh = np.arange(100) % 2 == 0, np.arange(100) >= 50
    loss = np.where(fresh, 0.5, rule).astype(float)
    hole = np.arange(100) % 4 == 0
    scores = score_rules([rule, hole], loss, fresh, hole)
    assert scores["marginal"] == 2
    assert score_rules([rule, hole], loss, ~fresh, hole)["marginal"] == 0
    assert scores["first"] == scores["all"] == 1.0
    assert (scores["covered"], scores["inside"]) == (0.5, 0.5)


def test_the_sixth_rule_is_not_among_the_first_five() -> None:
    hole, none = np.arange(10) < 5, np.zeros(10, dtype=bool)
    scores = score_rules([none] * 5 + [hole], hole * 1.0, ~none, hole)
    assert (scores["first"], scores["all"], scores["modes"]) == (0.0, 1.0, 6)
    nothing = score_rules([], hole * 1.0, ~none, None)
    assert (nothing["first"], nothing["modes"], nothing["inside"]) == (None, 0, None)
    assert nothing["covered"] == 0.0


# methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_names_a_plain_failure(name: str) -> None:
    way = METHODS[name]
    if not way.installed:
        pytest.skip(f"needs {way.needs}: pip install {way.needs}")
    table, rng = draw_prompts(600), np.random.default_rng(2)
    shown = table.drop("target") if way.columns else table.select("example_id", "prompt")
    error = rng.random(600) < np.where(table["task"] == "sort", 0.9, 0.1)
    evidence = Evidence.from_table(
        shown.with_columns(error=pl.Series(error)), id="example_id", outcome="error"
    )
    descriptions = way.describe(evidence)
    assert all(one.text for one in descriptions)
    fresh = draw_prompts(500, seed=9)
    sort = (fresh["task"] == "sort").to_numpy()
    scores = score_rules(
        [one.apply(fresh) for one in descriptions], sort * 1.0, ~np.zeros(500, dtype=bool), sort
    )
    assert scores["first"] == 1.0


@pytest.mark.parametrize("name", [n for n in METHODS if METHODS[n].installed])
def test_a_model_that_never_fails_has_no_rules(name: str) -> None:
    table = draw_prompts(60).drop("target").with_columns(error=0)
    evidence = Evidence.from_table(table, id="example_id", outcome="error")
    assert METHODS[name].describe(evidence) == []


def test_a_coding_has_a_column_a_value_and_no_prose() -> None:
    table = draw_prompts(200).drop("target").with_columns(error=0)
    evidence = Evidence.from_table(table, id="example_id", outcome="error")
    coding = RowCoding.of(evidence)
    assert [value for name, value in coding.columns if name == "task"] == ["add", "quote", "sort"]
    assert {name for name, _ in coding.columns} == {"task", "digits", "upper"}
    assert coding.matrix(table).shape == (200, 5)
    assert coding.word(0, True, 0.5) == "task = 'add'"
    assert coding.word(3, False, 2.5) == "digits <= 2.5"


# the data


def test_all_methods_and_models_see_the_same_samples(folder: Path) -> None:
    data = known_holes.read_holes(known_holes.find_folder(folder))
    one, same, other = (data.sample(100, draw) for draw in (0, 0, 1))
    assert one.sum() == other.sum() == 100
    assert (one == same).all()
    assert (one != other).any()
    assert data.evidence("none#1", one, columns=False).frame.columns == [
        "example_id",
        "prompt",
        "error",
    ]
    assert "target" not in data.evidence("none#1", one, columns=True).frame.columns


def test_files_that_are_not_there_are_named(folder: Path, tmp_path: Path) -> None:
    place = known_holes.find_folder(folder)
    with pytest.raises(InputError, match=r"lacks examples.parquet.*--shared"):
        known_holes.read_holes(tmp_path)
    (place / "inside.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="does not hold what this study reads"):
        known_holes.read_holes(place)


def test_the_real_holes_are_what_they_are_said_to_be(shared: Path) -> None:
    data = known_holes.read_holes(known_holes.find_folder(shared))
    holes = {model: hole for model, (_, hole) in data.holes.items() if hole is not None}
    assert (len(holes), len(data.models), data.examples.height) == (13, 17, 10_000)
    for model, hole in holes.items():
        share = data.examples.select(pl.sql_expr(data.holes[model][0]).alias("on")).to_series()
        assert (share.to_numpy() == hole).all(), model
        assert data.errors[model][hole].mean() > data.errors[model][~hole].mean() + 0.15, model
