"""`budget` is the cap on labels and `burn_in` the paper's m; 0.1.0 called them otherwise."""

import json
from pathlib import Path

import pytest

from groundfault import SequentialAudit
from groundfault.sequential import Pool, SequentialPlan
from groundfault.sequential.plan import from_stored_names, to_stored_names

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "sequential" / "certificate.json"


def make_pool(cases=400):
    return Pool.from_arrays(range(cases), {"topic": ["a", "b"] * (cases // 2)})


@pytest.mark.parametrize("burn_in", [2, 40])
def test_no_more_than_the_budget_is_asked_for(burn_in):
    audit = SequentialAudit(make_pool(), threshold=0.85, budget=30, burn_in=burn_in, seed=1)
    audit.run(lambda query: float(query.step % 6 > 0))
    assert (audit.verdict, audit.labelled) == ("inconclusive", 30)
    assert audit.finished
    assert audit.ask() is None


def test_the_two_settings_have_names_of_their_own_in_a_certificate():
    audit = SequentialAudit(make_pool(), threshold=0.85, budget=30, burn_in=20, seed=1)
    content = audit.certificate().to_dict()
    assert (content["groundfault_certificate"], "limit" in content["plan"]) == (2, False)
    assert (content["plan"]["budget"], content["plan"]["burn_in"]) == (30, 20)


def test_the_seal_of_a_plan_of_0_1_0_is_what_it_was():
    stored = json.loads(STORED.read_text())
    plan = SequentialPlan.from_settings(stored["plan"])
    assert (plan.burn_in, plan.budget) == (30, None)
    assert plan.seal(stored["pool"]["hash"]) == stored["seal"]


def test_names_of_settings_go_there_and_back():
    settings = SequentialPlan(threshold=0.85, burn_in=7, budget=9).settings
    stored = to_stored_names(settings)
    assert (stored["budget"], stored["limit"], "burn_in" in stored) == (7, 9, False)
    assert from_stored_names(stored) == settings == from_stored_names(settings)
