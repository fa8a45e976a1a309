"""What to do with examples whose label is not known: a ranked list, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from groundfault.base.arrays import Floats, Ints, Places
from groundfault.core.candidate import matrix
from groundfault.errors import InputError, require_name
from groundfault.slicing.embedding import embed
from groundfault_lab.improve.selective import Flipping, SelectivePrediction, Slicer, suspect
from groundfault_lab.slicing.predictions import (
    EMBEDDING,
    EXAMPLES_A_SLICE,
    EmbeddedPredictions,
    check_probability,
)
from groundfault_lab.slicing.replays import PROBABILITY
from groundfault_lab.stats.improvement import Improvement

Act = Literal["leave-out", "relabel", "label-next"]
ACTS: tuple[Act, ...] = get_args(Act)

# two slices in each half: with fewer, neither the check nor the list means anything
MIN_LABELLED = 4 * EXAMPLES_A_SLICE


@dataclass(frozen=True)
class Suggestion:
    """One example to act on.

    Attributes
    ----------
    row : int
        Its row among the examples without a label, from 0.
    predicted, suggested : int
        Class by the model, and the one to give it; the same where the act changes no label.
    confidence, suspicion : float
        Largest probability of the model, and the share of error slices in what the slicer sees;
        both in [0, 1].
    """

    row: int
    predicted: int
    suggested: int
    confidence: float
    suspicion: float


@dataclass(frozen=True, eq=False)
class Suggestions:
    """A ranked list for examples without labels.

    Attributes
    ----------
    act : {"leave-out", "relabel", "label-next"}
    rows : tuple of Suggestion
        First what to act on first.
    check : Improvement, optional
        The same act by a slicer fitted to one half of the labelled examples, measured on the other
        half; None for ``label-next``, whose gain only training would show.
    labelled, fresh : int
        How many examples had a label, and how many had none.
    """

    act: Act
    rows: tuple[Suggestion, ...]
    check: Improvement | None
    labelled: int
    fresh: int

    def explain_worth(self, level: float = 0.05) -> str:
        """Say in a sentence or two how much such a list is worth on the labelled examples."""
        if self.check is None:
            return (
                "Not measured: what a model gains by learning from these needs training "
                "(groundfault_lab.improve.active_learning)."
            )
        text = (
            f"Fitted to half of the {self.labelled:,} labelled examples and measured on the other "
            f"half: {self.check.summary(level)}."
        )
        if not self.check.steps or not self.check.c_p <= level:
            text += " Nothing here shows that the slices beat the model's own confidence."
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers."""
        one = self.check
        check = one and {
            "steps": one.steps,
            "accuracy_before": one.original,
            "accuracy_after": _last(one.accuracy),
            "accuracy_by_confidence": _last(one.confidence),
            "p": one.p,
            "p_against_confidence": one.c_p,
        }
        sizes = {"act": self.act, "labelled": self.labelled, "fresh": self.fresh}
        rows = [asdict(row) for row in self.rows]
        return {**sizes, "check": check, "worth": self.explain_worth(), "rows": rows}


def suggest(
    act: Act,
    slicer: Slicer,
    labelled: ScoredExamples,
    label: Ints,
    fresh: ScoredExamples,
    *,
    seed: int = 0,
) -> Suggestions:
    """Rank examples without a label for one act, by a slicer of the labelled ones.

    The list comes from a slicer fitted to all labelled examples, its check from one fitted to half
    of them. At most one slice is fitted for every twenty examples.

    Parameters
    ----------
    act : {"leave-out", "relabel", "label-next"}
        Leave unanswered what `SelectivePrediction` would reject; give another label as `Flipping`
        does; or label next, in the order of `SuspectSlices`, which ranks every example.
    slicer : Slicer
        Such as `Edisa`; it is copied.
    labelled : ScoredExamples
        Examples that the model was not trained on: n of them.
    label : int64 array, shape (n,)
        Their true classes, as numbers of columns of ``probability``.
    fresh : ScoredExamples
        Examples without a label; there may be none, and the check alone is then of use.
    seed : int
        Draws the half that is checked.

    Raises
    ------
    InputError
        If there are fewer than 80 labelled examples, or the data cannot be used.
    PlanError
        If there is no such act.

    Notes
    -----
    The check holds for fresh examples only as far as the labelled ones are like them.

    References
    ----------
    Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural
    Language Processing", TACL 11, 2023, section 4.3. https://doi.org/10.1162/tacl_a_00617
    """
    require_name("act", act, ACTS)
    if len(label) < MIN_LABELLED:
        raise InputError(
            f"{len(label)} examples have a label, an embedding and probabilities, and at least "
            f"{MIN_LABELLED} are needed: half of them check what the other half says"
        )
    check = None
    if act != "label-next":
        order = np.random.default_rng([seed, len(label)]).permutation(len(label))
        first, second = np.array_split(order, 2)
        fit = _fit(act, slicer, labelled.take(first), label[first], seed)
        other = labelled.take(second)
        check = fit.measure(other.embedding, label[second], other.probability)
    rows = _rank(act, slicer, labelled, label, fresh, seed) if len(fresh.embedding) else ()
    return Suggestions(act, tuple(rows), check, len(label), len(fresh.embedding))


def _rank(
    act: Act,
    slicer: Slicer,
    labelled: ScoredExamples,
    label: Ints,
    fresh: ScoredExamples,
    seed: int,
) -> Sequence[Suggestion]:
    fit = _fit(act, slicer, labelled, label, seed)
    prone, suspicion = suspect(fit.slicer_, fresh.embedding, fresh.probability)
    predicted = suggested = fresh.probability.argmax(axis=1)
    if isinstance(fit, Flipping):
        suggested = fit.predict(fresh.embedding, fresh.probability)
        prone = suggested != predicted
    # the error-prone first, each group by suspicion; of equals, the first
    order = np.argsort(-(prone + suspicion), kind="stable")
    if act != "label-next":
        order = order[prone[order]]
    confidence = fresh.probability.max(axis=1)
    return [
        Suggestion(row, int(predicted[row]), int(suggested[row]), float(confidence[row]), float(s))
        for row, s in zip(order.tolist(), suspicion[order], strict=True)
    ]


def _fit(
    act: Act, slicer: Slicer, examples: ScoredExamples, label: Ints, seed: int
) -> SelectivePrediction | Flipping:
    parameters = slicer.get_params()
    parameters["n_slices"] = min(parameters["n_slices"], len(label) // EXAMPLES_A_SLICE)
    few: Slicer = type(slicer)(**parameters)
    how = Flipping(few, random_state=seed) if act == "relabel" else SelectivePrediction(few)
    return how.fit(examples.embedding, label, examples.probability)


def _last(curve: Floats) -> float | None:
    return float(curve[-1]) if len(curve) and not math.isnan(curve[-1]) else None


@dataclass(frozen=True, eq=False)
class ScoredExamples:
    """Examples with a model's output.

    Attributes
    ----------
    embedding, probability : float64 arrays, shapes (n, d) and (n, c)
    """

    embedding: Floats
    probability: Floats

    def __post_init__(self) -> None:
        check_probability(self.probability, len(self.embedding))

    def take(self, rows: Places) -> ScoredExamples:
        """Return some of the examples."""
        return ScoredExamples(self.embedding[rows], self.probability[rows])


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Examples with a true class, and those without. Make one with `of`.

    Attributes
    ----------
    frame : polars.DataFrame
    label_column : str
    classes : tuple of str
        Names of the c classes.
    labelled, fresh : ScoredExamples
        Rows with a class, and without one.
    label : int64 array
        Classes of the labelled, in 0 .. c - 1.
    fresh_rows : tuple of int
        Which rows of ``frame`` the fresh ones are.
    incomplete : int
        Rows that lack a number, and are in neither part.
    """

    frame: pl.DataFrame
    label_column: str
    classes: tuple[str, ...]
    labelled: ScoredExamples
    label: Ints
    fresh: ScoredExamples
    fresh_rows: tuple[int, ...]
    incomplete: int

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        label: str = "label",
        embedding: str = EMBEDDING,
        probability: str = PROBABILITY,
        text: str | None = None,
    ) -> LabelledTable:
        """Read a table of one row an example.

        Parameters
        ----------
        frame : polars.DataFrame
        label : str
            Column of the true class, NULL where it is not known: named as the probability columns
            are, or numbered from 0.
        embedding, probability : str
            Columns, or globs of columns.
        text : str, optional
            Column of texts. Where there is no embedding, theirs (TF-IDF) is taken, learnt from all
            rows; a missing text is an empty one.

        Raises
        ------
        InputError
            If a column is missing or holds something else.
        """
        if text is not None and not _match(frame, embedding, label):
            points = embed(frame[text].cast(pl.String).fill_null("").to_list())
            frame = frame.with_columns(
                pl.Series("embedding", points, dtype=pl.Array(pl.Float64, points.shape[1]))
            )
            embedding = "embedding"
        need = "embedding of the examples (--embedding), or texts to embed (--text)"
        places = _require(frame, embedding, label, need)
        need = "model's probability of each class (--probability)"
        classes = _require(frame, probability, label, need)
        places = {name: pattern for name, pattern in places.items() if name not in classes}
        is_known = frame[label].is_not_null()
        known = EmbeddedPredictions.of_table(frame.filter(is_known), places, classes, label)
        points, chances = matrix(frame, list(places)), matrix(frame, list(classes))
        is_complete = ~np.isnan(np.hstack([points, chances])).any(axis=1)
        rows = np.flatnonzero(is_complete & ~is_known.to_numpy())
        labelled = ScoredExamples(known.embedding, known.probability)
        fresh = ScoredExamples(points[rows], chances[rows])
        lacking, numbers = int((~is_complete).sum()), tuple(rows.tolist())
        return cls(frame, label, known.classes, labelled, known.label, fresh, numbers, lacking)


def _match(frame: pl.DataFrame, pattern: str, label: str) -> dict[str, str]:
    """Return the columns that a name or glob selects, each with the pattern."""
    others = [name for name in frame.columns if name != label]
    names = [name for name in others if name == pattern or fnmatchcase(name, pattern)]
    return dict.fromkeys([pattern] if pattern in names else names, pattern)


def _require(frame: pl.DataFrame, pattern: str, label: str, need: str) -> dict[str, str]:
    names = _match(frame, pattern, label)
    if not names:
        raise InputError(
            f"no column is named, or matches, {pattern!r}: name those of the {need}; the table has "
            f"{', '.join(name for name in frame.columns[:12] if name != label)}"
        )
    return names
