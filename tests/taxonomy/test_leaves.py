"""Leaves: rules under which models fail beyond ability are found where planted, and hardly else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from leaf_worlds import QUICK, draw

from groundfault.core.rules import Rule
from groundfault_lab.commands.taxonomy import taxonomy as command
from groundfault_lab.taxonomy import Matrix, Settings, Taxonomy, fit
from groundfault_lab.taxonomy.fitting.fit import compare_clusters
from groundfault_lab.taxonomy.fitting.leaves import classify_difficulty, find_leaves


@pytest.mark.parametrize(
    "kind",
    [
        {"models": 5},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"holes": 0.2}, marks=pytest.mark.slow),
    ],
)
def test_where_ability_explains_all_hardly_a_leaf_is_named(kind: dict[str, float]) -> None:
    worlds = [draw(seed, examples=200, **kind) for seed in range(20)]  # type: ignore[arg-type]
    named = sum(bool(find_leaves(world, world, Settings())) for world in worlds)
    # at the level of .05, more than 4 of 20 has a probability of .3 %
    assert named <= 4


def test_a_planted_rule_is_a_leaf_with_the_models_that_fail_in_it() -> None:
    matrix = draw(1, hole=0.7)
    leaves = find_leaves(matrix, matrix, Settings())
    story = (matrix.attributes["form"] == "story").to_numpy()
    (leaf,) = [one for one in leaves if (one.holds == story).all()]
    assert set(leaf.models) == {"m00", "m01"}
    assert leaf.p < 0.05
    assert all(set(one.models) <= {"m00", "m01"} for one in leaves)


def test_a_leaf_leaves_out_examples_that_all_models_pass() -> None:
    base, rng = draw(2, models=10, examples=600), np.random.default_rng(3)
    task = np.where(np.arange(600) % 4 == 0, "kin", "sums")
    steps = rng.integers(1, 4, 600)
    passed, kin = base.passed.copy(), task == "kin"
    passed[kin] = 1
    passed[kin & (steps == 3), 0] = 0
    table = pl.DataFrame({"task": task, "steps": steps, "noise": rng.integers(0, 5, 600)})
    names = base.examples, base.models
    matrix = Matrix(*names, passed, base.trials, attributes=table)
    (leaf,) = [one for one in find_leaves(matrix, matrix, Settings()) if "m00" in one.models]
    # to the search "task is kin" is as good: among those that one model fails, all have three steps
    assert (leaf.holds == (kin & (steps == 3))).all()
    assert "task" in leaf.rule
    assert "steps" in leaf.rule
    assert leaf.models == ("m00",)


def test_without_attributes_there_are_clusters_alone() -> None:
    matrix = Matrix(*(getattr(draw(1), name) for name in "examples models passed trials".split()))
    assert find_leaves(matrix, matrix, Settings()) == []


def test_classes_are_of_examples_that_as_many_and_as_able_models_fail() -> None:
    rate = np.linspace(0.2, 0.6, 10)
    failures = (np.random.default_rng(1).random((500, 10)) < rate).astype(float)
    classes, counts = classify_difficulty(failures), failures.sum(axis=1)
    # the weakest model fails most
    weakness = failures @ rate / np.maximum(counts, 1)
    for count in range(3, 6):
        able, weak = np.unique(classes[counts == count])
        assert set(counts[np.isin(classes, [able, weak])]) == {count}
        parts = sorted(weakness[classes == one].mean() for one in (able, weak))
        assert parts[1] - parts[0] > 0.02
    many = (np.random.default_rng(1).random((500, 60)) < 0.4).astype(float)
    assert 20 < len(np.unique(classify_difficulty(many))) <= 40


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return fit(draw(1, hole=0.7), QUICK)


def test_a_taxonomy_with_leaves_is_read_as_it_was_written(
    taxonomy: Taxonomy, tmp_path: Path
) -> None:
    taxonomy.save(tmp_path)
    again = Taxonomy.load(tmp_path)
    assert again.to_json() == taxonomy.to_json()
    assert compare_clusters(again) == []
    leaf = next(one for one in again.leaves if "story" in one.rule)
    assert leaf.published
    assert leaf.name.startswith(f"leaf {leaf.number}: form is story")
    inside = Rule.parse(leaf.rule).holds(again.matrix.attributes).to_numpy()
    assert leaf.size == inside.sum()
    assert "failure mode" in again.verdict
    column = again.matrix.models.index("m00")
    assert leaf.failure[column] > leaf.expected[column] + 0.2
    # first what its models fail and the others pass
    first = again.matrix.values[again.list_members(leaf.number)[0]]
    assert first[[0, 1]].sum() == 0
    assert first[2:].sum() > 2


def test_the_papers_preset_has_no_leaves_and_counts_its_own_rule() -> None:
    settings = Settings.preset("paper", reducer="pca", alpha=0.0, worlds=0, refits=0, bootstraps=0)
    made = fit(draw(1, hole=0.7), settings)
    assert made.leaves == ()
    assert len(made.published) == made.by_the_papers_rule


def test_claims_about_a_held_out_model_are_judged_on_leaves(tmp_path: Path) -> None:
    matrix = draw(1, hole=0.7, examples=600)
    rows = pl.concat(
        matrix.attributes.with_columns(
            id=pl.Series(matrix.examples), model=pl.lit(name), ok=pl.Series(matrix.passed[:, j])
        )
        for j, name in enumerate(matrix.models)
    )
    rows.write_parquet(tmp_path / "answers.parquet")
    words = f"fit {tmp_path}/answers.parquet --id id --model-column model --outcome ok"
    words += " --positive-is-good --worlds 19 --refits 2 --bootstraps 1 --permutations 19"
    words += f" --hold-out m01 --no-ledger --beyond-ability --out {tmp_path}/out"
    ran = CliRunner().invoke(command, words.split(), catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    assert "claims about held-out models are confirmed" in ran.output
    assert not ran.output.startswith("0 of")
    report = (tmp_path / "out" / "claims" / "report.md").read_text()
    assert "form is story" in report


@pytest.mark.slow
def test_most_holes_of_thirteen_networks_are_leaves(shared: Path) -> None:
    from groundfault_studies.failure_scope import read_known_holes

    data = read_known_holes(shared / "real" / "known_holes")
    ids = pl.read_parquet(shared / "real" / "known_holes" / "examples.parquet")
    kept = ids.drop("prompt", "target").sample(2000, seed=1)
    from groundfault import Evidence

    table = data.outcomes.join(kept, on="example_id")
    made = fit(
        Evidence.from_table(table, id="example_id", model="model", outcome="error"),
        Settings(worlds=19, refits=0, bootstraps=0, permutations=0),
    )
    found = set()
    for leaf in made.leaves:
        holds = Rule.parse(leaf.rule).holds(ids).to_numpy()
        for model in leaf.models:
            hole = data.holes.get(model)
            if hole is not None and (holds & hole).sum() >= 0.5 * (holds | hole).sum():
                found.add(model)
    assert len(found) >= 8
