"""Readers of small formats: every row, the statuses, and notes on what a file lacks."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from reader_samples import ANNOTATION, read, write_json

from groundfault import Evidence, readers
from groundfault.errors import InputError

FORMATS = {
    "deepeval/*.json": "deepeval",
    "evalplus/*.json": "evalplus",
    "gsm8k_openai/*.jsonl": "gsm8k",
    "lm_eval/*/samples_*.jsonl": "lm_eval",
    "mint/*.jsonl": "mint",
    "swebench_pro/*.json": "swebench",
    "taubench/*.json": "tau_bench",
    "zeroeval/*.json": "zero_eval",
}


@pytest.fixture(scope="module")
def logs(shared: Path) -> Path:
    return shared / "real/native_logs"


def test_each_real_file_is_known_to_its_reader_and_to_no_other(logs: Path) -> None:
    """Every log, tried with every reader of a tool; companion files are nobody's."""
    expected = {path: name for pattern, name in FORMATS.items() for path in logs.glob(pattern)}
    assert len(expected) == 16
    for path in (p for p in logs.rglob("*") if p.is_file()):
        knows = {name for name in FORMATS.values() if readers.get(name).sniff(path)}
        assert knows == {expected[path]} if path in expected else not knows


# SWE-bench


def test_swebench_pro_maps_keep_every_instance_under_an_id_without_its_version(logs: Path) -> None:
    """Agents name the same instance with -v<hash>, -vnan or nothing behind it."""
    ids = []
    for path in logs.glob("swebench_pro/*.json"):
        content = json.loads(path.read_text())
        _, observations = read(path, "swebench")
        assert [bool(o.value) for o in observations] == list(content.values())
        assert [o.example_id.partition("-v")[0] for o in observations] == [
            name.partition("-v")[0] for name in content
        ]
        assert len({o.example_id for o in observations}) == len(content)
        assert {o.model for o in observations} == {path.name.removesuffix(".eval_results.json")}
        ids.append({o.example_id for o in observations})
    assert len(ids[0] & ids[1]) > 600


@pytest.mark.parametrize("suffix", ["", "-v", "-vnan", "-v0f01c69f1e25"])
def test_the_version_of_an_instance_is_an_attribute(tmp_path: Path, suffix: str) -> None:
    """And its repository."""
    name = "instance_element-hq__element-web-" + "1a" * 20
    _, (one,) = read(write_json(tmp_path / "a.json", {name + suffix: True}), "swebench")
    assert one.example_id == name
    assert one.attributes == {"repo": "element-hq/element-web"} | (
        {"version": suffix[2:]} if suffix else {}
    )


def test_a_swebench_run_keeps_errors_empty_patches_and_the_unrun_apart(tmp_path: Path) -> None:
    """As swebench writes it; the harness's own failures are not the model's."""
    ids = {name: f"django__django-{i}" for i, name in enumerate(("a", "b", "c", "d", "e", "f"), 1)}
    report = {
        "total_instances": 6,
        "completed_ids": [ids["a"], ids["b"], ids["f"]],
        "incomplete_ids": [ids["e"]],
        "empty_patch_ids": [ids["d"]],
        "submitted_ids": [ids[k] for k in "abcdf"],
        "resolved_ids": [ids["a"]],
        "unresolved_ids": [ids["b"], ids["f"]],
        "infra_failure_ids": [ids["f"]],
        "error_ids": [ids["c"]],
        "schema_version": 2,
    }
    _, observations = read(write_json(tmp_path / "org__gpt-3.5.run7.json", report), "swebench")
    result = {o.example_id: (o.value, o.status) for o in observations}
    assert result == {
        ids["a"]: (1, "scored"),
        ids["b"]: (0, "scored"),
        ids["c"]: (None, "error"),
        ids["d"]: (None, "unparsed"),
        ids["e"]: (None, "missing"),
        ids["f"]: (None, "error"),
    }
    assert {o.model for o in observations} == {"org/gpt-3.5"}
    assert {o.attributes["repo"] for o in observations} == {"django/django"}
    # its lists are by outcome, and so would be a position in them
    assert not [o for o in observations if o.measured]


def make_entry(place: Path, agent: str, resolved: int) -> Path:
    """A leaderboard entry on 50 instances, 3 of which were never generated and 1 left no log."""
    ids = [f"django__django-{i}" for i in range(50)]
    lists = {"no_generation": ids[-3:], "no_logs": ids[-4:-3], "resolved": ids[:resolved]}
    return write_json(place / agent / "results" / "results.json", lists)


def test_results_of_a_leaderboard_need_the_list_of_instances(tmp_path: Path) -> None:
    """They list what was resolved: without the rest every agent would have solved everything."""
    paths = [make_entry(tmp_path, agent, n) for agent, n in (("agent_a", 20), ("agent_b", 30))]
    with pytest.raises(InputError, match=r"only resolved instances \(20\), not failed ones"):
        read(paths[0], "swebench")
    (tmp_path / "instances.txt").write_text("".join(f"django__django-{i}\n" for i in range(50)))
    for path, model, n in zip(paths, ("agent_a", "agent_b"), (20, 30), strict=True):
        log, observations = read(path, "swebench")
        statuses = Counter((o.value, str(o.status)) for o in observations)
        assert statuses == {
            (1, "scored"): n,
            (0, "scored"): 46 - n,
            (None, "unparsed"): 3,
            (None, "error"): 1,
        }
        assert {o.model for o in observations} == {model}
        assert log.notes == ["failures are taken from instances.txt, which lists 50 instances"]
    assert Evidence.from_logs(tmp_path).models == ("agent_a", "agent_b")
    (tmp_path / "instances.txt").write_text("sympy__sympy-1\n")
    with pytest.raises(InputError, match="24 of its instances, such as 'django__django-0'"):
        read(paths[0], "swebench")


def test_an_agents_predictions_are_its_list_of_instances(tmp_path: Path) -> None:
    path = make_entry(tmp_path, "agent", 20)
    rows = [{"instance_id": f"django__django-{i}", "model_patch": "+"} for i in range(50)]
    lines = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "agent" / "all_preds.jsonl").write_text(lines)
    _, observations = read(path, "swebench")
    assert len(observations) == 50


def test_older_results_list_what_was_generated(tmp_path: Path) -> None:
    lists = {"generated": ["a__b-1", "a__b-2"], "no_generation": ["a__b-3"], "resolved": ["a__b-2"]}
    _, observations = read(write_json(tmp_path / "agent" / "results.json", lists), "swebench")
    assert {o.example_id: o.value for o in observations} == {
        "a__b-1": 0,
        "a__b-2": 1,
        "a__b-3": None,
    }


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("X.gpt-5.1.json", "X.gpt-5.1"),
        ("X.gpt-5.1.run2.json", "X.gpt-5.1"),
        ("gpt-4.nightly.json", "gpt-4"),
        ("agent.json", "agent"),
        ("claude-3.5-sonnet.json", "claude-3.5-sonnet"),
    ],
)
def test_a_version_is_not_cut_off_a_models_name(tmp_path: Path, name: str, model: str) -> None:
    report = {"resolved_ids": ["a__b-1"], "unresolved_ids": []}
    _, (one,) = read(write_json(tmp_path / name, report), "swebench")
    assert one.model == model


@pytest.mark.parametrize("content", [{"a__b-1": {}}, {"my__key": {"x": 1}}, {}])
def test_a_map_with_nothing_in_it_is_no_swebench_file(
    tmp_path: Path, content: dict[str, object]
) -> None:
    assert readers.sniff(write_json(tmp_path / "a.json", content)) != "swebench"


def test_a_run_whose_first_lists_are_long_is_still_known(tmp_path: Path) -> None:
    """Over 64 KB of ids before the list of the resolved."""
    many = [f"sympy__sympy-{i}" for i in range(5000)]
    report = {
        "total_instances": 5000,
        "completed_ids": many,
        "resolved_ids": many[:7],
        "unresolved_ids": many[7:],
    }
    _, observations = read(write_json(tmp_path / "m.r.json", report), "swebench")
    assert sum(o.value or 0 for o in observations) == 7


def test_reports_of_one_instance(tmp_path: Path) -> None:
    """report.json in the folder of its instance, in the folder of its model."""
    name = "astropy__astropy-12907"
    applied = {
        "patch_is_None": False,
        "patch_exists": True,
        "patch_successfully_applied": True,
        "resolved": False,
    }
    for values, expected in (
        (applied | {"resolved": True}, (1, "scored")),
        (applied | {"patch_successfully_applied": False}, (0, "scored")),
        (applied | {"patch_is_None": True, "patch_exists": False}, (None, "unparsed")),
        (applied | {"infra_failure": True}, (None, "error")),
    ):
        path = write_json(tmp_path / f"logs/run/org__model/{name}/report.json", {name: values})
        _, (one,) = read(path, "swebench")
        assert (one.value, one.status, one.model) == (*expected, "org/model")
        assert one.measured["patch_exists"] == values["patch_exists"]


# AlpacaEval


@pytest.mark.parametrize(
    ("preference", "value", "status"),
    [
        (2, 1, "scored"),
        (1.0, 0, "scored"),
        (1.5, 0.5, "scored"),
        (1.9375, 0.9375, "scored"),
        (None, None, "missing"),
        (0, None, "unparsed"),
    ],
)
def test_a_preference_is_a_value(
    tmp_path: Path, preference: float, value: float, status: str
) -> None:
    """1 is the baseline's, 2 the model's; null was not judged."""
    path = write_json(tmp_path / "annotations.json", [ANNOTATION | {"preference": preference}])
    _, (one,) = read(path, "alpaca_eval")
    assert (one.value, one.status, one.model, one.scorer) == (
        value,
        status,
        "my-model",
        "alpaca_eval_gpt4",
    )


def test_annotations_are_named_by_their_instruction(tmp_path: Path) -> None:
    """The same in both copies of a folder, whatever their order."""
    rows = [ANNOTATION, ANNOTATION | {"instruction": "Name a fish."}]
    one = read(write_json(tmp_path / "annotations.json", rows), "alpaca_eval")[1]
    two = read(write_json(tmp_path / "nested/annotations.json", rows[::-1]), "alpaca_eval")[1]
    assert [o.example_id for o in one] == [o.example_id for o in two][::-1]
    assert one[0].example_id != one[1].example_id


# EvalPlus and BigCodeBench


def test_brief_files_of_evalperf_give_shares_of_a_hundred(logs: Path) -> None:
    """They have no single answers; too few right answers leave a task without a speed score."""
    for path in logs.glob("evalplus/*.json"):
        content = json.loads(path.read_text())["eval"]
        log, observations = read(path, "evalplus")
        expected = [
            (task, name, None if values[name] is None else values[name] / 100)
            for task, values in content.items()
            for name in ("pass@1", "dps", "dps_norm")
        ]
        assert [(o.example_id, o.scorer, o.value) for o in observations] == expected
        assert {o.model for o in observations} == {path.name.partition("_evalperf")[0]}
        assert "outcomes of single answers are not in this file" in log.notes[0]


def test_plus_wants_the_base_tests_too_and_samples_are_epochs(tmp_path: Path) -> None:
    """A time-out of the program is its failure; base-only runs have no scorer plus."""
    answers = [
        {
            "task_id": "HumanEval/0",
            "solution": "s",
            "base_status": b,
            "plus_status": p,
            "base_fail_tests": [],
        }
        for b, p in (
            ("pass", "pass"),
            ("pass", "fail"),
            ("fail", "pass"),
            ("timeout", "timeout"),
            ("pass", None),
        )
    ]
    path = tmp_path / "humaneval/org--model_vllm_temp_0.8.eval_results.json"
    write_json(path, {"date": "2024-10-27 18:01", "hash": "x", "eval": {"HumanEval/0": answers}})
    _, observations = read(path, "evalplus")
    base = [o.value for o in observations if o.scorer == "base"]
    plus = [
        (o.epoch, o.value, o.measured["test_status"]) for o in observations if o.scorer == "plus"
    ]
    assert base == [1, 1, 0, 0, 1]
    assert plus == [(1, 1, "pass"), (2, 0, "fail"), (3, 0, "pass"), (4, 0, "timeout")]
    assert {o.model for o in observations} == {"org/model"}


def test_bigcodebench_and_full_evalperf_and_the_first_layout_of_evalplus(tmp_path: Path) -> None:
    """One observation an answer in each."""
    name = "org--m--main--bigcodebench-instruct--vllm-0-1-sanitized_calibrated_eval_results.json"
    big = {
        "BigCodeBench/0": [
            {"task_id": "BigCodeBench/0", "solution": "s", "status": "fail", "details": {}}
        ]
    }
    log, (one,) = read(write_json(tmp_path / name, {"date": "d", "eval": big}), "evalplus")
    assert (one.value, one.model, one.task, log.harness) == (
        0,
        "org/m",
        "BigCodeBench",
        "bigcodebench",
    )
    perf = {
        "HumanEval/1": {
            "task_id": "HumanEval/1",
            "results": [{"solution": "a", "pass": True}, {"pass": False}],
        }
    }
    _, two = read(write_json(tmp_path / "m_evalperf_results.json", {"eval": perf}), "evalplus")
    assert [(o.epoch, o.value) for o in two] == [(1, 1), (2, 0)]
    old = {
        "HumanEval/2": {
            "nfiles": 2,
            "base": [["pass", []], ["fail", []]],
            "plus": [["pass", []], ["pass", []]],
        }
    }
    _, three = read(write_json(tmp_path / "old_eval_results.json", {"eval": old}), "evalplus")
    assert [(o.scorer, o.epoch, o.value) for o in three] == [
        ("base", 1, 1),
        ("plus", 1, 1),
        ("base", 2, 0),
        ("plus", 2, 0),
    ]


# DeepEval


def test_deepeval_has_one_row_a_metric_and_one_for_the_case(logs: Path) -> None:
    """The verdict is the value, the score is measured."""
    (path,) = logs.glob("deepeval/*.json")
    log, observations = read(path, "deepeval")
    assert log.verdict == "success"
    (case,) = json.loads(path.read_text())["testCases"]
    expected = [("success", 0.0)] + [(m["name"], float(m["success"])) for m in case["metricsData"]]
    assert [(o.scorer, o.value) for o in observations] == expected
    assert observations[1].measured["score"] == 0.92
    assert observations[1].measured["judge"] == "gpt-5.4"
    reasons = [metric["reason"] for metric in case["metricsData"]]
    assert [o.measured["reason"] for o in observations[1:]] == reasons
    assert all(reason in observations[0].measured["reason"] for reason in reasons)
    assert {o.example_id for o in observations} == {"sample_test_case"}


def test_a_metric_that_raised_is_an_error_and_a_low_score_may_be_good(tmp_path: Path) -> None:
    """Bias of 0.1 under a threshold of 0.5 is a pass; a conversation has turns."""
    run = {
        "testCases": [
            {
                "name": "test_case_0",
                "input": "q",
                "actualOutput": "a",
                "success": None,
                "metricsData": [
                    {
                        "name": "Bias",
                        "threshold": 0.5,
                        "success": None,
                        "score": None,
                        "error": "time-out",
                    }
                ],
            }
        ],
        "conversationalTestCases": [
            {
                "name": "talk",
                "success": True,
                "metricsData": [{"name": "Bias", "threshold": 0.5, "success": True, "score": 0.1}],
                "turns": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": "hello"},
                ],
                "scenario": "greeting",
            }
        ],
        "hyperparameters": {"model": "gpt-4o"},
    }
    for content in (run, {"testRunData": run}):
        _, observations = read(write_json(tmp_path / "run.json", content), "deepeval")
        result = [(o.example_id, o.scorer, o.value, o.status) for o in observations]
        assert result == [
            ("test_case_0", "success", None, "error"),
            ("test_case_0", "Bias", None, "error"),
            ("talk", "success", 1, "scored"),
            ("talk", "Bias", 1, "scored"),
        ]
        assert {o.model for o in observations} == {"gpt-4o"}
        assert (observations[2].prompt, observations[2].response) == ("greeting", "hello")


# tau-bench


def test_trials_of_a_task_are_its_epochs(logs: Path) -> None:
    """Counted again from the file."""
    (path,) = logs.glob("taubench/*.json")
    rows = json.loads(path.read_text())
    _, observations = read(path, "tau_bench")
    assert [(o.example_id, o.epoch, o.value) for o in observations] == [
        (str(r["task_id"]), r["trial"] + 1, r["reward"]) for r in rows
    ]
    assert {(o.model, o.task) for o in observations} == {("gpt-4o", "tau-bench airline")}
    assert observations[0].measured["tool_calls"] == sum(
        m["role"] == "tool" for m in rows[0]["traj"]
    )


def test_an_exception_of_the_harness_is_no_failure_of_the_agent(logs: Path, tmp_path: Path) -> None:
    """tau-bench writes reward 0 and the traceback."""
    (path,) = logs.glob("taubench/*.json")
    rows = json.loads(path.read_text())[:3]
    rows[1] |= {"reward": 0.0, "info": {"error": "rate limit", "traceback": "..."}, "traj": []}
    content = write_json(
        tmp_path / "tool-calling-my-model-0.0_range_0--1_user-gpt-4o-llm_0101.json", rows
    )
    _, observations = read(content, "tau_bench")
    assert [(o.status, o.value) for o in observations] == [
        ("scored", 0),
        ("error", None),
        ("scored", rows[2]["reward"]),
    ]
    assert {o.model for o in observations} == {"my-model"}


def test_tau2_leaves_out_what_tau2_calls_not_evaluable(tmp_path: Path) -> None:
    """Simulations, with tasks beside them."""
    results = {
        "timestamp": "t",
        "info": {
            "user_info": {"llm": "u"},
            "agent_info": {"llm": "a"},
            "environment_info": {"domain_name": "retail"},
        },
        "tasks": [
            {
                "id": "7",
                "user_scenario": {"instructions": "return it"},
                "evaluation_criteria": {"actions": []},
            }
        ],
        "simulations": [
            {
                "id": "x",
                "task_id": "7",
                "trial": 0,
                "termination_reason": "user_stop",
                "reward_info": {"reward": 1.0},
            },
            {
                "id": "y",
                "task_id": "7",
                "trial": 1,
                "termination_reason": "infrastructure_error",
                "reward_info": None,
            },
            {
                "id": "z",
                "task_id": "7",
                "trial": 2,
                "termination_reason": "max_steps",
                "reward_info": {"reward": 0.0},
            },
            {
                "id": "w",
                "task_id": "7",
                "trial": 3,
                "termination_reason": "user_stop",
                "reward_info": None,
            },
        ],
    }
    _, observations = read(write_json(tmp_path / "r.json", results), "tau_bench")
    assert [(o.epoch, o.value, o.status) for o in observations] == [
        (1, 1, "scored"),
        (2, None, "error"),
        (3, 0, "scored"),
        (4, None, "missing"),
    ]
    assert {(o.model, o.task, o.prompt) for o in observations} == {
        ("a", "tau2-bench retail", "return it")
    }


# MINT, ZeroEval, GSM8K


def test_mint_keeps_what_follows_from_failing_as_measured(logs: Path) -> None:
    """Counted again from the files; why an episode ended is no attribute of its task."""
    for path in logs.glob("mint/*.jsonl"):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        _, observations = read(path, "mint")
        assert [bool(o.value) for o in observations] == [r["state"]["success"] for r in rows]
        assert [o.measured["terminate_reason"] for o in observations] == [
            r["state"]["terminate_reason"] for r in rows
        ]
        assert {f"{o.model}_max5_{o.task}.results.jsonl" for o in observations} == {path.name}


def test_a_mint_episode_that_ended_in_an_error_is_one(logs: Path, tmp_path: Path) -> None:
    """In the folders of MINT the model is named above the feedback setting."""
    row = json.loads(next(logs.glob("mint/gpt*gsm8k*")).read_text().splitlines()[0])
    row["state"] |= {"terminate_reason": "error", "error": "context length", "success": False}
    path = write_json(
        tmp_path / "gpt-4/F=None/max5_p2+tool+cd/reasoning/gsm8k/results.jsonl", [row]
    )
    _, (one,) = read(path, "mint")
    assert (one.status, one.value, one.model, one.task) == ("error", None, "gpt-4", "gsm8k")


def test_zero_eval_is_graded_as_zero_eval_grades(logs: Path, shared: Path) -> None:
    """400 of 400 as in the outcomes made from all of its answers; no JSON answer is unparsed."""
    (path,) = logs.glob("zeroeval/crux*.json")
    log, observations = read(path, "zero_eval")
    outcomes = pl.read_parquet(shared / "real/zeroeval/outcomes.parquet").filter(
        pl.col("model") == "gpt-4o-2024-08-06", pl.col("benchmark") == "crux"
    )
    expected = {
        name: (c, p)
        for name, c, p in outcomes.select("example_id", "correct", "answer_parsed").iter_rows()
    }
    for o in observations:
        correct, parsed = expected[o.example_id]
        assert (o.value, o.status) == ((correct, "scored") if parsed else (None, "unparsed"))
    assert "graded here" in log.notes[0]
    (path,) = logs.glob("zeroeval/numersense*.json")
    _, observations = read(path, "zero_eval")
    assert len(observations) == len(json.loads(path.read_text())) == 512


def test_zero_eval_of_another_data_set_is_not_graded(logs: Path, tmp_path: Path) -> None:
    """A rule that is not known is not guessed."""
    rows = json.loads(next(logs.glob("zeroeval/crux*.json")).read_text())[:5]
    path = write_json(tmp_path / "x.json", [row | {"dataset": "zebra-grid"} for row in rows])
    log, observations = read(path, "zero_eval")
    assert {(o.value, o.status) for o in observations} == {(None, "missing")}
    assert "not graded" in log.notes[0]


def test_each_column_of_gsm8k_is_a_model(logs: Path) -> None:
    """Counted again from the file."""
    (path,) = logs.glob("gsm8k_openai/*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    _, observations = read(path, "gsm8k")
    right = Counter(
        model
        for row in rows
        for model, values in row.items()
        if isinstance(values, dict) and values["is_correct"]
    )
    assert Counter(o.model for o in observations if o.value) == right
    assert len(observations) == 4 * len(rows)
    assert observations[0].target == "18"


@pytest.mark.parametrize("name", sorted(set(FORMATS.values())))
@pytest.mark.parametrize(
    "bad", [b"{", b"[1]", b'{"eval": 3}', b"\xff\xfe{\x00", b"[" * 200_000, b"3"]
)
def test_nonsense_is_one_line(tmp_path: Path, name: str, bad: bytes) -> None:
    """Cut short, of another shape, not UTF-8, nested too deeply."""
    path = tmp_path / "x.json"
    path.write_bytes(bad)
    with pytest.raises(InputError) as error:
        list(readers.read(path, name).tables())
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
