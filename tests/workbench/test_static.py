"""What is served beside the pages: few lines of ours, and nobody else's."""

from __future__ import annotations

from importlib import resources

import pytest

FILES = resources.files("groundfault.workbench") / "static"


@pytest.mark.parametrize("name", ["workbench.js", "client.js"])
def test_our_own_script_stays_small_and_asks_nobody_else(name: str) -> None:
    text = (FILES / name).read_text()
    assert len(text.splitlines()) <= 300
    assert "http:" not in text
    assert "https:" not in text
    assert "eval" not in text
    assert "innerHTML" not in text
    assert "url(" not in (FILES / "workbench.css").read_text()
