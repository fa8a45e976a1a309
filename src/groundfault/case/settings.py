"""Decisions of a case as its files hold them, each made before the data that could sway it."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Final, Literal, Self

import msgspec

from groundfault.auditing.report_schema import to_plain
from groundfault.core.plan import Plan, to_fraction
from groundfault.sequential.stored_result import StoredResult

CASE, CHOICE, PROBE_CHOICE = "case.json", "confirm.json", "probe.json"
VERSION: Final = 1

Freshness = Literal["kept apart", "without an outcome"]
Step = Literal["audit", "confirm", "probe", "review"]
SHARES: Final[dict[Step, Fraction]] = {
    "audit": Fraction(2, 5),
    "confirm": Fraction(2, 5),
    "probe": Fraction(1, 10),
    "review": Fraction(1, 10),
}
"""Each step's share of the level of the case. They are fixed: who chose them later could choose by
what was seen. Probes and reviews get little, since their tests are of many answers to each task."""


class _CaseFile(StoredResult, frozen=True, kw_only=True):
    """Something that was decided for good, in a file of its own."""

    KEY = "groundfault_case"
    LAYOUT = VERSION
    NOUN = TITLE = "part of a case"
    FILE: ClassVar[str]

    @classmethod
    def find(cls, folder: Path) -> Self | None:
        """Read the decision from the folder of a case; None if it was not made yet.

        Raises
        ------
        InputError
            If it is something else, or of a later version.
        """
        path = folder / cls.FILE
        return cls.load(path) if path.is_file() else None

    def write(self, folder: Path) -> None:
        """Write it into the folder of a case."""
        self.to_json(folder / self.FILE)


class CaseSettings(_CaseFile, frozen=True, kw_only=True):
    """Everything that is decided when a case begins.

    Attributes
    ----------
    version : int
        Of the layout of the folder; stored as ``groundfault_case``.
    sources : tuple of str
        Names of the files that the rows were read from, without folders.
    alpha : str
        Error level of the whole case, which its steps share by `SHARES`.
    seed : int
    freshness : {"kept apart", "without an outcome"}
        Why the audit cannot have looked at the outcomes of the fresh rows.
    keep : str, optional
        Share of the units that was kept apart.
    grader : str, optional
        Column of cheap grades.
    audit, fresh : str
        SHA-256 of the rows of either part.
    answers : str, optional
        SHA-256 of the fresh rows with their outcomes, where the table had them.
    audit_units, fresh_units : int
    fresh_answers : int
        Number of rows that can be labelled: answers of all models to fresh units.
    models : tuple of str
        Where there are several.
    """

    FILE = CASE

    version: int = msgspec.field(name="groundfault_case", default=VERSION)
    sources: tuple[str, ...]
    alpha: str
    seed: int
    freshness: Freshness
    keep: str | None
    grader: str | None
    audit: str
    fresh: str
    answers: str | None
    audit_units: int
    fresh_units: int
    fresh_answers: int
    models: tuple[str, ...] = ()

    @property
    def seal(self) -> str:
        """Return the SHA-256 of the whole decision."""
        return hashlib.sha256(json.dumps(to_plain(self), sort_keys=True).encode()).hexdigest()

    def share_alpha(self, step: Step) -> str:
        """Return the error level of a step, as an exact fraction."""
        return str(to_fraction(self.alpha) * SHARES[step])

    @property
    def audit_plan(self) -> Plan:
        """Return the plan of the audit."""
        return Plan(alpha=self.share_alpha("audit"), seed=self.seed)

    @property
    def confirmation_plan(self) -> Plan:
        """Return the plan of the confirmation: every chosen mode is tested, of any size."""
        alpha = self.share_alpha("confirm")
        return Plan(alpha=alpha, seed=self.seed, judge="split-holm", min_lift=0)


class ModeChoice(_CaseFile, frozen=True, kw_only=True):
    """Which modes are confirmed, as confirm.json holds it from before the first label.

    Attributes
    ----------
    modes : tuple of int
        Their numbers in the audit's report, from 1.
    rules : tuple of str
    budget : int, optional
        The largest number of labels to buy.
    """

    FILE = CHOICE

    modes: tuple[int, ...]
    rules: tuple[str, ...]
    budget: int | None


class ProbeChoice(_CaseFile, frozen=True, kw_only=True):
    """Prompts in other wordings, as probe.json and the ledger hold them before any question.

    Attributes
    ----------
    modes : tuple of int
        Their numbers in the audit's report, from 1.
    pairs : int
        The largest number of pairs of tasks for each mode.
    question, target : str
        Columns with what was asked and what was expected.
    bank, grammar : str
        SHA-256 of the tasks, and of the wordings.
    """

    FILE = PROBE_CHOICE

    modes: tuple[int, ...]
    pairs: int
    question: str
    target: str
    bank: str
    grammar: str


def name_mode(number: int) -> str:
    """Return the name of a mode as a candidate."""
    return f"mode {number}"
