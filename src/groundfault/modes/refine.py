"""Refining a rule: the likelihood of all losses decides how wide it is.

A rule says two failure rates: one where it holds, one elsewhere. A narrower rule may be purer and
still describe the losses worse: failures that it leaves out raise the rate elsewhere. Only the
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

EVEN = 0.75
"""Values of a set fail alike where each has this share of their excess: with .4 a hole of 13
networks is lost."""
_JOINS = 0.25
"""Share of a joined rule's excess beyond the sum of its parts': noise of some 60 units is less."""


def describe_both(strata: Strata, inside: tuple[Floats, Floats, Floats]) -> Floats:
    """Return the log-likelihood that a rate of their own, inside and outside, gains over the
    expected one among units that no mode covers, less the price of the rate.

    Parameters
    ----------
    strata : Strata
    inside : tuple of float64 arrays, shape (rules,)
        Units of each rule, their losses, and what is expected of them.
    """
    whole = strata.count_new(strata.inside[None])
    outside = (np.maximum(all_of - part, 0) for all_of, part in zip(whole, inside, strict=True))
    return gain_over_expected(*inside) + gain_over_expected(*outside) - _price(whole[0])


def _price(units: Floats) -> float:
    """Return what the likelihood has to gain by one failure rate more (Schwarz 1978)."""
    return 0.5 * math.log(max(1.0, units.sum()))


def fails_alike(language: RuleLanguage, strata: Strata, rule: ModeRule) -> bool:
    """Return whether each value of a rule's set carries its part of the excess."""
    *others, values = rule.parts
    if len(values) == 1:
        return True
    context = language.mask(ModeRule(tuple(others), rule.kind))
    units, losses, expected = strata.count_new(language.bits[list(values)] & context)
    mean = (losses - expected).sum() / max(1, units.sum())
    return bool(((losses - expected) >= EVEN * mean * units).all() and units.min() > 0)


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


def list_narrower(language: RuleLanguage, strata: Strata, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield rules of the language that hold for less: one condition more, or one narrower."""
    yield from _list_sets(language, strata, rule)
    families = {language.family[part[0]] for part in rule.parts}
    for i in [*language.plain, *language.others]:
        if language.family[i] not in families:
            yield from language.join((*rule.parts, (int(i),)))
            yield from _replace_implied(language, rule, (int(i),))
    yield from _list_replacements(language, rule, narrower=True)


def _list_sets(language: RuleLanguage, strata: Strata, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield the rule inside the worst two, three or four values of another column."""
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
            yield from language.join((*rule.parts, part))
            yield from _replace_implied(language, rule, part)


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


def list_wider(language: RuleLanguage, rule: ModeRule) -> Iterator[ModeRule]:
    """Yield rules of the language that hold for more, and for half of the units at most: a
    condition less, or one wider."""
    fewer = (rule.parts[:place] + rule.parts[place + 1 :] for place in range(len(rule.parts)))
    wider = [one for parts in fewer for one in language.join(parts)]
    wider += _list_replacements(language, rule, narrower=False)
    small = bitset.count(language.masks(wider)) <= language.layout.strata.size / 2
    yield from (one for one, ok in zip(wider, small, strict=True) if ok)


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
    rule = _join_values(language, a, b)
    if rule is not None and fails_alike(language, base, rule):
        units, losses, _ = base.count_new(language.masks([a, b]))
        (gain,) = split_gain(units[:1], losses[:1], units[1:], losses[1:])
        if gain <= _price(units):
            return rule
    return _join_cuts(language, base, a, b)


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
