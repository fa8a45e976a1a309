"""Words and attributes that set clusters apart: they describe clusters and have no part in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Ints
from groundfault.core.columns import Kind, profile
from groundfault.stats.multiple import holm
from groundfault_lab.taxonomy.fitting.taxonomy import EnrichedAttribute

_TERMS = 5  # words of a cluster, as many as a line of a report shows
_ATTRIBUTES = 6  # of a cluster, as many as a cell of the report shows
_LEAST_SIZE = 5  # examples with a property: fewer reach no small p after Holm's adjustment
_FEW = 8  # levels of a number that is taken for a label; more are cut at the median
_WORD = r"(?u)\b[^\W\d_]\w+\b"


def find_contrasting_terms(
    texts: Sequence[str | None], labels: Ints
) -> tuple[tuple[str, ...], ...]:
    """Find words that are frequent in each cluster and rare in the others, best first.

    Parameters
    ----------
    texts : sequence of str or None, of length n
    labels : int array, shape (n,)
        Negative is noise, which counts as the others.

    Notes
    -----
    Class-based TF-IDF: share of the cluster's words times log(1 + mean words a cluster / count of
    the word). Grootendorst 2022, arXiv:2203.05794. Words of digits alone are left out, and so are
    words of one example only."""
    from sklearn.feature_extraction.text import CountVectorizer

    groups = int(labels.max()) + 1
    counter = CountVectorizer(
        token_pattern=_WORD, min_df=2, stop_words="english", max_features=50_000
    )
    try:
        counts = counter.fit_transform(text or "" for text in texts)
    except ValueError:  # no word is left
        return ((),) * groups
    member = np.zeros((groups + 1, len(labels)))
    member[labels, np.arange(len(labels))] = 1  # noise is the last row
    table = np.asarray(member @ counts)
    words = counter.get_feature_names_out()
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    # class-based TF-IDF: arXiv:2203.05794, equation 2
    weight = share * np.log1p(table.sum() / len(table) / np.maximum(table.sum(axis=0), 1))
    # a word that is no more frequent here than elsewhere sets nothing apart
    overall = table.sum(axis=0) / max(table.sum(), 1)
    weight = np.where(share > overall, weight, 0.0)[:groups]
    best = np.argsort(-weight, axis=1, kind="stable")[:, :_TERMS]
    return tuple(
        tuple(str(words[j]) for j in row if weight[c, j] > 0) for c, row in enumerate(best)
    )


def find_enriched_attributes(
    attributes: pl.DataFrame, labels: Ints, level: float
) -> tuple[tuple[EnrichedAttribute, ...], ...]:
    """Find attributes more frequent in each cluster than outside it, by adjusted p-value.

    Parameters
    ----------
    attributes : polars.DataFrame
        One row an example: flags, words of few levels, and numbers, which are cut at their median.
    labels : int array, shape (n,)
    level : float
        Family-wise, over all attributes and clusters.

    Notes
    -----
    Fisher's exact test against all other examples, noise included. It assumes that examples were
    exchangeable but for the attribute; the clusters were formed on answers, which attributes may
    explain."""
    from scipy.stats import hypergeom

    groups = int(labels.max()) + 1
    tests = [
        (name, on, has_value)
        for name, on, has_value in _list_properties(attributes)
        # fewer than five cannot reach a small p after Holm, and cost the others power
        if _LEAST_SIZE <= on.sum() < has_value.sum()
    ]
    if not tests or groups == 0:
        return ((),) * groups
    p, shares = np.ones((len(tests), groups)), np.zeros((len(tests), groups, 2))
    for i, (_, on, has_value) in enumerate(tests):
        inside = np.array([((labels == c) & has_value).sum() for c in range(groups)])
        hits = np.array([((labels == c) & on).sum() for c in range(groups)])
        # Fisher's exact test, upper tail; sf can exceed 1 by rounding
        p[i] = np.minimum(hypergeom.sf(hits - 1, has_value.sum(), on.sum(), inside), 1.0)
        shares[i, :, 0] = hits / np.maximum(inside, 1)
        shares[i, :, 1] = (on.sum() - hits) / np.maximum(has_value.sum() - inside, 1)
    # over all attributes and clusters at once, not cluster by cluster
    adjusted = holm(p.ravel()).reshape(p.shape)
    rows = []
    for c in range(groups):
        order = np.argsort(adjusted[:, c], kind="stable")
        best = [i for i in order if adjusted[i, c] <= level][:_ATTRIBUTES]
        rows.append(
            tuple(
                EnrichedAttribute(tests[i][0], inside, outside, float(adjusted[i, c]))
                for i in best
                for inside, outside in [shares[i, c].tolist()]
            )
        )
    return tuple(rows)


def _list_properties(table: pl.DataFrame) -> Iterator[tuple[str, Bools, Bools]]:
    """Yield names of true/false properties, where they are true, and where they are known."""
    if not table.width:
        return
    for column in profile(table):
        values = table[column.name]
        present = values.is_not_null().to_numpy()
        if column.kind is Kind.FLAG:
            flags = values.cast(pl.Float64)
            yield column.name, (flags == 1).fill_null(False).to_numpy(), present
            yield f"not {column.name}", (flags == 0).fill_null(False).to_numpy(), present
        elif column.kind is Kind.LABEL or (column.kind is Kind.NUMBER and column.distinct <= _FEW):
            words = values.cast(pl.String)
            for word in words.drop_nulls().unique().sort():
                on = (words == word).fill_null(False).to_numpy()
                yield f"{column.name} = {word}", on, present
        elif column.kind is Kind.NUMBER:
            numbers = values.cast(pl.Float64).to_numpy()
            # one cut by the median, decided without the labels: a best cut would need a correction
            middle = float(np.nanmedian(numbers))
            above = numbers > middle
            yield f"{column.name} above {middle:g}", above, present
            yield f"{column.name} at most {middle:g}", ~above & present, present
