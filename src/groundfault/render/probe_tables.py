"""Tables of what probe runs show after review: comparisons, rates, effects and keys.

They follow the paper's tables 2, 6 and 13; `probe_counts` has those of plain counts.
"""

from __future__ import annotations

from typing import Any

from groundfault.probes.use.summary import Summary
from groundfault.render import probe_words, words
from groundfault.render.page import Table, TableColumn, make_table
from groundfault.render.probe_counts import (
    ALL_MODELS,
    tabulate_endpoints,
    tabulate_exclusions,
    tabulate_resolutions,
    tabulate_routing,
    tabulate_runs,
    tabulate_signals_and_errors,
)
from groundfault.stats.paired import MAX_EXACT_PAIRS

MAX_KEYS = 500


def compare_policies(summary: Summary) -> Table:
    """Table 2: confirmed rows, and unique keys shared and apart."""
    results = summary.results
    rows = []
    for model in results.scopes:
        for policy in summary.rivals:
            one, two = results.pool(policy, model), results.pool(summary.control, model)
            # a policy that ran on some models only has no row where it did not run
            if not (one.runs and two.runs):
                continue
            shared = results.compare_keys(policy, summary.control, model)
            rows.append(
                (
                    model or ALL_MODELS,
                    policy,
                    words.count(one.budget + two.budget),
                    f"{one.rows.confirmed:,} / {two.rows.confirmed:,}",
                    f"{len(one.keys.confirmed):,} / {len(two.keys.confirmed):,}",
                    f"{len(shared.both):,} / {len(shared.first):,} / {len(shared.second):,}",
                    probe_words.compare_briefly(summary, policy, model),
                )
            )
    heads = (
        "Model",
        "Policy",
        "Budget",
        "Confirmed rows",
        "Unique keys",
        "Keys shared / its own / control's",
    )
    note = (
        f"The paper's Table 2 in form: each policy / the control, {_quote_control(summary)}; the "
        "budget is of both together. Rows and keys after audit; keys name no model: one on which "
        "two models err counts once over all."
    )
    return make_table(
        "Matched comparison (audited)", "ttnnnnt", (*heads, "Key-level conclusion"), rows, note
    )


def tabulate_best_scores(summary: Summary) -> Table:
    """Table 6: best scores seed by seed."""
    rows = [
        (
            duel.model or ALL_MODELS,
            duel.policy,
            words.count(duel.seeds),
            f"{duel.best:.4f}",
            f"{duel.control_best:.4f}",
            words.signed(duel.best - duel.control_best, 4),
            words.count(duel.wins),
            words.count(duel.losses),
            words.count(duel.ties),
        )
        for duel in summary.duels
    ]
    heads = ("Seeds", "Mean best", "Control's mean best", "Difference", "Wins", "Losses", "Ties")
    note = (
        "The paper's Table 6 in form. A routing score that is 1 with the first mismatch: it says "
        "whether a run saw any and nothing of discovery. Equal means and all ties are expected of "
        "policies that work as they should."
    )
    return make_table(
        "Best scores, seed by seed (routing signal)",
        "ttnnnnnnn",
        ("Model", "Policy", *heads),
        rows,
        note,
    )


def tabulate_differences(summary: Summary) -> Table:
    """Paired differences from the control."""
    rows = [
        (
            d.model or ALL_MODELS,
            d.policy,
            d.endpoint,
            words.count(len(d.seeds)),
            words.signed(d.mean, 3),
            f"{words.signed(d.interval[0], 3)} to {words.signed(d.interval[1], 3)}"
            if d.interval
            else words.NONE,
            words.p_value(d.p),
        )
        for d in summary.differences
    ]
    heads = ("Model", "Policy", "Endpoint", "Seeds", "Difference", "95% interval", "p")
    note = (
        f"Minus {_quote_control(summary)}, with the same models, seeds and budget. The interval is "
        "Student's, which assumes normal differences; there is none where all seeds differ alike. "
        f"p: two-sided, over flips of the seeds' signs, exact up to {MAX_EXACT_PAIRS} seeds; "
        "adjusted for all policies of a model for unique audited keys, the primary endpoint, and "
        "not for the others. A run without an audited failure counts as having it at the end of "
        "its budget."
    )
    return make_table("Paired differences over seeds", "tttnnnn", heads, rows, note)


def tabulate_rates(summary: Summary) -> Table:
    """How often prompts get a confirmed error, where it can be told."""
    descriptions = {
        "all asked": "every prompt was asked: exact",
        "draws": "drawn without looking; Wilson's interval",
        "weighted": "weighted by known chances; Student's interval over seeds",
        "not available": "not available: chances are neither equal nor known",
    }
    rows = [
        (
            rate.model,
            rate.policy,
            words.NONE if rate.value is None else words.rate(rate.value),
            words.NONE
            if rate.interval is None
            else f"{rate.interval[0]:.1%} to {rate.interval[1]:.1%}",
            words.count(rate.open),
            descriptions[rate.how],
        )
        for rate in summary.rates
    ]
    heads = (
        "Model",
        "Policy",
        "Prompts with a confirmed error",
        "95% interval",
        "Open rows",
        "How",
    )
    note = (
        "Of the valid prompts of this bank and grammar, and of no others. What is open, or was "
        "not reviewed, counts as no error: with open rows the rate is a lower bound."
    )
    return make_table("How often prompts fail, where that can be told", "ttnnnt", heads, rows, note)


def tabulate_effects(summary: Summary) -> Table:
    """Components within tasks."""
    rows = [
        (
            e.model,
            e.group,
            e.option,
            words.count(e.tasks),
            words.signed(e.difference, 3),
            f"{words.signed(e.interval[0], 3)} to {words.signed(e.interval[1], 3)}"
            if e.interval
            else words.NONE,
            words.p_value(e.p),
        )
        for e in summary.effects
        if e.tasks
    ]
    heads = ("Model", "Component", "Option", "Tasks", "Difference", "95% interval", "Adjusted p")
    matches = "count as right" if summary.has_keys else "are as right as the base wording"
    note = (
        f"Rows of {_quote_control(summary)}. Error rate under the option minus that under the "
        f"others, task by task; matches that were not reviewed {matches}. Student's interval "
        "over tasks; p over flips of the tasks' signs, adjusted for all options. Nothing is held "
        "out: for a ruling that holds out tasks, run probe report --audit."
    )
    return make_table("Components, compared within tasks (audited)", "tttnnnn", heads, rows, note)


def tabulate_keys(summary: Summary) -> Table:
    """The audited keys, and who found them."""
    results = summary.results
    confirmed = sorted(results.keys.confirmed)
    # a key names no model: the same prompt may fail on several
    pools = {policy: results.pool(policy).keys.confirmed for policy in results.policies}
    models = {run.model: set[str]() for run in results.runs}
    for run in results.runs:
        models[run.model] |= run.keys.confirmed
    rows = [
        (
            key,
            "; ".join(policy for policy, keys_ in pools.items() if key in keys_),
            ", ".join(model for model, keys_ in models.items() if key in keys_),
        )
        for key in confirmed[:MAX_KEYS]
    ]
    remainder = len(confirmed) - len(rows)
    note = f"The first {MAX_KEYS:,} of {len(confirmed):,}." if remainder else ""
    table = make_table(
        "Unique audited prompt keys", "ttt", ("Prompt key", "Found by", "Models"), rows, note
    )
    return Table(
        table.caption,
        (TableColumn("Prompt key", "code"), *table.columns[1:]),
        table.rows,
        table.note,
    )


def tabulate_manifest(summary: Summary) -> Table:
    """Table 13: what was fixed before anything was asked."""
    rows = [
        (name, text)
        for name, value in summary.manifest.items()
        for text in [_format_value(value)]
        if text
    ]
    note = (
        "The paper's Table 13 in form. What every number rests on lies beside it: bank.toml, "
        "grammar.toml, a trajectory for each model, policy and seed, reviews.db, and ledger.db, "
        "which holds the hashes."
    )
    return Table(
        "Manifest",
        (TableColumn("Fixed before asking", "code"), TableColumn("Value", "code")),
        tuple(rows),
        note,
    )


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(map(_format_value, value))
    return "" if value is None else str(value)


def _quote_control(summary: Summary) -> str:
    return probe_words.quote(summary.control)


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
"""In the order in which a report has them."""
