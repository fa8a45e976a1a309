"""What may be said of probe runs after audit, in plain sentences; what is still open comes
first.
"""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.probes.use import comparison
from groundfault.probes.use.summary import Summary
from groundfault.render import words

LEVEL = 0.05
"""Of the test of the primary endpoint."""

LIMITS = (
    "A routing signal says that an answer differs from its key, or cannot be read. It is no error: only a row that "
    "review confirmed is counted as one.",
    "Rows are queries, keys are prompts. A prompt that was asked again is no second discovery.",
    "What a policy finds within its budget is no rate of failures: a policy that adapts looks where it saw mismatches.",
    "The prompts are those of one bank and one grammar. Nothing here speaks of other tasks or wordings.",
)


def verdict(summary: Summary) -> str:
    """The answer in a line: what was confirmed."""
    results = summary.results
    keys = len(results.keys.confirmed)
    if not keys:
        waiting = results.keys.open
        return "No model error is confirmed" + (
            f"; {words.plural(len(waiting), 'prompt key')} open" if waiting else ""
        )
    least = "At least " if results.keys.open else ""
    unique = f"{least}{words.count(keys)} unique audited prompt {'key' if keys == 1 else 'keys'}"
    return f"{unique} with confirmed model errors"


def still_open(summary: Summary) -> Iterator[str]:
    """What is unaudited, disputed or not finished."""
    rows, keys = summary.results.rows, summary.results.keys
    if rows.waiting:
        yield (
            f"{words.plural(rows.waiting, 'row')} routed to review {_is(rows.waiting)} unaudited "
            f"({_by_policy(summary, 'waiting')}). They count as no error until they are reviewed."
        )
    if rows.disputed:
        yield f"{words.plural(rows.disputed, 'row')} {_is(rows.disputed)} disputed ({_by_policy(summary, 'disputed')})."
    if keys.open:
        most = len(keys.confirmed) + len(keys.open)
        yield (
            f"{words.plural(len(keys.open), 'prompt key')} {_is(len(keys.open))} open: "
            f"the unique audited keys are {len(keys.confirmed):,} now and at most {most:,}."
        )
    short = [run for run in summary.results.runs if run.rows.queries < run.budget]
    if short:
        yield f"{words.plural(len(short), 'run')} {_is(len(short))} not finished, such as {_run(short[0])}."
    if not (rows.waiting or rows.disputed or short):
        yield "Nothing: all runs are finished, and all that was routed to review is settled."


def conclusions(summary: Summary) -> Iterator[str]:
    """What may be said."""
    results = summary.results
    rows, keys = results.rows, results.keys
    yield (
        f"Of {words.count(rows.queries)} queries, {words.count(rows.routed)} rows were routed to review by a machine. "
        f"Review confirmed {words.plural(rows.confirmed, 'model error row')} and excluded {words.count(rows.excluded)}."
    )
    yield f"The confirmed errors are of {_keys(len(keys.confirmed))}, in {words.plural(len(keys.tasks), 'task')}."
    model = results.models[0] if len(results.models) == 1 else None
    for policy in summary.rivals:
        yield comparison_sentence(summary, policy, model)
    if not summary.rivals:
        yield f"There is one policy, {quoted(summary.control)}: nothing to compare."


def comparison_sentence(summary: Summary, policy: str, model: str | None) -> str:
    """Whether a policy finds more unique audited keys than the control."""
    control, named = quoted(summary.control), quoted(policy)
    why = comparison.unmatched(summary.results, policy, summary.control, model)
    found = summary.difference(policy, model)
    if why or found is None:
        return f"{named} and {control} cannot be compared with matched budgets: {why}."
    numbers = f"{words.signed(found.mean)} a seed"
    if found.interval:
        low, high = found.interval
        numbers += f" (95% interval {words.signed(low)} to {words.signed(high)}, Student's)"
    numbers += f", p = {words.p_value(found.p)}, {words.plural(len(found.seeds), 'seed')}"
    if found.p <= LEVEL:
        more = "more" if found.mean > 0 else "fewer"
        said = f"With the same budget {named} finds {more} unique audited prompt keys than {control}: {numbers}."
    else:
        said = (
            f"There is no matched-budget evidence that {named} finds more unique audited prompt keys than {control}: "
            f"{numbers}."
        )
        if found.least_p > LEVEL:
            said += (
                f" So few seeds cannot give any: the smallest p they allow is {words.p_value(found.least_p)}. At least "
                "6 are needed, better 20."
            )
    held = [summary.results.pool(name, model).keys.open for name in (policy, summary.control)]
    return said + (" This may change while prompt keys are open." if any(held) else "")


def short_conclusion(summary: Summary, policy: str, model: str | None) -> str:
    """The same for a table."""
    found = summary.difference(policy, model)
    if found is None:
        return "not matched"
    if found.p <= LEVEL:
        said = f"{quoted(policy)} finds {'more' if found.mean > 0 else 'fewer'}"
    else:
        said = f"no evidence for {quoted(policy)}"
    held = [summary.results.pool(name, model).keys.open for name in (policy, summary.control)]
    return said + ("; keys open" if any(held) else "")


def quoted(policy: str) -> str:
    """A policy's name as part of a sentence: in quotes where it has a comma of its own."""
    return f'"{policy}"' if "," in policy else policy


def _by_policy(summary: Summary, what: str) -> str:
    results = summary.results
    return ", ".join(
        f"{quoted(name)} {getattr(results.pool(name).rows, what):,}" for name in results.policies
    )


def _keys(number: int) -> str:
    return words.plural(number, "unique prompt key")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _run(run: object) -> str:
    told = vars(run)
    return f"{told['model']}, {told['policy']}, seed {told['seed']}"
