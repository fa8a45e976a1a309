"""``groundfault show``: examples of a mode, read from the evidence of a report again."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from commands import run_program

from groundfault.auditing.report import Report
from groundfault.cli.main import cli


def sums(rows: int = 400) -> pl.DataFrame:
    """Sums that fail where the prompt says "not" and the number is large, but for every ninth."""
    table = []
    for i in range(rows):
        negated, n = i % 4 == 0, i // 4 % 10
        ask = f"what is {'not ' if negated else ''}{i} and {n}?"
        wrong = (negated and n >= 4 and i % 9 > 0) or i % 37 == 0
        table.append((f"e{i:03}", ask, n, "?" if wrong else "!", "!", int(wrong)))
    names = ["id", "prompt", "n", "answer", "target", "error"]
    return pl.DataFrame(table, schema=names, orient="row")


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("show")
    sums().write_parquet(place / "sums.parquet")
    audit = ["audit", place / "sums.parquet", "--id", "id", "--outcome", "error", "--no-ledger"]
    named = ["--candidate", "large: n >= 4"]
    assert run(*audit, *named, "--out", place / "report").exit_code == 0
    assert run(*audit, *named, "--out", place / "bare", "--no-text").exit_code == 0
    return place


def examples(place: Path, *words: object) -> list[dict[str, object]]:
    result = run("show", place / "report", *words, "--json", "-")
    assert result.exit_code == 0
    return json.loads(result.output)["examples"]


def test_failing_ones_are_inside_the_rule_and_wrong(place: Path) -> None:
    report = Report.load(place / "report")
    rows = {row["id"]: row for row in sums().iter_rows(named=True)}
    holds = dict(zip(sums()["id"], report.modes[0].holds(sums()), strict=True))
    for side, inside, wrong in (((), True, 1), (("--passing",), True, 0), (("--near",), False, 0)):
        some = examples(place, 1, *side, "-n", 3)
        assert 0 < len(some) <= 3
        for example in some:
            assert holds[example["id"]] is inside
            assert inside is False or rows[example["id"]]["error"] == wrong
    assert len(examples(place, 1, "-n", 30)) == 30


def test_a_finding_is_shown_by_its_name(place: Path) -> None:
    some = examples(place, "large", "-n", 4)
    assert {e["side"] for e in some} == {"failing"}
    assert all(int(e["texts"]["n"]) >= 4 for e in some)


def test_it_prints_the_rule_the_texts_and_its_words(place: Path) -> None:
    result = run("show", place / "report", 1, "-n", 2)
    report = Report.load(place / "report")
    assert report.modes[0].meaning in result.output.splitlines()[0]
    for part in ("Rule: ", "prompt: what is not", "answer: ?", "target: !", "2 examples inside"):
        assert part in result.output
    wide = run("show", place / "report", 1, "--passing", "-n", 200)
    assert "inside the rule, and right" in wide.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "99"], "there is no mode 99"),
        (["report", "0"], "there is no mode 0"),
        (["report", "larje"], "there are 'large'"),
        (["report", "1", "--near", "--passing"], "exclude each other"),
        (["report", "1", "-n", "0"], "0 is not in the range"),
        (["report", "1", "--evidence", "no.csv"], "no.csv"),
        (["nowhere", "1"], "there is no report"),
    ],
)
def test_bad_input_is_one_line_and_status_2(place: Path, words: list[str], message: str) -> None:
    end = run_program("show", *words, folder=place)
    assert end.status == 2
    assert message in end.errors
    assert len(end.errors.splitlines()) == 1


def test_other_evidence_is_refused(place: Path, tmp_path: Path) -> None:
    sums(396).write_parquet(tmp_path / "other.parquet")
    result = CliRunner().invoke(
        cli, ["show", str(place / "report"), "1", "--evidence", str(tmp_path / "other.parquet")]
    )
    assert "its content is another" in str(result.exception)


def test_a_report_without_texts_keeps_ids_and_reproduces(place: Path) -> None:
    with_texts, bare = (Report.load(place / name) for name in ("report", "bare"))
    assert with_texts.modes
    for mode, same in zip(with_texts.modes, bare.modes, strict=True):
        assert [e.id for e in mode.sample] == [e.id for e in same.sample]
        assert any(e.texts for e in mode.sample)
        assert not any(e.texts for e in same.sample)
    # rules may name words of the prompts, which are no text of an example
    prompts = {e.texts["prompt"] for mode in with_texts.modes for e in mode.sample}
    page = (place / "bare" / "report.html").read_text()
    assert not any(prompt in page for prompt in prompts)
    for name in ("report", "bare"):
        assert run("verify", place / name).output.splitlines()[-1] == "reproduces"
    assert "what is not" in run("show", place / "bare", 1).output
