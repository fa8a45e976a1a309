"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from postgres import server
from profiles import load_profile

load_profile()

# before NumPy is imported: beside another worker, threads that wait by spinning for a core take
# several times as long as the work. No result depends on their number; tests of that set it
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# tests look at the same outcomes again and again; those about the ledger name one. Set here, since
# fixtures of whole modules audit too
os.environ["GROUNDFAULT_LEDGER"] = "off"

pytest_plugins = ["log_samples"]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests in files that import the lab: its own, and those that need a part of it."""
    for item in items:
        if needs_lab(item.path):
            item.add_marker(pytest.mark.lab)


@cache
def needs_lab(path: Path) -> bool:
    """Return whether a test file imports the lab at its top."""
    imports = ("from groundfault_lab", "import groundfault_lab")
    return any(line.startswith(imports) for line in path.read_text("utf-8").splitlines())


def pytest_collection_finish() -> None:
    """Spare the garbage collector what importing made; statsmodels calls it for every p-value."""
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of golden cases and real results; the test is skipped, visibly, where it is
    absent.
    """
    if not SHARED.is_dir():
        pytest.skip(f"needs the shared data in {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL database to empty; the test is skipped, visibly, where there is
    none.
    """
    with server() as url:
        if url is None:
            pytest.skip(
                "needs PostgreSQL: install Debian's package, or set GROUNDFAULT_TEST_POSTGRES to a "
                "URL"
            )
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be kept: a file, and a PostgreSQL database."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    import psycopg

    url = str(request.getfixturevalue("postgres"))
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute("DROP TABLE IF EXISTS groundfault_ledger")
    return url
