"""Slice finders in the tables of two papers, and a leaderboard of them.

References
----------
Repantis, Gawde and Singh (2026), *Decoy-Calibrated Failure Audits for Language Models*,
arXiv:2606.09046; and Hua et al., "Discover, Explain, Improve", TACL 11, 2023.
https://doi.org/10.1162/tacl_a_00617."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from groundfault.auditing.flow import audit
from groundfault.auditing.preparation import start_audit
from groundfault.base.long_work import Progress, listener
from groundfault.core.finding import Finding
from groundfault_lab.slicing.sliceline import ScoredSlice, SliceLine
from groundfault_studies import discover, improve, janus_audits, leaderboard
from groundfault_studies.janus_audits import JanusAudit
from groundfault_studies.resuming import resume_tables
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

Columns = dict[str, tuple[str, Kind]]

SOURCE = (
    "Repantis, Gawde and Singh (2026), arXiv:2606.09046; and Hua et al. (2023), Discover, Explain, "
    "Improve, TACL 11, https://doi.org/10.1162/tacl_a_00617"
)
SLICES = SliceLine(k=5, max_level=3, min_support=8)
"""The paper gives no settings; its printed slices are among what these search."""

_SHOWN = 2
WORLDS, QUICK_WORLDS = 100, 10
_TABLE_2 = {
    "Controlled docs": {
        "n": "160",
        "error_rate": "36%",
        "all": "88–95%",
        "confirmed": "6 descriptors",
    },
    "MuSiQue": {"n": "150", "error_rate": "44%", "all": "55–57%", "confirmed": "0 descriptors"},
    "LongBench v2": {
        "n": "115",
        "error_rate": "51%",
        "all": "85–93%",
        "confirmed": "0 descriptors",
    },
}
_TABLE_4 = {
    "Controlled docs: long_chain=1 AND target_late=0": "88%",
    "Controlled docs: flat_format=0 AND long_chain=1 AND target_late=0": "95%",
    "MuSiQue: support_nonadjacent=1 AND high_question_words=0": "55%",
    "LongBench v2: high_context_words=0 AND high_question_context_overlap=1 AND "
    "high_entity_phrase_density=0": "93%",
}


def study(
    shared: str | Path | None = None,
    *,
    judge: str | None = None,
    seeds: int | None = None,
    replicates: int | None = None,
    quick: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Tables 2 and 4 of Janus and 4 to 7, 11 and 12 of DEIM, in form; or, given a judge, the
    leaderboard.

    Parameters
    ----------
    shared : path, optional
        Folder with ``janus_public`` and ``real``; left out, ``$GROUNDFAULT_SHARED`` or
        ``../shared/data``. What needs it is left out where it is not there, and `Study.lacking`
        says so.
    judge : str, optional
        Who confirms on fresh data, for the leaderboard.
    seeds : int, optional
        How often classifiers are trained, for the tables of DEIM; left out, 5, or quickly 1.
    replicates : int, optional
        Null worlds of the leaderboard; left out, 100, or quickly 10.
    quick : bool
        Fewer of both: to see that it runs, not for conclusions.
    keep : path, optional
        File of what is done; a study that was interrupted goes on from there.
    progress : callable, optional

    Raises
    ------
    InputError
        If the folder is named and not there.
    PlanError
        If the judge is unknown or holds nothing out.
    """
    progress = listener(progress)
    seeds = seeds or (discover.QUICK_SEEDS if quick else discover.SEEDS)
    replicates = replicates or (QUICK_WORLDS if quick else WORLDS)
    folder = find_shared(shared)
    lacking = (
        ()
        if folder.is_dir()
        else (f"what needs the data in {folder}: name their folder with --shared",)
    )
    place = Path(keep) if keep else None
    if judge:
        tables = leaderboard.tables(folder / "real", judge, replicates, place, progress)
        settings = {"judge": judge, "replicates": replicates, "splits": leaderboard.SPLITS}
        return PaperStudy(
            "leaderboard", "Leaderboard of slice finders", SOURCE, settings, tables, lacking
        )
    title = "Slice finders in two papers' tables"
    discovery = discover.study(shared, seeds=seeds, keep=place, progress=progress)
    about = "texts too" if (folder / "real").is_dir() else "no texts"
    about_janus = {f"tables of Janus, {about}": partial(of_janus, folder, progress)}
    acts = improve.act_tables(folder / "real", range(seeds), keep=place, progress=progress)
    first, second = resume_tables(about_janus, place, progress)
    tables = (first, second, *discovery.tables, *acts)
    return PaperStudy(
        "finders", title, SOURCE, {"seeds": seeds}, tables, lacking, discovery.figures
    )


def of_janus(folder: Path, progress: Progress | None = None) -> tuple[PaperTable, PaperTable]:
    """Tables 2 and 4: slices searched on all examples as in the paper, and slices that had to hold
    on fresh ones.
    """
    progress = listener(progress)
    searched = []
    for audited in _audits(folder):
        progress(f"searching {audited.label}")
        searched.append(_search(audited))
    return _table_2(searched), _table_4(searched)


@dataclass(frozen=True)
class _SliceSearch:
    """An audit's slices: searched among all examples, and searched on discovery and then judged."""

    audited: JanusAudit
    everywhere: tuple[ScoredSlice, ...]
    findings: tuple[Finding, ...]


def _search(audited: JanusAudit) -> _SliceSearch:
    plan = replace(audited.plan, judge="janus")
    case = start_audit(audited.evidence, plan)
    candidates = case.propose([SLICES])
    findings: tuple[Finding, ...] = ()
    if candidates:
        report = audit(audited.evidence, plan, candidates, finders=[], modes=False, ledger=None)
        findings = report.findings
    order = {candidate.name: i for i, candidate in enumerate(candidates)}
    everywhere = replace(SLICES, min_share=0.1).find(audited.evidence)
    return _SliceSearch(audited, everywhere, tuple(sorted(findings, key=lambda f: order[f.name])))


def _audits(folder: Path) -> Iterator[JanusAudit]:
    yield janus_audits.scripted_audit(seed=0)[0]
    if folder.is_dir():
        yield janus_audits.reconstruction(folder / "janus_public")
        yield janus_audits.null_audit(folder / "janus_public")
        yield from janus_audits.real_audits(folder / "real")


def _table_2(searched: Sequence[_SliceSearch]) -> PaperTable:
    columns: Columns = {
        "n": ("n", "count"),
        "error_rate": ("errors", "rate"),
        "all": ("slices, all", "rate"),
        "discovery": ("discovery", "rate"),
        "holdout": ("holdout", "rate"),
        "confirmed": ("confirmed", "text"),
    }
    rows = []
    for one in searched:
        here: dict[str, Value] = {
            "n": one.audited.example_count,
            "error_rate": float(one.audited.evidence.loss.mean() or 0),  # type: ignore[arg-type]
            "all": _range([s.mean_error for s in one.everywhere]),
            "discovery": _range([f.discovery.on_rate for f in one.findings]),
            "holdout": _range([f.holdout.on_rate for f in one.findings if f.holdout]),
            "confirmed": f"{sum(f.confirmed for f in one.findings)} of {len(one.findings)} slices, "
            f"{len(one.audited.default_rule.confirmed)} descriptors",
        }
        rows.append(PaperRow(one.audited.label, here, _TABLE_2.get(one.audited.beside, {})))
    beside = {one.audited.beside for one in searched}
    rows += [
        PaperRow(name, paper=numbers) for name, numbers in _TABLE_2.items() if name not in beside
    ]
    note = (
        "Slices, all: lowest and highest error rate of SliceLine's five best conjunctions of the "
        "examples' columns, searched among all examples, as in the paper. Then of those searched "
        "among the discovery examples alone: there, and on the holdout, and how many of them the "
        "default judge confirms; beside it how many of the single descriptors. The paper confirms "
        "descriptors only."
    )
    return PaperTable(
        "Table 2 of Janus, in form. Slices that are found, and slices that hold",
        note,
        columns,
        tuple(rows),
    )


def _table_4(searched: Sequence[_SliceSearch]) -> PaperTable:
    columns: Columns = {
        "size": ("units", "count"),
        "discovery": ("errors", "rate"),
        "holdout": ("holdout", "rate"),
        "p": ("adj. p", "p"),
        "verdict": ("verdict", "text"),
    }
    rows = []
    for one in searched:
        for finding in one.findings[:_SHOWN]:
            holdout = finding.holdout
            here: dict[str, Value] = {
                "size": finding.discovery.on,
                "discovery": finding.discovery.on_rate,
                "holdout": holdout.on_rate if holdout else None,
                "p": holdout.p_adjusted if holdout else None,
                "verdict": str(finding.verdict).replace("_", " "),
            }
            rows.append(PaperRow(f"{one.audited.label}: {finding.name}", here))
    rows += [PaperRow(name, paper={"discovery": rate}) for name, rate in _TABLE_4.items()]
    note = (
        f"SliceLine's {_SHOWN} best slices of each audit, searched among the discovery examples: "
        "units and error rate there, error rate on the holdout, and the verdict. The paper prints "
        "error rates, it does not say of which examples."
    )
    return PaperTable(
        "Table 4 of Janus, in form. SliceLine's best slices", note, columns, tuple(rows)
    )


def _range(rates: Sequence[float | None]) -> Value:
    defined_rates = [rate for rate in rates if rate is not None]
    return (min(defined_rates), max(defined_rates)) if defined_rates else None
