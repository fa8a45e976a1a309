"""Hints about leaks: left out, not tested, taken by name, asked about."""

from __future__ import annotations

from leak_tables import make_later_columns

import groundfault
from groundfault import Candidate, Evidence


def hints(candidates: list[Candidate] | None = None, **roles: list[str]) -> list[str]:
    data = Evidence.from_table(make_later_columns(), id="id", outcome="error", **roles)  # type: ignore[arg-type]
    return list(groundfault.audit(data, candidates=candidates).hints)


def test_what_predicts_most_of_the_outcome_is_asked_about_first() -> None:
    first = hints()[0]
    assert first.startswith("\"flag\" predicts 87% of the rarer outcome: was 'flag' known before")
    assert "--allow-leakage says so; if not, --post-outcome" in first
    assert not any("was 'flag'" in hint for hint in hints(allow_leakage=["flag"]))


def test_columns_taken_by_their_names_are_listed_once() -> None:
    (hint,) = (hint for hint in hints() if "by their names" in hint)
    assert (
        "'prediction', 'n_turns', 'response_chars' (measured with it) and "
        "'feedback' (follows from it)"
    ) in hint
    assert "--allow-leakage uses one that was known before the answer" in hint
    assert "groundfault check" in hint


def test_leaks_are_named_with_the_way_to_overrule() -> None:
    assert any(hint.startswith("left out") and "'reason'" in hint for hint in hints())
    tested = hints([Candidate("stopped", "flag OR n_turns > 100", missing="off")])
    assert not any("not tested" in hint for hint in tested)


def test_a_named_rule_over_a_column_of_scores_is_judged_and_the_hint_says_what_it_reads() -> None:
    (hint,) = (
        hint
        for hint in hints([Candidate("graded down", "feedback = 'bad'")])
        if "how answers were scored" in hint
    )
    assert "'feedback'" in hint
    assert "'graded down'" in hint
