"""A matched arena: policies on the same landscapes, with the same budget, task stream and audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from groundfault.base.arrays import Bools, Floats
from groundfault.base.long_work import Progress, listener, run_in_order
from groundfault.base.reading import MAX_ROWS, read_text
from groundfault.core.plan import Plan
from groundfault.errors import InputError, PlanError, require_name
from groundfault.probes.policies import get
from groundfault.probes.policies.history import Keys, PromptHistory, PromptPolicy
from groundfault_lab.probes.policies import POLICIES
from groundfault_lab.stats.paired import ratio, student

# the shipped bank and grammar: 18 tasks, three groups of three options
TASKS, SIZES = 18, (3, 3, 3)
# a landscape is held in memory: three arrays of so many keys are 3 MB
_MAX_KEYS = 1_000_000
_ARTEFACTS = 0.1  # share of the keys of one format whose right answers are read wrongly


@dataclass(frozen=True, eq=False)
class Landscape:
    """The answers of a model to every prompt key, always the same.

    Attributes
    ----------
    wrong : bool array, shape (K,)
        The model errs: what an audit would confirm.
    mismatch : bool array, shape (K,)
        The routing signal: errors, and answers that are read wrongly.
    tasks : int
    sizes : tuple of int
        Options of each group.
    blocked : bool array, shape (K,), optional
        Keys that cannot be asked.
    """

    wrong: Bools
    mismatch: Bools
    tasks: int = TASKS
    sizes: tuple[int, ...] = SIZES
    blocked: Bools | None = None


def draw_landscape(world: str, rng: np.random.Generator) -> Landscape:
    """Draw a landscape of 18 tasks by 27 assignments from one of `WORLDS`."""
    require_name("landscape", world, WORLDS)
    options = np.stack(np.unravel_index(np.arange(27), SIZES), axis=1)
    wrong = rng.random((TASKS, 27)) < WORLDS[world](options, rng)
    # artefacts gather in one format, as a reader that fails on a format would make them
    misread_rate = (options[:, 2] == rng.integers(3)) & (rng.random((TASKS, 27)) < _ARTEFACTS)
    return Landscape(wrong.ravel(), (wrong | misread_rate).ravel())


@dataclass(frozen=True, eq=False)
class ReplayedRun:
    """An exhaustive run, by model.

    Attributes
    ----------
    landscapes : mapping of str to Landscape
    audited : bool
        Whether ``wrong`` is what people confirmed. Otherwise it is the routing signal itself, a
        proxy.
    """

    landscapes: Mapping[str, Landscape]
    audited: bool


def load_replay(path: str | Path, store: str | Path | None = None) -> ReplayedRun:
    """Read what was answered to every prompt key, to be asked again by other policies.

    Parameters
    ----------
    path : path
        A folder that ``groundfault lab probe run`` wrote with every valid prompt, or a JSONL file
        with an object for each prompt: ``key`` (task and options, joined by bars), ``mismatch``
        (true or false), after a review ``wrong``, and ``model`` where there are several.
    store : path or str, optional
        Where the reviews of a folder are, if not in it.

    Raises
    ------
    InputError
        If the file is no such thing, or a valid prompt has no answer.
    """
    by_model = _read_runs(Path(path), store) if Path(path).is_dir() else _read_lines(Path(path))
    outcomes = [outcome for keys in by_model.values() for outcome in keys.values() if outcome]
    audited = all(outcome.wrong is not None for outcome in outcomes)
    return ReplayedRun(
        {model: _make_landscape(path, keys, audited) for model, keys in by_model.items()}, audited
    )


class _KeyOutcome(Struct, frozen=True):
    """The outcome of a key; whether the model erred is known only after a review."""

    mismatch: bool
    wrong: bool | None = None


class _Line(_KeyOutcome, frozen=True, kw_only=True):
    """A line of a JSONL file: the outcome of a key of a model."""

    key: str
    model: str = "model"


_Keys = dict[str, _KeyOutcome | None]  # None for a key that cannot be asked


def _read_runs(folder: Path, store: str | Path | None) -> dict[str, _Keys]:
    from groundfault.probes.bank.rendering import probes
    from groundfault.probes.review.reviewed_runs import ReviewedRuns
    from groundfault.probes.running.runs import Runs

    runs = Runs(folder)
    statuses = ReviewedRuns(runs, store).statuses
    routed = [row for row in runs.rows if row.is_routed]
    # one open row would make a landscape of two kinds of truth: then all of it is the signal
    audited = not any(statuses[row.id] in ("unaudited", "disputed") for row in routed)
    by_model: dict[str, _Keys] = {}
    for row in runs.rows:
        if row.status == "answered":  # the first answer to a key counts
            wrong = statuses[row.id] == "confirmed_model_error" if audited else None
            by_model.setdefault(row.model, {}).setdefault(
                row.key, _KeyOutcome(row.signal == "mismatch", wrong)
            )
    prompts = list(probes(runs.bank, runs.grammar))
    valid = [probe.key for probe in prompts if not probe.errors]
    for model, keys in by_model.items():
        lacking = [key for key in valid if key not in keys]
        if lacking:
            raise InputError(
                f"{folder} is no exhaustive run of {model}: {len(lacking):,} of {len(valid):,} "
                f"valid prompts have no answer (first {lacking[0]}); run the policy exhaustive "
                f"with a budget of {len(valid):,}"
            )
    return {
        model: {probe.key: keys.get(probe.key) for probe in prompts}
        for model, keys in by_model.items()
    }


def _read_lines(path: Path) -> dict[str, _Keys]:
    by_model: dict[str, _Keys] = {}
    try:
        lines = read_text(path, MAX_ROWS).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}"
        ) from None
    for number, line in enumerate(lines, start=1):
        outcome = _read_line(line, f"{path}, line {number}")
        keys = by_model.setdefault(outcome.model, {})
        if outcome.key in keys:
            raise InputError(f"{path}, line {number}: the key {outcome.key!r} was there before")
        keys[outcome.key] = outcome
    if not by_model:
        raise InputError(f"{path} holds no prompt keys")
    return by_model


def _read_line(line: str, where: str) -> _Line:
    try:
        return msgspec.json.decode(line, type=_Line)
    except msgspec.ValidationError as error:
        for part, problem in {
            "$.mismatch": "mismatch and wrong must be true or false",
            "$.wrong": "mismatch and wrong must be true or false",
            "$.": "model and key must be texts",
        }.items():
            if part in str(error):
                raise InputError(f"{where}: {problem}") from None
    except (ValueError, RecursionError):
        pass
    raise InputError(
        f'{where}: write {{"key": "task|option|option", "mismatch": true, "wrong": true}}'
    )


def _make_landscape(path: str | Path, keys: _Keys, audited: bool) -> Landscape:
    by_parts = {tuple(key.split("|")): outcome for key, outcome in keys.items()}
    width = {len(parts) for parts in by_parts}
    if len(width) > 1 or width == {1}:
        raise InputError(
            f"{path}: a key is a task and one option of each group, joined by bars, as many in each"
        )
    # in the order of the file, which numbers tasks and options as the grammar does
    names = [list(dict.fromkeys(column)) for column in zip(*by_parts, strict=True)]
    shape = tuple(map(len, names))
    if np.prod(shape, dtype=float) > _MAX_KEYS:
        raise InputError(
            f"{path}: its tasks and options make more than {_MAX_KEYS:,} keys; name them alike in "
            "every key"
        )
    wrong, mismatch, available = (np.zeros(shape, dtype=bool) for _ in range(3))
    for parts, outcome in by_parts.items():
        if outcome is not None:
            at = tuple(column.index(part) for column, part in zip(names, parts, strict=True))
            available[at], mismatch[at] = True, outcome.mismatch
            wrong[at] = outcome.wrong if audited else outcome.mismatch
    return Landscape(wrong.ravel(), mismatch.ravel(), shape[0], shape[1:], ~available.ravel())


def _make_sparse_by_task(options: Keys, rng: np.random.Generator) -> Floats:  # noqa: ARG001
    brittle = np.isin(np.arange(TASKS), rng.choice(TASKS, 3, replace=False))
    return np.where(brittle, 0.35, 0.013)[:, None] * np.ones(27)


def _make_sparse_by_component(options: Keys, rng: np.random.Generator) -> Floats:
    groups = rng.choice(3, 2, replace=False)
    on = (options[:, groups] == rng.integers(3, size=2)).all(axis=1)
    return np.ones((TASKS, 1)) * np.where(on, 0.4, 0.018)


def _make_task_by_component(options: Keys, rng: np.random.Generator) -> Floats:
    chance = np.full((TASKS, 27), 0.02)
    for task in rng.choice(TASKS, 6, replace=False):
        chance[task, options[:, rng.integers(3)] == rng.integers(3)] = 0.6
    return chance


def _make_diffuse(options: Keys, rng: np.random.Generator) -> Floats:
    effects = rng.normal(0, 0.7, (3, 3))
    within = sum((effects[g][options[:, g]] for g in range(3)), np.zeros(27))
    return np.asarray(1 / (1 + np.exp(2.6 - rng.normal(0, 1, (TASKS, 1)) - within)))


def _make_unstructured(options: Keys, rng: np.random.Generator) -> Floats:  # noqa: ARG001
    return np.full((TASKS, 27), 0.13)


WORLDS: dict[str, Callable[[Keys, np.random.Generator], Floats]] = {
    "sparse by task": _make_sparse_by_task,
    "sparse by component": _make_sparse_by_component,
    "task by component": _make_task_by_component,
    "diffuse": _make_diffuse,
    "unstructured": _make_unstructured,
}
"""Chances of an error by kind of landscape: shape (18, 27)."""


Interval = tuple[float, float]

MIN_LANDSCAPES = 20
"""Landscapes, or seeds of a replay, that a comparison needs."""


@dataclass(frozen=True)
class LeaderboardRow:
    """A policy on one kind of landscape, or on one replayed model.

    Attributes
    ----------
    world, policy : str
    budget : int
    keys : float
        Mean of the unique audited keys.
    gain : float
        Mean paired difference from the control in them.
    gain_interval : pair of float, or None
        None where all differences are alike, as the control's are.
    ratio : float or None
        Ratio of the mean to the control's.
    ratio_interval : pair of float, or None
    tasks, rows, artefacts : float
        Means of the distinct tasks among those keys, of confirmed rows, and of keys that the audit
        turns down.
    """

    world: str
    policy: str
    budget: int
    keys: float
    gain: float
    gain_interval: Interval | None
    ratio: float | None
    ratio_interval: Interval | None
    tasks: float
    rows: float
    artefacts: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)


def play_policy(
    policy: PromptPolicy,
    over: Landscape,
    *,
    budget: int,
    batch: int,
    plan: Plan,
    number: int,
    shared: bool = False,
) -> Keys:
    """Return the keys that a policy asks: shape (budget,), or fewer where none is left.

    With ``shared`` all policies draw components from one stream, as they always do tasks.
    """
    own = "components" if shared else f"components {policy.name}"
    keys = np.empty(0, dtype=np.intp)
    batches = -(-budget // batch)
    for turn in range(1, batches + 1):
        history = PromptHistory(
            over.tasks, over.sizes, keys, over.mismatch[keys], turn, batches, over.blocked
        )
        # the same tasks for every policy on a landscape, other ones on the next
        counter = number * batches + turn
        streams = (plan.rng(name, counter) for name in ("tasks", own))
        more = policy.ask(history, min(batch, budget - len(keys)), *streams)
        if not len(more):
            break
        keys = np.concatenate([keys, more])
    return keys


def arena(
    policies: Sequence[str] = tuple(POLICIES),
    worlds: Sequence[str] | None = None,
    *,
    replay: ReplayedRun | None = None,
    control: str = "stratified",
    budget: int = 192,
    batch: int = 3,
    landscapes: int = 40,
    seed: int = 0,
    level: float = 0.95,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[LeaderboardRow]:
    """Compare policies by the unique keys that an audit would confirm.

    Parameters
    ----------
    policies : sequence of str
        Names as `groundfault.probes.policies.get` takes them.
    worlds : sequence of str, optional
        Names of `WORLDS`, or of models that are replayed; all, where left out.
    replay : Replay, optional
        An exhaustive run, in place of simulated landscapes.
    control : str
        Policy that the others are compared with. They run on the same landscapes.
    budget : int
        Number of queries in a run.
    batch : int
        Number of queries before a policy sees the next signals.
    landscapes : int
        Number of landscapes of each kind, or of seeds in a replay; at least 20. Intervals of a
        replay are for its one model and bank.
    seed : int
        Seed of every random draw.
    level : float
        Coverage of the intervals: Student's for paired differences,
        `groundfault_lab.stats.paired.ratio`'s for ratios.
    jobs : int
        Processes; the answer does not depend on it.
    progress : callable, optional

    Raises
    ------
    PlanError
        If a name is unknown, the budget or batch is below 1, or there are fewer than 20 landscapes.

    Notes
    -----
    Tasks drawn at random come from one stream that all policies share; components from a stream of
    each policy's own. What a policy that adapts finds is no rate of failures."""
    if not 0 < level < 1:
        raise PlanError(f"level must be strictly between 0 and 1, not {level}")
    names, rival = [get(name).name for name in policies], get(control).name
    played = play(
        dict.fromkeys([*names, rival]),
        worlds,
        replay=replay,
        budget=budget,
        batch=batch,
        landscapes=landscapes,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    return [
        compare_with_control(world, name, budget, by_policy[name], by_policy[rival], level)
        for world, by_policy in played.items()
        for name in names
    ]


def play(
    policies: Iterable[str],
    worlds: Sequence[str] | None = None,
    *,
    replay: ReplayedRun | None = None,
    budget: int = 192,
    batch: int = 3,
    landscapes: int = 40,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[str, dict[str, Floats]]:
    """Count what policies find on the same landscapes: by world and policy, (landscapes, 4).

    Its columns are unique audited keys, their tasks, confirmed rows, and artefacts. Parameters and
    errors are those of `arena`.
    """
    from joblib import delayed

    if budget < 1 or batch < 1:
        raise PlanError(f"budget {budget} and batch {batch} must be at least 1")
    # an interval over fewer landscapes is wider than any difference one looks for
    if landscapes < MIN_LANDSCAPES:
        raise PlanError(
            f"a comparison of policies needs at least {MIN_LANDSCAPES} landscapes, not {landscapes}"
        )
    there: Any = replay.landscapes if replay else WORLDS
    for world in worlds or ():
        require_name("landscape", world, there)
    names, played = [get(name).name for name in policies], {}
    for world in worlds or there:
        over = there[world] if replay else world
        work = (
            delayed(_play_landscape)(names, over, budget, batch, seed, number)
            for number in range(landscapes)
        )
        counts: list[Any] = []
        for each in run_in_order(work, jobs):
            counts.append(each)
            listener(progress)(f"{world}: {len(counts)} of {landscapes}")
        table = np.array(counts, dtype=np.float64).transpose(1, 0, 2)
        played[world] = dict(zip(names, table, strict=True))
    return played


def compare_with_control(
    world: str, policy: str, budget: int, outcomes: Floats, control: Floats, level: float = 0.95
) -> LeaderboardRow:
    """Rank a policy by what it and the control found, each as `play` gives it."""
    rival = control[:, 0]
    keys, *others = map(float, outcomes.mean(axis=0))
    # paired: both played the same landscapes, whose spread would hide the difference
    gain = outcomes[:, 0] - rival
    more = ratio(outcomes[:, 0], rival, level)
    times = keys / float(rival.mean()) if rival.any() else None, more[1:] if more else None
    gains = float(gain.mean()), student(gain, level)
    return LeaderboardRow(world, policy, budget, keys, *gains, *times, *others)


def _play_landscape(
    names: Sequence[str], over: Landscape | str, budget: int, batch: int, seed: int, number: int
) -> Any:
    """Count for each policy on one landscape: keys, their tasks, confirmed rows, artefacts."""
    plan = Plan(seed=seed)
    if isinstance(over, str):
        over = draw_landscape(over, plan.rng(f"landscape {over}", number))
    play_one = partial(play_policy, over=over, budget=budget, batch=batch, plan=plan, number=number)
    return [_count_keys(play_one(get(name)), over) for name in names]


def _count_keys(keys: Keys, over: Landscape) -> tuple[int, int, int, int]:
    # a repeat is a row and no discovery
    unique = np.unique(keys)
    confirmed = unique[over.wrong[unique]]
    return (
        len(confirmed),
        len(np.unique(confirmed // int(np.prod(over.sizes)))),
        int(over.wrong[keys].sum()),
        int((over.mismatch & ~over.wrong)[unique].sum()),
    )
