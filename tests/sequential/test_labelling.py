"""One labelling session: a label is taken back, and the rest is as if it had not been given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from groundfault.errors import InputError, LedgerError
from groundfault.sequential import Pool, SequentialAudit, SequentialPlan, verify_certificate
from groundfault.sequential.answers import read_label
from groundfault.sequential.labelling import BACK
from groundfault.sequential.policies import Query

POOL = Pool.from_arrays(range(60), {"lang": ["de", "fr", "ja"] * 20})
PLAN = SequentialPlan(threshold=0.8, policy="stratified", seed=1, budget=12)


def answer(query: Query) -> float:
    return 0.0 if "ja" in (query.group or "") else 1.0


def begin(folder: Path | None = None) -> SequentialAudit:
    return SequentialAudit.of(POOL, PLAN, ledger=folder and folder / "ledger.db")


def test_after_a_correction_the_audit_is_the_one_that_never_erred(tmp_path: Path) -> None:
    audit, plain = begin(tmp_path), begin()
    seen: list[int] = []

    def err_at_the_fifth(query: Query) -> float | str:
        seen.append(query.step)
        if query.step == 6 and seen.count(6) == 1:
            return BACK
        return 1 - answer(query) if query.step == 5 and seen.count(5) == 1 else answer(query)

    assert audit.run(err_at_the_fifth) == plain.run(answer)
    assert seen[4:8] == [5, 6, 5, 6]
    assert [r.to_dict() for r in audit.rounds] == [r.to_dict() for r in plain.rounds]
    resumed = begin(tmp_path)
    assert (audit.corrections, resumed.corrections, plain.corrections) == (1, 1, 0)
    assert [r.to_dict() for r in resumed.rounds] == [r.to_dict() for r in plain.rounds]


def test_a_certificate_says_how_many_labels_were_taken_back(tmp_path: Path) -> None:
    audit = begin(tmp_path)
    audit.tell(audit.ask(), 1.0)
    audit.undo()
    audit.run(answer)
    certificate = audit.certificate()
    assert certificate.corrections == 1
    assert verify_certificate(certificate, ledger=tmp_path / "ledger.db").reproduces
    check = verify_certificate(replace_corrections(certificate), ledger=tmp_path / "ledger.db")
    assert not check.reproduces
    assert "corrections" not in begin().certificate().to_dict()


def replace_corrections(certificate):
    from msgspec.structs import replace as put

    return put(certificate, corrections=0)


def test_what_was_not_given_cannot_be_taken_back() -> None:
    audit = begin()
    with pytest.raises(InputError, match="no label yet to take back"):
        audit.undo()
    audit.ask()
    with pytest.raises(InputError, match="no label yet to take back"):
        audit.undo()


def test_a_label_of_another_process_is_not_taken_back(tmp_path: Path) -> None:
    ours, theirs = begin(tmp_path), begin(tmp_path)
    ours.tell(ours.ask(), 1.0)
    theirs.catch_up()
    ours.tell(ours.ask(), 1.0)
    theirs.catch_up = lambda: None  # as if it had looked before
    with pytest.raises(LedgerError, match="another process gave a label after query 1"):
        theirs.undo()
    assert begin(tmp_path).labelled == 2


def test_an_old_query_is_not_told_after_a_correction() -> None:
    audit = begin()
    query = audit.ask()
    audit.tell(query, 1.0)
    later = audit.ask()
    audit.undo()
    with pytest.raises(InputError, match="query 2 was not asked; query 1 waits"):
        audit.tell(later, 1.0)
    audit.tell(replace(query), 0.0)
    assert audit.rounds[0].score == 0.0


@pytest.mark.parametrize(
    ("text", "score"),
    [("P", 1.0), ("passed", 1.0), (" failed ", 0.0), ("f", 0.0), ("u", None), ("0.4", 0.4)],
)
def test_labels_are_typed_in_words(text: str, score: float | None) -> None:
    assert read_label(text) == score


@pytest.mark.parametrize("text", ["1", "0", "1.0", "0.00", "1e0"])
def test_a_bare_one_or_nought_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="type p for passed, f for failed"):
        read_label(text)


@pytest.mark.parametrize("text", ["", "2", "nan", "inf", "-1", "perhaps"])
def test_what_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"type p \(passed\)"):
        read_label(text)
