"""Failure modes by counts: those of memory where a table is small, else judged by other rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from lazy_tables import make_table, write_parts

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing import counted_audit, lazy_evidence
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.report import Report
from groundfault.render.mode_words import ModeOutline

COLUMNS: dict[str, Any] = {"outcome": "error", "id": "id", "null_outcome": "missing"}


def make_modes_table(n: int = 3000) -> pl.DataFrame:
    """Two modes: ``hard``, and long German ones; a column whose gaps go with failing."""
    rng = np.random.default_rng(8)
    lang, size = rng.choice(["de", "en", "fr"], n), rng.integers(0, 8, n)
    hard = rng.random(n) < 0.2
    chance = np.where((lang == "de") & (size >= 4), 0.85, np.where(hard, 0.6, 0.1))
    error = rng.random(n) < chance
    lost = pl.Series(rng.normal(size=n))
    table = pl.DataFrame(
        {"id": np.arange(n), "error": error.astype(int), "hard": hard, "n": size, "lang": lang}
    )
    return table.with_columns(
        lost=pl.when(pl.col("error") == 1).then(None).otherwise(lost),
        error=pl.when(pl.int_range(n) % 50 == 0).then(None).otherwise("error"),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("modes") / "table", make_modes_table())


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are drawn, so that this table is a large one."""
    for module in (lazy_evidence, counted_audit):
        monkeypatch.setattr(module, "SAMPLE", 800)


def audit(place: Path, engine: str = "polars", **settings: Any) -> Report:
    lazy = LazyEvidence.scan(place, engine=engine, **COLUMNS)
    return groundfault.audit(lazy, Plan(judge="holm"), ledger=None, **settings)


def test_a_small_table_has_the_modes_of_memory(tmp_path: Path) -> None:
    place = write_parts(tmp_path / "table", make_table(600))
    rules = [Candidate("long ones", "n > 50", missing="off")]
    here = groundfault.audit(
        Evidence.from_table(place, **COLUMNS), Plan(judge="holm"), rules, ledger=None
    )
    there = audit(place, candidates=rules)
    assert here.modes
    assert (there.modes, there.mode_search) == (here.modes, here.mode_search)


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_numbers_of_modes_are_of_the_rows_that_were_not_searched(folder: Path, engine: str) -> None:
    report = audit(folder, engine, texts=False)
    search = report.mode_search
    assert search is not None
    assert search.searched is not None
    assert 700 < search.searched < 900
    assert [mode.rule for mode in report.modes] == ['"n" >= 4 AND "lang" = \'de\'', '"hard"']
    lazy = LazyEvidence.scan(folder, **COLUMNS)
    sample = lazy.take(lazy.find_sample(Plan(judge="holm"), 3000, holdout=False))
    rest = make_modes_table().filter(
        ~pl.col("id").is_in(sample.frame["id"].implode()), pl.col("error").is_not_null()
    )
    (coverage,) = search.outcomes
    assert (coverage.n, coverage.errors) == (rest.height, rest["error"].sum())
    earlier = pl.Series([False] * rest.height)
    for mode in report.modes:
        on = mode.holds(rest)
        inside, new = rest.filter(on)["error"], rest.filter(on & ~earlier)["error"]
        assert (mode.n, mode.errors) == (len(inside), inside.sum())
        assert (mode.n_new, mode.errors_new) == (len(new), new.sum())
        assert mode.n_outside == rest.height - len(inside)
        assert {example.side for example in mode.sample} == {"failing", "passing", "near"}
        earlier |= on
    assert coverage.covered == earlier.sum()
    assert "drawn by their ids" in search.remarks[0]
    assert f"{search.searched} rows" in ModeOutline(report).guarantee


@pytest.mark.usefixtures("sampled")
def test_what_only_the_sample_shows_is_no_mode(tmp_path: Path) -> None:
    """Failures go with a column in the sample, and nowhere else."""
    table = make_modes_table().drop("lost").with_columns(pl.col("error").fill_null(0))
    lazy = LazyEvidence.scan(write_parts(tmp_path / "table", table), outcome="error", id="id")
    sample = lazy.find_sample(Plan(judge="holm"), 3000, holdout=False)
    drawn = pl.col("id").is_in(lazy.take(sample).frame["id"].implode())
    error = pl.when(drawn).then("error").otherwise(pl.int_range(3000) % 4 == 0).cast(int)
    place = write_parts(tmp_path / "table", table.with_columns(error=error))
    report = audit(place)
    assert report.modes == ()
    search = report.mode_search
    assert search is not None
    assert "number 1 did not stand in the other rows" in search.remarks[1]


@pytest.mark.usefixtures("sampled")
def test_noise_has_no_mode_and_all_other_rows_are_counted(tmp_path: Path) -> None:
    table = make_modes_table().select("id", "hard", "lang", error=pl.int_range(pl.len()) % 5 == 0)
    report = audit(write_parts(tmp_path / "table", table))
    search = report.mode_search
    assert search is not None
    assert search.searched is not None
    (coverage,) = search.outcomes
    assert (report.modes, coverage.n, coverage.covered) == ((), 3000 - search.searched, 0)


@pytest.mark.usefixtures("sampled")
def test_a_report_with_modes_verifies(folder: Path, tmp_path: Path) -> None:
    report = audit(folder, texts=False)
    report.write(tmp_path / "report")
    assert groundfault.verify(tmp_path / "report", evidence=folder).reproduces
