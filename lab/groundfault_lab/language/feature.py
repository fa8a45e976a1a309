"""The 38 features of Table 2: names, descriptions, needs, and the functions that measure them.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language
Processing", TACL 11, 2023, Tables 2 and 3. https://doi.org/10.1162/tacl_a_00617
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from groundfault.base.reading import read_beside
from groundfault.errors import PlanError
from groundfault_lab.language import pragmatic, surface, syntax

SETS = ("surface", "syntax", "pragmatic")


class Need(StrEnum):
    """What a feature is computed from, besides the words of the text."""

    WORDS = "nothing more"
    CORPUS = "the texts it is compared with"
    TAGS = "a pipeline with a tagger"
    PARSE = "a pipeline with a tagger and a dependency parser"
    ENTITIES = "a pipeline that names entities"
    CLASSIFIER = "a pipeline with a text classifier that scores toxicity"
    NORMS = "a table of word norms"


@dataclass(frozen=True)
class Feature:
    """A property of texts.

    Attributes
    ----------
    name : str
    set : {"surface", "syntax", "pragmatic"}
    says : str
        Of a feature that a text has or has not, what the text does ("has a negation"); of one of
        degree, what is measured ("number of dates").
    function : callable
        From a document, and the corpus or norms where it needs them, to a number.
    need : Need
    over : str
        Of a feature of degree, what a text does that has more than ``{}`` of it ("mentions over {}
        dates").
    labels : frozenset of str
        Entity labels, one of which the pipeline has to know.
    """

    name: str
    set: str
    says: str
    function: Callable[..., float]
    need: Need
    over: str = ""
    labels: frozenset[str] = frozenset()

    @property
    def graded(self) -> bool:
        """Return whether it is of degree."""
        return bool(self.over)

    def above(self, cut: str) -> str:
        """Describe a text above ``cut``: *mentions dates*, *several dates*, *over 2 dates*."""
        # "over 0 dates" and "over 1 dates" are no English
        few = {"0": "", "1": "several "}.get(cut, "over {} ")
        return self.over.replace("over {} ", few).format(cut)

    def measure(self, doc: Any, aid: Any = None) -> float:
        """Return the feature of one document; NaN where it has no value."""
        return self.function(doc) if aid is None else self.function(doc, aid)


def _read_feature(name: str, row: Mapping[str, Any]) -> Feature:
    """Return the feature that a table of ``features.toml`` describes."""
    labels = frozenset[str](row.get("labels", ()))
    if labels:
        function = pragmatic.entities(labels)
    elif "mentions" in row:
        function = pragmatic.mentions(name)
    else:
        module = {"surface": surface, "syntax": syntax, "pragmatic": pragmatic}[row["set"]]
        function = getattr(module, row.get("function", name))
    parts = (name, row["set"], row["says"], function, Need[row["need"]])
    return Feature(*parts, row.get("over", ""), labels)


_TABLE = tomllib.loads(read_beside(__file__, "features.toml"))
FEATURES: dict[str, Feature] = {name: _read_feature(name, row) for name, row in _TABLE.items()}
"""The features by name, in the order of the paper's table."""


def select_features(names: Sequence[str]) -> tuple[Feature, ...]:
    """Return features by their names, or of whole sets, each once and in the table's order.

    Raises
    ------
    PlanError
        If a name is neither.
    """
    for name in names:
        if name not in FEATURES and name not in SETS:
            raise PlanError(
                f"there is no linguistic feature or set {name!r}; the sets are {', '.join(SETS)}, "
                f"the features {', '.join(FEATURES)}"
            )
    return tuple(
        feature for feature in FEATURES.values() if feature.name in names or feature.set in names
    )
