"""A taxonomy as a page, as Markdown and as figures; its JSON is what `Taxonomy.save` writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.report_versions import read_report
from groundfault.base.files import write_text
from groundfault.base.folders import replace_folder
from groundfault.core.finding import Finding
from groundfault.errors import InputError
from groundfault.render import words
from groundfault.render.audit_tables import interval_words, write_estimate
from groundfault.render.audit_words import explain_correction
from groundfault.render.html import html
from groundfault.render.markdown import markdown
from groundfault.render.page import Page, Section, Table, TableColumn
from groundfault.render.taxonomy_figures import draw_excess, draw_heatmap, draw_stability
from groundfault.render.taxonomy_labels import make_label_section
from groundfault.taxonomy.fitting.taxonomy import Cluster, Taxonomy
from groundfault.taxonomy.use.claims import is_excess
from groundfault.taxonomy.words.labelling import Labelling

LIMITS = (
    "A cluster says which examples fail together among these models. It names no cause: its words "
    "and attributes describe it and were not tested as explanations.",
    "The null worlds have one ability a model and logistic items. What breaks that for another "
    "reason, such as answers copied between models, or a grader that is wrong on one kind of "
    "example, makes clusters too.",
    "Stability is judged on halves of these models. Other models may fail together in other ways.",
)


def write_taxonomy(
    taxonomy: Taxonomy, directory: str | Path, *, title: str = "", claims: Report | None = None
) -> None:
    """Write a taxonomy and its report.

    The files are ``report.html``, ``report.md``, ``taxonomy.json`` and its arrays. They are
    replaced together or, on an error, not at all.

    Parameters
    ----------
    taxonomy : Taxonomy
    directory : path
    title : str
        What it is of.
    claims : Report, optional
        What `groundfault.taxonomy.claims` says of held-out models; it is written to ``claims``
        below the directory.
    """
    # the title is stored, so that a later `label` writes the same page
    taxonomy = replace(taxonomy, title=title or taxonomy.title)
    # set before anything is written: an error leaves no half of a report
    texts = _format_page(make_page(taxonomy, claims=claims))
    with replace_folder(directory) as place:
        taxonomy.save(place)
        for name, text in texts.items():
            write_text(place / name, text)
        if claims is not None:
            claims.write(place / "claims")


def write_labels(taxonomy: Taxonomy, directory: str | Path, labels: Labelling) -> None:
    """Write labels into a taxonomy's directory: ``labels.json``, and the report with them."""
    texts = _format_page(
        make_page(taxonomy, claims=_load_claims(taxonomy, Path(directory)), labels=labels)
    )
    with replace_folder(directory) as place:
        labels.save(place)
        for name, text in texts.items():
            write_text(place / name, text)


def read_page(directory: str | Path) -> Page:
    """The page of what `write_taxonomy` and `write_labels` wrote.

    Raises
    ------
    InputError
        If the directory is not one of a taxonomy, or its parts do not fit each other.
    """
    place = Path(directory)
    taxonomy = Taxonomy.load(place)
    claims, labels = _load_claims(taxonomy, place), Labelling.load(place, taxonomy)
    return make_page(taxonomy, claims=claims, labels=labels)


def _load_claims(taxonomy: Taxonomy, directory: Path) -> ReportData | None:
    """The report on held-out models, if it is about these clusters.

    The folder may hold one of an earlier fit.
    """
    path = directory / "claims" / "report.json"
    if not path.exists():
        return None
    try:
        claims = read_report(path).data
    except InputError as error:
        raise InputError(f"{error}; take the folder claims away, or fit again") from None
    # cluster names hold their terms, so another fit has other names
    names = {finding.name for finding in claims.findings}
    return claims if names == {cluster.name for cluster in taxonomy.published} else None


def _format_page(content: Page) -> dict[str, str]:
    return {"report.html": html(content), "report.md": markdown(content)}


def make_page(
    taxonomy: Taxonomy,
    title: str = "",
    claims: ReportData | None = None,
    labels: Labelling | None = None,
) -> Page:
    """What the report says; ``claims`` is the report on held-out models."""
    sections = (
        _make_cluster_section("Published clusters", taxonomy, taxonomy.published),
        None if labels is None else make_label_section(taxonomy, labels),
        _make_figure_section(taxonomy),
        _make_claim_section(claims),
        _make_cluster_section("Clusters that are not published", taxonomy, taxonomy.unstable),
        _make_power_section(taxonomy),
        _make_test_section(taxonomy),
        _make_stability_section(taxonomy),
        _make_exclusion_section(taxonomy),
        Section("What this does not say", LIMITS),
        Section("Settings", (), (), (_tabulate_settings(taxonomy),)),
    )
    full = tuple(s for s in sections if s is not None and (s.sentences or s.figures or s.tables))
    matrix, partition = taxonomy.matrix, taxonomy.partition
    title = title or taxonomy.title or "A failure taxonomy"
    facts = (
        ("Models", words.count(len(matrix.models))),
        ("Examples clustered", words.count(len(matrix))),
        ("Cells without an answer", words.rate(matrix.holes)),
        ("In a cluster", words.rate(partition.coverage)),
        ("Clusters published", f"{len(taxonomy.published)} of {len(taxonomy.clusters)}"),
    )
    return Page("taxonomy", title, taxonomy.verdict, facts, full, bool(taxonomy.published))


def _make_cluster_section(
    title: str, taxonomy: Taxonomy, clusters: Sequence[Cluster]
) -> Section | None:
    if not clusters:
        return None
    rows = tuple(
        (
            c.name,
            words.count(c.size),
            ", ".join(f"{name} {n:,}" for name, n in c.sources.items()) or words.NONE,
            "; ".join(
                f"{a.what} ({words.rate(a.inside)}, elsewhere {words.rate(a.outside)})"
                for a in c.attributes
            )
            or words.NONE,
            ", ".join(c.exemplars),
            _describe_extremes(taxonomy, c),
            c.reason,
        )
        for c in clusters
    )
    heads = (
        "Cluster",
        "Examples",
        "Benchmarks",
        "Attributes",
        "Nearest to its centre",
        "Most beyond ability",
        "Why",
    )
    kinds = ("code", "number", "text", "text", "code", "text", "text")
    note = (
        "Attributes are more frequent in the cluster by Fisher's exact test, Holm-adjusted over "
        "all attributes and clusters. Most beyond ability: models that fail more, or less, than "
        "ability and difficulty explain, in points."
    )
    columns = tuple(
        TableColumn(head, kind)  # type: ignore[arg-type]
        for head, kind in zip(heads, kinds, strict=True)
    )
    sentences: tuple[str, ...] = ()
    several = sum(len(c.sources) > 1 for c in clusters)
    if any(c.sources for c in clusters):
        sentences = (f"{several} of {len(clusters)} hold examples of more than one benchmark.",)
    return Section(title, sentences, (), (Table(title, columns, rows, note).drop_empty_columns(),))


def _describe_extremes(taxonomy: Taxonomy, cluster: Cluster, max_models: int = 3) -> str:
    excess = np.nan_to_num(cluster.excess)
    # in either direction: a model that fails less is as telling
    order = np.argsort(-np.abs(excess), kind="stable")[:max_models]
    return ", ".join(
        f"{taxonomy.matrix.models[j]} {words.signed(100 * excess[j], 0)}" for j in order
    )


def _make_figure_section(taxonomy: Taxonomy) -> Section | None:
    if not taxonomy.clusters:
        return None
    return Section(
        "Figures", (), (draw_heatmap(taxonomy), draw_excess(taxonomy), draw_stability(taxonomy))
    )


def _make_claim_section(claims: ReportData | None) -> Section | None:
    if claims is None:
        return None
    findings, models = claims.findings, ", ".join(claims.manifest.models or ())
    rows = tuple(
        (
            f.name,
            f.outcome or models or words.NONE,
            f.verdict.replace("_", " "),
            *_write_lift(claims, f),
        )
        for f in findings
    )
    heads = (
        TableColumn("Cluster", "code"),
        TableColumn("Model"),
        TableColumn("Verdict"),
        TableColumn("Lift", "number"),
        TableColumn(interval_words(claims)[0], "number"),
    )
    confirmed = [f for f in findings if f.confirmed]
    derivation = claims.manifest.derivation
    excess = derivation is not None and is_excess(derivation)
    beyond = " beyond its ability and the examples' difficulty" * excess
    sentence = (
        f"Of {len(findings)} claims that a held-out model fails more or less often{beyond} in a "
        f"cluster than elsewhere, {len(confirmed)} are confirmed on held-out examples. The report "
        "is in the folder claims."
    )
    notes = ["A lift is half of the difference in failures beyond what was expected."] * excess
    if confirmed:
        notes.append(explain_correction(confirmed))
    return Section(
        "Models that the clusters were not made from",
        (sentence,),
        (),
        (Table("Claims", heads, rows, " ".join(notes)),),
    )


def _write_lift(claims: ReportData, finding: Finding) -> tuple[str, str]:
    """The lift and its interval, corrected where it had to pass a bar."""
    if finding.confirmed and finding.estimate is not None:
        return write_estimate(claims, finding.estimate)
    cell = finding.holdout or finding.full
    return words.signed(cell.lift), interval_words(claims)[1](cell)


def _make_power_section(taxonomy: Taxonomy) -> Section | None:
    """What could have been seen, where nothing was."""
    detectable = taxonomy.detectable
    if detectable is None:
        return None
    rows = tuple(
        (words.rate(float(share)), words.NONE if effect is None else words.rate(effect))
        for share, effect in detectable.effects.items()
    )
    columns = (
        TableColumn("Share of the examples in the class", "number"),
        TableColumn("Passes that half of the models lose there", "number"),
    )
    note = (
        "Classes of random examples are planted into worlds of one ability with the same models, "
        f"examples and holes, {detectable.worlds} worlds of each kind. The least loss that the "
        f"test of directions sees in {words.rate(detectable.power)} of them; to be published, "
        "a class has to be found again, too, which asks for more. "
        f"{words.NONE}: not even one that is lost altogether."
    )
    table = Table("The weakest classes that would have been seen", columns, rows, note)
    return Section("What could have been seen", (), (), (table,))


def _make_test_section(taxonomy: Taxonomy) -> Section | None:
    if not taxonomy.tests:
        return None
    rows = tuple(
        (
            test.name,
            _format_signed(test.observed),
            words.NONE if test.mean is None else f"{_format_signed(test.mean)} ± {test.spread:.3f}",
            words.count(len(test.draws)),
            words.p_value(test.p),
        )
        for test in taxonomy.tests.values()
    )
    columns = (
        TableColumn("Statistic"),
        *(TableColumn(head, "number") for head in ("Observed", "Null", "Draws", "p")),
    )
    sentences = [
        "Worlds without failure modes, where models have one ability each or fail independently, "
        "go through the same procedure. Clusters are published if their silhouette beats both at "
        f"{taxonomy.settings.level:g}."
    ]
    if "label_fixed" in taxonomy.tests:
        sentences.append(
            "By the paper's rule, which shuffles columns under labels that stay, "
            f"{taxonomy.by_the_papers_rule} of {len(taxonomy.clusters)} clusters would be "
            "published. It does not rule out a common ability."
        )
    note = (
        "p = (1 + draws at or above the observed) / (1 + draws). A silhouette of −1 stands for no "
        "clusters."
    )
    return Section(
        "Is it real",
        tuple(sentences),
        (),
        (Table("Against worlds without failure modes", columns, rows, note),),
    )


def _format_signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _make_stability_section(taxonomy: Taxonomy) -> Section | None:
    steady = taxonomy.stability
    if not steady.jaccard:
        return None
    rows = [
        (f"Refits with other {axis}", _format_index(steady.agreement[axis]), _format_range(row))
        for axis, row in steady.jaccard.items()
    ]
    rows += [
        (f"Resampled examples, {how}", _format_index(_average(values)), words.NONE)
        for how, values in steady.bootstrap.items()
    ]
    columns = (
        TableColumn(""),
        TableColumn("Adjusted Rand index", "number"),
        TableColumn("Jaccard index of clusters", "number"),
    )
    note = (
        "Other models: two halves that share no model, with each other. Embedding fixed: the "
        "paper's bootstrap, in which nothing but the clustering can change."
    )
    return Section("Does it stay", (), (), (Table("Found again", columns, tuple(rows), note),))


def _average(values: Sequence[float]) -> float | None:
    values_present = [v for v in values if not np.isnan(v)]
    return sum(values_present) / len(values_present) if values_present else None


def _format_index(value: float | None) -> str:
    return words.NONE if value is None or np.isnan(value) else f"{value:.2f}"


def _format_range(values: Sequence[float]) -> str:
    values_present = [v for v in values if not np.isnan(v)]
    return (
        f"{min(values_present):.2f} to {max(values_present):.2f}" if values_present else words.NONE
    )


def list_exclusions(taxonomy: Taxonomy) -> dict[str, tuple[str, ...]]:
    """Names of examples and models that are in no cluster, by the reason."""
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
    rows = tuple(
        (what, words.count(len(names)), ", ".join(names[:5]))
        for what, names in list_exclusions(taxonomy).items()
    )
    if not rows:
        return Section("Set apart", ("Nothing was set apart.",))
    columns = (TableColumn(""), TableColumn("Number", "number"), TableColumn("Such as", "code"))
    sentence = (
        "These tell no two examples, or no two models, apart, and are in no cluster. All names are "
        "in taxonomy.json."
    )
    return Section("Set apart", (sentence,), (), (Table("Set apart", columns, rows),))


def _tabulate_settings(taxonomy: Taxonomy) -> Table:
    rows = tuple((name, str(value)) for name, value in taxonomy.settings.to_dict().items())
    return Table("Settings", (TableColumn("Setting", "code"), TableColumn("Value", "code")), rows)
