"""Configurations: runs of one model with different settings, each under its own name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import polars as pl

from groundfault.readers.log import WORDING, Log
from groundfault.readers.values import name_of

CONFIGURATION = "configuration"
"""Column: the named table that a row is from, if there are several."""

_NAMED = re.compile(r"(?P<name>\w[\w.-]{0,59})=(?P<place>.+)", re.DOTALL)
# settings that do not change a model's answers, that differ for every repeat, or that are secret
_NO_MATTER = re.compile(
    r"(.*_)?(seed|device|devices|batch_size|batch|workers|num_proc|cache|timeout|retries|logs?|log_dir"
    r"|verbos\w*|connections|samples|trust_remote_code|base_url|user|secret|token|password|api_key"
    r"|key|credentials?|custom_outputs)",
    re.IGNORECASE,
)
# characters of a setting in a name: two of them fit on a line of a terminal
_LONGEST = 40


@dataclass(frozen=True)
class Setup:
    """Settings of the model of one log.

    Attributes
    ----------
    name : str
        The caller's name for the log; "" if the caller gave none.
    settings : mapping
        Arguments of the task and of the model, as the log states them.
    rewords : bool
        Whether the log's ids stay the same if the question is reworded.
    """

    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    rewords: bool = False

    @classmethod
    def of(cls, log: Log, name: str) -> Setup:
        """Return the setup of a log, with the caller's name if there is one."""
        settings = {
            key: value if isinstance(value, str) else json.dumps(value, default=str)
            for key, value in log.settings.items()
            if value is not None and not _NO_MATTER.fullmatch(key)
        }
        return cls(name, settings, log.rewords or bool(name))


def split_source(source: str | Path) -> tuple[str, str | Path]:
    """Return a source ``NAME=PLACE`` as its name and place.

    The name is "" for a place alone.

    An existing file or folder with such a name is a place.
    """
    match = _NAMED.fullmatch(source) if isinstance(source, str) else None
    try:
        is_place = match is None or Path(str(source)).exists()
    except OSError:  # too long for a name, say, as two sources with a long pattern may be
        is_place = False
    return ("", source) if match is None or is_place else (match["name"], match["place"])


def name_configurations(
    table: pl.LazyFrame, setups: Sequence[Setup]
) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """Return the table with a model for each configuration, and notes for the account.

    Logs that the caller named have that name, with the model in front if there are several. Other
    logs of one model that answered the same examples are named by the settings in which they
    differ.

    Parameters
    ----------
    table : polars.LazyFrame
        Rows of logs, with ``log``, the number of the log.
    setups : sequence of Setup
        One a log.
    """
    models = table.select("task", "model", "log").unique(maintain_order=True).collect()
    names, notes = _name_chosen(models, setups)
    apart, more = _tell_apart(table, models, setups)
    names |= apart
    if names:
        # value by value, not a join: the rows can then still be read in parts
        new = {f"{log} {model}": name for (log, model), name in names.items()}
        key = pl.concat_str("log", pl.lit(" "), "model")
        named = key.replace_strict(new, default=pl.col("model"), return_dtype=pl.String)
        table = table.with_columns(named.alias("model"))
    if _have_tasks_of_their_own(models, setups):
        chosen = [i for i, setup in enumerate(setups) if setup.name]
        task = pl.when(pl.col("log").is_in(chosen)).then(pl.lit("")).otherwise("task")
        table = table.with_columns(task.alias("task"))
    reworded = [i for i, setup in enumerate(setups) if setup.rewords]
    wording = pl.when(pl.col("log").is_in(reworded)).then("model").otherwise(pl.lit(""))
    return table.with_columns(wording.alias(WORDING)), (*notes, *more)


def _name_chosen(
    models: pl.DataFrame, setups: Sequence[Setup]
) -> tuple[dict[tuple[int, str], str], tuple[str, ...]]:
    """Return models of the logs that the caller named, by log and model."""
    of_name: dict[str, dict[str, None]] = {}
    for _, model, log in models.iter_rows():
        if setups[log].name:
            of_name.setdefault(setups[log].name, {})[model] = None
    names = {
        (log, model): name if len(of_name[name]) < 2 or not model else f"{model} ({name})"
        for _, model, log in models.iter_rows()
        if (name := setups[log].name)
    }
    notes = tuple(
        f"configuration {name}: {', '.join(filter(None, each))}{_describe(name, setups)}"
        for name, each in of_name.items()
        if any(each)
    )
    return names, notes


def _describe(name: str, setups: Sequence[Setup]) -> str:
    """Return settings that all logs with a name share and other logs lack."""
    mine = [setup.settings for setup in setups if setup.name == name]
    others = [setup.settings for setup in setups if setup.name and setup.name != name]
    same = {k: v for k, v in mine[0].items() if all(each.get(k) == v for each in mine)}
    own = {k: v for k, v in same.items() if any(each.get(k) != v for each in others)}
    words = ", ".join(f"{key}={_shorten(value)}" for key, value in sorted(own.items()))
    return f" with {words}" if words else ""


def _have_tasks_of_their_own(models: pl.DataFrame, setups: Sequence[Setup]) -> bool:
    """Return whether each named configuration has its own task, for example two prompts."""
    tasks: dict[str, set[str]] = {}
    for task, _, log in models.iter_rows():
        if setups[log].name:
            tasks.setdefault(setups[log].name, set()).add(task)
    alone = all(len(each) == 1 for each in tasks.values())
    return len(tasks) > 1 and alone and len(set().union(*tasks.values())) > 1


def _tell_apart(
    table: pl.LazyFrame, models: pl.DataFrame, setups: Sequence[Setup]
) -> tuple[dict[tuple[int, str], str], tuple[str, ...]]:
    """Name models of unnamed logs, by log and model, if their settings differ."""
    unnamed = models.filter(pl.col("log").is_in([i for i, s in enumerate(setups) if not s.name]))
    logs_of: dict[str, list[int]] = {}
    for _, model, log in unnamed.iter_rows():
        if log not in logs_of.setdefault(model, []):
            logs_of[model].append(log)
    names: dict[tuple[int, str], str] = {}
    notes = []
    for model, logs in logs_of.items():
        if not _find_differences([setups[log].settings for log in logs]):
            continue
        keys: set[str] = set()
        for group in _find_shared(table.filter(pl.col("model") == model)):
            keys |= _find_differences([setups[log].settings for log in group if log in logs])
        labels = _label([setups[log].settings for log in logs], sorted(keys))
        new = [f"{model} ({label})" if label else model for label in labels]
        if keys:
            names |= {(log, model): name for log, name in zip(logs, new, strict=True)}
            each = ", ".join(dict.fromkeys(new))
            notes.append(f"told apart by {', '.join(sorted(keys))}: {each}")
    return names, tuple(notes)


def _find_shared(rows: pl.LazyFrame) -> list[list[int]]:
    """Return sets of logs that answered an example in common."""
    answers = rows.select("task", "example_id", "log").unique()
    shared = answers.group_by("task", "example_id").agg(pl.col("log").sort())
    several = shared.filter(pl.col("log").list.len() > 1).select(pl.col("log").unique())
    return several.collect().to_series().to_list()


def _find_differences(settings: Sequence[Mapping[str, str]]) -> set[str]:
    """Return keys whose values are not all equal."""
    keys = {key for each in settings for key in each}
    return {key for key in keys if len({each.get(key) for each in settings}) > 1}


def _label(settings: Sequence[Mapping[str, str]], keys: Sequence[str]) -> list[str]:
    """Return short words for each log's values of some settings."""
    shorter: dict[str, dict[str, str]] = {}
    for key in keys:
        values = dict.fromkeys(each[key] for each in settings if key in each)
        short = {value: _shorten(value) for value in values}
        unique = len(set(short.values())) == len(short)
        whole = {value: value if len(value) <= _LONGEST else name_of(value)[:8] for value in values}
        shorter[key] = short if unique else whole
    return [
        ", ".join(f"{key}={shorter[key][each[key]]}" for key in keys if key in each)
        for each in settings
    ]


def _shorten(value: str) -> str:
    """Shorten a value: a path to its last part, a long text to its start."""
    if "/" in value and not any(c.isspace() for c in value):
        value = PurePath(value).name or value
    line = " ".join(value.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
