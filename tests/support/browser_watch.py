"""A browser page that fails its test if anything in it complains, or asks a stranger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


def open_page(context: BrowserContext) -> Page:
    """A new page, whose ``goto`` waits until the script has put the content there."""
    page = context.new_page()
    go = page.goto

    def go_and_wait(url: str, **settings: Any) -> None:
        go(url, **settings)
        if not url.startswith("about:"):
            page.wait_for_selector("main:not([aria-busy])", state="attached")

    page.goto = go_and_wait  # type: ignore[assignment,method-assign]
    return page


class Watch:
    """A new page of a browser that may neither complain nor ask anybody but the workbench."""

    def __init__(self, browser: Browser, address: str, **settings: Any) -> None:
        self._home = address.split("/#")[0]
        self._context = browser.new_context(**settings)
        self.trouble: list[str] = []

    def __enter__(self) -> Page:
        page = open_page(self._context)
        page.on("request", lambda request: self._see(request.url))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.on("dialog", lambda dialog: self.trouble.append(dialog.message))
        page.on(
            "console",
            lambda line: line.type == "error" and self.trouble.append(line.text),
        )
        return page

    def _see(self, url: str) -> None:
        if not url.startswith((self._home, "data:")):
            self.trouble.append(f"asked {url}")

    def __exit__(self, kind: object, *_: object) -> None:
        self._context.close()
        assert kind is not None or not self.trouble, self.trouble
