"""Matrix: which models passed which examples, with repeats as counts and holes as holes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.columns import Kind, list_examples as attributes_of, profile
from groundfault.core.evidence import Evidence
from groundfault.core.status import Status
from groundfault.errors import InputError, PlanError, require_word

Imputation = Literal["column_mean", "row_mean", "half", "zero", "none"]

# two models give four patterns of answers at most, which leaves nothing to cluster
FEWEST_MODELS = 3

SLACK = 1e-9  # a score of 1 - 0.3 reaches 0.7


@dataclass(frozen=True)
class Exclusions:
    """Examples that are in no cluster, by name and reason.

    They are strata of their own rather than rows of zeros or ones.

    Attributes
    ----------
    all_failed, all_passed : tuple of str
        Every model that answered failed, or passed.
    unanswered : tuple of str
        No model was scored on them.
    easy : tuple of str
        Passed by every model of the frontier filter.
    constant_models : tuple of str
        Models that passed, or failed, every example kept: they distinguish no two examples.
    """

    all_failed: tuple[str, ...] = ()
    all_passed: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    easy: tuple[str, ...] = ()
    constant_models: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Matrix:
    """Examples in rows, models in columns, both in the order of their names.

    Attributes
    ----------
    examples, models : tuple of str
    passed, trials : int64 arrays, shape (n, m)
        Passes and scored tries; a hole has no tries.
    rate : float
        Share of its tries that a model has to pass for the cell to be a pass.
    attributes : polars.DataFrame
        What describes the examples, one row each in their order.
    apart : Exclusions
        What was taken out.
    semantic : float64 array, shape (n, q), optional
        What the examples say, as vectors of unit length.
    """

    examples: tuple[str, ...]
    models: tuple[str, ...]
    passed: Ints
    trials: Ints
    rate: float = 0.5
    attributes: pl.DataFrame = field(default_factory=pl.DataFrame)
    apart: Exclusions = field(default_factory=Exclusions)
    semantic: Floats | None = None

    @classmethod
    def of(cls, evidence: Evidence, *, score: float = 0.7, rate: float = 0.5) -> Matrix:
        """Read the matrix off evidence.

        Parameters
        ----------
        evidence : Evidence
            With an id and a model column. Refused, unparsed and otherwise unscored tries are not
            counted.
        score : float
            A try is a pass from this score on; the score is one minus the loss. Of 0/1 outcomes it
            changes nothing.
        rate : float
            A model passes an example from this share of its tries on.

        Raises
        ------
        InputError
            If there are fewer than three models, nothing was scored, or no example for two models.
        PlanError
            If a threshold is not in (0, 1].
        """
        check_thresholds(score, rate)
        roles = evidence.roles
        if roles.model is None or len(evidence.models) < FEWEST_MODELS:
            count = 0 if roles.model is None else len(evidence.models)
            raise InputError(
                f"a taxonomy compares how models fail and needs at least {FEWEST_MODELS} of them, "
                f"not {count or 1}; name the column that tells them apart (model=, or "
                "--model-column)"
            )
        id_column = roles.id or ""
        # sorted names: the order of the rows of the evidence must not change a result
        names, rows = _index(evidence.frame[id_column])
        models, columns = _index(evidence.frame[roles.model])
        is_scored = (evidence.status == Status.SCORED).to_numpy()
        if not is_scored.any():
            raise InputError(
                f"none of the {len(evidence)} rows was scored, so there is nothing to compare"
            )
        passes = 1.0 - evidence.loss.fill_null(1.0).to_numpy() >= score - SLACK
        trials, pass_counts = np.zeros((2, len(names), len(models)), dtype=np.int64)
        # add.at and not +=, which counts a repeated cell once
        np.add.at(trials, (rows[is_scored], columns[is_scored]), 1)
        np.add.at(pass_counts, (rows[is_scored], columns[is_scored]), passes[is_scored])
        # ids that contain the model's name make every row an example of its own
        if ((trials > 0).sum(axis=1) < 2).all():
            raise InputError(
                "no example was scored for two models, so there is nothing to compare; ids look "
                f"like {names[0]!r}: name the column that is the same for every model (id=, or "
                "--id)"
            )
        return cls(names, models, pass_counts, trials, rate, attributes_of(evidence))

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def values(self) -> Floats:
        """Return 1 for a pass, 0 for a fail, NaN in holes: shape (n, m)."""
        # a cell is a pass by majority of its tries (at rate 0.5); NaN marks holes
        passes = self.passed >= self.rate * self.trials - SLACK
        return np.where(self.trials > 0, passes, np.nan)

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the row of each example, by name."""
        return {name: row for row, name in enumerate(self.examples)}

    def find_rows(self, evidence: Evidence) -> Places:
        """Return the row of each example of evidence, -1 where there is none: shape (rows,)."""
        names = evidence.frame[evidence.roles.id or ""].cast(pl.String)
        return np.array([self.places.get(name, -1) for name in names], dtype=np.intp)

    def attribute(self, name: str, part: str = "") -> pl.Series:
        """Return a column that describes the examples.

        Parameters
        ----------
        name : str
        part : str
            The parameter that names it, for the message.

        Raises
        ------
        InputError
            If it is not there.
        """
        if name not in self.attributes.columns:
            names = ", ".join(self.attributes.columns[:12]) or "none"
            hint = f" (named as {part})" if part else ""
            raise InputError(
                f"no attribute {name!r}{hint} describes the examples; there are {names}"
            )
        return self.attributes[name]

    def read_words(self, name: str) -> list[str | None]:
        """Return the values of a column that describes the examples, as words.

        Raises
        ------
        InputError
            If the column is not there, or holds something else than words and numbers.
        """
        column = self.attribute(name)
        words = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
        if not (column.dtype.is_numeric() or column.dtype in words):
            raise InputError(f"column {name!r} holds {column.dtype}, not words")
        return list(column.cast(pl.String))

    def find_text_column(self, name: str | None = None, other: Collection[str | None] = ()) -> str:
        """Find the column of texts: the one named, or the only one of prose but for ``other``.

        Raises
        ------
        InputError
            If the column is not there or holds no text, or none or several hold prose.
        """
        if name is not None:
            self.read_words(name)
            return name
        columns = [
            column.name
            for column in (profile(self.attributes) if self.attributes.width else ())
            if column.kind is Kind.TEXT and column.name not in other
        ]
        # a guess between two columns of prose could label clusters by the wrong one
        if len(columns) != 1:
            raise InputError(
                "say which column holds what an example says (text=, or --text); columns of prose: "
                f"{', '.join(columns) or 'none'}"
            )
        return columns[0]

    @property
    def holes(self) -> float:
        """Return the share of cells without a scored try."""
        return float((self.trials == 0).mean()) if self.trials.size else 0.0

    @property
    def binary(self) -> tuple[Ints, Ints]:
        """Return `passed` and `trials` with repeats reduced to one pass or fail a cell."""
        return (self.values == 1).astype(np.int64), (self.trials > 0).astype(np.int64)

    def take(self, rows: Places | Bools) -> Matrix:
        """Take some of the examples, by a mask or by their numbers in rising order."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return replace(
            self,
            examples=tuple(self.examples[i] for i in at),
            passed=self.passed[at],
            trials=self.trials[at],
            attributes=self.attributes[at] if self.attributes.width else self.attributes,
            semantic=None if self.semantic is None else self.semantic[at],
        )

    def select(self, models: Sequence[str]) -> Matrix:
        """Take some of the models.

        Raises
        ------
        InputError
            If a name is unknown.
        """
        at = self.columns_of(models)
        return replace(
            self,
            models=tuple(self.models[j] for j in at),
            passed=self.passed[:, at],
            trials=self.trials[:, at],
        )

    def without(self, *models: str) -> Matrix:
        """Take all models but these: what is known before they are met."""
        excluded = set(self.columns_of(models).tolist())
        return self.select([name for j, name in enumerate(self.models) if j not in excluded])

    def columns_of(self, models: Sequence[str]) -> Places:
        """Return the columns of models, by name and in rising order.

        Raises
        ------
        InputError
            If a name is unknown.
        """
        unknown = [name for name in models if name not in self.models]
        if unknown:
            some = ", ".join(self.models[:12]) + (", ..." if len(self.models) > 12 else "")
            raise InputError(f"no results of model {unknown[0]!r}; the models are {some}")
        names = set(models)
        return np.array([j for j, name in enumerate(self.models) if name in names], dtype=np.intp)

    def keep_failures_of(self, models: Sequence[str]) -> Matrix:
        """Keep examples that at least one of these models failed; set the others apart as easy.

        Raises
        ------
        InputError
            If a name is unknown, or no example is left.
        """
        hard = (self.values[:, self.columns_of(models)] == 0).any(axis=1)
        if not hard.any():
            raise InputError(
                f"no example was failed by any of {', '.join(models)}: nothing is left to cluster"
            )
        return replace(self.take(hard), apart=replace(self.apart, easy=self._names_of(~hard)))

    def informative(self) -> Matrix:
        """Keep the examples that some model passed and some model failed.

        The others, and constant models, are set apart.

        Raises
        ------
        InputError
            If fewer than three models, or no examples, are left.
        """
        values = self.values
        passes, fails = (values == 1).any(axis=1), (values == 0).any(axis=1)
        part = self.take(passes & fails)
        # after the examples are filtered: a model may be constant only on what is left
        varied = (part.values == 0).any(axis=0) & (part.values == 1).any(axis=0)
        apart = replace(
            self.apart,
            all_failed=self._names_of(fails & ~passes),
            all_passed=self._names_of(passes & ~fails),
            unanswered=self._names_of(~passes & ~fails),
            constant_models=tuple(
                name for name, vary in zip(self.models, varied, strict=True) if not vary
            ),
        )
        # stop with counts here, rather than let the clusterer fail on an empty matrix
        if varied.sum() < FEWEST_MODELS or not len(part):
            constant = apart.constant_models
            more = ", ..." if len(constant) > 6 else ""
            some = f" ({', '.join(constant[:6])}{more} do not)" if constant else ""
            raise InputError(
                f"{len(self)} examples and {len(self.models)} models: on {len(part)} examples some "
                f"model passes where another fails, and only {varied.sum()} models pass some and "
                f"fail some of these{some}; a taxonomy needs at least {FEWEST_MODELS} such models"
            )
        out = replace(part, apart=apart)
        return out.without(*apart.constant_models) if apart.constant_models else out

    def impute(
        self, how: Imputation = "column_mean", training: Sequence[str] | None = None
    ) -> Floats:
        """Return the values with holes filled: shape (n, m).

        Parameters
        ----------
        how : {"column_mean", "row_mean", "half", "zero", "none"}
            With the model's mean over these examples, the example's mean over the training models,
            one half, zero, or the sentinel -1 that stands for no imputation.
        training : sequence of str, optional
            Only these models' answers are read for row means; all where left out. A column mean
            reads its own column.

        Raises
        ------
        PlanError
            If the word is unknown.
        """
        require_word("imputation", how, get_args(Imputation))
        values, holes = self.values, self.trials == 0
        if how == "column_mean":
            # the model's own mean: no information passes from one model to another
            fill = np.broadcast_to(mean_known(values, 0, 0.5)[None], values.shape)
        elif how == "row_mean":
            training_values = values if training is None else values[:, self.columns_of(training)]
            fill = np.broadcast_to(mean_known(training_values, 1, 0.5)[:, None], values.shape)
        else:
            fill = np.full(values.shape, {"half": 0.5, "zero": 0.0, "none": -1.0}[how])
        return np.where(holes, fill, values)

    def describe(self, table: pl.DataFrame, id: str) -> Matrix:
        """Add attributes from a table of examples, joined by id.

        Raises
        ------
        InputError
            If the column is missing, an id repeats, or an example is not in the table.
        """
        if id not in table.columns:
            raise InputError(
                f"the table of examples has no column {id!r}; its columns are "
                f"{', '.join(table.columns)}"
            )
        table = table.with_columns(pl.col(id).cast(pl.String))
        repeats = table.filter(pl.col(id).is_duplicated())[id]
        if len(repeats):
            raise InputError(f"the table of examples has {repeats[0]!r} more than once in {id!r}")
        own = pl.DataFrame({id: list(self.examples)}, schema={id: pl.String})
        lacking = own.join(table, on=id, how="anti")[id]
        if len(lacking):
            none = ": the ids do not match" if len(lacking) == len(self) else ""
            raise InputError(
                f"the table of examples lacks {len(lacking)} of {len(self)} examples, such as "
                f"{lacking[0]!r}{none}; its {id!r} holds words such as {table[id].first()!r}"
            )
        # a left join that keeps the order of the examples
        columns = own.join(table, on=id, how="left", maintain_order="left").drop(id)
        keep = [c for c in self.attributes.columns if c not in columns.columns]
        return replace(
            self, attributes=self.attributes.select(keep).hstack(columns) if keep else columns
        )

    def _names_of(self, rows: Bools) -> tuple[str, ...]:
        return tuple(self.examples[i] for i in np.flatnonzero(rows))


def check_thresholds(score: float, rate: float) -> None:
    """Raise a `PlanError` unless both are in (0, 1]."""
    for name, value in (("score", score), ("rate", rate)):
        if not 0 < value <= 1:
            raise PlanError(f"{name} must be in (0, 1], not {value:g}")


def _index(column: pl.Series) -> tuple[tuple[str, ...], Places]:
    text = column.cast(pl.String)
    # dense ranks are positions in the sorted names
    return tuple(text.unique().sort()), (text.rank("dense").to_numpy() - 1).astype(np.intp)


def mean_known(values: Floats, axis: int, unknown: float) -> Floats:
    """Average the values that are not NaN along an axis; ``unknown`` where there is none."""
    present = ~np.isnan(values)
    count = present.sum(axis=axis)
    total = np.where(present, values, 0.0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), unknown)
