"""What changed on a slice since an earlier report: the same test as of two models, or of two sets.

On units that both reports have, each is compared with itself and the two reports are swapped within
units; without such units, the failures of the slice then and now are two samples.

A failure mode that the baseline had is compared on the baseline's slice. That slice was not chosen
by today's outcomes, so it need not be paid for like one of all the rules that were searched; and
having been chosen because the baseline failed there, it errs towards less failures now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.stored_losses import read_losses, read_names, read_slice
from groundfault.base.arrays import Bools, Floats, Places
from groundfault.core.finding import Finding
from groundfault.modes.mode import EVERY_MODEL, Mode
from groundfault.stats import bits, flips, paired

MODE_SHARE = 0.05
"""Of the level, what new failure modes get: there are so many rules that more would not help."""

KNOWN_MODE_SHARE = 0.2
"""Of the level, what the failure modes of the baseline get, where it has any."""

_SHARED = 0.5
"""Share of a slice's units that the baseline has to have, or the two are two samples."""
_SAME = 0.5
"""Overlap of a slice with that of the same rule in the baseline, or ids name other examples now;
and of a failure mode with one of the baseline's that is taken for the same."""


class _SharedUnits(NamedTuple):
    """Units that both reports scored: their places in either, and their losses now and then."""

    here: Places
    there: Places
    losses: Floats
    earlier: Floats


class SinceBaseline(Struct, frozen=True):
    """How much more often a slice fails than in the baseline.

    Attributes
    ----------
    before, now : float
        Failure rates of the slice in the two reports, on the units that are compared.
    units : int
        So many of the report's units.
    shared : bool
        Whether these are the same in both reports.
    known_slice : bool
        Whether they are the slice of a failure mode of the baseline.
    p : float
        One-sided, that the slice fails no more often than in the baseline; for it alone.
    worse : bool
        Whether that is small enough beside everything that the report tested.
    """

    before: float
    now: float
    units: int
    shared: bool
    p: float
    worse: bool = False
    known_slice: bool = False


class ReportPair(NamedTuple):
    """A report and its baseline."""

    now: ReportData
    then: ReportData

    def measure(self, subject: Finding | Mode) -> SinceBaseline | None:
        """Return the change of a slice since the baseline; None if nothing is alike.

        The side of the slice with more failures is compared, and what is counted is a change for
        the worse.

        Parameters
        ----------
        subject : Finding or Mode
            Of the report.
        """
        shared = self._measure_shared(subject)
        return shared if shared is not None else self._measure_samples(subject)

    def share_of_candidates(self) -> float:
        """Return the part of the level that candidates get beside failure modes."""
        if self.now.mode_search is None:
            return 1.0
        return 1.0 - MODE_SHARE - (KNOWN_MODE_SHARE if self.then.modes else 0.0)

    def decide_worse(
        self, are_modes: Sequence[bool], changes: Sequence[SinceBaseline], level: float
    ) -> list[bool]:
        """Return which changes are confirmed: Holm over everything that could have been named.

        Parameters
        ----------
        are_modes : sequence of bool
            Whether each change is of a failure mode, or of a finding.
        changes : sequence of SinceBaseline
        level : float

        Notes
        -----
        Rows are selected by the outcomes of the report, so the level is shared out among all
        candidates that were tested and all rules that were searched, not among the rows alone. The
        slices of the baseline's failure modes are not, and share a part of the level among
        themselves.
        """
        modes = np.array(are_modes, dtype=np.bool_)
        known = np.array([change.known_slice for change in changes], dtype=np.bool_)
        p = np.array([change.p for change in changes], dtype=np.float64)
        search = self.now.mode_search
        rules = 0 if search is None else search.rules * len(search.outcomes)
        worse = np.zeros(len(p), dtype=np.bool_)
        for part, size, share in (
            (~modes, self.now.candidates.distinct, self.share_of_candidates()),
            (modes & known, len(self.then.modes), KNOWN_MODE_SHARE),
            (modes & ~known, rules, MODE_SHARE),
        ):
            # modes that are taken for the same one of the baseline have one p-value: counted as one
            tests, places = np.unique(p[part], return_inverse=True)
            adjusted = _holm(tests, max(size, len(tests)))
            worse[part] = adjusted[places] <= level * share
        return [bool(each) for each in worse]

    def find_churn(self) -> float | None:
        """Return the mean squared change of a unit that both have; None if they share none."""
        both = self._match_losses(self.now.outcomes[0])
        return None if both is None else float(np.mean((both.losses - both.earlier) ** 2))

    def has_anything_alike(self) -> bool:
        """Return whether two reports have units, or a candidate with its counts, in common."""
        alike = [name for name in self.now.outcomes if self._find_outcome(name) is not None]
        rules, earlier = ({f.rule for f in report.findings} for report in self)
        return any(self._match_losses(name) for name in alike) or bool(alike and rules & earlier)

    def _measure_shared(self, subject: Finding | Mode) -> SinceBaseline | None:
        both, members = self._match_losses(subject.outcome), _find_members(self.now, subject)
        if both is None or members is None:
            return None
        inside = members[both.here]
        if not inside.any() or inside.sum() < _SHARED * members.sum():
            return None
        if isinstance(subject, Mode):
            known = self._find_known_slice(subject.outcome, both, inside)
            return _compare_shared(both, inside if known is None else known, known is not None)
        old = _find_members(self.then, subject)
        if old is not None and _overlap(inside, old[both.there]) < _SAME:
            return None
        return _compare_shared(both, inside, known=False)

    def _find_known_slice(self, outcome: str, both: _SharedUnits, inside: Bools) -> Bools | None:
        """Return the most alike slice of the baseline's failure modes; None if none is the same.

        It is of the units that both reports scored, as ``inside`` is.
        """
        earlier = self._find_outcome(outcome)
        slices = [
            members[both.there]
            for mode in self.then.modes
            if mode.outcome == earlier
            if (members := _find_members(self.then, mode)) is not None
            if members[both.there].sum() >= _SHARED * members.sum()
        ]
        overlaps = [_overlap(inside, each) for each in slices]
        best = int(np.argmax(overlaps)) if overlaps else 0
        return slices[best] if overlaps and overlaps[best] >= _SAME else None

    def _match_losses(self, outcome: str) -> _SharedUnits | None:
        """Find the units that both scored; None without any."""
        earlier = self._find_outcome(outcome)
        # numbers of rows name other examples as soon as a row is added
        numbered = self.now.manifest.roles.numbered or self.then.manifest.roles.numbered
        if self.now.units is None or self.then.units is None or earlier is None or numbered:
            return None
        losses, old = read_losses(self.now.units, outcome), read_losses(self.then.units, earlier)
        if losses is None or old is None:
            return None
        _, here, there = np.intersect1d(
            read_names(self.now.units), read_names(self.then.units), return_indices=True
        )
        scored = ~(np.isnan(losses[here]) | np.isnan(old[there]))
        here, there = here[scored], there[scored]
        return _SharedUnits(here, there, losses[here], old[there]) if len(here) else None

    def _find_outcome(self, outcome: str) -> str | None:
        """Return the baseline's name of an outcome of the report; None where it has no such."""
        if len(self.now.outcomes) == len(self.then.outcomes) == 1:
            return self.then.outcomes[0]
        # a mean over other models is another quantity
        alike = outcome == EVERY_MODEL and set(self.now.outcomes) == set(self.then.outcomes)
        return outcome if alike or outcome in self.then.outcomes else None

    def _measure_samples(self, subject: Finding | Mode) -> SinceBaseline | None:
        """Return the change from the counts of the same rule in both reports."""
        outcome = self._find_outcome(subject.outcome)
        earlier = self.then.modes if isinstance(subject, Mode) else self.then.findings
        same = (e for e in earlier if (e.rule, e.outcome) == (subject.rule, outcome))
        before = next(same, None)
        if before is None:
            return None
        swap = isinstance(subject, Finding) and subject.is_less_frequent
        return _compare_counts(_count_failures(subject, swap), _count_failures(before, swap))


def _compare_shared(both: _SharedUnits, inside: Bools, known: bool) -> SinceBaseline:
    """Return the change of a slice of shared units, tested by their changes."""
    changes = (both.losses - both.earlier)[inside]
    whole = bits.pack(np.ones((1, len(changes)), dtype=np.bool_))
    up = np.ones(1, dtype=np.int64)
    p = flips.p_values(whole, changes, up)
    return SinceBaseline(
        before=float(both.earlier[inside].mean()),
        now=float(both.losses[inside].mean()),
        units=len(changes),
        shared=True,
        p=float(p[0]),
        known_slice=known,
    )


def _overlap(one: Bools, other: Bools) -> float:
    return float((one & other).sum() / max(1, (one | other).sum()))


def _find_members(now: ReportData, subject: Finding | Mode) -> Bools | None:
    if now.units is None:
        return None
    place = now.modes.index(subject) if isinstance(subject, Mode) else subject.key
    return read_slice(now.units, place)


def _count_failures(subject: Finding | Mode, swap: bool) -> tuple[int, float]:
    if isinstance(subject, Mode):
        return subject.n, subject.errors
    cell = subject.full.swap() if swap else subject.full
    return cell.on, cell.on_errors


def _compare_counts(now: tuple[int, float], then: tuple[int, float]) -> SinceBaseline | None:
    """Compare two samples by Fisher's exact test.

    Graded losses vary less than errors of the same mean, so that the test of errors is cautious.
    """
    (n, errors), (n_before, errors_before) = now, then
    if not n or not n_before:
        return None
    many, few = int(np.floor(errors)), int(np.ceil(errors_before))
    return SinceBaseline(
        before=errors_before / n_before,
        now=errors / n,
        units=n,
        shared=False,
        p=paired.more_errors(many, n, many + few, n + n_before),
    )


def _holm(p: Floats, size: int) -> Floats:
    """Adjust some of ``size`` p-values by Holm's rule, the others being as large as can be."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate((size - np.arange(len(p))) * p[order])
    return np.minimum(adjusted, 1.0)
