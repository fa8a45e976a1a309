"""What cells of outcome and status come to."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from groundfault.auditing.counted_outcomes import (
    key_outcomes,
    read_keys,
    require_few_outcomes,
    sum_statuses,
)
from groundfault.core.roles import Roles
from groundfault.errors import InputError

ROLES = Roles("passed", "id", status="status", positive_is_good=True)


def test_cells_have_the_losses_of_their_rows() -> None:
    by = key_outcomes(ROLES)
    assert by == {"outcome": '"passed"', "status": '"status"'}
    assert key_outcomes(Roles("error", "id")) == {"outcome": '"error"'}
    keys = pl.DataFrame({"outcome": [0.25, 1, None], "status": ["scored", "Refused", "missing"]})
    loss, status = read_keys(keys, ROLES, "table")
    np.testing.assert_array_equal(loss, [0.75, np.nan, np.nan])
    rows = np.array([5, 3, 2])
    assert sum_statuses(status, rows) == {"scored": 5, "refused": 3, "missing": 2}
    with pytest.raises(InputError, match="table: status 'lost'"):
        read_keys(keys.with_columns(status=pl.lit("lost")), ROLES, "table")


def test_columns_of_many_values_are_refused_before_they_are_cells() -> None:
    sample = pl.DataFrame({"passed": np.arange(102) / 101, "status": "scored"})
    with pytest.raises(InputError, match=r"'passed' has over 101 values .* at most 101 grades"):
        require_few_outcomes(sample, ROLES)
    require_few_outcomes(sample, ROLES, most=102)
    many = sample.with_columns(status=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(InputError, match="'status' has over 20 values"):
        require_few_outcomes(many, ROLES, most=102)
