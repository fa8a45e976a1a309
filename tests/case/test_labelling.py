"""Cases of several models: whose answers are labelled, in turns, and within one level."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from msgspec import structs

from groundfault import Case, Evidence, PlanError
from groundfault.case.labelling import CaseConfirmation, make_confirmation
from groundfault.case.parts import Answer, count_answers, group_modes, select_answers
from groundfault.case.settings import ModeChoice
from groundfault.case.simulation import plan_budget
from groundfault.case.verification import verify_case
from groundfault.core.plan import to_fraction
from groundfault.errors import InputError
from groundfault.modes.mode import EVERY_MODEL
from groundfault.sequential.labelling import BACK
from groundfault.sequential.policies import Query

MODELS = ("alpha", "beta")


def table(seed: int = 3, *, count: int = 200, planted: bool = True) -> pl.DataFrame:
    """Both fail in German, beta in tables too; or one in five by chance, hard for both or none."""
    rng = np.random.default_rng(seed)
    lang, form = rng.choice(["de", "en", "fr"], count), rng.choice(["table", "list", "text"], count)
    hard = rng.random(count) < 0.2
    frames = []
    for model in MODELS:
        fails = (lang == "de") | ((form == "table") & (model == "beta"))
        rates = np.where(fails, 0.9, 0.04) if planted else np.where(hard, 0.8, 0.05)
        columns = {"item": [f"q{i:03}" for i in range(count)], "lang": lang, "form": form}
        error = (rng.random(count) < rates).astype(int)
        frames.append(pl.DataFrame({**columns, "model": [model] * count, "error": error}))
    return pl.concat(frames)


def read(frame: pl.DataFrame) -> Evidence:
    return Evidence.from_table(frame, outcome="error", id="item", model="model")


def label(case: Case, confirmation: CaseConfirmation) -> list[Answer]:
    """All answers that were asked for, to the end, scored from the table."""
    answers = []
    while (query := confirmation.ask()) is not None:
        answers.append((query.id, query.case["model"]))
        confirmation.tell(query, case.look_up(query))
    return answers


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Case:
    case = Case.create(tmp_path_factory.mktemp("models") / "case", read(table()), seed=1)
    case.audit()
    return case


def choose(case: Case, budget: int | None = None) -> CaseConfirmation:
    """Confirm all modes, and record nothing."""
    modes = case.report.modes if case.report else ()
    numbers = tuple(range(1, len(modes) + 1))
    rules = tuple(mode.rule for mode in modes)
    return make_confirmation(case, ModeChoice(modes=numbers, rules=rules, budget=budget), None)


def test_each_mode_is_confirmed_on_the_answers_it_is_about(audited: Case) -> None:
    groups = group_modes(audited.report)
    assert set(groups) == {EVERY_MODEL, *MODELS}
    confirmation = choose(audited)
    answers = label(audited, confirmation)
    # asked for once, although two tests may want it
    assert len(set(answers)) == len(answers) == confirmation.labelled
    assert sum(test.labelled for test in confirmation.tests) > len(answers)
    of = dict(zip(groups, confirmation.tests, strict=True))
    assert {query.case["model"] for query, _ in of["beta"].scores} == {"beta"}
    assert {query.case["model"] for query, _ in of[EVERY_MODEL].scores} == set(MODELS)
    right = {(row["item"], row["model"]): 1 - row["error"] for row in table().iter_rows(named=True)}
    for test in confirmation.tests:
        for query, score in test.scores:
            assert score == right[query.id, query.case["model"]]
    # the level is shared by the number of modes, and so is the bar
    count = sum(map(len, groups.values()))
    levels = [to_fraction(test.screen.plan.alpha) * count / len(test.names) for test in of.values()]
    assert levels == [to_fraction("0.04")] * len(levels)
    for state in confirmation.survivors:
        assert state.confirmed == (state.e_value >= 25 * (1 - 1e-9))
        assert "of 25 after" in state.reason
    assert len(confirmation.confirmed) == count


def test_what_is_recorded_goes_on_reproduces_and_says_whose_it_is(
    audited: Case, tmp_path: Path
) -> None:
    case = Case(shutil.copytree(audited.folder, tmp_path / "case"))
    for _ in range(2):
        confirmation = Case(case.folder).confirm(budget=7)
        for _ in range(2):
            query = confirmation.ask()
            assert query is not None
            confirmation.tell(query, case.look_up(query))
        confirmation.ask()
    label(case, Case(case.folder).confirm())
    whole = choose(case, budget=7)
    label(case, whole)
    case.write_confirmation()
    summary = case.write_report()
    assert summary.labelled == whole.labelled == 7
    replayed = case.replay_confirmation()
    assert replayed is not None
    assert replayed.survivors == whole.survivors
    assert (replayed.held_out, replayed.labelled, replayed.budget) == (200, 7, 7)
    assert {mode.outcome for mode in summary.modes} == {EVERY_MODEL, *MODELS}
    page = (case.folder / "report" / "report.md").read_text()
    assert "(every model)" in page
    assert "7 labels of 200 fresh answers" in page
    assert verify_case(case.folder).verdict == "reproduces"
    with pytest.raises(InputError, match="not of this case"):
        confirmation.tell(Query(id="q1", audit="other"), 1.0)
    with pytest.raises(PlanError, match="a probe asks one model"):
        case.probe(question="lang", target="form")


def test_the_last_label_is_taken_back_in_every_test_that_it_serves(
    audited: Case, tmp_path: Path
) -> None:
    case = Case(shutil.copytree(audited.folder, tmp_path / "case"))
    confirmation, plain = case.confirm(budget=9), choose(case, budget=9)
    wrong: set[Answer] = set()

    def err_once(query: Query) -> float | str | None:
        answer, score = (query.id, query.case["model"]), case.look_up(query)
        assert score is not None
        if confirmation.labelled == 6 and len(wrong) == 1:
            wrong.add(answer)
            return BACK
        if confirmation.labelled == 5 and not wrong:
            wrong.add(answer)
            return 1 - score
        return score

    confirmation.run(err_once)
    plain.run(case.look_up)
    assert confirmation.survivors == plain.survivors
    assert confirmation.labelled == plain.labelled == 9
    replayed = case.replay_confirmation()
    assert replayed is not None
    assert replayed.survivors == plain.survivors


def test_a_plan_is_of_all_models_together(audited: Case) -> None:
    plan = plan_budget(audited, 80, lift=0.8, runs=4)
    groups = group_modes(audited.report)
    assert {*plan.powers, *plan.dropped} == {number for each in groups.values() for number in each}
    assert plan.powers
    assert set(plan.rates) == set(groups)
    assert ModeChoice.find(audited.folder) is None


def test_both_parts_are_of_the_same_models(tmp_path: Path) -> None:
    fresh = pl.col("item") > "q120"
    frame = table().with_columns(error=pl.when(~fresh).then("error"))
    evidence = Evidence.from_table(
        frame.filter(~fresh | (pl.col("model") == "beta")),
        outcome="error",
        id="item",
        model="model",
        null_outcome="missing",
    )
    with pytest.raises(InputError, match="alpha answered either units to audit or fresh ones"):
        Case.create(tmp_path / "case", evidence)


def test_of_each_unit_one_model_is_drawn_that_all_answered() -> None:
    lacking = table().filter((pl.col("item") != "q007") | (pl.col("model") == "beta"))
    evidence = read(lacking)
    drawn = select_answers(evidence, EVERY_MODEL, seed=1)
    assert sorted(drawn.frame["item"]) == sorted({f"q{i:03}" for i in range(200)} - {"q007"})
    assert 70 < drawn.frame.filter(model="alpha").height < 130
    assert drawn.models == ("",)
    assert "model" not in drawn.attributes
    assert select_answers(evidence, EVERY_MODEL, seed=1).hash == drawn.hash
    assert select_answers(evidence, EVERY_MODEL, seed=2).hash != drawn.hash
    assert count_answers(evidence) == 399
    assert select_answers(evidence, "alpha", seed=1).frame["item"].n_unique() == 199


def claim(
    place: Path, seed: int, *, planted: bool, count: int = 160
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Modes of one case of both models by outcome and rule: those of the audit, and confirmed."""
    frame = table(seed, count=count, planted=planted)
    case = Case.create(place / str(seed), read(frame), seed=seed)
    modes = case.audit().modes
    if not modes:
        return set(), set()
    confirmation = choose(case)
    label(case, confirmation)
    names = {f"mode {k}": (mode.outcome, mode.rule) for k, mode in enumerate(modes, 1)}
    return set(names.values()), {names[name] for name in confirmation.confirmed}


@pytest.mark.slow
def test_false_statements_in_null_cases_of_several_models(tmp_path: Path) -> None:
    """Of 100 null cases 4 may name a mode, and 4 % of those confirm one; both models err alike."""
    cases = [claim(tmp_path, seed, planted=False) for seed in range(100)]
    assert sum(bool(named) for named, _ in cases) < 11
    assert sum(bool(confirmed) for _, confirmed in cases) < 3


def replace_seed(case: Case, seed: int) -> Case:
    """The same case, whose draws are others; nothing is written."""
    again = Case(case.folder)
    again.settings = structs.replace(again.settings, seed=seed)
    return again


@pytest.mark.slow
def test_rules_without_any_effect_are_confirmed_at_the_level(audited: Case) -> None:
    """The modes of the audit, where every fresh answer fails by a coin that all models share."""
    false, on_fresh = 0, audited.fresh_evidence
    for seed in range(300):
        rng = np.random.default_rng([seed, 5])
        coin = dict(zip(on_fresh.unit_names, rng.random(on_fresh.unit_count) < 0.4, strict=True))
        confirmation = choose(replace_seed(audited, seed), budget=60)
        confirmation.run(lambda query, coin=coin: 0.0 if coin[query.id] else 1.0)
        false += bool(confirmation.confirmed)
    assert false <= 20  # 12 are what a level of 4 % allows on average, and 22 are unlikely


@pytest.mark.slow
def test_planted_modes_of_several_models_are_confirmed(tmp_path: Path) -> None:
    cases = [claim(tmp_path, seed, planted=True, count=240) for seed in range(10)]
    for rule, outcome in (("\"lang\" = 'de'", EVERY_MODEL), ("\"form\" = 'table'", "beta")):
        assert sum((outcome, rule) in confirmed for _, confirmed in cases) >= 8
    assert all(("alpha", "\"form\" = 'table'") not in confirmed for _, confirmed in cases)
