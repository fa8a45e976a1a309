"""Which leaves a new model fails: seldom wrongly whenever one stops, and with few answers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from leaf_worlds import QUICK, draw

from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault_lab.taxonomy import Matrix, Taxonomy, fit
from groundfault_lab.taxonomy.use.basis import Basis
from groundfault_lab.taxonomy.use.diagnosis import Diagnosis, diagnose
from groundfault_lab.taxonomy.use.leaf_evidence import choose_for_leaves, weigh_leaves

WORLD = draw(3, models=16, examples=600, hole=0.9)


@cache
def fit_without(model: str) -> Taxonomy:
    return fit(WORLD.without(model), QUICK)


def make_answers(matrix: Matrix, model: str, names: list[str]) -> Evidence:
    j, rows = matrix.models.index(model), [matrix.places[name] for name in names]
    table = pl.DataFrame({"id": names, "model": model, "ok": matrix.passed[rows, j]})
    return Evidence.from_table(table, id="id", model="model", outcome="ok", positive_is_good=True)


def count_answers(model: str, strategy: str, seed: int, most: int = 150) -> tuple[int, Diagnosis]:
    """Ask in batches of five until the planted leaf is decided."""
    taxonomy, names = fit_without(model), list[str]()
    while True:
        answers = make_answers(WORLD, model, names) if names else None
        found = diagnose(taxonomy, answers, budget=5, strategy=strategy, seed=seed)  # type: ignore[arg-type]
        story = next(w for w in found.weaknesses if w.name.endswith("form is story"))
        if story.decision != "open" or len(names) >= most:
            return len(names), found
        names += found.next


def test_a_model_that_fails_a_leaf_is_named_with_fewer_answers_than_by_cluster_sampling() -> None:
    counts = {
        strategy: [count_answers("m00", strategy, seed) for seed in range(5)]
        for strategy in ("leaves", "taxonomy")
    }
    for _, found in counts["leaves"]:
        story = next(w for w in found.weaknesses if w.name.endswith("form is story"))
        assert story.decision == "fails"
        assert story.e_value > 10
        assert story.name in found.verdict
    few, many = (np.mean([n for n, _ in counts[name]]) for name in ("leaves", "taxonomy"))
    assert few < 0.7 * many


def test_a_model_that_does_not_is_cleared() -> None:
    _, found = count_answers("m05", "leaves", 0)
    story = next(w for w in found.weaknesses if w.name.endswith("form is story"))
    assert story.decision == "cleared"
    assert "leaves are cleared" in found.verdict


def test_of_models_of_one_ability_few_are_named_wrongly_at_any_time() -> None:
    """E-values of models drawn from the law, looked at after each answer."""
    rng = np.random.default_rng(7)
    basis = Basis.of(WORLD.informative(), np.ones((len(WORLD.informative()), 1), dtype=bool))
    inside = rng.random((len(basis), 3)) < 0.2
    basis = Basis(basis.labels, *(getattr(basis, n) for n in ("difficulty", "items")),
                  np.eye(3), basis.weights, members=inside.astype(float))  # fmt: skip
    highest = []
    for _ in range(120):
        at = np.abs(np.linspace(-5, 5, 161) - rng.normal()).argmin()
        failures = rng.random(len(basis)) >= basis.curve[:, at]
        answered = np.zeros(len(basis), dtype=bool)
        top = 0.0
        for i in rng.permutation(len(basis))[:60]:
            answered[i] = True
            top = max(top, float(weigh_leaves(basis, answered, failures)[0].max()))
        highest.append(top)
    # any of three leaves above 3 / .1 at any of 60 looks: at most .1, and 3 standard errors
    assert np.mean(np.array(highest) >= 30) <= 0.1 + 3 * np.sqrt(0.09 / 120)


def test_examples_are_chosen_in_turn_and_what_is_answered_is_not() -> None:
    taxonomy = fit_without("m00")
    basis = Basis.of(taxonomy.matrix, taxonomy.inside)
    answered = np.zeros(len(basis), dtype=bool)
    answered[::2] = True
    leaf = next(c.number - 1 for c in taxonomy.leaves if "story" in c.rule)
    inside = basis.inside[:, leaf] > 0
    few = int((inside & ~answered).sum())
    rows = choose_for_leaves(
        basis, answered, answered & False, np.array([leaf]), few + 5, np.zeros(len(basis))
    )
    assert len(set(rows.tolist())) == few + 5
    assert not answered[rows].any()
    assert inside[rows[:few]].all()


def test_a_diagnosis_of_leaves_is_read_as_it_was_written(tmp_path: Path) -> None:
    _, found = count_answers("m00", "leaves", 0)
    (tmp_path / "d.json").write_text(found.to_json())
    assert Diagnosis.load(tmp_path / "d.json") == found
    assert "decision" in json.loads(found.to_json())["weaknesses"][0]


def test_without_leaves_the_strategy_is_refused() -> None:
    taxonomy = fit(
        Matrix(*(getattr(WORLD, n) for n in "examples models passed trials".split())), QUICK
    )
    with pytest.raises(InputError, match="no leaves"):
        diagnose(taxonomy, strategy="leaves")
