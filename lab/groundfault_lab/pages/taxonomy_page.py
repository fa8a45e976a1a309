"""The page of a taxonomy: its clusters, what is claimed of them, and how they are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from groundfault.auditing.report_schema import ReportData
from groundfault.core.finding import Finding
from groundfault.render import words
from groundfault.render.audit_tables import interval_words, write_estimate
from groundfault.render.audit_words import explain_correction
from groundfault.render.page import (
    Content,
    Figures,
    Name,
    Number,
    Page,
    Section,
    Table,
    Words,
    make_table,
    tabulate,
)
from groundfault_lab.pages.taxonomy_figures import draw_figures
from groundfault_lab.taxonomy.fitting.taxonomy import Cluster, Taxonomy
from groundfault_lab.taxonomy.use.claims import is_excess
from groundfault_lab.taxonomy.words.labelling import MODES, Label, Labelling, Membership

LIMITS = (
    "A cluster says which examples fail together among these models. It names no cause: its words "
    "and attributes describe it and were not tested as explanations.",
    "The null worlds have one ability a model and logistic items. What breaks that for another "
    "reason, such as answers copied between models, or a grader that is wrong on one kind of "
    "example, makes clusters too.",
    "Stability is judged on halves of these models. Other models may fail together in other ways.",
)


def make_page(
    taxonomy: Taxonomy, claims: ReportData | None = None, labels: Labelling | None = None
) -> Page:
    """Make the page of a taxonomy; ``claims`` is the report on held-out models."""
    matrix, partition = taxonomy.matrix, taxonomy.partition
    return Page(
        "taxonomy",
        taxonomy.title or "A failure taxonomy",
        taxonomy.verdict,
        facts=(
            ("Models", words.count(len(matrix.models))),
            ("Examples clustered", words.count(len(matrix))),
            ("Cells without an answer", words.rate(matrix.holes)),
            ("In a cluster", words.rate(partition.coverage)),
            ("Clusters published", f"{len(taxonomy.published)} of {len(taxonomy.clusters)}"),
        ),
        sections=(
            _make_leaf_section(taxonomy),
            _make_cluster_section(
                "Published clusters", taxonomy, [c for c in taxonomy.published if not c.rule]
            ),
            None if labels is None else make_label_section(taxonomy, labels),
            Section("Figures", Figures(draw_figures(taxonomy))),
            None if claims is None else _make_claim_section(claims),
            _make_cluster_section("Clusters that are not published", taxonomy, taxonomy.unstable),
            Section("What could have been seen", _tabulate_power(taxonomy)),
            Section("Is it real", _list_tests(taxonomy)),
            Section("Does it stay", _tabulate_stability(taxonomy)),
            _make_exclusion_section(taxonomy),
            Section("What this does not say", LIMITS),
            Section.of(
                make_table(
                    "Settings",
                    "cc",
                    ("Setting", "Value"),
                    [(name, str(value)) for name, value in taxonomy.settings.to_dict().items()],
                )
            ),
        ),
        good=bool(taxonomy.published),
    )


def _make_leaf_section(taxonomy: Taxonomy) -> Section | None:
    if not taxonomy.settings.rules:
        return None
    table = tabulate(
        "Failure modes",
        taxonomy.leaves,
        Name("Rule", lambda c: c.name),
        Number("Examples", lambda c: c.size),
        Words("Fail beyond ability (share failed, expected)", partial(_list_failing, taxonomy)),
        Name("Most telling", lambda c: ", ".join(c.exemplars)),
        note="Expected: by the model's ability and the examples' difficulty. The list names a rule "
        "where these explain all failures with a probability of at most "
        f"{words.rate(taxonomy.settings.level)}. Most telling: examples that these models fail and "
        "the others pass.",
    )
    return Section.of(table)


def _list_failing(taxonomy: Taxonomy, leaf: Cluster) -> str:
    models = taxonomy.matrix.models
    cells = [(name, models.index(name)) for name in leaf.models if name in models]
    return ", ".join(
        f"{name} ({words.rate(leaf.failure[j])}, {words.rate(leaf.expected[j])})"
        for name, j in cells
    )


def _make_cluster_section(title: str, taxonomy: Taxonomy, clusters: Sequence[Cluster]) -> Section:
    table = tabulate(
        title,
        clusters,
        Name("Cluster", lambda c: c.name),
        Number("Examples", lambda c: c.size),
        Words(
            "Benchmarks",
            lambda c: ", ".join(f"{name} {n:,}" for name, n in c.sources.items()) or None,
        ),
        Words(
            "Attributes",
            lambda c: (
                "; ".join(
                    f"{a.what} ({words.rate(a.inside)}, elsewhere {words.rate(a.outside)})"
                    for a in c.attributes
                )
                or None
            ),
        ),
        Name("Nearest to its centre", lambda c: ", ".join(c.exemplars)),
        Words("Most beyond ability", lambda c: _describe_extremes(taxonomy, c)),
        Words("Why", lambda c: c.reason),
        note="Attributes are more frequent in the cluster by Fisher's exact test, Holm-adjusted "
        "over all attributes and clusters. Most beyond ability: models that fail more, or less, "
        "than ability and difficulty explain, in points.",
        drop=True,
    )
    several = sum(len(c.sources) > 1 for c in clusters)
    sentence = f"{several} of {len(clusters)} hold examples of more than one benchmark."
    return Section.of(table, sentence if any(c.sources for c in clusters) else "")


def _describe_extremes(taxonomy: Taxonomy, cluster: Cluster, max_models: int = 3) -> str:
    excess = np.nan_to_num(cluster.excess)
    # in either direction: a model that fails less is as telling
    order = np.argsort(-np.abs(excess), kind="stable")[:max_models]
    return ", ".join(
        f"{taxonomy.matrix.models[j]} {words.signed(100 * excess[j], 0)}" for j in order
    )


def _make_claim_section(claims: ReportData) -> Section:
    models = ", ".join(claims.manifest.models or ())
    confirmed = [f for f in claims.findings if f.confirmed]
    derivation = claims.manifest.derivation
    excess = derivation is not None and is_excess(derivation)
    beyond = " beyond its ability and the examples' difficulty" * excess
    sentence = (
        f"Of {len(claims.findings)} claims that a held-out model fails more or less often{beyond} "
        f"in a cluster than elsewhere, {len(confirmed)} are confirmed on held-out examples. The "
        "report is in the folder claims."
    )
    notes = ["A difference here is half of the one in failures beyond what was expected."] * excess
    if confirmed:
        notes.append(explain_correction(confirmed))
    table = tabulate(
        "Claims",
        claims.findings,
        Name("Cluster", lambda f: f.name),
        Words("Model", lambda f: f.outcome or models or None),
        Words("Verdict", lambda f: f.verdict.replace("_", " ")),
        Number("Difference (points)", lambda f: _write_lift(claims, f)[0]),
        Number(interval_words(claims)[0], lambda f: _write_lift(claims, f)[1]),
        note=" ".join(notes),
    )
    return Section("Models that the clusters were not made from", sentence, table)


def _write_lift(claims: ReportData, finding: Finding) -> tuple[str, str]:
    """Write the lift and its interval, corrected where it had to pass a bar."""
    if finding.confirmed and finding.estimate is not None:
        return write_estimate(claims, finding.estimate)
    cell = finding.holdout or finding.full
    return words.points(cell.lift), interval_words(claims)[1](cell)


def _tabulate_power(taxonomy: Taxonomy) -> Table | None:
    """Tabulate the classes that could have been seen, where none was."""
    detectable = taxonomy.detectable
    if detectable is None:
        return None
    return tabulate(
        "The weakest classes that would have been seen",
        detectable.effects.items(),
        Number("Share of the examples in the class", lambda pair: words.rate(float(pair[0]))),
        Number("Passes that half of the models lose there", lambda pair: words.rate(pair[1])),
        note="Classes of random examples are planted into worlds of one ability with the same "
        f"models, examples and holes, {detectable.worlds} worlds of each kind. The least loss that "
        f"the test of directions sees in {words.rate(detectable.power)} of them; to be published, "
        "a class has to be found again, too, which asks for more. "
        f"{words.NONE}: not even one that is lost altogether.",
    )


def _list_tests(taxonomy: Taxonomy) -> Iterator[Content]:
    if not taxonomy.tests:
        return
    worlds = (
        "Worlds without failure modes, where models have one ability each or fail independently, "
        "go through the same procedure."
    )
    decides = taxonomy.settings.publication == "label_fixed"
    rule = f" Clusters are published if their silhouette beats both at {taxonomy.settings.level:g}."
    yield worlds if decides else worlds + rule
    if "label_fixed" in taxonomy.tests:
        yield (
            "By the paper's rule, which shuffles columns under labels that stay, "
            f"{taxonomy.by_the_papers_rule} of {len(taxonomy.clusters)} clusters "
            f"{'are' if decides else 'would be'} published. It does not rule out a common ability."
        )
    yield tabulate(
        "Against worlds without failure modes",
        taxonomy.tests.values(),
        Words("Statistic", lambda test: test.name),
        Number("Observed", lambda test: _format_signed(test.observed)),
        Number(
            "Null",
            lambda test: (
                None if test.mean is None else f"{_format_signed(test.mean)} ± {test.spread:.3f}"
            ),
        ),
        Number("Draws", lambda test: len(test.draws)),
        Number("p", lambda test: words.p_value(test.p)),
        note="p = (1 + draws at or above the observed) / (1 + draws). A silhouette of −1 stands "
        "for no clusters.",
    )


def _format_signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _tabulate_stability(taxonomy: Taxonomy) -> Table | None:
    steady = taxonomy.stability
    if not steady.jaccard:
        return None
    rows = [
        (f"Refits with other {axis}", _format_mean([steady.agreement[axis]]), _format_range(row))
        for axis, row in steady.jaccard.items()
    ]
    rows += [
        (f"Resampled examples, {how}", _format_mean(values), words.NONE)
        for how, values in steady.bootstrap.items()
    ]
    note = (
        "Other models: two halves that share no model, with each other. Embedding fixed: the "
        "paper's bootstrap, in which nothing but the clustering can change."
    )
    heads = ("", "Adjusted Rand index", "Jaccard index of clusters")
    return make_table("Found again", "tnn", heads, rows, note)


def _format_mean(values: Sequence[float | None]) -> str:
    scored = [v for v in values if v is not None and not np.isnan(v)]
    return f"{sum(scored) / len(scored):.2f}" if scored else words.NONE


def _format_range(values: Sequence[float]) -> str:
    scored = [v for v in values if not np.isnan(v)]
    return words.span((min(scored), max(scored)) if scored else None, words.write_coefficient)


def list_exclusions(taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    """List names of examples and models that are in no cluster, by the reason."""
    exclusions = taxonomy.matrix.apart
    kinds = {
        "failed by every model": exclusions.all_failed,
        "passed by every model": exclusions.all_passed,
        "answered by none": exclusions.unanswered,
        "passed by every frontier model": exclusions.easy,
        "models that pass or fail everything": exclusions.constant_models,
    }
    return {what: names for what, names in kinds.items() if names}


def _make_exclusion_section(taxonomy: Taxonomy) -> Section:
    exclusions = list_exclusions(taxonomy)
    if not exclusions:
        return Section("Set apart", "Nothing was set apart.")
    table = tabulate(
        "Set apart",
        exclusions.items(),
        Words("", lambda pair: pair[0]),
        Number("Number", lambda pair: len(pair[1])),
        Name("Such as", lambda pair: ", ".join(pair[1][:5])),
    )
    return Section.of(
        table,
        "These tell no two examples, or no two models, apart, and are in no cluster. All names are "
        "in taxonomy.json.",
    )


def make_label_section(taxonomy: Taxonomy, labelling: Labelling) -> Section:
    """Make the section on labels, and how far a second labeller agrees."""
    # by cluster: not every cluster has a second label or a check
    seconds = {each.cluster: each for each in labelling.second_labels}
    checks = {each.cluster: each for each in labelling.membership}
    names = {c.number: c.name for c in taxonomy.clusters}
    table = tabulate(
        "Labels",
        labelling.labels,
        Name("Cluster", lambda label: names[label.cluster]),
        Words("Stability", lambda label: "published" if label.published else "unstable"),
        Words("Label", lambda label: _format_label(label)[0]),
        Words("Failure mode", lambda label: _format_label(label)[1]),
        Words("Bloom level", lambda label: _format_label(label)[2]),
        Words("Second label", lambda label: _format_label(seconds.get(label.cluster))[0]),
        Words("Second failure mode", lambda label: _format_label(seconds.get(label.cluster))[1]),
        Words("Second Bloom level", lambda label: _format_label(seconds.get(label.cluster))[2]),
        Words("Right decisions", lambda label: _format_check(checks.get(label.cluster))),
        note="Right decisions: of the second labeller, who saw the label alone, with Wilson's "
        "interval."
        if labelling.membership
        else "",
        drop=True,
    )
    return Section("What a language model calls them", describe_labels(labelling), table)


def describe_labels(labelling: Labelling) -> list[str]:
    """Describe who labelled, and how far labels can be trusted."""
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
        part = f"{each.what} {each.same} of {each.clusters}"
        part += words.bracket(each.interval or (0.0, 1.0))
        if each.kappa is not None:
            ends = words.bracket(each.kappa_interval, words.write_coefficient)
            part += f", Cohen's kappa {each.kappa:.2f}{ends}"
        parts.append(part)
    lines.append(f"{who} says the same: {'; '.join(parts)}.")
    if labelling.accuracy is not None:
        mean, interval, count = labelling.accuracy
        reach = f" (95% interval over clusters {words.span(interval)})" if interval else ""
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
    if each is None or each.status != "read":
        return f"{each.status}: {each.reason}" if each else ""
    return f"{each.right} of {each.decisions}{words.bracket(each.interval)}"
