"""Label cost: medians of the same draws, the paper's best bet, and that it resumes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from groundfault.sequential import Pool, SequentialPlan, policies
from groundfault_studies import label_cost
from groundfault_studies.written_cases import BEFORE, CASES, label_written

VERDICTS = (
    {"verdict": "audit passed", "right": "audit passed"},
    {"verdict": "audit passed", "right": "failure mode found"},
    {"verdict": "inconclusive", "right": "failure mode found"},
)


def make_rows(paper: dict[str, list[int]], ours: list[int]) -> pl.DataFrame:
    rows = [
        {
            "setting": "a",
            "rule": rule,
            "bet": bet,
            "draw": draw,
            "labels": count,
            **VERDICTS[draw % 3],
        }
        for rule, bets in (("paper", paper), ("guaranteed", paper), ("default", {"default": ours}))
        for bet, counts in bets.items()
        for draw, count in enumerate(counts)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("ours", "aim"), [(50, "reached"), (85, "reached"), (90, "not reached"), (130, "not reached")]
)
def test_the_default_is_compared_with_the_bet_of_lowest_median(ours: int, aim: str) -> None:
    here = label_cost.compare_rules(make_rows({"lr": [100] * 9, "sr-lr": [120] * 9}, [ours] * 9), 9)
    assert (here["paper"], here["guaranteed"], here["default"]) == ("100 (lr)",) * 2 + (str(ours),)
    change = f"{ours - 100:+d}%".replace("-", "−")
    assert here["from paper"] == here["from guaranteed"] == f"{change} [{change}, {change}]: {aim}"
    assert here["wrong"] == "33% / 33% / 33%"


def test_where_draws_differ_too_much_nothing_is_shown() -> None:
    rng = np.random.default_rng(0)
    ours = rng.integers(20, 180, 9).tolist()
    here = label_cost.compare_rules(make_rows({"lr": [100] * 9}, ours), 9)
    assert str(here["from paper"]).endswith("not shown")


def test_one_draw_has_no_interval_and_several_settings_are_resampled_whole() -> None:
    one = make_rows({"lr": [100]}, [50])
    assert label_cost.compare_rules(one, 1)["from paper"] == "−50%, of one draw"
    two = pl.concat([one, one.with_columns(setting=pl.lit("b"), labels=pl.col("labels") * 2)])
    assert label_cost.compare_rules(two, 2)["from paper"] == "−50% [−50%, −50%]: reached"


def test_draws_of_prompts_have_groups_of_a_twentieth(shared: Path) -> None:
    draw = label_cost._draw_prompts(shared, "number_words#1", 1)
    assert (len(draw.pool), len(draw.scores), draw.budget) == (500, 500, 250)
    assert (draw.pool.sizes >= 25).all()
    assert draw.right == "failure mode found"
    assert "number_style=words" in draw.pool.groups


def test_a_default_audit_of_the_pool(shared: Path) -> None:
    [row] = label_cost.audit_draw(shared, "pool", "Large", "default", 1)
    assert row["verdict"] == row["right"] == "failure mode found"
    assert 5 < row["labels"] < 100


@pytest.mark.slow
def test_a_study_that_was_stopped_goes_on(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_cost, "DEGRADATIONS", ("Large",))
    monkeypatch.setattr(label_cost, "HOLE_REPLICATES", 0)
    keep = tmp_path / "rows.jsonl"
    first: Any = label_cost.study(shared, replicates=2, keep=keep)
    assert [row.label for row in first.tables[0].rows] == ["pool: Large, 2 draws"]
    again = label_cost.study(shared, replicates=2, keep=keep, progress=pytest.fail)
    assert again == first


@pytest.mark.slow
def test_an_earlier_audit_saves_labels_and_a_repaired_model_is_not_accused(shared: Path) -> None:
    rules = ("default", "prior", "sibling")
    labels = {
        rule: label_cost.audit_draw(shared, "known_holes", "number_words#1", rule, 1)[0]["labels"]
        for rule in rules
    }
    assert max(labels["prior"], labels["sibling"]) <= 0.7 * labels["default"]
    rows = label_cost.audit_draw(shared, label_cost.REPAIRED, "number_words#1", "prior", 1)
    assert len(rows) == 4
    assert sum(row["verdict"] == "failure mode found" for row in rows) <= 1


def test_a_grader_saves_labels_and_accuses_no_model_at_the_threshold(shared: Path) -> None:
    labels = {
        rule: label_cost.audit_draw(shared, "known_holes", "capitals#1", rule, 1)[0]
        for rule in ("pool", "grader 90")
    }
    assert {row["verdict"] for row in labels.values()} == {"failure mode found"}
    assert labels["grader 90"]["labels"] <= 0.7 * labels["pool"]["labels"]
    rows = label_cost.audit_draw(shared, label_cost.AT_THRESHOLD, "five groups", "grader 70", 1)
    assert [row["right"] for row in rows] == ["audit passed"] * 4
    assert sum(row["verdict"] == "failure mode found" for row in rows) <= 1
    pool, groups = label_cost._draw_at_threshold(shared, "five groups", 1).pool, 5
    for scores, _ in label_cost._list_null_worlds(1):
        assert (pool.members @ scores / pool.sizes == 0.85).all()
        assert len(pool.groups) == groups + 1


@pytest.mark.parametrize(
    ("seed", "about_written", "labels"),
    # found before any case is written; by the written cases; by the pool after them
    [(3, False, range(1, BEFORE)), (4, True, range(BEFORE, 61)), (0, False, range(61, 110))],
)
def test_written_cases_are_labelled_after_the_first_labels(
    seed: int, about_written: bool, labels: range
) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(list("abcd"), 250)
    whole = Pool.from_arrays([f"{i:04d}" for i in range(1000)], {"group": groups})
    passes = (rng.random(1000) > np.where(groups == "a", 0.35, 0.05)).astype(float)
    asked = np.sort(rng.choice(1000, 200, replace=False))
    pool = Pool.from_arrays([whole.ids[i] for i in asked], {"group": groups[asked]})
    plan = SequentialPlan(threshold=0.9, budget=150, seed=seed)
    policy = policies.get(SequentialPlan.policy)
    verdict, spent, right = label_written(pool, plan, policy, passes[asked], whole, passes, asked)
    assert verdict == "failure mode found"
    assert spent in labels
    assert right == (verdict if about_written else None)


def test_cases_written_for_a_doubted_group_save_no_labels_on_one_network(shared: Path) -> None:
    [row] = label_cost.audit_draw(shared, "known_holes", "number_words#1", "written", 1)
    [plain] = label_cost.audit_draw(shared, "known_holes", "number_words#1", "default", 1)
    assert row["verdict"] == row["right"] == plain["verdict"]
    assert plain["labels"] < row["labels"] <= plain["labels"] + CASES
