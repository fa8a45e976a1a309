"""The two settings of sequential audits that changed their names, and who still has the old ones.

In 0.1.0 ``budget`` was the paper's m, after which the auditor's own test begins, and ``limit`` the
most cases to label. They are ``burn_in`` and ``budget`` now. Seals, ledgers and certificates of
layout 1 keep the names of 0.1.0 (decision 0035). Settings with a ``limit`` have the old names, for
no new setting is called so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")

_STORED_NAMES = {"burn_in": "budget", "budget": "limit"}
_NEW_NAMES = {stored: name for name, stored in _STORED_NAMES.items()}


def to_stored_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of 0.1.0, in the same order."""
    return {_STORED_NAMES.get(name, name): value for name, value in settings.items()}


def from_stored_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by today's names; those that have them already are returned as they are."""
    if "limit" not in settings or "burn_in" in settings:
        return dict(settings)
    return {_NEW_NAMES.get(name, name): value for name, value in settings.items()}


def accept_stored_names(cls: type[T]) -> type[T]:
    """Decorate a class so that ``limit=`` is understood as in 0.1.0 for one release, and warns.

    ``budget=`` without ``limit=`` has its new meaning: the two cannot be told apart.

    Raises
    ------
    TypeError
        On a call that has ``limit`` beside both new names.
    """
    begin: Callable[..., None] = cls.__init__

    @wraps(begin)
    def begin_by_either_name(self: T, *args: Any, **settings: Any) -> None:
        if "limit" in settings:
            if "burn_in" in settings:
                raise TypeError(f"{cls.__name__} was given limit=, which is now budget=: leave out")
            warnings.warn(
                f"{cls.__name__}(limit=) is now called budget=, and what was budget= is called "
                "burn_in=; limit= will be removed in the next minor release",
                DeprecationWarning,
                stacklevel=2,
            )
            settings = from_stored_names(settings)
        begin(self, *args, **settings)

    setattr(cls, "__init__", begin_by_either_name)  # noqa: B010
    return cls
