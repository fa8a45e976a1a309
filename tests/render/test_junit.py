"""JUnit XML of a gate, as another program reads it."""

from __future__ import annotations

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestSuite
from msgspec.structs import replace

from groundfault.auditing.gating import Gate, GateMatch
from groundfault.auditing.since_baseline import SinceBaseline
from groundfault.render.gate import SUITE, headline, junit


def make_match(name: str, since: SinceBaseline | None = None) -> GateMatch:
    return GateMatch(
        name, "", "declared", "confirmed", f"{name} fails.", 0.2, 0.1, 0.3, None, since=since
    )


NEW = make_match(
    "lang <> 'de' & \"x\" \x1b[31m\x00\ud83d", SinceBaseline(0.1, 0.4, 90, True, 0.002)
)
GATE = Gate(
    passed=False,
    fail_on="confirmed and lift > 0",
    new=(NEW,),
    known=(make_match("table"), make_match("long")),
    gone=(),
    compared=True,
    detectable=0.3,
    blind=False,
    notes=(),
    uncompared=(make_match("odd"),),
)


def read(gate: Gate) -> TestSuite:
    (suite,) = JUnitXml.fromstring(junit(gate).encode("utf-8"))
    assert suite.name == SUITE
    return suite


def test_what_is_new_fails_and_what_is_known_passes() -> None:
    suite = read(GATE)
    cases = list(suite)
    results = {case.name: [type(result) for result in case.result] for case in cases}
    assert list(results.values()) == [[Failure], [], [], [Skipped], []]
    assert list(results)[1:] == ["table", "long", "odd", "the audit could see enough"]
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (5, 1, 1, 0)
    (failure,) = cases[0].result
    assert "went from 10% to 40%" in str(failure.message)
    assert cases[0].classname == f"{SUITE}.finding"
    recount = JUnitXml.fromstring(junit(GATE).encode("utf-8"))
    recount.update_statistics()
    assert (recount.tests, recount.failures, recount.skipped) == (5, 1, 1)


@pytest.mark.parametrize("blind", [True, False])
def test_a_blind_audit_is_a_failed_test(blind: bool) -> None:
    suite = read(replace(GATE, new=(), known=(), uncompared=(), blind=blind))
    (case,) = suite
    assert [type(result) for result in case.result] == [Failure] * blind
    assert suite.failures == blind
    messages = [str(result.message) for result in case.result]
    assert all("audit is too small" in message for message in messages)


def test_a_gate_that_finds_no_difference_at_all_says_so() -> None:
    gate = replace(GATE, new=(), blind=True, detectable=None)
    assert headline(gate).endswith("too small (it finds no difference)")
    assert headline(replace(gate, detectable=0.12)).endswith(
        "(it finds differences from 12 points)"
    )
