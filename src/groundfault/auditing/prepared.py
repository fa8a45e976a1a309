"""Prepared audits: candidates frozen, plan resolved, units split, held-out losses unread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault import judges
from groundfault.auditing.copies import join_copies
from groundfault.auditing.leaks import LEAK, find_leaking_rules, measure_columns, measure_marks
from groundfault.auditing.stages import ColumnStage, Timing, find_stages, list_columns
from groundfault.auditing.unit_table import number_strata
from groundfault.base.digests import feed
from groundfault.base.progress import Progress, listener
from groundfault.core.candidate import Candidate, Library, unique_names
from groundfault.core.evidence import Evidence
from groundfault.core.judge import Judge
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan
from groundfault.core.units import Marks, Units, average_losses, classify_sizes, count_scored_rows
from groundfault.errors import InputError, PlanError, RuleError
from groundfault.judges import choose_judge
from groundfault.judges.rule import Ruling, rule


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
        Two models: what is judged is then the change from the first to the second, see
        `groundfault.core.pairs.Pairs`.
    discovery_evidence : Evidence, optional
        Results of the models for discovery, where models are held out; ``evidence`` is then of the
        held-out models alone.
    precomputed_shares : mapping of str to float, optional
        `shares` where they were computed already: they are the same for any library.
    judge_reason : str
        Why it is this judge, where the plan left it open.
    own_rules : tuple of str
        Names of the candidates that the caller named, or whose finder the caller did.
    """

    evidence: Evidence
    library: Library
    plan: Plan
    judge: Judge
    compare: tuple[str, str] | None = None
    discovery_evidence: Evidence | None = None
    precomputed_shares: Mapping[str, float] | None = field(default=None, repr=False, compare=False)
    judge_reason: str = ""
    own_rules: tuple[str, ...] = ()

    @cached_property
    def discovery_mask(self) -> NDArray[np.bool_]:
        """The discovery units; all of them for a judge that holds nothing out."""
        if self.judge.confirmation == "none":
            return np.ones(self.evidence.unit_count, dtype=np.bool_)
        return self.plan.discovery_units(self.evidence)

    @cached_property
    def marks(self) -> Marks:
        """Which units each candidate is true for; `leaking_rules` are marked as unusable.

        Apart from that, they say nothing of outcomes.
        """
        unusable = list(self._all_marks.unusable)
        for place in self.leaking_rules:
            unusable[place] = unusable[place] or "leak"
        return replace(self._all_marks, unusable=tuple(unusable))

    @cached_property
    def _all_marks(self) -> Marks:
        return Marks.of(self.evidence, self.library)

    @cached_property
    def rule_shares(self) -> NDArray[np.float64]:
        """How well each candidate predicts the outcome on the discovery units."""
        rows = self.discovery_mask[self.evidence.unit_index]
        return measure_marks(self.evidence, self._all_marks, rows)

    @cached_property
    def leaking_rules(self) -> dict[int, float]:
        """Candidates that predict the outcome almost perfectly, and how well, by their place."""
        rows = self.discovery_mask[self.evidence.unit_index]
        return find_leaking_rules(self.evidence, self.library, self.rule_shares, rows)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Names of the outcomes: models; "" for one alone, and for the change between two."""
        if self.compare:
            return ("",)
        return self.evidence.models if len(self.evidence.models) > 1 else ("",)

    def describe_outcome(self, outcome: int) -> str:
        """What is counted under an outcome, as a sentence names it."""
        name = self.outcomes[outcome]
        return f"errors of {name}" if name else "errors"

    def losses(self, evidence: Evidence | None = None) -> NDArray[np.float64]:
        """Losses of all units, held-out ones too: shape (outcomes, units).

        Of a comparison those of its two models, in order: shape (2, units).
        """
        losses = average_losses(evidence or self.evidence)
        if not self.compare:
            return losses
        return losses[[self.evidence.models.index(name) for name in self.compare]]

    def discovery_units(self) -> Units:
        """The discovery units; no held-out loss is read."""
        rows = self.discovery_mask[self.evidence.unit_index]
        units = np.flatnonzero(self.discovery_mask)
        losses = self.losses(self.evidence.take(rows))
        return self._join(self.marks.take(units), losses, _part(self.strata, units))

    def parts(self, losses: NDArray[np.float64]) -> tuple[Units, Units | None]:
        """The discovery units and the holdout; all units and None where nothing is held out."""
        if self.discovery_mask.all():
            return self.units(losses), None
        discovery, holdout = (
            self._join(self.marks.take(part), losses[:, part], _part(self.strata, part))
            for part in (np.flatnonzero(self.discovery_mask), np.flatnonzero(~self.discovery_mask))
        )
        return discovery, holdout

    def units(self, losses: NDArray[np.float64]) -> Units:
        """All units."""
        return self._join(self.marks, losses, self.strata)

    def _join(
        self, marks: Marks, losses: NDArray[np.float64], strata: NDArray[np.int64] | None
    ) -> Units:
        if self.compare:
            return Pairs.of_models(marks, losses)
        return Units.of(marks, losses, strata)

    @cached_property
    def size_classes(self) -> NDArray[np.int64] | None:
        """Size classes of the units; None where all are means of about as many rows."""
        return classify_sizes(count_scored_rows(self.evidence))

    @cached_property
    def strata(self) -> NDArray[np.int64] | None:
        """Units are compared within these: of one size, and of equal values in columns held fixed.

        None where all are alike, and in a comparison: each unit is compared with itself.
        """
        if self.compare:
            return None
        return number_strata(self.evidence, self.plan.within, self.size_classes)

    def judge_losses(self, losses: NDArray[np.float64]) -> tuple[Ruling, Units, Units | None]:
        """Verdicts for these losses, and the units they rest on."""
        discovery, holdout = self.parts(losses)
        return rule(self.judge, self.plan, discovery, holdout, self.marks), discovery, holdout

    @cached_property
    def split_hash(self) -> str:
        """SHA-256 of the names of the discovery units."""
        digest = hashlib.sha256()
        feed(digest, "seen", self.evidence.unit_names.filter(pl.Series(self.discovery_mask)))
        return digest.hexdigest()

    @cached_property
    def shares(self) -> dict[str, float]:
        """How well each column predicts the outcome, but those of ``allow_leakage``."""
        if self.precomputed_shares is not None:
            return dict(self.precomputed_shares)
        roles = self.evidence.roles
        columns = dict.fromkeys([*self.evidence.attributes, *roles.instrument])
        rows = self.discovery_mask[self.evidence.unit_index]
        columns_to_test = [c for c in columns if c not in roles.allow_leakage]
        return measure_columns(self.evidence, columns_to_test, rows)

    @cached_property
    def leaks(self) -> dict[str, float]:
        """Columns that predict the outcome almost perfectly, so likely consequences of it."""
        return {name: share for name, share in self.shares.items() if share >= LEAK}

    @cached_property
    def stages(self) -> tuple[ColumnStage, ...]:
        """What each column is taken for: known before the answer, measured with it, or later."""
        return find_stages(self.evidence, self.shares)

    @cached_property
    def visible_evidence(self) -> Evidence:
        """What finders see: the discovery units, without leaks and columns that are held fixed.

        Columns measured with the answer are instruments there, so that only a finder of properties
        of answers reads them. Where nothing is held out, it is all units without their outcomes.
        """
        hidden = (*list_columns(self.stages, Timing.FOLLOWS), *self.plan.within)
        evidence = self._visible_rows.without(hidden)
        measured = [
            name
            for name in list_columns(self.stages, Timing.MEASURED)
            if name in evidence.attributes
        ]
        roles = evidence.roles
        shown = evidence.without(measured)
        return replace(shown, roles=replace(roles, instrument=(*roles.instrument, *measured)))

    @property
    def _visible_rows(self) -> Evidence:
        if self.judge.confirmation == "none":
            return self.evidence.without_outcomes()
        discovery = self.evidence if self.discovery_evidence is None else self.discovery_evidence
        # by name: other models may have answered other units. What is hard for one model is often
        # hard for the next, so units of the holdout stay unseen for every model
        holdout = self.evidence.unit_names.filter(pl.Series(~self.discovery_mask))
        units = np.flatnonzero(~discovery.unit_names.is_in(holdout.implode()).to_numpy())
        return discovery.take(np.isin(discovery.unit_index, units))

    @property
    def origin(self) -> str:
        """The outcomes and units that finders see here, which `Candidate.mined` records."""
        return f"{self.evidence.outcome_hash[:16]}/{self.split_hash[:16]}"

    def is_mined_here(self, candidate: Candidate) -> bool:
        """Whether a candidate was mined from the outcomes of the discovery units here."""
        return bool(candidate.mined) and candidate.mined == self.origin

    def propose(
        self,
        finders: Sequence[Any],
        declarations: Sequence[Candidate] = (),
        *,
        progress: Progress | None = None,
    ) -> list[Candidate]:
        """What finders propose from the discovery units.

        Candidates of finders that look at outcomes are marked as mined.

        Parameters
        ----------
        finders : sequence of finder or str
        declarations : sequence of Candidate
            Candidates that were named: proposals get other names, and conjunctions combine them.
        progress : callable, optional
            Called with a message before each finder.
        """
        from groundfault.finders import make

        proposals: list[Candidate] = []
        for one in finders:
            so_far = [*declarations, *proposals]
            finder = make(one, so_far) if isinstance(one, str) else one
            listener(progress)(f"proposing candidates by {finder.name} ({len(so_far)} so far)")
            # a rule that two finders propose counts for the first, and is judged once
            rules = {(c.rule, c.missing) for c in so_far}
            candidates = (
                c for c in finder.propose(self.visible_evidence) if (c.rule, c.missing) not in rules
            )
            new = unique_names(candidates, [c.name for c in so_far])
            is_mined = getattr(finder, "uses_outcomes", False)
            proposals.extend([replace(c, mined=self.origin) for c in new] if is_mined else new)
        return proposals


def prepare(
    evidence: Evidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[Any] | None = None,
    compare: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> PreparedAudit:
    """Freeze everything that is decided before the holdout is read, and check it.

    Parameters
    ----------
    evidence : Evidence
    plan : Plan, optional
    candidates : iterable of Candidate, optional
        To judge. With neither candidates nor finders, the default finders propose.
    finders : sequence of finder or str, optional
        Propose further candidates from the discovery units. A judge that holds nothing out lets
        them see all units, but no outcome.
    compare : pair of str, optional
        Two models to compare on the examples both answered.
    progress : callable, optional
        Called with a message before each finder.

    Raises
    ------
    InputError
        If there is nothing to explain: no errors, or only errors; or nothing to explain it with.
    PlanError
        If a judge or finder is unknown.
    """
    declarations = list(candidates or ())
    by_default = candidates is None and finders is None
    if finders is None:
        finders = default_finders() if by_default else []
    mining = any(map(looks_at_outcomes, finders))
    start = start_audit(evidence, plan, compare=compare, candidates=declarations, mining=mining)
    if finders and start.plan.holdout_axis == "models" and start.discovery_evidence is None:
        raise InputError(
            "all models are held out, so there is nothing to find candidates in: name "
            "candidates, or leave some models for discovery"
        )
    proposals = start.propose(finders, declarations, progress=progress)
    library = Library.of([*declarations, *proposals])
    if len(library) == 0:
        raise InputError(
            "no candidates: the evidence has no columns that describe examples; name "
            "candidates or columns"
        )
    for candidate in library:
        require_cause(start, candidate)
    _require_fresh_holdout(start, library)
    own_rules = () if by_default else tuple(c.name for c in library)
    return replace(start, library=library, precomputed_shares=start.shares, own_rules=own_rules)


def start_audit(
    evidence: Evidence,
    plan: Plan | None = None,
    *,
    compare: tuple[str, str] | None = None,
    candidates: Sequence[Candidate] = (),
    mining: bool = True,
) -> PreparedAudit:
    """Prepare everything but the candidates.

    Parameters
    ----------
    evidence, plan, compare
        As in `prepare`.
    candidates : sequence of Candidate
        Those that were named.
    mining : bool
        Whether a finder will look at outcomes; then the judge ``auto`` is one with a holdout.

    Raises
    ------
    InputError, PlanError
        As `prepare`.
    """
    plan, evidence = plan or Plan(), join_copies(evidence)
    discovery = None
    if plan.holdout_axis == "models":
        if compare:
            raise PlanError("a comparison needs both of its models: hold out another axis")
        names, holdout = plan.split_models(evidence)
        plan = replace(plan, holdout_models=holdout)  # so that the seal covers what was drawn
        discovery = evidence.select_model(*names) if names else None
        evidence = evidence.select_model(*holdout)
    if compare:
        evidence = evidence.select_model(*compare)
        if len(set(compare)) < 2:
            raise PlanError("compare needs two different models")
        _require_differences(plan)
    _require_variation(evidence)
    # the hash is of all rows: few audits need it here
    mined = mining or any(c.mined and c.is_mined_from(evidence.outcome_hash) for c in candidates)
    plan, reason = choose_judge(plan, evidence.roles, mined=mined)
    judge = judges.get(plan.judge, plan.judge_settings)
    if compare and not getattr(judge, "compares", False):
        raise PlanError(
            f"judge {judge.name} cannot compare two models: it permutes units, which is no test of "
            "what changed within them; judge by max-t, holm or split-holm, or name no judge"
        )
    plan = plan.resolve(lift_ranked=judge.lift_ranked, gated=judge.confirmation != "none")
    audit = PreparedAudit(
        evidence, Library(()), plan, judge, compare, discovery, judge_reason=reason
    )
    if judge.name == "multisplit-e" and audit.strata is not None:
        raise PlanError(
            "multisplit-e needs groups of like size and holds no column fixed; judge by max-t, "
            "holm or janus"
        )
    return audit


def _part(strata: NDArray[np.int64] | None, units: NDArray[np.intp]) -> NDArray[np.int64] | None:
    return None if strata is None else strata[units]


def default_finders() -> list[Any]:
    """Finders that propose where neither candidates nor finders are named."""
    from groundfault.finders import DEFAULT

    return list(DEFAULT)


def looks_at_outcomes(finder: Any) -> bool:
    """Whether a finder, or the one of a name, is led by outcomes."""
    from groundfault.finders import get

    maker = get(finder.partition(":")[0]) if isinstance(finder, str) else finder
    return bool(getattr(maker, "uses_outcomes", False))


def require_cause(audit: PreparedAudit, candidate: Candidate) -> None:
    """A candidate must not explain failures by failing."""
    roles, columns = audit.evidence.roles, set(candidate.columns)
    if columns & {roles.outcome, roles.status}:
        raise RuleError(
            f"candidate {candidate.name!r} reads the outcome: {candidate.rule!r} explains "
            "failures by failing"
        )
    for column in sorted(columns & set(roles.post_outcome)):
        raise RuleError(
            f"candidate {candidate.name!r} reads {column!r}, which was declared to follow from "
            "the outcome"
        )
    for column in sorted(columns & set(audit.leaks)):
        raise RuleError(
            f"candidate {candidate.name!r} reads {column!r}, which predicts "
            f"{audit.leaks[column]:.0%} of the rarer outcome, so it is likely to follow from the "
            "outcome; allow_leakage (--allow-leakage) lets it be judged all the same"
        )


def _require_fresh_holdout(audit: PreparedAudit, library: Library) -> None:
    """A mined candidate needs units that its finder did not see, or other outcomes."""
    for candidate in library:
        if audit.is_mined_here(candidate):
            continue
        if candidate.mined and candidate.is_mined_from(audit.evidence.outcome_hash):
            raise PlanError(
                f"candidate {candidate.name!r} was mined from other units of this evidence than "
                f"judge {audit.judge.name} now has for discovery, so the holdout is not fresh: take"
                " a judge with a holdout and split as then (--seed, --holdout, --split), or other "
                "evidence"
            )


def _require_differences(plan: Plan) -> None:
    """A comparison is of differences within units."""
    if plan.effect != "risk_difference":
        raise PlanError("a comparison is of differences: leave the effect (--effect) out")
    if plan.within:
        raise PlanError(
            "a comparison holds every column fixed, since it compares each example with itself: "
            "leave within (--within) out"
        )


def _require_variation(evidence: Evidence) -> None:
    loss = evidence.loss.drop_nulls()
    if len(loss) == 0:
        counts = ", ".join(f"{n} {status}" for status, n in evidence.status_counts.items() if n)
        raise InputError(f"no observation was scored ({counts}), so there is nothing to explain")
    if loss.n_unique() == 1:
        every = {
            0.0: "no errors at all: every observation passed",
            1.0: "only errors: every observation failed",
        }
        message = every.get(float(loss[0]), f"the same loss ({loss[0]:g}) everywhere")
        raise InputError(
            f"the outcome has {message} ({len(loss):,} in all), so there is no difference to "
            "explain; is it the right column, scorer or selection of rows?"
        )
