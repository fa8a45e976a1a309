"""Inspect logs: rows conserved, every status kept apart, damaged files refused in one line."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from damage import BYTES, damage_bytes, odd, read_or_refused
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault import Evidence, readers
from groundfault.errors import InputError
from groundfault.readers.inspect import Inspect
from groundfault.readers.log import Log, Observation

Change = Callable[[dict[str, Any]], object]


def read(path: Path) -> tuple[Log, list[Observation]]:
    assert readers.sniff(path) == "inspect"
    log = Inspect().read(path)
    observations = list(log.observations)
    list(Log(observations).tables())
    return log, observations


def entries(path: Path) -> dict[str, bytes]:
    """The entries of an archive, deflated or zstd, without our own code."""
    result, data = {}, path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            at = entry.header_offset
            name, extra = struct.unpack_from("<HH", data, at + 26)
            packed = data[at + 30 + name + extra :][: entry.compress_size]
            zstd = entry.compress_type == 93
            result[entry.filename] = (
                zstandard.ZstdDecompressor().decompressobj().decompress(packed)
                if zstd
                else archive.read(entry)
            )
    return result


def samples_of(path: Path) -> list[dict[str, Any]]:
    """The samples by the standard library."""
    if path.suffix == ".json":
        return json.loads(path.read_text()).get("samples") or []
    return [json.loads(data) for name, data in entries(path).items() if name.startswith("samples/")]


@pytest.fixture(scope="module")
def logs(shared: Path) -> Path:
    return shared / "real/native_logs/inspect"


@pytest.fixture
def edit_log(logs: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """A real log of five scored samples, with a change made to it."""

    def make(change: Change) -> Path:
        log = json.loads((logs / "eee_data_arc_sonnet.json").read_text())
        change(log)
        path = tmp_path / "log.json"
        path.write_text(json.dumps(log))
        return path

    return make


def first(change: Change) -> Change:
    return lambda log: change(log["samples"][0])


def set_score(value: Any, **more: Any) -> Change:
    def change(sample: dict[str, Any]) -> None:
        sample["scores"]["choice"] |= {"value": value, **more}

    return first(change)


def test_every_sample_of_every_real_log_has_a_row_a_score(logs: Path) -> None:
    for path in logs.iterdir():
        _, rows = read(path)
        expected = Counter(
            (str(sample["id"]), sample["epoch"], name)
            for sample in samples_of(path)
            for name in (sample.get("scores") or {"": None})
        )
        result = Counter(
            (row.example_id, row.epoch, row.scorer) for row in rows if row.prompt is not None
        )
        assert result == expected, path.name


def test_scores_are_those_in_the_log(logs: Path) -> None:
    path = logs / "own_mockllm_2scorers_2epochs_zstd.eval"
    log, rows = read(path)
    numbers = {"C": 1.0, "I": 0.0}
    expected = {
        (s["id"], s["epoch"], name): numbers[score["value"]]
        for s in samples_of(path)
        for name, score in s["scores"].items()
    }
    assert {(r.example_id, r.epoch, r.scorer): r.value for r in rows} == expected
    assert log.harness == "inspect_ai 0.3.285"
    assert log.notes == []
    by_id = {s["id"]: s for s in samples_of(path)}
    assert all(r.attributes == by_id[r.example_id]["metadata"] for r in rows)
    completions = {(s["id"], s["epoch"]): s["output"]["completion"] for s in samples_of(path)}
    assert all(r.response == completions[r.example_id, r.epoch] for r in rows)


def test_log_probability_of_an_answer_is_the_sum_over_its_tokens(logs: Path) -> None:
    path = logs / "own_hf_local_logprobs_zstd.eval"
    tokens = {
        s["id"]: sum(t["logprob"] for t in s["output"]["choices"][0]["logprobs"]["content"])
        for s in samples_of(path)
    }
    assert {r.example_id: r.logprob for r in read(path)[1]} == pytest.approx(tokens, abs=1e-9)


def test_runs_that_were_not_finished_say_so(logs: Path) -> None:
    log, rows = read(logs / "2025-05-12T20-28-13-04-00_no-samples.json")
    assert [(r.example_id, r.status) for r in rows] == [
        ("1", "missing"),
        ("2", "missing"),
        ("3", "missing"),
    ]
    assert log.notes == ["no samples", "cancelled after 0 of 3 samples"]
    log, rows = read(logs / "2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval")
    assert {r.status for r in rows} == {"missing"}
    assert log.notes == [
        "no sample is scored: score it (inspect score FILE), then read the new log"
    ]
    log, rows = read(logs / "eee_data_cyse2_vuln_exploit_challenges.json")
    assert [(r.epoch, r.value, r.status) for r in rows] == [
        (1, 0.65, "scored"),
        *((e, None, "missing") for e in (2, 3, 4)),
    ]


def test_an_errored_sample_is_an_error_whatever_it_was_scored(
    logs: Path, edit_log: Callable[[Change], Path]
) -> None:
    _, rows = read(logs / "eee_data_cvebench_empty_choices.json")
    assert [(r.status, r.value, r.scorer) for r in rows] == [("error", None, "")]
    error = {"message": "boom\nsecond line", "traceback": "", "traceback_ansi": ""}
    _, rows = read(edit_log(first(lambda sample: sample.update(error=error))))
    assert [r.status for r in rows] == ["error", *["scored"] * 4]
    assert rows[0].value is None
    assert rows[0].measured["error"] == "boom"
    assert rows[0].measured["score_given"] == "C"


@pytest.mark.parametrize(
    ("value", "more", "status", "number"),
    [
        ("C", {}, "scored", 1.0),
        ("P", {}, "scored", 0.5),
        ("I", {}, "scored", 0.0),
        ("N", {}, "refused", None),
        ("N", {"reason": "no_response"}, "unparsed", None),
        ("I", {"reason": "invalid_response_format"}, "unparsed", None),
        ("I", {"reason": "refusal"}, "refused", None),
        ("C", {"reason": "refusal"}, "scored", 1.0),
        (float("nan"), {"reason": "grader_failed"}, "error", None),
        (float("nan"), {"metadata": {"unscored_reason": "scoring_failed"}}, "error", None),
        (float("nan"), {"reason": "cosmic ray"}, "missing", None),
        ("I", {"explanation": "Grade not found in model output: hm"}, "error", None),
        (None, {}, "missing", None),
        (True, {}, "scored", 1.0),
        (0.65, {}, "scored", 0.65),
        (7, {}, "scored", 7.0),
        ("0.25", {}, "scored", 0.25),
        ("yes", {}, "scored", 1.0),
        ("GOOD", {}, "missing", None),
        ("1e999", {}, "missing", None),
    ],
)
def test_values_and_reasons(
    edit_log: Callable[[Change], Path],
    value: Any,
    more: dict[str, Any],
    status: str,
    number: float | None,
) -> None:
    _, rows = read(edit_log(set_score(value, **more)))
    assert (rows[0].status, rows[0].value) == (status, number)
    assert [(r.status, r.value) for r in rows[1:]] == [("scored", 1.0)] * 4


def test_a_blocked_answer_is_refused_but_a_full_score_stands(
    edit_log: Callable[[Change], Path],
) -> None:
    def block(log: dict[str, Any]) -> None:
        for sample, value in zip(log["samples"][:2], ("I", "C"), strict=True):
            sample["output"]["choices"][0]["stop_reason"] = "content_filter"
            sample["scores"]["choice"]["value"] = value

    assert [r.status for r in read(edit_log(block))[1][:2]] == ["refused", "scored"]


def test_several_values_of_a_scorer_are_several_scorers(edit_log: Callable[[Change], Path]) -> None:
    _, rows = read(edit_log(set_score({"style": "C", "facts": 0, "length": None})))
    assert [(r.scorer, r.value, r.status) for r in rows[:3]] == [
        ("choice.style", 1.0, "scored"),
        ("choice.facts", 0.0, "scored"),
        ("choice.length", None, "missing"),
    ]
    _, rows = read(edit_log(set_score([1, "I"])))
    assert [(r.scorer, r.value) for r in rows[:2]] == [("choice[0]", 1.0), ("choice[1]", 0.0)]


def test_a_scorer_that_left_a_sample_out_leaves_a_row(edit_log: Callable[[Change], Path]) -> None:
    def two(log: dict[str, Any]) -> None:
        for sample in log["samples"][:-1]:
            sample["scores"]["second"] = {"value": 0.5}

    _, rows = read(edit_log(two))
    assert Counter(r.scorer for r in rows) == {"choice": 5, "second": 4, "": 1}
    assert [(r.example_id, r.status) for r in rows if r.scorer == ""] == [("5", "missing")]


def test_edits_and_invalidations(edit_log: Callable[[Change], Path]) -> None:
    history = [{"value": "I"}, {"value": "C", "provenance": {"author": "ann"}}]
    _, rows = read(edit_log(set_score("C", history=history)))
    assert rows[0].value == 1.0
    assert rows[0].measured["edited"] is True
    _, rows = read(
        edit_log(
            first(
                lambda sample: sample.update(
                    invalidation={"author": "ann", "reason": "bad sandbox"}
                )
            )
        )
    )
    assert (rows[0].status, rows[0].value) == ("artefact", None)


def test_attachments_stand_for_their_text(edit_log: Callable[[Change], Path]) -> None:
    def attach(sample: dict[str, Any]) -> None:
        sample["attachments"] = {"abc": "a long question", "def": "a long answer"}
        sample["input"] = "attachment://abc"
        sample["output"]["choices"][0]["message"]["content"] = "attachment://def"
        sample["metadata"] = {"text": "attachment://def", "gone": "attachment://nowhere"}

    row = read(edit_log(first(attach)))[1][0]
    assert (row.prompt, row.response) == ("a long question", "a long answer")
    assert row.attributes["text"] == "a long answer"
    assert row.attributes["gone"] == "attachment://nowhere"


def test_what_is_measured_of_an_answer(edit_log: Callable[[Change], Path]) -> None:
    def long(sample: dict[str, Any]) -> None:
        sample |= {
            "limit": {"type": "token", "limit": 100},
            "turn_count": 3,
            "error_retries": [{"message": "x"}],
        }
        sample["messages"][-1]["tool_calls"] = [{"id": "1", "function": "f", "arguments": {}}]
        sample["model_usage"] = {
            "anthropic/claude-sonnet-4-0": {"input_tokens": 5, "output_tokens": 7}
        }
        sample["choices"] = ["a", "b"]
        sample["input"] = [
            {"role": "system", "content": "be"},
            {"role": "user", "content": [{"type": "text", "text": "?"}]},
        ]

    row = read(edit_log(first(long)))[1][0]
    expected = {
        "limit": "token", "truncated": True, "turns": 3, "retries": 1, "tool_calls": 1,
        "input_tokens": 5, "output_tokens": 7, "position": 1, "finish_reason": "stop",
        "parsed": True,
    }  # fmt: skip
    assert {key: row.measured[key] for key in expected} == expected
    assert row.attributes["choices"] == 2
    assert row.prompt == "?"


def test_the_judge_is_named(edit_log: Callable[[Change], Path]) -> None:
    def grade(options: dict[str, Any], roles: dict[str, Any] | None = None) -> dict[str, Any]:
        def change(log: dict[str, Any]) -> None:
            log["eval"]["scorers"] = [{"name": "choice", "options": options}]
            log["eval"]["model_roles"] = roles
            grading = [
                {"role": "user", "content": "?"},
                {"role": "assistant", "model": "judge-2026-01-01"},
            ]
            log["samples"][0]["scores"]["choice"]["metadata"] = {"grading": grading}

        measurements = read(edit_log(change))[1][0].measured
        return {key: measurements.get(key) for key in ("judge", "judge_version")}

    version = "judge-2026-01-01"
    own = {"grader_model": {"model": "google/judge", "config": {}}}
    assert grade(own) == {"judge": "google/judge", "judge_version": version}
    assert grade({"model": "openai/judge"}) == {"judge": "openai/judge", "judge_version": version}
    roles = {
        "grader": {"model": "openai/other", "config": {}},
        "second": [{"model": "a"}, {"model": "b"}],
    }
    # the role grader is the default, which the log does not note
    assert grade({"model": None}, roles) == {"judge": "openai/other", "judge_version": version}
    assert grade({"model_role": "second"}, roles) == {"judge": "a, b", "judge_version": version}
    assert grade({"model": None}) == {
        "judge": "anthropic/claude-sonnet-4-0",
        "judge_version": version,
    }
    assert grade({}) == {"judge": version, "judge_version": version}


def test_clustered_standard_errors_name_the_group(edit_log: Callable[[Change], Path]) -> None:
    def cluster(log: dict[str, Any]) -> None:
        log["eval"]["scorers"][0]["metrics"] = [
            {"name": "stderr", "options": {"cluster": "passage"}}
        ]
        for i, sample in enumerate(log["samples"]):
            sample["metadata"] = {"passage": i // 2}

    path = edit_log(cluster)
    log, observations = read(path)
    assert [r.group for r in observations] == ["0", "0", "1", "1", "2"]
    assert [note for note in log.notes if "5 samples count as 3 units" in note]
    assert Evidence.from_logs(path).unit_count == 3
    assert Evidence.from_logs(path, group="example_id").unit_count == 5


def test_an_interrupted_archive_is_read_as_far_as_it_goes(logs: Path, tmp_path: Path) -> None:
    contents = entries(logs / "own_mockllm_2scorers_2epochs_zstd.eval")
    path = tmp_path / "started.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            if name.startswith("_journal/start") or name in (
                "samples/ex0_epoch_1.json",
                "samples/ex1_epoch_2.json",
            ):
                archive.writestr(name, data)
    log, rows = read(path)
    assert Counter(r.status for r in rows) == {"scored": 4, "missing": 22}
    assert log.notes == ["not finished: read after 2 of 24 samples"]


def test_samples_in_parts(logs: Path, tmp_path: Path) -> None:
    """Inspect splits large samples: shell, metadata and attachments are separate entries."""
    rows = entries(logs / "own_mockllm_2scorers_2epochs_zstd.eval")
    whole = read(logs / "own_mockllm_2scorers_2epochs_zstd.eval")[1]
    path = tmp_path / "parts.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", rows["header.json"])
        for name, data in rows.items():
            if not name.startswith("samples/"):
                continue
            sample = json.loads(data)
            folder = name.removesuffix(".json")
            archive.writestr(f"{folder}/metadata.json", json.dumps(sample.pop("metadata")))
            archive.writestr(f"{folder}/attachments/1.json", json.dumps([sample["input"]]))
            archive.writestr(f"{folder}/attachments/0.json", json.dumps(["another"]))
            archive.writestr(f"{folder}/messages/0.json", json.dumps(sample.pop("messages")))
            archive.writestr(
                f"{folder}/sample.json", json.dumps(sample | {"input": "attachment://1"})
            )
    result = read(path)[1]
    for a, b in zip(whole, result, strict=True):
        assert (a.example_id, a.value, a.prompt, a.attributes) == (
            b.example_id,
            b.value,
            b.prompt,
            b.attributes,
        )


def with_entry(path: Path, packed: bytes, content: bytes) -> Path:
    """An archive of one zstd entry, which the standard library can write from Python 3.14 on."""
    name, crc, method = b"header.json", zlib.crc32(content), 93
    sizes = crc, len(packed), len(content), len(name)
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 63, 0, method, 0, 0, *sizes, 0) + name + packed
    entries = (
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 63, 63, 0, method, 0, 0, *sizes, 0, 0, 0, 0, 0, 0)
        + name
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entries), len(local), 0)
    path.write_bytes(local + entries + end)
    return path


def test_zstd_frames_of_any_kind_and_none_that_lies(tmp_path: Path) -> None:
    content = json.dumps(
        {"eval": {"task": "t", "model": "m"}, "status": "success", "more": "a" * 5000}
    ).encode()
    packer = zstandard.ZstdCompressor()
    stream = packer.compressobj()
    good = {
        "known size": packer.compress(content),
        "unknown size": stream.compress(content) + stream.flush(),
        "two frames": packer.compress(content[:3000]) + packer.compress(content[3000:]),
    }
    for packed in good.values():
        assert read(with_entry(tmp_path / "a.eval", packed, content))[0].notes == ["no samples"]
    bomb = packer.compress(b" " * (64 << 20))
    for packed in (bomb, packer.compress(content)[:-5], b"junk", packer.compress(content[:-1])):
        with pytest.raises(InputError, match="damaged"):
            Inspect().read(with_entry(tmp_path / "b.eval", packed, content))


@pytest.mark.parametrize(
    "bad",
    [
        b'{"version": 2, "status": "success", '
        b'"eval": {"task_id": "", "run_id": "", "dataset": {}, "model": "m"',
        b'{"eval": {"task_id": "", "run_id": "", "dataset": {}, "model": "m"}}',
        b'{"eval": {"task": 1, "task_id": "", "run_id": "", "dataset": {}, "model": "m"}}',
        b'{"eval": {"task": "\xff", "task_id": "", "run_id": "", "dataset": {}, "model": "m"}}',
        b'{"eval": {"task": "t", "task_id": "", "run_id": "", "dataset": {}, "model": "m"}, '
        b'"samples": [{"epoch": 1}]}',
        b'{"eval": {"task": "t", "task_id": "", "run_id": "", "dataset": ' + b"[" * 100_000,
        b"PK\x03\x04 and no more",
    ],
)
def test_nonsense_is_one_line(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "bad.eval"
    path.write_bytes(bad)
    with pytest.raises(InputError) as error:
        list(Inspect().read(path).observations)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["mmlu-summary-choices.eval", "eee_data_pubmedqa_gpt4o_mini.json"])
@settings(max_examples=count_examples(60))
@given(how=BYTES)
def test_any_bytes_are_a_log_or_one_error(
    logs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    how: tuple[list[tuple[float, int]], float],
) -> None:
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}"
    path.write_bytes(damage_bytes((logs / name).read_bytes(), how))
    read_or_refused(path, "inspect")


@settings(max_examples=count_examples(80))
@given(data=st.data())
def test_any_value_anywhere_is_a_log_or_one_error(
    logs: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log = json.loads((logs / "eee_data_arc_sonnet.json").read_text())
    log["samples"] = [{k: v for k, v in s.items() if k != "events"} for s in log["samples"][:2]]
    del log["reductions"]
    path = tmp_path_factory.getbasetemp() / "odd.json"
    path.write_text(json.dumps(odd(log, data)))
    read_or_refused(path, "inspect")
