"""Stored calibration cards: those of version 0.1.0 are read and equal to the last byte; those of
the book are the pages beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault_lab.testing.card import Card

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0" / "frozen"
PAGES = Path(__file__).resolve().parents[2] / "docs" / "cards"


@pytest.mark.parametrize("name", ["card.json", "card-like.json"])
def test_a_stored_card_is_read_and_written_as_it_was(name: str) -> None:
    text = (STORED / name).read_text(encoding="utf-8")
    card = Card.from_json(text)
    assert card.to_json() == text.rstrip("\n")
    assert card.passed == (not card.failures)


@pytest.mark.parametrize("place", sorted(PAGES.glob("*.json")), ids=lambda place: place.stem)
def test_a_card_of_the_book_is_the_page_beside_it(place: Path) -> None:
    card = Card.from_json(place.read_text(encoding="utf-8"))
    assert card.to_markdown() == place.with_suffix(".md").read_text(encoding="utf-8")
    assert card.passed
