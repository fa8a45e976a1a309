"""Results of active learning: a curve for each policy and seed, and comparisons of policies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.base.reading import decode_json
from groundfault.errors import InputError, PlanError
from groundfault.stats.paired import sign_flips

Floats = NDArray[np.float64]
Runs = Mapping[tuple[str, int], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A policy against a baseline, over pairs of runs with the same seed.

    Attributes
    ----------
    policy, baseline : str
    gain : float
        Difference of mean accuracies over all rounds but the start, which is the same for both.
    p : float
        That it is 0: two-sided, exact over sign flips, adjusted for all policies compared.
    difference : float64 array, shape (rounds + 1,)
        Mean difference of accuracies after each round; at the start 0.
    p_round : float64 array, shape (rounds + 1,)
        That it is 0, adjusted for all rounds of this policy.
    """

    policy: str
    baseline: str
    gain: float
    p: float
    difference: Floats
    p_round: Floats

    def verdict(self, level: float = 0.05) -> str:
        """Say in words: ahead of the baseline, behind it, or no difference shown."""
        if self.p > level:
            return "no difference shown"
        return f"{'ahead of' if self.gain > 0 else 'behind'} {self.baseline}"


@dataclass(frozen=True)
class Learning:
    """Learning curves of several policies, each with the same seeds.

    Attributes
    ----------
    settings : dict
        What they were run with: sizes, trainer, and a hash of the data.
    runs : mapping of (policy, seed) to tuple of float
        Accuracy on the test examples at the start and after each round.
    """

    settings: dict[str, Any]
    runs: Runs

    @property
    def policies(self) -> tuple[str, ...]:
        """Return their names, in the order they were given."""
        return tuple(dict.fromkeys(policy for policy, _ in self.runs))

    @property
    def labelled(self) -> NDArray[np.int64]:
        """Return how many examples had been learnt from at the start and after each round."""
        start, batch, rounds = (self.settings[name] for name in ("start", "batch", "rounds"))
        return np.asarray(start + batch * np.arange(rounds + 1))

    def curves(self, policy: str) -> Floats:
        """Return accuracies of a policy, shape (seeds, rounds + 1), seeds in rising order.

        Raises
        ------
        PlanError
            If it was not run.
        """
        rows = [self.runs[name, seed] for name, seed in sorted(self.runs) if name == policy]
        if not rows:
            raise PlanError(f"no policy {policy!r} was run; there are {', '.join(self.policies)}")
        return np.array(rows)

    def compare(self, baseline: str = "confidence") -> tuple[Comparison, ...]:
        """Compare every other policy with one, paired by seed.

        The tests speak of training anew on these data, other examples to start with and other
        chances; not of other data. With s seeds no p is below 2^(1 - s): five seeds show nothing at
        0.05.

        Raises
        ------
        PlanError
            If the baseline was not run, or the seeds of another policy are not those of the
            baseline.
        """
        seeds: dict[str, set[int]] = {}
        for policy, seed in self.runs:
            seeds.setdefault(policy, set()).add(seed)
        base = self.curves(baseline)
        others = [policy for policy in self.policies if policy != baseline]
        for policy in others:
            # the sign-flip test pairs runs by seed
            if seeds[policy] != seeds[baseline]:
                both = f"{policy} and {baseline}"
                raise PlanError(
                    f"{both} were not run with the same seeds; resume the run to the end"
                )
        if not others:
            return ()
        differences = [self.curves(policy) - base for policy in others]
        # without the start, at which all policies are the same
        gains = np.column_stack([difference[:, 1:].mean(axis=1) for difference in differences])
        return tuple(
            Comparison(
                policy,
                baseline,
                float(gain),
                float(p),
                difference.mean(axis=0),
                sign_flips(difference),
            )
            for policy, gain, p, difference in zip(
                others, gains.mean(axis=0), sign_flips(gains), differences, strict=True
            )
        )

    def to_json(self) -> str:
        """Return settings and curves; `from_json` reads it back."""
        curves = self.runs.items()
        runs = [{"policy": p, "seed": seed, "accuracy": list(curve)} for (p, seed), curve in curves]
        content = {"groundfault_learning": 1, "settings": self.settings, "runs": runs}
        return json.dumps(content, indent=1)

    @classmethod
    def from_json(cls, text: str, *, where: str = "learning curves") -> Learning:
        """Read curves, for example to resume them.

        Raises
        ------
        InputError
            If the text holds no learning curves.
        """
        try:
            data = decode_json(text, where)
            runs = {
                (str(run["policy"]), int(run["seed"])): tuple(map(float, run["accuracy"]))
                for run in data["runs"]
            }
            length = int(data["settings"]["rounds"]) + 1
            whole = all(len(curve) == length for curve in runs.values())
            if data["groundfault_learning"] != 1 or not whole:
                raise ValueError("another version, or curves of another length")
            return cls(dict(data["settings"]), runs)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InputError(f"{where}: not learning curves of groundfault ({error})") from None
