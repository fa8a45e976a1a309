"""What a sequential confirmation ends in, field by field, as its JSON Schema publishes it."""

from __future__ import annotations

import msgspec

from groundfault.auditing.report_schema import PlanSettings
from groundfault.base.deprecation import rename_members
from groundfault.sequential.stored_result import StoredResult


class SurvivorState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where one survivor of the screen stands.

    Attributes
    ----------
    name : str
    direction : int
        1 where the slice failed more on discovery, -1 where less.
    e_value : float
        Largest so far, after e-Holm; the null falls at 1 / alpha.
    lift : float, optional
        Mean loss on minus off the slice among labelled units that were drawn from all of their
        side, or by labels and grades; None where a side has none.
    on, off : int
        Labelled units on each side.
    confirmed : bool
    reason : str
    """

    name: str
    direction: int
    e_value: float
    lift: float | None
    on: int
    off: int
    confirmed: bool
    reason: str


@rename_members(limit="budget")
class Confirmation(StoredResult, frozen=True, kw_only=True):
    """The result of a `SequentialConfirmation`, as it stands.

    Attributes
    ----------
    version : int
        Of the layout; stored as ``groundfault_confirmation``.
    seal : str
        SHA-256 of plan, candidates, survivors, split, evidence and budget.
    plan : PlanSettings
    library : str
        SHA-256 of the candidates.
    budget : int, optional
        The largest number of labels allowed; stored as ``limit``.
    grader : str, optional
        The column of grades that the tests made use of.
    held_out, labelled : int
        Units in the holdout, and those labelled.
    survivors : tuple of SurvivorState
    confirmed : tuple of str
        Names of the survivors that are confirmed.
    opening : str, optional
        What the ledger knows of the holdout; None where there is no ledger, or nothing was opened.
    corrections : int, optional
        How many labels were taken back, in each test that they served; left out where none was.
    """

    KEY = "groundfault_confirmation"
    # version 0.1.0 of groundfault stored none
    LAYOUT = 1
    NOUN = "a confirmation"
    TITLE = "the result of a sequential confirmation"

    version: int = msgspec.field(name="groundfault_confirmation", default=1)
    seal: str
    plan: PlanSettings
    library: str
    budget: int | None = msgspec.field(name="limit")
    grader: str | None = None
    held_out: int
    labelled: int
    survivors: tuple[SurvivorState, ...]
    confirmed: tuple[str, ...]
    opening: str | None
    corrections: int | msgspec.UnsetType = msgspec.UNSET
