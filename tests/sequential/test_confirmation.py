"""Holdouts labelled one unit at a time: error in null worlds, power in planted ones, the record."""

from __future__ import annotations

import json
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.sequential import Confirmation, SequentialConfirmation
from groundfault.sequential.slice_tests import SliceTest, SliceTests
from groundfault.stats.multiple import e_holm

# --------------------------------------------------------------------------------------- --- e-Holm


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6))
def test_e_holm_is_the_closed_test_of_averages(values):
    e = np.array(values)
    sets = [s for size in range(1, len(e) + 1) for s in combinations(range(len(e)), size)]
    expected = [min(e[list(s)].mean() for s in sets if k in s) for k in range(len(e))]
    np.testing.assert_allclose(e_holm(e), expected, rtol=1e-9, atol=1e-12)


def test_e_holm_of_one_is_itself_and_keeps_ties_together():
    assert e_holm(np.array([7.0])) == [7.0]
    assert e_holm(np.array([3.0, 3.0])).tolist() == [3.0, 3.0]
    assert e_holm(np.zeros(0)).shape == (0,)


# ---------------------------------------------------- --- the e-process: no auditor wins against it


def value(test, losses, high, low, searched=False):
    """Largest expected e-value by the best stopping and the best choice of draws, given which
    losses are left.

    Under the null the units of both sides have any of the losses that are left, each as likely. The
    auditor may draw from all units that are left or from one side alone; or, where ``searched``,
    take any loss it likes of either side, as a draw from another slice might, which is counted and
    not bet on."""
    best = math.exp(min(test.log_e, 700))
    if not losses:
        return best

    def after(is_high, bet):
        sides = (high - 1, low) if is_high else (high, low - 1)
        return [
            value(
                test.update(x, high=is_high, bet=bet),
                losses[:i] + losses[i + 1 :],
                *sides,
                searched,
            )
            for i, x in enumerate(losses)
        ]

    chances = {True: high / (high + low), False: low / (high + low)}
    open_sides = [side for side, weight in ((True, high), (False, low)) if weight]
    options = {side: np.mean(after(side, True)) for side in open_sides}
    searched_values = [x for side in open_sides for x in after(side, False)] if searched else []
    return max(
        best,
        sum(chances[side] * x for side, x in options.items()),
        *options.values(),
        *searched_values,
    )


@pytest.mark.parametrize(
    ("losses", "errors"), [((0, 0, 1, 1), True), ((0, 1, 1, 1), True), ((0.0, 0.4, 1.0), False)]
)
@pytest.mark.parametrize("high", [1, 2])
def test_no_choice_of_draws_and_no_stopping_wins(losses, errors, high):
    test = SliceTest.begin(len(losses), high, errors=errors)
    assert value(test, losses, high, len(losses) - high) <= 1 + 1e-9


@pytest.mark.parametrize("losses", [(0, 0, 1), (0, 1, 1)])
def test_labels_that_were_searched_for_help_nobody(losses):
    assert value(SliceTest.begin(3, 1), losses, 1, 2, searched=True) <= 1 + 1e-9


def test_a_slice_that_was_searched_is_not_bet_on():
    """Units drawn from another slice are counted, and no bet is placed on them."""
    on = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0]], dtype=bool)
    tests = SliceTests.begin(on, np.array([1, 1]))
    fair = tests.update(0, 1.0, on[0])
    assert fair.tests[0].log_high.any()
    assert not fair.tests[
        1
    ].log_high.any()  # its side of the unit has units 0 and 3; 3 was not among those drawn from
    assert fair.tests[1].labelled == 1
    everything = tests.update(0, 1.0, np.ones(6, dtype=bool))
    assert all(test.log_high.any() for test in everything.tests)


def test_labels_drawn_for_another_slice_do_not_enter_the_lift():
    """Else a slice that fell early is compared with the rows of another that fails, too."""
    on = np.array([[1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0, 0]], dtype=bool)
    tests, everything = SliceTests.begin(on, np.array([1, 1])), np.ones(8, dtype=bool)
    for unit, loss in ((0, 1.0), (2, 1.0), (5, 0.0), (6, 0.0)):
        tests = tests.update(unit, loss, everything)
    before = tests.lifts
    for unit in (3, 4):
        tests = tests.update(unit, 1.0, on[1])
    assert tests.lifts[0] == before[0] == pytest.approx(2 / 3)
    assert tests.tests[0].counts == (1, 5)  # they were labelled all the same
    assert tests.lifts[1] == pytest.approx(2 / 3)  # of its own side, 3 of 3 failed


# --------------------------------------------------------------------------------------- --- worlds


def simulate(losses, on, direction, seed, alpha=0.1):
    """Label to the end; which nulls fell at any time, and the labels that the first took."""
    rng = np.random.default_rng(seed)
    tests, first = SliceTests.begin(on, direction, level=alpha), None
    for step, unit in enumerate(rng.permutation(len(losses)), start=1):
        tests = tests.update(int(unit), losses[unit], ~tests.labelled)
        first = first or (step if tests.confirmed.any() else None)
    return tests.confirmed, first


def null_world(seed, units=40, slices=3):
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(1, units))
    on = (latent + rng.normal(size=(slices, units))) > 0.3  # slices that overlap
    return (rng.random(units) < 0.4).astype(float), on, rng.choice([-1, 1], slices)


def test_false_confirmations_in_null_worlds():
    replicates = 30
    wrong = sum(simulate(*null_world(seed), seed=seed)[0].any() for seed in range(replicates))
    assert wrong <= replicates * 0.1 + 2.6 * math.sqrt(replicates * 0.09)


@pytest.mark.slow
def test_false_confirmations_in_many_null_worlds():
    wrong = sum(simulate(*null_world(seed), seed=seed)[0].any() for seed in range(2000))
    assert wrong <= 2000 * 0.1 + 2.33 * math.sqrt(2000 * 0.09)


def test_units_that_cannot_be_scored_confirm_nothing():
    """Both sides fail alike; of one, half cannot be scored."""
    wrong = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, 2])
        on = rng.random((1, 200)) < 0.5
        losses: list[float | None] = [float(loss) for loss in rng.random(200) < 0.5]
        for unit in np.flatnonzero(~on[0])[::2]:
            losses[unit] = None
        for direction in (1, -1):
            fell, _ = simulate(losses, on, np.array([direction]), seed)
            wrong += int(fell[0])
    assert wrong <= 1


def test_a_planted_slice_is_found_with_part_of_the_labels():
    labels, others = [], 0
    for seed in range(4):
        rng = np.random.default_rng([seed, 1])
        on = rng.random((3, 200)) < 0.3
        losses = (rng.random(200) < np.where(on[0], 0.65, 0.2)).astype(float)
        fell, first = simulate(losses, on, np.ones(3, dtype=int), seed)
        others += int(fell[1:].any())
        labels.append(first or 201)
    assert np.median(labels) < 100
    assert others <= 2


# ---------------------------------------------------------------------------------- --- the session


def world(seed=0, lift=0.5, units=400, without_outcomes=True):
    rng = np.random.default_rng(seed)
    long, late = rng.random(units) < 0.35, rng.random(units) < 0.5
    error = rng.random(units) < np.where(long, 0.15 + lift, 0.15)
    part = np.where(np.arange(units) % 2, "holdout", "discovery")
    table = pl.DataFrame(
        {
            "id": [f"u{i:03d}" for i in range(units)],
            "long": long,
            "late": late,
            "part": part,
            "error": [
                None if without_outcomes and p == "holdout" else int(e)
                for e, p in zip(error, part, strict=True)
            ],
        }
    )
    evidence = Evidence.from_table(
        table, outcome="error", id="id", split="part", null_outcome="missing"
    )
    return evidence, {f"u{i:03d}": 0.0 if e else 1.0 for i, e in enumerate(error)}


CANDIDATES = [
    Candidate.from_text("long: long"),
    Candidate.from_text("late: late"),
    Candidate.from_text("not_long: not long"),
]


def audit(evidence, **options):
    return SequentialConfirmation(evidence, Plan(seed=3), CANDIDATES, **options)


def test_a_survivor_is_confirmed_from_labels_that_nobody_had():
    evidence, truth = world()
    session = audit(evidence)
    assert session.names == ("long",)  # its complement counts once, and the other does not survive
    assert session.run(lambda query: truth[query.id]) == ("long",)
    assert session.labelled < 100  # of 200
    [standing] = session.survivors
    assert standing.confirmed
    assert standing.e_value >= 10
    assert standing.lift >= 0.10
    assert standing.on + standing.off == session.labelled


def test_what_fails_only_on_discovery_is_not_confirmed():
    evidence, _ = world()
    rng = np.random.default_rng(0)
    session = audit(evidence)
    assert session.run(lambda _: float(rng.random() < 0.7)) == ()
    assert session.labelled == 200
    assert session.ask() is None


def test_the_least_lift_is_asked_for_as_well():
    evidence, truth = world()
    session = SequentialConfirmation(evidence, Plan(seed=3, min_lift="0.9"), CANDIDATES)
    assert session.names == () or session.run(lambda query: truth[query.id]) == ()


def test_the_last_open_survivor_is_asked_about_both_sides():
    evidence, truth = world()
    session = audit(evidence, budget=40)
    session.run(lambda query: truth[query.id])
    [standing] = session.survivors
    assert session.labelled <= 40
    assert abs(standing.on - standing.off) <= 1


def test_while_several_are_open_a_unit_is_asked_about_once():
    evidence, truth = world()
    both = [CANDIDATES[0], Candidate.from_text("long_early: long and not late")]
    session = SequentialConfirmation(evidence, Plan(seed=3), both, budget=30)
    assert session.names == ("long", "long_early")
    asked = []
    while (query := session.ask()) and not any(one.confirmed for one in session.survivors):
        asked.append(query.id)
        session.tell(query, truth[query.id])
    assert len(set(asked)) == len(asked) > 5


def test_of_held_out_copies_that_differ_the_first_is_looked_up():
    evidence, truth = world(without_outcomes=False)
    words = pl.format("what is the sum of one and {}", "id")
    table = evidence.frame.with_columns(prompt=words)
    twins = table.filter(part="holdout").with_columns(
        id=pl.lit("v") + pl.col("id"), error=1 - pl.col("error")
    )
    evidence = Evidence.from_table(
        pl.concat([table, twins]), outcome="error", id="id", split="part"
    )
    session = audit(evidence, budget=12)
    session.run(session.replay_score)
    assert session.labelled == 12
    assert all(score == truth[query.id] for query, score in session.scores)


def test_held_out_outcomes_are_not_looked_at():
    blind, full = (audit(world(without_outcomes=flag)[0]) for flag in (True, False))
    truth = world()[1]
    assert blind.names == full.names
    for session in (blind, full):
        session.run(lambda query: truth[query.id])
    assert blind.tests.adjusted.tolist() == full.tests.adjusted.tolist()
    assert "error" not in blind.ask().case if blind.ask() else True


def test_resuming_is_bit_identical_and_openings_are_counted(tmp_path):
    evidence, truth = world()
    whole = audit(evidence, budget=8)
    whole.run(lambda query: truth[query.id])
    for turn in range(30):
        session = audit(evidence, budget=8, ledger=tmp_path / "l.db")
        query = session.ask()
        if query is None:
            break
        assert "error" not in query.case
        if turn % 3:
            session.tell(query, truth[query.id])
    assert session.tests.adjusted.tolist() == whole.tests.adjusted.tolist()
    assert session.labelled == whole.labelled
    events = Ledger(tmp_path / "l.db").events()
    assert [e.kind for e in events].count("holdout_opened") == 1
    assert session.opening.times == 1
    labels = [e.body["id"] for e in events if e.kind == "holdout_told"]
    assert len(set(labels)) == len(labels) == session.labelled


def test_other_candidates_need_a_reason(tmp_path):
    evidence, _ = world()
    audit(evidence, ledger=tmp_path / "l.db")
    other = [*CANDIDATES, Candidate.from_text("both: long and late")]
    with pytest.raises(LedgerError, match="used before, on"):
        SequentialConfirmation(evidence, Plan(seed=3), other, ledger=tmp_path / "l.db")
    again = SequentialConfirmation(
        evidence, Plan(seed=3), other, ledger=tmp_path / "l.db", reopen="a slice was forgotten"
    )
    assert again.opening.times == 2
    assert again.result.opening == (
        "holdout opened 2 times, with 2 candidate libraries and 2 plans; reason given: a slice was "
        "forgotten; family-wise error at most 20% over the 2 looks at these outcomes, if no look "
        "was chosen by the result of an earlier one"
    )


def test_an_audit_and_labels_of_one_holdout_are_two_looks(tmp_path):
    evidence, _ = world()
    groundfault.audit(
        evidence, Plan(judge="janus", seed=3), CANDIDATES, ledger=tmp_path / "l.db", modes=False
    )
    with pytest.raises(LedgerError, match="the holdout of these outcomes was used before"):
        audit(evidence, ledger=tmp_path / "l.db")
    again = audit(evidence, ledger=tmp_path / "l.db", reopen="to see it label by label")
    assert again.opening.times == 2
    assert [look.level for look in again.opening.looks] == [0.1, 0.1]


def test_the_default_ledger_is_that_of_every_command(shell):
    table = ["full.csv", "--outcome", "error", "--id", "id", "--split", "part"]
    rules = ["--candidate", "long: long", "--candidate", "late: late", "--judge", "janus"]
    first = CliRunner().invoke(cli, ["audit", *table, *rules])
    assert first.exit_code == 0, first.output
    refused = shell("full.csv", "--label", "file")
    assert isinstance(refused.exception, LedgerError)
    again = shell("full.csv", "--label", "file", "--reopen", "to see it label by label")
    assert "holdout opened 2 times" in again.output
    assert "at most 20% over the 2 looks" in again.output
    assert [path.name for path in Path().glob("*.db")] == ["groundfault-ledger.db"]


def test_what_0_1_recorded_beside_is_mentioned_and_gone_on_with(shell):
    labels = ["half.csv", "--null-outcome", "missing", "--label", "ask", "--show", "long"]
    assert shell(*labels, "--ledger", "groundfault.db", text="p\nq\n").exit_code == 0
    beside = shell(*labels, text="q\n")
    assert isinstance(beside.exception, LedgerError)
    assert "go on with it by --ledger groundfault.db" in str(beside.exception)
    assert "note: groundfault.db holds looks that an earlier groundfault" in beside.output
    assert "query 2" in shell(*labels, "--ledger", "groundfault.db", text="q\n").output
    other = shell("full.csv", "--label", "file")
    assert other.exit_code == 0, other.output
    assert "note: groundfault.db" in other.output


def test_telling_is_guarded(tmp_path):
    evidence, truth = world()
    session = audit(evidence, ledger=tmp_path / "l.db")
    query = session.ask()
    assert session.ask() is query or session.ask() == query
    with pytest.raises(InputError, match="neither 0 nor 1"):
        session.tell(query, 0.5)
    with pytest.raises(InputError, match="outside"):
        session.tell(query, 2)
    rival = audit(evidence, ledger=tmp_path / "l.db")
    rival.tell(rival.ask(), truth[query.id])
    with pytest.raises(InputError, match="has a score already"):
        session.tell(query, 1.0)
    with pytest.raises(InputError, match="not of this audit"):
        audit(world(seed=1)[0]).tell(query, 1.0)
    session.tell(session.ask(), None)  # a unit that cannot be scored is labelled, too
    assert session.labelled == 2


def test_a_label_that_was_taken_back_leaves_no_trace_in_the_e_values(tmp_path):
    evidence, truth = world()
    session, plain = audit(evidence, ledger=tmp_path / "l.db"), audit(evidence, ledger=False)
    for _ in range(4):
        query = session.ask()
        session.tell(query, truth[query.id])
    wrong = session.ask()
    session.tell(wrong, 1.0 - truth[wrong.id])
    session.ask()
    session.undo()
    again = session.ask()
    assert (again.step, again.id) == (wrong.step, wrong.id)
    for one in (session, plain):
        one.run(lambda query: truth[query.id])
    assert (session.survivors, session.labelled) == (plain.survivors, plain.labelled)
    again = audit(evidence, ledger=tmp_path / "l.db")
    assert (again.survivors, again.corrections) == (plain.survivors, 1)
    assert again.to_dict()["corrections"] == 1
    assert "corrections" not in plain.to_dict()
    assert Confirmation.from_dict(again.to_dict()) == again.result


def test_a_record_that_was_rewritten_is_refused(tmp_path):
    evidence, truth = world()
    session = audit(evidence, budget=5, ledger=tmp_path / "l.db")
    session.run(lambda query: truth[query.id])
    forged = Ledger(tmp_path / "forged.db")
    for event in Ledger(tmp_path / "l.db").events():
        body = dict(event.body)
        if event.kind == "holdout_asked" and body["step"] == 3:
            body["id"] = "u001"
        forged.append(event.kind, body)
    with pytest.raises(LedgerError, match="round 3 of the record does not reproduce"):
        audit(evidence, budget=5, ledger=tmp_path / "forged.db")


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        (Plan(judge="holm"), {}, "has no holdout"),
        (Plan(effect="risk_ratio"), {}, "use risk_difference"),
        (Plan(), {"budget": 0}, "budget must be"),
    ],
)
def test_what_cannot_be_bought(plan, options, message):
    with pytest.raises(PlanError, match=message):
        SequentialConfirmation(world()[0], plan, CANDIDATES, **options)


def test_nothing_survives_and_nothing_is_asked(tmp_path):
    evidence, _ = world(lift=0.0)
    session = audit(evidence, ledger=tmp_path / "l.db")
    assert session.opening is None
    assert not (tmp_path / "l.db").exists()
    assert session.names == ()
    assert session.ask() is None
    assert session.confirmed == ()
    assert session.survivors == ()


# ---------------------------------------------------------------------------------- --- the command


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDFAULT_LEDGER")
    for name, without_outcomes in (("full.csv", False), ("half.csv", True)):
        world(without_outcomes=without_outcomes)[0].frame.select(
            "id", "long", "late", "part", "error"
        ).write_csv(name)
    base = [
        "label",
        "confirm",
        "--outcome",
        "error",
        "--id",
        "id",
        "--split",
        "part",
        "--seed",
        "3",
    ]

    def run(source, *arguments, text=None):
        candidates = ["--candidate", "long: long", "--candidate", "late: late"]
        return CliRunner().invoke(cli, [*base, source, *candidates, *arguments], input=text)

    return run


def test_confirming_in_the_shell(shell):
    result = shell("full.csv", "--label", "file", "--cost", "3", "--gate", "--json", "found.json")
    assert result.exit_code == 1, result.output
    assert "confirmed: long, +" in result.output
    assert "holdout opened 1 time" in result.output
    assert "2 candidates screened on the discovery rows; survived: long\n" in result.output
    data = json.loads(Path("found.json").read_text())
    assert data["confirmed"] == ["long"]
    assert data["labelled"] < data["held_out"] == 200


def test_a_holdout_without_outcomes_is_not_spent_on_looking_them_up(shell, tmp_path):
    result = shell("half.csv", "--null-outcome", "missing", "--label", "file")
    assert isinstance(result.exception, PlanError)
    assert "no held-out row has an outcome to look up" in str(result.exception)
    assert not list(tmp_path.glob("*.db"))


def test_a_person_is_asked_and_goes_on_later(shell):
    first = shell(
        "half.csv", "--null-outcome", "missing", "--label", "ask", "--show", "long", text="p\nq\n"
    )
    assert first.exit_code == 0, first.output
    assert "1 labelled" in first.output
    second = shell(
        "half.csv", "--null-outcome", "missing", "--label", "ask", "--show", "long", text="q\n"
    )
    assert "query 2" in second.output
    assert "query 1" not in second.output


def test_where_labels_stand_is_said_once_for_each_of_them(shell):
    words = ("half.csv", "--null-outcome", "missing", "--label", "ask", "--budget", "2")
    asked = shell(*words, text="p\np\n")
    assert asked.output.count("1 labelled; ") == asked.output.count("2 labelled; ") == 1
    # also where nothing is left to ask
    assert shell(*words).output.count("2 labelled; ") == 1


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ((), "--label cmd needs --command"),
        (("--command", "grade 'it"), "cannot be read"),
        (("--command", " "), "names no program"),
        (("--command", "./no-such-program --fast"), "names no program"),
    ],
)
def test_a_program_is_needed_where_one_is_to_answer(shell, program, message):
    result = shell("full.csv", "--label", "cmd", *program)
    assert isinstance(result.exception, PlanError)
    assert message in str(result.exception)
