"""Tables of what was counted in probe runs: rows by what the machine and the review said of them.

They follow the paper's tables 5 and 7 to 12.
"""

from __future__ import annotations

from groundfault.probes.use.endpoints import EXCLUDED, PooledRuns
from groundfault.probes.use.summary import Summary
from groundfault.render import words
from groundfault.render.page import Table, make_table

ALL_MODELS = "all models"


def tabulate_routing(summary: Summary) -> Table:
    """Table 5: what the machine routed, before any audit."""
    rows = [
        (
            *name_pool(pool),
            words.count(pool.rows.queries),
            words.count(pool.rows.mismatches),
            words.rate(pool.rows.mismatches / pool.rows.queries),
            words.count(pool.rows.unreadable),
            # spent queries without a text: no signal, and none of the model's errors
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
        "The paper's Table 5 in form. Rows, counted by a machine before any audit: signals, and "
        "no errors of a model."
    )
    return make_table(
        "Routing signals (not audited)", "ttnnnnnn", ("Model", "Policy", *heads), rows, note
    )


def tabulate_signals_and_errors(summary: Summary) -> Table:
    """Tables 7, 9 and 11: signals and audited counts side by side."""
    rows = [
        (
            *name_pool(pool),
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
        "audited rows and keys are confirmed model errors."
    )
    return make_table(
        "Signals beside audited errors", "ttnnnnnnn", ("Model", "Policy", *heads), rows, note
    )


def tabulate_resolutions(summary: Summary) -> Table:
    """Tables 8, 10 and 12: what review came to."""
    rows = [
        (
            *name_pool(pool),
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
        "more than those routed: matches are reviewed unseen among them."
    )
    return make_table("Resolved audit", "tt" + "n" * 8, ("Model", "Policy", *heads), rows, note)


def tabulate_exclusions(summary: Summary) -> Table:
    """Excluded rows by status."""
    rows = [
        (*name_pool(pool), *(words.count(getattr(pool.rows, status)) for status in EXCLUDED))
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


def tabulate_endpoints(summary: Summary) -> Table:
    """What the budgets bought."""
    rows = [
        (
            *name_pool(pool),
            words.count(pool.budget),
            f"{pool.audited_yield:.4f}",
            words.count(len(pool.keys.confirmed)),
            words.count(len(pool.keys.tasks)),
            f"{pool.runs_with_failure:,} of {pool.runs:,}",
            words.count(pool.first) if pool.first else f"> {pool.budget // pool.runs:,}",
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
        "Audited yield: confirmed rows over the budget; what a budget bought, and no failure "
        "rate. First failure: the query of the first audited one, median over runs; beyond the "
        "budget where most have none."
    )
    return make_table("Endpoints", "ttnnnnnn", ("Model", "Policy", *heads), rows, note)


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


def name_pool(pool: PooledRuns) -> tuple[str, str]:
    """The model and the policy of pooled runs, as their row begins."""
    return pool.model or ALL_MODELS, pool.policy
