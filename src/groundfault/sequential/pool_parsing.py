"""Read and check the ids, groups, embeddings and scores of the tables that pools are made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.arrays import Bools, Floats
from groundfault.core.candidate import Candidate, matrix
from groundfault.errors import InputError, RuleError, require_name
from groundfault.readers.grades import holds_verdicts, read_grades
from groundfault.readers.table import read_table
from groundfault.slicing import embedding as embeddings
from groundfault.slicing.embedding import embed


def get_column(frame: pl.DataFrame, name: str, where: str) -> pl.Series:
    """Return the column of that name.

    Raises
    ------
    InputError
        If there is none.
    """
    require_name("column", name, frame.columns, InputError, where)
    return frame[name]


def read_ids(frame: pl.DataFrame, name: str | None, where: str) -> list[str]:
    """Return an id for each row; its number where no column is named."""
    if name is None:
        return [str(i) for i in range(frame.height)]
    ids = get_column(frame, name, where)
    if ids.null_count():
        raise InputError(
            f"{where}: column {name!r} is empty in {ids.null_count()} rows; every case needs an id"
        )
    return ids.cast(pl.String).to_list()


def check_ids(ids: Sequence[str]) -> None:
    """Raise `InputError` if there are no ids, or two are the same."""
    if not len(ids):
        raise InputError("the pool is empty: an audit needs one case or more")
    duplicates = [name for name, count in Counter(ids).items() if count > 1]
    if duplicates:
        raise InputError(
            f"{len(duplicates)} ids stand for several cases, for example {duplicates[0]!r}; "
            "ids must be unique"
        )


def parse_groups(
    frame: pl.DataFrame, group: str | Candidate, where: str
) -> Iterator[tuple[str, Bools]]:
    """Return names and masks, shape (N,), of the groups of a column, of columns with ``*``, or a
    rule.
    """
    if isinstance(group, Candidate):
        yield group.name, _apply_rule(frame, group, where)
        return
    names = (group,) if group in frame.columns else tuple(part.strip() for part in group.split("*"))
    table = pl.DataFrame([get_column(frame, name, where).cast(pl.String) for name in names])
    # NULL is a level: what has no value must not drop out of every group unseen
    filled = table.select(
        pl.format("{}={}", pl.lit(c), c).fill_null(f"{c} is missing").alias(c) for c in names
    )
    labels = filled.select(pl.concat_str(names, separator=", ")).to_series()
    yield from split_levels(labels.to_numpy(), group)


def split_levels(labels: NDArray[Any], what: str) -> Iterator[tuple[str, Bools]]:
    """Return a group for each different label."""
    distinct = sorted(set(labels))
    if len(distinct) > max(2, len(labels) // 2):
        raise InputError(
            f"{what!r} has {len(distinct)} levels in {len(labels)} cases: too many for groups; "
            "name a column that repeats, or write a rule"
        )
    for level in distinct:
        yield level, labels == level


def _apply_rule(frame: pl.DataFrame, candidate: Candidate, where: str) -> Bools:
    for name in candidate.columns:
        get_column(frame, name, where)
    try:
        values = candidate.parsed.evaluate(frame)
    except RuleError as error:
        raise InputError(f"group {candidate.name!r}: {error}") from None
    if values.null_count() and candidate.missing != "off":
        raise InputError(
            f"group {candidate.name!r} is neither true nor false of {values.null_count()} cases; "
            "write a rule that covers them, for example with IS NOT NULL"
        )
    return values.fill_null(False).to_numpy()


def read_embedding(
    frame: pl.DataFrame, embedding: object, id: str | None, where: str
) -> tuple[Any, list[str]]:
    """Return an embedding, and the columns that hold its numbers.

    It is a column of texts or lists, numeric columns, a table of the same ids, or an array.
    """
    names = [embedding] if isinstance(embedding, str | Path) else embedding
    if not isinstance(names, list | tuple) or not all(isinstance(n, str | Path) for n in names):
        return embedding, []
    patterns = [str(name) for name in names]
    if len(patterns) == 1 and frame.schema.get(patterns[0]) == pl.String:
        return embed(frame[patterns[0]]), []
    columns = [c for c in frame.columns if any(c == p or fnmatchcase(c, p) for p in patterns)]
    if columns:
        return matrix(frame, columns), columns
    if len(patterns) == 1 and Path(patterns[0]).is_file():
        return _join_embedding(frame, Path(patterns[0]), id, where), []
    raise InputError(
        f"{where} has no column, and there is no file, {', '.join(patterns)!r} for an embedding"
    )


def _join_embedding(frame: pl.DataFrame, path: Path, id: str | None, where: str) -> Floats:
    table, _ = read_table(path)
    if id is None or id not in table.columns:
        raise InputError(f"{path} cannot be joined to {where}: name an id column that both have")
    others = table.with_columns(pl.col(id).cast(pl.String))
    if others[id].is_duplicated().any():
        raise InputError(f"{path}: ids in column {id!r} repeat; give one embedding a case")
    ids = frame.select(pl.col(id).cast(pl.String))
    absent = ids[id].filter(~ids[id].is_in(others[id].to_list()))
    if len(absent):
        raise InputError(
            f"{path} has no embedding of {len(absent)} cases, for example {absent[0]!r}"
        )
    numbers = [c for c, dtype in table.schema.items() if c != id and dtype.is_numeric()]
    if not numbers:
        raise InputError(f"{path} has no numeric columns for an embedding")
    return matrix(ids.join(others, on=id, how="left", maintain_order="left"), numbers)


def check_embedding(embedding: Any, rows: int) -> Floats:
    """Return an embedding as a float64 matrix.

    Raises
    ------
    InputError
        If it is no matrix with a row a case, or has NaN or infinite entries.
    """
    points = embeddings.check_embedding(embedding, "the embedding")
    if len(points) != rows:
        raise InputError(
            f"the embedding has shape {points.shape}; give a row for each of {rows} cases"
        )
    return points


def read_scores(frame: pl.DataFrame, name: str, where: str) -> Floats:
    """Return recorded scores; NaN where the column is empty."""
    scores = get_column(frame, name, where)
    if scores.dtype == pl.String and holds_verdicts(scores):
        scores = read_grades(frame, name, positive_is_good=True, null_outcome=None)[0][name]
    if not (scores.dtype.is_numeric() or scores.dtype in (pl.Boolean, pl.Null)):
        raise InputError(
            f"{where}: column {name!r} holds {scores.dtype}; scores are numbers in [0, 1], words "
            "such as pass and fail, or true/false: write 1 for a pass and 0 for a failure"
        )
    values = scores.cast(pl.Float64)
    if values.is_nan().any():
        raise InputError(
            f"{where}: column {name!r} holds NaN; scores lie in [0, 1], and a case "
            "without a score is empty"
        )
    return check_scores(
        values.fill_null(float("nan")).to_numpy(), frame.height, f"{where}: column {name!r}"
    )


def check_scores(values: object, rows: int, where: str) -> Floats:
    """Return the scores as float64, NaN without one.

    Raises
    ------
    InputError
        If there is not one a case, or one is outside [0, 1].
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.shape != (rows,):
        raise InputError(f"{where} has shape {scores.shape}; give a score for each of {rows} cases")
    bad = scores[(scores < 0) | (scores > 1)]
    if len(bad):
        raise InputError(
            f"{where} holds the score {bad[0]:g}; scores lie in [0, 1]: write 1 to 5 as 0, 0.25, "
            "0.5, 0.75 and 1"
        )
    return scores
