"""Hostile rules, texts and names of columns in every engine that counts: they are data there, mean
what they mean in polars, and none takes forever.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from groundfault.core.rules import Rule, literal, quote
from groundfault.engines import Counter, find_disagreements, open_counter
from groundfault.engines.dialect import SqlCounter
from groundfault.engines.duckdb_files import DuckdbCounter
from groundfault.engines.spark_files import SparkCounter
from groundfault.errors import RuleError

SPARK = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
    reason="PySpark or Java is not installed",
)
TEXTS = [
    "'",
    "\\",
    "\\'",
    "''; COPY (SELECT 1) TO 'stolen.csv'; --",
    "\\'); DROP VIEW results; --",
    "' OR 1=1 OR '",
    "$$ || pg_sleep(9) || $$",
    "`; DROP TABLE x; --",
    'a"b',
    "/* */ -- #",
    "%_",
    "x\x1b[31m\n\ty",
    "\u202e\u0130 退还",
]
NAMES = [
    'a" FROM results; DROP VIEW results; --',
    "b`c` UNION SELECT 1 --",
    "c'd",
    "read_text('/etc/passwd')",
    "* --",
    "e\\'f",
    "${env:HOME}x".replace("$", "€"),
]
REFUSED = [
    "t = (SELECT content FROM read_text('/etc/passwd'))",
    "read_csv('/etc/passwd') IS NOT NULL",
    "getenv('HOME') = t",
    "java_method('java.lang.Runtime', 'getRuntime') = t",
    "reflect('java.lang.System', 'exit', 1) = t",
    "t = 'a'; ATTACH 'x.db'",
    "t IN (SELECT t FROM results)",
    "pg_read_file('/etc/passwd') = t",
    "install_extension('httpfs') = t",
    "t = current_setting('x')",
    "sleep(100) = 1",
    "EXISTS (SELECT 1)",
    "t ~ (SELECT 'x')",
]
ENDLESS = [
    "t ~ '(a+)+$'",
    "t ~ '(?<n>a+)+$'",
    "t ~ '(?:a|a)*$'",
    "t ~* '(a|aa)+$'",
    "t ~ 'a*a*a*a*a*a*$'",
    "t ~ '" + "a?" * 30 + "'",
    "t ~ '" + "(a|a)" * 30 + "$'",
    "t ~ '((a{1,30}){1,30}){1,30}$'",
    "t LIKE '%a%a%a%a%a%a%a%b'",
    "t ILIKE '%a%a%a%a%a%a%a%b'",
    "t ~ u",
]
HONEST = [
    "t ~ '\\brefund\\b'",
    "t ~* '\\b(one|two|three)\\b'",
    "t ~ '\\d+\\s*(kg|g)'",
    "t ~ '^[a-z+*]+$'",
    "t LIKE '%a%b%'",
    "t ~ '\\(x\\)+'",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    columns: dict[str, Any] = dict.fromkeys(NAMES, TEXTS)
    pl.DataFrame({"t": TEXTS, **columns}).write_parquet(place / "part.parquet")
    return place


@pytest.fixture(
    scope="module",
    params=["polars", "duckdb", pytest.param("spark", marks=[pytest.mark.slow, SPARK])],
)
def counter(request: pytest.FixtureRequest, folder: Path) -> Iterator[Counter]:
    home = Path.cwd()
    os.chdir(folder)
    yield open_counter(request.param, folder)
    os.chdir(home)
    if request.param == "spark":
        from pyspark.sql import SparkSession

        SparkSession.builder.getOrCreate().stop()
    beside = {
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(("metastore", "spark", "derby"))
    }
    assert beside == {"part.parquet"}, "nothing was written"


def test_texts_and_names_are_data_in_every_engine(counter: Counter) -> None:
    rules = {
        f"{name} {text}": f"{quote(name)} = {literal(text)}" for name in NAMES for text in TEXTS
    }
    patterns = [text.replace("\\", "\\\\") for text in TEXTS]
    rules |= {f"like {text}": f"t LIKE {literal(text)}" for text in patterns}
    parsed = {name: Rule.parse(sql) for name, sql in rules.items()}
    assert find_disagreements(counter, parsed, "t IS NOT NULL") == {}
    cells = counter.counts([rule.sql for rule in list(parsed.values())[: len(TEXTS)]], {})
    assert cells.on.tolist() == [[1] * len(TEXTS)], "each text is there once"


@pytest.mark.parametrize("sql", REFUSED)
def test_what_reads_or_runs_is_refused_before_an_engine_sees_it(sql: str) -> None:
    with pytest.raises(RuleError):
        Rule.parse(sql)


def spell(engine: type[SqlCounter], sql: str) -> str:
    return engine(("x.parquet",)).spell(Rule.parse(sql).sql)


@pytest.mark.parametrize("sql", ENDLESS)
def test_an_engine_that_goes_back_takes_no_pattern_without_a_bound(sql: str) -> None:
    with pytest.raises(RuleError, match="Spark may run forever"):
        spell(SparkCounter, sql)
    if "u" not in Rule.parse(sql).columns:
        spell(DuckdbCounter, sql)


@pytest.mark.parametrize("sql", HONEST)
def test_it_takes_the_patterns_that_people_write(sql: str) -> None:
    spell(SparkCounter, sql)


@pytest.mark.parametrize(
    "sql", [sql for sql in ENDLESS if sql != "t ~ u" and "{" not in sql and "<n>" not in sql]
)
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_the_other_engines_answer_them(engine: str, sql: str, tmp_path: Path) -> None:
    pl.DataFrame({"t": ["a" * 3_000 + "c"]}).write_parquet(tmp_path / "a.parquet")
    rule = Rule.parse(sql)
    cells = open_counter(engine, tmp_path).counts([rule.sql], {})
    assert cells.defined.tolist() == [[1]]


@pytest.mark.slow
@SPARK
def test_spark_puts_no_environment_into_a_rule(tmp_path: Path) -> None:
    pl.DataFrame({"t": [os.environ["HOME"]]}).write_parquet(tmp_path / "a.parquet")
    counter = open_counter("spark", tmp_path)
    with pytest.raises(RuleError, match="in place of"):
        counter.counts(["t = '${env:HOME}'"], {})
