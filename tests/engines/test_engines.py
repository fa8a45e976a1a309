"""Engines that count: the same cells everywhere, and what they differ in is found out."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
from lazy_tables import CANDIDATES, make_table, write_parts

import groundfault
from groundfault import LazyEvidence, Plan
from groundfault.core.rules import Rule
from groundfault.engines import (
    ROWS,
    SCORED,
    CellCounts,
    Counter,
    GroupBy,
    GroupingCounter,
    find_disagreements,
    list_files,
    name_difference,
    open_counter,
)
from groundfault.engines.duckdb_files import DuckdbCounter
from groundfault.engines.polars_files import PolarsCounter
from groundfault.engines.spark_files import SparkCounter
from groundfault.errors import InputError, PlanError, RuleError
from groundfault_lab.testing import check_counter
from groundfault_lab.testing.counting import EDGE_RULES


def test_there_are_63_rules() -> None:
    assert len(EDGE_RULES) == 63


def test_polars_agrees_with_itself_in_all_of_them() -> None:
    assert check_counter(PolarsCounter) == {}


def test_duckdb_differs_where_it_is_known_to() -> None:
    assert set(check_counter(DuckdbCounter)) <= {
        "upper beyond ASCII",
        "round halves",
        "round to digits",  # since DuckDB 2.0.1, as of decimals
        "cast cuts off",
        "any case beyond ASCII",
        "regex, any case beyond ASCII",
    }


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
    reason="PySpark or Java is not installed",
)
def test_spark_differs_where_it_is_known_to_and_audits_alike(tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path / "warehouse"))
    session = builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()
    try:
        differences = check_counter(lambda files: SparkCounter(files, session))
        lazy = LazyEvidence.scan(
            write_parts(tmp_path / "table", make_table()),
            outcome="error",
            id="id",
            null_outcome="missing",
        )
        there = LazyEvidence(SparkCounter(lazy.counter.files, session), lazy.roles)
        reports = [
            groundfault.audit(one, Plan(judge="split-holm"), CANDIDATES, ledger=None).to_dict()
            for one in (lazy, there)
        ]
        folder = tmp_path / "groups"
        folder.mkdir()
        write_edge_groups(folder)
        by_spark = group_all(SparkCounter(list_files(folder), session), 3)
        samples = [one.sample_outcomes(600)("0a" * 16).to_json() for one in (lazy, there)]
        place = tmp_path / "table"
        session.sql(f"CREATE TABLE results USING parquet LOCATION '{place}'")
        assert SparkCounter.of_table(session, "results").files == lazy.counter.files
        session.sql("CREATE TEMP VIEW hard AS SELECT id, error FROM results")
        with pytest.raises(InputError, match="differs from its Parquet files"):
            SparkCounter.of_table(session, "hard")
    finally:
        session.stop()
    # of numbers beyond whole ones Spark 4.3 has neither floor nor ceiling
    beyond = {"floor", "ceil"}
    assert set(differences) <= {"round halves", "substring from 0", "left, negative", *beyond}
    for report in reports:
        # the engine's name
        del report["hints"], report["manifest"]
    assert reports[0] == reports[1]
    assert samples[0] == samples[1]
    assert by_spark.equals(group_all(PolarsCounter(list_files(folder)), 1))


@dataclass(frozen=True)
class Wrong:
    """An engine with one thing wrong."""

    files: tuple[str, ...]
    fault: str
    name: str = "wrong"
    table: str = ""

    def find_schema(self) -> pl.Schema:
        return PolarsCounter(self.files).find_schema()

    def counts(self, rules: Sequence[str], by: Mapping[str, str]) -> CellCounts:
        cells = PolarsCounter(self.files).counts(rules, by)
        if self.fault == "NULL is false":
            return replace(cells, defined=np.repeat(cells.rows[:, None], len(rules), axis=1))
        if self.fault == "rows":
            return replace(cells, rows=cells.rows + 1)
        return cells

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        values = PolarsCounter(self.files).evaluate(expressions, where)
        if self.fault == "rules" and "value of not" in values.columns:
            return values.with_columns(pl.lit(True).alias("value of not"))
        if self.fault == "MD5" and "digest" in values.columns:
            return values.with_columns(pl.col("digest").str.to_uppercase())
        return values

    def group(self, groups: GroupBy, part: int, parts: int) -> pl.DataFrame:
        table = PolarsCounter(self.files).group(groups, part, parts)
        if self.fault == "groups":
            return table.with_columns(pl.col(groups.mean).fill_null(0))
        return table if self.fault != "group values" else table.with_columns(s=pl.lit("abc"))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("NULL is false", "is NULL"),
        ("rows", "lost rows"),
        ("rules", "every audit needs: not"),
        ("MD5", "MD5 of"),
        ("groups", "makes other groups of its rows, in 1 parts"),
        ("group values", "does not keep the values of a group"),
    ],
)
def test_an_engine_that_counts_wrong_does_not_pass(fault: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_counter(lambda files: Wrong(files, fault))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("table")
    pl.DataFrame(
        {"x": [1.0, float("nan"), None, 3.0], "odd \"' name": ["a", "b", None, "a"]}
    ).write_parquet(place / "it's.parquet")
    (place / "_SUCCESS").touch()
    return place


@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_cells_of_odd_names_and_of_nan(folder: Path, name: str) -> None:
    counter = open_counter(name, folder)
    assert isinstance(counter, Counter)
    assert list(counter.find_schema()) == ["x", "odd \"' name"]
    cells = counter.counts([Rule.parse("x > 2").sql], {"key": '"odd ""\' name"'})
    assert cells.keys["key"].to_list() == ["a", "b", None]
    assert cells.rows.tolist() == [2, 1, 1]
    assert cells.on.tolist() == [[1], [0], [0]]
    assert cells.defined.tolist() == [[2], [0], [0]]
    assert counter.counts([], {}).rows.tolist() == [4]


@pytest.mark.parametrize("name", ["polars", "duckdb"])
@pytest.mark.parametrize("values", [(2.0, "nan", 3.0), (1.0, 2.0, "nan"), ("nan", 2.0, 3.0)])
def test_nan_is_no_number_whatever_a_file_says_of_its_ends(
    tmp_path: Path, name: str, values: tuple[float | str, ...]
) -> None:
    pl.DataFrame({"x": [float(value) for value in values]}).write_parquet(tmp_path / "t.parquet")
    counter = open_counter(name, tmp_path)
    cells = counter.counts(["x > 0", "x IS NULL"], {})
    assert cells.on.tolist() == [[2, 1]]
    assert cells.defined.tolist() == [[2, 3]]
    assert counter.evaluate({"x": "x"}, "x IS NULL")["x"].to_list() == [None]


@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_what_an_engine_cannot_evaluate_is_one_line(folder: Path, name: str) -> None:
    counter = open_counter(name, folder)
    for ask in (lambda: counter.counts(["nowhere > 1"], {}), lambda: counter.evaluate({}, "x ~ 1")):
        with pytest.raises(RuleError, match="cannot evaluate") as refusal:
            ask()
        assert "\n" not in str(refusal.value)
    rules = {"good": Rule.parse("x > 2"), "bad": Rule.parse('"odd ""\' name" ~ \'(\'')}
    assert set(find_disagreements(counter, rules, "x > 0")) == {"bad"}


def test_only_parquet_is_counted_in(folder: Path, tmp_path: Path) -> None:
    assert list_files(folder) == (str(folder / "it's.parquet"),)
    with pytest.raises(InputError, match="does not exist"):
        list_files(tmp_path / "nowhere")
    with pytest.raises(InputError, match="has no such file"):
        list_files(tmp_path)
    (tmp_path / "a[1].parquet").touch()
    with pytest.raises(InputError, match="like a pattern"):
        list_files(tmp_path)
    (tmp_path / "b.csv").touch()
    with pytest.raises(InputError, match=r"b\.csv has another format"):
        list_files(tmp_path)
    with pytest.raises(PlanError, match="no engine is named"):
        open_counter("abacus", folder)
    damaged = tmp_path / "c.parquet"
    damaged.write_text("PAR1")
    for name in ("polars", "duckdb"):
        with pytest.raises(InputError, match="cannot read"):
            open_counter(name, damaged).find_schema()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two tables, a view of one, and a view of a file elsewhere."""
    place = tmp_path_factory.mktemp("database")
    (place / "secret.csv").write_text("id,error\n1,0\n")
    rows = make_table()  # noqa: F841, which DuckDB reads by its name
    with duckdb.connect(place / "it's.duckdb") as connection:
        connection.execute("CREATE SCHEMA runs")
        connection.execute('CREATE TABLE runs."of may" AS SELECT * FROM rows')
        connection.execute("CREATE TABLE other AS SELECT * FROM rows")
        connection.execute('CREATE VIEW seen AS SELECT * FROM runs."of may"')
        secret = place / "secret.csv"
        connection.execute(f"CREATE VIEW leak AS SELECT * FROM read_csv('{secret}')")
    return place / "it's.duckdb"


def test_a_table_of_a_database_is_counted_in_as_files_are(database: Path, tmp_path: Path) -> None:
    columns = {"outcome": "error", "id": "id", "null_outcome": "missing"}
    files = LazyEvidence.scan(
        write_parts(tmp_path / "table", make_table()), engine="duckdb", **columns
    )
    tables = [
        LazyEvidence.scan(database, engine="duckdb", table=table, **columns)
        for table in ('runs."of may"', "seen", "other")
    ]
    assert isinstance(tables[0].counter, Counter)
    assert len({one.hash for one in (files, *tables)}) == 4
    reports = [
        groundfault.audit(one, Plan(judge="split-holm"), CANDIDATES, ledger=None).to_dict()
        for one in (files, *tables[:2])
    ]
    assert reports[1]["manifest"]["derivation"]["settings"]["table"] == 'runs."of may"'
    for report in reports:
        del report["hashes"], report["manifest"]
    assert reports[0] == reports[1] == reports[2]


@pytest.mark.parametrize(
    ("engine", "table", "words"),
    [
        ("polars", "seen", "the engine polars does not read"),
        ("duckdb", "nowhere", "nowhere"),
        ("duckdb", "a.b.c", "is no name of a table"),
        ("duckdb", "read_csv('x')", "is no name of a table"),
        # what a view reads of this machine
        ("duckdb", "leak", "disabled"),
    ],
)
def test_tables_that_cannot_be_are_refused(
    database: Path, engine: str, table: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        open_counter(engine, database, table).find_schema()


def test_a_file_that_is_no_database_or_still_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no file of a database"):
        open_counter("duckdb", tmp_path, "results")
    (tmp_path / "a.duckdb").write_text("no database")
    with pytest.raises(InputError, match="cannot read"):
        open_counter("duckdb", tmp_path / "a.duckdb", "results").find_schema()
    (tmp_path / "a.duckdb.wal").touch()
    with pytest.raises(InputError, match="CHECKPOINT"):
        open_counter("duckdb", tmp_path / "a.duckdb", "results").find_schema()


def test_words_of_other_dialects() -> None:
    duckdb, spark = DuckdbCounter(()), SparkCounter(())
    assert duckdb.spell(r"s LIKE 'a\_b'") == r"""(s LIKE 'a\_b' ESCAPE '\')"""
    assert spark.spell("s ~* 'x'") == "(s RLIKE '(?iu)x')"
    assert duckdb.spell("i / NULLIF(2, 0)") == "(i / NULLIF(2, 0))"


def test_a_table_has_a_name_before_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ``FROM rows WHERE (hard)``, Spark reads that the rows are called WHERE."""
    statements: list[str] = []
    monkeypatch.setattr(SparkCounter, "run", lambda _, statement: statements.append(statement))
    counter = SparkCounter(())
    counter.evaluate({"id": "id"}, "hard")
    assert statements == [f"SELECT (id) AS `id` FROM {counter.view} AS results WHERE (hard)"]


EDGE_GROUPS = GroupBy(
    "odd \"' name",
    "mean",
    'CASE WHEN "x" > 1 THEN CAST("loss" AS DOUBLE PRECISION) END',
    ("x", "word", "day", "loss"),
)


def group_all(counter: Counter, parts: int) -> pl.DataFrame:
    assert isinstance(counter, GroupingCounter)
    tables = [counter.group(EDGE_GROUPS, part, parts) for part in range(parts)]
    return pl.concat(tables).sort(EDGE_GROUPS.key).cast({pl.Int64: pl.UInt32})


def write_edge_groups(folder: Path) -> None:
    pl.DataFrame(
        {
            EDGE_GROUPS.key: [7, 7, 8, 8, 8, 9],
            "x": [2.0, float("nan"), 3.0, 3.0, 3.0, 1.0],
            "word": ["ä", "ä", None, "b", "b", None],
            "day": pl.Series([1, 1, 2, 2, 3, 3]).cast(pl.Date),
            "loss": [True, False, True, True, False, True],
        }
    ).write_parquet(folder / "groups.parquet")


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_groups_are_the_same_by_every_engine(tmp_path: Path, name: str, parts: int) -> None:
    write_edge_groups(tmp_path)
    groups = group_all(open_counter(name, tmp_path), parts)
    assert groups["mean"].to_list() == [1.0, 2 / 3, None]
    assert groups[SCORED].to_list() == [1, 3, 0]
    assert groups[ROWS].to_list() == [2, 3, 1]
    differs = {c: groups[name_difference(i)].to_list() for i, c in enumerate(EDGE_GROUPS.columns)}
    assert differs == {
        # a number and none; a text and none
        "x": [True, False, False],
        "word": [False, True, False],
        "day": [False, True, False],
        "loss": [True, True, False],
    }
    assert groups["x"].to_list() == [2.0, 3.0, 1.0]
    assert groups["word"].to_list() == ["ä", "b", None]
