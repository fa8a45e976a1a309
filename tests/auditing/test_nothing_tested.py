"""Where no rule can be tested, each column is named with the reason: in all forms, by all ways."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
from commands import run_program

UNITS = 200
# what no rule can be made of, by the reason
COLUMNS = {
    "code": ("ids or rare values", [f"u{i}" for i in range(UNITS)]),
    "same": ("at most one value", ["a"] * UNITS),
    "empty": ("at most one value", [None] * UNITS),
    "rare": ("too few or nearly all", ["b", *["a"] * (UNITS - 1)]),
    "verdict": ("predict", ["bad", "good", "good", "bad"] * (UNITS // 4)),
}
ROLES = "--id id --outcome error --no-ledger --out report".split()
SPARK = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None, reason="no Spark"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = {"id": range(UNITS), "error": [1, 0, 0, 1] * (UNITS // 4)}
    table = pl.DataFrame(rows | {name: values for name, (_, values) in COLUMNS.items()})
    table.with_columns(pl.col("empty").cast(pl.String)).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(rows).write_parquet(tmp_path / "bare.parquet")
    return tmp_path


def read_forms(folder: Path, command: str) -> dict[str, str]:
    """Run a command that audits; return all that it writes."""
    ending = run_program(*command.split(), *ROLES, folder=folder)
    assert ending.status == 0, ending.errors
    return {
        "terminal": " ".join(ending.output.split()),
        "page": (folder / "report" / "report.html").read_text(),
        "markdown": (folder / "report" / "report.md").read_text().replace("\\", ""),
        "gate": run_program("gate", "report", folder=folder).output,
    }


@pytest.mark.parametrize(
    "command",
    [
        "audit t.parquet",
        "audit t.parquet --judge holm",
        "audit t.parquet --engine polars",
        "audit t.parquet --engine duckdb",
        "audit t.parquet --engine duckdb --judge holm",
        pytest.param("audit t.parquet --engine spark", marks=[pytest.mark.slow, SPARK]),
        "compare a=t.parquet b=t.parquet",
    ],
)
def test_each_column_is_named_with_its_reason(command: str, folder: Path) -> None:
    forms = read_forms(folder, command)
    report = json.loads((folder / "report" / "report.json").read_text())
    assert not report["findings"]
    of = {name: reason for reason, names in report["unused"].items() for name in names}
    for name, (reason, _) in COLUMNS.items():
        if name == "verdict" and "compare" in command:
            # it tells of neither run's failures which of both runs failed
            continue
        assert reason in of[name], (name, of)
        for form, text in forms.items():
            assert re.search(rf"\b{name}\b", text), (form, name)
        for form in ("page", "markdown", "gate"):
            assert of[name].partition(",")[0] in forms[form], (form, name)


@pytest.mark.parametrize("engine", ["", " --engine polars", " --engine duckdb", " --judge holm"])
def test_a_table_without_such_columns_is_said_to_have_none(engine: str, folder: Path) -> None:
    forms = read_forms(folder, f"audit bare.parquet{engine}")
    for form, text in forms.items():
        assert "o column describes the examples, so no rule could be tested" in text, form


def test_columns_of_one_value_are_not_listed_where_others_were_tested(folder: Path) -> None:
    table = pl.read_parquet(folder / "t.parquet")
    table.with_columns(x=pl.col("id") % 3).write_parquet(folder / "t.parquet")
    forms = read_forms(folder, "audit t.parquet")
    report = json.loads((folder / "report" / "report.json").read_text())
    assert "same" not in {name for names in report["unused"].values() for name in names}
    assert "no rule could be tested" not in forms["gate"]
