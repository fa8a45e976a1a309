"""A model is diagnosed from a few answers: what is asked, what is estimated, and whether the
taxonomy helps.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from profiles import count_examples
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import roc_auc_score

from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, PlanError
from groundfault_lab.commands.taxonomy_use import (
    diagnose as diagnose_command,
    evaluate as evaluate_command,
    predict as predict_command,
)
from groundfault_lab.pages.taxonomy_figures import mix_colours
from groundfault_lab.stats import irt
from groundfault_lab.taxonomy.fitting.fit import fit
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.use.basis import (
    SCALES,
    Basis,
    assign_groups,
    divide_budget,
    draw_by_group,
    estimate_excesses,
    measure_information,
)
from groundfault_lab.taxonomy.use.diagnosis import TargetExamples, diagnose, estimate_profile
from groundfault_lab.taxonomy.worlds import AbilityWorld
from groundfault_studies.ranks import area, bootstrap_bands, rho, tau_b
from groundfault_studies.taxonomy import study
from groundfault_studies.taxonomy_cells import complete, gain
from groundfault_studies.taxonomy_figures import figures
from groundfault_studies.taxonomy_folds import TaxonomyFold, choose_adaptively, choose_examples
from groundfault_studies.taxonomy_paper import NAMES, TABLE_2
from groundfault_studies.taxonomy_tables import _curve

SMALL = Settings(worlds=19, refits=2, permutations=19, bootstraps=0)
KINDS = AbilityWorld(examples=300, models=16, modes=2, strength=2.5)


# ----------------------------------------------------------------------------------------- measures


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
@settings(max_examples=count_examples(40))
def test_tau_b_and_rho_are_scipys(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    np.testing.assert_allclose(tau_b(x, y), kendalltau(x, y).statistic, atol=1e-12)
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert rho(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
        positive = y > y.min()
        assert area(x, positive) == pytest.approx(roc_auc_score(positive, x), abs=1e-12)


def test_tau_leaves_out_what_is_not_known_and_goes_over_rows() -> None:
    x = np.array([[1.0, 2.0, 3.0, np.nan], [3.0, 2.0, 1.0, 0.0]])
    y = np.array([0.1, 0.2, 0.3, 0.0])
    np.testing.assert_allclose(tau_b(x, y), [1.0, 0.0])
    assert np.isnan(tau_b(np.ones(3), np.arange(3.0)))


def test_bands_are_wider_for_more_columns_and_infinite_of_two_folds() -> None:
    values = np.random.default_rng(0).normal(1.0, 1.0, (30, 6))
    mean, _, high = bootstrap_bands(values[:, :1])
    assert mean == pytest.approx(values[:, 0].mean())
    assert 0.3 < high[0] - mean[0] < 0.5  # 1.96 / sqrt(30) = 0.36
    assert (bootstrap_bands(values)[2] - bootstrap_bands(values)[0])[0] > high[0] - mean[0]
    assert np.isinf(bootstrap_bands(values[:2])[1]).all()
    np.testing.assert_array_equal(bootstrap_bands(np.ones((9, 1)))[1], [1.0])


# ------------------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize(
    ("size", "budget", "least", "how", "expected"),
    [
        (
            [60, 30, 10],
            19,
            3,
            "proportional",
            [9, 6, 4],
        ),  # 3 each, of the other 10 six, three and one
        ([60, 30, 10], 7, 3, "proportional", [3, 3, 1]),  # the smallest goes short
        ([60, 30, 2], 11, 0, "uniform", [5, 4, 2]),
        ([60, 30, 2], 11, 3, "proportional", [5, 4, 2]),
        ([5, 5], 99, 3, "proportional", [5, 5]),
        ([], 4, 3, "proportional", []),
    ],
)
def test_quotas_by_hand(
    size: list[int], budget: int, least: int, how: str, expected: list[int]
) -> None:
    quotas = divide_budget(np.array(size, dtype=np.int64), budget, min_each=least, how=how)  # type: ignore[arg-type]
    assert quotas.tolist() == expected


@given(
    st.lists(st.integers(0, 40), max_size=8),
    st.integers(0, 120),
    st.integers(0, 5),
    st.sampled_from(["proportional", "uniform"]),
)
def test_quotas_spend_the_budget_and_no_more_than_there_is(
    size: list[int], budget: int, least: int, how: str
) -> None:
    sizes = np.array(size, dtype=np.int64)
    quotas = divide_budget(sizes, budget, min_each=least, how=how)  # type: ignore[arg-type]
    assert quotas.sum() == min(budget, sizes.sum())
    assert (quotas <= sizes).all()
    assert (quotas >= 0).all()
    if how == "proportional" and np.minimum(sizes, least).sum() <= budget:
        assert (quotas >= np.minimum(sizes, least)).all()


@given(st.integers(0, 2**31), st.integers(1, 60))
def test_strata_ask_only_what_is_open_and_count_what_was_asked(seed: int, budget: int) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(-1, 4, 50)
    trials = rng.random(50) < 0.3
    rows = draw_by_group(groups, ~trials, rng.random(50), budget, min_each=3, has_answer=trials)
    assert len(set(rows)) == len(rows) == min(budget, int((~trials).sum()))
    assert not trials[rows].any()


def test_strata_make_up_for_what_was_asked_before() -> None:
    groups = np.repeat([0, 1], 10)
    trials = np.arange(20) < 4  # four of the first
    rows = draw_by_group(groups, ~trials, np.linspace(0, 1, 20), 4, has_answer=trials)
    assert groups[rows].tolist() == [1, 1, 1, 1]


def basis(labels: list[int], rng: np.random.Generator) -> Basis:
    n, m = len(labels), 30
    passes = (rng.random((n, m)) < 0.6).astype(np.int64)
    names = tuple(f"e{i:03d}" for i in range(n)), tuple(f"m{j}" for j in range(m))
    return Basis.of(Matrix(*names, passes, np.ones_like(passes)), np.array(labels))


def test_difficulty_is_split_into_five_and_benchmarks_have_to_be_known() -> None:
    examples_basis = basis([0] * 25, np.random.default_rng(0))
    groups = assign_groups("difficulty", examples_basis)
    assert np.bincount(groups).tolist() == [5] * 5
    assert (
        examples_basis.difficulty[groups == 0].max() <= examples_basis.difficulty[groups == 4].min()
    )
    with pytest.raises(InputError, match="benchmark"):
        assign_groups("benchmark", examples_basis)


def test_adaptive_strategies_see_no_answer_before_it_is_asked() -> None:
    rng = np.random.default_rng(1)
    examples_basis = basis([0] * 40, rng)
    failures, open_ = rng.random(40) < 0.5, np.ones((2, 40), dtype=bool)
    for strategy in ("irt", "uncertainty"):
        order = choose_adaptively(
            measure_information(strategy, examples_basis), examples_basis.curve, failures, open_, 12
        )  # type: ignore[arg-type]
        other = failures ^ ~np.isin(np.arange(40), order[0])
        again = choose_adaptively(
            measure_information(strategy, examples_basis), examples_basis.curve, other, open_, 12
        )  # type: ignore[arg-type]
        np.testing.assert_array_equal(order, again)
        assert len(set(order[0])) == 12


def test_the_first_question_is_the_most_informative_at_mean_ability() -> None:
    items = irt.ItemResponse(np.array([1.0, 2.0, 1.0]), np.array([0.0, 0.1, 3.0]), np.zeros(1))
    examples_basis = Basis(
        np.zeros(3, dtype=np.int64),
        np.zeros(3),
        items,
        np.eye(1),
        np.full(len(SCALES), 1 / len(SCALES)),
    )
    first = [
        int(
            choose_adaptively(
                measure_information(s, examples_basis),
                examples_basis.curve,
                np.zeros(3, dtype=bool),
                np.ones((1, 3), dtype=bool),
                1,
            )[0, 0]
        )  # type: ignore[arg-type]
        for s in ("irt", "uncertainty")
    ]
    assert first == [1, 0]  # slope 2 informs most; the first item is an even chance


# -------------------------------------------------------------------------------- what is estimated


def test_direct_rates_and_the_prior_by_hand() -> None:
    examples_basis = basis([0, 0, 0, 1, 1, -1], np.random.default_rng(2))
    trials = np.array([[1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]], dtype=bool)
    failures = np.array([1, 0, 1, 1, 1, 0], dtype=bool)
    estimates = estimate_profile(
        examples_basis,
        failures,
        trials,
        TargetExamples.of(examples_basis, np.ones((2, 6), dtype=bool)),
    )
    np.testing.assert_allclose(
        estimates.direct, [[1 / 2, 1 / 3], [1 / 2, 1 / 2]]
    )  # an unasked cluster: all that was asked
    np.testing.assert_allclose(
        estimates.prior[0],
        [examples_basis.difficulty[:3].mean(), examples_basis.difficulty[3:5].mean()],
    )
    np.testing.assert_allclose(estimates.shrunk[1], estimates.ability[1])
    low, high = estimates.intervals()
    assert (low < estimates.shrunk).all()
    assert (estimates.shrunk < high).all()


def test_a_cluster_never_failed_may_still_be() -> None:
    examples_basis = basis([0] * 40 + [1] * 40, np.random.default_rng(3))
    trials = np.zeros((1, 80), dtype=bool)
    trials[0, ::4] = True
    estimates = estimate_profile(
        examples_basis,
        np.arange(80) >= 40,
        trials,
        TargetExamples.of(examples_basis, np.ones((1, 80), dtype=bool)),
    )
    low, high = estimates.intervals()
    assert high[0, 0] > 0.03
    assert low[0, 1] < 0.97
    assert (low <= estimates.shrunk).all()
    assert (estimates.shrunk <= high).all()


def test_one_cluster_is_shrunk_by_the_ratio_of_variances() -> None:
    estimate, variance, _ = estimate_excesses(
        np.array([[0.04]]), np.array([[0.3]]), np.array([[0.025]])
    )
    for scale, guess, variance_after in zip(
        SCALES, estimate[:, 0, 0], variance[:, 0, 0], strict=True
    ):
        weight = scale**2 * 0.04 / (scale**2 * 0.04 + 0.025)
        assert guess == pytest.approx(weight * 0.3)
        assert variance_after == pytest.approx(scale**2 * 0.04 * (1 - weight))


def test_an_unasked_cluster_borrows_from_one_that_goes_with_it() -> None:
    together = np.array([[0.04, 0.03], [0.03, 0.04]])
    estimate, variance, _ = estimate_excesses(
        together, np.array([[0.3, 0.0]]), np.array([[0.0002, 1e6]])
    )
    assert (estimate[:, 0, 1] > 0.15).all()
    assert (estimate[:, 0, 1] < estimate[:, 0, 0]).all()
    assert (variance[:, 0, 0] < variance[:, 0, 1]).all()


def test_a_great_surprise_is_shrunk_less_than_a_small_one() -> None:
    _, _, likely = estimate_excesses(
        np.array([[0.01]]), np.array([[0.01], [0.6]]), np.full((2, 1), 0.002)
    )
    assert likely.argmax(axis=0).tolist() == [0, len(SCALES) - 1]


# ------------------------------------------------------------------------------------------- worlds


def folds(world: AbilityWorld, seed: int) -> list[dict[str, Any]]:
    matrix, _ = world.draw(np.random.default_rng(seed))
    fold = TaxonomyFold(matrix, SMALL, trials=4, budgets=(50,), predict=False)
    return [fold.run(number) for number in range(0, world.models, 2)]


def test_where_there_are_failure_modes_clusters_beat_the_prior_and_ability() -> None:
    rows = complete(folds(KINDS, 0))
    assert len(rows) == 8
    gains = gain(rows, "mae", "prior")
    for less in (
        gains["taxonomy", "shrunk"],
        gains["taxonomy", "shrunk"] - gains["taxonomy", "ability"],
    ):
        assert bootstrap_bands(less[:, None])[2][0] < -0.02
    inside = np.mean([row["held out"]["taxonomy"]["50"]["inside"] for row in rows])
    assert inside > 0.75
    figure_list = figures(SimpleNamespace(folds={"default": rows, "paper": []}))  # type: ignore[arg-type]
    assert list(figure_list) == ["budget-tau", "budget-mae"]
    for svg in figure_list.values():  # six curves, each with an interval at the one budget
        assert (
            svg.count('aria-roledescription="rule mark"')
            == svg.count('aria-roledescription="line mark"')
            == 6
        )


def test_a_rare_failure_mode_is_met_by_asking_by_cluster() -> None:
    rng = np.random.default_rng(0)
    examples_basis = basis([0] * 270 + [1] * 15 + [2] * 15, rng)
    failures = rng.random(300) < np.repeat([0.3, 0.9, 0.1], [270, 15, 15])
    open_ = np.ones((20, 300), dtype=bool)
    target, error = TargetExamples.of(examples_basis, open_), {}
    truth = [failures[examples_basis.labels == c].mean() for c in range(3)]
    for strategy in ("random", "taxonomy"):
        trials = choose_examples(
            strategy,
            examples_basis,
            failures,
            open_,
            np.random.default_rng(1).random((20, 300)),
            [25],
        )[25]
        error[strategy] = np.abs(
            estimate_profile(examples_basis, failures, trials, target).direct - truth
        ).mean()
    assert error["taxonomy"] < 0.75 * error["random"]


def test_where_one_ability_is_all_there_is_nothing_to_diagnose() -> None:
    assert not complete(folds(AbilityWorld(examples=200, models=10), 1))


def test_an_evaluation_of_one_ability_claims_nothing_and_resumes(tmp_path: Path) -> None:
    matrix, _ = AbilityWorld(examples=120, models=5).draw(np.random.default_rng(3))
    small = {"trials": 2, "worlds": 19, "refits": 2, "permutations": 19, "keep": tmp_path}
    tables = study(matrix, **small)  # type: ignore[arg-type]
    claims = {row.label: row.here["holds"] for row in tables.tables[0].rows}
    assert claims["Models differ by more than one ability"] == "no"
    assert claims["Tasks chosen by the default clusters help to diagnose a model"] == "not asked"
    for number in (1, 2, 3, 10, 13, 14, 15, 17):
        assert any(
            row.paper
            for table in tables.tables
            if f"Table {number}:" in table.title
            for row in table.rows
        )
    nothing = _curve("Table 2", [], lambda s, b: lambda row: None, TABLE_2, "")
    assert [row.label for row in nothing.rows if row.paper and not row.here] == [
        NAMES[name] for name in TABLE_2
    ]
    assert "only the paper has numbers" in nothing.note
    messages: list[str] = []
    again = study(matrix, **small, progress=messages.append)  # type: ignore[arg-type]
    assert again.to_json() == tables.to_json()
    assert not any(": 0 of" in word for word in messages)
    json.loads(tables.to_json())


@pytest.mark.slow
def test_an_evaluation_that_was_killed_goes_on(tmp_path: Path) -> None:
    matrix, _ = KINDS.draw(np.random.default_rng(5))
    cells = [
        {"id": e, "model": m, "error": 1 - int(matrix.passed[i, j])}
        for i, e in enumerate(matrix.examples[:200])
        for j, m in enumerate(matrix.models[:8])
    ]
    pl.DataFrame(cells).write_parquet(tmp_path / "answers.parquet")
    few = "--trials 2 --worlds 19 --refits 2 --permutations 19 --jobs 1".split()
    base = [
        str(tmp_path / "answers.parquet"),
        "--id",
        "id",
        "--model-column",
        "model",
        "--outcome",
        "error",
        *few,
    ]

    def command(out: str) -> list[str]:
        run = "from groundfault_lab.commands.taxonomy_use import evaluate; evaluate()"
        return [sys.executable, "-c", run, *base, "--out", str(tmp_path / out)]

    subprocess.run(command("whole"), check=True, capture_output=True)
    running = subprocess.Popen(
        command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    store, before = tmp_path / "killed" / ".replicates", time.monotonic()
    while (
        len(list(store.glob("*.json"))) < 4
        and running.poll() is None
        and time.monotonic() < before + 300
    ):
        time.sleep(0.05)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "taxonomy.json").exists()
    subprocess.run(command("killed"), check=True, capture_output=True)
    whole, killed = ((tmp_path / out / "taxonomy.json").read_text() for out in ("whole", "killed"))
    assert killed == whole
    assert not store.exists()


# -------------------------------------------------------------------------------------- a new model


@pytest.fixture(scope="module")
def world() -> tuple[Taxonomy, Matrix]:
    matrix, _ = KINDS.draw(np.random.default_rng(0))
    return fit(matrix.without("m0000"), SMALL), matrix.select(["m0000"])


def answers(matrix: Matrix, rows: int, **more: object) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "id": matrix.examples[:rows],
            "error": 1 - matrix.passed[:rows, 0],
            "model": ["new"] * rows,
        }
    ).with_columns(**{k: pl.lit(v) for k, v in more.items()})


def evidence(frame: pl.DataFrame) -> Evidence:
    return Evidence.from_table(frame, id="id", model="model", outcome="error")


def test_a_diagnosis(world: tuple[Taxonomy, Matrix]) -> None:
    taxonomy, own = world
    diagnosis = diagnose(taxonomy, evidence(answers(own, 200)), budget=30)
    assert len(diagnosis.weaknesses) == len(taxonomy.clusters) >= 2
    answered_names = set(own.examples[:200])
    assert len(diagnosis.next) == len(set(diagnosis.next)) == 30
    assert not answered_names & set(diagnosis.next)
    assert diagnosis.answers == len(answered_names & set(taxonomy.matrix.examples))
    assert diagnosis.answers + diagnosis.unknown == 200
    truth = {
        c.number: own.passed[
            [e in taxonomy.labels and taxonomy.labels[e] == c.number for e in own.examples]
        ]
        for c in taxonomy.clusters
    }
    for w in diagnosis.weaknesses:
        assert w.low <= w.rate <= w.high
        assert abs(w.rate - (1 - truth[w.cluster].mean())) < 0.12
    assert diagnosis == diagnose(taxonomy, evidence(answers(own, 200)), budget=30)
    json.dumps(diagnosis.to_dict(), allow_nan=False)


@pytest.mark.parametrize("strategy", ["random", "difficulty", "irt", "uncertainty", "taxonomy"])
def test_the_first_tasks_of_a_model_never_met(
    world: tuple[Taxonomy, Matrix], strategy: str
) -> None:
    taxonomy, _ = world
    diagnosis = diagnose(taxonomy, budget=25, strategy=strategy)  # type: ignore[arg-type]
    assert len(set(diagnosis.next)) == 25
    assert "No answers" in diagnosis.verdict
    assert len(diagnose(taxonomy, budget=10**6, strategy=strategy).next) == len(taxonomy.matrix)  # type: ignore[arg-type]


def test_what_a_diagnosis_refuses(world: tuple[Taxonomy, Matrix]) -> None:
    taxonomy, own = world
    frame = answers(own, 40)
    two = pl.concat([frame, frame.with_columns(model=pl.lit("other"))])
    for arguments, message in (
        (evidence(two), "2 models"),
        (evidence(frame.with_columns(model=pl.lit("m0003"))), "circular"),
        (evidence(frame.with_columns(id=pl.lit("x") + pl.col("id"))), "do not match"),
    ):
        with pytest.raises(InputError, match=message):
            diagnose(taxonomy, arguments)
    for wrong in ({"budget": 0}, {"strategy": "best"}, {"allocation": "fair"}, {"level": 1.0}):
        with pytest.raises(PlanError, match=str(next(iter(wrong)))):
            diagnose(taxonomy, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no attribute 'source'"):
        diagnose(taxonomy, strategy="benchmark", benchmark="source")


def test_the_commands(world: tuple[Taxonomy, Matrix], tmp_path: Path) -> None:
    taxonomy, own = world
    taxonomy.save(tmp_path / "taxonomy")
    answers(own, 60).write_parquet(tmp_path / "new.parquet")
    flags = ["--id", "id", "--outcome", "error"]
    place, file = str(tmp_path / "taxonomy"), str(tmp_path / "new.parquet")
    run = CliRunner()
    first_run = run.invoke(
        diagnose_command,
        [place, "--model", file, *flags, "--budget", "5", "--out", str(tmp_path / "n.txt")],
    )
    assert first_run.exit_code == 0, first_run.output
    assert len((tmp_path / "n.txt").read_text().split()) == 5
    plain = run.invoke(diagnose_command, [place, "--model", file, *flags, "--json", "-"])
    assert len(json.loads(plain.output)["next"]) == 50
    expected = run.invoke(
        predict_command, [place, "--from", file, *flags, "--out", str(tmp_path / "p.csv")]
    )
    assert expected.exit_code == 0, expected.output
    table = pl.read_csv(tmp_path / "p.csv")
    assert table.columns == ["example", "cluster", "failure", "by_ability"]
    assert not set(table["example"]) & set(own.examples[:60])
    refused = run.invoke(
        evaluate_command, [file, *flags, "--model-column", "model", "--out", str(tmp_path / "e")]
    )
    assert isinstance(refused.exception, InputError)
    assert not (tmp_path / "e").exists()


def test_colours_between_two_are_mixed() -> None:
    stops = ["#000000", "#ffffff", "#ff0000"]
    mixed = [mix_colours(share, stops) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert mixed == ["#000000", "#808080", "#ffffff", "#ff8080", "#ff0000"]
