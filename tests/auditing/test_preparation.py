"""Preparing an audit by counts: copies are found by the engine, and judges need no rows."""

from __future__ import annotations

import numpy as np
import pytest
from lazy_tables import CANDIDATES, make_table, write_parts

from groundfault import Evidence, Plan
from groundfault.auditing import preparation
from groundfault.auditing.counted_audit import MAX_JOINT
from groundfault.auditing.counting import find_copies
from groundfault.auditing.flow import judge_audit
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.preparation import JUDGES, prepare
from groundfault.core.candidate import Candidate, Library
from groundfault.core.units import Marks
from groundfault.errors import PlanError, RuleError
from groundfault.judges import NAMES, choose_judge
from groundfault.judges.rule import find_duplicates


@pytest.fixture(scope="module")
def lazy(tmp_path_factory: pytest.TempPathFactory) -> LazyEvidence:
    folder = write_parts(tmp_path_factory.mktemp("lazy") / "table", make_table(600))
    return LazyEvidence.scan(folder, outcome="error", id="id", null_outcome="missing")


def test_copies_and_complements_are_those_of_the_marks(lazy: LazyEvidence) -> None:
    extra = (
        Candidate("same", "NOT NOT hard", missing="off"),
        Candidate("rest", "lang <> 'de'", missing="drop"),
        Candidate("as many", "n > 49 AND n < 101"),
        Candidate("never", "n > 1000"),
    )
    library = Library.of([*CANDIDATES, *extra])
    evidence = Evidence.from_frame(make_table(600), lazy.roles)
    marks = Marks.of(evidence, library)
    expected = find_duplicates(marks)
    cells = lazy.counter.counts([c.parsed.sql for c in library], {"error": "error"})
    first, is_mirrored = find_copies(lazy, library, cells, marks.unusable)
    np.testing.assert_array_equal(first, expected)
    names = [c.name for c in library]
    mirrored = {name for name, other in zip(names, is_mirrored, strict=True) if other}
    assert mirrored == {"easy", "rest"}


def test_rules_of_equal_counts_are_not_taken_for_copies(lazy: LazyEvidence) -> None:
    frame = make_table(600)
    ids = frame.filter(frame["error"] == 1)["id"].to_list()
    library = Library.of(
        Candidate(f"half {i}", "id IN (" + ", ".join(f"'{name}'" for name in part) + ")")
        for i, part in enumerate((ids[:50], ids[50:100], ids[:50]))
    )
    cells = lazy.counter.counts([c.parsed.sql for c in library], {"error": "error"})
    first, _ = find_copies(lazy, library, cells, ("",) * 3)
    assert first.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {*JUDGES, "max-t"}))
def test_judges_that_need_rows_are_refused(lazy: LazyEvidence, name: str) -> None:
    with pytest.raises(PlanError, match="needs single rows"):
        prepare(lazy, Plan(judge=name), CANDIDATES)


def test_max_t_takes_few_candidates(lazy: LazyEvidence) -> None:
    many = [Candidate(f"n over {i}", f"n > {i}") for i in range(31)]
    with pytest.raises(PlanError, match="at most 30"):
        prepare(lazy, Plan(judge="max-t"), many)
    assert prepare(lazy, Plan(judge="max-t"), many[:30]).judge.name == "max-t"


def test_leaks_show_in_the_sample(lazy: LazyEvidence) -> None:
    audit = prepare(lazy, Plan(judge="holm"), [Candidate("lost", "lost IS NULL")])
    assert judge_audit(audit, ledger=None).ruling.reasons == ((),)
    with pytest.raises(RuleError, match="explains failures by failing"):
        prepare(lazy, Plan(), [Candidate("x", "error = 1")])
    with pytest.raises(RuleError, match="reads column 'nowhere'"):
        prepare(lazy, Plan(), [Candidate("x", "nowhere = 1")])
    assert len(prepare(lazy, Plan(), [], finders=[]).library) == 0


def test_auto_judges_as_in_memory_where_combinations_can_be_counted(
    lazy: LazyEvidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = prepare(lazy, candidates=CANDIDATES)
    plan, reason = choose_judge(Plan(), lazy.roles, mined=False)
    assert (audit.judge.name, audit.judge_reason) == ("max-t", reason)
    assert (audit.plan.judge, audit.plan.permutations) == (plan.judge, plan.permutations)
    # too many rows to deal failures to, or too many combinations, or candidates
    many = [Candidate(f"n over {i}", f"n > {i}") for i in range(MAX_JOINT + 1)]
    by_number = prepare(lazy, candidates=many)
    monkeypatch.setattr(preparation, "_MAX_PATTERNS", 10)
    for other in (by_number, prepare(lazy, candidates=CANDIDATES)):
        assert (other.judge.name, other.plan.judge) == ("holm", "holm")
        assert "all rows were used, because the rules were fixed" in other.judge_reason
        assert other.judge_reason.endswith("which max-t counts, are too many")
