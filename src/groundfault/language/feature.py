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


def _declare(
    function: Callable[..., float], need: Need, says: str, over: str = "", *, name: str = ""
) -> Feature:
    """Declare a feature of the set, and by the name, that its function has."""
    set_name = function.__module__.rpartition(".")[2]
    return Feature(name or function.__name__, set_name, says, function, need, over)


def _declare_count(function: Callable[..., float], what: str) -> Feature:
    return _declare(function, Need.WORDS, f"number of {what}", f"mentions over {{}} {what}")


def _declare_entity(name: str, what: str, labels: frozenset[str]) -> Feature:
    function, says = pragmatic.entities(labels), f"number of {what} named"
    over = f"names over {{}} {what}"
    return Feature(name, "pragmatic", says, function, Need.ENTITIES, over, labels)


def _declare_mean(function: Callable[..., float], need: Need, what: str, name: str = "") -> Feature:
    over = f"has words of a mean {what} above {{}}"
    return _declare(function, need, f"mean {what} of the words", over, name=name)


def _declare_mention(name: str, says: str) -> Feature:
    return _declare(pragmatic.mentions(name), Need.WORDS, says, name=name)


_ALL = (
    _declare(surface.length, Need.WORDS, "length in word tokens", "has over {} word tokens"),
    _declare_mean(surface.word_frequency, Need.CORPUS, "Zipf frequency"),
    _declare(
        surface.foreign_word, Need.TAGS, "number of foreign words", "has over {} foreign words"
    ),
    _declare(syntax.negation, Need.WORDS, "has a negation"),
    _declare(syntax.reflexive, Need.WORDS, "has a reflexive or reciprocal pronoun"),
    _declare(syntax.aspect, Need.PARSE, "has a verb in the perfect"),
    _declare(syntax.tense, Need.TAGS, "has a verb in the past tense"),
    _declare(syntax.voice, Need.PARSE, "has a verb in the passive"),
    _declare(syntax.comparison, Need.TAGS, "has a comparative, superlative or equative"),
    _declare(syntax.echo_question, Need.PARSE, "has an echo question"),
    _declare(syntax.multiple_modal, Need.TAGS, "has a double modal"),
    _declare(
        syntax.multiple_prepositions,
        Need.PARSE,
        "share of prepositions among the words",
        "has a share of prepositions above {}",
    ),
    _declare(syntax.np_subordinate, Need.PARSE, "has a relative clause"),
    _declare(syntax.quantifier, Need.TAGS, "has a quantifier or numeral"),
    _declare(
        syntax.long_distance,
        Need.PARSE,
        "longest dependency, as a share of its sentence",
        "has a dependency longer than {} of its sentence",
    ),
    _declare(
        syntax.tree_depth,
        Need.PARSE,
        "depth of the dependency tree",
        "has a dependency tree deeper than {}",
    ),
    _declare(syntax.extra_infinitive, Need.TAGS, 'has "to" after a modal'),
    _declare(syntax.how_question, Need.WORDS, 'asks "how ...?"'),
    _declare(syntax.why_question, Need.WORDS, 'asks "why ...?"'),
    _declare_mention("age", "mentions the age of people"),
    _declare_mention("gender", "has gendered words"),
    _declare_mention("nationality", "mentions a nationality"),
    _declare_mention("physical_appearance", "mentions how people look"),
    _declare_mention("race_ethnicity", "mentions race or ethnicity"),
    _declare_mention("religion", "mentions religion"),
    _declare_mention("socioeconomic_status", "mentions wealth or class"),
    _declare_mention("sexual_orientation", "mentions sexual orientation"),
    _declare(pragmatic.toxicity, Need.CLASSIFIER, "toxicity", "has a toxicity above {}"),
    _declare(
        pragmatic.valence,
        Need.WORDS,
        "valence of the words, from -1 to 1",
        "has words of a valence above {}",
    ),
    _declare_mean(pragmatic.norm, Need.NORMS, "arousal", "arousal"),
    _declare_mean(pragmatic.norm, Need.NORMS, "dominance", "dominance"),
    _declare_entity("people", "people", pragmatic.PEOPLE),
    _declare_entity("organisations", "organisations", pragmatic.ORGANISATIONS),
    _declare_entity("locations", "places", pragmatic.LOCATIONS),
    _declare_count(pragmatic.money, "sums of money"),
    _declare_count(pragmatic.date, "dates"),
    _declare_entity("products", "products", pragmatic.PRODUCTS),
    _declare_count(pragmatic.ordinal, "ordinal numbers"),
)

FEATURES: dict[str, Feature] = {feature.name: feature for feature in _ALL}
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
    return tuple(feature for feature in _ALL if feature.name in names or feature.set in names)
