"""Describing: candidates in words, proposed by a language model and decided example by example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl

from groundfault.auditing.preparation import start_audit
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.run_texts import RunTexts
from groundfault.base.arrays import Bools, Places
from groundfault.base.long_work import Progress, listener, stream
from groundfault.core.candidate import DESCRIBED, Candidate, Library, unique_names
from groundfault.core.columns import match_attributes
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.rules import quote
from groundfault.descriptions.annotating import (
    MISSING,
    PERSON,
    DescriptionAgreement,
    DescriptionColumn,
    Marks,
    annotate,
    estimate_annotation,
    measure_agreement,
    read_sheet,
    show_texts,
    write_sheet,
)
from groundfault.descriptions.proposing import (
    ARMS,
    MAX_LENGTH,
    PROMPTS,
    DescribingCost,
    ExampleDescription,
    ProposingSettings,
    estimate_proposals,
    propose_descriptions,
)
from groundfault.errors import InputError, PlanError
from groundfault.finders.columns import select_texts
from groundfault.models.asking import AskOptions, CallOptions
from groundfault.models.budget import MAX_CALLS, CallBudget
from groundfault.models.record import Record
from groundfault.models.target import Target, get
from groundfault.transcripts.behaviours import add_flags

_RUN = "text of the run"
"""Column with the texts of runs while they are described; no rule reads it."""
_MAX_NAME = 60  # characters: a name fits a column of a table


@dataclass(frozen=True)
class Descriptions:
    """Descriptions as candidates, which still have to be judged.

    Attributes
    ----------
    library : Library
        Candidates to freeze and judge: ``groundfault audit --candidates``. The column of each
        candidate is a `groundfault.descriptions.DescriptionColumn`, which holds the decisions.
    columns : tuple of str
        Columns of an example that annotators saw.
    examples : int
        Distinct texts that were decided on.
    proposals, annotations, checks : dict
        Numbers of replies that were read, unparsed, refused or errors: for proposals in each arm,
        for annotations, and for the second annotator.
    calls : int
        Calls of this run, without recorded replies.
    marked : Evidence, optional
        For runs: the evidence with a column for each description, to audit. Columns of descriptions
        proposed from outcomes are missing on the discovery half, from which they were made.
    """

    library: Library
    columns: tuple[str, ...]
    examples: int
    proposals: dict[str, dict[str, int]]
    annotations: dict[str, int]
    checks: dict[str, int]
    calls: int
    marked: Evidence | None = None

    @property
    def rows(self) -> tuple[DescriptionColumn, ...]:
        """Return the column of each candidate, in the order of the library."""
        return tuple(
            c.fitted_column for c in self.library if isinstance(c.fitted_column, DescriptionColumn)
        )


@dataclass(frozen=True)
class DescribingTask:
    """Texts to show to models, fixed before the first call.

    Attributes
    ----------
    audit : PreparedAudit
    settings : ProposingSettings
    columns : tuple of str
        Columns in the texts.
    discovery : list of str
        Texts that the proposer may see; ``failing`` marks texts that fail more than on average.
    texts : list of str
        Texts to decide on; ``check_places`` marks texts to decide on again.
    own : list of ExampleDescription
        Descriptions that the user named.
    """

    audit: PreparedAudit
    settings: ProposingSettings
    columns: tuple[str, ...]
    discovery: list[str]
    failing: Bools
    texts: list[str]
    check_places: Places
    own: list[ExampleDescription]

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        plan: Plan | None = None,
        *,
        descriptions: Sequence[str] = (),
        settings: ProposingSettings | None = None,
        columns: Sequence[str] | None = None,
        sample: int | None = None,
        check: int = 100,
    ) -> DescribingTask:
        """Choose the texts to show; parameters as for `describe`.

        Raises
        ------
        InputError
            If no example fails more than another, or no column can be shown.
        PlanError
            If a setting is invalid.
        """
        settings = settings or ProposingSettings()
        if check < 1 or (sample is not None and sample < 1):
            raise PlanError("check (--check) and sample (--sample) must be at least 1")
        mining = bool({"outcomes", "shuffled"} & set(settings.arms))
        if settings.runs:
            told = pl.Series(_RUN, list(RunTexts(evidence, tuple(columns or ())).list_blind()))
            roles = replace(evidence.roles, during=(*evidence.roles.during, _RUN))
            evidence = replace(evidence, frame=evidence.frame.with_columns(told), roles=roles)
        audit = start_audit(evidence, plan, mining=mining)
        shown = (_RUN,) if settings.runs else choose_columns(audit, columns)
        seed = audit.plan.seed
        texts = _list_texts(audit.evidence, shown, sample, seed)
        rng = stream(seed, "texts to annotate again")
        places = np.sort(rng.choice(len(texts), min(check, len(texts)), replace=False))
        discovery, failing = _list_discovery(audit, shown, mining=mining)
        named = [ExampleDescription(text.strip(), ("named",)) for text in descriptions]
        return cls(audit, settings, shown, discovery, failing, texts, places, named)

    @property
    def part(self) -> list[str]:
        """Return the texts drawn to be decided on again."""
        return [self.texts[i] for i in self.check_places]

    def bound_cost(self, *, second: bool = False) -> DescribingCost:
        """Return an upper bound of the cost, for the most and longest descriptions allowed.

        Parameters
        ----------
        second : bool
            Whether a second model decides again on a part.
        """
        settings = self.settings
        longest = [
            ExampleDescription("x" * MAX_LENGTH, (arm,))
            for arm in settings.arms
            for _ in range(settings.rounds * settings.count)
        ]
        todo = [*longest, *self.own]
        part = self.part if second else []
        return DescribingCost(
            estimate_proposals(self.discovery, self.failing, settings, self.audit.plan.seed),
            estimate_annotation(self.texts, todo),
            estimate_annotation(part, todo),
            len(self.texts),
            len(part),
        )

    def mark(self, descriptions: Sequence[ExampleDescription], marks: Marks) -> Evidence:
        """Return the evidence with a column for each description of its runs."""
        evidence = self.audit.evidence
        places = {text: place for place, text in enumerate(self.texts)}
        rows = [places.get(text, len(places)) for text in evidence.frame[_RUN]]
        none = np.full((1, len(descriptions)), MISSING)
        values = np.concatenate([marks, none])[rows].astype(np.float64)
        values[values == MISSING] = np.nan
        owing = np.array([one.owes_outcomes for one in descriptions], dtype=np.bool_)
        values[np.ix_(self.audit.discovery_rows, owing)] = np.nan
        names = [f"{one.text[:_MAX_NAME]} ({', '.join(one.arms)})" for one in descriptions]
        kept = tuple(name for name in evidence.roles.during if name != _RUN)
        whole = replace(evidence, frame=evidence.frame.drop(_RUN))
        whole = replace(whole, roles=replace(evidence.roles, during=kept))
        return add_flags(whole, dict(zip(names, values.T, strict=True)))

    def propose(
        self, proposer: Target, budget: CallBudget
    ) -> tuple[list[ExampleDescription], dict[str, dict[str, int]]]:
        """Return descriptions of all arms and the user's own, and the account of the questions."""
        seed = self.audit.plan.seed
        shown = self.discovery, self.failing
        proposed, counts = propose_descriptions(*shown, proposer, budget, self.settings, seed)
        by_text = {one.text.casefold(): one for one in proposed}
        for named in self.own:
            # each once; one that was named too says so
            one = by_text.get(named.text.casefold(), named)
            arms = tuple(arm for arm in ARMS if arm in {*one.arms, *named.arms})
            by_text[one.text.casefold()] = replace(one, arms=arms)
        if not by_text:
            raise InputError(
                "no descriptions: no reply held a description, and you named no descriptions"
            )
        return list(by_text.values()), counts

    def check(
        self,
        descriptions: Sequence[ExampleDescription],
        marks: Marks,
        annotator: Target,
        by: Target | Marks | None,
        budget: CallBudget,
    ) -> tuple[Sequence[DescriptionAgreement | None], dict[str, int]]:
        """Return how often a second model, or a person's decisions, agree on a random part."""
        if by is None:
            return [None for _ in descriptions], {}
        seed, first = self.audit.plan.seed, marks[self.check_places]
        if isinstance(by, np.ndarray):
            return [*measure_agreement(first, by, PERSON, seed)], {}
        # the same model needs another question, or its record would repeat the first reply
        repeat = int(by.name == annotator.name)
        again = annotate(self.part, descriptions, by, budget, seed=seed, repeat=repeat)
        return [*measure_agreement(first, again.marks, by.name, seed)], again.replies


def describe(
    evidence: Evidence,
    model: str | Target,
    plan: Plan | None = None,
    *,
    annotator: str | Target | None = None,
    second: str | Target | None = None,
    sheet: str | Path | None = None,
    descriptions: Sequence[str] = (),
    settings: ProposingSettings | None = None,
    columns: Sequence[str] | None = None,
    sample: int | None = None,
    check: int = 100,
    max_calls: int = MAX_CALLS,
    prices: tuple[float, float] | None = None,
    record: str | Path | Record | None = None,
    announce: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    **options: Unpack[CallOptions],
) -> Descriptions:
    """Have a model describe common traits of failing examples, and decide where each one holds.

    The model sees only examples of the discovery half. The annotator then decides for every
    example, including held-out ones, whether each description holds. It sees no outcomes and no
    answers.

    Parameters
    ----------
    evidence : Evidence
    model : str or Target
        Model that proposes, such as ``openai/gpt-4o``; see `groundfault.models`.
    plan : Plan, optional
        Only its split and its seed are used; audit with the same plan.
    annotator : str or Target, optional
        Model that decides; by default the proposing model.
    second : str or Target, optional
        Model that decides again on examples drawn at random; its agreement is reported with the
        candidates. If it is the annotator itself, it is asked anew: that measures how steady it is,
        not whether it is right.
    descriptions : sequence of str
        Your own descriptions, decided together with the proposed ones.
    settings : ProposingSettings, optional
        How to ask for descriptions; without arms, only your own are decided on.
    columns : sequence of str, optional
        Attributes or globs to show of an example, all known before its answer; by default all
        attributes of prose.
    sample : int, optional
        Number of texts to decide on, drawn at random; by default all.
    check : int
        Number of texts to decide on again, drawn at random; at least 1.
    max_calls : int
        Largest number of calls to all models in this run.
    prices : pair of float, optional
        US dollars for a million tokens, of questions and of replies, for the estimates; the same
        for every model.
    record : path, URL or Record, optional
        Record of every call; in a repeated run with it, answered questions are not asked again.
    announce : callable, optional
        Called with the estimated cost of each batch of calls before it is made.
    progress : callable, optional
    **options
        Options of `groundfault.models.ask`: concurrency, timeout, temperature, max_tokens, ...

    Raises
    ------
    InputError
        If there are no failures or no texts, or no reply can be read; and as
        `groundfault.models.ask`.
    PlanError
        If a batch needs more calls than are left of ``max_calls``, or a setting is invalid.

    Notes
    -----
    With ``ProposingSettings(runs=True)`` the models see the steps of runs, or their answers, in
    place of examples, without grades. Then audit `Descriptions.marked`.

    Descriptions proposed from outcomes are confirmed only on held-out examples. Descriptions
    proposed blindly do not depend on outcomes, since their examples are drawn without regard to
    outcomes, so all units may test them. A confirmation is a statement about the annotator's marks,
    which depend only on the texts. Annotation errors that are independent of failing make effects
    smaller. If an annotator errs where a model fails, its marks describe another property than the
    description.
    """
    if second is not None and sheet is not None:
        raise PlanError("a second model (--second) or a person (--sheet) decides again, not both")
    asked: AskOptions = {**options, "record": record, "progress": listener(progress)}
    budget = CallBudget(max_calls, record, prices, announce, asked)
    task = DescribingTask.of(
        evidence,
        plan,
        descriptions=descriptions,
        settings=settings,
        columns=columns,
        sample=sample,
        check=check,
    )
    seed, texts = task.audit.plan.seed, task.texts
    listener(announce)(task.bound_cost(second=second is not None).describe(prices))
    # all targets before the first paid call
    proposer = get(model)
    decider = proposer if annotator is None else get(annotator)
    by: Target | Marks | None = None if second is None else get(second)
    todo, proposals = task.propose(proposer, budget)
    lines = [one.text for one in todo]
    if sheet is not None and Path(sheet).exists():
        # before any annotation is paid for
        by = read_sheet(sheet, task.part, lines)
    first = annotate(texts, todo, decider, budget, seed=seed)
    if (first.marks == MISSING).all():
        counts = ", ".join(f"{number:,} {status}" for status, number in first.replies.items())
        raise InputError(
            f"{decider.name} decided on no example ({counts}); its replies are on record: read "
            "some, and ask another annotator (--annotator)"
        )
    again, replies = task.check(todo, first.marks, decider, by, budget)
    if sheet is not None and not Path(sheet).exists():
        write_sheet(sheet, task.part, lines)
    prompt = PROMPTS.hash("annotate")
    columns_made = [
        DescriptionColumn.of(task.columns, one, decider.name, prompt, texts, marks, agreement)
        for one, marks, agreement in zip(todo, first.marks.T, again, strict=True)
    ]
    library = Library.of(_make_candidates(columns_made, task.audit.origin))
    marked = task.mark(todo, first.marks) if task.settings.runs else None
    how = proposals, first.replies, replies, budget.calls, marked
    return Descriptions(library, task.columns, len(texts), *how)


def choose_columns(audit: PreparedAudit, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Choose attributes to show to annotators, all known before the answer.

    Parameters
    ----------
    audit : PreparedAudit
    columns : sequence of str, optional
        Names or globs; by default every attribute of prose.

    Raises
    ------
    InputError
        If a name matches no such attribute, or no attribute is prose.
    """
    visible = audit.visible_evidence
    if columns:
        # columns measured with an answer, or following from it, are not among these attributes
        return tuple(dict.fromkeys(match_attributes(visible, tuple(columns))))
    names = tuple(select_texts(visible, None).columns)
    if not names:
        raise InputError(
            "no column of prose was known before the answers: "
            f"name columns to show (--text) among {', '.join(visible.attributes[:12])}"
        )
    return names


def _list_discovery(
    audit: PreparedAudit, shown: Sequence[str], *, mining: bool
) -> tuple[list[str], Bools]:
    """List distinct texts that the proposer may see, and which fail more than on average."""
    visible = audit.visible_evidence
    table = pl.DataFrame({"text": show_texts(visible.frame, shown)})
    if not mining:
        texts = table["text"].drop_nulls().unique(maintain_order=True).to_list()
        return texts, np.zeros(len(texts), dtype=np.bool_)
    scored = table.with_columns(loss=visible.loss).drop_nulls()
    means = scored.group_by("text", maintain_order=True).agg(pl.col("loss").mean())
    failing = (means["loss"] > means["loss"].mean()).to_numpy()
    if not failing.any():
        raise InputError("no example of the discovery half fails more than another")
    return means["text"].to_list(), failing


def _list_texts(
    evidence: Evidence, shown: Sequence[str], sample: int | None, seed: int
) -> list[str]:
    """List distinct texts of all units, or of a random sample."""
    texts = show_texts(evidence.frame, shown).drop_nulls().unique(maintain_order=True).to_list()
    if not texts:
        raise InputError(
            f"every example is empty in {', '.join(shown)}: name other columns to show (--text)"
        )
    if sample is None or sample >= len(texts):
        return texts
    places = stream(seed, "texts to annotate").choice(len(texts), sample, replace=False)
    return [texts[i] for i in np.sort(places)]


def _make_candidates(columns: Sequence[DescriptionColumn], origin: str) -> list[Candidate]:
    candidates = []
    for column in columns:
        text = column.description.text
        name = text if len(text) <= _MAX_NAME else text[: _MAX_NAME - 3].rstrip() + "..."
        candidates.append(
            Candidate(
                name,
                quote(column.name),
                text,
                f"{DESCRIBED} ({', '.join(column.description.arms)})",
                "drop",
                column,
                origin if column.description.owes_outcomes else "",
            )
        )
    return unique_names(candidates)
