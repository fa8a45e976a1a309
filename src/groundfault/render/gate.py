"""A gate as Markdown: a few lines for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.auditing.gating import Gate, GateMatch
from groundfault.render import words
from groundfault.render.markdown import code, escape

MAX_ROWS = 20  # findings shown; a pull request is no place for more


def headline(gate: Gate) -> str:
    """Whether it passes, and why not, in one line."""
    fresh = "new " if gate.compared else ""
    why = [f"{words.plural(len(gate.new), f'{fresh}finding')} met the rule"] if gate.new else []
    if gate.blind:
        why.append(
            "the audit could not have seen enough (least detectable lift "
            f"{words.bare(gate.detectable)})"
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
        rows = [_row(match) for match in gate.new[:MAX_ROWS]]
        parts.append(
            "\n".join(
                [
                    "| finding | lift | in the baseline | what may be said |",
                    "|:---|---:|:---|:---|",
                    *rows,
                ]
            )
        )
    if len(gate.new) > MAX_ROWS:
        parts.append(f"The first {MAX_ROWS} are shown; all {len(gate.new):,} are in the JSON.")
    parts += [escape(words.capital(line)) + "." for line in lines(gate)]
    parts.append(f"Least lift that the audit could have found: {words.bare(gate.detectable)}.")
    return "\n\n".join(parts) + "\n"


def _row(match: GateMatch) -> str:
    interval = (
        ""
        if match.low is None or match.high is None
        else f" ({words.signed(match.low)} to {words.signed(match.high)})"
    )
    name = words.name_candidate(match.name, match.outcome)
    cells = (
        code(name),
        words.signed(match.lift) + interval,
        (match.before or words.NONE).replace("_", " "),
    )
    return f"| {' | '.join(cells)} | {escape(match.sentence)} |"


def _names(mets: tuple[GateMatch, ...]) -> str:
    return words.listing(
        [words.clean(words.name_candidate(match.name, match.outcome)) for match in mets]
    )
