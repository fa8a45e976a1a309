"""Results stored as JSON with a version of the layout, and the result of a confirmation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec

from groundfault.auditing.report_schema import PlanSettings, to_plain
from groundfault.base.files import save_text
from groundfault.base.reading import read_json_object
from groundfault.base.registry import load_object
from groundfault.errors import InputError


class StoredResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stored result; unknown fields are refused.

    A result that says more than is checked would be trusted. A change that a reader of the old
    layout would misread raises the version, and `from_dict` brings earlier ones up to date.

    Attributes
    ----------
    KEY : str
        The key of the version in the JSON.
    LAYOUT : int
        Version of the layout that is written. Without a version, 1 is read.
    NOUN, TITLE : str
        Its name in messages: in two words, and in full.
    """

    KEY: ClassVar[str]
    LAYOUT: ClassVar[int]
    NOUN: ClassVar[str]
    TITLE: ClassVar[str]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a result that `to_json` wrote, in this version or an earlier one.

        Raises
        ------
        InputError
            If it cannot be read, is another result, or of a later version.
        """
        return cls.from_dict(read_json_object(path), str(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, object], source: str = "this") -> Self:
        """Make a result from its JSON; ``source`` names it in messages.

        Raises
        ------
        InputError
            If it is another result, or of a later version.
        """
        version = data.get(cls.KEY, 1) if isinstance(data, Mapping) else None
        if isinstance(version, int) and version > cls.LAYOUT:
            raise InputError(
                f"{source} is {cls.NOUN} of layout {version}, and this version of groundfault "
                f"reads up to {cls.LAYOUT}: install a newer one"
            )
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise InputError(f"{source} is not {cls.TITLE} ({error})") from None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain words and numbers."""
        return to_plain(self)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON; also write it to ``path``, whole or not at all."""
        return save_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the result as one self-contained HTML page; also write it to ``path``."""
        return save_text(load_object("groundfault.render:to_html")(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the result as Markdown; also write it to ``path``."""
        return save_text(load_object("groundfault.render:to_markdown")(self), path)


class SurvivorState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of one survivor of the screen.

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

    @classmethod
    def describe(cls, e_value: float, labels: int, bar: float, *, confirmed: bool) -> str:
        """Return the sentence of an e-value, which needs ``bar`` to confirm."""
        weak = "; the lift is below the plan's smallest" if e_value >= bar and not confirmed else ""
        return f"e-value {e_value:.3g} of {bar:g} after {labels} labels{weak}"


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
        The ledger's state of the holdout; None without a ledger, or if it was never opened.
    corrections : int, optional
        How many labels were taken back, in each test that they served; left out if none was.
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
