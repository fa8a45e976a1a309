"""Proposals: slices of the discovery units, their numbers, and that mining is declared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from planted_tables import make_embedded_evidence as embedded, results, words_and_languages

import groundfault
from groundfault import Candidate, Evidence, Library, Plan, PlanError, Verdict, finders
from groundfault_lab import slicing
from groundfault_lab.commands.slices import share_words, slices
from groundfault_lab.slicing.interactions import Interactions
from groundfault_lab.slicing.proposals import configure_finder, propose
from groundfault_lab.slicing.sliceline import SliceLine


def mine_library(data: Evidence, plan: Plan | None = None) -> Library:
    return propose(data, SliceLine(bins=2), plan).library


# what is proposed


def test_a_row_says_what_the_slice_comes_to_on_the_discovery_units_and_nothing_of_the_others():
    data = results()
    result = propose(data, SliceLine(bins=2, permutations=19))
    discovery = data.take(Plan().discovery_units(data)[data.unit_index])
    assert result.summary.n_discovery == len(discovery) == 600
    assert result.summary.selected
    assert result.summary.discovery_error_rate == pytest.approx(discovery.loss.mean())
    for row, candidate in zip(result.rows, result.library, strict=True):
        inside = discovery.frame.select(candidate.parsed.to_polars()).to_series().fill_null(False)
        assert (row.on, row.off) == (inside.sum(), (~inside).sum())
        assert row.on_rate == pytest.approx(discovery.loss.filter(inside).mean())
        assert row.lift == pytest.approx(
            discovery.loss.filter(inside).mean() - discovery.loss.filter(~inside).mean()
        )
    first = result.rows[0]
    assert (first.p, first.group) == (0.05, 0)
    assert first.score == pytest.approx(SliceLine(bins=2).find(discovery)[0].score)
    poisoned = data.frame.with_columns(
        error=pl.when(pl.col("item").is_in(discovery.frame["item"].to_list()))
        .then("error")
        .otherwise(1)
    )
    again = propose(
        Evidence.from_table(poisoned, id="item", outcome="error"),
        SliceLine(bins=2, permutations=19),
    )
    assert again.rows == result.rows


def test_shared_words_change_no_proposal():
    data = results()
    shared = share_words(data)
    assert shared.frame.schema != data.frame.schema
    finder = SliceLine(bins=2, permutations=19)
    assert propose(shared, finder).to_dict() == propose(data, finder).to_dict()


def test_the_first_so_many_are_kept_and_finders_go_by_name():
    result = propose(results(), "sliceline", max_slices=2)
    assert [row.name for row in result.rows] == [row.name for row in propose(results()).rows][:2]
    assert len(result.library) == 2
    assert not propose(results(), "thresholds").summary.selected


def test_scores_are_of_the_search_that_proposed():
    leaky = words_and_languages().with_columns(
        grade=pl.when(pl.col("error") == 1).then(pl.lit("bad")).otherwise(pl.lit("good"))
    )
    result = propose(
        Evidence.from_table(leaky, id="item", outcome="error"), SliceLine(permutations=9)
    )
    assert result.rows
    assert all(row.score is not None and row.p is not None for row in result.rows)
    assert all("grade" not in candidate.columns for candidate in result.library)
    assert result.summary.left_out == ["grade"]


def test_several_models_are_averaged():
    both = pl.concat([words_and_languages().with_columns(model=pl.lit(m)) for m in ("a", "b")])
    two = Evidence.from_table(both, id="item", outcome="error", model="model")
    assert propose(two).rows == propose(results()).rows


def test_nothing_to_propose_is_no_error():
    rng = np.random.default_rng(0)
    plain = Evidence.from_table(
        pl.DataFrame({"error": rng.integers(0, 2, 60), "flag": [0, 1] * 30}), outcome="error"
    )
    result = propose(plain, SliceLine(columns=("flag",), min_support=25, min_share=0))
    assert result.rows == ()
    assert result.to_dict()["slices"] == []


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("sliceline", {"width": 3}, "has no setting 'width'; it has k, alpha, max_level"),
        ("tree", {"max_level": 2}, "has no setting 'max_level'; it has depth"),
        ("tree", {"depth": "two"}, "depth must be a whole number"),
        ("interactions", {}, "cannot be made with these settings"),
        ("slicer", {}, "no finder is named 'slicer'"),
    ],
)
def test_settings_that_cannot_be(name: str, settings: dict[str, object], message: str):
    with pytest.raises(PlanError, match=message):
        configure_finder(name, settings)


# mining is declared


@pytest.mark.parametrize(
    "finder", [SliceLine(bins=2), finders.Tree(), slicing.Spotlight(size=0.2)], ids=lambda f: f.name
)
@pytest.mark.parametrize("judge", ["janus", "split-holm", "janus-lite"])
def test_no_discovery_p_value_is_quoted_for_what_was_mined(finder: finders.Finder, judge: str):
    data = embedded(600) if finder.name == "spotlight" else results()
    candidates = [
        Candidate(
            "first",
            "CAST(SUBSTR(item, 2, 9) AS INTEGER) < 600"
            if finder.name != "spotlight"
            else "id < 300",
        )
    ]
    report = groundfault.audit(
        data, Plan(judge=judge, prevalence=(0, 1)), candidates, finders=[finder], modes=False
    )
    [plain] = [f for f in report.findings if f.source == "declared"]
    others = [f for f in report.findings if f.source == finder.name]
    assert plain.discovery.p is not None
    assert others
    assert all(
        f.discovery.p is None and f.discovery.p_adjusted is None and f.decoys is None
        for f in others
    )
    reached = [f for f in others if f.verdict in (Verdict.CONFIRMED, Verdict.NOT_REPLICATED)]
    assert all(f.holdout.p is not None for f in reached)


def test_a_mined_library_is_judged_on_the_split_it_was_mined_with_or_on_other_evidence(
    tmp_path: Path,
):
    data = results()
    mine_library(data).freeze(tmp_path / "library.json")
    library = Library.load(tmp_path / "library.json")
    assert library == mine_library(data)
    report = groundfault.audit(data, Plan(), library, finders=[], modes=False)
    assert report.confirmed
    assert all(f.discovery.p is None for f in report.findings)
    for plan in (Plan(seed=1), Plan(holdout=0.3), Plan(judge="max-t")):
        with pytest.raises(PlanError, match="was mined from units of this evidence"):
            groundfault.audit(data, plan, library, finders=[])
    fresh = groundfault.audit(results(seed=1), Plan(seed=1), library, finders=[], modes=False)
    assert fresh.confirmed
    assert all(
        f.discovery.p is not None for f in fresh.findings if f.verdict is not Verdict.UNTESTABLE
    )


def test_a_check_freezes_what_was_mined_as_mined():
    library = groundfault.check(
        results(), finders=["thresholds", "sliceline", "interactions:2"]
    ).library
    assert {bool(c.mined) for c in library if c.source == "thresholds"} == {False}
    assert {bool(c.mined) for c in library if c.source == "sliceline"} == {True}
    parts = {c.name: c for c in library}
    for candidate in library:
        if candidate.source == "interactions":
            bases = [
                c
                for name, c in parts.items()
                if f"({c.rule})" in candidate.rule and c is not candidate
            ]
            assert bool(candidate.mined) == any(base.mined for base in bases)


def test_conjunctions_of_fitted_slices_carry_their_function():
    data = embedded(600)
    slices = (
        list(slicing.Domino().propose(data))[:2]
        + list(slicing.Spotlight(size=0.2).propose(data))[:1]
    )
    candidates = Candidate("late", "id >= 300")
    both = Interactions((candidates, *slices), order=(2,), min_size=1).propose(data)
    assert {c.fitted_column for c in both} == {f.fitted_column for f in slices}
    for candidate in both:
        assert candidate.fitted_column is not None
        assert candidate.fitted_column.name in candidate.rule
    groundfault.audit(data, Plan(judge="split-holm"), both, finders=[], modes=False)


# groups are dealt together


def test_replays_deal_whole_groups():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), 5)
    X = np.repeat(rng.integers(0, 3, (40, 4)), 5, axis=0)
    errors = np.repeat((rng.random(40) < 0.3).astype(float), 5)  # all rows of a group fail, or none
    once = SliceLine(k=1, min_support=20, permutations=99)
    alone, together = once.fit(X, errors).slices_[0], once.fit(X, errors, groups).slices_[0]
    assert alone.predicates == together.predicates
    assert alone.p < 0.05 < together.p
    names = np.array([f"g{i:02d}" for i in groups])
    assert once.fit(X, errors, names).slices_[0].p == together.p
    apart = once.fit(X, errors, np.arange(200)).null_
    np.testing.assert_array_equal(apart, once.fit(X, errors).null_)


def test_grouped_evidence_is_replayed_in_groups():
    rng = np.random.default_rng(5)
    rows = {
        "item": [f"i{i:03d}" for i in range(400)],
        "group": [f"g{i // 5:02d}" for i in range(400)],
        "error": np.repeat((rng.random(80) < 0.3).astype(int), 5),
        **{f"c{j}": np.repeat(rng.integers(0, 3, 80), 5).astype(str) for j in range(4)},
    }
    frame = pl.DataFrame(rows)
    finder = SliceLine(permutations=99)
    wrong = propose(
        Evidence.from_table(frame, id="item", outcome="error", ignore=["group"]), finder
    )
    right = propose(Evidence.from_table(frame, id="item", outcome="error", group="group"), finder)
    assert wrong.rows[0].p < 0.05 < right.rows[0].p
    assert right.summary.n == 80
    varied = frame.with_columns(late=pl.Series([0, 1] * 200), early=pl.col("c0") == "1")
    result = propose(Evidence.from_table(varied, id="item", outcome="error", group="group"), finder)
    assert {column for c in result.library for column in c.columns} - {"early"} <= {
        "c0",
        "c1",
        "c2",
        "c3",
    }


def test_groups_of_the_wrong_shape_are_refused():
    with pytest.raises(groundfault.InputError, match="groups must have shape"):
        SliceLine().fit(np.array([[0], [1]] * 20), np.array([0, 1] * 20), np.arange(7))


# the command


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(slices, list(words))
    return (
        result.exit_code,
        result.output
        if result.exception is None or result.exit_code == 0
        else str(result.exception),
    )


@pytest.fixture
def source(tmp_path: Path) -> str:
    words_and_languages().write_parquet(tmp_path / "r.parquet")
    return str(tmp_path / "r.parquet")


def test_the_command_shows_writes_and_freezes(source: str, tmp_path: Path):
    words = (
        source,
        "--id",
        "item",
        "--outcome",
        "error",
        "--set",
        "bins=2",
        "-k",
        "3",
        "--permutations",
        "19",
    )
    code, text = run(
        *words, "--library", str(tmp_path / "l.json"), "--json", str(tmp_path / "s.json")
    )
    assert code == 0
    assert "points*" in text
    assert "selected" in text
    values = json.loads((tmp_path / "s.json").read_text())
    assert [row["name"] for row in values["slices"]] == [
        c.name for c in Library.load(tmp_path / "l.json")
    ]
    assert values["slices"][0]["p"] == 0.05
    assert values["settings"]["bins"] == 2
    assert json.loads(run(*words, "--json", "-")[1]) == values


def test_on_noise_the_command_says_beside_each_number_that_it_is_chance(tmp_path: Path):
    rng = np.random.default_rng(0)
    shuffled = words_and_languages(300).with_columns(
        error=pl.Series((rng.random(300) < 0.3).astype(int))
    )
    shuffled.write_parquet(tmp_path / "r.parquet")
    words = (str(tmp_path / "r.parquet"), "--id", "item", "--outcome", "error")
    for more in (("--permutations", "39"), ("--finder", "tree", "--permutations", "19")):
        code, text = run(*words, *more)
        assert code == 0
        above, _, below = text.partition("Slice ")
        assert "This is what chance gives: " in above
        rows = [line for line in below.splitlines() if "%" in line]
        assert rows
        assert all(line.rstrip().endswith("chance") for line in rows)


def test_the_command_says_what_it_left_out(tmp_path: Path):
    words_and_languages().with_columns(grade=pl.col("error") * 10).write_parquet(
        tmp_path / "r.parquet"
    )
    code, text = run(
        str(tmp_path / "r.parquet"), "--id", "item", "--outcome", "error", "--permutations", "0"
    )
    assert code == 0
    assert "Left out, because they predict the outcome almost perfectly: grade" in text


def test_the_command_sets_what_any_finder_has(source: str):
    words = (source, "--id", "item", "--outcome", "error", "--json", "-", "--finder")
    assert json.loads(
        run(*words, "thresholds", "--set", "quantiles=0.5,0.75", "--set", "columns=words")[1]
    )["slices"]
    assert json.loads(run(*words, "tree", "--set", "depth=1")[1])["settings"]["depth"] == 1
    messages = {
        ("sliceline", "--set", "alpha"): "not of the form NAME=VALUE",
        ("tree", "--max-level", "2"): "has no setting 'max_level'",
        ("edisa",): "no attribute is named",
        ("sliceline", "--set", "missing=off"): "missing must be value or unmatched",
    }
    for more, message in messages.items():
        code, text = run(*words, *more)
        assert code == 1
        assert message in text


def test_the_command_passes_on_what_a_finder_says(tmp_path: Path):
    embedded(400).frame.head(60).write_parquet(tmp_path / "few.parquet")
    words = [str(tmp_path / "few.parquet"), "--id", "id", "--outcome", "error", "--finder", "edisa"]
    result = CliRunner().invoke(slices, words)
    assert result.exit_code == 0
    assert (
        "note: edisa proposes nothing: 30 discovery examples have all it reads, and it needs 40"
        in result.stderr
    )
    assert "Nothing to propose" in result.stdout
