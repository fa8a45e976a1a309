"""What is served beside the pages: one vendored file as it was published, and few lines of ours."""

from __future__ import annotations

from hashlib import sha256
from importlib import resources

FILES = resources.files("groundfault.workbench") / "static"
# dist/htmx.min.js of htmx.org 4.0.1
HTMX = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"


def test_the_vendored_file_is_as_published_and_has_its_licence() -> None:
    assert sha256((FILES / "htmx.min.js").read_bytes()).hexdigest() == HTMX
    assert "Zero-Clause BSD" in (FILES / "htmx.LICENSE").read_text()


def test_our_own_script_stays_small_and_asks_nobody_else() -> None:
    text = (FILES / "workbench.js").read_text()
    assert len(text.splitlines()) <= 300
    assert "http" not in text
    assert "eval" not in text
    assert "innerHTML" not in text
    assert "url(" not in (FILES / "workbench.css").read_text()
