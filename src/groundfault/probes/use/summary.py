"""Summary: everything that is reported of reviewed runs, from rows, statuses and manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import msgspec

from groundfault.errors import InputError, PlanError
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.running.runs import BASE, ProbeRow
from groundfault.probes.use import comparison, effects
from groundfault.probes.use.comparison import PRIMARY, Difference, Duel, Rate
from groundfault.probes.use.endpoints import KeySets, PooledRuns, Results, RunEndpoints
from groundfault.probes.use.summary_schema import (
    KeyLists,
    PoolRecord,
    ProbeTables,
    ReviewCounts,
    RunRecord,
    SharedKeysRecord,
)

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.probes.review.statuses import Status


@dataclass(frozen=True)
class Summary:
    """What is reported of runs.

    Attributes
    ----------
    rows : tuple of ProbeRow
    statuses : mapping of ProbeRow.id to status
    grammar : Grammar
    manifest : mapping
        What the run fixed before asking.
    against : str, optional
        The policy that others are compared with; left out, the first that does not look at what was
        found.
    other_models : tuple of pairs of str
        A model that was asked, and the other one as which its server answered.
    """

    rows: tuple[ProbeRow, ...]
    statuses: Mapping[str, Status]
    grammar: Grammar
    manifest: Mapping[str, Any]
    against: str | None = None
    other_models: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, audit: ReviewedRuns, against: str | None = None) -> Summary:
        """The summary of runs whose review is as far as it is."""
        runs = audit.runs
        return cls(
            tuple(runs.rows),
            audit.statuses,
            runs.grammar,
            runs.manifest,
            against,
            runs.other_models,
        )

    @cached_property
    def results(self) -> Results:
        """Endpoints of every run."""
        budget, prompts = int(self._read_setting("budget")), int(self._read_setting("valid"))
        tasks = int(self._read_setting("bank")["tasks"])
        rows = [row for row in self.rows if row.policy != BASE]  # they belong to no policy
        policies = {row.policy for row in rows}
        budgets = {
            policy: comparison.count_reachable(policy, budget, prompts, tasks)
            for policy in policies
        }
        return Results.of(rows, self.statuses, budgets)

    @cached_property
    def has_keys(self) -> bool:
        """Whether answers were compared with keys; else they were with those to base wordings."""
        return all(row.base is None for row in self.rows)

    @cached_property
    def control(self) -> str:
        """The policy that others are compared with.

        Raises
        ------
        PlanError
            If the one that was named did not run.
        """
        if self.against is None:
            return comparison.choose_control(self.results)
        if self.against not in self.results.policies:
            raise PlanError(
                f"no run of {self.against!r} to compare with; there are "
                f"{'; '.join(self.results.policies)}"
            )
        return self.against

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """The other policies."""
        return tuple(policy for policy in self.results.policies if policy != self.control)

    @cached_property
    def differences(self) -> list[Difference]:
        """Of matched policies from the control, seed by seed."""
        return comparison.compute_differences(self.results, self.control)

    @cached_property
    def duels(self) -> list[Duel]:
        """Best scores, seed by seed."""
        return comparison.compute_duels(self.results, self.control)

    @cached_property
    def rates(self) -> list[Rate]:
        """How often prompts of the bank get a confirmed error, where it can be estimated."""
        prompts, valid = int(self._read_setting("prompts")), int(self._read_setting("valid"))
        return comparison.estimate_rates(
            self.results, self.rows, self.statuses, valid, even=valid == prompts
        )

    @cached_property
    def effects(self) -> list[effects.ComponentEffect]:
        """Component effects within tasks, from the control's rows; none if it is adaptive."""
        if comparison.is_adaptive(self.control):
            return []
        return effects.compute_effects(self.control_rows, self.statuses, self.grammar)

    @property
    def control_rows(self) -> Sequence[ProbeRow]:
        """The rows of the control."""
        return [row for row in self.rows if row.policy == self.control]

    def difference(self, policy: str, model: str | None) -> Difference | None:
        """The difference from the control in the primary endpoint; None if not matched."""
        matches = (
            d
            for d in self.differences
            if (d.policy, d.model, d.endpoint) == (policy, model, PRIMARY)
        )
        return next(matches, None)

    @cached_property
    def tables(self) -> ProbeTables:
        """All numbers in the form of the file."""
        results = self.results
        return ProbeTables(
            control=self.control,
            pools=tuple(map(_record_pool, results.pools)),
            runs=tuple(map(_record_run, results.runs)),
            shared_keys=tuple(self._record_shared_keys()),
            differences=tuple(self.differences),
            best_scores=tuple(self.duels),
            rates=tuple(self.rates),
            effects=tuple(self.effects),
        )

    def to_dict(self) -> dict[str, Any]:
        """The tables as JSON holds them."""
        return dict(msgspec.to_builtins(self.tables))

    def _record_shared_keys(self) -> Iterator[SharedKeysRecord]:
        results = self.results
        models = [*results.models, *([None] if len(results.models) > 1 else [])]
        for model in models:
            for first, second in combinations(results.policies, 2):
                shared = results.compare_keys(first, second, model)
                yield SharedKeysRecord(
                    model=model,
                    policies=(first, second),
                    both=tuple(sorted(shared.both)),
                    first=tuple(sorted(shared.first)),
                    second=tuple(sorted(shared.second)),
                )

    def _read_setting(self, name: str) -> Any:
        if name not in self.manifest:
            raise InputError(f"the manifest of the run lacks {name}; was it changed?")
        return self.manifest[name]


def count_review(reviewed: ReviewedRuns) -> ReviewCounts:
    """How items were settled, and the hidden controls; empty where no decision was made."""
    if not reviewed.decisions:
        return ReviewCounts()
    resolutions = reviewed.resolutions.values()
    return ReviewCounts(
        items=dict(Counter[str](resolution.how for resolution in resolutions)),
        after_unblinding=sum(resolution.unblinded for resolution in resolutions),
        controls=reviewed.control_errors,
    )


def _list_keys(keys: KeySets) -> KeyLists:
    return KeyLists(**{name: tuple(sorted(kind)) for name, kind in vars(keys).items()})


def _record_pool(pool: PooledRuns) -> PoolRecord:
    return PoolRecord(
        model=pool.model,
        policy=pool.policy,
        budget=pool.budget,
        audited_yield=pool.audited_yield,
        best=pool.best,
        first=pool.first,
        runs=len(pool.runs),
        runs_with_a_failure=pool.runs_with_failure,
        unique_audited_keys=len(pool.keys.confirmed),
        tasks=len(pool.keys.tasks),
        rows=pool.rows,
        keys=_list_keys(pool.keys),
    )


def _record_run(run: RunEndpoints) -> RunRecord:
    return RunRecord(
        model=run.model,
        policy=run.policy,
        seed=run.seed,
        budget=run.budget,
        first=run.first,
        best=run.best,
        audited_yield=run.audited_yield,
        unique_audited_keys=len(run.keys.confirmed),
        rows=run.rows,
        keys=_list_keys(run.keys),
        curve=run.curve,
    )
