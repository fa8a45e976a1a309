"""The study of modes: collections are read as they are, and a miss is explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.errors import InputError, PlanError
from groundfault_lab.commands.study import STUDIES, study as command
from groundfault_studies import modes
from groundfault_studies.cause_tables import Part, make_tables, show_mean
from groundfault_studies.modes import explain_miss, read_worlds
from groundfault_studies.tables import PaperStudy

ROWS = 600


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A collection of one table with one cause, one world without, and rows not answered."""
    rng, place = np.random.default_rng(0), tmp_path / "real" / "smollm2"
    place.mkdir(parents=True)
    frame = pl.DataFrame(
        {
            "example_id": [f"e{i}" for i in range(ROWS)],
            "topic": rng.choice(["sports", "music", "food"], ROWS),
            "shard": rng.integers(0, 4, ROWS),
            "size": rng.normal(size=ROWS).round(2),
        }
    )
    region = (frame["topic"] == "sports").to_numpy()
    broken = (rng.random(ROWS) < np.where(region, 0.8, 0.1)).astype(float)
    plain = pl.Series((rng.random(ROWS) < 0.2).astype(float)).scatter([0, 1, 2], None)
    frame.write_parquet(place / "prompts.parquet")
    pl.DataFrame({"sports": broken, "plain": plain}).write_parquet(place / "outcomes.parquet")
    pl.DataFrame({"sports": region}).write_parquet(place / "inside.parquet")
    worlds = [
        {"id": "sports", "kind": "input", "cause": "no sports", "rule": "topic = sports"},
        {"id": "plain", "kind": "control", "cause": "no bug"},
        {"id": "twice", "kind": "null", "cause": "the same twice", "old": "plain", "new": "plain"},
    ]
    (place / "worlds.json").write_text(json.dumps(worlds))
    return tmp_path


def without_times(study: PaperStudy) -> str:
    for table in study.tables:
        for row in table.rows:
            row.here.pop("seconds", None)  # type: ignore[attr-defined]
    return study.to_json()


def test_a_study_counts_what_it_says(shared: Path) -> None:
    settings = {"models": ("smollm2",), "sizes": (300, 400), "replicates": 2}
    study = modes.study(shared, methods=("modes", "cart"), **settings)
    named, missed, rates, small, large = study.tables
    assert [row.label for row in named.rows[:2]] == ["n = 300: causes", "failure modes"]
    assert [row.here["smollm2"] for row in named.rows[:2]] == ["1", "1.0 / 1.0"]
    assert [(row.here["300"], row.here["400"]) for row in missed.rows] == [("2 of 2", "2 of 2")]
    assert [row.here["draws"] for row in rates.rows] == [2, 2]
    assert [table.title for table in (small, large)] == [
        "Pipelines of a chat model with a bug, n = 300",
        "Pipelines of a chat model with a bug, n = 400",
    ]
    assert large.rows[0].here["chance"] == "0.0%"


def test_an_interrupted_study_goes_on(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep, calls = shared / "out" / "rows.jsonl", []
    real = modes.measure

    def count(*job: Any) -> modes.Rows:
        calls.append(job)
        return real(*job)

    monkeypatch.setattr(modes, "measure", count)
    settings: dict[str, Any] = {"models": ("smollm2",), "sizes": (100,), "replicates": 2}
    settings |= {"methods": ("cart", "sliceline"), "keep": keep}
    whole = without_times(modes.study(shared, **settings))
    assert len(calls) == 8
    lines = keep.read_text().splitlines(keepends=True)
    keep.write_text("".join(lines[:5]) + lines[5][:40])  # killed while it wrote the sixth
    before = keep.read_bytes()
    shown = modes.study(shared, stored=True, **settings)
    assert keep.read_bytes() == before, "a look at a study that runs must not write to its file"
    assert [row.here.get("draws") for row in shown.tables[0].rows] == [None, 1, 1]
    assert len(calls) == 8
    assert without_times(modes.study(shared, **settings)) == whole
    assert len(calls) == 11


@pytest.mark.slow
def test_processes_do_not_change_the_answer(shared: Path) -> None:
    settings: dict[str, Any] = {"models": ("smollm2",), "sizes": (100,), "replicates": 2}
    settings |= {"methods": ("cart",)}
    alone = modes.study(shared, **settings)
    assert without_times(modes.study(shared, jobs=2, **settings)) == without_times(alone)


def test_rows_of_other_data_are_not_taken(shared: Path) -> None:
    settings: dict[str, Any] = {"models": ("smollm2",), "sizes": (100,), "replicates": 1}
    settings |= {"methods": ("cart",), "keep": shared / "rows.jsonl"}
    modes.study(shared, **settings)
    table = shared / "real" / "smollm2" / "prompts.parquet"
    pl.read_parquet(table).with_columns(pl.col("size") + 1).write_parquet(table)
    read_worlds.cache_clear()
    with pytest.raises(PlanError, match="holds no part of this study"):
        modes.study(shared, stored=True, **settings)


# its tables


def make_row(model: str, draw: int, first: float | None, **more: Any) -> dict[str, Any]:
    scores = {"first": first, "top": first, "all": first, "modes": 1, "seconds": 1.0}
    scores |= dict.fromkeys(("marginal", "conditional", "chance", "covered", "inside"), 0)
    return {"method": "modes", "model": model, "n": 100, "draw": draw} | scores | more


PART = Part("smollm2", 100, {"a": "topic = sports", "b": "size > 1", "c": None})
LABELS = {"modes": "failure modes"}, {"smollm2": "pipelines"}


def test_a_mean_over_draws_has_the_interval_of_student() -> None:
    # by hand: mean 2, sd 1, half width 4.303 / sqrt(3)
    assert show_mean([1, 2, 3], "{:.2f}") == "2.00 ± 2.48"
    assert show_mean([4], "{:.1f}") == show_mean([4, 4], "{:.1f}") == "4.0"
    assert show_mean([], "{:.1f}") is None


def test_a_draw_counts_once_all_worlds_are_there() -> None:
    rows = [make_row("a", 0, 0.9), make_row("b", 0, 0.3), make_row("c", 0, None)]
    rows.append(make_row("a", 1, 0.9))
    named = make_tables(rows, [PART], *LABELS)[0]
    assert [row.here.get("draws") for row in named.rows] == [None, 1]
    assert [row.here["smollm2"] for row in named.rows] == ["2", "1.0 / 1.0"]


def test_misses_are_counted_by_reason() -> None:
    reasons = ["bar", "choice", "bar"]
    rows = [make_row("a", draw, 0.1, why=why) for draw, why in enumerate(reasons)]
    rows += [make_row("b", draw, 0.9) for draw in range(3)]
    missed = make_tables(rows, [PART], *LABELS)[1]
    assert [(row.label, row.here["100"]) for row in missed.rows] == [
        ("all pipelines", "3 of 6: bar 2, choice 1"),
        ("a", "0 of 3: bar 2, choice 1"),
    ]
    assert "1 causes that every sample names are left out" in missed.note


def test_rates_are_compared_with_rows_that_were_not_seen() -> None:
    # 50 % of 400 fresh rows fail; .9 is expected in the one mode, .55 in the other
    rates = [[0.95, 0.9, 0.85, 0.95, 400, 200.0], [0.6, 0.55, 0.5, 0.6, 400, 200.0]]
    few = [0.9, 0.9, 0.8, 1.0, 19, 0.0]
    rows = [make_row(m, d, 0.9, rates=[*rates, few]) for m in PART.causes for d in (0, 1)]
    table = make_tables(rows, [PART], *LABELS)[2]
    assert table.rows[0].here == {
        "modes": 12, "covers": "50.0%", "expected": "22.5", "inside": "27.5", "draws": 2
    }  # fmt: skip


def test_a_miss_is_explained(shared: Path) -> None:
    data = read_worlds(shared / "real" / "smollm2")["prompts"]
    sports, odd = data.holes["sports"][1], np.arange(ROWS) % 7 == 0
    assert sports is not None
    assert explain_miss(data, sports, {"all": 0.9}) == "place"
    assert explain_miss(data, sports, {"all": 0.4}) == "choice"
    assert explain_miss(data, sports, {"all": 0.1}) == "bar"
    assert explain_miss(data, odd, {"all": 0.1}) == "language"


def test_what_is_not_there_is_said(shared: Path) -> None:
    with pytest.raises(PlanError, match="no collection 'holes'; there are known_holes"):
        modes.study(shared, models=("holes",))
    with pytest.raises(InputError, match="does not hold what this study reads"):
        modes.study(shared, models=("known_causes",))
    with pytest.raises(PlanError, match="no method 'magic'; there are modes"):
        modes.study(shared, methods=("magic",))
    with pytest.raises(PlanError, match="--out"):
        modes.study(shared, models=("smollm2",), stored=True)
    with pytest.raises(InputError, match=r"no folder .*nowhere.*--shared"):
        modes.study(shared / "nowhere")


def test_a_library_that_is_not_there_is_lacking(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("groundfault_studies.rule_methods.find_spec", lambda name: None)
    settings: dict[str, Any] = {"models": ("smollm2",), "sizes": (100,), "replicates": 1}
    result = modes.study(shared, methods=("cart", "rulefit"), **settings)
    assert result.lacking == ("RuleFit (imodels): pip install imodels",)
    assert [row.label for row in result.tables[0].rows] == ["n = 100: causes", "tree (CART)"]


def test_the_command_takes_lists(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES.built_in, "modes", "groundfault_studies.modes:study")
    words = ["modes", "--shared", str(shared), "--models", "smollm2", "--sizes", "100,150"]
    words += ["--methods", "cart, sliceline", "--replicates", "1"]
    words += ["--out", str(shared / "tables")]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    kept = {place.name: place.read_text() for place in (shared / "tables").iterdir()}
    assert set(kept) == {"modes.rows.jsonl", "modes.md", "modes.json"}
    assert len(kept["modes.rows.jsonl"].splitlines()) == 8
    wrong = CliRunner().invoke(command, ["modes", "--sizes", "many"])
    assert "whole numbers" in str(wrong.exception)
