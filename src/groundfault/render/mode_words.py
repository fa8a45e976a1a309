"""Failure modes in words: a sentence each, their coverage, and problems too small to be seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from groundfault.auditing import messages
from groundfault.auditing.messages import count_errors, describe_rates
from groundfault.auditing.report import Report
from groundfault.modes.changes import BETTER, WORSE
from groundfault.modes.mode import EVERY_MODEL, Coverage, Mode, ModeSearch
from groundfault.render import words

PROOF = (
    "A mode is a rule under which failures are more frequent, which is not to say that the rule is "
    "their cause."
)
# classes of rules of the search, as a reader may count them
NAMES = {
    "overall": "all examples together",
    "single": "single conditions",
    "value pair": "pairs of values",
    "word": "words",
    "pair": "pairs",
    "mixed": "pairs with a word",
    "triple": "triples",
    "inside": "conditions inside a value",
    "partial": "conditions where a column has a value",
    "own": "of your own",
}
SETS = {
    "values": "sets of values",
    "set": "sets of values and a condition",
    "set of a pair": "sets of values and two conditions",
    "words": "any of some words",
    "cut": "other ends of a range",
}
# of what a mode covers, the share that earlier modes cover already
_MOSTLY = 0.5
_ALL = 0.95
"""Share from which a mode is almost all inside earlier ones."""


TOO_FEW = "This audit is too small to name a rule of a single condition."


@dataclass(frozen=True)
class NumberedMode:
    """A mode with its number in the report, and how it is said.

    Attributes
    ----------
    number : int
        From 1, as ``groundfault show`` counts.
    mode : Mode
    earlier : tuple of int
        Numbers of the modes of the same outcome before it.
    report : Report
    """

    number: int
    mode: Mode
    earlier: tuple[int, ...]
    report: Report

    @property
    def name(self) -> str:
        """Return its rule in English, with its number."""
        return words.clean(f"{self.number}. {self.mode.meaning}")

    @property
    def anchor(self) -> str:
        """Return its name in an address."""
        return f"mode-{self.number}"

    @property
    def sentence(self) -> str:
        """Return how often the model fails inside the rule, and elsewhere."""
        # reports of before counted an outcome of its own for each direction
        wrong = "" if self.report.manifest.compare and self.mode.change is None else " wrong"
        return describe_rates(self.mode, wrong, self.report.unit, averaged=self.report.averaged)

    @property
    def nesting(self) -> str:
        """Return the share that earlier modes cover, from half on, or that it is a part of one."""
        mode = self.mode
        old = 1 - mode.n_new / mode.n
        if not self.earlier:
            return ""
        if not mode.n_new:
            whole = self.report.modes[self.number - 2]
            rest = f"{count_errors(whole.errors - mode.errors)} of {words.count(whole.n - mode.n)}"
            rate = words.rate((whole.errors - mode.errors) / (whole.n - mode.n))
            return f"A part of mode {self.number - 1}; in the rest of it, {rest} fail ({rate})."
        if old < _MOSTLY:
            return ""
        one = len(self.earlier) == 1
        where = f"mode {self.earlier[0]}" if one else "the modes before it"
        inside = "Almost all" if old >= _ALL else "Mostly"
        new = f"{count_errors(mode.errors_new)} of {words.count(mode.n_new)}"
        return f"{inside} inside {where}: outside {'it' if one else 'them'}, {new} fail."


@dataclass(frozen=True)
class ModeOutline:
    """Sentences of a report about failure modes.

    Attributes
    ----------
    report : Report
        One whose audit searched for them.
    """

    report: Report

    @property
    def search(self) -> ModeSearch:
        """Return the search: columns, rules and error level."""
        assert self.report.mode_search is not None
        return self.report.mode_search

    @cached_property
    def groups(self) -> tuple[tuple[str, tuple[NumberedMode, ...]], ...]:
        """Return the modes of each outcome, modes that all models share first."""
        by_outcome: dict[str, list[NumberedMode]] = {}
        for number, mode in enumerate(self.report.modes, 1):
            group = by_outcome.setdefault(mode.outcome, [])
            group.append(NumberedMode(number, mode, tuple(m.number for m in group), self.report))
        order = sorted(by_outcome, key=lambda name: name != EVERY_MODEL)
        return tuple((name, tuple(by_outcome[name])) for name in order)

    @property
    def changes(self) -> tuple[str, str] | None:
        """Return the two runs that modes of a change compare; None of any other modes."""
        pair = self.report.manifest.compare
        if pair is None or self.search.overall is None:
            return None
        return words.clean(pair[0]), words.clean(pair[1])

    def name_outcome(self, outcome: str) -> str:
        """Name a list of modes in a few words: of a change, of a model, or of all models' mean."""
        if self.changes is None:
            return "the mean of all models" if outcome == EVERY_MODEL else words.clean(outcome)
        verb, *more = messages.CHANGES[self.report.is_graded]
        return f"{self.changes[1]} {verb} {more[outcome == BETTER]}"

    @property
    def full(self) -> float:
        """Return the rate that a whole bar stands for: 1, or less where failures are rare."""
        highest = max((mode.rate for mode in self.report.modes), default=1.0)
        return next((full for full in (0.02, 0.05, 0.1, 0.2, 0.5) if highest <= full), 1.0)

    @property
    def headline(self) -> str:
        """Return the answer in a few words."""
        count = len(self.report.modes)
        outcomes = [name for name, _ in self.groups if name != EVERY_MODEL]
        modes = words.plural(count, "failure mode")
        if self.changes is not None:
            # all examples together are the largest statement that was tested
            sizes = {name: len(group) for name, group in self.groups}
            (first, second), overall = self.changes, self.report.change
            verb, *more = messages.CHANGES[self.report.is_graded]
            rules = " and ".join(
                f"{often} under {words.plural(sizes[name], 'rule')}"
                for name, often in zip((WORSE, BETTER), more, strict=True)
                if name in sizes
            )
            if overall is None or not overall.confirmed:
                return f"{second} {verb} {rules} than {first}"
            moved = f"{more[overall.change <= 0]} than {first} overall"
            return f"{second} {verb} {moved}; {rules}"
        if len(self.search.outcomes) > 1:
            if self.report.manifest.compare:
                return f"{modes} in {words.plural(len(outcomes), 'direction')}"
            matrix, models = self.search.matrix, len(self.search.outcomes) - 1
            if not matrix:
                return f"{modes} of {words.plural(len(outcomes) or models, 'model')}"
            every = sum(row.is_shared for row in matrix)
            shared = f", {words.count(every)} of them in every model" if every else ""
            rules = words.plural(len(matrix), "failure mode")
            if every == len(matrix):
                return f"{rules} in all {words.plural(models, 'model')}"
            return f"{rules} of {words.plural(models, 'model')}{shared}"
        (coverage,) = self.search.outcomes
        verb = "covers" if count == 1 else "cover"
        failures = "loss" if self.report.is_graded else "failures"
        return f"{modes} {verb} {_share_of_errors(coverage)} of the {failures}"

    @property
    def legend(self) -> str:
        """Return how to read the bars."""
        scale = "" if self.full == 1 else f"; the whole width is {words.rate(self.full)}"
        other = "elsewhere" if self.changes is None else "before"
        rate = "mean loss" if self.report.is_graded else "failure rate"
        return f"Bars: {rate} inside the rule; grey: {other}{scale}."

    def _find_coverage(self, outcome: str) -> tuple[Coverage | None, tuple[NumberedMode, ...]]:
        """Return what the modes of an outcome cover together, and these modes."""
        every = {one.outcome: one for one in self.search.outcomes}
        return every.get(outcome), dict(self.groups).get(outcome, ())

    def describe_coverage(self, outcome: str) -> str:
        """Describe the failures that the modes of an outcome cover, and the rest."""
        coverage, modes = self._find_coverage(outcome)
        if coverage is None or not modes:
            return ""
        count = len(modes)
        rules = "This rule covers" if count == 1 else f"These {count} rules cover"
        examples = words.rate(coverage.covered / coverage.n)
        share, units = _share_of_errors(coverage), f"{self.report.unit}s"
        if self.changes is not None:
            whose, whole = f"{units} that got {outcome}", "all"
            if self.search.like_for_like:
                whose, whole = f"failures of {self.changes[int(outcome != BETTER)]}", "its"
            return f"{rules} {share} of the {whose}, in {examples} of {whole} {units}."
        failures = "the loss" if self.report.is_graded else "the failures"
        failures = "these cases" if self.report.manifest.compare else failures
        left = coverage.errors - coverage.covered_errors
        rest = "the rest" if left % 1 else words.plural(round(left), "failure")
        rest = "" if share == "all" else f"; {rest} {'matches' if left == 1 else 'match'} no rule"
        return f"{rules} {share} of {failures} in {examples} of the {units}{rest}."

    def split_failures(self, outcome: str) -> tuple[tuple[int, float], ...]:
        """Return each mode's number, and the percentage of failures that it is the first to match.

        Empty where modes are about changes, some of which are improvements.
        """
        coverage, modes = self._find_coverage(outcome)
        if coverage is None or self.changes is not None:
            return ()
        shares = ((m.number, 100 * m.mode.errors_new / coverage.errors) for m in modes)
        return tuple((number, share) for number, share in shares if share > 0)

    @property
    def averages(self) -> str:
        """Return the modes of all models' mean that have no row in one list of several models."""
        rows = {row.rule for row in self.search.matrix}
        modes = [mode for mode in self.report.modes if rows and mode.outcome == EVERY_MODEL]
        rules = [
            f"{words.clean(mode.meaning)} ({words.rate(mode.rate)}, elsewhere "
            f"{words.rate(mode.rate_outside)})"
            for mode in modes
            if mode.rule not in rows
        ]
        more = (
            "losses are also higher" if self.report.is_graded else "failures are also more frequent"
        )
        where = words.listing(rules, 3)
        return f"On average over the models, {more} where {where}." if rules else ""

    @property
    def silent(self) -> str:
        """Return that no mode was named, and of which outcomes; empty where each has one."""
        with_modes = dict(self.groups)
        names = [c.outcome for c in self.search.outcomes if c.outcome not in with_modes]
        if not names:
            return ""
        if self.changes is not None:
            verb, *more = messages.CHANGES[self.report.is_graded]
            told = f"{self.changes[1]} {verb} {more[names[0] == BETTER]}"
            told = told if len(names) == 1 else "the change is unlike the change elsewhere"
            return f"No rule was named under which {told}."
        several = len(self.search.outcomes) > 1
        of = f" for {words.listing([self.name_outcome(n) for n in names], 6)}" if several else ""
        return f"No failure mode was named{of}."

    @property
    def breadth(self) -> str:
        """Return how many rules share the error level, also those that no search came by."""
        classes = self.search.classes
        if not classes:
            return "No rule is possible."
        total, columns = sum(c.rules for c in classes), len(self.search.columns)
        rules = f"{format_count(total)} possible rule{'s' * (total != 1)}"
        return f"Corrected for {rules} over {words.plural(columns, 'column')}."

    @property
    def power(self) -> str:
        """Return the failure rate that a single condition needed; empty where that is unknown."""
        if self.changes is not None:
            units, is_graded = f"{self.report.unit}s", self.report.is_graded
            return messages.describe_missed(self.search, units, is_graded=is_graded)
        needs = [
            (words.level(float(share)), words.rate(rate))
            for share, rate in sorted(self.search.detectable.items(), key=lambda one: float(one[0]))
            if rate is not None
        ]
        if not needs:
            return TOO_FEW if self.search.detectable else ""
        (share, rate), *others = needs
        more = "".join(f", in {share} if {rate}" for share, rate in others)
        return (
            f"A problem in {share} of the {self.report.unit}s is found four times in five if at "
            f"least {rate} of them fail{more}. Smaller problems may be missed."
        )

    @property
    def guarantee(self) -> str:
        """Return the guarantee of a listed mode."""
        level, opening = words.level(self.search.level), self.report.ledger
        first_look = (
            f", in a first look at these outcomes, which were looked at {opening.times} times"
            if opening is not None and opening.times > 1
            else ""
        )
        if self.changes is not None:
            how = (
                "This is exact, however rules depend on each other"
                if self.search.bars == "permutation"
                else "Each rule is paid for, whatever the others are"
            )
            swapped = f"the two runs are swapped within {self.report.unit}s"
            if self.search.like_for_like:
                how, swapped = "Validated by simulation", "which run an example is in is permuted "
                swapped += f"among {self.report.unit}s that are alike in the columns of the table"
            return (
                f"The chance that a list contains a rule without a change is at most {level}"
                f"{first_look}, for each of the two lists, over all possible rules and the overall "
                f"change. {how}: {swapped}. That a rule changed unlike the rest is a second claim "
                "at the same level, validated by simulation. A rule is an association, and not a "
                "cause."
            )
        if self.search.searched is not None:
            return (
                f"Failure modes: family-wise error at most {level}{first_look}, for each of two "
                "claims: that failures are more frequent inside, and that a mode adds something "
                f"to those before it. {words.count(self.search.searched)} rows drawn by their ids "
                "proposed the rules and their order; all others, which had no part in that, "
                "tested one after the other, up to the first that did not stand. " + PROOF
            )
        return (
            "Each failure mode makes two claims. First, failures are more frequent inside the "
            f"rule: the chance that any listed rule is false is at most {level}, over all rules "
            f"that could have been listed{first_look}{self._promise}. Second, the mode adds "
            "failures to the modes before it, and a part of a mode to the rest of it, each at the "
            "same level, validated by simulation. All "
            f"{self.report.unit}s test both, because columns and texts fixed the possible rules, "
            f"and not outcomes{self._mined}. " + PROOF
        )

    @property
    def _promise(self) -> str:
        """Return the assumption of the first claim."""
        if self.search.bars == "bonferroni":
            return " (exact)"
        return (
            ", if columns that are unrelated to failing go together in the same way among "
            "failures and passes (--bars bonferroni needs no such assumption)"
        )

    @property
    def _mined(self) -> str:
        """Return a remark on candidates mined from these outcomes; empty without any."""
        if not any(c.is_mined_from(self.report.hashes.outcome) for c in self.report.library):
            return ""
        return (
            "; candidates that owe something to outcomes of the discovery part are tested on the "
            f"held-out {self.report.unit}s alone"
        )

    @property
    def fixed(self) -> str:
        """Return the columns that were held fixed; empty without any."""
        within = self.search.within
        if not within:
            return ""
        return f"Compared only among {self.report.unit}s of the same {words.listing(within)}."


def format_count(count: int) -> str:
    """Write a count; a large one in words."""
    if count >= 10**18:
        return f"{count:.2g}"
    for exponent, name in ((15, "quadrillion"), (12, "trillion"), (9, "billion"), (6, "million")):
        if count >= 10**exponent:
            return f"{count / 10**exponent:.3g} {name}"
    return words.count(count)


def _share_of_errors(coverage: Coverage) -> str:
    if coverage.covered_errors >= coverage.errors:
        return "all"
    return words.rate(coverage.covered_errors / coverage.errors)


_STABLE = 0.9
"""Share of samples from which a mode is called stable: 18 of 20."""


def describe_stability(mode: Mode) -> str:
    """Describe if a mode is found again without a tenth of the examples.

    Parameters
    ----------
    mode : Mode
        With a stability.
    """
    share = mode.stability or 0.0
    word = "stable" if share >= _STABLE else "near the bar"
    ways = "; other rules match nearly the same examples" if mode.alternatives else ""
    return f"{word}: found again in {share:.0%} of random samples of 90% of the examples{ways}"
