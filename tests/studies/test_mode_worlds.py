"""Simulated worlds of failure modes: what is planted is there, nothing is named where nothing is,
and a mode's shadows are not named beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from groundfault.errors import PlanError
from groundfault_studies import mode_worlds
from groundfault_studies.mode_tables import SHAPES, TASKS, WEAK, plant
from groundfault_studies.mode_worlds import ALPHA, CELLS, confirm_planted, measure_one
from groundfault_studies.mode_worlds_tables import count_any
from groundfault_studies.rule_scores import jaccard
from groundfault_studies.validity import upper

NULLS = tuple(name for name, cell in CELLS.items() if cell.kind == "null")
SINGLES = tuple(name for name, cell in CELLS.items() if cell.kind == "one")
EACH = 1
FULL = 100


def most(worlds: int) -> int:
    """A count that a chance of alpha a world exceeds once in a thousand."""
    return int(binom.ppf(0.999, worlds, ALPHA))


# worlds


@pytest.mark.parametrize("shape", SHAPES)
def test_failures_are_where_they_were_planted(shape: Any) -> None:
    for number in range(3):
        table = plant(np.random.default_rng(number), 3000, 1, (shape,), base=0.1)
        [(words, holds)] = table.planted.items()
        assert (
            words.count(" AND ") == {"one": 0, "two": 1, "three": 2, "values": 1, "words": 0}[shape]
        )
        assert 0.03 <= holds.mean() <= 0.12
        assert set(table.chance[~holds]) == {0.1}
        assert len(set(table.chance[holds])) == 1
        assert 0.8 <= table.chance[holds][0] <= 0.95
        error = table.evidence(3000, np.random.default_rng(7)).loss.to_numpy()
        assert error[holds].mean() == pytest.approx(table.chance[holds][0], abs=0.15)
        assert error[~holds].mean() == pytest.approx(0.1, abs=0.03)


def test_six_modes_are_of_all_shapes_and_apart() -> None:
    table = plant(np.random.default_rng(4), 4000, 6)
    modes = list(table.planted.values())
    assert len(modes) == 6
    assert all(jaccard(a, b) < 0.3 for i, a in enumerate(modes) for b in modes[:i])
    assert sum("prompt has" in words for words in table.planted) in (1, 2)


@pytest.mark.parametrize("place", ["weak task", "strong task"])
def test_a_mode_can_lie_inside_a_task(place: Any) -> None:
    table = plant(np.random.default_rng(1), 4000, 1, ("one", "two"), place)
    [(words, holds)] = table.planted.items()
    [task] = set(table.frame["task"].to_numpy()[holds])
    assert f"task = {task}" in words
    elsewhere = table.chance[(table.frame["task"] == task).to_numpy() & ~holds]
    assert (elsewhere.mean() > 0.4) == (place == "weak task") == (task in WEAK)


def test_columns_follow_each_other() -> None:
    frame = plant(np.random.default_rng(2), 4000, 0).frame
    assert set(frame["task"]) == set(TASKS)
    assert 0.9 < (frame["negated"] == frame["contrast"]).mean() < 0.95
    family = frame.select("task", "family").to_dummies("family").group_by("task").mean()
    assert family.drop("task").max_horizontal().min() > 0.9
    assert np.corrcoef(frame["digits"], frame["steps"])[0, 1] > 0.5


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_can_be_drawn_and_tells_the_truth(name: str) -> None:
    world = CELLS[name].draw(np.random.default_rng(3))
    assert len(world.chance) == world.population.height >= world.evidence.unit_count
    expected = {"null": 0, "one": 1, "descriptor": 1}.get(CELLS[name].kind)
    assert expected in (None, len(world.planted))
    for mode in world.planted:
        assert world.chance[mode].mean() > world.chance[~mode].mean() + 0.1
    if CELLS[name].kind == "null":
        assert len(set(world.chance)) == 1


def test_the_oracle_tests_what_is_planted_alone() -> None:
    world = CELLS["three modes"].draw(np.random.default_rng(0))
    loss = world.evidence.loss.to_numpy()
    count = 0
    for mode in world.planted:
        on = mode[: len(loss)]
        # one tail of Fisher's exact test, summed term by term
        terms = range(int(loss[on].sum()), int(on.sum()) + 1)
        p = sum(hypergeom.pmf(k, len(loss), int(loss.sum()), int(on.sum())) for k in terms)
        count += p <= ALPHA / 3
    assert len(confirm_planted(world)) == count > 0


# error rates


def test_nothing_is_named_where_nothing_is() -> None:
    """A chance of at most alpha in each world is one of at most alpha in all; each cell alone, with
    more worlds, is in the slow test and in the study.
    """
    rows = [measure_one(name, "modes", i) for name in NULLS for i in range(EACH)]
    assert sum(row["modes"] > 0 for row in rows) <= most(len(rows))


def test_the_shadows_of_a_mode_are_not_named() -> None:
    rows = [measure_one(name, "modes", 0) for name in SINGLES]
    assert sum(row["conditional"] > 0 for row in rows) <= most(len(rows))
    assert sum(row["marginal"] > 0 for row in rows) <= most(len(rows))
    assert sum(row["modes"] > 0 for row in rows) >= len(rows) / 2, "the bound is kept by silence"


def test_a_method_without_a_guarantee_would_fail_this() -> None:
    rows = [measure_one("independent descriptors", "sliceline", i) for i in range(8)]
    assert sum(row["modes"] > 0 for row in rows) > most(8)
    rows = [measure_one("a descriptor, 8 proxies", "max-t", i) for i in range(8)]
    assert sum(row["conditional"] > 0 for row in rows) > most(8)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NULLS, *SINGLES])
def test_error_rates_in_earnest(name: str) -> None:
    rows = [measure_one(name, "modes", number) for number in range(FULL)]
    key = "modes" if name in NULLS else "conditional"
    assert sum(row[key] > 0 for row in rows) <= most(FULL)


# the study


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("24 units", "a descriptor, 8 proxies", "n = 160, prevalence 0.3, lift 0.3", "one mode")
    monkeypatch.setattr(mode_worlds, "CELLS", {name: CELLS[name] for name in names})
    monkeypatch.setattr(mode_worlds, "_BATCH", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_an_interrupted_study_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep, calls = tmp_path / "rows.jsonl", []
    real = mode_worlds.measure

    def count(*job: Any) -> mode_worlds.Rows:
        calls.append(job)
        return real(*job)

    monkeypatch.setattr(mode_worlds, "measure", count)
    settings: dict[str, Any] = {"methods": ("max-t", "oracle"), "replicates": 15, "keep": keep}
    whole = mode_worlds.study(**settings).to_json()
    assert len(calls) == 14
    lines = keep.read_text().splitlines(keepends=True)
    keep.write_text("".join(lines[:4]) + lines[4][:30])
    shown = mode_worlds.study(stored=True, **settings)
    assert [row.here["worlds"] for row in shown.tables[0].rows] == [2]
    assert len(calls) == 14
    assert mode_worlds.study(**settings).to_json() == whole
    assert len(calls) == 24


@pytest.mark.usefixtures("few")
def test_tables_say_what_was_counted() -> None:
    nulls, singles, planted, power = mode_worlds.study(
        methods=("max-t", "oracle"), replicates=4
    ).tables
    assert [row.label for row in nulls.rows] == ["24 units"]
    assert set(nulls.rows[0].here) == {"max-t", "worlds"}
    by_label = {row.label: row.here for row in singles.rows}
    assert by_label["a descriptor, 8 proxies: oracle"]["named"] == 1.0
    assert by_label["a descriptor, 8 proxies: oracle"]["modes"] == 1.0
    by_max_t = "one mode: single conditions by max-t (Westfall and Young)"
    assert [row.label for row in planted.rows] == [by_max_t, "one mode: oracle"]
    assert str(power.rows[0].here["oracle"]).endswith(" / 0.00")
    with pytest.raises(PlanError, match="no method 'magic'"):
        mode_worlds.study(methods=("magic",))
    with pytest.raises(PlanError, match="--out"):
        mode_worlds.study(stored=True)


def test_a_rate_stands_beside_its_bound() -> None:
    rows = [{"modes": 1}] * 3 + [{"modes": 0}] * 97
    assert count_any(rows, "modes") == f"3.0% (≤ {upper(3, 100):.1%})"
    assert count_any([], "modes") is None
