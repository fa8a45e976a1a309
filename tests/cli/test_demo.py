"""The demo: a real model's answers, the hole in its training named, and the truth in the end."""

from __future__ import annotations

import importlib.util
import io
import socket
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.auditing.report import Report
from groundfault.cli.demo import NEVER_SEEN, compare_with_truth, demo, read_table
from groundfault.cli.main import cli
from groundfault.core.rules import Rule
from groundfault.modes.mode import Mode

ROOT = Path(__file__).resolve().parents[2]
TABLE = pl.read_parquet(io.BytesIO(read_table()))


def load_script() -> ModuleType:
    """``scripts/make_demo_data.py``, which drew the table."""
    path = ROOT / "scripts" / "make_demo_data.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_mode(rule: str) -> Mode:
    return Mode(
        rule=rule,
        meaning="",
        conditions=("",),
        outcome="",
        n=1,
        errors=1,
        n_outside=1,
        errors_outside=0,
        n_new=1,
        errors_new=1,
        interval=(0, 1),
        p_marginal=0.01,
        p_conditional=0.01,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demo prints, and the folder that it writes, without a network."""
    folder = tmp_path_factory.mktemp("demo")

    def refuse(*_: object) -> None:
        raise AssertionError("the demo asked for the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setenv("COLUMNS", "80")
        answer = CliRunner().invoke(demo, ["--out", str(folder)], catch_exceptions=False)
    assert answer.exit_code == 0
    return answer.stdout, folder


def test_the_first_failure_mode_is_what_the_model_never_saw(run: tuple[str, Path]) -> None:
    report = Report.load(run[1])
    assert Rule.parse(report.modes[0].rule) == Rule.parse(NEVER_SEEN)
    assert report.modes[0].rate > 0.9
    assert len(report.modes) <= 10


def test_examples_are_real_and_stand_on_the_right_side(run: tuple[str, Path]) -> None:
    text = run[0]
    rows = {row["prompt"]: row for row in TABLE.iter_rows(named=True)}
    examples = text.partition("The first failure mode")[2].partition("An explanation")[0]
    for part, correct in zip(examples.split("\nPasses"), (0, 1), strict=True):
        shown = [row for prompt, row in rows.items() if f" {prompt} " in " ".join(part.split())]
        assert len(shown) >= 3
        assert {row["correct"] for row in shown} == {correct}
        assert {row["number_style"] for row in shown} == {"words"}


def test_it_names_an_explanation_that_does_not_hold_up(run: tuple[str, Path]) -> None:
    text = " ".join(run[0].split())
    assert "An explanation that does not hold up Of the prompts that say please, 2" in text
    assert ". The difference may be chance." in text


def test_it_ends_with_the_truth(run: tuple[str, Path]) -> None:
    last = " ".join(run[0].split()).rpartition("The truth")[2]
    assert NEVER_SEEN in last
    assert "100% of the 180 prompts of the first failure mode are of that kind" in last


def test_the_table_is_left_beside_the_report(run: tuple[str, Path]) -> None:
    table = pl.read_parquet(run[1] / "answers.parquet")
    assert table.equals(TABLE)
    assert (run[1] / "report.html").is_file()


def test_the_truth_counts_a_mode_that_is_broader() -> None:
    sentence = compare_with_truth(make_mode("task = 'add' OR number_style = 'words'"), TABLE)
    words = TABLE["number_style"] == "words"
    inside = words | (TABLE["task"] == "add")
    assert f"of the {inside.sum():,} prompts" in sentence
    assert f"{words.sum() / inside.sum():.0%} of the" in sentence
    assert "the mode covers 100%" in sentence


def test_the_truth_counts_a_mode_that_misses_it() -> None:
    sentence = compare_with_truth(make_mode("task = 'logic'"), TABLE)
    assert "0% of the" in sentence
    assert "the mode covers 0%" in sentence


def test_the_table_is_small_and_described() -> None:
    data = ROOT / "src" / "groundfault" / "cli" / "data"
    assert len(read_table()) < 100_000
    described = (data / "README.md").read_text(encoding="utf-8")
    assert not [name for name in TABLE.columns if f"`{name}`" not in described]
    assert f"{TABLE.height:,} prompts" in described


def test_its_script_draws_the_same_table(shared: Path) -> None:
    assert load_script().draw_answers(shared / "real" / "known_holes").equals(TABLE)


def test_numbers_of_the_readme_hold_in_all_prompts(shared: Path) -> None:
    source = shared / "real" / "known_holes"
    answers = pl.read_parquet(source / "outcomes.parquet").filter(model="number_words#1")
    examples = pl.read_parquet(source / "examples.parquet")
    rates = (
        examples.join(answers, on="example_id")
        .group_by(unseen=Rule.parse(NEVER_SEEN).to_polars())
        .agg(n=pl.len(), wrong=1 - pl.col("correct").mean())
        .sort("unseen")
    )
    assert rates["n"].to_list() == [10_000 - 858, 858]
    assert [f"{rate:.0%}" for rate in rates["wrong"]] == ["22%", "97%"]


@pytest.mark.parametrize(
    ("name", "shown", "then"),
    [
        ("compare", "number_style is words", "next: groundfault open"),
        ("agents", "calls pay", "next: groundfault show"),
        ("label", "failure mode found", "next: groundfault label run"),
        ("probe", "mismatch", "next: groundfault label review"),
        ("describe", "the text writes a number as a word", "next: groundfault open"),
    ],
)
def test_every_door_has_a_demo_that_prints_its_commands_and_what_to_type_next(
    name: str, shown: str, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("groundfault.toml").write_text('group = "no_such_column"\n')
    done = CliRunner().invoke(cli, ["demo", "--of", name, "--out", "my demo"])
    assert done.exit_code == 0, (done.output, done.exception)
    text = " ".join(done.stdout.split())
    assert "made by code" in text or "by a script in place of a model" in text
    assert "$ groundfault " in text
    assert shown in text
    assert done.stdout.splitlines()[-1].startswith(then)
    assert {path.name for path in tmp_path.iterdir()} == {"groundfault.toml", "my demo"}
