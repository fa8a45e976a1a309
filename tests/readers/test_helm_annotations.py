"""A grading model of HELM that gave no verdict says nothing of the model that it was to grade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groundfault import Evidence
from groundfault.readers.helm import find_ungraded, needs_grader

VERDICT = {"criterion": {"score": 5, "explanation": "it is right"}}
ASKED = {"prompt_text": "Is this right?"}


@pytest.mark.parametrize(
    ("notes", "is_ungraded"),
    [
        ({**ASKED, "gpt_score": 3.0, "llama_score": 4.0}, False),
        ({**ASKED, "gpt_score": 3.0, "llama_score": None, "llama_reasoning": None}, True),
        ({**ASKED, "gpt_equivalence_judgement": None}, True),
        ({**ASKED, "gpt_equivalence_judgement": False, "gpt_justification": None}, False),
        ({"prompt_text": None, "empty_output_equivalence_judgement": False}, False),
        (None, False),
    ],
)
def test_an_empty_verdict_is_noticed(notes: Any, is_ungraded: bool) -> None:
    assert bool(find_ungraded({"a": {"judge": notes}})) == is_ungraded


@pytest.mark.parametrize(
    ("notes", "is_ungraded"),
    [
        ({**ASKED, "gpt": VERDICT, "llama": VERDICT}, False),
        ({**ASKED, "gpt": VERDICT}, True),
        (ASKED, True),
    ],
)
def test_a_member_of_a_jury_that_is_not_there_is_noticed(notes: Any, is_ungraded: bool) -> None:
    whole = {"judge": {**ASKED, "gpt": VERDICT, "llama": VERDICT}}
    assert bool(find_ungraded({"a": {"judge": notes}, "b": whole, "c": None})) == is_ungraded


def test_a_run_without_the_verdicts_of_its_graders_says_so(tmp_path: Path) -> None:
    stat = {"name": {"name": "omni_math_accuracy"}, "count": 1, "mean": 0.0}
    spec = {"name": "omni_math:model=org_m", "groups": ["omni_math"]}
    stats = [{"instance_id": "id1", "stats": [stat]}]
    for name, content in (("run_spec.json", spec), ("per_instance_stats.json", stats)):
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    account = Evidence.from_logs(tmp_path).account
    assert account is not None
    assert any("whose verdicts are not in the run" in note for note in account.logs[0].notes)


def test_a_comparison_of_texts_needs_no_grader() -> None:
    plain = ("exact_match", "quasi_prefix_exact_match", "final_number_exact_match", "rouge_l", "f1")
    assert not any(map(needs_grader, plain))
    assert all(map(needs_grader, ("omni_math_accuracy", "safety_score", "medhelm_accuracy")))


@pytest.mark.parametrize("published", [False, True])
def test_a_jury_that_was_down_scores_nobody(tmp_path: Path, published: bool) -> None:
    """HELM gives an answer on which no member of the jury said anything a score of 0."""
    run = tmp_path / "run"
    run.mkdir()
    spec = {"name": "jury:model=org_m", "adapter_spec": {"model": "org/m"}, "groups": []}
    notes: list[dict[str, Any]] = [{**ASKED, "gpt": VERDICT}, {**ASKED, "gpt": VERDICT}, ASKED]
    stats = [
        {
            "instance_id": f"id{i}",
            "stats": [
                {"name": {"name": name}, "count": 1, "mean": mean}
                for name, mean in (("jury_score", float(i == 0)), ("exact_match", float(i == 0)))
            ],
        }
        for i in range(3)
    ]
    instances = [{"id": f"id{i}", "input": {"text": f"question {i}"}} for i in range(3)]
    completion = {"success": True, "completions": [{"text": "an answer"}]}
    files: dict[str, Any] = {"run_spec.json": spec, "per_instance_stats.json": stats}
    if published:
        shown = [
            {"instance_id": f"id{i}", "predicted_text": "an answer", "annotations": {"jury": note}}
            for i, note in enumerate(notes)
        ]
        files |= {"instances.json": instances, "display_predictions.json": shown}
    else:
        states = [
            {"instance": one, "result": completion, "annotations": {"jury": note}}
            for one, note in zip(instances, notes, strict=True)
        ]
        files["scenario_state.json"] = {"request_states": states}
    for name, content in files.items():
        (run / name).write_text(json.dumps(content), encoding="utf-8")
    graded = Evidence.from_logs(run, scorer="jury_score")
    assert graded.status.to_list() == ["scored", "scored", "error"]
    assert graded.loss.to_list() == [0.0, 1.0, None]
    compared = Evidence.from_logs(run, scorer="exact_match")
    assert compared.status_counts["scored"] == 3
