"""Failure modes of an audit: what the search for them is given, and what it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from groundfault.auditing.gap_columns import find_gap_columns
from groundfault.auditing.leaks import LEAK, measure_rules
from groundfault.auditing.prepared import PreparedAudit
from groundfault.auditing.stages import OPTIONS, Timing, list_columns
from groundfault.auditing.unit_table import tabulate_units
from groundfault.core.column_names import holds_question
from groundfault.core.columns import Column, Kind, profile
from groundfault.core.rules import Rule
from groundfault.modes.condition import MIN_SUPPORT
from groundfault.modes.examples import add_examples, split_conditions
from groundfault.modes.find import OwnRule, find_modes
from groundfault.modes.mode import Coverage, Mode, ModeSearch
from groundfault.stats import bits

_USED = (Kind.FLAG, Kind.NUMBER, Kind.LABEL, Kind.TEXT)
_MAX_NAMES = 12
_GAPS = (
    "compared among the examples that have a value, and not joined with other conditions, because "
    "whether there is one goes with the outcome"
)
_BY_NAME = (
    f"by their names alone ({OPTIONS[Timing.KNOWN][1]} uses a column that was known before the "
    "answer)"
)
_RULE_LEAKS = f"a rule over them predicts over {LEAK:.0%} of the rarer outcome"


def name_modes(
    audit: PreparedAudit, losses: NDArray[np.float64], *, texts: bool = True
) -> tuple[tuple[Mode, ...], ModeSearch]:
    """The failure modes of a prepared audit, with their examples, and what was searched.

    Parameters
    ----------
    audit : PreparedAudit
    losses : float64 array, shape (outcomes, units)
        Of all units, NaN where not scored.
    texts : bool
        Whether examples show their texts.

    Notes
    -----
    Rules may name attributes of the examples that are the same in all rows of a unit: numbers,
    flags, labels and texts. Left out are columns that predict the outcome almost perfectly, or in
    a rule of theirs, ids, and what by its name describes the model's answer or its score; the
    remarks of the search say which, and how to use them all the same.
    """
    table, remarks = tabulate_attributes(audit)
    gaps = find_gap_columns(audit, table, losses)
    if gaps:
        remarks = (*remarks, f"{_GAPS}: {_list_names(gaps)}")
    while set(table.columns) - set(audit.plan.within):
        modes, search = _search(audit, table, losses, gaps)
        leaks = _find_leaking_columns(audit, modes)
        if not leaks:
            outcomes = audit.outcomes
            modes = add_examples(
                modes, table, audit.evidence, losses, outcomes=outcomes, texts=texts
            )
            return modes, structs.replace(search, remarks=(*remarks, *search.remarks))
        # a text tells by its words, which only a rule shows
        table = table.drop(leaks)
        remarks = (*remarks, *_describe_omissions({_RULE_LEAKS: leaks}))
    remarks = (*remarks, "no column describes the examples, so no rule could be searched for")
    return (), _describe_no_search(audit, losses, remarks)


def _search(
    audit: PreparedAudit, table: pl.DataFrame, losses: NDArray[np.float64], gaps: Sequence[str]
) -> tuple[tuple[Mode, ...], ModeSearch]:
    return find_modes(
        table,
        losses,
        outcomes=audit.outcomes,
        level=float(audit.plan.alpha),
        depth=audit.plan.depth,
        within=audit.plan.within,
        gaps=gaps,
        strata=audit.size_classes,
        own_rules=tuple(_list_own_rules(audit)),
        # the two directions of a comparison have no mean
        shared=not audit.compare,
    )


def _find_leaking_columns(audit: PreparedAudit, modes: Sequence[Mode]) -> list[str]:
    """Columns of conditions that predict the outcome almost perfectly, such as a grader's remark.

    A rule of several conditions may do so without a leak: what fails always under both, and never
    elsewhere, is a hole.
    """
    rules = [sql for one in modes if one.source == "modes" for sql in split_conditions(one.rule)]
    shares = measure_rules(audit.evidence, rules)
    columns = [c for sql, share in shares.items() if share >= LEAK for c in Rule.parse(sql).columns]
    allowed = {*audit.evidence.roles.allow_leakage, *audit.plan.within}
    # what was asked was there before the answer
    doubtful = [name for name in dict.fromkeys(columns) if not holds_question(name)]
    return [name for name in doubtful if name not in allowed]


def tabulate_attributes(audit: PreparedAudit) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A row a unit of the columns that rules may name or hold fixed, and what was left out.

    Parameters
    ----------
    audit : PreparedAudit

    Returns
    -------
    table : polars.DataFrame
    remarks : tuple of str
        A sentence for each reason to leave columns out, without a full stop.
    """
    evidence, within = audit.evidence, audit.plan.within
    names = [name for name in evidence.attributes if name not in within]
    measured, later = (
        [name for name in list_columns(audit.stages, stage) if name in names]
        for stage in (Timing.MEASURED, Timing.FOLLOWS)
    )
    frame = evidence.frame.select(_without(names, measured, later))
    columns = [column for column in profile(frame) if column.kind is not Kind.CONSTANT]
    used = [column.name for column in columns if _is_usable(column, frame[column.name])]
    odd = [column.name for column in columns if column.name not in used]
    by_name = [name for name in later if name not in audit.leaks]
    table, varying = tabulate_units(evidence, [*used, *dict.fromkeys(within)])
    reasons = {
        f"they hold or describe the model's answer, {_BY_NAME}": measured,
        f"they predict over {LEAK:.0%} of the rarer outcome": _without(later, by_name),
        f"they say how an answer was scored, {_BY_NAME}": by_name,
        "they are ids, codes, dates or lists": odd,
        "they differ between rows of one group": varying,
    }
    words = pl.col(pl.Categorical, pl.Enum)
    return table.with_columns(words.cast(pl.String)), tuple(_describe_omissions(reasons))


def _is_usable(column: Column, values: pl.Series) -> bool:
    """Whether rules may name a column: also one of many values, if most are of enough units."""
    repeats = column.distinct * MIN_SUPPORT <= len(values) - column.missing
    return column.kind in _USED or (
        column.kind is Kind.CODE and not values.dtype.is_numeric() and repeats
    )


def _without(names: Sequence[str], *omitted: Sequence[str]) -> list[str]:
    return [name for name in names if not any(name in each for each in omitted)]


def _describe_omissions(reasons: dict[str, Sequence[str]]) -> Iterator[str]:
    for reason, names in reasons.items():
        if names:
            yield f"not used in rules, because {reason}: {_list_names(names)}"


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _list_own_rules(audit: PreparedAudit) -> Iterator[OwnRule]:
    """Candidates that the caller asked for; those mined here are tested on the holdout alone."""
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
    """A search without any rule."""
    outcomes = tuple(
        Coverage(
            outcome=name,
            n=int((~np.isnan(row)).sum()),
            errors=float(np.nansum(row)),
            covered=0,
            covered_errors=0.0,
        )
        for name, row in zip(audit.outcomes, losses, strict=True)
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
