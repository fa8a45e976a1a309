"""Fitted slices as candidates: what is promised of every finder, libraries that carry them, and
whole audits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from planted_tables import make_embedded_evidence

import groundfault
from groundfault import Candidate, Evidence, InputError, Library, Plan, RuleError
from groundfault.core.candidate import FittedColumn
from groundfault.core.units import Marks
from groundfault_lab import slicing
from groundfault_lab.testing import check_finder

FINDERS = {
    "edisa": slicing.Edisa(embedding_weight=1.0),
    "domino": slicing.Domino(),
    "spotlight": slicing.Spotlight(size=0.05),
}


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize(("lists", "predictions"), [(True, False), (False, True)])
def test_finders_keep_what_is_promised_of_finders(
    name: str, lists: bool, predictions: bool
) -> None:
    library = check_finder(
        FINDERS[name], make_embedded_evidence(lists=lists, predictions=predictions)
    )
    assert all(c.source == name and c.missing == "drop" for c in library)


@pytest.mark.parametrize("name", FINDERS)
def test_a_planted_slice_is_confirmed_and_the_report_reproduces(name: str, tmp_path: Path) -> None:
    make_embedded_evidence(2000).frame.write_parquet(tmp_path / "results.parquet")
    data = Evidence.from_table(tmp_path / "results.parquet", id="id", outcome="error")
    plan = Plan(judge="split-holm", prevalence=(0, 1))
    # the search for modes knows no finder: one of the three shows that its pages reproduce, too
    report = groundfault.audit(data, plan, finders=[FINDERS[name]], modes=name == "domino")
    assert report.confirmed
    assert all(finding.holdout.lift > 0.2 for finding in report.confirmed)
    report.write(tmp_path / "report")
    result = groundfault.verify(tmp_path / "report")
    assert result.reproduces, result.differences


def test_a_library_carries_each_fitted_function_once_and_applies_to_new_evidence(
    tmp_path: Path,
) -> None:
    proposals = Library.of(FINDERS["domino"].propose(make_embedded_evidence(seed=0)))
    assert len(proposals) > 2
    proposals.freeze(tmp_path / "library.json")
    assert len(json.loads((tmp_path / "library.json").read_text())["derived"]) == 1
    again = Library.load(tmp_path / "library.json")
    assert again == proposals
    other = make_embedded_evidence(seed=1)
    np.testing.assert_array_equal(Marks.of(other, again).on, Marks.of(other, proposals).on)


def test_a_fitted_function_that_was_altered_is_refused(tmp_path: Path) -> None:
    data = json.loads(Library.of(FINDERS["edisa"].propose(make_embedded_evidence())).to_json())
    (library,) = data["derived"].values()
    library["arrays"]["log_weight"]["float64"] = library["arrays"]["log_weight"]["float64"][::-1]
    with pytest.raises((RuleError, InputError)):
        Library.from_json(json.dumps(data))


def test_a_candidate_reads_its_fitted_column() -> None:
    column = FittedColumn("s", "ball", ("x",), {"middle": np.zeros(1), "square": np.ones(1)})
    candidate = Candidate("near", f'"{column.name}" = 1 AND y > 2', fitted_column=column)
    assert candidate.columns == ("x", "y")
    with pytest.raises(RuleError, match="does not read its fitted column"):
        Candidate("near", "y > 2", fitted_column=column)
    frame = pl.DataFrame({"x": [0.5, 3.0, None, 0.1], "y": [3, 3, 3, 1], "error": [0, 1, 0, 1]})
    library = Library.of([Candidate("near", candidate.rule, missing="off", fitted_column=column)])
    marks = Marks.of(Evidence.from_table(frame, outcome="error"), library)
    assert marks.counts()[1].tolist() == [1]


def test_the_hash_of_evidence_covers_every_number_of_a_list() -> None:
    values = np.random.default_rng(0).normal(size=(40, 64))
    other = values.copy()
    other[7, 30] += 1e-9

    def hashed(lists: np.ndarray, dtype: Any) -> str:
        frame = pl.DataFrame(
            {"error": [0, 1] * 20, "embedding": pl.Series(list(lists), dtype=dtype)}
        )
        return Evidence.from_table(frame, outcome="error").hash

    for dtype in (pl.List(pl.Float64), pl.Array(pl.Float64, 64)):
        assert hashed(values, dtype) == hashed(values.copy(), dtype)
        assert hashed(values, dtype) != hashed(other, dtype)


@pytest.mark.parametrize("name", FINDERS)
def test_finders_say_why_they_propose_nothing(name: str) -> None:
    data = make_embedded_evidence(400)
    one_class = data.frame.with_columns(label=pl.lit("ape"), error=pl.Series([0, 1] * 200))
    right = data.frame.with_columns(
        label=pl.Series(["ape", "bee", "cat"])[
            data.frame.select("probability_ape", "probability_bee", "probability_cat")
            .to_numpy()
            .argmax(axis=1)
        ]
    )
    cases = [
        (right, "no prediction on discovery is wrong"),
        (data.frame[:8], "8 discovery examples have all it reads"),
    ]
    cases += [(one_class, "every discovery example is of class ape")] * (name != "spotlight")
    for frame, warning in cases:
        messages = Evidence.from_table(frame, id="id", outcome="error", ignore=("label",))
        with pytest.warns(UserWarning, match=warning):
            assert list(FINDERS[name].propose(messages)) == []


@pytest.mark.parametrize("name", FINDERS)
def test_probabilities_that_are_none_are_refused(name: str) -> None:
    frame = make_embedded_evidence(400).frame.with_columns(
        probability_ape=pl.col("probability_ape") * 2
    )
    with pytest.raises(InputError, match="is no probability"):
        list(
            FINDERS[name].propose(
                Evidence.from_table(frame, id="id", outcome="error", ignore=("label",))
            )
        )
