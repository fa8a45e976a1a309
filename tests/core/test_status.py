"""Statuses: one of them has a loss, and the others do not."""

from __future__ import annotations

from groundfault.core.status import UNSCORED, Status


def test_all_but_one_status_are_unscored() -> None:
    assert set(UNSCORED) == set(Status) - {Status.SCORED}
    assert "missing" in UNSCORED
    assert "scored" not in UNSCORED
