"""Grouped evidence: one row for each group of rows, in temporary files to count in."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from groundfault.auditing.lazy_evidence import (
    SAMPLE,
    LazyEvidence,
    draw_by,
    key_outcomes,
    read_keys,
    require_few_outcomes,
    sum_statuses,
)
from groundfault.auditing.prepared_audit import tabulate_units
from groundfault.base.long_work import Progress, listener, measure_free_memory
from groundfault.base.row_sketch import RowSample
from groundfault.core.evidence import Evidence
from groundfault.core.roles import Roles
from groundfault.core.rules import literal, quote
from groundfault.core.status import Status
from groundfault.engines import ROWS, SCORED, GroupBy, GroupingCounter, name_difference
from groundfault.engines.polars_files import PolarsCounter
from groundfault.errors import InputError

_PASS = 1_000_000_000
"""Bytes that the groups of one scan may take while they are made."""
_OVERHEAD = 70
"""Bytes that engines take for each column of a group, beside its value: measured with polars."""
_OWN = 40
"""Bytes of a group's name, mean and numbers of rows."""


@dataclass(frozen=True)
class GroupedEvidence(LazyEvidence):
    """One row a group, its outcome the mean of the losses of its rows, counted by polars.

    Columns that differ within a group are empty: they describe no group.

    Attributes
    ----------
    source : LazyEvidence
        The rows.
    varying : tuple of str
        Columns that differ within a group, or hold lists.
    statuses : mapping of str to int
        Rows of each status.
    """

    source: LazyEvidence = field(kw_only=True)
    varying: tuple[str, ...] = field(kw_only=True)
    statuses: dict[str, int] = field(kw_only=True)

    @property
    def differing(self) -> tuple[str, ...]:
        """Return attributes that differ within a group, or hold lists."""
        hidden = {self.source.roles.id, *self.source.roles.ignore}
        return tuple(name for name in self.varying if name not in hidden)

    @property
    def provenance(self) -> tuple[str, ...]:
        """Return the files of the rows."""
        return self.source.provenance

    @cached_property
    def hash(self) -> str:
        """Return the hash of the rows."""
        return self.source.hash

    @cached_property
    def outcome_hash(self) -> str:
        """Return the outcomes' hash of the rows."""
        return self.source.outcome_hash

    def sample_outcomes(self, rows: int) -> Callable[[str], RowSample]:  # noqa: ARG002
        """Return a sample of the rows, as `LazyEvidence.sample_outcomes` draws it."""
        return self.source.sample_outcomes(sum(self.statuses.values()))

    def take(self, where: str) -> Evidence:
        """Return the groups for which a rule is true, as evidence in memory of one row each."""
        columns = [c for c in self.counter.find_schema() if c not in self.varying]
        frame = self.counter.evaluate({name: quote(name) for name in columns}, where)
        kinds = self.source.counter.find_schema()
        empty = (pl.lit(None, kind).alias(c) for c, kind in kinds.items() if c not in columns)
        return Evidence.from_frame(
            frame.with_columns(empty), self.roles, self.provenance, parts=False
        )


@contextmanager
def open_units(
    evidence: Evidence | LazyEvidence, progress: Progress | None = None
) -> Iterator[Evidence | LazyEvidence]:
    """Open evidence for an audit: unchanged, or for lazy evidence with groups, a row a group.

    The rows of groups are in temporary files until the context ends.

    Parameters
    ----------
    evidence : Evidence or LazyEvidence
    progress : callable, optional
        Called with a message before groups are made, with their number and the space they need.

    Raises
    ------
    InputError
        If the engine makes no groups, a group or an id is empty, an outcome cannot be read, or the
        disk has no room.
    """
    if isinstance(evidence, Evidence) or not evidence.is_grouped:
        yield evidence
        return
    with TemporaryDirectory(prefix="groundfault-") as folder:
        yield _group(evidence, Path(folder), listener(progress))


@dataclass(frozen=True)
class _Request:
    """The groups to make, and the space they need, estimated from a sample of groups.

    Attributes
    ----------
    columns : tuple of str
        Columns that do not differ within a group of the sample.
    groups : int
        Approximate number of groups.
    memory, files : int
        Bytes: of all groups while they are made, and once they are written.
    """

    columns: tuple[str, ...]
    groups: int
    memory: int
    files: int

    @property
    def passes(self) -> int:
        """Return how often the rows are scanned, each time for a part of the groups."""
        return max(1, ceil(self.memory / _PASS))

    def describe(self, rows: int, folder: Path) -> str:
        """Describe the work for this many rows, and the space it needs."""
        scans = "1 scan" if self.passes == 1 else f"{self.passes} scans"
        return (
            f"making about {self.groups:,} groups of {rows:,} rows in {scans}, by about "
            f"{min(self.memory, _PASS) / 1e9:.1f} GB of memory and up to {self.files / 1e9:.1f} GB "
            f"of files in {folder}"
        )


def _group(lazy: LazyEvidence, folder: Path, report_progress: Progress) -> GroupedEvidence:
    counter, roles = lazy.counter, lazy.roles
    if not isinstance(counter, GroupingCounter):
        raise InputError(
            f"the engine {counter.name} makes no groups: make one row of each group first, its "
            "outcome the mean of theirs, and audit that table without --group"
        )
    report_progress("drawing groups")
    request = _examine(lazy)
    statuses = _count_statuses(lazy)
    report_progress(request.describe(sum(statuses.values()), folder.parent))
    _require_room(request, folder)
    files, constant = _write(counter, roles, request, folder)
    others = {roles.group, roles.outcome, roles.status, *constant}
    varying = tuple(name for name in counter.find_schema() if name not in others)
    if roles.split in varying:
        raise InputError(
            f"split column {roles.split!r} puts a group into both parts; all rows of a group must "
            "be in the same part"
        )
    return GroupedEvidence(
        PolarsCounter(files), _name_roles(roles), source=lazy, varying=varying, statuses=statuses
    )


def _require_room(request: _Request, folder: Path) -> None:
    """Raise if the disk has too little room for the files; warn if memory has."""
    disk, memory = shutil.disk_usage(folder).free, measure_free_memory()
    if request.files > disk:
        raise InputError(
            f"groups take up to {request.files / 1e9:.1f} GB in {folder.parent}, and "
            f"{disk / 1e9:.1f} GB are free there: name another folder by the variable TMPDIR"
        )
    needs = min(request.memory, _PASS)
    if memory is not None and needs > memory:
        free = f"{memory / 1e9:.1f} GB are free"
        words = f"groups are made by about {needs / 1e9:.1f} GB of memory, and {free}"
        warnings.warn(words, stacklevel=2)


def _examine(lazy: LazyEvidence) -> _Request:
    """Draw groups, check their rows, and leave out columns that differ in them, like long texts."""
    counter, roles, schema = lazy.counter, lazy.roles, lazy.counter.find_schema()
    rows = int(counter.counts([], {}).rows.sum())
    share = Fraction(min(1.0, SAMPLE / max(1, rows)))
    columns = {name: quote(name) for name in schema}
    drawn = counter.evaluate(columns, draw_by(roles.group or "", share))
    drawn_share = share
    if not drawn.height:
        # few groups, and none drawn: single rows cover most groups
        drawn = counter.evaluate(columns, draw_by(roles.id or "", share))
        drawn_share = Fraction(1)
    require_few_outcomes(drawn, roles)
    sample = Evidence.from_frame(drawn, roles, lazy.provenance, parts=False)
    others = {roles.group, roles.outcome, roles.status}
    plain = [name for name, kind in schema.items() if name not in others and not kind.is_nested()]
    table, varying = tabulate_units(sample, plain)
    groups = int(sample.unit_count / drawn_share)
    width = int(table.estimated_size()) // sample.unit_count + _OWN
    names = tuple(name for name in plain if name not in varying)
    return _Request(names, groups, groups * (width + _OVERHEAD * len(names)), groups * width)


def _count_statuses(lazy: LazyEvidence) -> dict[str, int]:
    """Count the rows of each status; refuse unreadable rows before any file is written."""
    roles, where = lazy.roles, lazy.provenance[0]
    names = [roles.id or "", roles.group or ""]
    cells = lazy.counter.counts([f"{quote(n)} IS NULL" for n in names], key_outcomes(roles))
    for name, empty in zip(names, cells.on.sum(axis=0), strict=True):
        if empty:
            raise InputError(
                f"{where}: column {name!r} is empty in {empty} rows; every observation needs one"
            )
    return sum_statuses(read_keys(cells.keys, roles, where)[1], cells.rows)


def _write(
    counter: GroupingCounter, roles: Roles, request: _Request, folder: Path
) -> tuple[tuple[str, ...], set[str]]:
    """Write files of the groups, and return the columns that are constant within all groups."""
    columns = request.columns
    groups = GroupBy(roles.group or "", roles.outcome, _spell_loss(roles), columns)
    files, constant = [], set(columns)
    for part in range(request.passes):
        table = counter.group(groups, part, request.passes)
        flags = {name: name_difference(i) for i, name in enumerate(columns)}
        constant -= {name for name, flag in flags.items() if table[flag].any()}
        path = folder / f"{part}.parquet"
        table.drop(flags.values()).write_parquet(path)
        files.append(str(path))
    return tuple(files), constant


def _spell_loss(roles: Roles) -> str:
    """Write a row's loss, NULL where not scored, as `groundfault.core.roles.read_outcomes`."""
    loss = f"CAST({quote(roles.outcome)} AS DOUBLE PRECISION)"
    loss = f"1 - {loss}" if roles.positive_is_good else loss
    if roles.status is None:
        return loss
    scored = literal(str(Status.SCORED))
    return f"CASE WHEN LOWER(CAST({quote(roles.status)} AS TEXT)) = {scored} THEN {loss} END"


def _name_roles(roles: Roles) -> Roles:
    """Return the roles of the columns of groups."""
    return replace(
        roles,
        id=roles.group,
        status=None,
        positive_is_good=False,
        null_outcome=str(Status.MISSING),
        ignore=(*roles.ignore, roles.id or "", SCORED, ROWS),
        # of rows, and no property of a group
        post_outcome=(*roles.post_outcome, *([roles.status] if roles.status else [])),
    )
