"""Results: the units of an audit are made once, and twins are found."""

from __future__ import annotations

from audit_tables import make_planted_results

from groundfault.auditing.results import confirmation_frequency


def test_candidates_for_the_same_units_are_aliases() -> None:
    results = make_planted_results()
    names = [c.name for c in results.audit.library]
    aliases = dict(zip(names, results.aliases, strict=True))
    assert aliases == {"hard": ("again",), "long": (), "German": (), "again": ("hard",)}


def test_all_units_are_made_once() -> None:
    results = make_planted_results()
    assert results.full is results.full
    assert len(results.full) == 400


def test_a_strong_effect_is_confirmed_in_most_splits() -> None:
    results = make_planted_results(n=600, lift=0.5)
    audit = results.audit
    frequency = confirmation_frequency(audit.judge, audit.plan, results.full, 20)
    hard, long, german, again = frequency.confirmed
    assert frequency.splits == 20
    assert hard == again > 0.8
    assert max(long, german) < 0.3
    assert frequency.nonempty >= hard


def test_the_same_splits_are_drawn_again() -> None:
    results = make_planted_results(n=200)
    audit = results.audit
    first, again = (
        confirmation_frequency(audit.judge, audit.plan, results.full, 5) for _ in range(2)
    )
    assert (first.confirmed == again.confirmed).all()
