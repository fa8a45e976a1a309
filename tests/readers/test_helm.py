"""HELM runs: rows conserved, perturbations and trials kept apart, failed requests no failures."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from damage import BYTES, damage_bytes, odd, read_or_refused
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault import readers
from groundfault.errors import InputError
from groundfault.readers.helm import Helm
from groundfault.readers.log import Log, Observation

MMLU = "mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2"


@pytest.fixture(scope="module")
def logs(shared: Path) -> Path:
    return shared / "real/native_logs/helm"


@pytest.fixture
def run(logs: Path, tmp_path: Path) -> Path:
    """A copy of a real run, to be changed."""
    place = tmp_path / "run"
    place.mkdir()
    for path in (logs / MMLU).iterdir():
        shutil.copyfile(path, place / path.name)
    return place


def read(path: Path) -> tuple[Log, list[Observation]]:
    assert readers.sniff(path) == "helm"
    log = Helm().read(path)
    observations = list(log.observations)
    list(Log(observations).tables())
    return log, observations


def edit_file(run: Path, name: str, change: Any) -> None:
    content = json.loads((run / name).read_text())
    change(content["request_states"] if name == "scenario_state.json" else content)
    (run / name).write_text(json.dumps(content))


def test_every_instance_has_a_row_a_metric(logs: Path) -> None:
    for path in logs.iterdir():
        log, rows = read(path)
        expected = {
            (entry["instance_id"], stat["name"]["name"]): stat["mean"]
            for entry in json.loads((path / "per_instance_stats.json").read_text())
            for stat in entry["stats"]
            if "exact_match" in stat["name"]["name"]
        }
        assert {(r.example_id, r.scorer): r.value for r in rows} == expected
        assert len(rows) == len(expected) == 80
        assert log.notes == []
        assert {r.status for r in rows} == {"scored"}


def test_what_is_said_of_an_instance(logs: Path) -> None:
    row = read(logs / MMLU)[1][0]
    state = json.loads((logs / MMLU / "scenario_state.json").read_text())["request_states"][0]
    assert (row.example_id, row.model, row.epoch, row.group) == ("id147", "openai/gpt2", 1, None)
    assert row.task == "mmlu:subject=philosophy,method=multiple_choice_joint"
    assert row.prompt == state["instance"]["input"]["text"]
    assert row.response == state["result"]["completions"][0]["text"]
    assert row.answer == state["output_mapping"]["D"]
    assert row.target == "internalmeaning"
    assert row.attributes == {
        "subject": "philosophy",
        "split": "test",
        "references": 4,
        "groups": "mmlu",
    }
    assert row.measured["input_tokens"] == 333
    assert row.measured["parsed"] is True
    assert row.logprob is None  # the log says 0 for want of one


def test_perturbations_are_examples_of_one_group_and_trials_are_epochs(run: Path) -> None:
    typos = {"name": "typos", "robustness": True, "typo_probability": 0.1}

    def vary(entries: list[Any]) -> None:
        for entry in list(entries):
            again = json.loads(json.dumps(entry))
            again.get("instance", again)["perturbation"] = typos
            entries.append(again)
            other = json.loads(json.dumps(entry))
            other["train_trial_index"] = 1
            entries.append(other)

    edit_file(run, "per_instance_stats.json", vary)
    edit_file(run, "scenario_state.json", vary)
    rows = [r for r in read(run)[1] if r.scorer == "exact_match"]
    assert len({(r.example_id, r.epoch) for r in rows}) == len(rows) == 30
    assert {(r.example_id, r.epoch) for r in rows if r.group == "id147"} == {
        ("id147", 1),
        ("id147", 2),
        ("id147/typos(typo_probability=0.1)", 1),
    }


def test_a_request_that_failed_is_no_failure_of_the_model(run: Path) -> None:
    def fail(states: list[Any]) -> None:
        states[0]["result"] = {"success": False, "error": "503\nbusy", "completions": []}
        states[1]["result"] = {"success": False, "error": "Content blocked", "completions": []}

    edit_file(run, "scenario_state.json", fail)
    rows = [r for r in read(run)[1] if r.scorer == "exact_match"]
    assert Counter(r.status for r in rows) == {"error": 1, "refused": 1, "scored": 8}
    assert [r.value for r in rows[:2]] == [None, None]
    assert rows[0].measured["error"] == "503"


def test_an_instance_without_statistics_is_missing(run: Path) -> None:
    edit_file(run, "per_instance_stats.json", lambda entries: entries.pop(0))
    rows = read(run)[1]
    assert [(r.example_id, r.scorer) for r in rows if r.status == "missing"] == [("id147", "")]
    assert len(rows) == 73


def test_a_metric_that_was_not_observed_is_missing(run: Path) -> None:
    def drop(entries: list[Any]) -> None:
        for stat in entries[0]["stats"]:
            if stat["name"]["name"] == "exact_match":
                stat |= {"count": 0, "sum": 0}
                del stat["mean"]

    edit_file(run, "per_instance_stats.json", drop)
    assert [r.scorer for r in read(run)[1] if r.status == "missing"] == ["exact_match"]


def test_of_a_conversation_the_last_question_is_the_prompt(run: Path) -> None:
    def chat(states: list[Any]) -> None:
        messages = [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ]
        states[0]["instance"]["input"] = {"messages": messages}

    edit_file(run, "scenario_state.json", chat)
    assert read(run)[1][0].prompt == "c"


def test_choices_asked_about_one_by_one(run: Path) -> None:
    """The metric's choice is the answer, and its probability the confidence."""

    def separate(states: list[Any]) -> None:
        for state in list(states):
            states.remove(state)
            for index in range(4):
                each = json.loads(json.dumps(state)) | {
                    "reference_index": index,
                    "request_mode": "original",
                }
                del each["output_mapping"]
                each["result"]["completions"] = [
                    {"text": f"choice {index}", "logprob": -1.5 - index, "tokens": []}
                ]
                states += [each, each | {"request_mode": "calibration"}]

    def choose(entries: list[Any]) -> None:
        for entry in entries:
            entry["stats"].append({"name": {"name": "predicted_index"}, "count": 1, "mean": 2.0})
            next(s for s in entry["stats"] if s["name"]["name"] == "max_prob")["mean"] = 0.75

    edit_file(run, "scenario_state.json", separate)
    edit_file(run, "per_instance_stats.json", choose)
    rows = read(run)[1]
    assert len(rows) == 80
    assert (rows[0].answer, rows[0].logprob, rows[0].confidence) == ("internalmeaning", -3.5, 0.75)
    assert "parsed" not in rows[0].measured


def test_published_runs_have_only_what_their_page_shows(run: Path) -> None:
    whole = {r.example_id: r for r in read(run)[1] if r.scorer == "exact_match"}
    states = json.loads((run / "scenario_state.json").read_text())["request_states"]
    texts = [
        {
            "instance_id": state["instance"]["id"],
            "train_trial_index": 0,
            "predicted_text": state["result"]["completions"][0]["text"],
            "mapped_output": state["output_mapping"][
                state["result"]["completions"][0]["text"].strip()
            ],
            "stats": {"exact_match": whole[state["instance"]["id"]].value},
        }
        for state in states
    ]
    (run / "instances.json").write_text(json.dumps([state["instance"] for state in states]))
    (run / "display_predictions.json").write_text(json.dumps(texts))
    (run / "scenario_state.json").unlink()
    (run / "per_instance_stats.json").unlink()
    rows = read(run)[1]
    assert len(rows) == 10
    for row in rows:
        other = whole[row.example_id]
        assert (row.value, row.prompt, row.response, row.answer, row.target) == (
            other.value,
            other.prompt,
            other.response,
            other.answer,
            other.target,
        )


def test_without_its_requests_a_run_says_so(run: Path) -> None:
    (run / "scenario_state.json").unlink()
    log, rows = read(run)
    assert len(rows) == 80
    assert log.notes == ["no scenario_state.json or instances.json: the questions are unknown"]


@pytest.mark.parametrize("bad", [b"", b"[", b"{}", b"[{}]", b"[1]", b"\xff", b"[" * 100_000])
def test_nonsense_is_one_line(run: Path, bad: bytes) -> None:
    (run / "per_instance_stats.json").write_bytes(bad)
    with pytest.raises(InputError) as error:
        list(Helm().read(run).observations)
    assert str(run) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_of_anything_else_is_not_helm(run: Path, logs: Path) -> None:
    assert not Helm().sniff(logs)
    assert not Helm().sniff(run / "run_spec.json")
    with pytest.raises(InputError, match="no run of HELM"):
        Helm().read(logs)


@settings(max_examples=count_examples(60))
@given(
    how=BYTES,
    name=st.sampled_from(["run_spec.json", "per_instance_stats.json", "scenario_state.json"]),
)
def test_any_bytes_are_a_run_or_one_error(
    logs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    how: tuple[list[tuple[float, int]], float],
    name: str,
) -> None:
    place = tmp_path_factory.mktemp("damaged")
    for path in (logs / MMLU).iterdir():
        content = path.read_bytes()
        (place / path.name).write_bytes(
            damage_bytes(content, how) if path.name == name else content
        )
    read_or_refused(place, "helm")


@settings(max_examples=count_examples(60))
@given(data=st.data())
def test_any_value_anywhere_is_a_run_or_one_error(
    logs: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    documents = {path.name: json.loads(path.read_text()) for path in (logs / MMLU).iterdir()}
    state = documents["scenario_state.json"]
    state["request_states"] = state["request_states"][:2]
    documents["per_instance_stats.json"] = documents["per_instance_stats.json"][:2]
    variant = odd(
        {
            name: documents[name]
            for name in ("run_spec.json", "per_instance_stats.json", "scenario_state.json")
        },
        data,
    )
    place = tmp_path_factory.mktemp("odd")
    for name, document in variant.items():
        (place / name).write_text(json.dumps(document))
    read_or_refused(place, "helm")
