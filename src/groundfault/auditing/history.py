"""Builds in a row: which failure modes are new, gone or growing, in a file that gates add to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from groundfault.auditing.evidence_again import Places
from groundfault.auditing.gate_rows import list_rules, read_gated
from groundfault.auditing.gating import find_table
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import hash_file, report_path
from groundfault.auditing.report_schema import ReportData
from groundfault.base.files import claim, write_text
from groundfault.base.long_work import version
from groundfault.base.reading import read_json_object
from groundfault.core.candidate import Candidate, Library
from groundfault.core.rules import Rule
from groundfault.core.units import Marks
from groundfault.errors import InputError, PlanError, first_line
from groundfault.modes.examples import select_losses
from groundfault.modes.mode import Mode
from groundfault.stats import betting, intervals

RUN_LENGTH = 100
"""Builds between false alarms, at least and on average: two years of weekly builds."""
ALL = "all examples"
SAME = 0.5  # each of the two then shares at least half of its examples with the other
"""Overlap of a mode's examples with an earlier rule's from which the two are the same rule."""


class RuleCount(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule in one build.

    Attributes
    ----------
    rule, outcome, meaning : str
        As of a failure mode; the rule of all examples is empty.
    n, errors : int, float, or None
        None if the table of the build could not be read.
    named : bool
        Whether the report lists it as a failure mode.
    limit : float or None
        In the build that names it first: the upper end of the interval of its failure rate.
    """

    rule: str
    outcome: str
    meaning: str
    n: int | None = None
    errors: float | None = None
    named: bool = False
    limit: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= (self.errors or 0) <= (self.n or 0) or not 0 <= (self.limit or 0) <= 1:
            raise ValueError(f"the rule {self.rule!r} has impossible numbers")

    @property
    def rate(self) -> float | None:
        """Return the failure rate; None without counted units."""
        return None if not self.n or self.errors is None else self.errors / self.n


class GatedBuild(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A report that a gate tested.

    Attributes
    ----------
    name, report, groundfault_version : str
        The name of the build, and the SHA-256 of its report.
    rules : tuple of RuleCount
        Rules of earlier builds in their order, then rules that this build names first.
    note : str
        Reason that rules of earlier builds were not counted.
    """

    name: str
    report: str
    groundfault_version: str
    rules: tuple[RuleCount, ...]
    note: str = ""


class BuildHistory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The builds of a file, the earliest first."""

    builds: tuple[GatedBuild, ...] = ()
    schema_version: Literal[1] = 1


@dataclass(frozen=True)
class Trend:
    """A rule over builds.

    Attributes
    ----------
    rule, outcome, meaning : str
    counts : tuple of RuleCount or None
        In each build; None before it was named first.
    limit : float
        Largest failure rate that does not count as a rise.
    evidence, bar : float
        Logs of the e-detector after the last build, and of the alarm level.
    """

    rule: str
    outcome: str
    meaning: str
    counts: tuple[RuleCount | None, ...]
    limit: float
    evidence: float
    bar: float

    @property
    def is_growing(self) -> bool:
        """Return whether the detector has reached the bar."""
        return self.evidence >= self.bar

    @property
    def status(self) -> str:
        """Return growing, new, known or gone; empty if the last two builds did not name it."""
        named = [one is not None and one.named for one in self.counts]
        if self.is_growing:
            return "growing"
        if named[-1]:
            return "known" if any(named[:-1]) else "new"
        return "gone" if any(named[-2:]) else ""


def add_build(
    path: str | Path,
    report: str | Path,
    *,
    name: str | None = None,
    evidence: Places | None = None,
) -> BuildHistory:
    """Add a report to a history file, and return the history; a report counts once.

    Parameters
    ----------
    path : path
        JSON file; made if it is missing.
    report : path
    name : str, optional
        Name of the build; by default its number.
    evidence : path or sequence of path, optional
        Table of the report, in which rules of earlier builds are counted.

    Raises
    ------
    InputError
        If a file cannot be read, another process adds a build at this moment, or the report
        compares two models or names no failure modes.
    """
    with claim(Path(path).parent, path):
        return _add_build(Path(path), report, name, evidence)


def _add_build(
    path: Path, report: str | Path, name: str | None, evidence: Places | None
) -> BuildHistory:
    history, now = read_history(path), read_gated(report)
    if now.manifest.compare or now.mode_search is None:
        raise InputError(
            "a history counts failure modes of one run, and this report "
            + ("compares two models" if now.manifest.compare else "was made without them")
        )
    digest = hash_file(report_path(report))
    if any(build.report == digest for build in history.builds):
        return history
    first = list_first(history.builds)
    audit, note = find_table(now, report, evidence) if first else (None, "")
    inside = {} if audit is None else _mark_rules(audit, [*first, *now.modes])
    known = {
        (one.outcome, one.rule): [mode for mode in now.modes if _is_alike(one, mode, inside)]
        for one in first
    }
    counts = _count_again(first, now, audit, inside)
    fresh = [mode for mode in now.modes if not any(mode in modes for modes in known.values())]
    build = GatedBuild(
        name=name or str(len(history.builds) + 1),
        report=digest,
        groundfault_version=version("groundfault"),
        rules=(
            *(structs.replace(one, named=bool(known[one.outcome, one.rule])) for one in counts),
            *_name_fresh(first, fresh, now),
        ),
        note=note,
    )
    history = BuildHistory(builds=(*history.builds, build))
    write_text(path, msgspec.json.format(msgspec.json.encode(history), indent=1).decode())
    return history


def read_history(path: str | Path) -> BuildHistory:
    """Read a history file; a missing file has no builds.

    Raises
    ------
    InputError
        If it is something else.
    """
    place = Path(path)
    if not place.exists():
        return BuildHistory()
    try:
        return msgspec.convert(read_json_object(place), BuildHistory)
    except (msgspec.ValidationError, InputError) as error:
        raise InputError(
            f"{place} is no history of builds ({first_line(error)}): name a new file, which gate "
            "--history makes"
        ) from None


def list_first(builds: Sequence[GatedBuild]) -> list[RuleCount]:
    """List every rule with its first counts."""
    first: dict[tuple[str, str], RuleCount] = {}
    for build in builds:
        for one in build.rules:
            first.setdefault((one.outcome, one.rule), one)
    return list(first.values())


def _mark_rules(
    audit: PreparedAudit, rules: Sequence[RuleCount | Mode]
) -> dict[str, NDArray[np.bool_]]:
    """Mark the units of each rule whose columns the table has."""
    columns = set(audit.evidence.frame.columns)
    names = {one.rule for one in rules if one.rule}
    chosen = [rule for rule in names if set(Rule.parse(rule).columns) <= columns]
    if not chosen:
        return {}
    library = Library(tuple(Candidate(rule, rule, missing="off") for rule in chosen))
    return dict(zip(chosen, Marks.of(audit.evidence, library).unpack()[0], strict=True))


def _is_alike(one: RuleCount, mode: Mode, inside: Mapping[str, NDArray[np.bool_]]) -> bool:
    """Return whether a mode is a rule of earlier builds, by its wording or its examples."""
    if one.outcome != mode.outcome:
        return False
    a, b = inside.get(one.rule), inside.get(mode.rule)
    alike = a is not None and b is not None and (a & b).sum() >= SAME * (a | b).sum()
    return bool(alike or one.rule in list_rules(mode))


def _count_again(
    first: Sequence[RuleCount],
    now: ReportData,
    audit: PreparedAudit | None,
    inside: Mapping[str, NDArray[np.bool_]],
) -> Iterator[RuleCount]:
    """Yield the rules of earlier builds, with their counts in a report and its table."""
    assert now.mode_search is not None
    whole = {cover.outcome: cover for cover in now.mode_search.outcomes}
    for one in first:
        counts: tuple[int | None, float | None] = (None, None)
        if one.outcome in whole and not one.rule:
            counts = whole[one.outcome].n, whole[one.outcome].errors
        elif one.outcome in whole and audit is not None and one.rule in inside:
            losses = select_losses(one.outcome, audit.losses(), audit.outcomes)[inside[one.rule]]
            counts = int((~np.isnan(losses)).sum()), float(np.nansum(losses))
        yield structs.replace(one, n=counts[0], errors=counts[1], limit=None)


def _name_fresh(
    first: Sequence[RuleCount], modes: Sequence[Mode], now: ReportData
) -> Iterator[RuleCount]:
    """Yield all examples of an outcome that no earlier build has, then failure modes."""
    assert now.mode_search is not None
    known = {one.outcome for one in first if not one.rule}
    for cover in now.mode_search.outcomes:
        if cover.n and cover.outcome not in known:
            limit = intervals.wilson(cover.errors, cover.n, 1 - float(now.plan.alpha))[1]
            yield RuleCount("", cover.outcome, ALL, cover.n, cover.errors, limit=float(limit))
    for mode in modes:
        words = mode.rule, mode.outcome, mode.meaning, mode.n, mode.errors
        yield RuleCount(*words, named=True, limit=mode.interval[1])


def list_trends(history: BuildHistory, run_length: int = RUN_LENGTH) -> list[Trend]:
    """List every rule over builds, with the evidence that its failure rate is above its limit.

    Parameters
    ----------
    history : BuildHistory
    run_length : int
        Least average number of builds until a false alarm about any rule.

    Notes
    -----
    The k-th rule gets the share w = 1 / (k (k + 1)) of all alarms, and its alarm is an e-detector
    of at least run_length / w; see `groundfault.stats.betting.detect_rise`. The weighted sum of the
    detectors is also an e-detector, since the shares sum to at most 1 and each begins at its own
    build. So if no rule's failure rate is above its limit, the first alarm about any rule comes
    after ``run_length`` builds or more on average. The build that first names a rule fixes its
    limit; that build's own counts are not used.
    """
    if run_length < 1:
        raise PlanError(f"run_length is {run_length}; it counts builds, from 1")
    trends = []
    for number, one in enumerate(list_first(history.builds), 1):
        key = (one.outcome, one.rule)
        counts = [
            next((each for each in build.rules if (each.outcome, each.rule) == key), None)
            for build in history.builds
        ]
        later = counts[next(i for i, each in enumerate(counts) if each is not None) + 1 :]
        evidence, limit = -math.inf, 1.0 if one.limit is None else one.limit
        if later and 0 < limit < 1:
            values = [(each.errors, each.n) if each else (None, None) for each in later]
            errors, sizes = np.array(values, dtype=np.float64).T
            evidence = float(betting.detect_rise(errors, sizes, limit)[-1])
        bar = math.log(run_length * number * (number + 1))
        words = (one.rule, one.outcome, one.meaning)
        trends.append(Trend(*words, tuple(counts), limit, evidence, bar))
    return trends
