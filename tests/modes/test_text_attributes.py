"""Conditions read off texts: they say what their rules say, and describe what is there."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import groundfault
from groundfault import Evidence
from groundfault.core.rules import Rule
from groundfault.modes.lexicon import detect_languages
from groundfault.modes.text_attributes import (
    TextCondition,
    _find_patterns,
    _find_words,
    read_text_conditions,
)
from groundfault.modes.text_conditions import match_words
from groundfault.modes.text_shapes import draft_shapes

HOLES = Path(__file__).parents[3] / "shared/data/real/known_holes"
GSM8K = Path(__file__).parents[3] / "shared/data/real/gsm8k_openai/examples.parquet"

SENTENCES = {
    "English": "How many {} are in the box of Mr {}, and which are theirs?",
    "German": "Wie viele {} sind in der Kiste von Herrn {}, und welche nicht?",
    "Spanish": "¿Cuántas {} hay en la caja del señor {} y cuáles son suyas?",
    "French": "Combien de {} sont dans la boîte de M. {}, et lesquelles ne le sont pas ?",
    "Italian": "Quante {} sono nella scatola del signor {} e quali non lo sono?",
    "Portuguese": "Quantas {} estão na caixa do senhor {}, e quais não são dele?",
    "Dutch": "Hoeveel {} zijn er in de doos van meneer {}, en welke niet?",
}


def by_meaning(values: list[str | None]) -> dict[str, TextCondition]:
    literals = read_text_conditions(pl.Series("q", values, dtype=pl.String))
    return {one.meaning: one for one in literals}


def evaluate(rule: str, text: pl.Series) -> list[bool]:
    expression = Rule.parse(rule).to_polars().fill_null(False)
    return text.to_frame().select(expression.alias("on"))["on"].to_list()


def assert_rules_agree(text: pl.Series) -> int:
    literals = read_text_conditions(text)
    for one in literals:
        assert one.on.tolist() == evaluate(one.rule, text), one.rule
        assert not one.on[text.is_null().to_numpy()].any(), one.rule
    return len(literals)


@pytest.fixture(scope="module")
def coins() -> pl.Series:
    """Filled-in forms in two languages, some with a request before, some in capitals."""
    rng = np.random.default_rng(0)
    names = ["Kim", "Leo", "Ann", "Bob", "Eve", "Gus", "Zoe", "Max"]
    forms = [
        "{n} has {a} coins and finds {b} more. How many coins now?",
        "{n} hat {a} Muenzen und findet {b} dazu. Wie viele sind es?",
        "What is {a} plus {b}?",
        "Was ist {a} plus {b}?",
        "Whose turn is it after {n}?",
        "Which day was it {a} days ago?",
        "Spell the name {n} backwards.",
    ]
    texts = []
    for _ in range(900):
        a, b = rng.integers(2, 99, 2)
        text = rng.choice(forms).format(n=rng.choice(names), a=a, b=b)
        if rng.random() < 0.3:
            text = f"Please think first. {text}"
        texts.append(text.upper() if rng.random() < 0.1 else text)
    return pl.Series('it\'s a "prompt"', texts)


def test_short_lengths_read_as_english() -> None:
    meanings = by_meaning(["", "a", "b c", "c d e f", "gg hhhhh"] * 40)
    assert {"q is empty", "q has more than 1 character", "q has more than 3 characters"} <= set(
        meanings
    )
    assert "q has at most 1 word" in by_meaning(["abcdefgh", "a b", "a", "c d e"] * 40)


def test_rules_say_what_was_read_off(coins: pl.Series) -> None:
    with_nulls = pl.concat([coins, pl.Series(coins.name, [None] * 20, dtype=pl.String)])
    assert assert_rules_agree(with_nulls) > 60


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.text(max_size=30),
            st.text("aZñÜßſKİ{}()[]'\"\\`$%.,!?:;- \n07x", max_size=40),
        ),
        min_size=10,
        max_size=16,
    )
)
def test_rules_say_what_was_read_off_any_text(values: list[str | None]) -> None:
    # twice the rows, so that more conditions hold for enough of them
    assert_rules_agree(pl.Series("t", values * 2, dtype=pl.String))


def test_nothing_is_said_of_few_or_missing_texts() -> None:
    assert read_text_conditions(pl.Series("q", [], dtype=pl.String)) == []
    assert read_text_conditions(pl.Series("q", [None] * 50, dtype=pl.String)) == []
    assert read_text_conditions(pl.Series("q", ["a b", "c d e"] * 7)) == []
    assert read_text_conditions(pl.Series("q", ["always the same"] * 50)) == []


def test_the_same_texts_give_the_same_conditions(coins: pl.Series) -> None:
    first, second = read_text_conditions(coins), read_text_conditions(coins)
    assert [one.rule for one in first] == [one.rule for one in second]
    extents = [one.on.tobytes() for one in first if one.value is None]
    assert len(extents) == len(set(extents))


def test_categories_are_read_as_texts() -> None:
    values = ["PLEASE ADD 3 AND 4"] * 20 + ["please add 5 and 6"] * 20
    (one,) = [
        one
        for one in read_text_conditions(pl.Series("q", values, dtype=pl.Categorical))
        if one.meaning == "q is all in capitals"
    ]
    assert one.on.tolist() == [True] * 20 + [False] * 20


def test_languages_of_a_column_are_told() -> None:
    rng = np.random.default_rng(1)
    truth = rng.choice(list(SENTENCES), 700)
    fillings = rng.choice(["kola", "bimu", "tarel", "sopi", "munde"], (700, 2))
    texts = [SENTENCES[one].format(*pair) for one, pair in zip(truth, fillings, strict=True)]
    meanings = by_meaning(texts)
    for name in SENTENCES:
        assert np.array_equal(meanings[f"q is in {name}"].on, truth == name)


def test_one_language_is_no_condition() -> None:
    texts = [SENTENCES["Dutch"].format(i, i % 7) for i in range(200)]
    assert not any(" is in " in meaning for meaning in by_meaning(texts))


def test_numbers_are_told_by_how_they_are_written() -> None:
    texts = [f"Add {a} to {b}, please" for a, b in zip(range(10, 40), range(300, 330), strict=True)]
    texts += ["Add twelve or 5 to 6, please"] * 10 + ["Add it to all, please"] * 10
    texts += ["Add 1.5 to 7, please"] * 10
    meanings = by_meaning(texts)
    spelled = np.char.find(texts, "twelve") >= 0
    assert np.array_equal(meanings["q has a spelled-out number"].on, spelled)
    assert meanings["q has a number of 2 or more digits"].on.sum() == 30
    assert meanings["q has no digits"].on.sum() == 10
    assert meanings["q has a decimal point"].on.sum() == 10
    # 1.5 is one number
    assert "q has 3 or more numbers" not in meanings


def test_a_number_word_of_another_language_does_not_count() -> None:
    english = [f"Once upon a time there were {i} bears in the woods" for i in range(40)]
    spanish = [f"¿Cuánto es once más {i} si se suman los dos?" for i in range(40)]
    twelve = ["Twelve bears were in the woods", "All the bears were in the woods"] * 10
    only_english = by_meaning([*english, *twelve])
    assert only_english["q has a spelled-out number"].on.sum() == 10
    both = by_meaning([*english, *spanish, *twelve])
    assert both["q has a spelled-out number"].on.sum() == 50


def test_case_negation_and_time_are_told(coins: pl.Series) -> None:
    meanings = {one.meaning.removeprefix(coins.name): one for one in read_text_conditions(coins)}
    capitals = np.array([text == text.upper() for text in coins])
    assert np.array_equal(meanings[" is all in capitals"].on, capitals)
    ago = coins.str.to_lowercase().str.contains("ago").to_numpy()
    # the form is said first, and holds for the same texts
    assert any(np.array_equal(one.on, ago) for one in meanings.values())
    questions = ["Which is not a fruit, apple or stone?", "Which is a fruit, apple or stone?"]
    negation = by_meaning(questions * 20)["q has a negation"]
    assert negation.on.tolist() == [True, False] * 20


def test_texts_that_nearly_all_share_something_are_not_described_by_it() -> None:
    texts = [f"Is {i} even?" for i in range(200)]
    assert "q has a question mark" not in by_meaning(texts)


def test_natural_texts_get_topics_and_phrases() -> None:
    if not GSM8K.exists():
        pytest.skip("needs ../shared/data/real/gsm8k_openai")
    literals = read_text_conditions(pl.read_parquet(GSM8K)["question"])
    meanings = [one.meaning for one in literals]
    assert any(meaning.startswith("question is about ") for meaning in meanings)
    assert 'question has "miles per hour"' in meanings
    assert sum(one.family == "question template" for one in literals) <= 3
    assert len(literals) < 500


def test_holes_of_real_models_can_be_said_from_the_prompt_alone() -> None:
    """Of thirteen, nine are one or two conditions that no outcome was needed for."""
    if not HOLES.exists():
        pytest.skip("needs ../shared/data/real/known_holes")
    examples = pl.read_parquet(HOLES / "examples.parquet")
    inside = pl.read_parquet(HOLES / "inside.parquet")
    sample = np.random.default_rng(0).permutation(len(examples))[:2000]
    literals = read_text_conditions(examples["prompt"][sample])
    on = np.array([one.on for one in literals], dtype=np.float32)
    pairs = on @ on.T
    said = 0
    for name in inside.columns[1:]:
        hole = inside[name].to_numpy()[sample].astype(np.float32)
        both = (on * hole) @ on.T
        said += (both / np.maximum(pairs + hole.sum() - both, 1)).max() >= 0.8
    assert said >= 9


def test_runs_of_marks_are_told() -> None:
    rng = np.random.default_rng(0)
    words = rng.choice("apple bread cloud river stone green house light".split(), (200, 6))
    marked = rng.random(200) < 0.3
    words[marked, 3] = ">>>"
    words[~marked, 3] = rng.choice(["and", "("], (~marked).sum())
    texts = [" ".join(row) for row in words]
    conditions = read_text_conditions(pl.Series("text", texts))
    (one,) = [one for one in conditions if one.meaning == 'text has ">>>"']
    assert one.on.tolist() == marked.tolist()


def test_texts_without_spaces_are_read_by_pairs_of_characters_and_marks() -> None:
    rng = np.random.default_rng(0)
    parts = ["请问我想", "查询订单", "今天天气", "我的账户", "修改地址", "支付失败", "什么时候"]
    asked = ["".join(rng.choice(parts, int(rng.integers(1, 6)))) + str(i) for i in range(800)]
    refund = rng.random(800) < 0.3
    prompts = [f"{one}退还" if odd else one for one, odd in zip(asked, refund, strict=True)]
    plus = rng.random(800) < 0.15
    names = [f"{'jo' if i % 3 else 'an'}{i}" for i in range(800)]
    mails = [f"{a}{'+x' if p else ''}@mail.com" for a, p in zip(names, plus, strict=True)]
    for column, values, on, meaning in (
        ("prompt", prompts, refund, 'prompt has "退还"'),
        ("mail", mails, plus, "mail has a plus sign"),
    ):
        error = (rng.random(800) < np.where(on, 0.7, 0.1)).astype(int)
        table = pl.DataFrame({"id": range(800), column: values, "error": error})
        evidence = Evidence.from_table(table, id="id", outcome="error")
        report = groundfault.audit(evidence, ledger=None)
        assert report.modes[0].meaning == meaning


@given(
    st.lists(st.text("aKk bſsKİiıéÉßẞσςΣ日_'1", max_size=8), min_size=1, max_size=12),
    st.lists(st.text("akbsiéßσ日_1", min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_words_in_a_list_are_those_that_a_regular_expression_finds(
    texts: list[str], words: list[str]
) -> None:
    text = pl.Series("text", [*texts, None], dtype=pl.String)
    tests = [match_words([word]).terms[0] for word in words]
    found = _find_words(tests, text)
    for test in tests:
        expected = text.to_frame().select(test.expression.fill_null(False).alias("on"))["on"]
        assert found.get(test.sql, expected.to_numpy()).tolist() == expected.to_list()


def test_words_are_looked_up_once_unless_case_has_three_letters() -> None:
    tests = [match_words(["box"]).terms[0], match_words(["mr", "it's"]).terms[0]]
    assert list(_find_words(tests, pl.Series(["Mr Box", None]))) == [tests[0].sql]
    assert _find_words(tests, pl.Series(["Miſs Box"])) == {}


def test_texts_that_are_not_searched_fail_the_rule() -> None:
    parts = ["w ", ". ", "?", "W", "-1", "'w", "*", "< ", "\n"]
    texts = ["".join(some) for some in product(parts, repeat=3)]
    text = pl.Series("text", ["", *texts, None, "w. Then w!", "so 2 ÷ w ^ 3 ×w", "wЖ漢"])
    drafts = list(draft_shapes(text.drop_nulls(), detect_languages([{"w"}])))
    tests = {term.sql: term for draft in drafts for term in draft.condition.terms}
    assert sum(bool(test.needs) for test in tests.values()) == 24
    assert sum(test.expression.meta.root_names() == ["last"] for test in tests.values()) >= 2
    for sql, found in _find_patterns(tests.values(), text).items():
        assert found.tolist() == evaluate(sql.replace("{}", "text"), text), sql
