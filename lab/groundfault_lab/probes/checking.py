"""The check of a bank: every prompt that it makes with a grammar, and the faults of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from groundfault.base.long_work import stream
from groundfault.errors import PlanError
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.bank.rendering import Probe, describe, probes


@dataclass(frozen=True)
class Problem:
    """One fault of some prompts: its name, the number of prompts, and the key of the first."""

    reason: str
    prompts: int
    first: str


@dataclass(frozen=True, eq=False)
class BankCheck:
    """The prompts that a bank and a grammar make, counted and checked.

    Attributes
    ----------
    bank : Bank
    grammar : Grammar
    prompts, valid : int
        Number of prompt keys, and of structurally valid ones.
    problems : tuple of Problem
        Most frequent first.
    blocked : tuple of Task
        Tasks without any valid prompt.
    samples : tuple of Probe
        Valid prompts drawn at random.
    """

    bank: Bank
    grammar: Grammar
    prompts: int
    valid: int
    problems: tuple[Problem, ...]
    blocked: tuple[Task, ...]
    samples: tuple[Probe, ...]

    @property
    def passed(self) -> bool:
        """Tell whether every prompt may be asked."""
        return self.valid == self.prompts

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            **describe(self.bank, self.grammar),
            "relations": self.grammar.relations,
            "prompts": self.prompts,
            "valid": self.valid,
            "passed": self.passed,
            "problems": [vars(problem) for problem in self.problems],
            "blocked": [task.id for task in self.blocked],
            "samples": [{"key": probe.key, "prompt": probe.prompt} for probe in self.samples],
        }


def check(bank: Bank, grammar: Grammar, *, samples: int = 3, seed: int = 0) -> BankCheck:
    """Render every prompt of a bank and a grammar, and list the invalid ones.

    Parameters
    ----------
    bank : Bank
    grammar : Grammar
    samples : int
        How many valid prompts to draw, at least 0.
    seed : int

    Raises
    ------
    PlanError
        If ``samples`` is below 0.
    """
    if samples < 0:
        raise PlanError(f"samples must be at least 0, not {samples}")
    total = len(bank) * len(grammar)
    # keys in random order, so that the first valid ones are a sample of the valid ones
    rank = stream(seed, "probe samples").permutation(total)
    reasons: Counter[str] = Counter()
    first: dict[str, str] = {}
    open_tasks: set[str] = set()
    sample: list[tuple[int, Probe]] = []
    valid = 0
    for number, probe in enumerate(probes(bank, grammar)):
        for reason in probe.errors:
            reasons[reason] += 1
            first.setdefault(reason, probe.key)
        if not probe.errors:
            valid += 1
            open_tasks.add(probe.task.id)
            sample.append((int(rank[number]), probe))
            # prune now and then: a bank may have a million prompts
            if len(sample) > 2 * samples + 100:
                sample = sorted(sample, key=lambda pair: pair[0])[:samples]
    lowest = sorted(sample, key=lambda pair: pair[0])[:samples]
    return BankCheck(
        bank,
        grammar,
        total,
        valid,
        tuple(Problem(reason, count, first[reason]) for reason, count in reasons.most_common()),
        tuple(task for task in bank if task.id not in open_tasks),
        tuple(probe for _, probe in lowest),
    )
