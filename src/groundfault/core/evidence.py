"""Evidence: what happened, as an immutable table of (example, model, repeat) -> outcome with
example attributes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from groundfault.core.roles import Roles, check_keys, check_shape, outcomes, with_id
from groundfault.core.status import Status
from groundfault.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from groundfault.readers.account import Account


@dataclass(frozen=True, eq=False)
class Evidence:
    """What happened: one row per (example, model, repeat), with an outcome and example attributes.

    Make one with `from_table` or `from_frame`. Rows are kept sorted by their key, so nothing
    depends on the order in which they came.

    Attributes
    ----------
    frame : polars.DataFrame
        The table as given, sorted by key; float NaN in attributes is NULL.
    roles : Roles
        Which column plays which part.
    loss : polars.Series of Float64
        1 is failure, 0 is pass; NULL where the observation was not scored.
    status : polars.Series of String
        A `Status` for each row.
    provenance : tuple of str
        Where the rows came from.
    account : Account, optional
        What became of everything that was read, where the rows came from logs.
    reading : dict, optional
        How logs were read, so that they can be read again.
    """

    frame: pl.DataFrame
    roles: Roles
    loss: pl.Series
    status: pl.Series
    provenance: tuple[str, ...] = ()
    account: Account | None = None
    reading: dict[str, Any] | None = None

    @classmethod
    def from_table(
        cls,
        source: Any,
        *,
        outcome: str,
        id: str | None = None,
        model: str | None = None,
        repeat: str | None = None,
        group: str | None = None,
        split: str | None = None,
        status: str | None = None,
        positive_is_good: bool = False,
        empty: str | None = None,
        ignore: Sequence[str] = (),
        instrument: Sequence[str] = (),
        post_outcome: Sequence[str] = (),
        allow_leak: Sequence[str] = (),
    ) -> Evidence:
        """Read evidence from a file, a directory, or a table in memory.

        Parameters
        ----------
        source : path, or a polars, pandas, Arrow or DuckDB table
            CSV, JSONL, Parquet or Arrow IPC file, or a directory of files of one kind.
        outcome : str
            Column with 0/1 error, a boolean, or a loss in [0, 1].
        id, model, repeat, group, split, status : str, optional
            See `Roles`. Without ``id`` each row is an example of its own, named by its position.
        positive_is_good : bool
            The outcome column says "correct": the loss is one minus it.
        empty : {"error", "refused", "unparsed", "artefact", "missing"}, optional
            What an empty outcome means. Without it, and without a status column that says so, empty
            outcomes are an error: an observation must not leave the denominator silently.
        ignore : sequence of str
            Columns that must not be used as attributes.
        instrument, post_outcome, allow_leak : sequence of str
            See `Roles`.

        Raises
        ------
        InputError
            If the file cannot be read, a column is missing, an outcome is not in [0, 1], or a key
            repeats.
        """
        from groundfault.readers.table import read_table

        names = tuple(column for column in (id, model, repeat, group) if column)
        frame, provenance = read_table(source, text=names)
        columns = tuple(ignore), tuple(instrument), tuple(post_outcome), tuple(allow_leak)
        roles = Roles(
            outcome, id, model, repeat, group, split, status, positive_is_good, empty, *columns
        )
        return cls.from_frame(frame, roles, provenance)

    @classmethod
    def from_logs(
        cls,
        *sources: str | Path,
        scorer: str | Sequence[str] | None = None,
        reader: str | None = None,
        map: str | Path | dict[str, Any] | None = None,
        scale: tuple[float, float] | None = None,
        conflicts: str = "error",
        group: str | None = None,
        split: str | None = None,
        ignore: Sequence[str] = (),
        post_outcome: Sequence[str] = (),
        allow_leak: Sequence[str] = (),
        progress: Callable[[str], object] = bool,
    ) -> Evidence:
        """Read evidence from the logs of evaluation tools, or from a directory that ``groundfault
        import`` wrote.

        Parameters
        ----------
        *sources : path
            Logs, folders of logs, or patterns such as ``logs/*.eval``; they become one evidence.
        scorer : str or sequence of str, optional
            Whose score is the outcome; needed where several scored the same answers. Those of the
            others stand beside.
        reader : str, optional
            Name of the reader; left out, each file is recognised by what it holds.
        map : path, optional
            A mapping file that says what the columns of a table are, or what one says.
        scale : pair of float, optional
            The worst and the best value of the scorer, where its values are not 0 to 1.
        conflicts : {"error", "keep"}
            What to do with the same id under other texts, and with other results of the same
            example and model: stop, or keep them as different examples, and as repeats.
        group, split, ignore, post_outcome, allow_leak
            As in `from_table`.
        progress : callable, optional
            Told in words what is going on.

        Returns
        -------
        Evidence
            Its ``account`` says what matched, what is missing, and what was there twice.

        Raises
        ------
        InputError
            If a log cannot be read, several scorers are there and none is chosen, or the logs
            contradict each other.
        """
        from groundfault.readers.importing import read_logs

        return read_logs(
            sources,
            scorer=scorer,
            reader=reader,
            map=map,
            scale=scale,
            conflicts=conflicts,
            named={
                "group": group,
                "split": split,
                "ignore": ignore,
                "post_outcome": post_outcome,
                "allow_leak": allow_leak,
            },
            progress=progress,
        )

    @classmethod
    def from_frame(
        cls,
        frame: pl.DataFrame,
        roles: Roles,
        provenance: tuple[str, ...] = (),
        *,
        account: Account | None = None,
        reading: dict[str, Any] | None = None,
    ) -> Evidence:
        """Check a table and make evidence of it; `from_table` is the friendlier way."""
        where = provenance[0] if provenance else "the table"
        check_shape(frame, roles, where)
        frame, roles = with_id(frame, roles)
        check_keys(frame, roles, where)
        key = [column for column in (roles.id, roles.model, roles.repeat) if column]
        floats = [c for c, t in frame.schema.items() if t.is_float() and c != roles.outcome]
        # names are text, so that a table sorts and splits alike whether its file kept 1 as a number
        # or as a word
        frame = frame.with_columns(pl.col(floats).fill_nan(None)).sort(
            pl.col(c).cast(pl.String) for c in key
        )
        loss, status = outcomes(frame, roles, where)
        return cls(frame, roles, loss, status, provenance, account, reading)

    def __len__(self) -> int:
        return self.frame.height

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Names of the models, sorted; one empty name where there is no model column."""
        if self.roles.model is None:
            return ("",)
        return tuple(str(name) for name in self.frame[self.roles.model].unique().sort())

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Columns that describe the example: with several models or repeats, those constant within
        it.
        """
        taken = {
            *self.roles.columns,
            *self.roles.ignore,
            *self.roles.instrument,
            *self.roles.post_outcome,
        }
        names = [c for c in self.frame.columns if c not in taken]
        if self.frame.height == self.frame[self.roles.id or ""].n_unique():
            return tuple(names)
        ranges = self.frame.group_by(self.roles.id).agg(
            pl.col(c).n_unique().alias(c) for c in names
        )
        return tuple(c for c in names if ranges[c].max() == 1)

    @cached_property
    def _units(self) -> pl.Series:
        return self.frame[self.roles.group or self.roles.id or ""].cast(pl.String)

    @cached_property
    def unit_names(self) -> pl.Series:
        """Names of the units (groups, else examples), as text and in its order."""
        return self._units.unique().sort()

    @cached_property
    def unit_index(self) -> NDArray[np.intp]:
        """The unit each row belongs to: whole numbers from 0, in the order of `unit_names`."""
        if self._units.is_sorted() and self.unit_count == len(self):
            return np.arange(len(self), dtype=np.intp)
        return (self._units.rank("dense").to_numpy() - 1).astype(np.intp)

    @cached_property
    def unit_count(self) -> int:
        """How many independent units there are."""
        return self._units.n_unique()

    @cached_property
    def status_counts(self) -> dict[str, int]:
        """Rows of each status."""
        counts = dict(self.status.value_counts().iter_rows())
        return {str(status): int(counts.get(str(status), 0)) for status in Status}

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the content, whatever the order of rows or columns."""
        return self._digest([c for c in sorted(self.frame.columns) if c not in self.roles.ignore])

    @cached_property
    def outcome_hash(self) -> str:
        """SHA-256 of keys and outcomes alone: the same however many attributes are added."""
        return self._digest([])

    def _digest(self, columns: Sequence[str]) -> str:
        digest = hashlib.sha256()
        key = [c for c in (self.roles.id, self.roles.model, self.roles.repeat) if c]
        for name, series in [
            *((f"key {i}", self.frame[c].cast(pl.String)) for i, c in enumerate(key)),
            ("loss", self.loss),
            ("status", self.status),
            *((f"column {c}", self.frame[c]) for c in columns),
        ]:
            feed(digest, name, series)
        return digest.hexdigest()

    def take(self, rows: NDArray[np.bool_]) -> Evidence:
        """The rows where a mask is true, as evidence of the same roles.

        Parameters
        ----------
        rows : bool array, shape (len(self),)
        """
        mask = pl.Series(rows)
        # what describes an example was settled on the whole table, and stays so in each part of it
        part = replace(
            self,
            frame=self.frame.filter(mask),
            loss=self.loss.filter(mask),
            status=self.status.filter(mask),
        )
        part.__dict__["attributes"] = self.attributes
        part.__dict__["models"] = self.models
        return part

    def select_model(self, *names: str) -> Evidence:
        """Only the rows of the named models.

        Raises
        ------
        InputError
            If a name is not in the table.
        """
        if self.roles.model is None:
            raise InputError(
                "there is no model column to select from; name it with model= or --model-column"
            )
        unknown = [name for name in names if name not in self.models]
        if unknown:
            raise InputError(
                f"no rows of model {unknown[0]!r}; the models are {', '.join(self.models[:20])}"
            )
        rows = self.frame[self.roles.model].cast(pl.String).is_in(list(names)).to_numpy()
        part = self.take(rows)
        # of fewer models, what varied between the others may now describe the example, or the only
        # answer to it
        del part.__dict__["attributes"], part.__dict__["models"]
        return part

    def without(self, columns: Iterable[str]) -> Evidence:
        """The same rows for finders that must not use some columns."""
        left_out = set(columns)
        if not left_out:
            return self
        roles = replace(
            self.roles, instrument=tuple(c for c in self.roles.instrument if c not in left_out)
        )
        other = replace(self, roles=roles)
        other.__dict__["attributes"] = tuple(c for c in self.attributes if c not in left_out)
        return other

    def blind(self) -> Evidence:
        """The same rows without their outcomes, for finders that must not see them."""
        hidden = pl.repeat(None, len(self), dtype=pl.Float64, eager=True).alias("loss")
        other = replace(self, frame=self.frame.drop(self.roles.outcome), loss=hidden)
        other.__dict__["attributes"] = self.attributes
        return other

    def with_unscored_as(self, loss: float) -> Evidence:
        """The same evidence had every unscored observation come to ``loss``."""
        scored = pl.repeat(str(Status.SCORED), len(self), eager=True)
        other = replace(self, loss=self.loss.fill_null(loss), status=scored.alias("status"))
        other.__dict__["attributes"] = self.attributes
        return other


def feed(digest: Any, name: str, series: pl.Series) -> None:
    """Add a column to a digest in one canonical form: integers as int64, floats as float64, all
    else as text.
    """
    dtype = series.dtype
    if isinstance(dtype, pl.List | pl.Array):  # the text of a long list leaves out its middle
        lists = series if isinstance(dtype, pl.List) else series.arr.to_list()
        feed(digest, f"{name} lengths", lists.list.len())
        feed(digest, f"{name} values", lists.explode())
        return
    if dtype.is_integer():
        series = series.cast(pl.Int64, strict=False)
    elif dtype.is_float():
        series = series.cast(pl.Float64) + 0.0  # one zero, not two
    elif dtype == pl.Boolean:
        series = series.cast(pl.Int64)
    elif dtype.is_nested():
        series = (
            series.struct.json_encode()
            if dtype == pl.Struct
            else pl.Series([repr(v) for v in series])
        )
    else:
        series = series.cast(pl.String)
    kind = "text" if series.dtype == pl.String else str(series.dtype)
    digest.update(f"{name}\0{kind}\0{len(series)}\0".encode())
    for start in range(0, len(series), 1 << 18):
        part = series.slice(start, 1 << 18)
        if part.dtype == pl.String:
            lengths = part.str.len_bytes().fill_null(-1).cast(pl.Int64)
            digest.update(lengths.to_numpy().tobytes())
            digest.update("".join(part.fill_null("")).encode("utf-8", "surrogatepass"))
        else:
            digest.update(np.packbits(part.is_null().to_numpy()).tobytes())
            digest.update(np.ascontiguousarray(part.fill_null(0).to_numpy()).tobytes())
