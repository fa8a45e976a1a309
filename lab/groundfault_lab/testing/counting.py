"""What every engine that counts must satisfy, and 63 rules on which engines are known to differ."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path

import numpy as np
import polars as pl

from groundfault.base.reading import read_beside
from groundfault.core.rules import Rule
from groundfault.engines import (
    ROWS,
    SCORED,
    Counter,
    GroupBy,
    GroupingCounter,
    find_disagreements,
    name_difference,
)
from groundfault_lab.testing.checks import require

EDGES = pl.DataFrame(
    {
        "id": [f"e{i:02d}" for i in range(12)],
        "i": [7, -7, 0, 1, 2, None, 3, -3, 10, 10**15 + 1, 5, -1],
        "j": [2, 2, 0, None, 5, 3, -2, 2, 10, 1, 4, 0],
        "x": [0.5, 1.5, 2.5, -0.5, None, float("nan"), -0.0, 2.675, 1e300, 0.1, 1e-320, 3.0],
        "s": ["abc", "a_b", "axb", "a\\b", None, "", " abc ", "100%", "Straße", "É", "İi", "a\nb"],
        "t": ["2", "x.y", "Zebra", "zebra", "", None, "a,b,c", "ñ", "ſ", "σς", "🙂ab", "10"],
        "flag": [True, False, None, True, False, True, True, False, None, True, False, True],
        "day": [date(2026, 1, 1 + 2 * i) if i != 3 else None for i in range(12)],
        "at": [datetime(2026, 1, 1, i, 30) if i != 4 else None for i in range(12)],
    },
    schema_overrides={"i": pl.Int64, "j": pl.Int64, "at": pl.Datetime("us")},
)
"""A table of values that engines treat differently."""

_RULES = tomllib.loads(read_beside(__file__, "engine_rules.toml"))
PLAIN: dict[str, str] = _RULES["plain"]
"""Rules without which no audit is possible: every engine has to agree on these."""
DANGEROUS: dict[str, str] = _RULES["dangerous"]
"""Rules that engines differ in, as they stand or in some version."""

EDGE_RULES: Mapping[str, Rule] = {
    name: Rule.parse(sql) for name, sql in (PLAIN | DANGEROUS).items()
}
"""All 63."""


def check_counter(open_files: Callable[[tuple[str, ...]], Counter]) -> dict[str, str]:
    """Check that an engine counts right, and say in which rules it differs from polars.

    An engine need not agree in every rule: an audit compares values of its candidates on a sample
    before it counts, and leaves out what differs. So what is asked here is that it agrees in
    `PLAIN` rules, that it never counts anything but what it says the values are, row by row, that
    a split by MD5 is the same everywhere, and that groups are, if it makes any.

    Parameters
    ----------
    open_files : callable
        Makes the counter of some Parquet files, as its class does.

    Returns
    -------
    dict of str to str
        The names of `EDGE_RULES` in which it differs or fails, and how.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = tuple(str(Path(folder) / f"part-{i}.parquet") for i in range(2))
        for i, path in enumerate(files):
            EDGES[i * 6 : i * 6 + 6].write_parquet(path)
        counter = open_files(files)
        name = counter.name
        require(counter.files == files, f"{name} has to say which files it counts in")
        columns = list(counter.find_schema())
        require(columns == EDGES.columns, f"{name} does not name all columns in order")
        differences = find_disagreements(counter, EDGE_RULES, "id IS NOT NULL")
        wrong = sorted(differences.keys() & PLAIN.keys())
        some = "; ".join(f"{rule} ({differences[rule]})" for rule in wrong[:3])
        require(not wrong, f"{name} differs in rules that every audit needs: {some}")
        failing = {rule for rule, words in differences.items() if not words.startswith("in ")}
        _check_counts(counter, [rule for rule in EDGE_RULES if rule not in failing])
        _check_split(counter)
        if isinstance(counter, GroupingCounter):
            _check_groups(counter)
        return differences


def _check_counts(counter: Counter, names: list[str]) -> None:
    """Check that counts are those of the values that the engine itself gives, in every cell."""
    rules = {name: EDGE_RULES[name].sql for name in names}
    by = {"big": "i > 2", "word": "s"}
    values = counter.evaluate(by | rules, "id IS NOT NULL")
    cells = counter.counts(list(rules.values()), by)
    require(int(cells.rows.sum()) == len(EDGES), f"{counter.name} lost rows, or counted some twice")
    for place, key in enumerate(cells.keys.iter_rows(named=True)):
        same = [pl.col(column).eq_missing(pl.lit(value)) for column, value in key.items()]
        rows = values.filter(*same)
        on = [int(rows[rule].cast(pl.Boolean).sum()) for rule in rules]
        defined = [rows[rule].count() for rule in rules]
        where = f"{counter.name} counts something else than its own values where {key}"
        require(int(cells.rows[place]) == rows.height, f"{where}: rows")
        for i, rule in enumerate(rules):
            require(int(cells.on[place, i]) == on[i], f"{where}: {rule}")
            require(int(cells.defined[place, i]) == defined[i], f"{where}: {rule} is NULL")
    whole = counter.counts(list(rules.values()), {})
    require(
        len(whole) == 1 and np.array_equal(whole.on[0], cells.on.sum(axis=0)),
        f"{counter.name}: counts without cells are not the sums over all cells",
    )
    part = counter.evaluate({"id": "id"}, EDGE_RULES["comparison"].sql)
    require(
        sorted(part["id"]) == sorted(EDGES.filter(pl.col("i") > 1)["id"]),
        f"{counter.name} evaluates other rows than the rule selects: NULL is no yes",
    )


def _check_split(counter: Counter) -> None:
    """Check the MD5 of an id with a seed, of which splits and samples are made."""
    import hashlib

    digests = {"id": "id", "digest": "MD5('7/' || CAST(id AS TEXT))"}
    for name, digest in counter.evaluate(digests, "TRUE OR flag").iter_rows():
        right = hashlib.md5(f"7/{name}".encode(), usedforsecurity=False).hexdigest()
        require(digest == right, f"{counter.name}: MD5 of '7/{name}' is {digest}, not {right}")


def _check_groups(counter: GroupingCounter) -> None:
    """Check groups by a column, in one part and in several."""
    columns = ("flag", "s", "x")
    groups = GroupBy("j", "mean", "CAST(NULLIF(i, 7) AS DOUBLE PRECISION)", columns)
    loss = pl.when(pl.col("i") != 7).then(pl.col("i").cast(pl.Float64))
    differs = [
        (pl.col(name).fill_nan(None) if name == "x" else pl.col(name)).n_unique() > 1
        for name in columns
    ]
    expected = EDGES.group_by("j").agg(
        loss.mean().alias("mean"),
        loss.count().alias(SCORED),
        pl.len().alias(ROWS),
        *(flag.alias(name_difference(i)) for i, flag in enumerate(differs)),
    )
    for parts in (1, 3):
        table = pl.concat([counter.group(groups, part, parts) for part in range(parts)])
        same = table.select(expected.columns).cast(expected.schema).sort("j")
        require(
            same.equals(expected.sort("j")),
            f"{counter.name} makes other groups of its rows, in {parts} parts, than polars",
        )
        one = table.filter(pl.col(ROWS) == 1).join(EDGES, on="j", nulls_equal=True)
        require(
            one["s"].equals(one["s_right"]),
            f"{counter.name} does not keep the values of a group of one row",
        )
