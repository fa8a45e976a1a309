"""What a list of checks comes to."""

from __future__ import annotations

from typing import Any

import pytest

from groundfault.auditing.verification_result import (
    Verification,
    VerificationCheck,
    judge_differences,
)


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        (["passed", "passed"], "reproduces"),
        (["passed", "waived"], "reproduces"),
        (["passed", "unchecked"], "cannot be verified"),
        (["unchecked", "failed"], "does NOT reproduce"),
        (["waived", "unchecked"], "cannot be verified"),
    ],
)
def test_one_failure_contradicts_and_what_is_unchecked_leaves_it_open(
    statuses: list[Any], verdict: str
) -> None:
    result = Verification(tuple(VerificationCheck("files", status, "so") for status in statuses))
    assert result.verdict == verdict
    assert result.reproduces == (verdict == "reproduces")
    assert result.ledger == ""


def test_differences_of_all_checks_are_listed_and_bounded() -> None:
    many = judge_differences([f"n: {i}, 0" for i in range(300)], "all follows")
    assert (many.status, len(many.differences)) == ("failed", 100)
    assert many.detail.startswith("300 values differ")
    assert judge_differences(["n: 1, 2"], "all follows").detail.startswith("1 value differs")
    none = judge_differences([], "all follows")
    assert (none.status, none.detail) == ("passed", "all follows")
    ledger = VerificationCheck("ledger", "passed", "it holds this", ("times: 1, 2",))
    result = Verification((many, ledger))
    assert len(result.differences) == 101
    assert result.ledger == "it holds this"
