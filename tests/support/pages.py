"""Pages as tests read them, and texts that a page must not take for markup."""

from __future__ import annotations

from html.parser import HTMLParser

from groundfault.render.page import Paragraph, Section, Table

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
MARKDOWN = "a|b `c` [x](https://evil.example) **b** \\| ~~s~~ <b>"
TERMINAL = "red\x1b[31m [bold]markup[/bold] \u202eevil\n# head"
HOSTILE = (SCRIPT, IMAGE, MARKDOWN, TERMINAL)


class Page(HTMLParser):
    """A page taken apart, with what a browser would mend silently kept as errors."""

    VOID = frozenset({"meta", "input", "br", "hr", "img", "link"})

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.errors: list[str] = []
        self.feed(source)
        self.close()
        self.errors += [f"never closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"closed out of turn: {tag}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in tags]


def list_sentences(section: Section) -> list[str]:
    """List the paragraphs of a section."""
    return ["".join(map(str, b.line)) for b in section.content if isinstance(b, Paragraph)]


def list_tables(section: Section) -> list[Table]:
    """List the tables of a section."""
    return [block for block in section.content if isinstance(block, Table)]
