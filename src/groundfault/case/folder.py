"""The folder of a case: its decisions, the rows, the ledger and the audit's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from groundfault.auditing.preparation import join_copies
from groundfault.auditing.report import Report
from groundfault.base.arrays import Bools
from groundfault.base.ledger import Ledger
from groundfault.case.parts import mark_units, select_answers
from groundfault.case.settings import CASE, CHOICE, CaseSettings, ModeChoice
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError, LedgerError, PlanError

LEDGER, AUDIT = "ledger.db", "audit"
SEALED = "case_sealed"
"""Kind of the event that records what a case decided before anything was looked at."""


class CaseFolder:
    """The stored parts of a case, which its steps read.

    Parameters
    ----------
    folder : path
        Of the case.

    Raises
    ------
    InputError
        If there is no case in it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        settings = CaseSettings.find(self.folder)
        if settings is None:
            raise InputError(
                f"{folder} is no case: it has no {CASE}; begin one with groundfault case new"
            )
        self.settings = settings

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of the case, which has every decision made before a look.

        Raises
        ------
        LedgerError
            If it is of other settings, or was lost after modes were chosen.
        """
        place, seal = self.folder / LEDGER, self.settings.seal
        book = Ledger(place)
        seals = {e.body.get("case") for e in book.events(SEALED)} if place.exists() else set()
        if seals != {seal}:
            # begun anew it would say that nothing was labelled yet
            if seals or ModeChoice.find(self.folder) is not None:
                raise LedgerError(
                    f"{place} is missing, or belongs to another case.json: put both back as they "
                    "were; they hold the labels"
                )
            book.append(SEALED, {"case": seal})
        return book

    @property
    def choice(self) -> ModeChoice | None:
        """Return the modes that were chosen to be confirmed; None before that.

        Raises
        ------
        InputError
            If they are not modes of the audit.
        """
        choice = ModeChoice.find(self.folder)
        if choice is None:
            return None
        report = self.report
        rules = dict(enumerate((mode.rule for mode in report.modes) if report else (), 1))
        if not choice.modes or choice.rules != tuple(map(rules.get, choice.modes)):
            raise InputError(
                f"{self.folder / CHOICE} names rules that are not modes of the audit: put both "
                "back as they were"
            )
        return choice

    @cached_property
    def audit_evidence(self) -> Evidence:
        """Return the rows that the audit looks at."""
        return self._read("audit", self.settings.audit)

    @cached_property
    def fresh_evidence(self) -> Evidence:
        """Return the rows that can be labelled, without their outcomes."""
        return self._read("fresh", self.settings.fresh)

    def read_part(self, name: str) -> Evidence:
        """Return the rows in evidence/ of this name, as they are now: audit, fresh or answers."""
        return Evidence.from_logs(self.folder / "evidence" / name)

    def _read(self, name: str, digest: str) -> Evidence:
        evidence = self.read_part(name)
        if evidence.hash != digest:
            raise InputError(
                f"the rows in {self.folder / 'evidence' / name} are not those that the case was "
                "begun with"
            )
        # reports then name no place outside the folder
        return replace(evidence, provenance=(f"evidence/{name}",))

    def select_fresh(self, outcome: str) -> Evidence:
        """Return the fresh answers that modes of an outcome are about; copies of an example
        joined.
        """
        return join_copies(select_answers(self.fresh_evidence, outcome, self.settings.seed))

    def mark_fresh_units(self, numbers: Sequence[int]) -> Bools:
        """Return which fresh units modes of one outcome, by number, hold for: (modes, units)."""
        assert self.report is not None
        modes = [self.report.modes[number - 1] for number in numbers]
        (outcome,) = {mode.outcome for mode in modes}
        return mark_units(self.select_fresh(outcome), modes)

    @property
    def report(self) -> Report | None:
        """Return the audit's report; None before the audit."""
        place = self.folder / AUDIT
        return Report.load(place) if (place / "report.json").is_file() else None

    def check_modes(self, numbers: Sequence[int] | None) -> tuple[int, ...]:
        """Return numbers of modes of the audit, each once; all where None.

        Raises
        ------
        PlanError
            If there was no audit, it found no mode, or a number names no mode.
        """
        report = self.report
        if report is None:
            raise PlanError("the audit comes first: groundfault audit --case DIR")
        count = len(report.modes)
        if not count:
            raise PlanError("the audit found no failure mode, so the case ends here")
        numbers = tuple(range(1, count + 1) if numbers is None else numbers)
        unknown = [number for number in numbers if not 1 <= number <= count]
        if unknown or not numbers or len(set(numbers)) < len(numbers):
            raise PlanError(
                f"name each mode once, by a number from 1 to {count}, not "
                f"{', '.join(map(str, numbers)) or 'none'}"
            )
        return numbers
