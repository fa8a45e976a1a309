"""Several scorers: none is lost, the tool's own leads, another can be chosen at any time."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault import Evidence, InputError
from groundfault.auditing.scorers import audit_scorers, choose_scorer
from groundfault.cli.main import cli
from groundfault.readers import scorers

LOG = Path(__file__).parents[1] / "fixtures/logs/inspect_0.3.285_base.eval"


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return Evidence.from_logs(LOG)


def table(path: Path, rows: list[dict[str, object]]) -> Path:
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_the_first_scorer_of_inspect_leads_and_the_first_line_says_what_else_there_is(
    evidence: Evidence,
) -> None:
    account = evidence.account
    assert account is not None
    assert account.outcome == ("match",)
    assert account.to_lines()[0] == (
        "160 rows from 1 log; 80 examples; scored by 'match' (beside it: 'includes')"
    )
    assert evidence.hash == Evidence.from_logs(LOG, scorer="match").hash
    assert evidence.frame["scorers_disagree"].sum() == 17


@pytest.mark.parametrize(
    ("log", "headline"),
    [
        ("lm_eval/own_tinygpt2/samples_add_mc_2026-11-21T22-31-09.272605.jsonl", "acc"),
        (
            "helm/mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2",
            "exact_match",
        ),
        ("inspect/own_mockllm_2scorers_2epochs_zstd.eval", "match"),
        ("promptfoo/out.json", "pass"),
    ],
)
def test_each_tool_has_a_headline(shared: Path, log: str, headline: str) -> None:
    account = Evidence.from_logs(shared / "real/native_logs" / log).account
    assert account is not None
    assert account.outcome in ((headline,), ())
    assert headline in account.scorers


def test_another_scorer_is_chosen_from_evidence_as_from_the_log(evidence: Evidence) -> None:
    chosen = choose_scorer(evidence, "includes")
    assert chosen.hash == Evidence.from_logs(LOG, scorer="includes").hash
    assert chosen.reading is not None
    assert chosen.reading["scorer"] == ["includes"]
    with pytest.raises(InputError, match="no scorer 'f1'; there are includes, match"):
        choose_scorer(evidence, "f1")
    with pytest.raises(InputError, match="choose before rows and models are selected"):
        choose_scorer(evidence.where("lang = 'de'"), "includes")


def test_import_keeps_every_scorer(tmp_path: Path, evidence: Evidence) -> None:
    folder = tmp_path / "evidence"
    evidence.save(folder)
    assert Evidence.from_logs(folder).hash == evidence.hash
    again = Evidence.from_logs(folder, scorer="includes")
    assert again.hash == Evidence.from_logs(LOG, scorer="includes").hash
    # saved again from there, it has them all still
    Evidence.from_logs(folder).save(folder)
    assert Evidence.from_logs(folder, scorer="includes").hash == again.hash
    scores = folder / "scores.parquet"
    pl.read_parquet(scores).with_columns(value=0.0).write_parquet(scores)
    with pytest.raises(InputError, match=r"scores\.parquet is not the table that was imported"):
        Evidence.from_logs(folder, scorer="includes")


def test_a_folder_with_one_scorer_says_so(tmp_path: Path, evidence: Evidence) -> None:
    evidence.where("lang = 'de'").save(tmp_path / "part")
    assert not (tmp_path / "part/scores.parquet").exists()
    with pytest.raises(InputError, match="holds the scores of one scorer"):
        Evidence.from_logs(tmp_path / "part", scorer="includes")
    evidence.save(tmp_path / "part")
    evidence.where("lang = 'de'").save(tmp_path / "part")
    assert not (tmp_path / "part/scores.parquet").exists()


def test_where_two_scorers_differ_is_an_outcome(evidence: Evidence) -> None:
    other = choose_scorer(evidence, disagreement=("match", "includes"))
    match, includes = (choose_scorer(evidence, name).loss for name in ("match", "includes"))
    assert other.loss.to_list() == (match - includes).abs().to_list()
    assert other.account is not None
    assert other.account.outcome == ("agreement of 'match' and 'includes'",)
    assert set(other.roles.post_outcome) == {"score_match", "score_includes"}
    assert other.hash == Evidence.from_logs(LOG, disagreement=("match", "includes")).hash
    for pair in (("match", "match"), ("match", "f1")):
        with pytest.raises(InputError, match=r"two different scorers|no scorer 'f1'"):
            choose_scorer(evidence, disagreement=pair)
    with pytest.raises(InputError, match="not both"):
        Evidence.from_logs(LOG, scorer="match", disagreement=("match", "includes"))


def test_disagreement_keeps_every_row_and_every_reason(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"example_id": f"q{i}", "scorer": scorer, "value": value, "status": status}
        for scorer, values in (
            ("match", [1.0, 0.0, None, 1.0, 0.0]),
            ("judge", [10.0, 10.0, 4.0, None]),
        )
        for i, value in enumerate(values)
        for status in ["scored" if value is not None else "unparsed"]
    ]
    rows.append({"example_id": "q9", "scorer": "", "value": None, "status": "error"})
    log = table(tmp_path / "a.parquet", rows)
    with pytest.raises(InputError, match="say which is worst and best"):
        Evidence.from_logs(log, disagreement=("match", "judge"))
    evidence = Evidence.from_logs(log, disagreement=("match", "judge"), scale=(1, 10))
    assert evidence.loss.to_list() == [0.0, 1.0, None, None, None]
    assert evidence.status.to_list() == ["scored", "scored", "unparsed", "unparsed", "error"]
    account = evidence.account
    assert account is not None
    # of q4 the judge says nothing
    assert (len(evidence), account.beside, account.left_out) == (5, 4, 1)
    assert len(rows) == len(evidence) + account.beside + account.left_out


def test_rows_of_a_log_that_was_put_together_from_copies_are_counted_once(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"example_id": f"q{i}", "scorer": scorer, "value": value, "status": "scored"}
        for scorer in ("match", "judge")
        for i, value in enumerate([1.0, 0.0, 1.0 if scorer == "match" else 0.0])
    ]
    log = table(tmp_path / "a.parquet", rows * 3)
    evidence = Evidence.from_logs(log, disagreement=("match", "judge"))
    assert evidence.loss.to_list() == [0.0, 0.0, 1.0]
    account = evidence.account
    assert account is not None
    assert (account.beside, account.duplicated) == (9, 6)


def test_a_report_says_which_scorer_and_what_else_there_is(evidence: Evidence) -> None:
    report = groundfault.audit(evidence, ledger=False, modes=False)
    line = "Scored by match; also in the logs: includes (--scorer NAME, or --every-scorer)."
    assert report.to_markdown().split("\n\n")[3].endswith(line)
    apart = choose_scorer(evidence, disagreement=("match", "includes"))
    report = groundfault.audit(apart, ledger=False, modes=False)
    assert "Audited here: where the scorers match and includes differ." in report.to_markdown()
    assert report.manifest.reading is not None
    assert report.manifest.reading.disagreement == ("match", "includes")


def test_a_scorer_and_a_disagreement_are_not_asked_for_together() -> None:
    pair = ["--scorer", "match", "--disagreement", "match", "includes"]
    run = CliRunner().invoke(cli, ["check", str(LOG), *pair])
    assert "not both" in str(run.exception)


@pytest.mark.parametrize(("step", "is_measured"), [(1.0, True), (0.5, True), (0.01, False)])
def test_scorers_of_two_scales_do_not_disagree(
    step: float, is_measured: bool, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    rows: list[dict[str, object]] = []
    for i in range(300):
        similarity = float(rng.integers(0, round(1 / step) + 1)) * step
        rows += [
            {"example_id": f"q{i}", "scorer": "match", "value": float(rng.random() < 0.6)},
            {"example_id": f"q{i}", "scorer": "similar", "value": similarity},
        ]
        rows[-1]["kind"] = rows[-2]["kind"] = "ab"[i % 2]
    evidence = Evidence.from_logs(table(tmp_path / "a.parquet", rows), scorer="match")
    assert (scorers.DISAGREE in evidence.roles.instrument) == is_measured
    assert (scorers.DISAGREE in evidence.roles.post_outcome) == (not is_measured)
    run = partial(groundfault.audit, ledger=False, modes=False)
    pairs = audit_scorers(evidence, run=run).agreements
    assert len(pairs) == is_measured
