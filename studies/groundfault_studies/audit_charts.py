"""Charts of audits as SVG: verdicts, labels bought, wealth, and where an auditor looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

FOUND, PASSED, NEITHER, BAR = "#d9772b", "#3a6ea5", "#b8b8b8", "#b3261e"
_VERDICTS = {"failure mode found": FOUND, "audit passed": PASSED, "inconclusive": NEITHER}


def verdicts(rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> str:
    """Stacked bars: the share of each verdict by method, a panel for each setting.

    Parameters
    ----------
    rows : sequence of mapping
        With ``setting``, ``method`` and ``verdict``.
    methods : sequence of str
        From top to bottom.
    """
    import altair as alt

    names = list(_VERDICTS)
    chart = (
        alt.Chart(
            alt.Data(
                values=[{key: row[key] for key in ("setting", "method", "verdict")} for row in rows]
            )
        )
        .mark_bar()
        .encode(
            x=alt.X(
                "count():Q",
                stack="normalize",
                title="share of audits",
                axis=alt.Axis(format="%", tickCount=5),
            ),
            y=alt.Y("method:N", sort=list(methods), title=None),
            color=alt.Color(
                "verdict:N",
                scale=alt.Scale(domain=names, range=list(_VERDICTS.values())),
                legend=_above(),
            ),
        )
        .properties(width=300, height=alt.Step(16))
    )
    return _svg(_by_setting(chart, rows))


def labels(rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> str:
    """Boxes: labels until the right verdict, or the budget where it did not come, by method and
    setting.

    Parameters
    ----------
    rows : sequence of mapping
        With ``setting``, ``method`` and ``until``.
    methods : sequence of str
    """
    import altair as alt

    chart = (
        alt.Chart(
            alt.Data(
                values=[{key: row[key] for key in ("setting", "method", "until")} for row in rows]
            )
        )
        .mark_boxplot(extent="min-max", size=10, color=PASSED)
        .encode(
            x=alt.X("until:Q", title="cases labelled until the right verdict, or the budget"),
            y=alt.Y("method:N", sort=list(methods), title=None),
        )
        .properties(width=300, height=alt.Step(16))
    )
    return _svg(_by_setting(chart, rows))


def wealth(curve: Sequence[Sequence[float]], alpha: float, burn_in: int) -> str:
    """Both e-values of one audit, on a log scale, with the bar at 1 / alpha and the burn-in m.

    Parameters
    ----------
    curve : sequence of (step, log e-value of the model's test, of the auditor's)
    alpha : float
    burn_in : int
    """
    import altair as alt

    shades = {"against the model": FOUND, "against the auditor": PASSED}
    points = [
        {"step": row[0], "test": name, "log_e": row[k] / log(10)}
        for row in curve
        for k, name in enumerate(shades, 1)
    ]
    lines = (
        alt.Chart(alt.Data(values=points))
        .mark_line()
        .encode(
            x=alt.X("step:Q", title="cases labelled"),
            y=alt.Y("log_e:Q", title="log10 of the e-value"),
            color=alt.Color(
                "test:N",
                scale=alt.Scale(domain=list(shades), range=list(shades.values())),
                legend=_above(),
            ),
        )
        .properties(width=380, height=240)
    )
    bar = alt.Chart(alt.Data(values=[{"y": -log(alpha) / log(10)}])).mark_rule(
        color=BAR, strokeDash=[5, 4]
    )
    begins = alt.Chart(alt.Data(values=[{"x": burn_in}])).mark_rule(
        color=NEITHER, strokeDash=[2, 3]
    )
    return _svg(lines + bar.encode(y="y:Q") + begins.encode(x="x:Q"))


def frequency(points: Sequence[tuple[str, float, float]]) -> str:
    """Accuracy of each category against how often it was drawn.

    Parameters
    ----------
    points : sequence of (category, accuracy, share of the draws)
    """
    import altair as alt

    values = [
        {"category": name, "accuracy": accuracy, "share": share} for name, accuracy, share in points
    ]
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_point(filled=True, size=60, color=PASSED)
        .encode(
            x=alt.X("accuracy:Q", axis=alt.Axis(format="%"), scale=alt.Scale(zero=False)),
            y=alt.Y("share:Q", title="share of the audit's draws", axis=alt.Axis(format="%")),
        )
        .properties(width=380, height=240)
    )
    return _svg(chart)


def _above() -> Any:
    import altair as alt

    return alt.Legend(title=None, orient="top")


def _by_setting(chart: Any, rows: Sequence[Mapping[str, Any]]) -> Any:
    import altair as alt

    names = list(dict.fromkeys(row["setting"] for row in rows))
    return (
        chart.facet(row=alt.Row("setting:N", sort=names, title=None), spacing=10)
        if len(names) > 1
        else chart
    )


def _svg(chart: Any) -> str:
    import altair as alt
    import vl_convert

    version = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    svg: str = vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=version, allowed_base_urls=[])
    return svg
