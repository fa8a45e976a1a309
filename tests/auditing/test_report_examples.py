"""Examples of a report are looked up in its evidence: of any rule, and of each model."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from msgspec import structs
from runs import make_runs

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import look_up_examples
from groundfault.auditing.report_schema import Derivation
from groundfault.errors import InputError


def write_report(place: Path, models: int = 1, **settings: object) -> Report:
    frames = [
        pl.DataFrame(
            {
                "id": [f"e{i:03}" for i in range(200)],
                "model": f"m{model}",
                "lang": ["de", "en"] * 100,
                "n": [i % 7 for i in range(200)],
                "reply": [f"m{model} says {i}" for i in range(200)],
                "error": [int(i % 2 == 0 and i % 7 > model) for i in range(200)],
            }
        )
        for model in range(models)
    ]
    pl.concat(frames).write_csv(place / "table.csv")
    role = {"model": "model"} if models > 1 else {"ignore": ["model"]}
    evidence = Evidence.from_table(place / "table.csv", id="id", outcome="error", **role)
    candidates = [Candidate("german", "lang = 'de'"), Candidate("small", "n < 2")]
    report = groundfault.audit(evidence, Plan(), candidates, **settings)
    report.write(place / "report")
    return report


def test_each_model_shows_its_own_answers(tmp_path: Path) -> None:
    report = write_report(tmp_path, models=2)
    for number, mode in enumerate(report.modes, 1):
        lookup = look_up_examples(tmp_path / "report", number, count=3)
        assert lookup.subject == mode
        if mode.outcome in ("m0", "m1"):
            assert all(e.texts["reply"].startswith(mode.outcome) for e in lookup.examples)
    lookup = look_up_examples(tmp_path / "report", "german · m1", count=3)
    assert all(e.texts["reply"].startswith("m1") for e in lookup.examples)
    assert all(e.texts["lang"] == "de" for e in lookup.examples)


def test_a_finding_of_fewer_failures_is_known_by_the_side_that_is_told(tmp_path: Path) -> None:
    report = write_report(tmp_path)
    (small,) = (f for f in report.findings if f.name == "small")
    assert small.opposite is not None
    lookup = look_up_examples(tmp_path / "report", small.opposite.name, count=8)
    assert all(int(e.texts["n"]) >= 2 for e in lookup.examples)
    assert lookup.examples


def test_failing_examples_of_a_comparison_are_those_that_got_worse(tmp_path: Path) -> None:
    frame = make_runs(n=1500, shift=0.3).with_columns(answer=pl.col("run") + pl.col("id"))
    frame.write_parquet(tmp_path / "runs.parquet")
    evidence = groundfault.Evidence.from_table(
        tmp_path / "runs.parquet", id="id", model="run", outcome="error", ignore=("answer",)
    )
    report = groundfault.audit(evidence, compare=("old", "new"), ledger=False)
    report.write(tmp_path / "report")
    wide = frame.pivot("run", index=["id", "hard"], values="error")
    worse = wide.filter((pl.col("new") > pl.col("old")) & pl.col("hard"))["id"].to_list()
    rows = look_up_examples(tmp_path / "report", "hard", side="failing", count=5).examples
    assert rows
    assert {row.id for row in rows} <= set(worse)


def test_near_ones_of_one_condition_are_all_others(tmp_path: Path) -> None:
    write_report(tmp_path)
    lookup = look_up_examples(tmp_path / "report", "german", side="near")
    assert {e.texts["lang"] for e in lookup.examples} == {"en"}


def test_moved_evidence_is_read_where_it_is(tmp_path: Path) -> None:
    write_report(tmp_path)
    (tmp_path / "table.csv").rename(tmp_path / "moved.csv")
    with pytest.raises(InputError, match="is not there"):
        look_up_examples(tmp_path / "report", "german")
    assert look_up_examples(tmp_path / "report", "german", evidence=tmp_path / "moved.csv").examples


def test_derived_evidence_cannot_be_shown(tmp_path: Path) -> None:
    report = write_report(tmp_path)
    derived = structs.replace(report.manifest, derivation=Derivation(kind="taxonomy", settings={}))
    structs.replace(report, manifest=derived).to_json(tmp_path / "report" / "report.json")
    with pytest.raises(InputError, match="made from others"):
        look_up_examples(tmp_path / "report", "german")
