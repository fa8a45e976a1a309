"""Merging: the rows of many logs as one table with one row for each answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import polars as pl

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.account import Account, LogRead
from groundfault.readers.log import ORIGIN, RUN, WORDING

_KEY = ("example_id", "model", "epoch")
_PUT_ASIDE = ("retried", "duplicated", "conflicting")
# statuses that a later run may have replaced: no answer, and an answer that ended in an error
_TO_RETRY = {str(Status.MISSING): 0, str(Status.ERROR): 1}
# above both: an answer that is there stands
_SETTLED = 2
# rows whose questions are hashed at a time
_PART = 100_000


def prefix_tasks(table: pl.DataFrame) -> pl.DataFrame:
    """Put the task in front of ids where there are several, which may share their ids."""
    if table["task"].n_unique() > 1:
        prefix = pl.when(pl.col("task") == "").then(pl.lit("")).otherwise(pl.format("{}/", "task"))
        return table.with_columns(pl.concat_str(prefix, "example_id").alias("example_id"))
    return table


def reconcile(
    table: pl.DataFrame, conflicts: str, logs: Sequence[LogRead]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the table with one row for each answer, and the numbers of rows that were put aside.

    They are the rows ``retried``, ``duplicated`` and ``conflicting`` of `Account`.
    """
    table = _identify(table.with_columns(_hashes(table["prompt"])), logs)
    if table["example_id"].n_unique() == table.height:
        return table.drop(ORIGIN, RUN, WORDING), dict.fromkeys(_PUT_ASIDE, 0)
    last = _last_tries(table, conflicts)
    unique = _drop_copies(last, conflicts)
    _require_one_result(unique, logs)
    words = _require_same_questions(unique, logs)
    texts = pl.col("question_hash").drop_nulls().n_unique().over("example_id", *words) > 1
    other_text = unique.filter(texts)
    if other_text.height and conflicts == "error":
        raise InputError(
            f"same id, other text: {_example(other_text, logs)}; if they are different examples, "
            "conflicts='keep' "
            "(--conflicts keep) reads them as such; if they are one question in the words of two "
            "configurations, name these: base=LOGS new=LOGS"
        )
    if other_text.height:
        tagged = pl.concat_str("example_id", pl.lit("#"), pl.col("question_hash").str.slice(0, 8))
        is_tagged = texts & pl.col("question_hash").is_not_null()
        ids = pl.when(is_tagged).then(tagged).otherwise("example_id").alias("example_id")
        unique = unique.with_columns(pl.coalesce("group", "example_id").alias("group"), ids)
    again = unique.filter(pl.struct(_KEY).is_duplicated())
    if again.height and conflicts == "error":
        raise InputError(
            f"same example and model, other result: {_example(again, logs)}; name one of the logs, "
            "or read them as "
            "repeats by conflicts='keep' (--conflicts keep)"
        )
    if again.height:
        unique = _number_repeats(unique)
    heights = table.height, last.height, unique.height
    changes = heights[0] - heights[1], heights[1] - heights[2], other_text.height + again.height
    return unique.drop(ORIGIN, RUN, WORDING), dict(zip(_PUT_ASIDE, changes, strict=True))


def _require_same_questions(rows: pl.DataFrame, logs: Sequence[LogRead]) -> list[str]:
    """Raise where configurations ask an example in other words and expect another answer.

    Returns the column within which an example has one text, where there is one.
    """
    reworded = rows.filter(pl.col(WORDING) != "")
    if not reworded.height:
        return []
    both = pl.col("question_hash", "target").drop_nulls().n_unique().over("example_id") > 1
    apart = reworded.filter(pl.all_horizontal(both))
    if apart.height:
        raise InputError(
            f"same id, other text and other target: {_example(apart, logs)}; these configurations "
            "were asked different examples, and cannot be compared one by one"
        )
    return [WORDING]


def _identify(table: pl.DataFrame, logs: Sequence[LogRead]) -> pl.DataFrame:
    """Return the table with an origin and a run for every row.

    The log's own content, where none is named.

    Two files of the same bytes are one log and its copy; of two others without a name for their
    run, groundfault cannot know that they are one.
    """
    files = dict(enumerate(log.sha256 for log in logs))
    file = pl.col("log").replace_strict(files, return_dtype=pl.String)
    return table.with_columns(pl.coalesce(c, file).alias(c) for c in (ORIGIN, RUN))


def _drop_copies(last: pl.DataFrame, conflicts: str) -> pl.DataFrame:
    """Drop rows that are copies of another.

    Where repeats are kept, only a row of the same origin is a copy. That another run came to the
    same answer is no reason to drop it: an example on which runs agree would then have fewer rows
    than one on which they differ, and its loss another weight.
    """
    same = [*_KEY, "scorer", "value", "status", "question_hash", "response"]
    if conflicts != "keep":
        return last.unique(same, keep="first", maintain_order=True)
    # repeats within one log may have equal answers, and count
    same.append(ORIGIN)
    nth = pl.int_range(pl.len()).over(*same, "log").alias("\0nth")
    numbered = last.with_columns(nth)
    return numbered.unique([*same, "\0nth"], keep="first", maintain_order=True).drop("\0nth")


def _require_one_result(rows: pl.DataFrame, logs: Sequence[LogRead]) -> None:
    """Raise where one answer is scored otherwise in another log: neither score is the last."""
    apart = rows.filter(pl.col("log").n_unique().over(*_KEY, ORIGIN) > 1)
    if apart.height:
        raise InputError(
            f"the same answer, other result: {_example(apart, logs)}; the logs hold one run, which "
            "was scored anew or edited: name one of them"
        )


def _last_tries(table: pl.DataFrame, conflicts: str) -> pl.DataFrame:
    """Drop missing answers and errors that another log replaces.

    Where repeats are kept, only another log of the same run does: an answer that failed in one of
    five runs has four repeats, as it would in one run of five epochs.
    """
    if table["log"].n_unique() == 1 or not table["status"].is_in(list(_TO_RETRY)).any():
        return table
    key = (*_KEY, RUN) if conflicts == "keep" else _KEY
    reached = pl.col("status").replace_strict(_TO_RETRY, default=_SETTLED, return_dtype=pl.Int8)
    # of an answer that failed in every log one row stays, so that it stays in the denominator
    best = (reached == reached.max().over(key)) & (
        (reached == _SETTLED) | pl.col("status").is_first_distinct().over(key)
    )
    return table.filter(best | (pl.col("log").n_unique().over(key) == 1))


def _number_repeats(rows: pl.DataFrame) -> pl.DataFrame:
    """Return epochs through all logs, and positions of answers that go on from log to log."""
    epoch = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("example_id", "model")
    rows = rows.with_columns(epoch.alias("epoch"))
    if "position" not in rows.columns or not rows["position"].dtype.is_integer():
        return rows
    # as in one log of several epochs: the second place in each of five logs is no property of an
    # example
    last = rows.group_by("log").agg(pl.col("position").max().fill_null(0)).sort("log")
    before = last["position"].cum_sum() - last["position"]
    shift = pl.col("log").replace_strict(last["log"], before, return_dtype=pl.Int64)
    return rows.with_columns(pl.col("position") + shift)


def _hashes(prompts: pl.Series) -> pl.Series:
    # in parts: as Python's, all texts would take twice the memory of the column
    parts = [_hash_part(prompts.slice(i, _PART)) for i in range(0, len(prompts), _PART)]
    return pl.concat(parts or [pl.Series(dtype=pl.String)]).alias("question_hash")


def _hash_part(prompts: pl.Series) -> pl.Series:
    texts = prompts.unique().drop_nulls()
    codes = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
    return prompts.replace_strict(texts, codes, default=None, return_dtype=pl.String)


def _example(rows: pl.DataFrame, logs: Sequence[LogRead]) -> str:
    ids = rows["example_id"].unique(maintain_order=True)
    log_numbers = rows.filter(pl.col("example_id") == ids[0])["log"].unique(maintain_order=True)
    places = ", ".join(os.path.relpath(logs[i].path) for i in log_numbers[:3])
    return f"{len(ids)} examples, such as {ids[0]!r} in {places}"


def account(
    table: pl.DataFrame,
    logs: list[LogRead],
    unread: list[str],
    scorers: dict[str, int],
    counts: dict[str, int],
    notes: tuple[str, ...],
    outcome: tuple[str, ...] = (),
) -> Account:
    """Count where every row that was read has gone."""
    answers = table.select("example_id", "model")
    # otherwise they are one a row, and looking for others takes as much memory as many columns
    if table["epoch"].n_unique() > 1:
        answers = answers.unique()
    examples = answers["example_id"].n_unique()
    rows_of = dict(answers["model"].value_counts().sort("model").iter_rows())
    each = answers["example_id"].value_counts()
    n_matched = int((each["count"] == len(rows_of)).sum())
    missing = {str(m): examples - int(n) for m, n in rows_of.items()} if len(rows_of) > 1 else {}
    every, rest = tuple(logs), tuple(unread)
    return Account(
        every, rest, scorers, examples, n_matched, missing, notes=notes, outcome=outcome, **counts
    )
