"""Plain charts as SVG: two axes and marks between them, drawn without a browser's engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import east_asian_width
from xml.etree.ElementTree import Element, SubElement, tostring

from groundfault.render.figures import FONT, INK, MUTED, RULE

_SIZE = 12
_LINE = 15
"""Pixels from one line of text to the next."""


@dataclass(frozen=True)
class Scale:
    """An axis: which values are at its two ends, and what is written along it.

    Attributes
    ----------
    low, high : float
        Values at the left and right end, or at the bottom and the top.
    ticks : tuple of (float, str)
        Values and what they are called; a name may have several lines.
    title : str
    grid : bool
        Whether a line runs across at each tick.
    colour : str
        Of the names.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()
    title: str = ""
    grid: bool = True
    colour: str = MUTED

    @classmethod
    def of_numbers(
        cls, low: float, high: float, title: str = "", *, count: int = 6, percent: bool = False
    ) -> Scale:
        """An axis with about ``count`` round numbers on it."""
        exact = (high - low) / count
        power = 10.0 ** math.floor(math.log10(exact))
        step = power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - exact))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        values = [round(i * step, 12) for i in range(first, last + 1)]
        names = [_name_number(v, percent=percent) for v in values]
        return cls(low, high, tuple(zip(values, names, strict=True)), title)

    @classmethod
    def of_names(cls, names: Sequence[str], *, title: str = "", colour: str = MUTED) -> Scale:
        """An axis with a band for each name; the value of a name is its number, from 0."""
        ticks = tuple((float(i), name) for i, name in enumerate(names))
        return cls(-0.5, len(names) - 0.5, ticks, title, grid=False, colour=colour)

    def turned(self) -> Scale:
        """The same with its ends exchanged: the first name at the top."""
        return Scale(self.high, self.low, self.ticks, self.title, self.grid, self.colour)

    def share(self, value: float) -> float:
        """How far along the axis a value is, from 0 to 1."""
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
    _legend: list[tuple[str, str, str]] = field(default_factory=list)

    def bar(
        self, start: tuple[float, float], end: tuple[float, float], thickness: float, colour: str
    ) -> None:
        """A bar from one place to another, upright or level; none where they are one."""
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
        colour: str = RULE,
        *,
        width: float = 1.2,
        dash: str = "",
        opacity: float = 1.0,
    ) -> None:
        """A line through several places."""
        points = [self._place(*place) for place in places]
        path = "M" + "L".join(f"{_number(x)},{_number(y)}" for x, y in points)
        look = {"stroke_dasharray": dash} if dash else {}
        look |= {"opacity": _number(opacity)} if opacity < 1 else {}
        self._add("path", d=path, fill="none", stroke=colour, stroke_width=width, **look)

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
        """A circle, square or diamond of so many square pixels."""
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
        colour: str = INK,
        *,
        shift: tuple[float, float] = (0, 0),
        anchor: str = "start",
        size: float = _SIZE,
    ) -> None:
        """Text beside a place, so many pixels to its right and below it."""
        x, y = self._place(*place)
        self._marks.append(_write(text, x + shift[0], y + shift[1], anchor, colour, size))

    def explain(self, shape: str, colour: str, text: str) -> None:
        """Add what a shape in a colour means to the legend."""
        self._legend.append((shape, colour, text))

    def to_svg(self, alt: str) -> str:
        """The drawing; everything in it is escaped.

        Parameters
        ----------
        alt : str
            What it shows, for those who do not see it.
        """
        names = [_measure(name) for _, name in self.y.ticks]
        left = 12 + max(names, default=0) + (20 if self.y.title else 0)
        lines = max((name.count("\n") + 1 for _, name in self.x.ticks), default=0)
        below = 8 + _LINE * lines + (18 if self.x.title else 0)
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

    def _add(self, kind: str, **attributes: Any) -> None:
        self._marks.append(_make(kind, **attributes))

    def _draw_axes(self, left: float) -> list[Element]:
        marks = []
        for value, name in self.x.ticks:
            at = self.width * self.x.share(value)
            if self.x.grid:
                marks.append(
                    _make("line", x1=at, x2=at, y1=0, y2=self.height, stroke=RULE, opacity=0.6)
                )
            marks.append(_write(name, at, self.height + 17, "middle", self.x.colour))
        for value, name in self.y.ticks:
            at = self.height * (1 - self.y.share(value))
            if self.y.grid:
                marks.append(
                    _make("line", x1=0, x2=self.width, y1=at, y2=at, stroke=RULE, opacity=0.6)
                )
            middle = at + 4 - _LINE * name.count("\n") / 2
            marks.append(_write(name, -8, middle, "end", self.y.colour))
        if self.x.title:
            lines = max((name.count("\n") + 1 for _, name in self.x.ticks), default=0)
            under = self.height + 18 + _LINE * lines
            marks.append(_write(self.x.title, self.width / 2, under, "middle", MUTED))
        if self.y.title:
            title = _write(self.y.title, 0, 0, "middle", MUTED)
            place = f"{_number(14 - left)},{_number(self.height / 2)}"
            title.set("transform", f"translate({place}) rotate(-90)")
            marks.append(title)
        return marks

    def _draw_legend(self) -> list[Element]:
        """A group for each row of the legend."""
        rows: list[Element] = []
        right = math.inf
        for shape, colour, text in self._legend:
            width = 30 + _measure(text)
            if right + width > self.width:
                rows.append(Element("g"))
                right = 0
            mark = _draw_symbol(shape, 70, right + 6, 0)
            mark.set("fill", colour)
            rows[-1].append(mark)
            rows[-1].append(_write(text, right + 16, 4, "start", INK))
            right += width
        return rows


def _make(kind: str, **attributes: Any) -> Element:
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
    """A shape around a place, of so many square pixels."""
    if shape == "circle":
        r = _number(math.sqrt(size / math.pi))
        path = f"M{r},0A{r},{r},0,1,1,-{r},0A{r},{r},0,1,1,{r},0Z"
    elif shape == "square":
        h = _number(math.sqrt(size) / 2)
        path = f"M-{h},-{h}L{h},-{h}L{h},{h}L-{h},{h}Z"
    else:
        h = _number(math.sqrt(size / 2))
        path = f"M0,-{h}L{h},0L0,{h}L-{h},0Z"
    return Element("path", transform=f"translate({_number(x)},{_number(y)})", d=path)


def _measure(text: str) -> float:
    """About how many pixels the longest line of a text takes."""
    return max(
        sum(12 if east_asian_width(letter) in "WF" or letter == "%" else 6.7 for letter in line)
        for line in text.split("\n")
    )


def _number(value: float) -> str:
    """A number of pixels to a hundredth, as short as it can be."""
    # a zero has no sign
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
