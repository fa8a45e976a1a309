"""Conditions under the name that scoring scripts of published data sets use."""

from __future__ import annotations

from groundfault.modes.condition import list_conditions as list_literals

__all__ = ["list_literals"]
