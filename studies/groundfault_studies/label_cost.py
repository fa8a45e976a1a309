"""Label cost: labels until the right verdict, of a default plan and of the paper's best bet.

All audit the same draws: of the paper's pool, and of prompts that small models with known holes
answered. A default plan also starts from the failure modes of an earlier audit, of the same model
or of a sibling without a hole, is helped by a cheap grader of each case, or labels cases that are
written for the group in doubt.

References
----------
Zhou et al. (2026), *Adaptive auditing of AI systems with anytime-valid guarantees*,
arXiv:2605.07002."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault import audit
from groundfault.base.long_work import Progress, listener, stream
from groundfault.modes.mode import Mode
from groundfault.render.words import plural
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan, policies
from groundfault_studies.audit_runs import DEGRADATIONS, CachedPolicy, read_pool, words
from groundfault_studies.known_holes import FOLDER, HoleData, find_folder, read_holes
from groundfault_studies.resuming import Rows, resume_rounds
from groundfault_studies.shared_folder import require_shared
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value
from groundfault_studies.written_cases import BEFORE, CASES, label_written

REPLICATES, QUICK_REPLICATES, QUICK_MODELS = 100, 1, 2
HOLE_REPLICATES = 20
"""Draws of the prompts of known_holes at most, of which there are thirteen models."""

BETS = ("lr", "sr-lr", "lr-ui", "sr-lr-ui")
"""Of the paper; that with the lowest median is its best, setting by setting."""

AIM, PRIOR_AIM = 0.15, 0.3
"""Shares of the labels to be saved by the default, and by one that starts from an earlier audit."""

EARLIER = 2000
"""Prompts that the earlier audit saw, none of which is asked again."""

REPAIRED = "repaired"
"""Worlds in which all groups pass at the threshold, and the earlier modes are no more."""

AT_THRESHOLD = "at the threshold"
"""Pools of five groups of 40 cases, of each of which exactly as many pass as the threshold asks."""

_SOURCE = (
    "Zhou et al. (2026), Adaptive auditing of AI systems with anytime-valid guarantees, "
    "arXiv:2605.07002"
)
_RULES: Mapping[str, dict[str, Any]] = {
    "paper": {"policy": "adaptive:paper", "sampling": "paper"},
    "guaranteed": {"policy": "adaptive"},
    "default": {},
    "prior": {},
    "sibling": {},
    "written": {},
    "pool": {"claim": "declared-groups"},
} | {
    f"grader {percent}": {"claim": "declared-groups", "policy": "grader"}
    for percent in (70, 80, 90)
}
_SOLE = tuple(_RULES)[2:]
"""Rules with the bets of a default plan."""
_PRIORS = ("prior", "sibling")
_WRITTEN = "written"
_GRADERS = tuple(rule for rule in _RULES if rule.startswith("grader"))
"""Rules with a grade of each case, pass or fail, right in so many percent of them."""
_ID = "example_id"
_PROMPTS, _BELOW, _SHARE = 500, 0.05, 0.05
_GROUPS = ("task", "language", "number_style", "digits", "negated", "aside")
_RESAMPLES = 2000
_WORLDS = 4
"""Null worlds of each model and draw."""
_CASES, _PASSING = 40, 34


@dataclass(frozen=True, eq=False)
class Draw:
    """Cases with the scores of one replicate, and what is so of those that they are drawn from."""

    pool: Pool
    scores: NDArray[np.float64]
    threshold: float
    budget: int
    right: str


def study(
    shared: str | Path | None = None,
    *,
    replicates: int | None = None,
    jobs: int = 1,
    quick: bool = False,
    keep: Path | None = None,
    progress: Progress | None = None,
    show: Callable[[PaperStudy], object] | None = None,
) -> PaperStudy:
    """Count labels until the right verdict.

    Parameters
    ----------
    shared : path, optional
        Folder with ``savi_pool`` and ``real/known_holes``; left out, ``$GROUNDFAULT_SHARED`` or
        ``../shared/data``. Where the latter is not there, the former is audited alone.
    replicates : int, optional
        Draws of the pool, at most 100, and of known_holes, at most 20; left out, 100, or quickly 1.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        One draw, and two models of known_holes: to see that it runs, not for conclusions.
    keep : path, optional
        File of what is done; a study that was interrupted goes on from there.
    progress : callable, optional
    show : callable, optional
        Called with the study of the draws so far, after 1, 2, 4, 8, ... of them.

    Raises
    ------
    InputError
        If there is no pool.
    """
    folder = require_shared(shared, "savi_pool").parent
    replicates = min(replicates or (QUICK_REPLICATES if quick else REPLICATES), REPLICATES)
    holes = find_folder(folder)
    settings = [("pool", name) for name in DEGRADATIONS]
    if holes.exists():
        data = read_holes(holes)
        models = [name for name in data.models if data.holes[name][1] is not None]
        named = models[: QUICK_MODELS if quick else None]
        settings += [(source, name) for source in (FOLDER.name, REPAIRED) for name in named]
    settings.append((AT_THRESHOLD, "five groups"))
    rounds = [
        {
            f"{source}, {name}, {rule}, draw {draw}": (folder, source, name, rule, draw)
            for source, name in settings
            for rule in _RULES
            if _is_run(source, rule, draw)
        }
        for draw in range(1, replicates + 1)
    ]

    def make(rows: Rows, count: int) -> PaperStudy:
        title = "Labels until the right verdict"
        lacking = () if holes.exists() else (f"{FOLDER.name}, which is not in {folder}",)
        details = {"replicates": count, "bets": list(BETS), "resamples": _RESAMPLES}
        return PaperStudy("label-cost", title, _SOURCE, details, (_table(rows),), lacking)

    partial = None if show is None else lambda rows, count: show(make(rows, count))
    rows = resume_rounds(rounds, audit_draw, keep, jobs, listener(progress), partial)
    return make(rows, replicates)


def _is_run(source: str, rule: str, draw: int) -> bool:
    """Whether a rule audits a draw of a source."""
    if source == "pool":
        return rule not in (*_PRIORS, _WRITTEN)
    if source == AT_THRESHOLD:
        return rule in _GRADERS
    return draw <= HOLE_REPLICATES and (source == FOLDER.name or rule == "prior")


def audit_draw(folder: Path, source: str, name: str, rule: str, draw: int) -> Rows:
    """A row for each bet: what an audit by a rule comes to."""
    find = {"pool": _draw_pool, AT_THRESHOLD: _draw_at_threshold}.get(source, _draw_prompts)
    here = find(folder, name, draw)
    pool, details = here.pool, _RULES[rule]
    if details.get("sampling") != "paper":
        # the claim is about the population, for which a policy may know no more than the groups
        pool = replace(pool, embedding=None, embedded="")
    policy = policies.get(details.get("policy", SequentialPlan.policy))
    common: dict[str, Any] = {"threshold": here.threshold, "budget": here.budget, "seed": draw}
    common |= {"warm_up": getattr(policy, "warm_up", 0)}
    if rule in _PRIORS:
        earlier = name if rule == "prior" else _find_sibling(folder, name)
        modes = _find_modes(folder, earlier, draw)
        pool, common["prior"] = pool.declare_modes(modes, here.threshold)
    plans = {
        bet: SequentialPlan(**details, **common, bet=None if bet == "default" else bet)
        for bet in (("default",) if rule in _SOLE else BETS)
    }
    # grades differ from world to world, by which nothing is remembered
    remembered = policy if rule in _GRADERS else CachedPolicy(policy)
    worlds = [(here.scores, here.right)]
    if source == REPAIRED:
        worlds = list(_list_worlds(here, name, draw))
    if source == AT_THRESHOLD:
        worlds = list(_list_null_worlds(draw))
    rows = []
    for bet, plan in plans.items():
        for scores, right in worlds:
            if details.get("claim"):
                below = pool.members @ scores / pool.sizes < here.threshold - 1e-12
                right = "failure mode found" if below.any() else "audit passed"
            if rule in _GRADERS:
                pool = _grade(pool, scores, int(rule.split()[1]), draw)
            about = {"source": source, "setting": name, "rule": rule, "draw": draw, "bet": bet}
            if rule == _WRITTEN:
                _, asked = _sample_prompts(folder, draw)
                all_scores = 1.0 - _holes(folder).errors[name]
                verdict, labels, true = label_written(
                    pool, plan, remembered, scores, _declare_all(folder), all_scores, asked
                )
                right = true or right
            else:
                audit = SequentialAudit.of(pool, plan, policy=remembered)
                verdict = audit.run(lambda query: float(scores[pool.position[query.id]]))  # noqa: B023
                labels = audit.labelled
            labels = labels if verdict == right else here.budget
            rows.append(about | {"verdict": verdict, "right": right, "labels": labels})
    return rows


def _list_worlds(here: Draw, name: str, draw: int) -> Iterator[tuple[NDArray[np.float64], str]]:
    """Scores of models without a failing group, which pass with the chance asked for."""
    for world in range(_WORLDS):
        chance = stream(draw, f"label cost repaired {name}", world).random(len(here.pool))
        yield (chance < here.threshold).astype(np.float64), "audit passed"


def _draw_at_threshold(folder: Path, name: str, draw: int) -> Draw:  # noqa: ARG001
    groups = np.repeat(list("abcde"), _CASES)
    pool = Pool.from_arrays([f"{i:03d}" for i in range(len(groups))], {"group": groups})
    return Draw(pool, np.zeros(len(groups)), _PASSING / _CASES, 120, "audit passed")


def _list_null_worlds(draw: int) -> Iterator[tuple[NDArray[np.float64], str]]:
    """Scores of which every group holds exactly as many passes as the threshold asks for."""
    for world in range(_WORLDS):
        rng = stream(draw, "label cost at the threshold", world)
        places = rng.permuted(np.tile(np.arange(_CASES), (5, 1)), axis=1)
        yield (places < _PASSING).ravel().astype(np.float64), "audit passed"


def _grade(pool: Pool, scores: NDArray[np.float64], percent: int, draw: int) -> Pool:
    """The pool with grades that are right in so many percent of its cases."""
    is_right = stream(draw, "label cost grader", percent).random(len(pool)) < percent / 100
    grades = np.where(is_right, scores, 1.0 - scores)[:, None]
    grades.setflags(write=False)
    return replace(pool, embedding=grades, embedded=f"grades {percent} {draw}")


def _draw_pool(folder: Path, name: str, draw: int) -> Draw:
    setting = next(setting for setting in read_pool(folder) if setting.name == name)
    # of the accuracies that scores are drawn by: with the degradation None all groups reach it
    right = "audit passed" if name == "None" else "failure mode found"
    return Draw(setting.pool, setting.scores(draw), setting.threshold, setting.budget, right)


def _draw_prompts(folder: Path, name: str, draw: int) -> Draw:
    pool, rows = _sample_prompts(folder, draw)
    data = _holes(folder)
    scores = 1.0 - data.errors[name]
    threshold = round(float(scores.mean()) - _BELOW, 2)
    whole = _declare_all(folder)
    means = whole.members @ scores / whole.sizes
    is_sound = bool((means[whole.sizes >= _SHARE * len(whole)] >= threshold).all())
    right = "audit passed" if is_sound else "failure mode found"
    return Draw(pool, scores[rows], threshold, 250, right)


@cache
def _sample_prompts(folder: Path, draw: int) -> tuple[Pool, NDArray[np.int64]]:
    """A sample of the prompts, the same for all models, with groups of at least 5 % of it."""
    examples = _holes(folder).examples
    rows = np.sort(stream(draw, "label cost").choice(examples.height, _PROMPTS, replace=False))
    table = examples[rows]
    pool = replace(_declare(table, words(table["prompt"])), cases=table.sort(_ID))
    large = pool.sizes >= _SHARE * len(pool)
    names = tuple(name for name, enough in zip(pool.groups, large, strict=True) if enough)
    return replace(pool, groups=names, members=pool.members[large]), rows


@cache
def _declare_all(folder: Path) -> Pool:
    return _declare(_holes(folder).examples)


def _holes(folder: Path) -> HoleData:
    return read_holes(find_folder(folder))


def _find_sibling(folder: Path, name: str) -> str:
    """The network without a hole that fails about as often."""
    data = _holes(folder)
    rates = {model: float(data.errors[model].mean()) for model in data.models}
    controls = [model for model, (_, hole) in data.holes.items() if hole is None]
    return min(controls, key=lambda model: abs(rates[model] - rates[name]))


@cache
def _find_modes(folder: Path, model: str, draw: int) -> tuple[Mode, ...]:
    """The failure modes of a model on prompts that the draw does not hold."""
    data, (_, asked) = _holes(folder), _sample_prompts(folder, draw)
    rest = np.setdiff1d(np.arange(data.examples.height), asked)
    seen = np.zeros(data.examples.height, dtype=np.bool_)
    seen[stream(draw, "label cost earlier").choice(rest, EARLIER, replace=False)] = True
    return audit(data.evidence(model, seen, True)).modes


def _declare(table: pl.DataFrame, embedding: NDArray[np.float64] | None = None) -> Pool:
    return Pool.from_table(
        table.select("example_id", *(pl.col(name).cast(pl.String) for name in _GROUPS)),
        id="example_id",
        groups=list(_GROUPS),
        embedding=embedding,
    )


def _table(rows: Rows) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "paper": ("paper's rule", "text"),
        "guaranteed": ("its bets with our guarantee", "text"),
        "default": ("default", "text"),
        "prior": ("with an earlier audit", "text"),
        "sibling": ("with a sibling's", "text"),
        "prior from paper": ("earlier audit to paper's rule", "text"),
        "from paper": ("default to paper's rule", "text"),
        "from guaranteed": ("default to its bets", "text"),
        _WRITTEN: ("with cases written", "text"),
        "written from default": ("cases written to default", "text"),
        "pool": ("default, of these cases", "text"),
        **{rule: (f"with a {rule}% right", "text") for rule in _GRADERS},
        "wrong": ("wrong verdicts", "text"),
    }
    frame = pl.DataFrame(rows)
    lines = [
        PaperRow(
            f"{part['source'][0]}: {part['setting'][0]}, {plural(part['draw'].n_unique(), 'draw')}",
            compare_rules(part, part["draw"].n_unique()),
        )
        for (source, _), part in frame.group_by("source", "setting", maintain_order=True)
        if source not in (REPAIRED, AT_THRESHOLD)
    ]
    for source in (FOLDER.name, REPAIRED):
        holes = frame.filter(pl.col("source") == source)
        if len(holes):
            models = holes["setting"].n_unique()
            label = f"{source}: all {plural(models, 'model')}"
            lines.append(PaperRow(label, compare_rules(holes, models)))
    nulls = frame.filter(pl.col("source") == AT_THRESHOLD)
    lines.append(
        PaperRow(f"{AT_THRESHOLD}: {plural(len(nulls), 'audit')}", compare_rules(nulls, 1))
    )
    note = (
        "Median labels over draws; where the right verdict did not come, the budget, 250, counts. "
        "Of the paper's four bets the one of lowest median is taken, with its policy and a burn-in "
        "of 40: by its own sampling, which keeps no error rate, so that fewer labels may be bought "
        "by wrong verdicts; and by ours, with the claim of a default plan. An earlier audit named "
        f"failure modes by {EARLIER:,} other prompts, whose labels are not counted here; a sibling "
        f"is a network without a hole. After {BEFORE} labels {CASES} cases are written for the "
        "group claimed last and labelled in an audit of their own, then the pool goes on if that "
        "found nothing; the writer draws unseen prompts of the group, and the verdict is about "
        "these. In repaired worlds every prompt passes with the chance that is asked for, and the "
        "earlier modes are no more. A grade of each case, pass or fail, is "
        "right in 70, 80 or 90 % of them; these audits are about the cases of the pool, as one of "
        "the default without grades is. At the threshold each of five groups has exactly as many "
        "passes as asked for, and every accusation is false. Differences in percent "
        f"with 95 % intervals of {_RESAMPLES:,} bootstrap samples of draws, and of models in the "
        "last line (percentiles). Right is what is so of the accuracies that scores are drawn by, "
        "or of all 10,000 prompts, or where an audit is about the cases of the pool, of these."
    )
    return PaperTable("Labels until the right verdict", note, columns, tuple(lines))


def compare_rules(part: pl.DataFrame, units: int) -> dict[str, Value]:
    """Median labels of each rule by its best bet, and the default's difference in percent.

    Parameters
    ----------
    part : polars.DataFrame
        Rows of `audit_draw` of one setting, or of several with equally many draws.
    units : int
        What is resampled for the interval: the draws of one setting, or several settings.
    """
    run = [rule for rule in _RULES if rule in part["rule"]]
    best = {rule: _select_best_bet(part.filter(pl.col("rule") == rule)) for rule in run}
    here: dict[str, Value] = {}
    for rule, audits in best.items():
        bet = "" if rule in _SOLE else f" ({audits['bet'][0]})"
        here[rule] = f"{np.median(audits['labels'].to_numpy()):g}{bet}"
    labels = {
        rule: audits["labels"].to_numpy().astype(np.float64).reshape(units, -1)
        for rule, audits in best.items()
    }
    for rival in ("paper", "guaranteed") if "default" in labels else ():
        here[f"from {rival}"] = _format_saving(labels["default"], labels[rival])
    for rule in labels.keys() & set(_GRADERS) if "paper" in labels else ():
        here[rule] = f"{here[rule]}, {_format_saving(labels[rule], labels['paper'], PRIOR_AIM)}"
    if {"default", _WRITTEN} <= labels.keys():
        saving = _format_saving(labels[_WRITTEN], labels["default"], PRIOR_AIM)
        here["written from default"] = saving
    if {"paper", "prior"} <= labels.keys():
        here["prior from paper"] = _format_saving(labels["prior"], labels["paper"], PRIOR_AIM)
    wrong = (pl.col("verdict") != pl.col("right")) & (pl.col("verdict") != "inconclusive")
    shares = [audits.select(wrong.mean()).item() for audits in best.values()]
    here["wrong"] = " / ".join(f"{share:.0%}" for share in shares)
    return here


def _select_best_bet(audits: pl.DataFrame) -> pl.DataFrame:
    """The audits of the bet of lowest median, setting by setting and draw by draw."""
    medians = audits.group_by("bet").agg(pl.col("labels").median()).sort("labels", "bet")
    return audits.filter(pl.col("bet") == medians["bet"][0]).sort("setting", "draw")


def _format_saving(ours: NDArray[np.float64], other: NDArray[np.float64], aim: float = AIM) -> str:
    """The difference of medians in percent, and whether it reaches the aim; a row a unit."""
    change = f"{np.median(ours) / np.median(other) - 1:+.0%}".replace("-", "−")
    if len(ours) == 1:
        return f"{change}, of one draw"
    at = stream(0, "label cost medians").integers(0, len(ours), (_RESAMPLES, len(ours)))
    resampled = (np.median(labels[at], axis=(1, 2)) for labels in (ours, other))
    low, high = np.quantile(next(resampled) / next(resampled) - 1, (0.025, 0.975))
    verdict = "reached" if high <= -aim else "not reached" if low > -aim else "not shown"
    return f"{change} [{low:+.0%}, {high:+.0%}]: {verdict}".replace("-", "−")
