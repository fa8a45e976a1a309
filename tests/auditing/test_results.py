"""Results: the units of an audit are made once, and twins are found."""

from __future__ import annotations

from audit_tables import make_planted_results


def test_candidates_for_the_same_units_are_aliases() -> None:
    results = make_planted_results()
    names = [c.name for c in results.audit.library]
    aliases = dict(zip(names, results.aliases, strict=True))
    assert aliases == {"hard": ("again",), "long": (), "German": (), "again": ("hard",)}


def test_all_units_are_made_once() -> None:
    results = make_planted_results()
    assert results.full is results.full
    assert len(results.full) == 400
