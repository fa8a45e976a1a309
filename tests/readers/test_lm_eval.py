"""lm-evaluation-harness samples: doubled rows, quoted log-likelihoods, unparsed answers."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundfault import Evidence, readers
from groundfault.errors import InputError
from groundfault.readers import lm_eval
from groundfault.readers.log import COLUMNS, ORIGIN, Log, Observation

Rows = list[dict[str, Any]]


@pytest.fixture
def folder(shared: Path, tmp_path: Path) -> Path:
    """A copy of a real run of two tasks, to be edited."""
    return Path(
        shutil.copytree(shared / "real/native_logs/lm_eval/own_tinygpt2", tmp_path / "org__tiny")
    )


def samples(folder: Path, task: str) -> Path:
    return next(folder.glob(f"samples_{task}_*.jsonl"))


def edit_rows(path: Path, change: Callable[[Rows], Rows]) -> Path:
    rows = change([json.loads(line) for line in path.read_text().splitlines()])
    path.chmod(0o644)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def observations(path: Path) -> list[Observation]:
    return list_rows(readers.read(path))


def list_rows(log: Log) -> list[Observation]:
    """The rows of a log's tables, with the attributes and measurements that each has."""
    rows = []
    for table, measured in log.tables():
        for cells in table.drop(ORIGIN).iter_rows(named=True):
            other = {n: v for n, v in cells.items() if n not in COLUMNS and v is not None}
            own = {name: other.pop(name) for name in measured if name in other}
            known = {name: cells[name] for name in COLUMNS}
            rows.append(Observation(**known, attributes=other, measured=own))
    return rows


def test_every_document_has_one_row_a_metric(shared: Path) -> None:
    """Counted again with the standard library."""
    for path in (shared / "real/native_logs/lm_eval").glob("*/samples_*.jsonl"):
        assert readers.sniff(path) == "lm_eval"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        expected = [(m, r[m]) for r in rows for m in r["metrics"]]
        assert [(o.scorer, o.value) for o in observations(path)] == expected


def test_the_results_file_names_model_and_version_and_tells_what_is_missing(shared: Path) -> None:
    """The samples file alone says neither."""
    log = readers.read(
        next((shared / "real/native_logs/lm_eval/eee_math_perturbed").glob("samples_*"))
    )
    first = list_rows(log)[0]
    assert log.harness == "lm_eval 0.4.9.2"
    assert first.model == "RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1"
    assert (first.task, first.attributes["level"], first.target) == (
        "math_perturbed_full",
        "Level 3",
        "3",
    )
    assert (
        first.prompt == first.attributes["problem"]
    )  # the document's own question, without its frame
    assert log.notes == ["holds 10 of the 5,000 documents that were evaluated"]


def test_the_choice_taken_from_log_likelihoods_is_the_one_the_harness_scored(folder: Path) -> None:
    """Both by log-likelihood (acc) and by log-likelihood a character (acc_norm)."""
    read = observations(samples(folder, "add_mc"))
    assert [o.value for o in read] == [float(o.answer == o.target) for o in read]
    assert {o.scorer for o in read} == {"acc", "acc_norm"}
    row = json.loads(samples(folder, "add_mc").read_text().splitlines()[0])
    logs = [float(log) for log, _ in row["filtered_resps"]]
    assert read[0].logprob == max(logs)
    assert read[0].confidence == pytest.approx(
        math.exp(max(logs)) / sum(map(math.exp, logs)), rel=1e-12
    )


def test_old_files_have_numbers_and_name_neither_filter_nor_metrics(folder: Path) -> None:
    """As versions before 0.4.5 wrote them: the same is read."""
    path = samples(folder, "add_mc")
    before = observations(path)

    def older(rows: Rows) -> Rows:
        for row in rows:
            del row["filter"], row["metrics"]
            row["arguments"] = [[a["arg_0"], a["arg_1"]] for a in row["arguments"].values()]
            row["filtered_resps"] = [[float(x), y == "True"] for x, y in row["filtered_resps"]]
        return rows

    assert observations(edit_rows(path, older)) == before


def test_files_of_early_2024_are_one_list_named_by_the_models_arguments(folder: Path) -> None:
    """Pretty-printed, with results.json beside it."""
    path = samples(folder, "add_gen")
    before = observations(path)
    old = folder / "pretrained__tinygpt2,dtype__float32_add_gen.jsonl"
    old.write_text(
        json.dumps([json.loads(line) for line in path.read_text().splitlines()], indent=2)
    )
    next(folder.glob("results_*.json")).rename(folder / "results.json")
    assert readers.sniff(old) == "lm_eval"
    assert observations(old) == before


def test_two_filters_are_two_scorers(folder: Path) -> None:
    """The harness writes every document twice; neither documents nor scores are doubled."""
    path = edit_rows(
        samples(folder, "add_gen"),
        lambda rows: [
            r | {"filter": f} for f in ("strict-match", "flexible-extract") for r in rows
        ],
    )
    log = readers.read(path)
    read = list_rows(log)
    assert [o.scorer for o in read] == ["exact_match,strict-match"] * 40 + [
        "exact_match,flexible-extract"
    ] * 40
    assert len({o.example_id for o in read}) == 40
    assert log.notes == []


def test_an_old_file_with_two_filters_takes_their_names_from_the_results(folder: Path) -> None:
    """One block of rows a filter, in the order of the task's configuration."""
    results = next(folder.glob("results_*.json"))
    content = json.loads(results.read_text())
    content["configs"]["add_gen"]["filter_list"] = [
        {"name": "strict-match"},
        {"name": "flexible-extract"},
    ]
    results.chmod(0o644)
    results.write_text(json.dumps(content))
    path = edit_rows(
        samples(folder, "add_gen"),
        lambda rows: [{k: v for k, v in r.items() if k != "filter"} for r in rows * 2],
    )
    assert {o.scorer for o in observations(path)} == {
        "exact_match,strict-match",
        "exact_match,flexible-extract",
    }


def test_an_answer_that_no_filter_found_is_not_a_failure(folder: Path) -> None:
    """The harness writes [invalid] and scores it 0."""
    path = edit_rows(
        samples(folder, "add_gen"),
        lambda rows: [r | {"filter": "strict", "filtered_resps": ["[invalid]"]} for r in rows],
    )
    read = observations(path)
    assert {(o.status, o.value, o.measured["parsed"]) for o in read} == {("unparsed", None, False)}
    assert all(o.response for o in read)


@pytest.mark.parametrize("metric", ["f1", "bypass"])
def test_what_has_no_number_a_document_is_noted(folder: Path, metric: str) -> None:
    """Parts of a metric of the whole task, and runs that only predict: missing, never 0."""
    value = [0, 1] if metric == "f1" else 999
    path = edit_rows(
        samples(folder, "add_gen"),
        lambda rows: [r | {"metrics": [metric], metric: value} for r in rows],
    )
    log = readers.read(path)
    assert {(o.status, o.value) for o in list_rows(log)} == {("missing", None)}
    assert len(log.notes) == 1


def test_a_limit_is_noted(folder: Path) -> None:
    """n-samples: effective below original."""
    results = next(folder.glob("results_*.json"))
    content = json.loads(results.read_text())
    content["n-samples"]["add_gen"]["original"] = 5000
    results.chmod(0o644)
    results.write_text(json.dumps(content))
    log = readers.read(samples(folder, "add_gen"))
    list_rows(log)
    assert log.notes == ["limited: 40 of 5,000 documents were evaluated"]


def test_without_results_the_folder_names_the_model(folder: Path) -> None:
    """As the folders of the Open LLM Leaderboard do; and it is said."""
    next(folder.glob("results_*.json")).unlink()
    log = readers.read(samples(folder, "add_mc"))
    assert {o.model for o in list_rows(log)} == {"org/tiny"}
    assert "taken from its folder" in log.notes[0]


def test_ids_are_those_of_the_documents_and_never_merge_two(folder: Path) -> None:
    """A document without an id has its number in the task; a shared id gets the number too."""
    path = edit_rows(
        samples(folder, "add_gen"), lambda rows: [r | {"doc": {"id": "same"}} for r in rows]
    )
    ids = [o.example_id for o in observations(path)]
    assert ids[:2] == ["same", "same#1"]
    assert len(set(ids)) == 40
    path = edit_rows(path, lambda rows: [r | {"doc": {"q": "x"}} for r in rows])
    assert [o.example_id for o in observations(path)][:3] == ["0", "1", "2"]
    path = edit_rows(path, lambda rows: [rows[0] | {"doc": {"id": "1"}}, *rows[1:]])
    assert [o.example_id for o in observations(path)][:3] == ["1", "1#1", "2"]


def test_another_template_asks_the_same_question(folder: Path) -> None:
    """A conversation, as API models get it, and few-shot examples before it."""
    path = samples(folder, "add_gen")
    before = [o.prompt for o in observations(path)]

    def as_conversation(rows: Rows) -> Rows:
        for row in rows:
            turns = [{"role": "user", "content": "Q: 1 + 1 = \n\nQ: " + row["doc"]["question"]}]
            row["arguments"]["gen_args_0"]["arg_0"] = [json.dumps(turns)]
        return rows

    assert [o.prompt for o in observations(edit_rows(path, as_conversation))] == before


def test_results_without_samples_say_where_the_answers_are(folder: Path) -> None:
    (results,) = folder.glob("results_*.json")
    with pytest.raises(InputError, match=f"no answers: name {folder}, whose samples"):
        Evidence.from_logs(results)
    for path in folder.glob("samples_*"):
        path.unlink()
    for source in (results, folder):
        with pytest.raises(InputError, match=f"{results.name} .* run lm_eval .* --log_samples "):
            Evidence.from_logs(source)
    (folder / "more.json").write_text('{"results": {}}')
    with pytest.raises(InputError, match="not a log of a known tool"):
        Evidence.from_logs(folder / "more.json")


def test_bad_files_give_one_line(folder: Path) -> None:
    """Truncated, of another layout, without an id."""
    path = samples(folder, "add_mc")
    whole = path.read_bytes()
    path.chmod(0o644)
    for bad in (whole[:5000], b"[1, 2]\n", b'{"doc": {}}\n', b"\xff\xfe\x00"):
        path.write_bytes(bad)
        with pytest.raises(InputError, match=path.name):
            list(readers.read(path, "lm_eval").tables())


@pytest.mark.parametrize(
    ("requests", "pairs", "answer", "logprob", "confidence"),
    [
        # of infinity: no share, but a choice
        ([("Q", " a"), ("Q", " bb")], [["-inf", "True"], ["-1", "False"]], "bb", -1.0, 1.0),
        # of no number: no choice at all, and the text of the pair is the answer
        ([("Q", " a"), ("Q", " bb")], [["nan", "True"], ["-1", "False"]], "nan", None, None),
        # requests without a context are made to normalise by
        (
            [("Q", "a"), ("Q", "b"), ("", "a"), ("", "b")],
            [["-1", "True"], ["-2", "False"], ["-3", "False"], ["-0.5", "False"]],
            "a",
            -1.0,
            1 / (1 + math.exp(-1)),
        ),
        # one continuation after two contexts: only numbers tell the choices apart
        (
            [("Q1", " same"), ("Q2", " same")],
            [["-2", "True"], ["-1", "False"]],
            "1",
            -1.0,
            1 / (1 + math.exp(-1)),
        ),
        # in numbers, whose exponentials are 0
        (
            [("Q", " a"), ("Q", " four")],
            [[-800.5, True], [-800, False]],
            "four",
            -800.0,
            1 / (1 + math.exp(-0.5)),
        ),
    ],
)
def test_a_choice_is_the_likeliest_and_its_share_a_softmax(
    requests: list[tuple[str, str]],
    pairs: list[list[Any]],
    answer: str,
    logprob: float | None,
    confidence: float | None,
    tmp_path: Path,
) -> None:
    named = {f"gen_args_{i}": {"arg_0": c, "arg_1": w} for i, (c, w) in enumerate(requests)}
    row = {"doc_id": 0, "doc": {}, "arguments": named, "filtered_resps": pairs, "filter": "none"}
    path = tmp_path / "samples_task.jsonl"
    path.write_text(json.dumps({**row, "resps": [pairs], "metrics": ["acc"], "acc": 1.0}) + "\n")
    (one,) = observations(path)
    assert (one.value, one.answer, one.logprob) == (1.0, answer, logprob)
    assert one.confidence == (confidence if confidence is None else pytest.approx(confidence))


def test_rows_are_read_by_columns_as_one_by_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of layouts that change from row to row, and values that are no numbers."""
    rng = random.Random(1)
    odd_pairs = [["nan", "True"], ["-inf", "False"], ["-1", "maybe"], ["-1"], "ab", [-1, True]]
    odd_values = [0, True, None, "1", [0, 1], 10**400, 0.25]

    def disturb(rows: Rows) -> Rows:
        rows = [json.loads(json.dumps(row)) for row in rows * 9]
        for row in rows:
            if rng.random() < 0.2:
                rng.choice([row, row, row["doc"]])[rng.choice(list(row))] = rng.choice(odd_values)
                row["doc_id"] = rng.randrange(99)
            if rng.random() < 0.1 and isinstance(row["filtered_resps"], list):
                row["filtered_resps"] = [rng.choice(odd_pairs), *row["filtered_resps"][1:]]
        return rows

    for task in ("add_mc", "add_gen"):
        path = edit_rows(samples(folder, task), disturb)
        log = readers.read(path)
        by_columns = list_rows(log)
        with monkeypatch.context() as patch:
            patch.setattr(lm_eval, "_BATCH", 1)
            again = readers.read(path)
            assert list_rows(again) == by_columns
        assert again.notes == log.notes
        assert len({o.scorer for o in by_columns}) > 1


@pytest.mark.parametrize("odd", ["context", "request", "metrics", "filter", "metric"])
def test_one_odd_row_changes_no_other(folder: Path, odd: str) -> None:
    """A row without a request took the choices from the questions beside it."""
    path = samples(folder, "add_mc")
    before = observations(path)

    def disturb(rows: Rows) -> Rows:
        row = rows[7]
        match odd:
            case "context":
                row["arguments"]["gen_args_1"]["arg_0"] = ""
            case "request":
                del row["arguments"]["gen_args_1"]
            case "metrics":
                row["metrics"] = row["metrics"][::-1]
            case "filter":
                row["filter"] = "other"
            case "metric":
                row["acc"] = [1, 0]
        return rows

    example = before[14].example_id
    after = observations(edit_rows(path, disturb))
    others = [o for o in before if o.example_id != example]
    assert [o for o in after if o.example_id != example] == others
    own = [o for o in after if o.example_id == example]
    assert {o.prompt for o in own} == {before[14].prompt}


def test_a_number_beyond_any_float_is_no_log_likelihood(folder: Path) -> None:
    """It ended in a traceback."""
    path = edit_rows(
        samples(folder, "add_mc"),
        lambda rows: [r | {"filtered_resps": [[10**400, "True"], ["-1", "False"]]} for r in rows],
    )
    assert {o.logprob for o in observations(path)} == {None}
