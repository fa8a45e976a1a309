"""A judged audit: everything that a report is assembled from.

A report also stores the losses of the units (`UnitRecord`) for a later comparison.
"""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report_schema import ReportHashes, UnitRecord
from groundfault.base.arrays import Bools, Floats, Ints, Places
from groundfault.core.candidate import add_fitted_columns
from groundfault.core.counted_units import CountedUnits, JointCells
from groundfault.core.finding import Finding, Verdict
from groundfault.core.judge import ConfirmationBar, Judge
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.core.units import Marks, Units
from groundfault.errors import InputError
from groundfault.judges.rule import Ruling, find_bar, find_duplicates, rule
from groundfault.modes.mode import EVERY_MODEL
from groundfault.stats import bits, contingency
from groundfault.transcripts.judging import JudgedTranscripts

if TYPE_CHECKING:
    from groundfault.auditing.report_schema import DecidingColumn
    from groundfault.base.holdout_events import Opening
    from groundfault.base.ledger import Ledger
    from groundfault.modes.mode import Mode, ModeExample, ModeSearch


MAX_LOSSES = 2_000_000
"""Units times outcomes above which a report keeps no record, since it would take over 10 MB."""


@dataclass(frozen=True)
class NamedModes:
    """The failure modes of an audit.

    Attributes
    ----------
    modes : tuple of Mode
    search : ModeSearch, optional
        None without a search.
    deciding : tuple of DecidingColumn
        Columns that no rule names, although only a person can tell whether one should.
    shares : mapping of str to float
        How well rules of the modes, and conditions in them, predict the outcome.
    unused : mapping of str to tuple of str
        Columns that no rule names, by reason.
    """

    modes: tuple[Mode, ...] = ()
    search: ModeSearch | None = None
    deciding: tuple[DecidingColumn, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    unused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditResults:
    """A prepared audit with its losses, and the verdicts on them.

    Attributes
    ----------
    audit : PreparedAudit
    losses : float64 array, shape (outcomes, units)
        Losses of all units, NaN where not scored.
    ruling : Ruling
    discovery, holdout : Units
        The parts that the ruling rests on; without a holdout, discovery has all units.
    hashes : ReportHashes
    statuses : dict of str to int
        Rows of each status.
    mined : frozenset of str
        Names of the candidates that were mined from the outcomes of the discovery units.
    opening : Opening, optional
        The ledger's record; None without one.
    witness : Ledger, optional
        The ledger of the record.
    sensitivity : mapping of str to Ruling
        Verdicts had all unscored observations failed, or passed.
    frequency : Frequency, optional
        How often random splits confirm each hypothesis; None if the rule was not repeated.
    named : NamedModes
        Failure modes, with their search and the columns that decide the outcome.
    told : JudgedTranscripts
        Behaviours in the runs of agents.
    sample : tuple of ModeExample
        Typical failures, if no mode has examples.
    """

    audit: PreparedAudit
    losses: Floats
    ruling: Ruling
    discovery: Units
    holdout: Units | None
    hashes: ReportHashes
    statuses: Mapping[str, int]
    mined: frozenset[str]
    opening: Opening | None = None
    witness: Ledger | None = None
    sensitivity: Mapping[str, Ruling] = field(default_factory=dict)
    frequency: Frequency | None = None
    named: NamedModes = field(default_factory=NamedModes)
    told: JudgedTranscripts = field(default_factory=JudgedTranscripts)
    sample: tuple[ModeExample, ...] = ()

    @cached_property
    def is_graded(self) -> bool:
        """Return whether a scored row neither passed nor failed: a rate is then a mean loss."""
        return not self.audit.evidence.loss.drop_nulls().is_in([0.0, 1.0]).all()

    @cached_property
    def full(self) -> Units:
        """Return all units."""
        return self.discovery if self.holdout is None else self.audit.units(self.losses)

    @property
    def deciding(self) -> Units:
        """Return the units that verdicts rest on: held out, or all."""
        return self.discovery if self.holdout is None else self.holdout

    @cached_property
    def positions(self) -> dict[int, int]:
        """Return the place of each judged hypothesis in the arrays of the ruling."""
        return self.ruling.positions()

    @cached_property
    def bar(self) -> ConfirmationBar | None:
        """Return the judge's requirements on one true hypothesis among the judged ones."""
        plan = self.audit.plan
        hypotheses = self.ruling.hypotheses
        return find_bar(self.audit.judge, self.discovery, hypotheses, plan, plan.rng("detectable"))

    @cached_property
    def aliases(self) -> list[tuple[str, ...]]:
        """Return for each candidate the names of candidates on the same units.

        Candidates on exactly the other units are listed as "not ...".
        """
        marks, names = self.audit.marks, [c.name for c in self.audit.library]
        first = find_duplicates(marks, complements=not self.audit.compare)
        members: dict[int, list[int]] = {}
        for j, earliest in enumerate(first):
            members.setdefault(int(earliest), []).append(j)
        twins = [[i for i in members[int(first[j])] if i != j] for j in range(len(names))]
        return [
            tuple(names[i] if marks.are_same(i, j) else f"not {names[i]}" for i in others)
            for j, others in enumerate(twins)
        ]


@dataclass(frozen=True)
class Frequency:
    """Outcome of the repeats.

    Attributes
    ----------
    splits : int
    nonempty : float
        Share of splits with a confirmation.
    confirmed : float64 array, shape (L * M,)
        Share of splits that confirm each hypothesis. All splits reuse one sample, so this is not
        the probability that it is true.
    """

    splits: int
    nonempty: float
    confirmed: Floats


def confirmation_frequency(
    judge: Judge, plan: Plan, units: Units, splits: int, jobs: int = 1
) -> Frequency:
    """Repeat the rule over random splits (Janus, appendix C).

    Parameters
    ----------
    judge : Judge
    plan : Plan
        Resolved.
    units : Units
        All units.
    splits : int
    jobs : int
        Processes; the answer is the same for every number. Another backend is chosen with
        ``joblib.parallel_config``.
    """
    from joblib import Parallel, delayed

    # several blocks a process: splits take unequal time, and each task copies the units
    blocks = np.array_split(np.arange(splits), min(splits, max(1, 4 * jobs)))
    parts = Parallel(n_jobs=jobs)(delayed(_repeat)(judge, plan, units, block) for block in blocks)
    hits = np.concatenate(parts)
    return Frequency(splits, float(hits.any(axis=1).mean()), hits.mean(axis=0))


def _repeat(judge: Judge, plan: Plan, units: Units, block: Ints) -> Bools:
    n, hits = len(units), []
    for number in block:
        # a random stream for each split, so that results do not depend on the number of processes
        purpose, discovery, rest = f"robustness/{number}", units, None
        if judge.confirmation != "none":
            holdout = np.zeros(n, dtype=np.bool_)
            holdout[plan.rng(purpose).permutation(n)[: int(to_fraction(plan.holdout) * n)]] = True
            discovery, rest = units.select_units(~holdout), units.select_units(holdout)
        ruling = rule(judge, plan, discovery, rest, units.marks, purpose)
        hits.append([verdict is Verdict.CONFIRMED for verdict in ruling.verdicts])
    return np.array(hits, dtype=np.bool_)


# not settings of the plan: two reports of the same findings group them alike
OVERLAP = 0.5
"""Correlation from which slices share more units than they differ in."""
SHARE_LEFT = 0.5
"""Share of a lift that is left; below it, the larger part is explained."""
LEVEL = 0.05
"""Level of the test of the remaining lift: the usual level of a single test."""


def find_representatives(ruling: Ruling, whole: Marks, confirming: Units) -> dict[int, int]:
    """Assign confirmed hypotheses to a stronger one of the same outcome, their representative.

    Parameters
    ----------
    ruling : Ruling
    whole : Marks
        Marks of all units.
    confirming : Units
        Units that confirmations rest on: held out, or all.

    Notes
    -----
    A hypothesis is assigned to a representative if

    - their slices overlap: the absolute correlation of their memberships is at least one half; or
    - the representative explains it: among judged units that agree in the representative, less
      than half of its lift is left, and the rest is within chance (one-sided Mantel-Haenszel test).

    Two separate failure modes keep their lifts among units that agree in the other one, even if
    their slices overlap much. Representatives are taken by p-value, the smallest first, one at a
    time: a hypothesis that only several representatives together explain is not grouped.
    """
    outcomes = len(confirming.losses)
    deciding = ruling.holdout_result or ruling.screening
    # the p-value that each hypothesis rests on
    p = deciding.p if deciding else None
    strength = {h: 1.0 if p is None else float(p[i]) for h, i in ruling.positions().items()}
    confirmed = sorted(
        (h for h, v in enumerate(ruling.verdicts) if v is Verdict.CONFIRMED),
        key=lambda h: (strength[h], h),
    )
    slices = np.array([h // outcomes for h in confirmed], dtype=np.intp)
    if isinstance(confirming, CountedUnits) and confirming.joint is None:
        # counts of single candidates do not show which slices overlap
        return {}
    alike = _correlate(whole, confirming, slices)
    # unlike a lift, a change on a slice does not describe the other units
    alike = alike if isinstance(confirming, Pairs) else np.abs(alike)
    groups: dict[int, int] = {}
    for a, lead in enumerate(confirmed):
        rest = [
            b
            for b in range(a + 1, len(confirmed))
            if confirmed[b] not in groups and confirmed[b] % outcomes == lead % outcomes
        ]
        if lead in groups or not rest:
            continue
        grouped = (alike[a, rest] >= OVERLAP) | _find_explained(
            confirming, slices[rest], slices[a], lead % outcomes
        )
        groups |= {confirmed[b]: lead for b, under in zip(rest, grouped, strict=True) if under}
    return groups


def _correlate(whole: Marks, confirming: Units, slices: Places) -> Floats:
    """Return the correlation of memberships among all units."""
    if len(slices) < 2:
        return np.zeros((len(slices),) * 2)
    # a slice of all units has no variance: NaN, which no threshold exceeds
    with np.errstate(divide="ignore", invalid="ignore"):
        if not isinstance(confirming, CountedUnits) or confirming.joint is None:
            return np.corrcoef(bits.unpack(whole.on[slices], whole.size).astype(np.float32))
        joint = confirming.joint
        moments = np.cov(joint.on[_places(joint, slices)], fweights=joint.rows)
        deviation = np.sqrt(np.diag(moments))
        return np.asarray(moments / np.outer(deviation, deviation))


class _Members(NamedTuple):
    """Units or cells, by their membership in slices, of which the last is the stronger."""

    on: Bools
    defined: Bools
    scored: Bools
    losses: Floats | Ints
    strata: Ints
    weights: Ints | None = None


def _find_explained(units: Units, slices: Places, lead: int, outcome: int) -> Bools:
    """Return candidates with almost no lift among units that agree in the stronger one."""
    every = np.append(slices, lead)
    if isinstance(units, CountedUnits):
        one = _list_cells(units, every)
    else:
        one = _list_units(units, every, outcome)
    # three strata of each: the representative undefined, false, and true
    within = 3 * one.strata + one.on[-1] + one.defined[-1]
    rest, scored = one.on[:-1] & one.scored[:-1], one.scored[:-1]
    plain, _ = contingency.lift(rest, one.losses, one.strata, scored, one.weights)
    lift_within, z = contingency.lift(rest, one.losses, within, scored, one.weights)
    from scipy.special import ndtri

    # less than half of the lift is left, and the rest is not significant: either alone would group
    # separate modes in small or in large samples
    side = np.sign(plain)
    is_small = side * lift_within < SHARE_LEFT * np.abs(plain)
    return np.asarray(is_small & (side * z < -ndtri(LEVEL)))


def _list_units(units: Units, slices: Places, outcome: int) -> _Members:
    marks = units.marks.select(slices)
    losses = units.changes if isinstance(units, Pairs) else units.losses[outcome]
    on, defined = marks.unpack()
    scored = defined if units.scored is None else defined & units.scored[outcome]
    strata = np.zeros(len(losses), dtype=np.int64) if units.strata is None else units.strata
    return _Members(on, defined, scored, losses, strata)


def _list_cells(units: CountedUnits, slices: Places) -> _Members:
    """Return each cell twice, for its failures and for its passes."""
    joint = units.joint
    assert joint is not None
    places = _places(joint, slices)
    on, defined = (np.tile(each[places], 2) for each in (joint.on, joint.defined))
    losses = np.repeat([1, 0], len(joint.rows))
    weights = np.concatenate([joint.errors, joint.scored - joint.errors])
    return _Members(on & defined, defined, defined, losses, np.zeros_like(losses), weights)


def _places(joint: JointCells, slices: Places) -> Places:
    """Return where candidates stand among those counted jointly."""
    at = {int(j): place for place, j in enumerate(joint.candidates)}
    return np.array([at[int(j)] for j in slices], dtype=np.intp)


def make_record(results: AuditResults, findings: Sequence[Finding]) -> UnitRecord | None:
    """Return the record of an audit; None for a comparison, and for more than `MAX_LOSSES`.

    Parameters
    ----------
    results : AuditResults
    findings : sequence of Finding
    """
    audit = results.audit
    if audit.compare or results.losses.size > MAX_LOSSES:
        return None
    sides = {f.key: _encode_mask(_mark_worse_side(results, f)) for f in findings if f.confirmed}
    # numbers name other rows as soon as one is added: reports are not compared by them
    kept = 0 if audit.evidence.roles.numbered else None
    names = audit.evidence.unit_names[:kept].cast(pl.Binary).to_list()
    digests = b"".join([hashlib.sha256(name).digest() for name in names])
    # a mode may be a candidate that reads a fitted column
    columns = {column for mode in results.named.modes for column in mode.columns}
    fitted = [c for c in audit.library if c.fitted_column and c.fitted_column.name in columns]
    table = add_fitted_columns(audit.evidence.frame, fitted).select(sorted(columns))
    table = audit.evidence.take_first(table)
    return UnitRecord(
        names=_encode(np.frombuffer(digests, dtype="<u8")[::4]),
        losses={
            name: _encode(row.astype("<f4"))
            for name, row in zip(audit.outcomes, results.losses, strict=True)
        },
        findings=sides,
        modes=tuple(_encode_mask(mode.holds(table).to_numpy()) for mode in results.named.modes),
    )


def read_names(record: UnitRecord) -> NDArray[np.uint64]:
    """Return hashes of the units' names, or numbers if not kept: uint64, shape (units,).

    Raises
    ------
    InputError
        If the record is damaged.
    """
    if not record.names:
        losses = next(iter(record.losses.values()), "")
        return np.arange(len(_decode(losses, 4)) // 4, dtype=np.uint64)
    return np.frombuffer(_decode(record.names, 8), dtype="<u8").astype(np.uint64)


def read_losses(record: UnitRecord, outcome: str) -> Floats | None:
    """Return losses of the units for an outcome, NaN where not scored; None for another outcome.

    Of every model it is their mean.

    Raises
    ------
    InputError
        If the record is damaged.
    """
    if outcome == EVERY_MODEL and outcome not in record.losses:
        rows = [_read_row(record, text) for text in record.losses.values()]
        return np.asarray(np.mean(rows, axis=0)) if rows else None
    text = record.losses.get(outcome)
    return None if text is None else _read_row(record, text)


def read_slice(record: UnitRecord, place: str | int) -> Bools | None:
    """Return the units of a slice: bool, shape (units,); None if the record lacks the slice.

    Parameters
    ----------
    record : UnitRecord
    place : str or int
        The key of a finding, or the place of a failure mode, from 0.

    Raises
    ------
    InputError
        If the record is damaged.
    """
    if isinstance(place, str):
        text = record.findings.get(place)
    else:
        text = record.modes[place] if place < len(record.modes) else None
    if text is None:
        return None
    size = len(read_names(record))
    content = np.frombuffer(_decode(text, 1), dtype=np.uint8)
    if len(content) != (size + 7) // 8:
        raise _damage()
    return np.unpackbits(content, count=size, bitorder="little").astype(np.bool_)


def _mark_worse_side(results: AuditResults, finding: Finding) -> Bools:
    """Return the units on the slice of a finding, or off it where failures are fewer on it."""
    place = results.audit.library.find(finding.name)
    on, defined = results.audit.marks.select(np.array([place], dtype=np.intp)).unpack()
    return np.asarray((defined & ~on if finding.is_less_frequent else on)[0])


def _read_row(record: UnitRecord, text: str) -> Floats:
    row = np.frombuffer(_decode(text, 4), dtype="<f4").astype(np.float64)
    if len(row) != len(read_names(record)) or ((row < 0) | (row > 1)).any():
        raise _damage()
    return row


def _encode(values: NDArray[np.generic]) -> str:
    return b64encode(values.tobytes()).decode("ascii")


def _encode_mask(mask: Bools) -> str:
    return _encode(np.packbits(mask, bitorder="little"))


def _decode(text: str, size: int) -> bytes:
    try:
        content = b64decode(text, validate=True)
    except ValueError:
        raise _damage() from None
    if len(content) % size:
        raise _damage()
    return content


def _damage() -> InputError:
    return InputError("the record of units in a report is damaged; write the report again")
