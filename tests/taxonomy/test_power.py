"""What a taxonomy could have seen: planted classes, the verdict without clusters, the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from groundfault.render.html import html
from groundfault.render.markdown import markdown
from groundfault_lab.commands import taxonomy as cli
from groundfault_lab.pages.taxonomy_page import make_page
from groundfault_lab.stats.irt import OneAbility
from groundfault_lab.taxonomy import Matrix, Settings, Taxonomy, fit
from groundfault_lab.taxonomy.fitting import nulls
from groundfault_lab.taxonomy.fitting.nulls import (
    DetectableClasses,
    count_directions,
    measure_detectable_classes,
    plant_class,
)
from groundfault_lab.taxonomy.worlds import AbilityWorld

QUICK = Settings(worlds=19, refits=0, bootstraps=0, permutations=0)


def draw(seed: int, **kind: int) -> Matrix:
    return AbilityWorld(**kind).draw(np.random.default_rng([seed, 3]))[0]


@pytest.fixture(scope="module")
def nothing() -> Taxonomy:
    return fit(draw(0, examples=300, models=16), QUICK)


def test_without_clusters_the_verdict_says_what_could_have_been_seen(nothing: Taxonomy) -> None:
    assert nothing.dimensions == 0
    detectable = nothing.detectable
    assert detectable is not None
    assert "No failure modes" not in nothing.verdict
    assert nothing.verdict.endswith(detectable.sentence)
    assert "With 80% power" in detectable.sentence
    assert "rarer or weaker classes are not excluded" in detectable.sentence
    # the more examples a class has, the weaker it may be
    effects = [1.01 if e is None else e for e in detectable.effects.values()]
    assert effects == sorted(effects, reverse=True)
    assert effects[-1] < 1


@pytest.mark.slow
def test_a_class_as_strong_as_said_is_seen_and_a_much_weaker_one_is_not(nothing: Taxonomy) -> None:
    """On worlds that the simulation did not draw, by the whole test with its own null worlds."""
    matrix = draw(0, examples=300, models=16)
    population = OneAbility.fit(matrix.passed, matrix.trials)
    assert nothing.detectable is not None
    effect = nothing.detectable.effects["0.4"]
    assert effect is not None

    def count_seen(effect: float) -> int:
        worlds = (
            plant_class(matrix, population, 0.4, effect, np.random.default_rng(s)) for s in range(4)
        )
        return sum(bool(count_directions(world, QUICK)[0]) for world in worlds)

    assert count_seen(min(1.0, effect + 0.2)) >= 3
    assert count_seen(0.05) <= 1


def test_a_planted_class_loses_passes_of_half_of_the_models_in_its_examples_alone() -> None:
    matrix = draw(1, examples=200, models=10)
    population = OneAbility.fit(matrix.passed, matrix.trials)
    before = plant_class(matrix, population, 0.1, 0.0, np.random.default_rng(5)).passed
    after = plant_class(matrix, population, 0.1, 1.0, np.random.default_rng(5)).passed
    lost = before > after
    assert (after <= before).all()
    assert 0 < lost.any(axis=1).sum() <= 20
    assert 0 < lost.any(axis=0).sum() <= 5
    assert (after[np.ix_(lost.any(axis=1), lost.any(axis=0))] == 0).all()


def test_effects_are_looked_up_by_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def plant(*parts: object) -> object:
        asked.append(float(str(parts[3])))
        return parts[0]

    monkeypatch.setattr(nulls, "plant_class", plant)
    monkeypatch.setattr(nulls, "measure_strongest_direction", lambda *_: asked[-1])
    matrix = draw(1, examples=60, models=6)
    test = nulls.Test("direction", 0.0, (0.4,) * 19)
    population = OneAbility.fit(matrix.passed, matrix.trials)
    result = measure_detectable_classes(matrix, QUICK, test, population)
    assert set(result.effects.values()) == {0.5}
    assert len(set(asked)) < len(nulls.EFFECTS)
    never = replace(test, draws=(2.0,) * 19)
    result = measure_detectable_classes(matrix, QUICK, never, population)
    assert set(result.effects.values()) == {None}
    assert "too small to show any class" in result.sentence


def test_without_clusters_the_command_says_where_to_look_for_one_models_failures(
    nothing: Taxonomy,
) -> None:
    lines = cli._outline_clusters(nothing, None, (), unstable=False, out="out")
    assert any("groundfault audit --model NAME" in line for line in lines)


def test_it_is_stored_and_shown_and_older_files_do_without(
    nothing: Taxonomy, tmp_path: Path
) -> None:
    nothing.save(tmp_path)
    again = Taxonomy.load(tmp_path)
    assert again.detectable == nothing.detectable
    assert again.verdict == nothing.verdict
    for text in (html(make_page(again)), markdown(make_page(again))):
        assert "What could have been seen" in text
        assert "would have been seen" in text
    older = replace(nothing, detectable=None)
    assert "detectable" not in older.to_dict()
    assert older.verdict.startswith("Nothing was seen beyond one ability a model")
    assert "What could have been seen" not in html(make_page(older))


def test_a_sentence_names_each_share() -> None:
    effects = {"0.05": None, "0.1": 0.5, "0.2": 0.3}
    sentence = DetectableClasses(0.8, 20, effects).sentence
    assert "in a class of 10% of the examples, half of the models failed 50%" in sentence
    assert "or 20% of the examples and 30%" in sentence
    assert "5% of" not in sentence
