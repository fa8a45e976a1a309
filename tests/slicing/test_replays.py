"""Replays: what a search finds on permuted errors, and what is dealt out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from planted_tables import make_embedded_evidence

from groundfault import Candidate, Evidence, Plan
from groundfault_lab.slicing.proposals import propose
from groundfault_lab.slicing.replays import deal_outcomes, describe_chance, measure_chance

FLAGS = [f"c{j}" for j in range(8)]


@dataclass(frozen=True)
class WorstFlag:
    """Propose the flag whose examples fail most."""

    name: str = "worst-flag"
    uses_outcomes: bool = True

    def propose(self, discovery: Evidence) -> list[Candidate]:
        losses = discovery.loss
        rate = {f: losses.filter(discovery.frame[f]).mean() or 0.0 for f in FLAGS}
        worst = max(rate, key=rate.__getitem__)
        return [Candidate(worst, worst)]


def world(seed: int, lift: float = 0.0, rows: int = 160) -> Evidence:
    rng = np.random.default_rng(seed)
    flags = rng.random((rows, len(FLAGS))) < 0.3
    error = rng.random(rows) < 0.2 + lift * flags[:, 0]
    table = pl.DataFrame(flags, schema=FLAGS).with_columns(error=pl.Series(error.astype(int)))
    return Evidence.from_table(table, outcome="error")


def test_a_search_that_always_finds_a_slice_has_uniform_p_values_on_noise() -> None:
    p = [propose(world(s), WorstFlag(), permutations=9).rows[0].p for s in range(60)]
    assert all(one is not None for one in p)
    low = np.mean([one <= 0.2 for one in p])
    assert 0.02 < low < 0.2 + 3 * np.sqrt(0.16 / 60)


def test_what_is_planted_is_beyond_chance() -> None:
    result = propose(world(0, lift=0.6, rows=400), WorstFlag(), permutations=19)
    assert (result.rows[0].name, result.rows[0].p) == ("c0", 0.05)
    assert result.chance.endswith("in 0 of 19 searches on permuted errors")
    assert result.to_dict()["searches"] == 19


def test_what_was_fixed_in_advance_is_judged_by_the_largest_of_all() -> None:
    result = propose(world(1), "declared", permutations=19)
    assert len(result.rows) == len(FLAGS)
    assert min(row.p or 0 for row in result.rows) > 0.1
    assert result.chance.startswith("this is what chance gives: ")


def test_without_permutations_it_says_that_chance_was_not_computed() -> None:
    result = propose(world(1), WorstFlag())
    assert result.rows[0].p is None
    assert result.chance.endswith("how good chance makes them was not computed")


def test_rows_of_a_unit_stay_together_and_models_keep_their_rows() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"id": f"{g}-{i}", "group": g, "model": m, "error": rng.integers(0, 2)}
        for g in range(30)
        for i in range(1 + g % 3)
        for m in ("a", "b")[: 1 + g % 2]
    ]
    table = pl.DataFrame(rows).with_columns(mark=pl.int_range(pl.len()))
    evidence = Evidence.from_table(
        table, id="id", group="group", model="model", outcome="error", ignore=["mark"]
    )
    dealt = deal_outcomes(evidence, np.random.default_rng(1), ["mark"])
    home = {row["mark"]: row for row in evidence.frame.iter_rows(named=True)}
    pairs = [(row, home[row["mark"]]) for row in dealt.frame.iter_rows(named=True)]
    assert any(new["group"] != old["group"] for new, old in pairs)
    assert all(new["model"] == old["model"] for new, old in pairs)
    origins: dict[int, set[int]] = {}
    for new, old in pairs:
        origins.setdefault(new["group"], set()).add(old["group"])
    assert all(len(groups) == 1 for groups in origins.values())
    assert dealt.loss.to_list() == [float(old["error"]) for _, old in pairs]
    assert dealt.frame["error"].to_list() == [old["error"] for _, old in pairs]


def test_predictions_go_with_the_errors_that_they_make() -> None:
    evidence = make_embedded_evidence(120)
    finder = type("Finder", (), {"label": "label", "probability": None})()
    searches: list[Evidence] = []

    def search(discovery: Evidence) -> Sequence[Candidate]:
        searches.append(discovery)
        return [Candidate("late", "id >= 60")]

    p = measure_chance(
        evidence, search(evidence), search, finder, searches=3, rng=np.random.default_rng(0)
    )
    assert 0.25 <= p[0] <= 1
    columns = [c for c in evidence.frame.columns if c.startswith("probability") or c == "label"]
    for dealt in searches[1:]:
        before, after = (e.frame.select(*columns, "error").rows() for e in (evidence, dealt))
        assert sorted(map(str, before)) == sorted(map(str, after))
        assert dealt.frame["id"].to_list() == evidence.frame["id"].to_list()


@pytest.mark.parametrize(
    ("best", "words"),
    [
        (None, "was not computed"),
        (0.55, "this is what chance gives: 21 of 39"),
        (0.025, "in 0 of 39"),
    ],
)
def test_the_sentence_says_that_slices_are_found_in_noise_too(
    best: float | None, words: str
) -> None:
    sentence = describe_chance(best, 39)
    assert words in sentence
    assert "slices are always found, also in noise" in sentence


def test_the_same_seed_gives_the_same_p_values() -> None:
    rows = [propose(world(2), WorstFlag(), Plan(seed=5), permutations=9).rows for _ in range(2)]
    assert rows[0] == rows[1]
