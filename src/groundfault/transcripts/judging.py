"""Judging: how runs fail and which behaviours announce it, with bars that hold for all lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from groundfault.base.long_work import stream
from groundfault.core.evidence import Evidence
from groundfault.stats.intervals import wilson
from groundfault.stats.multiple import holm
from groundfault.stats.risk_sets import NEVER, RiskContrasts, contrast_runs
from groundfault.transcripts.behaviours import Behaviours, find_behaviours, list_flags
from groundfault.transcripts.steps import read_transcripts

Bools = NDArray[np.bool_]

LANDMARKS = (1, 2, 3, 5, 8)
"""Turns after which runs that still go on are compared: close at first, where most runs are."""
_FAILED = 0.5
"""Graded losses above it count as failed, as everywhere that outcomes are two."""
_EXCERPTS, _STEPS, _WORDS = 3, 3, 200
"""Behaviours with excerpts, steps of each, and characters of a step: to see it at a glance."""
_SHARE, _POWER = 0.3, 0.8416
"""A behaviour of 30 % of the runs, and the normal quantile of 80 % power: what could be seen."""


class ModeShare(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs that fail inside a failure mode, and the number of them that show a behaviour."""

    rule: str
    failing: int
    shown: int


class Behaviour(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happens during runs: how they fail, and no cause.

    Attributes
    ----------
    name : str
        In words, such as "repeats a call".
    failing, failing_runs, passing, passing_runs : int
        Runs of each outcome that show it, and all runs of the outcome.
    interval : pair of float
        Of its share among failing runs, 95 %.
    first_turn : float or None
        Median turn at which it first happens in failing runs.
    compared, failed : int
        Runs in which it happened while runs of the same task with both outcomes still went on, and
        how many of these failed.
    expected : float
        How many failures the runs of the same tasks that went on as long give.
    p : float or None
        Adjusted, two-sided; None where it was not compared.
    modes : tuple of ModeShare
        One for each failure mode.
    whole : bool
        Told of whole runs, by a scanner, a code or a description. Then runs of the same task (or
        model) and of as many turns are compared, and p is adjusted for these alone.
    """

    name: str
    failing: int
    failing_runs: int
    passing: int
    passing_runs: int
    interval: tuple[float, float]
    first_turn: float | None
    compared: int = 0
    failed: int = 0
    expected: float = 0.0
    p: float | None = None
    modes: tuple[ModeShare, ...] = ()
    whole: bool = False


class Announcement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A behaviour after which runs that still go on fail more often, or less.

    Attributes
    ----------
    landmark : int
        Turns that all these runs have behind them, and go on.
    behaviour : str
    runs, failed, rest, rest_failed : int
        Runs that had shown it by then, and those that had not; how many of each fail.
    expected : float
        Failures that the runs of the same tasks, still going, give.
    p : float
        Adjusted, two-sided.
    """

    landmark: int
    behaviour: str
    runs: int
    failed: int
    rest: int
    rest_failed: int
    expected: float
    p: float


class TranscriptSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The search of transcripts: its level, and the runs and behaviours in it.

    Attributes
    ----------
    level : float
        Chance of at most this that any behaviour or announcement is named by chance.
    runs, failing : int
        Scored runs with steps.
    within : str
        The runs that were compared: "of the same task", or "of the same model".
    tested : int
        Behaviours that were compared.
    at_risk : dict of str to int
        Runs that still went on after so many turns, where both outcomes were among them.
    detectable : dict of str to float
        For each landmark the least difference of failure rates that is found four times in five, of
        a behaviour of 30 % of these runs.
    """

    level: float
    runs: int
    failing: int
    within: str
    tested: int
    at_risk: dict[str, int] = {}
    detectable: dict[str, float] = {}


class RunExcerpt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The turn of one run at which a behaviour begins; or, of a passing run, the same turn.

    Attributes
    ----------
    behaviour, example : str
    failing : bool
    turn : int
    steps : tuple of str
        Speaker, action, and the first words.
    """

    behaviour: str
    example: str
    failing: bool
    turn: int
    steps: tuple[str, ...]


class JudgedTranscripts(Struct, frozen=True):
    """The answers of an audit about transcripts; see `groundfault.auditing.report.Report`."""

    behaviours: tuple[Behaviour, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    transcripts: TranscriptSearch | None = None
    excerpts: tuple[RunExcerpt, ...] = ()


def judge_transcripts(
    evidence: Evidence,
    level: float,
    modes: Mapping[str, Bools] | None = None,
    *,
    texts: bool = True,
) -> JudgedTranscripts:
    """Judge the behaviours in the runs of evidence; the result is empty without transcripts.

    Parameters
    ----------
    evidence : Evidence
    level : float
        Family-wise error level, in (0, 1).
    modes : mapping of str to bool array, shape (len(evidence),), optional
        Rows on which each failure mode holds.
    texts : bool
        Whether to add the decisive steps of a failing and a passing run of the first behaviours.

    Notes
    -----
    Runs are compared with runs of the same task that go on as long, each model at its own level:
    `groundfault.stats.risk_sets.contrast_runs`. Where every task has one run, announcements compare
    runs of the same model over all tasks, and how runs fail is described alone. Where examples
    are in groups and each has one run, neither is tested: runs of a group depend on each other.
    """
    scored = evidence.loss.is_not_null().to_numpy()
    steps, flags = evidence.transcripts, list_flags(evidence.frame.select(evidence.roles.during))
    if not (len(steps) or flags):
        return JudgedTranscripts()
    found = find_behaviours(steps.filter(pl.Series(scored).gather(steps["run"])), len(evidence))
    rows = np.flatnonzero(scored & ((found.turns > 0) | (not len(steps))))
    failed = evidence.loss.fill_null(0.0).to_numpy()[rows] > _FAILED
    tasks, models = _number(evidence, evidence.roles.id), _number(evidence, evidence.roles.model)
    repeated = len(np.unique(tasks[rows])) < len(rows)
    is_free = repeated or evidence.roles.group is None
    used = ~found.at_end & is_free
    first = found.first[:, rows]
    strata = (tasks if repeated else models)[rows]
    levels = models[rows] if repeated else np.zeros(len(rows), dtype=np.int64)
    contrasts = contrast_runs(
        first[used],
        found.untold[rows],
        failed,
        strata,
        levels,
        LANDMARKS,
        level,
        stream(0, "transcripts"),
        sums=repeated,
    )
    inside = {rule: mask[rows] & failed for rule, mask in (modes or {}).items()}
    behaviours = _describe(found.names, first, failed, inside)
    if repeated:
        places = np.flatnonzero(used)
        for j, place in enumerate(places):
            behaviours[place] = _add_contrast(behaviours[place], contrasts, j)
    names = [found.names[place] for place in np.flatnonzero(used)]
    told = {name: values[rows] for name, values in flags.items()}
    # as long to the turn: classes of lengths would leave some of what time alone does
    alike = np.unique(np.stack([strata, found.turns[rows]]), axis=1, return_inverse=True)[1]
    behaviours += _judge_flags(told, alike.reshape(-1), levels, failed, inside, level, is_free)
    behaviours.sort(key=lambda b: (2.0 if b.p is None else b.p, -b.failing))
    return JudgedTranscripts(
        tuple(behaviours),
        tuple(_list_announcements(contrasts, names, level)),
        TranscriptSearch(
            level=level,
            runs=len(rows),
            failing=int(failed.sum()),
            within="of the same task" if repeated else "of the same model" if is_free else "",
            tested=int((~np.isnan(contrasts.p)).any(axis=0).sum()),
            at_risk={str(k): int(contrasts.at_risk[i]) for i, k in enumerate(LANDMARKS, 1)},
            detectable=_find_detectable(contrasts),
        ),
        _list_excerpts(evidence, behaviours, found, rows[failed], rows[~failed]) if texts else (),
    )


def _list_excerpts(
    evidence: Evidence,
    behaviours: Sequence[Behaviour],
    found: Behaviours,
    failing: NDArray[np.int64],
    passing: NDArray[np.int64],
) -> tuple[RunExcerpt, ...]:
    """List the turn at which the first behaviours begin in a failing run, and in a passing one."""
    ids = evidence.frame[evidence.roles.id or ""].cast(pl.String)
    picks: list[tuple[str, int, bool, int]] = []
    distinct: dict[tuple[int, int], Behaviour] = {}
    for one in behaviours:
        if one.failing and not one.whole and (one.p is None or one.failed > one.expected):
            # those of equal counts happen in the same runs
            distinct.setdefault((one.failing, one.passing), one)
    for one in list(distinct.values())[:_EXCERPTS]:
        turns = found.first[found.names.index(one.name)]
        others = {ids[int(row)]: int(row) for row in passing if turns[row] == NEVER}
        shown = failing[turns[failing] < NEVER].tolist()
        row = next((row for row in shown if ids[row] in others), shown[0])
        picks.append((one.name, row, True, int(turns[row])))
        if (other := others.get(ids[row])) is not None:
            picks.append((one.name, other, False, int(min(turns[row], found.turns[other]))))
    rows = sorted({row for _, row, _, _ in picks})
    steps = read_transcripts(evidence.frame, evidence.roles, evidence.account, rows)
    return tuple(
        RunExcerpt(
            behaviour=name,
            example=str(ids[row]),
            failing=side,
            turn=turn,
            steps=tuple(
                " ".join(filter(None, (s["actor"], s["kind"], s["name"])))
                + f": {(s['text'] or s['arguments'] or '')[:_WORDS]}"
                for s in steps.filter(run=row, turn=turn).head(_STEPS).iter_rows(named=True)
            ),
        )
        for name, row, side, turn in picks
    )


def _number(evidence: Evidence, column: str | None) -> NDArray[np.int64]:
    """Return the values of a column as whole numbers from 0."""
    if column is None:
        return np.zeros(len(evidence), dtype=np.int64)
    return evidence.frame[column].cast(pl.String).rank("dense").to_numpy().astype(np.int64) - 1


def _judge_flags(
    flags: Mapping[str, NDArray[np.float64]],
    alike: NDArray[np.int64],
    levels: NDArray[np.int64],
    failed: Bools,
    inside: Mapping[str, Bools],
    level: float,
    is_free: bool,
) -> list[Behaviour]:
    """Judge columns about whole runs among runs of one task and one length.

    Without the length, any behaviour that becomes likelier with time would go with failing.
    """
    behaviours = []
    for name, values in flags.items():
        known = ~np.isnan(values)
        first = np.where(values[known] == 1, 1, NEVER).astype(np.int32)[None]
        parts = {rule: mask[known] for rule, mask in inside.items()}
        (one,) = _describe([name], first, failed[known], parts)
        one = msgspec.structs.replace(one, whole=True, first_turn=None)
        if is_free:
            # as if each took two turns and it happened in the first: one step is compared
            length = np.full(first.shape[1], 2)
            arrays = length, failed[known], alike[known], levels[known]
            one = _add_contrast(one, contrast_runs(first, *arrays, (), level, stream(0, name)), 0)
        behaviours.append(one)
    tested = [place for place, one in enumerate(behaviours) if one.p is not None]
    adjusted = holm(np.array([behaviours[place].p for place in tested], dtype=np.float64))
    for place, p in zip(tested, adjusted.tolist(), strict=True):
        behaviours[place] = msgspec.structs.replace(behaviours[place], p=p)
    return behaviours


def _describe(
    names: Sequence[str],
    first: NDArray[np.int32],
    failed: Bools,
    inside: Mapping[str, Bools],
) -> list[Behaviour]:
    failing_runs, behaviours = int(failed.sum()), []
    for name, turn in zip(names, first, strict=True):
        shown = turn < NEVER
        failing = int(shown[failed].sum())
        low, high = wilson(failing, failing_runs, 0.95) if failing_runs else (0.0, 1.0)
        behaviours.append(
            Behaviour(
                name=name,
                failing=failing,
                failing_runs=failing_runs,
                passing=int(shown.sum()) - failing,
                passing_runs=len(failed) - failing_runs,
                interval=(float(low), float(high)),
                first_turn=float(np.median(turn[shown & failed])) if failing else None,
                modes=tuple(
                    ModeShare(rule=rule, failing=int(rows.sum()), shown=int(shown[rows].sum()))
                    for rule, rows in inside.items()
                ),
            )
        )
    return behaviours


def _add_contrast(behaviour: Behaviour, contrasts: RiskContrasts, place: int) -> Behaviour:
    p = float(contrasts.p[0, place])
    return msgspec.structs.replace(
        behaviour,
        compared=int(contrasts.runs[0, place]),
        failed=int(contrasts.failed[0, place]),
        expected=float(contrasts.expected[0, place]),
        p=None if math.isnan(p) else p,
    )


def _list_announcements(
    contrasts: RiskContrasts, names: Sequence[str], level: float
) -> list[Announcement]:
    """Return the passing behaviours by landmark, surest first; equal splits of runs once."""
    announcements = []
    for i, landmark in enumerate(LANDMARKS, 1):
        kept: set[float] = set()
        # of a behaviour and its absence, the one that fails more often
        for j in np.lexsort((-contrasts.z[i], contrasts.p[i])):
            numbers = {
                name: int(getattr(contrasts, name)[i, j])
                for name in ("runs", "failed", "rest", "rest_failed")
            }
            key = round(abs(float(contrasts.z[i, j])), 6)
            if contrasts.p[i, j] <= level and key not in kept:
                kept.add(key)
                announcements.append(
                    Announcement(
                        landmark=landmark,
                        behaviour=names[j],
                        expected=float(contrasts.expected[i, j]),
                        p=float(contrasts.p[i, j]),
                        **numbers,
                    )
                )
    return announcements


def _find_detectable(contrasts: RiskContrasts) -> dict[str, float]:
    """Return the least difference of failure rates that would be found, at each landmark."""
    needed = (contrasts.bar + _POWER) / math.sqrt(_SHARE * (1 - _SHARE))
    numbers = zip(LANDMARKS, contrasts.spread[1:], contrasts.at_risk[1:], strict=True)
    return {
        str(landmark): float(min(1.0, needed * math.sqrt(spread) / runs))
        for landmark, spread, runs in numbers
        if spread > 0 and math.isfinite(contrasts.bar)
    }
