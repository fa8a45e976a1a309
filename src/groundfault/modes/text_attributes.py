"""Conditions on texts alone: the form and the content of a prompt.

They do not use outcomes, so rules made from them may be tested on all units.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.core.columns import UNSPACED
from groundfault.core.rules import quote
from groundfault.modes.lexicon import detect_languages, list_function_words
from groundfault.modes.template_rules import draft_templates
from groundfault.modes.templates import find_templates
from groundfault.modes.text_conditions import (
    MIN_TEXTS,
    TEXT,
    Draft,
    Term,
    find_lasts,
    match,
    match_words,
)
from groundfault.modes.text_shapes import draft_shapes

_SAMPLE = 20_000  # texts that words are chosen from: more choose the same
# texts that are read one by one, not by polars
_SMALL_SAMPLE = 5_000  # texts for templates and languages: a second
_READ = 4_000  # characters of a text that these read
_MOSTLY = 0.5  # texts from which a column is of a kind
# characters; rules of several parts have to stay below what a rule may have
_LONGEST_RULE = 1_500  # characters of a rule in SQL
_WORD_COST = 2.0  # reading cost of a word, compared with a value
_SAME = 0.95  # overlap from which two words are one
# a property of nearly all texts is no condition, and lacking a rare property says little
_MAX_SHARE = 0.95  # share of the texts above which a condition is left out
_MAX_NEGATION = 0.9  # the same for a negation, which says less
_MOST_FREQUENT = 0.7  # share of the texts above which a word is grammar
_MAX_PHRASES = 40  # the most frequent ones; later ones hold for few texts
_LONGEST_PHRASE = 4  # words of a phrase
# words of a text that phrases are looked for in
_READ_WORDS = 150  # words of a text that phrases are read from
# a word in more than this share of a phrase's texts says the same
_NEARLY = 0.8  # share of a word's texts from which a phrase is nearly the word
_TOPIC_WORDS = 150  # words that are grouped: the most frequent content words
_TOPIC_SHARES = (0.01, 0.2)  # shares of the texts between which a word tells a topic
_TOPIC_SIZES = (3, 15)  # words of a topic: fewer are a word, more are a mixture
_DIMENSIONS = 20  # eigenvectors: twice the topics of 150 words
# letters of three cases, such as the long s: a regular expression takes more for equal than small
# letters tell
_ODD_CASE = (
    "[\u00b5\u017f\u0345\u01c4-\u01cc\u01f1-\u01f3\u0390-\u03f5\u13a0-\u13fd"
    "\u1c80-\u1c88\u1e9b\u1f80-\u1fff\u2126-\u212b\uab70-\uabbf]"
)
# texts whose words are listed at a time: a hundred million letters of the longest that are usual
_LISTED = 50_000  # texts whose words are held at once: memory
# mean information of two words of a topic, in nats
_COHERENCE = 0.5  # mean information between the words of a topic, in nats
_ROUNDS = 20  # k-means from a fixed start settles in fewer


def _list_words(text: pl.Series) -> pl.Series:
    """Return the different words of each text, in lower case."""
    return text.str.to_lowercase().str.extract_all(r"\w+").list.unique().alias("word")


def draft_words(lists: pl.Series, most: int) -> Iterator[Draft]:
    """Yield the most frequent words.

    Parameters
    ----------
    lists : polars.Series
        Words of each text of a sample.
    most : int
    """
    words = lists.explode().drop_nulls()
    enough = pl.col("count").is_between(MIN_TEXTS, _MOST_FREQUENT * lists.len())
    counts = words.value_counts().filter(enough).rows()
    for word, _ in sorted(counts, key=lambda row: (-row[1], row[0]))[:most]:
        yield Draft("words", match_words([word]), f'has the word "{word}"', 2.0)


def draft_pieces(small: pl.Series) -> Iterator[Draft]:
    """Yield pairs of characters of scripts without spaces, runs of marks such as ``>>>``, and marks
    of texts without spaces.

    Parameters
    ----------
    small : polars.Series
        Strings without nulls.
    """
    runs = small.str.extract_all(f"[{UNSPACED}]+").to_list()
    pairs = [{run[i : i + 2] for run in some for i in range(len(run) - 1)} for some in runs]
    spaced = small.str.contains(r"\s").sum() >= _MOSTLY * small.len()
    marks = small.str.extract_all(r"[^\w\s]{2,}" if spaced else r"[^\w\s]").to_list()
    pairs = [one.union(some) for one, some in zip(pairs, marks, strict=True)]
    counts = Counter(piece for one in pairs for piece in one)
    enough, many = MIN_TEXTS, _MOST_FREQUENT * len(pairs)
    frequent = [piece for piece, count in counts.items() if enough <= count <= many]
    for piece in sorted(frequent, key=lambda piece: (-counts[piece], piece))[:_TOPIC_WORDS]:
        yield Draft("words", match(re.escape(piece)), f'has "{piece}"', 2.0)


def draft_phrases(sample: pl.Series) -> Iterator[Draft]:
    """Yield frequent phrases of two to four words that go together.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls.

    Notes
    -----
    A phrase counts if it is more frequent than its parts make it (of all ways to part it in two,
    the least surprising), if it is not just the rarest of its words, and if no longer phrase has
    nearly all of its texts.
    """
    n = sample.len()
    counts = _count_phrases(sample, max(MIN_TEXTS, math.ceil(0.01 * n)))
    phrases = {one: k for one, k in counts.items() if len(one) > 1}
    covered = {
        part
        for phrase, count in phrases.items()
        for part in (phrase[1:], phrase[:-1])
        if count >= _NEARLY * counts[part]
    }
    scores = {
        phrase: count * _measure_surprise(phrase, counts, n)
        for phrase, count in phrases.items()
        if count <= _MOST_FREQUENT * n
        and phrase not in covered
        and count < _NEARLY * min(counts[word,] for word in phrase)
    }
    for phrase in sorted(scores, key=lambda one: (-scores[one], one))[:_MAX_PHRASES]:
        if scores[phrase] > 0:
            inner = r"\s+".join(map(re.escape, phrase))
            words = f'has "{" ".join(phrase)}"'
            yield Draft("words", match(rf"\b{inner}\b", any_case=True), words, 2.5)


def _count_phrases(sample: pl.Series, enough: int) -> dict[tuple[str, ...], int]:
    """Return how many texts have each word and each phrase that enough have."""
    # a mark ends a phrase; a space alone does not
    tokens = sample.str.to_lowercase().str.extract_all(r"\w+|[^\w\s]")
    words = tokens.list.unique().explode().drop_nulls().rename("word").value_counts()
    counts: dict[tuple[str, ...], int]
    counts = {(w,): k for w, k in words.iter_rows() if k >= enough and w[0].isalpha()}
    read = tokens.list.head(_READ_WORDS).alias("word").to_frame().with_row_index("text")
    word, text = pl.col("word"), pl.col("text")
    read = read.explode("word").with_columns(pl.when(word.is_in([w for (w,) in counts])).then(word))
    for size in range(2, _LONGEST_PHRASE + 1):
        phrase = pl.concat_str([word.shift(-i) for i in range(size)], separator=" ")
        phrases = read.select(text, phrase).filter(text.shift(1 - size) == text).drop_nulls()
        found = phrases.unique()["word"].value_counts().filter(pl.col("count") >= enough)
        counts |= {tuple(one.split(" ")): k for one, k in found.iter_rows()}
    return counts


def _measure_surprise(phrase: tuple[str, ...], counts: dict[tuple[str, ...], int], n: int) -> float:
    """Return log of the texts that have a phrase over those expected of its parts, less log 2."""
    parts = (counts[phrase[:i]] * counts[phrase[i:]] for i in range(1, len(phrase)))
    return math.log(counts[phrase] * n / max(parts)) - math.log(2)


def draft_topics(sample: pl.Series) -> Iterator[Draft]:
    """Yield groups of words that occur in the same texts, named by their most frequent word.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls.

    Notes
    -----
    Words are embedded by the leading eigenvectors of their positive pointwise mutual information
    (Levy and Goldberg 2014, https://papers.nips.cc/paper/5477) and grouped by spherical k-means
    from a fixed start.
    """
    words, holds = _list_content_words(sample)
    if len(words) < 3 * _TOPIC_SIZES[0]:
        return
    together = holds.T @ holds
    single = np.diag(together)
    with np.errstate(divide="ignore"):
        information = np.maximum(np.log(together * len(holds) / np.outer(single, single)), 0)
    np.fill_diagonal(information, 0)
    groups = _cluster(_embed(information), max(2, len(words) // 10))
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        if not _TOPIC_SIZES[0] <= len(members) <= _TOPIC_SIZES[1]:
            continue
        inner = information[np.ix_(members, members)]
        if inner.sum() >= _COHERENCE * len(members) * (len(members) - 1):
            names = [words[i] for i in members]
            meaning = f"is about {', '.join(names[:3])} and the like"
            yield Draft("topic", match_words(sorted(names)), meaning, 1.5)


def _list_content_words(sample: pl.Series) -> tuple[list[str], Floats]:
    """Return words that are not function words, the most frequent first, and which texts have
    them."""
    lists = sample.str.to_lowercase().str.extract_all(r"\p{L}{3,}").list.unique().to_list()
    counts = Counter(word for some in lists for word in some)
    few, many = max(MIN_TEXTS, _TOPIC_SHARES[0] * len(lists)), _TOPIC_SHARES[1] * len(lists)
    grammar = list_function_words()
    content = [w for w, k in counts.items() if few <= k <= many and w not in grammar]
    words = sorted(content, key=lambda word: (-counts[word], word))[:_TOPIC_WORDS]
    places = {word: i for i, word in enumerate(words)}
    holds = np.zeros((len(lists), len(words)))
    for row, some in zip(holds, lists, strict=True):
        row[[places[word] for word in some if word in places]] = 1
    return words, holds


def _embed(information: Floats) -> Floats:
    values, vectors = np.linalg.eigh(information)
    first = np.argsort(-np.abs(values))[:_DIMENSIONS]
    points = vectors[:, first] * np.sqrt(np.abs(values[first]))
    return _normalise(points)


def _cluster(points: Floats, count: int) -> Places:
    """Return spherical k-means; each start is the point least like those before it."""
    centers = points[:1]
    while len(centers) < count:
        far = np.argmin((points @ centers.T).max(axis=1))
        centers = np.vstack([centers, points[far]])
    groups = np.zeros(len(points), np.intp)
    for _ in range(_ROUNDS):
        groups = np.argmax(points @ centers.T, axis=1)
        sums = np.array([points[groups == i].sum(axis=0) for i in range(count)])
        centers = _normalise(sums)
    return groups


def _normalise(points: Floats) -> Floats:
    lengths: Floats = np.linalg.norm(points, axis=1, keepdims=True)
    return points / np.maximum(lengths, 1e-12)


@dataclass(frozen=True)
class TextCondition:
    """A condition on one column of texts, and the rows it matches.

    Attributes
    ----------
    family : str
        Its topic, such as ``prompt language``. Literals of one family are alternatives.
    rule, meaning : str
        In SQL, and in English.
    cost : float
        Reading cost: 1 for plain conditions, 2 or 3 for words.
    on : bool array, shape (rows,)
        Rows without a text are off.
    value : str or None
        In a family whose literals exclude each other: the value of this one.
    """

    family: str
    rule: str
    meaning: str
    cost: float
    on: Bools
    value: str | None = None


def read_text_conditions(text: pl.Series, *, max_words: int = 300) -> list[TextCondition]:
    """Return conditions on a column of texts, fixed by the texts alone.

    Parameters
    ----------
    text : polars.Series
        Strings, a row each; may have nulls.
    max_words : int
        Words at most, the most frequent first.

    Returns
    -------
    list of TextCondition
        The plainest first; no two hold for the same rows, except for values of a family whose
        literals exclude each other.
    """
    text = text.cast(pl.String)
    sample = text.drop_nulls()
    if sample.len() > _SAMPLE:
        sample = sample.sample(_SAMPLE, seed=0)
    words = _list_words(sample)
    drafts = [draft for draft in _list_drafts(sample, words, max_words) if _is_short(draft)]
    if (text.str.len_bytes() == text.str.len_chars()).all():  # ASCII alone
        drafts = [draft for draft in drafts if draft.family != "script"]
    known = words if sample.len() == text.len() else None
    return _drop_doubles(_keep_different(_evaluate(drafts, text, known)))


def _list_drafts(sample: pl.Series, lists: pl.Series, max_words: int) -> list[Draft]:
    """Return possible conditions on texts, the plainest first."""
    small = sample.sample(_SMALL_SAMPLE, seed=0) if sample.len() > _SMALL_SAMPLE else sample
    small = small.str.slice(0, _READ)
    languages = detect_languages(list(map(set, _list_words(small).to_list())))
    templates = find_templates(small.to_list(), set(languages.list_words("spelled-out number")))
    drafts = [*draft_shapes(sample, languages), *draft_templates(small, templates)]
    # where texts are filled-in forms, the forms say it better
    if sum(map(bool, templates.labels)) < _MOSTLY * small.len():
        drafts += [*draft_topics(small), *draft_phrases(small)]
    return [*drafts, *draft_pieces(small), *draft_words(lists, max_words)]


def _is_short(draft: Draft) -> bool:
    return len(draft.condition.sql) <= _LONGEST_RULE


def _evaluate(
    drafts: Iterable[Draft], text: pl.Series, words: pl.Series | None
) -> Iterator[TextCondition]:
    drafts = list(drafts)
    column, present = quote(text.name), text.is_not_null().to_numpy()
    # each test once, however many literals share or negate it
    terms = {term.sql: term for draft in drafts for term in draft.condition.terms}
    passes = _find_words([term for term in terms.values() if term.words], text, words)
    passes |= _find_patterns([term for sql, term in terms.items() if sql not in passes], text)
    for draft in drafts:
        on = present.copy()
        for term in draft.condition.terms:
            on &= passes[term.sql] == term.holds
        rule = draft.condition.sql.replace("{}", column)
        family, meaning = f"{text.name} {draft.family}", f"{text.name} {draft.meaning}"
        yield TextCondition(family, rule, meaning, draft.cost, on, draft.value)


def _find_patterns(tests: Iterable[Term], text: pl.Series) -> dict[str, Bools]:
    """Return other tests by their SQL; texts that lack what a test needs are not searched."""
    frame = pl.DataFrame([text.alias("text"), find_lasts(text)])
    alike: defaultdict[str, list[Term]] = defaultdict(list)
    for term in tests:
        alike[term.needs].append(term)
    passes = {}
    for needs, some in alike.items():
        rows = frame.with_row_index("row").filter(TEXT.str.contains(needs) | TEXT.is_null())
        for one in rows.select(each.expression.fill_null(False).alias(each.sql) for each in some):
            passes[one.name] = np.zeros(text.len(), dtype=np.bool_)
            passes[one.name][rows["row"].to_numpy()] = one.to_numpy()
    return passes


def _find_words(
    tests: Sequence[Term], text: pl.Series, lists: pl.Series | None = None
) -> dict[str, Bools]:
    """Return, by their SQL, the tests for words that one list of each text's words decides.

    A regular expression with the borders of a word reads every text again for each test.
    """
    words = {word for test in tests for word in test.words}
    known = {word for word in words if re.fullmatch(r"\w+", word)}
    if not known or text.str.contains(_ODD_CASE).any():
        return {}
    holds = {word: np.zeros(text.len(), dtype=np.bool_) for word in known}
    for start in range(0, text.len(), _LISTED):
        found = (
            (_list_words(text.slice(start, _LISTED)) if lists is None else lists)
            .to_frame()
            .with_row_index("row", start)
            .explode("word")
            .filter(pl.col("word").is_in(known))
            .group_by("word")
            .agg("row")
        )
        for word, rows in found.iter_rows():
            holds[word][rows] = True
    return {
        test.sql: np.any([holds[word] for word in test.words], axis=0)
        for test in tests
        if known.issuperset(test.words)
    }


def _keep_different(literals: Iterable[TextCondition]) -> list[TextCondition]:
    """Drop conditions that hold for too few or nearly all texts, or for the same as a plainer
    one."""
    extents: set[bytes] = set()
    different: list[TextCondition] = []
    for one in literals:
        n, size = len(one.on), int(one.on.sum())
        most = _MAX_NEGATION if one.rule.startswith("NOT ") else _MAX_SHARE
        if not MIN_TEXTS <= size <= min(most * n, n - MIN_TEXTS):
            continue
        extent = np.packbits(one.on).tobytes()
        if extent not in extents or one.value is not None:
            different.append(one)
        extents.add(extent)
    return different


def _drop_doubles(literals: list[TextCondition]) -> list[TextCondition]:
    """Drop words that hold for nearly the same texts as something plainer."""
    if not literals:
        return literals
    rows = np.array([one.on[:_SAMPLE] for one in literals], dtype=np.float32)
    sizes = rows.sum(axis=1)
    # one product: hundreds of small ones wait for each other's threads
    together = rows @ rows.T
    result = []
    for i, one in enumerate(literals):
        common = together[i, :i] if one.cost >= _WORD_COST else np.zeros(0)
        if not (common >= _SAME * (sizes[: len(common)] + sizes[i] - common)).any():
            result.append(one)
    return result
