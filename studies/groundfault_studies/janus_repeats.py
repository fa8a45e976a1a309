"""What the Janus study repeats: random splits, seeds of the decoys, and fresh answers of the
scripted reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.results import confirmation_frequency
from groundfault.base.long_work import Progress
from groundfault.core.finding import Verdict
from groundfault.core.plan import AUTO
from groundfault.core.units import Units
from groundfault.judges.rule import rule
from groundfault_studies.controlled_docs import Packet
from groundfault_studies.janus_audits import JanusAudit, grade_answers
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Columns = dict[str, tuple[str, Kind]]
Here = Callable[[JanusAudit], dict[str, Value]]

DRAWN = {200: 400, 2000: 50}
"""Decoys drawn, and how many seeds of them."""

_PAPERS_SIZE = 160


def random_split(case: PreparedAudit, units: Units, number: int) -> tuple[Units, Units]:
    """One random half to see and the other to hold out, the same ones for the same number."""
    holdout = np.zeros(len(units), dtype=np.bool_)
    holdout[case.plan.rng(f"study/{number}").permutation(len(units))[: len(units) // 2]] = True
    return units.select_units(~holdout), units.select_units(holdout)


ROBUSTNESS: Columns = {
    "nonempty": ("exact floor", "rate"),
    "drawn": ("drawn decoys", "rate"),
    "confirmed": ("main", "rate"),
    "others": ("others", "rate"),
}
ROBUSTNESS_PRINTED = {
    "Controlled docs": {"drawn": "200 of 200", "confirmed": "65–100%"},
    "MuSiQue": {"drawn": "3 of 200", "others": "at most 3%"},
    "LongBench v2": {"drawn": "6 of 200", "others": "at most 3%"},
}


def robustness(splits: int, jobs: int, progress: Progress) -> Here:
    """Appendix C: how often anything is confirmed over random splits, and each descriptor."""

    def here(audited: JanusAudit) -> dict[str, Value]:
        progress(f"splitting {audited.label} {splits} times")
        case = audited.case()
        exact = confirmation_frequency(case.judge, case.plan, audited.units, splits, jobs)
        decoy_frequency = None
        if audited.example_count <= _PAPERS_SIZE:
            plan = replace(case.plan, decoys=200 if audited.label.startswith("Controlled") else 100)
            decoy_frequency = confirmation_frequency(case.judge, plan, audited.units, splits, jobs)
        main = {f.name for f in audited.papers_rule.confirmed}
        ours = np.array([c.name in main for c in audited.library])
        inside, outside = exact.confirmed[ours], exact.confirmed[~ours]
        return {
            "nonempty": exact.nonempty,
            "drawn": decoy_frequency.nonempty if decoy_frequency else None,
            "confirmed": (float(inside.min()), float(inside.max())) if len(inside) else None,
            "others": float(outside.max()) if len(outside) else None,
        }

    return here


def robustness_note(splits: int) -> str:
    """What the numbers of `robustness` are."""
    return (
        f"Share of {splits} random splits (the paper: 200) in which the paper's rule confirms "
        "anything: with the exact floor; and at the paper's sizes with drawn decoys too (200 for "
        "controlled docs, 100 for the others). Main: lowest and highest share, with the exact "
        "floor, in which a finding of the main split is confirmed. Others: the highest of any "
        "other descriptor. In gsm and crux there is something to find, so a nonempty split is no "
        "error there as it is in the simulated null. All splits reuse one sample: no share is a "
        "probability of being true."
    )


def floors(audited: JanusAudit, progress: Progress) -> PaperTable:
    """The exact floor against drawn decoys: what the findings owe to the seed of the decoys."""
    columns: Columns = {
        "seeds": ("seeds", "count"),
        "six": ("six", "rate"),
        "five": ("five", "rate"),
        "four": ("four", "rate"),
        "three": ("three", "rate"),
        "floor": ("floor", "size"),
    }
    rows = []
    for name in ("janus-a", "janus-lite"):
        rows.append(PaperRow(f"{name}, exact", _count_confirmed(audited, name, None, 1)))
        for decoys, seeds in DRAWN.items():
            progress(f"drawing {decoys} decoys {seeds} times")
            rows.append(
                PaperRow(f"{name}, K = {decoys:,}", _count_confirmed(audited, name, decoys, seeds))
            )
    note = (
        "The same data and the same split: only the decoys are drawn anew. Share of decoy seeds in "
        "which so many descriptors are confirmed, and the lowest and highest floor. The paper "
        "draws K = 200 once for each rule and reports six by both. The exact floor is what "
        "infinitely many decoys give, and needs no seed."
    )
    return PaperTable(
        f"Exact floor against drawn decoys. {audited.label}", note, columns, tuple(rows)
    )


def _count_confirmed(
    audited: JanusAudit, name: str, decoys: int | None, seeds: int
) -> dict[str, Value]:
    case = audited.case(name)
    discovery, holdout = case.parts(case.losses())
    sizes: Counter[int] = Counter()
    floors = []
    for seed in range(seeds):
        ruling = rule(
            case.judge, replace(case.plan, decoys=decoys, seed=seed), discovery, holdout, case.marks
        )
        sizes[sum(v is Verdict.CONFIRMED for v in ruling.verdicts)] += 1
        if (
            ruling.screening
            and ruling.screening.floor
            and ruling.screening.floor.threshold is not None
        ):
            floors.append(ruling.screening.floor.threshold)
    words = {"six": 6, "five": 5, "four": 4, "three": 3}
    return {
        "seeds": seeds if decoys else None,
        **{word: sizes[size] / seeds for word, size in words.items()},
        "floor": (min(floors), max(floors)) if floors else None,
    }


def recovery(
    audited: JanusAudit, packets: Sequence[Packet], sets: int, progress: Progress
) -> PaperTable:
    """How often each descriptor is confirmed when the scripted reader answers anew, and is split
    anew.
    """
    progress(f"answering the packets {sets} times")
    columns: Columns = {
        "lift": ("mean full lift", "lift"),
        "papers_rule": ("janus-a", "rate"),
        "janus": ("janus", "rate"),
        "default": ("auto", "rate"),
    }
    judges = {"papers_rule": "janus-a", "janus": "janus", "default": AUTO}
    cases = {key: audited.case(judge) for key, judge in judges.items()}
    marks = audited.units.marks
    in_order = sorted(packets, key=lambda packet: packet.item_id)
    lifts = np.zeros((sets, len(audited.library)))
    hits = {key: np.zeros((sets, len(audited.library)), dtype=np.bool_) for key in cases}
    for number in range(sets):
        words = grade_answers(in_order, np.random.default_rng([number, 2]))
        units = Units.of(marks, np.array([[word != "correct" for word in words]], dtype=np.float64))
        lifts[number] = units.tables.lift
        for key, case in cases.items():
            # the default holds nothing out
            whole = case.judge.confirmation == "none"
            discovery, holdout = (units, None) if whole else random_split(case, units, number)
            ruling = rule(case.judge, case.plan, discovery, holdout, marks, f"study/{number}")
            hits[key][number] = [v is Verdict.CONFIRMED for v in ruling.verdicts]
    rows = [
        PaperRow(
            c.name,
            {
                "lift": float(lifts[:, j].mean()),
                **{key: float(hit[:, j].mean()) for key, hit in hits.items()},
            },
        )
        for j, c in enumerate(audited.library)
    ]
    family = np.array(["long_chain" in c.columns for c in audited.library])
    rows.append(
        PaperRow(
            "any without long_chain",
            {key: float(hit[:, ~family].any(axis=1).mean()) for key, hit in hits.items()},
        )
    )
    note = (
        f"The packets answered {sets} times over by the script, each time split anew, and the "
        "share in which each descriptor is confirmed by the paper's rule, by janus and by the "
        "default (auto: max-t on all examples). "
        "Only stopping early on long chains was planted: what contains long_chain ought to be "
        "confirmed, as often as 160 packets allow; what does not is confirmed by mistake. The "
        "paper has one set of answers, of a model."
    )
    return PaperTable(
        "Planted and recovered. Controlled docs, scripted reader", note, columns, tuple(rows)
    )
