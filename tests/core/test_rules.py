"""Rules and candidates: what is refused, what NULL means, and what a frozen library promises."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from groundfault.core.candidate import Candidate, Library, unique_names
from groundfault.core.evidence import Evidence
from groundfault.core.rules import (
    Rule,
    _is_plain,
    literal,
    quote,
    split_pattern,
    to_regex,
    use_backslash,
)
from groundfault.core.units import Marks
from groundfault.errors import InputError, RuleError
from groundfault.render.highlights import find_patterns

FRAME = pl.DataFrame(
    {
        "n": [1, 2, None, 0],
        "s": ["ab", "B", None, "%"],
        "flag": [True, False, None, True],
    }
)
TEXTS = pl.DataFrame({"s": ["a_b", "axb", "a%b", "a\\b", "A_B", "a\nb", None, "a.b"]})


def values(rule: str, frame: pl.DataFrame = FRAME) -> list[bool | None]:
    return frame.select(r=Rule.parse(rule).to_polars())["r"].to_list()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n >",
        "n 1",
        "n, s",
        "*",
        "SELECT 1",
        "n > 1; DROP TABLE x",
        "n > 1 FROM t",
        "n > 1 LIMIT 1",
        "n > 1 UNION SELECT 2",
        "DISTINCT n",
        "n AS m",
        "n IN (SELECT 1)",
        "n > (SELECT max(n) FROM t)",
        "EXISTS (SELECT 1)",
        "ROW_NUMBER() OVER () > 1",
        "SUM(n) > 1",
        "COUNT(*) > 1",
        "RANDOM() < n",
        "n < NOW()",
        "read_csv('secrets') = s",
        "n > ?",
        "n > $1",
        "n := 1",
        "t.n > 1",
        "CASE WHEN n > 1 THEN TRUE ELSE FALSE END",
        "CONCAT(s, 'x') = 'x'",
        "GREATEST(n, 1) = 1",
        "1 = 1",
        "NULL",
        "(" * 3000 + "n > 1" + ")" * 3000,
        "n > 1 OR " * 5000 + "n > 1",
    ],
)
def test_anything_but_one_expression_over_columns_is_refused(text: str):
    with pytest.raises(RuleError):
        Rule.parse(text)
    with pytest.raises(RuleError, match="'bad'"):
        Candidate("bad", text)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("n > 1", [False, True, None, False]),
        ("NOT n > 1", [True, False, None, True]),
        ("n > 1 OR s = 'ab'", [True, True, None, False]),
        ("n > 1 AND s = 'x'", [False, False, None, False]),
        ("n IN (1, 0)", [True, False, None, True]),
        ("n BETWEEN 1 AND 2", [True, True, None, False]),
        ("flag", [True, False, None, True]),
        ("s LIKE 'a%'", [True, False, None, False]),
        ("LENGTH(s) > 1", [True, False, None, False]),
        ("LOWER(s) = 'b'", [False, True, None, False]),
        ("REPLACE(s, 'a', '') = 'b'", [True, False, None, False]),
        ("s ~ '^[a-z]'", [True, False, None, False]),
        ("n + 1 = 2", [True, False, None, False]),
        ("s || 'c' = 'abc'", [True, False, None, False]),
    ],
)
def test_null_stays_null(rule: str, expected: list[bool | None]):
    assert values(rule) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("n IS NULL", [False, False, True, False]),
        ("n IS NOT NULL", [True, True, False, True]),
        ("COALESCE(n, 0) = 0", [False, False, True, True]),
    ],
)
def test_null_becomes_a_value_only_where_the_rule_says_so(rule: str, expected: list[bool]):
    assert values(rule) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("n / n > 1", [False, False, None, None]),
        ("1 % n > 1", [False, False, None, None]),
    ],
)
def test_what_arithmetic_does_not_define_is_neither_true_nor_false(
    rule: str, expected: list[bool | None]
):
    assert values(rule) == expected


@pytest.mark.parametrize(
    "rule", ["flag IS TRUE", "flag IS NOT TRUE", "n IS DISTINCT FROM 1", "SQRT(n) > 1", "LN(n) > 1"]
)
def test_null_cannot_be_off_by_a_side_door(rule: str):
    with pytest.raises(RuleError):
        Rule.parse(rule)


ODD = pl.DataFrame(
    {
        "i": [7, -7, None],
        "x": [0.5, 2.5, 2.7],
        "s": ["Straße", "É", "abc"],
        "day": pl.Series(["2026-01-31"] * 3).str.to_date(),
    }
)


# the table of docs/reference/plan.md, row by row
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("i / 2 = 3.5", [True, False, None]),
        ("i % 3 = -1", [False, True, None]),
        ("ROUND(x) = 0", [True, False, False]),
        ("ROUND(x) = 2", [False, True, False]),
        ("CAST(x AS INT) = 2", [False, True, True]),
        ("UPPER(s) = 'STRASSE'", [True, False, False]),
        ("s ILIKE 'é'", [False, True, False]),
        ("s ~* '^é$'", [False, True, False]),
        ("LENGTH(s) = 1", [False, True, False]),
        ("SUBSTRING(s, 0, 2) = 'a'", [False, False, True]),
        ("LEFT(s, -1) = 'ab'", [False, False, True]),
        ("RIGHT(s, -1) = 'bc'", [False, False, True]),
        ("s < 'a'", [True, False, False]),
        ("s NOT IN ('abc', NULL)", [None, None, False]),
        ("day > DATE '2026-01-30'", [True, True, True]),
    ],
)
def test_rules_mean_what_the_reference_says(rule: str, expected: list[bool | None]):
    assert values(rule, ODD) == expected


def test_a_column_name_is_no_pattern():
    frame = pl.DataFrame({"a": [1, 2], "^a$": [5, 0], "error": [0, 1]})
    with pytest.raises(InputError, match="pattern"):
        Evidence.from_table(frame, outcome="error")


@pytest.mark.parametrize(
    "rule",
    [
        '"flag"',
        'NOT "flag"',
        '"a.b c" = 1',
        '"Zürich: x/y" <> \'Ä b\' AND NOT "b" AND "a" <= 0.50',
        '"b" = \'\' AND "a" > 10 AND "a" >= 2 AND "c" < 123456789012345678901.25',
        '"NULL" = \'AND\' AND "select"',
        '"a" > -0.5 AND NOT "b" IN (\'x\', -2) AND "c" IN (1)',
        '"a" IS NULL AND NOT "b" IS NULL',
    ],
)
def test_rules_that_need_no_parser_are_read_as_a_parser_reads_them(rule: str):
    assert _is_plain(rule)
    assert not _is_plain(f" {rule}")
    assert Rule.parse(rule) == Rule.parse(f" {rule}")


def test_a_rule_nested_too_deeply_is_refused():
    with pytest.raises(RuleError):
        Rule.parse("n" + "::int" * 3000 + " > 1")


def test_spelling_does_not_matter():
    assert Rule.parse("n>1 and S = 'x'") == Rule.parse('"n" > 1 AND "S"=\'x\' -- a note')
    assert Rule.parse("S > 1").columns == ("S",)
    assert Rule.parse("b > 1 OR a > 2 OR b > 3").columns == ("a", "b")


column_names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@settings(deadline=None)
@given(column_names, st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_any_column_name_and_any_text_can_be_quoted(column: str, text: str):
    frame = pl.DataFrame({column: [text, text + "x", None]})
    rule = Rule.parse(f"{quote(column)} = {literal(text)}")
    assert rule.columns == (column,)
    assert frame.select(r=rule.to_polars())["r"].to_list() == [True, False, None]


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**62), 2**62))
def test_any_number_comes_back_as_itself(number: float):
    frame = pl.DataFrame({"x": [number, None]})
    assert values(f"x = {literal(number)}", frame) == [True, None]
    assert values(f"x > {literal(number)}", frame) == [False, None]


@settings(deadline=None)
@given(st.booleans())
def test_truth_can_be_written(value: bool):
    assert values(f"flag = {literal(value)}", pl.DataFrame({"flag": [value, not value]})) == [
        True,
        False,
    ]


def evidence() -> Evidence:
    return Evidence.from_table(FRAME.with_columns(error=pl.Series([0, 1, 0, 1])), outcome="error")


def marks(candidate: Candidate) -> Marks:
    return Marks.of(evidence(), Library.of([candidate]))


def test_a_rule_over_unknown_columns_is_refused_by_name():
    with pytest.raises(RuleError, match=r"'long' reads column 'words'.*its columns are"):
        marks(Candidate("long", "words > 1"))


@pytest.mark.parametrize("rule", ["n", "s", "n + 1", "LOWER(s)", "COALESCE(n, 0)"])
def test_a_rule_that_is_neither_true_nor_false_is_refused(rule: str):
    with pytest.raises(RuleError, match="not true or false"):
        marks(Candidate("odd", rule))


@pytest.mark.parametrize(
    "rule", ["s > 1", "LOWER(n) = 'x'", "s ~ '('", "CAST(s AS INT) > 1", "n IN ()", "s ~ s"]
)
def test_a_rule_that_the_engine_cannot_evaluate_is_refused_in_one_line(rule: str):
    with pytest.raises(RuleError) as refusal:
        marks(Candidate("odd", rule))
    assert "'odd'" in str(refusal.value) or "cannot evaluate" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_values_reject_count_as_off_or_drop_out():
    reject, off, drop = (
        marks(Candidate("c", "n > 1", missing=how)) for how in ("reject", "off", "drop")
    )
    assert reject.unusable == ("missing",)
    assert (off.unusable, drop.unusable) == (("",), ("",))
    assert [int(x[0]) for x in off.counts()] == [4, 1]
    assert [int(x[0]) for x in drop.counts()] == [3, 1]


@pytest.mark.parametrize(("name", "missing"), [("", "reject"), ("  ", "off"), ("x", "ignore")])
def test_a_candidate_needs_a_name_and_a_known_treatment_of_missing_values(name: str, missing: str):
    with pytest.raises(RuleError):
        Candidate(name, "n > 1", missing=missing)  # type: ignore[arg-type]


def test_a_candidate_is_read_from_the_command_line():
    assert Candidate.from_text("late: s = 'a:b'") == Candidate("late", "s = 'a:b'")
    for text in ("n > 1", ": n > 1", "late:", ""):
        with pytest.raises(RuleError, match="NAME: SQL"):
            Candidate.from_text(text)


rules = st.sampled_from(["n > 1", "n <= 1", "s = 'é\"''\n'", "flag", "n IS NULL"])
candidates = st.builds(
    Candidate,
    # mostly letters that may be in a name, so that few are drawn in vain
    name=st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1).filter(
        str.isprintable
    ),
    rule=rules,
    meaning=st.text(st.characters(codec="utf-8")),
    source=st.text(st.characters(codec="utf-8")),
    missing=st.sampled_from(["reject", "off", "drop"]),
)
libraries = st.lists(candidates, max_size=5, unique_by=lambda c: c.name).map(Library.of)


@settings(deadline=None)
@given(libraries, st.randoms(use_true_random=False))
def test_a_library_survives_json_and_its_hash_ignores_order(library: Library, random):
    assert Library.from_json(library.to_json()) == library
    shuffled = list(library)
    random.shuffle(shuffled)
    assert Library.of(shuffled).hash == library.hash


def test_a_library_is_frozen_to_a_file(tmp_path: Path):
    library = Library.of([Candidate("a", "n > 1"), Candidate("b", "flag", "raised", "me", "drop")])
    library.freeze(tmp_path / "deep" / "library.json")
    assert Library.load(tmp_path / "deep" / "library.json") == library


@pytest.mark.parametrize(("field", "value"), [("rule", "n > 2"), ("name", "b"), ("missing", "off")])
def test_a_tampered_library_is_refused(field: str, value: str):
    data = json.loads(Library.of([Candidate("a", "n > 1")]).to_json())
    data["candidates"][0][field] = value
    with pytest.raises(InputError, match="do not match the hash"):
        Library.from_json(json.dumps(data))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"candidates": [{}], "hash": ""}', '{"candidates": 3, "hash": ""}']
)
def test_what_is_no_library_is_refused(text: str, tmp_path: Path):
    path = tmp_path / "library.json"
    path.write_text(text)
    with pytest.raises(InputError, match="not a frozen groundfault library"):
        Library.load(path)


def test_a_library_that_is_not_there_or_not_text_is_refused(tmp_path: Path):
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    for name in ("absent", "latin", "."):
        with pytest.raises(InputError, match="cannot read the library"):
            Library.load(tmp_path / name)


def test_repeats_are_merged_and_contradictions_refused():
    one = Candidate("a", "n > 1")
    assert Library.of([one, Candidate("a", "n > 1")]).candidates == (one,)
    for other in (Candidate("a", "n > 2"), Candidate("a", "n > 1", missing="off")):
        with pytest.raises(RuleError, match="rename one"):
            Library.of([one, other])


def test_taken_names_are_numbered():
    candidates = [Candidate(name, f"n > {i}") for i, name in enumerate(["a", "a", "a (2)", "b"])]
    assert [c.name for c in unique_names(candidates, reserved=["b"])] == [
        "a",
        "a (2)",
        "a (2) (2)",
        "b (2)",
    ]


def select(rule: str) -> list[str | None]:
    """The texts for which a rule is true, and None where it is NULL."""
    values = TEXTS.select("s", on=Rule.parse(rule).to_polars())
    return [text for text, on in values.iter_rows() if on is None or on]


# as PostgreSQL 16 answers: its escape is a backslash, in texts a backslash is itself
@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (r"s LIKE 'a_b'", ["a_b", "axb", "a%b", "a\\b", "a\nb", None, "a.b"]),
        (r"s LIKE 'a\_b'", ["a_b", None]),
        (r"s LIKE 'a\%b'", ["a%b", None]),
        (r"s LIKE 'a\\b'", ["a\\b", None]),
        (r"s LIKE '%\_b'", ["a_b", None]),
        (r"s LIKE 'a\.b'", [None, "a.b"]),
        (r"s ILIKE 'a\_b'", ["a_b", "A_B", None]),
        (r"s NOT LIKE '%\_%'", ["axb", "a%b", "a\\b", "a\nb", None, "a.b"]),
        (r"NOT (s LIKE 'a\_b' OR s LIKE 'a\%b')", ["axb", "a\\b", "A_B", "a\nb", None, "a.b"]),
        (r"s LIKE 'a!_b' ESCAPE '!'", ["a_b", None]),
        (r"s NOT ILIKE 'a!_b' ESCAPE '!'", ["axb", "a%b", "a\\b", "a\nb", None, "a.b"]),
        (r"s LIKE 'a__b' ESCAPE '_'", ["a_b", None]),
        (r"s LIKE 'a\b' ESCAPE ''", ["a\\b", None]),
        (r"s || '!' LIKE 'a\_b!'", ["a_b", None]),
        (r"LOWER(s) LIKE 'a\_b'", ["a_b", "A_B", None]),
    ],
)
def test_like_means_what_it_means_in_postgres(rule: str, texts: list[str | None]):
    assert select(rule) == texts


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("s LIKE 'a\\'", "ends with its escape"),
        ("s LIKE 'a!' ESCAPE '!'", "ends with its escape"),
        ("s LIKE 'a' ESCAPE '!!'", "one character"),
        ("s LIKE s", "pattern in quotes"),
        ("s LIKE 'a' || '_'", "pattern in quotes"),
        ("s LIKE 'a' ESCAPE s", "not SQL"),
    ],
)
def test_a_pattern_that_means_nothing_is_refused_by_name(rule: str, words: str):
    with pytest.raises(RuleError, match=words):
        Rule.parse(rule)


def test_escapes_are_one_rule_in_the_normal_form():
    spellings = [r"s LIKE 'a\_b'", "s LIKE 'a!_b' ESCAPE '!'", "s LIKE 'a#_b' ESCAPE '#'"]
    assert len({Rule.parse(rule).sql for rule in spellings}) == 1
    assert Rule.parse(Rule.parse(spellings[1]).sql) == Rule.parse(spellings[0])


def test_every_sign_of_regular_expressions_stands_for_itself():
    signs = "".join(map(chr, range(32, 127))) + "\n\té"
    pattern = "".join("\\" + c if c in "\\%_" else c for c in signs)
    assert pl.Series([signs]).str.contains(to_regex(pattern)).item()
    assert "".join(c for c, _ in split_pattern(pattern)) == signs
    assert use_backslash(pattern, "\\") == pattern


def test_highlights_know_escapes():
    assert find_patterns(r"s LIKE '%100\%%sure_' AND s LIKE 'x\_y' AND s NOT LIKE 'z'") == {
        "s": ("100%|sure.", "x_y")
    }
