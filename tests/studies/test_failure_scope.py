"""The study of FailureScope's clusters: its scores by hand, its table, and that it resumes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from groundfault_studies import failure_scope
from groundfault_studies.failure_scope_tables import make_diagnosis_table, make_table

SHARED = Path(__file__).parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(
    not (SHARED / "real" / "known_holes").is_dir(), reason="needs shared/data/real"
)


def mark(*rows: int) -> np.ndarray:
    rows_of_cluster = np.zeros(10, dtype=bool)
    rows_of_cluster[list(rows)] = True
    return rows_of_cluster


def test_a_cluster_recovers_the_hole_that_it_shares_half_of_their_union_with() -> None:
    holes = [mark(0, 1), mark(4, 5, 6, 7), mark(8, 9)]
    clusters = [mark(0, 1, 2), mark(3, 4), mark(1, 2)]
    scores = failure_scope.score_holes(clusters, holes)
    # 2/3 with the first hole; 1/5 with the second; 1/3 with the first
    assert scores == {
        "published": 3,
        "true": 1,
        "recovered": 1,
        "nearest": pytest.approx((2 / 3 + 1 / 5 + 0) / 3),
    }


def test_nothing_published_recovers_nothing() -> None:
    none = failure_scope.score_holes([], [mark(0)])
    assert none == {"published": 0, "true": 0, "recovered": 0, "nearest": 0.0}
    assert failure_scope.score_again([], [mark(0)]) == {"published": 0.5, "true": 0.0}


def test_clusters_are_seen_again_in_both_directions() -> None:
    first, second = [mark(0, 1, 2), mark(7)], [mark(0, 1)]
    # one of two is seen again, and the one of the other half is
    assert failure_scope.score_again(first, second) == {"published": 1.5, "true": 1.0}


def test_the_table_has_the_difference_draw_by_draw() -> None:
    rows = [
        {"data": "mint", "rule": rule, "draw": draw, "published": count, "true": 0.0}
        for rule, counts in (("paper", (4, 6)), ("default", (1, 2)))
        for draw, count in enumerate(counts)
    ]
    table = make_table(rows, 2, 0.5, "pca")
    first, second = (row.here for row in table.rows)
    assert (first["paper"], first["ours"]) == ("5.00", "1.50")
    assert str(first["difference"]).startswith("−3.50 [−9.85, +2.85")
    assert second["difference"] == "+0.00, alike in all draws"


@needs_data
def test_models_that_lack_answers_are_left_out() -> None:
    data = failure_scope.read_mint(SHARED / "real" / "mint")
    assert (len(data.models), len(data.texts), len(data.outcomes)) == (34, 586, 34 * 586)


def test_data_that_are_not_there_are_said(tmp_path: Path) -> None:
    result = failure_scope.study(tmp_path)
    assert not result.tables
    assert [name.partition(",")[0] for name in result.lacking] == [
        "known_holes",
        "zeroeval",
        "mint",
    ]


@needs_data
@pytest.mark.slow
def test_a_draw_of_all_data_and_again_from_what_is_done(tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    first = failure_scope.study(SHARED, replicates=1, quick=True, keep=keep)
    messages: list[str] = []
    again = failure_scope.study(
        SHARED, replicates=1, quick=True, keep=keep, progress=messages.append
    )
    assert again == first
    assert not messages
    assert len(first.tables[0].rows) == 8


def test_a_left_out_model_is_compared_row_by_row() -> None:
    rows = [
        {
            "data": "mint",
            "rule": "left out",
            "draw": n,
            "failing": failing,
            "wrong": 0,
            "cluster": 40 + n,
            "leaves": 30,
            "tau nearest": 0.25,
            "tau shrunk": 0.5,
        }
        for n, failing in enumerate((1, 2, 0))
    ]
    lines = {row.label: row.here for row in make_diagnosis_table(rows).rows}
    answers = lines["mint, 2 models: answers until each leaf that a model fails is named"]
    assert (answers["paper"], answers["ours"]) == ("40.50", "30.00")
    assert lines["mint, 3 models: tau at 50 answers: nearest model"]["ours"] == "0.50"
    assert lines["mint: leaves named wrongly"]["ours"] == "0"


def test_draws_of_a_model_are_averaged_before_models_are_compared() -> None:
    rows = [
        {"data": "zeroeval", "rule": "halves", "draw": n, "model": name} | scores
        for n, name, scores in (
            (0, "a", {"tau nearest": 0.0, "tau shrunk": 0.4}),
            (1, "a", {"tau nearest": 0.2, "tau shrunk": 0.2}),
            (0, "b", {"tau nearest": 0.5, "tau shrunk": 0.5, "auc nearest": None}),
        )
    ]
    rows += [
        {"data": "zeroeval", "rule": "halves", "draw": n, "rank asked": 0.5, "rank shrunk": mean}
        for n, mean in enumerate((0.5, 0.7))
    ]
    head = "zeroeval, the other half of the models"
    lines = {row.label: row.here for row in make_diagnosis_table(rows).rows}
    tau = lines[f"{head}, 2 models: tau at 50 answers: nearest model"]
    # .1 and .5, .3 and .5
    assert (tau["paper"], tau["ours"]) == ("0.30", "0.40")
    order = f"{head}, 2 draws: tau of the order of models: share failed of the answers"
    assert lines[order]["ours"] == "0.60"
    assert len(lines) == 2


@needs_data
def test_a_model_is_diagnosed_on_fresh_prompts_and_its_hole_is_named() -> None:
    data = failure_scope.read_known_holes(SHARED / "real" / "known_holes")
    rows = {row["model"]: row for row in failure_scope.diagnose_again(data, 0)}
    assert len(rows) == 13
    named = [name for name, row in rows.items() if row["failing"] and row["leaves"] < 150]
    assert {"number_words#1", "capitals#1", "long_lists#1"} <= set(named)
    assert sum(row["wrong"] for row in rows.values()) <= 3


@needs_data
def test_models_of_one_half_are_ranked_by_the_leaves_of_the_other() -> None:
    data = failure_scope.read_mint(SHARED / "real" / "mint")
    rows = failure_scope.predict_halves(data, 0)
    assert sorted(row["model"] for row in rows if "model" in row) == data.models
    orders = [row for row in rows if "rank shrunk" in row]
    assert len(orders) == 2
    assert all(row["rank shrunk"] > 0.5 for row in orders)


@needs_data
@pytest.mark.slow
def test_leaves_predict_a_left_out_model_and_name_few_wrongly() -> None:
    data = failure_scope.read_mint(SHARED / "real" / "mint")
    rows = failure_scope.leave_out_models(data, 5)
    assert len(rows) == 5
    assert sum(row["wrong"] for row in rows) <= 1
    better = [row["tau shrunk"] - row["tau nearest"] for row in rows]
    assert np.mean(better) > 0
