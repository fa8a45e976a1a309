"""A gate as Markdown: a few lines for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.auditing.gating import Gate, GateMatch
from groundfault.render import words
from groundfault.render.markdown import code, escape

MOST = 20  # findings shown; a pull request is no place for more


def headline(gate: Gate) -> str:
    """Whether it passes, and why not, in one line."""
    fresh = "new " if gate.compared else ""
    why = [f"{words.plural(len(gate.new), f'{fresh}finding')} met the rule"] if gate.new else []
    if gate.blind:
        why.append(
            f"the audit could not have seen enough (least detectable lift {words.bare(gate.detectable)})"
        )
    if why:
        return f"Gate failed: {' and '.join(why)}"
    return f"Gate passed: no {fresh}finding meets the rule"


def lines(gate: Gate) -> Iterator[str]:
    """What else there is to say, plain."""
    if gate.known:
        yield f"{words.plural(len(gate.known), 'finding')} known from the baseline: {_names(gate.known)}"
    if gate.gone:
        yield f"no longer: {words.listing(tuple(map(words.clean, gate.gone)))}"
    yield from gate.notes


def markdown(gate: Gate) -> str:
    """The gate as GitHub-flavoured Markdown; text from data is escaped."""
    parts = [f"### {escape(headline(gate))}", f"Rule: {code(gate.fail_on)}"]
    if gate.new:
        rows = [_row(met) for met in gate.new[:MOST]]
        parts.append(
            "\n".join(
                [
                    "| finding | lift | in the baseline | what may be said |",
                    "|:---|---:|:---|:---|",
                    *rows,
                ]
            )
        )
    if len(gate.new) > MOST:
        parts.append(f"The first {MOST} are shown; all {len(gate.new):,} are in the JSON.")
    parts += [escape(words.capital(line)) + "." for line in lines(gate)]
    parts.append(f"Least lift that the audit could have found: {words.bare(gate.detectable)}.")
    return "\n\n".join(parts) + "\n"


def _row(met: GateMatch) -> str:
    interval = (
        ""
        if met.low is None or met.high is None
        else f" ({words.signed(met.low)} to {words.signed(met.high)})"
    )
    name = words.named(met.name, met.outcome)
    cells = (
        code(name),
        words.signed(met.lift) + interval,
        (met.before or words.NONE).replace("_", " "),
    )
    return f"| {' | '.join(cells)} | {escape(met.sentence)} |"


def _names(mets: tuple[GateMatch, ...]) -> str:
    return words.listing([words.clean(words.named(met.name, met.outcome)) for met in mets])
