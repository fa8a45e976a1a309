"""The exporter of one file: a page, its style and script, and the report in compressed blocks.

The page itself is the same for every report. What came from data stands in it in base64 alone, as
text that no browser reads as markup, and the page's policy lets no other script run than the one
whose hash it names."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.base.files import write_text
from groundfault.exports import ReportSlices
from groundfault.render import words
from groundfault.workbench.one_file.content import FileContent
from groundfault.workbench.one_file.packing import pack_json, pack_spans

if TYPE_CHECKING:
    from jinja2 import Template

_SCRIPTS = ("reading.js", "elements.js", "one_file.js")


@dataclass(frozen=True)
class HtmlExplorer:
    """Write a report with its examples as one HTML file, to be opened without a server.

    Attributes
    ----------
    texts : bool
        Whether columns of texts are written; ids and labels are in any case.
    """

    texts: bool = True
    name: str = "html-explorer"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the file."""
        content = FileContent(slices, self.texts)
        page = set_page(content)
        write_text(out, page)
        texts = "" if self.texts else ", without texts"
        return f"{words.plural(len(content.rows), 'row')}{texts} ({len(page) / 1e6:.1f} MB)"


def set_page(content: FileContent) -> str:
    """The whole file.

    Parameters
    ----------
    content : FileContent
    """
    from markupsafe import Markup

    template, style, script = _load()
    return template.render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        blocks=tuple(_pack(content)),
    )


def _pack(content: FileContent) -> Iterator[tuple[str, str]]:
    """Blocks of the file by their names."""
    yield "report", pack_json(content.describe())
    yield "losses", content.losses.pack()
    # after the report, which puts them there
    yield "masks", content.masks.pack()
    for place, column in enumerate(content.columns):
        yield f"column-{place}", column.rows.pack()
    for place, marks in enumerate(content.marks):
        spans = {name: some for name, some in marks.items() if isinstance(some, dict) and some}
        if spans:
            yield f"spans-{place}", pack_spans(spans)
    if len(content.models) > 1:
        yield "units", content.units.pack()


@cache
def _load() -> tuple[Template, str, str]:
    """The page, its style and its script."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader("groundfault.workbench.one_file"), PackageLoader("groundfault.render")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    # the looks of a report, and what only this page has
    style = "\n".join(environment.get_template(n).render() for n in ("report.css", "one_file.css"))
    # the keys of the workbench, and what only this page has
    home = resources.files("groundfault.workbench")
    own = (home / "one_file" / "templates" / name for name in _SCRIPTS)
    scripts = (home / "static" / "workbench.js", *own)
    script = "\n".join(path.read_text("utf-8") for path in scripts)
    return environment.get_template("one_file.html.j2"), style, script


def _hash(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
