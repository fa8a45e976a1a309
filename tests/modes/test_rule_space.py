"""The language of rules: how many there are, what each costs, and that its SQL is what it marks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from groundfault.core.rules import Rule
from groundfault.modes.condition import (
    MAX_SET,
    MAX_WORDS,
    MIN_SUPPORT,
    Condition,
    Tier,
    UnitSet,
    list_conditions,
)
from groundfault.modes.kernels import list_subsets
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.stats.bits import Layout

N = 260


def make_table() -> pl.DataFrame:
    """Numbers, categories, a flag, missing values, and texts with words of their own."""
    rng = np.random.default_rng(5)
    words = ["apple", "bread", "cloud", "river", "stone"]
    task = rng.choice(["add", "it's", "sort", "map"], N)
    texts = [" ".join([*rng.choice(words, 2, replace=False), f"no{i}"]) for i in range(N)]
    return pl.DataFrame(
        {
            "task": task,
            "family": ["maths" if one in ("add", "it's") else "lists" for one in task],
            'the "size"': rng.integers(1, 5, N),
            "score": [None if u < 0.2 else round(2 * u) / 2 for u in rng.random(N)],
            "hard": rng.random(N) < 0.3,
            "steps": [None if i % 5 == 0 else i % 7 for i in range(N)],
            "prompt": texts,
        }
    )


def make_language(depth: int = 3, strata: int = 1) -> RuleLanguage:
    """The language of the table, with one candidate of one's own."""
    table = make_table()
    own = Condition(
        "own 0", '"task" = \'add\' OR "hard"', "mine", 0.0, UnitSet.of(np.arange(N) % 3 == 0)
    )
    own = Condition(**{**own.__dict__, "tier": Tier.OWN})
    literals = [*list_conditions(table, max_words=8, gaps=["steps"]), own]
    layout = Layout(np.random.default_rng(0).integers(0, strata, N))
    return RuleLanguage(literals, layout, depth)


LANGUAGE = make_language()
TABLE = make_table()


def on(language: RuleLanguage, part: tuple[int, ...]) -> np.ndarray:
    return np.any([language.literals[i].on for i in part], axis=0)


def is_pair(language: RuleLanguage, i: int, j: int) -> bool:
    a, b = language.literals[i], language.literals[j]
    both = (a.on & b.on).sum()
    apart = a.family != b.family and both >= MIN_SUPPORT
    return bool(apart and both <= 0.95 * a.on.sum() and both <= 0.95 * b.on.sum())


def list_pairs(language: RuleLanguage) -> list[tuple[int, int]]:
    couples = itertools.combinations(language.plain.tolist(), 2)
    return [c for c in couples if is_pair(language, *c)]


def list_triples(language: RuleLanguage) -> Iterator[tuple[int, ...]]:
    pairs = set(list_pairs(language))
    for triple in itertools.combinations(language.plain.tolist(), 3):
        couples = list(itertools.combinations(triple, 2))
        if pairs.issuperset(couples):
            n = np.all([language.literals[i].on for i in triple], axis=0).sum()
            smallest = min(on(language, (a,)) @ on(language, (b,)).astype(int) for a, b in couples)
            if MIN_SUPPORT <= n < smallest:
                yield triple


def list_sets(language: RuleLanguage) -> list[tuple[int, ...]]:
    """Two to four values of a column whose values exclude each other."""
    sets = []
    families = {one.family for one in language.literals if one.value is not None}
    for family in sorted(families):
        members = [
            i
            for i in language.plain.tolist()
            if language.literals[i].family == family and language.literals[i].value is not None
        ]
        if len(members) >= 3:
            sizes = range(2, MAX_SET + 1)
            sets += [s for size in sizes for s in itertools.combinations(members, size)]
    return sets


def test_the_table_has_every_class_of_rules() -> None:
    assert all(LANGUAGE.counts.values()), LANGUAGE.counts


def test_classes_count_what_is_in_them() -> None:
    language, counts = LANGUAGE, LANGUAGE.counts
    pairs, sets = list_pairs(language), list_sets(language)
    tiers = [one.tier for one in language.literals]
    others = [i for i, tier in enumerate(tiers) if tier in (Tier.TEXT, Tier.WORD)]
    plain = [i for i, tier in enumerate(tiers) if tier == Tier.ATTRIBUTE]
    contexts = [i for i in plain if language.literals[i].bounds is None]
    mixed = [(i, j) for i in plain for j in others if is_pair(language, i, j)]
    words = tiers.count(Tier.WORD)
    assert counts["single"] == len(plain)
    assert counts["word"] == len(others)
    assert counts["own"] == 1
    plainest = [i for i in contexts if language.literals[i].cost == 0]
    of_values = sum(i in plainest and j in plainest for i, j in pairs)
    assert (counts["value pair"], counts["pair"]) == (of_values, len(pairs) - of_values)
    assert counts["mixed"] == len(mixed)
    assert counts["triple"] == len(list(list_triples(language)))
    assert counts["values"] == len(sets)
    assert counts["set"] == len(plain) * len(sets)
    assert counts["set of a pair"] == len(pairs) * len(sets)
    assert counts["words"] == sum(math.comb(words, k) for k in range(2, MAX_WORDS + 1))
    inside = sum((i in contexts) + (j in contexts) for i, j in pairs)
    assert counts["inside"] == inside + sum(i in contexts for i, _ in mixed)


@pytest.mark.parametrize("depth", [1, 2])
def test_rules_are_no_deeper_than_asked(depth: int) -> None:
    language = make_language(depth)
    empty = {"triple", "set of a pair"}
    empty |= {"value pair", "pair", "mixed", "set", "inside"} if depth == 1 else set()
    assert {kind for kind, count in language.counts.items() if not count} == empty
    first, second = list_pairs(language)[0]
    assert len(list(language.join([(first,), (second,)]))) == depth - 1
    assert not list(language.join([(i,) for i in next(list_triples(LANGUAGE))]))


def test_singles_pairs_and_triples_join_when_they_are_rules_and_not_otherwise() -> None:
    language = LANGUAGE
    usual = language.plain.tolist()
    pairs, triples = set(list_pairs(language)), set(list_triples(language))
    for i in usual:
        assert [r.kind for r in language.join([(i,)])] == ["single"]
    for couple in itertools.combinations(usual, 2):
        literals = [language.literals[i] for i in couple]
        plainest = all(one.bounds is None and one.cost == 0 for one in literals)
        kinds = [r.kind for r in language.join([(i,) for i in couple])]
        assert kinds == (["value pair" if plainest else "pair"] if couple in pairs else [])
    rng = np.random.default_rng(0)
    some = [tuple(sorted(rng.choice(usual, 3, replace=False).tolist())) for _ in range(400)]
    for triple in [*some, *sorted(triples)[::20]]:
        kinds = [r.kind for r in language.join([(int(i),) for i in triple])]
        assert kinds == (["triple"] if triple in triples else [])


def test_words_join_with_one_attribute_and_candidates_of_ones_own_with_nothing() -> None:
    language = LANGUAGE
    plain, others, own = (int(x[0]) for x in (language.plain, language.others, language.own))
    assert [r.kind for r in language.join([(others,)])] == ["word"]
    assert [r.kind for r in language.join([(own,)])] == ["own"]
    for i, j in itertools.product(language.plain.tolist(), language.others.tolist()):
        kinds = [r.kind for r in language.join([(j,), (i,)])]
        assert kinds == (["mixed"] if is_pair(language, i, j) else [])
    assert not list(language.join([(plain,), (own,)]))
    assert not list(language.join([(others,), (int(language.others[1]),)]))
    assert not list(language.join([]))


def test_sets_of_values_hold_inside_a_condition_and_alone_where_modes_are_merged() -> None:
    table = pl.DataFrame(
        {"task": [f"t{i % 12:02}" for i in range(600)], "hard": np.arange(600) % 7 < 2}
    )
    language = RuleLanguage(list_conditions(table), Layout(np.zeros(600, dtype=np.int64)))
    hard = next(i for i in language.plain.tolist() if language.literals[i].rule == '"hard"')
    part = tuple(i for i in language.plain.tolist() if language.literals[i].value is not None)[:2]
    assert list(language.join([part, (hard,)])) == [ModeRule(((hard,), part), "set")]
    assert not list(language.join([part]))
    assert [rule.kind for rule in language.join([part], free=True)] == ["values"]


def test_sets_of_words_join_alone_and_with_nothing_else() -> None:
    words = tuple(int(i) for i in next(iter(LANGUAGE.word_families.values()))[:3])
    assert [rule.kind for rule in LANGUAGE.join([words])] == ["words"]
    assert not list(LANGUAGE.join([words, (int(LANGUAGE.plain[0]),)]))


def test_the_rule_of_parts_does_not_depend_on_their_order() -> None:
    part = list_sets(LANGUAGE)[0]
    for parts in [[part, *((i,) for i in pair)] for pair in list_pairs(LANGUAGE)[:40]]:
        rules = {rule for order in itertools.permutations(parts) for rule in LANGUAGE.join(order)}
        assert len(rules) == 1


@st.composite
def rules(draw: st.DrawFn) -> ModeRule:
    """Any rule of the language: singles to triples, sets in contexts, words, and own ones."""
    language = LANGUAGE
    usual, others = language.plain.tolist(), language.others.tolist()
    kind = draw(st.sampled_from(["plain", "mixed", "set", "words", "inside"]))
    if kind == "words":
        words = next(iter(language.word_families.values())).tolist()
        some = draw(st.sets(st.sampled_from(words), min_size=2, max_size=MAX_WORDS))
        return ModeRule((tuple(sorted(some)),), "words")
    parts = [(i,) for i in draw(st.lists(st.sampled_from(usual), min_size=1, max_size=3))]
    if kind == "mixed":
        parts = [parts[0], (draw(st.sampled_from(others)),)]
    if kind == "set":
        parts = [*parts[:2], draw(st.sampled_from(list_sets(language)))]
    return ModeRule(tuple(parts), kind)


@settings(max_examples=150, deadline=None)
@given(rules())
def test_the_sql_of_a_rule_marks_the_units_it_holds_for(rule: ModeRule) -> None:
    language = LANGUAGE
    expected = np.all([on(language, part) for part in rule.parts], axis=0)
    assert np.array_equal(language.layout.unpack(language.mask(rule)[None])[0], expected)
    assert np.array_equal(language.masks([rule])[0], language.mask(rule))
    assert np.array_equal(Rule.parse(language.sql(rule)).holds(TABLE).to_numpy(), expected)
    for sql, meaning in language.rename(rule):
        assert np.array_equal(Rule.parse(sql).holds(TABLE).to_numpy(), expected), sql
        assert meaning
    conditions = language.conditions(rule)
    assert len(conditions) == len(rule.parts)
    assert all(conditions)


def test_other_names_change_one_condition() -> None:
    language = LANGUAGE
    named = [i for i in language.plain.tolist() if language.literals[i].aliases]
    assert named
    for i in named:
        rule = ModeRule(((i,),), "single")
        aliases = language.literals[i].aliases
        assert list(language.rename(rule)) == [(one.rule, one.meaning) for one in aliases]


def test_longer_rules_take_longer_to_read() -> None:
    language = LANGUAGE
    i, j = list_pairs(language)[0]
    part = list_sets(language)[0]
    single, pair = ModeRule(((i,),), "single"), ModeRule(((i,), (j,)), "pair")
    assert 1 <= language.size(single) < language.size(pair)
    more = ModeRule(((i,), part), "set")
    assert language.size(more) > language.size(ModeRule(((i,), part[:1]), "pair"))


def test_effects_inside_a_context_are_tested_there_alone() -> None:
    language = LANGUAGE
    i, j = list_pairs(language)[0]
    assert language.tested(ModeRule(((i,), (j,)), "pair")) is None
    tested = language.tested(ModeRule(((i,), (j,)), "inside"))
    assert np.array_equal(tested, language.literals[i].on)


def test_subsets_are_all_of_two_to_the_largest() -> None:
    rows = list_subsets(5, 4)
    assert rows.sum(axis=1).tolist() == [2] * 10 + [3] * 10 + [4] * 5
    assert len({tuple(row) for row in rows}) == 25
    assert list_subsets(1, 4).shape == (0, 1)


def test_masks_do_not_depend_on_the_layout() -> None:
    language = make_language(strata=4)
    for i in language.plain.tolist():
        row = language.layout.unpack(language.mask(ModeRule(((i,),), "single"))[None])[0]
        assert np.array_equal(row, language.literals[i].on)
    assert language.counts == LANGUAGE.counts


def test_of_no_words_none_is_named() -> None:
    assert (~LANGUAGE.list_named(np.array([], dtype=np.intp))).shape == (0,)


def test_a_set_of_conditions_says_their_common_words_once() -> None:
    language = make_language()
    said = {one.meaning: i for i, one in enumerate(language.literals)}
    words = tuple(said[f'prompt has the word "{word}"'] for word in ("apple", "cloud", "stone"))
    (meaning,) = language.conditions(ModeRule((words,), "words"))
    assert meaning == 'prompt has the word "apple", "cloud" or "stone"'
    mixed = (said["hard"], words[0]) if "hard" in said else words[:1]
    assert language.conditions(ModeRule((mixed,), "words"))[0].endswith(
        'prompt has the word "apple"'
    )
