"""Scorers: choose which of several scores of an answer is its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.log import stack

KEYS = ("example_id", "model", "epoch", "task", "log")
"""Columns that identify an answer before logs are put together."""

ANSWER = "\0answer"
"""Column: the number of the answer that a row is of; see `number_answers`."""

DISAGREE = "scorers_disagree"
"""Column: whether another scorer's score differs by at least one half from the chosen one's."""

_RUN = ("task", "model", "log")
# scorers that become a column each: reports list columns
_MAX_OTHERS = 50
_MOST = 0.5
"""Least share of a scorer's values that another scorer also has, if both use one scale."""
# names in a message, which is one line
_MAX_NAMES = 12


@dataclass(frozen=True, eq=False)
class ScorerSelection:
    """The choice of scorers.

    Attributes
    ----------
    outcome, others : tuple of str
        The scorers whose score is the outcome, and the other scorers.
    n_left_out : int
        Rows of answers that the chosen scorers did not score.
    notes : tuple of str
        Notes for the account.
    """

    outcome: tuple[str, ...]
    others: tuple[str, ...] = ()
    n_left_out: int = 0
    notes: tuple[str, ...] = ()


def list_scorers(table: pl.DataFrame) -> tuple[str, ...]:
    """Return names of the scorers in a table, in the order in which they appear."""
    names = table["scorer"].unique(maintain_order=True)
    return tuple(str(name) for name in names if name)


def number_answers(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with `ANSWER`: the place of the first row of each row's answer.

    Rows are matched by this number, since matching by five columns takes more memory than the rows.
    """
    keys = [c for c in KEYS if table[c].n_unique() > 1] or [KEYS[0]]
    return table.with_row_index(ANSWER).with_columns(pl.col(ANSWER).first().over(keys))


def select_scorer(
    table: pl.DataFrame, scorers: tuple[str, ...], headlines: Sequence[str]
) -> tuple[pl.DataFrame, ScorerSelection]:
    """Return the rows of one scorer for each answer, and the choice of scorers.

    Parameters
    ----------
    table : polars.DataFrame
        Rows with numbers of answers.
    scorers : tuple of str
        Scorers; empty to take each run's only scorer, else its tool's main scorer.
    headlines : sequence of str
        For each log, the tool's main scorer, or "".

    Raises
    ------
    InputError
        If a scorer is missing, two score one answer, or neither you nor the tool chose a scorer.
    """
    score_rows = table.filter(pl.col("scorer") != "")
    present = sorted(score_rows["scorer"].unique())
    unknown = [name for name in scorers if name not in present]
    if unknown:
        raise InputError(f"no scorer {unknown[0]!r}; there are {name_some(present) or 'none'}")
    if not scorers and len(present) < 2:
        return table, ScorerSelection(tuple(present))
    if scorers:
        mine = table.filter(pl.col("scorer").is_in(scorers))
        _require_one_score(mine)
    else:
        leaders = _find_headlines(score_rows, headlines)
        mine = table.join(leaders, on=[*_RUN, "scorer"], how="semi", maintain_order="left")
    # an answer that ended in an error has no scorer: it counts for the chosen scorer, in the runs
    # that this scorer scored
    nobody = table.filter(pl.col("scorer") == "")
    if nobody.height:
        nobody = nobody.join(mine, on=ANSWER, how="anti", maintain_order="left")
        elsewhere = score_rows.join(mine, on=_RUN, how="anti")
        nobody = nobody.join(elsewhere, on=_RUN, how="anti", maintain_order="left")
    answers = stack([mine, nobody])
    skipped_rows = table.select(ANSWER).join(answers, on=ANSWER, how="anti")
    outcome = scorers or tuple(sorted(mine["scorer"].unique()))
    others = tuple(name for name in present if name not in outcome)
    notes = []
    if lost := skipped_rows.unique().height:
        subject, verb = ("1 answer has", "was") if lost == 1 else (f"{lost:,} answers have", "were")
        names = " or ".join(map(repr, outcome))
        notes = [f"{subject} no score by {names} and {verb} left out"]
    return answers, ScorerSelection(outcome, others, skipped_rows.height, tuple(notes))


def _require_one_score(mine: pl.DataFrame) -> None:
    """Raise where an answer is scored by two of the chosen scorers."""
    if mine["scorer"].n_unique() < 2:
        return
    both = mine.filter(pl.col("scorer").n_unique().over(ANSWER) > 1)
    if both.height:
        names = " and ".join(repr(s) for s in sorted(both["scorer"].unique())[:2])
        raise InputError(f"{names} both score {both['example_id'][0]!r}; choose one scorer")


def _find_headlines(score_rows: pl.DataFrame, headlines: Sequence[str]) -> pl.DataFrame:
    """Return the scorer to take for each run: its only one, else its tool's main scorer."""
    runs = score_rows.select(*_RUN, "scorer").unique()
    own = pl.Series("own", list(headlines), dtype=pl.String)
    runs = runs.with_columns(
        pl.len().over(_RUN).alias("n"), own.gather(runs["log"].cast(pl.UInt32)).alias("own")
    )
    leaders = runs.filter((pl.col("n") == 1) | (pl.col("scorer") == pl.col("own")))
    if runs.join(leaders, on=_RUN, how="anti").height:
        raise InputError(_several(runs))
    # one task, scored by one in one log and by another in another, would compare models by
    # different measures
    mixed = leaders.filter(pl.col("scorer").n_unique().over("task") > 1)
    if mixed.height:
        raise InputError(_several(mixed))
    return leaders


def _several(score_rows: pl.DataFrame) -> str:
    tasks = score_rows.group_by("task").agg(pl.col("scorer").unique())
    by_task = {task: name_some(list(map(repr, sorted(names)))) for task, names in tasks.iter_rows()}
    if len(set(by_task.values())) == 1:
        names = next(iter(by_task.values()))
        advice = "choose one (scorer=..., or --scorer): they are never averaged"
        return f"several scorers ({names}); {advice}"
    each = [f"{names} of {task!r}" for task, names in sorted(by_task.items())[:_MAX_NAMES]]
    advice = "choose one of each task (scorer=[...], or --scorer A --scorer B)"
    return f"several scorers: {'; '.join(each)}; {advice}"


def name_some(names: Sequence[str]) -> str:
    """Return the first dozen of some names, and how many more there are."""
    more = f", and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def add_other_scores(
    answers: pl.DataFrame, table: pl.DataFrame, others: Sequence[str]
) -> pl.DataFrame:
    """Return the answers with other scorers' values as columns ``score_...``, and `DISAGREE`.

    A scorer whose values are not all in [0, 1] does not count as disagreeing.
    """
    is_other = pl.col("scorer").is_in(list(others[:_MAX_OTHERS]))
    is_scored = is_other & (pl.col("status") == Status.SCORED)
    scores = table.filter(is_scored).select(
        ANSWER, pl.format("score_{}", "scorer").alias("scorer"), "value"
    )
    if not scores.height:
        return answers
    wide = scores.pivot(
        "scorer", index=ANSWER, values="value", aggregate_function="first", sort_columns=True
    )
    new = [c for c in wide.columns if c != ANSWER]
    answers = answers.join(wide, on=ANSWER, how="left", maintain_order="left")
    alike = [c for c in new if answers.select(pl.col(c).is_between(0, 1).all()).item()]
    apart = [(pl.col(c) - pl.col("value")).abs() >= 0.5 for c in alike]
    return answers.with_columns(pl.any_horizontal(apart).alias(DISAGREE)) if apart else answers


def is_same_scale(one: pl.Series, two: pl.Series) -> bool:
    """Return whether two scorers' values may be compared: they share most of their values.

    A verdict of 0 or 1 and a similarity of 0.3 are both in [0, 1], but do not contradict each
    other.

    Examples
    --------
    >>> verdicts = pl.Series([0.0, 1.0, 1.0])
    >>> is_same_scale(verdicts, pl.Series([1.0, 0.5, 0.0]))
    True
    >>> is_same_scale(verdicts, pl.Series([0.31, 0.4, 1.0]))
    False
    """
    values = [one.drop_nulls(), two.drop_nulls()]
    # the ends mean the same on any scale, whether or not both scorers gave them
    shared = {0.0, 1.0} | {*values[0].unique()} & {*values[1].unique()}
    return all(bool(x.is_in(list(shared)).sum() >= _MOST * len(x)) for x in values)


def rescale(table: pl.DataFrame, scale: tuple[float, float] | None) -> pl.DataFrame:
    """Return values in [0, 1], where 1 is best; NULL for an unscored answer."""
    if scale:
        worst, best = scale
        table = table.with_columns((pl.col("value") - worst) / (best - worst))
    table = table.with_columns(pl.when(pl.col("status") == Status.SCORED).then(pl.col("value")))
    out = table.filter(~pl.col("value").is_between(0, 1))
    if out.height:
        advice = "say which is worst and best (scale=, or --scale)"
        raise InputError(
            f"scorer {out['scorer'][0]!r} gives {out['example_id'][0]!r} the value "
            f"{out['value'][0]:g} ({out.height} rows are not in [0, 1]); "
            f"{'which is outside that range' if scale else advice}"
        )
    return table


def is_in_range(table: pl.DataFrame, scorer: str) -> bool:
    """Return whether all values of a scorer are in [0, 1]."""
    scored = (pl.col("scorer") == scorer) & (pl.col("status") == Status.SCORED)
    return bool(table.filter(scored).select(pl.col("value").is_between(0, 1).all()).item())


def name_agreement(pair: tuple[str, str]) -> str:
    """Return the scorer name for the agreement of two scorers."""
    return f"agreement of {pair[0]!r} and {pair[1]!r}"


def add_agreement(
    table: pl.DataFrame, pair: tuple[str, str], scale: tuple[float, float] | None
) -> pl.DataFrame:
    """Return the table with the agreement of two scorers as a further scorer.

    Its value is 1 minus the difference of the two values. An answer that one scorer could not score
    keeps that status. An answer with a row of only one scorer gets no row.

    Parameters
    ----------
    table : polars.DataFrame
    pair : pair of str
    scale : pair of float, optional
        Worst and best value of a scorer whose values are not in [0, 1].

    Raises
    ------
    InputError
        If the two scorers are the same, one is missing, or its values are not in [0, 1].
    """
    first, second = pair
    present = list_scorers(table)
    for name in pair:
        if name not in present:
            raise InputError(f"no scorer {name!r}; there are {name_some(present) or 'none'}")
    if first == second:
        raise InputError("disagreement needs two different scorers")
    one, two = (
        rescale(table.filter(scorer=name), None if is_in_range(table, name) else scale)
        for name in pair
    )
    other = two.select(ANSWER, pl.col("value").alias("\0value"), pl.col("status").alias("\0status"))
    # copies of a row are met once: else each copy of the one would be joined to each of the other
    other = other.unique(maintain_order=True)
    both = one.join(other, on=ANSWER, how="inner", maintain_order="left")
    status = pl.when(pl.col("status") == Status.SCORED).then("\0status").otherwise("status")
    rows = both.with_columns(
        (1 - (pl.col("value") - pl.col("\0value")).abs()).alias("value"),
        status.alias("status"),
        pl.lit(name_agreement(pair)).alias("scorer"),
    )
    return stack([table, rows.drop("\0value", "\0status")])
