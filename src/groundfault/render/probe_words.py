"""Sentences about reviewed probe runs: open points first, then conclusions."""

from __future__ import annotations

from collections.abc import Iterator

from groundfault.probes.use import comparison
from groundfault.probes.use.endpoints import RunEndpoints
from groundfault.probes.use.summary import Summary
from groundfault.render import words

LEVEL = 0.05
"""Of the test of the primary endpoint."""

_LIMITS = (
    "Rows are queries, keys are prompts. A prompt that was asked again is no second discovery.",
    "What a policy finds within its budget is no rate of failures: a policy that adapts looks "
    "where it saw mismatches.",
    "The prompts are those of one bank and one grammar. Nothing here speaks of other tasks or "
    "wordings.",
)


def list_limits(summary: Summary) -> tuple[str, ...]:
    """List claims that the numbers do not support."""
    compared = "its key" if summary.has_keys else "that to the base wording"
    return (
        f"A routing signal says that an answer differs from {compared}, or cannot be read. It is "
        "no error: only a row that review confirmed is counted as one.",
        *_LIMITS,
    )


def summarize(summary: Summary) -> str:
    """Return the answer in a line: how many errors were confirmed."""
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


def list_open_points(summary: Summary) -> Iterator[str]:
    """List rows and runs that are unaudited, disputed or not finished."""
    rows, keys = summary.results.rows, summary.results.keys
    for asked, answered in summary.other_models:
        yield (
            f"The model {asked!r} was asked, and the server answered as {answered!r}: what is said "
            "here may be of that model."
        )
    if rows.waiting:
        yield (
            f"{words.plural(rows.waiting, 'row')} routed to review {_is(rows.waiting)} unaudited "
            f"({_by_policy(summary, 'waiting')}). They count as no error until they are reviewed."
        )
    if rows.disputed:
        by_policy = _by_policy(summary, "disputed")
        yield f"{words.plural(rows.disputed, 'row')} {_is(rows.disputed)} disputed ({by_policy})."
    if keys.open:
        most = len(keys.confirmed) + len(keys.open)
        yield (
            f"{words.plural(len(keys.open), 'prompt key')} {_is(len(keys.open))} open: the unique "
            f"audited keys are {len(keys.confirmed):,} now and at most {most:,}."
        )
    short = [run for run in summary.results.runs if run.rows.queries < run.budget]
    if short:
        runs = words.plural(len(short), "run")
        yield f"{runs} {_is(len(short))} not finished, such as {_name_run(short[0])}."
    if not (rows.waiting or rows.disputed or short or summary.other_models):
        yield "Nothing: all runs are finished, and all that was routed to review is settled."


def draw_conclusions(summary: Summary) -> Iterator[str]:
    """Yield the conclusions that the review supports."""
    results = summary.results
    rows, keys = results.rows, results.keys
    yield (
        f"Of {words.count(rows.queries)} queries, {words.count(rows.routed)} rows were routed to "
        f"review by a machine. Review confirmed {words.plural(rows.confirmed, 'model error row')} "
        f"and excluded {words.count(rows.excluded)}."
    )
    tasks = words.plural(len(keys.tasks), "task")
    yield f"The confirmed errors are of {_keys(len(keys.confirmed))}, in {tasks}."
    model = results.models[0] if len(results.models) == 1 else None
    for policy in summary.rivals:
        yield compare(summary, policy, model)
    if not summary.rivals:
        yield f"There is one policy, {quote(summary.control)}: nothing to compare."


def compare(summary: Summary, policy: str, model: str | None) -> str:
    """Compare a policy with the control: which finds more unique audited keys."""
    control, quoted_policy = quote(summary.control), quote(policy)
    why = comparison.explain_mismatch(summary.results, policy, summary.control, model)
    difference = summary.difference(policy, model)
    if why or difference is None:
        return f"{quoted_policy} and {control} cannot be compared with matched budgets: {why}."
    numbers = f"{words.signed(difference.mean)} a seed"
    if difference.interval:
        low, high = difference.interval
        numbers += f" (95% interval {words.signed(low)} to {words.signed(high)}, Student's)"
    numbers += f", p = {words.p_value(difference.p)}, {words.plural(len(difference.seeds), 'seed')}"
    if difference.p <= LEVEL:
        more = "more" if difference.mean > 0 else "fewer"
        sentence = (
            f"With the same budget {quoted_policy} finds {more} unique audited prompt keys than "
            f"{control}: {numbers}."
        )
    else:
        sentence = (
            f"There is no matched-budget evidence that {quoted_policy} finds more unique audited "
            f"prompt keys than {control}: {numbers}."
        )
        if difference.min_p > LEVEL:
            sentence += (
                " So few seeds cannot give any: the smallest p they allow is "
                f"{words.p_value(difference.min_p)}. At least 6 are needed, better 20."
            )
    open_keys = [summary.results.pool(name, model).keys.open for name in (policy, summary.control)]
    return sentence + (" This may change while prompt keys are open." if any(open_keys) else "")


def compare_briefly(summary: Summary, policy: str, model: str | None) -> str:
    """Compare a policy with the control in the few words of a table."""
    difference = summary.difference(policy, model)
    if difference is None:
        return "not matched"
    if difference.p <= LEVEL:
        phrase = f"{quote(policy)} finds {'more' if difference.mean > 0 else 'fewer'}"
    else:
        phrase = f"no evidence for {quote(policy)}"
    open_keys = [summary.results.pool(name, model).keys.open for name in (policy, summary.control)]
    return phrase + ("; keys open" if any(open_keys) else "")


def quote(policy: str) -> str:
    """Write a policy's name as part of a sentence: in quotes where it has a comma of its own."""
    return f'"{policy}"' if "," in policy else policy


def _by_policy(summary: Summary, what: str) -> str:
    results = summary.results
    return ", ".join(
        f"{quote(name)} {getattr(results.pool(name).rows, what):,}" for name in results.policies
    )


def _keys(number: int) -> str:
    return words.plural(number, "unique prompt key")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _name_run(run: RunEndpoints) -> str:
    return f"{run.model}, {run.policy}, seed {run.seed}"
