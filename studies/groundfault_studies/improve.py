"""Improve: what rejecting, relabelling or learning from suspected examples does for real
classifiers.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language
Processing", TACL 11, 2023. https://doi.org/10.1162/tacl_a_00617. Its nine data sets and fine-tuned
transformers are not at hand; here are other models and their real mistakes, in the form of its
Tables 11 and 12 and Figures 4 to 6."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.files import write_text
from groundfault.base.long_work import Progress, listener
from groundfault.stats.paired import sign_flips
from groundfault_lab.improve import (
    Acquisition,
    Auditor,
    Flipping,
    Improvement,
    Learning,
    LeastConfident,
    RandomOrder,
    SelectivePrediction,
    Slicer,
    SuspectSlices,
    active_learning,
)
from groundfault_lab.slicing.domino import Domino
from groundfault_lab.slicing.edisa import Edisa
from groundfault_lab.slicing.fusion import Fusion
from groundfault_studies.discover import FITTED, SOURCE, format_interval, make_slicer
from groundfault_studies.real_models import (
    JUDGED,
    Predictions,
    of_texts,
    passes,
    shipped_classifiers,
    tasks,
)
from groundfault_studies.resuming import Rows, resume_parts
from groundfault_studies.shared_folder import find_shared
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

Floats = NDArray[np.float64]
Columns = dict[str, tuple[str, Kind]]
Improvements = dict[str, dict[str, Improvement]]
"""By slicer, and by what is done to the examples it suspects."""
LabelledExamples = tuple[Floats, NDArray[np.int64], Floats]

LEVEL = 0.05
START, BATCH, ROUNDS = 40, 20, 12
SEEDS, QUICK_SEEDS = 10, 1
_OURS, _FUSED = "edisa, our default", "fusion"
SLICERS: Mapping[str, tuple[type[Edisa | Domino | Fusion], dict[str, Any]]] = {
    "edisa": (Edisa, {"suspicion": "slices"}),
    _OURS: (Edisa, {"name": _OURS}),
    "domino": (Domino, {"confidence_weight": 40.0}),
    _FUSED: (Fusion, {}),
}
"""Slicers by the paper's rule, with the weights that it gives them, Edisa's default, and fusion."""
_RIVALS = {"edisa": "paper's rule", "domino": "Domino", _OURS: "Edisa's default"}
"""With which `compare_fusion` compares the fusion of mixtures."""
_MEASURES: Mapping[str, Callable[[Improvement], float]] = {
    "gain": lambda one: one.improvement,
    "to confidence": lambda one: one.c_improvement,
    "steps ahead of confidence": lambda one: one.c_proportion,
}

_RELEARNT = "learnt from the same labels"
_COLUMNS: Columns = {
    "found": ("found", "size"),
    "c_proportion": ("C-prop", "rate"),
    "c_improvement": ("C-imp", "rate"),
    "c_p": ("p", "p"),
    "improvement": ("imp", "rate"),
    "p": ("p", "p"),
    "verdict": ("confidence; model", "text"),
}
_PRINTED = {
    "rejected": {"edisa": ("85.48%", "2.08%", "4.00%"), "domino": ("44.32%", "1.74%", "3.69%")},
    "relabelled": {"edisa": ("91.77%", "3.29%", "2.80%"), "domino": ("55.87%", "3.28%", "2.58%")},
}
_NOTE = (
    "Means over seeds. C-prop: share of steps at which accuracy is above that of as many steps by "
    "confidence; where nothing is found there is none. C-imp: accuracy after the last step minus "
    "that of confidence; imp: minus the model's. p: two-sided, exact over sign flips of the seeds "
    "and adjusted for all rows; seeds share their data, so it speaks of training anew on these, "
    "not of other data. Last: what is shown to be ahead of either, or behind."
)
_NOTE_ON_FLIPPING = (
    " With more than two classes an example gets the commonest label of its slice, if confidence "
    "is below a threshold chosen on a tenth of the examples, which the slicer does not see. "
    "Slicers see more examples than the models were trained on: beside them, what a logistic "
    "regression of the embedding gains that learns from those instead."
)
_QUARTERS = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class LearningTask:
    """Examples to learn from, to see errors on, and to measure on; each a pair (x, y)."""

    name: str
    parts: tuple[tuple[Any, Any], tuple[Any, Any], tuple[Any, Any]]


def study(
    shared: str | Path | None = None,
    *,
    seeds: int | None = None,
    first_seed: int = 0,
    jobs: int = 1,
    quick: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Compare what slicers and confidence do for the accuracy of real classifiers.

    Parameters
    ----------
    shared : path, optional
        Folder with ``real``, for the classifiers of texts; left out, ``$GROUNDFAULT_SHARED`` or
        ``../shared/data``. Without it they are lacking.
    seeds : int, optional
        How often classifiers are trained, each time on other examples; left out, 10, or quickly 1.
    first_seed : int
        Seed of the first training of Tables 11 and 12; the others follow it.
    jobs : int
        Processes; the answer does not depend on it.
    quick : bool
        One seed: to see that it runs, not for conclusions.
    keep : path, optional
        File where curves of active learning are kept after each run, a line a task; rejected and
        relabelled examples are kept beside it. A study that was stopped takes both up again.
    progress : callable, optional
        Called with a message at each step.

    Raises
    ------
    InputError
        If what is kept was run with other settings, or other data.
    """
    progress = listener(progress)
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    folder = find_shared(shared, "real")
    lacking = (
        () if folder.is_dir() else ("classifiers of texts, which need the folder of shared data",)
    )
    place = None if keep is None else Path(keep)
    acted = act_tables(folder, range(first_seed, first_seed + seeds), jobs, place, progress)
    curves = {
        task.name: learn_curves(task, seeds, jobs, place, progress)
        for task in learning_tasks(folder)
    }
    return PaperStudy(
        "improve",
        "What suspected examples are good for",
        SOURCE,
        {
            "seeds": seeds,
            "first seed": first_seed,
            "fitted": FITTED,
            "start": START,
            "batch": BATCH,
            "rounds": ROUNDS,
        },
        (*acted, *learning_tables(curves)),
        lacking,
    )


def act_tables(
    folder: Path,
    seeds: Sequence[int],
    jobs: int = 1,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> tuple[PaperTable, ...]:
    """Tables 11 and 12, each with its curves."""
    texts = folder if folder.is_dir() else None
    about = "texts too" if texts else "no texts"
    todo = {
        f"seed {seed}, {name}, {about}": (texts, seed, name)
        for seed in seeds
        for name in (*SLICERS, _RELEARNT)
    }
    # beside the curves, which are a file of another form
    place = keep.with_suffix(".acts.jsonl") if keep else None
    rows = resume_parts(todo, _measure_part, place, jobs, progress)
    improvements: dict[str, list[Improvements]] = {}
    relearnt: dict[str, list[float]] = {}
    for row in rows:
        if row["slicer"] == _RELEARNT:
            relearnt.setdefault(row["classifier"], []).append(row["gain"])
            continue
        runs = improvements.setdefault(row["classifier"], [])
        if row["slicer"] == next(iter(SLICERS)):
            runs.append({})
        runs[-1][row["slicer"]] = {one["act"]: read_improvement(one) for one in row["acts"]}
    return tables(improvements, relearnt)


def _measure_part(folder: Path | None, seed: int, name: str) -> Rows:
    """What one slicer does for one training of each classifier, or other learning in its place."""
    rows: Rows = []
    for predictions in _train(folder, seed):
        about = {"classifier": predictions.name, "slicer": name}
        if name == _RELEARNT:
            rows.append(about | {"gain": learn_instead(predictions)})
        else:
            acts = measure(predictions, name).values()
            rows.append(about | {"acts": [store_improvement(one) for one in acts]})
    return rows


@lru_cache(maxsize=1)
def _train(folder: Path | None, seed: int) -> tuple[Predictions, ...]:
    return (*shipped_classifiers(seed), *(of_texts(folder, seed) if folder else ()))


def store_improvement(one: Improvement) -> dict[str, Any]:
    """Return an improvement as plain numbers, for a file of rows."""
    curves = {"accuracy": one.accuracy.tolist(), "confidence": one.confidence.tolist()}
    return {"act": one.act, "original": one.original, **curves, "p": one.p, "c_p": one.c_p}


def read_improvement(row: Mapping[str, Any]) -> Improvement:
    """Return what `store_improvement` was given."""
    accuracy, confidence = (
        np.asarray(row[key], dtype=np.float64) for key in ("accuracy", "confidence")
    )
    return Improvement(row["act"], row["original"], accuracy, confidence, row["p"], row["c_p"])


def tables(
    improvements: Mapping[str, Sequence[Improvements]], relearnt: Mapping[str, Sequence[float]]
) -> tuple[PaperTable, ...]:
    """Tables 11 and 12 with their curves, of the runs of every model."""
    return (
        _table("rejected", "Table 11: selective prediction", improvements),
        compare_fusion("rejected", improvements),
        _curves("rejected", "Figure 4: accuracy while examples are rejected", improvements),
        _table("relabelled", "Table 12: flipping", improvements, relearnt),
        compare_fusion("relabelled", improvements),
        _curves("relabelled", "Figure 5: accuracy while examples are relabelled", improvements),
    )


def measure(predictions: Predictions, name: str) -> dict[str, Improvement]:
    """By act, what a slicer does with examples: fitted on the first two thirds, measured on the
    last.

    Parameters
    ----------
    predictions : Predictions
    name : str
        Of `SLICERS`.
    """
    first, rest = predictions.split(FITTED)
    labelled_part, fresh_part = (
        (part.embedding, part.label, part.probability) for part in (first, rest)
    )
    kind, parameters = SLICERS[name]
    return acts(make_slicer(kind, first, **parameters), labelled_part, fresh_part)


def acts(
    slicer: Slicer, labelled: LabelledExamples, fresh: LabelledExamples
) -> dict[str, Improvement]:
    """What a slicer does for fresh examples, by act; each is embedding, true classes and
    probabilities.
    """
    return {
        "rejected": SelectivePrediction(slicer).fit(*labelled).measure(*fresh),
        "relabelled": Flipping(slicer).fit(*labelled).measure(*fresh),
    }


def learn_instead(predictions: Predictions) -> float:
    """What a logistic regression of the embedding, learnt from the labels that slicers see, gains
    over the model.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    first, rest = predictions.split(FITTED)
    other = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(
        first.embedding, first.label
    )
    return float((other.predict(rest.embedding) == rest.label).mean() - (~rest.wrong).mean())


def learning_tasks(folder: Path) -> Iterator[LearningTask]:
    """Digits and, where there are texts, the task of a question, and whether a model passes it."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    yield _task("digits", x / 16, y, (600, 1100))
    if folder.is_dir():
        yield _task_of_texts("BIG-Bench Hard, task of a question", *tasks(folder), (1500, 2500))
        yield _task_of_texts(f"GSM8K, whether {JUDGED} passes", *passes(folder), (600, 900))


def learn_curves(
    task: LearningTask,
    seeds: int,
    jobs: int,
    keep: Path | None,
    progress: Progress,
    policies: Sequence[Acquisition] = (),
    rounds: int = ROUNDS,
) -> Learning:
    """Curves of all policies on a task, those that are kept included; the paper's and `Auditor`,
    where left out.
    """
    stored = _read_curves(keep) if keep else {}
    slicers = [SuspectSlices(kind(**parameters)) for kind, parameters in SLICERS.values()]
    acquisitions = policies or [LeastConfident(), *slicers, Auditor(), RandomOrder()]

    def store(so_far: Learning) -> None:
        progress(
            f"active learning, {task.name}: {len(so_far.runs)} of {seeds * len(acquisitions)} runs"
        )
        if keep:
            all_of_them = stored | {task.name: so_far}
            lines = (
                json.dumps({"task": name, **json.loads(one.to_json())})
                for name, one in all_of_them.items()
            )
            write_text(keep, "".join(f"{line}\n" for line in lines))

    return active_learning(
        trainer,
        *task.parts,
        acquisitions,
        start=START,
        batch=BATCH,
        rounds=rounds,
        seeds=seeds,
        jobs=jobs,
        resume=stored.get(task.name),
        progress=store,
    )


def _read_curves(place: Path) -> dict[str, Learning]:
    """Curves by the name of the task."""
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    curves = [
        Learning.from_json(line, where=f"{place}, line {number}")
        for number, line in enumerate(lines, 1)
    ]
    return {str(json.loads(line).get("task")): one for line, one in zip(lines, curves, strict=True)}


def trainer(x: Floats, y: NDArray[Any], seed: int) -> Any:
    """A logistic regression; its solver takes no chances, so nothing depends on the seed."""
    import warnings

    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():  # few examples of many classes are meant
        warnings.simplefilter("ignore")
        return LogisticRegression(C=5.0, max_iter=500, random_state=seed).fit(x, y)


def _task(name: str, x: Floats, y: NDArray[Any], cuts: tuple[int, int]) -> LearningTask:
    parts = np.split(np.random.default_rng(len(y)).permutation(len(y))[:4000], cuts)
    pool, validation, test = ((x[part], y[part]) for part in parts)
    return LearningTask(name, (pool, validation, test))


def _task_of_texts(
    name: str, texts: pl.Series, labels: pl.Series, cuts: tuple[int, int]
) -> LearningTask:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(texts.to_list())
    x = TruncatedSVD(64, random_state=0).fit_transform(words)
    return _task(name, x, labels.to_numpy().astype(str), cuts)


def _table(
    act: str,
    title: str,
    improvements: Mapping[str, Sequence[Improvements]],
    relearnt: Mapping[str, Sequence[float]] | None = None,
) -> PaperTable:
    """Means over seeds; p-values over seeds too, adjusted for all rows."""
    by_row = {
        (model, name): [run[name][act] for run in runs]
        for model, runs in improvements.items()
        for name in runs[0]
    }
    c_p, p = (_p_values(by_row, gain) for gain in ("c_improvement", "improvement"))
    rows = []
    for (model, name), ones in by_row.items():
        here: dict[str, Value] = {"found": _mean([one.steps for one in ones])}
        for key in ("c_proportion", "c_improvement", "improvement"):
            here[key] = _mean([getattr(one, key) for one in ones])
        words = (
            _verdict(here[key], p)
            for key, p in (("c_improvement", c_p[model, name]), ("improvement", p[model, name]))
        )
        here |= {"c_p": c_p[model, name], "p": p[model, name], "verdict": "; ".join(words)}
        rows.append(PaperRow(f"{model}: {name}", here))
        if relearnt and name == list(improvements[model][0])[-1]:
            rows.append(PaperRow(f"{model}: {_RELEARNT}", {"improvement": _mean(relearnt[model])}))
    for name, numbers in _PRINTED[act].items():
        paper = dict(zip(("c_proportion", "c_improvement", "improvement"), numbers, strict=True))
        rows.append(PaperRow(f"average of nine data sets, BERT: {name}", paper=paper))
    return PaperTable(title, _NOTE + (_NOTE_ON_FLIPPING if relearnt else ""), _COLUMNS, tuple(rows))


def compare_fusion(act: str, improvements: Mapping[str, Sequence[Improvements]]) -> PaperTable:
    """What the fusion of mixtures gains over the paper's rule, its baseline and Edisa's default, on
    the same trainings.
    """
    values = {
        f"{model}: {measure_name}": {
            name: np.array([value_of(run[name][act]) for run in runs])
            for name in (_FUSED, *_RIVALS)
        }
        for model, runs in improvements.items()
        for measure_name, value_of in _MEASURES.items()
    }
    note = (
        "Gain: accuracy after the last step less the model's. To confidence: less that after as "
        "many steps by confidence. Steps: the share at which it is ahead of that, over trainings "
        "in which both rules suspect any. In brackets 95% intervals over seeds, by Student's t; "
        "seeds share their data, so they speak of training anew on these, not of other data."
    )
    return _make_fusion_table(act, note, _RIVALS, values)


def _make_fusion_table(
    act: str,
    note: str,
    rivals: Mapping[str, str],
    values: Mapping[str, Mapping[str, Floats]],
) -> PaperTable:
    """Table of fusion and its differences to the others, by row and method seed by seed."""
    columns: Columns = {
        "fusion": ("fusion", "rate"),
        **{name: (f"less {said}", "text") for name, said in rivals.items()},
    }
    rows = tuple(_compare(label, here) for label, here in values.items())
    return PaperTable(f"Fusion beside the others: examples {act}", note, columns, rows)


def _compare(label: str, values: Mapping[str, Floats]) -> PaperRow:
    """Mean of fusion, and its differences to the others where both have a value."""
    fused, here = values[_FUSED], dict[str, Value]()
    for name, others in values.items():
        there = (fused - others)[~np.isnan(fused - others)]
        here[name] = format_interval(there) if len(there) else None
    return PaperRow(label, here | {_FUSED: _mean(fused)})


def _p_values(
    by_row: Mapping[tuple[str, str], Sequence[Improvement]], gain: str
) -> dict[tuple[str, str], float]:
    gains = np.array([[getattr(one, gain) for one in ones] for ones in by_row.values()]).T
    return dict(zip(by_row, sign_flips(np.nan_to_num(gains)).tolist(), strict=True))


def _curves(act: str, title: str, improvements: Mapping[str, Sequence[Improvements]]) -> PaperTable:
    """Edisa beside confidence after a quarter, half, three quarters and all of the steps."""
    columns: Columns = {"0": ("start", "rate"), **{f"{q}": (f"{q:.0%}", "rate") for q in _QUARTERS}}
    rows = []
    for model, runs in improvements.items():
        ones = [run["edisa"][act] for run in runs if run["edisa"][act].steps]
        for name, line in (("edisa", "accuracy"), ("confidence", "confidence")):
            here = {"0": _mean([one.original for one in ones])}
            for q in _QUARTERS:
                here[f"{q}"] = _mean(
                    [getattr(one, line)[max(0, round(q * one.steps) - 1)] for one in ones]
                )
            rows.append(PaperRow(f"{model}: {name}", here))
    note = (
        "Accuracy after a share of the steps; means over the seeds with which Edisa finds any "
        "example. Confidence takes as many steps as Edisa."
    )
    return PaperTable(title, note, columns, tuple(rows))


def learning_tables(curves: Mapping[str, Learning]) -> tuple[PaperTable, ...]:
    """Figure 6 of every task, and fusion beside the other policies."""
    if not curves:
        return ()
    figures = (figure_6(one, name) for name, one in curves.items())
    return (*figures, compare_curves(curves))


def compare_curves(curves: Mapping[str, Learning]) -> PaperTable:
    """What labelling next by the fusion of mixtures gains over the other policies, seed by seed."""
    rivals = _RIVALS | {"confidence": "confidence", "random": "random order"}
    values = {
        f"{task}: {said}": {
            policy: learning.curves(policy)[:, part].mean(axis=1) for policy in (_FUSED, *rivals)
        }
        for task, learning in curves.items()
        for said, part in (("mean of rounds", slice(1, None)), ("last round", slice(-1, None)))
    }
    note = (
        "Accuracy on the test examples, over all rounds after the start, and after the last. In "
        "brackets 95% intervals over seeds, by Student's t; seeds share their data, so they speak "
        "of other examples to start with, not of other data."
    )
    return _make_fusion_table("labelled next", note, rivals, values)


def figure_6(learning: Learning, name: str) -> PaperTable:
    """Figure 6: accuracy by how much was labelled."""
    columns_shown = [i for i in range(len(learning.labelled)) if i % 3 == 0]
    columns: Columns = {
        **{str(learning.labelled[i]): (str(learning.labelled[i]), "rate") for i in columns_shown},
        "gain": ("gain", "rate"),
        "p": ("p", "p"),
        "rounds": ("rounds ahead, behind", "text"),
        "verdict": ("against confidence", "text"),
    }
    against = {comparison.policy: comparison for comparison in learning.compare()}
    rows = []
    for policy in learning.policies:
        curve = learning.curves(policy).mean(axis=0)
        here: dict[str, Value] = {str(learning.labelled[i]): float(curve[i]) for i in columns_shown}
        if policy in against:
            one = against[policy]
            certain = one.p_round <= LEVEL
            ahead, behind = (
                int((certain & (one.difference > 0)).sum()),
                int((certain & (one.difference < 0)).sum()),
            )
            rounds = f"{ahead}, {behind} of {len(curve) - 1}"
            here |= {"gain": one.gain, "p": one.p, "rounds": rounds, "verdict": one.verdict(LEVEL)}
        rows.append(PaperRow(policy, here))
    note = (
        f"Logistic regression trained anew after every {BATCH} examples; accuracy by how many were "
        "labelled, means over seeds. Gain: difference of mean accuracy over the rounds to "
        "confidence, p exact over sign flips of seeds and adjusted for the policies; rounds: those "
        "certainly ahead or behind, adjusted for rounds. The paper says that Edisa is "
        "significantly ahead of its baselines between 3,000 and 10,000 examples. Here every policy "
        "labels the same number."
    )
    if "auditor" in learning.policies:
        note += " Auditor: where an adaptive audit would look next."
    return PaperTable(f"Figure 6: active learning, {name}", note, columns, tuple(rows))


def _verdict(gain: Value, p: float) -> str:
    if p > LEVEL or not isinstance(gain, float):
        return "not shown"
    return "ahead" if gain > 0 else "behind"


def _mean(values: Sequence[float] | Floats) -> float | None:
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    return float(numbers.mean()) if len(numbers) else None
