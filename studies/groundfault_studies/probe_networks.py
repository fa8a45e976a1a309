"""Probe policies on real networks: failing prompts that each of them finds with the same budget.

Two small language models answer every prompt of a bank and a grammar once, on this machine; of a
pretrained chat model the answers are recorded. All policies are then played on these answers, so
each sees a real model, and costs nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault import models
from groundfault.base.long_work import Progress, listener, stream
from groundfault.core.equivalence import compare
from groundfault.core.plan import Plan
from groundfault.errors import InputError, MissingExtraError
from groundfault.probes import policies
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.rendering import render
from groundfault_lab.probes.arena import Landscape, play_policy
from groundfault_studies import probe_network_tables as tables
from groundfault_studies.known_holes import find_folder
from groundfault_studies.network_bank import GRAMMAR, make_bank
from groundfault_studies.probe_network_tables import POLICIES
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.tables import PaperStudy

Bools = NDArray[np.bool_]

SOURCE = "groundfault's own models and prompts, known_holes"
MODELS = ("control", "number_words")
TASKS, BANK = 60, 30
QUICK_TASKS, QUICK_BANK = 24, 16
"""Tasks that are answered, and how many of them a run draws."""
BUDGETS = (90, 192)
SEEDS, QUICK_SEEDS = 100, 20

RECORDED, _RECORDED_SIZES = "SmolLM2", (3, 5)
"""Its tasks, in three wordings and with five sentences before: see `read_recorded`."""

_BATCH = 3
_SEEDS_A_PART = 20
_TASKS_A_PART = 2  # 32 prompts, which Inspect answers together
_LONGEST = 12  # characters of an answer: no key has more than ten


def study(
    shared: str | Path | None = None,
    *,
    seeds: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Answer all prompts once, and play all policies on the answers.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real/known_holes``, or that folder itself; left out, ``$GROUNDFAULT_SHARED``
        or ``../shared/data``.
    seeds : int, optional
        Runs of each policy; each draws tasks for its bank from those that are answered. Left out,
        100, or quickly 20.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        Fewer tasks and seeds.
    keep : path, optional
        File of the answers and runs that are done; a study that was interrupted goes on from there.
    progress : callable, optional

    Notes
    -----
    Where the networks cannot be asked, for want of the data or of a library, the recorded answers
    of a chat model are played alone. The world that the models were trained in has these wordings,
    so its key holds for each of them: an answer that is not the key is an error, without a review.
    """
    progress = listener(progress)
    folder, place = find_folder(shared), None if keep is None else Path(keep)
    count, size = (QUICK_TASKS, QUICK_BANK) if quick else (TASKS, BANK)
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    try:
        wrong = _ask_all(make_bank(folder, count), folder, place, progress)
        lacking: tuple[str, ...] = ()
    except (MissingExtraError, InputError) as error:
        wrong, lacking = {}, (f"answers of the networks: {error}",)
    wrong[RECORDED] = read_recorded()
    rows = resume_parts(_list_runs(wrong, size, seeds), play_seeds, place, jobs, progress)
    settings: dict[str, Any] = {
        "tasks": count,
        "bank": size,
        "assignments": len(GRAMMAR),
        "seeds": seeds,
        "budgets": list(BUDGETS),
        "batch": _BATCH,
    }
    return PaperStudy(
        "probe-networks",
        "Which policy finds more failing prompts of real networks",
        SOURCE,
        settings,
        tables.make_tables(rows, wrong, settings),
        lacking,
    )


def ask_tasks(folder: Path, model: str, bank: Bank, ids: Sequence[str]) -> Rows:
    """What a network answers to some tasks under all assignments, a row each.

    Raises
    ------
    InputError
        If it does not answer.
    MissingExtraError
        If what runs it is not installed.
    """
    prompts = [render(bank, GRAMMAR, id, assignment) for id in ids for assignment in GRAMMAR]
    answers = models.ask(
        _open(folder / "models" / model),
        [probe.prompt for probe in prompts],
        temperature=0,
        max_tokens=_LONGEST,
        concurrency=len(prompts),
        timeout=600,
    )
    silent = [one.error for one in answers if one.text is None]
    if silent:
        raise InputError(f"{model} did not answer: {silent[0]}")
    return [
        {"key": probe.key, "answer": one.text} for probe, one in zip(prompts, answers, strict=True)
    ]


def play_seeds(
    model: str, wrong: Bools, size: int, policy: str, budget: int, seeds: tuple[int, int]
) -> Rows:
    """Runs of a policy on one network: unique failing prompts, and their tasks.

    Parameters
    ----------
    model : str
    wrong : bool array, shape (tasks, assignments)
    size : int
        Tasks of a run's bank; all policies draw the same ones for a seed.
    policy : str
    budget : int
    seeds : pair of int
        The first, and the one after the last.
    """
    sizes, plan = tuple(len(group.options) for group in GRAMMAR.groups), Plan(seed=0)
    sizes = _RECORDED_SIZES if model == RECORDED else sizes
    rows = []
    for seed in range(*seeds):
        drawn = stream(seed, "probe networks").choice(len(wrong), size, replace=False)
        here = wrong[np.sort(drawn)].ravel()
        land = Landscape(here, here, size, sizes)
        keys = play_policy(
            policies.get(policy), land, budget=budget, batch=_BATCH, plan=plan, number=seed
        )
        # a repeat is no discovery
        failing = np.unique(keys[here[keys]])
        tasks = len(np.unique(failing // wrong.shape[1]))
        row = {"model": model, "policy": policy, "budget": budget, "seed": seed}
        rows.append(row | {"keys": len(failing), "tasks": tasks})
    return rows


def read_recorded() -> Bools:
    """Where SmolLM2-135M-Instruct errs: shape (40 tasks, 15 prompts of each).

    Forty short questions, plain, with typos and in capitals, each alone or behind one of the four
    distractors of `groundfault_lab.probes.perturbations`. Asked greedily, 14 tokens at most, by
    scripts/smollm2_answers.py after "Answer with the answer alone.". Right is an answer that holds
    the key as a word.
    """
    table = pl.read_parquet(Path(__file__).with_name("smollm2_answers.parquet"))
    wrong = [
        re.search(rf"(?i)\b({row['key']})\b", row["answer"]) is None
        for row in table.iter_rows(named=True)
    ]
    return np.array(wrong).reshape(-1, int(np.prod(_RECORDED_SIZES)))


_OPEN: dict[Path, models.Target] = {}


def _open(folder: Path) -> models.Target:
    # loading takes longer than answers; half precision, as they are stored, is slow on processors
    if folder not in _OPEN:
        _OPEN[folder] = models.get(f"hf/{folder}", device="cpu", dtype="float32")
    return _OPEN[folder]


def list_questions(folder: Path, model: str, bank: Bank) -> dict[str, tuple[Any, ...]]:
    """Arguments of `ask_tasks` by name, some tasks each."""
    ids = [task.id for task in bank]
    parts = [ids[start : start + _TASKS_A_PART] for start in range(0, len(ids), _TASKS_A_PART)]
    return {
        f"{model}, {' and '.join(part)}, {GRAMMAR.hash[:12]}": (folder, model, bank, part)
        for part in parts
    }


def _ask_all(bank: Bank, folder: Path, keep: Path | None, progress: Progress) -> dict[str, Bools]:
    """Where each network errs: shape (tasks, assignments)."""
    wrong = {}
    for model in MODELS:
        answers = resume_parts(
            list_questions(folder, model, bank), ask_tasks, keep, progress=progress
        )
        errors = [
            compare(row["answer"], bank[row["key"].split("|")[0]].answer, "exact").same is not True
            for row in answers
        ]
        wrong[model] = np.array(errors).reshape(len(bank), len(GRAMMAR))
    return wrong


def _list_runs(wrong: Mapping[str, Bools], size: int, seeds: int) -> dict[str, tuple[Any, ...]]:
    """Arguments of `play_seeds` by name, which says all that a run depends on."""
    parts = {}
    for model, budget, policy in product(wrong, BUDGETS, POLICIES):
        errs = wrong[model]
        world = hashlib.sha256(np.packbits(errs).tobytes()).hexdigest()[:12]
        for start in range(0, seeds, _SEEDS_A_PART):
            ends = (start, min(start + _SEEDS_A_PART, seeds))
            name = f"{model}, {policy}, {budget}, {size} of {len(errs)}, {ends}, {world}"
            parts[name] = (model, errs, size, policy, budget, ends)
    return parts
