"""Verification: what reproduces, what was edited, and evidence that was derived."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from audit_tables import make_planted_table
from msgspec import structs

import groundfault
from groundfault import Candidate, Evidence, InputError, Plan, PlanError
from groundfault.auditing.report_schema import Derivation
from groundfault.auditing.verification import DERIVATIONS
from groundfault.base.registry import load_object


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[groundfault.Report, Path]:
    """A report with a failure mode, and the folder of its table."""
    home = tmp_path_factory.mktemp("planted")
    make_planted_table().write_csv(home / "t.csv")
    evidence = Evidence.from_table(home / "t.csv", id="id", outcome="error")
    return groundfault.audit(evidence), home


def test_verify_reproduces_and_notices(tmp_path: Path) -> None:
    make_planted_table().write_parquet(tmp_path / "t.parquet")
    evidence = Evidence.from_table(tmp_path / "t.parquet", id="id", outcome="error")
    report = groundfault.audit(evidence, ledger=tmp_path / "ledger.db", robustness=3)
    report.write(tmp_path / "report")
    result = groundfault.verify(tmp_path / "report", ledger=tmp_path / "ledger.db")
    assert result.reproduces, result.differences
    assert "unbroken" in result.ledger

    path = tmp_path / "report" / "report.json"
    text = path.read_text()
    path.write_text(text.replace('"verdict": "below_floor"', '"verdict": "confirmed"', 1))
    assert not groundfault.verify(tmp_path / "report").reproduces
    path.write_text(text)

    make_planted_table(seed=1).write_parquet(tmp_path / "t.parquet")
    variant = groundfault.verify(tmp_path / "report")
    assert not variant.reproduces
    assert any("hashes.evidence" in d for d in variant.differences)
    assert variant.checks[0].detail.startswith("the evidence is not what the report was computed")


def test_the_table_of_a_report_may_lie_beside_it(tmp_path: Path) -> None:
    make_planted_table().write_parquet(tmp_path / "t.parquet")
    evidence = Evidence.from_table(tmp_path / "t.parquet", id="id", outcome="error")
    groundfault.audit(evidence, ledger=tmp_path / "ledger.db", modes=False).write(tmp_path)
    assert groundfault.verify(tmp_path, ledger=tmp_path / "ledger.db").reproduces
    (tmp_path / "other.parquet").write_bytes((tmp_path / "t.parquet").read_bytes())
    (contents,) = groundfault.verify(tmp_path, ledger=tmp_path / "ledger.db").checks[-1:]
    assert contents.differences == ("other.parquet: added",)


def test_a_comparison_of_a_table_with_copies_reproduces(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(list("abcdefgh"), 8)) for _ in range(300)]
    errors = {f"error {name}": rng.integers(0, 2, 300) for name in "ab"}
    table = pl.DataFrame({"prompt": texts, "x": rng.normal(size=300), **errors})
    table = pl.concat([table, table.head(40)]).with_columns(id=pl.int_range(340))
    models = [
        table.select("id", "prompt", "x", error=f"error {name}", model=pl.lit(name))
        for name in "ab"
    ]
    pl.concat(models).write_parquet(tmp_path / "t.parquet")
    columns = {"id": "id", "outcome": "error", "model": "model"}
    evidence = Evidence.from_table(tmp_path / "t.parquet", **columns)
    report = groundfault.audit(evidence, compare=("a", "b"), ledger=False)
    assert report.n == 300
    report.write(tmp_path / "report")
    result = groundfault.verify(tmp_path / "report", ledger=False)
    assert result.checks[0].status == "passed", result.differences


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ('"permutations": 999', '"permutations": 1000000000000', "permutations"),
        ('"robustness": null', '"robustness": {"splits": 1000000000, "nonempty": 0}', "splits"),
    ],
)
def test_a_report_cannot_ask_for_work_without_end(
    before: str, after: str, name: str, tmp_path: Path
) -> None:
    make_planted_table().write_parquet(tmp_path / "t.parquet")
    evidence = Evidence.from_table(tmp_path / "t.parquet", id="id", outcome="error")
    groundfault.audit(evidence, modes=False).write(tmp_path / "report")
    path = tmp_path / "report" / "report.json"
    edited = path.read_text().replace(before, after)
    assert after in edited
    path.write_text(edited)
    with pytest.raises(PlanError, match=name):
        groundfault.verify(tmp_path / "report")


def test_a_report_of_rows_without_ids_reproduces(tmp_path: Path) -> None:
    make_planted_table().drop("id").write_csv(tmp_path / "rows.csv")
    evidence = Evidence.from_table(tmp_path / "rows.csv", outcome="error")
    groundfault.audit(evidence).write(tmp_path / "report")
    result = groundfault.verify(tmp_path / "report")
    assert result.reproduces, result.differences


def test_verify_notices_a_ledger_that_was_edited(tmp_path: Path) -> None:

    make_planted_table().write_parquet(tmp_path / "t.parquet")
    evidence = Evidence.from_table(tmp_path / "t.parquet", id="id", outcome="error")
    ledger = tmp_path / "ledger.db"
    groundfault.audit(evidence, ledger=ledger, modes=False).write(tmp_path / "report")
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        table = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchone()[0]
        connection.execute(f"UPDATE {table} SET actor = 'somebody else'")
    result = groundfault.verify(tmp_path / "report", ledger=tmp_path / "ledger.db")
    assert not result.reproduces
    assert "contradicts the report" in result.ledger


def test_a_derivation_that_is_unknown_is_named(planted: tuple[groundfault.Report, Path]) -> None:
    report, home = planted
    derivation = Derivation(kind="dreams", settings={})
    manifest = structs.replace(report.manifest, derivation=derivation)
    structs.replace(report, manifest=manifest).write(home / "dreamt")
    with pytest.raises(InputError, match="derived as 'dreams'"):
        groundfault.verify(home / "dreamt")


def test_every_derivation_can_be_repeated() -> None:
    assert all(callable(load_object(place)) for place in DERIVATIONS.values())


def test_sentences_of_this_version_are_compared(tmp_path: Path) -> None:
    make_planted_table().write_csv(tmp_path / "t.csv")
    evidence = Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")
    report = groundfault.audit(evidence, modes=False)
    structs.replace(report, conclusion="All is well.").write(tmp_path / "report")
    (difference,) = groundfault.verify(tmp_path / "report").differences
    assert difference.startswith("conclusion: 'All is well.'")
    other = structs.replace(report, conclusion="All is well.", groundfault_version="0.0.1")
    other.write(tmp_path / "report")
    assert groundfault.verify(tmp_path / "report").reproduces, "phrased by another version"


def test_modes_rows_that_were_selected_and_columns_held_fixed_reproduce(tmp_path: Path) -> None:
    make_planted_table().write_csv(tmp_path / "t.csv")
    evidence = Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")
    part = evidence.where("words > 10")
    report = groundfault.audit(
        part, Plan(within=("lang",), depth=2), [Candidate("long", "words > 50")]
    )
    assert report.modes
    assert report.manifest.where == '"words" > 10'
    assert report.plan.within == ("lang",)
    report.write(tmp_path / "report")
    result = groundfault.verify(tmp_path / "report")
    assert result.reproduces, result.differences


def test_a_mode_that_was_changed_is_noticed_and_texts_may_be_left_out(
    planted: tuple[groundfault.Report, Path],
) -> None:
    report, home = planted
    (mode,) = report.modes
    structs.replace(report, modes=(structs.replace(mode, errors=mode.errors + 1),)).write(
        home / "changed"
    )
    (difference,) = groundfault.verify(home / "changed").differences
    assert difference.startswith("modes[0].errors")
    bare = tuple(structs.replace(example, texts={}) for example in mode.sample)
    structs.replace(report, modes=(structs.replace(mode, sample=bare),)).write(home / "bare")
    assert groundfault.verify(home / "bare").reproduces
    phrased = structs.replace(mode, meaning="it is hard", conditions=("it is hard",))
    other = structs.replace(report, modes=(phrased,), groundfault_version="0.0.1")
    other.write(home / "phrased")
    assert groundfault.verify(home / "phrased").reproduces, "phrased by another version"


def test_modes_that_another_version_found_are_left_open_and_its_other_numbers_are_not(
    planted: tuple[groundfault.Report, Path],
) -> None:
    report, home = planted
    other = structs.replace(report, modes=(), groundfault_version="0.2.0")
    other.write(home / "other")
    check = groundfault.verify(home / "other").checks[0]
    assert (check.status, "verify with groundfault 0.2.0" in check.detail) == ("unchecked", True)
    structs.replace(other, error_rate=0.9).write(home / "other")
    assert groundfault.verify(home / "other").checks[0].status == "failed"


def test_a_report_that_looked_for_no_modes_is_repeated_without(tmp_path: Path) -> None:
    make_planted_table().write_csv(tmp_path / "t.csv")
    evidence = Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")
    report = groundfault.audit(evidence, Plan(judge="janus"), modes=False)
    assert report.mode_search is None
    report.write(tmp_path / "report")
    assert groundfault.verify(tmp_path / "report").reproduces


def test_a_judge_that_was_chosen_for_what_finders_saw_reproduces(tmp_path: Path) -> None:
    make_planted_table().write_csv(tmp_path / "t.csv")
    evidence = Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")
    report = groundfault.audit(evidence, finders=["thresholds", "sliceline"])
    assert (report.judge, report.plan.judge) == ("split-holm", "split-holm")
    assert report.judge_reason
    report.write(tmp_path / "report")
    result = groundfault.verify(tmp_path / "report")
    assert result.reproduces, result.differences


def test_a_ledger_is_opened_because_the_caller_names_it_and_never_because_a_report_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_planted_table().write_csv(tmp_path / "t.csv")
    evidence = Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")
    report = groundfault.audit(evidence, ledger=tmp_path / "ledger.db", modes=False)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    url = f"postgresql+psycopg://127.0.0.1:{listener.getsockname()[1]}/audits"
    structs.replace(report, ledger=structs.replace(report.ledger, path=url)).write(
        tmp_path / "report"
    )
    monkeypatch.setenv("PGPASSWORD", "a secret")
    monkeypatch.delenv("GROUNDFAULT_LEDGER")
    result = groundfault.verify(tmp_path / "report")
    assert "which may be anybody's" in result.ledger
    assert result.verdict == "cannot be verified", result.differences
    with listener, pytest.raises(TimeoutError):
        listener.accept()
    monkeypatch.setenv("GROUNDFAULT_LEDGER", str(tmp_path / "ledger.db"))
    assert "unbroken" in groundfault.verify(tmp_path / "report").ledger


@pytest.fixture(scope="module")
def second_look(tmp_path_factory: pytest.TempPathFactory) -> tuple[groundfault.Report, Path]:
    """A report of the second of three looks, which reproduces, and the folder of its ledger."""
    home = tmp_path_factory.mktemp("looks")
    make_planted_table().write_csv(home / "t.csv")
    evidence = Evidence.from_table(home / "t.csv", id="id", outcome="error")
    groundfault.audit(evidence, ledger=home / "ledger.db", modes=False)
    plan = Plan(judge="janus")
    report = groundfault.audit(evidence, plan, ledger=home / "ledger.db", reopen="to see")
    report.write(home / "report")
    # later looks are of later reports
    groundfault.audit(evidence, Plan(seed=1), ledger=home / "ledger.db", reopen="no", modes=False)
    result = groundfault.verify(home / "report", ledger=home / "ledger.db")
    assert result.reproduces, (result.differences, result.ledger)
    return report, home


@pytest.mark.parametrize(
    "edit",
    [
        {"times": 1, "plans": 1, "reasons": (), "sentence": "all outcomes were looked at 1 time"},
        {"reasons": ("a harmless one",)},
        {"looks": ()},
        {"replay": True},
        {"sentence": "holdout opened 1 time"},
        {"all_before": False},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_what_a_report_says_of_its_opening_is_counted_again(
    edit: dict[str, object], second_look: tuple[groundfault.Report, Path]
) -> None:
    report, home = second_look
    edited = structs.replace(report, ledger=structs.replace(report.ledger, **edit))
    edited.write(home / "edited")
    assert not groundfault.verify(home / "edited", ledger=home / "ledger.db").reproduces
