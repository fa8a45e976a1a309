"""Type names of arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Places = NDArray[np.intp]
"""Positions of rows or columns."""
Singles = NDArray[np.float32]
"""Single precision, also for counts: whole numbers below 2^24 are exact."""
