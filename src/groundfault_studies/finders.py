"""Slice finders in the tables of two papers, and a leaderboard of them.

References
----------
Repantis, Gawde and Singh (2026), *Decoy-Calibrated Failure Audits for Language Models*,
arXiv:2606.09046; and Hua et al., "Discover, Explain, Improve", TACL 11, 2023.
https://doi.org/10.1162/tacl_a_00617."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from groundfault.auditing.flow import audit
from groundfault.auditing.prepared import start_audit
from groundfault.core.finding import Finding
from groundfault.errors import InputError
from groundfault.finders.sliceline import ScoredSlice, SliceLine
from groundfault_studies import discover, improve, janus_audits, leaderboard
from groundfault_studies.janus_audits import Audited
from groundfault_studies.tables import Kind, Row, Study, Table, Value

Progress = Callable[[str], object]
Columns = dict[str, tuple[str, Kind]]

SOURCE = (
    "Repantis, Gawde and Singh (2026), arXiv:2606.09046; and Hua et al. (2023), Discover, Explain, Improve, TACL 11, "
    "https://doi.org/10.1162/tacl_a_00617"
)
SLICES = SliceLine(k=5, max_level=3, min_support=8)
"""The paper gives no settings; its printed slices are among what these search."""

_SHOWN = 2
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
    "LongBench v2: high_context_words=0 AND high_question_context_overlap=1 AND high_entity_phrase_density=0": "93%",
}


def study(
    shared: str | Path | None = None,
    *,
    judge: str | None = None,
    seeds: int = 5,
    replicates: int = 100,
    keep: str | Path | None = None,
    progress: Progress = bool,
) -> Study:
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
    seeds : int
        How often classifiers are trained, for the tables of DEIM.
    replicates : int
        Null worlds of the leaderboard.
    keep : path, optional
        File of the leaderboard's runs that are done, to go on from.
    progress : callable, optional

    Raises
    ------
    InputError
        If the folder is named and not there.
    PlanError
        If the judge is unknown or holds nothing out.
    """
    folder = _folder(shared)
    lacking = (
        ()
        if folder.is_dir()
        else (f"what needs the data in {folder}: name their folder with --shared",)
    )
    if judge:
        place = Path(keep) if keep else None
        tables = leaderboard.tables(folder / "real", judge, replicates, place, progress)
        settings = {"judge": judge, "replicates": replicates, "splits": leaderboard.SPLITS}
        return Study(
            "leaderboard", "Leaderboard of slice finders", SOURCE, settings, tables, lacking
        )
    title = "Slice finders in two papers' tables"
    found = discover.study(folder, seeds=seeds, progress=progress)
    tables = (
        *of_janus(folder, progress),
        *found.tables,
        *improve.acted(folder / "real", seeds, progress),
    )
    return Study("finders", title, SOURCE, {"seeds": seeds}, tables, lacking, found.figures)


def of_janus(folder: Path, progress: Progress = bool) -> tuple[Table, Table]:
    """Tables 2 and 4: slices searched on all examples as in the paper, and slices that had to hold
    on fresh ones.
    """
    searched = []
    for audited in _audits(folder):
        progress(f"searching {audited.label}")
        searched.append(_search(audited))
    return _table_2(searched), _table_4(searched)


@dataclass(frozen=True)
class _Searched:
    """An audit's slices: searched among all examples, and searched on discovery and then judged."""

    audited: Audited
    everywhere: tuple[ScoredSlice, ...]
    judged: tuple[Finding, ...]


def _search(audited: Audited) -> _Searched:
    plan = replace(audited.plan, judge="janus")
    case = start_audit(audited.evidence, plan)
    found = case.propose([SLICES])
    judged = audit(audited.evidence, plan, found, finders=[]).findings if found else ()
    order = {candidate.name: i for i, candidate in enumerate(found)}
    everywhere = replace(SLICES, min_share=0.1).find(audited.evidence)
    return _Searched(audited, everywhere, tuple(sorted(judged, key=lambda f: order[f.name])))


def _audits(folder: Path) -> Iterator[Audited]:
    yield janus_audits.scripted(seed=0)[0]
    if folder.is_dir():
        yield janus_audits.reconstruction(folder / "janus_public")
        yield janus_audits.null(folder / "janus_public")
        yield from janus_audits.real(folder / "real")


def _table_2(searched: Sequence[_Searched]) -> Table:
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
            "n": one.audited.scored,
            "error_rate": float(one.audited.evidence.loss.mean() or 0),  # type: ignore[arg-type]
            "all": _range([s.mean_error for s in one.everywhere]),
            "discovery": _range([f.discovery.on_rate for f in one.judged]),
            "holdout": _range([f.holdout.on_rate for f in one.judged if f.holdout]),
            "confirmed": f"{sum(f.confirmed for f in one.judged)} of {len(one.judged)} slices, "
            f"{len(one.audited.default_rule.confirmed)} descriptors",
        }
        rows.append(Row(one.audited.label, here, _TABLE_2.get(one.audited.beside, {})))
    beside = {one.audited.beside for one in searched}
    rows += [Row(name, paper=printed) for name, printed in _TABLE_2.items() if name not in beside]
    note = (
        "Slices, all: lowest and highest error rate of SliceLine's five best conjunctions of the examples' columns, "
        "searched among all examples, as in the paper. Then of those searched among the discovery examples alone: "
        "there, and on the holdout, and how many of them the default judge confirms; beside it how many of the single "
        "descriptors. The paper confirms descriptors only."
    )
    return Table(
        "Table 2 of Janus, in form. Slices that are found, and slices that hold",
        note,
        columns,
        tuple(rows),
    )


def _table_4(searched: Sequence[_Searched]) -> Table:
    columns: Columns = {
        "size": ("units", "count"),
        "discovery": ("errors", "rate"),
        "holdout": ("holdout", "rate"),
        "p": ("adj. p", "p"),
        "verdict": ("verdict", "text"),
    }
    rows = []
    for one in searched:
        for finding in one.judged[:_SHOWN]:
            held = finding.holdout
            here: dict[str, Value] = {
                "size": finding.discovery.on,
                "discovery": finding.discovery.on_rate,
                "holdout": held.on_rate if held else None,
                "p": held.p_adjusted if held else None,
                "verdict": str(finding.verdict).replace("_", " "),
            }
            rows.append(Row(f"{one.audited.label}: {finding.name}", here))
    rows += [Row(name, paper={"discovery": rate}) for name, rate in _TABLE_4.items()]
    note = (
        f"SliceLine's {_SHOWN} best slices of each audit, searched among the discovery examples: units and error rate "
        "there, error rate on the holdout, and the verdict. The paper prints error rates, it does not say of which "
        "examples."
    )
    return Table("Table 4 of Janus, in form. SliceLine's best slices", note, columns, tuple(rows))


def _range(rates: Sequence[float | None]) -> Value:
    known = [rate for rate in rates if rate is not None]
    return (min(known), max(known)) if known else None


def _folder(shared: str | Path | None) -> Path:
    named = shared or os.environ.get("GROUNDFAULT_SHARED")
    folder = Path(named or "../shared/data")
    if named and not folder.is_dir():
        raise InputError(
            f"no folder {folder}: name the one that holds janus_public and real (--shared DIR)"
        )
    return folder
