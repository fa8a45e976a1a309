"""Workers: any backend of joblib gives the same results, also one without generators."""

from __future__ import annotations

import importlib.util
import resource
import sys
from pathlib import Path
from typing import Any

import joblib
import numba
import numpy as np
import pytest
from joblib import delayed
from threadpoolctl import threadpool_info, threadpool_limits

from groundfault.base import long_work
from groundfault.base.long_work import (
    enough_openmp_threads,
    enough_threads,
    measure_free_memory,
    one_blas_thread,
    one_thread,
    run_in_order,
    use_workers,
)
from groundfault.errors import InputError, MissingExtraError, PlanError
from groundfault_lab.testing import World, calibrate

WORLD = [World(units=60, candidates=4)]
HAS_DASK = importlib.util.find_spec("distributed") is not None
HAS_RAY = importlib.util.find_spec("ray") is not None


class Plain(joblib.parallel.ThreadingBackend):
    """A backend as Ray's: whole lists only."""

    supports_return_generator = False


@pytest.fixture
def plain() -> Any:
    joblib.register_parallel_backend("plain", Plain)
    yield "plain"
    del joblib.parallel.BACKENDS["plain"]


def test_results_come_in_order() -> None:
    assert list(run_in_order((delayed(pow)(i, 2) for i in range(5)), 1)) == [0, 1, 4, 9, 16]


def test_a_backend_without_generators_gives_the_same_card(plain: str) -> None:
    here = calibrate("holm", worlds=WORLD, replicates=20)
    with joblib.parallel_config(plain):
        there = calibrate("holm", worlds=WORLD, replicates=20, jobs=2)
    assert there.rows == here.rows


def test_what_is_no_farm_is_refused() -> None:
    for address in ("tcp://host:1", "dask://", "host"):
        with pytest.raises(PlanError, match="neither dask"), use_workers(address):
            pass
    with use_workers(None):
        assert list(run_in_order([delayed(abs)(-1)], 1)) == [1]


@pytest.mark.skipif(HAS_DASK, reason="Dask is installed")
def test_a_missing_library_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"groundfault\[dask\]"), use_workers("dask://h:1"):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not HAS_DASK, reason="Dask is not installed")
def test_two_workers_of_dask_give_the_same_card() -> None:
    from distributed import LocalCluster

    here = calibrate("holm", worlds=WORLD, replicates=200)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        with use_workers(address):
            there = calibrate("holm", worlds=WORLD, replicates=200, jobs=-1)
    assert there.rows == here.rows
    with pytest.raises(InputError, match="no Dask scheduler"), use_workers(address):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed")
def test_ray_gives_the_same_card() -> None:
    import ray
    from ray.util.joblib import register_ray

    here = calibrate("holm", worlds=WORLD, replicates=40)
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            there = calibrate("holm", worlds=WORLD, replicates=40, jobs=2)
    finally:
        ray.shutdown()
    assert there.rows == here.rows


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


@pytest.mark.skipif(sys.platform != "linux", reason="read from Linux")
def test_a_limit_of_the_process_counts() -> None:
    free = measure_free_memory()
    assert free is not None
    assert 2**20 < free < 2**50
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        # far above what is in use, so that nothing fails meanwhile
        resource.setrlimit(resource.RLIMIT_AS, (2**43, before[1]))
        assert 2**43 in long_work._list_limits()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_no_limit_is_none(tmp_path: Path) -> None:
    (tmp_path / "machine.max").write_text("max\n")
    (tmp_path / "machine.current").write_text("17\n")
    assert long_work._read_number(tmp_path / "machine.max") is None
    assert long_work._read_number(tmp_path / "machine.current") == 17
    assert long_work._read_number(tmp_path / "nowhere") is None
