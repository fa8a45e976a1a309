"""Labels that a language model gave to clusters, how far a second labeller agrees with them, and
the folder in which a taxonomy lies with claims about it and its labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from groundfault.auditing.evidence_again import Places
from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import ReportData
from groundfault.auditing.verification import verify
from groundfault.auditing.verification_checks import (
    Verification,
    VerificationCheck,
    check_foreign_pages,
    check_pages,
    differences_of,
    judge_differences,
)
from groundfault.base.files import replace_folder, write_text
from groundfault.base.ledgers import LedgerChoice
from groundfault.base.long_work import stream, version
from groundfault.base.reading import read_bytes, read_json_object
from groundfault.base.registry import load_object
from groundfault.errors import InputError, PlanError
from groundfault.stats.intervals import wilson
from groundfault_lab.stats.paired import student
from groundfault_lab.taxonomy.fitting.fit import compare_clusters
from groundfault_lab.taxonomy.fitting.stored import (
    SCHEMA_VERSION,
    Stored,
    decode_versioned,
    set_fields,
)
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy

FILE = "labels.json"

MODES = {
    "knowledge_gap": "knowledge gap",
    "reasoning_failure": "reasoning failure",
    "instruction_drift": "instruction drift",
    "brittleness": "brittleness",
    "hallucination": "hallucination",
    "edge_case_blindness": "edge-case blindness",
}
"""The six failure modes of FailureScope's Table 11."""

LEVELS = ("remember", "understand", "apply", "analyze", "evaluate", "create")
"""Of Bloom's taxonomy, as revised."""


class Label(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The label that a model gave to a cluster.

    Attributes
    ----------
    cluster : int
    published : bool
    status : {"read", "unparsed", "refused", "error"}
    reason : str
        Why there is no label.
    label, mode, bloom : str
        Empty unless the status is ``read``; ``mode`` is one of `MODES`, ``bloom`` one of `LEVELS`.
    exemplars : tuple of str
        The tasks it was shown.
    attempts : int
    question : str
        Hash of the last question, by which a record knows the call.
    """

    cluster: int
    published: bool
    status: str
    reason: str = ""
    label: str = ""
    mode: str = ""
    bloom: str = ""
    exemplars: tuple[str, ...] = ()
    attempts: int = 0
    question: str = ""


class Membership(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test whether a second labeller tells a cluster's tasks from others by the label alone.

    Attributes
    ----------
    cluster : int
    status, reason : str
        As in `Label`.
    members, others : int
        Tasks shown that are in the cluster, and that are not.
    named, kept_out : int
        How many of these the labeller rightly accepted, and rightly rejected.
    question : str
    """

    cluster: int
    status: str
    reason: str = ""
    members: int = 0
    others: int = 0
    named: int = 0
    kept_out: int = 0
    question: str = ""

    @property
    def right(self) -> int:
        """Return the number of right decisions."""
        return self.named + self.kept_out

    @property
    def decisions(self) -> int:
        """Return the number of decisions that the second labeller made."""
        return self.members + self.others

    @property
    def interval(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval of the share of right decisions.

        Tasks are taken to be drawn at random, under this one label.
        """
        low, high = wilson(self.right, self.decisions)
        return float(low), float(high)


class LabelAgreement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of clusters of which two labellers say the same.

    Attributes
    ----------
    what : str
        ``label``, ``failure mode`` or ``Bloom level``.
    same, clusters : int
        Of the clusters that both labelled.
    interval : pair of float, or None
        Wilson's, of the share, at 95%; None without clusters.
    kappa : float or None
        Cohen's: beyond what their habits alone make alike. None for labels, and where it is not
        defined.
    kappa_interval : pair of float, or None
        From resampled clusters, at 95%; None where they are too few, or all alike.
    """

    what: str
    same: int
    clusters: int
    interval: tuple[float, float] | None
    kappa: float | None = None
    kappa_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Labelling(Stored):
    """Labels of a taxonomy's clusters. `label` makes one, `load` reads one.

    Attributes
    ----------
    taxonomy : str
        Hash of the taxonomy's examples and clusters.
    model : str
        Who labelled.
    labels : tuple of Label
        One for each cluster.
    second : str
        Who labelled again; the same name where it is the same model at another seed. Empty for
        nobody.
    second_labels : tuple of Label
    membership : tuple of Membership
        One for each cluster with a label and with other examples to tell it from.
    seed : int
    prompts : dict of str to str
        SHA-256 of the wordings.
    agreement : tuple of LabelAgreement
        Of both labellers, over the clusters that both labelled; empty without a second one.
    accuracy : tuple or None
        Mean share of right decisions on membership, its 95 % interval (Student's, over clusters),
        and how many clusters. The interval is None for fewer than two clusters, and where all are
        alike. None as a whole without a check.
    """

    groundfault_labels: int = field(init=False)
    taxonomy: str
    model: str
    labels: tuple[Label, ...]
    second: str = ""
    second_labels: tuple[Label, ...] = ()
    membership: tuple[Membership, ...] = ()
    seed: int = 0
    prompts: dict[str, str] = field(default_factory=dict)
    agreement: tuple[LabelAgreement, ...] = field(init=False)
    accuracy: tuple[float, tuple[float, float] | None, int] | None = field(init=False)

    def __post_init__(self) -> None:
        set_fields(
            self,
            groundfault_labels=SCHEMA_VERSION,
            agreement=self._compare_labels(),
            accuracy=self._measure_accuracy(),
        )

    def _compare_labels(self) -> tuple[LabelAgreement, ...]:
        if not self.second:
            return ()
        both = [
            (a, b)
            for a, b in zip(self.labels, self.second_labels, strict=True)
            if a.label and b.label
        ]
        labels = [(a.label.casefold(), b.label.casefold()) for a, b in both]
        modes, levels = [(a.mode, b.mode) for a, b in both], [(a.bloom, b.bloom) for a, b in both]
        return (
            _measure_agreement("label", labels),
            _measure_agreement("failure mode", modes, tuple(MODES), self.seed),
            _measure_agreement("Bloom level", levels, LEVELS, self.seed),
        )

    def _measure_accuracy(self) -> tuple[float, tuple[float, float] | None, int] | None:
        shares = [m.right / m.decisions for m in self.membership if m.status == "read"]
        if not shares:
            return None
        # over clusters and not decisions, which depend on each other within a label
        ends = student(shares)
        return float(np.mean(shares)), ends and (max(ends[0], 0.0), min(ends[1], 1.0)), len(shares)

    def save(self, directory: str | Path) -> None:
        """Write ``labels.json`` into a taxonomy's directory."""
        write_text(Path(directory) / FILE, self.to_json())

    @classmethod
    def load(cls, directory: str | Path, taxonomy: Taxonomy) -> Labelling | None:
        """Load the labels in a taxonomy's directory; None where there are none for this fit.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        place = Path(directory) / FILE
        if not place.exists():
            return None
        try:
            labelling = decode_versioned(read_bytes(place), cls, "groundfault_labels")
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{place} holds no labels of a taxonomy: {error}; take it away, or label anew"
            ) from None
        # labels of an earlier fit would name the wrong clusters
        return labelling if labelling.taxonomy == hash_taxonomy(taxonomy) else None


def hash_taxonomy(taxonomy: Taxonomy) -> str:
    """Hash what tells one clustering of examples from another."""
    return hashlib.sha256(json.dumps(sorted(taxonomy.labels.items())).encode()).hexdigest()


def _measure_agreement(
    what: str, pairs: Sequence[tuple[str, str]], words: Sequence[str] = (), seed: int = 0
) -> LabelAgreement:
    """Measure agreement of words: with kappa if they are out of a list."""
    from groundfault.stats.agreement import compare_pairs

    names = words or sorted({word for pair in pairs for word in pair})
    table = np.array([[names.index(word) for word in pair] for pair in pairs], dtype=np.int64)
    rng = stream(seed, f"taxonomy agreement {what}")
    count, same, interval, kappa, ends = compare_pairs(table.reshape(-1, 2), len(names), rng)
    if not words:
        return LabelAgreement(what, same, count, interval)
    # rounded, so that platforms agree on the file
    kappa, ends = kappa and round(kappa, 6), ends and (round(ends[0], 6), round(ends[1], 6))
    return LabelAgreement(what, same, count, interval, kappa, ends)


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
        What `groundfault_lab.taxonomy.claims` says of held-out models; it is written to ``claims``
        below the directory.
    """
    # the title is stored, so that a later `label` writes the same page
    taxonomy = replace(taxonomy, title=title or taxonomy.title)
    with _write_page(directory, taxonomy, claims) as place:
        taxonomy.save(place)
        if claims is not None:
            claims.write(place / "claims")


def write_labels(taxonomy: Taxonomy, directory: str | Path, labels: Labelling) -> None:
    """Write labels into a taxonomy's directory: ``labels.json``, and the report with them."""
    claims = _load_claims(taxonomy, Path(directory))
    with _write_page(directory, taxonomy, claims, labels) as place:
        labels.save(place)


def _make_pages(*parts: object) -> dict[str, str]:
    """Return the pages of a taxonomy, its claims and its labels, by name."""
    page = load_object("groundfault_lab.pages.taxonomy_page:make_page")(*parts)
    setters = {
        "report.html": "groundfault.render.html:html",
        "report.md": "groundfault.render.markdown:markdown",
    }
    return {name: load_object(setter)(page) for name, setter in setters.items()}


@contextmanager
def _write_page(directory: str | Path, *parts: object) -> Iterator[Path]:
    """Open a folder that replaces a directory's files, and write the page of these parts there."""
    # set before anything is written: an error leaves no half of a report
    texts = _make_pages(*parts)
    with replace_folder(directory) as place:
        yield place
        for name, text in texts.items():
            write_text(place / name, text)


def verify_taxonomy(
    place: Path, *, evidence: Places | None = None, ledger: LedgerChoice = True
) -> Verification:
    """Check a taxonomy by its own answers, its pages, and the claims below it.

    Parameters
    ----------
    place : Path
    evidence, ledger
        Of the claims; as in `groundfault.verify`.
    """
    taxonomy, claims, labels = read_folder(place)
    files = {"taxonomy.json": taxonomy.to_json(), **_make_pages(taxonomy, claims, labels)}
    if labels is not None:
        files[FILE] = labels.to_json()
    # `Taxonomy.save` writes no pages
    shown = {name: text for name, text in files.items() if (place / name).exists()}
    pages = check_pages(place, shown, attested=False, source="taxonomy.json and the arrays")
    stated = read_json_object(place / "taxonomy.json")
    writer = taxonomy.groundfault_version
    pages = check_foreign_pages(writer, "unchecked", check=pages)
    if writer != version("groundfault"):
        # another version words its conclusion in its own way
        stated["verdict"] = taxonomy.verdict
    differences = [*differences_of(stated, taxonomy.to_dict()), *compare_clusters(taxonomy)]
    what = "clusters, rates and what is published follow from answers, tests and refits"
    checks = [
        judge_differences(differences, what),
        pages,
        VerificationCheck(
            "evidence",
            "unchecked",
            "whether these are the answers, null worlds and refits of the evidence, only a second "
            "fit shows: groundfault lab taxonomy fit",
        ),
    ]
    for folder in sorted(each.parent for each in place.glob("*/report.json")):
        try:
            more = verify(folder, evidence=evidence, ledger=ledger).checks
        except (InputError, PlanError) as error:
            more = (VerificationCheck("recomputation", "unchecked", str(error)),)
        checks += [replace(check, name=f"{folder.name} {check.name}") for check in more]
    return Verification(tuple(checks))


def read_folder(directory: str | Path) -> tuple[Taxonomy, ReportData | None, Labelling | None]:
    """Read what `write_taxonomy` and `write_labels` wrote: the parts of its page.

    Raises
    ------
    InputError
        If the directory is not one of a taxonomy, or its parts do not fit each other.
    """
    taxonomy, place = Taxonomy.load(directory), Path(directory)
    return taxonomy, _load_claims(taxonomy, place), Labelling.load(place, taxonomy)


def _load_claims(taxonomy: Taxonomy, directory: Path) -> ReportData | None:
    """Load the report on held-out models; None for one that is of an earlier fit."""
    path = directory / "claims" / "report.json"
    if not path.exists():
        return None
    from groundfault.auditing.report import read_report

    try:
        claims = read_report(path).data
    except InputError as error:
        raise InputError(f"{error}; take the folder claims away, or fit again") from None
    # cluster names hold their terms, so another fit has other names
    names = {finding.name for finding in claims.findings}
    return claims if names == {cluster.name for cluster in taxonomy.published} else None
