"""Results that version 0.1.0 stored are read, verified and resumed, as their README says."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from rounding import approximate

from groundfault import InputError
from groundfault.errors import LedgerError
from groundfault.sequential import (
    Certificate,
    Confirmation,
    EProcess,
    Pool,
    SequentialAudit,
    SequentialPlan,
    verify_certificate,
)
from groundfault.sequential.answers import replay
from groundfault.sequential.plan import from_stored_names

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0" / "sequential"
CERTIFICATES = {
    "certificate.json": "audit.db",
    "unfinished.certificate.json": "unfinished.db",
    "gp.certificate.json": None,
    "panel.certificate.json": None,
}
# what version 0.1.0 took where nothing was said, other settings being the defaults of now
PLAN = SequentialPlan(
    threshold=0.85,
    burn_in=30,
    seed=5,
    claim="declared-groups",
    bet="sr-lr-ui",
    grid=[
        0.85 * share
        for share in (0.60 / 0.85, 0.655 / 0.85, 0.71 / 0.85, 0.765 / 0.85, 0.82 / 0.85)
    ],
    eta=0.1,
)


@pytest.fixture
def folder(tmp_path):
    """A copy: an SQLite ledger that is read may leave files beside it, and one resumed changes."""
    return shutil.copytree(STORED, tmp_path / "sequential")


def read_pool(folder, scores=None):
    return Pool.from_table(folder / "pool.csv", id="id", groups=["domain"], scores=scores)


@pytest.mark.parametrize(("name", "ledger"), CERTIFICATES.items())
def test_a_stored_certificate_verifies(folder, name, ledger):
    check = verify_certificate(folder / name)
    assert check.reproduces, check.differences
    expected = (
        "no ledger is opened because a certificate names it"
        if ledger
        else "was not recorded in a ledger"
    )
    assert expected in check.ledger
    if ledger:
        check = verify_certificate(folder / name, ledger=folder / ledger)
        assert check.reproduces, check.differences
        assert "is unbroken and holds these rounds" in check.ledger


@pytest.mark.parametrize("name", CERTIFICATES)
def test_its_policy_chooses_the_same_again(folder, name):
    pool = read_pool(folder, "score")
    check = verify_certificate(folder / name, pool=pool, policy=True)
    assert check.reproduces, check.differences


@pytest.mark.parametrize("name", CERTIFICATES)
def test_its_json_is_written_again_to_the_byte(name):
    text = (STORED / name).read_text(encoding="utf-8")
    assert Certificate.load(STORED / name).to_json() == text


def test_an_interrupted_audit_ends_like_the_stored_one(folder):
    pool = read_pool(folder, "score")
    audit = SequentialAudit.of(pool, PLAN, ledger=folder / "unfinished.db")
    assert audit.labelled == 6
    assert audit.open is not None
    audit.run(replay(pool))
    expected = Certificate.load(folder / "certificate.json").to_dict()
    actual = audit.certificate().to_dict()
    expected["plan"] = from_stored_names(expected["plan"])
    # where the pool and the ledger are, and what wrote it, is all that may differ
    for content in (expected, actual):
        del content["groundfault_certificate"], content["ledger"], content["groundfault_version"]
        del content["pool"]["sources"]
    assert actual == approximate(expected)


def test_an_audit_that_began_under_other_defaults_says_which(folder):
    pool = read_pool(folder, "score")
    with pytest.raises(LedgerError, match="with other settings") as error:
        SequentialAudit(pool, threshold=0.85, burn_in=30, ledger=folder / "unfinished.db")
    for setting in ("seed=5", "claim=declared-groups", "bet=['sr-lr-ui']", "eta=0.1"):
        assert setting in str(error.value)
    assert "threshold=" not in str(error.value)


def test_a_finished_audit_asks_nothing_more(folder):
    pool = read_pool(folder, "score")
    audit = SequentialAudit.of(pool, PLAN, ledger=folder / "audit.db")
    assert audit.ask() is None
    before = Certificate.load(folder / "certificate.json")
    rounds = audit.certificate().to_dict()["rounds"]
    assert rounds == approximate(before.to_dict()["rounds"])
    assert SequentialAudit.from_ledger(folder / "audit.db").seal == before.seal


def test_a_stored_e_process_goes_on_bit_for_bit():
    process = EProcess.from_json((STORED / "eprocess.json").read_text())
    assert json.loads(process.to_json()) == json.loads((STORED / "eprocess.json").read_text())
    expected = json.loads((STORED / "eprocess.expected.json").read_text())
    for scores in expected["scores"]:
        process = process.update(scores, expected["threshold"])
    assert process.log_e.tolist() == expected["log_e"]


def test_a_stored_confirmation_is_read_without_a_version():
    data = json.loads((STORED / "confirm.json").read_text())
    result = Confirmation.load(STORED / "confirm.json")
    assert result.to_dict() == {"groundfault_confirmation": 1, "grader": None, **data}
    assert (result.confirmed, result.survivors[0].name) == (("German",), "German")


def test_what_a_page_needs_is_typed():
    certificate = Certificate.load(STORED / "certificate.json")
    pool = "failure mode found in this pool of 100 cases"
    assert certificate.sentence.startswith(f"{pool}: counted: domain=tables")
    assert (certificate.lowest_group.group, dict(certificate.left_out)) == ("domain=tables", {})
    path = certificate.wealth_path
    assert (path[0].step, path[0].model, path[-1].step) == (0, 0.0, 12)
    assert path[1].model == certificate.rounds[0].log_e[0]
    assert len(certificate.unlabelled) == 100 - 12
    whole = certificate.groups[0]
    assert (whole.group, whole.labelled, whole.errors, whole.mean) == ("all cases", 12, 4.0, 8 / 12)
    # 8 passes and 4 failures of 100 cases are known
    assert (whole.lowest, whole.highest) == (0.08, pytest.approx(0.96))


def test_the_labels_of_a_panel_are_counted_by_person():
    certificate = Certificate.load(STORED / "panel.certificate.json")
    assert certificate.judgements == len(certificate.reviews) > certificate.labelled


@pytest.mark.parametrize("kind", [Certificate, Confirmation])
def test_a_later_layout_is_refused(kind):
    file_name = "certificate.json" if kind is Certificate else "confirm.json"
    data = json.loads((STORED / file_name).read_text())
    key = f"groundfault_{kind.__name__.lower()}"
    with pytest.raises(InputError, match="install a newer one"):
        kind.from_dict({**data, key: 3})
    with pytest.raises(InputError, match="unknown field `surprise`"):
        kind.from_dict({**data, "surprise": 1})


@pytest.mark.parametrize("change", [{"verdict": "fine"}, {"rounds": None}, {"labelled": "six"}])
def test_what_is_no_certificate_is_refused(change):
    data = json.loads((STORED / "certificate.json").read_text())
    with pytest.raises(InputError, match="not a certificate of a sequential audit"):
        Certificate.from_dict({**data, **change})


def test_settings_in_a_certificate_are_those_of_a_plan():
    settings = Certificate.load(STORED / "certificate.json").plan
    assert settings.to_plan() == PLAN
    assert settings.__struct_fields__ == tuple(replace(PLAN, model="a", prior={"a": 0.1}).settings)
