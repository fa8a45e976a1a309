"""What holds of the claims about failure taxonomies on these models, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from groundfault.render import words
from groundfault_studies import taxonomy_paper as printed
from groundfault_studies.ranks import bootstrap_bands
from groundfault_studies.tables import Kind, PaperRow, PaperTable
from groundfault_studies.taxonomy_cells import (
    GOAL,
    KINDS,
    METHODS_NAMED,
    PRESETS,
    TaxonomyEvaluation,
    cell,
    complete,
    gain,
    interval,
    usable,
    values,
)
from groundfault_studies.taxonomy_folds import PROBE

_NOT_ASKED = "not asked"
_WORTH = 0.05  # of the error: what is less is not worth a prediction, however sure


def holds(evaluation: TaxonomyEvaluation) -> PaperTable:
    """Claims and whether they hold here: the tests and comparisons were fixed before looking."""
    rows = [
        PaperRow(claim, {"holds": holds, "why": why}) for claim, holds, why in _claims(evaluation)
    ]
    columns: dict[str, tuple[str, Kind]] = {
        "holds": ("holds here", "text"),
        "why": ("because", "text"),
    }
    models, tasks = (
        words.plural(len(evaluation.matrix.models), "model"),
        words.plural(len(evaluation.matrix), "task"),
    )
    omission = (
        f"; {words.plural(evaluation.incomplete, 'model')} with holes left out"
        if evaluation.incomplete
        else ""
    )
    note = (
        f"{models}, {tasks}{omission}. {words.plural(evaluation.trials, 'trial')} of each fold. "
        "Each claim is at 5 %, on its own. Diagnosis is of a model left out, on held-out tasks, "
        f"with {GOAL} asked; clusters are ranked by Kendall's tau, and errors are of cluster "
        "failure rates."
    )
    return PaperTable("What holds, and what does not", note, columns, tuple(rows))


def _claims(evaluation: TaxonomyEvaluation) -> Iterable[tuple[str, str, str]]:
    level = evaluation.default.level
    for preset, key, claim in (
        (
            "paper",
            "label_fixed",
            "The paper's clusters are tighter than the same labels on shuffled columns",
        ),
        (
            "paper",
            "column_shuffle",
            "The paper's clusters are tighter than its procedure finds in shuffled columns",
        ),
        (
            "paper",
            "one_ability",
            "The paper's clusters are tighter than its procedure finds where one ability is all",
        ),
        ("default", "direction", "Models differ by more than one ability"),
        (
            "default",
            "one_ability",
            "The default clusters are tighter than found where one ability is all",
        ),
    ):
        test = evaluation.taxonomies[preset].tests.get(key)
        if test is None or not test.draws:
            yield claim, _NOT_ASKED, "there are no clusters to ask it of"
        else:
            yield claim, _yes(test.p <= level), f"p = {words.p_value(test.p)}"
    for preset, taxonomy in evaluation.taxonomies.items():
        enough, total = len(taxonomy.published), len(taxonomy.clusters)
        why = (
            f"{enough} of {total} are published; the paper's rule would publish "
            f"{taxonomy.by_the_papers_rule}"
        )
        yield (
            f"Clusters are found again ({PRESETS[preset]})",
            _yes(0 < enough == total) if total else "no",
            why,
        )
    for preset in ("default", "paper"):
        yield from _diagnosis_claims(evaluation, preset)
    yield from _prediction_claims(evaluation)


def _diagnosis_claims(
    evaluation: TaxonomyEvaluation, preset: str
) -> Iterable[tuple[str, str, str]]:
    folds = complete(evaluation.folds[preset])
    missing = len(evaluation.folds[preset]) - len(folds)
    where = "the default clusters" if preset == "default" else "the paper's clusters"
    if len(folds) < 3:
        few = (
            f"{missing} of {len(evaluation.folds[preset])} folds have fewer than two clusters or "
            "too few tasks to ask"
        )
        yield f"Tasks chosen by {where} help to diagnose a model", _NOT_ASKED, few
        return
    ours = ("taxonomy", "shrunk")
    for base, name in (
        ("random", "random tasks as asked"),
        ("same", "random tasks with shrunk rates"),
        ("prior", "the training models alone"),
    ):
        for what, word in (
            ("tau", "ranks them better than"),
            ("mae", "estimates rates more closely than"),
        ):
            mean, low, high = (
                float(x[0]) for x in bootstrap_bands(gain(folds, what, base)[ours][:, None])
            )
            good = low > 0 if what == "tau" else high < 0
            claim = f"Asking by {where}, with shrunk rates, {word} {name}"
            yield claim, _yes(good), f"difference {interval(mean, low, high)}"
    for what, verb in (
        ("tau", "ranks {} better than"),
        ("mae", "estimates rates of {} more closely than"),
    ):
        for base, name in (
            ("random", "random tasks as asked"),
            ("prior", "the training models alone"),
        ):
            gains = gain(folds, what, base)
            joint = bootstrap_bands(np.column_stack(list(gains.values())))
            best = int(joint[0].argmax() if what == "tau" else joint[0].argmin())
            strategy, kind = list(gains)[best]
            difference = interval(*(float(x[best]) for x in joint))
            why = (
                f"{printed.NAMES[strategy]}, {KINDS[kind]}: {difference}, the choice of the best "
                "allowed for"
            )
            good = joint[1][best] > 0 if what == "tau" else joint[2][best] < 0
            yield f"The best of all strategies {verb.format(where)} {name}", _yes(bool(good)), why
    inside = values(folds, lambda row: cell(row, "held out", "taxonomy", GOAL, "inside"))
    yield (
        f"90 % intervals of failure rates in {where} hold",
        _yes(inside.mean() >= 0.85),
        f"{inside.mean():.0%} do",
    )


def _prediction_claims(evaluation: TaxonomyEvaluation) -> Iterable[tuple[str, str, str]]:
    for preset in evaluation.taxonomies:
        folds = [r for r in usable(evaluation.folds[preset]) if "prediction" in r]
        claim = f"Failures beyond ability can be predicted from {PROBE} tasks ({PRESETS[preset]})"
        if len(folds) < 3:
            few = (
                f"{len(folds)} of {len(evaluation.folds[preset])} folds have clusters to predict by"
            )
            yield claim, _NOT_ASKED, few
            continue
        beyond = ("nearest", "neighbours", "low_rank", "clusters")
        gains = np.array(
            [
                [
                    r["prediction"]["methods"][m]["excess_mae"] - r["prediction"]["nothing"]
                    for m in beyond
                ]
                for r in folds
            ]
        )
        mean, low, high = bootstrap_bands(gains)
        best = int(mean.argmin())
        nothing = float(np.mean([r["prediction"]["nothing"] for r in folds]))
        difference = interval(*(float(x[best]) for x in (mean, low, high)))
        why = (
            f"the best, {METHODS_NAMED[beyond[best]]}, changes an error of {nothing:.3f} by "
            f"{difference}; the whole interval would have to lie below "
            f"{words.signed(-_WORTH * nothing, 3)}"
        )
        yield claim, _yes(bool(high[best] < -_WORTH * nothing)), why


def _yes(value: bool) -> str:
    return "yes" if value else "no"
