"""Summary: everything that is reported of reviewed runs, and the form of its JSON.

``groundfault lab probe report --json`` writes a `ProbeSummary`, a package's ``tables.json`` is a
`ProbeTables`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
from msgspec import UNSET, Struct, UnsetType

from groundfault.base.reading import MAX_ROWS, read_json_object
from groundfault.errors import InputError, PlanError, first_line
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.review.reviewed_runs import MissedErrors, ReviewedRuns
from groundfault.probes.review.statuses import Status
from groundfault.probes.running.runs import BASE, ProbeRow
from groundfault_lab.probes import comparison
from groundfault_lab.probes.comparison import PRIMARY, ComponentEffect, Difference, Duel, Rate
from groundfault_lab.probes.endpoints import PooledRuns, Results, RunEndpoints, SharedKeys

SCHEMA_VERSION: Literal[1] = 1
"""Rises when a field goes away or changes its meaning; `ProbeTables.load` converts older versions
then."""


class ReviewCounts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Counts of items by how they were settled; empty where no decision was made.

    Attributes
    ----------
    items : dict of str to int
        Reviewed items by how they were resolved.
    after_unblinding : int
        Items that rest on decisions made after unblinding.
    controls : MissedErrors
        The estimate, from hidden controls, of errors among the matches.
    """

    # unset and not null: version 1 writes {} where there is no review
    items: dict[str, int] | UnsetType = UNSET
    after_unblinding: int | UnsetType = UNSET
    controls: MissedErrors | UnsetType = UNSET

    @classmethod
    def of(cls, reviewed: ReviewedRuns) -> ReviewCounts:
        """Count how items were settled; empty where no decision was made."""
        if not reviewed.decisions:
            return cls()
        resolutions = reviewed.resolutions.values()
        return cls(
            items=dict(Counter[str](resolution.how for resolution in resolutions)),
            after_unblinding=sum(resolution.unblinded for resolution in resolutions),
            controls=reviewed.control_errors,
        )


class ProbeTables(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All numbers of reviewed runs: the ``tables.json`` of a release package."""

    schema_version: Literal[1] = SCHEMA_VERSION
    control: str
    pools: tuple[PooledRuns, ...]
    runs: tuple[RunEndpoints, ...]
    shared_keys: tuple[SharedKeys, ...]
    differences: tuple[Difference, ...]
    best_scores: tuple[Duel, ...]
    rates: tuple[Rate, ...]
    effects: tuple[ComponentEffect, ...]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that this version or an older one wrote.

        Raises
        ------
        InputError
            If it cannot be read, has another form, or was written by a newer version.
        """
        data = read_json_object(path, MAX_ROWS)
        version = data.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise InputError(
                f"{path} has the form of version {version}, and this groundfault reads versions up "
                f"to {SCHEMA_VERSION}; read it with a newer groundfault"
            )
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise InputError(
                f"{path} is no JSON of groundfault lab probe report: {first_line(error)}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers; sets of keys become sorted lists."""
        return dict(msgspec.to_builtins(self, order="deterministic"))


class ProbeSummary(ProbeTables, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of ``groundfault lab probe report --json``: sentences, review and all numbers.

    Attributes
    ----------
    open, conclusions : tuple of str
        Sentences: what is not settled yet, and what the results support.
    """

    open: tuple[str, ...]
    conclusions: tuple[str, ...]
    review: ReviewCounts

    @classmethod
    def of(
        cls,
        tables: ProbeTables,
        *,
        open: tuple[str, ...] = (),
        conclusions: tuple[str, ...] = (),
        review: ReviewCounts | None = None,
    ) -> ProbeSummary:
        """Join tables with sentences and the review."""
        numbers = {name: getattr(tables, name) for name in ProbeTables.__struct_fields__}
        return cls(open=open, conclusions=conclusions, review=review or ReviewCounts(), **numbers)

    def to_json(self) -> str:
        """Return the text of the file; `load` reads it back."""
        words = {"open": self.open, "conclusions": self.conclusions, "review": self.review}
        first = msgspec.to_builtins(words)
        return json.dumps(
            first | {name: value for name, value in self.to_dict().items() if name not in first},
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )


@dataclass(frozen=True)
class Summary:
    """Everything that is reported of runs.

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
        """Summarise runs with the review as far as it is."""
        runs = audit.runs
        rows, other_models = tuple(runs.rows), runs.other_models
        return cls(rows, audit.statuses, runs.grammar, runs.manifest, against, other_models)

    @cached_property
    def results(self) -> Results:
        """Return the endpoints of every run."""
        budget, prompts = int(self._read_setting("budget")), int(self._read_setting("valid"))
        tasks = int(self._read_setting("bank")["tasks"])
        rows = [row for row in self.rows if row.policy != BASE]  # they belong to no policy
        budgets = {
            policy: comparison.count_reachable(policy, budget, prompts, tasks)
            for policy in {row.policy for row in rows}
        }
        return Results.of(rows, self.statuses, budgets)

    @cached_property
    def has_keys(self) -> bool:
        """Tell whether answers were compared with keys, and not with those to base wordings."""
        return all(row.base is None for row in self.rows)

    @cached_property
    def control(self) -> str:
        """Return the policy that others are compared with.

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
        """Return the other policies."""
        return tuple(policy for policy in self.results.policies if policy != self.control)

    def difference(self, policy: str, model: str | None) -> Difference | None:
        """Return the difference from the control in the primary endpoint; None if not matched."""
        matches = (
            d
            for d in self.tables.differences
            if (d.policy, d.model, d.endpoint) == (policy, model, PRIMARY)
        )
        return next(matches, None)

    @cached_property
    def tables(self) -> ProbeTables:
        """Return all numbers in the form of the file.

        The component effects are those of the control's rows; none if it is adaptive."""
        results, control = self.results, self.control
        prompts, valid = int(self._read_setting("prompts")), int(self._read_setting("valid"))
        own = [row for row in self.rows if row.policy == control]
        is_adaptive = comparison.is_adaptive(control)
        return ProbeTables(
            control=control,
            pools=results.pools,
            runs=results.runs,
            shared_keys=tuple(
                results.compare_keys(first, second, model)
                for model in results.scopes
                for first, second in combinations(results.policies, 2)
            ),
            differences=tuple(comparison.compute_differences(results, control)),
            best_scores=tuple(comparison.compute_duels(results, control)),
            rates=tuple(
                comparison.estimate_rates(
                    results, self.rows, self.statuses, valid, even=valid == prompts
                )
            ),
            effects=tuple(
                comparison.compute_effects([] if is_adaptive else own, self.statuses, self.grammar)
            ),
        )

    def _read_setting(self, name: str) -> Any:
        if name not in self.manifest:
            raise InputError(f"the manifest of the run lacks {name}; was it changed?")
        return self.manifest[name]
