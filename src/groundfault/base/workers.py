"""Workers: where repeats run, on processes of this machine or on a farm that is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from groundfault.errors import InputError, MissingExtraError, PlanError, first_line

FARMS = ("dask", "ray")


def run_in_order(calls: Iterable[Any], jobs: int) -> Iterator[Any]:
    """Results of delayed calls in their order, each as soon as it and those before it are there.

    Where the backend of joblib cannot do that, as Ray's cannot, all come at the end.

    Parameters
    ----------
    calls : iterable of joblib.delayed calls
    jobs : int
        Processes; -1 is all cores, or all workers of a farm.
    """
    from joblib import Parallel

    try:
        run = Parallel(n_jobs=jobs, return_as="generator")
    except ValueError:
        # a backend without generators says so when it is asked for one
        run = Parallel(n_jobs=jobs)
    yield from run(calls)


@contextmanager
def use_workers(address: str | None) -> Iterator[None]:
    """Let everything that is repeated inside run on a farm; with None, on this machine.

    Parameters
    ----------
    address : str, optional
        ``dask://HOST:PORT`` of a Dask scheduler, or ``ray://HOST:PORT`` of a Ray cluster. Its
        workers have to have the same version of groundfault.

    Raises
    ------
    PlanError
        If it is neither.
    InputError
        If nobody answers there.
    MissingExtraError
        If the farm's library is not installed.
    """
    if address is None:
        yield
        return
    kind, _, place = address.partition("://")
    if kind not in FARMS or not place:
        raise PlanError(f"workers {address!r} are neither dask://HOST:PORT nor ray://HOST:PORT")
    from joblib import parallel_config

    disconnect = _join_dask(place) if kind == "dask" else _join_ray(address)
    try:
        with parallel_config(kind):
            yield
    finally:
        disconnect()


def _join_dask(place: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError(
            "workers at dask://... need Dask: pip install 'groundfault[dask]'"
        ) from None
    try:
        client = Client(f"tcp://{place}", timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {place}: {first_line(error)}") from None
    return client.close


def _join_ray(address: str) -> Any:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise MissingExtraError("workers at ray://... need Ray: pip install ray") from None
    try:
        ray.init(address=address)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"no Ray cluster answers at {address}: {first_line(error)}") from None
    register_ray()
    return ray.shutdown
