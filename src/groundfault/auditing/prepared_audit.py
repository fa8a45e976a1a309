"""Prepared audits: candidates frozen, plan resolved, units split, held-out losses unread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl

from groundfault.auditing.column_timing import (
    LEAK,
    ColumnStage,
    Timing,
    find_leaking_rules,
    find_stages,
    measure_columns,
    measure_marks,
)
from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.base.long_work import Progress, listener
from groundfault.core.candidate import Candidate, Library, unique_names
from groundfault.core.evidence import Evidence, feed
from groundfault.core.judge import Judge
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan
from groundfault.core.row_names import find_cluster_leaders, sampler_of
from groundfault.core.units import Marks, Units, average_losses, classify_sizes, count_scored_rows
from groundfault.errors import GroundfaultError, InputError, PlanError, attempt, note_failure
from groundfault.finders import Finder, make
from groundfault.judges.rule import Ruling, rule

if TYPE_CHECKING:
    from groundfault.auditing.lazy_evidence import LazyEvidence
    from groundfault.base.row_sketch import RowSample


_OF_EVIDENCE = (
    "discovery_mask",
    "has_holdout",
    "leaks",
    "origin",
    "outcomes",
    "shares",
    "split_hash",
    "stages",
)
"""Attributes that do not depend on the candidates."""


@dataclass(frozen=True)
class PreparedAudit:
    """An audit before any held-out loss is read.

    Attributes
    ----------
    evidence : Evidence
    library : Library
    plan : Plan
        Resolved for its judge.
    judge : Judge
    compare : tuple of str, or None
        Two models: the audit then judges the change from the first to the second, see
        `groundfault.core.pairs.Pairs`.
    discovery_evidence : Evidence, optional
        Results of the models for discovery, if models are held out; ``evidence`` then has only the
        held-out models.
    judge_reason : str
        Reason for the judge, if the plan left it open.
    own_rules : tuple of str
        Names of candidates that the caller named, or that a named finder proposed.
    failures : list of str
        Optional steps that failed and were left out, in order.
    """

    evidence: Evidence
    library: Library
    plan: Plan
    judge: Judge
    compare: tuple[str, str] | None = None
    discovery_evidence: Evidence | None = None
    judge_reason: str = ""
    own_rules: tuple[str, ...] = ()
    failures: list[str] = field(default_factory=list, compare=False)

    def with_library(self, library: Library, own_rules: tuple[str, ...]) -> Self:
        """Return the audit with other candidates; results that depend only on evidence are kept.

        Parameters
        ----------
        library : Library
        own_rules : tuple of str
        """
        audit = replace(self, library=library, own_rules=own_rules)
        known = {name: value for name, value in vars(self).items() if name in _OF_EVIDENCE}
        vars(audit).update(known)
        return audit

    @property
    def source(self) -> Evidence | LazyEvidence:
        """Return the audited evidence, whose hashes are in the report."""
        return self.evidence

    @cached_property
    def has_holdout(self) -> bool:
        """Return whether the judge has a holdout."""
        return self.judge.confirmation != "none"

    @property
    def statuses(self) -> dict[str, int]:
        """Return how many rows have each status."""
        return self.evidence.status_counts

    def sample_outcomes(self) -> Callable[[str], RowSample]:
        """Return a function from a ledger's salt to the sample of outcomes that it keeps."""
        return sampler_of(self.evidence)

    def try_rules(self, *, modes: bool) -> None:
        """Raise if a rule cannot be applied, before the audit is recorded.

        Parameters
        ----------
        modes : bool
            Whether failure modes are looked for.
        """
        self.marks  # noqa: B018
        if self.compare and not modes and np.isnan(self.losses()).any(axis=0).all():
            raise PlanError(
                f"models {self.compare[0]!r} and {self.compare[1]!r} have no example in common, so "
                "only failure modes can tell a change: leave modes=False out"
            )

    @cached_property
    def discovery_mask(self) -> Bools:
        """Return the discovery units; all units for a judge without a holdout."""
        if not self.has_holdout:
            return np.ones(self.evidence.unit_count, dtype=np.bool_)
        return self.plan.discovery_units(self.evidence)

    @property
    def discovery_rows(self) -> Bools:
        """Return the rows of the discovery units."""
        return self.discovery_mask[self.evidence.unit_index]

    @cached_property
    def marks(self) -> Marks:
        """Return which units each candidate is true for; `leaking_rules` are marked as unusable.

        Otherwise they do not depend on outcomes.
        """
        unusable = list(self._all_marks.unusable)
        for place in self.leaking_rules:
            unusable[place] = unusable[place] or "leak"
        return replace(self._all_marks, unusable=tuple(unusable))

    @cached_property
    def _all_marks(self) -> Marks:
        return Marks.of(self.evidence, self.library)

    @cached_property
    def rule_shares(self) -> Floats:
        """Return how well each candidate predicts the outcome on the discovery units."""
        return measure_marks(self.evidence, self._all_marks, self.discovery_rows)

    @cached_property
    def leaking_rules(self) -> dict[int, float]:
        """Return candidates that predict the outcome almost perfectly, and how well, by place."""
        rows = self.discovery_rows
        step = "the search for rules that follow from the outcome"
        of = self.evidence, self.library, self.rule_shares, rows
        return attempt(self.failures, step, {}, find_leaking_rules, *of)

    @cached_property
    def outcomes(self) -> tuple[str, ...]:
        """Return names of the outcomes: models; "" for a single model, and in a comparison."""
        if self.compare:
            return ("",)
        return self.evidence.models if len(self.evidence.models) > 1 else ("",)

    def losses(self, unscored: int | None = None) -> Floats:
        """Return the losses of all units, held-out ones too: shape (outcomes, units).

        Parameters
        ----------
        unscored : int, optional
            The loss of unscored observations, 1 or 0; by default NaN.
        """
        whole = self.evidence
        return self.read_losses(
            whole if unscored is None else whole.with_unscored_as(float(unscored))
        )

    def read_losses(self, evidence: Evidence) -> Floats:
        """Return the mean loss of each unit of some evidence: shape (outcomes, units).

        In a comparison the losses of the two models, in order: shape (2, units).
        """
        losses = average_losses(evidence)
        if not self.compare:
            return losses
        return losses[[self.evidence.models.index(name) for name in self.compare]]

    def discovery_units(self) -> Units:
        """Return the discovery units; no held-out loss is read."""
        losses = self.read_losses(self.evidence.take(self.discovery_rows))
        return self._join(losses, np.flatnonzero(self.discovery_mask))

    def parts(self, losses: Floats) -> tuple[Units, Units | None]:
        """Return the discovery units and the holdout; all and None without a holdout."""
        if self.discovery_mask.all():
            return self.units(losses), None
        discovery, holdout = (
            self._join(losses[:, part], part)
            for part in (np.flatnonzero(self.discovery_mask), np.flatnonzero(~self.discovery_mask))
        )
        return discovery, holdout

    def units(self, losses: Floats) -> Units:
        """Return all units."""
        return self._join(losses)

    def _join(self, losses: Floats, part: Places | None = None) -> Units:
        """Return all units, or some units, with their losses."""
        marks, strata = self.marks, self.strata
        if part is not None:
            marks, strata = marks.take(part), None if strata is None else strata[part]
        return Pairs.of_models(marks, losses) if self.compare else Units.of(marks, losses, strata)

    @cached_property
    def size_classes(self) -> Ints | None:
        """Return size classes of the units; None if all are means of similar numbers of rows."""
        return classify_sizes(count_scored_rows(self.evidence))

    @cached_property
    def strata(self) -> Ints | None:
        """Return strata of the units: of one size, and equal in columns that are held fixed.

        None for a single stratum, and in a comparison, where each unit is compared with itself.
        """
        if self.compare:
            return None
        return number_strata(self.evidence, self.plan.within, self.size_classes)

    def judge_losses(self, losses: Floats) -> tuple[Ruling, Units, Units | None]:
        """Return verdicts for these losses, and the units they rest on."""
        discovery, holdout = self.parts(losses)
        return rule(self.judge, self.plan, discovery, holdout, self.marks), discovery, holdout

    @cached_property
    def split_hash(self) -> str:
        """Return the SHA-256 of the names of the discovery units."""
        digest = hashlib.sha256()
        feed(digest, "seen", self.evidence.unit_names.filter(pl.Series(self.discovery_mask)))
        return digest.hexdigest()

    @cached_property
    def shares(self) -> dict[str, float]:
        """Return how well each column predicts the outcome, apart from trusted columns."""
        roles = self.evidence.roles
        columns = dict.fromkeys([*self.evidence.attributes, *roles.instrument])
        columns_to_test = [c for c in columns if c not in roles.trusted]
        step = "the search for columns that follow from the outcome"
        of = self.evidence, columns_to_test, self.discovery_rows
        return attempt(self.failures, step, {}, measure_columns, *of)

    @cached_property
    def leaks(self) -> dict[str, float]:
        """Return columns that predict the outcome almost perfectly: likely consequences of it."""
        return {name: share for name, share in self.shares.items() if share >= LEAK}

    @cached_property
    def stages(self) -> tuple[ColumnStage, ...]:
        """Return when each column came about: before the answer, measured with it, or later."""
        return find_stages(self.evidence, self.shares)

    def list_columns(self, stage: Timing) -> tuple[str, ...]:
        """Return the columns of one stage."""
        return tuple(one.column for one in self.stages if one.stage is stage)

    @property
    def deciding(self) -> dict[str, float]:
        """Return the leaks whose names do not explain them, so that a person has to decide."""
        later = (one.column for one in self.stages if one.stage is Timing.FOLLOWS and one.suspect)
        return {name: self.shares[name] for name in later if name not in self.plan.within}

    @cached_property
    def visible_evidence(self) -> Evidence:
        """Return the evidence for finders: discovery units, without leaks and fixed columns.

        Columns measured with the answer are instruments there, so only a finder of properties of
        answers reads them. Without a holdout, it has all units without their outcomes.
        """
        later = map(self.list_columns, (Timing.DURING, Timing.FOLLOWS))
        hidden = (*chain.from_iterable(later), *self.plan.within)
        evidence = self._visible_rows.without(hidden)
        instruments = self.list_columns(Timing.MEASURED)
        measured = [name for name in instruments if name in evidence.attributes]
        roles = evidence.roles
        shown = evidence.without(measured)
        return replace(shown, roles=replace(roles, instrument=(*roles.instrument, *measured)))

    @property
    def _visible_rows(self) -> Evidence:
        if not self.has_holdout:
            return self.evidence.without_outcomes()
        discovery = self.evidence if self.discovery_evidence is None else self.discovery_evidence
        # by name: other models may have answered other units. A unit that is hard for one model is
        # often hard for the next, so units of the holdout stay unseen for every model
        holdout = self.evidence.unit_names.filter(pl.Series(~self.discovery_mask))
        units = np.flatnonzero(~discovery.unit_names.is_in(holdout.implode()).to_numpy())
        return discovery.take(np.isin(discovery.unit_index, units))

    @cached_property
    def origin(self) -> str:
        """Return the outcomes and units that finders see here, which `Candidate.mined` records."""
        return f"{self.evidence.outcome_hash[:16]}/{self.split_hash[:16]}"

    def is_mined_here(self, candidate: Candidate) -> bool:
        """Return whether a candidate was mined from the outcomes of the discovery units here."""
        return bool(candidate.mined) and candidate.mined == self.origin

    def propose(
        self,
        finders: Sequence[str | Finder],
        declarations: Sequence[Candidate] = (),
        *,
        progress: Progress | None = None,
        leave_out: bool = False,
    ) -> list[Candidate]:
        """Let finders propose candidates from the discovery units.

        Candidates of finders that look at outcomes are marked as mined.

        Parameters
        ----------
        finders : sequence of finder or str
        declarations : sequence of Candidate
            Candidates that were named: proposals get other names, and conjunctions combine them.
        progress : callable, optional
            Called with a message before each finder.
        leave_out : bool
            Whether a finder that crashes is left out with a note; one that refuses is an error.
        """
        proposals: list[Candidate] = []
        for one in finders:
            so_far = [*declarations, *proposals]
            finder = make(one, so_far) if isinstance(one, str) else one
            is_mined = getattr(finder, "uses_outcomes", False)
            losses = self.visible_evidence.loss.drop_nulls()
            # equal outcomes cannot lead a finder; it refuses hidden ones with a message
            if is_mined and self.has_holdout and losses.n_unique() < 2:
                continue
            listener(progress)(f"proposing candidates by {finder.name} ({len(so_far)} so far)")
            # a rule that two finders propose counts for the first, and is judged once
            rules = {(c.rule, c.missing) for c in so_far}
            try:
                every = [*finder.propose(self.visible_evidence)]
            except Exception as error:
                if not leave_out or isinstance(error, GroundfaultError):
                    raise
                note_failure(self.failures, f"the finder {finder.name}", error)
                continue
            candidates = [c for c in every if (c.rule, c.missing) not in rules]
            new = unique_names(candidates, [c.name for c in so_far])
            proposals.extend([replace(c, mined=self.origin) for c in new] if is_mined else new)
        return proposals


def tabulate_units(
    evidence: Evidence, columns: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the columns as a table with one row a unit, in the order of ``unit_names``.

    Parameters
    ----------
    evidence : Evidence
    columns : sequence of str

    Returns
    -------
    table : polars.DataFrame
        Columns that are constant within every unit.
    varying : tuple of str
        The other columns.
    """
    if not columns:
        return pl.DataFrame(), ()
    if evidence.clusters is not None:
        table, others = tabulate_units(evidence.without_clusters(), columns)
        return table[find_cluster_leaders(evidence)], others
    frame = evidence.frame.select(columns)
    varying: tuple[str, ...] = ()
    if len(evidence) > evidence.unit_count:
        ranges = (
            frame.with_columns(pl.Series("\0unit", evidence.unit_index))
            .group_by("\0unit")
            .agg(pl.col(columns).n_unique())
        )
        varying = tuple(name for name in columns if ranges[name].max() != 1)
    return evidence.take_first(frame).drop(varying), varying


def number_strata(evidence: Evidence, within: Sequence[str], sizes: Ints | None) -> Ints | None:
    """Return strata of the units: int64, shape (units,); None if all are in one.

    Parameters
    ----------
    evidence : Evidence
    within : sequence of str
        Columns that are held fixed; a missing value is a value.
    sizes : int64 array, shape (units,), optional
        Size classes.

    Raises
    ------
    InputError
        If a column is missing, says how an answer was scored, differs between rows of one unit, or
        leaves every unit alone in its stratum.
    """
    if not within:
        return sizes
    roles = evidence.roles
    for name in within:
        if name not in evidence.frame.columns:
            names = ", ".join(evidence.attributes[:20])
            raise InputError(
                f"there is no column {name!r} to hold fixed (within); columns are {names}"
            )
        if evidence.frame.schema[name].is_nested():
            raise InputError(f"column {name!r} cannot be held fixed (within): it holds lists")
        if name in (roles.outcome, roles.status, roles.split, *roles.post_outcome):
            raise InputError(
                f"column {name!r} cannot be held fixed (within): it says how an example was scored "
                "or split"
            )
    table, varying = tabulate_units(evidence, list(dict.fromkeys(within)))
    if varying:
        raise InputError(
            f"column {varying[0]!r} cannot be held fixed (within): it differs between rows of one "
            f"{'group' if roles.group else 'example'}"
        )
    codes = table.select(pl.all().cast(pl.String).rank("dense").fill_null(0)).to_numpy()
    if sizes is not None:
        codes = np.column_stack([codes, sizes])
    strata = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
    if strata.max() + 1 == len(strata):
        raise InputError(
            f"no units are left to compare within {', '.join(map(repr, within))}: every unit has "
            "different values"
        )
    return np.asarray(strata, dtype=np.int64)
