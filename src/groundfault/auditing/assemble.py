"""Assembling: verdicts and arrays become findings and a report."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groundfault.auditing import detectable, grouping, messages
from groundfault.auditing.leaks import LEAK
from groundfault.auditing.prepared import Case
from groundfault.auditing.report import SCHEMA_VERSION, Report
from groundfault.core.finding import Cell, Finding, Verdict
from groundfault.core.plan import exact
from groundfault.core.units import Units
from groundfault.judges.rule import Ruling, duplicates
from groundfault.stats import bits, intervals, multiple
from groundfault.stats.contingency import Margins

if TYPE_CHECKING:
    from groundfault.auditing.robustness import Frequency
    from groundfault.base.ledger import Opening

_TOP_K = 5
_EXAMPLES = 5
_MOST_CORRELATED = 1000
_UNITS_CORRELATED = 20_000
_ORDER = {
    Verdict.CONFIRMED: 0,
    Verdict.NOT_REPLICATED: 1,
    Verdict.BELOW_FLOOR: 2,
    Verdict.UNTESTABLE: 3,
}


@dataclass(frozen=True)
class _Parts:
    """What findings are made of."""

    case: Case
    ruling: Ruling
    seen: Units
    held: Units | None
    full: Units

    @cached_property
    def aliases(self) -> list[tuple[str, ...]]:
        """For each candidate the names of those true for the same units, or ("not ...") for exactly
        the others.
        """
        marks, names = self.case.marks, [c.name for c in self.case.library]
        first = duplicates(marks)
        members: dict[int, list[int]] = {}
        for j, lead in enumerate(first):
            members.setdefault(int(lead), []).append(j)
        same = [[i for i in members[int(first[j])] if i != j] for j in range(len(names))]
        return [
            tuple(
                names[i] if np.array_equal(marks.on[i], marks.on[j]) else f"not {names[i]}"
                for i in twins
            )
            for j, twins in enumerate(same)
        ]

    @cached_property
    def position(self) -> dict[int, int]:
        """Where each hypothesis' answer stands among those judged."""
        return self.ruling.position()


def assemble(
    case: Case,
    ruling: Ruling,
    seen: Units,
    held: Units | None,
    losses: NDArray[np.float64],
    opening: Opening | None,
    sensitivity: dict[str, Ruling],
    frequency: Frequency | None,
) -> Report:
    """Make the report of an audit."""
    parts = _Parts(case, ruling, seen, held, case.units(losses))
    leads = grouping.leads(ruling, case.marks, seen if held is None else held)
    cells = _cells(parts)
    findings = [
        _finding(parts, h, cells, leads, sensitivity, frequency)
        for h in range(len(ruling.verdicts))
    ]
    findings.sort(key=lambda f: (_ORDER[f.verdict], -abs(f.discovery.lift or 0.0)))
    summary = _summary(parts, findings, opening, frequency)
    return Report(tuple(findings), summary, case.library)


def _finding(
    parts: _Parts,
    h: int,
    cells: dict[str, list[Cell] | None],
    leads: dict[int, int],
    sensitivity: dict[str, Ruling],
    frequency: Frequency | None,
) -> Finding:
    case, ruling = parts.case, parts.ruling
    j, o = divmod(h, len(case.outcomes))
    candidate, outcome, verdict = case.library[j], case.outcomes[o], ruling.verdicts[h]
    discovery, holdout, full = (column[h] if column else None for column in cells.values())
    assert discovery is not None
    assert full is not None
    position = parts.position.get(h) if ruling.screening else None
    expected = (
        ruling.screening.decoys if ruling.screening and not case.mined_here(candidate) else None
    )
    return Finding(
        candidate.name,
        candidate.rule,
        candidate.meaning,
        candidate.source,
        outcome,
        verdict,
        messages.reason(verdict, ruling.reasons[h], case.judge),
        messages.sentence(
            verdict,
            candidate.meaning,
            case.what(o),
            discovery,
            holdout,
            case.plan,
            messages.guarantee(case.judge, case.plan, len(ruling.judged)),
        ),
        discovery,
        holdout,
        full,
        aliases=parts.aliases[j],
        lead=case.library[leads[h] // len(case.outcomes)].name if h in leads else None,
        decoys=None if position is None or expected is None else float(expected[position]),
        sensitivity={name: str(other.verdicts[h]) for name, other in sensitivity.items()},
        frequency=None if frequency is None else float(frequency.confirmed[h]),
    )


def _cells(parts: _Parts) -> dict[str, list[Cell] | None]:
    """The numbers of every hypothesis on each part of the units, with the p-values that belong
    there.
    """
    ruling, position, outcomes = parts.ruling, parts.position, len(parts.case.outcomes)
    size = len(ruling.verdicts)
    own, adjusted, held_p, held_adjusted = (np.full(size, np.nan) for _ in range(4))
    for h, i in position.items():
        # what was mined from these very units has no p-value on them
        screening = (
            None if parts.case.mined_here(parts.case.library[h // outcomes]) else ruling.screening
        )
        if screening and screening.p is not None:
            own[h] = screening.p[i]
        if screening and screening.p_adjusted is not None:
            adjusted[h] = screening.p_adjusted[i]
        if ruling.confirmed:
            held_p[h], held_adjusted[h] = ruling.confirmed.p[i], ruling.confirmed.p_adjusted[i]
    seen = _cell_column(parts, parts.seen, own, adjusted)
    if parts.held is None:
        return {"discovery": seen, "holdout": None, "full": seen}
    nothing = np.full(size, np.nan)
    return {
        "discovery": seen,
        "holdout": _cell_column(parts, parts.held, held_p, held_adjusted),
        "full": _cell_column(parts, parts.full, nothing, nothing),
    }


def _cell_column(
    parts: _Parts, units: Units, p: NDArray[np.float64], adjusted: NDArray[np.float64]
) -> list[Cell]:
    margins = units.margins
    low, high = _intervals(parts, units, margins)
    on_sum, total = margins.on_sum / margins.unit, margins.total / margins.unit
    return [
        Cell(
            int(margins.on[h]),
            int(margins.off[h]),
            _tidy(on_sum[h]),
            _tidy(total[h] - on_sum[h]),
            _number(margins.lift[h]),
            _number(p[h]),
            _number(adjusted[h]),
            None if np.isnan(low[h]) else (float(low[h]), float(high[h])),
        )
        for h in range(len(margins))
    ]


def _intervals(
    parts: _Parts, units: Units, margins: Margins
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    level, effect = 1 - float(exact(parts.case.plan.alpha)), parts.case.plan.effect
    sided = (margins.on > 0) & (margins.off > 0)
    low, high = np.full(len(margins), np.nan), np.full(len(margins), np.nan)
    on, off = margins.on[sided].astype(float), margins.off[sided].astype(float)
    on_sum = margins.on_sum[sided] / margins.unit
    off_sum = margins.total[sided] / margins.unit - on_sum
    if effect != "risk_difference":
        low[sided], high[sided] = intervals.log_ratio(effect, on_sum, on, off_sum, off, level)
    elif margins.denominator == 1:
        low[sided], high[sided] = intervals.newcombe(on_sum, on, off_sum, off, level)
    else:
        on_squares, squares = (a[sided] for a in units.squares())
        low[sided], high[sided] = intervals.welch(
            (on, on_sum, on_squares), (off, off_sum, squares - on_squares), level
        )
    return low, high


def _summary(
    parts: _Parts, findings: Sequence[Finding], opening: Opening | None, frequency: Frequency | None
) -> dict[str, Any]:
    case, ruling = parts.case, parts.ruling
    margins = parts.full
    reasons = Counter(
        code
        for codes, v in zip(ruling.reasons, ruling.verdicts, strict=True)
        for code in codes
        if v is Verdict.UNTESTABLE
    )
    scored = margins.scored.sum() if margins.scored is not None else margins.losses.size
    least = _detectable(parts)
    confirmed = sum(f.confirmed for f in findings)
    return {
        "schema_version": SCHEMA_VERSION,
        "groundfault_version": version("groundfault"),
        "n": case.evidence.unit_count,
        "n_discovery": int(case.seen.sum()),
        "n_holdout": int((~case.seen).sum()),
        "rows": len(case.evidence),
        "unit": "group" if case.evidence.roles.group else "example",
        "outcomes": list(case.outcomes),
        "error_rate": float(margins.losses.sum() / (margins.denominator or 1) / scored),
        "statuses": case.evidence.status_counts,
        "judge": case.judge.name,
        "guarantee": messages.guarantee(case.judge, case.plan, len(ruling.judged)),
        "plan": case.plan.settings,
        "library": {
            "size": len(case.library),
            "hypotheses": len(ruling.verdicts),
            "tested": sum(v is not Verdict.UNTESTABLE for v in ruling.verdicts),
            "distinct": len(ruling.judged),
            "effective": _effective(parts),
            "sources": case.library.sources,
        },
        "ineligible": dict(reasons),
        "floor": _floor(ruling),
        "minimum_detectable_lift": least[detectable.USUAL_PREVALENCE],
        "power": {
            "power": detectable.POWER,
            "prevalence": detectable.USUAL_PREVALENCE,
            "minimum_detectable_lift": {str(k): v for k, v in least.items()},
        },
        "conclusion": messages.nothing_found(
            least[detectable.USUAL_PREVALENCE], detectable.USUAL_PREVALENCE, confirmed
        ),
        "baselines": _baselines(parts),
        "robustness": None
        if frequency is None
        else {"splits": frequency.splits, "nonempty": frequency.nonempty},
        "ledger": None if opening is None else asdict(opening) | {"sentence": opening.sentence},
        "hints": _hints(parts),
        "examples": _examples(parts, findings),
        "hashes": {
            "evidence": case.evidence.hash,
            "outcome": case.evidence.outcome_hash,
            "library": case.library.hash,
            "plan": case.plan.seal(),
            "split": case.split_hash,
        },
        "manifest": {
            "sources": list(case.evidence.provenance),
            "roles": asdict(case.evidence.roles),
            "reading": case.evidence.reading,
            "account": case.evidence.account.to_dict() if case.evidence.account else None,
            "models": list(case.evidence.models) if case.evidence.roles.model else None,
            "compare": list(case.compare) if case.compare else None,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "polars": version("polars"),
        },
    }


def _floor(ruling: Ruling) -> dict[str, Any]:
    """The floor and its curve; empty for judges that set none, and where nothing could be
    tested.
    """
    floor = ruling.screening.floor if ruling.screening else None
    if floor is None:
        return {"threshold": None, "fdp": None, "inclusive": True, "curve": []}
    return {
        "threshold": floor.threshold,
        "fdp": floor.fdp,
        "inclusive": floor.inclusive,
        "curve": floor.curve,
    }


def _effective(parts: _Parts) -> float | None:
    """How many independent tests the tested candidates amount to; None for libraries too large to
    say quickly.
    """
    tested = np.unique(parts.ruling.judged // len(parts.case.outcomes))
    if len(tested) > _MOST_CORRELATED:
        return None
    marks = parts.case.marks
    words = bits.words(min(marks.size, _UNITS_CORRELATED))
    rows = bits.unpack(np.ascontiguousarray(marks.on[tested, :words]), min(marks.size, 64 * words))
    return round(multiple.effective_tests(rows), 1)


def _baselines(parts: _Parts) -> dict[str, Any] | None:
    """What weaker rules would have reported: the paper's ablations, and the winner's curse of the
    survivors.
    """
    ruling, case = parts.ruling, parts.case
    if ruling.screening is None or parts.held is None:
        return None
    tested = [h for h, v in enumerate(ruling.verdicts) if v is not Verdict.UNTESTABLE]
    lift, least = parts.seen.margins, exact(case.plan.min_lift or 0)
    size = np.abs(lift.lift)
    survivors = [
        h for h in tested if ruling.verdicts[h] in (Verdict.CONFIRMED, Verdict.NOT_REPLICATED)
    ]
    held = np.abs(parts.held.margins.lift)
    reaches = lift.reaches(least)

    def names(hypotheses: Sequence[int]) -> list[str]:
        return [case.library[h // len(case.outcomes)].name for h in hypotheses]

    return {
        "fixed_lift": names([h for h in tested if reaches[h]]),
        "top_k": names(sorted(tested, key=lambda h: -size[h])[:_TOP_K]),
        "decoy_only": names(survivors),
        "full": names([h for h in tested if ruling.verdicts[h] is Verdict.CONFIRMED]),
        "survivor_mean_abs_lift": None
        if not survivors
        else {
            "discovery": float(size[survivors].mean()),
            "holdout": _number(float(held[survivors].mean())),
        },
    }


def _hints(parts: _Parts) -> list[str]:
    case, hints = parts.case, []
    rate = float(parts.full.losses.mean() / (parts.full.denominator or 1))
    if case.plan.effect == "risk_difference" and rate < 2 * float(exact(case.plan.min_lift or 0)):
        hints.append(
            f"errors are rare ({rate:.1%}): a lift of {float(exact(case.plan.min_lift or 0)):g} may be out of reach; "
            "effect='risk_ratio' (--effect risk_ratio) asks for a ratio instead"
        )
    counts = case.evidence.status_counts
    unscored = {k: v for k, v in counts.items() if k != "scored" and v}
    if unscored:
        said = ", ".join(f"{v} {k}" for k, v in unscored.items())
        hints.append(
            f"{said}: not scored, in no error rate; the findings say whether their verdict depends on it"
        )
    if case.leaks:
        named = ", ".join(map(repr, case.leaks))
        hints.append(
            f"left out, because over {LEAK:.0%} of the rarer outcome can be told from it: {named}; --allow-leak uses a "
            "column all the same, --post-outcome says that it follows from the outcome"
        )
    edge = _at_the_edge(parts)
    if edge:
        low, high = (float(exact(x)) for x in case.plan.prevalence or (0, 1))
        hints.append(
            f"{edge} candidate{'s lie' if edge > 1 else ' lies'} within chance of the edge of the prevalence window "
            f"[{low:g}, {high:g}], and may be tested in one split and not in another; --prevalence sets the window"
        )
    if parts.full.strata is not None:
        hints.append(
            "groups differ in size: only those of like size are permuted, at random, and p-values are sampled"
        )
    elif (
        parts.ruling.screening
        and not parts.seen.countable(parts.ruling.judged)
        and parts.full.denominator
    ):
        hints.append(
            "the grid of losses is too fine to count at this size: laws are approximated and p-values sampled"
        )
    elif parts.full.denominator == 0:
        hints.append(
            "losses share no grid of 1/100 or coarser: laws are approximated and p-values sampled, with the +1"
        )
    return hints


def _at_the_edge(parts: _Parts) -> int:
    """Candidates that another split of the same units could well put on the other side of the
    prevalence window.
    """
    if parts.held is None:
        return 0
    n, on = parts.case.marks.counts()
    share = on / np.maximum(n, 1)
    spread = np.sqrt(
        share * (1 - share) / len(parts.seen) * len(parts.held) / parts.case.evidence.unit_count
    )
    edges = [float(exact(edge)) for edge in parts.case.plan.prevalence or ()]
    near = [np.abs(share - edge) < 2 * spread for edge in edges if 0 < edge < 1]
    return int(np.any(near, axis=0).sum()) if near else 0


def _examples(parts: _Parts, findings: Sequence[Finding]) -> dict[str, list[str]]:
    """A few failed examples of each confirmed slice, by id."""
    case = parts.case
    units = case.evidence.unit_names
    place = {c.name: j for j, c in enumerate(case.library)}
    failed = np.nan_to_num(case.losses()) > 0
    out = {}
    for finding in findings:
        if finding.confirmed:
            on = bits.unpack(case.marks.on[[place[finding.name]]], case.marks.size)[0]
            side = on if (finding.full.lift or 0) > 0 else ~on
            chosen = np.flatnonzero(side & failed[case.outcomes.index(finding.outcome)])[:_EXAMPLES]
            out[finding.key] = [str(units[int(i)]) for i in chosen]
    return out


def _detectable(parts: _Parts) -> dict[float, float | None]:
    case, held = parts.case, len(parts.held) if parts.held else 0
    design_of = detectable.designs(case.judge, case.plan, parts.seen, held, parts.ruling.judged)
    return detectable.minimum_detectable_lifts(design_of, case.evidence.unit_count)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _tidy(value: float) -> float:
    near = round(float(value))
    return near if abs(value - near) < 1e-9 else float(value)
