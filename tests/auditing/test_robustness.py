"""Robustness: a strong effect is confirmed in most splits, noise in few."""

from __future__ import annotations

from audit_tables import make_planted_results

from groundfault.auditing.robustness import confirmation_frequency


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
