"""Every kind of report says what its golden page says, in the same words."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "golden_pages.py"
spec = importlib.util.spec_from_file_location("golden_pages", SCRIPT)
assert spec is not None
assert spec.loader is not None
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)


@pytest.mark.parametrize("make", golden.PAGES, ids=lambda make: make.__name__)
def test_a_page_of_each_kind_stays(make: Callable[[], Iterator[tuple[str, str]]]) -> None:
    for name, text in make():
        assert text == (golden.GOLDEN / name).read_text(encoding="utf-8"), name
