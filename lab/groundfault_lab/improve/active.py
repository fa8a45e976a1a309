"""Active learning: train, let a policy say what to label next, train again; its curves compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.base.arrays import Floats, Ints, Places
from groundfault.base.long_work import run_in_order, stream
from groundfault.base.reading import decode_json
from groundfault.core.plan import Plan
from groundfault.errors import InputError, PlanError, require_whole
from groundfault.slicing.embedding import check_embedding
from groundfault.stats.paired import sign_flips
from groundfault_lab.improve.acquisition import Acquisition, AcquisitionRound
from groundfault_lab.slicing.predictions import check_probability

Examples = tuple[Any, Any]
Embed = Callable[[Any, Any], Any]

Runs = Mapping[tuple[str, int], tuple[float, ...]]


def active_learning(
    trainer: Any,
    pool: Examples,
    validation: Examples,
    test: Examples,
    policies: Sequence[Acquisition],
    *,
    start: int,
    batch: int,
    rounds: int,
    seeds: int = 10,
    embed: Embed | None = None,
    jobs: int = 1,
    resume: Learning | None = None,
    progress: Callable[[Learning], object] | None = None,
) -> Learning:
    """Run acquisition policies on one task, and return their learning curves.

    In each round a model is trained from scratch on what is labelled; the policy ranks the rest of
    the pool, without its labels, and the first ``batch`` are labelled. With the same seed every
    policy starts from the same examples.

    Parameters
    ----------
    trainer : classifier or callable
        A scikit-learn classifier, of which copies are fitted, with the seed as ``random_state``
        where it has one; or ``trainer(x, y, seed)``, which returns a model. A model has
        ``predict_proba`` and, unless its columns are all classes in sorted order, ``classes_``.
    pool, validation, test : pairs (x, y)
        Examples, an array, table, sparse matrix or list of texts, and their classes. Policies see
        the labels of validation examples alone; accuracy is that on the test examples.
    policies : sequence of Acquisition
    start, batch, rounds : int
        Labelled at random at first, labelled in each round, and how many rounds. The paper lets
        slicers label as many as they call error-prone; here all label the same number, so that
        curves can be compared.
    seeds : int
        Runs of each policy.
    embed : callable, optional
        ``embed(model, x)`` gives embeddings, shape (n, d); the examples themselves where left out.
    jobs : int
        Processes; the answer does not depend on it.
    resume : Learning, optional
        Earlier curves of the same settings and data: only the runs they lack are made.
    progress : callable, optional
        Called with the curves so far after each run: store them to be able to resume.

    Raises
    ------
    InputError
        If data or a model's answers cannot be used, or the curves to resume are of something else.
    PlanError
        If numbers are out of range, the pool is too small, a start is all of one class, or two
        policies share a name.

    References
    ----------
    Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural
    Language Processing", TACL 11, 2023, section 4.3.3. https://doi.org/10.1162/tacl_a_00617

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from groundfault_lab.improve import LeastConfident, RandomOrder
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 2))
    >>> y = (x[:, 0] > 0.5).astype(int)
    >>> parts = [(x[i : i + 100], y[i : i + 100]) for i in (0, 100, 200)]
    >>> policies = [RandomOrder(), LeastConfident()]
    >>> learning = active_learning(
    ...     GaussianNB(), *parts, policies, start=10, batch=5, rounds=3, seeds=2
    ... )
    >>> learning.labelled
    array([10, 15, 20, 25])
    """
    task = _Task.of(trainer, pool, validation, test, embed)
    _check_numbers(policies, start, batch, rounds, seeds, len(task.pool))
    for seed in range(seeds):  # before the first hour of training, not after it
        task.start(seed, start)
    settings = task.settings | {"start": start, "batch": batch, "rounds": rounds}
    policy_settings = {f"policy {policy.name}": _describe(policy) for policy in policies}
    if resume is not None:
        before = policy_settings | _renew_names(resume.settings)  # policies may be added
        wanted = settings | policy_settings
        differences = [key for key, value in wanted.items() if before.get(key) != value]
        if differences:
            raise InputError(
                f"the curves to resume were run with another {', '.join(differences)}; start anew"
            )
    settings |= policy_settings
    runs_to_make = {(policy.name, seed): policy for policy, seed in product(policies, range(seeds))}
    curves = {key: resume.runs[key] for key in runs_to_make if resume and key in resume.runs}
    lacking = [key for key in runs_to_make if key not in curves]
    from joblib import delayed

    # in order as they finish, so that each can be stored
    sizes = start, batch, rounds
    calls = (delayed(_learn_curve)(task, runs_to_make[key], key[1], *sizes) for key in lacking)
    runs = run_in_order(calls, jobs)
    for key, curve in zip(lacking, runs, strict=True):
        curves[key] = curve
        if progress is not None:
            progress(Learning(settings, dict(curves)))
    return Learning(settings, {key: curves[key] for key in runs_to_make})


@dataclass(frozen=True, eq=False)
class _Task:
    """A learner, and the examples that it learns from; classes as numbers from 0."""

    trainer: Any
    embed: Embed | None
    classes: NDArray[Any]
    x: tuple[Any, Any, Any]
    y: tuple[Ints, Ints, Ints]

    @classmethod
    def of(
        cls, trainer: Any, pool: Examples, validation: Examples, test: Examples, embed: Embed | None
    ) -> _Task:
        examples, labels = [], []
        for name, (x, y) in {"pool": pool, "validation": validation, "test": test}.items():
            label, rows = np.asarray(y), x if hasattr(x, "indptr") else np.asarray(x)
            if label.ndim != 1 or len(label) == 0 or rows.shape[:1] != label.shape:
                raise InputError(
                    f"{name}: x has shape {rows.shape} and y {label.shape}; both need a row an "
                    "example"
                )
            examples.append(rows)
            labels.append(label)
        classes = np.unique(np.concatenate(labels))
        if len(classes) < 2:
            raise InputError(f"every example is of class {classes[0]}; there is nothing to learn")
        codes = tuple(np.searchsorted(classes, label) for label in labels)
        return cls(trainer, embed, classes, tuple(examples), codes)  # type: ignore[arg-type]

    @property
    def pool(self) -> Ints:
        return self.y[0]

    @property
    def settings(self) -> dict[str, Any]:
        """Return the settings that curves of the same task have in common."""
        data = hashlib.sha256()
        for x, y in zip(self.x, self.y, strict=True):
            for array in (x.data, x.indices, x.indptr) if hasattr(x, "indptr") else (x,):
                # the shape as well: arrays of other shapes may have the same bytes
                data.update(repr((x.shape, array.dtype)).encode())
                data.update((array.astype(str) if array.dtype == object else array).tobytes())
            data.update(self.classes[y].astype(str).tobytes())
        sizes = [len(y) for y in self.y]
        return {"trainer": _describe(self.trainer), "sizes": sizes, "data": data.hexdigest()}

    def train(self, rows: Places, seed: int) -> Any:
        x, y = self.x[0][rows], self.classes[self.y[0][rows]]
        if not hasattr(self.trainer, "fit"):
            return self.trainer(x, y, seed)
        from sklearn.base import clone

        model = clone(self.trainer)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        return model.fit(x, y)

    def probability(self, model: Any, x: Any) -> Floats:
        """Return probabilities of all classes.

        0 for those that the model was shown no example of.
        """
        if not hasattr(model, "predict_proba"):
            kind = type(model).__name__
            raise InputError(
                f"a {kind} has no predict_proba; policies need a model's probabilities"
            )
        output = np.asarray(model.predict_proba(x), dtype=np.float64)
        classes = np.asarray(getattr(model, "classes_", self.classes))
        if output.shape != (x.shape[0], len(classes)) or not np.isin(classes, self.classes).all():
            raise InputError(
                f"predict_proba gave shape {output.shape} for {x.shape[0]} examples and "
                f"{len(classes)} classes; it must have a row an example and a column a class, in "
                "the order of classes_"
            )
        # a small start may lack a class, and policies need all columns
        full = np.zeros((len(output), len(self.classes)))
        full[:, np.searchsorted(self.classes, classes)] = output
        return check_probability(full, len(output))

    def embedding(self, model: Any, x: Any) -> Floats:
        if self.embed is not None:
            return check_embedding(self.embed(model, x), "what embed returns")
        if hasattr(x, "indptr") or x.dtype.kind not in "biuf":
            kind = "sparse" if hasattr(x, "indptr") else "no numbers"
            advice = "give embed(model, x), which makes dense embeddings of them"
            raise InputError(f"the examples are {kind}; {advice}")
        return check_embedding(x, "the array of examples")

    def start(self, seed: int, size: int) -> tuple[Places, Places]:
        """Return the same examples for all policies to start from, and the rest of the pool."""
        # depends on the seed alone, so that policies are paired
        order = stream(seed, "active/start").permutation(len(self.pool))
        rows = order[:size]
        if len(np.unique(self.pool[rows])) < 2:
            only = self.classes[self.pool[rows[0]]]
            raise PlanError(
                f"with seed {seed} the start={size} examples are all of class {only}; raise start"
            )
        return rows, np.sort(order[size:])


def _renew_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings of stored curves, with the present names of renamed policies."""
    present = {"Confidence": "LeastConfident", "Random": "RandomOrder", "Slices": "SuspectSlices"}
    renewed = dict(settings)
    for key in settings:
        if key.startswith("policy "):
            name, bracket, parameters = str(settings[key]).partition("(")
            # the description is a repr, so a renamed field changes it too
            parameters = parameters.replace("shown=", "max_validation=")
            renewed[key] = present.get(name, name) + bracket + parameters
    return renewed


def _describe(what: Any) -> str:
    """Describe an object with its parameters, the same in every process."""
    description = type(what).__qualname__ if repr(what) == object.__repr__(what) else repr(what)
    # the default repr holds an address, which differs from process to process
    return str(getattr(what, "__qualname__", description))


def _learn_curve(
    task: _Task, policy: Acquisition, seed: int, start: int, batch: int, rounds: int
) -> tuple[float, ...]:
    """Return one learning curve."""
    # Plan's generators are named, so that rounds and policies do not share draws
    chance = Plan(seed=seed)
    rows, rest = task.start(seed, start)
    curve = []
    for number in range(rounds + 1):
        model = task.train(rows, seed)
        classes = task.probability(model, task.x[2]).argmax(axis=1)
        curve.append(float((classes == task.y[2]).mean()))
        if number < rounds:
            rng = chance.rng(f"active/{policy.name}", number)
            order = policy.rank(_make_round(task, model, rest, batch), rng)
            # a policy may be anybody's code: only what is used of its answer is checked
            first = np.asarray(order)[:batch]
            if len(np.unique(first)) < batch or first.min() < 0 or first.max() >= len(rest):
                what = f"the {len(rest)} rows of the pool, each once"
                raise InputError(f"the policy {policy.name} must rank {what}")
            rows, rest = np.concatenate([rows, rest[first]]), np.delete(rest, first)
    return tuple(curve)


def _make_round(task: _Task, model: Any, rest: Places, batch: int) -> AcquisitionRound:
    pool, validation = task.x[0][rest], task.x[1]
    return AcquisitionRound(
        task.embedding(model, pool),
        task.probability(model, pool),
        task.embedding(model, validation),
        task.probability(model, validation),
        task.y[1],
        batch,
    )


def _check_numbers(
    policies: Sequence[Acquisition], start: int, batch: int, rounds: int, seeds: int, size: int
) -> None:
    for name, value in {"start": start, "batch": batch, "rounds": rounds, "seeds": seeds}.items():
        require_whole(name, value)
    if (need := start + batch * rounds) > size:
        raise PlanError(
            f"start={start} and rounds={rounds} of batch={batch} need {need} examples, and the "
            f"pool has {size}; lower one of them"
        )
    names = [policy.name for policy in policies]
    if not names or len(set(names)) < len(names):
        given = ", ".join(names) or "none"
        raise PlanError(f"policies need names of their own, one or more; there are {given}")


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
    def labelled(self) -> Ints:
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
