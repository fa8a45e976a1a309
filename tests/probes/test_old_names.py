"""Public names of 0.1.0 that work for one more release, with a warning that names the new one."""

from __future__ import annotations

import importlib

import pytest

from groundfault import probes
from groundfault.probes import policies


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("groundfault.probes", "Group", "groundfault.probes:ComponentGroup"),
        ("groundfault.probes", "Row", "groundfault.probes:ProbeRow"),
        ("groundfault.probes", "arena", "groundfault_lab.probes.arena"),
        ("groundfault.probes.policies", "Asked", "groundfault.probes.policies:PromptHistory"),
        ("groundfault.probes.policies", "Policy", "groundfault.probes.policies:PromptPolicy"),
        ("groundfault.probes.policies", "Uniform", "groundfault.probes.policies:UniformPrompts"),
        (
            "groundfault.probes.policies",
            "Stratified",
            "groundfault.probes.policies:StratifiedPrompts",
        ),
        (
            "groundfault_lab.probes.summary_schema",
            "ProbeSummary",
            "groundfault_lab.probes.summary:ProbeSummary",
        ),
        (
            "groundfault.probes.review.reviewed_runs",
            "Audit",
            "groundfault.probes.review.reviewed_runs:ReviewedRuns",
        ),
    ],
)
def test_old_attributes_are_the_new_ones(module: str, old: str, new: str) -> None:
    place, _, attribute = new.partition(":")
    target = importlib.import_module(place)
    with pytest.warns(DeprecationWarning, match=old):
        value = getattr(importlib.import_module(module), old)
    assert value is (getattr(target, attribute) if attribute else target)


def test_old_parameters_and_members_are_the_new_ones() -> None:
    bank, grammar = probes.Bank.shipped(), probes.Grammar.shipped()
    components = {"distractor": "shortcut"}
    probe = probes.render(bank, grammar, "bat-and-ball", components)
    with pytest.warns(DeprecationWarning, match="components"):
        assert probes.render(bank, grammar, "bat-and-ball", given=components) == probe
    with pytest.warns(DeprecationWarning, match="options_of"):
        assert grammar.chosen(probe.assignment) == grammar.options_of(probe.assignment)
    with pytest.warns(DeprecationWarning, match="max_queries"):
        assert policies.Capped(policies.UniformPrompts(), most=3).max_queries == 3
