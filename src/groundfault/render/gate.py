"""A gate as Markdown: a few lines for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from groundfault.auditing import messages
from groundfault.auditing.gating import Gate, GateMatch
from groundfault.auditing.history import BuildHistory, Trend
from groundfault.render import words
from groundfault.render.drawing import Colour, Drawing, Figure, Scale
from groundfault.render.markdown import code, escape, set_table
from groundfault.render.page import (
    Figures,
    Number,
    Page,
    Section,
    Table,
    Words,
    make_table,
    small,
    tabulate,
)

MAX_ROWS = 20  # findings shown; a pull request is no place for more


def headline(gate: Gate, trends: Sequence[Trend] = ()) -> str:
    """Write in one line whether the gate passes, and why not."""
    fresh = "new " if gate.compared else ""
    why = [f"{_count(gate.new, fresh)} met the condition"] if gate.new else []
    if growing := sum(trend.is_growing for trend in trends):
        why.append(f"failures are growing under {words.plural(growing, 'rule')}")
    if gate.blind:
        known = gate.detectable is not None
        found = f"differences from {words.bare(gate.detectable)}" if known else "no difference"
        why.append(words.clean(gate.uniform) or f"the audit is too small (it finds {found})")
    if why:
        return f"Gate failed: {' and '.join(why)}"
    rest = f" ({_count(gate.uncompared)} could not be compared)" if gate.uncompared else ""
    if gate.missed and not gate.uniform:
        if gate.detectable is None:
            return f"Gate passed, but it could not have found a rise of failures{rest}"
        return f"Gate passed: no rise of failures beyond chance was found{rest}"
    why = [words.clean(gate.uniform) or f"no {fresh}finding meets the condition"]
    return f"Gate passed: {why[0]}{rest}"


def lines(gate: Gate) -> Iterator[str]:
    """Yield sentences on everything but the headline, without any markup."""
    if gate.known:
        yield f"{_count(gate.known)} known from the baseline: {_names(gate.known)}"
    if gate.uncompared:
        yield (
            f"{_count(gate.uncompared)} with neither examples nor counts in the baseline: "
            f"{_names(gate.uncompared)}; freeze the candidates (check --freeze) or keep the ids"
        )
    if gate.gone:
        yield f"no longer: {words.listing(tuple(map(words.clean, gate.gone)))}"
    better = [mode for mode in gate.modes if mode.is_less_frequent]
    if better:
        names = [words.clean(words.name_candidate(m.meaning, "")) for m in better]
        yield f"got better: {words.listing(names)}"
    yield from (line.removesuffix(".") for line in gate.missed)
    yield from gate.notes


def describe_match(match: GateMatch) -> str:
    """Describe a match, and its change since the baseline."""
    since = match.since
    # modes and the overall change say it themselves
    if since is None or match.kind != "finding":
        return match.sentence
    what = "the same examples" if since.shared else "counts of the same rule"
    return (
        f"{match.sentence} Failures there went from {words.rate(since.before)} to "
        f"{words.rate(since.now)} ({messages.equal_p(since.p)}, by {what})."
    )


def markdown(gate: Gate, trends: Sequence[Trend] = (), more: Sequence[str] = ()) -> str:
    """Write the gate as GitHub-flavoured Markdown, and more lines; text from data is escaped."""
    parts = [f"### {escape(headline(gate, trends))}", f"Rule: {code(gate.fail_on)}"]
    if gate.new:
        parts.append(set_table(_tabulate(gate.new[:MAX_ROWS]), caption=False))
    if len(gate.new) > MAX_ROWS:
        parts.append(f"The first {MAX_ROWS} are shown; all {len(gate.new):,} are in the JSON.")
    parts += [escape(words.capital(line)) + "." for line in (*lines(gate), *more)]
    parts.append(f"Least difference that could have been found: {words.bare(gate.detectable)}.")
    return "\n\n".join(parts) + "\n"


def _tabulate(matches: Sequence[GateMatch]) -> Table:
    return tabulate(
        "Findings",
        matches,
        Words("finding", lambda match: words.name_candidate(match.name, match.outcome)),
        Number("points", _write_lift),
        Words("in the baseline", _write_before),
        Words("what may be said", describe_match),
    )


def _write_lift(match: GateMatch) -> str:
    known = match.low is not None and match.high is not None
    ends = (match.low or 0.0, match.high or 0.0) if known else None
    return words.points(match.lift) + words.bracket(ends, words.points)


def _write_before(match: GateMatch) -> str:
    verdict = (match.before or words.NONE).replace("_", " ")
    return verdict if match.since is None else f"{words.rate(match.since.before)} ({verdict})"


def _count(matches: Sequence[GateMatch], fresh: str = "") -> str:
    """Count findings and failure modes, in words."""
    modes = sum(match.kind == "mode" for match in matches)
    overall = sum(match.kind == "overall" for match in matches)
    sizes = {
        f"{fresh}overall change": overall,
        f"{fresh}failure mode": modes,
        f"{fresh}finding": len(matches) - modes - overall,
    }
    return " and ".join(words.plural(size, what) for what, size in sizes.items() if size)


def _names(matches: tuple[GateMatch, ...]) -> str:
    return words.listing(
        [words.clean(words.name_candidate(match.name, match.outcome)) for match in matches]
    )


SUITE = "groundfault gate"

# what no XML document may hold, however it is escaped
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate, trends: Sequence[Trend] = ()) -> str:
    """Write the gate as JUnit XML: a test for each match and trend, and one for the whole gate.

    New or growing modes fail; known ones pass; modes that could not be compared are skipped. The
    last test fails where the audit is too small.

    Parameters
    ----------
    gate : Gate
    trends : sequence of Trend
    """
    root = Element("testsuites", name=SUITE)
    suite = SubElement(root, "testsuite", name=SUITE)
    for match in gate.new:
        _add_case(suite, match, "failure")
    for match in gate.known:
        _add_case(suite, match)
    for match in gate.uncompared:
        _add_case(suite, match, "skipped")
    for trend in trends:
        case = SubElement(suite, "testcase", classname=f"{SUITE}.trend", name=_clean(_name(trend)))
        if trend.is_growing:
            sentence = _clean(describe_trend(trend))
            SubElement(case, "failure", message=sentence, type="growing").text = sentence
    whole = SubElement(suite, "testcase", classname=SUITE, name="the audit could see enough")
    sentence = _clean(headline(gate, trends))
    if gate.blind:
        SubElement(whole, "failure", message=sentence, type="blind")
    SubElement(suite, "system-out").text = "\n".join(
        _clean(line) for line in (sentence, *lines(gate))
    )
    for element in (root, suite):
        element.set("tests", str(len(suite.findall("testcase"))))
        element.set("failures", str(len(suite.findall("testcase/failure"))))
        element.set("errors", "0")
        element.set("skipped", str(len(gate.uncompared)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, "unicode") + "\n"


def _add_case(suite: Element, match: GateMatch, result: str = "") -> None:
    name = _clean(words.name_candidate(match.name, match.outcome))
    case = SubElement(suite, "testcase", classname=f"{SUITE}.{match.kind}", name=name)
    sentence = _clean(describe_match(match))
    if result == "failure":
        SubElement(case, result, message=sentence, type=match.kind).text = sentence
    elif result:
        SubElement(case, result, message="nothing in the baseline to compare it with")


def _clean(text: str) -> str:
    """Replace in text from data all that XML cannot hold."""
    return _ILLEGAL.sub("\ufffd", words.clean(text))


MAX_BUILDS = 12  # columns of a page, the last ones: a quarter of weekly builds
MAX_LINES = 8  # of a figure; those that grow come first


def list_trend_lines(history: BuildHistory, trends: Sequence[Trend]) -> Iterator[str]:
    """Yield sentences on modes over builds, without any markup."""
    yield f"over {words.plural(len(history.builds), 'build')}: {_count_trends(trends)}"
    for trend in trends:
        if trend.is_growing:
            yield describe_trend(trend)
    for status in ("new", "gone"):
        if names := [_name(trend) for trend in trends if trend.status == status]:
            yield f"{status}: {words.listing(names)}"
    if history.builds[-1].note:
        yield f"rules of earlier builds were not counted: {history.builds[-1].note}"


def describe_trend(trend: Trend) -> str:
    """Describe the last count of a rule, and the limit that it is held against."""
    last = [one for one in trend.counts if one is not None and one.n][-1]
    rate = f"{words.rate(last.rate)} ({last.errors:g} of {last.n})"
    return f"growing: {_name(trend)}: {rate}, limit {words.rate(trend.limit)}"


def make_trend_page(history: BuildHistory, trends: Sequence[Trend], run_length: int) -> Page:
    """Make the page of failure modes over builds."""
    builds = history.builds[-MAX_BUILDS:]
    heads = ["rule", "status", "limit", *(build.name for build in builds)]
    rows = []
    for trend in trends:
        cells = [
            words.NONE if one is None else words.rate(one.rate) + "*" * one.named
            for one in trend.counts[-MAX_BUILDS:]
        ]
        rows.append((_name(trend), trend.status, words.rate(trend.limit), *cells))
    table = make_table("Failure rates by build", "tt" + "n" * (1 + len(builds)), heads, rows)
    return Page(
        "gate",
        "Failure modes over builds",
        words.capital(_count_trends(trends)),
        facts=[("Builds", words.count(len(history.builds)))],
        sections=[
            Section("Failure rates", Figures((draw_trends(trends, [b.name for b in builds]),))),
            Section.of(table),
            Section(
                "How to read it",
                "A star marks a build whose report names the rule as a failure mode.",
                "A rule is growing when the builds after the one that named it speak for a failure "
                "rate above its limit, the upper end of the interval it had then.",
                "If no rule is above its limit, the first such alarm about any of them comes after "
                f"{words.count(run_length)} builds or more on average. This assumes that within a "
                "build, given those before, examples fail independently of each other.",
                *(small(f"{build.name}: {build.note}") for build in builds if build.note),
            ),
        ],
        good=not any(trend.is_growing for trend in trends),
    )


def draw_trends(trends: Sequence[Trend], names: Sequence[str]) -> Figure:
    """Draw the failure rates of rules over the last builds, growing ones in colour."""
    drawing = Drawing(
        Scale.of_names(names, tilted=len(names) > 6),
        Scale.of_numbers(0, 1, "failure rate", count=5, percent=True),
        width=560,
        height=220,
    )
    for trend in sorted(trends, key=lambda one: not one.is_growing)[:MAX_LINES]:
        colour = Colour.BAD if trend.is_growing else Colour.REST
        counts = enumerate(trend.counts[-len(names) :])
        places = [(float(i), one.rate) for i, one in counts if one and one.rate is not None]
        if places:
            drawing.line(places, colour, width=2)
            drawing.point(places[-1], colour)
    drawing.explain("line", Colour.BAD, "growing")
    drawing.explain("line", Colour.REST, "others")
    alt = f"Lines of failure rates over {words.plural(len(names), 'build')}; the table has them."
    caption = "The table below has the numbers."
    return drawing.to_figure("trends", "Failure rates over builds", caption, alt, wide=True)


def _count_trends(trends: Sequence[Trend]) -> str:
    counts = {
        status: sum(trend.status == status for trend in trends)
        for status in ("growing", "new", "known", "gone")
    }
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def _name(trend: Trend) -> str:
    return words.clean(words.name_candidate(trend.meaning, trend.outcome))
