"""Judges: the protocol that the built-in ones satisfy, and what does not."""

from __future__ import annotations

import pytest

from groundfault import judges
from groundfault.core.judge import Judge


@pytest.mark.parametrize("name", judges.NAMES)
def test_built_in_judges_satisfy_the_protocol(name: str) -> None:
    judge = judges.get(name)
    assert isinstance(judge, Judge)
    assert judge.name == name
    assert judge.confirmation in ("gate", "exact", "none")


def test_other_things_do_not() -> None:
    assert not isinstance("holm", Judge)
    assert not isinstance(object(), Judge)
