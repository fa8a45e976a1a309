"""The study of probe policies on real networks: its bank, its runs, and that it goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault.probes.bank.rendering import probes
from groundfault.probes.policies import DEFAULT
from groundfault_studies import probe_networks
from groundfault_studies.known_holes import FOLDER, find_folder
from groundfault_studies.network_bank import EXTRAS, GRAMMAR, make_bank, spell
from groundfault_studies.probe_network_tables import POLICIES, make_tables

SHARED = Path(__file__).parents[3] / "shared" / "data"

needs_data = pytest.mark.skipif(
    not (SHARED / FOLDER).is_dir(), reason="needs shared/data/real/known_holes"
)


@pytest.mark.parametrize(
    ("text", "language", "digits", "words"),
    [
        ("What is 12 plus five?", "en", "What is 12 plus 5?", "What is twelve plus five?"),
        ("Hoy es lunes. En once dias?", "es", "Hoy es lunes. En 11 dias?", None),
        # eleven is "once" in Spanish alone
        ("Adding once", "en", "Adding once", "Adding once"),
        ("Was ist 21 minus eins?", "de", None, None),
    ],
)
def test_numbers_in_digits_and_in_words(
    text: str, language: str, digits: str | None, words: str | None
) -> None:
    assert spell(text, language, words=False) == digits
    assert spell(text, language, words=True) == (text if language == "es" else words)


@needs_data
def test_prompts_of_the_bank_are_in_the_words_of_the_data() -> None:
    bank = make_bank(find_folder(SHARED), 6)
    data = pl.read_parquet(SHARED / FOLDER / "examples.parquet")
    prompts = list(probes(bank, GRAMMAR))
    assert len({probe.prompt for probe in prompts}) == 6 * len(GRAMMAR)
    assert not any(probe.errors for probe in prompts)
    by_key = {probe.key: probe.prompt for probe in prompts}
    for task in bank:
        plain = {by_key[f"{task.id}|none|none|{style}"] for style in ("digits", "words")}
        row = data.row(by_predicate=pl.col("example_id") == task.id, named=True)
        assert row["prompt"] in plain
        assert task.answer == row["target"]
    for language, texts in EXTRAS.items():
        of_language = data.filter(pl.col("language") == language, ~pl.col("upper"))["prompt"]
        for text in texts.values():
            assert of_language.str.contains(text, literal=True).any()


def test_a_run_counts_a_prompt_once() -> None:
    wrong = np.zeros((4, len(GRAMMAR)), dtype=bool)
    wrong[1] = True
    rows = probe_networks.play_seeds("m", wrong, 4, "uniform, repeats", 400, (0, 2))
    # of 64 prompts 400 draws with repeats leave out next to none
    assert [(row["seed"], row["tasks"]) for row in rows] == [(0, 1), (1, 1)]
    assert all(14 <= row["keys"] <= 16 for row in rows)


def test_policies_without_repeats_get_to_the_end_of_a_bank() -> None:
    wrong = np.random.default_rng(0).random((5, len(GRAMMAR))) < 0.3
    rows = [
        row
        for policy in POLICIES
        for row in probe_networks.play_seeds("m", wrong, 2, policy, 32, (0, 2))
    ]
    ends = {row["seed"]: row["keys"] for row in rows if row["policy"] == "uniform"}
    for row in rows:
        if "repeats" not in row["policy"]:
            assert row["keys"] == ends[row["seed"]]
    settings = {"budgets": [32], "seeds": 2, "bank": 2, "tasks": 5}
    tables = make_tables(rows, {"m": wrong}, settings)
    assert tables[0].rows[0].here["rate"] == wrong.mean()
    by_policy = {row.label: row.here for row in tables[1].rows}
    # the default against itself has no interval
    assert by_policy[DEFAULT]["m keys"] is by_policy[DEFAULT]["m tasks"] is None
    assert by_policy["gp"]["m found"] == by_policy[DEFAULT]["m found"]


def test_recorded_answers_of_smollm2_are_a_landscape_of_their_own() -> None:
    wrong = probe_networks.read_recorded()
    assert wrong.shape == (40, 15)
    assert wrong.mean() == pytest.approx(0.678, abs=0.001)
    # the shortcut, a wrong answer that somebody said, misleads it more than a link does
    assert wrong[:, 2::5].mean() > wrong[:, 4::5].mean() + 0.2
    rows = probe_networks.play_seeds("SmolLM2", wrong, 30, "uniform", 90, (0, 2))
    assert all(40 < row["keys"] < 80 and row["tasks"] <= 30 for row in rows)
    settings = {"budgets": [], "seeds": 2, "bank": 30, "tasks": 60}
    [described] = make_tables(rows, {"SmolLM2": wrong}, settings)
    assert described.rows[0].here["keys"] == 600
    assert "digits" not in described.rows[0].here


@needs_data
def test_recorded_answers_are_shown_where_no_network_can_be_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("inspect_ai")
    monkeypatch.setitem(sys.modules, "torch", None)
    result = probe_networks.study(SHARED, seeds=2, quick=True)
    assert "pip install torch" in result.lacking[0]
    assert [row.label for row in result.tables[0].rows] == ["SmolLM2"]
    assert all("SmolLM2 found" in row.here for row in result.tables[1].rows)


def test_recorded_answers_are_shown_where_the_data_are_missing(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    result = probe_networks.study(tmp_path, seeds=2, quick=True)
    assert "examples.parquet" in result.lacking[0]
    assert [row.label for row in result.tables[0].rows] == ["SmolLM2"]


@needs_data
@pytest.mark.slow
def test_the_study_plays_what_was_answered_before(tmp_path: Path) -> None:
    """No network is opened where all answers are in the file."""
    folder, keep = find_folder(SHARED), tmp_path / "rows.jsonl"
    bank = make_bank(folder, probe_networks.QUICK_TASKS)
    lines = []
    for model in probe_networks.MODELS:
        for name, (_, _, _, ids) in probe_networks.list_questions(folder, model, bank).items():
            rows = [
                {
                    "key": "|".join((id, *assignment)),
                    "answer": "?" if assignment[-1] == "words" else bank[id].answer,
                }
                for id in ids
                for assignment in GRAMMAR
            ]
            lines.append(json.dumps({"job": name, "rows": rows}))
    keep.write_text("\n".join(lines))
    result = probe_networks.study(SHARED, seeds=2, quick=True, keep=keep)
    assert not result.lacking
    described = result.tables[0].rows[0].here
    assert (described["rate"], described["digits"], described["words"]) == (0.5, 0.0, 1.0)
    assert probe_networks.study(SHARED, seeds=2, quick=True, keep=keep) == result
