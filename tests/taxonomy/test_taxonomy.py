"""Taxonomies: failure modes that were planted are found and published, and where there are none
nothing is.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from joblib import parallel_config
from pages import list_sentences, list_tables

from groundfault.auditing.flow import audit
from groundfault.auditing.verification import verify
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.errors import (
    GroundfaultError,
    InputError,
    LedgerError,
    MissingExtraError,
    PlanError,
)
from groundfault.render import words
from groundfault.render.html import html
from groundfault.render.markdown import markdown
from groundfault_lab.commands.taxonomy import taxonomy as command
from groundfault_lab.pages.taxonomy_page import make_page
from groundfault_lab.stats import irt
from groundfault_lab.stats.irt import OneAbility
from groundfault_lab.stats.partitions import adjusted_rand
from groundfault_lab.taxonomy import Matrix, Settings, Taxonomy, add_answers, fit, judge_claims
from groundfault_lab.taxonomy.finder import Clusters as Finder
from groundfault_lab.taxonomy.fitting import nulls
from groundfault_lab.taxonomy.fitting.attributes import (
    find_contrasting_terms,
    find_enriched_attributes,
)
from groundfault_lab.taxonomy.fitting.nulls import draw_world
from groundfault_lab.taxonomy.fitting.partition import _split_large
from groundfault_lab.taxonomy.fitting.stability import Replicates
from groundfault_lab.taxonomy.use.regimes import depth_profile, grader_gaps
from groundfault_lab.taxonomy.worlds import AbilityWorld
from groundfault_studies.taxonomy_paper import profile_silhouettes

QUICK = Settings(worlds=19, refits=3, bootstraps=2, permutations=99, rules=False)
SUBJECTS = (("invoice", "table", "total"), ("verb", "tense", "clause"), ("loop", "python", "index"))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 11])


def evidence_of(matrix: Matrix, mode: np.ndarray | None = None) -> Evidence:
    """Evidence of single tries, with a text that gives away the mode."""
    rows = []
    for i, example in enumerate(matrix.examples):
        k = 0 if mode is None else int(mode[i])
        content = " ".join(
            np.random.default_rng(i).choice([*SUBJECTS[k], "the", "question", "what"], 8)
        )
        more = {"text": content, "subject": SUBJECTS[k][0], "bench": "ab"[i % 2]}
        rows += [
            {"id": example, "model": model, "ok": int(matrix.passed[i, j]), **more}
            for j, model in enumerate(matrix.models)
            if matrix.trials[i, j]
        ]
    return Evidence.from_table(
        pl.DataFrame(rows), outcome="ok", positive_is_good=True, id="id", model="model"
    )


@pytest.fixture(scope="module")
def planted() -> tuple[Evidence, np.ndarray]:
    matrix, mode = AbilityWorld(examples=400, models=27, modes=3, strength=1.5).draw(rng(1))
    return evidence_of(matrix, mode), mode


@pytest.fixture(scope="module")
def taxonomy(planted: tuple[Evidence, np.ndarray]) -> Taxonomy:
    evidence = planted[0].select_model(*planted[0].models[:-3])
    return fit(evidence, QUICK, text="text", benchmark="bench")


def test_planted_modes_are_found_and_published(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray]
) -> None:
    assert taxonomy.dimensions == 2
    assert len(taxonomy.published) == 3
    truth = planted[1][[int(name[1:]) for name in taxonomy.matrix.examples]]
    assert adjusted_rand(truth, taxonomy.partition.labels) > 0.75
    assert taxonomy.partition.coverage > 0.75
    assert {t for c in taxonomy.clusters for t in c.terms[:3]} == {
        word for words in SUBJECTS for word in words
    }
    assert {c.attributes[0].what for c in taxonomy.clusters} == {
        f"subject = {words[0]}" for words in SUBJECTS
    }
    assert all(c.sources.keys() == {"a", "b"} for c in taxonomy.clusters)


def test_a_cluster_knows_who_fails_in_it_beyond_ability(taxonomy: Taxonomy) -> None:
    cluster = taxonomy.clusters[0]
    inside = taxonomy.partition.labels == 0
    np.testing.assert_allclose(cluster.failure, 1 - taxonomy.matrix.values[inside].mean(axis=0))
    weights = np.array([c.size for c in taxonomy.clusters])
    overall = np.average([c.excess for c in taxonomy.clusters], axis=0, weights=weights)
    assert np.abs(overall).max() < 0.1 < np.abs(cluster.excess).max()


def published(matrix: Matrix, settings: Settings) -> bool:
    try:
        return bool(fit(matrix, settings).published)
    except InputError:
        return False


@pytest.mark.parametrize(
    "kind",
    [
        AbilityWorld(examples=120, models=9),
        pytest.param(
            AbilityWorld(examples=120, models=9, independent=True), marks=pytest.mark.slow
        ),
    ],
)
def test_without_failure_modes_nothing_is_published(kind: AbilityWorld) -> None:
    settings = replace(QUICK, permutations=0, bootstraps=0)
    assert sum(published(kind.draw(rng(i))[0], settings) for i in range(3)) == 0


MANY = {
    "one ability": AbilityWorld(),
    "ten models": AbilityWorld(examples=200, models=10),
    "many examples": AbilityWorld(examples=2000, models=8),
    "holes": AbilityWorld(examples=400, models=20, holes=0.1),
    "independent": AbilityWorld(independent=True),
    "five independent models": AbilityWorld(examples=363, models=5, independent=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY.values(), ids=MANY)
def test_without_failure_modes_nothing_is_published_in_many_worlds(kind: AbilityWorld) -> None:
    settings = replace(QUICK, worlds=39, refits=10, permutations=0, bootstraps=0)
    assert sum(published(kind.draw(rng(i))[0], settings) for i in range(100)) <= 5


@pytest.mark.parametrize(
    ("strengths", "count"), [([5, 3, 1.3, 1.19, 0.9], 3), ([1.1, 1.05], 2), ([1.0, 0.9], 0)]
)
def test_bends_of_strong_directions_are_not_counted(
    monkeypatch: pytest.MonkeyPatch, strengths: list[float], count: int
) -> None:
    matrix, _ = AbilityWorld(examples=60, models=6).draw(rng(0))
    monkeypatch.setattr(nulls, "measure_directions", lambda *_: np.array(strengths))
    monkeypatch.setattr(nulls, "measure_strongest_direction", lambda *_: 1.0)
    directions, test = nulls.count_directions(matrix, QUICK)
    assert (directions, test.observed) == (count, strengths[0])


@pytest.mark.slow
def test_planted_modes_are_found_among_many_models() -> None:
    matrix, mode = AbilityWorld(examples=6000, models=120, modes=3).draw(rng(0))
    taxonomy = fit(matrix, replace(QUICK, permutations=0, bootstraps=0))
    assert (taxonomy.dimensions, len(taxonomy.published)) == (2, 3)
    assert (
        adjusted_rand(
            mode[[int(name[1:]) for name in taxonomy.matrix.examples]], taxonomy.partition.labels
        )
        > 0.9
    )


@pytest.mark.parametrize(
    "kind",
    [AbilityWorld(examples=1000, models=8), AbilityWorld(examples=363, models=5, independent=True)],
)
def test_the_papers_rule_publishes_where_there_is_nothing(kind: AbilityWorld) -> None:
    """Label-fixed shuffles reject in worlds of one ability, and of none: the contract that the
    paper's rule fails. Its preset decides so all the same.
    """
    settings = Settings.preset(
        "paper", reducer="pca", alpha=0.0, worlds=0, refits=0, bootstraps=0, permutations=99
    )
    matrix = kind.draw(rng(0))[0]
    taxonomy = fit(matrix, settings)
    assert taxonomy.by_the_papers_rule == len(taxonomy.published) > 1
    assert "By the paper's rule" in taxonomy.published[0].reason
    strict = fit(matrix, replace(settings, publication="worlds"))
    assert not strict.published
    # the page says which rule has decided
    for one, said in ((taxonomy, "are published"), (strict, "would be published")):
        page = markdown(make_page(one))
        assert f"clusters {said}" in page
        assert ("if their silhouette beats both" in page) == (one is strict)


def test_null_worlds_are_as_varied_as_the_data() -> None:
    matrix, _ = AbilityWorld(examples=1500, models=10).draw(rng(3))
    population = OneAbility.fit(matrix.passed, matrix.trials, tolerance=1e-5)
    sample = population.draw(rng(4))
    np.testing.assert_allclose(sample.mean(axis=0), matrix.passed.mean(axis=0), atol=0.05)
    totals = [np.bincount(x.sum(axis=1), minlength=11) / 1500 for x in (sample, matrix.passed)]
    np.testing.assert_allclose(*totals, atol=0.035)


def test_shuffled_worlds_keep_columns_and_holes() -> None:
    matrix, _ = AbilityWorld(examples=80, models=6, holes=0.2).draw(rng(0))
    null_matrix = draw_world("column shuffle", matrix, None, rng(1))
    np.testing.assert_array_equal(null_matrix.trials, matrix.trials)
    np.testing.assert_array_equal(null_matrix.passed.sum(axis=0), matrix.passed.sum(axis=0))
    assert (null_matrix.passed <= null_matrix.trials).all()
    assert not np.array_equal(null_matrix.passed, matrix.passed)


@pytest.mark.slow
def test_processes_and_interruptions_change_nothing(
    tmp_path: Path, planted: tuple[Evidence, np.ndarray]
) -> None:
    matrix, _ = AbilityWorld(examples=100, models=8, modes=2, strength=1.5).draw(rng(0))
    settings = replace(QUICK, refits=2, bootstraps=1)
    once = fit(matrix, settings).to_dict()
    with parallel_config("threading"):
        assert fit(matrix, settings, jobs=2).to_dict() == once

    matrix_file, store = tmp_path / "matrix.npz", tmp_path / "kept"
    np.savez(matrix_file, passed=matrix.passed, trials=matrix.trials)
    killed = subprocess.run([sys.executable, "-c", KILLED, matrix_file, store], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(store.iterdir())
    messages: list[str] = []
    assert fit(matrix, settings, resume=store, progress=messages.append).to_dict() == once
    assert not any(
        text.startswith("strongest direction") for text in messages
    )  # done before the end came


KILLED = """
import os, signal, sys
import numpy as np
from groundfault_lab.taxonomy import Matrix, Settings, fit

cells = np.load(sys.argv[1])
passed, trials = cells["passed"], cells["trials"]
n, m = passed.shape
names = tuple(f"e{i:06d}" for i in range(n)), tuple(f"m{j:04d}" for j in range(m))
settings = Settings(worlds=19, refits=2, bootstraps=1, permutations=99)

def progress(text):
    if text.startswith("refitting, other models"):
        os.kill(os.getpid(), signal.SIGKILL)

fit(Matrix(*names, passed, trials), settings, resume=sys.argv[2], progress=progress)
"""


def test_replicates_of_something_else_are_not_taken(tmp_path: Path) -> None:
    ran = []

    def work(i: int) -> int:
        ran.append(i)
        return i * i

    assert Replicates(store=tmp_path, key="a").run("squares", work, 4) == [0, 1, 4, 9]
    assert Replicates(store=tmp_path, key="a").run("squares", work, 5) == [0, 1, 4, 9, 16]
    assert ran == [0, 1, 2, 3, 4]
    Replicates(store=tmp_path, key="b").run("squares", work, 4)
    next(tmp_path.iterdir()).write_text("[]")
    Replicates(store=tmp_path, key="a").run("squares", work, 1)
    assert ran == [0, 1, 2, 3, 4, 0, 1, 2, 3, 0]


def test_a_taxonomy_is_read_back(taxonomy: Taxonomy, tmp_path: Path) -> None:
    taxonomy.save(tmp_path)
    back = Taxonomy.load(tmp_path)
    assert back.to_dict() == taxonomy.to_dict()
    assert [c.rule for c in back.candidates()] == [c.rule for c in taxonomy.candidates()]
    (tmp_path / "taxonomy.json").write_text("{}")
    with pytest.raises(InputError, match="not the directory of a taxonomy"):
        Taxonomy.load(tmp_path)
    with pytest.raises(InputError, match="not the directory of a taxonomy"):
        Taxonomy.load(tmp_path / "nowhere")


def test_clusters_are_rules_that_find_their_examples_again(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray]
) -> None:
    other = planted[0].select_model(planted[0].models[-1])
    inside = other.frame["id"].is_in(list(taxonomy.matrix.examples)).to_numpy()
    table = add_answers(other.take(inside), taxonomy.matrix)
    candidate = taxonomy.candidates()[0]
    assert candidate.fitted_column is not None
    again = candidate.fitted_column.apply(table.frame).to_numpy()
    mine = np.array([taxonomy.labels[name] for name in table.frame["id"]])
    assert (np.where(again < 0, 0, again) == mine).mean() > 0.99


def test_claims_about_models_that_were_held_out(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray]
) -> None:
    evidence, _ = planted
    holdout = evidence.models[-3:]
    report = judge_claims(taxonomy, evidence, holdout, Plan(min_lift="0.05"))
    assert len(report.findings) == 9
    assert {f.outcome for f in report.findings} == set(holdout)
    assert report.confirmed
    beyond = judge_claims(taxonomy, evidence, holdout, Plan(min_lift="0.05"), outcome="excess")
    assert all(abs(f.full.lift or 0) <= 0.5 for f in beyond.findings)
    derivations = [each.manifest.derivation for each in (report, beyond)]
    assert [d and d.kind for d in derivations] == ["taxonomy", "taxonomy"]
    assert [d and d.settings["outcome"] for d in derivations] == ["failures", "excess"]
    with pytest.raises(InputError, match="would be circular"):
        judge_claims(taxonomy, evidence, evidence.models[:1])


def test_a_rule_by_what_an_example_says(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray]
) -> None:
    vectors = np.eye(3)[planted[1][[int(name[1:]) for name in taxonomy.matrix.examples]]]
    rules = replace(taxonomy, matrix=replace(taxonomy.matrix, semantic=vectors)).text_candidates(
        "vector"
    )
    frame = pl.DataFrame({"vector": pl.Series(np.eye(3).tolist(), dtype=pl.List(pl.Float64))})
    assert rules[0].fitted_column is not None
    assert sorted(rules[0].fitted_column.apply(frame).to_list()) == [1, 2, 3]
    with pytest.raises(InputError, match="without texts or vectors"):
        taxonomy.text_candidates("vector")


def test_large_clusters_are_split_once_more() -> None:
    gen = np.random.default_rng(0)
    kinds = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]])
    passes = (kinds[np.repeat([0, 1, 2], 60)] ^ (gen.random((180, 8)) < 0.01)).astype(np.float64)
    labels = np.repeat([0, 0, 1], 60)
    settings = Settings.preset("paper", split=100, min_cluster_size=30)
    parts = _split_large(labels, passes, None, settings)
    assert np.array_equal(parts[120:], labels[120:])  # small enough
    assert adjusted_rand(np.repeat([0, 1], 60), parts[:120]) > 0.9
    same = np.ones((180, 8))
    assert np.array_equal(_split_large(labels, same, None, settings), labels)  # nothing to split by
    by_words = np.eye(3)[np.repeat([0, 1, 2], 60)] + gen.normal(0, 0.01, (180, 3))
    assert (
        adjusted_rand(np.repeat([0, 1], 60), _split_large(labels, same, by_words, settings)[:120])
        == 1.0
    )


def test_reports_escape_what_came_from_data(taxonomy: Taxonomy) -> None:
    hostile = replace(
        taxonomy,
        clusters=(replace(taxonomy.clusters[0], terms=("<script>alert(1)</script>", "a|b")),),
    )
    content = make_page(replace(hostile, title="<b>title</b>"))
    text = html(content)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "<b>title" not in text
    assert "<script" not in markdown(content)
    assert text.count("<figure") == 3
    assert ">+0" not in text  # in legends
    assert ">100%<" in text


def test_claims_name_the_model_also_where_it_is_the_only_one(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray]
) -> None:
    model = planted[0].models[-1]
    content = make_page(taxonomy, claims=judge_claims(taxonomy, planted[0], [model]).data)
    (section,) = (s for s in content.sections if s.title.startswith("Models that"))
    assert {row[1] for row in list_tables(section)[0].rows} == {model}


@pytest.mark.parametrize("outcome", ["failures", "excess"])
def test_claims_can_be_verified(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray], tmp_path: Path, outcome: Any
) -> None:
    planted[0].frame.write_parquet(tmp_path / "answers.parquet")
    evidence = Evidence.from_table(
        tmp_path / "answers.parquet", outcome="ok", positive_is_good=True, id="id", model="model"
    )
    report = judge_claims(taxonomy, evidence, evidence.models[-2:], outcome=outcome)
    assert any("half of the excess" in hint for hint in report.hints) == (outcome == "excess")
    (section,) = (
        s
        for s in make_page(taxonomy, claims=report.data).sections
        if "claims that a held-out model" in " ".join(list_sentences(s)[:1])
    )
    assert ("beyond its ability" in list_sentences(section)[0]) == (outcome == "excess")
    table = list_tables(section)[0]
    assert table.note.startswith("A difference here is half of") == (outcome == "excess")
    assert "corrected for that" in table.note
    for finding, row in zip(report.findings, table.rows, strict=True):
        if finding.estimate is not None:
            assert row[3] == words.points(finding.estimate.effect)
    taxonomy.save(tmp_path)
    report.write(tmp_path / "claims")
    verification = verify(tmp_path / "claims")
    assert verification.reproduces, verification.differences
    passes = taxonomy.matrix.passed.copy()
    passes[0] = taxonomy.matrix.trials[0] - passes[0]
    replace(taxonomy, matrix=replace(taxonomy.matrix, passed=passes)).save(tmp_path)
    assert not verify(tmp_path / "claims").reproduces


def test_claims_of_excess_are_verified_on_another_processor(
    taxonomy: Taxonomy,
    planted: tuple[Evidence, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted[0].frame.write_parquet(tmp_path / "answers.parquet")
    evidence = Evidence.from_table(
        tmp_path / "answers.parquet", outcome="ok", positive_is_good=True, id="id", model="model"
    )
    taxonomy.save(tmp_path)
    judge_claims(taxonomy, evidence, evidence.models[-2:], outcome="excess").write(
        tmp_path / "claims"
    )
    # exponentials of another processor: each of another last bit
    exact = irt.ItemResponse.probability
    monkeypatch.setattr(
        irt.ItemResponse, "probability", lambda *args: np.nextafter(exact(*args), 0.5)
    )
    verification = verify(tmp_path / "claims")
    assert verification.reproduces, verification.differences


@pytest.mark.parametrize("order", [("failures", "excess"), ("excess", "failures")])
def test_failures_and_excess_are_of_the_same_outcomes(
    taxonomy: Taxonomy, planted: tuple[Evidence, np.ndarray], tmp_path: Path, order: Any
) -> None:
    evidence, ledger = planted[0], tmp_path / "ledger.db"
    models = evidence.models[-2:]
    first, second = order
    judge_claims(taxonomy, evidence, models, outcome=first, ledger=ledger)
    with pytest.raises(LedgerError, match="was used before"):
        judge_claims(taxonomy, evidence, models, outcome=second, ledger=ledger)
    again = judge_claims(
        taxonomy, evidence, models, outcome=second, ledger=ledger, reopen="beyond ability, too"
    )
    assert again.ledger is not None
    assert again.ledger.times == 2
    replay = judge_claims(taxonomy, evidence, models, outcome=first, ledger=ledger)
    assert replay.ledger is not None
    assert replay.ledger.replay


def test_command_writes_and_bad_input_does_not(
    tmp_path: Path, planted: tuple[Evidence, np.ndarray]
) -> None:
    evidence, _ = planted
    table = tmp_path / "answers.parquet"
    evidence.frame.write_parquet(table)
    base = [
        str(table),
        "--id",
        "id",
        "--model-column",
        "model",
        "--outcome",
        "ok",
        "--positive-is-good",
        "--jobs",
        "1",
    ]
    quick = ["--worlds", "19", "--refits", "2", "--bootstraps", "1", "--permutations", "19"]
    out = tmp_path / "out"
    ledger = tmp_path / "ledger.db"
    holdout = ["--hold-out", evidence.models[-1], "--ledger", str(ledger)]
    ran = CliRunner().invoke(
        command, ["fit", *base, *quick, *holdout, "--out", str(out)], catch_exceptions=False
    )
    assert ran.exit_code == 0
    assert "clusters of answers are published" in ran.output
    assert re.search(r"  leaf 1: .*  \d+ examples  m\d+", ran.output)
    assert "set apart: " in ran.output
    names = {p.name for p in out.iterdir()}
    assert names == {
        "report.html",
        "report.md",
        "taxonomy.json",
        "arrays.npz",
        "examples.parquet",
        "claims",
    }
    assert json.loads((out / "taxonomy.json").read_text())["groundfault_taxonomy"] == 1
    claims = verify(out / "claims", evidence=table, ledger=ledger)
    assert claims.reproduces
    assert "records this look" in claims.ledger
    two = ["--model", evidence.models[0], "--model", evidence.models[1]]
    one_benchmark = tmp_path / "one.parquet"
    evidence.frame.with_columns(bench=pl.lit("a")).write_parquet(one_benchmark)
    for wrong, message in [
        ([*base, *two], "needs at least 3 of them, not 2"),
        ([*base, "--benchmark", "subject2"], "no attribute 'subject2'"),
        ([str(one_benchmark), *base[1:], "--benchmark", "bench"], "one benchmark only"),
        ([*base, "--alpha", "0.5"], "weighs what examples say"),
        ([*base, "--reducer", "tsne"], "reducer must be one of"),
        ([*base, "--preset", "papers"], "preset must be one of"),
        ([*base, "--frontier", "nobody"], "no results of model 'nobody'"),
        ([*base, "--hold-out", "nobody"], "there is no model"),
        ([*base, "--unstable"], "is about claims"),
        ([*base, *holdout, "--preset", "paper", "--alpha", "0"], "by answers alone"),
        ([*base, "--examples", str(table)], "more than once"),
    ]:
        nothing = tmp_path / "nothing"
        ran = CliRunner().invoke(command, ["fit", *wrong, "--out", str(nothing)])
        assert isinstance(ran.exception, GroundfaultError)
        assert message in str(ran.exception)
        assert not nothing.exists()


def test_umap_is_an_extra() -> None:
    matrix, _ = AbilityWorld(examples=60, models=6).draw(rng(0))
    pytest.importorskip("sklearn")
    try:
        import umap  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"pip install 'groundfault-lab\[umap\]'"):
            fit(matrix, Settings.preset("paper", alpha=0.0))
    else:
        pytest.skip("umap is installed")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 2}, "alpha must be in"),
        ({"worlds": 3}, "at least 19 null worlds"),
        ({"signature": "passes"}, "it needs residuals"),
        ({"parameters": 3}, "parameters must be 1 or 2"),
        ({"colour": 1}, "not the settings of a taxonomy"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Settings.preset("default", **changes)


def test_terms_and_attributes_are_those_of_the_cluster() -> None:
    labels = np.array([0] * 20 + [1] * 20 + [-1] * 5)
    texts = ["red apple now"] * 20 + ["green pear now"] * 20 + [None] * 5
    assert set(find_contrasting_terms(texts, labels)[0]) == {"red", "apple"}
    assert find_contrasting_terms(["1 2"] * 45, labels) == ((), ())
    table = pl.DataFrame(
        {"fruit": ["a"] * 20 + ["p"] * 25, "n": np.arange(45) % 9, "same": [1] * 45}
    )
    attributes = find_enriched_attributes(table, labels, 0.05)
    assert attributes[0][0].what == "fruit = a"
    assert (attributes[0][0].inside, attributes[0][0].outside) == (1.0, 0.0)
    assert all("same" not in a.what for row in attributes for a in row)


def test_attributes_of_no_relation_are_seldom_enriched() -> None:
    gen = np.random.default_rng(0)
    hits = 0
    for _ in range(40):
        table = pl.DataFrame({f"f{i}": gen.integers(0, 2, 90) for i in range(8)})
        hits += any(find_enriched_attributes(table, gen.integers(0, 3, 90), 0.05))
    assert hits <= 5


TABLE_5 = [
    *[(1.00, 0.00), (0.73, 0.00), (0.96, 0.00)],
    *[(0.00, 0.30), (0.77, 0.92), (0.96, 0.98)],
    *[(0.00, 0.13), (0.66, 0.70), (0.81, 0.58)],
]


def test_table_5_has_the_papers_silhouettes() -> None:
    silhouettes = profile_silhouettes(TABLE_5)
    assert {k: round(v, 3) for k, v in silhouettes.items()} == {2: 0.455, 3: 0.712, 4: 0.617}


def test_a_grader_that_is_at_fault() -> None:
    verdicts = [1] * 30 + [0] * 30 + [1] * 20
    results = [0] * 30 + [1] * 9 + [0] * 21 + [1] * 20
    table = pl.DataFrame(
        {"attack": ["v35"] * 30 + ["v39"] * 30 + ["v41"] * 20, "grader": verdicts, "ran": results}
    )
    v35, v39, v41 = grader_gaps(table, grader="grader", execution="ran", by=["attack"])
    assert (v35.gap, v39.gap, v41.gap) == (1.0, -0.3, 0.0)
    assert v35.at_fault
    assert v39.at_fault  # inverted: it misses nine that ran
    assert not v41.at_fault
    assert v39.p == 0.00390625
    assert v39.adjusted == pytest.approx(2 * v39.p)
    with pytest.raises(InputError, match="other numbers than 0 and 1"):
        grader_gaps(table.with_columns(grader=pl.lit(0.5)), grader="grader", execution="ran")


EPISODES = pl.DataFrame(
    [
        {
            "id": f"q{i}",
            "model": model,
            "turns": turns,
            "try": t,
            "ok": int(i < good + turns),
            "note": "x",
        }
        for model, good in (("a", 1), ("b", 4))
        for turns in (1, 2, 3)
        for i in range(10)
        for t in range(2)
    ]
)


def test_depth_profile() -> None:
    one = EPISODES.filter(pl.col("try") == 0)
    evidence = Evidence.from_table(
        one, outcome="ok", positive_is_good=True, id="id", model="model", repeat="turns"
    )
    profile = depth_profile(evidence, "turns")
    assert profile["failed"].to_list() == [8, 7, 6, 5, 4, 3]
    assert set(profile["examples"]) == {10}
    low, high = profile["low"][0], profile["high"][0]
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)  # Wilson's of 8 in 10
    with pytest.raises(InputError, match="no column 'depth' to tell the depth by"):
        depth_profile(evidence, "depth")
    with pytest.raises(PlanError, match="level must be between 0 and 1"):
        depth_profile(evidence, "turns", level=1)


def test_a_depth_is_passed_from_a_share_of_its_tries_on() -> None:
    half = EPISODES.with_columns(
        ok=pl.col("try"),
        id=pl.format("{}/{}", "id", "turns"),  # each cell passes one try of two
    )
    evidence = Evidence.from_table(
        half, outcome="ok", positive_is_good=True, id="id", model="model", repeat="try"
    )
    assert depth_profile(evidence, "turns")["failed"].sum() == 0
    assert (depth_profile(evidence, "turns", rate=0.6)["rate"] == 1).all()


def test_commands_of_depth_and_gaps(tmp_path: Path) -> None:
    def run(*words: str) -> str:
        return (
            CliRunner().invoke(command, words, catch_exceptions=False, env={"COLUMNS": "80"}).output
        )

    EPISODES.filter(pl.col("try") == 0).write_csv(tmp_path / "episodes.csv")
    columns = "--id id --model-column model --repeat turns --outcome ok --positive-is-good".split()
    output = run(
        "depth",
        str(tmp_path / "episodes.csv"),
        *columns,
        "--depth",
        "turns",
        "--out",
        str(tmp_path / "d.csv"),
    )
    assert "80% [49%, 94%]" in output
    assert pl.read_csv(tmp_path / "d.csv").height == 6
    traces = pl.DataFrame(
        {"attack": ["01"] * 30 + ["2"] * 9, "grader": [1] * 39, "ran": [0] * 30 + [1] * 9}
    )
    traces.write_csv(tmp_path / "traces.csv")
    arguments = [
        str(tmp_path / "traces.csv"),
        "--grader",
        "grader",
        "--execution",
        "ran",
        "--by",
        "attack",
    ]
    output = run("gaps", *arguments, "--out", str(tmp_path / "g.jsonl"))
    assert "disagree in 1 of 2 cells: there the grader is at fault" in " ".join(output.split())
    assert "+1.00 [+0.84, +1.00]" in output
    assert "100% [89%, 100%]" in output
    table_out = pl.read_ndjson(tmp_path / "g.jsonl")
    assert table_out.select("attack", "judge_only", "judged", "executed_high", "at_fault").row(
        0
    ) == (
        "01",
        30,
        1.0,
        pytest.approx(0.1135, abs=1e-4),
        True,
    )


def test_the_finder_proposes_rules_that_hold_on_other_examples() -> None:
    matrix, mode = AbilityWorld(examples=400, models=24, modes=3, strength=1.5).draw(rng(2))
    evidence = evidence_of(matrix, mode)
    noise = np.random.default_rng(0).normal(0, 0.05, (400, 3))
    vector = {f"e{i:06d}": (np.eye(3)[k] + noise[i]).tolist() for i, k in enumerate(mode)}
    frame = evidence.frame.with_columns(
        embedding=pl.Series(
            [vector[name] for name in evidence.frame["id"]], dtype=pl.List(pl.Float64)
        )
    )
    evidence = Evidence.from_table(
        frame, outcome="ok", positive_is_good=True, id="id", model="model"
    )
    report = audit(evidence, Plan(seed=1), finders=[Finder(worlds=19, refits=3)])
    assert len(report.confirmed) >= 10
    assert {f.name.partition(":")[0] for f in report.findings} == {
        "cluster 1",
        "cluster 2",
        "cluster 3",
    }
    assert list(Finder(worlds=19).propose(evidence.select_model(*evidence.models[:2]))) == []
