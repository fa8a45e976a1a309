"""Figures: plain charts as SVG, two axes and marks between them, and the words beside a chart.

Colours are custom properties with a fallback, so that a page in the dark can recolour a figure that
stands in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element, SubElement, tostring

Item = TypeVar("Item")

# metrically alike, so that text measured here fits there
FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"


class Colour:
    """Colours of figures, which a page in the dark sets otherwise."""

    INK = "var(--ink, #23272e)"
    MUTED = "var(--muted, #646a73)"
    RULE = "var(--rule, #dcd8ce)"
    PAPER = "var(--paper, #fff)"
    GOOD = "var(--good, #0f6b5c)"
    BAD = "var(--bad, #a9501b)"
    REST = "var(--rest, #9aa0a8)"


_SIZE = 12
"""Height of text in pixels: that of the notes beside a figure."""
_LINE = 15
"""Pixels from one line of text to the next: 1.25 times the height of text."""
_TILT = math.radians(60)
"""Slope of long names under an axis: steep, so that names of neighbours do not cross."""


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


def spread_evenly(items: Sequence[Item], max_items: int) -> list[Item]:
    """Return at most so many of the items, the first and the last among them, evenly between."""
    if len(items) <= max_items:
        return list(items)
    return [items[round(i * (len(items) - 1) / (max_items - 1))] for i in range(max_items)]


def make_stairs(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the corners of a line that keeps each height until the next place."""
    for (x, height), (following, _) in pairwise(places):
        yield from ((x, height), (following, height))
    yield places[-1]


@dataclass(frozen=True)
class Scale:
    """An axis: the values at its two ends, and the labels along it.

    Attributes
    ----------
    low, high : float
        Values at the left and right end, or at the bottom and the top.
    ticks : tuple of (float, str)
        Values and their labels; a label may have several lines.
    title : str
    grid : bool
        Whether a line runs across at each tick.
    colour : str
        Of the names.
    tilted : bool
        Whether names under an axis are written aslant, for want of room.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    title: str = ""
    grid: bool = True
    colour: str = Colour.MUTED
    tilted: bool = False

    @classmethod
    def of_numbers(
        cls, low: float, high: float, title: str = "", *, count: int = 6, percent: bool = False
    ) -> Scale:
        """Make an axis with about ``count`` round numbers on it."""
        exact = (high - low) / count
        power = 10.0 ** math.floor(math.log10(exact))
        step = power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - exact))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        values = [round(i * step, 12) for i in range(first, last + 1)]
        names = [_name_number(v, percent=percent) for v in values]
        return cls(low, high, tuple(zip(values, names, strict=True)), title)

    @classmethod
    def of_names(
        cls,
        names: Sequence[str],
        *,
        title: str = "",
        colour: str = Colour.MUTED,
        tilted: bool = False,
    ) -> Scale:
        """Make an axis with a band for each name; the value of a name is its number, from 0."""
        ticks = tuple((float(i), name) for i, name in enumerate(names))
        return cls(-0.5, len(names) - 0.5, ticks, title, False, colour, tilted)

    def turned(self) -> Scale:
        """Return the same axis with its ends exchanged: the first name at the top."""
        return replace(self, low=self.high, high=self.low)

    def share(self, value: float) -> float:
        """Return how far along the axis a value is, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


def _name_number(value: float, *, percent: bool) -> str:
    text = f"{100 * value:g}%" if percent else f"{value:g}"
    return text.replace("-", "\N{MINUS SIGN}")


@dataclass
class Drawing:
    """Marks at values of two axes, in pixels of their own size.

    Attributes
    ----------
    x, y : Scale
    width, height : float
        Of the area between the axes, in pixels.
    """

    x: Scale
    y: Scale
    width: float
    height: float
    _marks: list[Element] = field(default_factory=list)
    _legend: list[tuple[Element, str]] = field(default_factory=list)

    def bar(
        self, start: tuple[float, float], end: tuple[float, float], thickness: float, colour: str
    ) -> None:
        """Draw a bar from one place to another, upright or level; skip a bar of no length."""
        (x1, y1), (x2, y2) = self._place(*start), self._place(*end)
        if (x1, y1) == (x2, y2):
            return
        half = thickness / 2
        left, right = (x1 - half, x1 + half) if x1 == x2 else sorted((x1, x2))
        top, bottom = (y1 - half, y1 + half) if y1 == y2 else sorted((y1, y2))
        size = {"width": right - left, "height": bottom - top}
        self._add("rect", x=left, y=top, rx=1.5, fill=colour, **size)

    def line(
        self,
        places: Sequence[tuple[float, float]],
        colour: str = Colour.RULE,
        *,
        width: float = 1.2,
        dash: str = "",
        opacity: float = 1.0,
    ) -> None:
        """Draw a line through several places."""
        points = [self._place(*place) for place in places]
        path = "M" + "L".join(f"{_number(x)},{_number(y)}" for x, y in points)
        look = {"stroke_dasharray": dash} if dash else {}
        look |= {"opacity": _number(opacity)} if opacity < 1 else {}
        self._add("path", d=path, fill="none", stroke=colour, stroke_width=width, **look)

    def area(self, places: Sequence[tuple[float, float]], colour: str, opacity: float) -> None:
        """Fill the area that a line through several places encloses."""
        points = [self._place(*place) for place in places]
        path = "M" + "L".join(f"{_number(x)},{_number(y)}" for x, y in points) + "Z"
        self._add("path", d=path, fill=colour, opacity=opacity)

    def point(
        self,
        place: tuple[float, float],
        colour: str,
        *,
        shape: str = "circle",
        size: float = 64,
        edge: str = "none",
        edge_width: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Draw a circle, square, diamond or triangle of so many square pixels."""
        x, y = self._place(*place)
        mark = _draw_symbol(shape, size, x, y)
        look: dict[str, Any] = {"fill": colour, "stroke": edge, "stroke-width": edge_width}
        look |= {"opacity": opacity} if opacity < 1 else {}
        for name, value in look.items():
            mark.set(name, value if isinstance(value, str) else _number(value))
        self._marks.append(mark)

    def text(
        self,
        place: tuple[float, float],
        text: str,
        colour: str = Colour.INK,
        *,
        shift: tuple[float, float] = (0, 0),
        anchor: str = "start",
        size: float = _SIZE,
    ) -> None:
        """Write text beside a place, so many pixels to its right and below it."""
        x, y = self._place(*place)
        self._marks.append(_write(text, x + shift[0], y + shift[1], anchor, colour, size))

    def explain(self, shape: str, colour: str, text: str, *, dash: str = "") -> None:
        """Add the meaning of a shape or a line in a colour to the legend."""
        mark = _draw_symbol(shape, 70, 0, 0)
        look = {"stroke": colour, "stroke-width": "2", "stroke-dasharray": dash or "none"}
        for name, value in ({"fill": colour} if shape != "line" else look).items():
            mark.set(name, value)
        self._legend.append((mark, text))

    def to_figure(
        self, name: str, title: str, caption: str, alt: str, *, wide: bool = False
    ) -> Figure:
        """Return the drawing with the words that go with it."""
        return Figure(name, title, caption, alt, self.to_svg(alt), wide)

    def to_svg(self, alt: str) -> str:
        """Return the drawing; everything in it is escaped.

        Parameters
        ----------
        alt : str
            What it shows, for those who do not see it.
        """
        names = [_measure(name) for _, name in self.y.ticks]
        left = 12 + max(names, default=0) + (20 if self.y.title else 0)
        if self.x.tilted:
            left = max(left, self._measure_names() / math.tan(_TILT))
        below = 8 + self._measure_names() + (18 if self.x.title else 0)
        legend = self._draw_legend()
        # a number may stand above the topmost mark
        above = 18 + 20 * len(legend)
        width, height = left + self.width + 20, above + self.height + below
        size = {"width": _number(width), "height": _number(height)}
        root = Element(
            "svg",
            {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": alt, **size},
            viewBox=f"0 0 {size['width']} {size['height']}",
        )
        area = SubElement(root, "g", {"transform": f"translate({_number(left)},{above})"})
        for row, group in enumerate(legend):
            group.set("transform", f"translate(0,{_number(20 * row - above + 10)})")
            area.append(group)
        area.extend(self._draw_axes(left))
        area.extend(self._marks)
        return tostring(root, encoding="unicode")

    def _place(self, x: float, y: float) -> tuple[float, float]:
        return self.width * self.x.share(x), self.height * (1 - self.y.share(y))

    def _add(self, kind: str, **attributes: str | float) -> None:
        self._marks.append(_make(kind, **attributes))

    def _measure_names(self) -> float:
        """Return how many pixels the names under the drawing take."""
        if self.x.tilted:
            longest = max((_measure(name) for _, name in self.x.ticks), default=0)
            return _LINE + longest * math.sin(_TILT)
        return _LINE * max((name.count("\n") + 1 for _, name in self.x.ticks), default=0)

    def _draw_axes(self, left: float) -> list[Element]:
        marks = []
        rule: dict[str, Any] = {"stroke": Colour.RULE, "opacity": 0.6}
        for value, name in self.x.ticks:
            at = self.width * self.x.share(value)
            if self.x.grid:
                marks.append(_make("line", x1=at, x2=at, y1=0, y2=self.height, **rule))
            if self.x.tilted:
                mark = _write(name, 0, 0, "end", self.x.colour)
                place = f"{_number(at + 4)},{_number(self.height + 14)}"
                mark.set("transform", f"translate({place}) rotate({_number(-math.degrees(_TILT))})")
            else:
                mark = _write(name, at, self.height + 17, "middle", self.x.colour)
            marks.append(mark)
        for value, name in self.y.ticks:
            at = self.height * (1 - self.y.share(value))
            if self.y.grid:
                marks.append(_make("line", x1=0, x2=self.width, y1=at, y2=at, **rule))
            middle = at + 4 - _LINE * name.count("\n") / 2
            marks.append(_write(name, -8, middle, "end", self.y.colour))
        if self.x.title:
            under = self.height + 18 + self._measure_names()
            marks.append(_write(self.x.title, self.width / 2, under, "middle", Colour.MUTED))
        if self.y.title:
            title = _write(self.y.title, 0, 0, "middle", Colour.MUTED)
            place = f"{_number(14 - left)},{_number(self.height / 2)}"
            title.set("transform", f"translate({place}) rotate(-90)")
            marks.append(title)
        return marks

    def _draw_legend(self) -> list[Element]:
        """Return a group for each row of the legend."""
        rows: list[Element] = []
        right = math.inf
        for mark, text in self._legend:
            width = 30 + _measure(text)
            if right + width > self.width:
                rows.append(Element("g"))
                right = 0
            mark.set("transform", f"translate({_number(right + 6)},0)")
            rows[-1].append(mark)
            rows[-1].append(_write(text, right + 16, 4, "start", Colour.INK))
            right += width
        return rows


def _make(kind: str, **attributes: str | float) -> Element:
    return Element(
        kind,
        {
            name.replace("_", "-"): value if isinstance(value, str) else _number(value)
            for name, value in attributes.items()
        },
    )


def _write(text: str, x: float, y: float, anchor: str, colour: str, size: float = _SIZE) -> Element:
    mark = _make("text", text_anchor=anchor, font_family=FONT, font_size=size, fill=colour)
    lines = text.split("\n")
    if len(lines) == 1:
        mark.text = text
        mark.set("x", _number(x))
        mark.set("y", _number(y))
    for i, line in enumerate(lines if len(lines) > 1 else ()):
        SubElement(mark, "tspan", x=_number(x), y=_number(y + _LINE * i)).text = line
    return mark


def _draw_symbol(shape: str, size: float, x: float, y: float) -> Element:
    """Return a shape around a place, of so many square pixels."""
    if shape == "circle":
        r = _number(math.sqrt(size / math.pi))
        path = f"M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0Z"
    elif shape == "square":
        h = _number(math.sqrt(size) / 2)
        path = f"M-{h},-{h}L{h},-{h}L{h},{h}L-{h},{h}Z"
    elif shape == "triangle":
        h = _number(math.sqrt(size / 2))
        path = f"M0,-{h}L{h},{h}L-{h},{h}Z"
    elif shape == "line":
        path = "M-6,0L6,0"
    else:
        h = _number(math.sqrt(size / 2))
        path = f"M0,-{h}L{h},0L0,{h}L-{h},0Z"
    return Element("path", transform=f"translate({_number(x)},{_number(y)})", d=path)


def _measure(text: str) -> float:
    """Estimate how many pixels the longest line of a text takes."""
    return max(
        sum(12 if east_asian_width(letter) in "WF" or letter == "%" else 6.7 for letter in line)
        for line in text.split("\n")
    )


def _number(value: float) -> str:
    """Write a number of pixels to a hundredth, without trailing zeros."""
    # a zero has no sign
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
