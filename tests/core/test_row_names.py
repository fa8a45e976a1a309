"""What a row is known by: its key, or where the table has none, its content."""

from __future__ import annotations

import polars as pl

from groundfault.base.overlap import measure_overlap
from groundfault.core.evidence import Evidence
from groundfault.core.row_names import sampler_of

SALT = "00" * 16
TABLE = pl.DataFrame(
    {
        "id": [i % 60 for i in range(120)],
        "model": ["a"] * 60 + ["b"] * 60,
        "n": [i * 0.5 for i in range(120)],
        "tags": [[str(i)] for i in range(120)],
        "error": [(i * i) % 7 % 2 for i in range(120)],
    }
)


def overlap(now: Evidence, earlier: Evidence) -> float:
    return measure_overlap(sampler_of(now)(SALT), sampler_of(earlier)(SALT))


def test_ids_are_names_whatever_their_type_and_the_other_columns() -> None:
    whole = Evidence.from_table(TABLE, outcome="error", id="id", model="model")
    texts = TABLE.with_columns(pl.col("id").cast(pl.String), new=pl.lit(1))[1:]
    part = Evidence.from_table(texts, outcome="error", id="id", model="model")
    assert overlap(part, whole) == 1
    assert overlap(whole, part) > 0.99
    assert overlap(whole.select_model("a"), whole) == 1
    assert overlap(whole.select_model("a"), whole.select_model("b")) == 0


def test_without_ids_a_row_is_known_by_its_content() -> None:
    whole = Evidence.from_table(TABLE.drop("id"), outcome="error")
    part = Evidence.from_table(TABLE.drop("id")[1:], outcome="error")
    assert overlap(part, whole) == 1
    assert overlap(Evidence.from_table(TABLE.drop("id", "n", "tags"), outcome="error"), whole) == 0


def test_rows_that_are_alike_or_were_not_scored_are_left_out() -> None:
    alike = pl.concat([TABLE.drop("id"), TABLE.drop("id")[:20]])
    assert len(sampler_of(Evidence.from_table(alike, outcome="error"))(SALT).keys) == 100
    empty = TABLE.with_columns(error=pl.when(pl.col("n") > 10).then("error"))
    evidence = Evidence.from_table(
        empty, outcome="error", id="id", model="model", null_outcome="missing"
    )
    assert len(sampler_of(evidence)(SALT).keys) == 99
    bare = Evidence.from_table(TABLE.select("error"), outcome="error")
    assert len(sampler_of(bare)(SALT).keys) == 0
