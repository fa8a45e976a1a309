"""Failure modes by counts: proposed in a sample of rows, judged by the patterns of all others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault import judges
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.counting import scan_cells
from groundfault.auditing.failure_modes import name_modes
from groundfault.auditing.prepared import PreparedAudit
from groundfault.core.rules import Rule
from groundfault.core.units import classify_sizes, number_sizes
from groundfault.engines.agreement import find_disagreements
from groundfault.engines.groups import SCORED
from groundfault.modes.examples import split_conditions
from groundfault.modes.mode import Coverage, Mode, ModeSearch
from groundfault.modes.patterns import OrderedTest, PatternCells, judge_in_order
from groundfault.stats.intervals import wilson

_ON, _TESTED = "mode {} holds", "mode {} is tested"


class _SearchedUnits(PreparedAudit):
    """Rows that are searched, each a unit: a group of so many rows where it says so."""

    @cached_property
    def size_classes(self) -> NDArray[np.int64] | None:
        """As `PreparedAudit.size_classes`, of the rows that each group was made of."""
        if SCORED not in self.evidence.frame.columns:
            return None
        return classify_sizes(self.evidence.frame[SCORED].to_numpy())


def name_counted_modes(
    audit: CountedAudit, *, texts: bool = True
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """The failure modes of an audit by counts, and what was searched.

    Parameters
    ----------
    audit : CountedAudit
    texts : bool
        Whether examples show their texts.

    Notes
    -----
    A table that is small enough is read, and its modes are those of an audit in memory. Of a
    larger one, the sample proposes rules and their order, and all other rows judge them: see
    `groundfault.modes.patterns.judge_in_order` for the guarantee.
    """
    modes, search = _search(audit, texts=texts)
    if audit.searches_all:
        return modes, search
    differences = _find_disagreements(audit, modes)
    proposals = [mode for mode in modes if mode.rule not in differences]
    cells = _count_patterns(audit, proposals, search.outcomes[0].n)
    level = float(audit.plan.alpha)
    tests = list(judge_in_order(cells, level))
    listed = [_restate(mode, test, level) for mode, test in zip(proposals, tests, strict=False)]
    remarks = _describe(audit, proposals, len(tests), differences)
    return tuple(listed), structs.replace(
        search,
        outcomes=(_cover(search, cells, len(listed)),),
        searched=len(audit.searched),
        remarks=(*remarks, *search.remarks),
    )


def _search(audit: CountedAudit, *, texts: bool) -> tuple[tuple[Mode, ...], ModeSearch]:
    """The modes of the rows that are searched."""
    own_rules = tuple(
        candidate.name
        for candidate in audit.library
        # rows that a finder saw are among all rows, and none of them among those that judge
        if candidate.name in audit.own_rules
        and not audit.varies(candidate)
        and not (audit.searches_all and audit.is_mined_here(candidate))
    )
    rows = _SearchedUnits(
        audit.searched,
        audit.library,
        audit.plan,
        # none of the sample is held out
        audit.judge if audit.searches_all else judges.get("holm"),
        own_rules=own_rules,
    )
    return name_modes(rows, rows.losses(), texts=texts)


def _find_disagreements(audit: CountedAudit, modes: Sequence[Mode]) -> dict[str, str]:
    """Rules that mean something else to the engine."""
    if audit.lazy.counter.name == "polars":
        return {}
    rules = {mode.rule: Rule.parse(mode.rule) for mode in modes}
    return find_disagreements(audit.lazy.counter, rules, audit.sample_rule)


def _count_patterns(audit: CountedAudit, modes: Sequence[Mode], scored: int) -> PatternCells:
    """All rows by the modes that hold for them, without the rows of the sample."""
    by = {
        _ON.format(i): f"COALESCE({Rule.parse(mode.rule).sql}, FALSE)"
        for i, mode in enumerate(modes)
    }
    by |= {_TESTED.format(i): _find_tested(mode, scored) for i, mode in enumerate(modes)}
    by = {name: sql for name, sql in by.items() if sql}
    scan = scan_cells(audit, [], by, parts=False)
    sample = audit.evidence
    here = sample.frame.select(Rule(sql, ()).to_polars().alias(name) for name, sql in by.items())
    patterns = pl.concat([scan.cells.keys.select(*by), here])
    units = np.concatenate([scan.cells.rows, np.full(len(sample), -1)])
    losses = np.concatenate([scan.loss, audit.sample_losses])
    strata = np.zeros(len(units), dtype=np.int64)
    if scan.strata is not None:
        strata = np.concatenate([scan.strata, number_sizes(sample.frame[SCORED].to_numpy())])
    everywhere = np.ones(len(units), dtype=np.bool_)

    def stack(names: str) -> NDArray[np.bool_]:
        keys = (names.format(i) for i in range(len(modes)))
        columns = [patterns[key].to_numpy() if key in by else everywhere for key in keys]
        return np.array(columns, dtype=np.bool_).reshape(len(modes), len(units)).T

    cells = PatternCells(stack(_ON), stack(_TESTED), losses, units, strata)
    return cells.take(~np.isnan(losses))


def _find_tested(mode: Mode, scored: int) -> str:
    """An expression for the rows that a mode is tested on; empty where it is all of them."""
    if mode.context:
        # the first condition is what the others hold in
        return f"COALESCE({split_conditions(mode.rule)[0]}, FALSE)"
    return f"({Rule.parse(mode.rule).sql}) IS NOT NULL" if mode.n + mode.n_outside < scored else ""


def _restate(mode: Mode, test: OrderedTest, level: float) -> Mode:
    """A mode with the numbers of the rows that judged it."""
    n, errors = test.inside
    low, high = wilson(errors, n, 1 - level)
    return structs.replace(
        mode,
        n=n,
        errors=errors,
        n_outside=test.outside[0],
        errors_outside=test.outside[1],
        n_new=test.new[0],
        errors_new=test.new[1],
        interval=(float(low), float(high)),
        p_marginal=math.exp(test.log_marginal),
        p_conditional=math.exp(test.log_conditional),
    )


def _cover(search: ModeSearch, cells: PatternCells, listed: int) -> Coverage:
    """What the listed modes cover together of the rows that judged them."""
    n, errors = cells.count(np.ones(len(cells.units), dtype=np.bool_))
    covered, covered_errors = cells.count(np.asarray(cells.on[:, :listed].any(axis=1)))
    return structs.replace(
        search.outcomes[0], n=n, errors=errors, covered=covered, covered_errors=covered_errors
    )


def _describe(
    audit: CountedAudit, proposals: Sequence[Mode], listed: int, differences: Mapping[str, str]
) -> Iterator[str]:
    """What was judged by which rows, and what was not; without a full stop."""
    yield (
        f"rules were looked for in {len(audit.searched):,} rows drawn by their ids "
        f"({audit.sample_rule}), of which examples, alternatives and doses are; all numbers of a "
        "mode are of the other rows"
    )
    if listed < len(proposals):
        yield (
            f"of {len(proposals)} rules that were proposed, number {listed + 1} did not stand in "
            f"the other rows ({proposals[listed].meaning}), and none after it was tested"
        )
    if differences:
        names = ", ".join(f"{rule} ({how})" for rule, how in differences.items())
        yield f"{audit.lazy.counter.name} disagrees with groundfault, so not tested: {names}"
