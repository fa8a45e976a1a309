"""Parameters, a projection and checks of finders that are fitted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from groundfault.base.arrays import Floats
from groundfault.errors import InputError, PlanError, require_whole
from groundfault.finders import Parameters
from groundfault_lab.stats.mixture_predict import principal_axes

Projection = tuple[Floats, Floats]
"""Centre, shape (d,), and principal axes, shape (q, d)."""


class Estimator(Parameters):
    """A dataclass whose constructor only stores; what it learns ends in an underscore.

    It needs fields ``name``, ``pca`` and ``projection_``.
    """

    name: str
    pca: int | None
    projection_: Projection | None

    def set_params(self, **params: Any) -> Self:
        """Change parameters, as scikit-learn does.

        Raises
        ------
        PlanError
            If there is no such parameter.
        """
        parameters = self.get_params()
        for name, value in params.items():
            if name not in parameters:
                raise PlanError(
                    f"{self.name} has no parameter {name!r}; there are {', '.join(parameters)}"
                )
            setattr(self, name, value)
        return self

    def _require_fit(self) -> Self:
        attributes = [f.name for f in dataclasses.fields(self) if not f.init]  # type: ignore[arg-type]
        if not all(hasattr(self, name) for name in attributes):
            raise InputError(f"this {self.name} is not fitted; call fit(Z, y_true, y_proba) first")
        return self

    def _project(self, embedding: Floats) -> Floats:
        """Fit the projection, and apply it."""
        self.projection_ = None if self.pca is None else principal_axes(embedding, self.pca)
        return self._reduce(embedding)

    def _reduce(self, embedding: Floats) -> Floats:
        if self.projection_ is None:
            return embedding
        centre, axes = self.projection_
        return np.asarray((embedding - centre) @ axes.T)

    def _require_whole(self, minimums: dict[str, int]) -> None:
        """Raise `PlanError` unless parameters are whole numbers of at least a minimum.

        None is allowed for ``pca``.
        """
        for parameter, low in minimums.items():
            value = getattr(self, parameter)
            if parameter == "pca" and value is None:
                continue
            require_whole(f"{self.name}: {parameter}", value, low)

    def _require_numbers(
        self, parameters: Iterable[str], *, zero: bool = False, maximum: float = math.inf
    ) -> None:
        """Raise `PlanError` unless parameters are finite and above 0, or 0 where allowed."""
        for parameter in parameters:
            value = getattr(self, parameter)
            number = (
                isinstance(value, int | float | np.number)
                and not isinstance(value, bool)
                and math.isfinite(value)
            )
            if not number or value < 0 or value > maximum or (value == 0 and not zero):
                low = "at least 0" if zero else "above 0"
                high = f" and at most {maximum:g}" if maximum < math.inf else ""
                raise PlanError(
                    f"{self.name}: {parameter} must be a number {low}{high}, not {value!r}"
                )
