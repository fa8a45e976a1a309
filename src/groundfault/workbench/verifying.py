"""Verification from the browser: every number computed again, in a process of its own."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from groundfault.auditing.verification import verify
from groundfault.case.verification import verify_case
from groundfault.errors import InputError

if TYPE_CHECKING:
    from groundfault.auditing.evidence_places import Places
    from groundfault.auditing.verification_result import Verification
    from groundfault.workbench.bench import Bench


def verify_bench(bench: Bench) -> Verification:
    """Do what ``groundfault verify`` does for what was opened.

    It reads held-out outcomes, so it runs in a process that ends with it, and tells what agrees and
    what does not.

    Parameters
    ----------
    bench : Bench
        With a report.

    Raises
    ------
    InputError
        If the evidence is not there.
    """
    folder = bench.place if bench.place.is_dir() else bench.place.parent
    case = bench.case.folder if bench.case else None
    arguments = folder, case, bench.evidence, bench.ledger.place if bench.ledger else None
    if not bench.apart:
        return _verify(*arguments)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        try:
            return pool.submit(_verify, *arguments).result()
        except BrokenProcessPool:
            raise InputError(
                "the process that computed the numbers was ended, perhaps for lack of memory"
            ) from None


def _verify(
    folder: Path, case: Path | None, evidence: Places | None, ledger: str | None
) -> Verification:
    if case is not None:
        return verify_case(case)
    return verify(folder, evidence=evidence, ledger=ledger or False)
