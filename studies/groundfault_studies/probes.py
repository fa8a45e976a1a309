"""Probes: the whole protocol, offline, against scripted brittle models whose every answer is known.

References
----------
Li, "Targeted Tests for LLM Reasoning: An Audit-Constrained Protocol", 2026. Its models, banks and
responses are not at hand; here are scripted models, our bank in the same three families, and
scripted reviewers, in the form of its tables."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from groundfault import models
from groundfault.base.long_work import Progress, listener
from groundfault.models import Target
from groundfault.probes import Bank, Grammar
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.running.config import Config
from groundfault.probes.running.run import run
from groundfault.probes.running.runs import CALLS, TRAJECTORY, Runs
from groundfault.render.markdown import markdown
from groundfault.review import open_items
from groundfault_lab.pages.probe_page import draw_curves, make_page
from groundfault_lab.probes.release import Package, check, release
from groundfault_lab.probes.summary import Summary
from groundfault_studies import probe_tables as tables
from groundfault_studies.brittle import Brittle, Planted, Reviewer, plant
from groundfault_studies.probe_tables import PAIR
from groundfault_studies.tables import PaperRow, PaperStudy, PaperTable

SOURCE = 'Li, "Targeted Tests for LLM Reasoning: An Audit-Constrained Protocol", 2026'
MODELS = 3
SEEDS, QUICK_SEEDS = 20, 3
POLICIES = ("stratified", "uniform, repeats", "caps, repeats", "gp")
SLIPS = 0.05
"""Share of the items on which each of two reviewers errs; an adjudicator, who does not, settles
what they dispute.
"""


def study(
    *,
    seeds: int | None = None,
    keep: str | Path | None = None,
    quick: bool = False,
    progress: Progress | None = None,
) -> PaperStudy:
    """Run, review, report, audit and release probes of scripted models, then the same from the
    recorded calls.

    Parameters
    ----------
    seeds : int, optional
        Of the comparison of four policies; left out, 20, or quickly 3. The paper's own layouts have
        3 and 4.
    keep : path, optional
        Beside it the runs are kept, in a folder ``probes.runs``; a study that was stopped goes on
        there.
    quick : bool
        Three seeds: to see that it runs, not for conclusions.
    progress : callable, optional
        Called with a message at each step.
    """
    progress = listener(progress)
    seeds = seeds or (QUICK_SEEDS if quick else SEEDS)
    if keep is not None:
        return _study(Path(keep).parent / "probes.runs", seeds, progress)
    with tempfile.TemporaryDirectory() as folder:
        return _study(Path(folder), seeds, progress)


def _study(home: Path, seeds: int, progress: Progress) -> PaperStudy:
    truths = [plant(Bank.shipped(), Grammar.shipped(), model=number) for number in range(MODELS)]
    protocol = _Protocol(home, truths, progress)
    reviewed = {
        "v2": protocol.whole(
            "v2", _config(PAIR, 3, iterations=5, batch=3), [*map(Brittle, truths)]
        ),
        "v3": protocol.whole("v3", _config(PAIR, 3, iterations=5, batch=3)),
        "v4": protocol.whole("v4", _config(PAIR, 4, iterations=8, batch=3)),
        "policies": protocol.whole(
            f"policies-{seeds}", _config(POLICIES, seeds, iterations=16, batch=3)
        ),
        "exhaustive": protocol.whole(
            "exhaustive", _config(["exhaustive"], 1, iterations=9, batch=54)
        ),
    }
    summaries = {name: Summary.of(audit) for name, audit in reviewed.items()}
    progress("writing the tables")
    return PaperStudy(
        "probes",
        "Audited probes of scripted models",
        SOURCE,
        {"seeds": seeds, "slips": SLIPS, "prompts": len(truths[0].kinds)},
        (
            tables.truth(summaries, {truth.model: truth for truth in truths}, SLIPS),
            tables.compare_matched(summaries),
            tables.proxy_only(summaries["v2"]),
            tables.fixture(protocol.fixture()),
            *tables.of_models(summaries["v2"]),
            *tables.of_one_model(summaries),
            tables.differences(summaries["policies"]),
            tables.components(summaries["exhaustive"]),
            protocol.again(reviewed["v4"]),
        ),
        figures={"curves": draw_curves(summaries["policies"]).svg},
    )


def _config(policies: Sequence[str], seeds: int, **more: Any) -> Config:
    bank, grammar = SHIPPED / "bank.toml", SHIPPED / "grammar.toml"
    return Config(
        bank=bank,
        grammar=grammar,
        policies=policies,
        seeds=range(seeds),
        retries=2,
        reviewers=2,
        **more,
    )


class _Protocol:
    """Runs and reviews in one folder, all of it where it was left."""

    def __init__(self, home: Path, truths: Sequence[Planted], progress: Progress) -> None:
        self.home, self.truths, self.progress = home, truths, progress

    def whole(self, name: str, config: Config, targets: Sequence[Target] = ()) -> ReviewedRuns:
        """Runs of the targets, two blind reviews, an adjudication; unblinded."""
        for target in targets or [Brittle(self.truths[0])]:
            self.progress(f"{name}: asking {target.name}")
            runs = run(
                config,
                target,
                out=self.home / name,
                progress=lambda message: self.progress(f"{name}: {message}"),
            )
        audit = ReviewedRuns(runs)
        queue = audit.seal()
        people = [Reviewer(person, self.truths, SLIPS) for person in ("ana", "ben")]
        for person in [*people, Reviewer("cy", self.truths, 0.0, adjudicates=True)]:
            self.progress(f"{name}: {person.name} reviews")
            open_ones = open_items(
                queue, audit.decisions, person.name, adjudicate=person.adjudicates
            )
            audit.store.add([person.decide(item) for item in open_ones])
        if not audit.unblindings:
            audit.unblind("study", "review is finished")
        return audit

    def fixture(self) -> Summary:
        """Runs against an adapter that answers every prompt wrong, so that all of them saturate
        alike.
        """
        self.progress("fixture: asking")
        always = dict.fromkeys(self.truths[0].responses, "Answer: nothing of the kind")
        target = Brittle(replace(self.truths[0], responses=always), failing=0.0)
        runs = run(_config(PAIR, 5, iterations=5, batch=3), target, out=self.home / "fixture")
        return Summary(tuple(runs.rows), {}, runs.grammar, runs.manifest, PAIR[1])

    def again(self, first: ReviewedRuns) -> PaperTable:
        """Whether a replay of the recorded calls, and a published package, say the same."""
        target = models.get(f"replay:{first.runs.folder / CALLS}")
        replayed = self.whole("replayed", _config(PAIR, 4, iterations=8, batch=3), [target])
        both = [(audit, audit.runs.rows[0].model) for audit in (first, replayed)]
        records = [_records(audit.runs, model) for audit, model in both]
        numbers = [
            str(Summary.of(audit).tables.to_dict()).replace(model, "model") for audit, model in both
        ]
        public = self.home / "public"
        if not public.exists():
            release(first, public, _typeset)
        problems = check(public, _typeset).problems
        outcomes = {
            "records of the replayed run": "identical, byte by byte"
            if records[0] == records[1]
            else "they differ",
            "all numbers after the same review": "identical"
            if numbers[0] == numbers[1]
            else "they differ",
            "the published package, by itself": problems[0] if problems else "reproduces",
        }
        rows = tuple(PaperRow(label, {"said": text}) for label, text in outcomes.items())
        note = "Records are compared but for the model's name, which says that it is a replay."
        return PaperTable("Again, from the recorded calls", note, {"said": ("", "text")}, rows)


def _typeset(package: Package) -> str:
    return markdown(make_page(package.summary, "published probes"))


def _records(runs: Runs, model: str) -> list[bytes]:
    places = sorted(runs.folder.glob(f"*/*/*/{TRAJECTORY}"), key=lambda place: place.parts[-3:])
    return [place.read_bytes().replace(model.encode(), b"model") for place in places]
