"""Rows of logs for all scorers, from which evidence is made once a scorer is chosen."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from groundfault.core.column_meaning import TRANSCRIPT, describes_answer, names_outcome
from groundfault.core.roles import Roles
from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers import scorers
from groundfault.readers.account import Account, LogRead
from groundfault.readers.log import COLUMNS, ORIGIN, RUN, WORDING
from groundfault.readers.scorers import ScorerSelection

GRADER_ERRORS = "grader_errors"
"""Column: share of an example's answers without a score because their grader failed."""

_KEY = ("example_id", "model", "epoch")
_PUT_ASIDE = ("retried", "duplicated", "conflicting")
# statuses that a later run may have replaced: no answer, and an answer that ended in an error
_TO_RETRY = {str(Status.MISSING): 0, str(Status.ERROR): 1}
# above both: an answer that is there stands
_SETTLED = 2
# rows whose questions are hashed at a time
_HASHED = 100_000

_ROW = "\0row"
_OUTCOME = ("scorer", "status", "value", GRADER_ERRORS)
_WORDS = ("task", "model", "scorer", "status")
# rows that are read at a time
_PART = 50_000


@dataclass(frozen=True, eq=False)
class LogRows:
    """All rows that were read from logs, for all scorers, before one is chosen as the outcome.

    Attributes
    ----------
    frame : polars.LazyFrame
        One row an answer and scorer, with the columns of `COLUMNS`, ``log`` (the number of the
        log), and attributes of examples and answers.
    measured : tuple of str
        The columns that describe answers.
    logs : tuple of LogRead
    unread : tuple of str
        Files that no reader knows.
    headlines : tuple of str
        For each log, the tool's main scorer; "" if the tool has none.
    conflicts : {"error", "keep"}
        How to treat rows that contradict each other; see `groundfault.Evidence.from_logs`.
    notes : tuple of str
        Notes for the account.
    known : tuple of str
        Input columns that readers vouch for; see `groundfault.readers.Reader`.
    """

    frame: pl.LazyFrame
    measured: tuple[str, ...]
    logs: tuple[LogRead, ...]
    unread: tuple[str, ...]
    headlines: tuple[str, ...]
    conflicts: str = "error"
    notes: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    @cached_property
    def scorers(self) -> tuple[str, ...]:
        """Return names of all scorers in the order of the logs."""
        return scorers.list_scorers(self.frame.select("scorer").collect())

    def has_unit_range(self, scorer: str) -> bool:
        """Return whether all values of a scorer are in [0, 1]."""
        return scorers.is_in_range(self.frame.select("scorer", "status", "value").collect(), scorer)

    def choose(
        self,
        names: Sequence[str] = (),
        *,
        disagreement: tuple[str, str] | None = None,
        scale: tuple[float, float] | None = None,
    ) -> tuple[pl.DataFrame, Roles, Account]:
        """Return the answers with one scorer's score as the outcome, their roles and account.

        Parameters
        ----------
        names : sequence of str
            Scorers, one for each task; empty to take the tools' main scorers.
        disagreement : pair of str, optional
            Two scorers, whose agreement becomes the outcome.
        scale : pair of float, optional
            Worst and best value of the scorer.

        Raises
        ------
        InputError
            If the scorer is missing, a scorer must be chosen, or rows contradict each other.
        """
        scores, selection, counts = self._select(names, disagreement, scale)
        beside = sum(counts.values()) - scores.height - selection.n_left_out
        changes: dict[str, Any] = {"left_out": selection.n_left_out, "beside": beside}
        answers = self._add_columns(scores)
        del scores
        if disagreement:
            # if two scorers differ, the column would repeat the outcome
            answers = answers.drop(scorers.DISAGREE, strict=False)
        answers, merged = _reconcile(_prefix_tasks(answers), self.conflicts, self.logs)
        more = changes | merged | _count_examples(answers)
        # a single scorer needs no mention
        more["outcome"] = selection.outcome if len(counts.keys() - {""}) > 1 else ()
        notes = (*self.notes, *selection.notes)
        account = Account(self.logs, self.unread, counts, notes=notes, **more)
        frame, roles = _add_roles(answers, self.measured, self.known)
        if disagreement:
            columns = [f"score_{name}" for name in disagreement]
            follows = tuple(c for c in columns if c in frame.columns)
            left = tuple(c for c in roles.instrument if c not in follows)
            roles = replace(roles, post_outcome=follows, instrument=left)
        return frame, roles, account

    def _select(
        self,
        names: Sequence[str],
        disagreement: tuple[str, str] | None,
        scale: tuple[float, float] | None,
    ) -> tuple[pl.DataFrame, ScorerSelection, dict[str, int]]:
        """Return the scores of the answers, from the few columns that this takes.

        Returns
        -------
        scores : polars.DataFrame
            One row an answer: `_OUTCOME`, scores of other scorers, and the row of `frame`.
        selection : ScorerSelection
        counts : dict of str to int
            Rows of each scorer.
        """
        columns = [c for c in (*scorers.KEYS, *_OUTCOME) if c in self.frame.collect_schema()]
        # whether there is a response, as null or not
        response = pl.when(pl.col("response").is_not_null()).then(True).alias("response")
        thin = self.frame.select(pl.col(columns), response).with_row_index(_ROW)
        # a few words that every row repeats: their numbers take a quarter of the memory
        thin = thin.with_columns(pl.col(_WORDS).cast(pl.Categorical))
        table = scorers.number_answers(add_grader_errors(thin.collect()))
        counts = {
            str(name): int(n) for name, n in table["scorer"].value_counts(sort=True).iter_rows()
        }
        if disagreement:
            table = scorers.add_agreement(table, disagreement, scale)
            names, scale = (scorers.name_agreement(disagreement),), None
        answers, selection = scorers.select_scorer(table, tuple(names), self.headlines)
        scores = scorers.rescale(answers, scale)
        scores = scorers.add_other_scores(scores, table, selection.others)
        scores = scores.drop(*scorers.KEYS, scorers.ANSWER, "response")
        return scores.with_columns(pl.col("scorer", "status").cast(pl.String)), selection, counts

    def _add_columns(self, scores: pl.DataFrame) -> pl.DataFrame:
        """Add all other columns of the logs to the answers' scores, part by part."""
        names = self.frame.collect_schema().names()
        outcome = [c for c in _OUTCOME if c in names]
        new = [c for c in scores.columns if c not in (*outcome, _ROW)]
        rows = scores[_ROW].cast(pl.Int64).to_numpy()
        order = np.argsort(rows, kind="stable")
        in_order = rows[order]
        others = self.frame.drop(outcome)
        parts = [others.head(0).collect()]
        for start in range(0, int(rows.max(initial=-1)) + 1, _PART):
            first, last = np.searchsorted(in_order, (start, start + _PART))
            part = others.slice(start, _PART).collect()
            parts.append(_share_texts(part[in_order[first:last] - start]))
        wide = pl.concat(parts)
        if not scores[_ROW].is_sorted():
            wide = wide[np.argsort(order)]
        reserved = {*new, scorers.DISAGREE} if any(c != GRADER_ERRORS for c in new) else set()
        renames = {c: f"{c}_given" for c in names if c in reserved}
        wide = wide.rename(renames).with_columns(scores.select(*outcome, *new))
        return wide.select(*(renames.get(c, c) for c in names), *new)


def _share_texts(part: pl.DataFrame) -> pl.DataFrame:
    """Return the rows; a prompt that is also an attribute is stored once in memory."""
    texts = [c for c in part if c.dtype == pl.String and c.name != "prompt"]
    same = next((c for c in texts if c.equals(part["prompt"], null_equal=True)), None)
    return part if same is None else part.with_columns(same.alias("prompt"))


def _add_roles(
    table: pl.DataFrame, measured: Sequence[str], known: Sequence[str]
) -> tuple[pl.DataFrame, Roles]:
    """Return the table without columns that no log filled, and the roles of its columns."""
    if table["group"].null_count() < table.height:
        # an example that no log puts into a group is a group of its own
        table = table.with_columns(pl.coalesce("group", "example_id").alias("group"))
    kept = ("value", "status", "example_id")
    table = table.drop(c for c in table.columns if c not in kept and _is_unused(table[c]))
    own = ("scorer", "epoch", "question_hash", "log", TRANSCRIPT)
    bookkeeping = [c for c in own if c in table.columns]
    # columns about the answer or its scoring are instruments: finders report them apart from
    # attributes of the examples
    answers = {"response", "answer", "confidence", "logprob", scorers.DISAGREE, GRADER_ERRORS}
    answers |= set(measured)
    of_answers = [c for c in table.columns if c in answers or c.startswith("score_")]
    # a scorer of verdicts and a scorer of similarities differ without contradicting each other
    names = [c for c in of_answers if c.startswith("score_") and table[c].dtype.is_numeric()]
    units = [table[c] for c in names if table[c].is_between(0, 1).all()]
    is_told = all(scorers.is_same_scale(table["value"], each) for each in units)
    apart = [c for c in of_answers if c == scorers.DISAGREE and not is_told]
    repeats = "epoch" in table.columns and table["epoch"].n_unique() > 1
    roles = Roles(
        outcome="value",
        id="example_id",
        model="model" if "model" in table.columns else None,
        repeat="epoch" if repeats else None,
        group="group" if "group" in table.columns else None,
        status="status",
        positive_is_good=True,
        ignore=tuple(c for c in bookkeeping if not (repeats and c == "epoch")),
        instrument=tuple(c for c in of_answers if c not in apart),
        post_outcome=tuple(apart),
    )
    # a program may also write into the fields of an example: a column named after the answer or its
    # score is not known before the answer
    others = {*roles.columns, *bookkeeping, *of_answers}
    inputs = tuple(
        c
        for c in table.columns
        if c in known and c not in others and not (names_outcome(c) or describes_answer(c))
    )
    return table, replace(roles, known=inputs)


def _is_unused(column: pl.Series) -> bool:
    """Return whether no log filled this column of the common vocabulary."""
    is_blank = column.null_count() == len(column) or (
        column.dtype == pl.String and not (column != "").any()
    )
    return column.name in COLUMNS and is_blank


def add_grader_errors(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of all scorers, with `GRADER_ERRORS` if a grader failed at least once.

    An answer that is unscored because of an error tells about the grader, not the model. The finder
    ``instrument`` asks whether the grader fails on the examples that also count as failures. The
    share is over all scorers, models and repeats of the example.
    """
    has_answer = pl.col("response").is_not_null()
    failed = has_answer & (pl.col("status") == Status.ERROR)
    if GRADER_ERRORS in table.columns or not table.select(failed.any()).item():
        return table
    share = failed.sum().over("task", "example_id") / has_answer.sum().over("task", "example_id")
    return table.with_columns(share.fill_nan(None).alias(GRADER_ERRORS))


def _prefix_tasks(table: pl.DataFrame) -> pl.DataFrame:
    """Put the task in front of ids if there are several tasks, which may share ids."""
    if table["task"].n_unique() > 1:
        prefix = pl.when(pl.col("task") == "").then(pl.lit("")).otherwise(pl.format("{}/", "task"))
        return table.with_columns(pl.concat_str(prefix, "example_id").alias("example_id"))
    return table


def _reconcile(
    table: pl.DataFrame, conflicts: str, logs: Sequence[LogRead]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the table with one row for each answer, and the numbers of other rows.

    These are the rows ``retried``, ``duplicated`` and ``conflicting`` of `Account`.
    """
    # two files of the same bytes are one log and its copy; of two others without a name for their
    # run, groundfault cannot know that they are one
    files = {i: log.sha256 for i, log in enumerate(logs)}
    file = pl.col("log").replace_strict(files, return_dtype=pl.String)
    table = table.with_columns(
        _hash_texts(table["prompt"]), *(pl.coalesce(c, file).alias(c) for c in (ORIGIN, RUN))
    )
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
            f"same id, other text: {_example(other_text, logs)}; for different examples, add "
            "--conflicts keep (conflicts='keep'); for one question in the words of two "
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
            "or read them as repeats by conflicts='keep' (--conflicts keep)"
        )
    if again.height:
        unique = _number_repeats(unique)
    heights = table.height, last.height, unique.height
    changes = heights[0] - heights[1], heights[1] - heights[2], other_text.height + again.height
    return unique.drop(ORIGIN, RUN, WORDING), dict(zip(_PUT_ASIDE, changes, strict=True))


def _require_same_questions(rows: pl.DataFrame, logs: Sequence[LogRead]) -> list[str]:
    """Raise if configurations ask an example in other words and expect another answer.

    Return the column within which an example has one text, if there is one.
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


def _drop_copies(last: pl.DataFrame, conflicts: str) -> pl.DataFrame:
    """Drop rows that are copies of another.

    If repeats are kept, only a row of the same origin is a copy. An equal answer of another run is
    kept: otherwise an example on which runs agree would have fewer rows than one on which they
    differ, and its loss another weight.
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
    """Raise if two logs score the same answer differently, because neither score is the last."""
    apart = rows.filter(pl.col("log").n_unique().over(*_KEY, ORIGIN) > 1)
    if apart.height:
        raise InputError(
            f"the same answer, other result: {_example(apart, logs)}; the logs hold one run, which "
            "was scored anew or edited: name only one log"
        )


def _last_tries(table: pl.DataFrame, conflicts: str) -> pl.DataFrame:
    """Drop missing answers and errors that another log replaces.

    If repeats are kept, only another log of the same run replaces them: an answer that failed in
    one of five runs has four repeats, like in one run of five epochs.
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
    """Return epochs and positions of answers, counted on from log to log."""
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


def _hash_texts(prompts: pl.Series) -> pl.Series:
    """Return the hash of each question."""

    def hash_part(part: pl.Series) -> pl.Series:
        texts = part.unique().drop_nulls()
        codes = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]
        return part.replace_strict(texts, codes, default=None, return_dtype=pl.String)

    # in parts: as Python's, all texts would take twice the memory of the column
    parts = [hash_part(prompts.slice(i, _HASHED)) for i in range(0, len(prompts), _HASHED)]
    return pl.concat(parts or [pl.Series(dtype=pl.String)]).alias("question_hash")


def _example(rows: pl.DataFrame, logs: Sequence[LogRead]) -> str:
    ids = rows["example_id"].unique(maintain_order=True)
    log_numbers = rows.filter(pl.col("example_id") == ids[0])["log"].unique(maintain_order=True)
    places = ", ".join(os.path.relpath(logs[i].path) for i in log_numbers[:3])
    return f"{len(ids)} examples, such as {ids[0]!r} in {places}"


def _count_examples(answers: pl.DataFrame) -> dict[str, object]:
    """Count examples in all, examples that every model answered, and examples a model lacks."""
    pairs = answers.select("example_id", "model")
    # otherwise they are one a row, and looking for others takes as much memory as many columns
    if answers["epoch"].n_unique() > 1:
        pairs = pairs.unique()
    examples = pairs["example_id"].n_unique()
    rows_of = dict(pairs["model"].value_counts().sort("model").iter_rows())
    each = pairs["example_id"].value_counts()
    missing = {str(m): examples - int(n) for m, n in rows_of.items()} if len(rows_of) > 1 else {}
    matched = int((each["count"] == len(rows_of)).sum())
    return {"examples": examples, "matched": matched, "missing": missing}
