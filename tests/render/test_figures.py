"""Drawings that depend on nothing but what is drawn."""

from __future__ import annotations

import re

from groundfault.render.figures import _number_clips


def test_clipping_paths_are_named_by_the_drawing_alone_and_differ_between_drawings() -> None:
    def draw(first: int, mark: str) -> str:
        paths = "".join(f'<clipPath id="clip{first + i}"><path/></clipPath>' for i in range(2))
        uses = "".join(f'<g clip-path="url(#clip{first + i})">{mark}</g>' for i in range(2))
        return f"<svg>{uses}<text>clip7</text>{paths}</svg>"

    drawing = _number_clips(draw(3, "a"))
    assert drawing == _number_clips(draw(168, "a")), "the converter counts on"
    names = re.findall(r'id="([^"]+)"', drawing)
    assert [f"url(#{name})" for name in names] == re.findall(r'clip-path="([^"]+)"', drawing)
    assert not set(names) & set(re.findall(r'id="([^"]+)"', _number_clips(draw(3, "b"))))
    assert "<text>clip7</text>" in drawing
