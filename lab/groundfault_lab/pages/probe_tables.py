"""Tables of what probe runs show: counts, comparisons, rates, effects and keys.

They follow the paper's tables 2 and 5 to 13.
"""

from __future__ import annotations

from typing import Any

from groundfault.render import words
from groundfault.render.page import Name, Number, Table, Words, make_table, tabulate
from groundfault.stats.paired import MAX_EXACT_PAIRS
from groundfault_lab.probes.endpoints import EXCLUDED, PooledRuns, RunEndpoints
from groundfault_lab.probes.summary import Summary

MAX_KEYS = 500
"""Keys listed on a page: more than anyone reads, and few enough to load at once."""
LEVEL = 0.05
"""Of the test of the primary endpoint."""
_ALL_MODELS = "all models"
_RUN: tuple[Words[PooledRuns | RunEndpoints], ...] = (
    Words("Model", lambda p: p.model or _ALL_MODELS),
    Words("Policy", lambda p: p.policy),
)


def compare_policies(summary: Summary) -> Table:
    """Return table 2: confirmed rows, and unique keys shared and apart."""
    results = summary.results
    duels = [
        (
            results.pool(policy, model),
            results.pool(summary.control, model),
            results.compare_keys(policy, summary.control, model),
        )
        for model in results.scopes
        for policy in summary.rivals
    ]
    return tabulate(
        "Matched comparison (audited)",
        # a policy that ran on some models only has no row where it did not run
        [duel for duel in duels if duel[0].runs and duel[1].runs],
        Words("Model", lambda d: d[0].model or _ALL_MODELS),
        Words("Policy", lambda d: d[0].policy),
        Number("Budget", lambda d: d[0].budget + d[1].budget),
        Number("Confirmed rows", lambda d: f"{d[0].rows.confirmed:,} / {d[1].rows.confirmed:,}"),
        Number(
            "Unique keys", lambda d: f"{len(d[0].keys.confirmed):,} / {len(d[1].keys.confirmed):,}"
        ),
        Number(
            "Keys shared / its own / control's",
            lambda d: f"{len(d[2].both):,} / {len(d[2].first):,} / {len(d[2].second):,}",
        ),
        Words("Key-level conclusion", lambda d: compare_briefly(summary, d[0].policy, d[0].model)),
        note=f"The paper's Table 2 in form: each policy / the control, {_quote_control(summary)}; "
        "the budget is of both together. Rows and keys after audit; keys name no model: one on "
        "which two models err counts once over all.",
    )


def tabulate_routing(summary: Summary) -> Table:
    """Return table 5: rows that the machine routed, before any audit."""
    return tabulate(
        "Routing signals (not audited)",
        summary.results.pools,
        *_RUN,
        Number("Queries", lambda p: p.rows.queries),
        Number("Mismatches", lambda p: p.rows.mismatches),
        Number("Mismatch rate", lambda p: words.rate(p.rows.mismatches / p.rows.queries)),
        Number("Unreadable", lambda p: p.rows.unreadable),
        # spent queries without a text: no signal, and none of the model's errors
        Number("Unanswered", lambda p: p.rows.refused + p.rows.failed),
        Number("Routed to review", lambda p: p.rows.routed),
        note="The paper's Table 5 in form. Rows, counted by a machine before any audit: signals, "
        "and no errors of a model.",
    )


def tabulate_signals_and_errors(summary: Summary) -> Table:
    """Return tables 7, 9 and 11: signals and audited counts side by side."""
    return tabulate(
        "Signals beside audited errors",
        summary.results.pools,
        *_RUN,
        Number("Queries", lambda p: p.rows.queries),
        Number("Mismatch rows", lambda p: p.rows.mismatches),
        Number("Mismatch keys", lambda p: len(p.keys.mismatched)),
        Number("Audited rows", lambda p: p.rows.confirmed),
        Number("Audited keys", lambda p: len(p.keys.confirmed)),
        Number("Tasks", lambda p: len(p.keys.tasks)),
        Number("Mean best score", lambda p: None if p.best is None else f"{p.best:.4f}"),
        note="The paper's Tables 7, 9 and 11 in form. Mismatches and best scores are routing "
        "signals; audited rows and keys are confirmed model errors.",
    )


def tabulate_resolutions(summary: Summary) -> Table:
    """Return tables 8, 10 and 12: results of the review."""
    return tabulate(
        "Resolved audit",
        summary.results.pools,
        *_RUN,
        Number("Routed rows", lambda p: p.rows.routed),
        Number("Reviewed", lambda p: p.rows.reviewed),
        Number("Confirmed", lambda p: p.rows.confirmed),
        Number("Excluded", lambda p: p.rows.excluded),
        Number("No error", lambda p: p.rows.no_error),
        Number("Disputed", lambda p: p.rows.disputed),
        Number("Unaudited", lambda p: p.rows.waiting),
        Number("Unique keys", lambda p: len(p.keys.confirmed)),
        note="The paper's Tables 8, 10 and 12 in form. Reviewed rows, and what they came to, may "
        "be more than those routed: matches are reviewed unseen among them.",
    )


def tabulate_exclusions(summary: Summary) -> Table:
    """Return excluded rows by status."""
    rows = [
        (
            p.model or _ALL_MODELS,
            p.policy,
            *(words.count(getattr(p.rows, status)) for status in EXCLUDED),
        )
        for p in summary.results.pools
        if p.rows.excluded
    ]
    heads = ("Model", "Policy", "Extraction artefact", "Format artefact", "Invalid prompt")
    note = "Reviewed, and no confirmed error of the model."
    return make_table("Excluded rows by status", "ttnnn", heads, rows, note)


def tabulate_endpoints(summary: Summary) -> Table:
    """Return the endpoints: confirmed rows, keys and tasks that a budget bought."""
    return tabulate(
        "Endpoints",
        summary.results.pools,
        *_RUN,
        Number("Budget", lambda p: p.budget),
        Number("Audited yield", lambda p: f"{p.audited_yield:.4f}"),
        Number("Unique keys", lambda p: len(p.keys.confirmed)),
        Number("Tasks", lambda p: len(p.keys.tasks)),
        Number("Runs with a failure", lambda p: f"{p.runs_with_failure:,} of {p.runs:,}"),
        Number("First failure", lambda p: p.first or f"> {p.budget // p.runs:,}"),
        note="Audited yield: confirmed rows over the budget; what a budget bought, and no failure "
        "rate. First failure: the query of the first audited one, median over runs; beyond the "
        "budget where most have none.",
    )


def tabulate_best_scores(summary: Summary) -> Table:
    """Return table 6: best scores seed by seed."""
    return tabulate(
        "Best scores, seed by seed (routing signal)",
        summary.tables.best_scores,
        Words("Model", lambda d: d.model or _ALL_MODELS),
        Words("Policy", lambda d: d.policy),
        Number("Seeds", lambda d: d.seeds),
        Number("Mean best", lambda d: f"{d.best:.4f}"),
        Number("Control's mean best", lambda d: f"{d.control_best:.4f}"),
        Number("Difference", lambda d: words.signed(d.best - d.control_best, 4)),
        Number("Wins", lambda d: d.wins),
        Number("Losses", lambda d: d.losses),
        Number("Ties", lambda d: d.ties),
        note="The paper's Table 6 in form. A routing score that is 1 with the first mismatch: it "
        "says whether a run saw any and nothing of discovery. Equal means and all ties are "
        "expected of policies that work as they should.",
    )


def tabulate_runs(summary: Summary) -> Table:
    """Return a row for every run."""
    return tabulate(
        "Every run",
        summary.results.runs,
        *_RUN,
        Number("Seed", lambda r: str(r.seed)),
        Number("Queries / budget", lambda r: f"{r.rows.queries:,} / {r.budget:,}"),
        Number("Mismatch rows", lambda r: r.rows.mismatches),
        Number("Audited rows", lambda r: r.rows.confirmed),
        Number("Audited keys", lambda r: len(r.keys.confirmed)),
        Number("First audited failure", lambda r: r.first or f"> {r.budget:,}"),
    )


def tabulate_differences(summary: Summary) -> Table:
    """Return paired differences from the control."""
    return tabulate(
        "Paired differences over seeds",
        summary.tables.differences,
        Words("Model", lambda d: d.model or _ALL_MODELS),
        Words("Policy", lambda d: d.policy),
        Words("Endpoint", lambda d: d.endpoint),
        Number("Seeds", lambda d: len(d.seeds)),
        Number("Difference", lambda d: words.signed(d.mean, 3)),
        Number("95% interval", lambda d: words.span(d.interval, _write_difference)),
        Number("p", lambda d: words.p_value(d.p)),
        note=f"Minus {_quote_control(summary)}, with the same models, seeds and budget. The "
        "interval is Student's, which assumes normal differences; there is none where all seeds "
        "differ alike. p: two-sided, over flips of the seeds' signs, exact up to "
        f"{MAX_EXACT_PAIRS} seeds; adjusted for all policies of a model for unique audited keys, "
        "the primary endpoint, and not for the others. A run without an audited failure counts as "
        "having it at the end of its budget.",
    )


_RATES = {
    "all asked": "every prompt was asked: exact",
    "draws": "drawn without looking; Wilson's interval",
    "weighted": "weighted by known chances; Student's interval over seeds",
    "not available": "not available: chances are neither equal nor known",
}


def tabulate_rates(summary: Summary) -> Table:
    """Return how often prompts get a confirmed error, where the chances are known."""
    return tabulate(
        "How often prompts fail, where that can be told",
        summary.tables.rates,
        Words("Model", lambda r: r.model),
        Words("Policy", lambda r: r.policy),
        Number("Prompts with a confirmed error", lambda r: words.rate(r.value)),
        Number("95% interval", lambda r: words.span(r.interval, "{:.1%}".format)),
        Number("Open rows", lambda r: r.open),
        Words("How", lambda r: _RATES[r.how]),
        note="Of the valid prompts of this bank and grammar, and of no others. What is open, or "
        "was not reviewed, counts as no error: with open rows the rate is a lower bound.",
    )


def tabulate_effects(summary: Summary) -> Table:
    """Return the effects of components within tasks."""
    matches = "count as right" if summary.has_keys else "are as right as the base wording"
    return tabulate(
        "Components, compared within tasks (audited)",
        [effect for effect in summary.tables.effects if effect.tasks],
        Words("Model", lambda e: e.model),
        Words("Component", lambda e: e.group),
        Words("Option", lambda e: e.option),
        Number("Tasks", lambda e: e.tasks),
        Number("Difference", lambda e: words.signed(e.difference, 3)),
        Number("95% interval", lambda e: words.span(e.interval, _write_difference)),
        Number("Adjusted p", lambda e: words.p_value(e.p)),
        note=f"Rows of {_quote_control(summary)}. Error rate under the option minus that under the "
        f"others, task by task; matches that were not reviewed {matches}. Student's interval "
        "over tasks; p over flips of the tasks' signs, adjusted for all options. Nothing is held "
        "out: for a ruling that holds out tasks, run probe report --audit.",
    )


def tabulate_keys(summary: Summary) -> Table:
    """Return the audited keys, and who found them."""
    results = summary.results
    confirmed = sorted(results.keys.confirmed)
    # a key names no model: the same prompt may fail on several
    pools = {policy: results.pool(policy).keys.confirmed for policy in results.policies}
    models = {run.model: set[str]() for run in results.runs}
    for run in results.runs:
        models[run.model] |= run.keys.confirmed
    many = len(confirmed) > MAX_KEYS
    return tabulate(
        "Unique audited prompt keys",
        confirmed[:MAX_KEYS],
        Name("Prompt key", str),
        Words("Found by", lambda key: "; ".join(p for p, keys in pools.items() if key in keys)),
        Words("Models", lambda key: ", ".join(m for m, keys in models.items() if key in keys)),
        note=f"The first {MAX_KEYS:,} of {len(confirmed):,}." if many else "",
    )


def tabulate_manifest(summary: Summary) -> Table:
    """Return table 13: settings that were fixed before anything was asked."""
    values = ((name, _format_value(value)) for name, value in summary.manifest.items())
    note = (
        "The paper's Table 13 in form. What every number rests on lies beside it: bank.toml, "
        "grammar.toml, a trajectory for each model, policy and seed, reviews.db, and ledger.db, "
        "which holds the hashes."
    )
    heads = ("Fixed before asking", "Value")
    return make_table("Manifest", "cc", heads, [pair for pair in values if pair[1]], note)


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(_format_value, value))
    return "" if value is None else str(value)


def _write_difference(value: float) -> str:
    return words.signed(value, 3)


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


def _quote_control(summary: Summary) -> str:
    return quote(summary.control)


ALL = (
    compare_policies,
    tabulate_routing,
    tabulate_signals_and_errors,
    tabulate_resolutions,
    tabulate_endpoints,
    tabulate_best_scores,
    tabulate_exclusions,
    tabulate_differences,
    tabulate_runs,
    tabulate_rates,
    tabulate_effects,
    tabulate_keys,
)
"""Tables in the order in which a report has them."""
