"""Reading: the steps of all runs of evidence, from its table or from its logs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from groundfault import readers
from groundfault.core.conversations import TRANSCRIPT, list_conversations
from groundfault.errors import InputError, PlanError
from groundfault.readers.importing import digest_log
from groundfault.transcripts.steps import tabulate_steps

if TYPE_CHECKING:
    from groundfault.core.roles import Roles
    from groundfault.readers.account import Account, LogRead

_PART = 500
"""Cells of a table that are Python objects at once."""


def read_steps(frame: pl.DataFrame, roles: Roles, account: Account | None) -> pl.DataFrame:
    """Return the steps of all runs of evidence, from its logs or from a column of its table.

    Parameters
    ----------
    frame, roles, account
        Of the evidence.

    Returns
    -------
    polars.DataFrame
        A row a step: ``example_id``, ``model``, ``repeat``, and what `tabulate_steps` says, ``run``
        being the row of the evidence; without rows where nothing holds conversations. A log that is
        not where it was any more is left out, with a warning.
    """
    named = {"example_id": roles.id, "model": roles.model, "repeat": roles.repeat}
    keys = frame.select(
        (pl.lit(None, pl.String) if column is None else pl.col(column).cast(pl.String)).alias(name)
        for name, column in named.items()
    )
    steps = tabulate_steps(_list_runs(frame, roles, account, range(frame.height))).sort(
        "run", "step"
    )
    return pl.concat([keys[steps["run"]], steps], how="horizontal")


def read_transcripts(
    frame: pl.DataFrame, roles: Roles, account: Account | None, rows: Sequence[int]
) -> pl.DataFrame:
    """Return the steps of some runs, by their rows, with their texts and arguments."""
    return tabulate_steps(_list_runs(frame, roles, account, rows), texts=True)


def _list_runs(
    frame: pl.DataFrame, roles: Roles, account: Account | None, rows: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """Yield numbers of rows and their conversations."""
    if TRANSCRIPT in frame.columns and account is not None:
        yield from _open_logs(frame[list(rows)], account.logs, rows)
        return
    columns = [c for c in list_conversations(frame) if c not in roles.columns]
    for start in range(0, len(rows) if columns else 0, _PART):
        part = rows[start : start + _PART]
        yield from zip(part, frame[columns[0]][list(part)].to_list(), strict=True)


def _open_logs(
    frame: pl.DataFrame, logs: tuple[LogRead, ...], numbers: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """Yield the conversations of the rows, log by log."""
    named = pl.Series("run", numbers, dtype=pl.UInt32)
    table = frame.select("log", TRANSCRIPT).with_columns(named).drop_nulls()
    for (number,), part in table.group_by("log", maintain_order=True):
        log = logs[int(number)]
        rows = dict(part.select(TRANSCRIPT, "run").iter_rows())
        try:
            _require_same(log)
            reader: Any = readers.get(log.reader)
        except (InputError, PlanError) as error:
            warnings.warn(f"transcripts are left out: {error}", stacklevel=6)
            continue
        for place, conversation in reader.read_conversations(Path(log.path)):
            if place in rows:
                yield rows[place], conversation


def _require_same(log: LogRead) -> None:
    """Raise unless a log is where it was, with the same content."""
    path = Path(log.path)
    if not path.exists():
        raise InputError(f"{path} is not there any more")
    if digest_log(path) != log.sha256:
        raise InputError(f"{path} is not the log that was read; read it again")
