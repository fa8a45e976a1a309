"""Annotations of HELM: which answers a grading model was asked about, and gave no verdict on.

HELM grades some benchmarks by language models. A grader that could not be reached, or whose reply
could not be read, leaves an empty verdict, or none, in the annotations of the request; the metric
then averages the other graders, and a jury without any verdict scores 0.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

from groundfault.readers.values import mapping

K = TypeVar("K", bound=Hashable)

# <grader>_score and <grader>_equivalence_judgement hold verdicts; other entries, such as a
# justification, may be empty
_VERDICT = re.compile(r".+_(score|judgement|judgment|label|verdict)")
# a metric that compares texts needs no grader
_BY_RULE = re.compile(
    r"(quasi_|prefix_|quasi_prefix_|final_number_)*exact_match(_.*)?|(.*_)?f1(_score)?"
    r"|rouge(_.*)?|bleu(_.*)?|edit_.*|chrf.*"
)

GRADED_METRICS = ("omni_math_accuracy", "wildbench_score_rescaled")
"""Main metrics of benchmarks that HELM has graded by language models."""


def needs_grader(metric: str) -> bool:
    """Whether a metric may rest on the verdict of a grading model, where a run has annotations."""
    return _BY_RULE.fullmatch(metric) is None


def find_ungraded(annotations: Mapping[K, Any]) -> set[K]:
    """The rows on which some grader was asked and gave no verdict.

    Parameters
    ----------
    annotations : mapping
        For each row the annotations by name of the annotator, as HELM writes them.
    """
    graders: dict[str, set[str]] = {}
    for row in annotations.values():
        for name, notes in mapping(row).items():
            # a jury has an entry of its own for each of its members
            members = {key for key, value in mapping(notes).items() if isinstance(value, dict)}
            graders.setdefault(name, set()).update(members)
    return {
        key
        for key, row in annotations.items()
        if any(
            _lacks_verdict(mapping(notes), graders[name]) for name, notes in mapping(row).items()
        )
    }


def _lacks_verdict(notes: Mapping[str, Any], graders: set[str]) -> bool:
    # HELM asks no grader about an empty answer, and says so by an entry of this name
    if any(key.startswith("empty_output") for key in notes):
        return False
    if any(value is None and _VERDICT.fullmatch(key) for key, value in notes.items()):
        return True
    return bool(graders - notes.keys()) or set(notes) == {"prompt_text"}
