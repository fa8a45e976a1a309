"""Threads: as many as the work needs, and as before afterwards."""

from __future__ import annotations

import numba
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from groundfault.base.threads import (
    enough_openmp_threads,
    enough_threads,
    one_blas_thread,
    one_thread,
)


def test_small_work_takes_one_thread() -> None:
    before = numba.get_num_threads()
    with enough_threads(10):
        assert numba.get_num_threads() == 1
    with enough_threads(10**9):
        assert numba.get_num_threads() == before
    assert numba.get_num_threads() == before


def test_small_fits_take_one_openmp_thread() -> None:
    # the library that scikit-learn brings
    import sklearn.utils._openmp_helpers  # noqa: F401

    def count() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"]

    with threadpool_limits(2, "openmp"):
        with enough_openmp_threads(10):
            assert set(count()) == {1}
        with enough_openmp_threads(10**9):
            assert set(count()) == {2}
        assert set(count()) == {2}


def test_products_are_the_same_under_a_limit() -> None:
    a = np.random.default_rng(0).random((50, 50))
    for limit in (one_thread, one_blas_thread):
        with limit():
            np.testing.assert_allclose(a @ a, np.einsum("ij,jk", a, a))
