"""Linguistic features: on annotated sentences, on a trained pipeline where there is one, and on anything else."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundfault.errors import InputError, MissingExtraError, PlanError

spacy = pytest.importorskip("spacy", reason="needs the extra: pip install 'groundfault[language]'")

from groundfault.language import FEATURES, Need, chosen, load_pipeline, read_norms  # noqa: E402
from groundfault.language.words import HERE, entries, mentioned  # noqa: E402

BLANK = load_pipeline("blank")
HELD_UP = {"toxicity", "arousal", "dominance", "word_frequency"}
"""Features of something that the user brings, or of a corpus: tested on their own below."""
STATED = {"length", "tree_depth", "long_distance", "multiple_prepositions"}
"""Features that nearly every text has; compared where the sentence states them."""
LABELS = ["PERSON", "ORG", "GPE", "LOC", "PRODUCT"]


def gold() -> list[tuple[dict[str, float], list[list[str]]]]:
    """Sentences: what features they have, and their words with annotations."""
    lines = [line for line in (Path(__file__).parent / "language_gold.txt").read_text().splitlines() if line]
    kept = [line for line in lines if not line.startswith("#")]
    out = []
    for head, body in zip(kept[::2], kept[1::2], strict=True):
        stated = (word.partition("=") for word in head.split()[1:])
        features = {name: float(Fraction(value or 1)) for name, _, value in stated}
        out.append((features, [_token(word) for word in body.split()]))
    return out


def _token(text: str) -> list[str]:
    parts = text.split("/")
    entity = [parts.pop()] if parts[-1].startswith(("B-", "I-")) else ["O"]
    return [*parts, *entity]


GOLD = gold()


def annotated(tokens: list[list[str]]) -> Any:
    words, tags, deps, heads, entities = zip(*tokens, strict=True)
    at = [int(head) - 1 for head in heads]
    return spacy.tokens.Doc(BLANK.nlp.vocab, words=words, tags=tags, deps=deps, heads=at, ents=entities)


def plain(tokens: list[list[str]]) -> str:
    return str(annotated(tokens).text).replace(" n't", "n't").replace(" '", "'").replace(" .", ".").replace(" ?", "?")


@pytest.mark.parametrize(("features", "tokens"), GOLD, ids=[" ".join(t[0] for t in tokens) for _, tokens in GOLD])
def test_features_of_an_annotated_sentence(features: dict[str, float], tokens: list[list[str]]) -> None:
    doc = annotated(tokens)
    said = {name: f.measure(doc) for name, f in FEATURES.items() if name not in HELD_UP}
    compared = {name: value for name, value in said.items() if name in features or (value and name not in STATED)}
    assert compared == pytest.approx(features)


def test_every_feature_has_sentences_with_and_without_it() -> None:
    for name in set(FEATURES) - HELD_UP:
        values = [features.get(name, 0.0) for features, _ in GOLD if name in features or name not in STATED]
        middle = float(np.median(values)) if name in STATED else 0.0
        assert sum(value > middle for value in values) >= 6, name
        assert sum(value <= middle for value in values) >= 6, name


def test_the_table_is_that_of_the_paper() -> None:
    sizes = {kind: len(chosen([kind])) for kind in ("surface", "syntax", "pragmatic")}
    assert sizes == {"surface": 3, "syntax": 16, "pragmatic": 19}
    assert [f.name for f in chosen(["tense", "negation", "tense"])] == ["negation", "tense"]
    with pytest.raises(PlanError, match="no linguistic feature or set 'mood'"):
        chosen(["mood"])


# --------------------------------------------------------------------------------------------------- a real pipeline


def test_a_trained_pipeline_finds_most_of_it(shared: Path) -> None:
    """Precision and recall on the sentences above, whose raw text alone the pipeline is given."""
    pipeline = load_pipeline(str(shared / "spacy_ud_ewt"))
    there = [f for f in FEATURES.values() if not f.graded and not pipeline.lacking(f)]
    said = pipeline.measure([plain(tokens) for _, tokens in GOLD], there) > 0
    counts: dict[str, tuple[int, int, int]] = {}
    for column, feature in enumerate(there):
        truth = np.array([feature.name in features for features, _ in GOLD])
        hits = int((said[:, column] & truth).sum())
        counts[feature.name] = hits, int(said[:, column].sum()), int(truth.sum())
    for name, (hits, found, true) in counts.items():
        if FEATURES[name].need is Need.WORDS:
            assert hits == found == true, name
        assert hits / found >= 0.8, (name, hits, found)
        assert hits / true >= 0.6, (name, hits, true)


def test_a_text_is_annotated_once(shared: Path) -> None:
    pipeline = load_pipeline(str(shared / "spacy_ud_ewt"))
    text = "A sentence that no other test has thought of."
    told: list[int] = []
    before = len(pipeline.memory)
    first = pipeline.measure([text] * 3, chosen(["syntax"]), progress=told.append)
    assert sum(told) == 1
    assert len(pipeline.memory) == before + 1
    np.testing.assert_array_equal(pipeline.measure([text] * 3, chosen(["syntax"])), first)
    np.testing.assert_array_equal(first[0], first[2])


# ------------------------------------------------------------------------------------------------ what the user brings


def test_what_is_lacking_is_said() -> None:
    said = {name: BLANK.lacking(feature) for name, feature in FEATURES.items()}
    assert said["negation"] == said["length"] == said["age"] == ""
    assert said["voice"] == "not available: needs a pipeline with a tagger and a dependency parser, which blank is not"
    assert "names entities" in said["people"]
    assert "word norms" in said["arousal"]
    values = BLANK.measure(["He was not seen."], chosen(["negation", "voice", "arousal"]))
    assert values[0, 0] == 1
    assert np.isnan(values[0, 1:]).all()


def test_entities_of_the_users_own() -> None:
    pipeline = load_pipeline.__wrapped__("blank")
    pipeline.nlp.add_pipe("entity_ruler").add_patterns([{"label": "PRODUCT", "pattern": "Walkman"}])
    products, people = chosen(["products"])[0], chosen(["people"])[0]
    assert pipeline.lacking(products) == ""
    assert "names entities as PER or PERSON" in pipeline.lacking(people)
    values = pipeline.measure(["My Walkman and your Walkman.", "Nothing."], [products, people])
    np.testing.assert_array_equal(values[:, 0], [2, 0])
    assert np.isnan(values[:, 1]).all()


def test_a_classifier_of_the_users_own() -> None:
    @spacy.Language.component("gf_test_toxicity", assigns=["doc.cats"])
    def score(doc: Any) -> Any:
        doc.cats["toxicity"] = float("idiot" in doc.text)
        return doc

    pipeline = load_pipeline.__wrapped__("blank")
    pipeline.nlp.add_pipe("gf_test_toxicity")
    (toxicity,) = chosen(["toxicity"])
    np.testing.assert_array_equal(pipeline.measure(["You idiot.", "Good day."], [toxicity]), [[1], [0]])


def test_word_norms_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "norms.csv"
    path.write_text("word,arousal,dominance\nRage,6,5\ncalm,2,\nrest,1,4\n")
    norms = read_norms(path)
    assert norms == {"arousal": {"rage": 6, "calm": 2, "rest": 1}, "dominance": {"rage": 5, "rest": 4}}
    values = BLANK.measure(["Rage and calm", "Nothing here"], chosen(["arousal", "dominance"]), norms=norms)
    np.testing.assert_array_equal(values, [[4, 5], [np.nan, np.nan]])
    for bad in ("term,arousal\na,1\n", "word,joy\na,1\n", "word,arousal\na,high\n"):
        path.write_text(bad)
        with pytest.raises(InputError, match="word norms need a column 'word'"):
            read_norms(path)
    with pytest.raises(InputError, match="cannot read the word norms"):
        read_norms(tmp_path / "none.csv")


def test_the_frequency_of_words() -> None:
    (frequency,) = chosen(["word_frequency"])
    values = BLANK.measure(["the the the", "the owl", "...", ""], [frequency])[:, 0]
    assert values[0] == pytest.approx(math.log10(5 / 8 * 1e9))
    assert values[1] == pytest.approx((math.log10(5 / 8 * 1e9) + math.log10(2 / 8 * 1e9)) / 2)
    assert np.isnan(values[2:]).all()
    other = BLANK.measure(["the owl"], [frequency], corpus={"owl": 9})[0, 0]
    assert other == pytest.approx((math.log10(1 / 11 * 1e9) + math.log10(10 / 11 * 1e9)) / 2)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("en_no_such_pipeline", MissingExtraError, "python -m spacy download en_no_such_pipeline"),
        ("../elsewhere", InputError, "no spaCy pipeline"),
        ("os", InputError, "no spaCy pipeline"),
    ],
)
def test_a_pipeline_that_is_none(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_pipeline(name)


def test_a_directory_that_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be loaded"):
        load_pipeline(str(tmp_path))


# ------------------------------------------------------------------------------------------------------- any text


ODD = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="ab?!.'’\n\t {}();=😀é中я", max_size=200),
    st.sampled_from(
        ["", " ", "\n", "?", "how?", "def f(x):\n    return x != 1\n", "👩‍👩‍👧‍👦", "\ud800", "a" * 5000, "not " * 2000]
    ),
)


@settings(max_examples=60)
@given(text=ODD)
def test_any_text_has_sensible_values(text: str) -> None:
    there = [f for f in FEATURES.values() if not BLANK.lacking(f)]
    values = dict(zip((f.name for f in there), BLANK.measure([text], there)[0], strict=True))
    assert not any(math.isnan(value) for name, value in values.items() if name != "word_frequency")
    assert all(value in (0, 1) for name, value in values.items() if not FEATURES[name].graded)
    assert -1 <= values["valence"] <= 1
    assert all(value >= 0 for name, value in values.items() if name not in ("valence", "word_frequency"))


@settings(max_examples=25)
@given(texts=st.lists(ODD.filter(lambda text: len(text) < 300 and text.isprintable()), min_size=1, max_size=3))
def test_any_text_can_be_parsed(shared: Path, texts: list[str]) -> None:
    pipeline = load_pipeline(str(shared / "spacy_ud_ewt"))
    there = [f for f in FEATURES.values() if not pipeline.lacking(f)]
    values = pipeline.measure(texts, there)
    for row in values:
        said = dict(zip((f.name for f in there), row, strict=True))
        assert 0 <= said["long_distance"] <= 1
        assert 0 <= said["multiple_prepositions"] <= 1
        assert 0 <= said["tree_depth"] <= max(map(len, texts))


def test_a_very_long_text_is_read_to_its_limit() -> None:
    text = "word " * 25_000 + "not"
    assert BLANK.measure([text], chosen(["length", "negation"])).tolist() == [[20_000, 0]]


# ------------------------------------------------------------------------------------------------------- word lists


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda p: p.stem)
def test_a_word_list_says_where_it_comes_from(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# Written for groundfault")
    listed = entries(path.stem)
    assert len(listed) == len(set(listed)) > 5


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nationality", "a polish of the turk's shoes", False),
        ("nationality", "POLISH, not english", True),
        ("nationality", "french fries and French fries", False),
        ("nationality", "French fries for the French", True),
        ("race_ethnicity", "black-clad women", False),
        ("race_ethnicity", "Black\nwomen", True),
        ("socioeconomic_status", "middle  class", True),
        ("gender", "the theory of shelves", False),
        ("reflexive", "each other's", True),
    ],
)
def test_whole_words_are_matched(name: str, text: str, expected: bool) -> None:
    assert mentioned(name, text) is expected
