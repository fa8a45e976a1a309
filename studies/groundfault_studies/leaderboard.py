"""A leaderboard of slice finders: what of their proposals is confirmed on fresh data, and what is
so by mistake.

Each finder proposes from the discovery half of real results and of worlds whose truth is known, and
one judge decides on the other half. Nothing is tuned to the judge but the size of what is proposed,
where it looks at no slice below a tenth of the examples."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from groundfault import judges
from groundfault.auditing.preparation import prepare, start_audit
from groundfault.base.files import write_text
from groundfault.base.long_work import Progress, listener
from groundfault.core.finding import Verdict
from groundfault.core.plan import Plan
from groundfault.errors import InputError, MissingExtraError, PlanError
from groundfault.finders import get
from groundfault.stats import bits
from groundfault_studies import finder_holes, planted_worlds
from groundfault_studies.matrices import matrices
from groundfault_studies.planted_worlds import Bools, PlantedWorld
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value

Columns = dict[str, tuple[str, Kind]]

FINDERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "sliceline": ("sliceline", {}),
    "tree": ("tree", {}),
    "pysubgroup": ("pysubgroup", {}),
    "thresholds": ("thresholds", {}),
    "categories": ("categories", {}),
    "edisa": ("edisa", {}),
    "edisa, weights 1": ("edisa", {"embedding_weight": 1.0, "error_weight": 1.0, "n_slices": 10}),
    "domino": ("domino", {"n_slices": 10}),
    "spotlight": ("spotlight", {"size": 0.1}),
    "confidence": ("confidence", {}),
    "random": ("random", {}),
}
"""Names on the leaderboard, finders, and what is not their default."""

SPLITS = 3
_PER_PLANTED = 5
_ALIKE = 0.5
_CLEAR_PEAK = "5"


@dataclass(frozen=True)
class LeaderboardRun:
    """One finder on one data set, split once.

    Attributes
    ----------
    judge, finder, case : str
    number : int
        Of the split, or of the draw of a world.
    applies : bool
        Whether the data set has the columns that the finder reads.
    proposed, tested, confirmed : int
        Candidates: all, those that the judge could test, and those that it confirmed.
    discovery, holdout : float
        Sums of the absolute lifts of those that were tested, as proposed and on fresh data.
    planted, shown, recalled : int
        Slices planted; those of which a proposal has half (Jaccard index); and a confirmed one.
    seconds : float
        CPU time of proposing.
    megabytes : float or None
        By how much memory rose while proposing, at most; None where the system does not tell.
    """

    judge: str
    finder: str
    case: str
    number: int
    applies: bool = True
    proposed: int = 0
    tested: int = 0
    confirmed: int = 0
    discovery: float = 0.0
    holdout: float = 0.0
    planted: int = 0
    shown: int = 0
    recalled: int = 0
    seconds: float = 0.0
    megabytes: float | None = None

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells it from every other run."""
        return self.judge, self.finder, self.case, self.number


def tables(
    folder: Path,
    judge: str,
    replicates: int,
    keep: Path | None = None,
    progress: Progress | None = None,
    finders: Sequence[str] = tuple(FINDERS),
) -> tuple[PaperTable, ...]:
    """The leaderboard.

    Parameters
    ----------
    folder : path
        Of the real matrices; without it, classifiers trained here alone.
    judge : str
        One that confirms on held-out examples.
    replicates : int
        Null worlds; planted ones are a fifth as many of each kind, at least one.
    keep : path, optional
        File of runs that are done; a leaderboard that was stopped goes on from it.
    progress : callable, optional
    finders : sequence of str
        Names of `FINDERS`.

    Raises
    ------
    PlanError
        If the judge holds nothing out.
    """
    progress = listener(progress)
    if judges.get(judge).confirmation == "none":
        raise PlanError(
            f"the judge {judge} holds nothing out; a leaderboard needs one that does, such as janus"
        )
    stored = {run.key: run for run in _read_runs(keep)}
    runs: list[LeaderboardRun] = []
    for name in finders:  # compiling, and loading libraries, is no finder's work
        measure(name, "rule", 0, _draw("rule", 0), judge)
    for case, number, make in _cases(folder, replicates):
        lacking = [name for name in finders if (judge, name, case, number) not in stored]
        if lacking:
            data = make()
            for name in lacking:
                progress(f"{case}, {number + 1}: {name}")
                stored[judge, name, case, number] = measure(name, case, number, data, judge)
            _write_runs(keep, list(stored.values()))
        runs += [stored[judge, name, case, number] for name in finders]
    holes = _name_holes(folder / "known_holes", finders, keep, progress)
    real = [run for run in runs if run.case not in planted_worlds.WORLDS]
    null = [run for run in runs if run.case == "null"]
    return (
        _board(finders, real, null, [run for run in runs if run.planted], judge, holes),
        _recall(finders, [run for run in runs if run.planted]),
        _by_matrix(finders, real),
    )


def _name_holes(
    folder: Path, finders: Sequence[str], keep: Path | None, progress: Progress
) -> dict[str, str]:
    """Known holes that finders name; none where the data are not there."""
    if not folder.is_dir():
        return {}
    place = None if keep is None else keep.with_suffix(".holes.jsonl")
    by_name = {name: FINDERS[name] for name in finders}
    return finder_holes.name_holes(by_name, folder, SPLITS, place, progress)


def measure(name: str, case: str, number: int, data: PlantedWorld, judge: str) -> LeaderboardRun:
    """One run."""
    finder, settings = FINDERS[name]
    seed = number if case not in planted_worlds.WORLDS else 0
    ready = start_audit(data.evidence, Plan(judge=judge, seed=seed))
    ready.visible_evidence  # noqa: B018  split before the clock runs
    _reset_peak()
    before, start = _memory("VmRSS"), time.process_time()
    try:
        candidates = ready.propose([get(finder)(**settings)])
    except (InputError, MissingExtraError):
        return LeaderboardRun(judge, name, case, number, applies=False)
    seconds, after = time.process_time() - start, _memory("VmHWM")
    megabytes = None if before is None or after is None else max(0.0, after - before)
    run = LeaderboardRun(
        judge, name, case, number, planted=len(data.planted), seconds=seconds, megabytes=megabytes
    )
    if not candidates:
        return run
    audit = prepare(data.evidence, ready.plan, candidates, finders=[])
    ruling, discovery, holdout = audit.judge_losses(audit.losses())
    testable = np.array([v is not Verdict.UNTESTABLE for v in ruling.verdicts])
    stands = np.array([v is Verdict.CONFIRMED for v in ruling.verdicts])
    before_and_after = [part.tables.lift[testable] for part in (discovery, holdout) if part]
    shown, recalled = _count_recalled(data, audit.marks.on, stands)
    return replace(
        run,
        proposed=len(candidates),
        tested=int(testable.sum()),
        confirmed=int(stands.sum()),
        discovery=float(np.nansum(np.abs(before_and_after[0]))),
        holdout=float(np.nansum(np.abs(before_and_after[-1]))),
        shown=shown,
        recalled=recalled,
    )


def _cases(folder: Path, replicates: int) -> Iterator[tuple[str, int, Callable[[], PlantedWorld]]]:
    for world in planted_worlds.WORLDS:
        for number in range(replicates if world == "null" else max(1, replicates // _PER_PLANTED)):
            yield world, number, partial(_draw, world, number)
    for name, evidence in matrices(folder):
        for number in range(SPLITS):
            yield name, number, partial(PlantedWorld, evidence, {})


def _draw(world: str, number: int) -> PlantedWorld:
    return planted_worlds.draw(
        world, np.random.default_rng([planted_worlds.WORLDS.index(world), number])
    )


def _count_recalled(data: PlantedWorld, marks: bits.Bits, stands: Bools) -> tuple[int, int]:
    """How many planted slices a proposal, and a confirmed proposal, has at least half of."""
    if not data.planted:
        return 0, 0
    on = bits.unpack(marks, data.evidence.unit_count)
    near = np.array(
        [[_jaccard(row, slice_) >= _ALIKE for row in on] for slice_ in data.planted.values()]
    )
    return int(near.any(axis=1).sum()), int((near & stands).any(axis=1).sum())


def _jaccard(a: Bools, b: Bools) -> float:
    return float((a & b).sum() / max(1, (a | b).sum()))


def _reset_peak() -> None:
    """Let the system count peak memory from now on; not every system can."""
    try:
        Path("/proc/self/clear_refs").write_text(_CLEAR_PEAK)
    except OSError:
        return


def _memory(field: str) -> float | None:
    """Memory of this process in megabytes, now (VmRSS) or at its peak (VmHWM)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:")), None
    )


def _read_runs(place: Path | None) -> list[LeaderboardRun]:
    if place is None or not place.exists():
        return []
    try:
        return [
            LeaderboardRun(**json.loads(line))
            for line in place.read_text(encoding="utf-8").splitlines()
        ]
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{place} does not hold runs of a leaderboard ({error}); move it away"
        ) from None


def _write_runs(place: Path | None, runs: Sequence[LeaderboardRun]) -> None:
    if place is not None:
        write_text(place, "".join(json.dumps(asdict(run)) + "\n" for run in runs))


def _board(
    finders: Sequence[str],
    real: Sequence[LeaderboardRun],
    null: Sequence[LeaderboardRun],
    plan: Sequence[LeaderboardRun],
    judge: str,
    holes: Mapping[str, str],
) -> PaperTable:
    columns: Columns = {
        "proposed": ("proposed", "count"),
        "tested": ("testable", "count"),
        "confirmed": ("confirmed", "count"),
        "share": ("share", "rate"),
        "discovery": ("disc.", "size"),
        "holdout": ("hold.", "size"),
        "recall": ("recall", "rate"),
        "false": ("false", "text"),
        "holes": ("holes", "text"),
        "seconds": ("CPU s", "size"),
        "megabytes": ("MB", "count"),
    }
    rows = tuple(
        PaperRow(
            name,
            _numbers(
                *(
                    [r for r in runs if r.finder == name and r.applies]
                    for runs in (real, null, plan)
                )
            )
            | {"holes": holes.get(name)},
        )
        for name in finders
    )
    note = (
        f"Real results, each split {SPLITS} times. Proposed: candidates from one half. Testable: "
        f"those that the judge {judge} can test, by default a tenth to nine tenths of the "
        "examples. Confirmed: on the other half; share: of the testable. Disc., hold.: mean "
        "absolute lift of the testable when proposed and on fresh data; the loss is the winner's "
        "curse. Recall: share of planted slices of which a confirmed candidate has half (Jaccard "
        "index). False: null worlds with any confirmation; janus and split-holm allow a tenth. "
        "Holes: known holes of language models that one of the first five proposals from all "
        "outcomes of 2,000 prompts names, and in brackets one of all proposals (a Jaccard index of "
        "at least 0.8; no least share of the examples). CPU s, MB: median time, and greatest rise "
        "of memory, of proposing from real results."
    )
    return PaperTable(f"Leaderboard, judged by {judge}", note, columns, rows)


def _numbers(
    real: Sequence[LeaderboardRun], null: Sequence[LeaderboardRun], plan: Sequence[LeaderboardRun]
) -> dict[str, Value]:
    tested = sum(run.tested for run in real)
    memory = [run.megabytes for run in real if run.megabytes is not None]
    return {
        "proposed": sum(run.proposed for run in real),
        "tested": tested,
        "confirmed": sum(run.confirmed for run in real),
        "share": sum(run.confirmed for run in real) / tested if tested else None,
        "discovery": sum(run.discovery for run in real) / tested if tested else None,
        "holdout": sum(run.holdout for run in real) / tested if tested else None,
        "recall": _share([run.recalled for run in plan], [run.planted for run in plan]),
        "false": f"{sum(run.confirmed > 0 for run in null)} of {len(null)}",
        "seconds": float(np.median([run.seconds for run in real])) if real else None,
        "megabytes": round(max(memory)) if memory else None,
    }


def _recall(finders: Sequence[str], runs: Sequence[LeaderboardRun]) -> PaperTable:
    worlds = [world for world in planted_worlds.WORLDS if any(run.case == world for run in runs)]
    columns: Columns = {world: (world, "text") for world in worlds}
    rows = []
    for name in finders:
        here: dict[str, Value] = {}
        for world in worlds:
            mine = [run for run in runs if (run.finder, run.case) == (name, world) and run.applies]
            total = sum(run.planted for run in mine)
            shown, recalled = (
                sum(getattr(run, what) for run in mine) for what in ("shown", "recalled")
            )
            here[world] = f"{recalled / total:.0%} of {shown / total:.0%}" if total else None
        rows.append(PaperRow(name, here))
    note = (
        "Share of planted slices that a confirmed candidate has half of, out of the share that any "
        f"proposal has half of. {planted_worlds.RAISED:.0%} errors on the slice and "
        f"{planted_worlds.BASE:.0%} "
        "elsewhere, 1,000 examples. rule: one of three languages and 60% of the lengths; "
        "threshold: a fifth by length; cluster: one of five clusters of an embedding; unsure: the "
        "fifth of least confidence; two: a rule and a cluster."
    )
    return PaperTable("Planted slices", note, columns, tuple(rows))


def _by_matrix(finders: Sequence[str], runs: Sequence[LeaderboardRun]) -> PaperTable:
    columns: Columns = {name: (name, "text") for name in finders}
    rows = []
    for case in dict.fromkeys(run.case for run in runs):
        here: dict[str, Value] = {}
        for name in finders:
            mine = [run for run in runs if (run.finder, run.case) == (name, case) and run.applies]
            here[name] = (
                f"{sum(r.confirmed for r in mine)}/{sum(r.proposed for r in mine)}"
                if mine
                else None
            )
        rows.append(PaperRow(case, here))
    note = (
        f"Confirmed out of proposed, over {SPLITS} splits. A finder that lacks its columns there "
        "has none."
    )
    return PaperTable("Real results, one by one", note, columns, tuple(rows))


def _share(parts: Sequence[int], wholes: Sequence[int]) -> float | None:
    return sum(parts) / sum(wholes) if sum(wholes) else None
