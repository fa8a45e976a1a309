"""Linguistic features: on annotated sentences, on a trained pipeline where there is one, and on
anything else.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault.errors import InputError, MissingExtraError, PlanError

spacy = pytest.importorskip(
    "spacy", reason="needs the extra: pip install 'groundfault-lab[language]'"
)

import language_gold as gold  # noqa: E402

from groundfault_lab.language import FEATURES, Need, load_pipeline, read_norms, select_features  # noqa: E402
from groundfault_lab.language.pipeline import Pipeline  # noqa: E402
from groundfault_lab.language.words import HERE, has_mention, read_entries  # noqa: E402

BLANK = load_pipeline("blank")
VOCABULARY = spacy.blank("en").vocab
HELD_UP = {"toxicity", "arousal", "dominance", "word_frequency"}
"""Features of something that the user brings, or of a corpus: tested on their own below."""
GOLD = gold.sentences()
TURNED = [sentence.clearnlp() for sentence in GOLD]
PAGE = Path(__file__).parents[2] / "lab" / "docs" / "feature-table.md"


def compared(sentence: gold.Sentence) -> dict[str, float]:
    """What the features say of a sentence, but those that are 0 and those that it does not
    state.
    """
    doc = sentence.doc(VOCABULARY)
    values = {name: f.measure(doc) for name, f in FEATURES.items() if name not in HELD_UP}
    return {
        n: v for n, v in values.items() if n in sentence.features or (v and n not in gold.STATED)
    }


@pytest.mark.parametrize("sentence", GOLD, ids=[s.name for s in GOLD])
def test_features_of_an_annotated_sentence(sentence: gold.Sentence) -> None:
    assert compared(sentence) == pytest.approx(sentence.features)


def test_features_of_the_same_sentences_as_clearnlp_labels_them() -> None:
    wrong = [
        (s.name, compared(s), s.features)
        for s in TURNED
        if compared(s) != pytest.approx(s.features)
    ]
    assert not wrong
    labels = {token.dep for sentence in TURNED for token in sentence.tokens}
    assert {
        "nsubjpass",
        "auxpass",
        "prep",
        "pobj",
        "agent",
        "relcl",
        "dobj",
        "attr",
        "acomp",
    } <= labels
    assert not labels & {"aux:pass", "acl:relcl", "obj", "cop"}


@pytest.mark.parametrize("sentences", [GOLD, TURNED], ids=["universal dependencies", "clearnlp"])
def test_every_feature_has_sentences_with_and_without_it(sentences: list[gold.Sentence]) -> None:
    stated = {name for sentence in sentences for name in sentence.features}
    for name in set(FEATURES) - HELD_UP - (gold.STATED - stated):
        values = [
            s.features.get(name, 0.0)
            for s in sentences
            if name in s.features or name not in gold.STATED
        ]
        middle = float(np.median(values)) if name in gold.STATED else 0.0
        assert sum(value > middle for value in values) >= 6, name
        assert sum(value <= middle for value in values) >= 6, name


def test_the_table_is_that_of_the_paper() -> None:
    sizes = {kind: len(select_features([kind])) for kind in ("surface", "syntax", "pragmatic")}
    assert sizes == {"surface": 3, "syntax": 16, "pragmatic": 19}
    assert [f.name for f in select_features(["tense", "negation", "tense"])] == [
        "negation",
        "tense",
    ]
    with pytest.raises(PlanError, match="no linguistic feature or set 'mood'"):
        select_features(["mood"])


# ---------------------------------------------------------------------------------- a real pipeline


def test_a_trained_pipeline_finds_most_of_it(shared: Path) -> None:
    """Precision and recall on the sentences above, whose raw text alone the pipeline is given."""
    for name, (*scores, _) in gold.quality(load_pipeline(str(shared / "spacy_ud_ewt"))).items():
        if FEATURES[name].need is Need.WORDS:
            assert scores == [1.0] * len(scores), name
        assert scores[0] >= 0.8, (name, scores)
        assert scores[-1] >= (0.3 if name == "foreign_word" else 0.6), (name, scores)


def test_the_reference_says_what_is_measured(shared: Path) -> None:
    table = list(gold.table(load_pipeline(str(shared / "spacy_ud_ewt"))))
    page = PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("|")] == table
    assert f"the {len(GOLD)} short sentences" in page


def test_a_text_is_annotated_once(shared: Path) -> None:
    pipeline = load_pipeline(str(shared / "spacy_ud_ewt"))
    text = "A sentence that no other test has thought of."
    counts: list[int] = []
    before = len(pipeline.memory)
    first = pipeline.measure([text] * 3, select_features(["syntax"]), progress=counts.append)
    assert sum(counts) == 1
    assert len(pipeline.memory) == before + 1
    np.testing.assert_array_equal(pipeline.measure([text] * 3, select_features(["syntax"])), first)
    np.testing.assert_array_equal(first[0], first[2])


def test_two_processes_give_what_one_gives(shared: Path) -> None:
    texts = [s.text for s in GOLD[:40]] + ["", "👩‍👩‍👧‍👦 ¿Qué?", "def f(x): return not x"]
    there = select_features(["surface", "syntax", "pragmatic"])
    alone, two = (load_pipeline.__wrapped__(str(shared / "spacy_ud_ewt")) for _ in range(2))
    counts: list[int] = []
    np.testing.assert_array_equal(
        alone.measure(texts, there), two.measure(texts, there, jobs=2, progress=counts.append)
    )
    assert sum(counts) == len(texts)
    assert alone.memory == two.memory


# ----------------------------------------------------------------------------- what the user brings


def test_what_is_lacking_is_said() -> None:
    reasons = {name: BLANK.lacking(feature) for name, feature in FEATURES.items()}
    assert reasons["negation"] == reasons["length"] == reasons["age"] == ""
    assert (
        reasons["voice"]
        == "not available: needs a pipeline with a tagger and a dependency parser, "
        "which blank is not"
    )
    assert "names entities" in reasons["people"]
    assert "word norms" in reasons["arousal"]
    values = BLANK.measure(["He was not seen."], select_features(["negation", "voice", "arousal"]))
    assert values[0, 0] == 1
    assert np.isnan(values[0, 1:]).all()


def test_entities_of_the_users_own() -> None:
    pipeline = Pipeline("own", spacy.blank("en"))
    pipeline.nlp.add_pipe("entity_ruler").add_patterns([{"label": "PRODUCT", "pattern": "Walkman"}])
    products, people = select_features(["products"])[0], select_features(["people"])[0]
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

    pipeline = Pipeline("own", spacy.blank("en"))
    pipeline.nlp.add_pipe("gf_test_toxicity")
    (toxicity,) = select_features(["toxicity"])
    np.testing.assert_array_equal(
        pipeline.measure(["You idiot.", "Good day."], [toxicity]), [[1], [0]]
    )


def test_word_norms_of_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "norms.csv"
    path.write_text("word,arousal,dominance\nRage,6,5\ncalm,2,\nrest,1,4\n")
    norms = read_norms(path)
    assert norms == {
        "arousal": {"rage": 6, "calm": 2, "rest": 1},
        "dominance": {"rage": 5, "rest": 4},
    }
    values = BLANK.measure(
        ["Rage and calm", "Nothing here"], select_features(["arousal", "dominance"]), norms=norms
    )
    np.testing.assert_array_equal(values, [[4, 5], [np.nan, np.nan]])
    for bad in ("term,arousal\na,1\n", "word,joy\na,1\n", "word,arousal\na,high\n"):
        path.write_text(bad)
        with pytest.raises(InputError, match="word norms need a column 'word'"):
            read_norms(path)
    with pytest.raises(InputError, match="cannot read the word norms"):
        read_norms(tmp_path / "none.csv")


def test_what_is_brought_tells_six_sentences_from_six() -> None:
    names = ("word_frequency", "toxicity", "arousal", "dominance")
    low = [
        f"The {noun} rests calmly on the meadow."
        for noun in ("sheep", "cow", "lamb", "goat", "mare", "mule")
    ]
    high = [
        f"You {noun}, fierce rage rules!"
        for noun in ("fool", "brute", "clown", "knave", "lout", "boor")
    ]
    mild, wild = {"rests": 1.0, "calmly": 1.0}, {"fierce": 6.0, "rage": 7.0, "rules": 6.5}
    docs = [spacy.blank("en").make_doc(text) for text in low + high]
    for doc in docs:
        doc.cats["toxicity"] = float(doc[0].text == "You")
    aids: list[Any] = [{"you": 5.0, "": 1.0}, None, mild | wild, mild | wild]
    for name, aid in zip(names, aids, strict=True):
        values = [FEATURES[name].measure(doc, aid) for doc in docs]
        assert min(values[6:]) > max(values[:6]), name


def test_the_frequency_of_words() -> None:
    (frequency,) = select_features(["word_frequency"])
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


# ----------------------------------------------------------------------------------------- any text


MIXED = [
    "She isn't here. Elle n'est pas là.",
    "Das ist not gut.",
    "我不知道 why.",
    "Почему? Because.",
    "Soy 40-year-old.",
]
ODD = st.one_of(
    st.lists(st.sampled_from(MIXED), min_size=1, max_size=4).map(" ".join),
    st.text(max_size=200),
    st.text(alphabet="ab?!.'’\n\t {}();=😀é中я", max_size=200),
    st.sampled_from(
        [
            *("", " ", "\n", "?", "how?", "👩‍👩‍👧‍👦", "\ud800", "a" * 5000, "not " * 2000),
            *(
                "def f(x):\n    return x != 1\n",
                "<p onclick='a()'>no</p>",
                '{"a": [null, 1]}',
                "SELECT * FROM t WHERE a",
            ),
        ]
    ),
)


@settings(max_examples=count_examples(60))
@given(text=ODD)
def test_any_text_has_sensible_values(text: str) -> None:
    there = [f for f in FEATURES.values() if not BLANK.lacking(f)]
    values = dict(zip((f.name for f in there), BLANK.measure([text], there)[0], strict=True))
    assert not any(math.isnan(value) for name, value in values.items() if name != "word_frequency")
    assert all(value in (0, 1) for name, value in values.items() if not FEATURES[name].graded)
    assert -1 <= values["valence"] <= 1
    assert all(
        value >= 0 for name, value in values.items() if name not in ("valence", "word_frequency")
    )


@settings(max_examples=25)
@given(texts=st.lists(ODD.filter(lambda text: len(text) < 300), min_size=1, max_size=3))
def test_any_text_can_be_parsed(shared: Path, texts: list[str]) -> None:
    pipeline = load_pipeline(str(shared / "spacy_ud_ewt"))
    there = [f for f in FEATURES.values() if not pipeline.lacking(f)]
    values = pipeline.measure(texts, there)
    for row in values:
        scores = dict(zip((f.name for f in there), row, strict=True))
        assert all(
            math.isfinite(value) for name, value in scores.items() if name != "word_frequency"
        )
        assert all(value in (0, 1) for name, value in scores.items() if not FEATURES[name].graded)
        assert 0 <= scores["long_distance"] <= 1
        assert 0 <= scores["multiple_prepositions"] <= 1
        assert 0 <= scores["tree_depth"] <= max(map(len, texts))


def test_a_very_long_text_is_read_to_its_limit_and_that_is_said() -> None:
    text = "word " * 25_000 + "not"
    with pytest.warns(UserWarning, match="1 text is read to the first 100,000 characters only"):
        assert BLANK.measure([text], select_features(["length", "negation"])).tolist() == [
            [20_000, 0]
        ]


@pytest.mark.parametrize(
    "unit",
    [
        "1,",
        "one-",
        *(
            pytest.param(u, marks=pytest.mark.slow)
            for u in ("a", "?", "$1 ", "\n", "the first of ")
        ),
    ],
)
def test_a_megabyte_is_read_in_seconds(unit: str) -> None:
    """No pattern takes more than time in proportion, whatever it is given again and again."""
    text = (unit * 1_000_000)[:1_000_000]
    there = [f for f in FEATURES.values() if not BLANK.lacking(f)]
    start = time.process_time()
    with pytest.warns(UserWarning, match="read to the first"):
        values = BLANK.measure([text], there)
    assert time.process_time() - start < 5
    assert all(
        math.isfinite(v)
        for v, f in zip(values[0], there, strict=True)
        if f.name != "word_frequency"
    )


# --------------------------------------------------------------------------------------- word lists


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda p: p.stem)
def test_a_word_list_says_where_it_comes_from(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# Written for groundfault")
    list_entries = read_entries(path.stem)
    assert len(list_entries) == len(set(list_entries)) > 5


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
    assert has_mention(name, text) is expected
