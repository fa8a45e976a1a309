"""Memory: the least of what the machine, the container and the process's limit leave."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from groundfault.base import memory
from groundfault.base.memory import measure_free_memory


@pytest.mark.skipif(sys.platform != "linux", reason="read from Linux")
def test_a_limit_of_the_process_counts() -> None:
    free = measure_free_memory()
    assert free is not None
    assert 2**20 < free < 2**50
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        # far above what is in use, so that nothing fails meanwhile
        resource.setrlimit(resource.RLIMIT_AS, (2**43, before[1]))
        assert 2**43 in memory._list_limits()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_no_limit_is_none(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("17\n")
    assert memory._read_number(tmp_path / "memory.max") is None
    assert memory._read_number(tmp_path / "memory.current") == 17
    assert memory._read_number(tmp_path / "nowhere") is None
