"""The record of units in a report: what was written is read again, and damage is refused."""

from __future__ import annotations

import hashlib
import json

import msgspec
import numpy as np
import pytest
from runs import compare_runs, make_evidence, make_runs

import groundfault
from groundfault import Report
from groundfault.auditing import results
from groundfault.auditing.report_schema import UnitRecord
from groundfault.auditing.results import read_losses, read_names, read_slice
from groundfault.errors import InputError
from groundfault.modes.mode import EVERY_MODEL


@pytest.fixture(scope="module")
def report() -> Report:
    frame = make_runs(n=600)
    return groundfault.audit(make_evidence(frame), ledger=False)


def read_record(report: Report) -> UnitRecord:
    assert report.units is not None
    content = json.loads(report.to_json())["units"]
    return msgspec.convert(content, UnitRecord)


def test_losses_and_names_are_read_again(report: Report) -> None:
    record = read_record(report)
    frame = make_runs(n=600).pivot("run", index="id", values="error").sort("id")
    for name in ("old", "new"):
        losses = read_losses(record, name)
        assert losses is not None
        np.testing.assert_array_equal(losses, frame[name])
    np.testing.assert_allclose(read_losses(record, EVERY_MODEL), (frame["old"] + frame["new"]) / 2)
    assert read_losses(record, "third") is None
    digest = hashlib.sha256(b"q0000").digest()[:8]
    assert read_names(record)[0] == int.from_bytes(digest, "little")


def test_numbers_of_rows_are_not_kept() -> None:
    frame = make_runs(n=600).filter(run="old").drop("id")
    evidence = groundfault.Evidence.from_table(frame, outcome="error")
    one = read_record(groundfault.audit(evidence, ledger=False))
    assert one.names == ""
    np.testing.assert_array_equal(read_names(one), np.arange(600))
    members = read_slice(one, 0)
    assert members is not None
    in_order = np.argsort([str(place) for place in range(600)])
    np.testing.assert_array_equal(members, frame["hard"].to_numpy()[in_order])


def test_slices_are_the_side_of_more_failures(report: Report) -> None:
    record = read_record(report)
    hard = make_runs(n=600).filter(run="old").sort("id")["hard"].to_numpy()
    confirmed = [f for f in report.confirmed if f.name == "hard"]
    assert confirmed
    for finding in confirmed:
        np.testing.assert_array_equal(read_slice(record, finding.key), hard)
    assert len(record.findings) == len(report.confirmed)
    assert report.modes
    for place, mode in enumerate(report.modes):
        members = read_slice(record, place)
        assert members is not None
        assert members.sum() == mode.n
    assert read_slice(record, "nobody") is None
    assert read_slice(record, len(report.modes)) is None


def test_the_other_side_is_kept_where_failures_are_fewer() -> None:
    candidate = groundfault.Candidate("easy", "not hard")
    evidence = make_evidence(make_runs(n=600)).select_model("old")
    report = groundfault.audit(evidence, None, [candidate], finders=(), ledger=False)
    assert report.confirmed[0].is_less_frequent
    hard = make_runs(n=600).filter(run="old").sort("id")["hard"].to_numpy()
    np.testing.assert_array_equal(read_slice(read_record(report), "easy"), hard)


def test_no_record_where_it_would_say_nothing_or_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare_runs(make_runs(n=200)).units is None
    monkeypatch.setattr(results, "MAX_LOSSES", 399)
    assert groundfault.audit(make_evidence(make_runs(n=200)), ledger=False).units is None


@pytest.mark.parametrize(
    "changes",
    [
        {"names": "no base64"},
        {"names": "AAAA"},
        {"losses": {"old": "AAAAAA=="}},
        {"losses": {"old": "????"}},
        {"findings": {"hard · old": "AA=="}},
    ],
)
def test_damage_is_refused(report: Report, changes: dict[str, object]) -> None:
    record = msgspec.structs.replace(read_record(report), **changes)

    def read_all() -> None:
        read_losses(record, "old")
        read_slice(record, "hard · old")

    with pytest.raises(InputError, match="damaged"):
        read_all()


def test_a_loss_lies_between_0_and_1(report: Report) -> None:
    record = read_record(report)
    assert report.units is not None
    losses = {"old": results._encode(np.full(600, 2.0, dtype="<f4"))}
    with pytest.raises(InputError, match="damaged"):
        read_losses(msgspec.structs.replace(record, losses=losses), "old")
