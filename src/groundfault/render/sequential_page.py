"""Sequential audits as pages: where the evidence stands, what was labelled, and what was not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from groundfault.render import words
from groundfault.render.page import (
    Block,
    Code,
    Page,
    Paragraph,
    Remarks,
    Section,
    Table,
    TableColumn,
)
from groundfault.render.wealth_figure import draw_wealth, format_e_value
from groundfault.sequential.certificate import Certificate, GroupCount
from groundfault.sequential.confirmation_result import Confirmation

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from groundfault.sequential.certificate import CertificateRound

MAX_UNLABELLED = 12
MAX_LABELS = 500
BRIEF = ("Every label", "Manifest")
"""Sections that a terminal leaves to the files."""

_FOUND = "failure mode found"
_ADAPTIVE = (
    "Cases were chosen by what earlier labels showed, so the mean of the labels is no estimate of "
    "the mean of a group."
)
_BOUNDS = (
    "What the mean of a group can still be counts every case of it, and holds whenever one stops."
)
_VALID = (
    "Both e-values may be read after every label, and the audit may stop at any time: the chance "
    "that a true null is ever refuted is at most alpha."
)
_FAMILY = (
    "The chance that any candidate is confirmed falsely is at most alpha in a first look at the "
    "holdout, whenever one stops, if its outcomes are exchangeable given the candidates."
)
_GRADER = (
    "Labels were bought for what the grades in the column {column} cannot tell: the lifts use "
    "both, and grades that are wrong cannot confirm anything."
)
_PAPER = (
    "Sampling is the paper's, for which no bound on the error rate is known: read the verdict as a "
    "lead, not as a proof."
)


def html(result: Certificate | Confirmation) -> str:
    """The page of an audit, or of a confirmation, as HTML."""
    from groundfault.render.html import html as set_html

    return set_html(_make_any_page(result, with_figures=True))


def markdown(result: Certificate | Confirmation) -> str:
    """The page of an audit, or of a confirmation, as Markdown."""
    from groundfault.render.markdown import markdown as set_markdown

    return set_markdown(_make_any_page(result, with_figures=False))


def show(
    result: Certificate | Confirmation, console: Console, report_path: Path | None = None
) -> None:
    """Print what matters most of an audit, or of a confirmation, and where its page lies."""
    from groundfault.render.terminal import show as show_page

    page = _make_any_page(result, with_figures=False)
    brief = tuple(section for section in page.sections if section.title not in BRIEF)
    footer = "" if report_path is None else f"Report: {report_path}"
    show_page(replace(page, sections=brief, footer=footer), console)


def _make_any_page(result: Certificate | Confirmation, *, with_figures: bool) -> Page:
    if isinstance(result, Certificate):
        return make_page(result, with_figures=with_figures)
    return make_confirmation_page(result)


def make_page(certificate: Certificate, title: str = "", *, with_figures: bool = True) -> Page:
    """What a sequential audit says.

    Parameters
    ----------
    certificate : Certificate
    title : str
        What was audited; left out, the pool's sources.
    with_figures : bool
        Whether the path of the wealth is drawn, which takes a second.
    """
    pool = certificate.pool
    sources = words.listing([words.tail(source, 1) for source in pool.sources], 3)
    has_figure = with_figures and bool(certificate.rounds)
    path, alpha = certificate.wealth_path, certificate.plan.alpha
    figures = (draw_wealth(path, alpha),) if has_figure else ()
    sections = (
        Section("Evidence after each label", figures=figures, anchor="evidence"),
        _make_group_section(certificate),
        Section("What was never labelled", tuple(_unlabelled(certificate)), anchor="unlabelled"),
        Section("Every label", tables=tuple(_tabulate_labels(certificate)), anchor="labels"),
        Section(
            "Manifest",
            ("What is needed to compute this verdict again.",),
            blocks=(Remarks(tuple(_manifest(certificate))),),
            anchor="manifest",
        ),
    )
    return Page(
        "sequential audit",
        title or (sources if pool.sources else "a pool in memory"),
        words.capital(certificate.verdict),
        tuple(_facts(certificate)),
        tuple(section for section in sections if section.content),
        certificate.verdict == _FOUND,
        tuple(_lead(certificate)),
        f"Made by groundfault {certificate.groundfault_version}.",
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


def _lead(certificate: Certificate) -> Iterator[Block]:
    if not certificate.guaranteed:
        yield Paragraph((_PAPER,), "notice")
    if certificate.caution:
        yield Paragraph((f"{words.capital(certificate.caution)}.",), "notice")
    if certificate.is_about_pool and certificate.verdict == _FOUND:
        yield Paragraph((_describe_pool_verdict(certificate),), "notice")
    yield Paragraph((f"{words.capital(certificate.reason)}.",))
    yield Paragraph((f"The null of a failure mode: {certificate.null}.",))
    model, auditor = (format_e_value(float(value)) for value in certificate.log_wealth)
    yield Paragraph(
        (
            f"E-values at the end: {model} against the model's null, {auditor} against the "
            f"auditor's. A null is refuted at 1 / alpha = {1 / certificate.plan.alpha:g}.",
        )
    )
    if certificate.guaranteed and not certificate.caution:
        yield Paragraph((_VALID,))


def _describe_pool_verdict(certificate: Certificate) -> str:
    """What a failure mode of these cases alone is, with the group and its counts."""
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
    """The groups that were too small to be tested, in a sentence."""
    groups = [f"{name} ({size})" for name, size in certificate.left_out.items()]
    return (
        f"Left out, with less than {certificate.plan.epsilon:g} of the cases: "
        f"{words.listing(groups, MAX_UNLABELLED)}."
    )


def _make_group_section(certificate: Certificate) -> Section:
    """Labels, errors and what the mean of each group can still be."""
    sentences = (_ADAPTIVE, _BOUNDS) if certificate.bounds_means else (_ADAPTIVE,)
    if certificate.left_out:
        sentences = (*sentences, describe_left_out(certificate))
    return Section("Groups", sentences, (), (tabulate_groups(certificate),), anchor="groups")


def tabulate_groups(certificate: Certificate) -> Table:
    """The declared groups, the lowest mean first; those without a label stand last."""
    # stable, so that groups with equal means keep the order in which they were declared
    results = sorted(certificate.groups, key=lambda r: (r.mean is None, r.mean or 0.0))
    heads = ("Cases", "Labelled", "Unscored", "Errors", "Mean of labels", "Mean can be")
    columns = (TableColumn("Group", "code"), *(TableColumn(h, "number") for h in heads))
    rows = tuple(_group_row(count, certificate.bounds_means) for count in results)
    table = Table("Groups", columns, rows)
    return table.drop_empty_columns()


def _group_row(result: GroupCount, has_bounds: bool) -> tuple[str, ...]:
    return (
        result.group,
        words.count(result.size),
        words.count(result.labelled),
        words.count(result.unscored) if result.unscored else words.NONE,
        f"{result.errors:g}",
        words.NONE if result.mean is None else f"{result.mean:.2f}",
        f"{result.lowest:.2f} to {result.highest:.2f}" if has_bounds else words.NONE,
    )


def _unlabelled(certificate: Certificate) -> Iterator[str]:
    if certificate.pool.generated:
        yield "Cases are drawn from generators without end; nothing is left over."
        return
    names = certificate.unlabelled
    total = len(certificate.pool.ids)
    yield (
        f"{words.count(len(names))} of {words.plural(total, 'case')} were never labelled. Nothing "
        "is claimed of single ones."
    )
    if names:
        yield f"Among them: {words.listing(list(names), MAX_UNLABELLED)}."
    untouched = [group.group for group in certificate.groups if group.labelled == 0]
    if untouched:
        yield f"Groups without a label: {words.listing(untouched, MAX_UNLABELLED)}."


def _tabulate_labels(certificate: Certificate) -> Iterator[Table]:
    """The labelled cases in their order, with both e-values after each."""
    rounds = [point for point in certificate.rounds if point.closed]
    if not rounds:
        return
    heads = ("Score", "Against the model", "Against the auditor")
    columns = (
        TableColumn("Label", "number"),
        TableColumn("Case", "code"),
        TableColumn("Drawn from", "code"),
        *(TableColumn(head, "number") for head in heads),
    )
    remainder = len(rounds) - MAX_LABELS
    note = "E-values after the label; – marks a case that could not be scored."
    if remainder > 0:
        note += f" The last {words.count(remainder)} are in the certificate."
    yield Table(
        "Labels and e-values",
        columns,
        tuple(map(_label_row, rounds[:MAX_LABELS])),
        note,
    )


def _label_row(point: CertificateRound) -> tuple[str, ...]:
    return (
        words.count(point.step),
        point.id,
        point.group or "a set of cases",
        words.NONE if point.score is None else f"{point.score:g}",
        *(format_e_value(float(value)) for value in point.log_e),
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
    """The key of the draws, and who could know it."""
    if certificate.draws is None:
        return f"{certificate.plan.seed}, public from the start: who knew it could foresee draws"
    if certificate.draws.key is None:
        return f"sealed until the audit has ended (SHA-256 {certificate.draws.hash})"
    return f"{certificate.draws.key}, random, and sealed until the audit had ended"


def make_confirmation_page(confirmation: Confirmation, title: str = "") -> Page:
    """What a holdout that was labelled one unit at a time says of the survivors of a screen."""
    size = len(confirmation.confirmed)
    opening = (words.capital(confirmation.opening) + ".",) if confirmation.opening else ()
    seals = (
        ("Seal (SHA-256)", Code(confirmation.seal)),
        ("Candidates (SHA-256)", Code(confirmation.library)),
    )
    table = _tabulate_survivors(confirmation)
    tables = (table,) if table.rows else ()
    sentences: tuple[str, ...] = ()
    if not table.rows:
        sentences = ("Nothing survived the screen: no label is worth buying.",)
    elif confirmation.grader is not None:
        sentences = (_GRADER.format(column=words.clean(confirmation.grader)),)
    sections = (
        Section(table.caption, sentences, (), tables, anchor="survivors"),
        Section("Holdout", opening, anchor="holdout"),
        Section("Manifest", blocks=(Remarks(seals),), anchor="manifest"),
    )
    return Page(
        "sequential confirmation",
        title or "a holdout labelled one unit at a time",
        words.plural(size, "confirmed finding") if size else "No reportable finding",
        (
            ("Held out", words.count(confirmation.held_out)),
            ("Labelled", words.count(confirmation.labelled)),
            ("Survivors", words.count(len(confirmation.survivors))),
            ("Alpha", words.level(words.decimal(confirmation.plan.alpha))),
        ),
        tuple(section for section in sections if section.content),
        bool(size),
        (Paragraph((_FAMILY,)),),
    )


def _tabulate_survivors(confirmation: Confirmation) -> Table:
    rows = tuple(
        (
            survivor.name,
            "confirmed" if survivor.confirmed else "open",
            words.signed(survivor.lift),
            words.count(survivor.on),
            words.count(survivor.off),
            f"{survivor.e_value:.3g}",
            survivor.reason,
        )
        for survivor in confirmation.survivors
    )
    heads = ("Lift of the labels", "On", "Off", "E-value after e-Holm")
    columns = (
        TableColumn("Candidate", "code"),
        TableColumn("Verdict"),
        *(TableColumn(head, "number") for head in heads),
        TableColumn("Reason"),
    )
    return Table("Survivors of the screen", columns, rows).drop_empty_columns()
