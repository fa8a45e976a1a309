"""What cannot be scored counts as failed where asked; a benchmark's own count is told beside it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Evidence, InputError, Plan, audit
from groundfault.auditing.scorers import choose_scorer
from groundfault.cli.main import cli
from groundfault.readers.account import OfficialFigure, compare_official

REPOS = ("a__x", "b__y")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of SWE-bench: 60 instances, 12 of one repository with an empty patch."""
    ids = [f"{REPOS[i % 2]}-{i}" for i in range(60)]
    lists = {
        "resolved_ids": [ids[i] for i in range(0, 60, 3)],
        "empty_patch_ids": [name for name in ids[1::2] if int(name.split("-")[1]) % 3][:12],
    }
    others = [name for name in ids if not any(name in each for each in lists.values())]
    report = {"total_instances": 60, **lists, "unresolved_ids": others}
    path = tmp_path_factory.mktemp("swe") / "org__model.run7.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    return path


def test_empty_patches_count_as_failed_where_asked(run: Path) -> None:
    plain = Evidence.from_logs(run)
    counted = Evidence.from_logs(run, count_as_failed=["unparsed"])
    assert (plain.loss.mean(), counted.loss.mean()) == (28 / 48, 40 / 60)
    assert (counted.status_counts["scored"], counted.counted_as_failed) == (60, {"unparsed": 12})
    assert (plain.counted_as_failed, plain.hash == counted.hash) == ({}, False)


def test_the_switch_is_in_the_first_lines_and_verify_follows_it(run: Path, tmp_path: Path) -> None:
    arguments = ["audit", str(run), "--no-ledger", "--permutations", "99", "--no-text"]
    out = str(tmp_path / "report")
    result = CliRunner().invoke(cli, [*arguments, "--count-as-failed", "unparsed", "--out", out])
    assert result.exit_code == 0, result.output
    assert "12 unparsed rows count as failed here, as asked" in result.output
    assert "SWE-bench itself" not in result.output
    report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert report["manifest"]["roles"]["count_as_failed"] == ["unparsed"]
    check = groundfault.verify(out, evidence=run, ledger=False)
    assert check.reproduces, check.differences


def test_a_report_tells_the_official_figure_where_it_differs(run: Path) -> None:
    report = audit(Evidence.from_logs(run), Plan(permutations=99), ledger=False)
    page = report.to_markdown()
    assert (
        "SWE-bench itself counts 20 of 60 passed (33.3%) for org/model, and here 20 of 48 did "
        "(41.7%); to it 12 unparsed are failures (--count-as-failed unparsed counts them here, too)"
    ) in " ".join(page.split())


def test_an_import_keeps_the_switch(run: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "evidence")
    command = ["import", str(run), "-o", place]
    shown = CliRunner().invoke(cli, command).output
    assert "SWE-bench itself counts 20 of 60" in " ".join(shown.split())
    assert Evidence.from_logs(place).loss.mean() == 28 / 48
    # an evidence directory can be told later, too
    assert Evidence.from_logs(place, count_as_failed=["unparsed"]).loss.mean() == 40 / 60
    shown = CliRunner().invoke(cli, [*command, "--count-as-failed", "unparsed"]).output
    assert "12 unparsed rows count as failed here" in shown
    assert Evidence.from_logs(place).counted_as_failed == {"unparsed": 12}


def test_a_call_of_bfcl_that_is_none_is_said_beside_its_accuracy(tmp_path: Path) -> None:
    score = tmp_path / "score" / "org_model" / "BFCL_v4_simple_score.json"
    result = tmp_path / "result" / "org_model" / "BFCL_v4_simple_result.json"
    kinds = ["ast_decoder:decoder_failed"] * 3 + ["value_error:others"] * 2
    failures = [
        {"id": i, "valid": False, "error_type": kind, "prompt": {"id": f"simple_{i}"}}
        for i, kind in enumerate(kinds)
    ]
    header = {"accuracy": 0.75, "correct_count": 15, "total_count": 20}
    answers = [{"id": f"simple_{i}", "result": "f()"} for i in range(20)]
    for path, rows in ((score, [header, *failures]), (result, answers)):
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    evidence = Evidence.from_logs(score)
    assert evidence.account is not None
    figures = [log.official for log in evidence.account.logs]
    (line,) = compare_official(figures)
    assert line == (
        "BFCL itself counts 15 of 20 passed (75.0%) for org/model, and here 15 of 17 did (88.2%); "
        "to it 3 unparsed are failures (--count-as-failed unparsed counts them here, too)"
    )
    assert compare_official(figures, ["unparsed"]) == []


def test_logs_of_one_model_are_added_up_and_few_are_told() -> None:
    def make(model: str) -> OfficialFigure:
        return OfficialFigure("T", model, 5, 10, 5.0, {"scored": 8, "missing": 1})

    (line,) = compare_official([make("m"), make("m"), None])
    assert "10 of 20 passed" in line
    assert line.endswith("2 of its answers are not in the log")
    lines = compare_official(make(f"m{i}") for i in range(9))
    assert lines[3:] == ["the same holds for 6 more models"]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    words = ["scored", "unparsed", "artefact", "refused"]
    return pl.DataFrame({"error": [0, None, None, None], "status": words})


def test_a_table_and_another_scorer_have_the_switch_too(
    table: pl.DataFrame, tmp_path: Path
) -> None:
    one = Evidence.from_table(
        table, outcome="error", status="status", count_as_failed=["refused", "unparsed"]
    )
    assert one.loss.to_list() == [0.0, 1.0, None, 1.0]
    assert one.counted_as_failed == {"refused": 1, "unparsed": 1}
    rows = [
        {"id": i, "scorer": scorer, "value": value, "status": "scored" if value else "unparsed"}
        for i in range(3)
        for scorer, value in (("a", 1.0), ("b", None))
    ]
    path = tmp_path / "scores.csv"
    pl.DataFrame(rows).write_csv(path)
    columns = {"example_id": "id", "scorer": "scorer", "value": "value", "status": "status"}
    logs = Evidence.from_logs(
        path, map={"columns": columns}, scorer="a", count_as_failed=["unparsed"]
    )
    assert choose_scorer(logs, "b").counted_as_failed == {"unparsed": 3}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count_as_failed": ["artefact"], "status": "status"}, "'artefact' is not one of"),
        ({"count_as_failed": ["failed"], "status": "status"}, "'failed' is not one of unparsed, "),
        ({"count_as_failed": ["unparsed"], "null_outcome": "missing"}, "no row is unparsed"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    table: pl.DataFrame, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Evidence.from_table(table, outcome="error", **settings)  # type: ignore[arg-type]
