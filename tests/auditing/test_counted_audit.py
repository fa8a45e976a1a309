"""The flow of an audit by counts: one opening, what it refuses, and engines that disagree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lazy_tables import CANDIDATES, make_table, write_parts

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.preparation import prepare
from groundfault.core.finding import Verdict
from groundfault.engines.polars_files import PolarsCounter
from groundfault.errors import InputError, LedgerError

HARD = [Candidate("hard", "hard"), Candidate("long", "n > 50")]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return make_table(600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, table: pl.DataFrame) -> Path:
    return write_parts(tmp_path_factory.mktemp("lazy") / "table", table)


def scan(folder: Path, **roles: Any) -> LazyEvidence:
    settings = {"outcome": "error", "id": "id", "null_outcome": "missing"} | roles
    return LazyEvidence.scan(folder, **settings)


def test_a_second_look_needs_a_reason(folder: Path, tmp_path: Path) -> None:
    book = tmp_path / "ledger.db"
    settings: dict[str, Any] = {"ledger": book, "modes": False}
    first = groundfault.audit(scan(folder), Plan(judge="split-holm"), HARD, **settings)
    assert first.ledger is not None
    assert first.ledger.times == 1
    again = groundfault.audit(scan(folder), Plan(judge="split-holm"), HARD, **settings)
    assert again.ledger is not None
    assert again.ledger.replay
    with pytest.raises(LedgerError, match="--reopen"):
        groundfault.audit(scan(folder), Plan(judge="split-holm"), HARD[:1], **settings)


def test_a_second_look_is_known_by_counts_and_in_memory(folder: Path, tmp_path: Path) -> None:
    """Whichever comes first, and where the table is written anew; other outcomes are not."""
    here = Evidence.from_table(folder, outcome="error", id="id", null_outcome="missing")
    table = here.frame
    other = table.with_columns(pl.col("error").reverse())
    looks: dict[str, Evidence | LazyEvidence] = {
        "memory": here,
        "counts": scan(folder),
        "written anew": scan(write_parts(tmp_path / "anew", table.drop("n"))),
        "another outcome": scan(write_parts(tmp_path / "other", other)),
    }

    def count_looks(book: str, names: str) -> list[tuple[int, int, float]]:
        openings = [
            groundfault.audit(
                looks[name], Plan(judge="holm"), HARD[:1], ledger=tmp_path / book, modes=False
            ).ledger
            for name in names.split(", ")
        ]
        return [(one.times, one.overlapping, one.overlap) for one in openings if one]

    names = "counts, another outcome, memory, written anew"
    assert count_looks("a", names) == [(1, 0, 0), (1, 0, 0), (2, 1, 1), (3, 2, 1)]
    assert count_looks("b", "memory, counts") == [(1, 0, 0), (2, 1, 1)]


def test_halves_are_drawn_where_no_column_names_them(folder: Path) -> None:
    settings: dict[str, Any] = {"ledger": None, "modes": False}
    report = groundfault.audit(scan(folder), Plan(judge="split-holm"), HARD, **settings)
    assert report.n_discovery + report.n_holdout == report.n == 600
    assert 250 < report.n_holdout < 350
    other = groundfault.audit(scan(folder), Plan(judge="split-holm", seed=1), HARD, **settings)
    assert other.hashes.split != report.hashes.split


def test_finders_that_look_at_outcomes_get_a_holdout(folder: Path) -> None:
    class Miner:
        name = "miner"
        uses_outcomes = True

        def propose(self, discovery: Evidence) -> Iterator[Candidate]:
            yield HARD[0]

    audit = prepare(scan(folder), finders=[Miner()])
    assert audit.judge.name == "split-holm"
    assert audit.judge_reason.startswith("a candidate was found by looking")
    assert audit.has_holdout
    assert len(audit.evidence) < 400
    assert [candidate.mined for candidate in audit.library] == [audit.origin]


class Rounding(PolarsCounter):
    """An engine that means something else by one rule."""

    name: str = "rounding"

    def evaluate(self, expressions: Mapping[str, str], where: str) -> pl.DataFrame:
        values = super().evaluate(expressions, where)
        wrong = "value of long"
        if wrong in values.columns:
            row = pl.int_range(pl.len()) == 3
            values = values.with_columns(pl.when(row).then(~pl.col(wrong)).otherwise(wrong))
        return values


def test_where_the_engine_disagrees_nothing_is_said(folder: Path) -> None:
    lazy = scan(folder)
    odd = LazyEvidence(Rounding(lazy.counter.files, name="rounding"), lazy.roles)
    report = groundfault.audit(odd, Plan(judge="holm"), HARD, ledger=None)
    verdicts = {finding.name: finding for finding in report.findings}
    assert verdicts["hard"].verdict is Verdict.CONFIRMED
    assert verdicts["long"].verdict is Verdict.UNTESTABLE
    assert verdicts["long"].reason.startswith("engine: means something else")
    assert report.ineligible == {"engine": 1}
    assert any("long (in 1 of" in hint for hint in report.hints)


@pytest.mark.parametrize(
    ("change", "roles", "words"),
    [
        (pl.col("error") + pl.int_range(pl.len()) / 1e4, {}, "not in|over 101 values"),
        (pl.lit("discovery").alias("part"), {"split": "part"}, "one part has no rows"),
        (pl.lit("train").alias("part"), {"split": "part"}, "no rows|'train'"),
        (pl.col("error"), {"null_outcome": None}, "is empty in"),
        (pl.col("error"), {"status": "lang"}, "is not one of"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    table: pl.DataFrame, tmp_path: Path, change: pl.Expr, roles: dict[str, Any], words: str
) -> None:
    place = write_parts(tmp_path / "table", table.with_columns(change))
    plan = Plan(judge="split-holm" if "split" in roles else "holm")
    with pytest.raises(InputError, match=words):
        groundfault.audit(scan(place, **roles), plan, HARD, ledger=None)


def test_a_perfect_run_is_a_report(table: pl.DataFrame, tmp_path: Path) -> None:
    place = write_parts(tmp_path / "table", table.with_columns(pl.col("error") * 0))
    for judge in ("holm", "max-t", "split-holm"):
        modes = judge == "holm"
        report = groundfault.audit(scan(place), Plan(judge=judge), HARD, ledger=None, modes=modes)
        count = report.statuses["scored"]
        assert report.uniform.startswith(f"{count:,} of {count:,} passed (")
        assert not report.confirmed


def test_statuses_are_those_of_the_rows(table: pl.DataFrame, tmp_path: Path) -> None:
    status = pl.when(pl.col("error").is_null()).then(pl.lit("Refused")).otherwise(pl.lit("scored"))
    place = write_parts(tmp_path / "table", table.with_columns(status=status))
    columns: dict[str, Any] = {"outcome": "error", "id": "id", "status": "status"}
    here, there = (
        groundfault.audit(evidence, Plan(judge="holm"), HARD, ledger=None, modes=False)
        for evidence in (Evidence.from_table(place, **columns), LazyEvidence.scan(place, **columns))
    )
    assert there.statuses == here.statuses
    assert there.statuses["refused"] == table["error"].null_count()
    assert there.findings == here.findings
    assert there.findings[0].sensitivity.keys() == {"all_failed", "all_passed"}


def test_every_candidate_ends_with_a_verdict(folder: Path) -> None:
    report = groundfault.audit(scan(folder), Plan(judge="holm"), CANDIDATES, ledger=None)
    assert {finding.name for finding in report.findings} == {c.name for c in CANDIDATES}
