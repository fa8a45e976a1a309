"""What a contributor runs, each in an environment of its own: ``nox -s test``, or ``nox -l``.

Everything is installed from pyproject.toml. Words after ``--`` go to the command, as in
``nox -s test -- -k ledger``; ``--force-python 3.14`` takes another Python.
"""

from __future__ import annotations

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "test"]
nox.options.reuse_venv = "yes"
# every test that runs before a merge
FAST = "not slow and not clients and not browser"


@nox.session
def test(session: nox.Session) -> None:
    """Run the fast tests on all cores."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session
def documents(session: nox.Session) -> None:
    """Run the tests of lab and studies, the pages of the book, and the attacks."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies")
    beside = "(lab or documents or studies or attacks) and not slow and not clients and not browser"
    session.run("pytest", "-n", "auto", "-m", beside, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, layout and types."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Bring the generated pages up to date, and build the book; a warning is an error."""
    session.install("-e", ".[docs]")
    session.run("python", "docs/generate.py")
    session.run("sphinx-build", "-W", "docs", "docs/_build/html", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run every test, also those that take minutes, with the full number of examples."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies")
    every = ["pytest", "-m", "slow or not slow", "-n", "auto"]
    session.run(*every, *session.posargs, env={"HYPOTHESIS_PROFILE": "nightly"})


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure what the fast tests cover, branches included; less than pyproject.toml says fails."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies")
    session.run("pytest", "-n", "auto", "--cov", "-m", FAST, *session.posargs)


@nox.session
def mutate(session: nox.Session) -> None:
    """Break the code that decides in small ways, and count how often a test notices."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies", "cosmic-ray>=8.4")
    session.run("python", "scripts/mutate.py", *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Time the kernels beside their peers, and compare the ratios with the stored ones."""
    session.install("-e", ".[test]", "-e", "./lab", "-e", "./studies")
    session.run("python", "benchmarks/check.py", *session.posargs)


@nox.session(venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """Run the fast tests with the lowest versions that pyproject.toml allows; needs uv."""
    session.install(
        "--resolution", "lowest-direct", "-e", ".[test]", "-e", "./lab", "-e", "./studies"
    )
    session.run("pytest", "-n", "auto", *session.posargs)
