"""Endpoints of runs after review: rows and prompt keys, counted apart and never added.

A row is one query, and a prompt that is asked twice makes two. A prompt key is one prompt, however
often it was asked, by whichever policy. Rows are summed; keys are united.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from groundfault.base.deprecation import rename_members
from groundfault.errors import InputError
from groundfault.probes.running.runs import ProbeRow

if TYPE_CHECKING:
    from groundfault.probes.review.statuses import Status

EXCLUDED: tuple[Status, ...] = ("extraction_artifact", "format_artifact", "invalid_prompt")
"""Statuses of rows that were routed to review and turned down."""

Keys = frozenset[str]


class RowCounts(Struct, frozen=True, forbid_unknown_fields=True):
    """How many rows there are of each kind; only counts of rows can be added to them.

    Attributes
    ----------
    queries : int
    refused, failed : int
        Unanswered: the model declined, or the service failed.
    mismatches, unreadable : int
        By their routing signal, which is no label of an error.
    reviewed : int
        With any status but unaudited.
    confirmed, no_error, disputed, extraction_artifact, format_artifact, invalid_prompt : int
        By their status.
    waiting : int
        Routed to review and unaudited.
    """

    queries: int = 0
    refused: int = 0
    failed: int = 0
    mismatches: int = 0
    unreadable: int = 0
    reviewed: int = 0
    confirmed: int = 0
    no_error: int = 0
    disputed: int = 0
    extraction_artifact: int = 0
    format_artifact: int = 0
    invalid_prompt: int = 0
    waiting: int = 0

    @classmethod
    def of(cls, row: ProbeRow, status: Status) -> RowCounts:
        """One row."""
        routed = row.signal in ("mismatch", "unreadable")
        audited = (
            {"confirmed" if status == "confirmed_model_error" else status: 1}
            if status != "unaudited"
            else {}
        )
        return cls(
            queries=1,
            refused=int(row.status == "refused"),
            failed=int(row.status == "error"),
            mismatches=int(row.signal == "mismatch"),
            unreadable=int(row.signal == "unreadable"),
            reviewed=len(audited),
            waiting=int(routed and not audited),
            **audited,
        )

    def __add__(self, other: RowCounts) -> RowCounts:
        if not isinstance(other, RowCounts):
            return NotImplemented
        return RowCounts(
            *(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__)
        )

    @property
    def routed(self) -> int:
        """Sent to review by the machine."""
        return self.mismatches + self.unreadable

    @property
    def excluded(self) -> int:
        """Reviewed, and no confirmed error for a reason that is not the model's."""
        return self.extraction_artifact + self.format_artifact + self.invalid_prompt


@dataclass(frozen=True)
class KeySets:
    """Which prompt keys there are of each kind; sets of keys are united, so that a key counts once.

    Attributes
    ----------
    asked, mismatched : frozenset of str
    confirmed : frozenset of str
        With a confirmed model error: the primary endpoint is their number.
    open : frozenset of str
        Neither confirmed nor settled otherwise: a row of theirs is disputed, or routed and
        unaudited.
    tasks : frozenset of str
        The tasks of the confirmed keys.
    """

    asked: Keys = frozenset()
    mismatched: Keys = frozenset()
    confirmed: Keys = frozenset()
    open: Keys = frozenset()
    tasks: Keys = frozenset()

    @classmethod
    def of(cls, row: ProbeRow, status: Status) -> KeySets:
        """Those of one row."""
        key = frozenset((row.key,))
        routed = row.signal in ("mismatch", "unreadable")
        confirmed = status == "confirmed_model_error"
        return cls(
            asked=key,
            mismatched=key if row.signal == "mismatch" else frozenset(),
            confirmed=key if confirmed else frozenset(),
            # a match that nobody reviewed is not open: no signal points at it
            open=key if status == "disputed" or (routed and status == "unaudited") else frozenset(),
            tasks=frozenset((row.task,)) if confirmed else frozenset(),
        )

    @classmethod
    def union(cls, sets: Iterable[KeySets]) -> KeySets:
        """Those of all; a key that is confirmed anywhere is open nowhere."""
        members = list(sets)
        united = {
            each.name: frozenset[str]().union(*(getattr(one, each.name) for one in members))
            for each in fields(cls)
        }
        return cls(**united | {"open": united["open"] - united["confirmed"]})


@dataclass(frozen=True)
class RunEndpoints:
    """One model, policy and seed.

    Attributes
    ----------
    model, policy : str
    seed : int
    budget : int
        Queries that it was given.
    rows : RowCounts
    keys : KeySets
    first : int or None
        The query of the first audited failure; None where there is none within the budget: it is
        censored there.
    best : float or None
        The largest failure score; it saturates at 1 with the first mismatch.
    curve : tuple of int
        Unique audited keys after each query.
    """

    model: str
    policy: str
    seed: int
    budget: int
    rows: RowCounts
    keys: KeySets
    first: int | None
    best: float | None
    curve: tuple[int, ...]

    @classmethod
    def of(
        cls, rows: Sequence[ProbeRow], statuses: Mapping[str, Status], budget: int
    ) -> RunEndpoints:
        """The endpoints of the rows of one run, in the order of their queries."""
        statuses_of_rows = [statuses.get(row.id, "unaudited") for row in rows]
        pairs = list(zip(rows, statuses_of_rows, strict=True))
        confirmed = [row for row, status in pairs if status == "confirmed_model_error"]
        scores = [row.score for row in rows if row.score is not None]
        # the first query that confirmed each key: a repeat is no second discovery
        new = {
            min(r.query for r in confirmed if r.key == key) for key in {r.key for r in confirmed}
        }
        return cls(
            model=rows[0].model,
            policy=rows[0].policy,
            seed=rows[0].seed,
            budget=budget,
            rows=sum((RowCounts.of(row, status) for row, status in pairs), RowCounts()),
            keys=KeySets.union(KeySets.of(row, status) for row, status in pairs),
            first=min((row.query for row in confirmed), default=None),
            best=max(scores, default=None),
            curve=tuple(accumulate(int(row.query in new) for row in rows)),
        )

    @property
    def audited_yield(self) -> float:
        """Confirmed rows over the budget; what is unaudited or turned down counts as nothing."""
        # over the budget and not over the reviewed: leaving rows unreviewed must not raise it
        return self.rows.confirmed / self.budget


@rename_members(found="runs_with_failure")
@dataclass(frozen=True)
class PooledRuns:
    """Runs of one policy: all seeds of a model, or of all models where ``model`` is None."""

    model: str | None
    policy: str
    runs: tuple[RunEndpoints, ...]

    @property
    def budget(self) -> int:
        """Queries that the runs were given."""
        return sum(run.budget for run in self.runs)

    @cached_property
    def rows(self) -> RowCounts:
        """Rows of all runs."""
        return sum((run.rows for run in self.runs), RowCounts())

    @cached_property
    def keys(self) -> KeySets:
        """Keys of all runs; a key on which two models err counts once."""
        return KeySets.union(run.keys for run in self.runs)

    @property
    def audited_yield(self) -> float:
        """Confirmed rows over the budget."""
        return self.rows.confirmed / self.budget

    @property
    def best(self) -> float | None:
        """Mean over runs of the best score."""
        scores = [run.best for run in self.runs if run.best is not None]
        return fmean(scores) if scores else None

    @property
    def runs_with_failure(self) -> int:
        """Runs with an audited failure."""
        return sum(run.first is not None for run in self.runs)

    @property
    def first(self) -> int | None:
        """Median query of the first audited failure, the lower of two; None beyond the budget."""
        queries = sorted(run.first for run in self.runs if run.first is not None)
        middle = (len(self.runs) - 1) // 2
        return queries[middle] if middle < len(queries) else None


@dataclass(frozen=True)
class SharedKeys:
    """The audited keys of two policies: found by both, by the first alone, by the second alone."""

    both: Keys
    first: Keys
    second: Keys


@rename_members(shared="compare_keys")
@dataclass(frozen=True)
class Results:
    """All runs of a folder, and how they are pooled.

    Attributes
    ----------
    runs : tuple of Run
        By model, policy and seed.

    Raises
    ------
    InputError
        If there is no run.
    """

    runs: tuple[RunEndpoints, ...]

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("there is no query to report; ask first (groundfault probe run)")

    @classmethod
    def of(
        cls,
        rows: Iterable[ProbeRow],
        statuses: Mapping[str, Status],
        budget: int | Mapping[str, int] | None = None,
    ) -> Results:
        """The endpoints of rows with their statuses.

        Parameters
        ----------
        rows : iterable of ProbeRow
        statuses : mapping of ProbeRow.id to status
            A row that is not named is unaudited.
        budget : int or mapping of policy to int, optional
            Queries that each run was given; left out, those it made.

        Raises
        ------
        InputError
            If there is no row, a query comes twice, or a run made more queries than it was given.
        """
        by_run: dict[tuple[str, str, int], list[ProbeRow]] = {}
        for row in rows:
            by_run.setdefault((row.model, row.policy, row.seed), []).append(row)
        runs = []
        for (model, policy, seed), run_rows in sorted(by_run.items()):
            run_rows.sort(key=lambda row: row.query)
            where = f"the run of {model}, {policy}, seed {seed}"
            if len({row.query for row in run_rows}) < len(run_rows):
                raise InputError(f"{where} holds a query twice: its trajectory was changed")
            run_budget = budget.get(policy) if isinstance(budget, Mapping) else budget
            run_budget = len(run_rows) if run_budget is None else run_budget
            if len(run_rows) > run_budget:
                raise InputError(
                    f"{where} made {len(run_rows)} queries, more than its budget of {run_budget}"
                )
            runs.append(RunEndpoints.of(run_rows, statuses, run_budget))
        return cls(tuple(runs))

    @property
    def models(self) -> tuple[str, ...]:
        """Their names, sorted."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def policies(self) -> tuple[str, ...]:
        """Their names, sorted."""
        return tuple(sorted({run.policy for run in self.runs}))

    def pool(self, policy: str, model: str | None = None) -> PooledRuns:
        """The runs of a policy: of one model, or of all."""
        runs = (run for run in self.runs if run.policy == policy and model in (None, run.model))
        return PooledRuns(model, policy, tuple(runs))

    @cached_property
    def pools(self) -> tuple[PooledRuns, ...]:
        """Each policy by model and, of several models, over all."""
        models: list[str | None] = [*self.models, *([None] if len(self.models) > 1 else [])]
        pools = (self.pool(policy, model) for model in models for policy in self.policies)
        return tuple(pool for pool in pools if pool.runs)

    @cached_property
    def rows(self) -> RowCounts:
        """Rows of all runs."""
        return sum((run.rows for run in self.runs), RowCounts())

    @cached_property
    def keys(self) -> KeySets:
        """Keys of all runs."""
        return KeySets.union(run.keys for run in self.runs)

    def compare_keys(self, first: str, second: str, model: str | None = None) -> SharedKeys:
        """Which audited keys two policies found."""
        one, two = (self.pool(policy, model).keys.confirmed for policy in (first, second))
        return SharedKeys(one & two, one - two, two - one)
