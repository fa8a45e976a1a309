"""A screen: a name in the top bar, its addresses, and its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import Route

    from groundfault.workbench.bench import Bench

SCREENS = (
    "case",
    "modes",
    "examples",
    "rows",
    "rules",
    "compare",
    "holdout",
    "cards",
    "review",
    "review_progress",
    "probes",
    "taxonomy",
    "live",
)
"""Modules of `groundfault.workbench.screens`, each with a ``SCREEN``, as the top bar has them."""


@dataclass(frozen=True)
class Screen:
    """One screen of the workbench.

    Attributes
    ----------
    title : str
        In the top bar; empty for a screen that others lead to.
    path : str
        Where the top bar leads, such as ``/rule``.
    routes : tuple of Route
        All its addresses.
    keys : tuple of pair of str
        Keys and what they do, for the page that ``?`` opens; elements with ``data-key`` obey them.
    key : str
        Leads there from anywhere.
    shown : callable
        Whether there is anything to show for what was opened.
    """

    title: str
    path: str
    routes: tuple[Route, ...]
    keys: tuple[tuple[str, str], ...] = ()
    key: str = ""
    shown: Callable[[Bench], bool] = lambda _: True


def load_screens(names: tuple[str, ...] = SCREENS) -> tuple[Screen, ...]:
    """The screens of these modules."""
    modules = (import_module(f"groundfault.workbench.screens.{name}") for name in names)
    return tuple(module.SCREEN for module in modules)
