"""Every attack on a promise, measured: the rate now, its exact interval, and what it was before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import groundfault
from groundfault.base.long_work import Progress, listener
from groundfault.errors import PlanError
from groundfault_lab.testing.card import interval
from groundfault_studies.attacks.attack import Attack
from groundfault_studies.resuming import Rows, gather_rows
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

TOPICS = {
    "comparisons": "Comparisons and the gate of a build",
    "openings": "What a guarantee says after several openings",
    "estimates": "Estimates, and what could have been detected",
    "judges": "Judges",
    "leaks": "Leaks, roles of columns, and graders",
    "sequential": "Sequential audits",
}
"""Modules of this package with attacks, and the titles of their tables."""

SOURCE = "worlds made to break promises; before: commit 913946a, as it was reported"

QUICK_TRIALS = 2
_BATCH = 10


def collect_attacks() -> dict[str, tuple[Attack, ...]]:
    """The attacks of each topic.

    Raises
    ------
    ValueError
        If two have the same point and name.
    """
    topics = {topic: tuple(_module(topic).ATTACKS) for topic in TOPICS}
    labels = [attack.label for attacks in topics.values() for attack in attacks]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise ValueError(f"two attacks are called {twice[0]!r}")
    return topics


def study(
    *,
    only: Sequence[int] | None = None,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    stored: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Measure how often promises are broken where worlds are made to break them.

    Parameters
    ----------
    only : sequence of int, optional
        Points to measure; all where left out.
    replicates : int, optional
        Trials of each attack; left out, each attack's own number, or quickly 2.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Two trials of each attack: to see that it runs, not for conclusions.
    stored : bool
        Run nothing: show what ``keep`` holds.
    keep : path, optional
        File of what is done; a study that was stopped, or killed, goes on from it. What was
        measured with another version, or before the module of the attacks changed, is not used;
        for a change of groundfault inside one version, name another file.
    progress : callable, optional

    Raises
    ------
    PlanError
        If there is no attack on a point, or no file to show from.
    """
    progress = listener(progress)
    replicates = replicates or (QUICK_TRIALS if quick else None)
    topics = _select_points(collect_attacks(), only)
    parts = _parts(topics, replicates)
    rows = gather_rows(parts, measure, keep, jobs, progress, stored=stored)
    return PaperStudy(
        "attacks",
        "Promises under attack",
        SOURCE,
        {"replicates": replicates, "only": None if only is None else list(only)},
        make_tables(rows, topics),
    )


def measure(topic: str, label: str, start: int, count: int) -> Rows:
    """One row: in how many trials of an attack it happened, seeds from ``start``."""
    [attack] = (attack for attack in _module(topic).ATTACKS if attack.label == label)
    hits = sum(bool(attack.trial(seed)) for seed in range(start, start + count))
    return [{"attack": label, "hits": hits, "trials": count}]


def make_tables(rows: Rows, topics: Mapping[str, Sequence[Attack]]) -> tuple[PaperTable, ...]:
    """A table of rates for each topic, and one of what the worlds are.

    Parameters
    ----------
    rows : list of row
        Of `measure`; those of one attack are added up.
    topics : mapping of str to sequence of Attack
    """
    hits: dict[str, int] = {}
    trials: dict[str, int] = {}
    for row in rows:
        hits[row["attack"]] = hits.get(row["attack"], 0) + row["hits"]
        trials[row["attack"]] = trials.get(row["attack"], 0) + row["trials"]
    columns: dict[str, tuple[str, Kind]] = {
        "before": ("before", "text"),
        "rate": ("now", "rate"),
        "interval": ("95 % interval", "text"),
        "promised": ("promised", "text"),
        "verdict": ("", "text"),
        "trials": ("trials", "count"),
    }
    note = (
        "Intervals are exact (Clopper and Pearson). Holds: the whole interval keeps the promise; "
        "not contradicted: some of it; broken: nothing of it. Before is quoted, and may be of "
        "another number of trials."
    )
    tables = [
        PaperTable(
            TOPICS[topic],
            note,
            columns,
            tuple(
                PaperRow(a.label, measures(a, hits.get(a.label, 0), trials.get(a.label, 0)))
                for a in attacks
            ),
        )
        for topic, attacks in topics.items()
        if attacks
    ]
    return (*tables, _world_table([a for attacks in topics.values() for a in attacks]))


def measures(attack: Attack, hits: int, trials: int) -> dict[str, Value]:
    """What the table says of an attack after some trials, by column."""
    here: dict[str, Value] = {"before": attack.before, "promised": word_promise(attack)}
    here["trials"] = trials
    if trials:
        low, high = interval(hits / trials, trials)
        here["rate"] = hits / trials
        here["interval"] = f"{low:.1%} to {high:.1%}"
        here["verdict"] = judge_promise(attack, low, high)
    return here


def word_promise(attack: Attack) -> str:
    """What is promised of the rate, in signs."""
    ends = [("≥", attack.at_least), ("≤", attack.at_most)]
    return ", ".join(f"{sign} {100 * end:g}%" for sign, end in ends if end is not None)


def judge_promise(attack: Attack, low: float, high: float) -> str:
    """Whether an interval of the rate lies inside what is promised, reaches into it, or not."""
    least, most = attack.at_least or 0.0, 1.0 if attack.at_most is None else attack.at_most
    if low > most or high < least:
        return "broken"
    return "holds" if least <= low and high <= most else "not contradicted"


def _world_table(attacks: Sequence[Attack]) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "world": ("world", "text"),
        "promise": ("promise", "text"),
        "statistic": ("counted", "text"),
    }
    rows = (
        PaperRow(a.label, {"world": a.world, "promise": a.promise, "statistic": a.statistic})
        for a in attacks
    )
    note = "Each world is a function of a seed, in the package groundfault_studies.attacks."
    return PaperTable("The worlds", note, columns, tuple(rows))


def _select_points(
    topics: Mapping[str, tuple[Attack, ...]], only: Sequence[int] | None
) -> dict[str, tuple[Attack, ...]]:
    known = sorted({attack.point for attacks in topics.values() for attack in attacks})
    unknown = [point for point in only or () if point not in known]
    if unknown:
        listing = ", ".join(map(str, known)) or "none at all"
        raise PlanError(f"no attack is on point {unknown[0]}; there are {listing}")
    wanted = known if only is None else only
    return {
        topic: tuple(attack for attack in attacks if attack.point in wanted)
        for topic, attacks in topics.items()
    }


def _parts(
    topics: Mapping[str, Sequence[Attack]], replicates: int | None
) -> dict[str, tuple[Any, ...]]:
    """Arguments of `measure` by name."""
    parts: dict[str, tuple[Any, ...]] = {}
    for topic, attacks in topics.items():
        text = Path(str(_module(topic).__file__)).read_bytes()
        code = f"{hashlib.sha256(text).hexdigest()[:12]} / {groundfault.__version__}"
        for attack in attacks:
            total = replicates or attack.replicates
            for start in range(0, total, _BATCH):
                count = min(_BATCH, total - start)
                key = f"{topic} / {attack.label} / {start} and {count} / {code}"
                parts[key] = (topic, attack.label, start, count)
    return parts


def _module(topic: str) -> Any:
    return import_module(f"groundfault_studies.attacks.{topic}")
