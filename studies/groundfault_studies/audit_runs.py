"""Settings in which audits are compared, and the audits: one trajectory of a policy serves all bets
and burn-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.long_work import Progress
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan, policies
from groundfault.sequential.policies import History, Policy, Query
from groundfault_studies.resuming import resume_rounds

Floats = NDArray[np.float64]

DEGRADATIONS = ("Large", "Medium", "Small", "None")
_MODEL, _DEEPEST = "gpt-4o-mini-2024-07-18", 3
_LEAST, _MOST = (
    36,
    81,
)  # cases of a category: to be worth a category, and the notes of the paper's experiment
_TRAINED = 150


@dataclass(frozen=True)
class Method:
    """How an audit looks and bets.

    Attributes
    ----------
    label : str
        What the paper calls it; the last two are none of the paper's.
    policy : str
        ``oracle`` is completed by the setting's failing group.
    bet : str, optional
        None for the bets of a default plan.
    """

    label: str
    policy: str
    bet: str | None


METHODS = (
    Method("LR, adaptive", "adaptive", "lr"),
    Method("SR-LR, adaptive", "adaptive", "sr-lr"),
    Method("LR-UI, adaptive", "adaptive", "lr-ui"),
    Method("SR-LR-UI, adaptive", "adaptive", "sr-lr-ui"),
    Method("LR, pre-learned", "prelearned", "lr"),
    Method("LR, oracle", "oracle", "lr"),
    Method("LR, stratified", "stratified", "lr"),
    Method("SR-LR-UI, logistic", "logistic", "sr-lr-ui"),
    Method("default plan", SequentialPlan.policy, None),
)
MAIN = "SR-LR-UI, adaptive"


@dataclass(frozen=True, eq=False)
class Setting:
    """A pool of cases, and the truth about it.

    Attributes
    ----------
    experiment, name : str
    pool : Pool
    scores : callable
        The score of every case in a replicate: of its number, from 1, a float64 array of shape
        (N,).
    threshold : float
    budget : int
    failing : str
        The group that an oracle knows; where none fails, the one that it believes in.
    sound : bool
        Of generated cases: whether every category's generator reaches the threshold.
    accuracy : mapping of str to float
        Of every category, where they are known.
    """

    experiment: str
    name: str
    pool: Pool
    scores: Callable[[int], Floats]
    threshold: float
    budget: int
    failing: str
    sound: bool = False
    accuracy: dict[str, float] = field(default_factory=dict)

    def right(self, replicate: int) -> str:
        """The right verdict: of given cases, what their scores in a replicate make it."""
        sound = self.sound
        if not self.pool.generated:
            means = self.pool.members @ self.scores(replicate) / self.pool.sizes
            sound = bool((means >= self.threshold - 1e-12).all())
        return "audit passed" if sound else "failure mode found"


def run_audits(
    setting: Setting, policy: str, burn_ins: Sequence[int], replicate: int
) -> list[dict[str, Any]]:
    """What audits of one policy come to in one replicate: a row for each bet and burn-in."""
    name = f"oracle:{setting.failing}" if policy == "oracle" else policy
    remembered = CachedPolicy(policies.get(name))
    scores = setting.scores(replicate)
    rows = []
    for method in (m for m in METHODS if m.policy == policy):
        for burn_in in burn_ins:
            plan = SequentialPlan(
                threshold=setting.threshold,
                burn_in=burn_in,
                policy=name,
                bet=method.bet,
                seed=replicate,
                # the right verdict is counted in the cases themselves
                claim="declared-groups",
                budget=setting.budget,
                warm_up=getattr(remembered.policy, "warm_up", 0),
            )
            audit = SequentialAudit.of(setting.pool, plan, policy=remembered)
            audit.run(lambda query: float(scores[setting.pool.position[query.id]]))
            rows.append(
                {
                    "experiment": setting.experiment,
                    "setting": setting.name,
                    "method": method.label,
                    "m": burn_in,
                    "replicate": replicate,
                    "verdict": audit.verdict,
                    "right": setting.right(replicate),
                    "labelled": audit.labelled,
                    "tested": audit.tested,
                    "drawn": _count_tested(setting, audit) if method.label == MAIN else {},
                    "curve": _curve(audit) if method.label == MAIN and replicate == 1 else [],
                }
            )
    return rows


@dataclass(frozen=True)
class CachedPolicy:
    """A policy that is not asked twice about the same history: bets and burn-ins change nothing of
    what it sees.
    """

    policy: Policy
    answers: dict[tuple[bytes, bytes], Query | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The policy's own."""
        return self.policy.name

    def ask(self, history: History, rng: np.random.Generator) -> Query | None:
        """What the policy says, worked out once."""
        key = (history.positions.tobytes(), history.scores.tobytes())
        if key not in self.answers:
            self.answers[key] = self.policy.ask(history, rng)
        return self.answers[key]


def _count_tested(setting: Setting, audit: SequentialAudit) -> dict[str, int]:
    """Tested cases of each category."""
    positions = [setting.pool.position[r.query.id] for r in audit.rounds if r.query.stake]
    counts = setting.pool.members[:, positions].sum(axis=1)
    return {name: int(count) for name, count in zip(setting.pool.groups, counts, strict=True)}


def _curve(audit: SequentialAudit) -> list[list[float]]:
    return [
        [r.query.step, min(r.log_e.model, 50.0), min(r.log_e.auditor, 50.0)]
        for r in audit.rounds
        if r.closed
    ]


# --------------------------------------------------------------------------------- --- the settings


@cache
def read_pool(folder: Path) -> tuple[Setting, ...]:
    """Experiment 1 (a): 448 questions of three domains, and the scores that the reference draws for
    them.

    Groups are the domains, and the levels of each domain that have at least 5 % of the questions.
    """
    place = folder / "savi_pool"
    pool = Pool.from_table(
        place / "pool_a.parquet",
        id="question_id",
        groups=["domain", "domain*level"],
        embedding=place / "pool_a_embeddings.parquet",
    )
    large = pool.sizes >= 0.05 * len(pool)
    groups = tuple(name for name, enough in zip(pool.groups, large, strict=True) if enough)
    pool = replace(pool, groups=groups, members=pool.members[large])
    labels = pl.read_parquet(place / "labels_a.parquet").sort("question_id")

    def scores(name: str) -> Callable[[int], Floats]:
        return lambda replicate: labels[f"{name}_s{replicate:03d}"].to_numpy().astype(float)

    return tuple(
        Setting("1a", name, pool, scores(name), 0.85, 250, "domain=Chemistry")
        for name in DEGRADATIONS
    )


@cache
def read_bank(folder: Path) -> tuple[Setting, ...]:
    """Experiment 1 (b): questions generated on request, 300 for each of nine categories."""
    place = folder / "savi_pool"
    pool = Pool.from_table(
        place / "bank_b.parquet",
        id="question_id",
        groups=["domain*level"],
        embedding=place / "bank_b_embeddings.parquet",
        generated=True,
    )
    table = pl.read_parquet(place / "bank_b.parquet").sort("question_id")

    def scores(number: int, name: str) -> Callable[[int], Floats]:
        chance = table[f"p_{name}"].to_numpy()
        return lambda replicate: (
            np.random.default_rng([replicate, number]).random(len(chance)) < chance
        ).astype(float)

    worst = "domain=chemistry, level=postgrad"
    return tuple(
        Setting("1b", name, pool, scores(number, name), 0.85, 250, worst, name == "None")
        for number, name in enumerate(DEGRADATIONS)
    )


@cache
def skills(folder: Path) -> Setting:
    """Experiment 2, in form: a model's real answers to competition mathematics, in the skills of a
    published tree.
    """
    place = folder / "real" / "evaltree"
    answers = pl.read_parquet(place / "outcomes.parquet").filter(pl.col("model") == _MODEL)
    examples = pl.read_parquet(place / "examples.parquet").filter(pl.col("tree_path").is_not_null())
    skill = pl.col("tree_path").str.split("/").list.head(_DEEPEST).list.join(".")
    table = examples.with_columns(skill=skill).join(
        answers.select("example_id", "correct"), on="example_id"
    )
    table = table.filter(pl.len().over("skill") >= _LEAST).sort("example_id")
    order = np.random.default_rng(2).permutation(table.height)
    table = table[order].filter(pl.int_range(pl.len()).over("skill") < _MOST).sort("example_id")
    pool = Pool.from_table(
        table.select("example_id", "skill"),
        id="example_id",
        groups=["skill"],
        embedding=words(table["capability"]),
    )
    right = table["correct"].to_numpy().astype(float)
    accuracy = {
        f"skill={k}": a
        for k, a in table.group_by("skill").agg(pl.col("correct").mean()).iter_rows()
    }
    threshold = round(float(right.mean()) - 0.05, 2)  # the paper's 0.83 is as far below its 0.88
    worst = min(accuracy, key=accuracy.__getitem__)
    return Setting(
        "2",
        f"{len(accuracy)} skills",
        pool,
        lambda _: right,
        threshold,
        400,
        worst,
        accuracy=accuracy,
    )


@cache
def digits() -> Setting:
    """The image experiment, in form: a network that reads digits, its own embedding and its own
    mistakes.
    """
    from groundfault_studies.real_models import digits_network

    predictions = digits_network(_TRAINED, seed=0)
    classes = predictions.probability.argmax(axis=1)
    names = [f"image {i:04d}" for i in range(len(classes))]
    pool = Pool.from_arrays(names, {"read as": classes}, embedding=predictions.embedding)
    right = (~predictions.wrong).astype(float)
    accuracy = {f"read as={k}": float(right[classes == k].mean()) for k in np.unique(classes)}
    worst = min(accuracy, key=accuracy.__getitem__)
    return Setting("3", "digits", pool, lambda _: right, 0.85, 250, worst, accuracy=accuracy)


def words(texts: pl.Series) -> Floats:
    """Leading components of the weighted words of texts: float64, shape (N, 64)."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weights = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(
        texts.fill_null("").to_list()
    )
    return np.asarray(TruncatedSVD(64, random_state=0).fit_transform(weights))


# --------------------------------------------------------------------------------- --- running them


def all_rows(
    rounds: Sequence[Sequence[tuple[Setting, str, Sequence[int], int]]],
    keep: Path | None,
    jobs: int,
    progress: Progress,
    show: Callable[[list[dict[str, Any]], int], object] | None = None,
) -> list[dict[str, Any]]:
    """Rows of all audits, those of a replicate together; see `resume_rounds`."""
    todo = [{_key(*job): job for job in audits} for audits in rounds]
    return resume_rounds(todo, run_audits, keep, jobs, progress, show)


def _key(setting: Setting, policy: str, burn_ins: Sequence[int], replicate: int) -> str:
    what = (
        f"{setting.experiment} {setting.name}, {policy}, m {'/'.join(map(str, burn_ins))}, "
        f"replicate {replicate}, {len(METHODS)} methods"
    )
    return f"{what} [{setting.pool.hash[:8]}]"
