"""The discovery study: real classifiers, their mistakes, and the tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from groundfault_lab.commands.study import study as command
from groundfault_studies import discover
from groundfault_studies.discover import domino, edisa, measure, spotlight, study
from groundfault_studies.discovery import Discovery, score_discovery
from groundfault_studies.real_models import of_texts, shipped_classifiers
from groundfault_studies.resuming import Rows


def test_classifiers_err_on_examples_they_were_not_trained_on() -> None:
    names = set()
    for predictions in shipped_classifiers(0):
        names.add(predictions.name)
        assert len(predictions.embedding) == len(predictions.label) == len(predictions.probability)
        np.testing.assert_allclose(predictions.probability.sum(axis=1), 1.0)
        assert 0.02 < predictions.wrong.mean() < 0.6
    assert len(names) == 4


def test_texts_are_classified_too(shared: Path) -> None:
    tasks, passes = of_texts(shared / "real", 0)
    assert tasks.probability.shape[1] > 20
    assert passes.probability.shape[1] == 2
    assert tasks.wrong.mean() < 0.3


def test_slicers_find_errors_of_digits_better_than_confidence() -> None:
    digits = next(iter(shipped_classifiers(1)))
    for fit in (edisa(), edisa(embedding_weight=1.0), domino()):
        discovery = measure(fit, digits)
        assert discovery.count > 50
        assert discovery.efficacy > discovery.confidence > discovery.chance
    balls = measure(spotlight(), digits)
    assert balls.efficacy > balls.chance


def test_efficacy_counts_what_is_said() -> None:
    prone, wrong = (
        np.array([True, True, True, False, False]),
        np.array([True, False, True, True, False]),
    )
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.55, 0.45], [0.8, 0.2], [0.7, 0.3]])
    discovery = score_discovery(prone, wrong, p)
    assert discovery.count == 3
    assert discovery.efficacy == pytest.approx(2 / 3)
    assert discovery.confidence == pytest.approx(
        1 / 3
    )  # of the second, third and fifth the third alone is wrong
    assert discovery.chance == pytest.approx(3 / 5)
    assert discovery.recall == pytest.approx(2 / 3)
    nobody = score_discovery(np.zeros(5, dtype=bool), wrong, p)
    assert nobody.count == 0
    assert np.isnan(nobody.efficacy)


def test_fusion_is_compared_with_rule_and_baseline_training_by_training() -> None:
    def find(efficacy: float, recall: float, count: int = 10) -> Discovery:
        return Discovery(count, efficacy, 0.4, 0.2, recall)

    nothing = find(np.nan, 0.0, 0)
    rule = [find(0.5, 0.5), find(0.6, 0.6), nothing]
    ours = [find(0.6, 0.6), find(0.7, 0.7), nothing]
    rivals = dict.fromkeys(("edisa", "domino"), rule) | {"edisa, our default": ours}
    fused, default = discover.compare_rules({"digits": rivals | {"fusion": ours}})
    [row] = fused.rows
    assert row.here["lead"] == pytest.approx((0.2 + 0.3 + 0.0) / 3)
    assert row.here["f1"] == pytest.approx((0.6 + 0.7 + 0.0) / 3)
    # mean .0667, standard deviation .0577, t of two degrees of freedom 4.303
    for rival in ("edisa", "domino"):
        assert row.here[f"lead {rival}"] == "+0.067 [-0.077, +0.210]"
        assert row.here[f"f1 {rival}"] == "+0.067 [-0.077, +0.210]"
    assert row.here["lead edisa, our default"] == "+0.000 [+0.000, +0.000]"
    # Edisa's default suspects the same here
    shared = ("lead", "lead domino", "f1", "f1 edisa")
    assert [default.rows[0].here[key] for key in shared] == [row.here[key] for key in shared]


def test_the_command_trains_with_the_seeds_asked_for_and_shows_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = []

    def measure_part(_: object, seed: int, table: str, number: int, name: str, size: float) -> Rows:
        seeds.append(seed)
        about = {"table": table, "classifier": str(number), "fit": name, "size": size, "width": 2}
        return [about | asdict(Discovery(10, 0.5, 0.4, 0.2, 0.5))]

    monkeypatch.setattr(discover, "_measure_part", measure_part)
    settings = ["--seeds", "2", "--first-seed", "36", "--out", str(tmp_path / "out")]
    run = CliRunner().invoke(command, ["discover", "--shared", str(tmp_path), *settings])
    assert "So far, after 1 seed:" in run.stderr
    assert set(seeds) == {36, 37}
    stored = json.loads((tmp_path / "out" / "discover.json").read_text())
    assert (stored["settings"]["seeds"], stored["settings"]["first seed"]) == (2, 36)


@pytest.mark.slow
def test_the_study_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "DIMENSIONS", (16,))
    monkeypatch.setattr(discover, "WEIGHTS", (0.15,))
    monkeypatch.setattr(discover, "SIZES", (0.5, 1.0))
    keep = tmp_path / "rows.jsonl"
    result = study(tmp_path, seeds=1, keep=keep)
    assert study(tmp_path, seeds=1, keep=keep, progress=pytest.fail) == result
    assert result.lacking
    assert [len(table.rows) for table in result.tables] == [4 * 7 + 2, 4, 4, 4 * 3 + 3, 2, 3, 4]
    text = result.to_markdown()
    assert "digits, network: edisa" in text
    assert "63.32%" in text
    result.write(tmp_path)
    assert (tmp_path / "discover.json").exists()
    assert "discover-figure-3.svg" in text
    rows = {row.label: row.here for row in result.tables[0].rows}
    models_behind = (
        result.tables[0].note.partition("ahead of confidence on ")[2].partition(". Edisa")[0]
    )
    for model in ("digits, logistic", "digits, network", "breast cancer, naive Bayes"):
        here = rows[f"{model}: edisa"]
        ahead = here["efficacy"] is not None and here["efficacy"] > here["confidence"]
        assert (model not in models_behind) == ahead
    assert (tmp_path / "discover-figure-3.svg").read_text().startswith("<svg")
