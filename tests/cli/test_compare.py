"""``compare``: two sources, or one that holds two models; the earlier first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from groundfault.cli.audit import name_pair
from groundfault.cli.main import cli

N = 200
COLUMNS = ("--id", "id", "--outcome", "error")


def write(place: Path, failing: str) -> Path:
    """Write a table in which the examples of one language fail."""
    rows = [f"{i},{('de', 'fr')[i % 2]},{int(('de', 'fr')[i % 2] == failing)}" for i in range(N)]
    place.write_text("\n".join(["id,lang,error", *rows]) + "\n")
    return place


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["compare", *map(str, words), "--no-ledger"])


def test_two_tables_are_compared_under_the_names_of_their_files(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old.csv", "de"), write(tmp_path / "new.csv", "fr")
    result = run(old, new, *COLUMNS, "--json", "-")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["manifest"]["compare"] == ["old", "new"]
    assert any("fr" in mode["meaning"] for mode in report["modes"])


def test_one_table_of_two_models_needs_no_names_and_of_three_asks_for_two(tmp_path: Path) -> None:
    rows = [f"{i},{m},{i % 2},{i % 3}" for i in range(N) for m in ("a", "b", "c")]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["id,model,error,k", *rows]) + "\n")
    words = (table, *COLUMNS, "--model-column", "model")
    three = run(*words)
    assert "compare needs two models, and there are 3 (a, b, c)" in str(three.exception)
    none = run(write(tmp_path / "one.csv", "de"), *COLUMNS)
    assert "no column names models" in str(none.exception)
    two = run(*words, "--model", "b", "--model", "a", "--json", "-")
    assert json.loads(two.stdout)["manifest"]["compare"] == ["b", "a"], two.output
    assert "compare takes two" in str(run(table, table, table, *COLUMNS).exception)


def test_tables_without_ids_are_compared_unpaired_and_unnamed_ids_are_asked_for(
    tmp_path: Path,
) -> None:
    old, new = write(tmp_path / "old.csv", "de"), write(tmp_path / "new.csv", "fr")
    asked = run(old, new, "--outcome", "error")
    assert "'id' looks like a column of ids" in str(asked.exception)
    assert "(--id id)" in str(asked.exception)
    for place in (old, new):
        lines = place.read_text().splitlines()
        place.write_text("\n".join(line.partition(",")[2] for line in lines) + "\n")
    result = run(old, new, "--outcome", "error", "--json", "-")
    assert result.exit_code == 0, result.output
    assert result.stderr == "note: without --id no row is paired with a row of the other table\n"
    report = json.loads(result.stdout)
    assert report["mode_search"]["like_for_like"]
    assert any("fr" in mode["meaning"] for mode in report["modes"])


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (("runs/a.csv", "runs/b.csv"), ("a", "b")),
        (("x=runs/a.csv", "b.csv"), ("x", "b")),
        (("one/log.json", "two/log.json"), ("first", "second")),
        (("two words.csv", "b.csv"), ("two-words", "b")),
    ],
)
def test_sources_are_named_after_their_files(
    sources: tuple[str, str], names: tuple[str, str]
) -> None:
    assert name_pair(*sources) == names


@pytest.mark.parametrize("command", ["audit", "check"])
def test_names_that_a_comma_joins_do_not_swallow_the_next_option(command: str) -> None:
    result = CliRunner().invoke(cli, [command, "t.csv", "--compare", "a,b", "--seed", "3"])
    assert result.exit_code == 2
    assert "--seed is the next option: put a space between names" in result.output
