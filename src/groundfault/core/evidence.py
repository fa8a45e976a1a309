"""Evidence: an immutable table of (example, model, repeat) -> outcome, with attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Places
from groundfault.base.registry import load_object
from groundfault.core.column_meaning import list_conversations
from groundfault.core.roles import Roles, add_parts, count_failed_statuses, list_parts, read_rows
from groundfault.core.rules import Rule
from groundfault.core.status import Status
from groundfault.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from groundfault.base.long_work import Progress
    from groundfault.readers import Reader
    from groundfault.readers.account import Account
    from groundfault.readers.log_rows import LogRows
    from groundfault.readers.table import TableSource


@dataclass(frozen=True, eq=False)
class Evidence:
    """One row per (example, model, repeat), with an outcome and example attributes.

    Make one with `from_table`, `from_logs` or `from_frame`. Rows are sorted by their key.

    Attributes
    ----------
    frame : polars.DataFrame
        The table, sorted by key; float NaN in attributes is NULL.
    roles : Roles
        The role of each column.
    loss : polars.Series of Float64
        1 is failure, 0 is pass; NULL where the observation was not scored.
    status : polars.Series of String
        A `Status` for each row.
    provenance : tuple of str
        Where the rows came from.
    account : Account, optional
        Where the rows came from logs, how many records were read, matched and left out.
    reading : dict, optional
        How logs were read, so that they can be read again.
    fixed_attributes, fixed_models : tuple of str, optional
        In a part of other evidence, the `attributes` and `models` of the whole, kept by the part.
    selection : str, optional
        The rule that selected the rows, where `where` did.
    clusters : polars.Series of String, optional
        For each row, the example that its example is a copy of. Without groups, these examples are
        the units; a unit's outcome is the mean over the copies. Not part of the hash.
    log_rows : LogRows, optional
        Where several scorers scored the logs, the rows of all scorers.
    raw_loss : polars.Series of Float64, optional
        The losses that ``loss`` was computed from, if any: a ledger recognises outcomes by them.
    grading : str
        How an outcome in words was read; empty for numbers.
    """

    frame: pl.DataFrame
    roles: Roles
    loss: pl.Series
    status: pl.Series
    provenance: tuple[str, ...] = ()
    account: Account | None = None
    reading: dict[str, Any] | None = None
    fixed_attributes: tuple[str, ...] | None = field(default=None, repr=False)
    fixed_models: tuple[str, ...] | None = field(default=None, repr=False)
    selection: str | None = None
    clusters: pl.Series | None = field(default=None, repr=False)
    log_rows: LogRows | None = field(default=None, repr=False)
    raw_loss: pl.Series | None = field(default=None, repr=False)
    grading: str = field(default="", repr=False)

    @classmethod
    def from_table(
        cls,
        source: TableSource,
        *,
        outcome: str,
        id: str | None = None,
        model: str | None = None,
        repeat: str | None = None,
        group: str | None = None,
        split: str | None = None,
        status: str | None = None,
        positive_is_good: bool | None = None,
        null_outcome: str | None = None,
        scale: tuple[float, float] | None = None,
        passes: Sequence[str] = (),
        ignore: Sequence[str] = (),
        instrument: Sequence[str] = (),
        post_outcome: Sequence[str] = (),
        during: Sequence[str] = (),
        allow_leakage: Sequence[str] = (),
        count_as_failed: Sequence[str] = (),
    ) -> Evidence:
        """Read evidence from a file, a directory, or a table in memory.

        Parameters
        ----------
        source : path, or a table in memory
            A file or a directory of files of one kind, also of ``save_to_disk``; or a table of
            polars, pandas, Arrow, DuckDB or Hugging Face, a dict of columns, a list of dicts.
        outcome, id, model, repeat, group, split, status, null_outcome : str, optional
            Columns, and a status; see `Roles`.
        positive_is_good : bool, optional
            Whether a 1 in the outcome column is a pass; by default a failure, but a pass in a
            column named like ``correct`` or ``passed``; one named like ``score`` stops with both
            calls to choose from.
        scale : pair of float, optional
            Worst and best value of a score such as 1 to 5.
        passes, ignore, instrument, post_outcome, during, allow_leakage, count_as_failed : sequences
            Values of the outcome that are passes; columns; and statuses. See `Roles`.

        Raises
        ------
        InputError
            If the file cannot be read, a column is missing, a key repeats, or only the caller can
            say which outcomes are passes.
        """
        from groundfault.readers.configurations import CONFIGURATION
        from groundfault.readers.grades import read_grades
        from groundfault.readers.table import read_table, settle_ids

        if isinstance(source, tuple) and model is None and repeat != CONFIGURATION:
            model = CONFIGURATION
        texts = tuple(column for column in (id, model, repeat, group) if column)
        frame, provenance = read_table(source, text=texts, numbers=(outcome,))
        if id in frame.columns:
            frame = frame.with_columns(settle_ids(frame[id]))
        said = positive_is_good, null_outcome, scale, passes
        frame, is_good, null, how = read_grades(frame, outcome, *said)
        columns = tuple(ignore), tuple(instrument), tuple(post_outcome), tuple(allow_leakage)
        names = outcome, id, model, repeat, group, split, status
        told = dict[str, Any](count_as_failed=tuple(count_as_failed), scale=scale)
        roles = Roles(*names, is_good, null, *columns, **told, passes=(*passes,), during=(*during,))
        return replace(cls.from_frame(frame, roles, provenance), grading=how)

    @classmethod
    def from_logs(
        cls,
        *sources: str | Path,
        scorer: str | Sequence[str] | None = None,
        disagreement: tuple[str, str] | None = None,
        reader: str | Reader | None = None,
        map: str | Path | dict[str, Any] | None = None,
        scale: tuple[float, float] | None = None,
        conflicts: Literal["error", "keep"] = "error",
        group: str | None = None,
        split: str | None = None,
        ignore: Sequence[str] = (),
        post_outcome: Sequence[str] = (),
        during: Sequence[str] = (),
        allow_leakage: Sequence[str] = (),
        count_as_failed: Sequence[str] = (),
        progress: Progress | None = None,
    ) -> Evidence:
        """Read logs of evaluation tools, or a directory that `save` or ``import`` wrote.

        Parameters
        ----------
        *sources : path
            Logs, folders of logs, or patterns such as ``logs/*.eval``; they become one evidence.
        scorer : str or sequence of str, optional
            Scorer in the logs whose score becomes the outcome, instead of the tool's own; one for
            each task. Scores are never averaged: the others become columns.
        disagreement : pair of str, optional
            Audit where scorers A and B differ: a difference then counts as a failure.
        reader : str or Reader, optional
            Reader of the logs, such as inspect; by default chosen by their content.
        map : path, optional
            Mapping file (TOML) that names the columns of tables with another layout. A dict
            is its content.
        scale : pair of float, optional
            Range of that scorer's values, where it is not 0 to 1.
        conflicts : {"error", "keep"}
            Stop where logs give one id two texts, or one answer two results; or keep both. Two
            texts are then two examples, and two results are repeats of one example and model.
        group, split, ignore, post_outcome, during, allow_leakage, count_as_failed
            As in `from_table`.
        progress : callable, optional
            Called with a message at each step.

        Returns
        -------
        Evidence
            Its ``account`` says which records matched, which are missing and which are duplicates.

        Raises
        ------
        InputError
            If a log cannot be read, several scorers are there and none is chosen, or the logs
            contradict each other.
        """
        from groundfault.readers.importing import read_logs

        how = dict[str, Any](scorer=scorer, disagreement=disagreement, reader=reader, map=map)
        how |= {"scale": scale, "conflicts": conflicts, "progress": progress}
        logs = read_logs(sources, **how)
        lists = {"ignore": ignore, "post_outcome": post_outcome, "during": during}
        lists |= {"allow_leakage": allow_leakage, "count_as_failed": count_as_failed}
        roles = logs.roles.join(group, split, lists)
        # this is the only reference to the table: sorted in place, it is in memory once
        read = dict[str, Any](account=logs.account, reading=logs.reading, log_rows=logs.rows)
        read["in_place"] = True
        if logs.hash:
            # the hash was taken under the roles on the card, before the caller added any
            evidence = cls.from_frame(logs.frame, logs.roles, logs.provenance, **read)
            logs.check_hash(evidence.hash)
            if roles == logs.roles:
                return evidence
        return cls.from_frame(logs.frame, roles, logs.provenance, **read)

    def save(self, directory: str | Path) -> None:
        """Write the evidence into a directory that `from_logs` reads again.

        It appears whole or not at all, and replaces evidence that is there already.

        Raises
        ------
        InputError
            If the directory has other files in it, or cannot be written.
        """
        from groundfault.readers.importing import write_directory

        frame = self.frame.drop(list_parts(self.frame))
        write_directory(directory, frame, self.roles, self.account, self.hash, self.log_rows)

    @classmethod
    def from_frame(
        cls,
        frame: pl.DataFrame,
        roles: Roles,
        provenance: tuple[str, ...] = (),
        *,
        account: Account | None = None,
        reading: dict[str, Any] | None = None,
        log_rows: LogRows | None = None,
        in_place: bool = False,
        parts: bool = True,
    ) -> Evidence:
        """Check a table and make evidence from it; ``parts`` adds columns from dates and lists."""
        frame = frame if in_place else frame.clone()
        roles, loss, status = read_rows(frame, roles, [*provenance, "the table"][0])
        if parts:
            add_parts(frame, roles)
        return cls(frame, roles, loss, status, provenance, account, reading, log_rows=log_rows)

    def __len__(self) -> int:
        return self.frame.height

    def __repr__(self) -> str:
        unit, rate = self.roles.unit, self.loss.mean()
        parts = [f"{self.unit_count:,} {unit}s", f"{len(self):,} rows"]
        parts += [f"{len(self.models):,} models"] if len(self.models) > 1 else []
        parts.append(f"failure rate {rate:.0%}" if isinstance(rate, float) else "none scored")
        return f"<Evidence: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        html: str = load_object("groundfault.render.preview_pages:show_evidence")(self)
        return html

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Return names of the models, sorted; one empty name where there is no model column."""
        if self.fixed_models is not None:
            return self.fixed_models
        if self.roles.model is None:
            return ("",)
        return tuple(str(name) for name in self.frame[self.roles.model].unique().sort())

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Return columns that describe examples: the same in all rows of each."""
        if self.fixed_attributes is not None:
            return self.fixed_attributes
        names = self._free_columns
        if self.frame.height == self.frame[self.roles.id or ""].n_unique():
            return tuple(names)
        # a column that differs between models or repeats of one example describes answers
        ranges = self.frame.group_by(self.roles.id).agg(pl.col(names).n_unique())
        return tuple(c for c in names if ranges[c].max() == 1)

    @cached_property
    def _free_columns(self) -> list[str]:
        others = {*self.roles.columns, *self.roles.apart, *list_conversations(self.frame)}
        return [c for c in self.frame.columns if c not in others]

    @property
    def differing(self) -> tuple[str, ...]:
        """Return columns without a role that differ between the answers to one example."""
        return tuple(c for c in self._free_columns if c not in self.attributes)

    @cached_property
    def transcripts(self) -> pl.DataFrame:
        """Return the steps of all runs of agents: `groundfault.transcripts.steps.read_steps`."""
        from groundfault.transcripts.steps import read_steps

        return read_steps(self.frame, self.roles, self.account)

    @cached_property
    def _units(self) -> pl.Series:
        if self.clusters is not None:
            return self.clusters
        return self.frame[self.roles.group or self.roles.id or ""].cast(pl.String)

    @cached_property
    def unit_names(self) -> pl.Series:
        """Return names of the units (groups, else examples), as text and in its order."""
        # by name: a random split then depends on names and the seed, not on the order of rows
        are_sorted = self._units.is_sorted() and self.unit_count == len(self)
        return self._units if are_sorted else self._units.unique().sort()

    @cached_property
    def unit_index(self) -> Places:
        """Return the unit of each row: whole numbers from 0, in the order of `unit_names`."""
        if self._units.is_sorted():
            # the common case, without ranking a million names
            return self._units.rle_id().to_numpy().astype(np.intp)
        return (self._units.rank("dense").to_numpy() - 1).astype(np.intp)

    @cached_property
    def unit_count(self) -> int:
        """Return the number of independent units."""
        return int(self.unit_index.max(initial=-1)) + 1

    @cached_property
    def first_rows(self) -> Places:
        """Return the place of each unit's first row."""
        return np.unique(self.unit_index, return_index=True)[1]

    def take_first(self, table: pl.DataFrame) -> pl.DataFrame:
        """Return each unit's first row of a table that has the rows of this evidence."""
        # a copy takes .3 s for a million rows; polars takes no rows of no columns
        is_whole = not table.width or bool((np.diff(self.unit_index) == 1).all())
        return table if is_whole else table[self.first_rows]

    def without_clusters(self) -> Evidence:
        """Return the same rows, each example a unit of its own."""
        return replace(self, clusters=None)

    @cached_property
    def status_counts(self) -> dict[str, int]:
        """Return rows of each status."""
        counts = dict(self.status.value_counts().iter_rows())
        return {str(status): int(counts.get(str(status), 0)) for status in Status}

    @cached_property
    def counted_as_failed(self) -> dict[str, int]:
        """Return rows of each status that counts as a failure because the caller asked for it."""
        return count_failed_statuses(self.frame, self.roles)

    @cached_property
    def hash(self) -> str:
        """Return SHA-256 of the content; the order of rows and columns does not matter."""
        others = {*self.roles.ignore, *list_parts(self.frame)}
        columns = [c for c in sorted(self.frame.columns) if c not in others]
        return self._digest(self.loss, columns)

    @cached_property
    def outcome_hash(self) -> str:
        """Return SHA-256 of keys and outcomes alone; further attributes do not change it."""
        return self._digest(self.table_loss, [])

    @property
    def table_loss(self) -> pl.Series:
        """Return the losses of the table, by which a ledger knows the outcomes."""
        return self.loss if self.raw_loss is None else self.raw_loss

    def _digest(self, loss: pl.Series, columns: Sequence[str]) -> str:
        digest = hashlib.sha256()
        key = [c for c in (self.roles.id, self.roles.model, self.roles.repeat) if c]
        # names of columns are part of the content, so that two swapped columns differ
        for name, series in [
            *((f"key {i}", self.frame[c].cast(pl.String)) for i, c in enumerate(key)),
            ("loss", loss),
            ("status", self.status),
            *((f"column {c}", self.frame[c]) for c in columns),
        ]:
            feed(digest, name, series)
        return digest.hexdigest()

    def take(self, rows: Bools) -> Evidence:
        """Return the rows where a mask is true, as evidence of the same roles.

        Parameters
        ----------
        rows : bool array, shape (len(self),)
        """
        mask = pl.Series(rows)
        # a column that varies within examples may be constant in a part by chance: the whole table
        # decides which columns describe an example
        return replace(
            self,
            frame=self.frame.filter(mask),
            loss=self.loss.filter(mask),
            status=self.status.filter(mask),
            fixed_attributes=self.attributes,
            fixed_models=self.models,
            clusters=None if self.clusters is None else self.clusters.filter(mask),
            log_rows=None,
            raw_loss=None if self.raw_loss is None else self.raw_loss.filter(mask),
        )

    def where(self, rule: str) -> Evidence:
        """Return only the rows on which a rule is true; rows on which it is NULL are left out.

        Parameters
        ----------
        rule : str
            A SQL expression over columns, such as ``"task = 'addition' AND digits >= 2"``.

        Raises
        ------
        RuleError
            If the rule is malformed, not true or false, or reads the outcome or its consequences.
        InputError
            If a column is missing, or no row is left.

        Examples
        --------
        >>> table = pl.DataFrame({"lang": ["de", "de", "en"], "error": [1, 0, 0]})
        >>> len(Evidence.from_table(table, outcome="error").where("lang = 'de'"))
        2
        """
        parsed = Rule.parse(rule)
        self.roles.require_selectable(parsed.columns, self.frame.columns)
        mask = parsed.holds(self.frame).to_numpy()
        if not mask.any():
            raise InputError(f"no row is left where {parsed.sql}")
        whole = parsed.sql if self.selection is None else f"({self.selection}) AND ({parsed.sql})"
        # models without a row are gone; the whole table decides which columns describe examples
        return replace(self.take(mask), fixed_models=None, selection=whole)

    def select_model(self, *names: str) -> Evidence:
        """Return only the rows of the named models.

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
        # a column that varied between models may be constant within the examples of fewer
        return replace(self.take(rows), fixed_attributes=None, fixed_models=None)

    def with_roles(self, roles: Roles) -> Evidence:
        """Return the same rows under other roles, which may change the attributes of examples."""
        return replace(self, roles=roles, fixed_attributes=None, fixed_models=None)

    def without(self, columns: Iterable[str]) -> Evidence:
        """Return the same rows for finders that must not use some columns."""
        if not (omit := set(columns)):
            return self
        instrument = tuple(c for c in self.roles.instrument if c not in omit)
        attributes = tuple(c for c in self.attributes if c not in omit)
        roles = replace(self.roles, instrument=instrument)
        return replace(self, roles=roles, fixed_attributes=attributes)

    def without_outcomes(self) -> Evidence:
        """Return the same rows without their outcomes, for finders that must not see them."""
        loss = pl.repeat(None, len(self), dtype=pl.Float64, eager=True).alias("loss")
        # dropped, not blanked: a finder that reads it by mistake fails, instead of finding no rule
        frame, names = self.frame.drop(self.roles.outcome), self.attributes
        return replace(self, frame=frame, loss=loss, raw_loss=None, fixed_attributes=names)

    def with_unscored_as(self, loss: float) -> Evidence:
        """Return the same evidence if every unscored observation had the loss ``loss``."""
        status = pl.repeat(str(Status.SCORED), len(self), eager=True).alias("status")
        losses, names = self.loss.fill_null(loss), self.attributes
        return replace(self, loss=losses, status=status, fixed_attributes=names)


def feed(digest: Any, name: str, series: pl.Series) -> None:
    """Add a column to a digest, equal on every machine: integers as int64, floats as float64, all
    else as text."""
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
    # name, type and length in front: no two tables give the same bytes
    kind = "text" if series.dtype == pl.String else str(series.dtype)
    digest.update(f"{name}\0{kind}\0{len(series)}\0".encode())
    # in parts, which bounds memory; bytes of the parts are the bytes of the whole
    for start in range(0, len(series), 1 << 18):
        part = series.slice(start, 1 << 18)
        if part.dtype == pl.String:
            # lengths first, so that ["ab", "c"] and ["a", "bc"] differ, and NULL (-1) from ""
            lengths = part.str.len_bytes().cast(pl.Int64).fill_null(-1)
            digest.update(np.ascontiguousarray(lengths.to_numpy()))
            digest.update((part.str.join("").item() or "").encode())
        elif part.null_count():
            # the mask of missing values, as they are stored as 0 below
            digest.update(np.packbits(part.is_null().to_numpy()))
            digest.update(np.ascontiguousarray(part.fill_null(0).to_numpy()))
        else:
            digest.update(bytes((len(part) + 7) // 8))
            digest.update(np.ascontiguousarray(part.to_numpy()))
