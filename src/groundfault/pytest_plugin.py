"""A pytest plugin: the cases of a test suite as a table that `groundfault audit` reads.

``pytest --groundfault FILE`` writes a row for each test that is marked ``groundfault``: whether it
failed, and its parameters and the mark's keywords as attributes. A test that could not run, or that
ended in another exception than a failed assertion, has no outcome and does not count as a failure.
Only the standard library is imported until the table is written, since pytest loads every installed
plug-in.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

_CASE = "groundfault case"
_OWN = ("id", "test", "error", "status", "reason", "seconds")
_KINDS = (".parquet", ".csv", ".jsonl")
_MAX_TEXT = 10_000  # characters of a cell, so that one parameter does not fill the table


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--groundfault``."""
    parser.getgroup("groundfault").addoption(
        "--groundfault",
        metavar="FILE",
        help="Write the results of tests marked groundfault as a table (.parquet, .csv or .jsonl) "
        "for groundfault audit.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark, and gather results where a table is asked for."""
    config.addinivalue_line(
        "markers",
        "groundfault(**attributes): a case of an evaluation; --groundfault FILE writes its result, "
        "its parameters and these attributes",
    )
    name = config.getoption("--groundfault")
    if not name:
        return
    if Path(name).suffix not in _KINDS:
        raise pytest.UsageError(f"--groundfault {name}: end the name in {', '.join(_KINDS)}")
    # the workers of pytest-xdist send their reports to the main process
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Results(Path(name)), "groundfault results")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the case's parameters and its end to its report."""
    report = yield
    if item.get_closest_marker("groundfault") and item.config.getoption("--groundfault"):
        error = call.excinfo.value if call.excinfo else None
        # a failed assertion is the model's failure; any other exception is the evaluation's
        failed = isinstance(error, AssertionError | pytest.fail.Exception)
        lines = call.excinfo.exconly(tryshort=True).splitlines() if call.excinfo else []
        case = {"columns": _describe(item), "failed": failed, "reason": lines[0] if lines else None}
        report.user_properties.append((_CASE, case))
    return report


def _describe(item: pytest.Item) -> dict[str, object]:
    """Return parameters of a case, and attributes of its marks; the closest mark has the last
    word."""
    columns: dict[str, object] = {}
    for mark in reversed(list(item.iter_markers("groundfault"))):
        if mark.args:
            raise pytest.UsageError(
                f"{item.nodeid}: name each value that groundfault records, as in topic='dates'"
            )
        columns |= mark.kwargs
    call = getattr(item, "callspec", None)
    columns |= call.params if call is not None else {}
    return {_name(name): _simplify(value) for name, value in columns.items()}


def _name(name: str) -> str:
    return f"param_{name}" if name in _OWN else name


def _simplify(value: object) -> bool | int | float | str | None:
    """Return a value as a cell of a table: numbers, flags and texts as they are, others as they
    print."""
    if value is None or isinstance(value, bool | int | float):
        return value
    return (value if isinstance(value, str) else repr(value))[:_MAX_TEXT]


class _Results:
    """The results of a run, and the table that they become."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep how a case ended: the call decides, unless its set-up or tear-down broke."""
        case = dict(report.user_properties).get(_CASE)
        if not isinstance(case, Mapping):
            return
        row = self.rows.setdefault(report.nodeid, {"id": report.nodeid, "seconds": 0.0})
        row["seconds"] += report.duration
        row["test"] = report.nodeid.split("[")[0]
        if report.when == "call" or report.outcome != "passed":
            row |= {"reason": case["reason"], **_judge(report, failed=bool(case["failed"]))}
        row |= case["columns"]
        row |= {k: _simplify(v) for k, v in report.user_properties if k not in (*_OWN, _CASE)}

    def pytest_sessionfinish(self) -> None:
        """Write the table of the tests that ran, also after an interruption."""
        if self.rows:
            import polars as pl

            from groundfault.base.sheets import write_table

            rows = [{name: row.get(name) for name in _OWN} | row for row in self.rows.values()]
            write_table(pl.DataFrame(rows, infer_schema_length=None, strict=False), self.path)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table's path, and the command to audit it."""
        terminalreporter.section("groundfault")
        if not self.rows:
            terminalreporter.line(
                "no test that ran is marked groundfault: nothing was written; put "
                '@pytest.mark.groundfault(topic="dates") above a test to record it'
            )
            return
        scored = [row["error"] for row in self.rows.values() if row.get("error") is not None]
        terminalreporter.line(
            f"{len(self.rows)} cases in {self.path}: {sum(scored)} failed, "
            f"{len(self.rows) - len(scored)} without an outcome"
        )
        terminalreporter.line(
            f"groundfault audit {self.path} --id id --outcome error --positive-is-bad "
            "--status status --ignore reason --ignore seconds"
        )


def _judge(report: pytest.TestReport, *, failed: bool) -> dict[str, object]:
    """Return the outcome of a test, 1 for a failure; None if it could not be scored."""
    if hasattr(report, "wasxfail"):
        # a failure that was expected is a failure of the model all the same
        failed = report.outcome == "skipped"
        return {"error": int(failed), "status": "scored"}
    if report.outcome == "passed" or (failed and report.when == "call"):
        return {"error": int(report.outcome != "passed"), "status": "scored"}
    return {"error": None, "status": "missing" if report.outcome == "skipped" else "error"}
