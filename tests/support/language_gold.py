"""The sentences of ``language_gold.txt`` with their labels, and how well a pipeline does.

``python tests/support/language_gold.py PIPELINE`` prints the table of
``lab/docs/feature-table.md`` for a pipeline of yours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from groundfault_lab.language import FEATURES, Feature, Need, Pipeline, load_pipeline
from groundfault_lab.language.words import HERE

STATED = {"length", "tree_depth", "long_distance", "multiple_prepositions"}
"""Features that nearly every text has; compared where the sentence states them."""
YOURS = {Need.CLASSIFIER, Need.NORMS, Need.ENTITIES}
_NEEDS = {
    Need.WORDS: "nothing",
    Need.CORPUS: "the other texts",
    Need.TAGS: "tagger",
    Need.PARSE: "parser",
    Need.ENTITIES: "entities",
    Need.CLASSIFIER: "classifier",
    Need.NORMS: "norms",
}
_LISTS = {"valence": ["pleasant", "unpleasant"]}
_CLEARNLP = {
    "aux:pass": "auxpass",
    "nsubj:pass": "nsubjpass",
    "acl:relcl": "relcl",
    "advcl:relcl": "advcl",
    "obj": "dobj",
    "iobj": "dative",
    "nmod:poss": "poss",
    "obl:unmarked": "npadvmod",
    "nmod:unmarked": "npadvmod",
    "flat": "compound",
    "fixed": "mwe",
    "discourse": "intj",
}
_OF_THE_CLAUSE = {
    "nsubj",
    "nsubj:pass",
    "expl",
    "aux",
    "mark",
    "punct",
    "advcl",
    "obl",
    "obl:unmarked",
    "cc",
    "conj",
}


@dataclass(frozen=True)
class Token:
    """A word with its annotation; the head is a position, the root's its own."""

    word: str
    tag: str
    dep: str
    head: int
    entity: str = "O"

    @classmethod
    def of(cls, text: str) -> Token:
        parts = text.split("/")
        entity = parts.pop() if parts[-1].startswith(("B-", "I-")) else "O"
        word, tag, dep, head = parts
        return cls(word, tag, dep, int(head) - 1, entity)


@dataclass(frozen=True)
class Sentence:
    """The features of a sentence that are not 0, or stated, and its annotated words."""

    features: dict[str, float]
    tokens: tuple[Token, ...]

    @property
    def name(self) -> str:
        return " ".join(token.word for token in self.tokens)

    def doc(self, vocab: Any) -> Any:
        import spacy

        columns = {
            "words": [t.word for t in self.tokens],
            "tags": [t.tag for t in self.tokens],
            "deps": [t.dep for t in self.tokens],
            "heads": [t.head for t in self.tokens],
            "ents": [t.entity for t in self.tokens],
        }
        return spacy.tokens.Doc(vocab, **columns)

    @property
    def text(self) -> str:
        """As it would be written."""
        plain = self.name.replace(" n't", "n't").replace(" '", "'")
        for mark in ".?,":
            plain = plain.replace(f" {mark}", mark)
        return plain.replace("$ ", "$")

    def clearnlp(self) -> Sentence:
        """The same sentence as ClearNLP would label it: copulas and prepositions are heads there.

        Depth and distance are others then, and left out.
        """
        tokens = list(self.tokens)
        for i, token in enumerate(self.tokens):
            if token.dep == "cop":
                _hand_over(tokens, token.head, i)
        for i, token in enumerate(self.tokens):
            noun = tokens[token.head]
            if token.dep == "case" and token.tag != "POS" and noun.dep != "pobj":
                above = noun.head if noun.head != token.head else i
                tokens[i] = replace(
                    token, dep="agent" if noun.dep == "obl:agent" else "prep", head=above
                )
                tokens[token.head] = replace(noun, dep="pobj", head=i)
        renamed = tuple(replace(t, dep=_CLEARNLP.get(t.dep, t.dep)) for t in tokens)
        rows = {n: v for n, v in self.features.items() if n not in ("tree_depth", "long_distance")}
        return Sentence(rows, renamed)


def _hand_over(tokens: list[Token], x: int, copula: int) -> None:
    """Make a copula the head of its clause."""
    above = tokens[x].head if tokens[x].head != x else copula
    tokens[copula] = replace(tokens[copula], dep=tokens[x].dep, head=above)
    tokens[x] = replace(
        tokens[x], dep="acomp" if tokens[x].tag.startswith("JJ") else "attr", head=copula
    )
    for i, token in enumerate(tokens):
        if (
            token.head == x
            and i != copula
            and (token.dep in _OF_THE_CLAUSE or token.word in ("not", "n't"))
        ):
            tokens[i] = replace(token, head=copula)


def sentences() -> list[Sentence]:
    """All of them, as they are in the file."""
    lines = (Path(__file__).parent / "language_gold.txt").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line and not line.startswith("#")]
    out = []
    for head, body in zip(entries[::2], entries[1::2], strict=True):
        stated = (word.partition("=") for word in head.split()[1:])
        features = {name: float(Fraction(value or 1)) for name, _, value in stated}
        out.append(Sentence(features, tuple(map(Token.of, body.split()))))
    return out


def quality(pipeline: Pipeline) -> dict[str, tuple[float, ...]]:
    """Precision, recall and n of each feature from raw text, or correlation and n."""
    gold = sentences()
    there = [f for f in FEATURES.values() if f.need is not Need.CORPUS and not pipeline.lacking(f)]
    values = pipeline.measure([s.text for s in gold], there)
    out: dict[str, tuple[float, ...]] = {}
    for column, feature in zip(values.T, there, strict=True):
        truth = np.array([s.features.get(feature.name, 0.0) for s in gold])
        if feature.name in STATED:
            stated = np.array([feature.name in s.features for s in gold])
            out[feature.name] = (
                float(np.corrcoef(column[stated], truth[stated])[0, 1]),
                int(stated.sum()),
            )
            continue
        hits = int(((column != 0) & (truth != 0)).sum())
        n_positive, true = int((column != 0).sum()), int((truth != 0).sum())
        out[feature.name] = hits / n_positive if n_positive else float("nan"), hits / true, true
    return out


def table(pipeline: Pipeline) -> Iterator[str]:
    """What the reference says of every feature, in Markdown."""
    yield "| feature | set | what it says | needs | word list | precision / recall (n) |"
    yield "|---|---|---|---|---|---|"
    qualities = quality(pipeline)
    for f in FEATURES.values():
        says = f"*{f.says}*" if f.graded else f.says
        lists = _LISTS.get(f.name, [f.name] if (HERE / f"{f.name}.txt").exists() else [])
        files = ", ".join(f"`{name}.txt`" for name in lists)
        quality_text = _format_quality(f, qualities.get(f.name, ()))
        yield (f"| `{f.name}` | {f.set} | {says} | {_NEEDS[f.need]} | {files} | {quality_text} |")


def _format_quality(feature: Feature, numbers: tuple[float, ...]) -> str:
    if len(numbers) == 3:
        return "{:.2f} / {:.2f} ({})".format(*numbers)
    if numbers:
        return "r = {:.2f} ({})".format(*numbers)
    return "yours" if feature.need in YOURS else ""


if __name__ == "__main__":
    print("\n".join(table(load_pipeline(sys.argv[1]))))
