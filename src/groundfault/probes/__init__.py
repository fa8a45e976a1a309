"""Targeted tests: frozen task banks, a grammar of prompt components, and what an answer says.

::

    from groundfault import probes

    bank, grammar = probes.Bank.shipped(), probes.Grammar.shipped()
    probe = probes.render(bank, grammar, "bat-and-ball", {"distractor": "shortcut"})
    probes.route(bank["bat-and-ball"], "Answer: 10").signal

A probe can be rebuilt from the bank's hash, the grammar's hash, the task's id and the assignment of
components. That an answer disagrees with the key is a routing signal: it says what a person should
look at, and is no error of the model."""

from __future__ import annotations

from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.families import generate
from groundfault.probes.bank.grammar import Grammar, Group, Option
from groundfault.probes.bank.rendering import Probe, probes, rebuild, render
from groundfault.probes.running.answers import Answer, Routing, extract, route
from groundfault.probes.running.config import Config
from groundfault.probes.running.run import run
from groundfault.probes.running.runs import Row, Runs

__all__ = [
    "Answer",
    "Bank",
    "Config",
    "Grammar",
    "Group",
    "Option",
    "Probe",
    "Routing",
    "Row",
    "Runs",
    "Task",
    "extract",
    "generate",
    "probes",
    "rebuild",
    "render",
    "route",
    "run",
]
