"""Parameters of finders, as scikit-learn asks for them."""

from __future__ import annotations

import dataclasses
from typing import Any


class Parameters:
    """A dataclass whose constructor only stores: `sklearn.base.clone` makes an unfitted copy.

    Without scikit-learn's base class, which would be imported for every audit, and would promise a
    ``fit`` of a table and labels alone.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters of the constructor by name; ``deep`` has no effect."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]
