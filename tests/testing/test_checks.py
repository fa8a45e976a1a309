"""Worlds are what they say, checks fail what should fail, and cards add up."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from groundfault import Candidate, Evidence, InputError, Plan, PlanError, Screening, finders
from groundfault.core.units import Marks, Units, average_losses
from groundfault.finders.columns import Thresholds
from groundfault.judges import full_sample, janus
from groundfault.judges.rule import compute_p_values, find_duplicates
from groundfault.stats import bits
from groundfault_lab.slicing.interactions import Interactions
from groundfault_lab.testing import Card, PlantedEffect, World, calibrate, check_finder, check_judge
from groundfault_lab.testing.calibration import list_contract_worlds, resolve_plan, run_rule
from groundfault_lab.testing.card import CardRow, Promise, interval, margin
from groundfault_lab.testing.checks import FAST
from groundfault_lab.testing.worlds import Permuted

SMALL = (
    World(units=80, candidates=6),
    World(units=80, candidates=6, effects=(PlantedEffect(2, 0.6, 0.5),)),
)


def on(units):
    return bits.unpack(units.marks.on, len(units))


def losses(units):
    return units.losses / (units.denominator or 1)


# ------------------------------------------------------------------------------------------- worlds


@pytest.mark.parametrize(
    "world",
    [
        *FAST,
        replace(FAST[2], rowwise=True),
        World(units=50, variants=3, gaps=0.3),
        World(variants=4, uneven=0.3),
    ],
)
def test_a_draw_is_what_comes_through_the_front_door(world):
    draw = world.draw(np.random.default_rng(5))
    evidence, library = world.evidence(np.random.default_rng(5))
    read = Units.of(Marks.of(evidence, library), average_losses(evidence))
    assert (len(read), len(library)) == world.size
    np.testing.assert_array_equal(read.marks.on, draw.marks.on)
    assert (read.marks.valid is None) == (draw.marks.valid is None)
    if read.marks.valid is not None:
        np.testing.assert_array_equal(read.marks.valid, draw.marks.valid)
    assert read.denominator == draw.denominator
    np.testing.assert_allclose(read.losses, draw.losses, rtol=1e-12)
    assert (read.scored is None) == (draw.scored is None)
    if read.scored is not None:
        np.testing.assert_array_equal(read.scored, draw.scored)


def test_planted_effects_have_their_size_and_leave_the_rest_alone():
    effects = (PlantedEffect(0, 0.3, 0.3, proxies=2), PlantedEffect(7, -0.2, 0.5))
    world = World(units=200_000, candidates=10, dependence="chains", effects=effects)
    units = world.draw(np.random.default_rng(0))
    assert units.tables.lift[[0, 7]] == pytest.approx([0.3, -0.2], abs=0.01)
    assert on(units).mean(axis=1)[[0, 1, 2, 7]] == pytest.approx([0.3, 0.3, 0.3, 0.5], abs=0.01)
    assert losses(units).mean() == pytest.approx(0.4, abs=0.01)
    np.testing.assert_array_equal(np.flatnonzero(~world.unrelated), [0, 1, 2, 7])
    assert np.all(units.tables.lift[[1, 2]] > 0.1)
    assert np.abs(units.tables.lift[world.unrelated]).max() < 0.01


@pytest.mark.parametrize("kind", ["errors", "grid", "real"])
def test_losses_have_their_rate_and_their_dependence_within_units(kind):
    world = World(
        units=40_000, candidates=1, variants=2, icc=0.6, losses=kind, rowwise=True, rate=0.3
    )
    rows = losses(world.draw(np.random.default_rng(1)))[0].reshape(-1, 2)
    assert rows.mean() == pytest.approx(0.3, abs=0.01)
    shared = 0.6 * 0.3 * 0.7  # the variance of the unit rates
    assert np.cov(rows.T)[0, 1] == pytest.approx(shared, rel=0.05)
    if kind == "errors":
        assert np.corrcoef(rows.T)[0, 1] == pytest.approx(0.6, abs=0.02)


def test_outcomes_of_a_unit_are_dependent():
    two = losses(
        World(units=20_000, candidates=1, outcomes=2, icc=0.5).draw(np.random.default_rng(1))
    )
    assert np.corrcoef(two)[0, 1] == pytest.approx(0.5, abs=0.03)


def test_dependences_are_what_they_are_called():
    def draw(dependence):
        return on(
            World(units=400, candidates=12, dependence=dependence).draw(np.random.default_rng(2))
        )

    assert np.all(draw("tied").sum(axis=1) == 200)
    chains = draw("chains")
    for first in range(0, 12, 4):
        assert np.all(chains[first] <= chains[first + 1])
        assert np.all(chains[first + 1] <= chains[first + 3])
    across = np.corrcoef(chains[[1, 5, 9]])[np.triu_indices(3, 1)]
    assert np.all(across > 0.15)
    assert np.abs(np.corrcoef(draw("independent"))[np.triu_indices(12, 1)]).max() < 0.2
    doubled = World(units=400, candidates=12, dependence="duplicates").draw(
        np.random.default_rng(2)
    )
    np.testing.assert_array_equal(find_duplicates(doubled.marks), np.arange(12) // 3 * 3)
    np.testing.assert_array_equal(on(doubled)[0], ~on(doubled)[2])


@pytest.mark.parametrize(
    "change",
    [
        {"dependence": "clustered"},
        {"losses": "squared"},
        {"units": 0},
        {"effects": (PlantedEffect(33, proxies=1),)},
        {"effects": (PlantedEffect(-1),)},
        {"dependence": "duplicates", "effects": (PlantedEffect(1),)},
    ],
)
def test_worlds_that_cannot_be_are_refused(change):
    with pytest.raises(InputError):
        World(**change)


def test_worlds_of_the_contract_are_told_apart():
    worlds = [
        *list_contract_worlds(),
        *(replace(w, rowwise=True) for w in list_contract_worlds() if w.variants > 1),
    ]
    assert len({(w.name, w.size) for w in worlds}) == len(worlds)
    null = {(w.dependence, *w.size) for w in worlds if not w.effects}
    assert {
        (d, n, k)
        for d in ("independent", "chains")
        for n in (115, 160, 500, 2000)
        for k in (10, 34, 200)
    } <= null
    assert {w.units for w in worlds if w.variants > 1} == {32, 100, 400}


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_permuting_evidence_keeps_candidates_and_the_outcomes_of_a_unit_together(seed):
    units = World(units=30, candidates=3, outcomes=2, gaps=0.2).draw(np.random.default_rng(seed))
    draw = Permuted(units).draw(np.random.default_rng(seed))
    assert draw.marks is units.marks

    def pairs(u):
        return sorted(zip(*u.losses.tolist(), *u.scored.tolist(), strict=True))

    assert pairs(draw) == pairs(units)


# ------------------------------------------------------------------------------- calibration, cards


def test_parallel_equals_serial():
    serial = calibrate("janus", worlds=SMALL, replicates=20, seed=3)
    parallel = calibrate("janus", worlds=SMALL, replicates=20, seed=3, jobs=2)
    assert parallel == serial
    assert [row.replicates for row in serial.rows] == [20, 20]
    assert calibrate("janus", worlds=SMALL, replicates=20, seed=4) != serial


def test_resumed_equals_uninterrupted():
    cards = []

    def interrupted(card):
        cards.append(Card.from_json(card.to_json()))
        if len(cards) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate("bh", worlds=SMALL, replicates=70, progress=interrupted)
    whole = calibrate("bh", worlds=SMALL, replicates=70)
    assert 0 < sum(row.replicates for row in cards[-1].rows) < 140
    assert calibrate("bh", worlds=SMALL, replicates=70, resume=cards[-1]) == whole
    calls = []
    assert (
        calibrate("bh", worlds=SMALL, replicates=70, resume=whole, progress=calls.append) == whole
    )
    assert not calls, "nothing was left to run"
    more = calibrate("bh", worlds=SMALL, replicates=90, resume=whole)
    assert more == calibrate("bh", worlds=SMALL, replicates=90)


def test_a_card_of_something_else_is_not_resumed():
    card = calibrate("holm", worlds=SMALL, replicates=5)
    for other in ({"seed": 1}, {"plan": Plan(alpha=0.2)}, {"level": 0.5}):
        with pytest.raises(PlanError, match="card to resume"):
            calibrate("holm", worlds=SMALL, replicates=5, resume=card, **other)
    with pytest.raises(PlanError, match="card to resume"):
        calibrate("bh", worlds=SMALL, replicates=5, resume=card)


def test_calibrating_on_somebodys_own_evidence():
    evidence, library = World(
        units=120, candidates=9, effects=(PlantedEffect(1, 0.6, 0.5),)
    ).evidence(np.random.default_rng(0))
    like = Units.of(Marks.of(evidence, library), average_losses(evidence))
    card = calibrate("holm", like=like, replicates=100)
    (row,) = card.rows
    assert (row.units, row.candidates, row.replicates, row.null) == (120, 9, 100, True)
    assert card.passed, "what was planted is gone once losses are permuted"
    assert "permuted" in row.world


def test_nothing_to_run_is_an_error():
    with pytest.raises(InputError, match="nothing to run"):
        calibrate("holm", worlds=[], replicates=10)
    with pytest.raises(InputError, match="nothing to run"):
        calibrate("holm", worlds=SMALL, replicates=0)
    with pytest.raises(PlanError, match="no judge"):
        calibrate("nobody")


def test_cards_survive_json_and_refuse_other_text():
    card = calibrate("janus-a", worlds=SMALL, replicates=10)
    assert Card.from_json(card.to_json()) == card
    content = json.loads(card.to_json())
    assert content["passed"] is card.passed
    assert [row["world"] for row in content["rows"]] == [row.world for row in card.rows]
    for text in ("", "[]", '{"groundfault_card": 1}'):
        with pytest.raises(InputError, match="not a groundfault calibration card"):
            Card.from_json(text)


def test_card_as_markdown_says_what_is_promised_and_measured():
    text = calibrate("janus", Plan(permutations=99), worlds=SMALL, replicates=10).to_markdown()
    assert "P(any false confirmation) is at most 0.1." in text
    assert "permutations 99" in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) == 2 + len(SMALL)  # head and rule
    assert len({line.count("|") for line in table}) == 1
    lite = calibrate("janus-lite", worlds=SMALL, replicates=10)
    assert "no guarantee" in lite.to_markdown()
    assert lite.rows[0].bound(lite.promise) is None


def test_rates_are_counted_as_they_are_defined():
    world = World(units=300, candidates=12, effects=(PlantedEffect(0, 0.5, 0.5, proxies=1),))

    @dataclass(frozen=True)
    class Everything(Naive):
        def screen(self, _units, hypotheses, *_):
            return Screening(np.ones(len(hypotheses), dtype=np.bool_))

    (row,) = calibrate(Everything(), worlds=[world], replicates=4).rows
    assert (row.survived, row.erred, row.found, row.planted) == (4, 4, 4, 4)
    assert row.error("family-wise") == 1
    assert row.error("false discovery") == pytest.approx(10 / 12, abs=1e-6)
    assert row.power == 1


def test_intervals_and_margins_are_the_textbook_ones():
    from statsmodels.stats.proportion import proportion_confint

    for hits, n in [(0, 10), (3, 10), (10, 10), (57, 1000)]:
        assert interval(hits / n, n) == pytest.approx(
            proportion_confint(hits, n, method="beta"), abs=1e-12
        )
    assert margin(0.1, 100) == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("promise", "row", "words"),
    [
        (Promise("family-wise", 0.1), {"erred": 19}, ""),
        (Promise("family-wise", 0.1), {"erred": 20}, "rate of false confirmations 0.200"),
        (Promise("false discovery", 0.1), {"erred": 90, "false_share": 9_000_000}, ""),
        (Promise("none", 1.0), {"erred": 90}, ""),
        (Promise("global null", 0.1, 0.13), {"survived": 23}, ""),
        (Promise("global null", 0.1, 0.13), {"survived": 24}, "P(any survivor) 0.240"),
        (
            Promise("global null", 0.1),
            {"erred": 30, "null": False, "planted": 100, "found": 90},
            "",
        ),
        (
            Promise("family-wise", 0.1),
            {"erred": 30, "null": False, "planted": 100, "found": 90},
            "false",
        ),
        (Promise("family-wise", 0.1), {"null": False, "planted": 100, "found": 68}, ""),
        (Promise("family-wise", 0.1), {"null": False, "planted": 100, "found": 67}, "power 0.670"),
    ],
)
def test_what_counts_as_a_broken_promise(promise, row, words):
    card_row = CardRow(
        **{
            "world": "w",
            "units": 1,
            "candidates": 1,
            "null": True,
            "least_power": 0.8,
            "replicates": 100,
        }
        | row
    )
    failures = card_row.failures(promise)
    assert len(failures) == (1 if words else 0)
    assert not words or words in failures[0]


# --------------------------------------------------------------- judges that should not get through


@dataclass(frozen=True)
class Naive:
    """Every p-value by itself."""

    name: str = "naive"
    confirmation: str = "none"
    lift_ranked: bool = False
    distinct: bool = True

    def screen(self, units, hypotheses, plan, rng):
        p = compute_p_values(units, hypotheses, plan, rng)
        return Screening(p <= 0.1, p)


class Mute(Naive):
    def screen(self, units, hypotheses, plan, rng):
        return Screening(super().screen(units, hypotheses, plan, rng).survives[:-1])


class Moody(Naive):
    def screen(self, _units, hypotheses, *_):
        return Screening(np.random.default_rng().random(len(hypotheses)) < 0.5)


class Partial(Naive):
    """Believes the first candidate it is shown."""

    def screen(self, _units, hypotheses, *_):
        return Screening(hypotheses == hypotheses[0])


class OneSided(Naive):
    def screen(self, units, hypotheses, plan, rng):
        screening = super().screen(units, hypotheses, plan, rng)
        return Screening(screening.survives & (units.tables[hypotheses].sign > 0))


class Counting(Naive):
    """Bonferroni by the size of the library, copies counted."""

    def screen(self, units, hypotheses, plan, rng):
        return Screening(
            compute_p_values(units, hypotheses, plan, rng) <= 100 / len(units.marks.on) ** 8
        )


class Credulous(Naive):
    """Confirms whatever has units, as long as nothing varies."""

    def screen(self, units, hypotheses, plan, rng):
        holm = full_sample.FullSample("holm").screen(units, hypotheses, plan, rng)
        return replace(holm, survives=holm.survives | (units.losses.min() == units.losses.max()))


class Asleep(Naive):
    def screen(self, _units, hypotheses, *_):
        return Screening(np.zeros(len(hypotheses), dtype=np.bool_))


class Forgetful(janus.Janus):
    """Janus, but its p-values are not."""

    def screen(self, units, hypotheses, plan, rng):
        return replace(
            super().screen(units, hypotheses, plan, rng), p=np.full(len(hypotheses), 2.0)
        )


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (
            Naive(),
            r"does not keep its promise: independent \(n = 115, L = 34.*rate of false "
            r"confirmations",
        ),
        (Mute(), r"survives of shape \(11,\) on 12 hypotheses"),
        (Moody(), "asked twice with the same seed"),
        (Partial(), "candidates in another order"),
        (OneSided(), "turned into its complement"),
        (Counting(), "copies and complements"),
        (Credulous(), "although every outcome was 0"),
        (Asleep(), "power 0.000"),
        (Forgetful(), "p outside"),
    ],
)
def test_bad_judges_are_caught(judge, words):
    with pytest.raises(AssertionError, match=words):
        check_judge(judge, replicates=20)


def test_a_judge_that_promises_nothing_is_measured_and_not_judged():
    card = check_judge(Naive(), level=1, replicates=20)
    assert card.promise.rate == "none"
    assert card.rows[0].error("none") > 0.5


def test_sampled_decoys_are_not_held_to_the_exact_floor():
    sampled = resolve_plan(janus.JanusA(), Plan(decoys=100))
    assert Promise.of(janus.JanusA(), sampled).rate == "none"
    exact = resolve_plan(janus.JanusA(), Plan(q=0.2))
    assert Promise.of(janus.JanusA(), exact) == Promise(
        "global null", 0.2, survivors=pytest.approx(0.26)
    )


def test_the_rule_on_a_draw_holds_out_what_the_plan_says():
    units = World(units=101, candidates=4).draw(np.random.default_rng(0))
    judge = janus.JanusA()
    plan = resolve_plan(judge, Plan(holdout=0.25, q=0.99))
    ruling = run_rule(judge, plan, units, "x")
    assert ruling.holdout_result is not None
    assert len(ruling.verdicts) == 4


# ---------------------------------------------------------- finders, and those that should not pass


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 200
    frame = pl.DataFrame(
        {
            "id": np.arange(n),
            "error": rng.integers(0, 2, n),
            "words": rng.integers(5, 90, n),
            "score": rng.normal(size=n),
            "lang": rng.choice(["de", "en", "fr"], n),
            "code": [str(i) for i in rng.integers(0, 60, n)],
            "flag": rng.random(n) < 0.4,
            "question": [
                f"What is {a} times {b}?" if a > 4 else f"Add {a}, {b}."
                for a, b in rng.integers(0, 9, (n, 2))
            ],
        }
    )
    return Evidence.from_table(frame, id="id", outcome="error")


@pytest.mark.parametrize("name", ["declared", "thresholds", "categories", "text"])
def test_our_finders_pass(name, table):
    assert len(check_finder(finders.get(name)(), table)) > 0


def test_our_interactions_pass(table):
    bases = (
        Candidate("long", "words > 40"),
        Candidate("german", "lang = 'de'"),
        Candidate("flagged", "flag"),
    )
    assert next(c.name for c in check_finder(Interactions(bases), table)) == "long AND german"


@pytest.mark.parametrize("outcome", ["bool", "real", "empty"])
def test_finders_are_checked_on_any_outcome(outcome, table):
    values = {
        "bool": pl.col("error") == 1,
        "real": pl.col("error") * 0.5,
        "empty": pl.col("error").replace(1, None),
    }
    frame = table.frame.with_columns(values[outcome].alias("error"))
    evidence = Evidence.from_table(frame, id="id", outcome="error", null_outcome="missing")
    assert len(check_finder(Thresholds(), evidence)) > 0


@dataclass
class Proposer:
    rules: tuple[str, ...] = ("words > 40",)
    name: str = "proposer"

    def propose(self, _discovery):
        return [Candidate(f"c{i}", rule) for i, rule in enumerate(self.rules)]


class Remembering(Proposer):
    """Cuts at the largest value it has ever seen."""

    top = 0

    def propose(self, discovery):
        self.top = max(self.top, int(discovery.frame["words"].max()))
        self.rules = (f"words > {self.top}", f"score > {len(self.rules)}")
        return super().propose(discovery)


class Peeking(Proposer):
    def propose(self, discovery):
        return [
            Candidate(
                "bad", f"words > {discovery.frame.filter(discovery.loss == 1)['words'].mean():.3f}"
            )
        ]


class Searching(Peeking):
    uses_outcomes = True


class Random(Proposer):
    def propose(self, _discovery):
        return [Candidate("cut", f"score > {np.random.default_rng().random()}")]


class Repeating(Proposer):
    def propose(self, _discovery):
        return [Candidate("same", "words > 10"), Candidate("same", "words > 20")]


class Reading(Proposer):
    """Reads the file that the evidence came from."""

    def propose(self, discovery):
        frame = (
            pl.read_parquet(discovery.provenance[0]) if discovery.provenance else discovery.frame
        )
        return [Candidate("cut", f"words > {frame['words'].mean():.4f}")]


def test_finders_that_keep_to_the_rules_pass(table):
    assert [c.name for c in check_finder(Proposer(), table)] == ["c0"]
    assert len(check_finder(Searching(), table)) == 1


@pytest.mark.parametrize(
    ("finder", "words"),
    [
        (Remembering(), "after other evidence"),
        (
            lambda whole: Proposer((f"words > {whole.frame['words'].mean():.3f}",)),
            "held-out rows overwritten",
        ),
        (
            lambda whole: Interactions(tuple(Thresholds().propose(whole))),
            "held-out rows overwritten",
        ),
        (Peeking(), "with other outcomes"),
        (Random(), "asked again"),
        (Repeating(), "more than one candidate: same"),
        (Proposer(("error = 1",)), "reads what it must not: error"),
        (Proposer(()), "proposed nothing"),
        (Proposer(("wrods > 3",)), "does not apply to rows it has not seen: .*wrods"),
    ],
)
def test_bad_finders_are_caught(finder, words, table):
    with pytest.raises(AssertionError, match=words):
        check_finder(finder, table)


def test_a_rule_that_breaks_on_unseen_rows_is_caught(table):
    is_discovery = Plan().discovery_units(table)
    frame = table.frame.with_columns(
        pl.when(pl.Series(is_discovery)).then("code").otherwise(pl.lit("n/a")).alias("code")
    )
    with pytest.raises(AssertionError, match="does not apply to rows it has not seen"):
        check_finder(Proposer(("CAST(code AS INT) > 30",)), replace(table, frame=frame))


def test_a_finder_that_reads_the_file_behind_the_evidence_is_caught(table, tmp_path):
    path = tmp_path / "table.parquet"
    table.frame.write_parquet(path)
    evidence = Evidence.from_table(path, id="id", outcome="error")
    assert evidence.provenance[0] == str(path)
    with pytest.raises(AssertionError, match="held-out rows overwritten"):
        check_finder(Reading(), evidence)
