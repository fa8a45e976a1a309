"""Syntactic features (Table 3 of the paper), read off ``.tag_``, ``.dep_`` and ``.head``.

Tags are those of the Penn Treebank. Labels are those of Universal Dependencies or ClearNLP; where
they differ, both are accepted. Each function says 1 or 0 of a feature that a text has or has not,
and how much of one of degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault_lab.language.annotated import children, depths, is_word, lower, opening, questions
from groundfault_lab.language.words import has_mention, read_words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

PASSIVE = {"auxpass", "aux:pass"}
RELATIVE = {"relcl", "acl:relcl"}
PREPOSITION = {"prep", "case", "agent", "dative"}
_PREPOSITION_TAGS = {"IN", "TO", "RP"}
_HAVE = {"have", "has", "had", "having", "'ve", "ve", "'s", "'d"}
_COMPARED = {"JJR", "JJS", "RBR", "RBS"}
_WH = {"WP", "WDT", "WP$", "WRB"}
_LINKING = {"well", "soon", "long", "far"}
"""In *as well as* and its like nothing is compared."""
_NO_QUANTIFIER = {"RB", "RBS", "UH"}


def negation(doc: Doc) -> float:
    """Find a word that negates: *not*, *n't*, *never*, *nobody* ..."""
    negations = read_words("negation")
    return float(any(lower(token) in negations for token in doc))


def reflexive(doc: Doc) -> float:
    """Find a reflexive or reciprocal pronoun: *myself*, *each other* ..."""
    return float(has_mention("reflexive", doc.text))


def aspect(doc: Doc) -> float:
    """Find the perfect: auxiliary *have*, and a past participle as the next of its verbs."""
    below = children(doc)
    for have in doc:
        if lower(have) in _HAVE and have.dep_ == "aux":
            # the first verb after it decides: "has been eating" is perfect by "been"
            verbs = [
                t for t in below[have.head.i] if t.i > have.i and t.dep_ in {"aux", "cop", *PASSIVE}
            ]
            if [*verbs, have.head][0].tag_ == "VBN":
                return 1.0
    return 0.0


def tense(doc: Doc) -> float:
    """Find the past tense: a finite verb in the past (VBD)."""
    return float(any(token.tag_ == "VBD" for token in doc))


def voice(doc: Doc) -> float:
    """Find the passive voice: a passive auxiliary."""
    return float(any(token.dep_ in PASSIVE for token in doc))


def comparison(doc: Doc) -> float:
    """Find a comparative or superlative, or *as ... as* around an adjective or adverb."""
    return float(any(_is_compared(token) or _opens_equation(token, doc) for token in doc))


def _is_compared(token: Token) -> bool:
    return token.tag_ in _COMPARED and (token.tag_, lower(token)) != (
        "JJS",
        "most",
    )  # as in "most people"


def _opens_equation(token: Token, doc: Doc) -> bool:
    after = doc[token.i + 1 : token.i + 4]
    return (
        lower(token) == "as"
        and len(after) > 1
        and after[0].tag_ in {"JJ", "RB"}
        and lower(after[0]) not in _LINKING
        and "as" in map(lower, after[1:])
    )


def echo_question(doc: Doc) -> float:
    """Find a question word in place: *You bought what?*"""
    return float(any(map(_is_echo, questions(doc))))


def _is_echo(sentence: list[Token]) -> bool:
    asking = [token for token in sentence if token.tag_ in _WH]
    if not asking:
        return False
    token = asking[0]  # a question word further on, as in "Who bought what?", asks for a list
    if any(t.dep_ == "cop" and t.head.i == token.i and t.i < token.i for t in sentence):
        return True
    verb = token
    while not verb.tag_.startswith("VB") and verb.head.i != verb.i:
        verb = verb.head
    return (
        verb.tag_.startswith("VB")
        and verb.i < token.i
        and token.dep_ not in {"mark", "nsubj", "nsubjpass"}
    )


def multiple_modal(doc: Doc) -> float:
    """Find two modals on end, perhaps with an adverb between: *must will*."""
    followers = (_next_but_adverbs(token, doc) for token in doc if token.tag_ == "MD")
    return float(any(token is not None and token.tag_ == "MD" for token in followers))


def extra_infinitive(doc: Doc) -> float:
    """Find *to* and a verb after a modal, perhaps with an adverb between: *can to kick*.

    *ought to* is correct English and not counted.
    """
    modals = (token for token in doc if token.tag_ == "MD" and lower(token) != "ought")
    return float(any(_is_infinitive(_next_but_adverbs(modal, doc), doc) for modal in modals))


def _is_infinitive(token: Token | None, doc: Doc) -> bool:
    # a tagger may call every "to" TO, so a verb has to follow
    return (
        token is not None
        and lower(token) == "to"
        and token.i + 1 < len(doc)
        and doc[token.i + 1].tag_ in {"VB", "VBP"}
    )


def _next_but_adverbs(token: Token, doc: Doc) -> Token | None:
    return next((after for after in doc[token.i + 1 :] if after.tag_ != "RB"), None)


def multiple_prepositions(doc: Doc) -> float:
    """Measure prepositions as a share of the words."""
    words = sum(map(is_word, doc))
    count = sum(token.tag_ in _PREPOSITION_TAGS and token.dep_ in PREPOSITION for token in doc)
    return count / words if words else 0.0


def np_subordinate(doc: Doc) -> float:
    """Find a relative clause: *the book that we had read*."""
    return float(any(token.dep_ in RELATIVE for token in doc))


def quantifier(doc: Doc) -> float:
    """Find a numeral (CD) or a word such as *any*, *most*; not *each other*, *one another*."""
    return float(any(_is_quantifier(token, doc) for token in doc))


def _is_quantifier(token: Token, doc: Doc) -> bool:
    pair = " ".join(map(lower, doc[token.i : token.i + 2]))
    counts = token.tag_ == "CD" or (
        lower(token) in read_words("quantifier") and token.tag_ not in _NO_QUANTIFIER
    )
    return counts and pair not in {"each other", "one another"}


def long_distance(doc: Doc) -> float:
    """Measure the longest way from a word to its head, as a share of its sentence's words."""
    _, root = depths(doc)
    # distance in words: punctuation would lengthen it
    words = [token for token in doc if is_word(token)]
    position = {token.i: place for place, token in enumerate(words)}
    reach: dict[int, int] = {}
    size: dict[int, int] = {}
    for token in words:
        top = root[token.i]
        size[top] = size.get(top, 0) + 1
        way = abs(position[token.i] - position.get(token.head.i, position[token.i]))
        reach[top] = max(reach.get(top, 0), way)
    return max((reach[top] / size[top] for top in size), default=0.0)


def tree_depth(doc: Doc) -> float:
    """Measure the depth of the dependency tree; the paper's is that of the constituents."""
    depth, _ = depths(doc)
    return float(max((depth[token.i] for token in doc if is_word(token)), default=0))


def how_question(doc: Doc) -> float:
    """Find a question whose first word is *how*."""
    return float(any(opening(sentence) == "how" for sentence in questions(doc)))


def why_question(doc: Doc) -> float:
    """Find a question whose first word is *why*."""
    return float(any(opening(sentence) == "why" for sentence in questions(doc)))
