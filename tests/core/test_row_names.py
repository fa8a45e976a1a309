"""What a row is known by: its key, or where the table has none, its content."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl

from groundfault.base.holdout_events import Opening
from groundfault.base.ledger import Ledger
from groundfault.base.row_sketch import measure_overlap
from groundfault.core.evidence import Evidence
from groundfault.core.row_names import sampler_of

SALT = "00" * 16
LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
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


def test_another_scorer_of_a_log_is_a_look_at_the_same_answers(tmp_path: Path) -> None:
    """And neither another model, nor another run of it, is."""
    ledger = Ledger(tmp_path / "ledger.db")

    def look(name: str, scorer: str) -> Opening:
        evidence = Evidence.from_logs(LOGS / f"inspect_0.3.285_{name}.eval", scorer=scorer)
        return ledger.open_holdout(
            evidence_hash=evidence.hash,
            outcome_hash=evidence.outcome_hash,
            split_hash="",
            library_hash="",
            plan_hash="",
            sample=sampler_of(evidence),
        )

    first, second, other = look("base", "match"), look("base", "includes"), look("new", "match")
    assert (first.times, second.times, other.times) == (1, 2, 1)
    assert (second.rescored, second.overlapping) == (1, 0)
    assert "1 of them with the same answers scored in another way" in second.sentence
    again = look("base", "match")
    assert (again.replay, again.times, again.rescored) == (True, 2, 1)


def test_columns_of_any_type_are_no_trouble() -> None:
    size = 20
    odd: dict[str, pl.Series] = {
        "bytes": pl.Series([b"\xff"] * size),
        "lists": pl.Series([[b"\xff"]] * size),
        "structs": pl.Series([{"a": b"\xff"}] * size),
        "objects": pl.Series([object()] * size, dtype=pl.Object),
        "numbers": pl.Series([Decimal(i) for i in range(size)]),
        "days": pl.Series([timedelta(days=1)] * size),
        "nothing": pl.Series([None] * size),
        "infinite": pl.Series([float("inf")] * size),
    }
    error = pl.Series("error", [0, 1] * (size // 2))
    for name, values in odd.items():
        table = pl.DataFrame({"text": [f"t{i}" for i in range(size)], name: values, "error": error})
        sample = sampler_of(Evidence.from_table(table, outcome="error"))(SALT)
        assert len(sample.keys) == size


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
