"""Finders: each proposes candidates from discovery evidence.

A finder is an ordinary class with a ``name`` and a ``propose`` method; packages register theirs
under the entry-point group ``groundfault.finders``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from groundfault.base.registry import load_object, open_registry
from groundfault.errors import PlanError

if TYPE_CHECKING:
    from groundfault.core.candidate import Candidate
    from groundfault.core.evidence import Evidence

GROUP = "groundfault.finders"

DEFAULT = ("instrument", "declared", "thresholds", "categories", "text")
"""The finders of an audit that names neither finders nor candidates."""


_REGISTRY = open_registry("finder", GROUP)


class Finder(Protocol):
    """A proposer of candidates from discovery rows: equal rows give equal candidates."""

    @property
    def name(self) -> str:
        """Return the finder's name, which becomes the source of its candidates."""

    def propose(self, discovery: Evidence) -> Iterable[Candidate]:
        """Propose candidates, each with a name of its own."""


class Parameters:
    """A dataclass whose constructor only stores: `sklearn.base.clone` makes an unfitted copy.

    Without scikit-learn's base class, which would be imported for every audit, and would promise a
    ``fit`` of a table and labels alone.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters of the constructor by name; ``deep`` has no effect."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]


def known() -> tuple[str, ...]:
    """Return names of the available finders: built-in ones, then those from installed packages."""
    return _REGISTRY.names()


def get(name: str) -> Callable[..., Finder]:
    """Return the finder class with a name; it is imported only now.

    Raises
    ------
    PlanError
        If no finder has the name, or the package that registered it cannot be imported.
    """
    return _REGISTRY.get(name)


def make(name: str, so_far: Sequence[Candidate] = ()) -> Finder:
    """Return a finder with its default settings.

    Parameters
    ----------
    name : str
        ``interactions:2`` combines pairs of the candidates proposed before it, ``interactions``
        also triples; ``language:PIPELINE`` reads texts by a spaCy pipeline of that name or folder.
    so_far : sequence of Candidate
        Candidates proposed before it.

    Raises
    ------
    PlanError
        If no finder has the name, or the order of ``interactions`` is not a number.
    """
    plain, _, order = name.partition(":")
    if plain == "language" and order:
        return get(plain)(pipeline=order)
    if plain != "interactions":
        return get(name)()
    if order and not order.isdigit():
        raise PlanError(
            f"{name!r} must be interactions, interactions:2 (pairs) or interactions:3 (triples too)"
        )
    return get(plain)(tuple(so_far), order=tuple(range(2, int(order or 3) + 1)))


def __getattr__(name: str) -> object:
    """Return finder classes by their own names; a class is imported when it is asked for."""
    for target in _REGISTRY.built_in.values():
        if target.endswith(f":{name}"):
            return load_object(target)
    raise AttributeError(f"module 'groundfault.finders' has no attribute {name!r}")
