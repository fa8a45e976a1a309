"""The list: which rules are listed as modes, in which words and in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.base.long_work import Progress, listener
from groundfault.modes.bars import Bars
from groundfault.modes.condition import MIN_SUPPORT
from groundfault.modes.rule_space import ModeRule
from groundfault.modes.search import (
    TOP,
    RuleProposal,
    cut_range,
    describe_both,
    fails_alike,
    is_sum,
    join,
    list_narrower,
    list_wider,
    score_counts,
    search,
    search_inside,
)
from groundfault.modes.strata import Strata, compute_overlaps
from groundfault.stats import bits as bitset
from groundfault.stats.bits import Bits

MOST_MODES = 8
"""Modes of a list: on 17 networks what comes later is broad, and no hole among it. Parts share the
level as if so many modes had one."""
_SAME_UNITS = 0.95  # overlap from which rules hold for the same units
SAME_PLACE = 0.5  # overlap from which rules describe the same failures
_ALTERNATIVES = 4  # as many as a page shows, beside the mode
_BEYOND_DOUBT = math.log(0.001)
"""Level at which one rule shows beyond another: to be no other words for it, or to be joined to
what somebody named."""


@dataclass(frozen=True)
class Listed:
    """A rule on the list.

    Attributes
    ----------
    rule : ModeRule
    mask : uint64 array, shape (words,)
    log_marginal, log_conditional : float
        Adjusted log p-values: alone, and given those listed before it.
    alternatives : tuple of (ModeRule, float)
        Rules for nearly the same units, and their overlap.
    added : ModeRule or None
        Of a part of the mode before it that pays for these alone: the conditions that it adds.
    stability : float or None
        Share of samples of nine tenths of the units in which both claims stand; None if unknown.
    """

    rule: ModeRule
    mask: Bits
    log_marginal: float
    log_conditional: float
    alternatives: tuple[tuple[ModeRule, float], ...] = ()
    added: ModeRule | None = None
    stability: float | None = None


class Selection:
    """Chooses modes for one outcome.

    Parameters
    ----------
    bars : Bars
        Their level is that of the marginal claims, and that of the conditional ones.
    progress : callable, optional
        Gets each pass of the search; a list that is short ends before the last.
    place, outcomes : int
        Which outcome it is, from 0, and of how many.

    Notes
    -----
    Every rule of the language is paid for, so that no choice of rules breaks the marginal claim.
    The conditional claims, and those of parts, take the modes before as fixed. They were chosen on
    the same units, and only simulations show that the level holds.
    """

    def __init__(
        self, bars: Bars, progress: Progress | None = None, place: int = 0, outcomes: int = 1
    ) -> None:
        self.progress, self.place, self.outcomes = listener(progress), place, outcomes
        self.bars, self.language, self.losses = bars, bars.language, bars.losses
        self.base = Strata(self.language.layout, self.losses)
        self.tabu: set[ModeRule] = set()
        self._doubts: dict[ModeRule, float] = {}

    def select(self) -> list[Listed]:
        """Search, list the best, until nothing more stands."""
        modes: list[Listed] = []
        # more than are listed, since some are dropped when they are put in order
        most = MOST_MODES * 3 // 2
        for turn in range(3 * most):
            done, total = self.place * most + min(turn, most), self.outcomes * most
            self.progress(f"looking for failure modes: pass {done} of {total}")
            if len(modes) >= most:
                break
            mode = self._next(modes)
            if mode is None:
                break
            self.tabu.add(mode.rule)
            modes.append(mode)
        listed = self._merge(self._order(modes))
        for place in range(len(listed)):
            before = self._strata(listed[:place])
            listed = self._shorten(listed, place, before)
            for part in range(len(listed[place].rule.parts)):
                listed = self._cut(listed, place, part, before)
        listed = self._add_parts(listed)[:MOST_MODES]
        return [self._try_samples(mode, listed[:place]) for place, mode in enumerate(listed)]

    def _try_samples(self, mode: Listed, earlier: Sequence[Listed]) -> Listed:
        """Return a mode with how often it stands where a tenth of the units is left out."""
        tested, stands = self.language.tested(mode.rule), np.array(True)
        # where nothing is listed before, both claims are one
        for claim in dict.fromkeys((self.base, self._strata(earlier))):
            drawn = claim.thin(mode.mask, tested)
            if drawn is None:
                return mode
            part = mode.added if claim is not self.base else None
            adjusted = [self.bars.adjust(part or mode.rule, float(log_p)) for log_p in drawn]
            level = self.bars.log_level - (math.log(MOST_MODES) if part else 0.0)
            stands = stands & (np.array(adjusted) <= level)
        return replace(mode, stability=float(stands.mean()))

    def _strata(self, rules: Sequence[Listed | RuleProposal]) -> Strata:
        if not rules:
            return self.base
        return Strata(self.language.layout, self.losses, [rule.mask for rule in rules])

    def _next(self, modes: Sequence[Listed]) -> Listed | None:
        """Return the best rule beyond those listed, in its shortest words."""
        strata = self._strata(modes)
        proposals = self._gate(search(self.bars, strata), strata)
        proposals = self._keep_new([p for p in proposals if not self._recuts(p, modes)], modes)
        bar = max(0.0, proposals[0].score) if proposals else 0.0
        inside = self._next_inside(strata, bar)
        # what is true and small is worth saying where nothing else is
        if inside is not None or (modes and bar == 0.0):
            return inside
        worth = self._weigh(strata, [p.rule for p in proposals])
        for place in np.argsort(-worth, kind="stable"):
            # refining takes longest
            if not self._is_confirmed(proposals[place], strata, self.bars.log_level):
                continue
            best = self._refine(proposals[place], strata)
            best = self._find_own(best, proposals, strata) or self._reword(best, proposals, strata)
            if self._is_confirmed(best, strata, self.bars.log_level):
                return self._list(
                    best, strata, tuple(self._list_alternatives(best, proposals, modes))
                )
        return None

    def _is_confirmed(self, proposal: RuleProposal, strata: Strata, log_level: float) -> bool:
        """Return whether each condition shows among the units for which the others hold: else it is
        a bystander, true of the failures by chance."""
        rule, language = proposal.rule, self.language
        bar = log_level - self.bars.cost_beside(rule.kind)
        for part in rule.parts if len(rule.parts) > 1 else ():
            others = ModeRule(tuple(one for one in rule.parts if one != part), rule.kind)
            of_part, of_others = language.mask(ModeRule((part,), rule.kind)), language.mask(others)
            wider = language.layout.unpack(of_others[None])[0]
            # means add up; the values of a set were picked where this condition holds
            sets = sum(language.log_sets(one) for one in others.parts)
            sums = not self.losses.binary and is_sum(strata, of_part, of_others)
            if sums or strata.log_p(proposal.mask, wider) > bar - sets:
                return False
        return True

    def _recuts(self, proposal: RuleProposal, modes: Sequence[Listed]) -> bool:
        """Return whether a condition cuts a column where a mode cuts it: its doses show that."""
        if proposal.rule.kind != "single":
            return False
        about = self._list_families(proposal.rule)
        single = [mode for mode in modes if mode.rule.kind == "single"]
        cuts = [mode.mask for mode in single if self._list_families(mode.rule) == about]
        return any((cut & proposal.mask).any() for cut in cuts)

    def _list_alternatives(
        self, chosen: RuleProposal, proposals: Sequence[RuleProposal], modes: Sequence[Listed]
    ) -> Iterator[tuple[ModeRule, float]]:
        """Yield rules that the losses cannot tell from the chosen one: neither adds to the other.

        Another cut of the same columns is none: doses show it.
        """
        about = self._list_families(chosen.rule)
        overlaps = compute_overlaps(chosen.mask, np.stack([p.mask for p in proposals]))
        longest = self.language.size(chosen.rule)
        beyond = self._strata([*modes, chosen])
        listed = chosen.mask[None]
        for p, overlap in zip(proposals, overlaps, strict=True):
            if len(listed) > _ALTERNATIVES:
                return
            if (
                p.rule == chosen.rule
                or overlap < SAME_PLACE
                or self.language.size(p.rule) > longest
            ):
                continue
            same = overlap >= _SAME_UNITS
            if (same or self._cuts(p.rule)) and self._list_families(p.rule) == about:
                continue
            if not same and compute_overlaps(p.mask, listed[1:]).max(initial=0) >= _SAME_UNITS:
                continue
            tells = (
                self._log_p(beyond, p) <= _BEYOND_DOUBT
                or self._log_p(self._strata([*modes, p]), chosen) <= _BEYOND_DOUBT
            )
            if same or not tells:
                listed = np.concatenate([listed, p.mask[None]])
                yield p.rule, float(overlap)

    def _cuts(self, rule: ModeRule) -> bool:
        """Return whether a rule cuts a number."""
        return any(self.language.literals[part[0]].bounds is not None for part in rule.parts)

    def _list_families(self, rule: ModeRule) -> list[int]:
        """Return what the conditions of a rule are about."""
        return sorted(int(self.language.family[part[0]]) for part in rule.parts)

    def _stands(self, strata: Strata, mode: Listed) -> bool:
        """Return whether a mode adds to those listed before it."""
        # one that covers nothing new tells a reader nothing, however well it stands
        adds = bitset.count((mode.mask & strata.new_bits)[None])[0] >= MIN_SUPPORT
        return bool(adds) and self._adjust(strata, mode) <= self.bars.log_level

    def _next_inside(self, strata: Strata, bar: float) -> Listed | None:
        """Return the best effect that shows only inside a context, if it is better than ``bar``."""
        better = [p for p in search_inside(self.bars, strata) if p.score > bar]
        if better:
            # a low rate that is high for its context is no weakness: it has to be high among all
            _, losses, expected = self.base.count_new(np.stack([p.mask for p in better]))
            better = [p for p, high in zip(better, losses > expected, strict=True) if high]
        proposals = self._gate(better, strata)
        if not proposals:
            return None
        # without its context it may fail as much: then it is no effect inside a context
        return self._list(self._refine(proposals[0], strata), strata, ())

    def _log_p(self, strata: Strata, one: RuleProposal | Listed) -> float:
        return strata.log_p(one.mask, self.language.tested(one.rule))

    def _adjust(self, strata: Strata, one: RuleProposal | Listed) -> float:
        """Return log p of a claim times all the rules that could have been said instead."""
        scored = self.bars.scores(one.rule)
        log_p = strata.log_score(one.mask) if scored else self._log_p(strata, one)
        adjusted = self.bars.adjust(one.rule, log_p)
        if strata is not self.base or adjusted > self.bars.log_level:
            return adjusted
        if one.rule not in self._doubts:
            self._doubts[one.rule] = self._doubt(one)
        return max(adjusted, self._doubts[one.rule])

    def _doubt(self, one: RuleProposal | Listed) -> float:
        """Return log p without what the test takes for granted: that no value was lost because the
        model passed, and that graded losses differ in size, not in shape."""
        mask, tested, doubt = one.mask, self.language.tested(one.rule), -math.inf
        if tested is not None and self.language.literals[one.rule.parts[0][0]].lost:
            mask, tested = self.base.assume_worst(mask, tested), None
            doubt = self.bars.adjust(one.rule, self.base.log_p(mask))
        return max(doubt, -self.base.log_excess(mask, tested))

    def refine(self, strata: Strata, rule: ModeRule) -> ModeRule:
        """Return a rule after the moves, narrower and wider, that describe the losses better."""
        language = self.language

        def list_moves(rule: ModeRule) -> list[ModeRule]:
            return [*list_narrower(language, strata, rule), *list_wider(language, rule)]

        return self._climb(strata, rule, list_moves)[0]

    def _climb(
        self, strata: Strata, rule: ModeRule, list_moves: Callable[[ModeRule], list[ModeRule]]
    ) -> tuple[ModeRule, float]:
        """Return a rule after the moves that describe the losses better, and its worth."""
        (worth,) = self._weigh(strata, [rule])
        while True:
            moves = list_moves(rule)
            gains = self._weigh(strata, moves)
            best = int(np.argmax(gains)) if moves else 0
            if not moves or gains[best] <= worth:
                return rule, worth
            rule, worth = moves[best], gains[best]

    def _weigh(self, strata: Strata, rules: Sequence[ModeRule]) -> Floats:
        """Return how well rules describe the losses of units that no mode covers, less the price of
        their words; minus infinity for what fails no more often than expected, and for sets of
        values that do not fail alike."""
        if not rules:
            return np.zeros(0)
        units, losses, expected = inside = strata.count_new(self.language.rows(rules))
        usable = (units >= MIN_SUPPORT) & (losses > expected)
        worth = [
            one - self.bars.words_of(rule)
            if ok and fails_alike(self.language, strata, rule)
            else -math.inf
            for rule, one, ok in zip(rules, describe_both(strata, inside), usable, strict=True)
        ]
        return np.array(worth)

    def _refine(self, proposal: RuleProposal, strata: Strata) -> RuleProposal:
        """Return the refined rule, where both of its claims still stand."""
        rule = self.refine(strata, proposal.rule)
        if rule == proposal.rule or rule in self.tabu:
            return proposal
        mask = self.language.mask(rule)
        refined = RuleProposal(rule, mask, proposal.score)
        stands = self._is_confirmed(refined, strata, self.bars.log_level)
        stands = stands and bool(self._gate([refined], strata))
        return refined if stands else proposal

    def _list(
        self,
        proposal: RuleProposal,
        strata: Strata,
        alternatives: tuple[tuple[ModeRule, float], ...],
    ) -> Listed:
        marginal, conditional = (self._adjust(s, proposal) for s in (self.base, strata))
        return Listed(proposal.rule, proposal.mask, marginal, conditional, alternatives)

    def _gate(self, proposals: Sequence[RuleProposal], strata: Strata) -> list[RuleProposal]:
        """Return those whose two claims both stand, the best first."""
        significant: list[RuleProposal] = []
        for proposal in proposals:
            if proposal.rule in self.tabu:
                continue
            # where nothing is listed before, both claims are one
            claims = (strata,) if strata is self.base else (strata, self.base)
            if all(self._adjust(claim, proposal) <= self.bars.log_level for claim in claims):
                significant.append(proposal)
            if len(significant) >= TOP:
                break
        return significant

    def _keep_new(
        self, proposals: Sequence[RuleProposal], modes: Sequence[Listed]
    ) -> list[RuleProposal]:
        """Return those that cover enough that no mode before them in the final order covers."""
        if not modes or not proposals:
            return list(proposals)
        worth, masks = self._rank(modes), np.stack([mode.mask for mode in modes])
        rows = np.stack([p.mask for p in proposals])
        for mask, better in zip(masks, worth[:, None] >= self._rank(proposals), strict=True):
            rows[better] &= ~mask
        enough = bitset.count(rows) >= MIN_SUPPORT
        return [p for p, ok in zip(proposals, enough, strict=True) if ok]

    def _find_own(
        self, best: RuleProposal, proposals: Sequence[RuleProposal], strata: Strata
    ) -> RuleProposal | None:
        """Return what somebody named that says the same as a rule: theirs are the words.

        It is narrowed by a condition of the search only where that shows beyond doubt.
        """
        said = best.mask[None]
        if not self._is_confirmed(best, strata, _BEYOND_DOUBT):
            parts = [ModeRule((part,), best.rule.kind) for part in best.rule.parts]
            said = np.concatenate([said, self.language.masks(parts)])
        return next(
            (
                p
                for p in proposals
                if p.rule.kind == "own"
                and compute_overlaps(p.mask & strata.new_bits, said & strata.new_bits).max()
                >= _SAME_UNITS
            ),
            None,
        )

    def _reword(
        self, best: RuleProposal, proposals: Sequence[RuleProposal], strata: Strata
    ) -> RuleProposal:
        """Return the rule for the same units that names attributes rather than texts, and is
        shortest."""
        overlaps = strata.compute_new_overlaps(best.mask, [p.mask for p in proposals])
        same = [p for p, x in zip(proposals, overlaps, strict=True) if x >= _SAME_UNITS]
        language = self.language
        return min(
            [best, *same], key=lambda p: (language.reads_text(p.rule), language.size(p.rule))
        )

    def _rank(self, modes: Sequence[Listed | RuleProposal]) -> Floats:
        """Return guaranteed excess over all units of each mode, at the level of the list."""
        counts = self.base.count_new(np.stack([mode.mask for mode in modes]))
        return score_counts(*counts, math.sqrt(-2 * self.bars.log_level))

    def _order(self, modes: list[Listed]) -> list[Listed]:
        """Return the largest guaranteed excess of all units first, each tested given those before
        it.

        One that does not stand yet waits: what only it covers may stand out when others are listed.
        """
        if not modes:
            return []
        inside = np.array([mode.rule.kind == "inside" for mode in modes])
        # effects inside a context come last: on all units they may be no excess at all
        order = np.lexsort((-self._rank(modes), inside))
        ordered: list[Listed] = []
        waiting = [modes[i] for i in order]
        while waiting:
            strata = self._strata(ordered)
            new = np.stack([mode.mask for mode in waiting]) & strata.new_bits
            # what a larger one waits for is left to it, if that can be
            shared = [bool((new[i] & np.bitwise_or.reduce(new[:i])).any()) for i in range(len(new))]
            turns = np.argsort(shared, kind="stable")
            place = next((i for i in turns if self._stands(strata, waiting[i])), None)
            if place is None:
                # what does not stand is no reason for others to wait
                return self._order(ordered)
            mode = waiting.pop(place)
            ordered.append(replace(mode, log_conditional=self._adjust(strata, mode)))
        return ordered

    def _merge(self, modes: list[Listed]) -> list[Listed]:
        """Return the list with values of one column that fail alike as one mode."""
        for a, b in combinations(modes, 2):
            rule = join(self.language, self.base, a.rule, b.rule)
            if rule is None:
                continue
            both = RuleProposal(rule, self.language.mask(rule), 0.0)
            others = [mode for mode in modes if mode is not a and mode is not b]
            if self._gate([both], self.base):
                merged = self._order([self._list(both, self.base, ()), *others])
                # no other mode may be lost by it
                if len(merged) == len(modes) - 1:
                    return self._merge(merged)
        return modes

    def _shorten(self, modes: list[Listed], place: int, before: Strata) -> list[Listed]:
        """Return the list with a mode in its final place without the conditions that do not pay
        there: it was chosen when other modes were listed before it."""
        rule = modes[place].rule
        parts = (rule.parts[:i] + rule.parts[i + 1 :] for i in range(len(rule.parts)))
        shorter = [one for some in parts if some for one in self.language.join(some)]
        best = int(np.argmax(self._weigh(before, [rule, *shorter])))
        changed = self._put(modes, place, shorter[best - 1], before) if best else modes
        return modes if changed is modes else self._shorten(changed, place, before)

    def _cut(self, modes: list[Listed], place: int, part: int, before: Strata) -> list[Listed]:
        """Return the list with other ends of a range in a mode, where the losses put them."""
        rule = cut_range(self.language, before, modes[place].rule, part)
        return modes if rule is None else self._put(modes, place, rule, before)

    def _put(self, modes: list[Listed], place: int, rule: ModeRule, before: Strata) -> list[Listed]:
        """Return the list with another rule in place of a mode, where it stands, as do all modes
        after it."""
        new = RuleProposal(rule, self.language.mask(rule), 0.0)
        units, old = bitset.count(np.stack([new.mask, modes[place].mask]))
        if units > max(old, len(self.base.home) / 2) or not self._gate([new], before):
            return modes
        others = [other for other, _ in modes[place].alternatives]
        overlaps = compute_overlaps(new.mask, self.language.masks(others)).tolist()
        listed = self._list(new, before, tuple(zip(others, overlaps, strict=True)))
        changed = [*modes[:place], listed, *modes[place + 1 :]]
        for later in range(place + 1, len(modes)):
            log_p = self._adjust(self._strata(changed[:later]), changed[later])
            if log_p > max(self.bars.log_level, changed[later].log_conditional):
                return modes
            changed[later] = replace(changed[later], log_conditional=log_p)
        return changed

    def _add_parts(self, modes: list[Listed]) -> list[Listed]:
        """Return the list with the worst part of a mode behind it, where that is one."""
        listed: list[Listed] = []
        rules = [mode.rule for mode in modes]
        masks = [mode.mask for mode in modes]
        for place, mode in enumerate(modes):
            listed.append(mode)
            strata = Strata(self.language.layout, self.losses, [*masks[:place], ~mode.mask])
            part = self._find_part(strata, mode)
            if part is None or part.rule in rules:
                continue
            one = self._list_part(part, strata, mode)
            if max(one.log_marginal, one.log_conditional) > self.bars.log_level:
                continue
            # what other modes make of it is no part
            beside = Strata.of_patterns(self.language.layout, self.losses, masks)
            if self._log_p(beside, part) <= _BEYOND_DOUBT:
                listed.append(one)
        return listed

    def _list_part(self, part: RuleProposal, strata: Strata, mode: Listed) -> Listed:
        """Return a part of a mode: inside that mode it pays for the conditions that it adds alone,
        at an equal share of the level for each mode, or as any rule, if that is less."""
        whole, _ = self.language.uncut(mode.rule)
        others = [one for one in part.rule.parts if one not in whole.parts]
        added = next(self.language.join(others, free=True), part.rule)
        whole_price = self.bars.cost_of(part.rule)  # sets by themselves are dear
        if whole_price <= self.bars.cost_of(added) + math.log(MOST_MODES):
            return self._list(part, strata, ())
        inside = self._adjust(strata, RuleProposal(added, part.mask, 0.0)) + math.log(MOST_MODES)
        return Listed(part.rule, part.mask, self._adjust(self.base, part), inside, added=added)

    def _find_part(self, strata: Strata, mode: Listed) -> RuleProposal | None:
        """Return the part of a mode that most needs a rate of its own, if that pays for the words
        that it adds."""
        language, (whole, _) = self.language, self.language.uncut(mode.rule)
        part, worth = self._climb(strata, whole, lambda r: [*list_narrower(language, strata, r)])
        said = self.bars.words_of(whole) if set(whole.parts) <= set(part.parts) else 0.0
        return RuleProposal(part, language.mask(part), 0.0) if worth + said > 0 else None
