"""What has to be equal in a report and its recomputation, also in reports of earlier versions."""

from __future__ import annotations

from groundfault.auditing import verification


def test_what_is_too_small_had_another_verdict_in_0_1() -> None:
    row = {
        "verdict": "too_small",
        "holdout": None,
        "sensitivity": {"all_failed": "too_small", "all_passed": "confirmed"},
        "discovery": {"lift": 0.1},
        "estimate": None,
        "reason": "min_effect",
    }
    older = verification._make_older(row)
    assert older["verdict"] == older["sensitivity"]["all_failed"] == "below_floor"
    assert older["sensitivity"]["all_passed"] == "confirmed"
    assert verification._make_older(row | {"holdout": {}})["verdict"] == "not_replicated"
    assert "estimate" not in older
    confirmed = row | {"verdict": "confirmed", "discovery": {"lift": 0.01}}
    assert sorted([row, confirmed], key=verification._rank_older)[0] is confirmed
