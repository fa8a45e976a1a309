"""The names of arrays: one for each kind, and nowhere a second."""

from __future__ import annotations

from typing import get_args

import numpy as np

from groundfault.stats import arrays


def test_each_name_is_of_one_kind_of_number() -> None:
    kinds = {
        name: get_args(get_args(getattr(arrays, name))[1])[0]
        for name in ("Bools", "Floats", "Ints", "Places")
    }
    assert kinds == {
        "Bools": np.bool_,
        "Floats": np.float64,
        "Ints": np.int64,
        "Places": np.intp,
    }
