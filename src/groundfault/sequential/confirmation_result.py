"""What a sequential confirmation ends in, field by field, as its JSON Schema publishes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from groundfault.auditing.report_schema import PlanSettings
from groundfault.base.deprecation import rename_members
from groundfault.base.files import save_text
from groundfault.base.reading import read_json_object
from groundfault.base.registry import load_object
from groundfault.errors import InputError

VERSION = 1
"""Version of the layout. Version 0.1.0 of groundfault stored none, which is read as 1. The rule is
that of certificates: a later version is refused, an earlier one brought up to date."""


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
class Confirmation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    """

    version: int = msgspec.field(name="groundfault_confirmation", default=VERSION)
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

    @classmethod
    def load(cls, path: str | Path) -> Confirmation:
        """Read a result that `to_json` or ``groundfault sequential confirm --json`` wrote.

        Raises
        ------
        InputError
            If it cannot be read, is no such result, or of a later version.
        """
        return cls.from_dict(read_json_object(path), str(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str = "this") -> Confirmation:
        """A result from what its JSON holds; ``source`` names it in messages.

        Raises
        ------
        InputError
            If it is not one, or of a later version.
        """
        # 0.1.0 wrote no version
        version = data.get("groundfault_confirmation", 1)
        if isinstance(version, int) and version > VERSION:
            raise InputError(
                f"{source} is a confirmation of layout {version}, and this version of groundfault "
                f"reads up to {VERSION}: install a newer one"
            )
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise InputError(
                f"{source} is not the result of a sequential confirmation ({error})"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain words and numbers."""
        content: dict[str, Any] = json.loads(msgspec.json.encode(self))
        return content

    def to_json(self, path: str | Path | None = None) -> str:
        """The result as JSON; also written to ``path``, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        return save_text(text, path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The result as one self-contained HTML page; also written to ``path``."""
        return save_text(load_object("groundfault.render:to_html")(self), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The result as Markdown; also written to ``path``."""
        return save_text(load_object("groundfault.render:to_markdown")(self), path)
