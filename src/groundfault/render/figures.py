"""Figures as static SVG: drawn by Altair, converted without a browser, a script or a network.

The figures of an audit need no engine: see `groundfault.render.drawing`.

Colours are custom properties with a fallback, so that a page in the dark can recolour a figure that
stands in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_ENGINE_ROOM = 256 << 30
"""Bytes of virtual memory that the engine may reserve, most of which it never uses."""
_CLIP = re.compile(r'((?:<clipPath id="|clip-path="url\(#)clip)(\d+)')
_ROLES = re.compile(r' role="graphics-[a-z]+" aria-roledescription="[^"]*"')
# metrically alike, so that text measured here fits there
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"
INK, MUTED, RULE, PAPER = (
    "var(--ink, #23272e)",
    "var(--muted, #646a73)",
    "var(--rule, #dcd8ce)",
    "var(--paper, #fff)",
)
GOOD, BAD, REST = "var(--good, #0f6b5c)", "var(--bad, #a9501b)", "var(--rest, #9aa0a8)"


@dataclass(frozen=True)
class Figure:
    """A figure and the words that go with it.

    Attributes
    ----------
    name, title : str
    caption : str
        How to read it, and what was left out of it.
    alt : str
        What it shows, for those who do not see it.
    svg : str
        The drawing; text from the data is escaped in it.
    wide : bool
        Whether it wants the full width of a page.
    """

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    wide: bool = False


def spread_evenly(items: Sequence[Any], max_items: int) -> list[Any]:
    """At most so many of the items, the first and the last among them, evenly between."""
    if len(items) <= max_items:
        return list(items)
    return [items[round(i * (len(items) - 1) / (max_items - 1))] for i in range(max_items)]


def chart_rows() -> Any:
    """A chart of the rows that `_svg` is given: kept out of the chart, which copies its data with
    every verb.
    """
    import altair as alt

    return alt.Chart(alt.NamedData(name="rows"))


def make_figure(
    name: str,
    title: str,
    caption: str,
    alt: str,
    chart: Any,
    rows: list[dict[str, Any]],
    *,
    wide: bool = False,
) -> Figure:
    """A chart with what is said of it, as SVG; words alone where it cannot be drawn."""
    if not _has_room_for_engine():
        caption = f"{caption} Not drawn: its engine needs more virtual memory than is allowed."
        return Figure(name, title, caption.strip(), alt, "", wide)
    return Figure(name, title, caption, alt, _svg(chart, rows, alt), wide)


def _has_room_for_engine() -> bool:
    """Whether virtual memory suffices: without it the engine would end the whole process."""
    try:
        import resource
    except ImportError:
        # Windows, which has no such limit
        return True
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit == resource.RLIM_INFINITY or limit >= _ENGINE_ROOM


def _svg(chart: Any, rows: list[dict[str, Any]], alt_text: str) -> str:
    import altair as alt
    import vl_convert

    text = {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 400,
    }
    lines = {
        "gridColor": RULE,
        "domainColor": RULE,
        "tickColor": RULE,
        "gridOpacity": 0.6,
        "labelFlush": False,
    }
    config = {
        "font": FONT,
        "aria": False,
        "view": {"stroke": None},
        "axis": text | lines,
        "text": {"fontSize": 12},
        "legend": {"labelColor": INK, "symbolOpacity": 1},
    }
    spec = chart.to_dict(validate=False)
    spec |= {
        "config": config,
        "datasets": {"rows": rows},
        "background": "transparent",
        "padding": 4,
    }
    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    drawing = vl_convert.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[])
    # a screen reader reads what the figure shows, not that there are a hundred nameless marks
    drawing = _ROLES.sub("", drawing)
    plain = _number_clips(drawing).replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "", 1)
    return str(plain.replace("<svg ", f'<svg role="img" aria-label="{escape(alt_text)}" ', 1))


def _number_clips(drawing: str) -> str:
    """The drawing with names of clipping paths that depend on nothing but the drawing.

    The converter counts them on from figure to figure, so that no page could be made again to the
    byte; and they have to differ between the figures of a page.
    """
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"{match[1]}{numbers.setdefault(match[2], len(numbers))}"

    plain = _CLIP.sub(number, drawing)
    prefix = hashlib.sha256(plain.encode()).hexdigest()[:8]
    return _CLIP.sub(rf"\1-{prefix}-\2", plain)
