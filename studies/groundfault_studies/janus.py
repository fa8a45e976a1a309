"""The tables of the Janus paper, regenerated from a reconstruction, simulations and real models.

References
----------
Repantis, Gawde and Singh (2026), *Decoy-Calibrated Failure Audits for Language Models*,
arXiv:2606.09046. Its model outputs are not at hand: the controlled docs are a reconstruction that
has its printed rates and lifts, and in the place of MuSiQue and LongBench v2 stand other benchmarks
and other models."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from groundfault.auditing.report import Report
from groundfault.base.long_work import Progress, enough_threads, listener
from groundfault.core.finding import Finding, Verdict
from groundfault.core.plan import to_fraction
from groundfault.errors import InputError
from groundfault.judges.rule import rule
from groundfault.stats import bits
from groundfault_studies import janus_audits, janus_repeats
from groundfault_studies.controlled_docs import Packet
from groundfault_studies.janus_audits import JanusAudit
from groundfault_studies.janus_repeats import Columns, Here
from groundfault_studies.janus_structured import compare_decoys
from groundfault_studies.resuming import resume_tables
from groundfault_studies.shared_folder import HOW_TO_NAME, find_shared
from groundfault_studies.tables import PaperRow, PaperStudy, PaperTable, Value

SOURCE = (
    "Repantis, Gawde and Singh (2026), Decoy-Calibrated Failure Audits for Language Models, "
    "arXiv:2606.09046"
)
SLICES, MOST_PREDICATES, LEAST_ROWS = 5, 3, 8
"""How many slices are searched for, and of what kind; the paper does not say, but its two pockets
are among these.
"""

_TABLE_1 = {
    "long_chain": ("65.0%", "7.5%", "+0.58", "+0.67", "+0.48"),
    "long_x_indirect": ("72.5%", "24.2%", "+0.48", "+0.55", "+0.42"),
    "hard_join_combo": ("70.0%", "31.4%", "+0.39", "+0.44", "+0.34"),
    "long_x_collision": ("62.5%", "27.5%", "+0.35", "+0.27", "+0.42"),
    "flat_x_long": ("57.5%", "29.2%", "+0.28", "+0.27", "+0.30"),
    "target_late": ("22.5%", "50.0%", "−0.28", "−0.25", "−0.30"),
}
_TABLE_2 = {
    "Controlled docs": {"n": "160", "error_rate": "36%", "slices": "88–95%", "papers_rule": "6"},
    "MuSiQue": {"n": "150", "error_rate": "44%", "slices": "55–57%", "papers_rule": "0"},
    "LongBench v2": {"n": "115", "error_rate": "51%", "slices": "85–93%", "papers_rule": "0"},
}
_TABLE_3 = {
    "Controlled docs": ("10", "5", "8", "6", "6", "0.46", "0.34"),
    "MuSiQue": ("7", "5", "1", "0", "0", "n/a", "n/a"),
    "LongBench v2": ("34", "5", "20", "1", "0", "0.36", "0.05"),
}
_FAILED = {
    "holdout_support": "too few",
    "sign": "reversed",
    "min_effect": "too small",
    "p": "within chance",
}
_SAFEGUARDS: Columns = {
    "candidates": ("cand.", "count"),
    "top_k": ("top 5", "count"),
    "fixed": ("fixed", "count"),
    "decoy_only": ("decoy", "count"),
    "full": ("full", "count"),
    "discovery": ("disc.", "size"),
    "holdout": ("hold.", "size"),
}


SPLITS, QUICK_SPLITS = 200, 20


def study(
    shared: str | Path | None = None,
    *,
    splits: int | None = None,
    model: str | None = None,
    sizes: Sequence[int] | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Regenerate the paper's Tables 1 to 3 and its 200-split line, and compare the exact floor with
    drawn decoys.

    Parameters
    ----------
    shared : path, optional
        Folder with ``janus_public`` and ``real``; left out, ``$GROUNDFAULT_SHARED`` or
        ``../shared/data``. What needs it is left out where it is not there, and `Study.lacking`
        says so; the generated controlled docs need nothing.
    splits : int, optional
        Random splits, sets of scripted answers, and worlds for structured decoys; left out, 200, as
        the paper has splits, or quickly 20.
    model : str, optional
        A model that answers generated packets, such as ``openai/gpt-4o-mini``: it is audited beside
        the script. Its calls are recorded beside ``keep``.
    sizes : sequence of int, optional
        Rows of each table of the packets for ``model``, from 8; left out, 40, which makes prompts
        of some 4,000 tokens.
    jobs : int
        Processes for the splits; the answer does not depend on it.
    quick : bool
        Fewer splits: to see that it runs, not for conclusions.
    keep : path, optional
        File of the tables that are done; a study that was interrupted goes on from there.
    progress : callable, optional
        Called with a message at each step.

    Raises
    ------
    InputError
        If a folder is named and is not there.
    """
    progress = listener(progress)
    splits = splits or (QUICK_SPLITS if quick else SPLITS)
    folder = find_shared(shared)
    with enough_threads(0):
        progress("answering generated packets")
        scripted, packets, answers = janus_audits.scripted_audit(seed=0)
        audits, lacking = _audits(folder, scripted, progress)
        own = [janus_audits.ask_packets(model, sizes, keep, progress)] if model else []
        audits += own
        first = [audited for audited in audits if audited.beside]
        tables = {
            **{f"descriptors of {one.label}": partial(_descriptors, one) for one in (*first, *own)},
            "main audits": partial(_summary, audits, progress),
            "safeguards": partial(_ablation, audits, splits, progress),
            "splits": partial(_robustness, audits, splits, jobs, progress),
            **{
                f"decoys of {one.label}": partial(janus_repeats.floors, one, progress)
                for one in first
            },
            "error classes": partial(_classes, packets, answers),
            "descriptors of the script": partial(_descriptors, scripted),
            "recovery": partial(janus_repeats.recovery, scripted, packets, splits, progress),
            "structured decoys": partial(compare_decoys, splits, progress),
        }
        hashes = "".join(audited.evidence.hash for audited in audits)
        data = hashlib.sha256(hashes.encode()).hexdigest()[:12]
        named = {f"{name}, {splits} splits, {data}": make for name, make in tables.items()}
        finished = resume_tables(named, keep, progress)
    settings = {"splits": splits, "shared": str(folder)}
    return PaperStudy(
        "janus",
        "Janus: the paper's tables, regenerated",
        SOURCE,
        settings,
        finished,
        tuple(lacking),
    )


def _audits(
    folder: Path, scripted: JanusAudit, progress: Progress
) -> tuple[list[JanusAudit], list[str]]:
    """Every audit that there are data for, those of controlled docs first, and what is lacking for
    the others.
    """
    progress(f"reading {folder}")
    audits, lacking = [scripted], []
    try:
        public = folder / "janus_public"
        audits = [janus_audits.reconstruction(public), scripted, janus_audits.null_audit(public)]
    except InputError as error:
        lacking.append(f"the reconstruction of Table 1 and the simulated null: {error}")
    try:
        audits += list(janus_audits.real_audits(folder / "real"))
    except InputError as error:
        lacking.append(f"audits of real models: {error}")
    return audits, [
        *lacking,
        HOW_TO_NAME,
    ] if lacking else []


def _descriptors(audited: JanusAudit) -> PaperTable:
    """Table 1: error rates on and off each descriptor, and its lifts."""
    columns: Columns = {
        "on": ("on", "rate"),
        "off": ("off", "rate"),
        "full": ("full", "lift"),
        "discovery": ("disc.", "lift"),
        "holdout": ("hold.", "lift"),
        "p": ("adj. p", "p"),
        "verdict": ("verdict", "text"),
        "default": ("default's verdict", "text"),
    }
    report, default = audited.exact_rule, audited.default_rule
    said = {finding.name: _name_verdict(finding) for finding in default.findings}
    rows = tuple(
        PaperRow(f.name, _numbers(f) | {"default": said[f.name]}, _paper_numbers(f.name))
        for f in report.findings
    )
    table = PaperTable(f"Table 1. {audited.label}", "", columns, rows)
    both = (
        f"The paper's rule confirms {len(audited.papers_rule.confirmed)}, the judge janus "
        f"{len(report.confirmed)}, and the default (auto) {len(default.confirmed)}"
    )
    lifts = "Error rates on and off, and lifts on all examples, on discovery and on the holdout."
    if audited.beside:
        same, of = table.agreement()
        note = (
            f"{lifts} A reconstruction, not the authors' data: error counts and split were solved "
            f"for so that the printed numbers come out, and {same} of {of} do; the verdicts follow "
            f"from them. {both}. long_x_late stands for the tenth candidate, which the paper does "
            "not name."
        )
    elif not audited.label.endswith(janus_audits.SCRIPTED):
        note = f"{lifts} The model answers packets generated here. {both}."
    else:
        note = (
            f"{lifts} A script answers packets generated here: it stops early on long chains and "
            "has no other weakness, so that long_chain has about the paper's rates by design and "
            "target_late has no effect at all: other lifts than the paper's are no contradiction. "
            f"{both}; the next table says how that varies."
        )
    return replace(table, note=note)


def _numbers(finding: Finding) -> dict[str, Value]:
    full, holdout = finding.full, finding.holdout
    return {
        "on": full.on_rate,
        "off": full.off_rate,
        "full": full.lift,
        "discovery": finding.discovery.lift,
        "holdout": holdout.lift if holdout else None,
        "p": holdout.p_adjusted if holdout else None,
        "verdict": _name_verdict(finding),
    }


def _name_verdict(finding: Finding) -> str:
    return str(finding.verdict).replace("_", " ")


def _paper_numbers(name: str) -> dict[str, str]:
    keys = ("on", "off", "full", "discovery", "holdout")
    return dict(zip(keys, _TABLE_1[name], strict=True)) if name in _TABLE_1 else {}


def _summary(audits: Sequence[JanusAudit], progress: Progress) -> PaperTable:
    """Table 2: what slice search finds, what Janus confirms, and what the audit could have seen."""

    def here(audited: JanusAudit) -> dict[str, Value]:
        progress(f"judging {audited.label}")
        report = audited.default_rule
        return {
            "n": audited.example_count,
            "error_rate": report.error_rate,
            "slices": _top_slices(audited),
            "papers_rule": len(audited.papers_rule.confirmed),
            "janus": len(audited.exact_rule.confirmed),
            "default": len(report.confirmed),
            "least": report.minimum_detectable_lift,
            "reading": _reading(report),
        }

    columns: Columns = {
        "n": ("n", "count"),
        "error_rate": ("errors", "rate"),
        "slices": ("slices", "rate"),
        "papers_rule": ("janus-a", "count"),
        "janus": ("janus", "count"),
        "default": ("auto", "count"),
        "least": ("least", "size"),
        "reading": ("reading", "text"),
    }
    note = (
        f"Slices: error rates of SliceLine's {SLICES} best conjunctions of at least {LEAST_ROWS} "
        "examples, on all examples, as in the paper. Then how many are confirmed by the paper's "
        "rule (janus-a, with the exact floor), by janus, which also asks for an exact p-value and "
        "counts duplicates once, and by the default (auto): max-t on all examples, or split-holm "
        "where a column says what is held out. "
        "Least: the smallest lift that the default would have confirmed with 80% power at "
        "prevalence 30%; smaller ones are not excluded. gsm and crux are neither the paper's "
        "benchmarks nor its model; two are cut to its sizes, and the same model on all examples "
        "shows what they could not see. Answers that could not be parsed, and known grader "
        "artefacts, are not scored and not in n."
    )
    return PaperTable(
        "Table 2, in form. Main audits", note, columns, _beside(audits, here, _TABLE_2)
    )


def _reading(report: Report) -> str:
    """What may be said, in a few words."""
    if not report.confirmed:
        reasons = Counter(
            f.reason.split(":")[0]
            for f in report.findings
            if f.verdict in (Verdict.TOO_SMALL, Verdict.NOT_REPLICATED)
        )
        if not reasons:
            return "none beyond chance"
        return f"{reasons.total()} screened, most {_FAILED[reasons.most_common(1)[0][0]]}"
    more = len(report.confirmed) - 1
    return report.confirmed[0].name + (f" and {more} more" if more else "")


def _top_slices(audited: JanusAudit) -> tuple[float, float] | None:
    """Lowest and highest error rate of the best conjunctions of candidates and their
    complements.
    """
    from groundfault_lab.slicing.sliceline import SliceLine

    units = audited.units
    rows = np.ones(len(units), dtype=np.bool_) if units.scored is None else units.scored[0]
    on = bits.unpack(units.marks.on, len(units)).T[rows].astype(np.int64)
    search = SliceLine(k=SLICES, max_level=MOST_PREDICATES, min_support=LEAST_ROWS)
    rates = [slice_.mean_error for slice_ in search.fit(on, units.losses[0][rows]).slices_]
    return (min(rates), max(rates)) if rates else None


def _ablation(audits: Sequence[JanusAudit], splits: int, progress: Progress) -> PaperTable:
    """Table 3: what is reported as safeguards are taken away, by Janus-lite."""

    def here(audited: JanusAudit) -> dict[str, Value]:
        progress(f"taking safeguards away from {audited.label}")
        base, count = audited.lite.baselines, audited.lite.candidates.tested
        assert base is not None
        means = base.survivor_mean_abs_lift
        rules = (base.top_k, base.fixed_lift, base.decoy_only, base.full)
        lifts = (means.discovery, means.holdout) if means else (None, None)
        return dict(zip(_SAFEGUARDS, [count, *map(len, rules), *lifts], strict=True))

    paper = {
        name: dict(zip(_SAFEGUARDS, numbers, strict=True)) for name, numbers in _TABLE_3.items()
    }
    rows = list(_beside(audits, here, paper))
    note = (
        "Reported by: the five largest lifts; lifts of at least 0.10; lifts above the 95% floor of "
        "decoys (Janus-lite, exact; the paper draws 200 decoys); and those that also repeat on the "
        "holdout. Then the mean |lift| on discovery and on the holdout of what lies above the "
        "floor: how far it shrinks is the winner's curse."
    )
    if audits[0].beside:
        rows.insert(1, PaperRow(f"  medians, {splits} splits", _lite_medians(audits[0], splits)))
        note += (
            " In the reconstruction the floor is 0.25 and so is target_late's lift, which is not "
            "above it: five, not six. The paper's means for six, 0.46 and 0.34, are not those of "
            "the six in its Table 1, 0.41 and 0.38: it rests on another split, or another six."
        )
    return PaperTable("Table 3, in form. Safeguards taken away", note, _SAFEGUARDS, tuple(rows))


def _lite_medians(audited: JanusAudit, splits: int) -> dict[str, Value]:
    case, units = audited.case("janus-lite"), audited.units
    measures = np.full((splits, len(_SAFEGUARDS)), np.nan)
    for number in range(splits):
        discovery, holdout = janus_repeats.random_split(case, units, number)
        verdicts = rule(
            case.judge, case.plan, discovery, holdout, units.marks, f"study/{number}"
        ).verdicts
        testable, stays, full = (
            np.array([v in group for v in verdicts])
            for group in (
                set(Verdict) - {Verdict.UNTESTABLE},
                {Verdict.CONFIRMED, Verdict.TOO_SMALL, Verdict.NOT_REPLICATED},
                {Verdict.CONFIRMED},
            )
        )
        fixed = testable & discovery.tables.reaches(to_fraction(case.plan.min_lift or 0))
        measures[number, :5] = (
            testable.sum(),
            min(5, testable.sum()),
            fixed.sum(),
            stays.sum(),
            full.sum(),
        )
        if stays.any():
            measures[number, 5:] = [
                np.abs(part.tables.lift[stays]).mean() for part in (discovery, holdout)
            ]
    medians = np.nanmedian(measures, axis=0)
    return {
        key: None if np.isnan(value) else float(value) if kind == "size" else round(value)
        for (key, (_, kind)), value in zip(_SAFEGUARDS.items(), medians, strict=True)
    }


def _robustness(
    audits: Sequence[JanusAudit], splits: int, jobs: int, progress: Progress
) -> PaperTable:
    rows = _beside(
        audits, janus_repeats.robustness(splits, jobs, progress), janus_repeats.ROBUSTNESS_PRINTED
    )
    title, note = (
        f"Appendix C, in form. {splits} random splits",
        janus_repeats.robustness_note(splits),
    )
    return PaperTable(title, note, janus_repeats.ROBUSTNESS, rows)


def _classes(packets: Sequence[Packet], answers: Sequence[str]) -> PaperTable:
    """What the scripted reader returned, on short and on long chains."""
    columns: Columns = {
        "short": ("short chain", "count"),
        "long": ("long chain", "count"),
        "all": ("all", "count"),
    }
    counts = Counter(
        (word, packet.long_chain) for packet, word in zip(packets, answers, strict=True)
    )
    rows = []
    for word in ("correct", "vendor", "subsidiary", "other_code", "malformed"):
        short, long = counts[word, False], counts[word, True]
        paper = {"all": "102"} if word == "correct" else {}
        rows.append(
            PaperRow(
                word.replace("_", " "), {"short": short, "long": long, "all": short + long}, paper
            )
        )
    note = (
        "What a scripted reader returned to generated packets. The paper gives no counts by class: "
        "its model answered 102 of 160 packets, and many of its errors were an intermediate vendor "
        "or subsidiary."
    )
    return PaperTable("Error classes. Controlled docs, scripted reader", note, columns, tuple(rows))


def _beside(
    audits: Sequence[JanusAudit], here: Here, paper: Mapping[str, Mapping[str, str]]
) -> tuple[PaperRow, ...]:
    """A row an audit, the paper's below the one it belongs to, and the paper's other ones after
    controlled docs.
    """
    rows = [
        PaperRow(audited.label, here(audited), paper.get(audited.beside, {})) for audited in audits
    ]
    at = 1 + next(
        i
        for i, audited in enumerate(audits)
        if audited.library.sources.keys() == {"controlled_docs"}
    )
    alone = [
        PaperRow(name, {}, numbers)
        for name, numbers in paper.items()
        if name not in {a.beside for a in audits}
    ]
    return (*rows[:at], *alone, *rows[at:])
