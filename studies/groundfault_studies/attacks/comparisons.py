"""Comparisons of two runs, and the gate of a build, under attack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

import groundfault
from groundfault import Evidence
from groundfault_studies.attacks.attack import Attack

_FLAGS = 8
_MUST_DETECT = 0.25


@dataclass(frozen=True)
class Build:
    """Two runs on the same examples, or on as many others.

    Attributes
    ----------
    size : int
        Examples in each run.
    rates : pair of float
        Error rates on easy and on hard examples; both runs draw each answer anew.
    change : float
        Added to the second run's rate on hard examples; a negative one is an improvement.
    share : float
        Of hard examples.
    fresh : bool
        Whether the second run has other examples.
    """

    size: int
    rates: tuple[float, float]
    change: float = 0.0
    share: float = 0.4
    fresh: bool = False

    def draw(self, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The tables of the two runs."""
        rng = np.random.default_rng([seed, self.size, *(round(1000 * r) for r in self.rates)])
        first = self._draw_examples(rng, "a")
        second = self._draw_examples(rng, "b") if self.fresh else first
        return self._answer(rng, first, 0.0), self._answer(rng, second, self.change)

    def _draw_examples(self, rng: np.random.Generator, name: str) -> pl.DataFrame:
        hard = rng.random(self.size) < self.share
        flags = {
            f"flag_{i}": (rng.random(self.size) < 0.15 + 0.08 * i).astype(int)
            for i in range(_FLAGS)
        }
        return pl.DataFrame(
            {
                "id": [f"{name}{i:05d}" for i in range(self.size)],
                "topic": np.where(hard, "law", rng.choice(["art", "sport"], self.size)),
                **flags,
            }
        )

    def _answer(
        self, rng: np.random.Generator, examples: pl.DataFrame, change: float
    ) -> pl.DataFrame:
        hard = (examples["topic"] == "law").to_numpy()
        rate = np.where(hard, self.rates[1] + change, self.rates[0])
        return examples.with_columns(error=(rng.random(self.size) < rate).astype(int))


def fails_comparison(build: Build, seed: int) -> bool:
    """Whether the gate fails on a comparison of the two runs."""
    first, second = build.draw(seed)
    runs = [first.with_columns(run=pl.lit("old")), second.with_columns(run=pl.lit("new"))]
    evidence = Evidence.from_table(pl.concat(runs), id="id", model="run", outcome="error")
    report = groundfault.audit(evidence, compare=("old", "new"), ledger=False)
    return not groundfault.gate(report).passed


def fails_baseline(build: Build, seed: int, must_detect: float | None = None) -> bool:
    """Whether the gate fails on the second run, with the first as its baseline."""
    reports = [
        groundfault.audit(Evidence.from_table(run, id="id", outcome="error"), ledger=False)
        for run in build.draw(seed)
    ]
    verdict = groundfault.gate(reports[1], baseline=reports[0], must_detect=must_detect)
    return not verdict.passed


def fails_identical(build: Build, seed: int) -> bool:
    """Whether ``--must-detect`` fails a comparison of one run with itself."""
    first, _ = build.draw(seed)
    runs = [first.with_columns(run=pl.lit(name)) for name in ("old", "new")]
    evidence = Evidence.from_table(pl.concat(runs), id="id", model="run", outcome="error")
    report = groundfault.audit(evidence, compare=("old", "new"), ledger=False)
    return not groundfault.gate(report, must_detect=_MUST_DETECT).passed


def names_region(size: int, rate: float, fails: float, passes: float, seed: int) -> bool:
    """Whether a comparison lists a region, or a slice, where examples at random turned out
    otherwise.

    Parameters
    ----------
    size : int
    rate : float
        Error rate of the first run.
    fails, passes : float
        Shares of the examples, drawn anywhere, that then fail or pass for sure.
    seed : int
    """
    rng = np.random.default_rng([seed, size])
    often = {
        f"flag_{i}": rng.random(size) < share for i, share in enumerate((0.05, 0.2, 0.5, 0.95))
    }
    topic = rng.choice(["art", "law", "sport"], size)
    table = pl.DataFrame({"id": range(size), "topic": topic, **often})
    old, drawn = rng.random(size) < rate, rng.random(size)
    new = (old | (drawn < fails)) & (drawn < 1 - passes)
    runs = [
        table.with_columns(run=pl.lit(name), error=pl.Series(error.astype(int)))
        for name, error in (("old", old), ("new", new))
    ]
    evidence = Evidence.from_table(pl.concat(runs), id="id", model="run", outcome="error")
    return bool(groundfault.audit(evidence, compare=("old", "new"), ledger=False).modes)


def _null(
    point: int, name: str, world: str, before: str, trial: Callable[[int], bool], n: int = 200
) -> Attack:
    return Attack(
        point,
        name,
        world,
        "the gate of a build in which nothing got worse fails at its level, .10, at most",
        before,
        "rate of builds that fail",
        trial,
        at_most=0.1,
        replicates=n,
    )


def _power(point: int, name: str, world: str, before: str, trial: Callable[[int], bool]) -> Attack:
    return Attack(
        point,
        name,
        world,
        "the gate of a build with a real +.12 in one slice fails",
        before,
        "rate of builds that fail",
        trial,
        at_least=0.9,
    )


_SAME = "two runs of one noisy model, errors {} on easy and {} on hard examples (40 %), n = {}"
_WORSE = (
    "as two runs of one model, but hard examples (40 %) fail .12 more, errors {} and {}, n = {}"
)
_IMPROVED = "hard examples (a third) went from .40 errors to .10, the others stay at .25, n = 900"

ATTACKS: tuple[Attack, ...] = (
    _null(
        1,
        "comparison, .05 and .25",
        _SAME.format(".05", ".25", 600),
        "janus .67, max-t .98",
        partial(fails_comparison, Build(600, (0.05, 0.25))),
    ),
    _null(
        1,
        "comparison, .03 and .45",
        _SAME.format(".03", ".45", 600),
        ".75 to 1.00",
        partial(fails_comparison, Build(600, (0.03, 0.45))),
    ),
    _null(
        1,
        "comparison, .10 and .50, n = 3000",
        _SAME.format(".10", ".50", 3000),
        "not measured",
        partial(fails_comparison, Build(3000, (0.1, 0.5))),
    ),
    _null(
        1,
        "comparison, improvement",
        _IMPROVED,
        "fails",
        partial(fails_comparison, Build(900, (0.25, 0.4), -0.3, share=1 / 3)),
    ),
    *(
        Attack(
            1,
            f"comparison, {fails:.0%} of all examples get worse",
            f"n = {size}, errors {rate:.2f}; {fails:.1%} of the examples, drawn anywhere, get "
            f"worse, {passes:.1%} better; four flags of 5% to 95%, and a topic",
            "a comparison names a region unlike the rest in 10% at most",
            before,
            "rate of comparisons that name a region",
            partial(names_region, size, rate, fails, passes),
            at_most=0.1,
        )
        for size, rate, fails, passes, before in (
            (1000, 0.13, 0.02, 0.003, ".20"),
            (600, 0.3, 0.15, 0.05, ".16"),
        )
    ),
    _power(
        1,
        "comparison, real +.12",
        _WORSE.format(".05", ".25", 1500),
        ".57",
        partial(fails_comparison, Build(1500, (0.05, 0.25), 0.12)),
    ),
    _power(
        1,
        "comparison, real +.12 among even errors",
        _WORSE.format(".25", ".25", 1500),
        "not measured",
        partial(fails_comparison, Build(1500, (0.25, 0.25), 0.12)),
    ),
    _null(
        2,
        "baseline, .05 and .25",
        _SAME.format(".05", ".25", 600) + ", the first run as the baseline",
        ".15 to .56",
        partial(fails_baseline, Build(600, (0.05, 0.25))),
    ),
    _null(
        2,
        "baseline, .03 and .45",
        _SAME.format(".03", ".45", 600) + ", the first run as the baseline",
        ".15 to .56",
        partial(fails_baseline, Build(600, (0.03, 0.45))),
    ),
    _null(
        2,
        "baseline, slight differences",
        _SAME.format(".20", ".28", 600) + ", so that findings come and go",
        ".15 to .56",
        partial(fails_baseline, Build(600, (0.2, 0.28))),
    ),
    _null(
        2,
        "baseline of other examples",
        _SAME.format(".20", ".30", 600) + ", each run on examples of its own",
        ".15 to .56",
        partial(fails_baseline, Build(600, (0.2, 0.3), fresh=True)),
    ),
    _null(
        2,
        "baseline, improvement",
        _IMPROVED,
        "fails",
        partial(fails_baseline, Build(900, (0.25, 0.4), -0.3, share=1 / 3)),
    ),
    _power(
        2,
        "baseline, real +.12",
        _WORSE.format(".05", ".25", 1500),
        "not measured",
        partial(fails_baseline, Build(1500, (0.05, 0.25), 0.12)),
    ),
    _power(
        2,
        "baseline, real +.12 among even errors",
        _WORSE.format(".25", ".25", 1500),
        "not measured",
        partial(fails_baseline, Build(1500, (0.25, 0.25), 0.12)),
    ),
    _null(
        3,
        "must-detect, comparison of identical runs",
        "one run compared with itself, errors .05 and .25, n = 600, --must-detect 0.25",
        "20 of 20 builds",
        partial(fails_identical, Build(600, (0.05, 0.25))),
    ),
    _null(
        3,
        "must-detect, rare errors",
        "as above with the first run as the baseline of another, errors .01 and .04, n = 20,000",
        "20 of 20 builds",
        partial(fails_baseline, Build(20_000, (0.01, 0.04)), must_detect=_MUST_DETECT),
        20,
    ),
)
