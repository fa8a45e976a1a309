"""Charts drawn as plain SVG: places, ticks and text; colours and corners of lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from groundfault.render.drawing import Drawing, Scale, make_stairs

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [
        (0, 1, "0 0.2 0.4 0.6 0.8 1"),
        (-0.4, 0.4, "−0.4 −0.3 −0.2 −0.1 0 0.1 0.2 0.3 0.4"),
        (0, 0.0731, "0 0.01 0.02 0.03 0.04 0.05 0.06 0.07"),
        (0, 4200, "0 500 1000 1500 2000 2500 3000 3500 4000"),
    ],
)
def test_ticks_are_round_numbers_between_the_ends(low: float, high: float, names: str) -> None:
    scale = Scale.of_numbers(low, high)
    assert " ".join(name for _, name in scale.ticks) == names
    assert all(0 <= scale.share(value) <= 1 + 1e-9 for value, _ in scale.ticks)


def test_a_bar_of_no_length_is_not_drawn() -> None:
    drawing = Drawing(Scale.of_numbers(0, 1), Scale.of_names(["one"]), width=100, height=40)
    drawing.bar((0, 0), (0, 0), 16, "green")
    assert "<rect" not in drawing.to_svg("nothing")


def test_marks_stand_where_their_values_are() -> None:
    drawing = Drawing(
        Scale.of_numbers(0, 1, percent=True),
        Scale.of_names(["first", "second"]).turned(),
        width=100,
        height=40,
    )
    drawing.bar((0, 0), (0.5, 0), 16, "green")
    drawing.point((1, 1), "red")
    drawing.line([(0, 0), (1, 1)], dash="1,3")
    root = ElementTree.fromstring(drawing.to_svg("what it shows"))
    assert root.attrib["aria-label"] == "what it shows"
    (bar,) = root.iter(f"{SVG}rect")
    assert {k: bar.attrib[k] for k in ("x", "y", "width", "height")} == {
        "x": "0",
        "y": "2",
        "width": "50",
        "height": "16",
    }
    point, line = root.iter(f"{SVG}path")
    assert point.attrib["transform"] == "translate(100,30)"
    assert line.attrib["d"] == "M0,10L100,30"
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["0%", "20%", "40%", "60%", "80%", "100%", "first", "second"]


def test_a_number_above_the_highest_bar_is_not_cut_off() -> None:
    drawing = Drawing(Scale.of_names(["all"]), Scale.of_numbers(0, 1), 50, 50)
    drawing.text((0, 1), "29", shift=(0, -4), size=11)
    root = ElementTree.fromstring(drawing.to_svg("what it shows"))
    (area,) = root.findall(f"{SVG}g")
    top = float(area.attrib["transform"].split(",")[1].rstrip(")"))
    (number,) = (e for e in root.iter(f"{SVG}text") if e.text == "29")
    assert top + float(number.attrib["y"]) >= 11


def test_text_is_text_and_its_lines_are_apart() -> None:
    drawing = Drawing(Scale.of_names(['<script>"&']), Scale.of_names(["one\ntwo"]), 50, 50)
    drawing.text((0, 0), "</text><script>")
    for i in range(4):
        drawing.explain("diamond", "red", f"meaning {i} <b>")
    root = ElementTree.fromstring(drawing.to_svg('a "quote" <svg>'))
    assert {e.tag for e in root.iter()} == {
        f"{SVG}{t}" for t in ("svg", "g", "text", "tspan", "path")
    }
    assert [e.text for e in root.iter(f"{SVG}tspan")] == ["one", "two"]
    # a legend wider than the drawing takes several rows
    rows = [e for e in root.iter(f"{SVG}g") if "meaning" in "".join(e.itertext())][1:]
    assert len(rows) == 4


def test_names_aslant_stay_inside_the_drawing() -> None:
    names = ["a model with a name of some length"] * 3
    drawing = Drawing(Scale.of_names(names, tilted=True), Scale.of_names(["one"]), 60, 26)
    root = ElementTree.fromstring(drawing.to_svg("what it shows"))
    (area,) = root.findall(f"{SVG}g")
    left = float(area.attrib["transform"].split("(")[1].split(",")[0])
    first = next(e for e in root.iter(f"{SVG}text") if e.text == names[0])
    assert "rotate(-60)" in first.attrib["transform"]
    length = 6.7 * len(names[0])
    assert left + 10 - length / 2 >= 0
    assert float(root.attrib["height"]) >= 26 + length * 0.866


def test_a_stair_keeps_each_height_until_the_next_place() -> None:
    assert list(make_stairs([(0, 1.0), (2, 3.0)])) == [(0, 1.0), (2, 1.0), (2, 3.0)]


@pytest.mark.slow
def test_an_audit_with_little_virtual_memory_writes_its_whole_report(tmp_path: Path) -> None:
    rows = [f"{i},{int(i % 4 == 0)},{'ab'[i % 2]}" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join(["id,error,lang", *rows]) + "\n")
    words = "-m groundfault audit t.csv --id id --outcome error --judge janus --out report"
    result = subprocess.run(
        ["sh", "-c", f'ulimit -v 6000000; exec "$0" {words}', sys.executable],
        cwd=tmp_path,
        env={**os.environ, "GROUNDFAULT_LEDGER": "off"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    files = {path.name for path in (tmp_path / "report").iterdir()}
    assert files == {"library.json", "report.html", "report.json", "report.md", "SHA256SUMS"}
    assert "<svg" in (tmp_path / "report" / "report.html").read_text()
