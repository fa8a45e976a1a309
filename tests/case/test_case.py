"""A case: from the table to labels of fresh rows, on one folder that is killed, moved, altered."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import groundfault
from groundfault import Case, Evidence, PlanError
from groundfault.base.ledger import Ledger
from groundfault.case.parts import divide, find_losses, hide_outcomes, join_parts
from groundfault.case.settings import ModeChoice
from groundfault.case.simulation import forecast_confirmation
from groundfault.case.verification import verify_case
from groundfault.core.status import Status
from groundfault.errors import InputError, LedgerError


def table(count: int = 160, rate: float = 0.95) -> pl.DataFrame:
    """Answers that fail in German; ``cheap`` is a grader that is mostly right."""
    rng = np.random.default_rng(5)
    language = rng.choice(["de", "en", "fr", "it"], count)
    error = rng.random(count) < np.where(language == "de", rate, 0.05)
    cheap = np.where(rng.random(count) < 0.9, error, ~error)
    ids = [f"q{i:03}" for i in range(count)]
    columns = {"item": ids, "lang": language, "words": rng.integers(5, 60, count)}
    return pl.DataFrame({**columns, "cheap": cheap.astype(int), "error": error.astype(int)})


def read(frame: pl.DataFrame, **columns: object) -> Evidence:
    return Evidence.from_table(frame, outcome="error", id="item", **columns)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case with an audit, all its labels and its report."""
    place = tmp_path_factory.mktemp("case") / "whole"
    case = Case.create(place, read(table().drop("cheap")), seed=1)
    case.audit()
    case.confirm().run(case.look_up)
    case.write_confirmation()
    case.write_report()
    return place


def copy(place: Path, to: Path) -> Case:
    shutil.copytree(place, to)
    return Case(to)


# ------------------------------------------------------------------------------------ --- the parts


def test_the_audit_gets_no_outcome_of_what_is_kept_apart(labelled: Path) -> None:
    case, whole = Case(labelled), read(table().drop("cheap"))
    audited, fresh = case.audit_evidence, case.fresh_evidence
    assert set(audited.frame["item"]) | set(fresh.frame["item"]) == set(whole.frame["item"])
    assert not set(audited.frame["item"]) & set(fresh.frame["item"])
    assert len(audited) == len(fresh) == 80
    assert fresh.loss.is_null().all()
    assert fresh.frame["error"].is_null().all()
    assert case.report is not None
    assert case.report.hashes.evidence == audited.hash


def test_rows_without_an_outcome_are_the_fresh_ones() -> None:
    frame = table().with_columns(error=pl.when(pl.col("words") < 30).then("error"))
    parts = divide(read(frame, null_outcome="missing"))
    assert parts.freshness == "without an outcome"
    assert parts.answers is None
    assert parts.fresh.frame["words"].min() >= 30  # type: ignore[operator]
    assert parts.audit.status_counts[Status.MISSING] == 0
    with pytest.raises(PlanError, match="leave --keep out"):
        divide(read(frame, null_outcome="missing"), "0.3")


def test_a_copy_of_an_audited_example_is_not_fresh() -> None:
    frame = table().with_columns(
        prompt=pl.format("please translate sentence number {} into {}", "item", "lang")
    )
    twins = frame.head(40).with_columns(item="copy " + pl.col("item"), error=None)
    both = pl.concat(
        [
            frame,
            twins,
            frame.tail(30).with_columns(
                item="new " + pl.col("item"), prompt="another " + pl.col("prompt"), error=None
            ),
        ],
        how="vertical_relaxed",
    )
    parts = divide(read(both, null_outcome="missing"))
    assert parts.fresh.frame["item"].str.starts_with("new ").all()
    assert parts.fresh.unit_count == 30


def test_of_copies_that_differ_the_first_that_was_scored_is_looked_up() -> None:
    words = "the quick brown fox jumps over the lazy dog while it rains"
    prompts = [f"{words} number {i}" for i in range(12)]
    frame = pl.DataFrame(
        {
            "item": [f"{copy}{i:02}" for copy in "ab" for i in range(12)],
            "prompt": prompts * 2,
            "error": [1, 0, None] + [0] * 9 + [0, 1, 1] + [0] * 9,
        }
    )
    losses = find_losses(read(frame, null_outcome="missing"))
    assert len(losses) == 12
    assert [losses[f"a{i:02}", ""] for i in range(4)] == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("good", [False, True])
def test_parts_are_joined_under_their_outcomes(good: bool) -> None:
    frame = table().with_columns(error=1 - pl.col("error")) if good else table()
    evidence = read(frame, positive_is_good=good)
    parts = divide(evidence, "0.25", seed=3)
    whole = join_parts(parts.audit, parts.fresh)
    of = dict(zip(whole.frame["item"], whole.loss, strict=True))
    audited = dict(zip(parts.audit.frame["item"], parts.audit.loss, strict=True))
    assert {name: of[name] for name in audited} == audited
    assert all(of[name] is None for name in parts.fresh.frame["item"])
    assert parts.answers is not None
    assert hide_outcomes(parts.answers).hash == parts.fresh.hash


def test_what_is_no_case(tmp_path: Path) -> None:
    twice = pl.concat([table().with_columns(time=pl.lit(time)) for time in (1, 2)])
    with pytest.raises(InputError, match="one row of each example and model"):
        Case.create(tmp_path / "twice", read(twice, repeat="time"))
    grouped = read(table().with_columns(pair=pl.col("words") // 2), group="pair")
    with pytest.raises(InputError, match="one row of each example and model"):
        Case.create(tmp_path / "grouped", grouped)
    halves = read(table().with_columns(error=pl.col("error") / 2))
    for evidence, grader, message in (
        (read(table()), "judge", "no column 'judge'"),
        (read(table()), "lang", "are no numbers"),
        (read(table()), "words", "from 0 to 1"),
        (read(table()), "error", "no grade in it"),
        (halves, "cheap", "leave --grader out"),
    ):
        with pytest.raises((InputError, PlanError), match=message):
            Case.create(tmp_path / "graded", evidence, grader=grader)
    for share in ("0", "1.5"):
        with pytest.raises(PlanError, match="keep must be strictly between 0 and 1"):
            Case.create(tmp_path / "kept", read(table()), keep=share)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        Case.create(tmp_path / "full", read(table()))
    with pytest.raises(InputError, match="is no case"):
        Case(tmp_path / "full")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


# ------------------------------------------------------------------------------------ --- the steps


def test_a_planted_mode_is_confirmed_on_fresh_labels(labelled: Path) -> None:
    summary = Case(labelled).summarize()
    (mode,) = summary.modes
    assert (mode.rule, mode.standing) == ("\"lang\" = 'de'", "confirmed")
    assert 0 < summary.labelled < 80
    assert mode.labelled_inside + mode.labelled_outside == summary.labelled
    page = (labelled / "report" / "report.md").read_text()
    assert "confirmed on fresh labels: 1" in page
    assert "at most 4%" in page
    assert "at most 1% by answers" in page
    assert "at most 10%" in page
    assert f"{80 - summary.labelled} fresh examples never labelled" in page


def test_one_ledger_holds_it_all_and_counts_one_look_of_each_part(labelled: Path) -> None:
    book = Ledger(labelled / "ledger.db")
    kinds = [event.kind for event in book.events()]
    assert kinds[0] == "case_sealed"
    openings = [event.body for event in book.events("holdout_opened")]
    assert [body["level"] for body in openings] == [0.04, 0.04]
    confirmation = Case(labelled).replay_confirmation()
    assert confirmation is not None
    assert confirmation.opening == "holdout opened 1 time"
    assert kinds.count("holdout_told") == confirmation.labelled


def test_shuffled_outcomes_end_with_nothing_claimed(tmp_path: Path) -> None:
    frame = table().drop("cheap")
    frame = frame.with_columns(error=frame["error"].shuffle(seed=0))
    case = Case.create(tmp_path / "null", read(frame))
    assert case.audit().modes == ()
    with pytest.raises(PlanError, match="found no failure mode"):
        case.confirm()
    assert case.write_report().confirmed == ()
    assert "nothing is claimed" in (tmp_path / "null/report/report.md").read_text()
    assert forecast_confirmation(case) is None


def test_what_chance_put_into_the_audit_is_not_confirmed(tmp_path: Path) -> None:
    """One of twenty shuffled tables has a mode by chance; this is one, and labels refuse it."""
    frame = table().drop("cheap")
    frame = frame.with_columns(error=frame["error"].shuffle(seed=4))
    case = Case.create(tmp_path / "case", read(frame))
    assert len(case.audit().modes) == 1
    assert case.confirm(budget=15).run(case.look_up) == ()
    summary = case.write_report()
    assert (summary.modes[0].standing, summary.labelled) == ("open", 15)
    page = (tmp_path / "case/report/report.md").read_text()
    assert "confirmed on fresh labels: none" in page


def test_labelling_goes_on_where_it_was_killed(labelled: Path, tmp_path: Path) -> None:
    shutil.copytree(labelled, tmp_path / "case")
    shutil.rmtree(tmp_path / "case/confirm")
    (tmp_path / "case/confirm.json").unlink()
    (tmp_path / "case/ledger.db").unlink()
    for _ in range(3):
        case = Case(tmp_path / "case")
        confirmation = case.confirm()
        for _ in range(3):
            query = confirmation.ask()
            assert query is not None
            confirmation.tell(query, case.look_up(query))
        confirmation.ask()
    assert Case(tmp_path / "case").summarize().labelled == 9
    case.confirm().run(case.look_up)
    assert case.replay_confirmation() == Case(labelled).replay_confirmation()


def test_labels_count_while_another_process_reads_the_ledger(
    labelled: Path, tmp_path: Path
) -> None:
    case = copy(labelled, tmp_path / "case")
    for name in ("ledger.db", "confirm.json"):
        (case.folder / name).unlink()
    confirmation = case.confirm()
    with closing(sqlite3.connect(case.folder / "ledger.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM groundfault_ledger").fetchone()
        query = confirmation.ask()
        assert query is not None
        confirmation.tell(query, case.look_up(query))
        assert (case.folder / "ledger.db-wal").exists()
        assert case.summarize().labelled == 1


def test_one_confirmation_a_case(labelled: Path) -> None:
    case = Case(labelled)
    with pytest.raises(PlanError, match="one confirmation"):
        case.confirm(budget=7)
    with pytest.raises(PlanError, match="one confirmation"):
        case.confirm(budget=0)
    with pytest.raises(PlanError, match="it stands as it is"):
        case.audit()
    assert ModeChoice.find(labelled) == ModeChoice(
        modes=(1,), rules=("\"lang\" = 'de'",), budget=None
    )


def test_modes_are_chosen_by_number(labelled: Path, tmp_path: Path) -> None:
    case = copy(labelled, tmp_path / "case")
    (case.folder / "confirm.json").unlink()
    for numbers in ([2], [1, 1], []):
        with pytest.raises(PlanError, match="number from 1 to 1"):
            case.confirm(numbers)
    assert not (case.folder / "confirm.json").exists()


def test_a_grader_is_in_no_rule_and_saves_labels(tmp_path: Path) -> None:
    case = Case.create(tmp_path / "case", read(table(100)), seed=1, grader="cheap")
    modes = case.audit().modes
    assert all("cheap" not in mode.rule for mode in modes)
    confirmation = case.confirm()
    query = confirmation.ask()
    assert query is not None
    assert "cheap" not in query.case
    assert confirmation.result.grader == "cheap"


def test_a_forecast_is_of_the_labels_that_are_left(labelled: Path, tmp_path: Path) -> None:
    case = copy(labelled, tmp_path / "case")
    assert forecast_confirmation(case) is None
    for name in ("ledger.db", "confirm.json"):
        (case.folder / name).unlink()
    forecast = forecast_confirmation(case)
    assert forecast is not None
    assert forecast.limit == 80
    assert 5 < forecast.median < 80
    assert forecast.shares[1] > 0.5


# -------------------------------------------------------------------------------- --- verification


def test_a_case_reproduces_where_it_was_moved(labelled: Path, tmp_path: Path) -> None:
    case = copy(labelled, tmp_path / "elsewhere")
    before = (case.folder / "ledger.db").read_bytes()
    verification = verify_case(case.folder)
    assert verification.verdict == "reproduces", verification.checks
    details = {check.name: check.detail for check in verification.checks}
    again = "made again from the audit and the ledger, every page says the same"
    assert details["confirmation"] == details["report"] == again
    assert "case" in details
    # to verify is not to look again
    assert (case.folder / "ledger.db").read_bytes() == before


def alter_settings(folder: Path) -> None:
    content = json.loads((folder / "case.json").read_text()) | {"alpha": "0.2"}
    (folder / "case.json").write_text(json.dumps(content))


def alter_rows(folder: Path) -> None:
    shutil.rmtree(folder / "evidence/fresh")
    shutil.copytree(folder / "evidence/answers", folder / "evidence/fresh")


def alter_choice(folder: Path) -> None:
    choice = ModeChoice.find(folder)
    assert choice is not None
    ModeChoice(modes=(1,), rules=("words > 20",), budget=choice.budget).write(folder)


def lengthen_choice(folder: Path) -> None:
    content = json.loads((folder / "confirm.json").read_text())
    (folder / "confirm.json").write_text(json.dumps(content | {"modes": [1, 2]}))


def empty_choice(folder: Path) -> None:
    ModeChoice(modes=(), rules=(), budget=None).write(folder)


def lose_the_choice(folder: Path) -> None:
    """As if nothing had been labelled."""
    (folder / "confirm.json").unlink()
    shutil.rmtree(folder / "confirm")
    shutil.rmtree(folder / "report")


def spoil_the_budget(folder: Path) -> None:
    content = json.loads((folder / "confirm.json").read_text())
    (folder / "confirm.json").write_text(json.dumps(content | {"budget": -1}))


def alter_report(folder: Path) -> None:
    page = folder / "report/report.md"
    page.write_text(page.read_text().replace("labels: 1", "labels: 2"))


def lose_the_ledger(folder: Path) -> None:
    (folder / "ledger.db").unlink()


@pytest.mark.parametrize(
    ("alter", "name"),
    [
        (alter_settings, "case"),
        (alter_rows, "evidence"),
        (alter_choice, "choice"),
        (lengthen_choice, "choice"),
        (empty_choice, "choice"),
        (lose_the_choice, "choice"),
        (spoil_the_budget, "confirmation"),
        (alter_report, "report"),
        (lose_the_ledger, "case"),
    ],
)
def test_what_was_altered_shows(alter, name: str, labelled: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    case = copy(labelled, tmp_path / "case")
    alter(case.folder)
    verification = verify_case(case.folder)
    assert verification.verdict == "does NOT reproduce"
    assert name in {check.name for check in verification.checks if check.status == "failed"}


@pytest.mark.parametrize("alter", [lengthen_choice, empty_choice, alter_choice])
def test_a_choice_of_other_modes_is_refused(alter, labelled: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    case = copy(labelled, tmp_path / "case")
    alter(case.folder)
    with pytest.raises(InputError, match="not modes of the audit"):
        case.summarize()
    with pytest.raises(InputError, match="not modes of the audit"):
        case.confirm()


def test_a_ledger_that_was_lost_is_not_begun_anew(labelled: Path, tmp_path: Path) -> None:
    case = copy(labelled, tmp_path / "case")
    lose_the_ledger(case.folder)
    for step in (case.summarize, case.confirm, case.write_report):
        with pytest.raises(LedgerError, match="is missing"):
            step()
    assert not (case.folder / "ledger.db").exists()


def test_settings_that_were_altered_are_not_gone_on_with(labelled: Path, tmp_path: Path) -> None:
    case = copy(labelled, tmp_path / "case")
    alter_settings(case.folder)
    with pytest.raises(LedgerError, match=r"another case\.json"):
        Case(case.folder).confirm()
    assert len(Ledger(case.folder / "ledger.db").events("case_sealed")) == 1


def test_an_audit_that_was_lost_is_written_again(labelled: Path, tmp_path: Path) -> None:
    case = copy(labelled, tmp_path / "case")
    shutil.rmtree(case.folder / "audit")
    case.audit()
    assert case.summarize() == Case(labelled).summarize()


@pytest.mark.slow
def test_false_statements_in_null_cases(tmp_path: Path) -> None:
    """Of 100 cases without any mode 4 may name one, and 4 % of those confirm it; 11 are unlikely.

    Statements about other words need a mode; tests/case/test_wordings.py has their share.
    """
    claims, confirmed = 0, 0
    for seed in range(100):
        frame = table().drop("cheap")
        frame = frame.with_columns(error=frame["error"].shuffle(seed=seed))
        case = Case.create(tmp_path / str(seed), read(frame), seed=seed)
        if case.audit().modes:
            claims += 1
            confirmed += bool(case.confirm().run(case.look_up))
    assert claims < 11
    assert confirmed < 3


def test_it_is_a_public_name() -> None:
    assert groundfault.Case is Case
