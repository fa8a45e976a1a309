"""Templates of a column of texts: sentences that return with other fillings.

Prompts of a benchmark are often made by filling in forms. The forms are read off the texts: in a
sentence with one word taken out, where many words compete for the hole, the hole is a slot.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate

from groundfault.modes.lexicon import list_function_words

# texts of a sentence: fewer than a rule needs, since sentences are joined to forms
_MIN_TEXTS = 4  # texts that have a frame: half a condition's support, two halves join
_MIN_SHARE = 0.002  # and share of the texts: fewer are chance
NUMBER, SLOT = _OPEN = "#", "…"
_WORD = re.compile(r"(\w+)")
_END = re.compile(r"\n|[.!?:;](?![^\W_])")  # 3.5 and 12:30 are not the end of a sentence
_LONGEST_SENTENCE = 25  # words of a sentence that came out of a template
_ROUNDS = 3  # frames change little after the third
# a slot: so many words compete, weighed by how often each is there (perplexity)
_MIN_PERPLEXITY = 4.5  # different words in a slot, as if equally frequent: else no slot
_MIN_FILLINGS = 10  # texts that fill a slot, to tell its words
# a word that fills slots in so many of its places is taken for a filling everywhere, since lists of
# names have no frames; function words are not
_OFTEN = 0.1  # share of a word's places that are slots from which it fills them

Skeleton = tuple[str, ...]
"""A sentence in lower case, with `NUMBER` and `SLOT` for the parts that change."""
_Frame = tuple[Skeleton, Skeleton]


@dataclass(frozen=True)
class Sentence:
    """One sentence of a text: its words in lower case, and the gaps between them."""

    words: Skeleton
    gaps: tuple[str, ...]


@dataclass(frozen=True)
class Templates:
    """The templates that the texts of a column fill in.

    Attributes
    ----------
    skeletons : list of list of tuple of str
        Frequent skeletons of each text that have a word, in order.
    labels : list of frozenset of tuple of str
        The template of each text: its skeletons without stock sentences; empty without a frequent
        one.
    stock : dict of tuple of str to int
        Stock sentences, which come and go while the rest stays, and the number of other stock
        sentences before them.
    gaps : dict of tuple of str to tuple of str
        Gaps between the words of a skeleton; ``""`` for a gap that varies.
    """

    skeletons: list[list[Skeleton]]
    labels: list[frozenset[Skeleton]]
    stock: dict[Skeleton, int]
    gaps: dict[Skeleton, tuple[str, ...]] = field(default_factory=dict)


def find_templates(texts: Sequence[str], numbers: Set[str] = frozenset()) -> Templates:
    """Find sentences that return with other fillings, and tell the template of each text.

    Parameters
    ----------
    texts : sequence of str
    numbers : set of str
        Words that are read as numbers, in lower case.
    """
    texts_sentences = [_split(text) for text in texts]
    enough = max(_MIN_TEXTS, math.ceil(_MIN_SHARE * len(texts)))
    counts = Counter(
        word
        for sentences in texts_sentences
        for word in {word for sentence in sentences for word in sentence.words}
    )
    rare = {word for word, count in counts.items() if count < enough}
    sentence_counts = Counter(
        sentence.words for sentences in texts_sentences for sentence in sentences
    )
    masks = {words: _mask(words, rare, numbers) for words in sentence_counts}
    for _ in range(_ROUNDS):
        if not _mask_slots(masks, sentence_counts):
            break
    masks = {words: _collapse(mask) for words, mask in masks.items()}
    all_skeletons = [
        [masks[sentence.words] for sentence in sentences] for sentences in texts_sentences
    ]
    frequent = _list_frequent(all_skeletons, enough)
    skeletons = [
        list(dict.fromkeys(one for one in some if one in frequent)) for some in all_skeletons
    ]
    stock = _find_stock(skeletons, enough)
    labels = _label(skeletons, stock, enough)
    return Templates(skeletons, labels, stock, _find_gaps(texts_sentences, masks, frequent))


def _split(text: str) -> list[Sentence]:
    # a word more than the longest has tells that a sentence is longer
    parts = (_WORD.split(sentence, _LONGEST_SENTENCE + 1) for sentence in _END.split(text))
    return [
        Sentence(tuple(map(str.lower, some[1::2])), tuple(some[2:-1:2]))
        for some in parts
        if 1 < len(some) <= 2 * _LONGEST_SENTENCE + 1
    ]


def _mask(words: Skeleton, rare: Set[str], numbers: Set[str]) -> Skeleton:
    return tuple(
        NUMBER
        if word.isdigit() or word in numbers
        else SLOT
        if word in rare or (not word.isalpha() and any(map(str.isdigit, word)))
        else word
        for word in words
    )


def _collapse(words: Skeleton) -> Skeleton:
    """Return several slots in a row as one."""
    return tuple([word for word, is_kept in zip(words, _list_kept(words), strict=True) if is_kept])


def _list_kept(words: Skeleton) -> list[bool]:
    """Return for each word whether it is kept: no slot after the same."""
    pairs = zip(words, ("", *words), strict=False)
    return [word != before or word not in _OPEN for word, before in pairs]


def _mask_slots(masks: dict[Skeleton, Skeleton], counts: Counter[Skeleton]) -> bool:
    """Replace words that fill a slot by the slot, in place; return whether there were any."""
    sizes: Counter[Skeleton] = Counter()
    for words, mask in masks.items():
        sizes[mask] += counts[words]
    frames = {mask: list(_list_frames(mask)) for mask in _list_repeats(sizes)}
    slots = {one: words for one, words in _fill(masks, counts, frames).items() if _is_slot(words)}
    often = _list_fillers(slots, counts)
    changes = False
    for words, mask in masks.items():
        masks[words] = tuple(
            SLOT if word not in _OPEN and (word in often or frame in slots) else word
            for word, frame in zip(mask, frames.get(mask) or [None] * len(mask), strict=True)
        )
        changes |= masks[words] != mask
    return changes


def _fill(
    masks: dict[Skeleton, Skeleton],
    counts: Counter[Skeleton],
    frames: dict[Skeleton, list[_Frame | None]],
) -> dict[_Frame, Counter[str]]:
    """Return the words that stand in each frame."""
    fillings: defaultdict[_Frame, Counter[str]] = defaultdict(Counter)
    for words, mask in masks.items():
        for word, frame in zip(words, frames.get(mask, ()), strict=False):
            if frame:
                fillings[frame][word] += counts[words]
    return fillings


def _list_fillers(slots: dict[_Frame, Counter[str]], counts: Counter[Skeleton]) -> set[str]:
    """Return words that fill slots in many of their places."""
    totals: Counter[str] = Counter()
    for words, n in counts.items():
        for word in words:
            totals[word] += n
    fillers: Counter[str] = Counter()
    for filling in slots.values():
        fillers.update(filling)
    grammar = list_function_words()
    return {word for word, n in fillers.items() if n >= _OFTEN * totals[word]} - grammar.keys()


def _list_repeats(sizes: dict[Skeleton, int]) -> list[Skeleton]:
    """Return sentences of which one half is frequent: the half without a hole of a frequent frame
    is."""
    halves: Counter[tuple[int, bool, Skeleton]] = Counter()
    keys = {}
    for mask, size in sizes.items():
        whole = _collapse(mask)
        n = len(whole)
        keys[mask] = (n, True, whole[: n // 2]), (n, False, whole[n // 2 :])
        for key in keys[mask]:
            halves[key] += size
    return [m for m, pair in keys.items() if max(halves[key] for key in pair) >= _MIN_FILLINGS]


def _list_frames(mask: Skeleton) -> Iterator[_Frame | None]:
    """Yield for each word the sentence without it; None for numbers, and where no word is left."""
    n_fixed = sum([word not in _OPEN for word in mask])
    whole, ends = _collapse(mask), [0, *accumulate(_list_kept(mask)), 0]
    for i, word in enumerate(mask):
        if word == NUMBER or n_fixed == (word not in _OPEN):
            yield None
        else:  # as if the words on each side were collapsed
            yield whole[: ends[i]], whole[ends[i + 2] - 1 :] if i + 1 < len(mask) else ()


def _is_slot(words: Counter[str]) -> bool:
    total = words.total()
    if total < _MIN_FILLINGS or len(words) < _MIN_PERPLEXITY:
        return False
    entropy = -sum(count / total * math.log(count / total) for count in words.values())
    return math.exp(entropy) >= _MIN_PERPLEXITY


def _list_frequent(skeletons: Sequence[Sequence[Skeleton]], enough: int) -> set[Skeleton]:
    counts = Counter(one for some in skeletons for one in set(some))
    return {one for one, n in counts.items() if n >= enough and set(one).difference(_OPEN)}


def _find_stock(skeletons: Sequence[Sequence[Skeleton]], enough: int) -> dict[Skeleton, int]:
    """Return sentences that come and go: the same texts are there without them."""
    stock: set[Skeleton] = set()
    for _ in range(2):
        rests = [frozenset(some) - stock for some in skeletons]
        all_rests = Counter(rests)
        candidates: defaultdict[Skeleton, Counter[frozenset[Skeleton]]] = defaultdict(Counter)
        for rest in rests:
            for one in rest:
                candidates[one][rest - {one}] += 1
        new = {
            one
            for one, partners in candidates.items()
            if SLOT not in one
            and _come_and_go({rest: n for rest, n in partners.items() if rest}, all_rests, enough)
            and partners[frozenset()] < 0.5 * partners.total()
        }
        stock |= new
    return _order_stock(skeletons, stock)


def _come_and_go(
    partners: dict[frozenset[Skeleton], int], rests: Counter[frozenset[Skeleton]], enough: int
) -> bool:
    total = sum(partners.values())
    if total < enough or len(partners) < _MIN_PERPLEXITY:
        return False
    return sum(n for rest, n in partners.items() if rests[rest]) >= 0.6 * total and _is_slot(
        Counter({" | ".join(map(" ".join, sorted(rest))): n for rest, n in partners.items()})
    )


def _order_stock(
    skeletons: Sequence[Sequence[Skeleton]], stock: Set[Skeleton]
) -> dict[Skeleton, int]:
    """Return after how many other stock sentences each comes, in a chain."""
    pairs: Counter[tuple[Skeleton, Skeleton]] = Counter()
    for some in skeletons:
        present = [one for one in some if one in stock]
        pairs.update((a, b) for i, a in enumerate(present) for b in present[i + 1 :])
    before: dict[Skeleton, set[Skeleton]] = {one: set() for one in stock}
    for (a, b), n in pairs.items():
        if n >= 5 * pairs[b, a]:
            before[b].add(a)
    ranks = dict.fromkeys(stock, 0)
    for _ in range(3):
        ranks = {one: max((ranks[other] + 1 for other in before[one]), default=0) for one in stock}
    return ranks


def _label(
    skeletons: Sequence[Sequence[Skeleton]], stock: Set[Skeleton] | dict[Skeleton, int], enough: int
) -> list[frozenset[Skeleton]]:
    """Return each text's skeletons but stock; the rarest are left out until enough texts are
    alike."""
    labels = [frozenset(one for one in some if one not in stock) for some in skeletons]
    frequencies = Counter(one for label in labels for one in label)
    while True:
        counts = Counter(labels)
        rare = {label for label, n in counts.items() if label and n < enough}
        if not rare:
            return labels
        labels = [
            label - {min(label, key=lambda one: (frequencies[one], one))}
            if label in rare
            else label
            for label in labels
        ]


def _find_gaps(
    texts_sentences: Sequence[Sequence[Sentence]],
    masks: dict[Skeleton, Skeleton],
    frequent: Set[Skeleton],
) -> dict[Skeleton, tuple[str, ...]]:
    gaps: dict[Skeleton, list[set[str]]] = {}
    for sentences in texts_sentences:
        for sentence in sentences:
            skeleton = masks[sentence.words]
            if skeleton in frequent and len(skeleton) == len(sentence.words):
                sets = gaps.setdefault(skeleton, [set() for _ in sentence.gaps])
                for some, gap in zip(sets, sentence.gaps, strict=True):
                    some.add(gap)
    return {
        skeleton: tuple(next(iter(some)) if len(some) == 1 else "" for some in sets)
        for skeleton, sets in gaps.items()
    }
