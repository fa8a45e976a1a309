"""Rows of logs, of all their scorers: what evidence is made of once a scorer is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from groundfault.core.roles import Roles
from groundfault.core.status import Status
from groundfault.readers import merge, scorers
from groundfault.readers.account import Account, LogRead
from groundfault.readers.log import COLUMNS
from groundfault.readers.scorers import ScorerSelection

GRADER_ERRORS = "grader_errors"
"""Column: share of an example's answers that have no score because their grader failed."""

_ROW = "\0row"
_OUTCOME = ("scorer", "status", "value", GRADER_ERRORS)
_WORDS = ("task", "model", "scorer", "status")
# rows that are read at a time
_PART = 50_000


@dataclass(frozen=True, eq=False)
class LogRows:
    """Everything that was read from logs, of every scorer, before one of them is the outcome.

    Attributes
    ----------
    frame : polars.LazyFrame
        One row an answer and scorer, in the columns of `COLUMNS`, with ``log``, the number of its
        log, and what describes examples and answers.
    measured : tuple of str
        The columns that describe answers.
    logs : tuple of LogRead
    unread : tuple of str
        Files that no reader knows.
    headlines : tuple of str
        For each log the scorer whose score its tool takes for the result; "" where there is none.
    conflicts : {"error", "keep"}
        What to do with rows that contradict each other; see `groundfault.Evidence.from_logs`.
    notes : tuple of str
        For the account.
    """

    frame: pl.LazyFrame
    measured: tuple[str, ...]
    logs: tuple[LogRead, ...]
    unread: tuple[str, ...]
    headlines: tuple[str, ...]
    conflicts: str = "error"
    notes: tuple[str, ...] = ()

    @cached_property
    def scorers(self) -> tuple[str, ...]:
        """Return names of all scorers, in the order in which the logs have them."""
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
        """Return the answers with one scorer's score for the outcome, their roles and account.

        Parameters
        ----------
        names : sequence of str
            Scorers, one of each task; none to take the tools' headlines.
        disagreement : pair of str, optional
            Two scorers, whose agreement is the outcome instead.
        scale : pair of float, optional
            Worst and best value of the scorer.

        Raises
        ------
        InputError
            If the scorer is not there, or none is chosen where that is needed, or rows contradict
            each other.
        """
        scores, selection, counts = self._select(names, disagreement, scale)
        n_read = sum(counts.values())
        beside = n_read - scores.height - selection.n_left_out
        changes = {"left_out": selection.n_left_out, "beside": beside}
        answers = self._add_columns(scores)
        del scores
        if disagreement:
            # where two differ, one of them is far from their agreement
            answers = answers.drop(scorers.DISAGREE, strict=False)
        answers, merged = merge.reconcile(merge.prefix_tasks(answers), self.conflicts, self.logs)
        notes = (*self.notes, *selection.notes)
        # one scorer alone is nothing to speak of
        outcome = selection.outcome if len(counts.keys() - {""}) > 1 else ()
        account = merge.account(
            answers, list(self.logs), list(self.unread), counts, changes | merged, notes, outcome
        )
        frame, roles = _add_roles(answers, self.measured)
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
            Without its answers.
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
        selection = scorers.select_scorer(table, tuple(names), self.headlines)
        scores = scorers.rescale(selection.answers, scale)
        scores = scorers.add_other_scores(scores, table, selection.others)
        scores = scores.drop(*scorers.KEYS, scorers.ANSWER, "response")
        texts = scores.with_columns(pl.col("scorer", "status").cast(pl.String))
        return texts, replace(selection, answers=scores.clear()), counts

    def _add_columns(self, scores: pl.DataFrame) -> pl.DataFrame:
        """Add everything else that the logs say of answers to their scores, part by part."""
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
    """Return the rows, in which a prompt that is an attribute, too, is in memory once."""
    texts = [c for c in part if c.dtype == pl.String and c.name != "prompt"]
    same = next((c for c in texts if c.equals(part["prompt"], null_equal=True)), None)
    return part if same is None else part.with_columns(same.alias("prompt"))


def _add_roles(table: pl.DataFrame, measured: Sequence[str]) -> tuple[pl.DataFrame, Roles]:
    """Return the table without columns that no log filled, and the roles of its columns."""
    if table["group"].null_count() < table.height:
        # an example that no log puts into a group is a group of its own
        table = table.with_columns(pl.coalesce("group", "example_id").alias("group"))
    kept = ("value", "status", "example_id")
    table = table.drop(c for c in table.columns if c not in kept and _is_unused(table[c]))
    bookkeeping = [c for c in ("scorer", "epoch", "question_hash", "log") if c in table.columns]
    # columns about the answer or its scoring are instruments: finders report them apart from
    # attributes of the examples
    answers = {"response", "answer", "confidence", "logprob", scorers.DISAGREE, GRADER_ERRORS}
    answers |= set(measured)
    of_answers = [c for c in table.columns if c in answers or c.startswith("score_")]
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
        instrument=tuple(of_answers),
    )
    return table, roles


def _is_unused(column: pl.Series) -> bool:
    """Return whether no log filled this column of the common vocabulary."""
    is_blank = column.null_count() == len(column) or (
        column.dtype == pl.String and not (column != "").any()
    )
    return column.name in COLUMNS and is_blank


def add_grader_errors(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of all scorers, with `GRADER_ERRORS` where a grader failed at least once.

    An answer that is there and was not scored because of an error says nothing of the model, but
    something of the grader: whether it fails on the examples that count as failures too is for the
    finder ``instrument`` to ask. The share is of all scorers, models and repeats of the example.
    """
    has_answer = pl.col("response").is_not_null()
    failed = has_answer & (pl.col("status") == Status.ERROR)
    if GRADER_ERRORS in table.columns or not table.select(failed.any()).item():
        return table
    share = failed.sum().over("task", "example_id") / has_answer.sum().over("task", "example_id")
    return table.with_columns(share.fill_nan(None).alias(GRADER_ERRORS))
