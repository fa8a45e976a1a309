"""Numbers of the search have a reason, and stand on their page with today's value."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_every_number_of_the_search_is_on_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import constants

    page = (ROOT / "docs" / "explanation" / "constants.md").read_text(encoding="utf-8")
    numbers = constants.list_constants()
    assert len(numbers) > 50
    assert sum(one.decides for one in numbers) <= 25
    for one in numbers:
        assert one.reason, f"{one.module}.{one.name}"
        line = next(line for line in page.splitlines() if f"`{one.module}.{one.name}`" in line)
        assert line.split(" | ")[1] == constants._show(one.value), line
    sys.modules.pop("constants", None)


def test_a_number_is_halved_in_every_module_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import constants

    from groundfault.modes import condition, selection

    least = next(one for one in constants.list_constants() if one.name == "MIN_SUPPORT")
    constants.put(least, least.vary("halved"))
    try:
        assert (condition.MIN_SUPPORT, selection.MIN_SUPPORT) == (4, 4)
    finally:
        constants.put(least, least.value)
    assert (condition.MIN_SUPPORT, selection.MIN_SUPPORT) == (8, 8)
    sys.modules.pop("constants", None)
