"""Refining a rule: tightened where it joins unlike examples, widened where it stops short.

A rule that covers two kinds of examples, one failing nearly always and one now and then, is split
by the likelihood of its losses; one that leaves out examples that fail alike is widened. Only the
wording is decided here. Whether the refined rule is a mode, the tests say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from groundfault.modes.condition import FEW, MAX_SET, MIN_SUPPORT
from groundfault.modes.rule_space import ModeRule, RuleLanguage
from groundfault.modes.strata import Strata
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

Floats = NDArray[np.float64]

_GAIN = 2.0
"""Log-likelihood that a move has to gain, beyond the log of how many were looked at: a split, or
examples that are taken in. Two modes that gain less by a rate each are one."""
EVEN = 0.75
"""Parts whose excess is at least this share of the other's are of one kind: with .4 a hole of 13
networks is lost."""
_JOINS = 0.25
"""Share of a joined rule's excess beyond the sum of its parts': noise of some 60 units is less."""


def refine(language: RuleLanguage, strata: Strata, rule: ModeRule) -> ModeRule:
    """Return the rule after the moves that the likelihood calls for."""
    seen: list[ModeRule] = []
    move: ModeRule | None = rule
    while move is not None and move not in seen:
        seen.append(move)
        move = _tighten(language, strata, move) or _widen(language, strata, move)
    return seen[-1]


def _tighten(language: RuleLanguage, strata: Strata, rule: ModeRule) -> ModeRule | None:
    """Return the narrower rule whose losses differ most from what it leaves out."""
    # log of how many moves each is the best of: the worst values were picked out of many sets
    among = dict(_list_sets(language, strata, rule))
    among |= dict.fromkeys(_list_narrower(language, rule), 0.0)
    moves = list(among)
    if not moves:
        return None
    units, losses, expected = strata.count_new(language.mask(rule)[None])
    u, k, e = strata.count_new(language.masks(moves))
    v, j, f = units - u, losses - k, expected - e
    with np.errstate(divide="ignore", invalid="ignore"):
        uneven = (j - f) / v < EVEN * (k - e) / u
    gain = split_gain(u, k, v, j) - np.array([among[move] for move in moves])
    gain = np.where((u >= MIN_SUPPORT) & (k > e) & uneven, gain, -1.0)
    best = int(np.argmax(gain))
    return moves[best] if gain[best] > _GAIN + math.log(len(moves)) else None


def _widen(language: RuleLanguage, strata: Strata, rule: ModeRule) -> ModeRule | None:
    """Return the wider rule that takes in most failures of the same kind."""
    moves = list(_list_wider(language, rule))
    if not moves:
        return None
    units, losses, expected = strata.count_new(language.mask(rule)[None])
    masks = language.masks(moves)
    u, k, e = strata.count_new(masks & ~language.mask(rule))
    with np.errstate(divide="ignore", invalid="ignore"):
        even = (k - e) / u >= EVEN * (losses - expected) / units
    small = bitset.count(masks) <= strata.layout.strata.size / 2
    gain = np.where(even & small & (k > e), gain_over_expected(u, k, e), -1.0)
    best = int(np.argmax(gain))
    return moves[best] if gain[best] > _GAIN + math.log(len(moves)) else None


def _log_likelihood(units: Floats, losses: Floats) -> Floats:
    """Return the log-likelihood of so many losses among so many units at their own rate."""
    from scipy.special import xlogy

    n = np.maximum(units, 1e-12)
    rate = np.clip(losses / n, 0.0, 1.0)
    return np.asarray(xlogy(losses, rate) + xlogy(np.maximum(n - losses, 0), 1 - rate))


def split_gain(u: Floats, k: Floats, v: Floats, j: Floats) -> Floats:
    """Return log-likelihood gained by a rate for each of two parts instead of one for both."""
    return _log_likelihood(u, k) + _log_likelihood(v, j) - _log_likelihood(u + v, k + j)


def gain_over_expected(u: Floats, k: Floats, e: Floats) -> Floats:
    """Return log-likelihood that units gain by a failure rate of their own over the expected one.

    Parameters
    ----------
    u, k, e : float64 arrays, shape (rules,)
        Units, their losses, and what is expected of them.
    """
    from scipy.special import xlogy

    n = np.maximum(u, 1e-12)
    expected = np.clip(e / n, 1e-6, 1 - 1e-6)
    null = xlogy(k, expected) + xlogy(np.maximum(n - k, 0), 1 - expected)
    return np.asarray(_log_likelihood(u, k) - null)


def _list_narrower(language: RuleLanguage, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield rules of the language that hold for less: one condition more, or one narrower."""
    families = {language.family[part[0]] for part in rule.parts}
    for i in [*language.plain, *language.others]:
        if language.family[i] not in families:
            yield from language.join((*rule.parts, (int(i),)))
            yield from _replace_implied(language, rule, (int(i),))
    yield from _list_replacements(language, rule, narrower=True)


def _list_sets(
    language: RuleLanguage, strata: Strata, rule: ModeRule
) -> Iterator[tuple[ModeRule, float]]:
    """Yield the rule inside the worst two, three or four values of another column.

    With each the log of how many sets of that size there are.
    """
    families = {language.family[part[0]] for part in rule.parts}
    row = language.mask(rule)
    for places in language.values.values():
        index = language.plain[places]
        if language.family[index[0]] in families:
            continue
        units, losses, _ = strata.count_new(language.bits[index] & row)
        rate = np.where(units >= FEW, losses / np.maximum(units, 1), -1.0)
        worst = [int(i) for i in index[np.argsort(-rate, kind="stable")]]
        for size in range(2, min(MAX_SET, int((rate >= 0).sum())) + 1):
            part = tuple(sorted(worst[:size]))
            sets = math.log(math.comb(len(index), size))
            yield from ((move, sets) for move in language.join((*rule.parts, part)))
            yield from ((move, sets) for move in _replace_implied(language, rule, part))


def _replace_implied(
    language: RuleLanguage, rule: ModeRule, new: tuple[int, ...]
) -> Iterator[ModeRule]:
    """Yield the rule with a condition of another family in place of the parts that it implies."""
    row = np.bitwise_or.reduce(language.bits[list(new)], axis=0)
    parts = [
        part
        for part in rule.parts
        if (row & ~np.bitwise_or.reduce(language.bits[list(part)], axis=0)).any()
    ]
    if len(parts) < len(rule.parts):
        yield from language.join((*parts, new))


def _list_wider(language: RuleLanguage, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield rules of the language that hold for more: a condition less, or one wider."""
    for place in range(len(rule.parts)):
        yield from language.join(rule.parts[:place] + rule.parts[place + 1 :])
    yield from _list_replacements(language, rule, narrower=False)


def _list_replacements(
    language: RuleLanguage, rule: ModeRule, *, narrower: bool
) -> Iterator[ModeRule]:
    """Yield rules with another condition of the same family, nested in the first or around it."""
    for place, part in enumerate(rule.parts):
        row = np.bitwise_or.reduce(language.bits[list(part)], axis=0)
        for other in _list_parts(language, part):
            mask = np.bitwise_or.reduce(language.bits[list(other)], axis=0)
            inner, outer = (mask, row) if narrower else (row, mask)
            if not (inner & ~outer).any() and (outer & ~inner).any():
                parts = (*rule.parts[:place], other, *rule.parts[place + 1 :])
                yield from language.join(parts)


def _list_parts(language: RuleLanguage, part: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield other conditions of a part's family: its literals, and sets with a value more or
    less."""
    family = language.family[part[0]]
    members = [int(i) for i in np.flatnonzero(language.family == family)]
    if len(part) == 1:
        yield from ((i,) for i in members if (i,) != part)
    values = {int(language.plain[p]) for v in language.values.values() for p in v}
    if not set(part) <= values:
        return
    if len(part) > 2:
        yield from (tuple(i for i in part if i != one) for one in part)
    elif len(part) == 2:
        yield from ((one,) for one in part)
    if len(part) < MAX_SET:
        yield from (tuple(sorted((*part, i))) for i in members if i in values and i not in part)


def join(language: RuleLanguage, base: Strata, a: ModeRule, b: ModeRule) -> ModeRule | None:
    """Return the rule of two that say one thing: values of a column that fail alike, or stretches
    of one slope."""
    units, losses, expected = base.count_new(language.masks([a, b]))
    excess = (losses - expected) / units
    (gain,) = split_gain(units[:1], losses[:1], units[1:], losses[1:])
    alike = excess.min() >= EVEN * excess.max() and gain <= _GAIN
    return (_join_values(language, a, b) if alike else None) or _join_cuts(language, base, a, b)


def _join_values(language: RuleLanguage, a: ModeRule, b: ModeRule) -> ModeRule | None:
    """Return the rule of the values of both, where these are all in which they differ."""
    shared = [part for part in a.parts if part in b.parts]
    differ = {i for rule in (a, b) for part in rule.parts if part not in shared for i in part}
    if len(a.parts) != len(b.parts) or len(shared) != len(a.parts) - 1 or len(differ) > MAX_SET:
        return None
    values = (language.plain[places] for places in language.values.values())
    if not any(differ <= set(index.tolist()) for index in values):
        return None
    return next(language.join((*shared, tuple(sorted(differ))), free=True), None)


def _join_cuts(language: RuleLanguage, base: Strata, a: ModeRule, b: ModeRule) -> ModeRule | None:
    """Return the rule of the range that spans two of one column, where what lies between them fails
    more than expected as well: its doses show how the rate rises."""
    if a.kind != "single" or b.kind != "single":
        return None
    one, other = (language.literals[rule.parts[0][0]] for rule in (a, b))
    if one.family != other.family or one.bounds is None or other.bounds is None:
        return None
    ends = min(one.bounds[0], other.bounds[0]), max(one.bounds[1], other.bounds[1])
    for i in language.single:
        if language.literals[i].family == one.family and language.literals[i].bounds == ends:
            between = language.bits[i] & ~(language.mask(a) | language.mask(b))
            units, losses, expected = base.count_new(between[None])
            if losses[0] >= expected[0] or not units[0]:
                return ModeRule(((int(i),),), "single")
    return None


def is_sum(strata: Strata, a: Bits, b: Bits) -> bool:
    """Return whether units of two rules at once lose about as much more as the excess of each rule
    alone comes to: then they are two rules, not one."""
    units, losses, _ = strata.count_new(np.stack([a & b, a & ~b, b & ~a, ~(a | b)]))
    both, one, other, neither = losses / np.maximum(units, 1)
    known = units.min() >= MIN_SUPPORT
    return bool(known and both - one - other + neither < _JOINS * (both - neither))
