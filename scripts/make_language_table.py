"""A table of real mistakes: which language langid takes the translations of Django for.

    pip install langid django polars
    python scripts/make_language_table.py languages.parquet fresh.parquet

Django's messages are translated into many languages by volunteers; Serbian comes in both its
scripts. langid identifies 97 languages from characters. For each language that both know, up to 110
messages of at least 25 letters are drawn at random; a second table gets up to 110 others. Nothing
is downloaded beyond the two packages.
"""

from __future__ import annotations

import gettext
import random
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import django
import langid
import polars as pl

EACH = 110
LETTERS = 25
# what langid may say beside the language's own code: Norwegian Bokmål is Norwegian, too
ALSO = {"nb": {"no"}, "nn": {"no"}}
# placeholders of formats and mark-up are no language
NO_WORDS = re.compile(r"%\(\w+\)\w|%\w|\{\w*\}|<[^>]*>|&\w+;|https?://\S+")


def list_messages(locale: str) -> list[str]:
    """Distinct translated messages of a locale, without placeholders, in a fixed order."""
    root = Path(django.__file__).parent
    places = [root / "conf" / "locale", *sorted(root.glob("contrib/*/locale"))]
    messages = {
        text
        for place in places
        for source, text in _read_catalogue(place / locale / "LC_MESSAGES" / "django.mo")
        if text != source and sum(c.isalpha() for c in text) >= LETTERS
    }
    return sorted(messages)


def _read_catalogue(path: Path) -> Iterator[tuple[str, str]]:
    if not path.exists():
        return
    with path.open("rb") as file:
        # the only way to list a catalogue with the standard library
        catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    for key, text in catalogue.items():
        source = key if isinstance(key, str) else key[0]
        if source:
            yield _clean(source), _clean(text)


def _clean(text: str) -> str:
    return " ".join(NO_WORDS.sub(" ", text).split())


def name_script(text: str) -> str:
    """The script that most letters of a text belong to."""
    letters = (c for c in text if c.isalpha())
    names = Counter(unicodedata.name(c, "OTHER").split()[0].title() for c in letters)
    return {"Cjk": "Han", "Hiragana": "Kana", "Katakana": "Kana"}.get(
        name := names.most_common(1)[0][0], name
    )


def draw_rows(seed: int, used: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    """Draw messages of each locale that are not used yet, and ask langid for their language."""
    root = Path(django.__file__).parent / "conf" / "locale"
    supported = {language for language, _ in langid.rank("")}
    draw = random.Random(seed)
    for locale in sorted(p.name for p in root.iterdir() if (p / "LC_MESSAGES").is_dir()):
        language, _, variant = locale.partition("_")
        if language == "en" or language not in supported or variant not in ("", "Latn", "Hans"):
            continue
        messages = [text for text in list_messages(locale) if (language, text) not in used]
        for text in draw.sample(messages, min(EACH, len(messages))):
            answer = langid.classify(text)[0]
            yield {
                "text": text,
                "language": language,
                "script": name_script(text),
                "characters": len(text),
                "words": len(text.split()),
                "answer": answer,
                "error": int(answer not in {language, *ALSO.get(language, ())}),
            }


def main(*places: str) -> None:
    """Write a table to each place; the second has messages that are not in the first, and so on."""
    used: set[tuple[str, str]] = set()
    for seed, place in enumerate(places):
        table = pl.DataFrame(draw_rows(seed, used)).with_row_index("id")
        used |= set(table.select("language", "text").iter_rows())
        table.write_parquet(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
