"""Examples of modes are typical and different, on the right side, and always the same."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault import Evidence
from groundfault.core.units import average_losses
from groundfault.errors import InputError
from groundfault.modes.examples import (
    LONGEST,
    add_examples,
    find_failures,
    find_text_columns,
    split_conditions,
)
from groundfault.modes.mode import Mode

RULE = "task = 'add' AND n >= 2"


def make_mode(rule: str = RULE, outcome: str = "") -> Mode:
    return Mode(
        rule=rule,
        meaning=rule,
        conditions=tuple(rule.split(" AND ")),
        outcome=outcome,
        n=10,
        errors=9,
        n_outside=90,
        errors_outside=9,
        n_new=10,
        errors_new=9,
        interval=(0.6, 0.98),
        p_marginal=0.001,
        p_conditional=0.001,
    )


def sums(rows: int = 120) -> pl.DataFrame:
    """Prompts of two kinds and two wordings; sums of two digits fail, but for every tenth."""
    kinds = [("add", "plus"), ("subtract", "minus")]
    table = []
    for i in range(rows):
        task, word = kinds[i % 2]
        n = 1 + i // 2 % 3
        ask = f"what is {i} {word} {n}?" if i // 4 % 2 else f"please say {word} of {i} and {n}"
        wrong = task == "add" and n >= 2 and i % 10 != 4
        table.append((f"e{i:03}", ask, task, n, "?" if wrong else "!", "!", int(wrong)))
    names = ["id", "prompt", "task", "n", "answer", "target", "error"]
    return pl.DataFrame(table, schema=names, orient="row")


def evidence_of(table: pl.DataFrame, **roles: str) -> Evidence:
    return Evidence.from_table(table, outcome="error", id="id", **roles)


def add_to(mode: Mode, evidence: Evidence, **settings: object) -> Mode:
    losses = average_losses(evidence)
    table = evidence.frame.unique("id", keep="first", maintain_order=True).sort("id")
    (result,) = add_examples([mode], table, evidence, losses, outcomes=evidence.models, **settings)
    return result


def test_every_example_is_on_its_side() -> None:
    table = sums()
    mode = add_to(make_mode(), evidence_of(table))
    rows = {row["id"]: row for row in table.iter_rows(named=True)}
    sides = {side: mode.examples(side) for side in ("failing", "passing", "near")}
    assert {side: len(examples) for side, examples in sides.items()} == {
        "failing": 5,
        "passing": 5,
        "near": 5,
    }
    for side, examples in sides.items():
        for example in examples:
            row = rows[example.id]
            conditions = (row["task"] == "add") + (row["n"] >= 2)
            assert conditions == (1 if side == "near" else 2)
            assert example.loss == row["error"]
            assert side == "near" or row["error"] == (side == "failing")
            assert example.texts == {k: row[k] for k in ("prompt", "answer", "target")}


def test_failing_examples_are_typical_and_different() -> None:
    """Nine of ten are alike and one is odd: the first is one of the nine, the odd one comes too."""
    texts = [f"the sum of {i} and {i + 1}" for i in range(90)]
    texts += [f"wie viel sind {i} und {i}" for i in range(10)]
    table = pl.DataFrame(
        {"id": [f"e{i:02}" for i in range(100)], "prompt": texts, "error": [1] * 100}
    ).with_columns(on=pl.lit(True))
    mode = add_to(make_mode('"on"'), evidence_of(table))
    first, *others = mode.examples()
    assert first.texts["prompt"].startswith("the sum")
    assert any(other.texts["prompt"].startswith("wie viel") for other in others)


def test_near_ones_are_the_twins_of_the_failing_ones() -> None:
    mode = add_to(make_mode(), evidence_of(sums()))
    for failing, near in zip(mode.examples("failing"), mode.examples("near"), strict=True):
        start = failing.texts["prompt"].split()[0]
        assert near.texts["prompt"].split()[0] == start


def test_the_choice_does_not_depend_on_the_order_of_rows() -> None:
    table = sums()
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=3)
    assert add_to(make_mode(), evidence_of(table)) == add_to(make_mode(), evidence_of(shuffled))


def test_of_many_units_a_sample_is_read_that_is_always_the_same() -> None:
    evidence = evidence_of(sums(6000))
    assert add_to(make_mode(), evidence) == add_to(make_mode(), evidence)
    assert len(add_to(make_mode(), evidence, count=50).examples("failing", 50)) == 50


def test_texts_can_be_left_out_and_ids_stay() -> None:
    evidence = evidence_of(sums())
    with_texts, without = (add_to(make_mode(), evidence, texts=on) for on in (True, False))
    assert [e.id for e in with_texts.sample] == [e.id for e in without.sample]
    assert all(not e.texts for e in without.sample)


def test_long_texts_are_cut() -> None:
    table = sums().with_columns(prompt=pl.col("prompt") + " x" * LONGEST)
    mode = add_to(make_mode(), evidence_of(table))
    assert {len(e.texts["prompt"]) for e in mode.sample} == {LONGEST}


def test_each_model_shows_its_own_answers() -> None:
    table = pl.concat(
        sums().with_columns(model=pl.lit(name), answer=pl.lit(name)) for name in ("ada", "bert")
    )
    evidence = evidence_of(table, model="model")
    for name in ("ada", "bert"):
        mode = add_to(make_mode(outcome=name), evidence)
        assert {e.texts["answer"] for e in mode.sample} == {name}
    shared = add_to(make_mode(outcome="every model"), evidence)
    assert {"model", "answer"} <= set(shared.examples()[0].texts)
    assert len({e.id for e in shared.examples()}) == 5


def test_units_that_were_not_scored_are_no_examples() -> None:
    evidence = evidence_of(sums())
    losses = average_losses(evidence)
    losses[0, ::2] = np.nan
    (mode,) = add_examples([make_mode("n >= 1")], evidence.frame, evidence, losses)
    assert {int(e.id[1:]) % 2 for e in mode.sample} == {1}


def test_graded_losses_count_as_failing_where_they_are_worse_than_the_mean() -> None:
    table = sums().with_columns(error=pl.col("error") * 0.4)
    mode = add_to(make_mode(), evidence_of(table))
    assert {e.loss for e in mode.examples("failing")} == {0.4}
    assert {e.loss for e in mode.examples("passing")} == {0.0}


def test_a_group_is_shown_by_its_worst_row() -> None:
    table = sums().with_columns(group=pl.lit("g") + (pl.int_range(120) // 12).cast(pl.String))
    table = table.with_columns(task=pl.lit("add"), n=2)
    evidence = evidence_of(table, group="group")
    units = pl.DataFrame({"task": ["add"] * 10, "n": [2] * 10})
    (mode,) = add_examples([make_mode()], units, evidence, np.ones((1, 10)))
    failed = set(table.filter(pl.col("error") == 1)["id"])
    assert {e.id for e in mode.examples()} <= failed


def test_a_rule_of_other_columns_has_no_examples() -> None:
    assert add_to(make_mode("other = 1"), evidence_of(sums())).sample == ()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"n": 1, "prompt": "a", "answer": 3, "target": 4}, ("prompt", "answer", "target")),
        ({"user_prompt": "a", "model_answer": "b"}, ("user_prompt", "model_answer")),
        ({"story": "once upon a time", "lang": "de"}, ("story",)),
        ({"answer_tokens": 3, "n_targets": 2}, ()),
        ({"expected": [1, 2], "question": "why"}, ("question",)),
    ],
)
def test_text_columns_are_known_by_their_names_and_by_prose(
    columns: dict[str, object], expected: tuple[str, ...]
) -> None:
    rows = [{k: f"{v} {i}" if k == "story" else v for k, v in columns.items()} for i in range(4)]
    table = pl.DataFrame(rows).with_columns(error=pl.Series([0, 1, 0, 1]))
    assert find_text_columns(Evidence.from_table(table, outcome="error")) == expected


def test_many_columns_of_prose_leave_room_for_answer_and_target() -> None:
    prose = {f"text{i}": ["a few words", "other words", "third words"] for i in range(9)}
    table = pl.DataFrame({**prose, "answer": ["a"] * 3, "target": ["b"] * 3, "error": [0, 1, 0]})
    columns = find_text_columns(Evidence.from_table(table, outcome="error"))
    assert columns == ("text0", "text1", "text2", "text3", "answer", "target")


def test_conditions_are_what_and_joins() -> None:
    rule = "(a = 1 AND b BETWEEN 2 AND 3) AND (c = 'x AND y' OR d IN (1, 2))"
    assert split_conditions(rule) == (
        '"a" = 1',
        '"b" BETWEEN 2 AND 3',
        '"c" = \'x AND y\' OR "d" IN (1, 2)',
    )


def test_examples_of_a_real_hole(shared: Path) -> None:
    """A model that never saw sums in words: what it fails and, near it, sums in digits."""
    place = shared / "real" / "known_holes"
    outcomes = pl.read_parquet(place / "outcomes.parquet").filter(model="number_words#1")
    table = pl.read_parquet(place / "examples.parquet").join(
        outcomes.drop("model"), on="example_id"
    )
    evidence = Evidence.from_table(
        table[:2000], outcome="correct", id="example_id", positive_is_good=True
    )
    rule = "number_style = 'words' AND task = 'add'"
    losses = average_losses(evidence)
    (mode,) = add_examples([make_mode(rule)], evidence.frame, evidence, losses)
    assert len(mode.examples()) == 5
    for failing in mode.examples():
        assert failing.texts["answer"] != failing.texts["target"]
    assert len({e.texts["prompt"].split()[0] for e in mode.examples()}) > 1


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("\"path.level 1\" = 'facts'", [True, False, False]),
        ('"when.hour" >= 12', [False, True, False]),
        ('"tags.has b"', [True, False, False]),
        ("\"meta.when.weekday\" = 'Friday'", [True, False, True]),
    ],
)
def test_a_mode_holds_for_tables_whose_columns_are_still_whole(
    rule: str, expected: list[bool]
) -> None:
    table = pl.DataFrame(
        {
            "path": ["facts/place/river", "sums/two", "sums/three"],
            "when": ["2026-05-01 10:00", "2026-05-02 13:30", "2026-05-03 09:00"],
            "tags": [["a", "b"], ["a"], []],
            "meta": [{"when": date(2026, 5, day)} for day in (1, 2, 8)],
        }
    )
    mode = make_mode(rule)
    assert mode.holds(table).to_list() == expected
    assert mode.holds(table.to_arrow()).to_list() == expected
    with pytest.raises(InputError, match="does not have"):
        mode.holds(table.select(other="when"))


def test_losses_of_one_size_are_failures_and_no_loss_is_none() -> None:
    inside = np.array([True, True, False])
    assert find_failures(np.array([0.3, 0.3, 0.0]), inside).tolist() == [True, True, False]
    assert not find_failures(np.zeros(3), inside).any()


def test_without_texts_the_columns_of_the_rule_are_shown_first() -> None:
    table = pl.DataFrame(
        {
            "id": [f"e{i}" for i in range(40)],
            **{f"x{i}": [f"v{(j + i) % 3}" for j in range(40)] for i in range(5)},
            "lang": ["de", "fr"] * 20,
            "error": [1, 0] * 20,
        }
    )
    evidence, columns = evidence_of(table), table.drop("id", "error")
    losses = average_losses(evidence)
    (mode,) = add_examples([make_mode("lang = 'de'")], columns, evidence, losses)
    assert [*mode.sample[0].texts] == ["lang", "x0", "x1"]
