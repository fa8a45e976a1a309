"""The flow of an audit by counts: one opening, one scan of all rows, verdicts from its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing.counted_audit import (
    JOINT_JUDGE,
    MAX_JOINT,
    CountedAudit,
    choose_counted_judge,
    find_copies,
    prepare_counted,
)
from groundfault.auditing.counted_modes import name_counted_modes
from groundfault.auditing.counted_outcomes import sum_statuses
from groundfault.auditing.counting import Scan, count_jointly, scan_cells
from groundfault.auditing.grouped_evidence import open_units
from groundfault.auditing.guarantee import spend_level
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.results import AuditResults
from groundfault.base.ledgers import LedgerChoice, find_ledger
from groundfault.base.progress import Progress, listener
from groundfault.core.candidate import Candidate
from groundfault.core.counted_units import CountedMarks, CountedUnits, JointCells
from groundfault.core.finding import Verdict
from groundfault.core.plan import Plan
from groundfault.core.rules import quote
from groundfault.errors import InputError
from groundfault.judges.rule import rule
from groundfault.stats.loss_counts import LossCounts

if TYPE_CHECKING:
    from groundfault.base.holdout_events import Opening
    from groundfault.base.ledger import Ledger


@dataclass(frozen=True)
class CountedResults(AuditResults):
    """A judged audit by counts.

    Attributes
    ----------
    whole : CountedUnits
        All rows.
    statuses : dict of str to int
        Rows of each.
    """

    whole: CountedUnits = field(kw_only=True)
    statuses: dict[str, int] = field(kw_only=True)

    @property
    def full(self) -> CountedUnits:
        """All rows."""
        return self.whole


@dataclass(frozen=True)
class _Count:
    """Cells of all candidates; masks are of shape (C,)."""

    audit: CountedAudit
    scan: Scan

    def make_units(
        self, part: NDArray[np.bool_], marks: CountedMarks, loss: NDArray[np.float64]
    ) -> CountedUnits:
        """The rows of some cells, where losses are not NaN."""
        cells, strata = self.scan.cells, self.scan.strata
        scored = part & ~np.isnan(loss)
        home = np.zeros(len(cells), dtype=np.int64) if strata is None else strata
        pairs = list(zip(home[scored], loss[scored], strict=True))
        # 0 and 1 always, so that a part without failures has counts of them
        kinds = sorted({*pairs, (home.min(), 0.0), (home.min(), 1.0)})
        of_kind = [scored & (home == stratum) & (loss == value) for stratum, value in kinds]
        defined, on = (np.stack(each) for each in zip(*map(self.count, of_kind), strict=True))
        rows = np.array([cells.rows[where].sum() for where in of_kind])
        empty = None
        if marks.empty is not None:
            values = [cells.defined[where, : on.shape[1]].sum(axis=0) for where in of_kind]
            empty = rows[:, None] - np.stack(values)
        losses, places = np.array([value for _, value in kinds]), np.array([s for s, _ in kinds])
        return CountedUnits.of_counts(
            replace(marks, size=int(cells.rows[part].sum())),
            LossCounts(losses, rows, defined, on, None if strata is None else places),
            empty,
        )

    def count(self, where: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of some cells that each candidate is defined for, and true."""
        library = self.audit.library
        drops = np.array([candidate.missing == "drop" for candidate in library])
        cells = self.scan.cells
        rows = int(cells.rows[where].sum())
        defined = cells.defined[where, : len(library)].sum(axis=0)
        return np.where(drops, defined, rows), cells.on[where, : len(library)].sum(axis=0)


def audit_counted(
    lazy: LazyEvidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[Any] | None = None,
    ledger: LedgerChoice = True,
    reopen: str | None = None,
    modes: bool = True,
    texts: bool = True,
    progress: Progress | None = None,
) -> CountedResults:
    """Judge candidates by how many rows they hold for; parameters as `groundfault.audit`.

    Raises
    ------
    InputError, RuleError, PlanError
        If an argument cannot be used; nothing is recorded then.
    LedgerError
        If the outcomes were looked at before in another way and no reason is given.
    """
    report_progress = listener(progress)
    candidates = None if candidates is None else list(candidates)
    # what cannot be judged fails here, before groups are made
    choose_counted_judge(lazy, plan, candidates, finders)
    with open_units(lazy, progress) as units:
        report_progress(f"drawing rows from {len(lazy.counter.files)} files by {lazy.counter.name}")
        audit = prepare_counted(units, plan, candidates, finders=finders)
        if modes:
            # what cannot be read fails here, before the opening is recorded
            audit.searched  # noqa: B018
        report_progress("hashing the files")
        book = find_ledger(ledger)
        # recorded before an outcome beyond the sample is counted
        opening = None
        if book is not None:
            report_progress("drawing outcomes for the ledger")
            opening = _open(audit, book, reopen, modes=modes)
        report_progress(f"counting {len(audit.library)} candidates in {audit.rows:,} rows")
        results = replace(judge_counted(audit), opening=opening, witness=book)
        if not modes:
            return results
        report_progress("looking for failure modes")
        named, search = name_counted_modes(audit, texts=texts)
        return replace(results, modes=named, mode_search=search)


def _open(audit: CountedAudit, book: Ledger, reopen: str | None, *, modes: bool) -> Opening:
    return book.open_holdout(
        evidence_hash=audit.lazy.hash,
        outcome_hash=audit.lazy.outcome_hash,
        split_hash=audit.split_hash,
        library_hash=audit.library.hash,
        plan_hash=audit.plan.seal(),
        reopen=reopen,
        holdout=audit.has_holdout,
        all_outcomes=modes,
        rule=audit.judge.name,
        level=spend_level(audit.judge, audit.plan),
        # before the ledger is locked: this is a scan
        sample=audit.lazy.sample_outcomes(audit.rows),
    )


def judge_counted(audit: CountedAudit) -> CountedResults:
    """Count all candidates in one scan, and give each a verdict.

    Parameters
    ----------
    audit : CountedAudit
    """
    count = _count(audit)
    audit = replace(audit, known_marks=_mark(count))
    count = replace(count, audit=audit)
    joint = None
    if audit.judge.name == JOINT_JUDGE:
        joint = count_jointly(audit, range(len(audit.library)), holdout=False)
    results = _judge(count, count.scan.loss, joint)
    if (count.scan.scored < count.scan.rows).any():
        sensitivity = {
            name: _judge(
                count, count.scan.fill(loss), joint and joint.with_unscored_as(loss)
            ).ruling
            for name, loss in (("all_failed", 1), ("all_passed", 0))
        }
        results = replace(results, sensitivity=sensitivity)
    return _count_overlap(results, audit)


def _count_overlap(results: CountedResults, audit: CountedAudit) -> CountedResults:
    """The results with what is confirmed counted jointly, which tells what is seen twice."""
    confirmed = [h for h, v in enumerate(results.ruling.verdicts) if v is Verdict.CONFIRMED]
    deciding = results.discovery if results.holdout is None else results.holdout
    assert isinstance(deciding, CountedUnits)
    # cells tell how many failed, not by how much
    whole = results.whole
    is_binary = whole.denominator == 1 and whole.strata is None
    is_countable = 2 <= len(confirmed) <= MAX_JOINT and is_binary
    if not is_countable or deciding.joint is not None:
        return results
    joint = count_jointly(audit, confirmed, holdout=results.holdout is not None)
    deciding = replace(deciding, joint=joint)
    if results.holdout is None:
        return replace(results, discovery=deciding)
    return replace(results, holdout=deciding)


def _judge(count: _Count, loss: NDArray[np.float64], joint: JointCells | None) -> CountedResults:
    audit, marks = count.audit, count.audit.marks
    everywhere = np.ones(len(loss), dtype=np.bool_)
    whole = count.make_units(everywhere, marks, loss)
    discovery = replace(whole, joint=joint)
    holdout = None
    if audit.has_holdout:
        is_discovery = count.scan.is_discovery
        discovery = count.make_units(is_discovery, marks, loss)
        holdout = count.make_units(~is_discovery, marks, loss)
    ruling = rule(audit.judge, audit.plan, discovery, holdout, marks)
    return CountedResults(
        audit,
        np.zeros((1, 0)),
        ruling,
        discovery,
        holdout,
        whole=whole,
        statuses=audit.groups.statuses
        if audit.groups is not None
        else sum_statuses(count.scan.status, count.scan.cells.rows),
    )


def _count(audit: CountedAudit) -> _Count:
    """All cells of all candidates."""
    rules = [
        # what cannot be tested there is not counted either
        "FALSE" if audit.is_uncounted(candidate) else candidate.parsed.sql
        for candidate in audit.library
    ]
    scan = scan_cells(audit, [*rules, f"{quote(audit.lazy.roles.id or '')} IS NULL"], {})
    nameless = int(scan.cells.on[:, -1].sum())
    if nameless:
        raise InputError(
            f"{audit.lazy.provenance[0]}: column {audit.lazy.roles.id!r} is empty in {nameless} "
            "rows; every row needs an id"
        )
    return _Count(audit, scan)


def _mark(count: _Count) -> CountedMarks:
    """Support of every candidate in all rows, and which cannot be tested."""
    audit, cells = count.audit, count.scan.cells
    library = audit.library
    gaps = cells.rows.sum() - cells.defined[:, : len(library)].sum(axis=0)
    unusable = tuple(
        reason or ("missing" if candidate.missing == "reject" and gap else "")
        for candidate, reason, gap in zip(library, audit.unusable, gaps, strict=True)
    )
    n, on = count.count(np.ones(len(cells), dtype=np.bool_))
    first, is_mirrored = find_copies(audit.lazy, library, cells, unusable)
    no_bits = np.zeros((len(library), 0), dtype=np.uint64)
    has_gaps = any(
        gap and candidate.missing != "reject" for candidate, gap in zip(library, gaps, strict=True)
    )
    return CountedMarks(
        audit.rows,
        no_bits,
        None,
        unusable,
        no_bits if has_gaps else None,
        n=n,
        n_on=on,
        first=first,
        is_mirrored=is_mirrored,
    )
