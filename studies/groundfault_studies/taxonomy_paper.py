"""What FailureScope prints in the tables that `groundfault_studies.taxonomy` gives the form of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from groundfault.errors import InputError
from groundfault_lab.stats.silhouette import silhouette

SOURCE = (
    "Saban (2026), FailureScope: cross-regime behavioral diagnosis of language model weaknesses, "
    "arXiv:2606.09878"
)

NAMES = {
    "random": "Random",
    "benchmark": "Benchmark-stratified",
    "difficulty": "Difficulty-stratified",
    "irt": "IRT-adaptive",
    "uncertainty": "Uncertainty",
    "taxonomy": "Taxonomy-conditioned",
    "taxonomy, uniform": "Taxonomy-conditioned, uniform",
}


def _rows(text: str) -> dict[str, list[str]]:
    lines = [line.split("|") for line in text.strip().splitlines()]
    return {line[0].strip(): line[1].split() for line in lines}


# alpha | silhouette, clusters, cross-benchmark %, noise %
TABLE_1 = _rows("""
0   | 0.21 16 81.2% 20.3%
0.1 | 0.119 25 86.7% 3.0%
0.3 | 0.28 14 78.6% 23.7%
0.5 | 0.15 12 66.7% 26.2%
0.7 | 0.08 8 25.0% 16.4%
1   | 0.09 15 40.0% 45.2%
""")
TABLE_1_NULL = ("−0.085 ± 0.011", "<0.001")

# strategy | tau at 10, 25, 50, 100, 250, 500 tasks
TABLE_2 = _rows("""
random      | .02±.01 .31±.20 .34±.21 .54±.13 .76±.06 .80±.05
benchmark   | .00±.00 .24±.15 .64±.09 .76±.07 .81±.05 .85±.04
difficulty  | .03±.02 .31±.21 .34±.21 .44±.17 .74±.07 .78±.06
irt         | .00±.00 .00±.00 .58±.10 .62±.11 .79±.04 .94±.02
uncertainty | .00±.00 .28±.12 .66±.07 .72±.05 .82±.04 1.00±.00
taxonomy    | .33±.22 .33±.21 .81±.13 .74±.11 .79±.05 .82±.05
""")

# method | AUC, F1
TABLE_3 = _rows("""
majority   | 0.74 0.73
nearest    | 0.88 0.82
neighbours | 0.84 0.74
""")

# least cluster size | clusters, noise, silhouette
TABLE_10 = _rows("""
5  | 10 0.0% 0.073
8  | 9 0.0% 0.082
10 | 9 0.0% 0.082
15 | 8 0.0% 0.095
20 | 8 0.0% 0.095
25 | 8 0.0% 0.095
30 | 7 1.9% 0.095
""")

TABLE_13 = _rows("""
random      | .01±.01 .13±.09 .47±.12 .84±.13 .91±.09 .94±.08
benchmark   | .02±.02 .25±.20 .52±.13 .86±.12 .93±.07 .95±.06
taxonomy    | .94±.13 .95±.11 .88±.13 .90±.11 .94±.08 .96±.04
difficulty  | .01±.01 .07±.06 .29±.13 .69±.11 .91±.09 .94±.06
irt         | .00±.00 .56±.21 .82±.17 .92±.09 .97±.04 .99±.02
uncertainty | .01±.01 .41±.15 .80±.19 .90±.11 .95±.06 .98±.03
""")

TABLE_14 = _rows("""
taxonomy          | .94 .95 .88 .90 .93 .96
taxonomy, uniform | .00 .00 .88 .92 .97 .99
""")

# imputation | silhouette, clusters, noise, cross-benchmark
TABLE_15 = _rows("""
column_mean | 0.119 25 3.0% 86.7%
zero        | 0.774 10 0.9% 90.0%
half        | 0.680 14 1.0% 85.7%
row_mean    | 0.775 10 0.9% 90.0%
none        | 0.562 13 1.0% 84.6%
""")

# strategy | Spearman's rho of accuracy, tau of clusters, at 25 tasks
TABLE_17 = _rows("""
random      | 0.72 0.31
benchmark   | 0.75 0.24
difficulty  | 0.67 0.31
irt         | 0.77 0.00
uncertainty | 0.76 0.28
taxonomy    | 0.60 0.33
""")


def profile_silhouettes(
    profiles: ArrayLike, clusters: Sequence[int] = (2, 3, 4), seed: int = 0
) -> dict[int, float]:
    """Return silhouettes of k-means on a few profiles, such as two rates in nine cells.

    Kept for comparison with the paper. It is a weak ground for "three kinds of behaviour": of nine
    points thrown at random, the best of these silhouettes is about .49 on average, and .71 or more
    in some 6 of 1,000 throws. The gaps of
    `groundfault_lab.taxonomy.use.regimes.grader_gaps` say more.

    Parameters
    ----------
    profiles : float array, shape (n, d)
    clusters : sequence of int
    seed : int
        Of the starts of k-means.
    """
    from sklearn.cluster import KMeans

    points = np.asarray(profiles, dtype=np.float64)
    if points.ndim != 2 or len(points) <= max(clusters):
        raise InputError(f"{len(points)} profiles cannot make {max(clusters)} clusters")
    return {
        k: silhouette(
            points, KMeans(k, n_init=20, random_state=seed).fit_predict(points).astype(np.int64)
        )
        for k in clusters
    }
