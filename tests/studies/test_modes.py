"""The study of modes: collections are read as they are, and a miss is explained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault.errors import InputError, PlanError
from groundfault_studies import modes
from groundfault_studies.modes import explain_miss, read_worlds

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


def test_a_cause_is_named_and_a_study_goes_on_where_it_was(shared: Path) -> None:
    keep = shared / "rows.jsonl"
    settings = {"models": ("smollm2",), "sizes": (400,), "replicates": 1, "keep": keep}
    study = modes.study(shared, methods=("modes", "cart"), **settings)
    summary, detail = study.tables
    ours, tree = (row.here for row in summary.rows)
    assert (ours["first"], ours["top"], ours["chance"]) == ("1", "1", "0.0%")
    assert tree["draws"] == 1
    assert [row.here["named"] for row in detail.rows] == ["1/1"]
    again = modes.study(shared, methods=("modes", "cart"), stored=True, **settings)
    assert again.to_json() == study.to_json()


def test_a_miss_is_explained(shared: Path) -> None:
    data = read_worlds(shared / "real" / "smollm2")["prompts"]
    sports, odd = data.holes["sports"][1], np.arange(ROWS) % 7 == 0
    assert sports is not None
    assert explain_miss(data, sports, {"all": 0.9}) == "place"
    assert explain_miss(data, sports, {"all": 0.4}) == "width"
    assert explain_miss(data, sports, {"all": 0.1}) == "bar"
    assert explain_miss(data, odd, {"all": 0.1}) == "language"


def test_what_is_not_there_is_said(shared: Path) -> None:
    with pytest.raises(PlanError, match="no collection 'holes'; there are known_holes"):
        modes.study(shared, models=("holes",))
    with pytest.raises(InputError, match="does not hold what this study reads"):
        modes.study(shared, models=("known_causes",))
