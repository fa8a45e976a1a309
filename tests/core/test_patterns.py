"""Patterns of LIKE: what an escape does, and the same answers as PostgreSQL gives."""

from __future__ import annotations

import polars as pl
import pytest

from groundfault.core.patterns import split_pattern, to_regex, use_backslash
from groundfault.core.rules import Rule
from groundfault.errors import RuleError
from groundfault.render.highlights import find_patterns

TEXTS = pl.DataFrame({"s": ["a_b", "axb", "a%b", "a\\b", "A_B", "a\nb", None, "a.b"]})


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
