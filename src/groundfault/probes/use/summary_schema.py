"""The form of the JSON of ``groundfault probe report`` and of a package's ``tables.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from groundfault.base.reading import MAX_ROWS, read_bytes
from groundfault.errors import InputError, first_line
from groundfault.probes.review.reviewed_runs import MissedErrors
from groundfault.probes.use.comparison import Difference, Duel, Rate
from groundfault.probes.use.effects import ComponentEffect
from groundfault.probes.use.endpoints import RowCounts

SCHEMA_VERSION: Literal[1] = 1
"""Rises when a field goes away or changes its meaning; `_load` converts older versions then."""


# kw_only is not inherited by the fields of a subclass, so each class repeats it
class _Section(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file: frozen, and an unknown field is an error."""


class KeyLists(_Section, frozen=True, kw_only=True):
    """Prompt keys by kind, and the tasks of the confirmed ones; each list sorted."""

    asked: tuple[str, ...]
    mismatched: tuple[str, ...]
    confirmed: tuple[str, ...]
    open: tuple[str, ...]
    tasks: tuple[str, ...]


class PoolRecord(_Section, frozen=True, kw_only=True):
    """The endpoints of a policy over the seeds of one model, or over all models.

    Attributes
    ----------
    model : str or None
        None for all models.
    audited_yield : float
        Confirmed rows over the budget.
    best : float or None
        Mean over runs of the best failure score.
    first : int or None
        Median query of the first audited failure; None where it is beyond the budget.
    """

    model: str | None
    policy: str
    budget: int
    audited_yield: float
    best: float | None
    first: int | None
    runs: int
    runs_with_a_failure: int
    unique_audited_keys: int
    tasks: int
    rows: RowCounts
    keys: KeyLists


class RunRecord(_Section, frozen=True, kw_only=True):
    """The endpoints of one model, policy and seed.

    Attributes
    ----------
    curve : tuple of int
        Unique audited keys after each query.
    """

    model: str
    policy: str
    seed: int
    budget: int
    first: int | None
    best: float | None
    audited_yield: float
    unique_audited_keys: int
    rows: RowCounts
    keys: KeyLists
    curve: tuple[int, ...]


class SharedKeysRecord(_Section, frozen=True, kw_only=True):
    """The audited keys of two policies: of both, of the first alone, of the second alone."""

    model: str | None
    policies: tuple[str, str]
    both: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]


class ReviewCounts(_Section, frozen=True, kw_only=True):
    """How items were settled; empty where no decision was made.

    Attributes
    ----------
    items : dict of str to int
        Reviewed items by how they were resolved.
    after_unblinding : int
        Items that rest on decisions made after unblinding.
    controls : MissedErrors
        The estimate, from hidden controls, of errors among the matches.
    """

    # unset and not null: version 1 writes {} where there is no review
    items: dict[str, int] | UnsetType = UNSET
    after_unblinding: int | UnsetType = UNSET
    controls: MissedErrors | UnsetType = UNSET


class ProbeTables(_Section, frozen=True, kw_only=True):
    """All numbers of reviewed runs: the ``tables.json`` of a release package."""

    schema_version: Literal[1] = SCHEMA_VERSION
    control: str
    pools: tuple[PoolRecord, ...]
    runs: tuple[RunRecord, ...]
    shared_keys: tuple[SharedKeysRecord, ...]
    differences: tuple[Difference, ...]
    best_scores: tuple[Duel, ...]
    rates: tuple[Rate, ...]
    effects: tuple[ComponentEffect, ...]

    @classmethod
    def load(cls, path: str | Path) -> ProbeTables:
        """Read a file that this version or an older one wrote.

        Raises
        ------
        InputError
            If it cannot be read, has another form, or was written by a newer version.
        """
        return _load(Path(path), cls)


class ProbeSummary(_Section, frozen=True, kw_only=True):
    """What ``groundfault probe report --json`` writes: sentences, review and all numbers.

    Attributes
    ----------
    open, conclusions : tuple of str
        Sentences: what is not settled yet, and what the results support.
    """

    open: tuple[str, ...]
    conclusions: tuple[str, ...]
    review: ReviewCounts
    schema_version: Literal[1] = SCHEMA_VERSION
    control: str
    pools: tuple[PoolRecord, ...]
    runs: tuple[RunRecord, ...]
    shared_keys: tuple[SharedKeysRecord, ...]
    differences: tuple[Difference, ...]
    best_scores: tuple[Duel, ...]
    rates: tuple[Rate, ...]
    effects: tuple[ComponentEffect, ...]

    @classmethod
    def of(
        cls,
        tables: ProbeTables,
        *,
        open: tuple[str, ...] = (),
        conclusions: tuple[str, ...] = (),
        review: ReviewCounts | None = None,
    ) -> ProbeSummary:
        """Tables with sentences and the review."""
        numbers = {name: getattr(tables, name) for name in ProbeTables.__struct_fields__}
        return cls(open=open, conclusions=conclusions, review=review or ReviewCounts(), **numbers)

    @classmethod
    def load(cls, path: str | Path) -> ProbeSummary:
        """Read a file that this version or an older one wrote.

        Raises
        ------
        InputError
            If it cannot be read, has another form, or was written by a newer version.
        """
        return _load(Path(path), cls)

    def to_json(self) -> str:
        """The text of the file; `load` reads it back."""
        data = msgspec.to_builtins(self)
        return json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)


Form = TypeVar("Form", ProbeTables, ProbeSummary)


def _load(path: Path, form: type[Form]) -> Form:
    try:
        data = msgspec.json.decode(read_bytes(path, MAX_ROWS))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON: {first_line(error)}") from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InputError(
            f"{path} has the form of version {version}, and this groundfault reads versions up to "
            f"{SCHEMA_VERSION}; read it with a newer groundfault"
        )
    try:
        return msgspec.convert(data, form)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{path} is no JSON of groundfault probe report: {first_line(error)}"
        ) from None
