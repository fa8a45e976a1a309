"""An audit as the early-stopping manager of an Inspect task (extra ``inspect``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakValueDictionary

from groundfault.errors import InputError, require_extra
from groundfault.sequential.pool import Pool
from groundfault.sequential.record import ASKED, TOLD, AuditEvent
from groundfault.sequential.session import AuditSettings, SequentialAudit

if TYPE_CHECKING:
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.hooks import SampleAttemptEnd
    from inspect_ai.scorer import SampleScore
    from inspect_ai.util import EarlyStop


class StopEarly:
    """Stops an Inspect evaluation when either null of an audit of its samples falls.

    Give the task its `dataset`, which holds the samples in the order in which the audit asks for
    them, and this as its ``early_stopping``. Samples that were running when a null fell are
    completed, and count for nothing. With ``budget=`` no more than so many samples are ever run.

    Parameters
    ----------
    dataset : iterable of Sample
    threshold : float in (0, 1)
        The least mean score that a group has to have.
    groups : sequence of str
        Names of metadata, for a group a level.
    scorer : str, optional
        Whose scores are tested, where a task has several scorers.
    policy : str
        One that does not look at scores, such as ``uniform`` or ``stratified``: Inspect runs
        samples in their order, and under another policy the audit waits for the sample it asks for.
        Left out, ``stratified`` where there are groups.
    **settings
        Further arguments of a `SequentialAudit`. With a ledger, a repeated evaluation goes on where
        the first was interrupted.

    Attributes
    ----------
    audit : SequentialAudit
        Its verdict, wealth and certificate.
    dataset : inspect_ai.dataset.MemoryDataset

    Raises
    ------
    InputError
        If ids repeat, or a sample lacks metadata named.
    MissingExtraError
        If Inspect is not installed.

    Notes
    -----
    The guarantee is the audit's, whatever the order in which samples run and complete: each score
    is told when the audit asks for it, and decides nothing before. A sample without a score, or
    with Inspect's ``N`` (no answer), is unscored, not failed, and so is one that ended in an error:
    ``retry_on_error`` would try it again after all others, for nothing. Of several epochs the
    first one counts, not the one that is done first: that would favour quick answers."""

    def __init__(
        self,
        dataset: Iterable[Sample],
        *,
        threshold: float,
        groups: Sequence[str] = (),
        scorer: str | None = None,
        policy: str | None = None,
        **settings: Unpack[AuditSettings],
    ) -> None:
        with require_extra(
            "to stop an Inspect evaluation needs Inspect: pip install 'groundfault[inspect]'"
        ):
            from inspect_ai.dataset import MemoryDataset

        samples = [copy(sample) for sample in dataset]
        for number, sample in enumerate(samples, start=1):
            sample.id = number if sample.id is None else sample.id
        labels = {name: _read_labels(samples, name) for name in groups}
        pool = Pool.from_arrays([sample.id for sample in samples], labels)
        policy = policy or ("stratified" if groups else "uniform")
        self.audit = SequentialAudit(pool, threshold=threshold, policy=policy, **settings)
        of = {str(sample.id): sample for sample in samples}
        self.dataset: MemoryDataset = MemoryDataset([of[name] for name in _order_ids(self.audit)])
        self._scorer = scorer
        self._labelled = {r.query.id for r in self.audit.rounds if r.closed}
        self._begun: set[str] = set()
        self._running: set[str] = set()
        self._scores: dict[str, float | None] = {}

    async def start_task(self, task: object, samples: list[Sample], epochs: int) -> str:  # noqa: ARG002
        """Take in that Inspect begins; refuse a wrong task before a sample is paid for."""
        self._require_scorer([scorer.name for scorer in getattr(task, "scorers", None) or []])
        for name in ("eval_id", "task_id"):
            if value := getattr(task, name, None):
                _listen()[value] = self
        known = self.audit.pool.position
        strange = [sample.id for sample in samples if str(sample.id) not in known]
        if strange:
            raise InputError(
                f"the sample {strange[0]!r} is not in the audit: give the task stopping.dataset"
            )
        return "groundfault"

    async def schedule_sample(self, id: str | int, epoch: int) -> EarlyStop | None:
        """Return a reason to stop early where a sample need not be run."""
        from inspect_ai.util import EarlyStop

        if reason := self._refuse(str(id)):
            return EarlyStop(id=id, epoch=epoch, reason=reason)
        self._begun.add(str(id))
        if epoch == 1:
            self._running.add(str(id))
        return None

    async def complete_sample(
        self, id: str | int, epoch: int, scores: Mapping[str, SampleScore]
    ) -> None:
        """Take a sample's score, and give the audit the score it waits for."""
        # a case has one score: later epochs would let quick answers be chosen
        if epoch > 1:
            return
        self._running.discard(str(id))
        self._scores.setdefault(str(id), self._score(id, scores))
        self._tell()

    def lose_sample(self, id: str | int, epoch: int) -> None:
        """Take in that a sample ended in an error: it has no score, and the audit goes on.

        Nor does it where Inspect will try it again (``retry_on_error``): that is after all others.
        """
        if epoch == 1:
            self._running.discard(str(id))
            self._scores.setdefault(str(id), None)
            self._tell()

    async def complete_task(self) -> dict[str, Any]:
        """Take in that Inspect ends; samples that were begun and gave no score are unscored."""
        # scores that arrived stand; what began and gave none is unscored, which helps neither
        # verdict
        self._scores = dict.fromkeys(self._running, None) | self._scores
        self._tell()
        names = ("verdict", "reason", "null", "labelled", "seal")
        return {name: getattr(self.audit, name) for name in names}

    def _refuse(self, name: str) -> str:
        """Return why a sample need not be run; empty if it has to be."""
        budget = self.audit.plan.budget
        if self.audit.finished:
            return f"{self.audit.verdict}: {self.audit.reason}"
        if name in self._labelled:
            return "the audit has its label already"
        # what runs is paid for, whether or not its score arrives before a null falls
        is_spent = budget is not None and len(self._labelled | self._begun) >= budget
        if is_spent and name not in self._begun:
            return f"the budget of {budget} labels is spent"
        return ""

    def _tell(self) -> None:
        while (query := self.audit.ask()) is not None and query.id in self._scores:
            self.audit.tell(query, self._scores[query.id])

    def _require_scorer(self, names: Sequence[str]) -> None:
        """Raise unless the scorer is among the task's, as its description names them.

        Of two scorers of one name Inspect calls the second by the name and a number.
        """
        if self._scorer is None and len(names) > 1:
            raise InputError(
                f"the task has the scorers {', '.join(names)}: say which is tested (scorer=)"
            )
        chosen = str(self._scorer).rpartition("/")[2]
        is_there = any(chosen.startswith(name.rpartition("/")[2]) for name in names)
        if self._scorer is not None and names and not is_there:
            raise InputError(f"the task has no scorer {self._scorer!r}, but {', '.join(names)}")

    def _score(self, id: str | int, scores: Mapping[str, SampleScore]) -> float | None:
        from inspect_ai.scorer import NOANSWER, value_to_float

        if not scores:
            return None
        if self._scorer is None and len(scores) > 1:
            raise InputError(
                f"the task has the scorers {', '.join(scores)}: say which is tested (scorer=)"
            )
        name = self._scorer or next(iter(scores))
        if name not in scores:
            raise InputError(f"no scorer {name!r} scored sample {id!r}; {', '.join(scores)} did")
        value = scores[name].score.value
        if isinstance(value, dict | list):
            raise InputError(
                f"the score of sample {id!r} by {name} is a {type(value).__name__}, not one number"
            )
        number = None if value == NOANSWER else float(value_to_float()(value))
        return None if number is None or number != number else number


@cache
def _listen() -> WeakValueDictionary[str, StopEarly]:
    """Return the listeners to the ends of samples, by the id of their evaluation.

    Inspect tells early stopping of samples that have a score alone. Its hooks hear of the others,
    and are there once for a process.
    """
    from inspect_ai.hooks import Hooks, SampleEnd, hooks

    listeners = WeakValueDictionary[str, StopEarly]()

    @hooks(name="groundfault", description="Tells an audit which samples ended in an error")
    class EndsOfSamples(Hooks):  # type: ignore[misc, unused-ignore]
        async def on_sample_end(self, data: SampleEnd) -> None:
            stopping, sample = listeners.get(data.eval_id), data.sample
            if stopping is not None and sample.error is not None and not sample.scores:
                stopping.lose_sample(sample.id, sample.epoch)

        async def on_sample_attempt_end(self, data: SampleAttemptEnd) -> None:
            stopping = listeners.get(data.eval_id)
            if stopping is not None and data.error is not None and data.will_retry:
                stopping.lose_sample(data.summary.id, data.summary.epoch)

    return listeners


def _read_labels(samples: Sequence[Sample], name: str) -> list[Any]:
    lacking = [sample.id for sample in samples if name not in (sample.metadata or {})]
    if lacking:
        raise InputError(f"the sample {lacking[0]!r} has no metadata {name!r} to be grouped by")
    values = [(sample.metadata or {})[name] for sample in samples]
    return values if all(isinstance(v, bool) for v in values) else [str(v) for v in values]


def _order_ids(audit: SequentialAudit) -> list[str]:
    """Return the ids as the audit asks where no score sways it; ids that it never asks for last."""
    # a rehearsal without scores: samples then run in about the order in which they are needed
    plan, pool, order = replace(audit.plan, budget=None), audit.pool, []
    rehearsal = SequentialAudit.of(pool, plan, policy=audit.policy, draws=audit.draws)
    while not rehearsal.decided and (query := rehearsal.choose(audit.policy)) is not None:
        draft = rehearsal.draw_round(query)
        name = draft.query.id
        rehearsal.replay(AuditEvent(0, ASKED, draft.to_query_event()))
        body = {"step": draft.query.step, "id": name, "score": None}
        rehearsal.replay(AuditEvent(0, TOLD, body))
        order.append(name)
    return [*order, *(name for name in pool.ids if name not in set(order))]
