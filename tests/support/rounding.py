"""Results that may differ in their last bits: exponentials do, between processors."""

from __future__ import annotations

from typing import Any

import pytest


def approximate(value: Any) -> Any:
    """The same, numbers but for rounding."""
    if isinstance(value, dict):
        return {key: approximate(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [approximate(each) for each in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12) if isinstance(value, float) else value
