"""Changes between two models, and the losses that a report stores for a later comparison."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault.auditing.detectable import ChangeDesign
from groundfault.auditing.messages import (
    describe_guarantee,
    equal_p,
    format_percent,
    format_points,
)
from groundfault.auditing.report_schema import OverallChange, UnitRecord
from groundfault.auditing.results import AuditResults
from groundfault.base.arrays import Bools, Floats
from groundfault.core.candidate import add_fitted_columns
from groundfault.core.finding import Cell, Elsewhere, Finding, Verdict
from groundfault.core.pairs import Pairs
from groundfault.core.plan import Plan, to_fraction
from groundfault.errors import InputError
from groundfault.judges.confirm import is_at_most
from groundfault.modes.changes import find_changes
from groundfault.modes.find import OwnRule
from groundfault.modes.mode import EVERY_MODEL, Mode, ModeSearch
from groundfault.stats import bits, flips, paired
from groundfault.stats.bits import Bits

_SEEN = (0.05, 0.1, 0.2, 0.3)
"""Shares of the units for which a comparison states the rise that it could have missed."""


def search_changes(
    table: pl.DataFrame,
    losses: Floats,
    plan: Plan,
    own_rules: tuple[OwnRule, ...] = (),
    named: int = 0,
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """Return the modes of a change, and the rise of failures that could have been missed.

    Parameters
    ----------
    table : polars.DataFrame
        One row a unit, of the columns that rules may name.
    losses : float64 array, shape (2, units)
        Before and after; NaN where not scored.
    plan : Plan
    own_rules : tuple of OwnRule
    named : int
        As in `find_changes`.
    """
    level = float(plan.alpha)
    modes, search, bar = find_changes(
        table, losses, level=level, own_rules=own_rules, bars=plan.bars, named=named
    )
    design = ChangeDesign.of_losses(losses, level=2 * bar)
    units = int((~np.isnan(losses).all(axis=0)).sum())
    least = design.by_prevalence(units if search.like_for_like else search.outcomes[0].n, _SEEN)
    return modes, structs.replace(search, detectable={f"{v:g}": x for v, x in least.items()})


def measure_change(results: AuditResults) -> OverallChange | None:
    """Return the change over all units, held out or not; None without a comparison.

    Parameters
    ----------
    results : AuditResults
    """
    if not results.audit.compare:
        return None
    level = float(to_fraction(results.audit.plan.alpha))
    return measure_overall(results.losses, level, results.named.search)


def measure_overall(losses: Floats, level: float, search: ModeSearch | None) -> OverallChange:
    """Return the change over all units.

    Parameters
    ----------
    losses : float64 array, shape (2, units)
        Before and after; NaN where not scored.
    level : float
        Error level, in (0, 1).
    search : ModeSearch, optional
        The search for modes of the change, which is one test together with this.
    """
    both = losses[:, ~np.isnan(losses).any(axis=0)]
    changes = both[1] - both[0]
    n = len(changes)
    low, high = paired.change([changes.sum()], [(changes**2).sum()], [n], 1 - level)
    moved = float(changes.sum() / max(1, n)), float(low[0]), float(high[0])
    before, after = both.sum(axis=1) / max(1, n)
    if search is not None and search.like_for_like:
        moved, n = search.like_for_like, int((~np.isnan(losses)).sum())
        before, after = np.nanmean(losses, axis=1)
    if search is None or search.overall is None:
        p = float(flips.p_values(bits.pack(np.ones((1, n), dtype=np.bool_)), changes)[0])
    else:
        p = search.overall[int(moved[0] < 0)]
    return OverallChange(
        n=n,
        error_rates=(float(before), float(after)),
        change=moved[0],
        interval=moved[1:],
        p=p,
        confirmed=bool(is_at_most(np.array([p]), level)[0]),
    )


def tell_change(finding: Finding, contrast: Elsewhere | None, results: AuditResults) -> Finding:
    """Return the finding of a comparison with its contrast, and its sentence.

    Parameters
    ----------
    finding : Finding
    contrast : Elsewhere, optional
        None if it was not tested.
    results : AuditResults
    """
    compare, cell = results.audit.compare, finding.holdout or finding.full
    if compare is None or finding.verdict is Verdict.UNTESTABLE:
        return replace(finding, elsewhere=contrast)
    if finding.confirmed:
        sentence = _tell_confirmed(finding, cell, compare, contrast, results)
    else:
        small = finding.verdict is Verdict.TOO_SMALL
        start = "A real change, smaller than was asked for" if small else "No change beyond chance"
        sentence = (
            f"{start}: when {finding.meaning}, the failure rate of {compare[1]} is "
            f"that of {compare[0]} {format_points(cell.lift)} points."
        )
    return replace(finding, sentence=sentence, elsewhere=contrast)


def _tell_confirmed(
    finding: Finding,
    cell: Cell,
    compare: tuple[str, str],
    contrast: Elsewhere | None,
    results: AuditResults,
) -> str:
    first, second = compare
    plan = results.audit.plan
    more = "more" if (cell.lift or 0) > 0 else "less"
    where = "held out, " if finding.holdout else ""
    level = format_percent(1 - float(to_fraction(plan.alpha)))
    corrected = finding.estimate
    ends = corrected.interval if corrected else cell.interval
    interval = " (selected)"
    if corrected:
        interval += f"; corrected for that {format_points(corrected.effect)}"
    if ends:
        interval += f", {level} interval {format_points(ends[0])} to {format_points(ends[1])}"
    chance = "" if cell.p_adjusted is None else f"; adjusted {equal_p(cell.p_adjusted)}"
    rest = ""
    if contrast is not None:
        differs = "differs from" if contrast.differs else "cannot be told from"
        rest = f" It {differs} the change elsewhere, {format_points(contrast.change)} points."
    guarantee = describe_guarantee(
        results.audit.judge, plan, len(results.ruling.hypotheses), results.opening
    )
    return (
        f"Confirmed change: {second} fails {more} often than {first} when {finding.meaning} "
        f"({where}{first} {cell.off_errors:g}/{cell.off}, {second} {cell.on_errors:g}/{cell.on}; "
        f"change {format_points(cell.lift)} points{interval}{chance}; {guarantee}).{rest}"
    )


def conclude(least: float | None, prevalence: float) -> str:
    """Return the sentence about a comparison's power, which never claims that there is no change.

    Parameters
    ----------
    least : float, optional
        Least change found with 80 % power on a slice of ``prevalence``; None if no change is found.
    prevalence : float
    """
    where = f"in {prevalence:.0%} of the examples"
    if least is None:
        return f"This comparison is too small to find any change {where} four times in five."
    return (
        f"A change of at least {100 * least:.3g} points {where} is found four times in five. "
        "Smaller changes may be missed."
    )


def contrast_changes(results: AuditResults) -> dict[int, Elsewhere]:
    """Return how the change on each tested slice differs from the change elsewhere, by hypothesis.

    Empty without a comparison.

    Parameters
    ----------
    results : AuditResults

    Notes
    -----
    Uses the units that verdicts rest on: held out, or all. Adjusted by max-T over all tests, see
    `groundfault.stats.flips.max_t`.
    """
    pairs = results.discovery if results.holdout is None else results.holdout
    hypotheses = results.ruling.hypotheses
    if not isinstance(pairs, Pairs) or not len(hypotheses):
        return {}
    plan, units = results.audit.plan, np.flatnonzero(pairs.present)
    scored = pairs.take(units.astype(np.intp)).select(hypotheses)
    marks = scored.marks
    everything = bits.pack(np.ones((1, marks.size), dtype=np.bool_))
    # the units that each candidate is defined for and leaves out
    rest = (everything if marks.valid is None else marks.valid) & ~marks.on
    rng = plan.rng("audit/elsewhere")
    p = flips.max_t(marks.on, scored.changes, plan.permutations, rng, elsewhere=rest)
    rows = _describe_rests(scored, rest, p, plan)
    return {h: rows[i] for h, i in results.positions.items() if i in rows}


def _describe_rests(pairs: Pairs, rest: Bits, p: Floats, plan: Plan) -> dict[int, Elsewhere]:
    """Compare each candidate that matches some but not all units with the other units."""
    sums, squares = pairs.change_sums()
    changes = pairs.changes
    rest_sums = bits.sums(rest, np.stack([changes, changes**2]))
    on, off = bits.count(pairs.marks.on), bits.count(rest)
    level = 1 - float(to_fraction(plan.alpha))
    low, high = paired.change(sums, squares, on, level)
    rest_low, rest_high = paired.change(rest_sums[:, 0], rest_sums[:, 1], off, level)
    differs = is_at_most(p, plan.alpha)
    rows = {}
    for i in np.flatnonzero((on > 0) & (off > 0)):
        here, there = float(sums[i] / on[i]), float(rest_sums[i, 0] / off[i])
        # square and add (Newcombe): an interval of a difference from the intervals of its parts
        down = np.hypot(here - low[i], rest_high[i] - there)
        up = np.hypot(high[i] - here, there - rest_low[i])
        rows[int(i)] = Elsewhere(
            n=int(off[i]),
            change=there,
            difference=here - there,
            interval=(float(here - there - down), float(here - there + up)),
            p_adjusted=float(p[i]),
            differs=bool(differs[i]),
        )
    return rows


MAX_LOSSES = 2_000_000
"""Units times outcomes above which a report keeps no record, since it would take over 10 MB."""


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
    names = audit.evidence.unit_names.cast(pl.Binary).to_list()
    digests = b"".join([hashlib.sha256(name).digest() for name in names])
    _, first = np.unique(audit.evidence.unit_index, return_index=True)
    # a mode may be a candidate that reads a fitted column
    columns = {column for mode in results.named.modes for column in mode.columns}
    fitted = [c for c in audit.library if c.fitted_column and c.fitted_column.name in columns]
    table = add_fitted_columns(audit.evidence.frame, fitted)[first]
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
    """Return hashes of the units' names: uint64, shape (units,).

    Raises
    ------
    InputError
        If the record is damaged.
    """
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
