"""Failure modes of an audit: the columns and rows of their search, and those left out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault import judges
from groundfault.auditing.changes import search_changes
from groundfault.auditing.column_timing import LEAK, OPTIONS, Timing, measure_rules
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.messages import NEVER_REPEATS, UNNAMED
from groundfault.auditing.prepared_audit import PreparedAudit, tabulate_units
from groundfault.auditing.report_schema import DecidingColumn
from groundfault.auditing.results import NamedModes
from groundfault.base.long_work import Progress
from groundfault.core.column_meaning import holds_question
from groundfault.core.columns import Column, Kind, list_examples, profile_examples
from groundfault.core.pairs import clip_changes
from groundfault.core.rules import Rule
from groundfault.core.units import Marks, Units, classify_sizes, number_sizes
from groundfault.engines import SCORED
from groundfault.errors import attempt, list_some
from groundfault.judges.rule import GAP_LEVEL, compute_p_values
from groundfault.modes.changes import BETTER, WORSE
from groundfault.modes.condition import MIN_SUPPORT
from groundfault.modes.examples import add_examples, split_conditions
from groundfault.modes.find import OwnRule, find_modes
from groundfault.modes.mode import Coverage, Mode, ModeSearch
from groundfault.modes.patterns import OrderedTest, PatternCells, judge_in_order
from groundfault.stats import bits
from groundfault.stats.intervals import wilson

_USED = (Kind.FLAG, Kind.NUMBER, Kind.LABEL, Kind.TEXT)
_MAX_NAMES = 12  # columns that a remark lists: two lines of a page
_GAPS = (
    "compared among the examples that have a value, and not joined with other conditions, because "
    "whether there is one goes with the outcome"
)
_DIFFER = "they differ between rows of one group"
_BY_NAME = (
    f"by their names alone; {OPTIONS[Timing.KNOWN][1]} uses a column that was known before the "
    "answer"
)
_ON, _TESTED = "mode {} holds", "mode {} is tested"
_RULE_LEAKS = f"a rule over them predicts over {LEAK:.0%} of the rarer outcome"


def name_modes(
    audit: PreparedAudit,
    losses: NDArray[np.float64],
    *,
    texts: bool = True,
    progress: Progress | None = None,
) -> NamedModes:
    """Name the failure modes of a prepared audit, with their examples and the extent of the search.

    Parameters
    ----------
    audit : PreparedAudit
    losses : float64 array, shape (outcomes, units)
        Losses of all units, NaN where not scored.
    texts : bool
        Whether examples show their texts.
    progress : callable, optional
        Called with the passes of the search.

    Notes
    -----
    Rules may name attributes of the examples that are the same in all rows of a unit: numbers,
    flags, labels and texts. Left out are ids, columns that predict the outcome almost perfectly,
    alone or in a rule, and columns named like the model's answer or its score. The result names
    them with the reason, and how to use them nevertheless. A column that predicts the outcome and
    whose name does not tell its timing is returned as deciding, with its own modes.

    A small table in an engine is read. For a larger table, the sample proposes ordered rules, and
    all other rows judge them; `groundfault.modes.patterns.judge_in_order` states the guarantee.
    """
    if not isinstance(audit, CountedAudit):
        return _name_row_modes(audit, losses, texts=texts, progress=progress)
    named = _search_rows(audit, texts=texts)
    search = named.search
    if audit.searches_all or search is None:
        return named
    rules = {mode.rule: Rule.parse(mode.rule) for mode in named.modes}
    differences = audit.find_disagreements(rules)
    proposals = [mode for mode in named.modes if mode.rule not in differences]
    listed, cells = _judge_by_others(audit, proposals, search)
    remarks = _describe_rows(audit, proposals, len(listed), differences)
    return NamedModes(
        listed,
        structs.replace(
            search,
            outcomes=(_cover(search, cells, len(listed)),),
            searched=len(audit.searched),
            remarks=(*remarks, *search.remarks),
        ),
        tuple(
            structs.replace(one, modes=_judge_by_others(audit, one.modes, search)[0])
            for one in named.deciding
        ),
        unused=named.unused,
    )


def _judge_by_others(
    audit: CountedAudit, proposals: Sequence[Mode], search: ModeSearch
) -> tuple[tuple[Mode, ...], PatternCells]:
    """Return the modes that pass in the rows outside the sample, with their numbers there."""
    cells, level = _count_patterns(audit, proposals, search.outcomes[0].n), float(audit.plan.alpha)
    pairs = zip(proposals, judge_in_order(cells, level), strict=False)
    return tuple(_restate(mode, test, level) for mode, test in pairs), cells


def _name_row_modes(
    audit: PreparedAudit,
    losses: NDArray[np.float64],
    *,
    texts: bool,
    progress: Progress | None = None,
) -> NamedModes:
    table, unused = tabulate_attributes(audit)
    remarks: tuple[str, ...] = ()
    deciding = dict(audit.deciding)
    # whether a value is missing cannot tell which of two runs failed
    gaps = [] if audit.compare else find_gap_columns(audit, table, losses)
    if gaps:
        remarks = (f"{_GAPS}: {list_some(gaps)}",)
    own = tuple(list_own_rules(audit))
    while set(table.columns) - set(audit.plan.within):
        modes, search = _search(audit, table, losses, gaps, own, progress)
        leaks = find_leaking_columns(audit, modes)
        if not leaks:
            rules = [mode.rule for mode in modes if mode.source == "modes"]
            shares = measure_rules(audit.evidence, rules)
            outcomes, model = audit.outcomes, None
            if audit.compare:
                outcomes = (WORSE, BETTER)
                # of different examples each run has its own answers
                model = None if search.like_for_like else audit.compare[1]
                losses = np.stack([clip_changes(losses, less=name == BETTER) for name in outcomes])
            show = partial(add_examples, outcomes=outcomes, model=model, texts=texts)
            of, step = (modes, table, audit.evidence, losses), "the examples of failure modes"
            modes = attempt(audit.failures, step, modes, show, *of)
            search = structs.replace(search, remarks=(*remarks, *search.remarks))
            told = _describe_deciding(audit, deciding, losses)
            return NamedModes(modes, search, told, shares, unused)
        # a text tells by its words, which only a rule shows
        table = table.drop(leaks)
        unused[_RULE_LEAKS] = (*unused.get(_RULE_LEAKS, ()), *leaks)
        deciding |= leaks
    remarks = (*remarks, "no column describes the examples, so no rule could be searched for")
    search = _describe_no_search(audit, losses, remarks)
    told = _describe_deciding(audit, deciding, losses)
    return NamedModes((), search, told, unused=unused)


def _search(
    audit: PreparedAudit,
    table: pl.DataFrame,
    losses: NDArray[np.float64],
    gaps: Sequence[str] = (),
    own_rules: tuple[OwnRule, ...] = (),
    progress: Progress | None = None,
) -> tuple[tuple[Mode, ...], ModeSearch]:
    if audit.compare:
        return search_changes(table, losses, audit.plan, own_rules)
    return find_modes(
        table,
        losses,
        outcomes=audit.outcomes,
        level=float(audit.plan.alpha),
        depth=audit.plan.depth,
        bars=audit.plan.bars,
        within=audit.plan.within,
        gaps=gaps,
        strata=audit.size_classes,
        own_rules=own_rules,
        progress=progress,
    )


def find_leaking_columns(audit: PreparedAudit, modes: Sequence[Mode]) -> dict[str, float]:
    """Return columns of conditions that predict the outcome almost perfectly, such as a grader's
    remark, and how well they predict it.

    A rule of several conditions may predict the outcome without a leak: a model that always fails
    under both, and never elsewhere, has a failure mode.
    """
    rules = [mode.rule for mode in modes if mode.source == "modes"]
    shares = measure_rules(audit.evidence, [c for rule in rules for c in split_conditions(rule)])
    columns: dict[str, float] = {}
    for sql, share in shares.items():
        for name in Rule.parse(sql).columns if share >= LEAK else ():
            columns[name] = max(share, columns.get(name, 0.0))
    allowed = audit.evidence.roles.trusted.union(audit.plan.within)
    # the question was there before the answer
    return {c: s for c, s in columns.items() if c not in allowed and not holds_question(c)}


def _describe_deciding(
    audit: PreparedAudit, deciding: Mapping[str, float], losses: NDArray[np.float64]
) -> tuple[DecidingColumn, ...]:
    """Return columns with the failure modes of each alone, the best predictors first."""
    ordered = sorted(deciding, key=lambda name: -deciding[name])
    searched = ordered[:_MAX_NAMES]
    words = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    within = list(audit.plan.within)
    table = tabulate_units(audit.evidence, [*searched, *within])[0].with_columns(words)
    alone = {
        name: _search(audit, table.select(name, *within), losses)[0]
        for name in searched
        if name in table.columns
    }
    return tuple(
        DecidingColumn(column=name, share=deciding[name], modes=alone.get(name, ()))
        for name in ordered
    )


def tabulate_attributes(audit: PreparedAudit) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    """Return a row a unit of the columns that rules may name or hold fixed, and by reason the
    columns that were left out."""
    used, unused = choose_columns(audit)
    table, varying = tabulate_units(audit.evidence, [*used, *dict.fromkeys(audit.plan.within)])
    if varying:
        unused[_DIFFER] = varying
    return table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)), unused


def choose_columns(audit: PreparedAudit) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Choose the columns that rules may name by their kind and role; also say why not the others.

    Returns
    -------
    used : list of str
    unused : dict of str to tuple of str
        The columns left out, by reason: the end of a sentence on why no rule names them.
    """
    evidence, within = audit.evidence, audit.plan.within
    names = [name for name in evidence.attributes if name not in within]
    during, measured, later = (
        [name for name in audit.list_columns(stage) if name in names]
        for stage in (Timing.DURING, Timing.MEASURED, Timing.FOLLOWS)
    )
    frame = list_examples(evidence).select(_without(names, during, measured, later))
    shown = [column for column in profile_examples(evidence) if column.name in frame.columns]
    columns = [column for column in shown if column.kind is not Kind.CONSTANT]
    # units that an example stands for: a group has several examples
    share = evidence.unit_count / max(len(frame), 1)
    # a date or a list stands in rules by its parts
    wholes = {part.removesuffix(".weekday") for part in names if part.endswith(".weekday")}
    used = [c.name for c in columns if _is_usable(c, frame[c.name], share) and c.name not in wholes]
    idle = [c.name for c in columns if c.name not in used]
    odd = [name for name in idle if not any(part.startswith(f"{name}.") for part in used)]
    by_name = [name for name in later if name not in audit.leaks]
    lacking = _list_lacking(audit)
    reasons = {
        f"they say what happened while an agent ran, {_BY_NAME}": during,
        f"they hold or describe the model's answer, {_BY_NAME}": measured,
        f"they predict over {LEAK:.0%} of the rarer outcome": _without(later, by_name),
        f"they say how an answer was scored, {_BY_NAME}": by_name,
        "not every version has them": lacking,
        "they differ between the answers to one example": _without(evidence.differing, lacking),
        NEVER_REPEATS: [name for name in odd if frame[name].dtype.is_numeric()],
        UNNAMED: [name for name in odd if not frame[name].dtype.is_numeric()],
    }
    return used, {reason: tuple(columns) for reason, columns in reasons.items() if columns}


def _list_lacking(audit: PreparedAudit) -> list[str]:
    """Return columns that differ within an example because a model's rows have no value at all."""
    evidence = audit.evidence
    if not (model := evidence.roles.model):
        return []
    counts = evidence.frame.group_by(model).agg(pl.col(evidence.differing).count())
    return [name for name in evidence.differing if counts[name].min() == 0]


def _is_usable(column: Column, values: pl.Series, share: float) -> bool:
    """Return whether rules may name a column; one of many values if most are of enough units."""
    repeats = column.distinct * MIN_SUPPORT <= share * (len(values) - column.missing)
    return column.kind in _USED or (
        column.kind is Kind.CODE and not values.dtype.is_numeric() and repeats
    )


def _without(names: Sequence[str], *omitted: Sequence[str]) -> list[str]:
    return [name for name in names if not any(name in each for each in omitted)]


def list_own_rules(audit: PreparedAudit) -> Iterator[OwnRule]:
    """Return candidates that the caller asked for; mined ones are tested only on the holdout."""
    own = set(audit.own_rules)
    marks = audit.marks
    for j, candidate in enumerate(audit.library):
        if candidate.name not in own or marks.unusable[j]:
            continue
        tested = ~audit.discovery_mask if audit.is_mined_here(candidate) else None
        if marks.valid is not None:
            defined = bits.unpack(marks.valid[[j]], marks.size)[0]
            tested = defined if tested is None else tested & defined
        yield OwnRule(candidate, bits.unpack(marks.on[[j]], marks.size)[0], tested)


def _describe_no_search(
    audit: PreparedAudit, losses: NDArray[np.float64], remarks: tuple[str, ...]
) -> ModeSearch:
    """Return a search without any rule."""
    if audit.compare and np.isnan(losses).any(axis=0).all():
        search = search_changes(pl.DataFrame(), losses, audit.plan)[1]
        return structs.replace(search, remarks=remarks)
    names = (WORSE, BETTER) if audit.compare else audit.outcomes
    outcomes = tuple(
        Coverage(
            outcome=name,
            n=int((~np.isnan(row)).sum()),
            errors=float(np.nansum(row)),
            covered=0,
            covered_errors=0.0,
        )
        for name, row in zip(names, losses, strict=True)
    )
    return ModeSearch(
        level=float(audit.plan.alpha),
        depth=audit.plan.depth,
        columns=(),
        within=audit.plan.within,
        classes=(),
        outcomes=outcomes,
        detectable={},
        remarks=remarks,
    )


def find_gap_columns(
    audit: PreparedAudit, table: pl.DataFrame, losses: NDArray[np.float64]
) -> list[str]:
    """Find columns of a table whose gaps go with the outcome.

    If values are lost where a model passes, all remaining values go with failing. The values of
    these columns are compared only among units that have one.

    Parameters
    ----------
    audit : PreparedAudit
    table : polars.DataFrame
        One row a unit.
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.

    Notes
    -----
    Each column is tested on all units, two sided at `groundfault.judges.rule.GAP_LEVEL`, for
    each outcome. The tests of values hold the outcomes of units without a value fixed, which this
    test saw.
    """
    names = [
        name
        for name in table.columns
        if 0 < table[name].null_count() < len(table) and name not in audit.plan.within
    ]
    if not names:
        return []
    gaps = np.stack([table[name].is_null().to_numpy() for name in names])
    marks = Marks(len(table), bits.pack(gaps), None, ("",) * len(names))
    units = Units.of(marks, losses, audit.strata)
    hypotheses = np.arange(len(names) * len(losses), dtype=np.intp)
    p = compute_p_values(units, hypotheses, audit.plan, audit.plan.rng("modes/gaps"))
    lowest = p.reshape(len(names), -1).min(axis=1)
    return [name for name, low in zip(names, lowest, strict=True) if low <= GAP_LEVEL]


class _SearchedUnits(PreparedAudit):
    """Searched rows, each a unit, or a group with its number of rows."""

    @cached_property
    def size_classes(self) -> NDArray[np.int64] | None:
        """Return `PreparedAudit.size_classes` of the rows that each group was made of."""
        if SCORED not in self.evidence.frame.columns:
            return None
        return classify_sizes(self.evidence.frame[SCORED].to_numpy())


def _search_rows(audit: CountedAudit, *, texts: bool) -> NamedModes:
    """Return the modes of the searched rows."""
    own_rules = tuple(
        candidate.name
        for candidate in audit.library
        # rows that a finder saw are among all rows, but not among the rows that judge
        if candidate.name in audit.own_rules
        and not audit.varies(candidate)
        and not (audit.searches_all and audit.is_mined_here(candidate))
    )
    rows = _SearchedUnits(
        audit.searched,
        audit.library,
        audit.plan,
        # no part of the sample is held out
        audit.judge if audit.searches_all else judges.get("holm"),
        own_rules=own_rules,
    )
    named = _name_row_modes(rows, rows.losses(), texts=texts)
    if audit.groups is None or not audit.groups.differing:
        return named
    return replace(named, unused={**named.unused, _DIFFER: audit.groups.differing})


def _count_patterns(audit: CountedAudit, modes: Sequence[Mode], scored: int) -> PatternCells:
    """Count all rows outside the sample by the modes that match them."""
    by = {
        _ON.format(i): f"COALESCE({Rule.parse(mode.rule).sql}, FALSE)"
        for i, mode in enumerate(modes)
    }
    by |= {_TESTED.format(i): _find_tested(mode, scored) for i, mode in enumerate(modes)}
    by = {name: sql for name, sql in by.items() if sql}
    scan = audit.scan_cells([], by, parts=False)
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
    """Return an expression for the rows that a mode is tested on; empty for all rows."""
    if mode.context:
        # the first condition is the context of the others
        return f"COALESCE({split_conditions(mode.rule)[0]}, FALSE)"
    return f"({Rule.parse(mode.rule).sql}) IS NOT NULL" if mode.n + mode.n_outside < scored else ""


def _restate(mode: Mode, test: OrderedTest, level: float) -> Mode:
    """Return a mode with the numbers of the rows that judged it."""
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
        # no row that judges had a part in choosing
        corrected=errors / n,
        interval=(float(low), float(high)),
        p_marginal=math.exp(test.log_marginal),
        p_conditional=math.exp(test.log_conditional),
    )


def _cover(search: ModeSearch, cells: PatternCells, listed: int) -> Coverage:
    """Return the joint coverage of the listed modes, on the rows that judged them."""
    n, errors = cells.count(np.ones(len(cells.units), dtype=np.bool_))
    covered, covered_errors = cells.count(np.asarray(cells.on[:, :listed].any(axis=1)))
    return structs.replace(
        search.outcomes[0], n=n, errors=errors, covered=covered, covered_errors=covered_errors
    )


def _describe_rows(
    audit: CountedAudit, proposals: Sequence[Mode], listed: int, differences: Mapping[str, str]
) -> Iterator[str]:
    """Say which rows judged which modes, and which modes were not judged; without a full stop."""
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
