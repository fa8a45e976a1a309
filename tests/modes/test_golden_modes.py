"""The default audit names the same failure modes, in the same order, as the golden file says."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "golden_modes.py"
spec = importlib.util.spec_from_file_location("golden_modes", SCRIPT)
assert spec is not None
assert spec.loader is not None
golden = importlib.util.module_from_spec(spec)
spec.loader.exec_module(golden)


@pytest.mark.parametrize("name", golden.TABLES)
def test_the_modes_of_a_stored_table_stay(name: str, shared: Path) -> None:
    stored = json.loads(golden.GOLDEN.read_text(encoding="utf-8"))
    assert golden.answer(golden.TABLES[name](shared / "real")) == stored[name]
