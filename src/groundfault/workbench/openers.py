"""What can be opened besides a report: a case, probe runs, a taxonomy, the record of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from groundfault.auditing.report import report_path
from groundfault.base.ledger import Ledger
from groundfault.case.case import AUDIT, LEDGER, Case
from groundfault.case.settings import CASE
from groundfault.errors import InputError
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.running.runs import BANK, GRAMMAR, MANIFEST
from groundfault.render import words
from groundfault.review.decision import check_name
from groundfault.review.session import Session
from groundfault.sequential.session import SequentialAudit
from groundfault.workbench.live_desk import LiveDesk
from groundfault.workbench.opened_report import Bench
from groundfault.workbench.review_desk import ReviewDesk


def holds_runs(place: Path) -> bool:
    """Return whether this is a folder of probe runs."""
    return all((place / name).is_file() for name in (MANIFEST, BANK, GRAMMAR))


def require_something(place: Path) -> None:
    """Say what could be opened instead of a table, or of a folder that holds nothing to look at.

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


def holds_case(place: Path) -> bool:
    """Return whether this is a folder that ``case new`` began."""
    return (place / CASE).is_file()


def open_case(place: Path, *, record: bool = True) -> Bench:
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
        return Bench(place, ledger=ledger, case=case)
    bench = Bench.of_report(
        place / AUDIT, evidence=place / "evidence" / "audit", ledger=ledger if record else None
    )
    return replace(bench, case=case)


def holds_taxonomy(place: Path) -> bool:
    """Return whether this is a folder that ``taxonomy fit`` wrote."""
    return (place / "taxonomy.json").is_file()


def open_taxonomy(place: Path) -> Bench:
    """Open a taxonomy.

    Raises
    ------
    InputError
        If its files cannot be read, or do not fit each other.
    """
    # the libraries that draw its figures take a second to load
    from groundfault.render.taxonomy_page import read_page

    return Bench(place, taxonomy=read_page(place))


def open_review(
    runs: Path,
    reviewer: str | None = None,
    *,
    adjudicate: bool = False,
    split: Sequence[str] | None = None,
    store: str | Path | None = None,
) -> Bench:
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
        return Bench(runs, progress=ReviewedRuns(runs, store))
    name = check_name(reviewer)

    def begin() -> Session:
        # read anew: the run may have gone on since the last session
        reviewed = ReviewedRuns(runs, store)
        return Session(reviewed.seal(split), reviewed.store, name, adjudicate=adjudicate)

    return Bench(runs, review=ReviewDesk(begin))


def open_record(ledger: str, seal: str = "") -> Bench:
    """Open the audit in a ledger, to watch it.

    Raises
    ------
    InputError
        If there is no such audit in it.
    """
    audit = SequentialAudit.from_ledger(ledger, seal)
    return Bench(Path(ledger), live=LiveDesk(audit))
