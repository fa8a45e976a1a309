"""No honest table ends an audit in an exception that is not the package's own."""

from __future__ import annotations

import datetime as dt
import json
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from odd_tables import draw_table
from profiles import count_examples

import groundfault
from groundfault.cli.main import cli
from groundfault.errors import GroundfaultError, InputError

seeds = st.integers(0, 2**32 - 1)
FINDERS = ["thresholds", "categories", "interactions:2", "tree"]


def read(table: pl.DataFrame, **roles: str) -> groundfault.Evidence:
    return groundfault.Evidence.from_table(table, outcome="error", **roles)


@settings(max_examples=count_examples(10_000, fast=10))
@given(seeds)
def test_an_audit_of_any_table_is_a_report_or_one_clear_error(seed: int) -> None:
    with warnings.catch_warnings(), suppress(GroundfaultError):
        warnings.simplefilter("ignore", UserWarning)
        json.loads(groundfault.audit(read(draw_table(seed)), ledger=None).to_json())


@settings(max_examples=count_examples(2_000, fast=4))
@given(seeds)
def test_checks_finders_models_and_comparisons_take_any_table(seed: int) -> None:
    table = draw_table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with suppress(GroundfaultError):
            groundfault.check(read(table))
        with suppress(GroundfaultError):
            groundfault.audit(read(table), finders=FINDERS, ledger=None).to_json()
        # the models share every example, or none
        rows = np.arange(len(table))
        two = table.with_columns(
            example=pl.Series(rows // 2 if seed % 2 else rows),
            model=pl.Series(np.where(rows % 2 == 0, "a", "b")),
        )
        for compare in (None, ("a", "b")):
            with suppress(GroundfaultError):
                evidence = read(two, id="example", model="model")
                groundfault.audit(evidence, compare=compare, ledger=None).to_json()


SIZE = 120
PLAIN = [float(i % 7) for i in range(SIZE)]
ODD: dict[str, pl.Series] = {
    "count": pl.Series(["alpha beta", "beta", "gamma alpha"] * 40),
    "literal": pl.Series(["alpha beta", "beta", "gamma alpha"] * 40),
    "a duration": pl.Series([dt.timedelta(seconds=i % 9) for i in range(SIZE)]),
    "bytes": pl.Series([b"\xff\x00a"[: i % 4] for i in range(SIZE)], dtype=pl.Binary),
    "128 bits": pl.Series([i % 5 << 70 for i in range(SIZE)], dtype=pl.Int128),
    "infinite": pl.Series([float("inf") if i % 5 == 0 else x for i, x in enumerate(PLAIN)]),
    "not a number": pl.Series([float("nan") if i % 5 == 0 else x for i, x in enumerate(PLAIN)]),
    "of one model": pl.Series([x if i % 2 else None for i, x in enumerate(PLAIN)]),
    "empty": pl.Series([None] * SIZE, dtype=pl.Float64),
    "objects": pl.Series([object()] * SIZE, dtype=pl.Object),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("finders", [None, FINDERS], ids=["default", "finders"])
@pytest.mark.parametrize("ways", ["one model", "two models", "compared"])
def test_a_column_of_each_odd_type_is_audited(
    name: str, finders: list[str] | None, ways: str
) -> None:
    table = pl.DataFrame({name: ODD[name], "x": PLAIN, "error": [0, 1, 1, 0, 0] * 24})
    two = {"model": ["a", "b"] * 60, "example": [i // 2 for i in range(SIZE)]}
    is_one = ways == "one model"
    table = table if is_one else table.with_columns(**{k: pl.Series(v) for k, v in two.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        evidence = read(table) if is_one else read(table, id="example", model="model")
        compare = ("a", "b") if ways == "compared" else None
        report = groundfault.audit(evidence, finders=finders, compare=compare, ledger=None)
    assert json.loads(report.to_json())["findings"] is not None


def test_a_model_without_a_scored_example_is_not_compared() -> None:
    table = pl.DataFrame({"i": range(40), "m": ["a", "b"] * 20, "error": [0, None, 1, None] * 10})
    evidence = read(
        table.with_columns(x=pl.col("i") % 3), id="i", model="m", null_outcome="missing"
    )
    with pytest.raises(InputError, match="no example of model 'b' was scored"):
        groundfault.audit(evidence, compare=("a", "b"), ledger=None)


def test_objects_of_python_are_left_out_with_a_word() -> None:
    table = pl.DataFrame({"x": pl.Series([object()] * 9, dtype=pl.Object), "error": [0, 1, 0] * 3})
    with pytest.warns(UserWarning, match="column 'x' holds objects of Python and is left out"):
        assert "x" not in read(table).frame.columns


@pytest.mark.parametrize(
    "words",
    ["--q 1e999", "--alpha 1e-400", "--alpha nan", "--min-lift 1e999", "--holdout inf", "--q 1/0"],
)
def test_numbers_beyond_any_scale_are_one_line(words: str, tmp_path: Path) -> None:
    pl.DataFrame({"x": [1, 2] * 30, "error": [0, 1, 1] * 20}).write_csv(tmp_path / "t.csv")
    command = ["audit", str(tmp_path / "t.csv"), "--outcome", "error", "--no-ledger"]
    run = CliRunner().invoke(cli, [*command, *words.split(), "--out", str(tmp_path / "report")])
    assert isinstance(run.exception, GroundfaultError | SystemExit), run.exception
    assert run.exit_code != 0
    assert len(str(run.exception)) < 400
