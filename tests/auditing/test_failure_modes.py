"""What the search for failure modes is given by an audit, and what it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_tables import make_planted_evidence, make_planted_table
from lazy_tables import make_table, write_parts

import groundfault
from groundfault import Candidate, Evidence, Plan, audit
from groundfault.auditing import counted_audit, lazy_evidence
from groundfault.auditing.failure_modes import find_gap_columns, name_modes, tabulate_attributes
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.preparation import prepare, start_audit
from groundfault.auditing.report import Report
from groundfault.core.column_meaning import describes_answer
from groundfault.render.mode_words import ModeOutline


def test_the_planted_failure_is_named_with_examples_and_nothing_else() -> None:
    report = groundfault.audit(make_planted_evidence())
    (mode,) = report.modes
    assert mode.rule == '"hard"'
    assert mode.rate > 0.5 > mode.rate_outside
    assert {example.side for example in mode.sample} == {"failing", "passing", "near"}
    assert report.mode_search is not None
    assert report.mode_search.columns == ("hard", "words", "lang")
    (coverage,) = report.mode_search.outcomes
    assert (coverage.covered, coverage.covered_errors) == (mode.n, mode.errors)


def test_modes_rest_on_all_units_whatever_the_judge() -> None:
    evidence = make_planted_evidence()
    reports = [groundfault.audit(evidence, Plan(judge=judge)) for judge in ("max-t", "janus")]
    assert reports[0].modes == reports[1].modes
    assert reports[1].n_holdout == 200
    assert reports[0].modes[0].n + reports[0].modes[0].n_outside == 400


def test_noise_has_no_mode() -> None:
    report = groundfault.audit(make_planted_evidence(lift=0.0))
    assert report.modes == ()
    assert report.mode_search is not None
    assert report.mode_search.rules > 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answer", True),
        ("Model_Answer", True),
        ("modelResponse", True),
        ("output.completion", True),
        ("response_chars", True),
        ("finish_reason", True),
        ("gold_answer", False),
        ("expected_output", False),
        ("answer_type", False),
        ("question", False),
    ],
)
def test_columns_about_the_answer_are_known_by_their_names(name: str, expected: bool) -> None:
    assert describes_answer(name) is expected


def test_what_rules_may_not_name_is_left_out_and_said() -> None:
    frame = make_planted_table().with_columns(
        answer=pl.when(pl.col("error") == 1).then(pl.lit("no")).otherwise(pl.lit("yes")),
        grade=pl.col("error") * 3 + 1,
        key=pl.format("k{}", pl.int_range(pl.len())),
        judge_version=pl.lit("a"),
    )
    audit = prepare(Evidence.from_table(frame, id="id", outcome="error", instrument=["key"]))
    table, unused = tabulate_attributes(audit)
    assert table.columns == ["hard", "words", "lang"]
    assert unused == {
        "they hold or describe the model's answer, by their names alone; --allow-leakage uses a "
        "column that was known before the answer": ("judge_version",),
        "they predict over 95% of the rarer outcome": ("answer", "grade"),
    }


def test_a_column_that_its_name_leaves_out_is_used_where_the_caller_vouches_for_it() -> None:
    frame = make_planted_table().rename({"words": "output_chars", "hard": "f1"})
    roles = {"id": "id", "outcome": "error"}
    audit = prepare(Evidence.from_table(frame, **roles))
    assert tabulate_attributes(audit)[0].columns == ["lang"]
    vouched = Evidence.from_table(frame, allow_leakage=["output_chars", "f1"], **roles)
    table, unused = tabulate_attributes(prepare(vouched))
    assert table.columns == ["f1", "output_chars", "lang"]
    assert unused == {}


def test_of_groups_columns_that_are_the_same_in_all_rows_are_used() -> None:
    frame = make_planted_table(600).with_columns(
        item=pl.format("i{}", pl.int_range(pl.len()) // 3), easy=pl.int_range(pl.len()) // 3 % 2
    )
    audit = prepare(Evidence.from_table(frame, id="id", outcome="error", group="item"))
    table, unused = tabulate_attributes(audit)
    assert table.columns == ["easy"]
    assert table.height == 200
    assert unused == {"they differ between rows of one group": ("hard", "words", "lang")}


def test_without_a_column_there_is_no_mode_and_the_search_says_why() -> None:
    frame = make_planted_table().select("id", "error", "hard")
    evidence = Evidence.from_table(frame, id="id", outcome="error", instrument=["hard"])
    report = groundfault.audit(evidence, candidates=[Candidate("hard", "hard")])
    assert report.modes == ()
    assert report.mode_search is not None
    assert report.mode_search.remarks[-1].startswith("no column describes the examples")
    assert report.mode_search.outcomes[0].errors == frame["error"].sum()
    assert report.confirmed


def test_several_models_have_modes_of_each_and_a_comparison_of_its_change() -> None:
    one, two = make_planted_table(), make_planted_table(lift=0.0)
    both = pl.concat([one.with_columns(model=pl.lit("one")), one.with_columns(model=pl.lit("two"))])
    quiet = both.with_columns(
        error=pl.when(pl.col("model") == "two")
        .then(pl.concat([two["error"], two["error"]]))
        .otherwise("error")
    )
    evidence = Evidence.from_table(quiet, id="id", outcome="error", model="model")
    report = groundfault.audit(evidence)
    assert "one" in {mode.outcome for mode in report.modes}
    assert "two" not in {mode.outcome for mode in report.modes}
    compared = groundfault.audit(evidence, compare=("two", "one"))
    assert {mode.outcome for mode in compared.modes} == {"worse"}
    assert "hard" in compared.modes[0].rule
    unseen = groundfault.audit(evidence, compare=("two", "one"), modes=False)
    assert unseen.modes == ()
    assert unseen.mode_search is None


def test_a_column_held_fixed_is_in_no_rule() -> None:
    table = make_planted_table(800)
    report = groundfault.audit(
        Evidence.from_table(table, id="id", outcome="error"), Plan(within=("hard",))
    )
    assert report.modes == ()
    assert not report.confirmed
    assert report.mode_search is not None
    assert report.mode_search.within == ("hard",)
    assert "hard" not in report.mode_search.columns


def test_candidates_that_the_caller_named_are_rules_too() -> None:
    rng = np.random.default_rng(5)
    odd = rng.integers(0, 1000, 600)
    frame = pl.DataFrame(
        {
            "id": [f"q{i:03d}" for i in range(600)],
            "number": odd,
            "error": (rng.random(600) < np.where(odd % 7 < 3, 0.7, 0.1)).astype(int),
        }
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    sevens = Candidate("sevens", "number % 7 < 3", "the number leaves 0 to 2 of sevens")
    assert groundfault.audit(evidence).modes == ()
    report = groundfault.audit(evidence, candidates=[sevens])
    (mode,) = report.modes
    assert (mode.rule, mode.meaning, mode.source) == (sevens.rule, sevens.meaning, "declared")
    assert report.manifest.own_rules == ("sevens",)


def test_mined_candidates_are_tested_on_the_holdout_alone() -> None:
    audit = prepare(make_planted_evidence(), finders=["sliceline"])
    assert audit.own_rules
    flipped = audit.losses()
    flipped[:, ~audit.discovery_mask] = 0.0
    modes = name_modes(audit, flipped).modes
    assert all(mode.source == "modes" for mode in modes), "nothing fails in the holdout"


def test_mined_candidates_go_with_units_that_were_not_scored() -> None:
    frame = make_planted_table().with_columns(
        error=pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise("error")
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error", null_outcome="refused")
    report = groundfault.audit(evidence, finders=["sliceline"])
    assert report.judge == "split-holm"
    mode = report.modes[0]
    assert mode.rule == '"hard"'
    # what a finder proposed counts on the units that it did not see; those of the search on all
    units = 320 if mode.source == "modes" else report.findings[0].holdout
    whole = units if isinstance(units, int) else units.on + units.off
    assert mode.n + mode.n_outside == whole


def make_evidence(lost_of: str, seed: int = 0) -> Evidence:
    """Values lost of three in ten failures, or passes, or rows; nothing else is related."""
    rng = np.random.default_rng(seed)
    failed = rng.random(500) < 0.3
    part = {"failures": failed, "passes": ~failed, "rows": np.ones(500, dtype=bool)}[lost_of]
    columns = {}
    for name in ("tool", "lang"):
        values = rng.choice(["a", "b", "c"], 500)
        gone = part & (rng.random(500) < 0.3)
        columns[name] = [None if g else str(v) for g, v in zip(gone, values, strict=True)]
    table = pl.DataFrame({"id": range(500), "error": failed.astype(int), **columns})
    return Evidence.from_table(table, id="id", outcome="error")


def list_rules(evidence: Evidence) -> tuple[list[str], str]:
    report = audit(evidence, Plan(judge="holm"), texts=False, ledger=False)
    assert report.mode_search is not None
    return [mode.rule for mode in report.modes], " ".join(report.mode_search.remarks)


def test_no_value_is_named_where_passes_lose_theirs() -> None:
    rules, remarks = list_rules(make_evidence("passes"))
    assert rules == []
    assert "because whether there is one goes with the outcome" in remarks
    assert "lang" in remarks
    assert "tool" in remarks


def test_that_a_value_is_missing_may_be_named() -> None:
    rules, _ = list_rules(make_evidence("failures"))
    assert rules
    assert all("IS NULL" in rule for rule in rules)


def test_few_harmless_gaps_are_taken_for_others() -> None:
    refused = 0
    for seed in range(20):
        evidence = make_evidence("rows", seed)
        prepared = start_audit(evidence, Plan(judge="holm"))
        table = evidence.frame.select("tool", "lang")
        refused += len(find_gap_columns(prepared, table, prepared.losses()))
    assert refused <= 10


def test_what_only_one_benchmark_says_is_asked_inside_it() -> None:
    """Steps are of the easy benchmark, and say where it is hard; lines are of the hard one."""
    rng = np.random.default_rng(3)
    hard = rng.random(1200) < 0.5
    steps, lines = rng.integers(1, 9, 1200), rng.integers(1, 40, 1200)
    rate = np.where(hard, 0.5, np.where(steps >= 7, 0.6, 0.05))
    table = pl.DataFrame(
        {
            "id": range(1200),
            "error": (rng.random(1200) < rate).astype(int),
            "benchmark": np.where(hard, "code", "sums"),
            "steps": np.where(hard, np.nan, steps),
            "lines": np.where(hard, lines, np.nan),
        }
    ).fill_nan(None)
    evidence = Evidence.from_table(table, id="id", outcome="error")
    rules, remarks = list_rules(evidence)
    assert "among the examples that have a value" in remarks
    assert any(rule.startswith('"steps" >= ') for rule in rules)
    assert not any("lines" in rule and "IS NULL" not in rule for rule in rules)
    report = audit(evidence, Plan(judge="holm"), texts=False, ledger=False)
    mode = next(one for one in report.modes if "steps" in one.columns)
    assert mode.n + mode.n_outside == table["steps"].count()


COLUMNS: dict[str, Any] = {"outcome": "error", "id": "id", "null_outcome": "missing"}


def make_modes_table(n: int = 3000) -> pl.DataFrame:
    """Two modes: ``hard``, and long German ones; a column whose gaps go with failing."""
    rng = np.random.default_rng(8)
    lang, size = rng.choice(["de", "en", "fr"], n), rng.integers(0, 8, n)
    hard = rng.random(n) < 0.2
    chance = np.where((lang == "de") & (size >= 4), 0.85, np.where(hard, 0.6, 0.1))
    error = rng.random(n) < chance
    lost = pl.Series(rng.normal(size=n))
    table = pl.DataFrame(
        {"id": np.arange(n), "error": error.astype(int), "hard": hard, "n": size, "lang": lang}
    )
    return table.with_columns(
        lost=pl.when(pl.col("error") == 1).then(None).otherwise(lost),
        error=pl.when(pl.int_range(n) % 50 == 0).then(None).otherwise("error"),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("modes") / "table", make_modes_table())


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are drawn, so that this table is a large one."""
    for module in (lazy_evidence, counted_audit):
        monkeypatch.setattr(module, "SAMPLE", 800)


def audit_lazily(place: Path, engine: str = "polars", **settings: Any) -> Report:
    lazy = LazyEvidence.scan(place, engine=engine, **COLUMNS)
    return groundfault.audit(lazy, Plan(judge="holm"), ledger=None, **settings)


def test_a_small_table_has_the_modes_of_memory(tmp_path: Path) -> None:
    place = write_parts(tmp_path / "table", make_table(600))
    rules = [Candidate("long ones", "n > 50", missing="off")]
    here = groundfault.audit(
        Evidence.from_table(place, **COLUMNS), Plan(judge="holm"), rules, ledger=None
    )
    there = audit_lazily(place, candidates=rules)
    assert here.modes
    assert (there.modes, there.mode_search) == (here.modes, here.mode_search)


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_numbers_of_modes_are_of_the_rows_that_were_not_searched(folder: Path, engine: str) -> None:
    report = audit_lazily(folder, engine, texts=False)
    search = report.mode_search
    assert search is not None
    assert search.searched is not None
    assert 700 < search.searched < 900
    assert [mode.rule for mode in report.modes] == ['"n" >= 4 AND "lang" = \'de\'', '"hard"']
    lazy = LazyEvidence.scan(folder, **COLUMNS)
    sample = lazy.take(lazy.find_sample(Plan(judge="holm"), 3000, holdout=False))
    rest = make_modes_table().filter(
        ~pl.col("id").is_in(sample.frame["id"].implode()), pl.col("error").is_not_null()
    )
    (coverage,) = search.outcomes
    assert (coverage.n, coverage.errors) == (rest.height, rest["error"].sum())
    earlier = pl.Series([False] * rest.height)
    for mode in report.modes:
        on = mode.holds(rest)
        inside, new = rest.filter(on)["error"], rest.filter(on & ~earlier)["error"]
        assert (mode.n, mode.errors) == (len(inside), inside.sum())
        assert (mode.n_new, mode.errors_new) == (len(new), new.sum())
        assert mode.n_outside == rest.height - len(inside)
        assert {example.side for example in mode.sample} == {"failing", "passing", "near"}
        earlier |= on
    assert coverage.covered == earlier.sum()
    assert "drawn by their ids" in search.remarks[0]
    assert f"{search.searched} rows" in ModeOutline(report).guarantee


@pytest.mark.usefixtures("sampled")
def test_what_only_the_sample_shows_is_no_mode(tmp_path: Path) -> None:
    """Failures go with a column in the sample, and nowhere else."""
    table = make_modes_table().drop("lost").with_columns(pl.col("error").fill_null(0))
    lazy = LazyEvidence.scan(write_parts(tmp_path / "table", table), outcome="error", id="id")
    sample = lazy.find_sample(Plan(judge="holm"), 3000, holdout=False)
    drawn = pl.col("id").is_in(lazy.take(sample).frame["id"].implode())
    error = pl.when(drawn).then("error").otherwise(pl.int_range(3000) % 4 == 0).cast(int)
    place = write_parts(tmp_path / "table", table.with_columns(error=error))
    report = audit_lazily(place)
    assert report.modes == ()
    search = report.mode_search
    assert search is not None
    assert "number 1 did not stand in the other rows" in search.remarks[1]


@pytest.mark.usefixtures("sampled")
def test_noise_has_no_mode_and_all_other_rows_are_counted(tmp_path: Path) -> None:
    table = make_modes_table().select("id", "hard", "lang", error=pl.int_range(pl.len()) % 5 == 0)
    report = audit_lazily(write_parts(tmp_path / "table", table))
    search = report.mode_search
    assert search is not None
    assert search.searched is not None
    (coverage,) = search.outcomes
    assert (report.modes, coverage.n, coverage.covered) == ((), 3000 - search.searched, 0)


@pytest.mark.usefixtures("sampled")
def test_a_report_with_modes_verifies(folder: Path, tmp_path: Path) -> None:
    report = audit_lazily(folder, texts=False)
    report.write(tmp_path / "report")
    assert groundfault.verify(tmp_path / "report", evidence=folder).reproduces


@pytest.mark.parametrize("compare", [None, ("a", "b")])
def test_a_mode_has_the_rule_its_rows_and_its_numbers(compare: tuple[str, str] | None) -> None:
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"id": range(600), "hard": rng.random(600) < 0.2})
    hard = table["hard"].to_numpy()
    losses = {"a": rng.random(600) < 0.2, "b": rng.random(600) < np.where(hard, 0.7, 0.2)}
    rows = pl.concat(
        table.with_columns(model=pl.lit(m), error=pl.Series(y)) for m, y in losses.items()
    )
    evidence = Evidence.from_table(rows, id="id", model="model", outcome="error")
    report = groundfault.audit(evidence, compare=compare, ledger=None)
    (mode,) = [one for one in report.modes if one.outcome in ("b", "worse")]
    assert mode.rule == '"hard"'
    assert mode.holds(table).to_list() == hard.tolist()
    errors = losses["b"]
    assert (mode.rate, mode.rate_outside) == (errors[hard].mean(), errors[~hard].mean())
    if compare is None:
        assert mode.corrected is not None
        assert mode.stability is not None
        assert mode.rate_outside < mode.corrected < mode.rate
        assert mode.interval[0] < mode.corrected < mode.interval[1]
        assert 0.5 < mode.stability <= 1
        assert (mode.change, mode.models) == (None, ("b",))
    else:
        assert mode.change is not None
        rise = errors[hard].mean() - losses["a"][hard].mean()
        assert mode.change.difference == pytest.approx(rise)
        assert mode.change.interval[0] < rise < mode.change.interval[1]
        assert (mode.corrected, mode.stability, mode.models) == (None, None, ())
