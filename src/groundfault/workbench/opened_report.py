"""The subject of a workbench: a report, its ledger, and the rows that may be looked at.

Besides a report that may be a case, probe runs, a taxonomy, or the record of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec.structs import replace as change

from groundfault.auditing.evidence_again import Places
from groundfault.auditing.report import Report, report_path
from groundfault.auditing.verification import verify
from groundfault.auditing.verification_checks import Verification
from groundfault.base.ledger import Ledger
from groundfault.base.ledgers import LedgerChoice, find_ledger, find_witness
from groundfault.base.registry import load_object
from groundfault.case.case import Case
from groundfault.case.folder import AUDIT, LEDGER
from groundfault.case.settings import CASE
from groundfault.case.simulation import Forecast
from groundfault.case.summary import CaseSummary
from groundfault.coding import Coding
from groundfault.errors import GroundfaultError, InputError, PlanError
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.running.runs import BANK, GRAMMAR, MANIFEST
from groundfault.render import words
from groundfault.render.page import Page
from groundfault.review.decision import check_name
from groundfault.review.session import Session
from groundfault.sequential.session import SequentialAudit
from groundfault.transcripts.judging import TranscriptSearch
from groundfault.workbench.desks import LiveDesk, ReviewDesk
from groundfault.workbench.explorer_data import ExplorerData
from groundfault.workbench.holdout_state import HoldoutState, find_state, read_head
from groundfault.workbench.rows import RowIndex, Rows, load_apart, load_rows, run_apart


@dataclass
class OpenedReport:
    """The subject that the screens show.

    Attributes
    ----------
    place : Path
        The name of the opened file or folder.
    report : Report or None
        None where it is no report, such as a store of reviews.
    ledger : Ledger or None
        Record of tried rules and looks at held-out rows; None keeps no record.
    evidence : path, or sequence of path, optional
        Where the report's evidence is now, if it has moved.
    review : ReviewDesk, optional
        Where a reviewer decides.
    progress : ReviewedRuns, optional
        Probe runs: progress of their review, agreement of reviewers, and the findings.
    taxonomy : Page, optional
        The outline of a taxonomy.
    case : Case, optional
        A case: the report is its audit's, and None before the audit.
    live : LiveDesk, optional
        A sequential audit as its labels come in.
    baseline : Report, optional
        An earlier report, to compare with.
    apart : bool
        Whether the evidence is read in a process of its own, so that this one never holds a
        held-out outcome.
    spendings : dict of Path to Report
        Holdouts that were opened here, by the folders that their reports were written to.
    verification : Verification, optional
        Result of the last `verify` here.
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
    spendings: dict[Path, Report] = field(default_factory=dict)
    verification: Verification | None = None
    trouble: str = ""
    _lock: Lock = field(default_factory=Lock, repr=False)
    _state: HoldoutState | None = field(default=None, repr=False)
    _forecast: tuple[CaseSummary, Forecast | None] | None = field(default=None, repr=False)

    @property
    def codebook(self) -> Coding | None:
        """Return the coding whose notes are on the desk; None where runs are not coded."""
        return None if self.review is None else self.review.coding

    @classmethod
    def of_report(
        cls,
        place: Path,
        *,
        evidence: Places | None = None,
        ledger: LedgerChoice = True,
        baseline: str | Path | None = None,
    ) -> OpenedReport:
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
            report = change(report, units=None)
        return cls(place, report, witness, evidence, baseline=then)

    @property
    def audited(self) -> Report:
        """Return the report, on pages that are there only where one was opened."""
        assert self.report is not None
        return self.report

    @property
    def rivals(self) -> tuple[str, ...] | None:
        """Return the models, and the earlier report, to compare; None for one model alone."""
        if self.report is None:
            return None
        names = self.report.manifest.compare or self.report.outcomes
        earlier = ("the earlier report",) if self.baseline else ()
        return (*names, *earlier) if len(names) + len(earlier) > 1 else None

    @property
    def transcripts(self) -> TranscriptSearch | None:
        """Return the search of an audit of runs; None if the audit has no runs."""
        return self.report.transcripts if self.report else None

    @property
    def folder(self) -> Path:
        """Return the folder of the report."""
        return self.place if self.place.is_dir() else self.place.parent

    @cached_property
    def _index(self) -> RowIndex:
        load = load_apart if self.apart else load_rows
        return RowIndex(load(self.audited, self.folder, self.evidence), self.audited.library)

    @property
    def index(self) -> RowIndex:
        """Return the index of the discovery rows, which are read at the first request.

        Raises
        ------
        InputError
            If the evidence is missing, or differs from the audited evidence.
        """
        # two requests at once must not read a large file twice
        with self._lock:
            try:
                self.trouble, index = "", self._index
            except GroundfaultError as error:
                self.trouble = str(error)
                raise
            return index

    @cached_property
    def explorer(self) -> ExplorerData:
        """Return the rows as the client reads them; as `index`."""
        return ExplorerData(self.audited, self.index)

    @property
    def rows(self) -> Rows:
        """Return the discovery rows of the report's evidence; as `index`."""
        return self.index.rows

    @property
    def state(self) -> HoldoutState | None:
        """Return the looks and tries so far; None where it is not about a holdout."""
        head = read_head(self.ledger)
        if self._state is None or self._state.head != head:
            settings = self.case.settings if self.case else None
            self._state = find_state(self.report, settings, self.ledger, head)
        return self._state

    def forecast(self, case: Case) -> Forecast | None:
        """Return the cost of confirming the modes; simulated again only after new labels."""
        from groundfault.case.simulation import forecast_confirmation

        summary = case.summarize()
        with self._lock:
            if self._forecast is None or self._forecast[0] != summary:
                self._forecast = summary, forecast_confirmation(case)
            return self._forecast[1]

    def verify(self) -> Verification:
        """Verify the opened report, as ``groundfault verify`` does.

        It reads held-out outcomes, so it runs in a process of its own, and lists the checks
        that agree and those that fail.

        Raises
        ------
        InputError
            If the evidence is not there.
        """
        place = self.ledger.place if self.ledger else False
        check = (
            partial(verify, self.case.folder)
            if self.case
            else partial(verify, self.folder, evidence=self.evidence, ledger=place)
        )
        return run_apart("computed the numbers", check) if self.apart else check()


def open_place(
    place: str,
    review: dict[str, Any],
    evidence: dict[str, Any],
    ledger: str | bool | None,
    seal: str = "",
) -> OpenedReport:
    """Open a file or folder.

    Parameters
    ----------
    place : str
        A folder, a file or the URL of a ledger.
    review : dict
        Settings of `open_review`; for probe runs alone.
    evidence : dict
        Where the evidence of a report is, and an earlier report: ``evidence`` and ``baseline``.
    ledger : str, bool or None
        As for `OpenedReport.of_report`; None keeps no record.
    seal : str
        Of the audit in a ledger that holds several.

    Raises
    ------
    InputError, PlanError
        If the place cannot be opened, or not with these settings.
    """
    path = Path(place)
    if all((path / name).is_file() for name in (MANIFEST, BANK, GRAMMAR)):
        return open_review(path, **review)
    if any(review.values()):
        raise PlanError(f"{place} holds no probe runs, and reviews are of their responses")
    if (path / "taxonomy.json").is_file():
        return open_taxonomy(path)
    if (path / CASE).is_file():
        if any(evidence.values()) or isinstance(ledger, str):
            raise PlanError("a case has its rows and its ledger: name its folder alone")
        return open_case(path, record=ledger is not None)
    if "://" in place or path.suffix == ".db":
        return open_record(place, seal)
    require_something(path)
    return OpenedReport.of_report(path, ledger=ledger, **evidence)


def require_something(place: Path) -> None:
    """Suggest a command for a table, or for a folder without a report.

    Raises
    ------
    InputError
        If this is a file other than JSON, or a folder without a report.
    """
    if place.is_file() and place.suffix.lower() != ".json":
        raise InputError(
            f"{place} is no report: audit it first (groundfault audit {place} --out report/), then "
            "open report/"
        )
    if not place.is_dir() or report_path(place).is_file():
        return
    below = sorted(path.parent for path in place.glob("*/report.json"))
    hint = (
        f"open one of {words.listing([str(path) for path in below], 6)}"
        if below
        else "a report is what groundfault audit --out writes"
    )
    raise InputError(f"{place} holds no report, case, taxonomy or probe runs; {hint}")


def open_case(place: Path, *, record: bool = True) -> OpenedReport:
    """Open a case, to see where it stands and, once there is one, its audit.

    Parameters
    ----------
    place : path
    record : bool
        Whether tried rules go into the ledger of the case.

    Raises
    ------
    InputError
        If its files cannot be read.
    """
    case = Case(place)
    # not the property of the case: looking begins no ledger
    ledger = Ledger(place / LEDGER)
    if case.report is None:
        return OpenedReport(place, ledger=ledger, case=case)
    bench = OpenedReport.of_report(
        place / AUDIT, evidence=place / "evidence" / "audit", ledger=ledger if record else None
    )
    return replace(bench, case=case)


def open_taxonomy(place: Path) -> OpenedReport:
    """Open a taxonomy.

    Raises
    ------
    InputError
        If its files cannot be read, or do not fit each other.
    """
    read_folder = load_object("groundfault_lab.taxonomy.words.labelling:read_folder")
    make_page = load_object("groundfault_lab.pages.taxonomy_page:make_page")
    return OpenedReport(place, taxonomy=make_page(*read_folder(place)))


def open_review(
    runs: Path,
    reviewer: str | None = None,
    *,
    adjudicate: bool = False,
    split: Sequence[str] | None = None,
    store: str | Path | None = None,
) -> OpenedReport:
    """Open a review for a reviewer; without one, to read progress and results.

    Parameters
    ----------
    runs : path
    reviewer : str, optional
    adjudicate : bool
        Decide disputed items instead.
    split : sequence of str, optional
        Deal the items to these reviewers; fixed with the first session.
    store : path or str, optional
        Where decisions are kept, if not in the folder.

    Raises
    ------
    InputError, PlanError, LedgerError
        As `ReviewedRuns` and `Session`.
    """
    if reviewer is None:
        return OpenedReport(runs, progress=ReviewedRuns(runs, store))
    name = check_name(reviewer)

    def begin() -> Session:
        # read anew: the run may have gone on since the last session
        reviewed = ReviewedRuns(runs, store)
        return Session(reviewed.seal(split), reviewed.store, name, adjudicate=adjudicate)

    return OpenedReport(runs, review=ReviewDesk(begin))


def open_record(ledger: str, seal: str = "") -> OpenedReport:
    """Open the audit in a ledger, to watch.

    Raises
    ------
    InputError
        If the ledger does not hold this audit.
    """
    audit = SequentialAudit.from_ledger(ledger, seal)
    return OpenedReport(Path(ledger), live=LiveDesk(audit))
