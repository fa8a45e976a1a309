"""The form of report.json, version 2: every section and field, typed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, Literal, get_type_hints

from msgspec import Struct, defstruct, json

from groundfault.base.holdout_events import Opening
from groundfault.core.finding import Finding
from groundfault.core.plan import ALWAYS_SEALED, Plan
from groundfault.modes.mode import EVERY_MODEL, Mode, ModeExample, ModeSearch
from groundfault.readers.account import Account
from groundfault.transcripts.judging import Announcement, Behaviour, RunExcerpt, TranscriptSearch

SCHEMA_VERSION: Final = 2
"""Rises when a field goes away or changes its meaning; `read_report` reads older versions."""


def to_plain(value: Struct) -> dict[str, Any]:
    """Return a section as dicts, lists, words and numbers, as JSON has them."""
    content: dict[str, object] = json.decode(json.encode(value))
    return content


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a report: its fields cannot be changed, and unknown fields are an error."""


class Preview(Struct, frozen=True, kw_only=True):
    """A part of the output of ``check --json`` and ``slices --json``."""


def _list_plan_fields() -> list[tuple[str, object] | tuple[str, object, object]]:
    """Return name and type of each setting of a plan; its default if a seal may leave it out."""
    # numbers are stored as the decimals they are written as, and a judge by its name
    hints = get_type_hints(Plan, localns={"Number": str, "NamedJudge": str})
    return [
        (f.name, hints[f.name]) if f.name in ALWAYS_SEALED else (f.name, hints[f.name], f.default)
        for f in fields(Plan)
    ]


_StoredPlan: Any = defstruct(
    "_StoredPlan",
    _list_plan_fields(),
    bases=(_Section,),
    frozen=True,
    kw_only=True,
    # as `Plan.settings` does: plans of 0.1.0 keep their settings, and so their seals
    omit_defaults=True,
)


class PlanSettings(_StoredPlan):  # type: ignore[misc]
    """A plan with the judge's own settings filled in; exact decimals are strings.

    It has the fields of `Plan`. The seal is the hash of these settings as JSON; `to_plan` makes a
    plan of the same seal.
    """

    def to_plan(self) -> Plan:
        """Return the plan of these settings."""
        return Plan.from_settings(to_plain(self))


class CandidateCounts(_Section, frozen=True, kw_only=True):
    """The numbers of candidates and hypotheses.

    Attributes
    ----------
    size : int
        Candidates, declared or proposed.
    hypotheses : int
        Candidates times outcomes; as many as there are findings.
    tested : int
        Hypotheses that are not untestable.
    distinct : int
        Hypotheses with duplicates and complements counted once, if the judge does so.
    effective : float or None
        Effective number of independent tests of the candidates; None for more than 1,000.
    sources : dict of str to int
        Candidates from each source.
    """

    size: int
    hypotheses: int
    tested: int
    distinct: int
    effective: float | None
    sources: dict[str, int]


class FloorPoint(_Section, frozen=True, kw_only=True):
    """One threshold of the curve for the decoy floor."""

    threshold: float
    real: int
    decoy: float
    fdp: float


class DecoyFloor(_Section, frozen=True, kw_only=True):
    """The decoy floor and its curve; empty for judges without one.

    Attributes
    ----------
    threshold : float or None
        None if no threshold is low enough, and for judges without a floor.
    fdp : float or None
        Estimated false-discovery proportion at the floor.
    inclusive : bool
        Whether an effect equal to the floor survives.
    curve : tuple of FloorPoint
        In descending order of threshold.
    """

    threshold: float | None
    fdp: float | None
    inclusive: bool
    curve: tuple[FloorPoint, ...]


class PowerSummary(_Section, frozen=True, kw_only=True):
    """The least lift found with this power, at each prevalence of a slice."""

    power: float
    prevalence: float
    minimum_detectable_lift: dict[str, float | None]


class SurvivorLifts(_Section, frozen=True, kw_only=True):
    """Mean size of the lifts that survived the screen: the shrinkage is the winner's curse."""

    discovery: float
    holdout: float | None


class OverallChange(_Section, frozen=True, kw_only=True):
    """The change from the first of two models to the second, over all units.

    Attributes
    ----------
    n : int
        Units that both models were scored on.
    error_rates : pair of float
        Mean loss of each model on these.
    change : float
        Mean loss of the second minus mean loss of the first.
    interval : pair of float
        At level 1 - alpha.
    p : float
        p-value for equal models, from swapping them within units: for the direction of the change,
        adjusted for all rules tested with it; two-sided and unadjusted without a search for failure
        modes.
    confirmed : bool
        Whether ``p`` is at most alpha.
    """

    n: int
    error_rates: tuple[float, float]
    change: float
    interval: tuple[float, float]
    p: float
    confirmed: bool


class Baselines(_Section, frozen=True, kw_only=True):
    """Names of the candidates that weaker rules would have reported."""

    fixed_lift: tuple[str, ...]
    top_k: tuple[str, ...]
    decoy_only: tuple[str, ...]
    full: tuple[str, ...]
    survivor_mean_abs_lift: SurvivorLifts | None


class Robustness(_Section, frozen=True, kw_only=True):
    """Random splits that the rule was repeated over, and the share that confirmed anything."""

    splits: int
    nonempty: float


class RecordedOpening(Opening, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The opening of the holdout that the ledger recorded, with the sentence that was printed."""

    sentence: str


class DecidingColumn(_Section, frozen=True, kw_only=True):
    """A column that decides the outcome: a failure mode, or an undeclared consequence of failing.

    Attributes
    ----------
    column : str
    share : float
        Share of the rarer outcome that it predicts: at least 0.95.
    modes : tuple of Mode
        The rules over this column alone, without examples; empty without rules or without a search.
    """

    column: str
    share: float
    modes: tuple[Mode, ...] = ()


class ReportHashes(_Section, frozen=True, kw_only=True):
    """SHA-256 of the audited evidence and the decisions."""

    evidence: str
    outcome: str
    library: str
    plan: str
    split: str


class ColumnRoles(_Section, frozen=True, kw_only=True):
    """The roles of the columns of the evidence; see `groundfault.core.roles.Roles`."""

    outcome: str
    id: str | None
    model: str | None
    repeat: str | None
    group: str | None
    split: str | None
    status: str | None
    positive_is_good: bool
    null_outcome: str | None
    ignore: tuple[str, ...]
    instrument: tuple[str, ...]
    post_outcome: tuple[str, ...]
    allow_leakage: tuple[str, ...]
    numbered: bool
    count_as_failed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    scale: tuple[float, float] | None = None
    passes: tuple[str, ...] = ()
    during: tuple[str, ...] = ()


class LogReading(_Section, frozen=True, kw_only=True):
    """How logs were read: the arguments of ``Evidence.from_logs``."""

    reader: str | None = None
    map: dict[str, Any] | None = None
    scorer: tuple[str, ...] | None = None
    disagreement: tuple[str, str] | None = None
    scale: tuple[float, float] | None = None
    conflicts: str = "error"


class Derivation(_Section, frozen=True, kw_only=True):
    """The making of the audited evidence, if it was not read from its sources directly.

    Attributes
    ----------
    kind : str
        A key of `groundfault.auditing.verification.DERIVATIONS`, to make it again.
    settings : dict of str to str
        Its settings.
    """

    kind: str
    settings: dict[str, str]


class UnitRecord(_Section, frozen=True, kw_only=True):
    """The loss of each unit, so that a later report can be compared with this one.

    Bytes are in base64. See `groundfault.auditing.changes`, which writes and reads it.

    Attributes
    ----------
    names : str
        The first 8 bytes of the SHA-256 of each unit's name, sorted by name; empty without an id
        column.
    losses : dict of str to str
        For each outcome the losses of the units, little-endian 4-byte floats; NaN is not scored.
    findings : dict of str to str
        For each confirmed finding, by `Finding.key`, the units on the side of more failures, a bit
        each, the lowest first.
    modes : tuple of str
        For each failure mode the units inside its rule.
    """

    names: str
    losses: dict[str, str]
    findings: dict[str, str]
    modes: tuple[str, ...]


class Manifest(_Section, frozen=True, kw_only=True):
    """The source of the evidence, and the program that computed the report.

    Attributes
    ----------
    where : str or None
        The rule that selected the rows; None for all.
    own_rules : tuple of str
        Names of candidates that the search for failure modes tested with its own rules.
    grading : str
        How outcomes in words were read, such as "pass as 1, fail as 0, and 1 is a pass"; empty for
        numbers.
    settings_file : str
        The settings that a command took from a settings file, after its name; else empty.
    """

    sources: tuple[str, ...]
    roles: ColumnRoles
    reading: LogReading | None
    account: Account | None
    models: tuple[str, ...] | None
    compare: tuple[str, str] | None
    derivation: Derivation | None
    where: str | None = None
    own_rules: tuple[str, ...] = ()
    grading: str = ""
    settings_file: str = ""
    python: str
    numpy: str
    polars: str


class GraderEvidence(_Section, frozen=True, kw_only=True):
    """A confirmed finding about answers that is evidence for a fault of the grader.

    Attributes
    ----------
    name, outcome : str
        Name and outcome of the finding.
    basis : str
        Words for these answers in a sentence.
    lift : float or None
        Lift over all units.
    lift_within : float or None
        Lift among units of similar difficulty; None if the answers are evidence by themselves.
    p : float or None
        Adjusted p-value of ``lift_within``.
    """

    name: str
    outcome: str
    basis: str
    lift: float | None
    lift_within: float | None = None
    p: float | None = None


class ReportData(_Section, frozen=True, kw_only=True):
    """The content of report.json.

    Attributes
    ----------
    n, n_discovery, n_holdout : int
        Units: examples, or groups if there is a group column; in all and in each part.
    rows : int
        Observations.
    judge_reason : str
        Reason for the judge, if the plan left it open; else empty.
    outcomes : tuple of str
        Models; one empty name for a single outcome, and for the change between two models.
    error_rate : float or None
        Mean loss over scored units and outcomes; in a comparison, the second model's.
        None if no unit was scored.
    left_out : tuple of str
        Optional steps that failed, such as the check of the grader, and why; the rest is valid.
    averaged : bool
        Whether units have the mean of answers that pass or fail: of copies, repeats or a group.
    uniform : str
        A sentence if all outcomes are equal, such as a run without a failure; else empty.
    hints : tuple of str
        Points to check before you believe the verdicts.
    doubts : int
        Number of hints, from the first on, that question the audit as a whole.
    unused : dict of str to tuple of str
        Columns that no rule names, by reason (the end of a sentence). Without a search for failure
        modes, columns that also no candidate reads.
    sample : tuple of ModeExample
        Typical failures, if no mode has examples.
    statuses, ineligible : dict of str to int
        Rows of each status; hypotheses with each reason code.
    counted_as_failed : dict of str to int
        Unscored rows, by status, that count as failures because the caller said so. They are
        included in the scored rows.
    minimum_detectable_lift : float or None
        Least lift found with 80 % power at prevalence 30 %; None if no lift is found.
    baselines : Baselines or None
        None for judges without a holdout.
    robustness : Robustness or None
        None if the rule was not repeated.
    ledger : RecordedOpening or None
        None if the opening was not recorded.
    examples : dict of str to tuple of str
        Ids of up to five failed units of each confirmed finding, by `Finding.key`.
    deciding : tuple of DecidingColumn or None
        Columns that no rule names because they decide the outcome; a person has to say why. None in
        comparisons, and in earlier reports.
    modes : tuple of Mode
        The failure modes of each outcome, in order.
    mode_search : ModeSearch or None
        The extent of their search; None without a search.
    behaviours : tuple of Behaviour
        Behaviours in failing runs of agents, the most certain first.
    announcements : tuple of Announcement
        Behaviours that announce failure in runs that still go on.
    transcripts : TranscriptSearch or None
        The search of the runs; None if the evidence has no runs.
    excerpts : tuple of RunExcerpt
        The decisive turn of a failing and of a passing run of the first behaviours.
    units : UnitRecord or None
        None in comparisons, for more units and outcomes than a report should hold, and in earlier
        reports.
    change : OverallChange or None
        The overall change in a comparison; else None, also in earlier reports of two outcomes.
    parts : str
        A sentence if benchmarks or tasks in one table fail very differently; else empty.
    grader : tuple of GraderEvidence, or None
        Evidence for a fault of the grader; None in older reports, which did not look for it.
    findings : tuple of Finding
        One for each candidate and outcome: confirmed first, then by size of discovery lift.
    """

    schema_version: Literal[2] = SCHEMA_VERSION
    groundfault_version: str
    n: int
    n_discovery: int
    n_holdout: int
    rows: int
    unit: Literal["example", "group"]
    outcomes: tuple[str, ...]
    error_rate: float | None
    statuses: dict[str, int]
    judge: str
    judge_reason: str = ""
    guarantee: str
    plan: PlanSettings
    candidates: CandidateCounts
    ineligible: dict[str, int]
    floor: DecoyFloor
    minimum_detectable_lift: float | None
    power: PowerSummary
    conclusion: str
    baselines: Baselines | None
    robustness: Robustness | None
    ledger: RecordedOpening | None
    hints: tuple[str, ...]
    doubts: int = 0
    examples: dict[str, tuple[str, ...]]
    hashes: ReportHashes
    manifest: Manifest
    modes: tuple[Mode, ...] = ()
    mode_search: ModeSearch | None = None
    change: OverallChange | None = None
    parts: str = ""
    counted_as_failed: dict[str, int] = {}
    units: UnitRecord | None = None
    grader: tuple[GraderEvidence, ...] | None = None
    deciding: tuple[DecidingColumn, ...] | None = None
    left_out: tuple[str, ...] = ()
    uniform: str = ""
    behaviours: tuple[Behaviour, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    transcripts: TranscriptSearch | None = None
    excerpts: tuple[RunExcerpt, ...] = ()
    averaged: bool = False
    unused: dict[str, tuple[str, ...]] = {}
    sample: tuple[ModeExample, ...] = ()
    findings: tuple[Finding, ...]

    @property
    def is_graded(self) -> bool:
        """Return whether losses are graded, judged by their sums: a rate is then a mean loss."""
        cells = [cell for f in self.findings for cell in (f.discovery, f.full)]
        sums = [errors for cell in cells for errors in (cell.on_errors, cell.off_errors)]
        sums += [one.errors for one in self.modes if one.outcome != EVERY_MODEL]
        return not self.averaged and any(errors % 1 for errors in sums)
