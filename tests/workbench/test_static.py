"""What is served beside the pages: few lines of ours, and nobody else's."""

from __future__ import annotations

from importlib import resources

import pytest

FILES = resources.files("groundfault.workbench") / "static"


NAMES = {file.name for file in FILES.iterdir() if file.name.endswith(".js")}
SCRIPTS = sorted(NAMES - {"review.js"})  # which reads what the server made


@pytest.mark.parametrize("name", SCRIPTS)
def test_our_own_script_stays_small_and_asks_nobody_else(name: str) -> None:
    text = (FILES / name).read_text()
    assert len(text.splitlines()) <= 400
    assert "http:" not in text
    assert "https:" not in text
    assert "eval" not in text
    assert "innerHTML" not in text
    for style in ("workbench.css", "explorer.css"):
        assert "url(" not in (FILES / style).read_text()
