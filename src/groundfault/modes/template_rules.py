"""Rules over the templates, stock sentences and phrases of a column of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import and_

import numpy as np
import polars as pl

from groundfault.base.arrays import Bools
from groundfault.modes.templates import NUMBER, SLOT, Skeleton, Templates
from groundfault.modes.text_conditions import Draft, TextTest, match

# overlap (Jaccard) of the texts that a rule selects with the texts of the template
_GOOD_OVERLAP = 0.97  # overlap with the group from which a pattern needs no better one
_LEAST_OVERLAP = 0.8  # overlap below which a pattern is another group
_GOOD_SENTENCE = 0.9  # the same of one sentence
_MAX_FORM = 20  # words of a form: a line
# sentences that a rule joins; the rarest come first
_MAX_JOINED = 2  # patterns that OR joins: three are not read
_MAX_TEMPLATES = 80  # the most frequent ones; later ones hold for few texts
_MAX_SENTENCES = 40  # the most frequent ones; later ones hold for few texts


def draft_templates(sample: pl.Series, templates: Templates) -> Iterator[Draft]:
    """Yield conditions that a text follows a template, or has a sentence with some form.

    Parameters
    ----------
    sample : polars.Series
        Strings without nulls.
    templates : Templates
        Templates of the sample.

    Notes
    -----
    The rule of a template is the shortest of a few patterns that selects its texts: one of its
    sentences anywhere, a sentence from end to end, all its sentences, or one sentence without the
    sentences of another template.
    """
    matcher = _Matcher(sample, templates)
    labels = Counter(label for label in templates.labels if label)
    ranking = sorted(labels, key=lambda label: (-labels[label], sorted(label)))
    for label in ranking[:_MAX_TEMPLATES]:
        on = np.array([one == label for one in templates.labels])
        choice = _choose_rule(matcher, label, on)
        if choice:
            condition, words = choice
            value = words.replace('"', "")
            yield Draft("template", condition, f"is like {words}", 1.0, value)
    yield from _draft_forms(matcher, templates, ranking)
    yield from _draft_sentences(matcher, templates)
    yield from _draft_stock(matcher, templates)


class _Matcher:
    """Patterns of skeletons, and which texts of the sample they match."""

    def __init__(self, sample: pl.Series, templates: Templates) -> None:
        self.sample = sample
        self.gaps = templates.gaps
        self.skeletons = templates.skeletons
        self.counts = Counter(one for some in templates.skeletons for one in some)
        self._matches: dict[str, Bools] = {}
        self._loose: dict[Skeleton, str] = {}

    def choose(self, skeleton: Skeleton) -> str | None:
        """Return the plainest pattern of a sentence that selects the texts which have it, if any
        does."""
        on = np.array([skeleton in some for some in self.skeletons])
        for pattern in (self.loose(skeleton), self.strict(skeleton)):
            if _overlap(self.holds(pattern), on) >= _GOOD_SENTENCE:
                return pattern
        return None

    def quote(self, skeleton: Skeleton) -> str:
        """Return a sentence in its readable form, in quotation marks."""
        gaps = [self._read_gap(skeleton, i) for i in range(1, len(skeleton))]
        pairs = zip(skeleton, ["", *(gap if gap.strip() else " " for gap in gaps)], strict=True)
        return f'"{"".join(gap + word for word, gap in pairs)}"'

    def loose(self, skeleton: Skeleton) -> str:
        """Return the words in order, anywhere."""
        if skeleton not in self._loose:
            runs = [self._join(skeleton, run) for run in _list_runs(skeleton)]
            self._loose[skeleton] = r"\b" + r"\b.+\b".join(runs) + r"\b"
        return self._loose[skeleton]

    def strict(self, skeleton: Skeleton) -> str:
        """Return the whole sentence, from one stop to the next."""
        parts = []
        for i, word in enumerate(skeleton):
            gap = "" if i == 0 else self._gap(skeleton, i)
            many = skeleton not in self.gaps
            slot = r"\w[^.!?:;]*" if many else r"[^\s.!?:;]+"
            parts.append(gap + (re.escape(word) if word not in (SLOT, NUMBER) else slot))
        return rf"(^|[.!?:;]\s*){''.join(parts)}([.!?:;]|$)"

    def holds(self, pattern: str) -> Bools:
        """Return texts of the sample that a pattern matches, in any case."""
        if pattern not in self._matches:
            self._matches[pattern] = self.sample.str.contains(f"(?i){pattern}").to_numpy()
        return self._matches[pattern]

    def _join(self, skeleton: Skeleton, run: range) -> str:
        parts = [re.escape(skeleton[run[0]])]
        parts += [self._gap(skeleton, i) + re.escape(skeleton[i]) for i in run[1:]]
        return "".join(parts)

    def _gap(self, skeleton: Skeleton, i: int) -> str:
        gap = self._read_gap(skeleton, i)
        return re.escape(gap).replace(r"\ ", " ") if gap else r"\W+"

    def _read_gap(self, skeleton: Skeleton, i: int) -> str:
        """Return the text that always precedes a word; empty if it varies."""
        gaps = self.gaps.get(skeleton, ())
        return gaps[i - 1] if i <= len(gaps) else ""


def _overlap(a: Bools, b: Bools) -> float:
    return float((a & b).sum() / max((a | b).sum(), 1))


def _list_runs(skeleton: Skeleton) -> list[range]:
    """Return where the words between slots are."""
    ends = [-1, *(i for i, w in enumerate(skeleton) if w in (SLOT, NUMBER)), len(skeleton)]
    return [range(a + 1, b) for a, b in pairwise(ends) if b > a + 1]


def _choose_rule(
    matcher: _Matcher, label: frozenset[Skeleton], on: Bools
) -> tuple[TextTest, str] | None:
    skeletons = sorted(label, key=lambda one: (matcher.counts[one], one))
    best: tuple[TextTest, str] | None = None
    least = _LEAST_OVERLAP
    for condition, words, extent in _list_rules(matcher, skeletons, on):
        overlap = _overlap(extent, on)
        if overlap > least:
            least, best = overlap, (condition, words)
        if overlap >= _GOOD_OVERLAP:
            break
    return best


def _list_rules(
    matcher: _Matcher, skeletons: Sequence[Skeleton], on: Bools
) -> Iterator[tuple[TextTest, str, Bools]]:
    for make in (matcher.loose, matcher.strict):
        for one in skeletons:
            yield _as_rule(make(one)), matcher.quote(one), matcher.holds(make(one))
    skeletons = skeletons[:_MAX_JOINED]
    patterns = [matcher.loose(one) for one in skeletons]
    extent = np.all([matcher.holds(pattern) for pattern in patterns], axis=0)
    words = " with ".join(map(matcher.quote, skeletons))
    joined = reduce(and_, map(_as_rule, patterns))
    yield joined, words, extent
    # the sentence that most of the texts have that should not be there
    wrong = extent & ~on
    others = [one for one in matcher.counts if one not in skeletons]
    if wrong.any() and others:
        gains = {one: int((matcher.holds(matcher.loose(one)) & wrong).sum()) for one in others}
        other = max(gains, key=lambda one: (gains[one], one))
        pattern = matcher.loose(other)
        condition = joined & ~_as_rule(pattern)
        yield condition, f"{words} without {matcher.quote(other)}", extent & ~matcher.holds(pattern)


def _as_rule(pattern: str) -> TextTest:
    return match(pattern, any_case=True)


def _draft_forms(
    matcher: _Matcher, templates: Templates, ranking: Sequence[frozenset[Skeleton]]
) -> Iterator[Draft]:
    """Yield templates with the same slots in the same order, such as translations of each other."""
    forms: dict[str, list[frozenset[Skeleton]]] = {}
    # the first text with a label is the last
    examples = dict(zip(templates.labels[::-1], templates.skeletons[::-1], strict=True))
    for label in ranking:
        sentences = [one for one in examples[label] if one in label]
        slots = "|".join("".join(w for w in one if w in (SLOT, NUMBER)) for one in sentences)
        forms.setdefault(slots, []).append(label)
    for slots, labels in forms.items():
        if not slots or not 2 <= len(labels) <= _MAX_FORM:
            continue
        rarest = [min(label, key=lambda one: (matcher.counts[one], one)) for label in labels]
        heads = list(dict.fromkeys(rarest))
        pattern = "|".join(map(matcher.loose, heads))
        on = np.array([label in set(labels) for label in templates.labels])
        if _overlap(matcher.holds(pattern), on) >= _GOOD_SENTENCE:
            words = " or ".join(map(matcher.quote, heads[:3]))
            more = f" or {len(heads) - 3} more of that form" if len(heads) > 3 else ""
            yield Draft("form", _as_rule(f"({pattern})"), f"is like {words}{more}", 1.5)


def _draft_sentences(matcher: _Matcher, templates: Templates) -> Iterator[Draft]:
    """Yield sentences that several templates have."""
    homes = Counter(one for label in set(templates.labels) for one in label)
    several = [one for one, n in homes.items() if n >= 2]
    several.sort(key=lambda one: (-matcher.counts[one], one))
    for one in several[:_MAX_SENTENCES]:
        pattern = matcher.choose(one)
        if pattern:
            yield Draft("sentence", _as_rule(pattern), f"has {matcher.quote(one)}", 1.5)


def _draft_stock(matcher: _Matcher, templates: Templates) -> Iterator[Draft]:
    """Yield sentences that come and go while the rest stays: each alone, and all of one place."""
    ranking = sorted(templates.stock, key=lambda one: (-matcher.counts[one], one))
    patterns = {one: matcher.choose(one) for one in ranking[:_MAX_SENTENCES]}
    exact = {one: pattern for one, pattern in patterns.items() if pattern}
    for place in sorted(set(templates.stock.values())):
        members = [one for one in exact if templates.stock[one] == place]
        if len(members) > 1:
            pattern = "|".join(exact[one] for one in members)
            words = " or ".join(map(matcher.quote, members[:3]))
            more = f" or {len(members) - 3} more like them" if len(members) > 3 else ""
            yield Draft("stock sentence", _as_rule(f"({pattern})"), f"has {words}{more}", 1.5)
    for one, pattern in exact.items():
        yield Draft("stock sentence", _as_rule(pattern), f"has {matcher.quote(one)}", 1.0)
