"""Messages: association, never cause; numbers as a reader expects them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from groundfault import Plan
from groundfault.auditing import messages
from groundfault.core.finding import Cell, Estimate, Finding, Opposite, Verdict

CELL = Cell(40, 60, 20, 6, 0.4, 0.001, 0.003, (0.2, 0.6))


def write(
    verdict: Verdict,
    plan: Plan | None = None,
    guarantee: str = "guaranteed",
    cell: Cell = CELL,
    *,
    is_graded: bool = False,
    **fields: Any,
) -> str:
    words = {"name": "long", "rule": "n > 9", "meaning": "it is long", "source": "", "outcome": ""}
    finding = Finding(
        **words | {name: fields.pop(name) for name in ("outcome",) if name in fields},
        verdict=verdict,
        reason="",
        sentence="",
        discovery=cell,
        holdout=cell,
        full=cell,
        **fields,
    )
    return messages.write_sentence(finding, plan or Plan(), guarantee, is_graded=is_graded)


def test_a_confirmed_finding_is_an_association() -> None:
    assert write(Verdict.CONFIRMED) == (
        "Confirmed association: failures are more frequent when it is long (20 of 40 that "
        "match, 6 of 60 others; held-out difference +40 points, not corrected for selection (90% "
        "interval +20 to +60); adjusted p = 0.003; guaranteed)."
    )


def test_a_mean_loss_is_no_count_of_failures() -> None:
    graded = replace(CELL, on_errors=20.5)
    text = write(Verdict.CONFIRMED, cell=graded, is_graded=True, outcome="m1")
    start = "losses of m1 are larger when it is long (mean loss 0.51 of 40 that match, 0.10 of 60 "
    assert text.startswith(f"Confirmed association: {start}others; held-out difference +40 points")
    less = write(Verdict.CONFIRMED, cell=replace(graded, lift=-0.1), is_graded=True)
    assert "losses are smaller when it is long" in less
    assert messages.write_conclusion(0.2, 0.3, 0, is_graded=True).endswith(
        "if its mean loss is 0.20 above that of the rest. Smaller differences may be missed."
    )


def test_a_confirmed_lift_is_called_selected_and_corrected() -> None:
    def tell(plan: Plan, estimate: Estimate, opposite: Opposite | None = None) -> str:
        cell = CELL if opposite is None else CELL.swap()
        words = {"opposite": opposite, "estimate": estimate}
        return write(Verdict.CONFIRMED, plan, "sure", cell, **words)

    lift = Estimate(0.31, (0.0, 0.6))
    corrected = (
        "held-out difference +40 points, or +31 corrected for selection (90% interval 0 to +60)"
    )
    assert corrected in tell(Plan(), lift)
    # told of the other side, the correction turns as well
    assert corrected in tell(Plan(), lift.swap(), Opposite("short", "n < 9", "it is short"))
    ratio = tell(Plan(effect="risk_ratio"), Estimate(2.5, (1.0, 6.0)))
    assert (
        "or risk ratio 2.50 corrected for selection (risk ratio 90% interval 1.00 to 6.00)" in ratio
    )


def test_what_is_too_small_is_called_real() -> None:
    text = write(Verdict.TOO_SMALL)
    assert text.startswith("Real, and smaller than was asked for: failures are more frequent")
    assert "adjusted p = 0.003" in text
    asked = write(Verdict.TOO_SMALL, Plan(min_lift="0.5"), "sure")
    assert asked.endswith("the least difference asked for is 50 points).")


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.CONFIRMED])
def test_nothing_else_is_called_confirmed(verdict: Verdict) -> None:
    assert not write(verdict).startswith("Confirmed")
    assert "failures of b" in write(verdict, outcome="b")


def test_numbers() -> None:
    assert messages.format_points(None) == "undefined"
    assert messages.format_points(-0.125) == "−12"
    assert [messages.format_points(x) for x in (0.0, 0.004, 0.0994)] == ["0", "+0.4", "+9.9"]
    assert [*map(messages.equal_p, (0.031, 0.00012, 1e-22))] == [
        "p = 0.031",
        "p = 0.0001",
        "p < 0.0001",
    ]
    assert messages.format_percent(0.1) == "10%"


def test_no_finding_is_never_no_failure_mode() -> None:
    assert "too small" in messages.write_conclusion(None, 0.3, 0)
    assert "Smaller differences may be missed" in messages.write_conclusion(0.2, 0.3, 0)
    assert messages.write_conclusion(None, 0.3, 0, "nobody knows").endswith(
        "is unknown: nobody knows."
    )
    headline = messages.write_deciding(["a kind"])
    assert headline.endswith("if it follows from it, --post-outcome 'a kind'")
    assert messages.write_conclusion(None, 0.3, 0, deciding=["a kind"]).startswith(f"{headline}. ")
