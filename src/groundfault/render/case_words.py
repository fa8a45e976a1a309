"""Sentences about a case: which modes a budget of labels can confirm, and the command for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from groundfault.case.simulation import POWER
from groundfault.render import words

if TYPE_CHECKING:
    from groundfault.case.case import Case
    from groundfault.case.simulation import BudgetPlan


def name_folder(case: Case) -> str:
    """The folder of a case as a command takes it."""
    return words.clean(shlex.quote(str(case.folder)))


def name_label_command(case: Case, *options: str) -> str:
    """The command that buys labels: looked up where the table has the outcomes, else asked for."""
    source = "ask" if case.settings.answers is None else "file"
    command = f"groundfault sequential confirm --case {name_folder(case)}"
    return " ".join([command, *options, f"--label {source}"])


def describe_plan(plan: BudgetPlan, case: Case) -> Iterator[str]:
    """What a budget can confirm, what it cannot, and the command that begins it."""
    can = words.plural(len(plan.powers), "mode") if plan.powers else "no mode"
    rates = words.listing(
        [
            f"{words.rate(rate)} ({words.clean(outcome)})" if outcome else words.rate(rate)
            for outcome, rate in plan.rates.items()
        ]
    )
    inside = (
        "at the lower end of the audit's interval for each"
        if plan.lift is None
        else f"more often by {plan.lift:g}"
    )
    yield (
        f"{words.plural(plan.budget, 'label')} can confirm {can} with a power of "
        f"{words.rate(POWER)}, if units inside modes fail {inside}, and those in none at "
        f"{rates} (simulated, in up to {plan.runs} runs):"
    )
    for number, share in plan.powers.items():
        yield f"  mode {number}: {words.rate(share)}"
    company = "with those above" if plan.powers else "alone"
    # the last to be left out was simulated with the fewest others
    for number, share in reversed(plan.dropped.items()):
        yield f"  not mode {number}: {words.rate(share)} {company}"
        company = "with those above"
    if plan.powers:
        modes = [f"--mode {number}" for number in plan.powers]
        yield f"next: {name_label_command(case, *modes, f'--budget {plan.budget}')}"
