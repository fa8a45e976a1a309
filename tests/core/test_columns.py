"""Columns: what kind each attribute is, and which are meant by a name or pattern."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest

from groundfault.core.columns import (
    Kind,
    flag_rule,
    list_examples,
    match_attributes,
    profile,
    profile_examples,
    propose_missing,
    take_sample,
)
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault_lab.commands.slices import share_words


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a", [1] * 50, Kind.CONSTANT),
        ("a", [None] * 50, Kind.CONSTANT),
        ("a", [True, False] * 25, Kind.FLAG),
        ("a", [0, 1] * 25, Kind.FLAG),
        ("a", [0.5 * i for i in range(50)], Kind.NUMBER),
        ("length", [i % 7 for i in range(50)], Kind.NUMBER),
        ("a", list(range(50)), Kind.CODE),
        ("seed", [i % 7 for i in range(50)], Kind.LABEL),
        ("a", ["de", "en"] * 25, Kind.LABEL),
        ("a", [f"question {i} of many" for i in range(50)], Kind.TEXT),
        ("a", [f"{i:08x}" for i in range(50)], Kind.CODE),
        ("a", [date(2026, 1, 1 + i % 9) for i in range(50)], Kind.OTHER),
        ("a", [[1, 2]] * 50, Kind.OTHER),
    ],
)
def test_kinds(name: str, values: list[Any], kind: Kind) -> None:
    (column,) = profile(pl.DataFrame({name: values}))
    assert column.kind is kind
    assert column.missing == sum(value is None for value in values)


def test_columns_are_looked_at_once_for_all_who_ask() -> None:
    table = pl.DataFrame({"n": [0.5, 1.5, None], "word": ["a", "b", "b"], "error": [1, 0, 0]})
    evidence = Evidence.from_table(table, outcome="error")
    columns = profile_examples(evidence)
    assert columns == profile(list_examples(evidence))
    assert profile_examples(evidence) is columns


def test_a_sample_is_always_the_same_rows_in_order() -> None:
    table = pl.DataFrame({"n": range(100)})
    rows = take_sample(table, 10)["n"].to_list()
    assert rows == sorted(rows) == take_sample(table, 10)["n"].to_list()
    assert len(set(rows)) == 10
    assert take_sample(table, 100) is table


def evidence() -> Evidence:
    frame = pl.DataFrame(
        {
            "id": ["a", "a", "b", "b"],
            "model": ["m", "n"] * 2,
            "error": [0, 1, 1, 0],
            "d__x": [1, 1, 0, 0],
            "d__y": [None, None, 2, 2],
            "varying": [1, 2, 3, 4],
        }
    )
    return Evidence.from_table(frame, id="id", model="model", outcome="error")


def test_examples_have_one_row_each() -> None:
    table = list_examples(evidence())
    assert table.columns == ["d__x", "d__y"]
    assert table.height == 2


def test_names_and_patterns_stand_for_attributes() -> None:
    assert match_attributes(evidence(), ["d__y", "d__*"]) == {"d__y": "d__y", "d__x": "d__*"}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("error", "it has another part"),
        ("varying", "it differs between rows of one example"),
        ("d_x", "near it: d__x"),
        ("zzz", "the attributes: d__x, d__y"),
    ],
)
def test_what_stands_for_nothing_is_explained(pattern: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        match_attributes(evidence(), [pattern])


def test_missing_values_are_proposed_once_a_pattern() -> None:
    table = pl.DataFrame({"a": [None, 1], "b": [None, "x"], "c": [1, 2], "d": [None, None]})
    candidates = list(propose_missing(table, profile(table), "me"))
    assert [c.rule for c in candidates] == ['"a" IS NULL']
    assert candidates[0].meaning == "a is missing, together with b"


def test_the_rule_of_a_flag() -> None:
    assert flag_rule("a", pl.Boolean()) == '"a"'
    assert flag_rule("a", pl.Int64()) == '"a" = 1'


def test_shared_words_are_the_same_evidence() -> None:
    table = pl.DataFrame(
        {
            "item": [f"q{i}" for i in range(60)],
            "lang": ["de", "en", None] * 20,
            "prompt": [f"Is it {i} or not?" for i in range(60)],
            "seed": [i % 7 for i in range(60)],
            "error": [0, 1] * 30,
        }
    )
    evidence = Evidence.from_table(table, id="item", outcome="error")
    shared = share_words(evidence)
    assert shared.hash == evidence.hash
    changes = {
        name: dtype for name, dtype in shared.frame.schema.items() if dtype != table.schema[name]
    }
    assert list(changes) == ["lang"]
    assert changes["lang"] == pl.Categorical


def test_addresses_paths_and_scripts_without_spaces_are_texts_and_ids_are_not() -> None:
    columns = {
        "mail": [f"jo.{i}+x@mail.com" for i in range(200)],
        "path": [f"src/module{i}/file.py" for i in range(200)],
        "prompt": [f"我想退还第{i}件商品" for i in range(200)],
        "thai": [f"สวัสดีครับ{i}" for i in range(200)],
        "code": [f"q{i:04}" for i in range(200)],
        "digest": [f"{i:032x}" for i in range(200)],
        "example_id": [f"task/{i}" for i in range(200)],
        "repeated": [f"a/{i % 90}" for i in range(200)],
    }
    kinds = {column.name: column.kind for column in profile(pl.DataFrame(columns))}
    texts = {name for name, kind in kinds.items() if kind is Kind.TEXT}
    assert texts == {"mail", "path", "prompt", "thai"}
    assert {kinds[name] for name in columns if name not in texts} == {Kind.CODE}
