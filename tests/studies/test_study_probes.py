"""The probe protocol end to end, against a scripted model whose every answer is known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from groundfault.probes import Bank, Grammar, route
from groundfault.review import Item
from groundfault_studies.brittle import Planted, Reviewer, plant
from groundfault_studies.probes import study
from groundfault_studies.tables import PaperStudy


@pytest.fixture(scope="module")
def planted() -> Planted:
    return plant(Bank.shipped(), Grammar.shipped())


def test_what_is_planted_routes_as_it_should(planted: Planted) -> None:
    bank = Bank.shipped()
    counts: Counter[Any] = Counter()
    for prompt, response in planted.responses.items():
        key = planted.keys[prompt]
        kind = planted.kinds[key]
        counts[kind] += 1
        assert (route(bank[key.split("|")[0]], response).signal == "match") == (kind == "right")
    assert len(planted.kinds) == 486
    assert min(counts.values()) >= 2
    assert set(counts) == {"right", "wrong", "misread", "format", "invalid"}
    assert plant(bank, Grammar.shipped()) == planted
    assert plant(bank, Grammar.shipped(), 1) != planted


def test_reviewers_know_the_truth_by_what_they_see_and_slip_as_often_as_told(
    planted: Planted,
) -> None:
    items = {
        key: Item(key.split("|")[0], prompt, "", "", planted.responses[prompt])
        for prompt, key in planted.keys.items()
    }
    expected = {
        "right": "no_error",
        "wrong": "model_error",
        "misread": "extraction_artifact",
        "format": "format_artifact",
        "invalid": "invalid_prompt",
    }
    for key, item in items.items():
        assert Reviewer("cy", planted).decide(item).verdict == expected[planted.kinds[key]]
    slips = sum(
        Reviewer("ana", planted, 0.2).decide(item).verdict != expected[planted.kinds[key]]
        for key, item in items.items()
    )
    assert 60 < slips < 140


@pytest.fixture(scope="module")
def study_and_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[PaperStudy, Path]:
    home = tmp_path_factory.mktemp("study")
    return study(quick=True, keep=home / "probes.rows.jsonl"), home


def table(study_and_home: tuple[PaperStudy, Path], title: str) -> dict[str, Any]:
    (one,) = (t for t in study_and_home[0].tables if t.title.startswith(title))
    return {row.label: row for row in one.rows}


@pytest.mark.slow
def test_artefacts_are_excluded_and_errors_found(study_and_home: tuple[PaperStudy, Path]) -> None:
    rows = table(study_and_home, "What was planted")
    for name in ("v2", "v3", "v4", "policies", "exhaustive"):
        wrong = rows[f"{name}: wrong answers"].here
        assert wrong["proxy"] == wrong["rows"]
        assert wrong["confirmed"] >= 0.9 * wrong["rows"]
        for kind in (
            "misread by the machine",
            "right, in another form",
            "prompts that changed the task",
        ):
            here = rows[f"{name}: {kind}"].here
            assert (here["confirmed"], here["open"]) == (0, 0)
            assert here["excluded"] + here["no_error"] == here["rows"]
        assert rows[f"{name}: right answers"].here["proxy"] == 0
    assert (
        rows["exhaustive: wrong answers"].here["keys"]
        == rows["exhaustive: wrong answers"].here["planted"]
    )


@pytest.mark.slow
def test_the_papers_tables_stand_beside_ours_and_all_fixtures_tie(
    study_and_home: tuple[PaperStudy, Path],
) -> None:
    matched = table(study_and_home, "Table 2")
    assert matched["v4"].paper["rows"] == "13 CAPS / 11 Uniform"
    fixture = table(study_and_home, "Table 6")
    assert fixture["Ties"].here == fixture["Ties"].paper == {"value": "5"}
    assert fixture["CAPS mean best score"].here == fixture["Uniform mean best score"].here
    titles = [t.title for t in study_and_home[0].tables]
    for number in (2, *range(5, 13)):
        assert any(title.startswith(f"Table {number}:") for title in titles)
    for one in study_and_home[0].tables:  # our numbers of queries are the paper's
        for row in one.rows:
            for key in {"queries", "records", "budget"} & set(row.paper):
                assert str(row.here[key]) == row.paper[key]


@pytest.mark.slow
def test_the_planted_component_is_confirmed_and_the_others_are_not_said_to_raise_errors(
    study_and_home: tuple[PaperStudy, Path],
) -> None:
    rows = table(study_and_home, "Do errors rise")
    assert rows["distractor = shortcut"].here["verdict"] == "confirmed"
    assert rows["distractor = shortcut"].here["lift"] > 0.1
    others = [row.here for label, row in rows.items() if label != "distractor = shortcut"]
    assert not [here for here in others if here["verdict"] == "confirmed" and here["lift"] > 0]


@pytest.mark.slow
def test_the_replay_is_identical_the_package_reproduces_and_the_study_resumes(
    study_and_home: tuple[PaperStudy, Path],
) -> None:
    outcomes = [
        row.here["said"] for row in table(study_and_home, "Again, from the recorded calls").values()
    ]
    assert outcomes == ["identical, byte by byte", "identical", "reproduces"]
    again = study(quick=True, keep=study_and_home[1] / "probes.rows.jsonl")
    assert again.to_json() == study_and_home[0].to_json()
