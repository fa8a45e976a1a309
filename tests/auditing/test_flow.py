"""Audits of every kind of evidence: unscored rows, groups, repeats, models, comparisons."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from audit_tables import make_planted_table

import groundfault
from groundfault import Candidate, Evidence, InputError, LedgerError, Plan, PlanError
from groundfault.auditing import messages


def names_of_confirmed(report: groundfault.Report) -> set[str]:
    return {f.name for f in report.confirmed}


@pytest.mark.parametrize(
    "judge", ["janus", "janus-a", "split-holm", "max-t", "holm", "by", "multisplit-e"]
)
def test_a_planted_explanation_is_confirmed_and_its_rivals_are_not(judge: str) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    report = groundfault.audit(evidence, Plan(judge=judge, permutations=499), modes=False)
    assert names_of_confirmed(report) == {"hard"}
    assert len(report.findings) == len(report.library) > 5
    finding = report.confirmed[0]
    assert "failures are more frequent when hard holds" in finding.sentence
    assert "cause" not in report.to_json()


def test_a_table_is_no_evidence_and_the_message_says_how_it_becomes_one() -> None:
    with pytest.raises(InputError, match=r"not a DataFrame: .* Evidence\.from_table"):
        groundfault.audit(make_planted_table())


def test_nothing_is_found_in_noise_and_the_report_says_what_it_could_have_seen() -> None:
    report = groundfault.audit(
        Evidence.from_table(make_planted_table(lift=0.0), id="id", outcome="error")
    )
    assert not report.confirmed
    assert report.conclusion.startswith("No reportable finding.")
    least = report.minimum_detectable_lift
    assert f"if it fails {math.ceil(100 * least)} points more often" in report.conclusion
    assert 0.1 < least < 0.5


def test_findings_are_not_said_to_have_been_out_of_reach() -> None:
    assert messages.write_conclusion(None, 0.3, 0).startswith(
        "No reportable finding. This audit is too small"
    )
    assert "could not have been found" in messages.write_conclusion(None, 0.3, 5)
    assert "too small" not in messages.write_conclusion(None, 0.3, 5)


def test_unscored_rows_are_no_failures_and_their_weight_is_shown() -> None:
    frame = make_planted_table().with_columns(
        pl.when(pl.int_range(pl.len()) % 10 == 0)
        .then(pl.lit("refused"))
        .otherwise(pl.lit("scored"))
        .alias("status")
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error", status="status")
    scored_rows = frame.filter(pl.col("status") == "scored")
    report = groundfault.audit(evidence, modes=False)
    assert report.statuses == {
        "scored": 360,
        "error": 0,
        "refused": 40,
        "unparsed": 0,
        "artefact": 0,
        "missing": 0,
    }
    assert report.error_rate == pytest.approx(scored_rows["error"].mean())
    finding = next(f for f in report.findings if f.name == "hard")
    assert finding.full.on + finding.full.off == 360
    assert finding.full.on_errors == scored_rows.filter("hard")["error"].sum()
    assert finding.sensitivity == {"all_failed": "confirmed", "all_passed": "confirmed"}
    assert any("40 refused" in hint for hint in report.hints)


def test_a_verdict_that_hangs_on_the_unscored_shows_it() -> None:
    """Nearly all of the slice was refused: failed or passed, the verdict would differ."""
    frame = make_planted_table(lift=0.0).with_columns(
        pl.when(pl.col("hard") & (pl.int_range(pl.len()) % 4 != 0))
        .then(pl.lit("unparsed"))
        .otherwise(pl.lit("scored"))
        .alias("status")
    )
    report = groundfault.audit(
        Evidence.from_table(frame, id="id", outcome="error", status="status"), modes=False
    )
    finding = next(f for f in report.findings if f.name == "hard")
    assert not finding.confirmed
    assert finding.sensitivity["all_failed"] == "confirmed"


def test_an_empty_outcome_has_to_be_named() -> None:
    frame = make_planted_table().with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("error").alias("error")
    )
    with pytest.raises(InputError, match="q0007"):
        Evidence.from_table(frame, id="id", outcome="error")
    evidence = Evidence.from_table(frame, id="id", outcome="error", null_outcome="missing")
    assert evidence.status_counts["missing"] == 1


def make_groups(items: int = 60, variants: int = 5, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    topic = rng.random(items) < 0.5
    difficulty = rng.beta(0.6, 1.2, items)
    item = np.repeat(np.arange(items), variants)
    return pl.DataFrame(
        {
            "id": [f"{i}-{v}" for i in range(items) for v in range(variants)],
            "item": [f"item {i}" for i in item],
            "error": (rng.random(len(item)) < difficulty[item]).astype(int),
            "topic": topic[item],
            "style": rng.integers(0, 2, len(item)),
        }
    )


def test_the_group_is_the_unit() -> None:
    frame = make_groups()
    evidence = Evidence.from_table(frame, id="id", outcome="error", group="item")
    plan = Plan(judge="janus-a", seed=2)
    report = groundfault.audit(evidence, plan, modes=False)
    means = frame.group_by("item").agg(pl.col("error").mean(), pl.col("topic").first())
    assert report.n == 60
    assert report.unit == "group"
    topic = next(f for f in report.findings if f.name == "topic")
    assert topic.full.on == means["topic"].sum()
    assert topic.full.on_errors == pytest.approx(means.filter("topic")["error"].sum())
    style = next(f for f in report.findings if f.name == "style")
    assert style.verdict == "untestable"
    assert style.reason.startswith("varies_within_group")
    rule = Candidate("topic", "topic")
    (few,) = groundfault.audit(evidence, Plan(min_on=50), [rule], modes=False).findings
    assert few.reason == "min_on: too few groups match the rule"


def test_graded_losses_get_an_exact_floor() -> None:
    """The pooled tail of quarter-point losses against a great many shuffles."""
    rng = np.random.default_rng(4)
    frame = make_planted_table(120).with_columns(pl.Series("error", rng.integers(0, 5, 120) / 4))
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    candidates = [
        Candidate("a", "words > 50"),
        Candidate("b", "words > 80"),
        Candidate("c", "lang = 'de'"),
    ]
    exact = groundfault.audit(evidence, Plan(judge="janus-a"), candidates, modes=False).floor.curve
    sampling = Plan(judge="janus-a", decoys=30_000)
    samples = groundfault.audit(evidence, sampling, candidates, modes=False).floor.curve
    assert [row.threshold for row in exact] == [row.threshold for row in samples]
    assert max(abs(a.decoy - b.decoy) for a, b in zip(exact, samples, strict=True)) < 0.03


def test_losses_on_no_grid_are_judged_too() -> None:
    rng = np.random.default_rng(15)
    frame = make_planted_table(300)
    loss = np.clip(rng.beta(1, 3, 300) + 0.4 * frame["hard"].to_numpy(), 0, 1)
    evidence = Evidence.from_table(
        frame.with_columns(pl.Series("error", loss)), id="id", outcome="error"
    )
    for judge in ("janus", "holm", "max-t", "multisplit-e"):
        plan = Plan(judge=judge, permutations=499)
        report = groundfault.audit(evidence, plan, modes=False)
        assert names_of_confirmed(report) == {"hard"}, judge


def several_models() -> pl.DataFrame:
    rng = np.random.default_rng(106)
    base = make_planted_table(300, seed=6).drop("error")
    frames = [
        base.with_columns(
            pl.lit(name).alias("llm"),
            pl.Series(
                "error", (rng.random(300) < 0.2 + lift * base["hard"].to_numpy()).astype(int)
            ),
            pl.Series("chars", rng.integers(1, 900, 300)),
        )
        for name, lift in (("old", 0.0), ("new", 0.5), ("other", 0.0))
    ]
    return pl.concat(frames)


def test_several_models_are_judged_jointly_on_the_same_examples() -> None:
    evidence = Evidence.from_table(several_models(), id="id", model="llm", outcome="error")
    assert evidence.attributes == (
        "hard",
        "words",
        "lang",
    )  # chars describes an answer, not the example
    for judge in ("max-t", "janus", "holm"):
        report = groundfault.audit(evidence, Plan(judge=judge, permutations=499), modes=False)
        assert {(f.name, f.outcome) for f in report.confirmed} == {("hard", "new")}, judge
        assert report.n == 300
        assert report.outcomes == ("new", "old", "other")


def test_one_model_of_several() -> None:
    evidence = Evidence.from_table(
        several_models(), id="id", model="llm", outcome="error"
    ).select_model("new")
    assert "chars" in evidence.attributes
    assert names_of_confirmed(groundfault.audit(evidence, modes=False)) == {"hard"}
    with pytest.raises(InputError, match="no rows of model 'newer'"):
        evidence.select_model("newer")


def test_comparing_two_models_is_paired() -> None:
    evidence = Evidence.from_table(several_models(), id="id", model="llm", outcome="error")
    report = groundfault.audit(evidence, compare=("old", "new"))
    unlike = [f for f in report.confirmed if f.elsewhere and f.elsewhere.differs]
    assert [f.name for f in unlike] == ["hard"]
    wide = several_models().pivot("llm", index=["id", "hard"], values="error").filter("hard")
    assert (unlike[0].full.on_errors, unlike[0].full.off_errors) == (
        wide["new"].sum(),
        wide["old"].sum(),
    )
    with pytest.raises(PlanError, match="two different models"):
        groundfault.audit(evidence, compare=("old", "old"))


def test_repeats_are_averaged_within_an_example() -> None:
    rng = np.random.default_rng(8)
    base = make_planted_table(200)
    frame = pl.concat(
        [
            base.with_columns(
                pl.lit(epoch).alias("epoch"),
                pl.Series(
                    "error", (rng.random(200) < 0.2 + 0.4 * base["hard"].to_numpy()).astype(int)
                ),
            )
            for epoch in range(4)
        ]
    )
    with pytest.raises(InputError, match="share their key"):
        Evidence.from_table(frame, id="id", outcome="error")
    evidence = Evidence.from_table(frame, id="id", outcome="error", repeat="epoch")
    report = groundfault.audit(evidence, Plan(judge="janus"), modes=False)
    assert report.n == 200
    assert report.rows == 800
    assert names_of_confirmed(report) == {"hard"}


def test_rare_errors_call_for_a_ratio() -> None:
    rng = np.random.default_rng(9)
    frame = make_planted_table(4000).with_columns(
        pl.Series("error", (rng.random(4000) < 0.02).astype(int))
    )
    frame = frame.with_columns(
        pl.when("hard")
        .then((pl.int_range(pl.len()) % 12 == 0).cast(int))
        .otherwise("error")
        .alias("error")
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    absolute, relative = (
        groundfault.audit(evidence, Plan(judge="janus", effect=e), modes=False)
        for e in ("risk_difference", "risk_ratio")
    )
    assert not absolute.confirmed
    assert any("risk_ratio" in hint for hint in absolute.hints)
    assert names_of_confirmed(relative) == {"hard"}
    low, high = relative.confirmed[0].holdout.interval
    assert 1.5 < low < high


def test_missing_values_are_rejected_dropped_or_off_as_declared() -> None:
    frame = make_planted_table().with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise("hard").alias("hard")
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    verdicts, units = {}, {}
    for missing in ("reject", "drop", "off"):
        finding = groundfault.audit(
            evidence, Plan(judge="holm"), [Candidate("hard", "hard", missing=missing)], modes=False
        ).findings[0]
        verdicts[missing], units[missing] = (
            finding.verdict,
            (finding.full.on, finding.full.on + finding.full.off),
        )
    assert verdicts == {"reject": "untestable", "drop": "confirmed", "off": "confirmed"}
    on = int(frame["hard"].sum())
    assert units["drop"] == (on, 320)
    assert units["off"] == (on, 400)


def test_robustness_is_the_same_in_parallel() -> None:
    evidence = Evidence.from_table(make_planted_table(200), id="id", outcome="error")
    reports = [
        groundfault.audit(evidence, robustness=12, jobs=jobs, modes=False).to_json()
        for jobs in (1, 2)
    ]
    assert reports[0] == reports[1]
    report = json.loads(reports[0])
    frequency = {f["name"]: f["frequency"] for f in report["findings"]}
    assert frequency["hard"] > 0.5
    assert report["robustness"] == {"splits": 12, "nonempty": pytest.approx(1, abs=0.5)}


def test_the_seed_and_the_names_alone_make_the_split() -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    again = Evidence.from_table(make_planted_table().reverse(), id="id", outcome="error")
    assert (Plan().discovery_units(evidence) == Plan().discovery_units(again)).all()
    assert (Plan().discovery_units(evidence) != Plan(seed=1).discovery_units(evidence)).any()
    assert Plan(holdout="0.25").discovery_units(evidence).sum() == 300


def test_the_ledger_lets_a_holdout_be_opened_once(tmp_path: Path) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    ledger = tmp_path / "ledger.db"
    plan = Plan(judge="janus")
    first = groundfault.audit(evidence, plan, ledger=ledger, modes=False)
    assert first.ledger.sentence == "holdout opened 1 time"
    assert groundfault.audit(evidence, plan, ledger=ledger, modes=False).ledger.times == 1
    more = evidence.frame.with_columns(pl.lit(1).alias("another column"))
    wider = Evidence.from_table(more, id="id", outcome="error")
    with pytest.raises(LedgerError, match="--reopen"):
        groundfault.audit(wider, candidates=[Candidate("long", "words > 50")], ledger=ledger)
    again = groundfault.audit(
        wider,
        candidates=[Candidate("long", "words > 50")],
        ledger=ledger,
        reopen="a label was wrong",
        modes=False,
    )
    assert "a label was wrong" in again.ledger.sentence
    assert groundfault.audit(evidence, modes=False).ledger is None


def test_a_row_less_makes_no_fresh_outcomes(tmp_path: Path) -> None:
    table, plan = make_planted_table(), Plan(judge="holm")
    candidates = [Candidate("long", "words > 50")]

    def look(rows: pl.DataFrame) -> groundfault.Report:
        evidence = Evidence.from_table(rows, id="id", outcome="error")
        ledger = tmp_path / "ledger.db"
        return groundfault.audit(evidence, plan, candidates, ledger=ledger, modes=False)

    assert look(table).ledger.overlapping == 0
    less = look(table[1:])
    assert (less.ledger.times, less.ledger.overlap) == (2, 1.0)
    assert "which has about 100% of these outcomes" in less.to_markdown()
    assert less.guarantee.startswith("family-wise error at most 20% over the 2 looks")
    # another model's answers to the same examples are other outcomes
    other = table.with_columns(pl.col("error").shuffle(seed=1))
    assert look(other).ledger.times == 1


def test_bad_input_opens_no_holdout(tmp_path: Path) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    with pytest.raises(groundfault.RuleError):
        groundfault.audit(
            evidence, candidates=[Candidate("a", "nowhere > 1")], ledger=tmp_path / "ledger.db"
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "kind", ["csv", "parquet", "ndjson", "ipc", "folder", "pandas", "arrow", "duckdb"]
)
def test_tables_of_every_kind_are_the_same_evidence(kind: str, tmp_path: Path) -> None:
    frame = make_planted_table(50)
    source: object
    if kind == "pandas":
        source = frame.to_pandas()
    elif kind == "arrow":
        source = frame.to_arrow()
    elif kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        source = duckdb.sql("SELECT * FROM frame")
    elif kind == "folder":
        frame.head(20).write_parquet(tmp_path / "a.parquet")
        frame.tail(30).write_parquet(tmp_path / "b.parquet")
        source = tmp_path
    else:
        source = tmp_path / f"t.{ {'ndjson': 'jsonl', 'ipc': 'arrow'}.get(kind, kind) }"
        getattr(frame, f"write_{kind}")(source)
    expected = Evidence.from_table(frame, id="id", outcome="error")
    assert Evidence.from_table(source, id="id", outcome="error").hash == expected.hash


@pytest.mark.parametrize("judge", ["janus", "janus-a", "janus-lite", "split-holm"])
def test_a_candidate_absent_from_discovery_is_untestable_whatever_the_scope(judge: str) -> None:
    """Its lift there is undefined; it must neither crash the floor nor slip through it."""
    frame = make_planted_table(200)
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    content = ~Plan().discovery_units(evidence)
    absent = frame.sort("id").with_columns(pl.Series("absent", content & (np.arange(200) % 3 == 0)))
    plan = Plan(judge=judge, scope="full", prevalence=("0.05", "0.95"))
    candidates = [Candidate("absent", "absent"), Candidate("hard", "hard")]
    report = groundfault.audit(
        Evidence.from_table(absent, id="id", outcome="error"), plan, candidates, modes=False
    )
    finding = next(f for f in report.findings if f.name == "absent")
    assert finding.verdict == "untestable"
    assert finding.reason.startswith("min_on")


def test_groups_of_unequal_size_are_permuted_among_their_like() -> None:
    rng = np.random.default_rng(3)
    rows = np.where(rng.random(120) < 0.5, 1, 12)
    item = np.repeat(np.arange(120), rows)
    hard = rng.random(120) < 0.4
    frame = pl.DataFrame(
        {
            "id": np.arange(len(item)),
            "item": item,
            "hard": hard[item],
            "error": (rng.random(len(item)) < 0.15 + 0.6 * hard[item]).astype(int),
        }
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error", group="item")
    for judge in ("janus", "janus-a", "holm", "max-t"):
        report = groundfault.audit(evidence, Plan(judge=judge, permutations=999), modes=False)
        assert names_of_confirmed(report) == {"hard"}
        assert any("groups differ in size" in hint for hint in report.hints)
    with pytest.raises(PlanError, match="groups of like size"):
        groundfault.audit(evidence, Plan(judge="multisplit-e"))


def test_a_p_value_at_the_level_is_at_most_the_level() -> None:
    """Three candidates, an exact p of 1/20: adjusted 0.15 in fact, and a little more in floats."""
    from groundfault.judges.rule import is_at_most

    adjusted = np.array([1 / 20 * 3, 0.15, 0.150001])
    assert adjusted[0] > 0.15
    assert is_at_most(adjusted, "0.15").tolist() == [True, True, False]


@pytest.mark.parametrize("order", [("a", "not a"), ("not a", "a")])
def test_each_of_a_pair_of_complements_needs_its_own_holdout_support(
    order: tuple[str, str],
) -> None:
    rng = np.random.default_rng(0)
    on = np.arange(400) % 200 < 30
    frame = pl.DataFrame(
        {
            "id": np.arange(400),
            "a": on,
            "split": np.where(np.arange(400) < 200, "discovery", "holdout"),
            "error": (rng.random(400) < 0.1 + 0.7 * on).astype(int),
        }
    )
    evidence = Evidence.from_table(frame, id="id", outcome="error", split="split")
    candidates = [Candidate(name, {"a": "a", "not a": "NOT a"}[name]) for name in order]
    for judge in ("janus", "janus-a"):
        report = groundfault.audit(
            evidence, Plan(judge=judge, hold_min_on=100, hold_min_off=8), candidates, modes=False
        )
        assert {f.name: str(f.verdict) for f in report.findings} == {
            "a": "not_replicated",
            "not a": "confirmed",
        }
        assert next(f for f in report.findings if f.name == "a").reason.startswith(
            "holdout_support"
        )


def test_nothing_eligible_is_a_report_too() -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    report = groundfault.audit(evidence, candidates=[Candidate("rare", "words > 99")], modes=False)
    assert report.counts()["untestable"] == 1
    assert report.floor.threshold is None
    assert report.floor.curve == ()
    assert report.to_html()


def test_a_level_that_lets_everything_through_still_reports() -> None:
    rng = np.random.default_rng(2)
    frame = make_planted_table(40).with_columns(pl.Series("error", rng.integers(0, 5, 40) / 4))
    evidence = Evidence.from_table(frame, id="id", outcome="error")
    plan = Plan(judge="bh", q="0.95")
    report = groundfault.audit(evidence, plan, [Candidate("hard", "hard")], modes=False)
    assert report.minimum_detectable_lift == 0.0


def test_names_are_text_whatever_the_file(tmp_path: Path) -> None:
    frame = make_planted_table(60).with_columns(pl.Series("id", [f"{i:03d}" for i in range(60)]))
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    read = [
        Evidence.from_table(tmp_path / name, id="id", outcome="error")
        for name in ("t.csv", "t.parquet")
    ]
    assert read[0].hash == read[1].hash
    assert (Plan().discovery_units(read[0]) == Plan().discovery_units(read[1])).all()
    numbers = frame.with_columns(pl.col("id").cast(pl.Int64))
    words = numbers.with_columns(pl.col("id").cast(pl.String))
    number, word = (Evidence.from_table(f, id="id", outcome="error") for f in (numbers, words))
    assert number.unit_names.to_list() == word.unit_names.to_list()


def test_a_doubled_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,error,error\na,1,0\nb,0,1\n")
    with pytest.raises(InputError, match="two columns named 'error'"):
        Evidence.from_table(tmp_path / "t.csv", id="id", outcome="error")


def test_a_look_at_all_outcomes_is_recorded_and_no_later_holdout_is_fresh(tmp_path: Path) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    ledger = tmp_path / "ledger.db"
    first = groundfault.audit(evidence, ledger=ledger, modes=False)
    assert first.ledger.sentence == "all outcomes were looked at 1 time"
    with pytest.raises(LedgerError, match="audited before"):
        groundfault.audit(evidence, finders=["sliceline"], ledger=ledger)
    settings = {"finders": ["sliceline"], "reopen": "I know"}
    again = groundfault.audit(evidence, **settings, ledger=ledger, modes=False)
    assert "it was not fresh" in again.ledger.sentence
    assert again.ledger.all_before


def test_modes_look_at_what_a_judge_holds_out_unless_they_are_left_out(tmp_path: Path) -> None:
    evidence = Evidence.from_table(make_planted_table(), id="id", outcome="error")
    plan = Plan(judge="janus")
    report = groundfault.audit(evidence, plan, ledger=tmp_path / "a.db")
    assert report.ledger.sentence.endswith("the search for failure modes looked at all outcomes")
    alone = groundfault.audit(evidence, plan, ledger=tmp_path / "b.db", modes=False)
    assert alone.ledger.sentence == "holdout opened 1 time"
    assert (alone.modes, alone.mode_search) == ((), None)
    assert alone.findings == report.findings


def test_an_effect_of_a_column_that_is_held_fixed_is_not_confirmed_for_its_proxy() -> None:
    rng = np.random.default_rng(2)
    topic = rng.integers(0, 3, 900)
    frame = pl.DataFrame(
        {
            "topic": [f"t{i}" for i in topic],
            "length": topic * 10 + rng.integers(0, 8, 900),
            "error": (rng.random(900) < 0.1 + 0.35 * topic).astype(int),
        }
    )
    evidence = Evidence.from_table(frame, outcome="error")
    assert groundfault.audit(evidence, modes=False).confirmed
    for judge in ("auto", "holm", "janus", "split-holm"):
        # modes are the same for each judge
        plan, modes = Plan(judge=judge, within=("topic",)), judge in ("auto", "split-holm")
        report = groundfault.audit(evidence, plan, modes=modes)
        assert report.weaknesses == report.strengths == ()
        assert report.modes == ()
        assert all("topic" not in f.rule for f in report.findings)


def test_what_does_better_is_a_strength_and_no_weakness() -> None:
    frame = make_planted_table(800).drop("hard")
    frame = frame.with_columns(error=pl.col("error") * (pl.col("lang") != "de"))
    report = groundfault.audit(Evidence.from_table(frame, id="id", outcome="error"), modes=False)
    assert "lang = de" in {f.name for f in report.strengths}
    assert {f.name for f in report.weaknesses} == {"lang = en", "lang = fr"}
    assert len(report.strengths) + len(report.weaknesses) == len(report.confirmed)


def test_an_audit_that_ends_without_a_report_spends_no_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = Evidence.from_table(make_planted_table(300), id="id", outcome="error")
    broken = "groundfault.auditing.flow.assemble"
    for fault in (broken, "groundfault.auditing.prepared_audit.rule"):
        with monkeypatch.context() as patch:
            patch.setattr(fault, lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                groundfault.audit(evidence, ledger=tmp_path / "ledger.db", modes=False)
    report = groundfault.audit(evidence, Plan(seed=5), ledger=tmp_path / "ledger.db", modes=False)
    assert report.ledger is not None
    assert report.ledger.times == 1
    assert len(report.ledger.looks) == 1
