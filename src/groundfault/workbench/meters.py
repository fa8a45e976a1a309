"""Small bars that show a rate beside another: SVG, since a strict policy allows no style here."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

_WIDTH, _HEIGHT = 300, 18


def draw_meter(inside: float, outside: float, full: float = 1.0) -> str:
    """Two bars, the failure rate inside a rule and below it the one elsewhere.

    Parameters
    ----------
    inside, outside : float
        In [0, 1].
    full : float
        The rate that the full width stands for.

    Examples
    --------
    >>> draw_meter(0.5, 0.1).count("<rect")
    2
    """
    view = f"0 0 {_WIDTH} {_HEIGHT}"
    look = {"class": "meter", "aria-hidden": "true", "preserveAspectRatio": "none"}
    root = Element("svg", {"viewBox": view, **look})
    for name, rate, top in (("inside", inside, 0), ("outside", outside, 10)):
        width = max(min(rate / full, 1.0) * _WIDTH, 1.0)
        size = {"width": f"{width:.1f}", "height": "8", "y": str(top), "x": "0"}
        SubElement(root, "rect", {"class": name, **size})
    return tostring(root, encoding="unicode")
