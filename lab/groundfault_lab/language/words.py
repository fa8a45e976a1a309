"""Word lists: plain files that name their source, matched by whole words only."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent / "words"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_BRACES = re.compile(r"\\\{(\w+)\\\}")


def read_entries(name: str) -> tuple[str, ...]:
    """Read the entries of a list, one a line; what follows ``#`` is comment."""
    lines = (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    entry_lines = (line.partition("#")[0].strip() for line in lines)
    return tuple(line for line in entry_lines if line)


@cache
def read_words(name: str) -> frozenset[str]:
    """Read the entries of a list of single words, in lower case."""
    return frozenset(entry.lower() for entry in read_entries(name))


@cache
def _compile_list(name: str) -> re.Pattern[str]:
    """Compile a pattern whose group finds the entries of a list; its rest, their look-alikes."""
    exceptions = [
        _make_alternative(entry[1:]) for entry in read_entries(name) if entry.startswith("!")
    ]
    mentions = "|".join(
        _make_alternative(entry) for entry in read_entries(name) if not entry.startswith("!")
    )
    # exceptions first: an alternation takes the first that matches
    return re.compile(rf"(?<!\w)(?:{'|'.join([*exceptions, f'({mentions})'])})(?!\w)")


def has_mention(name: str, text: str) -> bool:
    """Return whether a text has an entry of a list.

    Entries are whole words or phrases, whose words white space or a hyphen may join. One in lower
    case matches in any case; one with a capital (``Polish``) as it stands or all in capitals.
    ``{other}`` stands for any entry of the list ``other``. An entry that begins with ``!`` is what
    only looks like a mention (``!French fries``)."""
    # only mentions are in the group; exceptions match without it
    return any(match[1] for match in _compile_list(name).finditer(text))


def find_words(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters, with inner apostrophes."""
    return [word.lower() for word in _WORD.findall(text)]


def _make_alternative(entry: str) -> str:
    return (
        f"(?i:{_escape(entry)})"
        if entry == entry.lower()
        else f"{_escape(entry)}|{_escape(entry.upper())}"
    )


def _escape(entry: str) -> str:
    # a space in an entry matches a hyphen too: "middle class", "middle-class"
    escaped = re.escape(entry).replace(r"\ ", r"[\s-]+").replace(r"\-", r"[\s-]+")
    return _BRACES.sub(
        lambda match: f"(?:{'|'.join(map(re.escape, read_entries(match[1])))})", escaped
    )
