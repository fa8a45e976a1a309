"""Endpoints of runs after review: rows and prompt keys, counted apart and never added.

A row is one query, and a prompt that is asked twice makes two. A prompt key is one prompt, however
often it was asked, by whichever policy. Rows are summed; keys are united.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from statistics import fmean

from msgspec import Struct, field

from groundfault.errors import InputError
from groundfault.probes.review.statuses import Status
from groundfault.probes.running.runs import ProbeRow

EXCLUDED: tuple[Status, ...] = ("extraction_artifact", "format_artifact", "invalid_prompt")
"""Statuses of rows that were routed to review and turned down."""

Keys = frozenset[str]


class RowCounts(Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of rows of each kind; only counts of rows can be added to them.

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
        """Return the counts of one row."""
        name = "confirmed" if status == "confirmed_model_error" else status
        audited = {} if status == "unaudited" else {name: 1}
        return cls(
            queries=1,
            refused=int(row.status == "refused"),
            failed=int(row.status == "error"),
            mismatches=int(row.signal == "mismatch"),
            unreadable=int(row.signal == "unreadable"),
            reviewed=len(audited),
            waiting=int(row.is_routed and not audited),
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
        """Return how many were sent to review by the machine."""
        return self.mismatches + self.unreadable

    @property
    def excluded(self) -> int:
        """Return how many were reviewed and turned down for a reason that is not the model's."""
        return self.extraction_artifact + self.format_artifact + self.invalid_prompt


def group_by_run(rows: Iterable[ProbeRow]) -> dict[tuple[str, str, int], list[ProbeRow]]:
    """Return the rows of each model, policy and seed."""
    by_run: dict[tuple[str, str, int], list[ProbeRow]] = {}
    for row in rows:
        by_run.setdefault((row.model, row.policy, row.seed), []).append(row)
    return by_run


def is_open(row: ProbeRow, status: Status) -> bool:
    """Tell whether a row is disputed, or waits for review."""
    # a match that nobody reviewed is not open: no signal points at it
    return status == "disputed" or (row.is_routed and status == "unaudited")


class KeySets(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The prompt keys of each kind; sets of keys are united, so that a key counts once.

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
        """Return the key sets of one row."""
        key, none = frozenset((row.key,)), frozenset[str]()
        confirmed = status == "confirmed_model_error"
        return cls(
            asked=key,
            mismatched=key if row.signal == "mismatch" else none,
            confirmed=key if confirmed else none,
            open=key if is_open(row, status) else none,
            tasks=frozenset((row.task,)) if confirmed else none,
        )

    @classmethod
    def union(cls, sets: Iterable[KeySets]) -> KeySets:
        """Unite sets; a key that is confirmed anywhere is open nowhere."""
        members = list(sets)
        united = {
            name: frozenset[str]().union(*(getattr(one, name) for one in members))
            for name in cls.__struct_fields__
        }
        return cls(**united | {"open": united["open"] - united["confirmed"]})


class RunEndpoints(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The endpoints of one model, policy and seed.

    Attributes
    ----------
    model, policy : str
    seed : int
    budget : int
        Queries that it was given.
    first : int or None
        The query of the first audited failure; None where there is none within the budget: it is
        censored there.
    best : float or None
        The largest failure score; it saturates at 1 with the first mismatch.
    audited_yield : float
        Confirmed rows over the budget; what is unaudited or turned down counts as nothing.
    unique_audited_keys : int
    rows : RowCounts
    keys : KeySets
    curve : tuple of int
        Unique audited keys after each query.
    """

    model: str
    policy: str
    seed: int
    budget: int
    first: int | None
    best: float | None
    audited_yield: float
    unique_audited_keys: int
    rows: RowCounts
    keys: KeySets
    curve: tuple[int, ...]

    @classmethod
    def of(
        cls, rows: Sequence[ProbeRow], statuses: Mapping[str, Status], budget: int
    ) -> RunEndpoints:
        """Return the endpoints of the rows of one run, in the order of their queries."""
        pairs = [(row, statuses.get(row.id, "unaudited")) for row in rows]
        confirmed = [row for row, status in pairs if status == "confirmed_model_error"]
        # the first query that confirmed each key: a repeat is no second discovery
        first_queries: dict[str, int] = {}
        for row in confirmed:
            first_queries[row.key] = min(row.query, first_queries.get(row.key, row.query))
        new = set(first_queries.values())
        counts = sum((RowCounts.of(row, status) for row, status in pairs), RowCounts())
        keys = KeySets.union(KeySets.of(row, status) for row, status in pairs)
        return cls(
            model=rows[0].model,
            policy=rows[0].policy,
            seed=rows[0].seed,
            budget=budget,
            first=min(new, default=None),
            best=max((row.score for row in rows if row.score is not None), default=None),
            # over the budget and not over the reviewed: leaving rows unreviewed must not raise it
            audited_yield=counts.confirmed / budget,
            unique_audited_keys=len(keys.confirmed),
            rows=counts,
            keys=keys,
            curve=tuple(accumulate(int(row.query in new) for row in rows)),
        )


class PooledRuns(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs of one policy: all seeds of a model, or of all models where ``model`` is None.

    Attributes
    ----------
    model : str or None
    policy : str
    budget : int
        Queries that the runs were given.
    audited_yield : float
        Confirmed rows over the budget.
    best : float or None
        Mean over runs of the best score.
    first : int or None
        Median query of the first audited failure, the lower of two; None beyond the budget.
    runs, runs_with_failure : int
        Runs, and those with an audited failure.
    unique_audited_keys, tasks : int
        Audited keys, and their tasks; a key on which two models err counts once.
    rows : RowCounts
    keys : KeySets
    """

    model: str | None
    policy: str
    budget: int
    audited_yield: float
    best: float | None
    first: int | None
    runs: int
    runs_with_failure: int = field(name="runs_with_a_failure")
    unique_audited_keys: int
    tasks: int
    rows: RowCounts
    keys: KeySets

    @classmethod
    def of(cls, model: str | None, policy: str, runs: Sequence[RunEndpoints]) -> PooledRuns:
        """Pool runs of a policy."""
        budget = sum(run.budget for run in runs)
        rows = sum((run.rows for run in runs), RowCounts())
        keys = KeySets.union(run.keys for run in runs)
        scores = [run.best for run in runs if run.best is not None]
        queries = sorted(run.first for run in runs if run.first is not None)
        middle = (len(runs) - 1) // 2
        return cls(
            model=model,
            policy=policy,
            budget=budget,
            audited_yield=rows.confirmed / budget if budget else 0.0,
            best=fmean(scores) if scores else None,
            first=queries[middle] if middle < len(queries) else None,
            runs=len(runs),
            runs_with_failure=len(queries),
            unique_audited_keys=len(keys.confirmed),
            tasks=len(keys.tasks),
            rows=rows,
            keys=keys,
        )


class SharedKeys(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The audited keys of two policies: found by both, by the first alone, by the second alone."""

    model: str | None
    policies: tuple[str, str]
    both: Keys
    first: Keys
    second: Keys


@dataclass(frozen=True)
class Results:
    """All runs of a folder, and how they are pooled.

    Attributes
    ----------
    runs : tuple of RunEndpoints
        By model, policy and seed.

    Raises
    ------
    InputError
        If there is no run.
    """

    runs: tuple[RunEndpoints, ...]

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("there is no query to report; ask first (groundfault lab probe run)")

    @classmethod
    def of(
        cls,
        rows: Iterable[ProbeRow],
        statuses: Mapping[str, Status],
        budget: int | Mapping[str, int] | None = None,
    ) -> Results:
        """Return the endpoints of rows with their statuses.

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
        runs = []
        for (model, policy, seed), run_rows in sorted(group_by_run(rows).items()):
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
        """Return the names, sorted."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        return tuple(sorted({run.policy for run in self.runs}))

    @property
    def scopes(self) -> tuple[str | None, ...]:
        """Return the models and, of several, None for all of them."""
        return (*self.models, None) if len(self.models) > 1 else self.models

    def select(self, policy: str, model: str | None = None) -> list[RunEndpoints]:
        """Return the runs of a policy: of one model, or of all."""
        return [run for run in self.runs if run.policy == policy and model in (None, run.model)]

    def pool(self, policy: str, model: str | None = None) -> PooledRuns:
        """Pool the runs of a policy: of one model, or of all."""
        return PooledRuns.of(model, policy, self.select(policy, model))

    @cached_property
    def pools(self) -> tuple[PooledRuns, ...]:
        """Return each policy by model and, of several models, over all."""
        pools = (self.pool(policy, model) for model in self.scopes for policy in self.policies)
        return tuple(pool for pool in pools if pool.runs)

    @cached_property
    def rows(self) -> RowCounts:
        """Return the counts of rows of all runs."""
        return sum((run.rows for run in self.runs), RowCounts())

    @cached_property
    def keys(self) -> KeySets:
        """Return the keys of all runs."""
        return KeySets.union(run.keys for run in self.runs)

    def compare_keys(self, first: str, second: str, model: str | None = None) -> SharedKeys:
        """Tell which audited keys two policies found."""
        one, two = (self.pool(policy, model).keys.confirmed for policy in (first, second))
        return SharedKeys(
            model=model, policies=(first, second), both=one & two, first=one - two, second=two - one
        )
