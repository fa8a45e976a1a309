"""Tests of the studies run where the distribution of the studies is installed."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them; skip them, visibly, where `groundfault lab study` finds no study."""
    marks = [pytest.mark.studies]
    if not entry_points(group="groundfault.studies"):
        marks.append(pytest.mark.skip(reason="needs: pip install ./lab ./studies"))
    for item in items:
        if item.path.parent.name == "studies":
            for mark in marks:
                item.add_marker(mark)
