"""The pytest plugin: marked cases become a table, and what could not be scored is no failure."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import groundfault

pytest_plugins = ["pytester"]

SUITE = """
import pytest

@pytest.mark.groundfault(topic="sums", level=1)
class TestSums:
    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    @pytest.mark.parametrize("words", [True, False])
    def test_sum(self, n, words, record_property):
        record_property("answer", f"={n}")
        assert not (words and n > 2), "wrong sum"

    @pytest.mark.groundfault(level=2)
    @pytest.mark.parametrize("error", ["down", "late"])
    def test_server(self, error):
        raise ConnectionError(error)

@pytest.fixture
def broken():
    raise AssertionError("no data")

@pytest.mark.groundfault
def test_without_data(broken): ...

@pytest.mark.groundfault
@pytest.mark.skip(reason="later")
def test_skipped(): ...

@pytest.mark.groundfault
@pytest.mark.xfail(reason="known")
def test_known(): assert False

@pytest.mark.groundfault
def test_by_words(): pytest.fail("wrong")

def test_unmarked(): assert False
"""


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_cases_become_a_table(pytester: pytest.Pytester, workers: str) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess("--groundfault", "out.parquet", "-n", workers)
    result.stdout.fnmatch_lines(["14 cases in out.parquet: 4 failed, 4 without an outcome"])
    table = pl.read_parquet(pytester.path / "out.parquet").sort("id")
    assert table.height == 14
    sums = table.filter(pl.col("test").str.ends_with("test_sum")).sort("words", "n")
    assert sums["error"].to_list() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert sums["n"].to_list() == [1, 2, 3, 4] * 2
    assert set(sums["topic"]) == {"sums"}
    assert set(sums["level"]) == {1}
    assert sums["answer"].to_list() == ["=1", "=2", "=3", "=4"] * 2
    down = table.filter(pl.col("test").str.ends_with("test_server"))
    assert down["param_error"].to_list() == ["down", "late"]
    assert set(down["level"]) == {2}
    assert down["error"].to_list() == [None, None]
    ends = {row["test"].split("::")[-1]: row for row in table.iter_rows(named=True)}
    assert [ends[name]["error"] for name in ("test_known", "test_by_words")] == [1, 1]
    status = [ends[name]["status"] for name in ("test_server", "test_without_data", "test_skipped")]
    assert status == ["error", "error", "missing"]
    assert "wrong sum" in sums["reason"][-1]
    evidence = groundfault.Evidence.from_table(
        table, id="id", outcome="error", status="status", ignore=["reason", "seconds"]
    )
    assert (len(evidence), evidence.loss.count()) == (14, 10)


def test_sheets_hold_no_formulas(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    pytester.runpytest_inprocess("--groundfault", "out.csv", "-n", "0")
    text = (pytester.path / "out.csv").read_text(encoding="utf-8")
    assert "'=3" in text
    assert ",=3" not in text


def test_wrong_uses_are_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_unmarked(): ...")
    result = pytester.runpytest_inprocess("--groundfault", "out.xml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result = pytester.runpytest_inprocess("--groundfault", "out.jsonl", "-n", "0")
    result.stdout.fnmatch_lines(
        ["no test that ran is marked*: nothing was written; put @pytest.mark.groundfault(*"]
    )
    assert not Path(pytester.path / "out.jsonl").exists()
