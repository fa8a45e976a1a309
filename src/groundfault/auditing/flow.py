"""The flow of an audit: evidence, frozen candidates, sealed plan, one opening, report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from groundfault.auditing.assemble import assemble
from groundfault.auditing.counted_audit import CountedAudit
from groundfault.auditing.failure_modes import name_modes
from groundfault.auditing.grouped_evidence import open_units
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.messages import spend_level
from groundfault.auditing.preparation import list_finders, prepare, require_counts_enough
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.auditing.report_examples import choose_failures
from groundfault.auditing.report_schema import DecidingColumn, ReportHashes
from groundfault.auditing.results import AuditResults, NamedModes, confirmation_frequency
from groundfault.base.ledgers import find_ledger
from groundfault.base.long_work import Progress, listener
from groundfault.core.candidate import Candidate
from groundfault.core.column_meaning import has_transcripts
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.rules import Rule
from groundfault.core.status import Status
from groundfault.errors import InputError, PlanError, attempt
from groundfault.finders import Finder
from groundfault.transcripts.judging import JudgedTranscripts, judge_transcripts

if TYPE_CHECKING:
    from groundfault.base.holdout_events import Opening
    from groundfault.base.ledger import Ledger
    from groundfault.base.ledgers import LedgerChoice

_MAX_SPLITS = 10_000
"""Most splits of the repeats: verifying a report repeats all of them."""


def audit(
    evidence: Evidence | LazyEvidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[str | Finder] | None = None,
    compare: tuple[str, str] | None = None,
    ledger: LedgerChoice = True,
    reopen: str | None = None,
    robustness: int = 0,
    jobs: int = 1,
    modes: bool = True,
    texts: bool = True,
    progress: Progress | None = None,
) -> Report:
    """Name the failure modes, and test which explanations of the failures beat chance.

    Parameters
    ----------
    evidence : Evidence or LazyEvidence
        The engine of lazy evidence counts rows, and only a sample is read: comparisons and repeats
        over splits are not possible.
    plan : Plan, optional
        All decisions made in advance. The default plan tests candidates on all units if they were
        proposed without a look at outcomes, and on a holdout otherwise.
    candidates : iterable of Candidate, optional
        Rules to judge. Without candidates and finders, the default finders propose.
    finders : sequence of finder or str, optional
        Proposers, by name or ready made.
    compare : pair of str, optional
        Judge changes from the first model to the second, example by example, instead of the
        failures of one. Without a common example, groups of similar examples are compared.
    ledger : Ledger, path, URL or bool, optional
        Record of the look at the outcomes. True is the place that $GROUNDFAULT_LEDGER names, else
        groundfault-ledger.db in the current folder. With False or None there is no record, and the
        report says so.
    reopen : str, optional
        Reason for looking again, in another way, at outcomes that were looked at before.
    robustness : int
        Number of random splits to repeat the whole rule over; the report says how often each
        candidate is confirmed.
    jobs : int
        Processes for the repeats; the answer does not depend on it.
    modes : bool
        Whether to look for failure modes, on all units. If not, only the judge sees held-out units.
        In a comparison they are modes of the change.
    texts : bool
        Whether the report shows the texts of the modes' examples; their ids stay.
    progress : callable, optional
        Called with a message before each step.

    Returns
    -------
    Report

    Raises
    ------
    InputError, RuleError, PlanError
        If an argument cannot be used; the ledger stays unchanged.
    LedgerError
        If the outcomes were looked at before in another way and no reason is given.

    Examples
    --------
    >>> import groundfault
    >>> import polars
    >>> table = polars.DataFrame({"lang": ["de", "en"] * 50, "error": [1, 0, 0, 0] * 25})
    >>> evidence = groundfault.Evidence.from_table(table, outcome="error")
    >>> [finding.name for finding in groundfault.audit(evidence).confirmed]
    ['lang = de']
    """
    if not isinstance(evidence, Evidence | LazyEvidence):
        raise InputError(
            f"an audit takes evidence, not a {type(evidence).__name__}: make evidence by "
            "Evidence.from_table(table, id=..., outcome=...) or Evidence.from_logs"
        )
    report_progress = listener(progress)
    candidates = None if candidates is None else list(candidates)
    opened: AbstractContextManager[Evidence | LazyEvidence] = nullcontext(evidence)
    if isinstance(evidence, LazyEvidence):
        # evidence that cannot be judged fails here, before groups are made
        named = list_finders(candidates, finders)
        require_counts_enough(
            evidence, plan, candidates or (), named, compare=compare, robustness=robustness
        )
        opened = open_units(evidence, progress)
    with opened as units:
        report_progress("proposing candidates")
        prepared = prepare(
            units, plan, candidates, finders=finders, compare=compare, progress=progress
        )
        results = judge_audit(
            prepared,
            ledger=ledger,
            reopen=reopen,
            robustness=robustness,
            jobs=jobs,
            modes=modes,
            texts=texts,
            progress=progress,
        )
        report_progress("writing the report")
        with _forgive_crash(results.witness, results.opening):
            return assemble(results)


def judge_audit(
    prepared: PreparedAudit,
    *,
    ledger: LedgerChoice = True,
    reopen: str | None = None,
    robustness: int = 0,
    jobs: int = 1,
    modes: bool = True,
    texts: bool = True,
    progress: Progress | None = None,
) -> AuditResults:
    """Open the outcomes of a prepared audit, and judge.

    Parameters
    ----------
    prepared : PreparedAudit
    ledger, reopen, robustness, jobs, modes, texts, progress
        As in `audit`.

    Raises
    ------
    RuleError, LedgerError
        As `audit`.
    """
    if not 0 <= robustness <= _MAX_SPLITS:
        raise PlanError(f"robustness must be 0 to {_MAX_SPLITS:,} splits, not {robustness:,}")
    report_progress = listener(progress)
    size = len(prepared.library)
    report_progress(f"applying {size} candidates")
    # candidates that cannot be applied fail here, before the opening is recorded
    prepared.try_rules(modes=modes)
    # recorded before a held-out loss is read: an audit killed after this has used its holdout
    book = None if ledger is None else find_ledger(ledger)
    hashes = ReportHashes(
        evidence=prepared.source.hash,
        outcome=prepared.source.outcome_hash,
        library=prepared.library.hash,
        plan=prepared.plan.seal(),
        split=prepared.split_hash,
    )
    opening = None if book is None else _open(prepared, hashes, book, reopen, modes=modes)
    with _forgive_crash(book, opening):
        report_progress(f"judging {size} candidates by {prepared.judge.name}")
        losses = prepared.losses()
        results = AuditResults(
            prepared,
            losses,
            *prepared.judge_losses(losses),
            hashes=hashes,
            statuses=prepared.statuses,
            mined=frozenset(c.name for c in prepared.library if prepared.is_mined_here(c)),
            opening=opening,
            witness=book,
        )
        if any(n for status, n in results.statuses.items() if status != Status.SCORED):
            # if both verdicts agree with the scored rows' verdict, it does not depend on the others
            extremes = {
                name: prepared.judge_losses(prepared.losses(unscored))[0]
                for name, unscored in (("all_failed", 1), ("all_passed", 0))
            }
            results = replace(results, sensitivity=extremes)
        if robustness:
            report_progress(f"repeating over {robustness} splits")
            frequency = confirmation_frequency(
                prepared.judge, prepared.plan, results.full, robustness, jobs
            )
            results = replace(results, frequency=frequency)
        if modes:
            report_progress("looking for failure modes")
            search = partial(name_modes, texts=texts, progress=progress)
            step = "the search for failure modes"
            named = attempt(prepared.failures, step, NamedModes(), search, prepared, losses)
            results = replace(results, named=named)
            told = JudgedTranscripts()
            is_told = not (prepared.compare or isinstance(prepared, CountedAudit))
            runs = prepared.evidence
            if is_told and (runs.roles.during or has_transcripts(runs.frame)):
                step = "the search of transcripts"
                judge = partial(_judge_transcripts, texts=texts)
                told = attempt(prepared.failures, step, told, judge, prepared, named)
            results = replace(results, told=told)
        elif not prepared.compare:
            deciding = (DecidingColumn(column=c, share=s) for c, s in prepared.deciding.items())
            results = replace(results, named=NamedModes(deciding=tuple(deciding)))
        if texts and not results.named.modes and (modes or not prepared.has_holdout):
            choose, step = partial(choose_failures, prepared, losses), "the examples of failures"
            results = replace(results, sample=attempt(prepared.failures, step, (), choose))
    return results


def _judge_transcripts(
    prepared: PreparedAudit, named: NamedModes, *, texts: bool
) -> JudgedTranscripts:
    """Judge behaviours of runs, and their frequency inside each failure mode."""
    evidence = prepared.evidence
    rules = {mode.rule: Rule.parse(mode.rule) for mode in named.modes}
    inside = {sql: rule.holds(evidence.frame).to_numpy() for sql, rule in rules.items()}
    return judge_transcripts(evidence, float(prepared.plan.alpha), inside, texts=texts)


def _forgive_crash(book: Ledger | None, opening: Opening | None) -> AbstractContextManager[None]:
    """Record that an audit that ends without a report did not look at its outcomes."""
    return nullcontext() if book is None or opening is None else book.forgive_crash(opening)


def _open(
    prepared: PreparedAudit, hashes: ReportHashes, book: Ledger, reopen: str | None, *, modes: bool
) -> Opening:
    return book.open_holdout(
        **{f"{name}_hash": value for name, value in asdict(hashes).items()},
        reopen=reopen,
        holdout=prepared.has_holdout,
        all_outcomes=modes,
        compare=prepared.compare,
        rule=prepared.judge.name,
        level=spend_level(prepared.judge, prepared.plan),
        sample=prepared.sample_outcomes(),
        scope=_name_scope(prepared),
    )


def _name_scope(prepared: PreparedAudit) -> str:
    """Name the audited models and rows of the table."""
    evidence = prepared.evidence
    models = evidence.models if evidence.roles.model else ()
    return json.dumps([*models, evidence.selection or ""])
