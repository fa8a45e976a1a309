"""Progress: messages reach who listens, and nobody has to."""

from __future__ import annotations

import io
import sys

import pytest

from groundfault.base.long_work import listener, show_steps


def test_messages_reach_the_listener() -> None:
    messages: list[str] = []
    listener(messages.append)("half done")
    listener(None)("nobody listens")
    assert messages == ["half done"]


class Terminal(io.StringIO):
    """Standard error of somebody who looks at it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (Terminal(), "\r\x1b[Kreading a\ufffd[31m.csv\r\x1b[Kjudging"),
        (io.StringIO(), "reading a\ufffd[31m.csv\njudging\n"),
    ],
)
def test_steps_are_one_line_in_a_terminal_and_many_elsewhere(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, expected: str
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    show = show_steps()
    show("reading a\x1b[31m.csv")
    show("judging")
    assert stream.getvalue() == expected


@pytest.mark.slow
def test_a_notebook_shows_one_line_and_the_report() -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    code = """
import groundfault
table = {"lang": ["de", "en"] * 50, "error": [1, 0, 0, 0] * 25}
evidence = groundfault.Evidence.from_table(table, outcome="error")
groundfault.audit(evidence, ledger=False, progress=groundfault.show_steps())
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    steps, report = notebook.cells[0].outputs
    assert steps.data == {"text/plain": "writing the report"}
    assert report.data["text/plain"].startswith("<Report: 1 failure mode")
    assert report.data["text/html"].startswith('<div class="groundfault">')
