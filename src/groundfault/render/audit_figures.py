"""The figures of an audit's report."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from groundfault.auditing.report import Report
from groundfault.core.finding import Finding, Verdict
from groundfault.render import words
from groundfault.render.audit_groups import main_cell
from groundfault.render.audit_tables import holds_out
from groundfault.render.audit_words import Outline
from groundfault.render.figures import (
    BAD,
    GOOD,
    INK,
    MUTED,
    PAPER,
    REST,
    RULE,
    Figure,
    chart_rows,
    make_figure,
    spread_evenly,
)

MAX_POINTS = 400
MAX_SLICES = 24
MAX_LEVELS = 300
_LABEL = 40  # characters of a line of a slice's name
_COLOURS = {
    Verdict.CONFIRMED: GOOD,
    Verdict.TOO_SMALL: INK,
    Verdict.NOT_REPLICATED: BAD,
    Verdict.BELOW_FLOOR: REST,
}
_SHAPES = {
    Verdict.CONFIRMED: "circle",
    Verdict.TOO_SMALL: "square",
    Verdict.NOT_REPLICATED: "diamond",
    Verdict.BELOW_FLOOR: "circle",
}


def figures(report: Report) -> tuple[Figure, ...]:
    """The figures that this report has something for, in the order in which they are read."""
    visible = (funnel(report), shrinkage(report), floor(report), slices(report))
    return tuple(figure for figure in visible if figure is not None)


def funnel(report: Report) -> Figure:
    """How many candidates are left after each step."""
    import altair as alt

    steps = Outline(report).steps
    rows = [
        {"step": step, "count": n, "said": words.count(n), "last": i == len(steps) - 1}
        for i, (step, n) in enumerate(steps)
    ]
    base = chart_rows().encode(
        y=alt.Y(
            "step:N",
            sort=None,
            axis=alt.Axis(title=None, domain=False, ticks=False, labelPadding=10),
        ),
        x=alt.X(
            "count:Q",
            axis=None,
            stack=None,
            scale=alt.Scale(domain=[0, 1.1 * max(1, *(n for _, n in steps))]),
        ),
    )
    colour = alt.condition("datum.last", alt.value(GOOD), alt.value(REST))
    bars = base.mark_bar(height=16, cornerRadiusEnd=2).encode(color=colour)
    labels = base.mark_text(align="left", dx=6, fontSize=12, color=INK).encode(text="said:N")
    text = ", ".join(f"{words.count(n)} {step}" for step, n in steps)
    chart = (bars + labels).properties(width=560, height=28 * len(rows))
    return make_figure(
        "funnel",
        "From the library to what is confirmed",
        "",
        f"Bars: {text}.",
        chart,
        rows,
        wide=True,
    )


def shrinkage(report: Report) -> Figure | None:
    """Discovery lifts against holdout lifts, with intervals for what survived the screen; None
    without a holdout.
    """
    candidates = [
        f
        for f in report.findings
        if f.discovery.lift is not None and f.verdict is not Verdict.UNTESTABLE
    ]
    candidates = [f for f in candidates if f.holdout is not None and f.holdout.lift is not None]
    if not candidates:
        return None
    survivors = [f for f in candidates if f.verdict is not Verdict.BELOW_FLOOR]
    rest = [f for f in candidates if f.verdict is Verdict.BELOW_FLOOR]
    points = [
        _point(report, f)
        for f in (
            *spread_evenly(rest, MAX_POINTS),
            *reversed(spread_evenly(survivors, MAX_POINTS)),
        )
    ]
    caption = (
        "Discovery lifts were selected, so points tend to lie nearer to zero on the holdout than "
        "the dashed line of "
        "equal lifts."
    )
    if any("low" in p for p in points):
        caption += f" Vertical lines: {words.level(_level(report))} intervals of the holdout lift."
    if _least(report):
        caption += f" Dotted: the least holdout lift worth confirming, {_least(report):g}."
    if len(points) < len(candidates):
        part = f"{words.count(len(points))} of {words.count(len(candidates))} candidates"
        caption += f" {part} are drawn, evenly by rank."
    alt = f"Scatter of {len(points)} candidates: {_count_verdicts(points)}."
    return make_figure(
        "shrinkage", "Discovery against holdout", caption, alt, _scatter(report, points), points
    )


def _point(report: Report, finding: Finding) -> dict[str, Any]:
    assert finding.holdout is not None
    point: dict[str, Any] = {
        "x": finding.discovery.lift,
        "y": finding.holdout.lift,
        "verdict": words.VERDICTS[finding.verdict],
    }
    # an interval of a ratio has no place on an axis of lifts
    is_lift = report.plan.effect == "risk_difference"
    if is_lift and finding.holdout.interval and finding.verdict is not Verdict.BELOW_FLOOR:
        point |= dict(zip(("low", "high"), finding.holdout.interval, strict=True))
    return point


def _least(report: Report) -> float:
    plan = report.plan
    return words.decimal(plan.min_lift) if plan.effect == "risk_difference" else 0.0


def _count_verdicts(points: Sequence[dict[str, Any]]) -> str:
    text = [p["verdict"] for p in points]
    return ", ".join(f"{text.count(word)} {word}" for word in dict.fromkeys(reversed(text)))


def _scatter(report: Report, points: list[dict[str, Any]]) -> Any:
    import altair as alt

    ends = [p[k] for p in points for k in ("x", "y", "low", "high") if k in p]
    reach = min(1.0, 0.1 * (1 + int(10 * max(0.1, *map(abs, ends)))))
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    marks = {
        v: words.VERDICTS[v]
        for v in _COLOURS
        if words.VERDICTS[v] in {p["verdict"] for p in points}
    }
    ticks = alt.Axis(tickCount=6)
    legend = alt.Legend(title=None, orient="top", symbolSize=70, labelFontSize=12)
    look = {
        "color": alt.Color("verdict:N", scale=_scale(marks, _COLOURS), legend=legend),
        "shape": alt.Shape("verdict:N", scale=_scale(marks, _SHAPES), legend=legend),
    }
    base = chart_rows().encode(
        x=alt.X("x:Q", scale=scale, title="discovery lift (selected)", axis=ticks),
        y=alt.Y("y:Q", scale=scale, title="holdout lift", axis=ticks),
    )
    layers = [
        _line(-reach, -reach, reach, reach, dash=[4, 4]),
        _line(-reach, 0, reach, 0),
        _line(0, -reach, 0, reach),
    ]
    least = _least(report)
    layers += [
        _line(-reach, y, reach, y, dash=[1, 3], colour=BAD)
        for y in (-least, least)
        if 0 < least < reach
    ]
    if any("low" in p for p in points):
        rule = base.mark_rule(strokeWidth=1.2, opacity=0.55).transform_filter("isValid(datum.low)")
        layers.append(rule.encode(y="low:Q", y2="high:Q", color=look["color"]))
    crowded = len(points) > 60
    rest = f"datum.verdict === '{words.VERDICTS[Verdict.BELOW_FLOOR]}'"
    size = alt.condition(rest, alt.value(20 if crowded else 64), alt.value(64))
    dots = base.mark_point(filled=True, opacity=0.9, stroke=PAPER, strokeWidth=0.7)
    layers.append(dots.encode(size=size, **look))
    return alt.layer(*layers).properties(width=350, height=350)


def floor(report: Report) -> Figure | None:
    """The estimated false-discovery proportion at each threshold, and the floor; None for judges
    without decoys.
    """
    import altair as alt

    decoy_floor = report.floor
    if not decoy_floor.curve:
        return None
    curve = spread_evenly(decoy_floor.curve, MAX_LEVELS)
    rows = [
        {"x": c.threshold, "y": min(c.fdp, 1.0), "real": c.real, "decoy": c.decoy} for c in curve
    ]
    effect = report.plan.effect
    what = (
        "|discovery lift|"
        if effect == "risk_difference"
        else f"|log {effect.replace('_', ' ')}| on discovery"
    )
    ticks = alt.Axis(tickCount=6)
    right = 1.02 * max(row["x"] for row in rows)
    base = chart_rows().encode(
        x=alt.X(
            "x:Q",
            title=f"threshold on {what}",
            scale=alt.Scale(domain=[0, right], nice=False),
            axis=ticks,
        ),
        y=alt.Y(
            "y:Q",
            title="estimated false-discovery proportion",
            scale=alt.Scale(domain=[0, 1]),
            axis=ticks,
        ),
    )
    layers = [base.mark_line(color=MUTED, strokeWidth=1.6)]
    if len(rows) <= 60:
        layers.append(base.mark_point(filled=True, size=26, color=MUTED, opacity=1))
    caption, alt_text = _floor_words(report)
    if decoy_floor.inclusive:  # Procedure A; Janus-lite takes a percentile instead of a target
        q = words.decimal(report.plan.q)
        layers += [
            _line(0, q, right, q, dash=[4, 3], colour=BAD),
            _note(right, q, f"target {q:g}", "right", BAD),
        ]
    if decoy_floor.threshold is not None:
        at, leftish = decoy_floor.threshold, decoy_floor.threshold < 0.7 * right
        place, align = (at + 0.015 * right, "left") if leftish else (at - 0.015 * right, "right")
        layers += [
            _line(at, 0, at, 1, colour=GOOD),
            _note(place, 0.985, f"floor {at:.3g}", align, GOOD),
        ]
    if len(rows) < len(decoy_floor.curve):
        part = f"{words.count(len(rows))} of {words.count(len(decoy_floor.curve))} thresholds"
        caption += f" {part} are drawn."
    chart = alt.layer(*layers).properties(width=350, height=350)
    return make_figure("floor", "Where the floor was set", caption, alt_text, chart, rows)


def _floor_words(report: Report) -> tuple[str, str]:
    decoy_floor = report.floor
    read = "Decoys expected at or above each threshold, as a share of the candidates there."
    if decoy_floor.threshold is None:
        text = "No threshold is low enough in expected decoys, so nothing passed the screen."
    elif decoy_floor.inclusive:
        text = (
            f"The floor, {decoy_floor.threshold:.3g}, is the lowest threshold whose proportion "
            f"({decoy_floor.fdp:.3f}) "
            "is within the target."
        )
    else:
        text = f"The floor, {decoy_floor.threshold:.3g}, is the 95th percentile of decoys."
    return f"{read} {text}", f"Curve of the estimated false-discovery proportion. {text}"


def slices(report: Report) -> Figure | None:
    """Error rates on and off each confirmed slice; None where nothing is confirmed."""
    import altair as alt

    outline = Outline(report)
    findings = [outline.face(f) for group in outline.groups for f in (group.lead, *group.distinct)]
    visible = findings[:MAX_SLICES]
    if not visible:
        return None
    rows: list[dict[str, Any]] = [
        {
            "name": fill(words.label(f), _LABEL),
            "on": main_cell(f).on_rate,
            "off": main_cell(f).off_rate,
            "lead": f.representative is None,
        }
        for f in visible
    ]
    names = alt.Axis(
        title=None,
        domain=False,
        ticks=False,
        labelPadding=10,
        labelLimit=0,
        labelColor=INK,
        labelExpr="split(datum.label, '\\n')",
    )
    base = chart_rows().encode(y=alt.Y("name:N", sort=None, axis=names))
    ends = [r[side] or 0.0 for r in rows for side in ("on", "off")]
    scale = alt.Scale(domain=[0, min(1.0, 0.1 * (1 + int(10 * max(ends))))], nice=False)
    where = "held-out units" if holds_out(report) else "all units"
    axis = alt.Axis(format="%", tickCount=6, grid=True)
    x = alt.X("off:Q", scale=scale, axis=axis, title=f"error rate on {where}")
    thin = alt.condition("datum.lead", alt.value(1.0), alt.value(0.6))
    layers = [
        base.mark_rule(strokeWidth=2, color=GOOD).encode(x=x, x2="on:Q", opacity=thin),
        base.mark_point(
            filled=True, size=70, fill=PAPER, stroke=MUTED, strokeWidth=1.6, opacity=1
        ).encode(x=x),
        base.mark_point(filled=True, size=80, color=GOOD).encode(
            x=alt.X("on:Q", scale=scale), opacity=thin
        ),
    ]
    caption = "Filled: on the slice. Open: off it."
    if any(f.representative for f in visible):
        caption += " Paler ones are not told apart from the full-coloured one above them."
    if len(visible) < len(findings):
        caption += (
            f" The first {len(visible)} of {words.count(len(findings))} distinct slices are drawn."
        )
    text = "; ".join(
        f"{words.clean(r['name'])} {words.rate(r['on'])} on, {words.rate(r['off'])} off"
        for r in rows
    )
    chart = alt.layer(*layers).properties(width=480, height=24 * len(rows))
    return make_figure(
        "slices", "Confirmed slices", caption, f"Error rates: {text}.", chart, rows, wide=True
    )


def _level(report: Report) -> float:
    return 1 - words.decimal(report.plan.alpha)


def _scale(marks: dict[Verdict, str], values: dict[Verdict, str]) -> Any:
    import altair as alt

    return alt.Scale(domain=list(marks.values()), range=[values[v] for v in marks])


def _line(
    x: float, y: float, x2: float, y2: float, *, dash: Sequence[int] = (), colour: str = RULE
) -> Any:
    import altair as alt

    ends = alt.Data(values=[{"x": x, "y": y}, {"x": x2, "y": y2}])
    return (
        alt.Chart(ends)
        .mark_line(color=colour, strokeWidth=1.2, strokeDash=list(dash))
        .encode(x="x:Q", y="y:Q")
    )


def _note(x: float, y: float, text: str, align: Any, colour: str) -> Any:
    import altair as alt

    place = alt.Chart(alt.Data(values=[{"x": x, "y": y, "text": text}]))
    return place.mark_text(align=align, baseline="bottom", dy=-3, color=colour).encode(
        x="x:Q", y="y:Q", text="text:N"
    )
