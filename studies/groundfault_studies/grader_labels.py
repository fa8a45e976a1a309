"""Labels to a verdict, with a cheap grade of every case and without, on real answers.

The discovery half has the grades alone, as people have them: failure modes are searched there, and
some are the grader's own mistakes. Labels are then bought one at a time on the other half."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import groundfault
from groundfault.auditing.preparation import join_copies
from groundfault.base.long_work import Progress, listener, stream
from groundfault.core.candidate import Candidate
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.errors import InputError
from groundfault.sequential import SequentialConfirmation
from groundfault_studies.resuming import Rows, gather_rows
from groundfault_studies.shared_folder import require_shared
from groundfault_studies.tables import PaperRow, PaperStudy, PaperTable

DRAWS, QUICK_DRAWS, LABELS, SIZE = 100, 1, 200, 2000
NETWORKS = ("asides#1", "inverse_lookup#1", "number_words#1", "spanish_dates#1")
CHAT_MODELS = ("gemma-2-2b-it", "Qwen2-7B-Instruct", "yi-large")
_ID, _FAILS, _GRADE = "example_id", "human_label", "grade"
_SOURCE = (
    "Small networks with known holes, whose grader compares last characters alone; and chat models "
    "on CRUXEval, whose exact match fails some right answers"
)


def study(
    shared: str | Path | None = None,
    *,
    replicates: int | None = None,
    models: Sequence[str] | None = None,
    jobs: int = 1,
    quick: bool = False,
    stored: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Labels that confirmations take with a grader's help and without.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real``; left out, ``$GROUNDFAULT_SHARED`` or ``../shared/data``.
    replicates : int, optional
        Draws of a sample and of its halves; left out, 100, or quickly 1.
    models : sequence of str, optional
        All where left out.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        One draw: to see that it runs, not for conclusions.
    stored : bool
        Run nothing: show what ``keep`` holds.
    keep : path, optional
        File of what is done; a study that was stopped, or killed, goes on from it.
    progress : callable, optional

    Raises
    ------
    InputError
        If the data are not there, or hold no such model.
    PlanError
        If there is no file to show from.
    """
    folder = require_shared(shared, "real").parent
    replicates = replicates or (QUICK_DRAWS if quick else DRAWS)
    names = tuple(models or (*_list_networks(folder), *_list_chat_models(folder)))
    todo = {
        f"{model} / {draw}": (folder, model, draw) for draw in range(replicates) for model in names
    }
    rows = gather_rows(todo, measure, keep, jobs, listener(progress), stored=stored)
    settings = {"replicates": replicates, "models": list(names), "labels": LABELS, "size": SIZE}
    table = _tabulate(pl.DataFrame(rows), names)
    return PaperStudy(
        "grader-labels", "Labels that a cheap grader saves", _SOURCE, settings, (table,)
    )


def measure(folder: Path, model: str, draw: int) -> Rows:
    """Confirmations of one sample, with grades and without: a row each; none without a mode."""
    table = read_graded(folder, model)
    rng = stream(draw, f"grader labels {model}")
    size = min(SIZE, table.height)
    table = _drop_copies(table[np.sort(rng.choice(table.height, size, replace=False))])
    held_out = rng.permutation(table.height) < table.height // 2
    lifts = _find_modes(table, ~held_out)
    if not lifts:
        return []
    part = pl.Series("part", np.where(held_out, "holdout", "discovery"))
    outcome = pl.when(part == "discovery").then(_GRADE).alias("outcome")
    truth = dict(zip(table[_ID], 1.0 - table[_FAILS], strict=True))
    shown = table.with_columns(part, outcome).drop(_FAILS)
    evidence = Evidence.from_table(
        shown, id=_ID, outcome="outcome", split="part", null_outcome="missing"
    )
    return [
        {"model": model, "grader": grader, "draw": draw}
        | _confirm(evidence, lifts, truth, grader=grader)
        for grader in (True, False)
    ]


def _drop_copies(table: pl.DataFrame) -> pl.DataFrame:
    """The first of each example's copies: the losses of several would be a mean."""
    evidence = Evidence.from_table(
        table.drop(_FAILS), id=_ID, outcome=_GRADE, positive_is_good=False
    )
    return table[np.sort(join_copies(evidence).first_rows)]


def _confirm(
    evidence: Evidence, lifts: dict[str, float], truth: dict[str, float], *, grader: bool
) -> dict[str, Any]:
    rules = list(lifts)
    evidence = evidence if grader else evidence.without([_GRADE])
    audit = SequentialConfirmation(
        evidence,
        Plan(judge="split-holm", min_lift=0.0),
        [Candidate.from_text(f"m{i}: {rule}") for i, rule in enumerate(rules)],
        budget=LABELS,
        grader=_GRADE if grader else None,
        ledger=False,
    )
    first = LABELS + 1
    while (query := audit.ask()) is not None:
        audit.tell(query, truth[query.id])
        if audit.confirmed and first > LABELS:
            first = audit.labelled
    confirmed = [rules[int(name[1:])] for name in audit.confirmed]
    return {
        "first": first,
        "all": audit.labelled,
        "survivors": len(audit.names),
        "confirmed": len(confirmed),
        "false": sum(lifts[rule] <= 0 for rule in confirmed),
    }


def _find_modes(table: pl.DataFrame, discovery: NDArray[np.bool_]) -> dict[str, float]:
    """Failure modes by the grades of one half; how much more often they fail by all labels."""
    shown = table.drop(_FAILS).filter(pl.Series(discovery))
    evidence = Evidence.from_table(shown, id=_ID, outcome=_GRADE, positive_is_good=False)
    fails, lifts = table[_FAILS].to_numpy(), {}
    for mode in groundfault.audit(evidence, ledger=False).modes:
        on = mode.holds(table).fill_null(value=False).to_numpy()
        lifts[mode.rule] = float(fails[on].mean() - fails[~on].mean())
    return lifts


# ------------------------------------------------------------------------------------ the data


@cache
def read_graded(folder: Path, model: str) -> pl.DataFrame:
    """Examples with a person's verdict and a grader's, each 1 for a failure.

    Raises
    ------
    InputError
        If there is no such model.
    """
    for lists, read in ((_list_networks, _read_network), (_list_chat_models, _read_chat_model)):
        if model in lists(folder):
            return read(folder, model)
    raise InputError(f"there are no answers of {model!r}")


def _list_networks(folder: Path) -> tuple[str, ...]:
    names = set(pl.read_parquet(folder / "real/known_holes/outcomes.parquet")["model"])
    return tuple(name for name in NETWORKS if name in names)


def _list_chat_models(folder: Path) -> tuple[str, ...]:
    names = set(pl.read_parquet(folder / "real/zeroeval/outcomes.parquet")["model"])
    return tuple(name for name in CHAT_MODELS if name in names)


def _read_network(folder: Path, model: str) -> pl.DataFrame:
    """A network's answers; its grader is right wherever the last character decides."""
    examples, outcomes = (
        pl.read_parquet(folder / f"real/known_holes/{name}.parquet")
        for name in ("examples", "outcomes")
    )
    table = examples.join(outcomes.filter(model=model), on=_ID, maintain_order="left")
    differs = pl.col("answer").str.tail(1).ne_missing(pl.col("target").str.tail(1))
    verdicts = (1.0 - pl.col("correct")).alias(_FAILS), differs.cast(pl.Float64).alias(_GRADE)
    return table.with_columns(*verdicts).drop("target", "answer", "correct", "model")


def _read_chat_model(folder: Path, model: str) -> pl.DataFrame:
    """A chat model's answers; its grader calls some wrong that are written in another way."""
    place = folder / "real/zeroeval"
    examples, outcomes, artefacts = (
        pl.read_parquet(place / f"{name}.parquet")
        for name in ("examples", "outcomes", "known_grader_artifacts_crux")
    )
    answers = outcomes.filter(model=model, benchmark="crux").select(_ID, "correct")
    table = examples.filter(benchmark="crux").join(answers, on=_ID, maintain_order="left")
    right = pl.col(_ID).is_in(artefacts.filter(model=model)[_ID].to_list())
    grade = 1.0 - pl.col("correct")
    verdicts = pl.when(right).then(0.0).otherwise(grade).alias(_FAILS), grade.alias(_GRADE)
    empty = [c for c in table.columns if table[c].null_count() == table.height]
    return table.with_columns(*verdicts).drop("correct", "benchmark", *empty)


# ----------------------------------------------------------------------------------- the table


def _tabulate(rows: pl.DataFrame, models: Sequence[str]) -> PaperTable:
    return PaperTable(
        "Labels to a verdict",
        f"Medians over draws, with the quartiles; at most {LABELS} labels. Confirmed: failure "
        "modes of the discovery half, which has grades alone, that labels of the other half "
        "confirm. False: those of them that fail no more often by the labels of all. Draws: those "
        "whose discovery half has a failure mode.",
        {
            "first": ("to the first", "text"),
            "all": ("to the end", "text"),
            "confirmed": ("confirmed", "size"),
            "survivors": ("of", "size"),
            "false": ("false", "size"),
            "draws": ("draws", "count"),
        },
        tuple(_make_rows(rows, models)),
    )


def _make_rows(rows: pl.DataFrame, models: Sequence[str]) -> Iterator[PaperRow]:
    for model in models:
        for grader, label in ((True, "with grades"), (False, "labels alone")):
            cell = rows.filter(model=model, grader=grader)
            if cell.is_empty():
                continue
            values: dict[str, Any] = {
                name: _describe(cell[name].to_numpy()) for name in ("first", "all")
            }
            means = ("confirmed", "survivors", "false")
            values |= {name: float(cell[name].to_numpy().mean()) for name in means}
            yield PaperRow(f"{model}: {label}", values | {"draws": cell.height})


def _describe(counts: np.ndarray[Any, Any]) -> str:
    low, middle, high = np.quantile(counts, [0.25, 0.5, 0.75])
    words = ("over " + str(LABELS) if x > LABELS else f"{x:.0f}" for x in (middle, low, high))
    return "{} ({} to {})".format(*words)
