"""The reference's pool: only claims about declared groups have true nulls to be counted."""

from __future__ import annotations

from itertools import product

import polars as pl

from groundfault_studies import sequential_pool
from groundfault_studies.audit_runs import DEGRADATIONS
from groundfault_studies.sequential_pool import BETS, BURN_INS, SEEDS, WAYS


def test_true_nulls_are_counted_of_declared_groups_alone():
    rows = pl.DataFrame(
        [
            {
                "way": way,
                "policy": "logistic",
                "setting": setting,
                "seed": seed,
                "bet": bet,
                "m": burn_in,
                "verdict": "failure mode found" if seed == SEEDS[0] else "audit passed",
                "labelled": 40 + seed,
                "true": setting == "None",
            }
            for way, setting, seed, bet, burn_in in product(
                WAYS, DEGRADATIONS, SEEDS[:2], BETS, BURN_INS
            )
        ]
    )
    schema = {"setting": pl.String, "method": pl.String, "m": pl.Int64}
    records = pl.DataFrame(schema=schema | {"outcome": pl.String, "labelled": pl.Int64})
    *others, declared = sequential_pool._tabulate(rows, records).tables
    for table in others:
        assert list(table.columns) == ["found", "passed", "labels"]
        assert "True nulls" not in table.note
    assert list(declared.columns) == ["found", "passed", "labels", "true", "wrong"]
    assert "True nulls" in declared.note
    none = next(row for row in declared.rows if row.label.startswith("None"))
    large = next(row for row in declared.rows if row.label.startswith("Large"))
    assert (none.here["true"], none.here["wrong"], none.here["found"]) == (2, 1, 0.5)
    assert (large.here["true"], large.here["wrong"]) == (0, 0)
