"""Summary: everything that is reported of runs after audit, from rows, statuses and the manifest
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from groundfault.errors import InputError, PlanError
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.running.runs import Row
from groundfault.probes.use import comparison, effects
from groundfault.probes.use.comparison import PRIMARY, Difference, Duel, Rate
from groundfault.probes.use.endpoints import Results

if TYPE_CHECKING:
    from groundfault.probes.review.reviewed_runs import Audit, Status

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Summary:
    """What is reported of runs.

    Attributes
    ----------
    rows : tuple of Row
    statuses : mapping of Row.id to status
    grammar : Grammar
    manifest : mapping
        What the run fixed before asking.
    against : str, optional
        The policy that others are compared with; left out, the first that does not look at what was
        found.
    """

    rows: tuple[Row, ...]
    statuses: Mapping[str, Status]
    grammar: Grammar
    manifest: Mapping[str, Any]
    against: str | None = None

    @classmethod
    def of(cls, audit: Audit, against: str | None = None) -> Summary:
        """The summary of runs whose review is as far as it is."""
        runs = audit.runs
        return cls(tuple(runs.rows), audit.statuses, runs.grammar, runs.manifest, against)

    @cached_property
    def results(self) -> Results:
        """Endpoints of every run."""
        budget, prompts = int(self._fixed("budget")), int(self._fixed("valid"))
        tasks = int(self._fixed("bank")["tasks"])
        policies = {row.policy for row in self.rows}
        given = {policy: comparison.reach(policy, budget, prompts, tasks) for policy in policies}
        return Results.of(self.rows, self.statuses, given)

    @cached_property
    def control(self) -> str:
        """The policy that others are compared with.

        Raises
        ------
        PlanError
            If the one that was named did not run.
        """
        if self.against is None:
            return comparison.control(self.results)
        if self.against not in self.results.policies:
            raise PlanError(
                f"no run of {self.against!r} to compare with; there are {'; '.join(self.results.policies)}"
            )
        return self.against

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """The other policies."""
        return tuple(policy for policy in self.results.policies if policy != self.control)

    @cached_property
    def differences(self) -> list[Difference]:
        """Of matched policies from the control, seed by seed."""
        return comparison.differences(self.results, self.control)

    @cached_property
    def duels(self) -> list[Duel]:
        """Best scores, seed by seed."""
        return comparison.duels(self.results, self.control)

    @cached_property
    def rates(self) -> list[Rate]:
        """How often prompts of the bank get a confirmed error, where that can be told."""
        prompts, valid = int(self._fixed("prompts")), int(self._fixed("valid"))
        return comparison.rates(
            self.results, self.rows, self.statuses, valid, even=valid == prompts
        )

    @cached_property
    def effects(self) -> list[effects.Effect]:
        """Of components within tasks, from the rows of the control; none where it looks at what was
        found.
        """
        if comparison.looks(self.control):
            return []
        return effects.effects(self.control_rows, self.statuses, self.grammar)

    @property
    def control_rows(self) -> Sequence[Row]:
        """The rows of the control."""
        return [row for row in self.rows if row.policy == self.control]

    def difference(self, policy: str, model: str | None) -> Difference | None:
        """Of a policy from the control in the primary endpoint; None where the two are not
        matched.
        """
        found = (
            d
            for d in self.differences
            if (d.policy, d.model, d.endpoint) == (policy, model, PRIMARY)
        )
        return next(found, None)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as JSON holds them; rows and keys stand apart."""
        results = self.results
        models = [*results.models, *([None] if len(results.models) > 1 else [])]
        shared = [
            {"model": model, "policies": [first, second]}
            | {
                name: sorted(keys)
                for name, keys in vars(results.shared(first, second, model)).items()
            }
            for model in models
            for place, first in enumerate(results.policies)
            for second in results.policies[place + 1 :]
        ]
        return {
            "schema_version": SCHEMA_VERSION,
            "control": self.control,
            "pools": [pool.to_dict() for pool in results.pools],
            "runs": [run.to_dict() for run in results.runs],
            "shared_keys": shared,
            "differences": [each.to_dict() for each in self.differences],
            "best_scores": [each.to_dict() for each in self.duels],
            "rates": [each.to_dict() for each in self.rates],
            "effects": [each.to_dict() for each in self.effects],
        }

    def _fixed(self, name: str) -> Any:
        if name not in self.manifest:
            raise InputError(f"the manifest of the run lacks {name}; was it changed?")
        return self.manifest[name]
