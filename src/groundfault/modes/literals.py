"""Conditions under their old name, for scripts written before `conditions`."""

from __future__ import annotations

from groundfault.modes.condition import list_conditions as list_literals

__all__ = ["list_literals"]
