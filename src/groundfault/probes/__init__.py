"""Targeted tests: frozen task banks, a grammar of prompt components, and routing of answers.

::

    from groundfault import probes

    bank, grammar = probes.Bank.shipped(), probes.Grammar.shipped()
    probe = probes.render(bank, grammar, "bat-and-ball", {"distractor": "shortcut"})
    probes.route(bank["bat-and-ball"], "Answer: 10").signal

A probe can be rebuilt from the bank's hash, the grammar's hash, the task's id and the assignment of
components. An answer that disagrees with the key is a routing signal: a person should look at it.
It is not yet an error of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault.probes.bank.bank import Bank as Bank, Task as Task
    from groundfault.probes.bank.grammar import (
        ComponentGroup as ComponentGroup,
        Grammar as Grammar,
        Option as Option,
    )
    from groundfault.probes.bank.rendering import (
        Probe as Probe,
        probes as probes,
        rebuild as rebuild,
        render as render,
    )
    from groundfault.probes.running.answers import (
        Answer as Answer,
        Routing as Routing,
        extract as extract,
        route as route,
    )
    from groundfault.probes.running.config import Config as Config
    from groundfault.probes.running.run import run as run
    from groundfault.probes.running.runs import ProbeRow as ProbeRow, Runs as Runs

__getattr__, __dir__, __all__ = open_front_door(__name__)
