"""What a language model called the clusters of a taxonomy, as a section of its report."""

from __future__ import annotations

from groundfault.render import words
from groundfault.render.page import Section, Table, TableColumn
from groundfault.taxonomy.fitting.taxonomy import Taxonomy
from groundfault.taxonomy.words.labelling import MODES, Label, Labelling, Membership


def section(taxonomy: Taxonomy, labelling: Labelling) -> Section:
    """The labels, and how far a second labeller agrees."""
    seconds = {each.cluster: each for each in labelling.second_labels}
    checked = {each.cluster: each for each in labelling.membership}
    names = {c.number: c.name for c in taxonomy.clusters}
    rows = tuple(
        (
            names[each.cluster],
            "published" if each.published else "unstable",
            *_said(each),
            *_said(seconds.get(each.cluster)),
            _checked(checked.get(each.cluster)),
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
        TableColumn("Tasks told apart"),
    )
    note = (
        "Tasks told apart: right decisions of the second labeller, told the label alone, with "
        "Wilson's interval."
    )
    table = Table(
        "Labels", columns, rows, note if labelling.membership else ""
    ).drop_empty_columns()
    return Section("What a language model calls them", tuple(sentences(labelling)), (), (table,))


def sentences(labelling: Labelling) -> list[str]:
    """Who labelled, and what the labels are worth."""
    read = sum(each.status == "read" for each in labelling.labels)
    said = [
        f"{labelling.model} labelled {read} of {words.plural(len(labelling.labels), 'cluster')} "
        "from the tasks nearest to each centre. It saw no answers: a failure mode is its guess "
        "from what is asked, and no finding."
    ]
    if not labelling.second:
        return [*said, "No second labeller checked this."]
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
            else f", Cohen's kappa {each.kappa:.2f}{_ends(each.kappa_interval)}"
        )
        low, high = each.interval or (0.0, 1.0)
        share = f"{each.same} of {each.clusters} ({words.rate(low)} to {words.rate(high)})"
        parts.append(f"{each.what} {share}{kappa}")
    said.append(f"{who} says the same: {'; '.join(parts)}.")
    if labelling.accuracy is not None:
        mean, ends, count = labelling.accuracy
        reach = (
            ""
            if ends is None
            else f" (95% interval over clusters {words.rate(ends[0])} to {words.rate(ends[1])})"
        )
        said.append(
            f"Told a label, it tells the cluster's tasks from others in {words.rate(mean)} of "
            f"decisions{reach}, over {words.plural(count, 'cluster')}; guessing gives half."
        )
    return said


def _said(label: Label | None) -> tuple[str, str, str]:
    if label is None:
        return "", "", ""
    if label.status != "read":
        return f"{label.status}: {label.reason}", words.NONE, words.NONE
    return label.label, MODES[label.mode], label.bloom


def _checked(each: Membership | None) -> str:
    if each is None:
        return ""
    if each.status != "read":
        return f"{each.status}: {each.reason}"
    low, high = each.interval
    return f"{each.right} of {each.decisions} ({words.rate(low)} to {words.rate(high)})"


def _ends(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})"
