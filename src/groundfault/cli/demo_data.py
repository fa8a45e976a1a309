"""The demo: a real classifier's real mistakes on data that ships inside scikit-learn."""

from __future__ import annotations

import numpy as np
import polars as pl

from groundfault.core.candidate import Candidate

TRAINED_ON = 200

DECLARED = (
    Candidate(
        "round digit", "digit IN ('0', '6', '8', '9')", "the digit has a closed loop", "declared"
    ),
    Candidate("faint", "ink < 260", "the digit is written with little ink", "declared"),
    Candidate("wide", "width >= 7", "the digit is at least 7 of 8 columns wide", "declared"),
    Candidate("scanned late", "position > 1000", "the image comes late in the file", "declared"),
    Candidate(
        "even position",
        "position % 2 = 0",
        "the image stands at an even place in the file",
        "declared",
    ),
)


def digits_results() -> pl.DataFrame:
    """Train a classifier on 200 images of handwritten digits and test it on the other 1597.

    Returns
    -------
    polars.DataFrame
        One row a test image: ``image``, ``error`` (whether the classifier was wrong), and
        attributes measured on it.
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    data = load_digits()
    images, labels = data.images, data.target
    model = LogisticRegression(max_iter=500).fit(data.data[:TRAINED_ON] / 16, labels[:TRAINED_ON])
    test_rows = slice(TRAINED_ON, None)
    wrong = model.predict(data.data[test_rows] / 16) != labels[test_rows]
    image = images[test_rows]
    inked = image > 4
    return pl.DataFrame(
        {
            "image": [f"digit-{i:04d}" for i in range(TRAINED_ON, len(labels))],
            "error": wrong.astype(np.int64),
            "digit": labels[test_rows].astype(str),
            "ink": image.sum(axis=(1, 2)).astype(np.int64),
            "width": inked.any(axis=1).sum(axis=1),
            "height": inked.any(axis=2).sum(axis=1),
            "asymmetry": np.round(np.abs(image - image[:, :, ::-1]).mean(axis=(1, 2)), 2),
            "tilt": np.round(_tilt(image), 2),
            "position": np.arange(TRAINED_ON, len(labels)),
        }
    )


def _tilt(image: np.ndarray) -> np.ndarray:
    """How far the ink leans: its horizontal position regressed on the vertical one."""
    rows = np.arange(8.0)[None, :, None] - (image * np.arange(8.0)[None, :, None]).sum(
        (1, 2), keepdims=True
    ) / (image.sum((1, 2), keepdims=True))
    columns = np.arange(8.0)[None, None, :] - (image * np.arange(8.0)[None, None, :]).sum(
        (1, 2), keepdims=True
    ) / (image.sum((1, 2), keepdims=True))
    return np.asarray((image * rows * columns).sum((1, 2)) / (image * rows**2).sum((1, 2)))
