"""A gate as Markdown: a few lines for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groundfault.auditing.gating import Gate, GateMatch
from groundfault.render import words
from groundfault.render.markdown import code, escape, set_table
from groundfault.render.page import Table, TableColumn

MAX_ROWS = 20  # findings shown; a pull request is no place for more


def headline(gate: Gate) -> str:
    """Whether it passes, and why not, in one line."""
    fresh = "new " if gate.compared else ""
    why = [f"{_count(gate.new, fresh)} met the rule"] if gate.new else []
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
        yield f"{_count(gate.known)} known from the baseline: {_names(gate.known)}"
    if gate.gone:
        yield f"no longer: {words.listing(tuple(map(words.clean, gate.gone)))}"
    yield from gate.notes


def markdown(gate: Gate) -> str:
    """The gate as GitHub-flavoured Markdown; text from data is escaped."""
    parts = [f"### {escape(headline(gate))}", f"Rule: {code(gate.fail_on)}"]
    if gate.new:
        parts.append(set_table(_findings(gate.new[:MAX_ROWS]), caption=False))
    if len(gate.new) > MAX_ROWS:
        parts.append(f"The first {MAX_ROWS} are shown; all {len(gate.new):,} are in the JSON.")
    parts += [escape(words.capital(line)) + "." for line in lines(gate)]
    parts.append(f"Least lift that the audit could have found: {words.bare(gate.detectable)}.")
    return "\n\n".join(parts) + "\n"


def _findings(matches: Sequence[GateMatch]) -> Table:
    columns = (
        TableColumn("finding", "code"),
        TableColumn("lift", "number"),
        TableColumn("in the baseline"),
        TableColumn("what may be said"),
    )
    return Table("Findings", columns, tuple(map(_row, matches)))


def _row(match: GateMatch) -> tuple[str, ...]:
    lift = words.signed(match.lift)
    if match.low is not None and match.high is not None:
        lift += f" ({words.signed(match.low)} to {words.signed(match.high)})"
    name = words.name_candidate(match.name, match.outcome)
    return name, lift, (match.before or words.NONE).replace("_", " "), match.sentence


def _count(matches: Sequence[GateMatch], fresh: str = "") -> str:
    """How many findings there are, and how many failure modes."""
    modes = sum(match.kind == "mode" for match in matches)
    sizes = {f"{fresh}failure mode": modes, f"{fresh}finding": len(matches) - modes}
    return " and ".join(words.plural(size, what) for what, size in sizes.items() if size)


def _names(matches: tuple[GateMatch, ...]) -> str:
    return words.listing(
        [words.clean(words.name_candidate(match.name, match.outcome)) for match in matches]
    )
