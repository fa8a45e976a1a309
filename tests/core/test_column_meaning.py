"""What names of columns say: the direction of an outcome, and what is about the answer."""

from __future__ import annotations

import polars as pl
import pytest

from groundfault import Evidence, Pool
from groundfault.core.column_meaning import (
    describes_answer,
    holds_answer,
    means_pass,
    names_outcome,
    split_words,
    tell_rows_apart,
)
from groundfault.errors import InputError

CLEAR = "correct isCorrect is_correct passed pass_rate accuracy Success resolved model_solved"
ASKED = "score exact_match reward attack_success correct_answer toxicity_score"
GOOD = f"{CLEAR} {ASKED}"
BAD = "error errors is_error failed loss wrong incorrect n_mistakes failure_rate mismatch"
NEITHER = "value outcome y not_passed accuracy_loss label result excess lang"


@pytest.mark.parametrize(
    ("names", "answer"), [(GOOD, True), (BAD, False), (NEITHER, None)], ids=["pass", "fail", "mute"]
)
def test_a_name_says_what_a_one_means_or_nothing(names: str, answer: bool | None) -> None:
    assert {name: means_pass(name) for name in names.split()} == dict.fromkeys(
        names.split(), answer
    )


def table(column: str) -> pl.DataFrame:
    return pl.DataFrame({"id": ["a", "b", "c"], column: [0, 1, 1]})


@pytest.mark.parametrize("column", CLEAR.split())
@pytest.mark.parametrize("values", [[0, 1, 1], [False, True, True], ["no", "yes", "yes"]])
@pytest.mark.filterwarnings("ignore:outcome")
def test_a_clear_name_of_a_pass_gives_the_direction(
    column: str, values: list[int] | list[bool] | list[str]
) -> None:
    told = pl.DataFrame({"id": ["a", "b", "c"], column: values})
    evidence = Evidence.from_table(told, outcome=column, id="id")
    assert evidence.loss.to_list() == [1, 0, 0]
    assert evidence.roles.positive_is_good
    assert "as a pass" in evidence.grading or "1 is a pass" in evidence.grading
    upside_down = Evidence.from_table(told, outcome=column, id="id", positive_is_good=False)
    assert upside_down.loss.to_list() == [0, 1, 1]


@pytest.mark.parametrize("column", ASKED.split())
def test_an_outcome_named_like_a_pass_needs_a_direction(column: str) -> None:
    with pytest.raises(InputError) as caught:
        Evidence.from_table(table(column), outcome=column, id="id")
    # one line, with both calls in it
    for call in ("positive_is_good=True", "positive_is_good=False"):
        assert f"outcome={column!r}, {call}" in str(caught.value)
    assert "\n" not in str(caught.value)
    losses = {
        good: Evidence.from_table(table(column), outcome=column, id="id", positive_is_good=good)
        for good in (True, False)
    }
    assert losses[True].loss.to_list() == [1, 0, 0]
    assert losses[False].loss.to_list() == [0, 1, 1]


@pytest.mark.parametrize("column", [*BAD.split(), *NEITHER.split()])
def test_other_outcomes_are_failures_where_they_are_1(column: str) -> None:
    assert Evidence.from_table(table(column), outcome=column, id="id").loss.to_list() == [0, 1, 1]


def test_scores_named_like_a_failure_need_a_direction() -> None:
    with pytest.raises(InputError, match=r"scores='error', positive_is_good=True .*=False"):
        Pool.from_table(table("error"), id="id", scores="error")
    for good, scores in ((True, [0, 1, 1]), (False, [1, 0, 0])):
        pool = Pool.from_table(table("error"), id="id", scores="error", positive_is_good=good)
        assert pool.recorded is not None
        assert pool.recorded.tolist() == scores
    for column in ("score", "passed", "value"):
        pool = Pool.from_table(table(column), id="id", scores=column)
        assert pool.recorded is not None
        assert pool.recorded.tolist() == [0, 1, 1]


def test_words_of_a_name() -> None:
    assert split_words("judgeScore-2 (raw)") == ("judge", "score", "2", "raw")
    assert split_words("__") == ()
    assert not names_outcome("__")
    assert not holds_answer("__")


@pytest.mark.parametrize(
    "column", "judge_score passed is_correct feedback grader_feedback final_accuracy wrong".split()
)
def test_names_that_say_how_an_answer_was_scored(column: str) -> None:
    assert names_outcome(column)


@pytest.mark.parametrize(
    "column",
    "error_in_prompt question topic loss_function_topic score_of_game n_words is_a".split(),
)
def test_names_that_do_not(column: str) -> None:
    assert not names_outcome(column)


@pytest.mark.parametrize(
    "column",
    "model_answer prediction y_pred response response_chars answerLength n_turns output_tokens "
    "latency_ms finish_reason is_parsed tool_calls".split(),
)
def test_names_about_the_answer(column: str) -> None:
    assert describes_answer(column)


@pytest.mark.parametrize(
    "column", "gold_answer correct_answer question prompt_chars turns_in_story n_words".split()
)
def test_names_about_the_example(column: str) -> None:
    assert not describes_answer(column)


def test_rows_of_one_key_are_told_apart_by_the_column_that_does() -> None:
    answers = {"id": ["a", "a", "b", "b"], "topic": ["x", "y", "z", "x"]}
    say = [
        tell_rows_apart(pl.DataFrame({**answers, name: values}), ["id"])
        for name, values in (
            ("epoch", [0, 1, 0, 1]),
            ("model_name", ["m", "n", "n", "m"]),
            ("epoch", [0, 0, 0, 1]),
        )
    ]
    assert say[0] == "the column 'epoch' tells them apart: add --repeat epoch"
    assert say[1] == "the column 'model_name' tells them apart: add --model-column model_name"
    # topic would do by chance, and is named like neither
    assert "name the column of the models" in say[2]
