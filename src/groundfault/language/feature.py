"""The 38 features of Table 2: what each is called and says, what it needs, and the function that measures it.

References
----------
Hua et al., "Discover, Explain, Improve: An Automatic Slice Detection Benchmark for Natural Language Processing", TACL
11, 2023, Tables 2 and 3. https://doi.org/10.1162/tacl_a_00617
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
        Of a feature that a text has or has not, what the text does ("has a negation"); of one of degree, what is
        measured ("parse depth").
    function : callable
        From a document, and the corpus or norms where it needs them, to a number.
    need : Need
    graded : bool
        Whether it is of degree.
    labels : frozenset of str
        Entity labels, one of which the pipeline has to know.
    """

    name: str
    set: str
    says: str
    function: Callable[..., float]
    need: Need
    graded: bool = False
    labels: frozenset[str] = frozenset()

    def measure(self, doc: Any, aid: Any = None) -> float:
        """The feature of one document; NaN where it has no value."""
        return self.function(doc) if aid is None else self.function(doc, aid)


def _graded(name: str, kind: str, says: str, function: Callable[..., float], need: Need) -> Feature:
    return Feature(name, kind, says, function, need, True)


def _counted(name: str, says: str, labels: frozenset[str]) -> Feature:
    return Feature(name, "pragmatic", says, pragmatic.entities(labels), Need.ENTITIES, True, labels)


def _mentioned(name: str, says: str) -> Feature:
    return Feature(name, "pragmatic", says, pragmatic.mentions(name), Need.WORDS)


_ALL = (
    _graded("length", "surface", "words", surface.length, Need.WORDS),
    _graded("word_frequency", "surface", "mean Zipf frequency of its words", surface.word_frequency, Need.CORPUS),
    _graded("foreign_word", "surface", "foreign words", surface.foreign_word, Need.TAGS),
    Feature("negation", "syntax", "has a negation", syntax.negation, Need.WORDS),
    Feature("reflexive", "syntax", "has a reflexive or reciprocal pronoun", syntax.reflexive, Need.WORDS),
    Feature("aspect", "syntax", "has a verb in the perfect", syntax.aspect, Need.PARSE),
    Feature("tense", "syntax", "has a verb in the past tense", syntax.tense, Need.TAGS),
    Feature("voice", "syntax", "has a passive", syntax.voice, Need.PARSE),
    Feature("comparison", "syntax", "has a comparative or superlative", syntax.comparison, Need.TAGS),
    Feature("echo_question", "syntax", "has an echo question", syntax.echo_question, Need.PARSE),
    Feature("multiple_modal", "syntax", "has two modals on end", syntax.multiple_modal, Need.TAGS),
    _graded("multiple_prepositions", "syntax", "share of prepositions", syntax.multiple_prepositions, Need.PARSE),
    Feature("np_subordinate", "syntax", "has a relative clause", syntax.np_subordinate, Need.PARSE),
    Feature("quantifier", "syntax", "has a quantifier or numeral", syntax.quantifier, Need.TAGS),
    _graded(
        "long_distance", "syntax", "longest dependency, as a share of its sentence", syntax.long_distance, Need.PARSE
    ),
    _graded("tree_depth", "syntax", "parse depth", syntax.tree_depth, Need.PARSE),
    Feature("extra_infinitive", "syntax", 'has "to" after a modal', syntax.extra_infinitive, Need.TAGS),
    Feature("how_question", "syntax", 'asks a question that begins with "how"', syntax.how_question, Need.WORDS),
    Feature("why_question", "syntax", 'asks a question that begins with "why"', syntax.why_question, Need.WORDS),
    _mentioned("age", "mentions the age of people"),
    _mentioned("gender", "mentions gender"),
    _mentioned("nationality", "mentions a nationality"),
    _mentioned("physical_appearance", "mentions how people look"),
    _mentioned("race_ethnicity", "mentions race or ethnicity"),
    _mentioned("religion", "mentions religion"),
    _mentioned("socioeconomic_status", "mentions wealth or class"),
    _mentioned("sexual_orientation", "mentions sexual orientation"),
    _graded("toxicity", "pragmatic", "toxicity", pragmatic.toxicity, Need.CLASSIFIER),
    _graded("valence", "pragmatic", "valence", pragmatic.valence, Need.WORDS),
    _graded("arousal", "pragmatic", "mean arousal of its words", pragmatic.norm, Need.NORMS),
    _graded("dominance", "pragmatic", "mean dominance of its words", pragmatic.norm, Need.NORMS),
    _counted("people", "people named", pragmatic.PEOPLE),
    _counted("organisations", "organisations named", pragmatic.ORGANISATIONS),
    _counted("locations", "places named", pragmatic.LOCATIONS),
    _graded("money", "pragmatic", "sums of money", pragmatic.money, Need.WORDS),
    _graded("date", "pragmatic", "dates", pragmatic.date, Need.WORDS),
    _counted("products", "products named", pragmatic.PRODUCTS),
    _graded("ordinal", "pragmatic", "ordinal numbers", pragmatic.ordinal, Need.WORDS),
)

FEATURES: dict[str, Feature] = {feature.name: feature for feature in _ALL}
"""The features by name, in the order of the paper's table."""


def chosen(names: Sequence[str]) -> tuple[Feature, ...]:
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
