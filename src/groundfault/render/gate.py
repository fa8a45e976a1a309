"""A gate as Markdown: a few lines for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from groundfault.auditing.gating import Gate, GateMatch
from groundfault.render import words
from groundfault.render.markdown import code, escape, set_table
from groundfault.render.page import Number, Table, Words, tabulate

MAX_ROWS = 20  # findings shown; a pull request is no place for more


def headline(gate: Gate) -> str:
    """Write in one line whether the gate passes, and why not."""
    fresh = "new " if gate.compared else ""
    why = [f"{_count(gate.new, fresh)} met the rule"] if gate.new else []
    if gate.blind:
        known = gate.detectable is not None
        found = f"differences from {words.bare(gate.detectable)}" if known else "no difference"
        why.append(
            words.clean(gate.uniform) or f"the audit could not have seen enough (it finds {found})"
        )
    if why:
        return f"Gate failed: {' and '.join(why)}"
    rest = f" ({_count(gate.uncompared)} could not be compared)" if gate.uncompared else ""
    if gate.missed and not gate.uniform:
        if gate.detectable is None:
            return f"Gate passed, but it could not have found a rise of failures{rest}"
        return f"Gate passed: no rise of failures beyond chance was found{rest}"
    return f"Gate passed: {words.clean(gate.uniform) or f'no {fresh}finding meets the rule'}{rest}"


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
        f"{words.rate(since.now)} (p = {words.p_value(since.p)}, by {what})."
    )


def markdown(gate: Gate) -> str:
    """Write the gate as GitHub-flavoured Markdown; text from data is escaped."""
    parts = [f"### {escape(headline(gate))}", f"Rule: {code(gate.fail_on)}"]
    if gate.new:
        parts.append(set_table(_tabulate(gate.new[:MAX_ROWS]), caption=False))
    if len(gate.new) > MAX_ROWS:
        parts.append(f"The first {MAX_ROWS} are shown; all {len(gate.new):,} are in the JSON.")
    parts += [escape(words.capital(line)) + "." for line in lines(gate)]
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


def junit(gate: Gate) -> str:
    """Write the gate as JUnit XML: a test for each match, and one for the gate as a whole.

    What is new fails; what is known passes; what could not be compared is skipped. The last test
    fails where the audit could not have seen enough.

    Parameters
    ----------
    gate : Gate
    """
    root = Element("testsuites", name=SUITE)
    suite = SubElement(root, "testsuite", name=SUITE)
    for match in gate.new:
        _add_case(suite, match, "failure")
    for match in gate.known:
        _add_case(suite, match)
    for match in gate.uncompared:
        _add_case(suite, match, "skipped")
    whole = SubElement(suite, "testcase", classname=SUITE, name="the audit could see enough")
    sentence = _clean(headline(gate))
    if gate.blind:
        SubElement(whole, "failure", message=sentence, type="blind")
    SubElement(suite, "system-out").text = "\n".join(
        _clean(line) for line in (sentence, *lines(gate))
    )
    for element in (root, suite):
        element.set("tests", str(len(suite.findall("testcase"))))
        element.set("failures", str(len(gate.new) + gate.blind))
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
