"""Messages: association, never cause; numbers as a reader expects them."""

from __future__ import annotations

import pytest

from groundfault import Plan
from groundfault.auditing import messages
from groundfault.core.finding import Cell, Verdict

CELL = Cell(40, 60, 20, 6, 0.4, 0.001, 0.003, (0.2, 0.6))


def write(verdict: Verdict, what: str = "errors") -> str:
    return messages.write_sentence(verdict, "it is long", what, CELL, CELL, Plan(), "guaranteed")


def test_a_confirmed_finding_is_an_association() -> None:
    assert write(Verdict.CONFIRMED) == (
        "Confirmed association: errors are more frequent when it is long (on 20/40, off 6/60; "
        "held-out lift +0.40, 90% interval +0.20 to +0.60; adjusted p = 0.003; guaranteed)."
    )


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.CONFIRMED])
def test_nothing_else_is_called_confirmed(verdict: Verdict) -> None:
    assert not write(verdict).startswith("Confirmed")
    assert "errors of b" in write(verdict, "errors of b")


def test_numbers() -> None:
    assert messages.format_lift(None) == "undefined"
    assert messages.format_lift(-0.125) == "-0.12"
    assert messages.format_p_value(0.00012) == "1.2e-04"
    assert messages.format_percent(0.1) == "10%"


def test_no_finding_is_never_no_failure_mode() -> None:
    assert "too small" in messages.write_conclusion(None, 0.3, 0)
    assert "smaller effects are not excluded" in messages.write_conclusion(0.2, 0.3, 0)
