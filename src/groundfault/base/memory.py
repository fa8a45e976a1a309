"""Memory: how much this process may still take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def measure_free_memory() -> int | None:
    """Bytes that are free for this process: of the machine, its container and its own limit.

    None where the system does not say, as outside Linux.
    """
    return min((size for size in _list_limits() if size is not None), default=None)


def _list_limits() -> Iterator[int | None]:
    yield _read_free()
    limit, usage = (_read_number(_CGROUP / name) for name in ("memory.max", "memory.current"))
    yield None if limit is None or usage is None else limit - usage
    yield _read_address_space()


def _read_free() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return sizes[0] if sizes else None


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
