"""Audits by every scorer: one level for all, and where they differ is said."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Evidence, InputError, Plan
from groundfault.auditing.scorers import ScorerAudits, audit_scorers
from groundfault.cli.audit import name_folders
from groundfault.cli.main import cli

LOG = Path(__file__).parents[1] / "fixtures/logs/inspect_0.3.285_base.eval"
UNRECORDED = partial(groundfault.audit, ledger=False, modes=False)


@pytest.fixture(scope="module")
def audits() -> ScorerAudits:
    return audit_scorers(Evidence.from_logs(LOG), Plan(alpha="0.1"), run=UNRECORDED)


def test_each_scorer_is_audited_at_its_share_of_the_level(audits: ScorerAudits) -> None:
    assert list(audits.reports) == ["match", "includes"]
    assert audits.level == 0.05
    assert {report.plan.alpha for report in audits.reports.values()} == {"0.05"}
    assert {report.plan.q for report in audits.reports.values()} == {"0.05"}
    rates = [round(report.error_rate * 80) for report in audits.reports.values()]
    assert rates == [int(r.loss.sum()) for r in map(by_scorer, ("match", "includes"))]


def by_scorer(name: str) -> Evidence:
    return Evidence.from_logs(LOG, scorer=name)


def test_where_they_differ_is_counted(audits: ScorerAudits) -> None:
    (pair,) = audits.agreements
    differ = (by_scorer("match").loss - by_scorer("includes").loss).abs().sum()
    assert (pair.first, pair.second, pair.n, pair.apart) == ("match", "includes", 80, differ)
    # wordy answers fail by one of them alone, so German fails less often by the other
    assert audits.disputed["lang = de"]["match"] == "confirmed"
    assert audits.disputed["lang = de"]["includes"] != "confirmed"
    for verdicts in audits.disputed.values():
        assert "confirmed" in verdicts.values()
        assert len(set(verdicts.values())) > 1


def test_a_scorer_that_cannot_be_audited_is_named(tmp_path: Path) -> None:
    rows = [
        {"example_id": f"q{i}", "scorer": scorer, "value": value, "lang": "de" if i % 3 else "en"}
        for i in range(60)
        for scorer, value in (("a", i % 2), ("always", 1), ("judge", 1 + i % 9))
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    evidence = Evidence.from_logs(tmp_path / "a.parquet", scorer="a")
    result = audit_scorers(evidence, run=UNRECORDED)
    assert list(result.reports) == ["a", "always"]
    assert result.reports["always"].uniform.startswith("60 of 60 passed")
    assert "not in [0, 1]" in result.refusals["judge"]
    scaled = audit_scorers(evidence, scale=(1, 9), run=UNRECORDED)
    assert list(scaled.reports) == ["a", "always", "judge"]
    with pytest.raises(InputError, match="no several scorers"):
        audit_scorers(evidence.where("lang = 'de'"), run=UNRECORDED)


def test_the_command_writes_a_report_for_each(tmp_path: Path) -> None:
    arguments = ["audit", str(LOG), "--every-scorer", "--no-ledger", "--finders", "categories"]
    places = ["--out", str(tmp_path / "r"), "--json", str(tmp_path / "all.json")]
    run = CliRunner().invoke(cli, [*arguments, *places])
    assert run.exit_code == 0, run.output
    assert "2 scorers of the same answers" in run.output
    assert "17" in run.output.split("Where the scorers differ")[1]
    assert "below the floor" in run.output
    for name in ("match", "includes"):
        report = json.loads((tmp_path / "r" / name / "report.json").read_text())
        assert report["manifest"]["reading"]["scorer"] == [name]
    assert list(json.loads((tmp_path / "all.json").read_text())["scorers"]) == ["match", "includes"]
    refused = CliRunner().invoke(cli, [*arguments, "--scorer", "match"])
    assert "leave --scorer out" in str(refused.exception)


def test_folders_of_scorers_have_names_of_their_own() -> None:
    names = ["exact_match,strict", "a/b", "a b", "..", "../x"]
    assert name_folders(names) == ["exact_match,strict", "a-b", "a-b-2", "scorer", "x"]
