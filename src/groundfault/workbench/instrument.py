"""The instrument: which findings are about how answers were given, read and scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.core.column_names import measures_answer
from groundfault.core.rules import Rule
from groundfault.render.audit_groups import INSTRUMENT

if TYPE_CHECKING:
    from groundfault.auditing.report import Report
    from groundfault.core.finding import Finding


def concerns_instrument(report: Report, finding: Finding) -> bool:
    """Whether a finding is about the instrument, so that the scorer or the prompt may be at fault.

    It is if the finder of such properties proposed it, or if its rule reads a column that was
    measured with the answer: one that ``--instrument`` named, or known by its name, such as
    ``finish_reason`` or ``answer_parsed``.

    Parameters
    ----------
    report : Report
    finding : Finding
        Of the report.
    """
    roles = report.manifest.roles
    return finding.source == INSTRUMENT or any(
        column in roles.instrument
        or (measures_answer(column) and column not in roles.allow_leakage)
        for column in Rule.parse(finding.rule).columns
    )
