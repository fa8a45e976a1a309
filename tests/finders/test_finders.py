"""Finders: what each proposes, what it leaves out, and what it promises."""

from __future__ import annotations

import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault import finders
from groundfault.auditing.preparation import join_copies
from groundfault.core.candidate import Candidate, Library
from groundfault.core.columns import Kind, list_examples, profile
from groundfault.core.evidence import Evidence
from groundfault.core.rules import _parse
from groundfault.core.units import Marks
from groundfault.errors import InputError, PlanError, RuleError
from groundfault.finders.columns import (
    Categories,
    Declared,
    Text,
    Thresholds,
    cut_lengths,
    read_candidates,
)
from groundfault.modes.examples import find_text_columns
from groundfault_lab.slicing.interactions import Interactions
from groundfault_lab.testing import check_finder

SENTENCES = [
    "How many apples? Ann has 3.",
    "Say what (you) see",
    'It\'s "so", he said; or not',
    "Who?\nWho: Zoë",
    "",
]


def evidence(n: int = 120, /, **columns: Any) -> Evidence:
    """Evidence of n examples with outcomes of no interest; each column is given whole, or as a
    cycle.
    """
    table = {"item": [f"i{i:05d}" for i in range(n)], "error": [i % 2 for i in range(n)]}
    for name, values in columns.items():
        full = list(values) * n if len(values) < n else list(values)
        table[name] = full[:n]
    return Evidence.from_table(pl.DataFrame(table, strict=False), id="item", outcome="error")


def mixed(n: int = 240) -> Evidence:
    rng = np.random.default_rng(5)
    return evidence(
        n,
        words=rng.integers(0, 400, n).tolist(),
        score=[None if i % 9 == 0 else float(x) for i, x in enumerate(rng.normal(size=n))],
        hard=rng.random(n) < 0.3,
        zero_one=(rng.random(n) < 0.4).astype(int).tolist(),
        lang=[["de", "en", "fr", None][i] for i in rng.integers(0, 4, n)],
        text=[f"{SENTENCES[i]} {j}" for j, i in enumerate(rng.integers(0, 5, n))],
        sha=[f"{x:016x}" for x in rng.integers(0, 2**62, n)],
        row=list(range(n)),
        model_name=["m"] * n,
    )


def rules(candidates: Any) -> dict[str, str]:
    return {candidate.name: candidate.rule for candidate in candidates}


def on(data: Evidence, candidate: Candidate) -> list[bool | None]:
    return data.frame.select(r=candidate.parsed.to_polars())["r"].to_list()


EXAMPLES = finders.DEFAULT[
    1:
]  # "instrument" looks at answers, of which there are none here: test_instrument.py
DEFAULTS = [finders.get(name)() for name in EXAMPLES]


@pytest.mark.parametrize("finder", DEFAULTS, ids=EXAMPLES)
def test_a_finder_keeps_the_contract(finder: finders.Finder):
    data = mixed()
    candidates = list(finder.propose(data))
    assert candidates
    assert {c.source for c in candidates} == {finder.name}
    assert len({c.name for c in candidates}) == len(candidates)
    library = Library.of(candidates)
    assert Library.from_json(library.to_json()) == library
    assert Library.of(finder.propose(data)).hash == library.hash
    assert Library.of(finder.propose(data.without_outcomes())).hash == library.hash, (
        "the outcome was read"
    )
    again = Marks.of(mixed(60), library)  # what was proposed applies to other evidence
    assert set(again.unusable) == {""}
    defined, marks = Marks.of(data, library).counts()
    assert (marks > 0).all()
    assert (marks < defined).all()


@pytest.mark.parametrize(
    "finder",
    [
        *DEFAULTS,
        Declared(("hard", "zero_*")),
        Interactions((Candidate("big", "words > 200"), Candidate("hard", "hard"))),
    ],
)
def test_a_finder_passes_the_check_for_plug_ins(finder: finders.Finder):
    assert len(check_finder(finder, mixed())) > 0


def test_the_default_finders_share_no_rule_and_leave_ids_and_constants_alone():
    candidates = [c for finder in DEFAULTS for c in finder.propose(mixed())]
    assert len({c.rule for c in candidates}) == len(candidates)
    read = {column for c in candidates for column in c.columns}
    assert read == {"words", "score", "hard", "zero_one", "lang", "text"}


@pytest.mark.parametrize("finder", DEFAULTS, ids=EXAMPLES)
def test_several_models_and_repeats_change_nothing(finder: finders.Finder):
    data = mixed()
    rows = pl.DataFrame({"llm": ["a", "a", "b"], "epoch": [1, 2, 1]})
    many = Evidence.from_table(
        data.frame.join(rows, how="cross"), id="item", outcome="error", model="llm", repeat="epoch"
    )
    assert len(many) == 3 * len(data)
    assert list(finder.propose(many)) == list(finder.propose(data))


@pytest.mark.parametrize("finder", DEFAULTS, ids=EXAMPLES)
def test_evidence_without_attributes_gives_nothing(finder: finders.Finder):
    assert list(finder.propose(evidence())) == []


# -------------------------------------------------------------------------------------- --- columns


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], Kind.FLAG),
        ([0, 1, None], Kind.FLAG),
        ([0.0, 1.0], Kind.FLAG),
        ([0, 0], Kind.CONSTANT),
        (["x", None], Kind.CONSTANT),
        ([None, None], Kind.CONSTANT),
        ([1, 2], Kind.NUMBER),
        ([0.5, 0.25, None], Kind.NUMBER),
        ([i * i for i in range(120)], Kind.NUMBER),
        (list(range(7, 127)), Kind.CODE),
        ([(i * 2**55 + 12345) % (2**62 - 57) for i in range(120)], Kind.CODE),
        (["de", "en"], Kind.LABEL),
        ([f"{i:x}" for i in range(120)], Kind.CODE),
        ([f"question {i}" for i in range(120)], Kind.TEXT),
        ([f"capital of {i}" for i in range(20)], Kind.LABEL),
        ([[1], [2]], Kind.OTHER),
    ],
)
def test_columns_are_told_apart(values: list[Any], kind: Kind):
    # the parts of a list stand beside it
    column = next(c for c in profile(list_examples(evidence(x=values))) if c.name == "x")
    assert column.kind is kind
    assert column.missing == sum(v is None for v in (values * 120)[:120])


def test_integers_that_name_a_thing_are_no_numbers():
    data = evidence(
        task_id=[3, 4, 5], seed=[3.0, 4.0, None], valid=[3, 4, 5], fog_index=[3.5, 4.0, 5.0]
    )
    kinds = [(c.name, c.kind) for c in profile(list_examples(data))]
    label, number = Kind.LABEL, Kind.NUMBER
    assert kinds == [("task_id", label), ("seed", label), ("valid", number), ("fog_index", number)]


@pytest.mark.parametrize(
    "name", ["count", "level", "", " ", "len", "0", 'q"q', "x\ny", "a.b", "$a", "{}", "é"]
)
@pytest.mark.parametrize(
    "values", [["a", "b", "c"], [True, False], [1.5, 2, 8, None], [f"so {i}" for i in range(120)]]
)
def test_odd_column_names_are_no_trouble(name: str, values: list[Any]):
    data = evidence(**{name: values})
    candidates = [c for finder in DEFAULTS for c in finder.propose(data)]
    assert {c.columns for c in candidates} == {(name,)}
    defined, marks = Marks.of(data, Library.of(candidates)).counts()
    assert (marks > 0).all()
    assert (marks < defined).all()


def test_large_tables_are_told_apart_by_a_sample_and_counted_exactly_where_it_matters():
    n = 30_000
    rare = ["common"] * (n - 7) + ["rare"] * 7
    data = evidence(n, word=rare, number=list(range(n)), wide=[float(i) for i in range(n)])
    columns = {c.name: c for c in profile(list_examples(data))}
    assert (columns["word"].kind, columns["word"].distinct) == (Kind.LABEL, 2)
    assert columns["number"].kind is Kind.CODE
    assert columns["wide"].kind is Kind.NUMBER


# ------------------------------------------------------------------------------------- --- declared


def test_declared_columns_lose_the_prefix_of_their_glob():
    data = evidence(d__long=[0, 1], d__late=[True, False], e__x=[1.0, 0.0, None], other=[5, 6])
    candidates = list(Declared(("d__*", "e__x")).propose(data))
    assert rules(candidates) == {"long": '"d__long" = 1', "late": '"d__late"', "e__x": '"e__x" = 1'}
    assert {c.missing for c in candidates} == {"reject"}
    assert [c.missing for c in Declared(("e__x",), missing="off").propose(data)] == ["off"]


def test_declared_names_that_would_collide_keep_their_column():
    data = evidence(a__x=[0, 1], b__x=[1, 0], a__=[0, 1])
    assert set(rules(Declared(("a__*", "b__*")).propose(data))) == {"a__x", "b__x", "a__"}


def test_declared_finds_flags_and_leaves_out_examples_without_one():
    data = evidence(
        hard=[True, None, False], easy=[1, 0], n=[1, 2], never=[0, 0], word=["yes", "no"]
    )
    candidates = list(Declared().propose(data))
    assert rules(candidates) == {"hard": '"hard"', "easy": '"easy" = 1'}
    assert {c.missing for c in candidates} == {"drop"}


def test_declared_proposes_candidates_as_they_are_and_then_looks_for_no_flags():
    data = evidence(hard=[True, False], n=[1, 2, 3])
    candidate = Candidate("big", "n > 2", "a big one", "me", "off")
    assert list(Declared(candidates=(candidate,)).propose(data)) == [candidate]
    with pytest.raises(RuleError, match="reads column 'm'"):
        list(Declared(candidates=(Candidate("big", "m > 2"),)).propose(data))


def test_a_wide_table_is_asked_for_its_schema_a_few_times(monkeypatch: pytest.MonkeyPatch):
    """polars makes the schema anew from all columns: once a column is quadratic."""
    data = evidence(**{f"c{i}": [0, 1] for i in range(60)})
    schema, calls = pl.DataFrame.schema, []
    spy = property(lambda table: (calls.append(1), schema.fget(table))[1])
    monkeypatch.setattr(pl.DataFrame, "schema", spy)
    assert len(list(Declared().propose(data))) == 60
    assert len(list(Categories().propose(data))) == 0
    assert join_copies(data) is not None
    find_text_columns(data)
    assert len(calls) < 40


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("hart", "near it: hard"),
        ("z__*", "'z__\\*'; the attributes: hard, n, word"),
        ("n", "'n' was declared, but holds 2"),
        ("word", "'word' was declared, but holds 'yes'"),
        ("item", "another part"),
        ("error", "another part"),
    ],
)
def test_declared_says_which_column_is_wrong(pattern: str, message: str):
    with pytest.raises(InputError, match=message):
        list(
            Declared((pattern,)).propose(evidence(hard=[True, False], n=[1, 2], word=["yes", "no"]))
        )


def test_a_column_that_differs_between_models_cannot_be_declared():
    table = pl.DataFrame(
        {"i": [1, 1, 2, 2], "m": ["a", "b"] * 2, "e": [0, 1, 1, 0], "long": [1, 0, 1, 0]}
    )
    with pytest.raises(InputError, match="differs between rows of one example"):
        list(
            Declared(("long",)).propose(Evidence.from_table(table, id="i", model="m", outcome="e"))
        )


# -------------------------------------------------------------------------- --- files of candidates


def test_candidates_are_read_from_lines_and_from_toml(tmp_path: Path):
    lines, toml = tmp_path / "rules.txt", tmp_path / "rules.toml"
    lines.write_text("# mine\n\nlong: n > 400\nlate: s = 'a:b'\n")
    toml.write_text(
        "late = \"s = 'a:b'\"\n[long]\nrule = 'n > 400'\nmeaning = 'a long one'\nmissing = 'off'\n"
    )
    assert list(read_candidates(lines)) == [
        Candidate("long", "n > 400", source="rules.txt"),
        Candidate("late", "s = 'a:b'", source="rules.txt"),
    ]
    assert list(read_candidates(toml)) == [
        Candidate("late", "s = 'a:b'", source="rules.toml"),
        Candidate("long", "n > 400", "a long one", "rules.toml", "off"),
    ]
    library = read_candidates(lines)
    library.freeze(tmp_path / "rules.json")
    assert read_candidates(tmp_path / "rules.json") == library


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("a.txt", "x: n > 1\ny n > 2", RuleError, "line 2: .*NAME: SQL"),
        ("a.txt", "x: n > 1\nx: n > 2", RuleError, "a.txt: .*rename one"),
        ("a.txt", "x: SELECT 1", RuleError, "line 1: candidate 'x'"),
        ("a.toml", "x = ", InputError, "cannot read candidates"),
        ("a.toml", "x = 3", RuleError, "'x' needs a rule"),
        ("a.toml", "[x]\nrule = 'n > 1'\ncolour = 'red'", RuleError, "'x' needs a rule"),
        ("a.toml", "[x]\nrule = 1", RuleError, "'x' needs a rule"),
        (
            "a.toml",
            "[x]\nrule = 'n > 1'\nmissing = 'maybe'",
            RuleError,
            "not one of reject, off, drop",
        ),
        ("a.json", "x: n > 1", InputError, "not a frozen groundfault library"),
    ],
)
def test_a_bad_file_of_candidates_is_named(
    tmp_path: Path, name: str, text: str, error: type[Exception], message: str
):
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=message) as caught_error:
        read_candidates(tmp_path / name)
    assert name in str(caught_error.value)


def test_a_file_of_candidates_that_cannot_be_read_is_named(tmp_path: Path):
    (tmp_path / "latin.txt").write_bytes("é: n > 1".encode("latin-1"))
    for name in ("absent.txt", "latin.txt", "absent.json"):
        with pytest.raises(InputError, match=name):
            read_candidates(tmp_path / name)


# ----------------------------------------------------------------------------------- --- thresholds


def test_thresholds_cut_at_quantiles_and_name_missing_values():
    data = evidence(100, n=[*range(1, 81), *[None] * 20], m=[None] * 3 + [2.5, 7.25] * 50)
    candidates = list(
        Thresholds((0.25, 0.5, 0.75)).propose(evidence(100, n=[i // 2 for i in range(100)]))
    )
    assert rules(candidates) == {"n > 12": '"n" > 12', "n > 24": '"n" > 24', "n > 37": '"n" > 37'}
    assert (candidates[0].meaning, candidates[0].missing) == ("n is above 12", "drop")
    missing = [c for c in Thresholds().propose(data) if "missing" in c.name]
    assert [c.rule for c in missing] == [
        '"m" IS NULL'
    ]  # the whole numbers of n never repeat: row numbers


def test_thresholds_name_a_pattern_of_missing_values_once():
    holes = [None, 3, 4, 5, 6]
    data = evidence(
        a=holes, b=[x and x / 2 for x in holes], c=[1, None, 2, 3], d=[x and -x for x in holes]
    )
    missing = [c for c in Thresholds().propose(data) if c.rule.endswith("IS NULL")]
    assert [c.meaning for c in missing] == ["a is missing, together with b and d", "c is missing"]


def test_thresholds_put_a_cut_below_the_largest_value():
    candidates = list(Thresholds().propose(evidence(100, n=[2] * 10 + [5] * 90)))
    assert rules(candidates) == {"n > 2": '"n" > 2'}


def test_thresholds_are_short_numbers():
    data = evidence(
        100,
        x=[i / 7 + 0.03 for i in range(100)],
        f=[3.0, 4.0, 9.0],
        big=[10.0**20 * (i % 7) for i in range(100)],
    )
    candidates = rules(Thresholds((0.5,)).propose(data))
    assert list(candidates.values()) == ['"x" > 7.1', '"f" > 4', '"big" > 3e+20']


@settings(deadline=None)
@given(
    st.lists(
        st.floats(allow_nan=False, width=32) | st.integers(-9, 9).map(float),
        min_size=4,
        max_size=40,
    ),
    st.sampled_from([pl.Float64, pl.Float32]),
)
def test_a_short_cut_splits_discovery_as_the_quantile_does(values: list[float], dtype: Any):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype), "e": [0.0] * len(values)})
    data = Evidence.from_table(frame, outcome="e")
    ordered = sorted(values)
    for candidate in Thresholds((0.25, 0.5)).propose(data):
        above = sum(bool(b) for b in on(data, candidate))
        places = [(len(values) - 1) // 4, (len(values) - 1) // 2]
        quantiles = {sum(v > ordered[i] for v in values) for i in places}
        below_top = values.count(ordered[-1])
        assert above in (quantiles | {below_top}) - {0}


def test_thresholds_of_named_columns():
    data = evidence(id=list(range(120)), flag=[0, 1], word=["a", "b"])
    assert rules(Thresholds((0.5,), columns=("id", "flag")).propose(data)) == {
        "id > 59": '"id" > 59',
        "flag > 0": '"flag" > 0',
    }
    for columns, message in [(("word",), "not numbers"), (("nope",), "no attribute")]:
        with pytest.raises(InputError, match=message):
            list(Thresholds(columns=columns).propose(data))
    with pytest.raises(InputError, match="between 0 and 1"):
        Thresholds((0.5, 1.0))


# ----------------------------------------------------------------------------------- --- categories


def test_categories_propose_frequent_levels_and_missing_values():
    words = ["it's"] * 50 + ["b"] * 40 + ["rare"] * 4 + [None] * 26
    candidates = list(Categories().propose(evidence(word=words)))
    assert rules(candidates) == {
        "word = b": "\"word\" = 'b'",
        "word = it's": "\"word\" = 'it''s'",
        "word is missing": '"word" IS NULL',
    }
    assert [c.missing for c in candidates] == ["off", "off", "reject"]
    assert candidates[0].meaning == "word is b"
    assert "word = rare" in rules(Categories(min_size=4).propose(evidence(word=words)))


def test_categories_propose_the_rarer_of_two_levels_unless_some_are_missing():
    assert list(rules(Categories().propose(evidence(lang=["en", "de", "en"])))) == ["lang = de"]
    with_missing = rules(Categories().propose(evidence(lang=["en", "de", None])))
    assert list(with_missing) == ["lang = de", "lang = en", "lang is missing"]


def test_categories_take_inner_whole_numbers_and_leave_flags_to_others():
    data = evidence(
        loops=[0.0, 1.0, 2.0, 3.0],
        two=[3, 4],
        half=[0.5, 1.5, 2.5],
        flag=[0, 1],
        hard=[True, False],
    )
    assert rules(Categories().propose(data)) == {
        "loops = 1": '"loops" = 1',
        "loops = 2": '"loops" = 2',
    }
    candidates = Categories(columns=("flag", "hard", "two")).propose(data)
    assert rules(candidates) == {"flag": '"flag" = 1', "hard": '"hard"', "two = 3": '"two" = 3'}


def test_categories_of_many_levels_are_named_or_left_out():
    data = evidence(1000, subject=[f"s{i}" for i in range(80)])
    assert list(Categories().propose(data)) == []
    assert len(list(Categories(max_levels=80).propose(data))) == 80
    with pytest.raises(InputError, match="80 or more levels"):
        list(Categories(columns=("subject",)).propose(data))


def test_categories_give_odd_levels_a_readable_name():
    odd = ["", " de", "a\n b", "x" * 99, "x" * 98, "plain"]
    candidates = list(Categories().propose(evidence(word=odd)))
    assert {c.name for c in candidates} == {
        "word = ''",
        "word = 'de'",
        "word = 'a b'",
        f"word = {'x' * 57}...",
        f"word = {'x' * 57}... (2)",
        "word = plain",
    }
    assert all(sum(b or False for b in on(evidence(word=odd), c)) == 20 for c in candidates)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["de", "en", "fr"])])
def test_categories_of_categorical_columns(dtype: Any):
    frame = pl.DataFrame(
        {"lang": pl.Series(["de", "en", "fr", "de"] * 9, dtype=dtype), "e": [0, 1] * 18}
    )
    data = Evidence.from_table(frame, outcome="e")
    candidates = list(Categories().propose(data))
    assert [c.name for c in candidates] == ["lang = de", "lang = en", "lang = fr"]
    assert sum(on(data, candidates[0])) == 18


# ----------------------------------------------------------------------------------------- --- text


TEXTS = [
    "How many apples has Ann",
    "Say what (you) see",
    'He said "so"',
    "Is it so? Then go; or stay, now",
    "Who knows\nwho is there",
    "Zoë is 3",
    "Room 12?",
    "Nothing here. And why",
    "What now, what",
    "Tell me who or whatever",
]
PROPERTIES = {
    "q has a digit": lambda t: any(character.isdigit() for character in t),
    "q has a question mark": lambda t: "?" in t,
    "q has a quotation mark": lambda t: '"' in t,
    "q has a bracket": lambda t: "(" in t,
    "q has a line break": lambda t: "\n" in t,
    "q has a character outside ASCII": lambda t: not t.isascii(),
    "q has several sentences": lambda t: "? " in t or ". " in t,
    "q has a comma or semicolon": lambda t: "," in t or ";" in t,
    "q has over 4 words": lambda t: len(t.split()) > 4,
    'q has "what"': lambda t: "what" in t.lower().split(),
    'q starts with "what"': lambda t: t.startswith("What"),
    'q has "who"': lambda t: "who" in t.lower().split(),
    'q has "why"': lambda t: "why" in t.split(),
    'q has "how"': lambda t: t.startswith("How"),
}


def texts(n: int = 200) -> Evidence:
    return evidence(n, q=[None if i == 3 else f"{TEXTS[i % 10]} {'x' * i}" for i in range(n)])


def test_text_rules_mark_what_their_names_say():
    data = texts()
    candidates = {c.name: c for c in Text().propose(data)}
    assert set(PROPERTIES) <= set(candidates)
    for name, holds in PROPERTIES.items():
        assert on(data, candidates[name]) == [
            None if t is None else holds(t) for t in data.frame["q"]
        ], name
    assert {c.missing for c in candidates.values()} == {"drop"}


def test_text_lengths_count_characters_and_words():
    data = evidence(q=["é" * i + " end" * (i % 3) for i in range(120)])
    for candidate in Text((0.5, 0.9), columns=("q",)).propose(data):
        if "over" not in candidate.name:
            continue
        cut, unit = int(candidate.name.split()[3]), candidate.name.split()[4]
        size = len if unit == "characters" else lambda text: len(text.split())
        assert on(data, candidate) == [size(text) > cut for text in data.frame["q"]], candidate.name


def test_short_text_lengths_read_as_english():
    texts = pl.Series("q", ["", "a", "b ,", "c; d, e"])
    assert [what for what, _ in cut_lengths(texts, (0.1, 0.4, 0.7))] == [
        "is not empty",
        "has over 1 character",
        "has over 3 characters",
        "has over 1 word",
        "has over 2 words",
        "has over 1 comma or semicolon",
    ]


def test_text_leaves_out_what_tells_nothing():
    candidates = {
        c.name for c in Text().propose(evidence(q=[f"how {'x' * i}" for i in range(120)]))
    }
    assert candidates
    assert all("characters" in name for name in candidates), (
        "every text has two words, starts with how, and no marks"
    )


def test_text_passes_over_labels_and_codes_and_takes_named_columns():
    data = evidence(lang=["in German", "in English"], code=[f"{i:x}" for i in range(120)], n=[1, 2])
    assert list(Text().propose(data)) == []
    assert {c.columns for c in Text(columns=("code",)).propose(data)} == {("code",)}
    with pytest.raises(InputError, match="not text"):
        list(Text(columns=("n",)).propose(data))
    with pytest.raises(InputError, match="between 0 and 1"):
        Text((0.0,))


def test_texts_too_long_for_an_engine_are_cut_by_characters_only():
    data = evidence(60, q=["word " * (1500 + i) for i in range(60)])
    candidates = list(Text().propose(data))
    assert all("characters" in c.name for c in candidates)
    assert len(candidates) == 4


# --------------------------------------------------------------------------------- --- interactions


def bits(*names: str, n: int = 160) -> tuple[Evidence, tuple[Candidate, ...]]:
    """Evidence of all combinations of flags, and the flags as candidates."""
    data = evidence(n, **{name: [(i >> k) & 1 for i in range(n)] for k, name in enumerate(names)})
    return data, tuple(Candidate(name, f"{name} = 1", f"{name} holds") for name in names)


def test_interactions_are_conjunctions_in_name_rule_and_meaning():
    data, bases = bits("a", "b", "c")
    candidates = list(Interactions(bases).propose(data))
    assert [c.name for c in candidates] == ["a AND b", "a AND c", "b AND c", "a AND b AND c"]
    assert candidates[-1].rule == "(a = 1) AND (b = 1) AND (c = 1)"
    assert candidates[-1].meaning == "a holds and b holds and c holds"
    assert sum(on(data, candidates[-1])) == 20
    assert [c.name for c in Interactions(bases, order=(3,)).propose(data)] == ["a AND b AND c"]
    assert len(Interactions(bases, order=(2,)).propose(data)) == 3


def test_interactions_keep_an_or_together():
    data, _ = bits("a", "b", "c")
    either = Candidate("either", "a = 1 OR b = 1")
    (both,) = Interactions((either, Candidate("c", "c = 1"))).propose(data)
    assert on(data, both) == [bool((i & 3) and (i & 4)) for i in range(160)]


def test_interactions_leave_out_what_cannot_hold_or_adds_nothing():
    data = evidence(lang=["de", "en", "fr"], n=[1, 2, 3, 4, 5, 6, 7])
    bases = (
        Candidate("de", "lang = 'de'"),
        Candidate("en", "lang = 'en'"),
        Candidate("n > 2", "n > 2"),
        Candidate("n > 5", "n > 5"),
        Candidate("n > 2 too", "NOT n <= 2"),
    )
    assert [c.name for c in Interactions(bases).propose(data)] == [
        "de AND n > 2",
        "de AND n > 5",
        "en AND n > 2",
        "en AND n > 5",
    ]
    assert Interactions(bases, min_size=1000).propose(data) == []


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        (("off", "off"), "off"),
        (("off", "drop"), "drop"),
        (("drop", "reject"), "reject"),
        (("reject", "off"), "reject"),
    ],
)
def test_interactions_take_the_strictest_treatment_of_missing_values(
    parts: tuple[Any, Any], missing: str
):
    data, (a, b) = bits("a", "b")
    bases = (Candidate("a", a.rule, missing=parts[0]), Candidate("b", b.rule, missing=parts[1]))
    assert [c.missing for c in Interactions(bases).propose(data)] == [missing]


def test_interactions_are_refused_rather_than_cut():
    data, bases = bits("a", "b", "c", "d")
    assert len(Interactions(bases, max_candidates=10).propose(data)) == 10
    with pytest.raises(PlanError, match="more than 9 conjunctions"):
        Interactions(bases, max_candidates=9).propose(data)
    with pytest.raises(PlanError, match="order"):
        Interactions(bases, order=(1, 2))
    with pytest.raises(RuleError, match="reads column 'z'"):
        Interactions((Candidate("z", "z > 1"),)).propose(data)


def test_too_many_interactions_are_refused_before_any_is_parsed():
    """Parsing 92,000 conjunctions of 1,500 levels took a minute before the refusal."""
    data = evidence(400, n=range(400))
    bases = [Candidate(f"n{i}", f"n % {i + 7} > 2") for i in range(60)]
    _parse.cache_clear()
    with pytest.raises(PlanError, match="60 candidates make more than 50 conjunctions"):
        Interactions(tuple(bases), order=(2,), max_candidates=50).propose(data)
    assert _parse.cache_info().currsize <= len(bases)


@settings(deadline=None, max_examples=count_examples(50))
@given(st.lists(st.lists(st.booleans(), min_size=12, max_size=12), min_size=2, max_size=5))
def test_interactions_propose_each_new_set_of_examples_once(columns: list[list[bool]]):
    names = [f"c{i}" for i in range(len(columns))]
    data = evidence(12, **dict(zip(names, columns, strict=True)))
    bases = tuple(Candidate(name, name) for name in names)
    candidates = [tuple(on(data, c)) for c in Interactions(bases, min_size=1).propose(data)]
    singles = {tuple(column) for column in columns}
    every = {
        tuple(bool(np.all(rows)) for rows in zip(*parts, strict=True))
        for size in (2, 3)
        for parts in combinations(columns, size)
    }
    assert len(candidates) == len(set(candidates))
    assert set(candidates) == {marks for marks in every if any(marks)} - singles


# ------------------------------------------------------------------------------------- --- registry


def test_finders_are_known_by_name():
    for name in finders.known()[:5]:
        assert finders.get(name).__name__.lower() == name  # type: ignore[attr-defined]
    with pytest.raises(
        PlanError, match="no finder is named 'slices'; there are instrument, declared, thresholds"
    ):
        finders.get("slices")


def install(folder: Path, package: str, entry_points: str) -> None:
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[groundfault.finders]\n{entry_points}\n")


def test_packages_add_finders_and_a_name_taken_twice_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(
        tmp_path,
        "one",
        "mine = groundfault.finders.columns:Text\nbroken = groundfault.finders.columns:Nothing",
    )
    install(tmp_path, "two", "mine = second:Text\ntext = second:Text")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="two are named") as error:
        assert finders.get("mine") is Text
    assert sorted(str(w.message) for w in error) == [
        "two are named 'mine' in groundfault.finders: "
        "groundfault.finders.columns:Text is used, not second:Text",
        "two are named 'text' in groundfault.finders: "
        "groundfault.finders.columns:Text is used, not second:Text",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert set(finders.known()) >= {*finders.DEFAULT, "interactions", "mine", "broken"}
        with pytest.raises(
            PlanError, match=r"'broken' of groundfault.finders.columns:Nothing cannot be loaded"
        ):
            finders.get("broken")


# --------------------------------------------------------------------------------- --- real results


@pytest.mark.parametrize("name", ["crux_Meta-Llama-3-8B-Instruct", "gsm_Qwen2-7B-Instruct"])
def test_real_results_give_sensible_candidates(shared: Path, name: str):
    data = Evidence.from_table(
        shared / "real" / "single_model_audit" / f"{name}.parquet",
        id="example_id",
        outcome="correct",
        positive_is_good=True,
        ignore=["response", "response_chars", "answer", "answer_parsed"],
    )
    candidates = [c for finder in DEFAULTS for c in finder.propose(data)]
    assert 40 <= len(candidates) <= 80
    assert {"benchmark", "model", "category", "methods", "target"}.isdisjoint(
        {col for c in candidates for col in c.columns}
    )
    library = Library.of(candidates)
    defined, marks = Marks.of(data, library).counts()
    assert (defined == len(data)).all()
    assert (marks > 0).all()
    assert (marks < len(data)).all()
    pairs = Interactions(tuple(candidates), order=(2,)).propose(data)
    assert len(pairs) > 500
    assert set(Marks.of(data, Library.of(pairs[::20])).unusable) == {""}
