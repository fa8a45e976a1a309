"""Importing logs of every tool: nothing averaged, every row accounted for."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from commands import run_program
from hypothesis import given, settings, strategies as st
from profiles import count_examples

import groundfault
from groundfault import Evidence, InputError, PlanError, readers
from groundfault.cli.main import cli
from groundfault.core.units import count_scored_rows
from groundfault.readers.account import Account, LogRead
from groundfault.readers.log import COLUMNS, Log, Observation

MAP = """
[columns]
example_id = "task"
model = "agent"
value = "state"
[values]
pass = 1
fail = 0
[statuses]
timeout = "error"
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(name: str, rows: list[dict[str, object]]) -> None:
    pl.DataFrame(rows).write_parquet(name)


def rows(n: int = 40, model: str = "m", **more: object) -> list[dict[str, object]]:
    return [
        {"example_id": f"q{i}", "model": model, "value": i % 2, "words": i, **more}
        for i in range(n)
    ]


def run_command(*arguments: str) -> tuple[int, str]:
    """Exit status, and standard output with standard error, of a command in a shell."""
    result = subprocess.run(
        [sys.executable, "-m", "groundfault", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


# ------------------------------------------------------------------------------- --- one vocabulary


def test_observations_become_a_table_of_the_vocabulary():
    log = Log(
        [
            Observation(
                "a",
                1.0,
                prompt="half a pair \ud83d",
                attributes={"meta": {"level": 1}, "tags": ["x"], "n": 1},
            ),
            Observation(
                "b",
                None,
                "error",
                attributes={"meta": {"level": "2"}, "n": 2.5},
                measured={"value": 3},
            ),
        ]
    )
    (frame, measurements), *none = log.tables()
    assert none == []
    assert frame.columns[: len(COLUMNS)] == list(COLUMNS)
    assert frame["meta_level"].to_list() == ["1", "2"]
    assert frame["tags"].to_list() == ['["x"]', None]
    assert frame["n"].to_list() == [1.0, 2.5]
    assert frame["value_given"].to_list() == [None, 3]
    assert measurements == {"value_given"}
    assert frame["prompt"][0] == "half a pair ?"


def test_an_example_has_only_so_many_attributes():
    log = Log([Observation("a", 1.0, attributes={f"x{i}": i for i in range(2001)})])
    with pytest.raises(InputError, match="over 2000 attributes"):
        list(log.tables())


# -------------------------------------------------------------------------------------- --- merging


def test_logs_of_several_models_are_merged_and_what_is_missing_is_counted(desk: Path):
    (desk / "runs").mkdir()
    table("runs/a.parquet", rows(40, "a"))
    table("runs/b.parquet", rows(38, "b"))
    (desk / "runs" / "readme.txt").write_text("notes")
    evidence = Evidence.from_logs("runs")
    account = evidence.account
    assert account is not None
    assert (account.examples, account.matched, account.missing) == (40, 38, {"a": 0, "b": 2})
    assert account.unread == (str(Path("runs") / "readme.txt"),)
    assert [len(log.sha256) for log in account.logs] == [64, 64]
    assert evidence.roles.model == "model"
    assert evidence.attributes == ("words",)


def test_rows_found_twice_are_counted_once(desk: Path):
    table("a.parquet", rows())
    table("copy.parquet", rows())
    evidence = Evidence.from_logs("a.parquet", "copy.parquet")
    assert len(evidence) == 40
    assert evidence.account is not None
    assert evidence.account.duplicated == 40


def test_another_result_of_the_same_example_is_an_error_or_a_repeat(desk: Path):
    table("a.parquet", rows())
    table("b.parquet", [{**row, "value": 1} for row in rows()])
    with pytest.raises(
        InputError, match=r"other result: 20 examples, such as 'q0' in a\.parquet, b\.parquet"
    ):
        Evidence.from_logs("a.parquet", "b.parquet")
    evidence = Evidence.from_logs("a.parquet", "b.parquet", conflicts="keep")
    assert evidence.roles.repeat == "epoch"
    assert evidence.account is not None
    assert (len(evidence), evidence.account.duplicated, evidence.account.conflicting) == (80, 0, 80)
    # where the two runs agree there are two answers too, so that agreement has no other weight
    assert evidence.loss.mean() == 0.25
    assert count_scored_rows(evidence).tolist() == [2] * 40


def test_the_same_id_with_another_text_is_an_error_or_another_example(desk: Path):
    table("a.parquet", rows(model="a", prompt="old?"))
    table("b.parquet", rows(model="b", prompt="new?"))
    with pytest.raises(InputError, match="same id, other text: 40 examples"):
        Evidence.from_logs("a.parquet", "b.parquet")
    evidence = Evidence.from_logs("a.parquet", "b.parquet", conflicts="keep")
    assert evidence.account is not None
    assert evidence.account.examples == 80
    assert evidence.unit_count == 40  # the two texts of an id stay in one group


def test_scorers_are_chosen_and_never_averaged(desk: Path):
    of = {name: rows(scorer=name) for name in ("strict", "lenient")}
    of["lenient"] = [{**row, "value": 1} for row in of["lenient"]]
    table("a.parquet", [*of["strict"], *of["lenient"]])
    with pytest.raises(InputError, match=r"several scorers \('lenient', 'strict'\); choose one"):
        Evidence.from_logs("a.parquet")
    with pytest.raises(InputError, match="no scorer 'x'; there are lenient, strict"):
        Evidence.from_logs("a.parquet", scorer="x")
    with pytest.raises(InputError, match="'lenient' and 'strict' both score 'q0'"):
        Evidence.from_logs("a.parquet", scorer=["strict", "lenient"])
    evidence = Evidence.from_logs("a.parquet", scorer="strict")
    assert evidence.loss.mean() == 0.5
    assert evidence.frame["score_lenient"].to_list() == [1.0] * 40
    assert evidence.frame["scorers_disagree"].sum() == 20
    assert {"score_lenient", "scorers_disagree"} <= set(evidence.roles.instrument)
    lenient = Evidence.from_logs("a.parquet", scorer="lenient")
    assert lenient.loss.sum() == 0


def test_answers_that_no_scorer_saw_stay_in_the_count(desk: Path):
    failures = [
        {"example_id": f"e{i}", "model": "m", "value": None, "status": "error"} for i in range(5)
    ]
    table(
        "a.parquet",
        [*rows(scorer="x"), *rows(scorer="y"), *({**r, "scorer": ""} for r in failures)],
    )
    evidence = Evidence.from_logs("a.parquet", scorer="x")
    assert evidence.status_counts["error"] == 5
    assert len(evidence) == 45


def test_logs_without_the_chosen_scorer_are_said_to_be_left_out(desk: Path):
    table("a.parquet", rows(model="a", scorer="x"))
    table("b.parquet", rows(30, model="b", scorer="y"))
    evidence = Evidence.from_logs("a.parquet", "b.parquet", scorer="x")
    assert evidence.account is not None
    assert evidence.account.notes == ("30 answers have no score by 'x' and were left out",)


def test_values_of_another_range_need_to_be_given_one(desk: Path):
    table("a.parquet", [{**row, "value": i % 11} for i, row in enumerate(rows())])
    with pytest.raises(InputError, match=r"the value 2 .* say which is worst and best"):
        Evidence.from_logs("a.parquet")
    assert Evidence.from_logs("a.parquet", scale=(0, 10)).loss.min() == 0
    assert Evidence.from_logs("a.parquet", scale=(10, 0)).loss.max() == 1
    with pytest.raises(InputError, match="outside that range"):
        Evidence.from_logs("a.parquet", scale=(0, 5))
    with pytest.raises(InputError, match="two different numbers"):
        Evidence.from_logs("a.parquet", scale=(1, 1))


def test_examples_of_several_tasks_are_told_apart(desk: Path):
    table("a.parquet", [*rows(task="x"), *rows(task="y")])
    evidence = Evidence.from_logs("a.parquet")
    assert evidence.frame["example_id"][0] == "x/q0"
    assert "task" in evidence.attributes


# -------------------------------------------------------------------------------- --- mapping files


def test_a_mapping_says_what_columns_and_words_mean(desk: Path):
    states = ["pass", "fail", "timeout", ""]
    lines = [f"t{i},m{j},{states[(i + j) % 4]},{i}" for i in range(20) for j in range(2)]
    Path("a.csv").write_text("\n".join(["task,agent,state,length", *lines]))
    Path("map.toml").write_text(MAP)
    evidence = Evidence.from_logs("a.csv", map="map.toml")
    assert evidence.status_counts == {
        "scored": 20,
        "error": 10,
        "refused": 0,
        "unparsed": 0,
        "artefact": 0,
        "missing": 10,
    }
    assert evidence.models == ("m0", "m1")
    assert evidence.attributes == ("length",)
    Path("map.toml").write_text(MAP.replace("timeout", "late"))
    with pytest.raises(
        InputError, match=r"value 'timeout' \(10 in all\) is not a number; give its meaning"
    ):
        Evidence.from_logs("a.csv", map="map.toml")


def test_a_wide_table_has_one_column_a_model(desk: Path):
    pl.DataFrame(
        {"q": ["a", "b"], "n": [1, 2], "gpt-4": [1.0, None], "gpt-3": [0.0, 1.0]}
    ).write_csv("w.csv")
    Path("map.toml").write_text('[columns]\nexample_id = "q"\n[wide]\nmodels = ["gpt-*"]\n')
    evidence = Evidence.from_logs("w.csv", map="map.toml")
    assert evidence.models == ("gpt-3", "gpt-4")
    assert evidence.status_counts["missing"] == 1
    assert evidence.attributes == ("n",)


def test_nested_json_is_taken_apart(desk: Path):
    data = [{"doc": {"id": i, "level": f"l{i % 2}"}, "score": i % 2} for i in range(20)]
    Path("a.json").write_text(json.dumps(data))
    Path("map.toml").write_text('[columns]\nexample_id = "doc_id"\nvalue = "score"\n')
    evidence = Evidence.from_logs("a.json", map="map.toml")
    assert evidence.attributes == ("doc_level",)


def test_a_mapping_that_takes_failures_for_values_needs_a_scale(desk: Path):
    pl.DataFrame({"task": ["a", "b", "c"], "failed": [0, 1, 1]}).write_csv("a.csv")
    Path("map.toml").write_text('[columns]\nexample_id = "task"\nvalue = "failed"\n')
    with pytest.raises(InputError, match=r"as if 1 were a failure.*scale=\(1, 0\).*scale=\(0, 1\)"):
        Evidence.from_logs("a.csv", map="map.toml")
    for scale, losses in (((0, 1), [1, 0, 0]), ((1, 0), [0, 1, 1])):
        evidence = Evidence.from_logs("a.csv", map="map.toml", scale=scale)
        assert evidence.loss.to_list() == losses


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "is not a mapping"),
        ("[columns]\nid = 'task'", "'id' is not one of the words example_id"),
        ("[columns]\nexample_id = 'x'\nvalue = 'state'", "no column 'x'"),
        (
            "[columns]\nvalue = 'state'\n[values]\npass = 1\nfail = 0\ntimeout = 0",
            "which column is the example_id",
        ),
        ("[columns]\nexample_id = 'task'", "which column is the value"),
        ("[statuses]\nlate = 'slow'", "status 'slow' is not one of"),
        ("[wide]\ncolumns = ['a']", "takes models"),
        ("[colums]\na = 'b'", "not a mapping: Object contains unknown field"),
    ],
)
def test_a_mapping_that_cannot_be_is_one_clear_line(desk: Path, text: str, message: str):
    Path("a.csv").write_text("task,state\nt1,pass\nt2,fail\n")
    Path("map.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        Evidence.from_logs("a.csv", map="map.toml")


def test_a_mapped_file_of_blank_lines_is_said_to_have_no_row(desk: Path):
    Path("a.jsonl").write_text("\n\n")
    Path("map.toml").write_text("[columns]\nexample_id = 'task'\nvalue = 'state'")
    with pytest.raises(InputError, match=r"a\.jsonl has no row in it"):
        Evidence.from_logs("a.jsonl", map="map.toml")


# ---------------------------------------------------------------------- --- directories of evidence


def test_saved_evidence_is_read_again_as_it_was(desk: Path):
    table("a.parquet", [*rows(scorer="x", truncated=True), *rows(scorer="y", truncated=False)])
    evidence = Evidence.from_logs("a.parquet", scorer="x", post_outcome=["words"])
    evidence.save("evidence")
    again = Evidence.from_logs("evidence")
    assert again.hash == evidence.hash
    assert again.roles == evidence.roles
    assert again.account == evidence.account
    grouped = Evidence.from_logs("evidence", group="words")
    assert grouped.roles.group == "words"
    frame = pl.read_parquet("evidence/observations.parquet")
    frame.with_columns(value=1 - pl.col("value")).write_parquet("evidence/observations.parquet")
    with pytest.raises(InputError, match="is not the table that was imported"):
        Evidence.from_logs("evidence")


def test_evidence_is_not_saved_among_other_files(desk: Path):
    table("a.parquet", rows())
    (desk / "full").mkdir()
    (desk / "full" / "x").write_text("mine")
    with pytest.raises(InputError, match="has other files in it"):
        Evidence.from_logs("a.parquet").save("full")
    assert [p.name for p in (desk / "full").iterdir()] == ["x"]


# --------------------------------------------------------------------------------- --- finding logs


def test_sources_are_files_folders_and_patterns(desk: Path):
    for name in ("runs/one/a.parquet", "runs/two/b.parquet", "runs/.hidden/c.parquet"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        table(name, rows(model=name))
    assert len(Evidence.from_logs("runs").models) == 2
    assert len(Evidence.from_logs("runs/*/a.parquet").frame) == 40
    assert len(Evidence.from_logs("runs/**/*.parquet").models) == 2
    for source, message in (("nowhere", "does not exist"), ("*.eval", r"no file matches \*\.eval")):
        with pytest.raises(InputError, match=message):
            Evidence.from_logs(source)
    Path("x.txt").write_text("words")
    with pytest.raises(InputError, match="is not a log of a known tool"):
        Evidence.from_logs("x.txt")
    Path("t.csv").write_text("id,f1,error\na,0.3,0\nb,0.2,1\nc,0.4,1\n")
    with pytest.raises(InputError, match=r"audit or compare: --id id --outcome error"):
        Evidence.from_logs("t.csv")
    with pytest.raises(PlanError, match="no reader is named 'x'"):
        Evidence.from_logs("runs", reader="x")
    with pytest.raises(InputError, match="is no log of inspect"):
        Evidence.from_logs("runs/one/a.parquet", reader="inspect")


def test_tables_are_no_logs_and_the_message_says_how_they_are_read(desk: Path):
    with pytest.raises(
        InputError, match=r"this is a DataFrame: .*Evidence\.from_table\(table, id="
    ):
        Evidence.from_logs(pl.DataFrame({"id": [1], "error": [0]}))
    # as a saved data set is, or a folder of a table's parts
    (desk / "folder").mkdir()
    pl.DataFrame({"id": [1], "error": [0]}).write_ipc(desk / "folder" / "part.arrow")
    message = r"part\.arrow; .* in audit or compare: --id id --outcome error$"
    with pytest.raises(InputError, match=message):
        Evidence.from_logs("folder")
    Path("my own.csv").write_text("id,error\na,0\n")
    # import has no --outcome, so the advice names a command that has it
    with pytest.raises(InputError, match=r"audit or compare: --id id --outcome error,"):
        Evidence.from_logs("my own.csv")


def test_every_real_log_is_known_to_one_reader(shared: Path):
    logs = shared / "real" / "native_logs"
    companions = {
        "SOURCE.md",
        "scenario.json",
        "scenario_state.json",
        "per_instance_stats.json",
        "stats.json",
    }
    companions |= {"run_spec.json"}
    for path in (p for p in logs.rglob("*") if p.is_file()):
        knowing = [name for name in readers.known() if readers.get(name).sniff(path)]
        names = path.name not in companions and not path.name.startswith("results_")
        assert len(knowing) == names, f"{path}: {knowing}"


# ------------------------------------------------------------------------------------ --- the shell


def test_import_audit_and_verify_from_the_shell(desk: Path):
    failing = [
        {**row, "words": i % 50, "value": int(i % 7 > 0 and i % 50 < 30)}
        for i, row in enumerate(rows(400))
    ]
    table("a.parquet", failing)
    imported = run_program("import", "a.parquet", "-o", "evidence")
    assert imported.status == 0, imported.errors
    assert "400 rows from 1 log; 400 examples" in imported.output
    code, out = run_command("audit", "evidence", "--no-ledger", "--out", "report")
    assert code == 0, out
    assert "1 failure mode covers 82% of the failures" in out
    # in this process: each start costs two seconds
    for words in ("verify report", "audit a.parquet --no-ledger --out direct", "verify direct"):
        end = run_program(*words.split())
        assert end.status == 0, end
    reports = [json.loads(Path(d, "report.json").read_text()) for d in ("report", "direct")]
    assert reports[0]["findings"] == reports[1]["findings"]
    assert reports[1]["manifest"]["account"]["examples"] == 400


def test_options_that_do_not_go_together_are_refused(desk: Path):
    table("a.parquet", rows())
    for arguments, message in (
        (("audit", "a.parquet", "--id", "example_id"), "--id describes a table"),
        (("audit", "a.parquet", "--outcome", "value", "--scorer", "x"), "--scorer is for logs"),
        (("audit", "a.parquet", "a.parquet", "--outcome", "value"), "name one table"),
        (("audit",), "Missing argument"),
    ):
        end = run_program(*arguments)
        assert end.status == 2
        assert message in end.errors
        assert (end.output + end.errors).count("\n") == 1


def test_import_prints_its_account_as_json(desk: Path):
    table("a.parquet", rows())
    result = CliRunner().invoke(cli, ["import", "a.parquet", "--json"])
    data = json.loads(result.output)
    assert data["examples"] == 40
    assert data["statuses"]["scored"] == 40
    assert not list(desk.glob("evidence*"))


@pytest.mark.parametrize(
    ("log", "scorer"),
    [
        ("inspect/2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval", ()),
        ("lm_eval/own_tinygpt2", ("acc", "exact_match")),
        ("helm", ("exact_match",)),
        ("promptfoo/out.json", ()),
    ],
)
def test_audits_start_from_native_logs(shared: Path, log: str, scorer: tuple[str, ...]):
    evidence = Evidence.from_logs(shared / "real" / "native_logs" / log, scorer=scorer or None)
    assert len(evidence) > 0
    evidence = evidence.select_model(evidence.models[0]) if evidence.roles.model else evidence
    if evidence.loss.drop_nulls().n_unique() > 1:
        report = groundfault.audit(evidence)
        assert report.findings


# ------------------------------------------------------------ --- retries, repeats, and the account


def test_an_answer_that_a_later_log_made_good_is_no_contradiction(desk: Path):
    """A cancelled run and its retry: the answer counts once, and the account says why."""
    first = rows(10)
    first[3] |= {"value": None, "status": "error"}
    first[4] |= {"value": None, "status": "missing"}
    first[5] |= {"value": None, "status": "missing"}
    again = rows(10)
    again[5] |= {"value": None, "status": "error"}
    table("a.parquet", first)
    table("b.parquet", again)
    evidence = Evidence.from_logs("a.parquet", "b.parquet")
    account = evidence.account
    assert account is not None
    assert (len(evidence), account.retried, account.duplicated) == (10, 3, 7)
    assert evidence.status_counts["error"] == 1
    assert evidence.status_counts["missing"] == 0
    assert "retried: 3 rows without an answer, which another log has" in account.to_lines()


def test_an_answer_taken_back_is_not_made_good_by_the_log_of_before(desk: Path):
    table("a.parquet", rows(10))
    table("b.parquet", [{**row, "value": None, "status": "artefact"} for row in rows(10)])
    with pytest.raises(InputError, match="other result: 10 examples"):
        Evidence.from_logs("a.parquet", "b.parquet")


def test_repeats_of_one_log_are_all_kept_though_they_come_out_alike(desk: Path):
    """Two of three right stays two of three; the same log given twice is still counted once."""
    thrice = [{**row, "value": int(j < 2)} for row in rows(10) for j in range(3)]
    table("a.parquet", thrice)
    table("copy.parquet", thrice)
    evidence = Evidence.from_logs("a.parquet", "copy.parquet", conflicts="keep")
    assert evidence.account is not None
    assert (len(evidence), evidence.account.duplicated) == (30, 30)
    assert evidence.loss.mean() == pytest.approx(1 / 3)


def run_of(chance: Callable[[int, int], float], epochs: Iterable[int]) -> list[dict[str, object]]:
    """One run of 60 examples, an answer each in some epochs, numbered from 1."""
    return [
        {
            "example_id": f"q{i:02d}",
            "model": "m",
            "epoch": number,
            "value": None if (7 * i + epoch) % 41 == 0 else int(chance(i, epoch) > 0.3),
            "status": "error" if (7 * i + epoch) % 41 == 0 else "scored",
            "lang": "de" if i % 3 == 0 else "en",
            "words": i * 37 % 50,
            "position": place,
        }
        for place, (number, epoch, i) in enumerate(
            ((n, e, i) for n, e in enumerate(epochs, 1) for i in range(60)), 1
        )
    ]


def test_five_runs_give_the_report_of_one_run_of_five_epochs(desk: Path):
    """To the last number, with errors in some of them; a copy of a run among them adds nothing."""
    draw = np.random.default_rng(3).random((60, 5))
    chance = lambda i, epoch: draw[i, epoch] * (0.6 if i % 3 == 0 else 1.5)  # noqa: E731
    for run in range(5):
        table(f"run{run}.parquet", run_of(chance, [run]))
    shutil.copy("run3.parquet", "run3-copy.parquet")
    table("all.parquet", run_of(chance, range(5)))
    Path("map.toml").write_text('measured = ["position"]\n')
    apart = Evidence.from_logs("run*.parquet", map="map.toml", conflicts="keep")
    assert apart.account is not None
    assert apart.account.duplicated + apart.account.retried == 60  # the copy
    whole = Evidence.from_logs("all.parquet", map="map.toml")
    assert apart.status_counts == whole.status_counts
    # a report is a function of the evidence: equal contents make equal reports
    assert apart.hash == whole.hash
    assert apart.frame.drop("log").equals(whole.frame.drop("log"))
    assert apart.roles == whole.roles


def test_a_second_try_is_told_from_a_second_run(desk: Path):
    """An answer that failed is made good by a try of the same run, and not by another run."""
    first = [Observation("q0", 1.0, origin="a"), Observation("q1", None, "error", origin="b")]
    copy = [Observation("q0", 1.0, origin="a"), Observation("q1", 0.0, origin="c")]
    for run, expected in (("same", (2, 1, 1)), ("", (3, 0, 1))):
        reader = Listed([first, copy], run)
        Path("0.log").write_text("first")
        Path("1.log").write_text("copy")
        evidence = Evidence.from_logs("0.log", "1.log", reader=reader, conflicts="keep")
        assert evidence.account is not None
        account = evidence.account
        assert (len(evidence), account.retried, account.duplicated) == expected
    edited = [Observation("q0", 0.0, origin="a")]
    for conflicts in ("error", "keep"):
        with pytest.raises(InputError, match="same answer, other result: 1 examples, such as 'q0'"):
            Evidence.from_logs(
                "0.log", "1.log", reader=Listed([first, edited], "same"), conflicts=conflicts
            )


@dataclass
class Listed:
    """A reader whose logs are lists of observations, in the order of the files' names."""

    lists: list[list[Observation]]
    run: str

    def sniff(self, path: Path) -> bool:
        return path.suffix == ".log"

    def read(self, path: Path) -> Log:
        return Log(self.lists[int(path.stem)], run=self.run)


def test_one_task_scored_by_two_in_two_logs_is_not_taken_for_one_measure(desk: Path):
    table("a.parquet", rows(model="a", scorer="strict"))
    table("b.parquet", rows(model="b", scorer="lenient"))
    with pytest.raises(InputError, match=r"several scorers \('lenient', 'strict'\)"):
        Evidence.from_logs("a.parquet", "b.parquet")
    assert len(Evidence.from_logs("a.parquet", "b.parquet", scorer=["strict", "lenient"])) == 80
    table("b.parquet", rows(model="b", scorer="lenient", task="other"))
    table("a.parquet", rows(model="a", scorer="strict", task="one"))
    assert len(Evidence.from_logs("a.parquet", "b.parquet")) == 80


def test_each_task_is_said_to_need_a_scorer_of_its_own(desk: Path):
    table(
        "a.parquet",
        [*rows(task="x", scorer="s"), *rows(task="x", scorer="t"), *rows(task="y", scorer="u")],
    )
    with pytest.raises(InputError, match="'s', 't' of 'x'; 'u' of 'y'; choose one of each task"):
        Evidence.from_logs("a.parquet")


def test_errors_of_a_log_without_the_chosen_scorer_are_left_out_with_its_answers(desk: Path):
    table("a.parquet", rows(model="a", scorer="x"))
    server_error = [
        {"example_id": "q99", "model": "b", "scorer": "", "value": None, "status": "error"}
    ]
    table("b.parquet", [*rows(30, model="b", scorer="y"), *server_error])
    evidence = Evidence.from_logs("a.parquet", "b.parquet", scorer="x")
    assert evidence.models == ("a",)
    assert evidence.account is not None
    assert evidence.account.left_out == 31


def test_disagreement_is_told_on_one_scale(desk: Path):
    """A judge of 1 to 10 beside a 0/1 match: compared once the judge is in [0, 1], never before."""
    judge = [
        {**row, "scorer": "judge", "value": 10 if i % 2 else 1} for i, row in enumerate(rows())
    ]
    table("a.parquet", [*judge, *rows(scorer="match")])
    evidence = Evidence.from_logs("a.parquet", scorer="judge", scale=(1, 10))
    assert evidence.frame["scorers_disagree"].sum() == 0
    other = Evidence.from_logs("a.parquet", scorer="match")
    assert "scorers_disagree" not in other.frame.columns
    assert other.frame["score_judge"].max() == 10


def test_a_column_named_like_a_score_is_kept_under_another_name(desk: Path):
    table("a.parquet", [*rows(scorer="x", score_y=7), *rows(scorer="y", score_y=7)])
    evidence = Evidence.from_logs("a.parquet", scorer="x")
    assert evidence.frame["score_y"].to_list() == evidence.frame["value"].to_list()
    assert evidence.frame["score_y_given"].unique().to_list() == [7]


def test_many_notes_alike_are_one_line_and_hide_nothing_of_weight(desk: Path):
    logs = tuple(
        LogRead(f"{i}.eval", "", "inspect", notes=("no samples", f"note {i}")) for i in range(1000)
    )
    lines = Account(
        logs, notes=("30 answers were left out",), missing={f"m{i}": 1 for i in range(50)}
    ).to_lines()
    assert len(lines) < 20
    assert "30 answers were left out" in lines
    assert "in 1,000 logs: no samples" in lines
    assert any("45 more models" in line for line in lines)


STATUSES = ["scored", "scored", "error", "missing", "unparsed"]
ROW = st.fixed_dictionaries(
    {
        "example_id": st.sampled_from("abc"),
        "model": st.sampled_from("mn"),
        "scorer": st.sampled_from(["", "x", "y"]),
        "value": st.sampled_from([0.0, 1.0]),
        "status": st.sampled_from(STATUSES),
        "task": st.sampled_from(["", "t"]),
        "response": st.sampled_from([None, "r"]),
        "prompt": st.sampled_from([None, "p", "q"]),
    }
)


@given(
    logs=st.lists(st.lists(ROW, min_size=1, max_size=8), min_size=1, max_size=3),
    scorer=st.sampled_from("xy"),
)
@settings(max_examples=count_examples(60))
def test_every_row_read_is_somewhere(logs: list[list[dict[str, Any]]], scorer: str) -> None:
    """Rows read = rows of evidence, beside, left out, retried and duplicated, for any logs."""
    with tempfile.TemporaryDirectory() as folder:
        for i, each in enumerate(logs):
            pl.DataFrame(
                each, schema=dict.fromkeys(each[0], pl.String) | {"value": pl.Float64}
            ).write_parquet(f"{folder}/{i}.parquet")
        try:
            evidence = Evidence.from_logs(folder, scorer=scorer, conflicts="keep")
        except InputError as error:
            return (
                None
                if "no scorer" in str(error) or "has no rows" in str(error)
                else pytest.fail(str(error))
            )
    account = evidence.account
    assert account is not None
    read = sum(log.observations for log in account.logs)
    assert read == sum(map(len, logs)) == sum(account.scorers.values())
    assert (
        read
        == len(evidence) + account.beside + account.left_out + account.retried + account.duplicated
    )
    assert set(evidence.frame.get_column("scorer", default=pl.Series([scorer]))) <= {"", scorer}
