"""What verifying comes to: a list of checks, each with its name, its status and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_MAX_DIFFERENCES = 100

CheckStatus = Literal["passed", "failed", "unchecked", "waived"]
VerificationVerdict = Literal["reproduces", "does NOT reproduce", "cannot be verified"]


@dataclass(frozen=True)
class VerificationCheck:
    """One check of a stored result.

    Attributes
    ----------
    name : str
        What was checked, in a word, such as ``ledger``.
    status : {"passed", "failed", "unchecked", "waived"}
        ``unchecked`` where what it takes is not there; ``waived`` where the caller did without.
    detail : str
        What came out, in a sentence.
    differences : tuple of str
        What differs, each as "where: stated, recomputed".
    """

    name: str
    status: CheckStatus
    detail: str
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verification:
    """Whether a stored result can be relied on, and what speaks for it.

    Attributes
    ----------
    checks : tuple of VerificationCheck
        In the order in which they were made.
    """

    checks: tuple[VerificationCheck, ...]

    @property
    def verdict(self) -> VerificationVerdict:
        """One failed check contradicts the result; one that could not be made leaves it open."""
        statuses = {check.status for check in self.checks}
        if "failed" in statuses:
            return "does NOT reproduce"
        return "cannot be verified" if "unchecked" in statuses else "reproduces"

    @property
    def reproduces(self) -> bool:
        """Whether every check passed, but for those that the caller did without."""
        return self.verdict == "reproduces"

    @property
    def differences(self) -> tuple[str, ...]:
        """What differs, over all checks."""
        return tuple(line for check in self.checks for line in check.differences)

    @property
    def ledger(self) -> str:
        """What the check of the ledger came to, in a sentence; empty where there was none."""
        return next((check.detail for check in self.checks if check.name == "ledger"), "")


def judge_differences(differences: Sequence[str], what: str) -> VerificationCheck:
    """The check of a recomputation.

    Parameters
    ----------
    differences : sequence of str
        Each as "where: stated, recomputed"; the first hundred are kept.
    what : str
        What holds where there are none, in a sentence.
    """
    if not differences:
        return VerificationCheck("recomputation", "passed", what)
    count = f"{len(differences)} value{' differs' if len(differences) == 1 else 's differ'}"
    return VerificationCheck(
        "recomputation",
        "failed",
        f"{count} from what was recomputed",
        tuple(differences[:_MAX_DIFFERENCES]),
    )
