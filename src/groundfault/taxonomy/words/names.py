"""First names that are nothing else, for stories whose persons are renamed."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_TITLES = re.compile(
    r"\b(?:King|Queen|Saint|St|Pope|Prince|Princess|Lord|Lady|Sir|Emperor|President|General|"
    r"Mount|Lake|Port|Fort|Santa|San)"
    r"\.? $"
)
_MARKED = re.compile(r"[\"'“‘_`/@#]$")
_SURNAME = re.compile(r"(?:[- ](?:[A-Z][\w’']+|[A-Z]\.|[IVX]+\b))")


@cache
def read_genders() -> dict[str, str]:
    """Read first names that are neither words, nor places, nor of both genders; with the gender."""
    text = (files(__package__) / "first_names.txt").read_text(encoding="utf-8")
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
