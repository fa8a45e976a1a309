"""Probes: the whole protocol, offline, against a scripted brittle model whose every answer is known.

References
----------
Li, "Targeted Tests for LLM Reasoning: An Audit-Constrained Protocol", 2026. Its models, banks and responses are not at
hand; here are a scripted model, our bank in the same three families, and scripted reviewers, in the form of its tables.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from groundfault.models import Target
from groundfault.probes import Bank, Grammar
from groundfault.probes import evidence as source
from groundfault.probes.auditing import Audit
from groundfault.probes.bank import SHIPPED
from groundfault.probes.comparison import PRIMARY
from groundfault.probes.config import Config
from groundfault.probes.release import Package, check, release
from groundfault.probes.running import run
from groundfault.probes.runs import CALLS, TRAJECTORY, Runs
from groundfault.probes.summary import Summary
from groundfault.render import probe_words
from groundfault.render.page import markdown
from groundfault.render.probe_figures import curves
from groundfault.render.probe_report import page
from groundfault.review import open_items
from groundfault.studies.tables import Kind, Row, Study, Table, Value
from groundfault.testing.brittle import Brittle, Planted, Reviewer, plant

Progress = Callable[[str], object]
Columns = dict[str, tuple[str, Kind]]

SOURCE = 'Li, "Targeted Tests for LLM Reasoning: An Audit-Constrained Protocol", 2026'
PAPER_PAIR = ("caps, repeats", "uniform, repeats")
ALL = ("stratified", "uniform, repeats", "caps, repeats", "gp")
SLIPS = 0.05
"""Share of the items on which each of two reviewers errs; an adjudicator, who does not, settles what they dispute."""

_COUNT: Kind = "count"


@dataclass(frozen=True)
class Slice:
    """Runs of a layout, reviewed and summed up.

    Attributes
    ----------
    name : str
    audit : Audit
    summary : Summary
    """

    name: str
    audit: Audit
    summary: Summary


def study(*, seeds: int = 20, keep: str | Path | None = None, quick: bool = False, progress: Progress = bool) -> Study:
    """Run, review, report, audit and release probes of a scripted model, then the same from the recorded calls.

    Parameters
    ----------
    seeds : int
        Of the comparison of four policies; the paper's own layouts have 3 and 4.
    keep : path, optional
        Beside it the runs are kept, in a folder of the same name; a study that was stopped goes on there.
    quick : bool
        Three seeds, to see that it runs.
    progress : callable, optional
        Told in words what is going on.
    """
    if keep is None:
        with tempfile.TemporaryDirectory() as folder:
            return _study(Path(folder), 3 if quick else seeds, progress)
    return _study(Path(keep).parent / "probes.runs", 3 if quick else seeds, progress)


def _study(home: Path, seeds: int, progress: Progress) -> Study:
    planted = plant(Bank.shipped(), Grammar.shipped())
    made = {
        name: _slice(home / name, name, config, planted, Brittle(planted), progress)
        for name, config in _layouts(seeds).items()
    }
    paper, large = made["paper-v4"], made["policies"]
    replayed = _replayed(home, paper, planted, progress)
    progress("judging components")
    return Study(
        "probes",
        "Audited probes of a scripted model",
        SOURCE,
        {"seeds": seeds, "slips": SLIPS, "prompts": len(planted.kinds)},
        (
            _truth(made.values(), planted),
            _matched(made),
            _fixture(home, planted, progress),
            *_detailed(made),
            _differences(large),
            _components(made["exhaustive"]),
            _identical(home, paper, replayed),
        ),
        figures={"curves": curves(large.summary).svg},
    )


def _layouts(seeds: int) -> dict[str, Config]:
    def config(policies: Sequence[str], seeds: int, **more: Any) -> Config:
        bank, grammar = SHIPPED / "bank.toml", SHIPPED / "grammar.toml"
        return Config(bank=bank, grammar=grammar, policies=policies, seeds=range(seeds), retries=2, reviewers=2, **more)

    return {
        "paper-v3": config(PAPER_PAIR, 3, iterations=5, batch=3),
        "paper-v4": config(PAPER_PAIR, 4, iterations=8, batch=3),
        "policies": config(ALL, seeds, iterations=16, batch=3),
        "exhaustive": config(["exhaustive"], 1, iterations=9, batch=54),
    }


def _slice(folder: Path, name: str, config: Config, planted: Planted, target: Target, progress: Progress) -> Slice:
    """Runs, two blind reviews, an adjudication; all of it where it was left."""
    progress(f"{name}: asking")
    runs = run(config, target, out=folder, progress=lambda said: progress(f"{name}: {said}"))
    audit = Audit(runs)
    queue = audit.seal()
    people = [Reviewer("ana", planted, SLIPS), Reviewer("ben", planted, SLIPS), Reviewer("cy", planted, 0, True)]
    for person in people:
        progress(f"{name}: {person.name} reviews")
        left = open_items(queue, audit.decisions, person.name, adjudicate=person.adjudicates)
        audit.store.add([person.decide(item) for item in left])
    if not audit.unblindings:
        audit.unblind("study", "review is finished")
    return Slice(name, audit, Summary.of(audit))


def _replayed(home: Path, first: Slice, planted: Planted, progress: Progress) -> Slice:
    from groundfault import models

    calls = first.audit.runs.folder / CALLS
    config = _layouts(1)["paper-v4"]
    return _slice(home / "replayed", "replayed", config, planted, models.get(f"replay:{calls}"), progress)


def _truth(slices: Any, planted: Planted) -> Table:
    """What was planted, and what machine and review made of it."""
    said = {
        "wrong": "wrong answers",
        "misread": "misread by the machine",
        "format": "right, in another form",
        "invalid": "prompts that changed the task",
        "right": "right answers",
    }
    rows = []
    for each in slices:
        for kind, label in said.items():
            asked = [row for row in each.summary.rows if planted.kinds[row.key] == kind]
            status = Counter(each.summary.statuses[row.id] for row in asked)
            excluded = sum(status[name] for name in ("extraction_artifact", "format_artifact", "invalid_prompt"))
            here: dict[str, Value] = {
                "planted": len(planted.of(kind)),  # type: ignore[arg-type]
                "keys": len({row.key for row in asked}),
                "rows": len(asked),
                "proxy": sum(row.signal == "mismatch" for row in asked),
                "confirmed": status["confirmed_model_error"],
                "excluded": excluded,
                "no_error": status["no_error"],
                "open": status["disputed"] + sum(row.signal != "match" for row in asked if _open(each, row.id)),
            }
            rows.append(Row(f"{each.name}: {label}", here))
    columns: Columns = {
        "planted": ("planted keys", _COUNT),
        "keys": ("asked keys", _COUNT),
        "rows": ("rows", _COUNT),
        "proxy": ("mismatches", _COUNT),
        "confirmed": ("confirmed", _COUNT),
        "excluded": ("excluded", _COUNT),
        "no_error": ("no error", _COUNT),
        "open": ("open", _COUNT),
    }
    note = (
        "By what the script planted. Mismatches are the machine's signal; confirmed, excluded and no error are what "
        f"two reviewers, who each err on {SLIPS:.0%} of the items, and an adjudicator make of the rows. Two who err "
        "alike are not found out: what is confirmed beside the wrong answers is theirs."
    )
    return Table("What was planted, and what was found", note, columns, tuple(rows))


def _open(each: Slice, row: str) -> bool:
    return each.summary.statuses[row] == "unaudited"


def _matched(made: dict[str, Slice]) -> Table:
    rows = []
    for name in ("paper-v3", "paper-v4"):
        summary = made[name].summary
        one, two = (summary.results.pool(policy) for policy in PAPER_PAIR)
        shared = summary.results.shared(*PAPER_PAIR)
        here: dict[str, Value] = {
            "budget": f"{one.budget + two.budget} responses",
            "rows": f"{one.rows.confirmed} CAPS / {two.rows.confirmed} Uniform",
            "keys": f"{len(shared.both)} shared / {len(shared.first)} CAPS-only / {len(shared.second)} Uniform-only",
            "said": probe_words.short_conclusion(summary, PAPER_PAIR[0], None)
            if len(summary.results.models) > 1
            else probe_words.short_conclusion(summary, PAPER_PAIR[0], summary.results.models[0]),
        }
        rows.append(Row(name, here, _PRINTED[name]))
    columns: Columns = {
        "budget": ("Budget", "text"),
        "rows": ("Confirmed rows", "text"),
        "keys": ("Unique keys", "text"),
        "said": ("Key-level conclusion", "text"),
    }
    note = (
        "In form: a scripted model and our bank, so counts are not to be compared with the paper's. The three models "
        "of its v2 have no counterpart here. Our policies draw components independently of each other; the paper's "
        "shares of shared keys are larger than independent draws give."
    )
    return Table("Table 2: matched comparison", note, columns, tuple(rows))


_PRINTED = {
    "paper-v3": {
        "budget": "90 responses",
        "rows": "2 CAPS / 3 Uniform",
        "keys": "2 shared / 0 CAPS-only / 1 Uniform-only",
        "said": "Uniform has the larger audited count in this slice.",
    },
    "paper-v4": {
        "budget": "192 responses",
        "rows": "13 CAPS / 11 Uniform",
        "keys": "11 shared / 1 CAPS-only / 0 Uniform-only",
        "said": "Mostly shared keys; no superiority claim follows.",
    },
}


def _fixture(home: Path, planted: Planted, progress: Progress) -> Table:
    """Table 6: an adapter that answers every prompt wrong, so that all runs saturate alike."""
    always = dict.fromkeys(planted.responses, "Answer: nothing of the kind")
    target = Brittle(replace(planted, responses=always), failing=0.0)
    config = replace(_layouts(1)["paper-v3"], seeds=range(5))
    progress("fixture: asking")
    runs = run(config, target, out=home / "fixture", progress=bool)
    (duel,) = Summary(tuple(runs.rows), {}, runs.grammar, runs.manifest, PAPER_PAIR[1]).duels
    pairs: list[tuple[str, Value, str]] = [
        ("Seeds", str(duel.seeds), "5"),
        ("CAPS mean best score", f"{duel.best:.4f}", "0.8115"),
        ("Uniform mean best score", f"{duel.control_best:.4f}", "0.8115"),
        ("Mean best-score delta", f"{duel.best - duel.control_best:.1f}", "0.0"),
        ("CAPS wins", str(duel.wins), "0"),
        ("Uniform wins", str(duel.losses), "0"),
        ("Ties", str(duel.ties), "5"),
        ("CAPS win rate", f"{duel.wins / duel.seeds:.1f}", "0.0"),
    ]
    rows = tuple(Row(label, {"value": here}, {"value": printed}) for label, here, printed in pairs)
    note = (
        "A check of loading, recording and tables, and no evidence about a model. The paper does not say what its "
        "fixture answers; ours answers everything wrong, so the score is 1 where the paper has 0.8115. What has to "
        "agree is that means are equal and all seeds tie."
    )
    return Table("Table 6: fixture", note, {"value": ("Value", "text")}, rows)


_WHO = {PAPER_PAIR[0]: "CAPS", PAPER_PAIR[1]: "Uniform"}
_PROXY = {
    ("paper-v3", "CAPS"): ("45", "3", "2", "", "0.3333"),
    ("paper-v3", "Uniform"): ("45", "3", "3", "", "0.6667"),
    ("paper-v4", "CAPS"): ("96", "14", "13", "12", "1.0000"),
    ("paper-v4", "Uniform"): ("96", "12", "11", "11", "1.0000"),
}
_AUDITED = {
    ("paper-v3", "CAPS"): ("3", "3", "2", "1", "2"),
    ("paper-v3", "Uniform"): ("3", "3", "3", "0", "3"),
    ("paper-v4", "CAPS"): ("14", "14", "13", "1", "12"),
    ("paper-v4", "Uniform"): ("12", "12", "11", "1", "11"),
}


def _detailed(made: dict[str, Slice]) -> tuple[Table, Table]:
    """Tables 9 and 11, and 10 and 12."""
    proxy: Columns = {
        "records": ("Records", _COUNT),
        "proxy": ("Mismatches (signal)", _COUNT),
        "audited": ("Audited rows", _COUNT),
        "keys": ("Audited keys", _COUNT),
        "best": ("Mean best score", "text"),
    }
    audited: Columns = {
        "rows": ("Routed rows", _COUNT),
        "reviewed": ("Reviewed of these", _COUNT),
        "confirmed": ("Confirmed errors", _COUNT),
        "excluded": ("Excluded", _COUNT),
        "keys": ("Unique keys", _COUNT),
    }
    first, second = [], []
    for name in ("paper-v3", "paper-v4"):
        for policy, label in _WHO.items():
            pool = made[name].summary.results.pool(policy)
            rows, keys = pool.rows, len(pool.keys.confirmed)
            here: dict[str, Value] = {"records": rows.queries, "proxy": rows.mismatches, "audited": rows.confirmed}
            here |= {"keys": keys, "best": f"{pool.best or 0:.4f}"}
            first.append(Row(f"{name}: {label}", here, _printed(proxy, _PROXY[name, label])))
            there: dict[str, Value] = {"rows": rows.routed, "reviewed": rows.routed - rows.waiting}
            there |= {"confirmed": rows.confirmed, "excluded": rows.excluded, "keys": keys}
            second.append(Row(f"{name}: {label}", there, _printed(audited, _AUDITED[name, label])))
    note = "In form; lines marked paper are Qwen2.5-7B's."
    return (
        Table("Tables 9 and 11: signals beside audited errors", note, proxy, tuple(first)),
        Table("Tables 10 and 12: resolved audit", note, audited, tuple(second)),
    )


def _printed(columns: Columns, cells: Sequence[str]) -> dict[str, str]:
    return {key: cell for key, cell in zip(columns, cells, strict=True) if cell}


def _differences(large: Slice) -> Table:
    rows = []
    for found in large.summary.differences:
        if found.endpoint == PRIMARY:
            pool = large.summary.results.pool(found.policy)
            low, high = found.interval or (None, None)
            here: dict[str, Value] = {
                "keys": len(pool.keys.confirmed),
                "difference": found.mean,
                "interval": "none" if low is None or high is None else f"{low:+.2f} to {high:+.2f}",
                "p": found.p,
            }
            rows.append(Row(found.policy, here))
    columns: Columns = {
        "keys": ("Unique audited keys, all seeds", _COUNT),
        "difference": ("Difference a seed", "lift"),
        "interval": ("95% interval", "text"),
        "p": ("p", "p"),
    }
    queries = large.summary.results.runs[0].budget
    seeds = len({run.seed for run in large.summary.results.runs})
    note = (
        f"{seeds} seeds of {queries} queries each; minus {large.summary.control}, seed by seed. Student's interval; p "
        "exact over flips of the seeds' signs, adjusted for the policies. One scripted model with structured failures: "
        "what holds for yours is for a matched run to say."
    )
    return Table("Policies with more seeds: unique audited keys", note, columns, tuple(rows))


def _components(whole: Slice) -> Table:
    """Components through ``groundfault audit``: every prompt asked once, tasks held out."""
    summary = whole.summary
    found = source.audits(source.rows_of(summary, summary.control), summary)
    rows = []
    for finding in found["components"].findings:
        held = finding.holdout
        here: dict[str, Value] = {
            "verdict": str(finding.verdict).replace("_", " "),
            "discovery": finding.discovery.lift,
            "holdout": held.lift if held else None,
        }
        rows.append(Row(finding.name, here))
    columns: Columns = {
        "verdict": ("Verdict", "text"),
        "discovery": ("Discovery lift (selected)", "lift"),
        "holdout": ("Holdout lift", "lift"),
    }
    note = (
        "Planted: a third of the tasks fail under the shortcut. Judged by janus on audited outcomes, with half of the "
        "tasks held out; options of a group exclude each other, so that one that raises errors makes the others lower."
    )
    return Table("Do errors rise under a component", note, columns, tuple(rows))


def _identical(home: Path, first: Slice, replayed: Slice) -> Table:
    """Whether the replay, and a published package, say the same."""
    names = [each.summary.results.models[0] for each in (first, replayed)]
    same = _records(first.audit.runs, names[0]) == _records(replayed.audit.runs, names[1])
    numbers = [
        str(each.summary.to_dict()).replace(name, "model") for each, name in zip((first, replayed), names, strict=True)
    ]
    place = home / "public"
    if not place.exists():
        release(first.audit, place, _tables)
    checked = check(place, _tables)
    rows = (
        Row("records of the replayed run", {"said": "identical, byte by byte" if same else "they differ"}),
        Row("all numbers after the same review", {"said": "identical" if numbers[0] == numbers[1] else "they differ"}),
        Row(
            "the published package, by itself", {"said": "reproduces" if not checked.problems else checked.problems[0]}
        ),
    )
    note = "Records are compared but for the model's name, which says that it is a replay."
    return Table("Again, from the recorded calls", note, {"said": ("", "text")}, rows)


def _tables(made: Package) -> str:
    return markdown(page(made.summary, "published probes", figures=False))


def _records(runs: Runs, model: str) -> list[bytes]:
    places = sorted(runs.folder.glob(f"*/*/*/{TRAJECTORY}"), key=lambda place: place.parts[-3:])
    return [place.read_bytes().replace(model.encode(), b"model") for place in places]
