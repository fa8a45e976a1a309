"""Validity: how often sequential audits are wrong where a null is true, for every bet and against
the worst auditors.

References
----------
Zhou et al. (2026), *Adaptive auditing of AI systems with anytime-valid guarantees*,
arXiv:2605.07002. Its sampling is that of its reference implementation, and of its appendix where
the two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from groundfault.base.long_work import Progress, listener
from groundfault.sequential.bets import BETS, SOURCES, Null
from groundfault.sequential.plan import Sampling
from groundfault_studies.null_games import (
    Game,
    Groups,
    bold,
    count_rejections,
    fresh,
    lowest_of_nine,
    weigh_rejections,
    worst_cases,
)
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

SOURCE = (
    "Zhou et al. (2026), Adaptive auditing of AI systems with anytime-valid guarantees, "
    "arXiv:2605.07002"
)
ALPHA, LEVEL = 0.05, 0.99
REPLICATES, QUICK_REPLICATES = 10_000, 500
PAPERS = ("lr", "sr-lr", "lr-ui", "sr-lr-ui")
_AT_ONCE = 2000
_STEPS = 250
_NORMAL = 2.3263478740408408  # the 99 % point
_GRADED = ("graded", "graded 30x4")
NULLS: tuple[Null, ...] = ("model", "auditor")
BOLD = "bold"
"""In place of a game: scores that are shaped to land on the bar, of which the chance is weighed."""

_BETS: Mapping[Null, Mapping[Sampling, Sequence[str]]] = {
    "model": {"guaranteed": BETS, "paper": PAPERS},
    "auditor": {"guaranteed": SOURCES, "paper": ("lr", "lr-ui")},
}


def games(null: Null) -> dict[str, Game]:
    """The games of a null, by the heading of their column or row."""
    # a case's worth beyond the auditor's threshold would be slack: its own threshold is next to the
    # mean instead
    near = 0.0 if null == "model" else 1e-4
    of_20, of_4 = (0.0,) * 3 + (1.0,) * 17, (0.0, 1.0, 1.0, 1.0)
    graded = (0.4, 0.7, 0.9, 1.0)
    by_name = {
        "fresh": fresh("0/1", _STEPS, null),
        "graded": fresh("graded", _STEPS, null),
        "long": fresh("0/1", 1000, null),
        "q .50": fresh("0/1", _STEPS, null, 0.5),
        "q .99": fresh("0/1", _STEPS, null, 0.99),
        "20x20": Groups(20, of_20, 400, 0.85 + near, null).game("20 groups of 20"),
        "random": Groups(20, of_20, 400, 0.85 + near, null, "draws at random").game(
            "20 groups of 20"
        ),
        "gated": Groups(20, of_20, 400, 0.85 + near, null, "bets where luck ran out").game(
            "20 groups of 20"
        ),
        "100x20": Groups(100, of_20, _STEPS, 0.85 + near, null).game("100 groups of 20"),
        "30x4": Groups(30, of_4, 120, 0.75 + near, null).game("30 groups of 4, to the last case"),
        "50x2": Groups(50, (0.0, 1.0), 100, 0.5 + near, null).game(
            "50 groups of 2, to the last case"
        ),
        "graded 30x4": Groups(30, graded, 120, 0.75 + near, null).game(
            "30 groups of 4, graded, to the last case"
        ),
    }
    if null == "model":
        by_name |= {
            "nine": lowest_of_nine(_STEPS),
            "2268": worst_cases(2268, 17, 0.0),
            "1000": worst_cases(1000, 15, 0.5),
            "11788": worst_cases(11788, 88, 0.0),
        }
    return by_name


def study(
    *,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Measure the type-I error of every bet against both nulls, as audits bet by default and as the
    paper's do.

    Parameters
    ----------
    replicates : int, optional
        Of each game; left out, 10,000, or quickly 500.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Fewer replicates: to see that it runs, not for conclusions.
    keep : path, optional
        File of what is done; a study that was interrupted goes on from there.
    progress : callable, optional
    """
    progress = listener(progress)
    replicates = replicates or (QUICK_REPLICATES if quick else REPLICATES)
    parts: dict[str, tuple[Any, ...]] = {
        f"{null}'s null, {key}, {sampling} sampling, {replicates} replicates": (
            (null, key, sampling, replicates)
        )
        for null in NULLS
        for sampling in get_args(Sampling)
        for key in games(null)
    }
    rows = resume_parts(parts, _count, keep, jobs, progress)
    weighings = _list_weighings(rows, replicates)
    rows += resume_parts(weighings, _weigh, keep, jobs, progress)
    tables = [table for null in NULLS for table in _tabulate(null, rows, replicates)]
    settings = {"replicates": replicates, "alpha": ALPHA, "bound": LEVEL}
    return PaperStudy(
        "validity",
        "Sequential audits: how often a true null falls",
        SOURCE,
        settings,
        tuple(tables),
    )


def measure(game: Game, bets: Sequence[str], sampling: Sampling, replicates: int) -> dict[str, int]:
    """In how many replicates the null falls, by bet."""
    sizes = [min(_AT_ONCE, replicates - start) for start in range(0, replicates, _AT_ONCE)]
    fell: NDArray[np.int64] = sum(
        count_rejections(game, bets, sampling, size, [7, part]).sum(axis=1)
        for part, size in enumerate(sizes)
    )
    return dict(zip(bets, fell.tolist(), strict=True))


def _count(null: Null, key: str, sampling: Sampling, replicates: int) -> Rows:
    counts = measure(games(null)[key], _BETS[null][sampling], sampling, replicates)
    return [{"null": null, "game": key, "sampling": sampling, "fell": counts}]


def _list_weighings(rows: Rows, replicates: int) -> dict[str, tuple[Any, ...]]:
    """What is weighed: shaped scores, and where a rate is too close to alpha for counting."""
    size = min(replicates, _AT_ONCE)
    parts: dict[str, tuple[Any, ...]] = {
        f"{null}'s null, bold play, {bet}, {size} weighed": (null, BOLD, bet, size)
        for null in NULLS
        for bet in _BETS[null]["guaranteed"]
    }
    for row in rows:
        if row["sampling"] == "guaranteed" and row["game"] not in _GRADED:
            for bet, fell in row["fell"].items():
                if upper(fell, replicates) > ALPHA and fell / replicates < 1.2 * ALPHA:
                    null, key = row["null"], row["game"]
                    parts[f"{null}'s null, {key}, {bet}, {size} weighed"] = (null, key, bet, size)
    return parts


def _weigh(null: Null, key: str, bet: str, size: int) -> Rows:
    rate, error = (
        bold(bet, null, size, _STEPS, [7])
        if key == BOLD
        else weigh_rejections(games(null)[key], bet, size, [7])
    )
    return [{"null": null, "game": key, "bet": bet, "rate": rate, "error": error}]


def upper(count: int, replicates: int) -> float:
    """Upper 99 % bound of a rate (Clopper and Pearson)."""
    from scipy.special import betaincinv

    return 1.0 if count == replicates else float(betaincinv(count + 1, replicates - count, LEVEL))


def _tabulate(null: Null, rows: Rows, replicates: int) -> Iterator[PaperTable]:
    """The tables of a null: bets by default, and the paper's."""
    rows = [row for row in rows if row["null"] == null]
    ours, papers = (
        {row["game"]: row["fell"] for row in rows if row.get("sampling") == sampling}
        for sampling in ("guaranteed", "paper")
    )
    weighed = {(row["game"], row["bet"]): row for row in rows if "bet" in row}
    for start in ("", "sr-", "cusum-") if null == "model" else ("",):
        yield _defaults(null, start, ours, weighed, replicates)
    yield _papers(null, ours, papers, replicates)


def _defaults(
    null: Null,
    start: str,
    ours: Mapping[str, Mapping[str, int]],
    weighed: Mapping[tuple[str, str], Mapping[str, float]],
    replicates: int,
) -> PaperTable:
    bets = [start + source for source in SOURCES]
    rates: dict[str, dict[str, Value]] = {key: {} for key in (*ours, BOLD, "upper")}
    for bet in bets:
        bounds = []
        for key in (*ours, BOLD):
            weight = weighed.get((key, bet))
            if weight is None:
                rate, bound = ours[key][bet] / replicates, upper(ours[key][bet], replicates)
            else:
                rate, bound = weight["rate"], weight["rate"] + _NORMAL * weight["error"]
            rates[key][bet] = rate
            bounds.append(bound)
        # rounded up: a bound is not to be printed below itself
        rates["upper"][bet] = ceil(1e4 * max(bounds)) / 1e4
    names = {key: _name(game) for key, game in games(null).items()} | {
        BOLD: "fresh draws: shapes the score to land on the bar",
        "upper": "largest upper 99 % bound",
    }
    count = sum(bet in bets and key != BOLD for key, bet in weighed)
    note = (
        f"Share of {replicates:,} audits in which the {null}'s null, which is true, falls at any "
        "step, at alpha .05, with the bets and shares of a default plan. Where a rate is too close "
        f"to alpha for counting ({count} times), and in the row of shaped scores, it is weighed "
        "instead (importance sampling)."
    )
    lines = tuple(PaperRow(names[key], rates[key]) for key in rates)
    return PaperTable(f"The {null}'s null, default: {', '.join(bets)}", note, _columns(bets), lines)


def _papers(
    null: Null,
    ours: Mapping[str, Mapping[str, int]],
    papers: Mapping[str, Mapping[str, int]],
    replicates: int,
) -> PaperTable:
    bets = _BETS[null]["paper"]
    rows = []
    for key, game in games(null).items():
        here: dict[str, Value] = {bet: papers[key][bet] / replicates for bet in bets}
        here["default"] = max(ours[key][bet] for bet in bets) / replicates
        rows.append(PaperRow(_name(game), here))
    note = (
        'The same with sampling="paper": every score is tested against the threshold itself, '
        "single cases and the worst looking of several may be drawn, and shares of the wealth "
        "start uniformly on steps 1..40. Beside it the largest rate of the same bets by default."
    )
    columns = _columns(bets) | {"default": ("default", "rate")}
    return PaperTable(f"The {null}'s null, the paper's sampling", note, columns, tuple(rows))


def _name(game: Game) -> str:
    return f"{game.name}: {game.rule}"


def _columns(bets: Sequence[str]) -> dict[str, tuple[str, Kind]]:
    return {bet: (bet, "rate") for bet in bets}
