"""Outcomes in words, letters or on a scale: read where nothing is ambiguous, and said how."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from groundfault import Evidence
from groundfault.auditing.report import Report
from groundfault.cli.main import cli
from groundfault.errors import InputError


def read(name: str, values: list[object], **settings: object) -> list[float | None]:
    table = pl.DataFrame({"id": range(len(values)), name: values}, strict=False)
    return Evidence.from_table(table, id="id", outcome=name, **settings).loss.to_list()


@pytest.mark.parametrize(
    ("name", "values", "losses"),
    [
        ("result", ["pass", "fail", "PASS "], [0, 1, 0]),
        ("error", ["Correct", "Incorrect", "wrong"], [0, 1, 1]),
        ("passed", ["yes", "no", "no"], [0, 1, 1]),
        ("failed", ["Yes", "No", "No"], [1, 0, 0]),
        ("is_correct", ["True", "False", "false"], [0, 1, 1]),
        ("grade", ["A", "F", "B"], [0, 1, 0.25]),
        ("grade", ["A-", "B+", "D"], [0.075, 0.175, 0.75]),
    ],
)
def test_words_are_read_and_said(name: str, values: list[object], losses: list[float]) -> None:
    with pytest.warns(UserWarning, match="positive_is_good=(True|False), or --pos"):
        assert read(name, values) == pytest.approx(losses)
    for good in (True, False):
        with pytest.warns(UserWarning, match="and 1 is a"):
            turned = read(name, values, positive_is_good=good)
        is_same = good is (name != "failed")
        expected = losses if is_same else [1 - loss for loss in losses]
        assert turned == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("result", ["yes", "no"], "its name does not say if 1 is a pass"),
        ("grade", ["A", "B", "C"], r"has A, B, C, .*passes=\['A'\]"),
        ("result", ["pass", "skipped"], r"passes=\['pass'\]"),
        ("rating", [1, 5, 3], r"scale=\(1, 5\) if 5 is best, or .*scale=\(5, 1\) if 1 is best"),
        ("grade", [12, 95, 70], r"scale=\(0, 100\) if 100 is best"),
        ("error", [1.0, float("nan"), 0.0], "is empty in 1 of 3 rows"),
    ],
)
def test_what_is_ambiguous_is_asked(name: str, values: list[object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(name, values)


def test_a_scale_says_its_worst_and_best() -> None:
    assert read("score", [1, 3, 5], scale=(1, 5)) == [1, 0.5, 0]
    assert read("errors", [0, 50, 100], scale=(100, 0)) == [0, 0.5, 1]
    with pytest.raises(InputError, match="not in"):
        read("score", [0, 3, 5], scale=(1, 5))
    with pytest.raises(InputError, match="name two"):
        read("score", [0, 3, 5], scale=(1, 1))


def test_a_word_for_no_value_is_a_missing_outcome_beside_verdicts() -> None:
    """Counted as failures, answers that nobody scored would make a mode of their own."""
    words = ["Pass ", "FAIL", "N/A", "-"]
    assert read("result", words, null_outcome="missing") == [0, 1, None, None]
    assert read("score", ["0.5", "NaN"], positive_is_good=True, null_outcome="missing") == [
        0.5,
        None,
    ]
    with pytest.raises(InputError, match="is empty in 2 of 4 rows"):
        read("result", words, passes=["Pass"])
    # where the others are no verdicts, none may be one: the kind of an error
    assert read("kind", ["none", "timeout"], passes=["none"]) == [0, 1]
    with pytest.raises(InputError, match=r"has Passed, crash, n/a.*passes=\['Passed'\]"):
        read("kind", ["n/a", "crash", "Passed"])


def test_values_that_pass_are_named_and_the_command_is_printed_whole(tmp_path: Path) -> None:
    assert read("grade", ["A", "B", "C"], passes=["A", "B"]) == [0, 0, 1]
    assert read("score", ["0.25", "1"], positive_is_good=True) == [0.75, 0]
    with pytest.raises(InputError, match=r"names 'Z', which no row has.*there are A, B"):
        read("grade", ["A", "B"], passes=["Z"])
    path = tmp_path / "t.csv"
    for column, values, flags in (
        ("grade", ["A", "B", "C"], "--passes A"),
        ("score", [1, 3, 7], "--scale 7 1"),
        ("error", [1, 0, None], "--null-outcome missing"),
    ):
        pl.DataFrame({"lang": values, column: values}).write_csv(path)
        command = f"audit {path} --outcome {column} --no-ledger"
        asked = run(*command.split())
        assert f" {command} {flags} if" in str(asked.exception)
        assert run(*command.split(), *flags.split()).exit_code == 0
    unnamed = run("audit", path, "--no-ledger")
    assert "in audit or compare: --outcome error" in str(unnamed.exception)


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_the_command_line(tmp_path: Path) -> None:
    n = 200
    table = {"id": range(n), "lang": ["de", "en"] * (n // 2)}
    words = [("no", "yes", "yes", "yes")[i % 4] for i in range(n)]
    columns = {"passed": words, "result": words, "rating": [i % 5 + 1 for i in range(n)]}
    path, report = tmp_path / "t.csv", tmp_path / "report"
    pl.DataFrame({**table, **columns}).write_csv(path)
    audit = ["audit", path, "--id", "id", "--no-ledger", "--ignore", "result", "--out", report]
    good = run(*audit, "--outcome", "passed", "--ignore", "rating")
    assert good.exit_code == 0
    assert (
        "no as 0, yes as 1, and 1 is a pass (positive_is_good=False, or --positive-is-bad"
        in good.output
    )
    assert Report.load(report).error_rate == 0.25
    assert run("verify", report, "--no-ledger").exit_code == 0
    asked = run("audit", path, "--outcome", "result", "--ignore", "passed")
    assert f"audit {path} --outcome result --ignore passed --positive-is-good if" in str(
        asked.exception
    )
    assert "did you mean 'passed'" in str(run("audit", path, "--outcome", "pased").exception)
    assert "--scale 1 5" in str(run("audit", path, "--outcome", "rating").exception)
    scaled = run(*audit, "--outcome", "rating", "--scale", 1, 5, "--ignore", "passed")
    assert scaled.exit_code == 0
    assert Report.load(report).error_rate == 0.5
    assert run("verify", report, "--no-ledger").exit_code == 0


def test_a_row_of_totals_is_called_one() -> None:
    with pytest.raises(InputError, match="has 3 in one row, the sum of all others: leave out"):
        read("error", [1, 0, 1, 1, 0, 3])
