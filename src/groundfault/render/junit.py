"""A gate as JUnit XML, which build servers show as tests that passed or failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from groundfault.auditing.gating import Gate, GateMatch
from groundfault.render import gate as gate_words
from groundfault.render import words

SUITE = "groundfault gate"

# what no XML document may hold, however it is escaped
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(gate: Gate) -> str:
    """The gate as JUnit XML: a test for each match, and one for the gate as a whole.

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
    headline = _clean(gate_words.headline(gate))
    if gate.blind:
        SubElement(whole, "failure", message=headline, type="blind")
    SubElement(suite, "system-out").text = "\n".join(
        _clean(line) for line in (headline, *gate_words.lines(gate))
    )
    tests, failures = len(_list_matches(gate)) + 1, len(gate.new) + gate.blind
    for element in (root, suite):
        element.set("tests", str(tests))
        element.set("failures", str(failures))
        element.set("errors", "0")
        element.set("skipped", str(len(gate.uncompared)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, "unicode") + "\n"


def _list_matches(gate: Gate) -> Sequence[GateMatch]:
    return (*gate.new, *gate.known, *gate.uncompared)


def _add_case(suite: Element, match: GateMatch, result: str = "") -> None:
    name = _clean(words.name_candidate(match.name, match.outcome))
    case = SubElement(suite, "testcase", classname=f"{SUITE}.{match.kind}", name=name)
    sentence = _clean(gate_words.describe_match(match))
    if result == "failure":
        SubElement(case, result, message=sentence, type=match.kind).text = sentence
    elif result:
        SubElement(case, result, message="nothing in the baseline to compare it with")


def _clean(text: str) -> str:
    """Text from data without what XML cannot hold."""
    return _ILLEGAL.sub("\ufffd", words.clean(text))
