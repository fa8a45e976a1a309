"""Long work: workers for repeats, here or on a named farm, and random numbers that do not depend on
the order of repeats; threads; free memory; progress."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from groundfault.errors import InputError, PlanError, first_line, require_extra

FARMS = ("dask", "ray")
# on smaller inputs, waking the other threads takes longer than the work
_SMALL = 20_000_000
_CGROUP = Path("/sys/fs/cgroup")
# of an installed package: read once a process, since parsing its metadata takes milliseconds
version = cache(metadata.version)

Progress = Callable[[str], object]
"""Function that is called with a message before each step."""


def run_in_order(calls: Iterable[object], jobs: int) -> Iterator[Any]:
    """Yield results of delayed calls in order, each as soon as it and all earlier ones are ready.

    If the backend of joblib cannot do that, like Ray's, all results come at the end.

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
    """Run the repeats in this block on a farm; with None, on this machine.

    Parameters
    ----------
    address : str, optional
        ``dask://HOST:PORT`` of a Dask scheduler, or ``ray://HOST:PORT`` of a Ray cluster. Its
        workers need the same version of groundfault.

    Raises
    ------
    PlanError
        If the address has another form.
    InputError
        If the address does not answer.
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
    with require_extra("workers at dask://... need Dask: pip install 'groundfault[dask]'"):
        from distributed import Client
    try:
        client = Client(f"tcp://{place}", timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {place}: {first_line(error)}") from None
    return client.close


def _join_ray(address: str) -> Any:
    with require_extra("workers at ray://... need Ray: pip install ray"):
        import ray
        from ray.util.joblib import register_ray
    try:
        ray.init(address=address)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"no Ray cluster answers at {address}: {first_line(error)}") from None
    register_ray()
    return ray.shutdown


@contextmanager
def enough_threads(work: int) -> Iterator[None]:
    """Limit compiled code to one thread below twenty million descriptor-unit pairs."""
    if work < _SMALL and "numba" not in sys.modules:
        # no code is compiled yet, and small work needs none: loading numba takes a second
        yield
        return
    import numba

    # restored afterwards: the number is global, and callers may have set it
    before = numba.get_num_threads()
    if work < _SMALL:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def enough_openmp_threads(work: int) -> AbstractContextManager[object]:
    """Limit the threads of scikit-learn as `enough_threads` limits threads of compiled code.

    These threads wait by spinning: with a second thread on a core that does other work, a fit of a
    thousand rows took thirty times as long as with one thread.
    """
    return _limit_threads("openmp", 1 if work < _SMALL else None)


def one_thread() -> AbstractContextManager[object]:
    """Limit many small products to one thread: no digit depends on the number of cores.

    The libraries are looked up once a process, so the block is cheap enough for every step.
    """
    limit: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limit


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit matrix products of small blocks to one thread, beside a pool that uses the cores."""
    return _limit_threads("blas", 1)


def _limit_threads(kind: str, limit: int | None) -> AbstractContextManager[object]:
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    manager: AbstractContextManager[object] = threadpool_limits(limit, kind)
    return manager


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def measure_free_memory() -> int | None:
    """Return bytes that are free for this process: of the machine, its container and its own limit.

    None where the system does not say, as outside Linux.
    """
    return min((size for size in _list_limits() if size is not None), default=None)


def _list_limits() -> Iterator[int | None]:
    with suppress(OSError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        yield from (int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable:"))
    limit, usage = (_read_number(_CGROUP / name) for name in ("memory.max", "memory.current"))
    yield None if limit is None or usage is None else limit - usage
    yield _read_address_space()


def _read_number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    # "max" where there is no limit
    return int(text) if text.isdigit() else None


def _read_address_space() -> int | None:
    if os.name != "posix":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def listener(progress: Progress | None) -> Progress:
    """Return the function to call with a message: the argument, or a function without effect."""
    return progress or _ignore


def _ignore(message: str) -> None:
    """Ignore a message, because the caller passed no function."""


def show_steps() -> Progress:
    """Return a function that shows the current step in one line, to be passed as ``progress``.

    The line is below the cell in a notebook, and on standard error in a terminal. Elsewhere, as in
    the log of a job, each step is a line of its own.

    Examples
    --------
    >>> import groundfault
    >>> table = {"lang": ["de", "en"] * 50, "error": [1, 0, 0, 0] * 25}
    >>> evidence = groundfault.Evidence.from_table(table, outcome="error")
    >>> report = groundfault.audit(evidence, ledger=False, progress=groundfault.show_steps())
    """
    shell = _find_notebook()
    if shell is not None:
        return _NotebookLine()
    return _write_over if sys.stderr.isatty() else _write_line


def _find_notebook() -> Any:
    """Return the running shell if it has a notebook's kernel, without importing IPython."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


class _NotebookLine:
    """One line of output below a cell, written anew with each message."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, message: str) -> None:
        content = {"text/plain": message}
        if self._handle is None:
            from IPython.display import display

            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def _write_over(message: str) -> None:
    """Write a message over the last one: back to the start of the line, which is cleared."""
    sys.stderr.write(f"\r\x1b[K{_clean(message)}")
    sys.stderr.flush()


def _write_line(message: str) -> None:
    sys.stderr.write(f"{_clean(message)}\n")


def _clean(message: str) -> str:
    """Return a message without control characters, which names of files and columns may hold."""
    return "".join(c if c.isprintable() else "\ufffd" for c in message)


def stream(seed: int, purpose: str, counter: int = 0) -> np.random.Generator:
    """Return a generator that depends only on seed, purpose and counter, not on earlier draws.

    Parameters
    ----------
    seed : int
        At least 0; the seed of the plan.
    purpose : str
        Purpose of the numbers. Two purposes never share a stream.
    counter : int
        The number of the stream, at least 0, if one purpose needs several.
    """
    # sha256, since Python's hash of a text differs from process to process
    word = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big")
    return np.random.default_rng([seed, word, counter])
