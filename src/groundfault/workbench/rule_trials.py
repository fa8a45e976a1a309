"""Rules that a person tries by hand: each is recorded, and may be judged on the holdout once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from groundfault.auditing.evidence_again import read_evidence_again, select_audited
from groundfault.auditing.flow import audit
from groundfault.base.holdout_events import TRIED
from groundfault.core.candidate import Candidate, Library
from groundfault.core.rules import Rule
from groundfault.errors import InputError, LedgerError, PlanError, RuleError
from groundfault.workbench.subjects import read_subject

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from groundfault.auditing.report import Report
    from groundfault.workbench.opened_report import OpenedReport

_MAX_FILTERS = 20
"""At once: each is a clause of one rule, and an address has its limit."""


class RowSelection(NamedTuple):
    """The selection of an address: a rule and further conditions, in SQL; empty if absent."""

    rule: str
    where: tuple[str, ...] = ()

    @classmethod
    def of(cls, bench: OpenedReport, params: QueryParams) -> RowSelection:
        """Read the parameters of an address, or of a form.

        Raises
        ------
        InputError, RuleError
            If the mode or finding does not exist, or a rule cannot be read.
        """
        where = tuple(dict.fromkeys(filter(None, map(str.strip, params.getlist("where")))))
        if len(where) > _MAX_FILTERS:
            raise InputError(f"at most {_MAX_FILTERS} filters at once")
        return cls(read_subject(bench.audited, params).rule, where)

    @property
    def joined(self) -> str:
        """Return the whole selection as one rule; an empty text if it has no condition."""
        conditions = (*([self.rule] if self.rule else []), *self.where)
        return " AND ".join(f"({condition})" for condition in conditions)


def count_untried(
    bench: OpenedReport, chosen: RowSelection
) -> dict[str, dict[str, Sequence[float]]]:
    """Count the new rules of a selection: rules that neither report nor ledger has.

    Filters show how many rows fail, as a rule does, so they count as rules.

    Parameters
    ----------
    bench : OpenedReport
        With a report.
    chosen : RowSelection

    Returns
    -------
    dict of str to dict of str to sequence of float
        By rule in its normal form, and outcome: units and failures on and off the rule; rows, where
        there are filters. Empty where there is no ledger to record them in.

    Raises
    ------
    RuleError, InputError
        If a rule cannot be read or evaluated.
    """
    state, untried = bench.state, dict[str, dict[str, Sequence[float]]]()
    assert state is not None
    if bench.ledger is None:
        return untried
    known = list_rules(bench.audited) | set(state.rules)
    if chosen.rule and (sql := Rule.parse(chosen.rule).sql) not in known:
        untried[sql] = {
            outcome: [cell.on, cell.on_errors, cell.off, cell.off_errors]
            for outcome, cell in bench.index.count(chosen.rule).items()
        }
    if chosen.where and (sql := Rule.parse(chosen.joined).sql) not in known:
        inside, fails = bench.index.filter(chosen.where), bench.rows.fails
        if chosen.rule:
            inside = inside & bench.index.holds(chosen.rule)
        counts = [inside.sum(), fails[inside].sum(), (~inside).sum(), fails[~inside].sum()]
        untried[sql] = {"": list(map(int, counts))}
    return untried


def try_rules(bench: OpenedReport, params: QueryParams) -> None:
    """Record the new rules of a form with their counts, if all of them can be evaluated.

    Raises
    ------
    InputError
        If the ledger cannot be written to.
    """
    try:
        untried = count_untried(bench, RowSelection.of(bench, params))
    except (RuleError, InputError):
        return  # the page says what is wrong
    hashes = bench.audited.hashes
    names = ("evidence", "outcome", "split", "plan")
    for rule, counts in untried.items():
        assert bench.ledger is not None
        body = {name: getattr(hashes, name) for name in names}
        bench.ledger.append(TRIED, {**body, "rule": rule, "counts": counts, "via": "web"})


def freeze_rules(bench: OpenedReport, rules: Sequence[str]) -> Library:
    """Return rules that were tried here, as candidates that were mined from the discovery outcomes.

    Parameters
    ----------
    bench : OpenedReport
        With a report.
    rules : sequence of str
        In SQL.

    Raises
    ------
    InputError
        If no rule is named, or a named one was not tried.
    """
    state, report = bench.state, bench.audited
    assert state is not None
    parsed = [Rule.parse(rule).sql for rule in rules]
    if not parsed:
        raise InputError("no rule is selected: try and tick at least one rule first")
    for rule in parsed:
        if rule not in state.rules:
            raise InputError(f"the rule {rule} was not tried here; count it first")
    origin = f"{report.hashes.outcome[:16]}/{report.hashes.split[:16]}"
    return Library.of(
        Candidate(
            name=rule,
            rule=rule,
            missing="off",
            source="tried after an opening" if rule in state.late_rules else "tried by hand",
            mined=origin,
        )
        for rule in parsed
    )


def list_rules(report: Report) -> frozenset[str]:
    """Return the rules that a report is about, in their normal form."""
    alternatives = (other.rule for mode in report.modes for other in mode.alternatives)
    modes = (mode.rule for mode in report.modes)
    rules = (candidate.rule for candidate in report.library)
    return _normalise((*modes, *alternatives, *rules))


@cache
def _normalise(rules: tuple[str, ...]) -> frozenset[str]:
    return frozenset(Rule.parse(rule).sql for rule in rules)


PREFIX = 8
"""Characters of the plan's seal that are typed: as many as the top bar shows."""


def spend_holdout(bench: OpenedReport, rules: Sequence[str], seal: str, reason: str) -> None:
    """Judge rules that were tried here on the holdout, and write the report beside the first.

    Parameters
    ----------
    bench : OpenedReport
    rules : sequence of str
        In SQL, each tried before.
    seal : str
        The typed text: the beginning of the seal of the report's plan.
    reason : str
        Why the outcomes are looked at again; it stays in every report.

    Raises
    ------
    InputError, PlanError
        If the report has no holdout, no rule is named or tried, or the seal differs; the holdout
        stays closed then.
    LedgerError
        If there is no ledger, or no reason: the report was the first look.
    """
    report, state = bench.audited, bench.state
    assert state is not None
    if not state.holds_out:
        raise PlanError(
            "the judge of this report has no holdout to open; audit again with --judge split-holm"
        )
    if bench.ledger is None:
        raise LedgerError("without a ledger no holdout is opened here: start without --no-ledger")
    if not reason.strip():
        raise LedgerError("these outcomes were looked at before: give the reason to look again")
    if seal.strip().lower() != state.seal[:PREFIX]:
        raise InputError(f"type the first {PREFIX} characters of the plan's seal to go on")
    library = freeze_rules(bench, rules)
    place = bench.folder.with_name(f"{bench.folder.name}-{library.hash[:PREFIX]}")
    if place.exists():
        raise InputError(f"{place} is there already: the same rules were tested before")
    evidence = read_evidence_again(report.data, bench.folder, bench.evidence)
    result = audit(
        select_audited(evidence, report.manifest),
        report.plan.to_plan(),
        library,
        compare=report.manifest.compare,
        ledger=bench.ledger.through("web"),
        reopen=reason.strip(),
        modes=False,
    )
    result.write(place)
    bench.spendings[place] = result
