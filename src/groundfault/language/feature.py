"""The 38 features of Table 2: names, descriptions, needs, and the functions that measure them.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language
Processing", TACL 11, 2023, Tables 2 and 3. https://doi.org/10.1162/tacl_a_00617
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from groundfault.errors import PlanError
from groundfault.language import pragmatic, surface, syntax

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
        """Whether it is of degree."""
        return bool(self.over)

    def above(self, cut: str) -> str:
        """Describe a text above ``cut``: *mentions dates*, *several dates*, *over 2 dates*."""
        # "over 0 dates" and "over 1 dates" are no English
        few = {"0": "", "1": "several "}.get(cut, "over {} ")
        return self.over.replace("over {} ", few).format(cut)

    def measure(self, doc: Any, aid: Any = None) -> float:
        """The feature of one document; NaN where it has no value."""
        return self.function(doc) if aid is None else self.function(doc, aid)


def _entity_feature(name: str, what: str, labels: frozenset[str]) -> Feature:
    function = pragmatic.entities(labels)
    return Feature(
        name,
        "pragmatic",
        f"number of {what} named",
        function,
        Need.ENTITIES,
        f"names over {{}} {what}",
        labels,
    )


def _count_feature(name: str, what: str, function: Callable[..., float]) -> Feature:
    return Feature(
        name, "pragmatic", f"number of {what}", function, Need.WORDS, f"mentions over {{}} {what}"
    )


def _mention_feature(name: str, says: str) -> Feature:
    return Feature(name, "pragmatic", says, pragmatic.mentions(name), Need.WORDS)


_ALL = (
    Feature(
        "length",
        "surface",
        "length in word tokens",
        surface.length,
        Need.WORDS,
        "has over {} word tokens",
    ),
    Feature(
        "word_frequency",
        "surface",
        "mean Zipf frequency of the words",
        surface.word_frequency,
        Need.CORPUS,
        "has words of a mean Zipf frequency above {}",
    ),
    Feature(
        "foreign_word",
        "surface",
        "number of foreign words",
        surface.foreign_word,
        Need.TAGS,
        "has over {} foreign words",
    ),
    Feature("negation", "syntax", "has a negation", syntax.negation, Need.WORDS),
    Feature(
        "reflexive", "syntax", "has a reflexive or reciprocal pronoun", syntax.reflexive, Need.WORDS
    ),
    Feature("aspect", "syntax", "has a verb in the perfect", syntax.aspect, Need.PARSE),
    Feature("tense", "syntax", "has a verb in the past tense", syntax.tense, Need.TAGS),
    Feature("voice", "syntax", "has a verb in the passive", syntax.voice, Need.PARSE),
    Feature(
        "comparison",
        "syntax",
        "has a comparative, superlative or equative",
        syntax.comparison,
        Need.TAGS,
    ),
    Feature("echo_question", "syntax", "has an echo question", syntax.echo_question, Need.PARSE),
    Feature("multiple_modal", "syntax", "has a double modal", syntax.multiple_modal, Need.TAGS),
    Feature(
        "multiple_prepositions",
        "syntax",
        "share of prepositions among the words",
        syntax.multiple_prepositions,
        Need.PARSE,
        "has a share of prepositions above {}",
    ),
    Feature("np_subordinate", "syntax", "has a relative clause", syntax.np_subordinate, Need.PARSE),
    Feature("quantifier", "syntax", "has a quantifier or numeral", syntax.quantifier, Need.TAGS),
    Feature(
        "long_distance",
        "syntax",
        "longest dependency, as a share of its sentence",
        syntax.long_distance,
        Need.PARSE,
        "has a dependency longer than {} of its sentence",
    ),
    Feature(
        "tree_depth",
        "syntax",
        "depth of the dependency tree",
        syntax.tree_depth,
        Need.PARSE,
        "has a dependency tree deeper than {}",
    ),
    Feature(
        "extra_infinitive", "syntax", 'has "to" after a modal', syntax.extra_infinitive, Need.TAGS
    ),
    Feature("how_question", "syntax", 'asks "how ...?"', syntax.how_question, Need.WORDS),
    Feature("why_question", "syntax", 'asks "why ...?"', syntax.why_question, Need.WORDS),
    _mention_feature("age", "mentions the age of people"),
    _mention_feature("gender", "has gendered words"),
    _mention_feature("nationality", "mentions a nationality"),
    _mention_feature("physical_appearance", "mentions how people look"),
    _mention_feature("race_ethnicity", "mentions race or ethnicity"),
    _mention_feature("religion", "mentions religion"),
    _mention_feature("socioeconomic_status", "mentions wealth or class"),
    _mention_feature("sexual_orientation", "mentions sexual orientation"),
    Feature(
        "toxicity",
        "pragmatic",
        "toxicity",
        pragmatic.toxicity,
        Need.CLASSIFIER,
        "has a toxicity above {}",
    ),
    Feature(
        "valence",
        "pragmatic",
        "valence of the words, from -1 to 1",
        pragmatic.valence,
        Need.WORDS,
        "has words of a valence above {}",
    ),
    Feature(
        "arousal",
        "pragmatic",
        "mean arousal of the words",
        pragmatic.norm,
        Need.NORMS,
        "has words of a mean arousal above {}",
    ),
    Feature(
        "dominance",
        "pragmatic",
        "mean dominance of the words",
        pragmatic.norm,
        Need.NORMS,
        "has words of a mean dominance above {}",
    ),
    _entity_feature("people", "people", pragmatic.PEOPLE),
    _entity_feature("organisations", "organisations", pragmatic.ORGANISATIONS),
    _entity_feature("locations", "places", pragmatic.LOCATIONS),
    _count_feature("money", "sums of money", pragmatic.money),
    _count_feature("date", "dates", pragmatic.date),
    _entity_feature("products", "products", pragmatic.PRODUCTS),
    _count_feature("ordinal", "ordinal numbers", pragmatic.ordinal),
)

FEATURES: dict[str, Feature] = {feature.name: feature for feature in _ALL}
"""The features by name, in the order of the paper's table."""


def select_features(names: Sequence[str]) -> tuple[Feature, ...]:
    """Features by their names, or those of whole sets, each once and in the order of the table.

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
    return tuple(feature for feature in _ALL if feature.name in names or feature.set in names)
