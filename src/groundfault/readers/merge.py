"""Merging: the rows of many logs as one table with one row for each answer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import polars as pl

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.account import Account, LogRead
from groundfault.readers.log import stack

_KEY = ("example_id", "model", "epoch")
_ANSWER = (*_KEY, "task", "log")
_MAX_OTHERS = 50
_MAX_NAMES = 12
# statuses that a later run may have replaced: no answer, and an answer that ended in an error
_TO_RETRY = {str(Status.MISSING): 0, str(Status.ERROR): 1}
_SETTLED = 2

DISAGREE = "scorers_disagree"
"""Column: whether another scorer's score differs by at least one half from the chosen one's."""


def select_scorer(
    table: pl.DataFrame, scorers: tuple[str, ...], verdicts: Sequence[str]
) -> tuple[pl.DataFrame, list[str], int, tuple[str, ...]]:
    """The rows of one scorer for each answer.

    Parameters
    ----------
    table : polars.DataFrame
    scorers : tuple of str
        Scorers; none where there is nothing to choose, or the tools' own verdicts will do.
    verdicts : sequence of str
        For each log the scorer that is its tool's own verdict, or nothing.

    Returns
    -------
    polars.DataFrame, list of str, int, tuple of str
        The rows; the other scorers; rows of answers that the chosen ones did not score, which are
        left out; notes for the account.
    """
    score_rows = table.filter(pl.col("scorer") != "")
    present = sorted(score_rows["scorer"].unique())
    unknown = [name for name in scorers if name not in present]
    if unknown:
        raise InputError(f"no scorer {unknown[0]!r}; there are {_some(present) or 'none'}")
    notes = []
    if not scorers:
        scorers = _verdicts(score_rows, verdicts)
        if not scorers:
            return table, [], 0, ()
        notes.append(
            f"the outcome is {' or '.join(map(repr, scorers))}, the tool's own verdict (--scorer "
            "takes another)"
        )
    mine = table.filter(pl.col("scorer").is_in(scorers))
    _require_one_score(mine, scorers)
    # an answer that ended in an error has no scorer: it counts under whichever one is chosen, in
    # those runs which that scorer scored
    nobody = table.filter(pl.col("scorer") == "").join(
        mine, on=_ANSWER, how="anti", maintain_order="left"
    )
    run = ["task", "model", "log"]
    nobody = nobody.join(
        score_rows.join(mine, on=run, how="anti"), on=run, how="anti", maintain_order="left"
    )
    answers = stack([mine, nobody])
    skipped_rows = table.select(_ANSWER).join(answers, on=_ANSWER, how="anti")
    if skipped_rows.height:
        n_lost = skipped_rows.unique().height
        subject = "1 answer has" if n_lost == 1 else f"{n_lost:,} answers have"
        notes.append(
            f"{subject} no score by {' or '.join(map(repr, scorers))} and "
            f"{'was' if n_lost == 1 else 'were'} left out"
        )
    return (
        answers,
        [name for name in present if name not in scorers],
        skipped_rows.height,
        tuple(notes),
    )


def _require_one_score(mine: pl.DataFrame, scorers: tuple[str, ...]) -> None:
    """No answer may be scored by two of the chosen scorers."""
    if len(scorers) < 2:
        return
    both = mine.filter(pl.col("scorer").n_unique().over(_ANSWER) > 1)
    if both.height:
        names = " and ".join(repr(s) for s in sorted(both["scorer"].unique())[:2])
        raise InputError(f"{names} both score {both['example_id'][0]!r}; choose one of them")


def _verdicts(score_rows: pl.DataFrame, verdicts: Sequence[str]) -> tuple[str, ...]:
    """The scorers to take where none was chosen; none where each task has only one."""
    runs = score_rows.group_by("task", "model", "log").agg(pl.col("scorer").n_unique())
    ambiguous = runs.filter(pl.col("scorer") > 1)["log"].unique().to_list()
    own = {verdicts[i] for i in ambiguous}
    if not own <= set(score_rows["scorer"].unique()):
        raise InputError(_several(score_rows))
    alone = score_rows.filter(~pl.col("log").is_in(ambiguous))
    # one task, scored by one in one log and by another in another, would compare models by
    # different measures
    others = alone.filter(~pl.col("scorer").is_in(list(own)))
    if (others.group_by("task").agg(pl.col("scorer").n_unique())["scorer"] > 1).any():
        raise InputError(_several(others))
    return tuple(sorted({*alone["scorer"].unique(), *own})) if own else ()


def _several(score_rows: pl.DataFrame) -> str:
    by_task = {
        task: sorted(names)
        for task, names in score_rows.group_by("task").agg(pl.col("scorer").unique()).iter_rows()
    }
    if len(set(map(tuple, by_task.values()))) == 1:
        names = _some([repr(name) for name in next(iter(by_task.values()))])
        return (
            f"several scorers ({names}); choose one (scorer=..., or --scorer): they are never "
            "averaged"
        )
    by_task_text = "; ".join(
        f"{_some([repr(name) for name in names])} of {task!r}"
        for task, names in sorted(by_task.items())[:_MAX_NAMES]
    )
    return (
        f"several scorers: {by_task_text}; choose one of each task (scorer=[...], or --scorer A "
        "--scorer B)"
    )


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def add_other_scores(
    answers: pl.DataFrame, table: pl.DataFrame, others: Sequence[str]
) -> pl.DataFrame:
    """The answers with other scorers' values as columns ``score_...``, and `DISAGREE`.

    A scorer whose values are not all in [0, 1] does not count as disagreeing.
    """
    columns = {name: f"score_{name}" for name in others[:_MAX_OTHERS]}
    is_scored = pl.col("scorer").is_in(list(columns)) & (pl.col("status") == Status.SCORED)
    scores = table.filter(is_scored).select(
        *_ANSWER, pl.format("score_{}", "scorer").alias("scorer"), "value"
    )
    if not scores.height:
        return answers
    wide = scores.pivot(
        "scorer", index=_ANSWER, values="value", aggregate_function="first", sort_columns=True
    )
    new = [c for c in wide.columns if c not in _ANSWER]
    answers = answers.rename({c: f"{c}_given" for c in (*new, DISAGREE) if c in answers.columns})
    answers = answers.join(wide, on=_ANSWER, how="left", maintain_order="left")
    alike = [c for c in new if answers.select(pl.col(c).is_between(0, 1).all()).item()]
    apart = [(pl.col(c) - pl.col("value")).abs() >= 0.5 for c in alike]
    return answers.with_columns(pl.any_horizontal(apart).alias(DISAGREE)) if apart else answers


def rescale(table: pl.DataFrame, scale: tuple[float, float] | None) -> pl.DataFrame:
    """Values in [0, 1], 1 the best; none where the answer was not scored."""
    if scale:
        worst, best = scale
        table = table.with_columns((pl.col("value") - worst) / (best - worst))
    table = table.with_columns(pl.when(pl.col("status") == Status.SCORED).then(pl.col("value")))
    out = table.filter(~pl.col("value").is_between(0, 1))
    if out.height:
        advice = (
            "which is outside that range"
            if scale
            else "say which is worst and best (scale=, or --scale)"
        )
        raise InputError(
            f"scorer {out['scorer'][0]!r} gives {out['example_id'][0]!r} the value "
            f"{out['value'][0]:g} "
            f"({out.height} rows are not in [0, 1]); {advice}"
        )
    return table


def prefix_tasks(table: pl.DataFrame) -> pl.DataFrame:
    """Ids with the task in front where there are several tasks, which may share their ids."""
    if table["task"].n_unique() > 1:
        prefix = pl.when(pl.col("task") == "").then(pl.lit("")).otherwise(pl.format("{}/", "task"))
        return table.with_columns(pl.concat_str(prefix, "example_id").alias("example_id"))
    return table


def reconcile(
    table: pl.DataFrame, conflicts: str, logs: Sequence[LogRead]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The table with one row for each answer, and the numbers of rows that were put aside.

    They are the rows ``retried``, ``duplicated`` and ``conflicting`` of `Account`.
    """
    table = table.with_columns(_hashes(table["prompt"]))
    last = _last_tries(table)
    unique = _drop_copies(last, conflicts)
    counts = {"retried": table.height - last.height, "duplicated": last.height - unique.height}
    texts = pl.col("question_hash").drop_nulls().n_unique().over("example_id") > 1
    other_text = unique.filter(texts)
    if other_text.height and conflicts == "error":
        raise InputError(
            f"same id, other text: {_example(other_text, logs)}; if they are different examples, "
            "conflicts='keep' "
            "(--conflicts keep) reads them as such"
        )
    if other_text.height:
        tagged = pl.concat_str("example_id", pl.lit("#"), pl.col("question_hash").str.slice(0, 8))
        ids = (
            pl.when(texts & pl.col("question_hash").is_not_null())
            .then(tagged)
            .otherwise("example_id")
        )
        unique = unique.with_columns(
            pl.coalesce("group", "example_id").alias("group"), ids.alias("example_id")
        )
    again = unique.filter(pl.struct(_KEY).is_duplicated())
    if again.height and conflicts == "error":
        raise InputError(
            f"same example and model, other result: {_example(again, logs)}; name one of the logs, "
            "or read them as "
            "repeats by conflicts='keep' (--conflicts keep)"
        )
    if again.height:
        epoch = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("example_id", "model")
        unique = unique.with_columns(epoch.alias("epoch"))
    return unique, counts | {"conflicting": other_text.height + again.height}


def _drop_copies(last: pl.DataFrame, conflicts: str) -> pl.DataFrame:
    """Without rows that are equal to another."""
    same = [*_KEY, "scorer", "value", "status", "question_hash", "response"]
    if conflicts != "keep":
        return last.unique(same, keep="first", maintain_order=True)
    # repeats within one log may have equal answers, and count; the same row in another log is a
    # copy, and does not
    nth = pl.int_range(pl.len()).over(*same, "log").alias("\0nth")
    numbered = last.with_columns(nth)
    return numbered.unique([*same, "\0nth"], keep="first", maintain_order=True).drop("\0nth")


def _last_tries(table: pl.DataFrame) -> pl.DataFrame:
    """Without missing answers and errors that another log replaces."""
    if table["log"].n_unique() == 1 or not table["status"].is_in(list(_TO_RETRY)).any():
        return table
    reached = pl.col("status").replace_strict(_TO_RETRY, default=_SETTLED, return_dtype=pl.Int8)
    # of an answer that failed in every log one row stays, so that it stays in the denominator
    best = (reached == reached.max().over(_KEY)) & (
        (reached == _SETTLED) | pl.col("status").is_first_distinct().over(_KEY)
    )
    return table.filter(best | (pl.col("log").n_unique().over(_KEY) == 1))


def _hashes(prompts: pl.Series) -> pl.Series:
    texts = prompts.unique().drop_nulls()
    codes = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
    return prompts.replace_strict(texts, codes, default=None, return_dtype=pl.String).alias(
        "question_hash"
    )


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
) -> Account:
    """Count where every row that was read has gone."""
    answers = table.select("example_id", "model").unique()
    examples = answers["example_id"].n_unique()
    rows_of = dict(answers["model"].value_counts().sort("model").iter_rows())
    each = answers["example_id"].value_counts()
    n_matched = int((each["count"] == len(rows_of)).sum())
    missing = {str(m): examples - int(n) for m, n in rows_of.items()} if len(rows_of) > 1 else {}
    return Account(
        tuple(logs), tuple(unread), scorers, examples, n_matched, missing, **counts, notes=notes
    )
