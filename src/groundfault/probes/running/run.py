"""The run: matched policies put prompts to a model within a budget; it can be resumed.

All that a run writes follows from its manifest and the answers on record (``calls.db``), so
resuming is running again with the answers that are there. What was written before must come out the
same, and is not written twice.

Where tasks have no key, their base wordings are asked first.

All policies and seeds go through their iterations together: one bound holds for the calls of all of
them, and a question that two of them have in common is on its way only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from groundfault import models
from groundfault.base.ledger import Ledger
from groundfault.base.long_work import Progress, listener
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.models import Question, Record, Response, Target
from groundfault.models.question import list_others
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.bank.rendering import Probe, probes
from groundfault.probes.running.config import Config
from groundfault.probes.running.policy_run import BaseWording, PolicyRun, RunSpec, make_base_config
from groundfault.probes.running.runs import CALLS, ITERATION, LEDGER, OTHER_MODEL, Runs, hold, seal

_MAX_PROMPTS = 1_000_000  # prompts


def run(
    config: Config | str | Path,
    target: Target | str,
    *,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Runs:
    """Ask the prompts of a config, or go on where the run was interrupted.

    Parameters
    ----------
    config : Config or path
    target : Target or str
        A model, as `groundfault.models.get` knows it.
    out : path, optional
        The folder; left out, ``runs`` beside the config's file, or else the bank's. Several models
        may share it, one after the other.
    progress : callable, optional
        Called with a line of text.

    Raises
    ------
    PlanError
        If no prompt may be asked.
    InputError
        If a file cannot be read or written, the folder is taken or was begun with something else,
        or the model's service fails for good; what was answered is on record then: run again to go
        on.
    LedgerError
        If a record was changed.

    Notes
    -----
    An iteration counts once all of its answers are there. A failure of the service is no answer:
    the query is tried again, as often as ``retries`` says, and then the run stops without having
    spent it. A refusal is an answer and spends its query; like an answer that cannot be read, it is
    no mismatch to the policy."""
    beside = config.bank if isinstance(config, Config) else Path(config)
    folder = Path(out) if out is not None else beside.parent / "runs"
    config = config if isinstance(config, Config) else Config.load(config)
    target = models.get(target)
    bank, grammar = Bank.load(config.bank), Grammar.load(config.grammar)
    prompts = _render_all(bank, grammar)
    groups = {group.name: [option.name for option in group.options] for group in grammar.groups}
    spec = RunSpec(config, target.name, prompts, groups)
    with hold(folder):
        valid = len(prompts) - int(spec.blocked.sum())
        # bank, grammar and config are sealed before the first question, so that none of them can be
        # fitted to the answers
        events = seal(
            folder, config, bank, grammar, target.name, {"prompts": len(prompts), "valid": valid}
        )
        rounds = _Rounds(
            config,
            target,
            Record(folder / CALLS),
            Ledger(folder / LEDGER),
            listener(progress),
            [event.body for event in events if event.kind == OTHER_MODEL],
        )
        if not bank.has_keys:
            first = replace(spec, config=make_base_config(config, len(bank)))
            base = PolicyRun(first, BaseWording(), 0, folder, events)
            rounds.run([base])
            spec = replace(spec, bases={row.task: row for row in base.rows})
        policy_runs = [
            PolicyRun(spec, policy, seed, folder, events)
            for policy in config.prompt_policies
            for seed in config.seeds
        ]
        rounds.run(policy_runs)
    return Runs(folder)


def _render_all(bank: Bank, grammar: Grammar) -> list[Probe]:
    if len(bank) * len(grammar) > _MAX_PROMPTS:
        raise PlanError(
            f"bank and grammar make more than {_MAX_PROMPTS:,} prompts; take fewer tasks, or fewer "
            "options"
        )
    prompts = list(probes(bank, grammar))
    if all(probe.errors for probe in prompts):
        raise PlanError(
            f"no prompt may be asked: {prompts[0].errors[0]}; "
            "groundfault lab probe check lists all reasons"
        )
    return prompts


_Batches = list[tuple[PolicyRun, list[Question]]]


@dataclass
class _Rounds:
    """An iteration of every policy run, then the next."""

    config: Config
    target: Target
    record: Record
    ledger: Ledger
    progress: Progress
    others: list[Mapping[str, Any]]
    times: Counter[str] = field(default_factory=Counter)

    def run(self, policy_runs: Sequence[PolicyRun]) -> None:
        number = 0
        # all policies go by iterations together: none gains from a service that changes while
        # another runs, and where answers are shared a question of two policies is asked once
        while open_ := [each for each in policy_runs if each.next]:
            number += 1
            batches = [(each, [self._question(probe) for probe in each.next]) for each in open_]
            answers = self._ask(number, batches)
            bodies = [
                each.tell([answers[question.hash] for question in questions])
                for each, questions in batches
            ]
            # the ledger before the files: after a crash it is ahead of them, never behind
            if any(bodies):
                self.ledger.extend(ITERATION, [body for body in bodies if body])
            for each in open_:
                each.write()

    def _question(self, probe: Probe) -> Question:
        """Make the same question where answers are shared, and else another one each time."""
        # the repeat is part of a question's hash, so another one is another question
        repeat = 0 if self.config.shares else self.times[probe.prompt]
        self.times[probe.prompt] += 1
        return self.config.question(probe.prompt, repeat)

    def _ask(self, number: int, batches: _Batches) -> dict[str, Response]:
        self._require_answers(number, batches)
        questions = list(
            {question.hash: question for _, each in batches for question in each}.values()
        )
        responses = models.ask(
            self.target,
            questions,
            record=self.record,
            concurrency=self.config.concurrency,
            timeout=self.config.timeout,
            retries=self.config.retries,
            progress=lambda message: self.progress(
                f"iteration {number} of {self.config.rounds}: {message}"
            ),
        )
        # a failure of the service is no answer of the model: counting it would spend budget on
        # nothing, and differently for each policy; a prompt too long for the model stays so
        lost = [each for each in responses if each.error and each.finish != "length"]
        if failure := next(iter(lost), None):
            raise InputError(
                f"{self.target.name} did not answer in iteration {number}: {failure.error}; "
                "this iteration is not spent: run again to go on"
            )
        self._record_others(responses)
        return dict(zip((question.hash for question in questions), responses, strict=True))

    def _record_others(self, responses: Sequence[Response]) -> None:
        """Record each model that answered in the place of the one that was asked, once."""
        bodies = [
            {"model": self.target.name, "asked": asked, "answered": answered}
            for asked, answered in list_others(responses)
        ]
        new = [body for body in bodies if body not in self.others]
        if new:
            self.ledger.extend(OTHER_MODEL, new)
            self.others += new

    def _require_answers(
        self, number: int, batches: list[tuple[PolicyRun, list[Question]]]
    ) -> None:
        """Raise `LedgerError` if answers of a recorded iteration are gone; asking again costs."""
        recorded = [each for policy_run, each in batches if number in policy_run.sealed]
        before = [question.hash for each in recorded for question in each]
        missing = set(before)
        if before:
            missing -= set(self.record.answers(self.target.name, before))
        if missing:
            raise LedgerError(
                f"{self.record.place} lacks {len(missing)} answers that the ledger counts; restore "
                "the file"
            )
