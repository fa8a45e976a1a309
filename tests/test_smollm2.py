"""SmolLM2-135M-Instruct in every loop: its recorded answers here, the model itself every night."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Case, Evidence
from groundfault.cli.main import cli
from groundfault_lab.taxonomy import Settings, Taxonomy, fit
from groundfault_lab.taxonomy.use.diagnosis import diagnose

ANSWERS = Path(__file__).parent / "fixtures" / "smollm2" / "answers.parquet"
ATTRIBUTES = "source task language form number_style digits steps items negated polite aside upper"


@pytest.fixture(scope="module")
def answers() -> pl.DataFrame:
    return pl.read_parquet(ANSWERS)


def make_run(answers: pl.DataFrame, run: str) -> pl.DataFrame:
    """One run's answers: as recorded, of the expert's system prompt, or sampled."""
    suffix = f"_{run}" if run else ""
    columns = ["id", "prompt", *ATTRIBUTES.split(), "position"]
    own = answers.select(*columns, answer=f"answer{suffix}", correct=f"correct{suffix}")
    return own.drop_nulls("correct").with_columns(model=pl.lit(run or "plain"))


def test_an_audit_names_what_the_model_fails_in_choices_arithmetic_and_language(
    answers: pl.DataFrame,
) -> None:
    evidence = Evidence.from_table(
        make_run(answers, "").drop("model"), id="id", outcome="correct", positive_is_good=True
    )
    report = groundfault.audit(evidence, ledger=None)
    assert report.n == 1977  # of 2,000 prompts: 23 are twice there
    assert report.modes
    meanings = " | ".join(mode.meaning for mode in report.modes)
    assert "digits is 1 or more" in meanings
    holds = report.modes[0].holds(answers).to_numpy()
    wrong = 1 - answers["correct"].to_numpy()
    assert wrong[holds].mean() > wrong[~holds].mean() + 0.05


@pytest.mark.parametrize("other", ["expert", "sampled"])
def test_two_system_prompts_and_greedy_and_sampled_are_compared(
    answers: pl.DataFrame, other: str
) -> None:
    runs = pl.concat([make_run(answers, ""), make_run(answers, other)])
    evidence = Evidence.from_table(
        runs, id="id", model="model", outcome="correct", positive_is_good=True
    )
    report = groundfault.audit(evidence, compare=("plain", other), ledger=None)
    assert report.mode_search is not None
    assert {mode.outcome for mode in report.modes} <= {"worse", "better"}
    assert report.n > 100


def make_holes(answers: pl.DataFrame, models: list[str]) -> Evidence:
    """The model's and networks' answers to the prompts of known_holes."""
    holes = answers.filter(source="holes").rename({"correct": "smollm2"})
    names = [*ATTRIBUTES.split()[1:], "id"]
    rows = holes.unpivot(on=models, index=names, variable_name="model", value_name="correct")
    return Evidence.from_table(
        rows, id="id", model="model", outcome="correct", positive_is_good=True
    )


def test_one_list_of_rules_has_the_model_beside_networks_with_known_holes(
    answers: pl.DataFrame,
) -> None:
    models = ["smollm2", "none#1", "capitals#1"]
    report = groundfault.audit(make_holes(answers, models), ledger=None)
    matrix = report.matrix()
    upper = matrix.filter(pl.col("rule").str.contains("upper"))
    assert upper["capitals#1: mark"].str.len_chars().max() > 0
    assert set(models) <= set(matrix.columns)


def test_a_taxonomy_of_networks_places_the_model(answers: pl.DataFrame) -> None:
    networks = [name for name in answers.columns if "#" in name]
    quick = Settings(worlds=19, refits=0, bootstraps=0, permutations=0)
    taxonomy: Taxonomy = fit(make_holes(answers, networks), quick)
    assert len(taxonomy.leaves) >= 3
    answers_of = make_holes(answers, ["smollm2"])
    found = diagnose(
        taxonomy, answers_of.take(np.arange(len(answers_of)) < 150), strategy="leaves", budget=20
    )
    assert found.answers > 50
    assert len(found.next) == 20
    assert {w.decision for w in found.weaknesses if w.name.startswith("leaf")} & {
        "fails",
        "cleared",
    }


def make_choices(answers: pl.DataFrame) -> pl.DataFrame:
    """Questions with letters, and the letter of the right answer."""
    choices = answers.filter(source="choice").rename({"position": "letter"})
    return choices.select("id", "prompt", "target", "task", "items", "letter", "correct", "answer")


def test_a_case_goes_from_the_first_answer_to_a_verified_report(
    answers: pl.DataFrame, tmp_path: Path
) -> None:
    table = make_choices(answers)
    table.drop("answer").write_parquet(tmp_path / "graded.parquet")

    def call(*words: str) -> str:
        ran = CliRunner().invoke(cli, [*words], catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        return ran.output

    case = str(tmp_path / "case")
    columns = "--id id --outcome correct --positive-is-good --ignore target".split()
    call("case", "new", case, "--from", str(tmp_path / "graded.parquet"), *columns)
    call("audit", "--case", case)
    assert "confirmed: mode 1" in call("label", "confirm", "--case", case, "--label", "file")
    assert "confirmed on fresh labels" in call("case", "report", case)
    assert "reproduces" in call("verify", case)
    first = Case(case).summarize().modes[0]
    assert (first.meaning, first.standing) == ("letter is C or D", "confirmed")
    # the model says A: of all its answers, also those that the case did not look at
    wrong = table.filter(letter="C")["correct"].to_numpy() == 0
    assert wrong.mean() > 0.9


def test_a_sequential_audit_asks_it_from_the_shell(
    answers: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = make_choices(answers)
    table.drop("answer", "correct").write_parquet("questions.parquet")
    said = table.select("prompt", response="answer").unique(maintain_order=True)
    Path("said.jsonl").write_text("\n".join(map(json.dumps, said.to_dicts())))
    words = (
        "label run questions.parquet --id id --groups letter --threshold 0.6 --budget 60 --seed 0"
    )
    words += " --burn-in 10 --label model --model replay:said.jsonl --grader choice --answer target"
    ran = CliRunner().invoke(cli, [*words.split(), "--json", "-"], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    certificate = json.loads(ran.stdout)
    assert certificate["verdict"] == "failure mode found"
