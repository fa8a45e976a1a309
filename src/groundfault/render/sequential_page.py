"""Sequential audits as pages: the state of the evidence, and labelled and unlabelled cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from groundfault.auditing import messages
from groundfault.render import words
from groundfault.render.drawing import Colour, Drawing, Figure, Scale, make_stairs, spread_evenly
from groundfault.render.page import (
    Code,
    Content,
    Figures,
    Name,
    Number,
    Page,
    Remarks,
    Section,
    Table,
    Words,
    notice,
    tabulate,
)
from groundfault.sequential.certificate import Certificate, WealthPoint
from groundfault.sequential.stopping_time import StoppingForecast, count_to_stop
from groundfault.sequential.stored_result import Confirmation

if TYPE_CHECKING:
    from groundfault.sequential import SequentialAudit

MAX_UNLABELLED = 12
"""Cases named in one sentence."""
MAX_LABELS = 500
"""Labels in the table of all: the certificate has more."""
_FOUND = "failure mode found"
_ADAPTIVE = (
    "Earlier labels decided which cases came next, so the mean of the labels does not estimate the "
    "mean of a group."
)

_BOUNDS = (
    "The range of each mean{} holds for all groups at once, and whenever you stop, with a chance "
    "of at least {:g}%."
)
_VALID = (
    "You may read both e-values after every label and stop at any time: the chance that a true "
    "null is ever rejected is at most alpha."
)
_FAMILY = (
    "The chance that any candidate is confirmed falsely is at most alpha in a first look at the "
    "holdout, whenever one stops, if its outcomes are exchangeable given the candidates."
)
_GRADER = (
    "Labels were bought for what the grades in the column {column} cannot tell: the differences "
    "use both, and grades that are wrong cannot confirm anything."
)
_PAPER = (
    "Sampling is the paper's, for which no bound on the error rate is known: read the verdict as a "
    "lead, not as a proof."
)


def make_page(certificate: Certificate, title: str = "") -> Page:
    """Make the page of a sequential audit.

    Parameters
    ----------
    certificate : Certificate
    title : str
        Names the pool; left out, the pool's sources.
    """
    pool = certificate.pool
    sources = words.listing([words.tail(source, 1) for source in pool.sources], 3)
    path, alpha = certificate.wealth_path, certificate.plan.alpha
    figures = (draw_wealth(path, alpha),) if certificate.rounds else ()
    sections = (
        Section("Evidence after each label", Figures(figures), anchor="evidence"),
        Section(
            "Groups", _describe_groups(certificate), tabulate_groups(certificate), anchor="groups"
        ),
        Section("What was never labelled", _unlabelled(certificate), anchor="unlabelled"),
        Section("Every label", _tabulate_labels(certificate), anchor="labels", for_files=True),
        Section(
            "Manifest",
            "What is needed to compute this verdict again.",
            Remarks(tuple(_manifest(certificate))),
            anchor="manifest",
            for_files=True,
        ),
    )
    return Page(
        "sequential audit",
        title or (sources if pool.sources else "a pool in memory"),
        words.capital(certificate.verdict),
        facts=_facts(certificate),
        lead=_lead(certificate),
        sections=sections,
        good=certificate.verdict == _FOUND,
        footer=f"Made by groundfault {certificate.groundfault_version}.",
    )


def _facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    plan, pool = certificate.plan, certificate.pool
    if plan.model:
        yield "Model", words.clean(plan.model)
    yield "Cases", words.count(len(pool.ids)) + (" (generated)" if pool.generated else "")
    yield "Labelled", words.count(certificate.labelled)
    yield "Groups", words.count(len(certificate.groups))
    yield "Threshold", f"{plan.threshold:g}"
    yield "Alpha", words.level(plan.alpha)
    yield "Policy", plan.policy


def _lead(certificate: Certificate) -> Iterator[Content]:
    if not certificate.guaranteed:
        yield notice(_PAPER)
    if certificate.caution:
        yield notice(f"{words.capital(certificate.caution)}.")
    if certificate.is_about_pool and certificate.verdict == _FOUND:
        yield notice(_describe_pool_verdict(certificate))
    if certificate.verdict == _FOUND and certificate.guaranteed:
        yield f"Not {certificate.null}."
    yield f"{words.capital(certificate.reason)}."
    model, auditor = (format_e_value(float(value)) for value in certificate.log_wealth)
    yield (
        f"The audit tests two claims. The model's null: {certificate.null}; the e-value against it "
        f"is {model}. The auditor's null: the group that the audit suspects fails; the e-value "
        f"against it is {auditor}. A null is rejected at {1 / certificate.plan.alpha:g} (1/alpha)."
    )
    if certificate.guaranteed and not certificate.caution:
        yield _VALID


def _describe_pool_verdict(certificate: Certificate) -> str:
    """Describe a failure mode of these cases alone, with the group and its counts."""
    cases = words.plural(len(certificate.pool.ids), "case")
    sentence = f"In this pool of {cases}, not every group reaches the threshold"
    group = certificate.lowest_group
    if group is not None:
        errors = f"{group.errors:g} error{'' if group.errors == 1 else 's'}"
        sentence += (
            f"; the lowest mean is that of {group.group}, selected after looking: {errors} in "
            f"{words.plural(group.labelled, 'label')} of its {words.plural(group.size, 'case')}"
        )
    return f"{sentence}. Of new cases this says nothing."


def describe_left_out(certificate: Certificate) -> str:
    """Describe the groups that were too small to be tested."""
    groups = [f"{name} ({size})" for name, size in certificate.left_out.items()]
    return (
        f"Left out, with less than {certificate.plan.epsilon:g} of the cases: "
        f"{words.listing(groups, MAX_UNLABELLED)}."
    )


def _describe_groups(certificate: Certificate) -> Iterator[str]:
    """Yield how to read the groups: labels, and the range that each mean can still have."""
    yield _ADAPTIVE
    if certificate.guaranteed:
        whose = "" if certificate.is_about_pool else ", for new cases,"
        yield _BOUNDS.format(whose, 100 * (1 - certificate.plan.alpha))
    if certificate.left_out:
        yield describe_left_out(certificate)


def tabulate_groups(certificate: Certificate) -> Table:
    """Tabulate the declared groups, the lowest mean first; those without a label stand last."""
    # stable, so that groups with equal means keep the order in which they were declared
    results = sorted(certificate.groups, key=lambda r: (r.mean is None, r.mean or 0.0))
    ends = certificate.find_intervals().items()
    intervals = {group: f"{low:.2f} to {high:.2f}" for group, (low, high) in ends}
    return tabulate(
        "Groups",
        results,
        Name("Group", lambda r: r.group),
        Number("Cases", lambda r: r.size),
        Number("Labelled", lambda r: r.labelled),
        Number("Unscored", lambda r: r.unscored or None),
        Number("Errors", lambda r: f"{r.errors:g}"),
        Number("Mean of labels", lambda r: None if r.mean is None else f"{r.mean:.2f}"),
        Number("Mean can be", lambda r: intervals.get(r.group)),
        drop=True,
    )


def _unlabelled(certificate: Certificate) -> Iterator[str]:
    if certificate.pool.generated:
        yield "Cases are drawn from generators without end; nothing is left over."
        return
    names = certificate.unlabelled
    total = len(certificate.pool.ids)
    yield (
        f"{words.count(len(names))} of {words.plural(total, 'case')} were never labelled: "
        "the audit says nothing about single ones."
    )
    if names:
        yield f"Among them: {words.listing(list(names), MAX_UNLABELLED)}."
    untouched = [group.group for group in certificate.groups if group.labelled == 0]
    if untouched:
        yield f"Groups without a label: {words.listing(untouched, MAX_UNLABELLED)}."


def _tabulate_labels(certificate: Certificate) -> Iterator[Table]:
    """Tabulate the labelled cases in their order, with both e-values after each."""
    rounds = [point for point in certificate.rounds if point.closed]
    if not rounds:
        return
    remainder = len(rounds) - MAX_LABELS
    note = "E-values after the label; – marks a case that could not be scored."
    if remainder > 0:
        note += f" The last {words.count(remainder)} are in the certificate."
    yield tabulate(
        "Labels and e-values",
        rounds[:MAX_LABELS],
        Number("Label", lambda point: point.step),
        Name("Case", lambda point: point.id),
        Name("Drawn from", lambda point: point.group or "a set of cases"),
        Number("Score", lambda point: None if point.score is None else f"{point.score:g}"),
        Number("Against the model", lambda point: format_e_value(float(point.log_e[0]))),
        Number("Against the auditor", lambda point: format_e_value(float(point.log_e[1]))),
        note=note,
    )


def _manifest(certificate: Certificate) -> Iterator[tuple[str, str | Code]]:
    plan = certificate.plan
    yield "Claim", plan.claim
    yield "Sampling", plan.sampling
    yield "Bet", ", ".join(plan.bet)
    yield "Seed", _describe_seed(certificate)
    yield "Budget (most labels)", words.NONE if plan.budget is None else words.count(plan.budget)
    yield "Burn-in (tested cases before the auditor's test)", words.count(plan.burn_in)
    yield "Judgements of people", words.count(certificate.judgements)
    if certificate.corrections:
        yield "Labels taken back", words.count(certificate.corrections)
    yield "Seal (SHA-256 of plan and pool)", Code(certificate.seal)
    yield "Pool (SHA-256)", Code(certificate.pool.hash)
    if certificate.ledger is not None:
        yield "Ledger", Code(certificate.ledger.path)
        yield "Ledger head", Code(certificate.ledger.head)


def _describe_seed(certificate: Certificate) -> str:
    """Describe the key of the draws, and who could know it."""
    if certificate.draws is None:
        return f"{certificate.plan.seed}, public from the start: who knew it could foresee draws"
    if certificate.draws.key is None:
        return f"sealed until the audit has ended (SHA-256 {certificate.draws.hash})"
    return f"{certificate.draws.key}, random, and sealed until the audit had ended"


def make_confirmation_page(confirmation: Confirmation) -> Page:
    """Make the page of survivors of a screen, whose holdout was labelled one unit at a time."""
    size = len(confirmation.confirmed)
    opening = f"{words.capital(confirmation.opening)}." if confirmation.opening else None
    seals = (
        ("Seal (SHA-256)", Code(confirmation.seal)),
        ("Candidates (SHA-256)", Code(confirmation.library)),
    )
    table = _tabulate_survivors(confirmation)
    sentence = None
    if not table.rows:
        sentence = "Nothing survived the screen: no label is worth buying."
    elif confirmation.grader is not None:
        sentence = _GRADER.format(column=words.clean(confirmation.grader))
    return Page(
        "sequential confirmation",
        "a holdout labelled one unit at a time",
        words.plural(size, "confirmed finding") if size else messages.NOTHING,
        facts=(
            ("Held out", words.count(confirmation.held_out)),
            ("Labelled", words.count(confirmation.labelled)),
            ("Survivors", words.count(len(confirmation.survivors))),
            ("Alpha", words.level(words.decimal(confirmation.plan.alpha))),
        ),
        lead=_FAMILY,
        sections=(
            Section(table.caption, sentence, table, anchor="survivors"),
            Section("Holdout", opening, anchor="holdout"),
            Section("Manifest", Remarks(seals), anchor="manifest", for_files=True),
        ),
        good=bool(size),
    )


def _tabulate_survivors(confirmation: Confirmation) -> Table:
    return tabulate(
        "Survivors of the screen",
        confirmation.survivors,
        Name("Candidate", lambda s: s.name),
        Words("Verdict", lambda s: "confirmed" if s.confirmed else "open"),
        Number("Difference (points)", lambda s: words.points(s.lift)),
        Number("On", lambda s: s.on),
        Number("Off", lambda s: s.off),
        Number("E-value after e-Holm", lambda s: f"{s.e_value:.3g}"),
        Words("Reason", lambda s: s.reason),
        drop=True,
    )


def outline_state(
    audit: SequentialAudit, certificate: Certificate, cost: float | None
) -> Iterator[str | Table]:
    """Yield the verdict, the groups and the next case."""
    if audit.verdict == _FOUND and audit.claim.guaranteed:
        yield f"{certificate.headline}: not {audit.null}"
        yield f"grounds: {certificate.reason}"
    else:
        yield certificate.sentence
    if audit.verdict == "inconclusive":
        yield format_progress(audit, cost)
    if not audit.claim.guaranteed:
        yield "sampling as in the paper: on a finite pool it does not keep the error rate"
    if certificate.caution:
        yield certificate.caution
    if certificate.left_out:
        yield describe_left_out(certificate)
    yield tabulate_groups(certificate)
    if audit.open is not None:
        query = audit.open.query
        yield f"next: case {query.id} (query {query.step}), drawn from {query.group or 'a set'}"
    elif not audit.finished:
        yield "next: not drawn yet; run the audit again to go on"


def format_progress(audit: SequentialAudit, cost: float | None) -> str:
    """Return one line: labels, their cost, both e-values, and the bound that stops the audit."""
    wealth, bar = audit.wealth, 1 / audit.plan.alpha
    cost_note = "" if cost is None else f", cost {cost * count_labels(audit):.2f}"
    line = (
        f"{audit.labelled} labelled{cost_note}; e-values: {wealth.model:.3g} against all groups "
        f"passing, {wealth.auditor:.3g} against the suspected group failing (verdict at {bar:g})"
    )
    distance = count_to_stop(audit)
    ways = [
        f"{count} {what} in a row"
        for count, what in ((distance.failures, "failures"), (distance.passes, "passes"))
        if count
    ]
    return (
        f"{line}; in {words.clean(distance.group)} {' or '.join(ways)} would end the audit"
        if ways
        else line
    )


def count_labels(audit: SequentialAudit) -> int:
    """Return the number of labels: one for each case, or one for each person who scored it."""
    reviewed = {review["step"] for review in audit.reviews}
    return len(audit.reviews) + sum(r.closed and r.query.step not in reviewed for r in audit.rounds)


def tabulate_prospects(forecasts: Sequence[StoppingForecast], cost: float | None) -> Table:
    """Tabulate simulated verdicts and stopping times, with their cost where a label has one."""
    return tabulate(
        "Simulated audits",
        forecasts,
        Name("Pass rate", lambda f: f.world),
        Number("Burn-in", lambda f: str(f.burn_in)),
        Number("Found", lambda f: f"{f.failure_rate:.2f}"),
        Number("Passed", lambda f: f"{f.pass_rate:.2f}"),
        Number("Neither", lambda f: f"{f.inconclusive_rate:.2f}"),
        Number("10%", lambda f: str(f.labels[0])),
        Number("Median", lambda f: str(f.labels[1])),
        Number("90%", lambda f: str(f.labels[2])),
        Number("Cost", lambda f: None if cost is None else f"{cost * f.labels[1]:.2f}"),
        note="10%, median, 90%: cases labelled until the audit stops; cost: of the median",
        drop=True,
    )


MAX_POINTS = 1_000
"""Labels of a longer audit are drawn evenly spread, the first and the last among them."""


def draw_wealth(path: Sequence[WealthPoint], alpha: float) -> Figure:
    """Draw both e-values after each label, on a scale of powers of ten.

    Parameters
    ----------
    path : sequence of WealthPoint
        From the start, where both e-values are 1.
    alpha : float in (0, 1)
    """
    bar = math.log10(1 / alpha)
    points = spread_evenly(path, MAX_POINTS)
    steps = [point.step for point in points]
    # an e-value of 0 or infinity has no place on the axis; its end does
    paths = {
        (name, colour): [min(max(log / math.log(10), -3.0), bar + 1.0) for log in logs]
        for name, colour, logs in (
            ("against the model's null", Colour.BAD, [p.model for p in points]),
            ("against the auditor's null", Colour.GOOD, [p.auditor for p in points]),
        )
    }
    levels = [0.0, bar, *(level for path in paths.values() for level in path)]
    drawing = Drawing(
        Scale.of_numbers(min(steps), max(*steps, min(steps) + 1), "labels"),
        Scale.of_numbers(min(levels), max(levels), "e-value, power of ten", count=5),
        width=560,
        height=260,
    )
    for (name, colour), levels in paths.items():
        drawing.explain("square", colour, name)
        # each level holds until the next label
        stairs = list(make_stairs(list(zip(steps, levels, strict=True))))
        drawing.line(stairs, colour, width=2)
    drawing.line([(min(steps), bar), (max(steps), bar)], Colour.MUTED, dash="4,3")
    ends = f"{path[-1].model / math.log(10):.2f} and {path[-1].auditor / math.log(10):.2f}"
    alt = (
        f"Two step lines over {words.plural(len(path) - 1, 'label')}; powers of ten at the "
        f"end: {ends}."
    )
    return drawing.to_figure(
        "wealth",
        "Evidence against both nulls",
        f"Dashed: the level at which a null falls, 1 / alpha = {1 / alpha:g}. "
        "Values beyond the axis are drawn at its end.",
        alt,
        wide=True,
    )


def format_e_value(log_e: float) -> str:
    """Format an e-value from its natural logarithm, which may be too large for a float."""
    # counting shows for certain what no bet can: the e-value is then infinite
    if math.isinf(log_e) and log_e > 0:
        return "infinite (counted)"
    return f"{math.exp(log_e):.3g}" if log_e < 700 else f"10^{log_e / math.log(10):.0f}"
