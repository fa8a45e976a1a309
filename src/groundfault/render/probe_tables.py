"""The tables of probe runs after audit, in the form of the paper's tables 2 and 5 to 13."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundfault.probes.use.endpoints import EXCLUDED, PooledRuns
from groundfault.probes.use.summary import Summary
from groundfault.render import probe_words, words
from groundfault.render.page import Table, TableColumn
from groundfault.stats.paired import MAX_EXACT_PAIRS

MAX_KEYS = 500
_ALL = "all models"


def compare_policies(summary: Summary) -> Table:
    """Table 2: confirmed rows, and unique keys shared and apart."""
    results = summary.results
    rows = []
    models: list[str | None] = [*results.models, *([None] if len(results.models) > 1 else [])]
    for model in models:
        for policy in summary.rivals:
            one, two = results.pool(policy, model), results.pool(summary.control, model)
            if not (one.runs and two.runs):
                continue
            shared = results.shared(policy, summary.control, model)
            rows.append(
                (
                    model or _ALL,
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
        "budget "
        "is of both together. "
        "Rows and keys after audit; keys name no model: one on which two models err counts once "
        "over all."
    )
    return make_table(
        "Matched comparison (audited)", "ttnnnnt", (*heads, "Key-level conclusion"), rows, note
    )


def tabulate_routing(summary: Summary) -> Table:
    """Table 5: what the machine routed, before any audit."""
    rows = [
        (
            *_name_pool(pool),
            words.count(pool.rows.queries),
            words.count(pool.rows.mismatches),
            words.rate(pool.rows.mismatches / pool.rows.queries),
            words.count(pool.rows.unreadable),
            words.count(pool.rows.refused + pool.rows.failed),
            words.count(pool.rows.routed),
        )
        for pool in summary.results.pools
    ]
    heads = (
        "Queries",
        "Mismatches",
        "Mismatch rate",
        "Unreadable",
        "Unanswered",
        "Routed to review",
    )
    note = (
        "The paper's Table 5 in form. Rows, counted by a machine before any audit: signals, and no "
        "errors of a model."
    )
    return make_table(
        "Routing signals (not audited)", "ttnnnnnn", ("Model", "Policy", *heads), rows, note
    )


def tabulate_best_scores(summary: Summary) -> Table:
    """Table 6: best scores seed by seed."""
    rows = [
        (
            duel.model or _ALL,
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
        "whether a run saw any "
        "and nothing of discovery. Equal means and all ties are expected of policies that work as "
        "they should."
    )
    return make_table(
        "Best scores, seed by seed (routing signal)",
        "ttnnnnnnn",
        ("Model", "Policy", *heads),
        rows,
        note,
    )


def tabulate_signals_and_errors(summary: Summary) -> Table:
    """Tables 7, 9 and 11: signals and audited counts side by side."""
    rows = [
        (
            *_name_pool(pool),
            words.count(pool.rows.queries),
            words.count(pool.rows.mismatches),
            words.count(len(pool.keys.mismatched)),
            words.count(pool.rows.confirmed),
            words.count(len(pool.keys.confirmed)),
            words.count(len(pool.keys.tasks)),
            words.NONE if pool.best is None else f"{pool.best:.4f}",
        )
        for pool in summary.results.pools
    ]
    heads = (
        "Queries",
        "Mismatch rows",
        "Mismatch keys",
        "Audited rows",
        "Audited keys",
        "Tasks",
        "Mean best score",
    )
    note = (
        "The paper's Tables 7, 9 and 11 in form. Mismatches and best scores are routing signals; "
        "audited rows and keys "
        "are confirmed model errors."
    )
    return make_table(
        "Signals beside audited errors", "ttnnnnnnn", ("Model", "Policy", *heads), rows, note
    )


def tabulate_resolutions(summary: Summary) -> Table:
    """Tables 8, 10 and 12: what review came to."""
    rows = [
        (
            *_name_pool(pool),
            words.count(pool.rows.routed),
            words.count(pool.rows.reviewed),
            words.count(pool.rows.confirmed),
            words.count(pool.rows.excluded),
            words.count(pool.rows.no_error),
            words.count(pool.rows.disputed),
            words.count(pool.rows.waiting),
            words.count(len(pool.keys.confirmed)),
        )
        for pool in summary.results.pools
    ]
    heads = (
        "Routed rows",
        "Reviewed",
        "Confirmed",
        "Excluded",
        "No error",
        "Disputed",
        "Unaudited",
        "Unique keys",
    )
    note = (
        "The paper's Tables 8, 10 and 12 in form. Reviewed rows, and what they came to, may be "
        "more than those routed: "
        "matches are reviewed unseen among them."
    )
    return make_table("Resolved audit", "tt" + "n" * 8, ("Model", "Policy", *heads), rows, note)


def tabulate_endpoints(summary: Summary) -> Table:
    """What the budgets bought."""
    rows = [
        (
            *_name_pool(pool),
            words.count(pool.budget),
            f"{pool.audited_yield:.4f}",
            words.count(len(pool.keys.confirmed)),
            words.count(len(pool.keys.tasks)),
            f"{pool.runs_with_failure:,} of {len(pool.runs):,}",
            words.count(pool.first) if pool.first else f"> {pool.runs[0].budget:,}",
        )
        for pool in summary.results.pools
    ]
    heads = (
        "Budget",
        "Audited yield",
        "Unique keys",
        "Tasks",
        "Runs with a failure",
        "First failure",
    )
    note = (
        "Audited yield: confirmed rows over the budget; what a budget bought, and no failure rate. "
        "First failure: the "
        "query of the first audited one, median over runs; beyond the budget where most have none."
    )
    return make_table("Endpoints", "ttnnnnnn", ("Model", "Policy", *heads), rows, note)


def tabulate_exclusions(summary: Summary) -> Table:
    """Excluded rows by status."""
    rows = [
        (*_name_pool(pool), *(words.count(getattr(pool.rows, status)) for status in EXCLUDED))
        for pool in summary.results.pools
        if pool.rows.excluded
    ]
    heads = ("Model", "Policy", "Extraction artefact", "Format artefact", "Invalid prompt")
    return make_table(
        "Excluded rows by status",
        "ttnnn",
        heads,
        rows,
        "Reviewed, and no confirmed error of the model.",
    )


def tabulate_differences(summary: Summary) -> Table:
    """Paired differences from the control."""
    rows = [
        (
            d.model or _ALL,
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
        "Student's, which assumes "
        "normal differences; there is none where all seeds differ alike. p: two-sided, over flips "
        "of the seeds' signs, "
        f"exact up to {MAX_EXACT_PAIRS} seeds; adjusted for all policies of a model for unique "
        "audited keys, the primary "
        "endpoint, and not for the others. A run without an audited failure counts as having it at "
        "the end of its "
        "budget."
    )
    return make_table("Paired differences over seeds", "tttnnnn", heads, rows, note)


def tabulate_runs(summary: Summary) -> Table:
    """Every run."""
    rows = [
        (
            run.model,
            run.policy,
            str(run.seed),
            f"{run.rows.queries:,} / {run.budget:,}",
            words.count(run.rows.mismatches),
            words.count(run.rows.confirmed),
            words.count(len(run.keys.confirmed)),
            words.count(run.first) if run.first else f"> {run.budget:,}",
        )
        for run in summary.results.runs
    ]
    heads = (
        "Seed",
        "Queries / budget",
        "Mismatch rows",
        "Audited rows",
        "Audited keys",
        "First audited failure",
    )
    return make_table("Every run", "ttnnnnnn", ("Model", "Policy", *heads), rows)


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
        "Of the valid prompts of this bank and grammar, and of no others. What is open, or was not "
        "reviewed, counts as "
        "no error: with open rows the rate is a lower bound."
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
    note = (
        f"Rows of {_quote_control(summary)}. Error rate under the option minus that under the "
        "others, "
        "task by task; matches "
        "that were not reviewed count as right. Student's interval over tasks; p over flips of the "
        "tasks' signs, "
        "adjusted for all options. Nothing is held out: for a ruling that holds out tasks, run "
        "probe report --audit."
    )
    return make_table("Components, compared within tasks (audited)", "tttnnnn", heads, rows, note)


def tabulate_keys(summary: Summary) -> Table:
    """The audited keys, and who found them."""
    results = summary.results
    confirmed = sorted(results.keys.confirmed)
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
        "grammar.toml, a "
        "trajectory for each model, policy and seed, reviews.db, and ledger.db, which holds the "
        "hashes."
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


def _name_pool(pool: PooledRuns) -> tuple[str, str]:
    return pool.model or _ALL, pool.policy


def make_table(
    caption: str, kinds: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]], note: str = ""
) -> Table:
    """A table; of each column one letter says whether it holds words or numbers."""
    columns = (
        TableColumn(head, "number" if kind == "n" else "text")
        for head, kind in zip(heads, kinds, strict=True)
    )
    return Table(caption, tuple(columns), tuple(rows), note)


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
