"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# the first call of a compiled kernel takes as long as compiling it
settings.register_profile("groundfault", deadline=None)
settings.load_profile("groundfault")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden cases and real results; the test is skipped, visibly, where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the shared data in {SHARED}")
    return SHARED
