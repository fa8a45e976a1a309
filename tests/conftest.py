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

# half of the time of collecting goes into looking for garbage among modules that stay
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Run a suite that stands beside the tests where somebody names its folder or a file of it."""
    options = config.invocation_params.args
    if any(option.startswith("-m") for option in options):
        return
    for place in (Path(option.partition("::")[0]) for option in options):
        for mark in find_marks(place) if place.exists() else ():
            left = (part for part in config.option.markexpr.split(" and ") if mark not in part)
            config.option.markexpr = " and ".join(left)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files whose tests would all be deselected: importing them takes seconds."""
    marks = find_marks(collection_path) if collection_path.name.startswith("test_") else ()
    return any(f"not {mark}" in config.option.markexpr for mark in marks) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of files that are a suite of their own."""
    for item in items:
        for mark in find_marks(item.path):
            item.add_marker(mark)


@cache
def find_marks(path: Path) -> tuple[str, ...]:
    """Return the marks of all tests in a file: its folder's, and "lab" if it imports the lab at
    its top; of a folder, its own.
    """
    imports = ("from groundfault_lab", "import groundfault_lab")
    lines = path.read_text("utf-8").splitlines() if path.suffix == ".py" else ()
    lab = any(line.startswith(imports) for line in lines)
    folder = path.parent.name if path.suffix else path.resolve().name
    return (*((folder,) if folder in ("attacks", "studies") else ()), *(("lab",) if lab else ()))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what importing made; statsmodels calls it for every p-value."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)  # tests end before there is much
    gc.enable()


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
