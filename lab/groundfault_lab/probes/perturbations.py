"""Perturbations: ready families of changes to a question or its prompt that keep the answer.

The families are those that HELM (Liang et al. 2022) and CheckList (Ribeiro et al. 2020) describe;
code and lexicons are our own. A family of `WORDINGS` changes the question itself, one of `AROUND`
adds a sentence to the prompt. A change that a task does not allow makes no prompt."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from groundfault.base.long_work import stream
from groundfault.base.reading import read_beside
from groundfault.core.equivalence import NUMBER_WORDS, normal
from groundfault.errors import InputError, require_name
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.grammar import ComponentGroup, Grammar, Option

Change = Callable[[str, np.random.Generator], str]

_SAME = ("facts", "operations", "relations", "answer")
_LEXICONS: dict[str, Any] = tomllib.loads(read_beside(__file__, "perturbations.toml"))
_WORDS_A_TYPO = 8  # one typo in eight words, at least one: as in text typed in a hurry
_MIN_LETTERS = 5  # of a word with a typo: shorter ones become other words
# neither part of a word, of a longer number, of a share, a price or a formula
_NUMBER = re.compile(
    r"(?<![\w.,:/$€£+*^=#−-])(?<![-+*/=^#×−\d] )(?<!\d x )(?!0\d)\d{1,2}"
    r"(?![\w%:/^°]|[.,]\d|\.(?:,|\s+[a-zà-ÿ])|\s*[-+*/=^#×−]|\s+(?:x\s+)?\d)"
)
_ENGLISH = re.compile(r"\b(?:the|what|which|who|how|is|are|there|have|of)\b", re.IGNORECASE)
_OPTION = re.compile(r"^\s*\(?([A-H])[).:]\s", re.IGNORECASE)
# the letters of such a question are its subject, or belong to an address, to code or to a formula
_LITERAL = re.compile(
    r"\b(?:letters?|spell\w*|vowels?|consonants?|characters?|syllables?|rhym\w+|anagrams?|"
    r"palindromes?|alphabetical\w*|(?:upper|lower)[ -]?case|capitali[sz]\w+|def \w+)\b|://|`|==|"
    r"\\[a-z]",
    re.IGNORECASE,
)
_PLACES = ("lines", "options")  # changes that leave each letter as it is
# what stands before a name that is no stranger's, and after one
_TITLE = re.compile(
    r"\b(?:King|Queen|Prince|Princess|Emperor|Pope|Saint|St\.?|San|Santa|President|Lord|Lady|Sir|"
    r"Lake|Mount|Port)\s$"
)
_SURNAME = re.compile(r"(?:\s|-)(?:[A-Z]|\d)")
_REFERS = re.compile(r"\b(?:above|below|previous|preceding)\b", re.IGNORECASE)
_PRONOUN = r"\s+(?:i|you|he|she|it|we|they|this|that)\b"
_NO_TITLE = r"(?!\s+(?-i:[A-Z]))"  # a capital behind it: the title of a film, or a name
_PARTICIPLE = r"\s+(?:been|got|had|become|won|made|taken|given|\w+ed)\b"


def perturb(
    bank: Bank, families: Sequence[str] | None = None, *, seed: int = 0
) -> tuple[Bank, Grammar]:
    """Return a bank whose tasks have their perturbed wordings as slots, and the grammar of them.

    Parameters
    ----------
    bank : Bank
    families : sequence of str, optional
        Of `WORDINGS` and `AROUND`; left out, all wordings, politeness and distractors.
    seed : int
        Of what is drawn: letters, names, orders.

    Raises
    ------
    InputError
        If no task allows any of the wordings.
    PlanError
        If a family is unknown.
    """
    for family in families or ():
        require_name("family", family, dict.fromkeys((*WORDINGS, *AROUND)))
    chosen = families or (*WORDINGS, "politeness", "distractor")
    wordings = [name for name in WORDINGS if name in chosen]
    tasks = tuple(_add_wordings(task, wordings, seed) for task in bank)
    options = (Option("plain", "{question}"), *(Option(name, f"{{{name}}}") for name in wordings))
    around = [name for name in AROUND if name in chosen]
    groups = (
        ComponentGroup("wording", options, _SAME),
        *(ComponentGroup(name, _list_options(name), _SAME) for name in around),
    )
    # a prompt always says where the answer stands
    places = {name: f"{{{name}}}" for name in ("wording", *around)}
    places.setdefault("format", _LEXICONS["around"]["format"]["line"])
    order = ("politeness", "instruction", "wording", "distractor", "format")
    layout = "\n\n".join(places[name] for name in order if name in places)
    name = f"{bank.name}-perturbed"
    grammar = Grammar(name, groups, layout).fitting({slot for task in tasks for slot in task.slots})
    if wordings and len(grammar.groups[0].options) == 1:
        raise InputError(f"no question of {bank.name!r} allows these changes; name other families")
    return replace(bank, name=name, tasks=tasks), replace(grammar, name=name)


def _list_options(family: str) -> tuple[Option, ...]:
    options = tuple(Option(name, text) for name, text in _LEXICONS["around"][family].items())
    # what a prompt says anyway has a plain wording; the rest may be absent
    return options if family in ("instruction", "format") else (Option("none"), *options)


def _add_wordings(task: Task, wordings: Sequence[str], seed: int) -> Task:
    slots = dict(task.slots)
    if _LITERAL.search(task.question):
        wordings = [name for name in wordings if name in _PLACES]
    for name in wordings:
        rng = stream(seed, f"perturbation {name} of {task.id}")
        text = WORDINGS[name](task.question, rng)
        if text != task.question and _keeps_answer(task, text, name):
            slots[name] = text
    # anchors are parts of the plain wording
    return replace(task, slots=slots, anchors=())


def _keeps_answer(task: Task, text: str, family: str) -> bool:
    """Tell whether the key still fits the changed wording, which may have lost what it names."""
    key = normal(task.answer)
    # a number written out is the same number, and a list of numbers may be answered in words
    if task.rule in ("integer", "numeric"):
        return True
    if family == "number_words" and re.search(r"\d", key):
        return False
    return key not in normal(task.question) or key in normal(text)


def add_typos(text: str, rng: np.random.Generator) -> str:
    """Swap two letters inside some words: lower-case ones of five letters or more."""
    found = [m for m in re.finditer(r"\b[a-z]+\b", text) if len(m[0]) >= _MIN_LETTERS]
    words = [(m, typos) for m in found if (typos := _list_typos(m[0]))]
    count = min(len(words), max(1, len(text.split()) // _WORDS_A_TYPO))
    drawn = rng.choice(len(words), count, replace=False) if words else ()
    for match, typos in (words[number] for number in drawn):
        typo = typos[int(rng.integers(len(typos)))]
        text = text[: match.start()] + typo + text[match.end() :]
    return text


def _list_typos(word: str) -> list[str]:
    """Return the word with two letters swapped, its ends apart, where no other word comes out."""
    swapped = [
        word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        for i in range(1, len(word) - 2)
        if word[i] != word[i + 1]
    ]
    return [typo for typo in swapped if typo not in _LEXICONS["swapped"]]


def misspell(text: str, rng: np.random.Generator) -> str:  # noqa: ARG001
    """Replace words by common misspellings."""
    return _replace(text, _LEXICONS["misspellings"])


def contract(text: str, rng: np.random.Generator) -> str:  # noqa: ARG001
    """Write contractions: *do not* becomes *don't*."""
    pairs = _LEXICONS["contractions"]
    text = _replace(text, [pair for pair in pairs if pair[1].endswith("n't")])
    # not at the end of a clause: "what it is" has no short form
    rest = [pair for pair in pairs if not pair[1].endswith("n't")]
    return _replace(text, rest, rf"(?=\s+\w){_NO_TITLE}")


def expand(text: str, rng: np.random.Generator) -> str:  # noqa: ARG001
    """Write contractions out: *don't* becomes *do not*."""
    # "don't you" has no long form, and "it's been" is "it has been"
    after = f"(?!{_PRONOUN}|{_PARTICIPLE}){_NO_TITLE}"
    return _replace(text, [pair[::-1] for pair in _LEXICONS["contractions"]], after)


def rename_people(text: str, rng: np.random.Generator) -> str:
    """Give people other first names of the same kind, each the same one throughout.

    A name before a surname or a number, or behind a title, stays: it may be a known person's.
    """
    for names in _LEXICONS["names"]:
        found = [name for name in names if re.search(rf"\b{name}\b", text)]
        used = [name for name in found if not _is_known_person(name, text)]
        others = [name for name in names if name not in found]
        new = dict(zip(used, rng.permutation(others).tolist(), strict=False))
        if new:
            pattern = re.compile(rf"\b({'|'.join(new)})\b")
            text = pattern.sub(partial(_look_up, new), text)
    return text


def _is_known_person(name: str, text: str) -> bool:
    return any(
        _TITLE.search(text[: match.start()]) or _SURNAME.match(text, match.end())
        for match in re.finditer(rf"\b{name}\b", text)
    )


def spell_numbers(text: str, rng: np.random.Generator) -> str:  # noqa: ARG001
    """Write numbers of English below 100 as words, but those of formulas, prices and shares."""
    if not _ENGLISH.search(text):
        return text
    return _NUMBER.sub(lambda match: NUMBER_WORDS[int(match[0])], text)


def stretch_spaces(text: str, rng: np.random.Generator) -> str:
    """Put one to three spaces where one is."""
    new = re.sub(r"(?<=\S) (?=\S)", lambda _: " " * int(rng.integers(1, 4)), text)
    return new if new != text else re.sub(r"(?<=\S) (?=\S)", "  ", text, count=1)


def break_lines(text: str, rng: np.random.Generator) -> str:  # noqa: ARG001
    """Write each sentence on a line of its own."""
    # an initial or a title ends no sentence
    return re.sub(
        r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|No)\.)(?<!\bMrs\.) (?=[A-Z])", "\n", text
    )


def shuffle_options(text: str, rng: np.random.Generator) -> str:
    """Put the options of a choice, lines such as *B) blue*, in another order, letters and all."""
    lines = text.split("\n")
    letters = {n: match[1] for n, line in enumerate(lines) if (match := _OPTION.match(line))}
    places = list(letters)
    # a dialogue of A and B is no choice, and "all of the above" has a place of its own
    is_choice = "".join(letters.values()).upper() in "ABCDEFGH"
    if not is_choice or any(_REFERS.search(lines[place]) for place in places):
        return text
    order = rng.permutation(len(places))
    if len(places) > 1 and (order == np.arange(len(places))).all():
        order = np.roll(order, 1)
    old = list(lines)
    for place, number in zip(places, order, strict=True):
        lines[place] = old[places[number]]
    return "\n".join(lines)


def _look_up(new: Mapping[str, str], match: re.Match[str]) -> str:
    return new[match[0]]


WORDINGS: dict[str, Change] = {
    "typos": add_typos,
    "misspellings": misspell,
    "lower": lambda text, _: text.lower(),
    "upper": lambda text, _: text.upper(),
    "contractions": contract,
    "expansions": expand,
    "names": rename_people,
    "number_words": spell_numbers,
    "spaces": stretch_spaces,
    "lines": break_lines,
    "options": shuffle_options,
}
"""Changes of a question by name; a text that they leave as it is makes no wording."""

AROUND = tuple(_LEXICONS["around"])
"""Families of sentences around a question: politeness, distractor, instruction, format."""


def _replace(text: str, pairs: Sequence[tuple[str, str]], after: str = "") -> str:
    new = dict(pairs)

    def swap(match: re.Match[str]) -> str:
        word = new[match[0].lower().replace("’", "'")]
        return word[0].upper() + word[1:] if match[0][0].isupper() else word

    return _compile(tuple(new), after).sub(swap, text)


@cache
def _compile(words: tuple[str, ...], after: str) -> re.Pattern[str]:
    # the longest first, so that "does not" is no "do"
    ordered = [
        re.escape(word).replace("'", "['’]") for word in sorted(words, key=len, reverse=True)
    ]
    return re.compile(rf"\b({'|'.join(ordered)})\b{after}", re.IGNORECASE)
