"""Tables of an evaluated taxonomy: the paper's in form, and the honest ones beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groundfault.render import words
from groundfault_lab.taxonomy.use.basis import STRATEGIES
from groundfault_lab.taxonomy.use.prediction import METHODS
from groundfault_studies import taxonomy_paper as printed
from groundfault_studies.ranks import bootstrap_bands, rho
from groundfault_studies.tables import Kind, PaperRow, PaperTable, Value
from groundfault_studies.taxonomy_cells import (
    GOAL,
    KINDS,
    METHODS_NAMED,
    PRESETS,
    Folds,
    Pick,
    TaxonomyEvaluation,
    cell,
    complete,
    contests,
    gain,
    interval,
    plain,
    usable,
    values,
    with_error,
)
from groundfault_studies.taxonomy_folds import BUDGETS, PROBE, UNIFORM

Floats = NDArray[np.float64]


_DIGITS = {"tau": 2, "mae": 3}
_OTHERS = "The paper's numbers are of other models and data."


def all_tables(evaluation: TaxonomyEvaluation) -> tuple[PaperTable, ...]:
    """Every table with rows, in the order of the paper."""
    tables = [
        _alphas(evaluation),
        _sizes(evaluation),
        _imputations(evaluation),
        _reality(evaluation),
        _clusters(evaluation),
        _curve(
            "Table 2: tau on clusters with three tasks or more, asked from and scored on all tasks "
            "(the paper's way)",
            evaluation.folds["paper"],
            lambda s, b: lambda row: cell(row, "paper", s, b, "legacy"),
            printed.TABLE_2,
            _OTHERS,
        ),
        _curve(
            "Table 2: share of clusters that this covers",
            evaluation.folds["paper"],
            lambda s, b: lambda row: cell(row, "paper", s, b, "covered"),
            {},
            "Strategies are scored on different sets of clusters where this is below 1; fewer than "
            "two count as tau 0.",
        ),
        _curve(
            "Table 2 on all clusters: the same tasks, an unasked cluster rated as the tasks asked",
            evaluation.folds["paper"],
            lambda s, b: lambda row: cell(row, "paper", s, b, "direct", "tau"),
            {},
            "Asked from and scored on all tasks: tau rises to 1 because what was asked is what is "
            "scored.",
        ),
    ]
    for preset in ("default", "paper"):
        tables += _holdout_tables(evaluation, preset)
    tables += [_pairs(evaluation, preset) for preset in ("default", "paper")]
    tables += [
        _curve(
            "Table 13: oracle, clusters made with the held-out model too",
            evaluation.folds["oracle"],
            lambda s, b: lambda row: cell(row, "paper", s, b, "legacy"),
            printed.TABLE_13,
            f"Tau on clusters with three tasks or more. {_OTHERS}",
        ),
        _curve(
            "Table 14: proportional and uniform allocation, oracle",
            evaluation.folds["oracle"],
            lambda s, b: lambda row: cell(row, "paper", s, b, "legacy"),
            printed.TABLE_14,
            f"Tau on clusters with three tasks or more. {_OTHERS}",
            only=("taxonomy", UNIFORM),
        ),
        *(_prediction(evaluation, preset) for preset in ("paper", "default")),
        _beyond(evaluation),
        _scalar(evaluation),
    ]
    return tuple(table for table in tables if table.rows)


def _curve(
    title: str,
    folds: Folds,
    pick: Callable[[str, int], Pick],
    paper: Mapping[str, list[str]],
    note: str,
    only: tuple[str, ...] = (*STRATEGIES, UNIFORM),
    digits: int = 2,
) -> PaperTable:
    rows, short = [], False
    folds_with_clusters = usable(folds)
    for strategy in only:
        cells = {str(b): values(folds_with_clusters, pick(strategy, b)) for b in BUDGETS}
        # a budget that some models have too few tasks for is not averaged over the others
        here: dict[str, Value] = {
            key: with_error(numbers, digits)
            for key, numbers in cells.items()
            if 0 < len(numbers) == len(folds_with_clusters)
        }
        short |= 0 < len(here) < len(cells)
        paper_row = dict(zip(map(str, BUDGETS), paper.get(strategy, ()), strict=False))
        if here or paper_row:
            rows.append(PaperRow(printed.NAMES[strategy], here, paper_row))
    columns: dict[str, tuple[str, Kind]] = {str(b): (f"N = {b}", "text") for b in BUDGETS}
    count = (
        f"Means over {words.plural(len(folds_with_clusters), 'model')} held out, ± 95 % over "
        "models."
    )
    if not folds_with_clusters:
        count = (
            "No model that is held out leaves two clusters to rank, so only the paper has numbers."
        )
    empty = " No number: some model has fewer tasks to be asked." if short else ""
    return PaperTable(title, f"{count} {note}{empty}", columns, tuple(rows))


def _holdout_tables(evaluation: TaxonomyEvaluation, preset: str) -> list[PaperTable]:
    folds = evaluation.folds[preset]
    rows = usable(folds)
    if not rows:
        return []
    prior, ceiling = (
        {
            what: with_error(values(rows, lambda r, k=key, w=what: r["held out"][k][w]), digits)  # type: ignore[misc]
            for what, digits in _DIGITS.items()
        }
        for key in ("prior", "ceiling")
    )
    out = []
    for what, name in (
        ("tau", "tau over all clusters"),
        ("mae", "mean error of cluster failure rates"),
    ):
        for kind, how in (
            ("direct", "rates as asked"),
            ("shrunk", "rates shrunk"),
            ("ability", "rates by ability"),
        ):
            table = _curve(
                f"Held-out tasks, {PRESETS[preset]}: {name}, {how}",
                folds,
                lambda s, b, k=kind, w=what: lambda row: cell(row, "held out", s, b, k, w),  # type: ignore[misc]
                {},
                "Asked from one random half of each cluster, scored on the other half. The "
                f"training models alone: {prior[what]}; all of the first half asked: "
                f"{ceiling[what]}.",
                digits=_DIGITS[what],
            )
            out.append(table)
    return out


def _pairs(evaluation: TaxonomyEvaluation, preset: str) -> PaperTable:
    """Paired differences at the goal, from random sampling and from the prior, on held-out
    tasks.
    """
    folds = complete(evaluation.folds[preset])
    columns: dict[str, tuple[str, Kind]] = {
        f"{w}_{b}": (f"{'tau' if w == 'tau' else 'error'} − {n}", "text")
        for w in ("tau", "mae")
        for b, n in (
            ("random", "random as asked"),
            ("same", "random, same rates"),
            ("prior", "prior"),
        )
    }
    title = f"Held-out tasks, {PRESETS[preset]}: paired differences at {GOAL} tasks"
    rows = []
    for strategy, kind in contests(folds):
        here: dict[str, Value] = {}
        for what in ("tau", "mae"):
            for base in ("random", "same", "prior"):
                gains = gain(folds, what, base)
                if (strategy, kind) in gains:
                    at = list(gains).index((strategy, kind))
                    mean, low, high = bootstrap_bands(np.column_stack(list(gains.values())))
                    here[f"{what}_{base}"] = interval(
                        float(mean[at]), float(low[at]), float(high[at])
                    )
        rows.append(PaperRow(f"{printed.NAMES[strategy]}, {KINDS[kind]}", here))
    note = (
        f"Means over {words.plural(len(folds), 'model')} with intervals that hold for all lines of "
        "a column at once (95 %, models resampled). Higher tau and lower error are better. Models "
        "that are held out in turn share training models, so the intervals are approximate."
    )
    return PaperTable(title, note, columns, tuple(rows))


def _sweep(row: Mapping[str, Any]) -> dict[str, Value]:
    return {
        "silhouette": plain(row["silhouette"], 3) if row["clusters"] else words.NONE,
        "clusters": row["clusters"],
        "several": row["several"],
        "noise": row["noise"],
    }


_SWEEP: dict[str, tuple[str, Kind]] = {
    "silhouette": ("silhouette", "text"),
    "clusters": ("clusters", "count"),
    "several": ("cross-benchmark", "rate"),
    "noise": ("noise", "rate"),
}


def _reduction(evaluation: TaxonomyEvaluation) -> str:
    reducer = {
        "umap": "UMAP",
        "pca": "principal components (UMAP is not installed; Algorithm 1 has them too)",
    }
    return f"Reduced by {reducer[evaluation.paper.reducer]}. {_OTHERS}"


def _alphas(evaluation: TaxonomyEvaluation) -> PaperTable:
    rows = [
        PaperRow(
            f"alpha = {alpha}",
            _sweep(row),
            dict(
                zip(
                    ("silhouette", "clusters", "several", "noise"),
                    printed.TABLE_1[alpha],
                    strict=True,
                )
            ),
        )
        for alpha, row in zip(printed.TABLE_1, evaluation.sweeps["alpha"], strict=False)
    ]
    test = evaluation.taxonomies["paper"].tests.get("label_fixed")
    if test is not None and test.mean is not None:
        null = f"{test.mean:.3f} ± {test.spread:.3f}".replace("-", "−")
        rows.append(
            PaperRow(
                "columns shuffled, labels fixed",
                {"silhouette": null},
                {"silhouette": printed.TABLE_1_NULL[0]},
            )
        )
        rows.append(
            PaperRow(
                "p-value",
                {"silhouette": words.p_value(test.p)},
                {"silhouette": printed.TABLE_1_NULL[1]},
            )
        )
    texts = (
        "" if evaluation.paper.alpha else " No texts were given, so there is no sweep over alpha."
    )
    count = (
        f"{evaluation.sweeps['alpha'][0]['examples']:,} tasks failed by one of "
        f"{', '.join(evaluation.paper.frontier)}."
    )
    return PaperTable(
        "Table 1: clusters by weight of the texts",
        f"{count} {_reduction(evaluation)}{texts}",
        _SWEEP,
        tuple(rows),
    )


def _sizes(evaluation: TaxonomyEvaluation) -> PaperTable:
    rows = [
        PaperRow(
            f"at least {size} tasks",
            _sweep(row),
            dict(zip(("clusters", "noise", "silhouette"), printed.TABLE_10[size], strict=True)),
        )
        for size, row in zip(printed.TABLE_10, evaluation.sweeps["size"], strict=True)
    ]
    return PaperTable(
        "Table 10: clusters by least size, before large ones are split",
        _reduction(evaluation),
        _SWEEP,
        tuple(rows),
    )


def _imputations(evaluation: TaxonomyEvaluation) -> PaperTable:
    rows = [
        PaperRow(
            how.replace("_", " "),
            _sweep(row),
            dict(
                zip(
                    ("silhouette", "clusters", "noise", "several"),
                    printed.TABLE_15[how],
                    strict=True,
                )
            ),
        )
        for how, row in zip(printed.TABLE_15, evaluation.sweeps["imputation"], strict=True)
    ]
    holes = evaluation.sweeps["imputation"][0]["holes"]
    many = (
        f"Of all {len(evaluation.matrix.models) + evaluation.incomplete} models, "
        f"{words.rate(holes)} of the cells are holes."
        if holes
        else "There are no holes, so every way of filling them gives the same."
    )
    return PaperTable(
        "Table 15: clusters by how holes are filled",
        f"{many} {_reduction(evaluation)}",
        _SWEEP,
        tuple(rows),
    )


_TESTS = {
    "label_fixed": "labels fixed, columns shuffled (the paper's test)",
    "column_shuffle": "clustered anew, columns shuffled",
    "one_ability": "clustered anew, worlds of one ability",
    "column_shuffle_reduced": "the same in the reduced space, columns shuffled",
    "one_ability_reduced": "the same in the reduced space, worlds of one ability",
    "direction": "strongest direction of residuals, worlds of one ability",
}


def _reality(evaluation: TaxonomyEvaluation) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "observed": ("observed", "text"),
        "null": ("null", "text"),
        "p": ("p", "p"),
    }
    rows = []
    for preset, taxonomy in evaluation.taxonomies.items():
        for key, name in _TESTS.items():
            test = taxonomy.tests.get(key)
            if test is not None and test.draws:
                null = f"{test.mean:.3f} ± {test.spread:.3f}".replace("-", "−")
                here: dict[str, Value] = {
                    "observed": plain(test.observed, 3),
                    "null": null,
                    "p": test.p,
                }
                rows.append(PaperRow(f"{preset}: {name}", here))
    note = (
        "Silhouettes, but for the last line. Add-one p-values. Only the tests that cluster anew "
        "ask whether the procedure finds such clusters where there are none. A silhouette of −1 "
        "stands for no clusters."
    )
    return PaperTable("Are the clusters more than chance and ability?", note, columns, tuple(rows))


def _clusters(evaluation: TaxonomyEvaluation) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "size": ("tasks", "count"),
        "examples": ("other tasks", "size"),
        "models": ("other models", "size"),
        "seeds": ("other seeds", "size"),
        "published": ("published", "text"),
    }
    rows = [
        PaperRow(
            f"{preset}: {cluster.name}",
            {
                "size": cluster.size,
                **cluster.stability,
                "published": "yes" if cluster.published else "no",
            },
        )
        for preset, taxonomy in evaluation.taxonomies.items()
        for cluster in taxonomy.clusters
    ]
    rand = "; ".join(
        f"{preset} {words.NONE if (r := t.stability.agreement.get('models')) is None else plain(r)}"
        for preset, t in evaluation.taxonomies.items()
    )
    note = (
        "Mean Jaccard index of a cluster with its like in refits. Published from "
        f"{evaluation.default.stability:g} on, if both null worlds are beaten. Adjusted Rand index "
        f"of clusters from two halves of the models: {rand}."
    )
    return PaperTable("Are the clusters found again?", note, columns, tuple(rows))


def _of_methods(evaluation: TaxonomyEvaluation, preset: str, method: str, key: str) -> Floats:
    return values(
        [r for r in evaluation.folds[preset] if "prediction" in r],
        lambda row: row["prediction"]["methods"][method][key],
    )


def _prediction(evaluation: TaxonomyEvaluation, preset: str) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {"auc": ("AUC", "text"), "f1": ("F1", "text")}
    rows = []
    for method in (*METHODS, "clusters"):
        auc, f1 = (_of_methods(evaluation, preset, method, key) for key in ("auc", "f1"))
        here: dict[str, Value] = {"auc": with_error(auc), "f1": with_error(f1)} if len(auc) else {}
        paper_row = dict(zip(("auc", "f1"), printed.TABLE_3.get(method, ()), strict=False))
        if here or paper_row:
            rows.append(PaperRow(METHODS_NAMED[method], here, paper_row))
    count, of = (
        len(_of_methods(evaluation, preset, "majority", "auc")),
        len(evaluation.folds[preset]),
    )
    note = (
        f"Whether a held-out model fails more than half of a cluster, from {PROBE} random tasks of "
        f"the other half. {count} of {of} models have clusters on both sides of a half and count. "
        f"{_OTHERS}"
    )
    return PaperTable(
        f"Table 3: prediction of cluster failures, {PRESETS[preset]}", note, columns, tuple(rows)
    )


def _beyond(evaluation: TaxonomyEvaluation) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "error": ("mean error of the excess", "text"),
        "gain": ("less than of no excess", "text"),
        "match": ("correlation", "text"),
        "loss": ("log loss by task", "text"),
    }
    rows = []
    for preset in evaluation.taxonomies:
        folds = [r for r in usable(evaluation.folds[preset]) if "prediction" in r]
        for method in (*METHODS, "clusters") if folds else ():
            of = [row["prediction"]["methods"][method] for row in folds]
            error = np.array([x["excess_mae"] for x in of])
            less = error - np.array([row["prediction"]["nothing"] for row in folds])
            product, power, variance = (
                sum(x[key] for x in of) for key in ("product", "power", "variance")
            )
            scale = np.sqrt(power * variance)
            here: dict[str, Value] = {
                "error": f"{error.mean():.3f}",
                "gain": interval(*(float(x[0]) for x in bootstrap_bands(less[:, None])))
                if power > 1e-9
                else words.NONE,
                "match": plain(product / scale) if scale > 1e-9 else words.NONE,
                "loss": f"{np.mean([x['loss'] for x in of]):.4f}"
                if "loss" in of[0]
                else words.NONE,
            }
            rows.append(PaperRow(f"{preset}: {METHODS_NAMED[method]}", here))
    note = (
        "The honest target: failures of a cluster beyond what the model's ability, known from half "
        f"of its answers, and the tasks' difficulty explain; from {PROBE} random tasks. Majority "
        "and one ability say that there are none. Log loss is of single tasks of the other half, "
        "chances held within 1 and 99 %."
    )
    return PaperTable(
        "Prediction of what is left once ability is known", note, columns, tuple(rows)
    )


def _scalar(evaluation: TaxonomyEvaluation) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "rho": ("rho of accuracy, as asked", "size"),
        "ability": ("rho of accuracy, by ability", "size"),
        "tau": ("tau of clusters", "size"),
    }
    folds, rows = usable(evaluation.folds["paper"]), []
    for strategy in (*STRATEGIES, UNIFORM):
        scores_at_25 = [
            row["paper"][strategy]["25"] for row in folds if "25" in row["paper"].get(strategy, {})
        ]
        paper_row = dict(zip(("rho", "tau"), printed.TABLE_17.get(strategy, ()), strict=False))
        if len(scores_at_25) < 3 or len(scores_at_25) < len(folds):
            rows += [PaperRow(printed.NAMES[strategy], {}, paper_row)] if paper_row else []
            continue
        truth = np.array([row["paper"]["accuracy"] for row in folds])
        guess = np.array([scores["accuracy"] for scores in scores_at_25])  # folds, trials, two ways
        both = [
            float(
                np.nan_to_num([rho(guess[:, t, way], truth) for t in range(guess.shape[1])]).mean()
            )
            for way in (0, 1)
        ]
        tau = values(folds, lambda row, s=strategy: cell(row, "paper", s, 25, "legacy"))  # type: ignore[misc]
        here: dict[str, Value] = {
            "rho": both[0],
            "ability": both[1],
            "tau": float(tau.mean()) if len(tau) else None,
        }
        rows.append(PaperRow(printed.NAMES[strategy], here, paper_row))
    note = (
        "Spearman's correlation over held-out models of estimated and true accuracy on the tasks "
        f"kept, and tau on clusters with three tasks or more, the paper's procedure. {_OTHERS}"
    )
    return PaperTable(
        "Table 17: ranking models and diagnosing one, at N = 25", note, columns, tuple(rows)
    )
