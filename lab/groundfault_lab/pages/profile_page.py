"""The page of models' profiles: their order, and bars of failure rates by leaf and cluster."""

from __future__ import annotations

import math

from groundfault.render import words
from groundfault.render.drawing import Colour, Drawing, Figure, Scale, spread_evenly
from groundfault.render.page import Bar, Figures, Name, Number, Page, Section, Words, tabulate
from groundfault_lab.pages.taxonomy_figures import shorten_name
from groundfault_lab.taxonomy.use.profiles import ClusterRate, ModelProfile, Profiles

MAX_CHARTS = 12
"""Models that a page draws: a few screens; ``--model`` chooses them."""
MAX_LISTED = 3
"""Models whose rates a terminal lists."""
_BAND = 22
"""Pixels of a bar and its gap: a line of text and some room."""

_CELLS = 12
"""Characters of a bar in a table, so that a row fits 80 columns."""


def make_profile_page(profiles: Profiles, title: str) -> Page:
    """Make the page: a table of models, one of rates, and a bar chart a model."""
    drawn = spread_evenly(profiles.models, MAX_CHARTS)
    ranks = tabulate(
        "Models, those first that fail least",
        profiles.models,
        Number("Rank", lambda m: m.rank),
        Name("Model", lambda m: m.model),
        Number("Mean over leaves", lambda m: words.rate(m.mean)),
        Number("All examples", lambda m: words.rate(m.failed)),
        Number("Leaves beyond ability", lambda m: m.beyond),
        Words("Most beyond ability", _describe_worst),
        note="Mean over leaves: failure rates of the leaves and clusters, each counted once. The "
        f"rank is by it, among {words.count(profiles.all_models)} models.",
    )
    rates = tabulate(
        "Failure rates",
        [(model, rate) for model in profiles.models for rate in model.rates],
        Name("Model", lambda pair: pair[0].model),
        Name("Leaf or cluster", lambda pair: pair[1].cluster),
        Number("Failed", lambda pair: f"{pair[1].failed} of {pair[1].asked}"),
        Number("Rate", lambda pair: _write(pair[1].rate)),
        Words("0 to 100%", lambda pair: _draw_bar(pair[1])),
        Number("95% interval", lambda pair: f"{_write(pair[1].low)} to {_write(pair[1].high)}"),
        Number("Expected", lambda pair: _write(pair[1].expected)),
        Words("", lambda pair: "beyond ability" if pair[1].beyond else ""),
        note="Intervals are Wilson's, of each rate by itself. Expected: by the model's ability and "
        "the examples' difficulty. A bar ends at the rate; its dark part is beyond the expected "
        "rate.",
    )
    best = profiles.models[0]
    verdict = (
        f"{best.model} fails least of {words.plural(len(profiles.models), 'model')}: a mean "
        f"failure rate of {words.rate(best.mean)} (leaves and clusters: {len(best.rates)})."
    )
    left = len(profiles.models) - len(drawn)
    sentence = f"{len(drawn)} models are drawn, evenly by rank; --model chooses." if left else ""
    figures = Figures(tuple(map(draw_profile, drawn)))
    charts = Section("Bar charts", sentence, figures, for_files=True)
    # a terminal has room for the rates of a few models, and files for all
    listed = Section.of(rates, for_files=len(drawn) > MAX_LISTED)
    return Page("profiles", title, verdict, sections=(Section.of(ranks), charts, listed))


def draw_profile(profile: ModelProfile) -> Figure:
    """Draw the failure rate of a model in each leaf and cluster, as bars."""
    rates = [rate for rate in profile.rates if rate.asked]
    drawing = Drawing(
        Scale.of_numbers(0, 1, "share failed", percent=True),
        Scale.of_names([shorten_name(rate.cluster) for rate in rates], colour=Colour.INK).turned(),
        width=420,
        height=_BAND * max(len(rates), 1),
    )
    for i, rate in enumerate(rates):
        colour = Colour.BAD if rate.beyond else Colour.REST
        drawing.bar((0.0, i), (rate.rate, i), _BAND - 8, colour)
        drawing.line([(rate.low, i), (rate.high, i)], Colour.INK)
        if not math.isnan(rate.expected):
            drawing.point((rate.expected, i), Colour.PAPER, shape="diamond", edge=Colour.INK)
    drawing.explain("square", Colour.BAD, "beyond ability")
    drawing.explain("square", Colour.REST, "not shown to be")
    drawing.explain("diamond", Colour.INK, "expected")
    drawing.explain("line", Colour.INK, "95% interval")
    values = "; ".join(f"{shorten_name(r.cluster)} {words.rate(r.rate)}" for r in rates)
    name = words.clean(profile.model)
    caption = f"Rank {profile.rank}; {words.rate(profile.failed)} of all examples failed."
    return drawing.to_figure(f"profile-{profile.rank}", name, caption, f"{name}: {values}.")


def _describe_worst(profile: ModelProfile) -> str | None:
    beyond = [rate for rate in profile.rates if rate.beyond]
    if not beyond:
        return None
    worst = max(beyond, key=lambda rate: rate.rate - rate.expected)
    return f"{worst.cluster} ({words.rate(worst.rate)}, expected {words.rate(worst.expected)})"


def _draw_bar(rate: ClusterRate) -> str:
    expected = rate.rate if math.isnan(rate.expected) else rate.expected
    return Bar(rate.rate, expected).draw(_CELLS) if rate.asked else ""


def _write(value: float) -> str:
    return words.NONE if math.isnan(value) else words.rate(value)
