"""Calibration cards that version 0.1.0 wrote: read, and equal to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault_lab.testing.card import Card

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0" / "frozen"


@pytest.mark.parametrize("name", ["card.json", "card-like.json"])
def test_a_stored_card_is_read_and_written_as_it_was(name: str) -> None:
    text = (STORED / name).read_text(encoding="utf-8")
    card = Card.from_json(text)
    assert card.to_json() == text.rstrip("\n")
    assert card.passed == (not card.failures)
