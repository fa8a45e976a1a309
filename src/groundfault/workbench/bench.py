"""What a workbench was opened on: a report, its ledger, and the rows that may be looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from msgspec.structs import replace

from groundfault.auditing.report import Report
from groundfault.base.ledgers import LedgerChoice, find_ledger, find_witness
from groundfault.errors import GroundfaultError
from groundfault.workbench.holdout_state import (
    HoldoutState,
    find_state,
    find_state_before,
    read_head,
)
from groundfault.workbench.row_index import RowIndex
from groundfault.workbench.rows import Rows, load_apart, load_rows

if TYPE_CHECKING:
    from pathlib import Path

    from groundfault.auditing.evidence_places import Places
    from groundfault.auditing.verification_result import Verification
    from groundfault.base.ledger import Ledger
    from groundfault.case.case import Case
    from groundfault.case.forecast import Forecast
    from groundfault.case.summary import CaseSummary
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.render.page import Page
    from groundfault.workbench.live_desk import LiveDesk
    from groundfault.workbench.review_desk import ReviewDesk
    from groundfault.workbench.spending import Spending


@dataclass
class Bench:
    """What the screens show.

    Attributes
    ----------
    place : Path
        What was opened.
    report : Report or None
        None where it is no report, such as a store of reviews.
    ledger : Ledger or None
        Where tried rules and openings are recorded; None records nothing.
    evidence : path, or sequence of path, optional
        Where the report's evidence is now, if it has moved.
    review : ReviewDesk, optional
        Where a reviewer decides.
    progress : ReviewedRuns, optional
        Probe runs: how far their review is, how far reviewers agree, and what was found.
    taxonomy : Page, optional
        What is said of a taxonomy.
    case : Case, optional
        A case: the report is its audit's, and None before the audit.
    live : LiveDesk, optional
        A sequential audit as its labels come in.
    baseline : Report, optional
        An earlier report, to see what changed since.
    apart : bool
        Whether the evidence is read in a process of its own, so that this one never holds a
        held-out outcome.
    spendings : list of Spending
        Holdouts that were opened here.
    verification : Verification, optional
        What came out when the numbers were last computed again here.
    trouble : str
        Why the rows could not be read when they were last asked for; empty where they could.
    """

    place: Path
    report: Report | None = None
    ledger: Ledger | None = None
    evidence: Places | None = None
    review: ReviewDesk | None = None
    progress: ReviewedRuns | None = None
    taxonomy: Page | None = None
    case: Case | None = None
    live: LiveDesk | None = None
    baseline: Report | None = None
    apart: bool = True
    spendings: list[Spending] = field(default_factory=list)
    verification: Verification | None = None
    trouble: str = ""
    _lock: Lock = field(default_factory=Lock, repr=False)
    _finder: RowIndex | None = field(default=None, repr=False)
    _state: HoldoutState | None = field(default=None, repr=False)
    _forecast: tuple[CaseSummary, Forecast | None] | None = field(default=None, repr=False)

    @classmethod
    def of_report(
        cls,
        place: Path,
        *,
        evidence: Places | None = None,
        ledger: LedgerChoice = True,
        baseline: str | Path | None = None,
    ) -> Bench:
        """Open the folder that ``Report.write`` wrote.

        Parameters
        ----------
        place : Path
        evidence : path, or sequence of path, optional
        ledger : Ledger, path, URL or bool, optional
            True takes the ledger of the report where it is the caller's own or lies beside the
            report, else the default place.
        baseline : path, optional
            An earlier report.

        Raises
        ------
        InputError
            If there is no report, or it cannot be read.
        """
        report = Report.load(place)
        stated = report.ledger.path if report.ledger else ""
        folder = place if place.is_dir() else place.parent
        witness = find_witness(ledger, stated, folder) or find_ledger(ledger)
        then = None if baseline is None else Report.load(baseline)
        if then is None:
            # what each unit came to, for comparisons alone: a tenth of the memory of a million
            report = replace(report, units=None)
        return cls(place, report, witness, evidence, baseline=then)

    @cached_property
    def _rows(self) -> Rows:
        assert self.report is not None
        folder = self.place if self.place.is_dir() else self.place.parent
        load = load_apart if self.apart else load_rows
        return load(self.report, folder, self.evidence)

    @property
    def rows(self) -> Rows:
        """The discovery rows of the report's evidence, read when they are first asked for.

        Raises
        ------
        InputError
            If the evidence is not there, or is not what was audited.
        """
        # two requests at once must not read a large file twice
        with self._lock:
            try:
                rows = self._rows
            except GroundfaultError as error:
                self.trouble = str(error)
                raise
            self.trouble = ""
            return rows

    @property
    def index(self) -> RowIndex:
        """Finds rows of them."""
        rows = self.rows
        with self._lock:
            return self._index(rows)

    def _index(self, rows: Rows) -> RowIndex:
        assert self.report is not None
        if self._finder is None:
            self._finder = RowIndex(rows, self.report.library)
        return self._finder

    @property
    def state(self) -> HoldoutState | None:
        """What was looked at and tried so far; None where it is not about a holdout."""
        if self.report is None and self.case is None:
            return None
        head = read_head(self.ledger)
        if self._state is None or self._state.head != head:
            self._state = self._find_state(head)
        return self._state

    def _find_state(self, head: str) -> HoldoutState:
        settings = self.case.settings if self.case else None
        if self.report is not None:
            return find_state(
                self.report, self.ledger, head, settings.fresh_units if settings else 0
            )
        assert settings is not None
        return find_state_before(settings, self.ledger, head)

    def forecast(self, case: Case) -> Forecast | None:
        """What confirming its modes would cost; simulated once while nothing new is known."""
        from groundfault.case.forecast import forecast_confirmation

        summary = case.summarize()
        with self._lock:
            if self._forecast is None or self._forecast[0] != summary:
                self._forecast = summary, forecast_confirmation(case)
            return self._forecast[1]
