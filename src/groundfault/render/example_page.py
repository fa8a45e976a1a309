"""Examples of one rule of a report, for a terminal."""

from __future__ import annotations

from groundfault.auditing.report_examples import RuleExamples
from groundfault.modes.mode import Mode, Side
from groundfault.render import words
from groundfault.render.change_words import name_change
from groundfault.render.mode_page import list_excerpts
from groundfault.render.mode_words import describe_rates
from groundfault.render.page import Block, Code, Page, Paragraph

_NAMES: dict[Side, str] = {
    "failing": "inside the rule, and wrong",
    "passing": "inside the rule, and right",
    "near": "outside the rule by one condition",
}


def make_example_page(lookup: RuleExamples, side: Side) -> Page:
    """Examples of one side of a rule, the words that it names highlighted.

    Parameters
    ----------
    lookup : RuleExamples
    side : {"failing", "passing", "near"}
    """
    subject, examples = lookup.subject, lookup.examples
    name = _name_side(lookup, side)
    outcome = f" ({subject.outcome})" if subject.outcome else ""
    if isinstance(subject, Mode):
        sentence = f"{words.capital(describe_rates(subject))}."
    else:
        sentence = subject.sentence
    lead: list[Block] = [Paragraph(("Rule: ", Code(subject.rule))), Paragraph((sentence,))]
    if examples:
        size = words.plural(len(examples), "example")
        order = "those most like failing ones" if side == "near" else "the most typical"
        lead.append(Paragraph((f"{size} {name}, {order} first:",)))
        lead += list_excerpts(examples, subject.rule, titles=False)
    else:
        lead.append(Paragraph((f"No example is {name}.",)))
    title = words.clean(f"{subject.meaning}{outcome}")
    return Page("examples", "", title, (), (), bool(examples), tuple(lead))


def _name_side(lookup: RuleExamples, side: Side) -> str:
    subject = lookup.subject
    if lookup.pair is None or isinstance(subject, Mode) or side == "near":
        return _NAMES[side]
    change = name_change(lookup.pair, is_better=subject.is_less_frequent)
    return f"inside the rule, and {'not ' if side == 'passing' else ''}{change}"
