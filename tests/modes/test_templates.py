"""Templates: forms that texts are filled in to, and sentences that come and go."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.modes.template_rules import draft_templates
from groundfault.modes.templates import NUMBER, SLOT, find_templates
from groundfault.modes.text_conditions import Draft

NAMES = ["kim", "leo", "ann", "bob", "eve", "gus", "zoe", "max", "ned", "pam"]


def fill(forms: list[str], n: int, seed: int = 0) -> tuple[list[str], list[int]]:
    """Texts of forms, and the place of the form of each."""
    rng = np.random.default_rng(seed)
    places = rng.integers(len(forms), size=n).tolist()
    names = rng.choice(NAMES, (n, 2))
    numbers = rng.integers(1, 99, (n, 2))
    texts = [
        forms[i].format(*pair, a=a, b=b)
        for i, pair, (a, b) in zip(places, names, numbers.tolist(), strict=True)
    ]
    return texts, places


def test_slots_are_where_many_words_compete() -> None:
    texts, _ = fill(["{} is the parent of {}.", "Who is the friend of {}?"], 400)
    templates = find_templates(texts)
    assert set(templates.labels) == {
        frozenset([(SLOT, "is", "the", "parent", "of", SLOT)]),
        frozenset([("who", "is", "the", "friend", "of", SLOT)]),
    }


def test_few_alternatives_are_different_templates() -> None:
    texts, places = fill(["What is {a} plus {b}?", "What is {a} minus {b}?"], 200)
    templates = find_templates(texts)
    plus = frozenset([("what", "is", NUMBER, "plus", NUMBER)])
    assert [label == plus for label in templates.labels] == [i == 0 for i in places]


def test_number_words_are_numbers_where_named() -> None:
    texts = ["What is four plus 3?", "What is 5 plus nine?"] * 20
    (label,) = set(find_templates(texts, {"four", "nine"}).labels)
    assert label == frozenset([("what", "is", NUMBER, "plus", NUMBER)])


def test_a_point_within_a_number_ends_no_sentence() -> None:
    texts = [f"Take 3.{i} away from 12:30 today" for i in range(30)]
    (label,) = set(find_templates(texts).labels)
    assert label == frozenset([("take", NUMBER, "away", "from", NUMBER, "today")])


FORMS = [
    "Spell {} backwards.",
    "How many are {a} and {b}?",
    "Which letter of {} is number {a}?",
    "Whose code is {}?",
    "Today it is {a} o'clock. When will it be {b}?",
    "Name a friend of {}.",
    "Is {a} even?",
]


def test_stock_sentences_come_and_go() -> None:
    rng = np.random.default_rng(3)
    texts, places = fill(FORMS, 1500)
    asides = rng.choice(["My aunt likes tea. ", "It is raining now. "], len(texts))
    polite = rng.random(len(texts)) < 0.3
    aside = rng.random(len(texts)) < 0.3
    texts = [
        ("Please answer. " if p else "") + (words if a else "") + text
        for text, words, p, a in zip(texts, asides, polite, aside, strict=True)
    ]
    templates = find_templates(texts)
    assert templates.stock == {
        ("please", "answer"): 0,
        ("my", "aunt", "likes", "tea"): 1,
        ("it", "is", "raining", "now"): 1,
    }
    # what belongs to its template is no stock sentence, and labels are the forms
    assert len(set(zip(places, templates.labels, strict=True))) == len(FORMS)
    (group,) = [
        draft
        for draft in draft_templates(pl.Series(texts), templates)
        if "it is raining now" in draft.meaning and "my aunt likes tea" in draft.meaning
    ]
    assert group.family == "stock sentence"
    assert np.array_equal(holds(group, texts), aside)


def holds(draft: Draft, texts: list[str]) -> NDArray[np.bool_]:
    frame = pl.DataFrame({"text": texts})
    on = np.ones(len(texts), bool)
    for term in draft.condition.terms:
        on &= frame.select(term.expression).to_series().to_numpy() == term.holds
    return on


def test_each_template_has_a_rule_for_its_texts_alone() -> None:
    forms = [
        "Which letter of {} is number {a}?",
        "Which letter of {} is number {a} from the end?",
        "name={} code={a}; name={} code={b}. Code of {}?",
        "{}: {a}, {}: {b}. Code of {}?",
        "How many {} are in {}?",
        "How many days are in {a} weeks?",
    ]
    forms = [form.replace("{}", "{0}", 1).replace("{}", "{1}") for form in forms]
    texts, places = fill(forms, 1200)
    drafts = [
        draft
        for draft in draft_templates(pl.Series(texts), find_templates(texts))
        if draft.family == "template"
    ]
    for i in range(len(forms)):
        truth = np.array(places) == i
        assert any(np.array_equal(holds(draft, texts), truth) for draft in drafts), forms[i]


def test_translations_are_one_form() -> None:
    forms = [
        "{0} has {a} coins and finds {b} more. How many coins now?",
        "{0} hat {a} Muenzen und findet {b} dazu. Wie viele sind es?",
        "What is {a} plus {b}?",
        "Was ist {a} plus {b}?",
        "Spell {0} backwards.",
    ]
    texts, places = fill(forms, 600)
    drafts = [
        draft
        for draft in draft_templates(pl.Series(texts), find_templates(texts))
        if draft.family == "form"
    ]
    extents = {tuple(sorted(set(np.array(places)[holds(one, texts)].tolist()))) for one in drafts}
    assert extents == {(0, 1), (2, 3)}


def test_unlike_texts_have_no_templates() -> None:
    rng = np.random.default_rng(5)
    words = ["".join(rng.choice(list("abcdefghij"), 5)) for _ in range(300)]
    texts = [" ".join(rng.choice(words, 12)) + "." for _ in range(300)]
    templates = find_templates(texts)
    assert not any(templates.labels)
    assert templates.stock == {}
