"""Behaviours: events during runs, told from steps alone, and the turn of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault.stats.risk_sets import MIN_RUNS, NEVER

_TOOLS, _PAIRS, _ERRORS, _AGENTS = 25, 15, 10, 10
"""Most frequent tools, tools in a row, kinds of errors and agents that are behaviours of their own:
each further one raises the bar for all."""
_SHORT = 20
"""Characters of a result below which the same again says nothing, such as "ok"."""
_MAX_NAME = 80
"""Characters of a name that a log gives; the rest is cut."""
_WRITES = r"(?i)(update|cancel|book|send|delete|remove|write|create|edit|modify|apply|submit|pay)"
_READS = r"(?i)(get|read|search|list|find|look|query|fetch|view|open|show|check|calculate|ls|cat)"
_VALUES = 10
"""Most frequent values of a column of words that are behaviours of their own."""
_SUBMITTED = 0.5
"""Share of its turns but the last that a grader replies to, from which a call hands in an answer.
Who has handed one in and still goes on was wrong: that is the outcome, and no behaviour."""


@dataclass(frozen=True)
class Behaviours:
    """Behaviours of runs, and the turns at which they begin.

    Attributes
    ----------
    names : tuple of str
        In words, such as "repeats a call".
    first : int32 array, shape (L, runs)
        Turn at which each first happens in each run; `groundfault.stats.risk_sets.NEVER`.
    at_end : bool array, shape (L,)
        How runs end, unknown before the end: described, and not tested.
    turns : int64 array, shape (runs,)
        Turns of each run.
    untold : int64 array, shape (runs,)
        Turns up to the first at which a grader replies inside the conversation: who goes on after
        that was wrong, whatever else it does.
    """

    names: tuple[str, ...]
    first: NDArray[np.int32]
    at_end: NDArray[np.bool_]
    turns: NDArray[np.int64]
    untold: NDArray[np.int64]


def find_behaviours(steps: pl.DataFrame, runs: int) -> Behaviours:
    """Find behaviours of at least 10 runs.

    Parameters
    ----------
    steps : polars.DataFrame
        As `groundfault.transcripts.steps.tabulate_steps` makes it.
    runs : int
        How many there are, with steps or without.
    """
    turns = np.zeros(runs, dtype=np.int64)
    lengths = steps.group_by("run").agg(pl.col("turn").max())
    turns[lengths["run"].to_numpy()] = lengths["turn"].to_numpy()
    judged = steps.filter((pl.col("actor") == "judge") & (pl.col("turn") > 0))
    told = judged.group_by("run").agg(pl.col("turn").min())
    untold = turns.copy()
    untold[told["run"].to_numpy()] = told["turn"].to_numpy()
    # what a grader says inside a conversation is the outcome, told early
    own = steps.filter((pl.col("turn") > 0) & (pl.col("actor") != "judge"))
    during = pl.concat([_find_calls(own, steps), _find_results(own), _find_words(own)])
    ends = _find_ends(own)
    firsts = pl.concat(
        [during.with_columns(at_end=pl.lit(False)), ends.with_columns(at_end=pl.lit(True))]
    )
    firsts = firsts.group_by("name", "run", "at_end").agg(pl.col("turn").min())
    counts = firsts.group_by("name", "at_end").len().sort("at_end", "len", "name")
    kept = counts.filter((pl.col("len") >= MIN_RUNS) | pl.col("at_end"))
    kept = kept.sort("at_end", "len", "name", descending=[False, True, False])
    first = np.full((len(kept), runs), NEVER, dtype=np.int32)
    rows = firsts.join(kept.with_row_index("place"), on=["name", "at_end"])
    first[rows["place"].to_numpy(), rows["run"].to_numpy()] = rows["turn"].to_numpy()
    return Behaviours(tuple(kept["name"]), first, kept["at_end"].to_numpy(), turns, untold)


def list_flags(columns: pl.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Return columns about whole runs as 1, 0 or NaN, by name.

    Of a column of words each of its most frequent values is a flag; of numbers, whether they are
    above their median.

    Examples
    --------
    >>> list(list_flags(pl.DataFrame({"tone": ["warm", None], "words": [3, 9], "lies": [0, 1]})))
    ['tone: warm', 'words above 6', 'lies']
    """
    flags: dict[str, NDArray[np.float64]] = {}
    for column in columns:
        is_number = column.dtype.is_numeric() or column.dtype == pl.Boolean
        values = column.cast(pl.Float64) if is_number else column
        if values.dtype == pl.String:
            words = values.drop_nulls().value_counts(sort=True)[values.name].to_list()[:_VALUES]
            parts = {f"{column.name}: {word}": values == word for word in words}
        elif is_number and not values.drop_nulls().is_in([0.0, 1.0]).all():
            middle = float(values.median() or 0)  # type: ignore[arg-type]
            parts = {f"{column.name} above {middle:g}": values > middle}
        else:
            parts = {column.name: values} if is_number else {}
        for name, part in parts.items():
            flags[name[:_MAX_NAME]] = part.cast(pl.Float64).to_numpy()
    return flags


def _pick(rows: pl.DataFrame, name: pl.Expr | str, most: int | None = None) -> pl.DataFrame:
    """Return rows as behaviours by name; of many names, the ones in most runs."""
    words = pl.lit(name) if isinstance(name, str) else name
    # a null name is no name: a tool that the log does not name
    told = rows.select(words.str.slice(0, _MAX_NAME).alias("name"), "run", "turn").drop_nulls()
    if most is not None:
        counts = told.group_by("name").agg(pl.col("run").n_unique().alias("runs"))
        names = counts.sort("runs", "name", descending=[True, False]).head(most)["name"]
        told = told.filter(pl.col("name").is_in(names.implode()))
    return told


def _find_calls(own: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Return which tools are called, in which order, how often, and again after an error."""
    last_result = pl.when(pl.col("kind") == "result").then("status").forward_fill().over("run")
    calls = own.with_columns(last_result.alias("before")).filter(pl.col("kind") == "call")
    given = _list_submissions(calls, steps)
    calls = calls.filter(~pl.col("name").is_in(given))
    name, key = pl.col("name"), ["run", "name", "arguments_digest"]
    previous = name.shift().over("run")
    nth = pl.int_range(pl.len()).over(key)
    again = pl.struct(key[1:]) == pl.struct(key[1:]).shift().over("run")
    calls = calls.with_columns(previous.alias("previous"), nth.alias("nth"), again.alias("again"))
    at_once = own.filter(pl.col("kind") == "call").filter(pl.len().over("run", "turn") > 1)
    read, wrote = (name.str.contains(kind).cum_sum().over("run") for kind in (_READS, _WRITES))
    silent = own.filter(pl.col("actor") == "assistant").filter(
        ~(pl.col("kind") == "call").any().over("run", "turn")
    )
    return pl.concat(
        [
            _pick(calls, pl.format("calls {}", "name"), _TOOLS),
            _pick(calls.filter(name != pl.col("previous")),
                  pl.format("calls {} after {}", "name", "previous"), _PAIRS),
            _pick(calls.filter(pl.col("previous").is_null()),
                  pl.format("calls {} first", "name"), _AGENTS),
            _pick(calls.filter(pl.col("nth") == 1), "repeats a call"),
            _pick(calls.filter(pl.col("nth") == 2), "makes one call three times"),
            _pick(calls.filter(pl.col("again") & (pl.col("before") != "ok")),
                  "repeats a call that erred"),
            _pick(at_once, "makes several calls in one turn"),
            _pick(silent if len(calls) else silent.head(0), "speaks without a call"),
            _pick(calls.filter(name.str.contains(_WRITES) & (read == 0)), "writes before it reads"),
            _pick(calls.filter((wrote > read) & (read > 0)), "writes more often than it reads"),
        ]
    )  # fmt: skip


def _list_submissions(calls: pl.DataFrame, steps: pl.DataFrame) -> list[str]:
    """Return the calls that hand in an answer."""
    judged = steps.filter(pl.col("actor") == "judge").select("run", "turn").unique()
    last = pl.col("turn") < pl.col("turn").max().over("run")
    going = calls.filter(last).select("run", "turn", "name").unique()
    replied = going.join(judged.with_columns(replied=pl.lit(True)), on=["run", "turn"], how="left")
    shares = replied.group_by("name").agg(pl.col("replied").fill_null(False).mean())
    return shares.filter(pl.col("replied") >= _SUBMITTED)["name"].drop_nulls().to_list()


def _find_results(own: pl.DataFrame) -> pl.DataFrame:
    """Return which calls err, how, and which results come again."""
    results = own.filter(pl.col("kind").is_in(["result", "error"]))
    wrong, nth = results.filter(pl.col("status") != "ok"), pl.int_range(pl.len())
    opening = results.filter(nth.over("run") == 0).filter(pl.col("status") != "ok")
    long = results.filter(pl.col("chars") > _SHORT)
    return pl.concat(
        [
            _pick(wrong, "a call errs"),
            _pick(opening, "the first call errs"),
            _pick(wrong.filter(pl.col("status") == "timeout"), "a call times out"),
            _pick(wrong, pl.format("error: {}", "error_kind"), _ERRORS),
            _pick(long.filter(nth.over("run", "text_digest") == 1), "gets the same result again"),
        ]
    )


def _find_words(own: pl.DataFrame) -> pl.DataFrame:
    """Return the speech of agents and people: lists of words, who speaks, and the length."""
    writes = (pl.col("kind") == "call") & pl.col("name").str.contains(_WRITES).fill_null(False)
    own = own.with_columns(wrote=writes.cum_sum().over("run"))
    said = own.explode("signs").filter(pl.col("signs").is_not_null())
    empty = (pl.col("signs") == "claims success") & (pl.col("wrote") == 0)
    # where no run writes, as by code alone, no call could be missing
    empty &= bool(own["wrote"].max())
    is_agent = (pl.col("actor") == "assistant") & (pl.col("kind") == "message")
    speakers = own.filter(is_agent)
    named = speakers.filter(pl.col("name").is_not_null())
    changed = named.filter(pl.col("name") != pl.col("name").shift().over("run"))
    opening = (
        speakers.filter(pl.col("turn") == 1).group_by("run", "turn").agg(pl.col("chars").sum())
    )
    return pl.concat(
        [
            _pick(said.filter(is_agent & (pl.col("signs") != "corrects")), pl.col("signs")),
            _pick(said.filter(is_agent & empty), "claims success without a call that writes"),
            _pick(said.filter((pl.col("actor") == "user") & (pl.col("signs") == "corrects")),
                  "the user corrects it"),
            _pick(changed, "hands over to another agent"),
            _pick(named, pl.format("{} speaks", "name"), _AGENTS),
            _pick(opening.filter(pl.col("chars") > pl.col("chars").median()), "a long first turn"),
        ]
    )  # fmt: skip


def _find_ends(own: pl.DataFrame) -> pl.DataFrame:
    """Return how runs end: known only when they have."""
    # a simulated user may have the last word
    acts = own.filter(pl.col("actor") != "user")
    last = acts.group_by("run", maintain_order=True).last()
    is_limit = (pl.col("kind") == "limit").any().over("run")
    limits = own.filter(is_limit).group_by("run").agg(pl.col("turn").max())
    is_answer = pl.col("actor") == "assistant"
    return pl.concat(
        [
            _pick(limits, "ends at a limit"),
            _pick(last.filter(pl.col("status") != "ok"), "ends with an error"),
            _pick(last.filter(~is_answer), "ends without an answer"),
        ]
    )


def add_flags(evidence: Evidence, flags: Mapping[str, NDArray[np.float64]]) -> Evidence:
    """Return evidence with columns about whole runs: 1, 0 or NaN for each, by name."""
    roles, names = evidence.roles, list(flags)
    if taken := [name for name in names if name in evidence.frame.columns]:
        raise InputError(f"there is a column {taken[0]!r} already: give the code another name")
    columns = [pl.Series(name, values, pl.Float64).fill_nan(None) for name, values in flags.items()]
    told = replace(roles, during=(*roles.during, *names))
    return replace(evidence, frame=evidence.frame.with_columns(columns), roles=told)
