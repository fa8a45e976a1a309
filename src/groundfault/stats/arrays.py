"""Arrays by one name each, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.intp]
"""Where something stands in an array: whole numbers from 0."""
