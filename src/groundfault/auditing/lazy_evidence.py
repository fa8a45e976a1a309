"""Lazy evidence: Parquet files that engines count in, for tables larger than memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.base.arrays import Floats, Ints
from groundfault.base.files import spell_path
from groundfault.base.reading import readable
from groundfault.base.row_sketch import DIGITS, EVERY_PLACE, MOST_ROWS, RowSample
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.roles import LISTS, Roles, check_shape, read_outcomes
from groundfault.core.row_names import sampler_of
from groundfault.core.rules import literal, quote
from groundfault.engines import Counter, open_counter
from groundfault.errors import InputError
from groundfault.readers.grades import read_grades
from groundfault.readers.table_size import check_texts, measure_table

SAMPLE = 20_000
"""Rows that are drawn for steps that need rows."""

OUTCOME, STATUS = "outcome", "status"
"""Names of keys of a cell."""

MAX_LOSSES = 101
"""Values of an outcome in the sample: a grade in per cent has as many."""

MAX_MEANS = 500
"""Means of groups in the sample: as many as there are of up to 40 rows that pass or fail."""

_FEW_WORDS = 20
"""Words of a status or a split in the sample."""

# rows that are drawn for a ledger: slightly more than the largest sample
_DRAWN = 1.2 * MOST_ROWS


@dataclass(frozen=True)
class LazyEvidence:
    """A table too large to read: one row an example, counted by an engine.

    Make one with `scan`, and audit it as any other evidence.

    Attributes
    ----------
    counter : Counter
    roles : Roles
        Roles of the columns: the outcome and the id, and optionally a group, a split and a status.
    """

    counter: Counter
    roles: Roles

    @classmethod
    def scan(
        cls,
        source: str | Path,
        *,
        outcome: str,
        id: str,
        engine: str = "polars",
        table: str = "",
        group: str | None = None,
        split: str | None = None,
        status: str | None = None,
        positive_is_good: bool | None = None,
        null_outcome: str | None = None,
        ignore: Sequence[str] = (),
        instrument: Sequence[str] = (),
        post_outcome: Sequence[str] = (),
        allow_leakage: Sequence[str] = (),
    ) -> LazyEvidence:
        """Name Parquet files, and the roles of their columns.

        Parameters
        ----------
        source : path
            A Parquet file, or a directory of them with the same columns; or a database.
        outcome : str
            Column with 0/1 error or true/false.
        id : str
            Column of ids, text or whole numbers, each in one row: the split and the sample are
            drawn by them.
        engine : str
            Engine that counts: ``polars`` or ``duckdb`` on this machine without reading the files
            into memory, or ``spark`` on a cluster. See `groundfault.engines`.
        table : str
            A table or view, where ``source`` is a database: of DuckDB, for the engine ``duckdb``.
        group : str, optional
            Column that names groups of dependent rows, text or whole numbers: each is one unit,
            as in `Evidence.from_table`. An audit makes a temporary table of one row a group.
        split, status, positive_is_good, null_outcome, ignore, instrument, post_outcome
            As in `Evidence.from_table`.
        allow_leakage : sequence of str
            As in `Evidence.from_table`.

        Raises
        ------
        InputError
            If a file or column is missing, a file states a far larger size than it has, or ids are
            not text or whole numbers.
        MissingExtraError
            If the engine is not installed.
        """
        counter = open_counter(engine, source, table)
        measure_table(*() if table else map(Path, counter.files))
        # the first rows show the same about the roles as an empty table
        lists = tuple(ignore), tuple(instrument), tuple(post_outcome), tuple(allow_leakage)
        columns = counter.find_schema()
        # letters of Inspect are graded: they show up as an outcome that is no number
        _, is_good, null, _ = read_grades(
            pl.DataFrame(schema=columns), outcome, positive_is_good, null_outcome
        )
        roles = Roles(outcome, id, None, None, group, split, status, is_good, null, *lists)
        check_shape(pl.DataFrame({name: [None] for name in columns}), roles, str(source))
        for name in (id, group or id):
            dtype = columns[name]
            if not (dtype.is_integer() or dtype == pl.String):
                raise InputError(
                    f"{source}: ids in {name!r} are {dtype}; the split is drawn by them, so they "
                    "have to be text or whole numbers"
                )
        return cls(counter, roles)

    @property
    def is_grouped(self) -> bool:
        """Return whether rows belong to groups, each of which is one unit."""
        return self.roles.group not in (None, self.roles.id)

    @property
    def provenance(self) -> tuple[str, ...]:
        """Return the files."""
        return tuple(map(spell_path, self.counter.files))

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of the files' digests, without their names, and of a table's name."""
        digests = []
        for path in self.counter.files:
            with readable(Path(path)), Path(path).open("rb") as stream:
                digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
        table = [self.counter.table] if self.counter.table else []
        return hashlib.sha256("\n".join([*sorted(digests), *table]).encode()).hexdigest()

    @cached_property
    def outcome_hash(self) -> str:
        """Return the SHA-256 of the files and the name of the outcome column."""
        parts = "outcome", "id", "status", "positive_is_good"
        names = [str(getattr(self.roles, name)) for name in parts]
        return hashlib.sha256("\n".join([self.hash, *names]).encode()).hexdigest()

    def find_part(self, plan: Plan) -> str:
        """Return the expression of a row's part: ``discovery``, or true, for discovery.

        Without a split column, the first digits of an MD5 of seed and id decide: the same on every
        engine, and independent of the order of rows.
        """
        if self.roles.split is not None:
            return _spell_text(self.roles.split)
        return self._draw(plan.seed, 1 - to_fraction(plan.holdout), 1)

    def find_sample(self, plan: Plan, rows: int, *, holdout: bool) -> str:
        """Return the rule that draws about `SAMPLE` rows, of discovery where there is a holdout.

        Parameters
        ----------
        plan : Plan
        rows : int
            In the whole table.
        holdout : bool
        """
        share = (1 - to_fraction(plan.holdout)) if holdout else Fraction(1)
        # of other digits than the split, so that both are independent
        draw = self._draw(plan.seed, SAMPLE / (rows * share), 1 + DIGITS)
        if not holdout:
            return draw
        part = self.find_part(plan)
        is_discovery = part if self.roles.split is None else f"{part} = {literal('discovery')}"
        return f"{draw} AND {is_discovery}"

    def _draw(self, seed: int, share: Fraction, place: int) -> str:
        """Return a rule that is true for a share of the rows, drawn by their ids."""
        text = f"{literal(f'{seed}/')} || {_spell_text(self.roles.id or '')}"
        return _draw_text(text, _find_bound(share), place)

    def sample_outcomes(self, rows: int) -> Callable[[str], RowSample]:
        """Return a function that samples outcomes for a ledger by its salt, as for rows in memory.

        Parameters
        ----------
        rows : int
            Rows of the whole table. One scan draws about 24,000 rows, or takes all.

        Raises
        ------
        InputError
            If an id occurs twice, or an outcome cannot be read.
        """
        bound = _find_bound(Fraction(_DRAWN) / rows)
        no_lists: dict[str, Any] = dict.fromkeys((*LISTS, "instrument"), ())
        roles = replace(self.roles, group=None, split=None, **no_lists)
        columns = {name: quote(name) for name in (roles.id, roles.outcome, roles.status) if name}
        frame = self.counter.evaluate(columns, _draw_text(_spell_text(roles.id or ""), bound, 1))
        return sampler_of(Evidence.from_frame(frame, roles, self.provenance), bound - 1)

    def take(self, where: str) -> Evidence:
        """Return the rows for which a rule is true, as evidence in memory.

        Raises
        ------
        InputError
            If an id occurs twice, an outcome cannot be read, or texts are larger than memory.
        """
        columns = self.counter.find_schema()
        frame = self.counter.evaluate({name: quote(name) for name in columns}, where)
        check_texts(frame, Path(self.counter.files[0]))
        return Evidence.from_frame(frame, self.roles, self.provenance, parts=False)


def draw_by(column: str, share: Fraction) -> str:
    """Write a rule that is true for a share of a column's values, the same on every engine."""
    return _draw_text(_spell_text(column), _find_bound(share), 1)


def _spell_text(column: str) -> str:
    return f"CAST({quote(column)} AS TEXT)"


def _find_bound(share: Fraction) -> int:
    """Return the place in the order of MD5 below which a share of all rows lies."""
    return min(int(share * (EVERY_PLACE + 1)), EVERY_PLACE)


def _draw_text(text: str, bound: int, place: int) -> str:
    """Return a rule that is true where some digits of a text's MD5 are below a bound."""
    digits = f"{bound:0{DIGITS}x}"
    return f"SUBSTRING(MD5({text}), {place}, {DIGITS}) < {literal(digits)}"


def key_outcomes(roles: Roles) -> dict[str, str]:
    """Return expressions that define cells: outcome, and status if there is one."""
    by = {OUTCOME: quote(roles.outcome)}
    return by if roles.status is None else {**by, STATUS: quote(roles.status)}


def read_keys(keys: pl.DataFrame, roles: Roles, where: str) -> tuple[Floats, pl.Series]:
    """Read the loss, NaN where not scored, and the status of each cell.

    Parameters
    ----------
    keys : polars.DataFrame
        Keys of cells that were counted by `key_outcomes`.
    roles : Roles
    where : str
        Name of the table for messages.

    Raises
    ------
    InputError
        If an outcome or a status cannot be read.
    """
    columns = {OUTCOME: roles.outcome, STATUS: roles.status or ""}
    names = [name for name in columns if name in keys.columns]
    frame = keys.select(pl.col(name).alias(columns[name]) for name in names).with_columns(
        pl.lit("one of the rows").alias(roles.id or "")
    )
    loss, status = read_outcomes(frame, roles, where)
    return loss.fill_null(float("nan")).to_numpy(), status


def sum_statuses(status: pl.Series, rows: Ints) -> dict[str, int]:
    """Return the rows of each status, over cells."""
    cells = pl.DataFrame({"status": status, "rows": rows})
    sums = cells.group_by("status").agg(pl.col("rows").sum())
    return {name: int(count) for name, count in sums.iter_rows()}


def require_few_outcomes(sample: pl.DataFrame, roles: Roles, most: int = MAX_LOSSES) -> None:
    """Raise before a scan groups by a column of many values.

    Parameters
    ----------
    sample : polars.DataFrame
        Of the table.
    roles : Roles
    most : int
        Values that an outcome may have there.
    """
    for column in (roles.outcome, roles.status, roles.split):
        limit = most if column == roles.outcome else _FEW_WORDS
        if column is not None and sample[column].n_unique() > limit:
            raise InputError(
                f"column {column!r} has over {limit} values in a sample of the rows: an outcome has"
                f" to have at most {most} grades to be counted, and a status and a split few words"
            )
