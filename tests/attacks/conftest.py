"""Counts the attacks of each test, for the figures of docs/explanation/attacks.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(autouse=True)
def attacks(
    request: pytest.FixtureRequest, record_property: Callable[..., None]
) -> Iterator[Counter[str]]:
    """What a test that attacks in a loop adds to; others are one attack, or one an example."""
    tally: Counter[str] = Counter()
    yield tally
    drawn = getattr(request.function, "_hypothesis_internal_use_settings", None)
    record_property("attacks", tally.total() or (drawn.max_examples if drawn else 1))
