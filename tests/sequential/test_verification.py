"""A certificate against the ledger of its audit, where the ledger cannot say everything."""

from __future__ import annotations

from pathlib import Path

from groundfault.base.ledger import Ledger
from groundfault.sequential import Pool, SequentialAudit, verify_certificate
from groundfault.sequential.verification import check_record, read_key


def test_a_ledger_that_is_gone_leaves_it_open_and_none_may_be_waived(tmp_path: Path) -> None:
    pool = Pool.from_arrays(["a", "b", "c", "d"], scores=[1.0, 0.0, 1.0, 1.0])
    audit = SequentialAudit(pool, threshold=0.5, burn_in=2, ledger=tmp_path / "audit.db")
    audit.tell(audit.ask(), 1.0)
    certificate = audit.certificate()
    assert verify_certificate(certificate, ledger=tmp_path / "audit.db").reproduces
    gone = verify_certificate(certificate, ledger=tmp_path / "gone.db")
    assert gone.checks[1].status == "unchecked", "whoever names one does not do without"
    assert check_record(certificate, None, None, "waived").status == "waived"
    assert set(read_key(Ledger(tmp_path / "audit.db"), certificate.seal)) == {"hash", "key"}
    assert read_key(Ledger(tmp_path / "audit.db"), "0" * 64) == {}
