"""The form of what ``check --json`` and ``slices --json`` write: every field, typed."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from groundfault.auditing.report_schema import PlanSettings
from groundfault.base.deprecation import warn_renamed


class _Summary(Struct, frozen=True, kw_only=True):
    """A part of a preview. In 0.1.0 it was a dict, so a key in brackets still reads a field."""

    def __getitem__(self, key: str) -> Any:
        name = type(self).__name__
        warn_renamed(f"{name}[{key!r}]", f"{name}.{key}")
        if key not in self.__struct_fields__:
            raise KeyError(key)
        return getattr(self, key)


class LibrarySummary(_Summary, frozen=True, kw_only=True):
    """How many candidates there are, from where, and the hash of their rules."""

    size: int
    hash: str
    sources: dict[str, int]


class DetectableLifts(_Summary, frozen=True, kw_only=True):
    """The least lift found with this power, at each prevalence of a slice; None where none is."""

    power: float
    minimum_detectable_lift: dict[str, float | None]


class ColumnUse(_Summary, frozen=True, kw_only=True):
    """What a column is taken for.

    Attributes
    ----------
    column : str
    stage : str
        "known before the answer", "measured with it" or "follows from it".
    reason : str
        "declared", "by its name", or how well it predicts the outcome; empty where nothing speaks
        against a column that was known before.
    suspect : bool
        It predicts so much of the outcome that somebody should say whether it was known before.
    """

    column: str
    stage: str
    reason: str
    suspect: bool


class CheckSummary(_Summary, frozen=True, kw_only=True):
    """What an audit could find, candidates aside.

    Attributes
    ----------
    n, n_discovery, n_holdout : int
        Units: of the evidence, and of each part.
    discovery_error_rate : float
        Mean loss over the discovery units.
    eligible : int
        Hypotheses that can be confirmed at all.
    minimum_detectable_lift : float or None
        Least lift found with 80 % power at prevalence 30 %; None where none would be.
    statuses : dict of str to int
        Rows of each status.
    columns : tuple of ColumnUse
        What each column is taken for, in the order of the table.
    """

    schema_version: int = 1
    n: int
    n_discovery: int
    n_holdout: int
    discovery_error_rate: float
    judge: str
    plan: PlanSettings
    library: LibrarySummary
    eligible: int
    minimum_detectable_lift: float | None
    power: DetectableLifts
    statuses: dict[str, int]
    columns: tuple[ColumnUse, ...] = ()


class ProposalSummary(_Summary, frozen=True, kw_only=True):
    """What a finder searched, slices aside.

    Attributes
    ----------
    finder : str
    settings : dict
        Of the finder, those that are plain words and numbers.
    selected : bool
        Whether the finder looked at outcomes: the losses of its slices are then too large on
        average.
    n, n_discovery, n_holdout : int
        Units: of the evidence, and of each part.
    discovery_error_rate : float
        Mean loss over the discovery units.
    left_out : list of str
        Columns that were not searched because they predict the outcome almost perfectly.
    seed : int
        Of the split.
    library : str
        Hash of the proposals as candidates.
    searches : int
        Times that the search was repeated on permuted errors.
    """

    schema_version: int = 1
    finder: str
    settings: dict[str, Any]
    selected: bool
    n: int
    n_discovery: int
    n_holdout: int
    discovery_error_rate: float
    left_out: list[str]
    seed: int
    library: str
    searches: int = 0
