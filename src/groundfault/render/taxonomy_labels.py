"""What a language model called the clusters of a taxonomy, as a section of its report."""

from __future__ import annotations

from groundfault.render import words
from groundfault.render.page import Section, Table, TableColumn
from groundfault.taxonomy.fitting.taxonomy import Taxonomy
from groundfault.taxonomy.words.labelling import MODES, Label, Labelling, Membership


def make_label_section(taxonomy: Taxonomy, labelling: Labelling) -> Section:
    """The labels, and how far a second labeller agrees."""
    # by cluster: not every cluster has a second label or a check
    seconds = {each.cluster: each for each in labelling.second_labels}
    checks = {each.cluster: each for each in labelling.membership}
    names = {c.number: c.name for c in taxonomy.clusters}
    rows = tuple(
        (
            names[each.cluster],
            "published" if each.published else "unstable",
            *_format_label(each),
            *_format_label(seconds.get(each.cluster)),
            _format_check(checks.get(each.cluster)),
        )
        for each in labelling.labels
    )
    heads = (
        "Label",
        "Failure mode",
        "Bloom level",
        "Second label",
        "Second failure mode",
        "Second Bloom level",
    )
    columns = (
        TableColumn("Cluster", "code"),
        TableColumn("Stability"),
        *map(TableColumn, heads),
        TableColumn("Right decisions"),
    )
    note = (
        "Right decisions: of the second labeller, who saw the label alone, with Wilson's interval."
    )
    table = Table(
        "Labels", columns, rows, note if labelling.membership else ""
    ).drop_empty_columns()
    return Section(
        "What a language model calls them", tuple(describe_labels(labelling)), (), (table,)
    )


def describe_labels(labelling: Labelling) -> list[str]:
    """Who labelled, and what the labels are worth."""
    label_count = sum(each.status == "read" for each in labelling.labels)
    lines = [
        f"{labelling.model} labelled {label_count} of "
        f"{words.plural(len(labelling.labels), 'cluster')} from the tasks nearest to each centre. "
        "It saw no answers: a failure mode is its guess from what is asked, and no finding."
    ]
    if not labelling.second:
        return [*lines, "No second labeller checked this."]
    who = f"{labelling.second}, which saw the same tasks and not the labels,"
    if labelling.second == labelling.model:
        who = (
            "The same model at another seed, which shows how steady it is and not that it is right,"
        )
    parts = []
    for each in labelling.agreement:
        kappa = (
            ""
            if each.kappa is None
            else f", Cohen's kappa {each.kappa:.2f}{_format_interval(each.kappa_interval)}"
        )
        low, high = each.interval or (0.0, 1.0)
        share = f"{each.same} of {each.clusters} ({words.rate(low)} to {words.rate(high)})"
        parts.append(f"{each.what} {share}{kappa}")
    lines.append(f"{who} says the same: {'; '.join(parts)}.")
    if labelling.accuracy is not None:
        mean, ends, count = labelling.accuracy
        reach = (
            ""
            if ends is None
            else f" (95% interval over clusters {words.rate(ends[0])} to {words.rate(ends[1])})"
        )
        lines.append(
            "By a label alone, it separates the cluster's tasks from others in "
            f"{words.rate(mean)} of decisions{reach}, over {words.plural(count, 'cluster')}; "
            "guessing gives half."
        )
    return lines


def _format_label(label: Label | None) -> tuple[str, str, str]:
    if label is None:
        return "", "", ""
    if label.status != "read":
        return f"{label.status}: {label.reason}", words.NONE, words.NONE
    return label.label, MODES[label.mode], label.bloom


def _format_check(each: Membership | None) -> str:
    if each is None:
        return ""
    if each.status != "read":
        return f"{each.status}: {each.reason}"
    low, high = each.interval
    return f"{each.right} of {each.decisions} ({words.rate(low)} to {words.rate(high)})"


def _format_interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
