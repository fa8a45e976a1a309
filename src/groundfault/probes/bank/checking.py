"""The check of a bank and a grammar before a run: which prompts are valid, and some of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from groundfault.base.streams import stream
from groundfault.errors import PlanError
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.bank.rendering import Probe, probes


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with some prompts: what, with how many, and the key of the first."""

    reason: str
    prompts: int
    first: str


@dataclass(frozen=True, eq=False)
class BankCheck:
    """What a bank and a grammar make.

    Attributes
    ----------
    bank : Bank
    grammar : Grammar
    prompts, valid : int
        Prompt keys, and those that are structurally valid.
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
        """Whether every prompt may be asked."""
        return self.valid == self.prompts

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "bank": {"name": self.bank.name, "sha256": self.bank.hash, "tasks": len(self.bank)},
            "grammar": {
                "name": self.grammar.name,
                "sha256": self.grammar.hash,
                "assignments": len(self.grammar),
            },
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
