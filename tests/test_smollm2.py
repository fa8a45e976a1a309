"""SmolLM2-135M-Instruct in every loop: its recorded answers here, the model itself every night."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault import Evidence
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
    assert report.n > 1500
    assert report.modes
    meanings = " | ".join(mode.meaning for mode in report.modes)
    assert "source" in meanings or "task" in meanings
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
