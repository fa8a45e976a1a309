"""Configurations: one model set up in two ways is two, by the caller's names or by the log's."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Evidence, InputError
from groundfault.cli.main import cli
from groundfault.readers.configurations import Setup, name_configurations, split_source
from groundfault.readers.log import Log

LOGS = Path(__file__).parents[1] / "fixtures/logs"
BASE, NEW = (LOGS / f"inspect_0.3.285_{name}.eval" for name in ("base", "new"))


def notes(evidence: Evidence) -> tuple[str, ...]:
    assert evidence.account is not None
    return evidence.account.notes


def table(path: Path, n: int = 40, **more: object) -> Path:
    rows = [{"example_id": f"q{i}", "value": i % 2, **more} for i in range(n)]
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_a_source_may_have_a_name(tmp_path: Path) -> None:
    assert split_source("base=logs/a") == ("base", "logs/a")
    assert split_source("gpt-4.1=logs/*.eval") == ("gpt-4.1", "logs/*.eval")
    for place in ("logs/a=b/c", "logs/a", Path("base=logs/a"), "=a", "a="):
        assert split_source(place) == ("", place)
    there = tmp_path / "mmlu:subject=law"
    there.mkdir()
    assert split_source(str(there)) == ("", str(there))


def test_two_configurations_that_the_caller_names_are_compared(tmp_path: Path) -> None:
    evidence = Evidence.from_logs(f"base={BASE}", f"new={NEW}")
    assert evidence.models == ("base", "new")
    assert notes(evidence) == (
        "configuration base: mockllm/model with style=plain",
        "configuration new: mockllm/model with style=think",
    )
    compare = ("base", "new")
    report = groundfault.audit(evidence, compare=compare, finders=["categories"], ledger=False)
    assert [f.name for f in report.confirmed] == ["lang = de"]
    assert report.manifest.compare == compare
    assert report.manifest.sources == (f"base={BASE}", f"new={NEW}")
    report.write(tmp_path / "report")
    again = Evidence.from_logs(*report.manifest.sources)
    assert again.hash == evidence.hash


def test_the_command_compares_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, log in (("a", BASE), ("b", NEW)):
        folder = tmp_path / "logs" / name
        folder.mkdir(parents=True)
        (folder / log.name).write_bytes(log.read_bytes())
    words = "audit base=logs/a new=logs/b --compare base new --no-ledger --finders categories"
    run = CliRunner().invoke(cli, words.split())
    assert run.exit_code == 0, run.output
    assert run.output.startswith("new fails less often than base overall; less often under 1 rule")


def test_configurations_are_told_apart_by_what_the_logs_say() -> None:
    evidence = Evidence.from_logs(BASE, NEW)
    models = ("mockllm/model (style=plain)", "mockllm/model (style=think)")
    assert evidence.models == models
    assert notes(evidence) == (f"told apart by style: {models[0]}, {models[1]}",)
    # one of them alone needs no other name
    assert Evidence.from_logs(BASE).models == ("mockllm/model",)


def rows(*answers: tuple[int, str, str]) -> pl.DataFrame:
    schema = {"log": pl.Int32, "model": pl.String, "task": pl.String, "example_id": pl.String}
    return pl.DataFrame(
        [(log, model, "t", each) for log, model, ids in answers for each in ids],
        schema=schema,
        orient="row",
    )


def labels(table: pl.DataFrame, *setups: Setup) -> list[str]:
    return (
        name_configurations(table.lazy(), setups)[0]
        .sort("log")
        .collect()["model"]
        .unique(maintain_order=True)
        .to_list()
    )


def test_a_report_is_verified_by_the_places_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    for folder in (elsewhere, here):
        folder.mkdir()
        for log in (BASE, NEW):
            (folder / log.name).write_bytes(log.read_bytes())
    monkeypatch.chdir(here)
    for place, message in ((".", ""), (elsewhere, "is outside of this folder")):
        evidence = Evidence.from_logs(f"base={place}/{BASE.name}", f"new={place}/{NEW.name}")
        compare = ("base", "new")
        report = groundfault.audit(evidence, compare=compare, finders=["categories"], ledger=False)
        report.write("report")
        if message:
            # what a report names is not opened because it names it, whatever stands in front
            with pytest.raises(InputError, match=message):
                groundfault.verify("report", ledger=None)
        else:
            assert not groundfault.verify("report", ledger=None).differences


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ({"t": "0"}, {"t": "1"}, ["m (t=0)", "m (t=1)"]),
        ({"t": "0"}, {}, ["m (t=0)", "m"]),
        ({"t": "0", "x": "1"}, {"t": "0", "x": "1"}, ["m"]),
        ({"p": "/runs/ckpt-1"}, {"p": "/runs/ckpt-2"}, ["m (p=ckpt-1)", "m (p=ckpt-2)"]),
        ({"p": "a/x"}, {"p": "b/x"}, ["m (p=a/x)", "m (p=b/x)"]),
        ({"s": "x" * 60}, {"s": "x" * 61}, ["m (s=42f2d973)", "m (s=c508e75f)"]),
    ],
)
def test_labels(one: dict[str, str], two: dict[str, str], expected: list[str]) -> None:
    table = rows((0, "m", "ab"), (1, "m", "bc"))
    assert labels(table, Setup(settings=one), Setup(settings=two)) == expected


def test_logs_of_other_examples_are_parts_of_one_configuration() -> None:
    easy, hard = Setup(settings={"subset": "easy"}), Setup(settings={"subset": "hard"})
    assert labels(rows((0, "m", "ab"), (1, "m", "cd")), easy, hard) == ["m"]
    # a third log tells: it has both
    three = rows((0, "m", "ab"), (1, "m", "cd"), (2, "m", "abcd"))
    names = labels(three, easy, hard, Setup(settings={"subset": "all"}))
    assert names == ["m (subset=easy)", "m (subset=hard)", "m (subset=all)"]
    assert labels(rows((0, "m", "ab"), (1, "k", "ab")), easy, hard) == ["m", "k"]


def test_seeds_and_secrets_are_no_configuration() -> None:
    settings = {"seed": 1, "fewshot_seed": 2, "api_key": "sk-1", "batch_size": 3, "none": None}
    log = Log((), settings={**settings, "temperature": 0.5, "stop": ["a"]})
    assert Setup.of(log, "").settings == {"temperature": "0.5", "stop": '["a"]'}


def test_several_models_of_a_named_source_keep_their_names(tmp_path: Path) -> None:
    for name in ("old", "new"):
        for model in ("a", "b"):
            table(tmp_path / f"{name}-{model}.parquet", model=model, run=name)
    sources = [f"{name}={tmp_path}/{name}-*.parquet" for name in ("old", "new")]
    models = ("a (new)", "a (old)", "b (new)", "b (old)")
    assert Evidence.from_logs(*sources).models == models


def test_two_tasks_of_one_data_set_are_two_configurations(tmp_path: Path) -> None:
    a = table(tmp_path / "a.parquet", model="m", task="qa_short")
    b = table(tmp_path / "b.parquet", model="m", task="qa_long")
    evidence = Evidence.from_logs(f"short={a}", f"long={b}")
    assert evidence.unit_count == 40
    assert Evidence.from_logs(a, b).unit_count == 80


def test_a_question_in_other_words_is_the_same_if_its_target_is(tmp_path: Path) -> None:
    paths = {}
    for name, words, target in (("a", "Q:", "x"), ("b", "Please:", "x"), ("c", "Sum", "y")):
        content = [
            {"example_id": str(i), "value": i % 2, "prompt": f"{words} {i}", "target": target}
            for i in range(40)
        ]
        paths[name] = tmp_path / f"{name}.parquet"
        pl.DataFrame(content).write_parquet(paths[name])
    assert Evidence.from_logs(f"a={paths['a']}", f"b={paths['b']}").unit_count == 40
    with pytest.raises(InputError, match="same id, other text and other target: 40 examples"):
        Evidence.from_logs(f"a={paths['a']}", f"c={paths['c']}")
    with pytest.raises(InputError, match="name these: base=LOGS new=LOGS"):
        Evidence.from_logs(paths["a"], paths["b"])


def test_evidence_that_was_imported_may_be_a_configuration(tmp_path: Path) -> None:
    for name, log in (("base", BASE), ("new", NEW)):
        Evidence.from_logs(log).save(tmp_path / name)
    evidence = Evidence.from_logs(f"base={tmp_path / 'base'}", f"new={tmp_path / 'new'}")
    assert evidence.models == ("base", "new")
    assert len(evidence) == 160


def test_lm_eval_says_how_the_model_was_set_up(shared: Path, tmp_path: Path) -> None:
    source = shared / "real/native_logs/lm_eval/own_tinygpt2"
    (samples,), (results,) = source.glob("samples_add_mc*"), source.glob("results_*")
    for dtype, shots in (("float32", 0), ("bfloat16", 5)):
        folder = tmp_path / dtype
        folder.mkdir()
        (folder / samples.name).write_bytes(samples.read_bytes())
        content = json.loads(results.read_text())
        content["config"]["model_args"]["dtype"] = dtype
        content["n-shot"]["add_mc"] = shots
        (folder / results.name).write_text(json.dumps(content))
    evidence = Evidence.from_logs(tmp_path)
    assert evidence.models == (
        "tinygpt2 (dtype=bfloat16, num_fewshot=5)",
        "tinygpt2 (dtype=float32, num_fewshot=0)",
    )


def test_tables_with_names_are_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, german in (("old", 0.6), ("new", 0.05)):
        rows = [
            {"id": f"{i:03}", "lang": "de" if i % 2 else "en", "error": int(i % 100 < bound)}
            for i in range(200)
            for bound in [100 * german if i % 2 else 10]
        ]
        pl.DataFrame(rows).write_csv(f"{name}.csv")
    words = "audit base=old.csv new=new.csv --outcome error --no-ledger --finders categories"
    run = CliRunner().invoke(cli, [*words.split(), "--id", "id", "--compare", "base", "new"])
    assert run.exit_code == 0, run.output
    assert "new fails less often than base overall; less often under 1 rule" in run.output
    assert "1. lang is de: " in run.output
    for more, message in (([], "name the column of their ids"), (["--model-column", "m"], "--id")):
        refused = CliRunner().invoke(cli, [*words.split(), *more])
        assert message in str(refused.exception)
    mixed = CliRunner().invoke(cli, ["audit", "base=old.csv", "new.csv", "--outcome", "error"])
    assert "give each of several a name" in str(mixed.exception)
    evidence = Evidence.from_table(("base=old.csv", "new=new.csv"), id="id", outcome="error")
    assert evidence.models == ("base", "new")
    assert evidence.frame["id"][0] == "000"
    report = groundfault.audit(
        evidence, compare=("base", "new"), finders=["categories"], ledger=False
    )
    report.write("report")
    assert not groundfault.verify("report", ledger=None).differences
    with pytest.raises(InputError, match="has no name; several tables are configurations"):
        Evidence.from_table(("base=old.csv", "new.csv"), id="id", outcome="error")
    pl.read_csv("old.csv").with_columns(configuration=1).write_csv("old.csv")
    with pytest.raises(InputError, match="has a column 'configuration' already"):
        Evidence.from_table(("base=old.csv", "new=new.csv"), id="id", outcome="error")
