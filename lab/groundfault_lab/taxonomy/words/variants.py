"""Variants of a task by rule, without a model.

The rules change numbers, names or order, or add a distractor or one more step.

A variant's answer is *certain* where the rule keeps it, or works it out anew; else a person, or a
model, has to check.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from groundfault.base.reading import read_beside
from groundfault.core.equivalence import form, natural_rule, normal, numbers as numbers_in
from groundfault_lab.taxonomy.words import arithmetic
from groundfault_lab.taxonomy.words.arithmetic import Step

LONGEST = 8_000
"""Characters of a task that is varied."""

# draws before a rule gives up; fewer words are a formula, not a story
_TRIES, _WORDS_OF_A_STORY = 40, 8
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_KEY_LINE = re.compile(r"(?:####|A:|Answer:)(.+)")
_ASKS = re.compile(r"(?:what is|calculate|compute|evaluate):?\s+", re.IGNORECASE)
_CODE = re.compile(r"\bdef |\breturn\b|```|\[PYTHON\]|==|[{}]|</|;\n|\bimport ")
_ABOUT_WORDS = re.compile(
    r"\b(?:letters?|spell\w*|alphabet\w*|initials?|rhym\w+|vowels?|consonants?|syllables?|anagram|palindrome|characters?|"
    r"strings?|words?|sentences?|paragraphs?|passages?|names|sort\w*|capital\w*|translat\w+|sarcas\w+|quot\w+)\b",
    re.IGNORECASE,
)
# neither part of a word, a time, a date or another number; the digits are bounded
_NUMBER = re.compile(
    r"(?<![\w.,/:^-])(\d{1,3}(?:,\d{3})+|\d{1,12})(?:\.\d{1,6})?(?![\w/:^-]|[.,]\d)"
)
_NO_AMOUNT_BEFORE = re.compile(
    r"(?:\b(?:day|step|page|chapter|grade|room|number|no|level|class|year|figure|table|january|february|"
    r"march|april|may|june|july|august|september|october|november|december)\.?|#) $",
    re.IGNORECASE,
)
_NO_AMOUNT_AFTER = re.compile(r"\s*(?:[ap]\.?m\b|o['’]clock)", re.IGNORECASE)
_OPTION = re.compile(r"^(\(?)([A-Z])([).:]{1,2}[ \t]+)(\S.*)$", re.MULTILINE)
_LEANS = re.compile(
    r"\b(?:above|below|previous|following|former|latter|both|neither|none|all of|options?|choices?|"
    r"[A-D] (?:and|or) [A-D])\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|No)\.)(?<!\b(?:Mrs|etc)\.)\s+(?=[\"“(]?[A-Z])"
)
_ANYTHING = re.compile(
    r"\b(?:things?|items?|objects?|animals?|numbers?|facts?|people|persons?|places?)\b",
    re.IGNORECASE,
)
# a name, and signs that it is more than the first name of an invented person
_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_TITLES = re.compile(
    r"\b(?:King|Queen|Saint|St|Pope|Prince|Princess|Lord|Lady|Sir|Emperor|President|General|"
    r"Mount|Lake|Port|Fort|Santa|San)"
    r"\.? $"
)
_MARKED = re.compile(r"[\"'“‘_`/@#]$")
_SURNAME = re.compile(r"(?:[- ](?:[A-Z][\w’']+|[A-Z]\.|[IVX]+\b))")

_APART = (
    (
        "A museum in another town shows {} paintings on its second floor.",
        "museum town painting floor",
    ),
    ("The lighthouse on the far coast was built with {} steps.", "lighthouse coast step"),
    ("A train that left a different city the day before had {} seats.", "train city seat"),
    ("The oldest tree in the botanical garden is {} years old.", "tree garden old year"),
    ("A library nearby keeps {} maps in its cellar.", "library map cellar"),
    ("The orchestra that played on the radio has {} violins.", "orchestra radio violin"),
)


@dataclass(frozen=True)
class Source:
    """A task to be varied.

    Attributes
    ----------
    id : str
    question : str
    answer : str or None
        The key alone.
    steps : tuple of Step
        The calculations of its worked solution, if each of them comes out and the last gives the
        key.
    """

    id: str
    question: str
    answer: str | None = None
    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, id: str, question: str, answer: str | None, solution: str | None = None) -> Source:
        """Make a source; its answer may be a worked solution that ends in ``#### 18``."""
        worked = solution or answer or ""
        lines = (answer or "").strip().splitlines()
        problem = _KEY_LINE.fullmatch(lines[-1].strip()) if len(lines) > 1 else None
        key = problem[1].strip() if problem else (answer or "").strip() or None
        steps = arithmetic.parse_steps(worked)
        if key is None or not steps or _parse_amount(key) != steps[-1][1]:
            steps = ()
        return cls(id, question, key, steps)


@dataclass(frozen=True)
class Change:
    """A variant.

    Attributes
    ----------
    question : str
    answer : str or None
    certain : bool
        The answer needs no check.
    how : str
        Where the answer comes from.
    """

    question: str
    answer: str | None
    certain: bool
    how: str


Rule = Callable[[Source, np.random.Generator], Change | str]
"""Makes a variant, or says why there is none."""


def change_numbers(source: Source, rng: np.random.Generator) -> Change | str:
    """Change numbers; recompute the answer of expressions and of traceable solutions."""
    if source.answer is not None and (amounts := _vary_expression(source, rng)) is not None:
        return amounts
    if _CODE.search(source.question) or _OPTION.search(source.question):
        return "it holds code, or options that may no longer fit"
    places = _find_amounts(source.question)
    if not places:
        return "it has no number that may change"
    for _ in range(_TRIES if source.steps else 0):
        replacement = _draw_numbers(places, rng)
        key = _recompute_key(source, replacement)
        # an unchanged answer would reward a model that remembers it
        if key is not None and key != source.answer:
            question = _put(source.question, replacement)
            return Change(question, key, True, "worked out anew from the worked solution")
    for _ in range(_TRIES):
        replacement = _draw_numbers(places, rng)
        if _keeps_order(places, replacement):
            question = _put(source.question, replacement)
            return Change(question, None, False, "no worked solution gives the new answer")
    return "no numbers were found that keep their order"


def change_names(source: Source, rng: np.random.Generator) -> Change | str:
    """Change first names to others of the same gender.

    Certain in stories about amounts, and if the answer is such a name.
    """
    if _CODE.search(source.question) or _ABOUT_WORDS.search(source.question):
        return "it holds code, or is about words"
    persons_found = find_persons(source.question)
    if not persons_found:
        return "it has no first name that is surely an invented person's"
    new: dict[str, str] = {}
    genders = read_genders()
    for name in persons_found:
        others = [other for other, gender in genders.items() if gender == genders[name]]
        free = (other for other in others if other not in source.question and other[-1] != "s")
        pool = [other for other in free if other not in new.values()]
        new[name] = pool[int(rng.integers(len(pool)))]
    key = None if source.answer is None else rename_persons(source.answer, new)
    certain = key is not None and (source.answer in new or _is_story(source))
    doubt = "whether more than names depends on who they are has to be checked"
    how = "renaming persons keeps it" if certain else doubt
    return Change(rename_persons(source.question, new), key, certain, how)


def reorder_options(source: Source, rng: np.random.Generator) -> Change | str:
    """Reorder the options of a multiple choice, with the key's letter moved."""
    layout = list(_OPTION.finditer(source.question))
    letters = [match[2] for match in layout]
    if len(layout) < 2 or letters != [chr(ord("A") + i) for i in range(len(layout))]:
        return "it has no list of options from A on"
    texts = [match[4].rstrip() for match in layout]
    if len(set(texts)) < len(texts) or any(_LEANS.search(text) for text in texts):
        return "an option refers to others, or comes twice"
    # letters in the stem would point to other options afterwards
    stem = source.question[: layout[0].start()] + source.question[layout[-1].end() :]
    if re.search(r"\([A-Z]\)|\boptions? [A-Z]\b", stem):
        return "the question refers to an option by its letter"
    key = (source.answer or "").strip()
    letter = re.fullmatch(r"\(?([A-Z])\)?[.:]?", key)
    at = texts.index(key) if key in texts else None
    if letter and letter[1] in letters:
        at = letters.index(letter[1])
    order = rng.permutation(len(texts))
    while at is not None and order[at] == at:  # the key has to move
        order = rng.permutation(len(texts))
    question, end = "", 0
    for i, match in enumerate(layout):
        question += source.question[end : match.start(4)] + texts[order[i]]
        end = match.end(4)
    question += source.question[end:]
    if at is None:
        return Change(question, None, False, "which option is the answer is not known")
    if letter is not None:
        key = key.replace(letter[1], letters[int(np.flatnonzero(order == at)[0])])
    return Change(question, key, True, "the same option under its new letter")


def reorder_sentences(source: Source, rng: np.random.Generator) -> Change | str:
    """Reorder premises: the sentences between the first and the last."""
    text = source.question.strip()
    if _CODE.search(text) or "\n" in text or _ABOUT_WORDS.search(text):
        return "it holds code or lines, or is about words"
    parts = _SENTENCE.split(text)
    if len(parts) < 4:
        return "it has fewer than four sentences"
    order = rng.permutation(len(parts) - 2) + 1
    while (np.diff(order) > 0).all():
        order = rng.permutation(len(parts) - 2) + 1
    question = " ".join([parts[0], *(parts[i] for i in order), parts[-1]])
    return Change(question, source.answer, False, "sentences may lean on those before them")


def add_distractor(source: Source, rng: np.random.Generator) -> Change | str:
    """Add a sentence that has nothing to do with the question, before its last sentence."""
    if not _is_story(source):
        return "it is no story about amounts, with a number as its answer"
    parts = _SENTENCE.split(source.question.strip())
    if _ANYTHING.search(parts[-1]):
        return "its last sentence asks of things in general"
    text = source.question.lower()
    apart = [more for more, about in _APART if not any(word in text for word in about.split())]
    if not apart:
        return "every distractor has a word in common with it"
    numbers_used = {*numbers_in(source.question), *numbers_in(source.answer or "")}
    # a number of the distractor must not be one that the solution uses
    free = [i for i in range(12, 98) if Fraction(i) not in numbers_used]
    sentences = apart[int(rng.integers(len(apart)))].format(free[int(rng.integers(len(free)))])
    at = source.question.rstrip().rfind(parts[-1])
    question = f"{source.question[:at].rstrip()} {sentences} {parts[-1]}".strip()
    return Change(question, source.answer, True, "the sentence is about something else")


def add_step(source: Source, rng: np.random.Generator) -> Change | str:
    """Add one step: multiply the answer, and add a number."""
    amount = None if source.answer is None else _parse_amount(source.answer)
    if amount is None or "%" in (source.answer or ""):
        return "its answer is no number"
    times, more = int(rng.integers(2, 6)), int(rng.integers(3, 30))
    key = arithmetic.write_number(amount * times + more)
    if key is None:
        return "its answer has too many places"
    question = (
        f"Multiply the answer to the following question by {times}, then add {more}. Give the "
        f"final result only.\n\n{source.question}"
    )
    return Change(question, key, True, f"{times} times the known answer, plus {more}")


def vary(rule: str, source: Source, rng: np.random.Generator) -> Change | str:
    """Make a variant by one of `RULES`, or say why there is none."""
    if len(source.question) > LONGEST or len(source.answer or "") > LONGEST:
        return f"it has more than {LONGEST:,} characters"
    return RULES[rule](source, rng)


RULES: dict[str, Rule] = {
    "numbers": change_numbers,
    "names": change_names,
    "options": reorder_options,
    "sentences": reorder_sentences,
    "distractor": add_distractor,
    "step": add_step,
}


class _Place(NamedTuple):
    """A number in a question that may change."""

    start: int
    end: int
    value: int
    percent: bool


def _find_amounts(question: str) -> list[_Place]:
    amounts = []
    for match in _NUMBER.finditer(question):
        before, after = question[: match.start()], question[match.end() :]
        is_name = _NO_AMOUNT_AFTER.match(after) or _NO_AMOUNT_BEFORE.search(before[-12:])
        if "." in match[0] or is_name:
            continue
        value = int(match[0].replace(",", ""))
        # years are facts, and a changed one may be false
        year = 1500 <= value <= 2100 and "," not in match[0] and not before.endswith("$")
        if value > 1 and not year:
            amounts.append(_Place(match.start(), match.end(), value, after.startswith("%")))
    return amounts


def _draw_numbers(places: list[_Place], rng: np.random.Generator) -> list[tuple[_Place, int]]:
    """Draw other numbers, of like size and roundness, for at least one of the places."""
    draws = [place for place in places if rng.random() < 0.6]
    draws = draws or [places[int(rng.integers(len(places)))]]
    return [(place, _draw_near(place, rng)) for place in draws]


def _keeps_order(places: list[_Place], draws: list[tuple[_Place, int]]) -> bool:
    """Tell whether of any two numbers the same one is larger as before, or both are equal."""
    new = {place.start: value for place, value in draws}
    pairs = [(place.value, new.get(place.start, place.value)) for place in places]
    return all(
        (a > c) == (b > d) and (a == c) == (b == d) for (a, b), (c, d) in combinations(pairs, 2)
    )


def _draw_near(place: _Place, rng: np.random.Generator) -> int:
    grain = 1
    # 300 becomes 200 or 400, not 287: the number stays as round as it was
    while place.value % (10 * grain) == 0 and place.value // (10 * grain) >= 5:
        grain *= 10
    low = max(math.ceil(0.6 * place.value / grain), 2 if grain == 1 else 1)
    high = max(int(1.6 * place.value // grain), place.value // grain + 1)
    # more than all of something is seldom meant
    if place.percent and place.value < 100:
        high = min(high, 99 // grain)
    free = [grain * i for i in range(low, high + 1) if grain * i != place.value]
    return free[int(rng.integers(len(free)))] if free else place.value


def _put(question: str, draws: list[tuple[_Place, int]]) -> str:
    """Put the numbers drawn into the question, from the last on."""
    for place, value in sorted(draws, key=lambda pair: -pair[0].start):
        number = f"{value:,}" if "," in question[place.start : place.end] else str(value)
        question = question[: place.start] + number + question[place.end :]
    return question


def _recompute_key(source: Source, draws: list[tuple[_Place, int]]) -> str | None:
    """Recompute the key, if the solution can be traced and keeps kind and order."""
    new = {place.start: value for place, value in draws}
    literals = (x for expression, _ in source.steps for x in arithmetic.find_literals(expression))
    pairs, constants_used = [], set(map(Fraction, literals))
    for match in _NUMBER.finditer(source.question):
        old = Fraction(match[0].replace(",", ""))
        now = Fraction(new.get(match.start(), old))
        forms = [(old, now)]
        if source.question[match.end() :].lstrip().startswith(("%", "percent")):
            forms += [(old / 100, now / 100)]
            for sign in (-1, 1):
                forms += [(100 + sign * old, 100 + sign * now)]
                forms += [(1 + sign * old / 100, 1 + sign * now / 100)]
            forms += [(100 / old, 100 / now)] if old and now else []  # a quarter, for 25%
        # it counts for nothing in the solution, or in a way that is not written down
        if now != old and not constants_used & {a for a, _ in forms}:
            return None
        pairs += [forms[0], *(pair for pair in forms[1:] if pair[0] in constants_used)]
    matches = arithmetic.recompute(source.steps, pairs, arithmetic.find_constants(source.question))
    return None if matches is None else arithmetic.write_number(matches)


def _vary_expression(source: Source, rng: np.random.Generator) -> Change | None:
    """Vary a question that is an expression and nothing else."""
    question = source.question.strip()
    lead = _ASKS.match(question)
    start = lead.end() if lead else 0
    core = question[start:].rstrip("=?. \t\n")
    if not re.fullmatch(r"[-+*/().\d\s]+", core) or not re.search(r"\d\s*[-+*/)]", core):
        return None
    before = arithmetic.evaluate(core)
    if before is None or before != _parse_amount(source.answer or ""):
        return None

    def new(literal: Fraction) -> str:
        if literal < 10:
            return str(int(rng.integers(2, 10)))
        return str(_draw_near(_Place(0, 0, int(literal), False), rng))

    for _ in range(_TRIES):
        text = arithmetic.replace_numbers(core, new)
        matches = None if text is None else arithmetic.evaluate(text)
        key = None if matches is None else arithmetic.write_number(matches)
        if matches is None or text is None or key is None:
            continue
        # the result is no more awkward than the original: whole numbers stay whole
        if matches != before and matches.denominator <= before.denominator:
            varied = question[:start] + text + question[start + len(core) :]
            return Change(varied, key, True, "worked out")
    return None


def _is_story(source: Source) -> bool:
    """Tell whether it is prose with two numbers whose answer is a number."""
    if source.answer is None or _parse_amount(source.answer) is None:
        return False
    if any(pattern.search(source.question) for pattern in (_CODE, _ABOUT_WORDS, _OPTION)):
        return False
    pattern = rf"\b(?:\d[\d,.]*|{'|'.join(arithmetic.WORDS[2:])}|half|twice)\b"
    amounts = re.findall(pattern, source.question.lower())
    return len(amounts) >= 2 and len(_LETTERS.findall(source.question)) >= _WORDS_OF_A_STORY


def _parse_amount(key: str) -> Fraction | None:
    """Parse a key as a number; None where it is something else, or more."""
    plain = normal(key).replace("$", "")
    if natural_rule(plain) not in ("integer", "numeric") or form(plain, "numeric"):
        return None
    return numbers_in(plain)[0]


@cache
def read_genders() -> dict[str, str]:
    """Read first names that are neither words, nor places, nor of both genders; with the gender."""
    text = read_beside(__file__, "first_names.txt")
    lines = (line.split(": ") for line in text.splitlines())
    return {name: gender for gender, names in lines for name in names.split()}


def find_persons(text: str) -> list[str] | None:
    """Find first names in a text; None where one may be more than an invented person.

    That is a name with a surname or a title, in quotation marks, or also written small or in
    capitals.
    """
    names: dict[str, None] = {}
    for match in _NAME.finditer(text):
        name = match[0]
        if name not in read_genders():
            continue
        before, after = text[: match.start()], text[match.end() :]
        # a public person cannot be renamed without changing the facts
        if _SURNAME.match(after) or _TITLES.search(before[-20:]) or _MARKED.search(before):
            return None
        names[name] = None
    # "Will" and "will": a name that is also a word is not safe to replace
    other = [name for name in names if re.search(rf"\b(?:{name.lower()}|{name.upper()})\b", text)]
    return None if other else list(names)


def rename_persons(text: str, new: dict[str, str]) -> str:
    """Exchange names in a text, all at once; ``James'`` becomes ``Peter's``."""
    if not new:
        return text
    # one pass over the text: one after the other, Ann -> Bea and Bea -> Cat would chain
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, new)) + r")\b(['’](?!\w))?")

    def put(match: re.Match[str]) -> str:
        mark = match[2] or ""
        possessive = mark and match[1].endswith("s") and text[match.end() : match.end() + 1] == " "
        return new[match[1]] + (mark + "s" if possessive else mark)

    return pattern.sub(put, text)
