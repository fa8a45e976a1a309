"""An audit by counts alone: prepared on a sample of rows, judged by the cells of all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault import judges
from groundfault.auditing.grouped_evidence import GroupedEvidence
from groundfault.auditing.lazy_evidence import SAMPLE, LazyEvidence
from groundfault.auditing.prepared import (
    PreparedAudit,
    default_finders,
    looks_at_outcomes,
    require_cause,
)
from groundfault.core.candidate import Candidate, Library
from groundfault.core.counted_units import CountedMarks
from groundfault.core.evidence import Evidence
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan
from groundfault.engines.agreement import find_disagreements
from groundfault.engines.cells import CellCounts
from groundfault.errors import InputError, PlanError
from groundfault.judges import choose_judge

JUDGES = ("holm", "bh", "by", "split-holm", "janus", "janus-a", "janus-lite")
"""Judges that read contingency tables and nothing else."""

JOINT_JUDGE = "max-t"
"""Reads the cells of all combinations too."""

GRADED_JUDGES = ("holm", "bh", "by", "split-holm")
"""Judges that take graded losses by counts."""

MAX_JOINT = 30
"""Candidates that are counted jointly: their combinations are the cells of one scan."""

MAX_DEALT = 10**9
"""Rows beyond which failures are not dealt to cells."""

# combinations of candidates among the rows of the sample, of which there are more in all rows
_MAX_PATTERNS = 1000

DISAGREES = "engine"
"""Why a candidate is untestable that means something else to the engine."""


@dataclass(frozen=True)
class CountedAudit(PreparedAudit):
    """A prepared audit whose ``evidence`` is a sample of the discovery rows.

    Attributes
    ----------
    lazy : LazyEvidence
        All rows, each a unit.
    rows : int
        How many these are.
    disagreements : mapping of str to str
        Candidates that mean something else to the engine, and in how many rows of the sample.
    known_marks : CountedMarks, optional
        Of all rows, once they are counted.
    """

    lazy: LazyEvidence = field(kw_only=True)
    rows: int = field(kw_only=True)
    disagreements: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    known_marks: CountedMarks | None = field(default=None, kw_only=True)

    @cached_property
    def discovery_mask(self) -> NDArray[np.bool_]:
        """All rows of the sample: none of the holdout is in it."""
        return np.ones(self.evidence.unit_count, dtype=np.bool_)

    @cached_property
    def marks(self) -> CountedMarks:
        """Of all rows."""
        assert self.known_marks is not None
        return self.known_marks

    @property
    def has_holdout(self) -> bool:
        """Whether the judge holds something out."""
        return self.judge.confirmation != "none"

    @cached_property
    def split_hash(self) -> str:
        """SHA-256 of the expression that splits."""
        part = self.lazy.find_part(self.plan) if self.has_holdout else ""
        return hashlib.sha256(part.encode()).hexdigest()

    @property
    def groups(self) -> GroupedEvidence | None:
        """The rows, where each is a group; None where each is an example."""
        return self.lazy if isinstance(self.lazy, GroupedEvidence) else None

    @property
    def rows_evidence(self) -> LazyEvidence:
        """The table that was named, with its own roles."""
        return self.lazy if self.groups is None else self.groups.source

    def varies(self, candidate: Candidate) -> bool:
        """Whether it reads a column that differs within a group."""
        return self.groups is not None and not set(candidate.columns).isdisjoint(
            self.groups.varying
        )

    def is_uncounted(self, candidate: Candidate) -> bool:
        """Whether an engine need not even be able to evaluate it, since it cannot be tested."""
        return candidate.name in self.disagreements or self.varies(candidate)

    @property
    def unusable(self) -> tuple[str, ...]:
        """Why each candidate cannot be tested, as far as the sample tells; empty where it can."""
        return tuple(
            "varies_within_group"
            if self.varies(candidate)
            else DISAGREES
            if candidate.name in self.disagreements
            else "leak"
            if place in self.leaking_rules
            else ""
            for place, candidate in enumerate(self.library)
        )

    @property
    def sample_losses(self) -> NDArray[np.float64]:
        """Losses of the sample, NaN where not scored."""
        return self.evidence.loss.cast(pl.Float64).fill_null(np.nan).to_numpy()

    @property
    def searches_all(self) -> bool:
        """Whether failure modes are looked for in all rows, since these are few enough to read."""
        return self.rows <= 2 * SAMPLE

    @cached_property
    def searched(self) -> Evidence:
        """Rows that failure modes are looked for in: all of them, or the sample."""
        return self.lazy.take("TRUE") if self.searches_all else self.evidence

    @property
    def sample_rule(self) -> str:
        """The rule that drew the sample."""
        return self.lazy.find_sample(self.plan, self.rows, holdout=self.has_holdout)


def prepare_counted(
    lazy: LazyEvidence,
    plan: Plan | None = None,
    candidates: Sequence[Candidate] | None = None,
    *,
    finders: Sequence[Any] | None = None,
) -> CountedAudit:
    """Freeze everything that is decided before outcomes are counted; parameters as `prepare`.

    Finders and leak checks see a sample of about 20,000 discovery rows, drawn by the plan's seed
    and the rows' ids, and every candidate is evaluated there by the engine and by polars.

    Raises
    ------
    InputError
        If there is nothing to explain, or an outcome is no 0/1.
    PlanError
        If the judge or another setting needs rows.
    """
    declarations = list(candidates or ())
    by_default = candidates is None and finders is None
    finders = _list_finders(candidates, finders)
    plan, judge, reason = choose_counted_judge(lazy, plan, candidates, finders)
    plan = plan.resolve(lift_ranked=judge.lift_ranked, gated=judge.confirmation != "none")
    rows = int(lazy.counter.counts([], {}).rows.sum())
    if not rows:
        raise InputError(f"{lazy.provenance[0]} has no rows")
    holdout = judge.confirmation != "none"
    sample = lazy.take(lazy.find_sample(plan, rows, holdout=holdout))
    start = CountedAudit(
        sample, Library(()), plan, judge, judge_reason=reason, lazy=lazy, rows=rows
    )
    library = Library.of([*declarations, *start.propose(finders, declarations)])
    library.require_columns(sample.frame.columns, where="the evidence")
    own_rules = () if by_default else tuple(c.name for c in library)
    audit = replace(start, library=library, own_rules=own_rules, precomputed_shares=start.shares)
    if reason and judge.name == JOINT_JUDGE:
        audit = _replace_judge(audit)
    _require_countable(library, audit.judge.name)
    require_countable_losses(audit, audit.sample_losses)
    for candidate in library:
        require_cause(start, candidate)
    if lazy.counter.name == "polars":
        # the engine that rules are defined by
        return audit
    rules = {candidate.name: candidate.parsed for candidate in library}
    return replace(audit, disagreements=find_disagreements(lazy.counter, rules, audit.sample_rule))


def choose_counted_judge(
    lazy: LazyEvidence,
    plan: Plan | None,
    candidates: Sequence[Candidate] | None,
    finders: Sequence[Any] | None,
) -> tuple[Plan, Judge, str]:
    """The plan with a judge, the judge, and why it is that one where the plan left it open.

    Parameters are those of `prepare_counted`. Reads nothing of the table.

    Raises
    ------
    PlanError
        If the judge or another setting needs rows, or takes no means of groups.
    """
    mined = any(map(looks_at_outcomes, _list_finders(candidates, finders)))
    mined = mined or any(candidate.mined for candidate in candidates or ())
    plan, reason = choose_judge(plan or Plan(), lazy.roles, mined=mined)
    judge = judges.get(plan.judge, plan.judge_settings)
    _require_counts_enough(plan, judge.name)
    is_grouped = lazy.roles.group not in (None, lazy.roles.id)
    if is_grouped and not reason and judge.name not in GRADED_JUDGES:
        raise PlanError(
            f"means of groups are graded, and {judge.name} counts failures: judge by "
            f"{', '.join(GRADED_JUDGES)}, or audit a sample in memory"
        )
    return plan, judge, reason


def _list_finders(
    candidates: Sequence[Candidate] | None, finders: Sequence[Any] | None
) -> Sequence[Any]:
    if finders is not None:
        return finders
    return default_finders() if candidates is None else []


def _replace_judge(audit: CountedAudit) -> CountedAudit:
    """The audit with holm in place of max-t, where candidates cannot be counted jointly."""
    rules = [candidate.parsed.to_polars() for candidate in audit.library]
    graded = audit.groups is not None or is_graded(audit.sample_losses)
    too_many = graded or len(rules) > MAX_JOINT
    if not too_many:
        named = (rule.alias(str(i)) for i, rule in enumerate(rules))
        too_many = audit.evidence.frame.select(named).n_unique() > _MAX_PATTERNS
    if not too_many and audit.rows < MAX_DEALT:
        return audit
    before, _, _ = audit.judge_reason.rpartition(": ")
    why = (
        "means of groups are graded, and max-t counts failures"
        if audit.groups is not None
        else "losses are graded, and max-t counts failures"
        if graded
        else f"the combinations of {len(rules)} candidates in {audit.rows:,} rows, which max-t "
        "counts, are too many"
    )
    reason = f"{before}: judged by holm, since {why}"
    plan, judge = replace(audit.plan, judge="holm"), judges.get("holm")
    return replace(audit, plan=plan, judge=judge, judge_reason=reason)


def _require_counts_enough(plan: Plan, judge: str) -> None:
    needs = (
        f"judge {judge} needs" if judge not in (*JUDGES, JOINT_JUDGE) else "",
        "within (--within) needs" if plan.within else "",
        "decoys that are drawn (--decoys) need" if plan.decoys is not None else "",
        f"to hold out {plan.holdout_axis} (--holdout-axis) needs"
        if plan.holdout_axis != "examples"
        else "",
    )
    for words in filter(None, needs):
        raise PlanError(
            f"{words} single rows, and an engine gives counts: judge by "
            f"{', '.join(JUDGES)}, or {JOINT_JUDGE} up to {MAX_JOINT} candidates, hold out "
            "examples, or audit a sample in memory"
        )


def _require_countable(library: Library, judge: str) -> None:
    if judge == JOINT_JUDGE and len(library) > MAX_JOINT:
        raise PlanError(
            f"there are {len(library)} candidates, and {JOINT_JUDGE} on counts takes at most "
            f"{MAX_JOINT}, since it counts all their combinations: name fewer, or judge by holm"
        )
    if len(library) == 0:
        raise InputError(
            "no candidates: the evidence has no columns that describe examples; name "
            "candidates or columns"
        )
    fitted = next((c.name for c in library if c.fitted_column is not None), None)
    if fitted is not None:
        raise InputError(
            f"candidate {fitted!r} reads what a finder fitted in Python, which no engine can "
            "evaluate; leave that finder out"
        )


def is_graded(losses: NDArray[np.float64]) -> bool:
    """Whether a loss is neither 0 nor 1, of those that are numbers."""
    return not bool(np.isin(losses[~np.isnan(losses)], (0.0, 1.0)).all())


def require_countable_losses(audit: CountedAudit, losses: NDArray[np.float64]) -> None:
    """Raise where losses are graded and the judge counts failures, or there are too many rows."""
    judge, few = audit.judge.name, audit.rows < MAX_DEALT
    # means of groups of several sizes are permuted within these, even if all are 0 or 1
    graded = audit.groups is not None or is_graded(losses)
    if graded and not (judge in GRADED_JUDGES and few):
        raise InputError(
            f"{audit.lazy.provenance[0]}: outcome {audit.lazy.roles.outcome!r} is graded, and "
            f"{judge} counts failures in {audit.rows:,} rows: judge by {', '.join(GRADED_JUDGES)}, "
            f"which takes grades of fewer than {MAX_DEALT:,} rows, or name a column of failures"
        )


def find_copies(
    lazy: LazyEvidence, library: Library, cells: CellCounts, unusable: Sequence[str]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """For each candidate the earliest that is true for the same rows, or for exactly the others.

    Those whose counts allow it are compared row by row, by the engine.

    Returns
    -------
    first : intp array, shape (L,)
    is_mirrored : bool array, shape (L,)
    """
    first = np.arange(len(library), dtype=np.intp)
    is_mirrored = np.zeros(len(library), dtype=np.bool_)
    values = [spell_value(candidate) for candidate in library]
    defined = [
        cells.defined[:, j] if candidate.missing == "drop" else cells.rows
        for j, candidate in enumerate(library)
    ]
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for j in range(len(library)):
        on = cells.on[:, j]
        # rules that are true nowhere, or everywhere, cannot be tested
        if not unusable[j] and on.any() and (on < defined[j]).any():
            key = min(on.tobytes(), (defined[j] - on).tobytes()), defined[j].tobytes()
            groups.setdefault(key, []).append(j)
    pairs = list(_list_pairs(groups.values()))
    for start in range(0, len(pairs), _PAIRS):
        batch = pairs[start : start + _PAIRS]
        rules = [rule for i, j in batch for rule in _compare(values[i], values[j])]
        differences = lazy.counter.counts(rules, {}).on.sum(axis=0).reshape(-1, 3)
        for (i, j), (gaps, same, other) in zip(batch, differences, strict=True):
            if gaps == 0 and (same == 0 or other == 0) and first[j] == j:
                first[j], is_mirrored[j] = first[i], is_mirrored[i] ^ (same != 0)
    return first, is_mirrored


# pairs of candidates that one scan compares
_PAIRS = 100


def _list_pairs(groups: Iterable[Sequence[int]]) -> Iterator[tuple[int, int]]:
    for members in groups:
        yield from ((i, j) for place, j in enumerate(members) for i in members[:place])


def spell_value(candidate: Candidate) -> str:
    """A candidate's rule with its setting for rows without a value."""
    sql = candidate.parsed.sql
    return f"({sql})" if candidate.missing == "drop" else f"COALESCE({sql}, FALSE)"


def _compare(one: str, other: str) -> tuple[str, str, str]:
    """Rules that hold nowhere if two have values in the same rows, are the same, are opposites."""
    gaps = f"({one} IS NULL) <> ({other} IS NULL)"
    return gaps, f"{one} <> {other}", f"{one} = {other}"
