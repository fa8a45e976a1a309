"""Row names: identify observations and units, so that other evidence can be matched with them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from groundfault.base.arrays import Places
from groundfault.base.row_sketch import EVERY_PLACE, RowSample, sample_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from groundfault.core.evidence import Evidence

_LOG = "log"
"""Column: the number of the log that a row is from, in the order of the account."""


def sampler_of(evidence: Evidence, bound: int = EVERY_PLACE) -> Callable[[str], RowSample]:
    """Return a function that samples outcomes of evidence for a ledger, given the ledger's salt.

    Parameters
    ----------
    evidence : Evidence
    bound : int
        Where the evidence has only part of a table's rows: the last place it includes, in the order
        in which samples are taken.

    Notes
    -----
    Rows are identified by id, model and repeat. Without ids, row numbers would change once a row is
    left out. Rows are then identified by their columns of plain values, and rows that are equal in
    all these columns are left out. Unscored rows are left out, because they have no outcome to
    compare. Answers of rows from logs are also identified by log and key.
    """

    @cache
    def sample(salt: str) -> RowSample:
        names = _name_rows(evidence)
        loss = evidence.table_loss
        usable = loss.is_not_null() & names.is_not_null()
        outcomes = loss.filter(usable).to_numpy()
        logs = _name_logs(evidence)
        of_logs = None if logs is None else logs.filter(usable).to_list()
        known = names.filter(usable).cast(pl.Binary).to_list()
        return sample_rows(known, outcomes, salt, of_logs, bound)

    return sample


def find_cluster_leaders(evidence: Evidence) -> Places:
    """Return for each unit the place of the example that it is named after, among all examples.

    Whole numbers from 0, shape (units,), in the order of `Evidence.unit_names`.
    """
    names = evidence.without_clusters().unit_names
    places = dict(zip(names, range(len(names)), strict=True))
    return np.array([places[name] for name in evidence.unit_names], dtype=np.intp)


def _name_logs(evidence: Evidence) -> pl.Series | None:
    """Return the digest of each row's log; None if the rows are not from logs."""
    account, frame = evidence.account, evidence.frame
    if account is None or _LOG not in frame.columns or not frame[_LOG].dtype.is_integer():
        return None
    digests = dict(enumerate(log.sha256 for log in account.logs))
    return frame[_LOG].replace_strict(digests, default="", return_dtype=pl.String)


def _name_rows(evidence: Evidence) -> pl.Series:
    """Return a name for each row; NULL where another row would have the same."""
    roles, frame = evidence.roles, evidence.frame
    if not roles.numbered:
        key = [column for column in (roles.id, roles.model, roles.repeat) if column]
        if len(key) == 1:
            return frame[key[0]].cast(pl.String)
        # numbers as text: a name is the same whether a file kept 1 as a number or as a word
        texts = [pl.col(c).cast(pl.String) for c in key]
        return frame.select(pl.struct(texts).struct.json_encode()).to_series()
    hidden = {roles.id, roles.outcome, roles.status, *roles.ignore}
    # lists and bytes also tell rows apart, but some of their types cannot be written as text
    columns = [
        c
        for c, dtype in sorted(frame.schema.items())
        if c not in hidden and not dtype.is_nested() and dtype not in (pl.Binary, pl.Object)
    ]
    if not columns:
        return pl.repeat(None, len(evidence), dtype=pl.String, eager=True)
    names = frame.select(pl.struct(columns).struct.json_encode()).to_series()
    # numbers are compared first, in a fifth of the time: few tables have any alike
    alike = names.hash().is_duplicated()
    if alike.any():
        alike &= names.is_duplicated()
    return names.set(alike, None)
