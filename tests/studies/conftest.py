"""Tests of the studies run where the distribution of the studies is installed."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip them, visibly, where `groundfault lab study` finds no study."""
    if not entry_points(group="groundfault.studies"):
        for item in items:
            if item.path.parent.name == "studies":
                item.add_marker(pytest.mark.skip(reason="needs: pip install ./lab ./studies"))
