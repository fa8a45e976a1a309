"""Lazy evidence: what is drawn from it, and what it refuses."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from lazy_tables import make_table, write_parts

from groundfault.auditing.lazy_evidence import (
    LazyEvidence,
    key_outcomes,
    read_keys,
    require_few_outcomes,
    sum_statuses,
)
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.roles import Roles
from groundfault.core.row_names import sampler_of
from groundfault.core.rules import quote
from groundfault.errors import InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("lazy") / "table", make_table(400))


def scan(folder: Path, **roles: object) -> LazyEvidence:
    settings = {"outcome": "error", "id": "id", "null_outcome": "missing"} | roles
    return LazyEvidence.scan(folder, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_the_split_is_the_md5_of_seed_and_id(folder: Path, engine: str) -> None:
    lazy, plan = scan(folder, engine=engine), Plan(seed=7, holdout="0.25")
    parts = lazy.counter.evaluate({"id": quote("id"), "part": lazy.find_part(plan)}, "n >= 0")
    for name, is_discovery in parts.iter_rows():
        digest = hashlib.md5(f"7/{name}".encode(), usedforsecurity=False).hexdigest()
        assert is_discovery == (int(digest[:8], 16) < 0.75 * 2**32)
    assert 0.65 < parts["part"].mean() < 0.85


def test_a_sample_has_no_row_of_the_holdout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groundfault.auditing.lazy_evidence.SAMPLE", 100)
    lazy, plan = scan(folder), Plan()
    sample = lazy.take(lazy.find_sample(plan, 400, holdout=True))
    discovery = lazy.take(lazy.find_part(plan))
    assert 60 < len(sample) < 140
    assert set(sample.frame["id"]) < set(discovery.frame["id"])
    by_column = scan(folder, split="part")
    words = by_column.take(by_column.find_sample(plan, 400, holdout=True)).frame["part"]
    assert set(words) == {"discovery"}
    everywhere = lazy.take(lazy.find_sample(plan, 400, holdout=False))
    assert not set(everywhere.frame["id"]) <= set(discovery.frame["id"])


def test_the_hash_is_of_the_files_and_not_of_their_names(folder: Path, tmp_path: Path) -> None:
    first = scan(folder)
    copy = write_parts(tmp_path / "copy", make_table(400))
    (copy / "a.parquet").rename(copy / "z.parquet")
    assert scan(copy).hash == first.hash
    assert scan(folder, id="n").outcome_hash != first.outcome_hash
    make_table(401).write_parquet(copy / "z.parquet")
    assert scan(copy).hash != first.hash


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_ledger_gets_the_rows_that_it_gets_in_memory(
    folder: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rows in (("ROWS", 40), ("MOST_ROWS", 60)):
        monkeypatch.setattr(f"groundfault.base.row_sketch.{name}", rows)
    monkeypatch.setattr("groundfault.auditing.lazy_evidence._DRAWN", 150)
    whole = Evidence.from_table(folder, outcome="error", id="id", null_outcome="missing")
    lazy, salt = scan(folder, engine=engine), "0a" * 16
    here, there = sampler_of(whole)(salt), lazy.sample_outcomes(400)(salt)
    assert there.to_json() == here.to_json()
    assert 40 <= len(there.keys) <= 60
    # a draw that is smaller than a sample ends where the draw does
    monkeypatch.setattr("groundfault.auditing.lazy_evidence._DRAWN", 30)
    few = lazy.sample_outcomes(400)(salt)
    assert 10 < len(few.keys) < 40
    assert few.places is not None
    assert few.places.max() <= few.bound < here.bound
    assert set(few.keys) < set(here.keys)


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"id": "lost"}, "text or whole numbers"),
        ({"id": "nowhere"}, "no column 'nowhere'"),
        ({"outcome": "correct"}, "correct"),
        ({"ignore": ("nowhere",)}, "no column 'nowhere'"),
    ],
)
def test_roles_that_cannot_be_are_refused(folder: Path, roles: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        scan(folder, **roles)


def test_an_id_of_two_rows_shows_in_the_sample(tmp_path: Path) -> None:
    table = make_table(200)
    place = write_parts(tmp_path / "twice", pl.concat([table, table]))
    lazy = scan(place)
    with pytest.raises(InputError, match="share their key"):
        lazy.take(lazy.find_sample(Plan(), 400, holdout=False))


ROLES = Roles("passed", "id", status="status", positive_is_good=True)


def test_cells_have_the_losses_of_their_rows() -> None:
    by = key_outcomes(ROLES)
    assert by == {"outcome": '"passed"', "status": '"status"'}
    assert key_outcomes(Roles("error", "id")) == {"outcome": '"error"'}
    keys = pl.DataFrame({"outcome": [0.25, 1, None], "status": ["scored", "Refused", "missing"]})
    loss, status = read_keys(keys, ROLES, "table")
    np.testing.assert_array_equal(loss, [0.75, np.nan, np.nan])
    rows = np.array([5, 3, 2])
    assert sum_statuses(status, rows) == {"scored": 5, "refused": 3, "missing": 2}
    with pytest.raises(InputError, match="table: status 'lost'"):
        read_keys(keys.with_columns(status=pl.lit("lost")), ROLES, "table")


def test_columns_of_many_values_are_refused_before_they_are_cells() -> None:
    sample = pl.DataFrame({"passed": np.arange(102) / 101, "status": "scored"})
    with pytest.raises(InputError, match=r"'passed' has over 101 values .* at most 101 grades"):
        require_few_outcomes(sample, ROLES)
    require_few_outcomes(sample, ROLES, most=102)
    many = sample.with_columns(status=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(InputError, match="'status' has over 20 values"):
        require_few_outcomes(many, ROLES, most=102)
