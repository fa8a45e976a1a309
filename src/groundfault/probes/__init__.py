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

from groundfault.base.deprecation import rename_attributes
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.families import generate
from groundfault.probes.bank.grammar import ComponentGroup, Grammar, Option
from groundfault.probes.bank.rendering import Probe, probes, rebuild, render
from groundfault.probes.running.answers import Answer, Routing, extract, route
from groundfault.probes.running.config import Config
from groundfault.probes.running.run import run
from groundfault.probes.running.runs import ProbeRow, Runs

__all__ = [
    "Answer",
    "Bank",
    "ComponentGroup",
    "Config",
    "Grammar",
    "Option",
    "Probe",
    "ProbeRow",
    "Routing",
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

__getattr__ = rename_attributes(
    __name__,
    {
        "Group": "groundfault.probes:ComponentGroup",
        "Row": "groundfault.probes:ProbeRow",
        "arena": "groundfault.probes.use.arena",
        "asked": "groundfault.probes.policies.history",
        "auditing": "groundfault.probes.review.reviewed_runs",
        "endpoints": "groundfault.probes.use.endpoints",
        "evidence": "groundfault.probes.use.evidence",
        "release": "groundfault.probes.use.release",
        "summary": "groundfault.probes.use.summary",
    },
)
